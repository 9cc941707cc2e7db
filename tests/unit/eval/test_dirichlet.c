/*
 * test_dirichlet.c - uncertainty of a Dirichlet against known values, at the limits, and beside the
 * difference form.
 */
#include "base/rng.h"
#include "base/special.h"
#include "eval/eval.h"
#include "support/check.h"
#include <math.h>
#include <string.h>

typedef struct uncertainty {
    double total, data, knowledge, epkl, differential_entropy, precision, p[6];
} uncertainty;

/* One Dirichlet of k classes. */
static uncertainty read_one(const float *z, int64_t k, double offset) {
    rt_row r;
    assert_int_equal(rt_row_init(&r, (rt_reading){RT_OUTPUT_DIRICHLET, 1, k, .offset = offset}), RT_OK);
    assert_true(rt_row_read(&r, z));
    uncertainty u = {r.total, r.data, r.knowledge, r.epkl, r.differential_entropy, 0, {0}};
    for (int64_t c = 0; c < k; c++) {
        u.precision += r.alpha[c];
        u.p[c] = r.p[c];
    }
    rt_row_deinit(&r);
    return u;
}

static void known_values(void **state) {
    (void)state;
    static const struct {
        double alpha[3], total, data, knowledge, epkl, differential_entropy;
    } table[] = {
        {{1, 1, 1}, 1.098612288668, 0.833333333333, 0.265278955335, 0.666666666667, -0.693147180560},
        {{2, 3, 4}, 1.060856947158, 0.958597883598, 0.102259063560, 0.222222222222, -1.312553395814},
        {{100, 1, 1}, 0.110100081923, 0.101810353190, 0.008289728733, 0.019607843137, -7.250092683028},
    };
    for (int64_t i = 0; i < RT_COUNT(table); i++) {
        for (int shift = 0; shift < 2; shift++) { /* the offset takes part of alpha over */
            const double offset = 0.5 * shift;
            float z[3];
            for (int c = 0; c < 3; c++)
                z[c] = (float)log(table[i].alpha[c] - offset);
            const uncertainty d = read_one(z, 3, offset);
            near(d.total, table[i].total, 1e-6); /* logits are float */
            near(d.data, table[i].data, 1e-6);
            near(d.knowledge, table[i].knowledge, 1e-6);
            near(d.epkl, table[i].epkl, 1e-6);
            near(d.differential_entropy, table[i].differential_entropy, 1e-5);
            const double sum = table[i].alpha[0] + table[i].alpha[1] + table[i].alpha[2];
            for (int c = 0; c < 3; c++)
                near(d.p[c], table[i].alpha[c] / sum, 1e-6);
        }
    }
}

/* MI -> (K - 1) / (2 alpha_0) for large precision, where the difference of entropies has no digit left. */
static void sharp_limit(void **state) {
    (void)state;
    for (double scale = 1e3; scale < 1e14; scale *= 100) {
        float z[4];
        for (int c = 0; c < 4; c++)
            z[c] = (float)log(scale);
        const uncertainty d = read_one(z, 4, 0);
        near(d.knowledge / (3 / (2 * d.precision)), 1, 2 / scale + 1e-12);
        near(d.epkl, 3 / d.precision, 1e-15);
        /* a Gaussian on the simplex: covariance (diag pi - pi pi^T) / (alpha_0 + 1), determinant of its 3 x 3 part
         * 4^-4 / (alpha_0 + 1)^3 */
        const double gauss =
            1.5 * log(2 * 3.14159265358979323846 * exp(1)) - 2 * log(4) - 1.5 * log(d.precision + 1);
        near(d.differential_entropy, gauss, 4 / scale + 1e-9);
    }
}

static void difference_form_where_it_is_sound(void **state) {
    (void)state;
    rt_rng r = rt_rng_make(5, RT_RNG_TEST, 0, 0);
    for (uint64_t i = 0; i < 200; i++) {
        float z[6];
        double sum = 0, data = 0, total = 0;
        for (uint64_t c = 0; c < 6; c++) {
            z[c] = (float)(2 * rt_rng_normal(r, i * 6 + c));
            sum += exp((double)z[c]) + 1;
        }
        for (int c = 0; c < 6; c++) {
            const double a = exp((double)z[c]) + 1;
            data -= a / sum * (rt_digamma(a + 1) - rt_digamma(sum + 1));
            total -= a / sum * log(a / sum);
        }
        const uncertainty d = read_one(z, 6, 1);
        near(d.total, total, 1e-12);
        near(d.data, data, 1e-11);
        near(d.knowledge, total - data, 1e-11);
    }
}

static void extremes_stay_finite(void **state) {
    (void)state;
    static const float rows[][3] = {
        {1e30f, 0, -1e30f}, {-1e30f, -1e30f, -1e30f}, {88, 88, 88}, {-200, 0, 200}};
    for (int64_t i = 0; i < RT_COUNT(rows); i++)
        for (int offset = 0; offset < 2; offset++) {
            const uncertainty d = read_one(rows[i], 3, offset);
            assert_true(isfinite(d.total) && isfinite(d.data) && d.knowledge >= 0 && isfinite(d.epkl));
            assert_true(isfinite(d.differential_entropy));
            near(d.p[0] + d.p[1] + d.p[2], 1, 1e-6);
        }
}

/* Through the table of metrics: one Dirichlet has a mutual information of its own; two equal ones have no
 * more. */
static void as_metric(void **state) {
    (void)state;
    const float one[] = {0, 0, 0}, two[] = {0, 0, 0, 0, 0, 0};
    const int32_t y = 0;
    const rt_metric_info *infos;
    const int n = rt_metric_list(&infos);
    for (int m = 1; m <= 2; m++) {
        double values[64];
        const char *reasons[64];
        assert_int_equal(rt_eval_all(&(rt_eval_input){.n = 1,
                                                      .how = {.kind = RT_OUTPUT_DIRICHLET, .m = m, .k = 3},
                                                      .y = m == 1 ? one : two,
                                                      .label = &y},
                                     values, reasons),
                         RT_OK);
        for (int i = 0; i < n; i++)
            if (strcmp(infos[i].name, "mutual_information") == 0)
                near(values[i], 0.265278955335, 1e-9);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_values),
        cmocka_unit_test(sharp_limit),
        cmocka_unit_test(difference_form_where_it_is_sound),
        cmocka_unit_test(extremes_stay_finite),
        cmocka_unit_test(as_metric),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
