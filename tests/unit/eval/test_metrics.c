/*
 * test_metrics.c - every metric against a hand-computed example and against a brute-force twin: the
 * definition written a second time, without the shortcuts, on random predictions.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/rng.h"
#include "eval/eval.h"
#include <math.h>
#include <string.h>

static void near(double got, double want, double tol) {
    if (!(fabs(got - want) <= tol))
        fail_msg("got %.15g, wanted %.15g +- %g", got, want, tol);
}

/* ---- by hand ---- */

static const float hand_p[] = {0.7f, 0.2f, 0.1f, 0.1f, 0.8f, 0.1f, 0.4f, 0.4f, 0.2f};
static const int32_t hand_y[] = {0, 2, 1};

static void accuracy_by_hand(void **state) {
    (void)state;
    near(rt_eval_accuracy(hand_p, hand_y, 3, 3), 1.0 / 3, 1e-15); /* the tie of row 2 goes to class 0 */
}

static void nll_by_hand(void **state) {
    (void)state;
    near(rt_eval_nll(hand_p, hand_y, 3, 3), -(log(0.7) + log(0.1) + log(0.4)) / 3, 1e-7);
    const float zero[] = {1, 0};
    const int32_t one = 1;
    near(rt_eval_nll(zero, &one, 1, 2), 27.631021115928547, 1e-9); /* floored at 1e-12 */
}

static void brier_by_hand(void **state) {
    (void)state;
    double want = (0.09 + 0.04 + 0.01) + (0.01 + 0.64 + 0.81) + (0.16 + 0.36 + 0.04);
    near(rt_eval_brier(hand_p, hand_y, 3, 3), want / 3, 1e-7);
}

static void ece_by_hand(void **state) {
    (void)state;
    /* ten bins: .7 right (gap .3), .8 wrong (.8), .4 wrong (.4) */
    near(rt_eval_ece(hand_p, hand_y, 3, 3, 10), (0.3 + 0.8 + 0.4) / 3, 1e-7);
    /* one bin: accuracy 1/3 against a mean confidence of 1.9/3 */
    near(rt_eval_ece(hand_p, hand_y, 3, 3, 1), (1.9 - 1) / 3, 1e-7);
}

static void ece_borders(void **state) {
    (void)state;
    /* 0.5 belongs to (0, 0.5]: alone with the wrong row of confidence 0.25; 1.0 belongs to the last bin. k =
     * 1 lets confidence be free. */
    const float p[] = {0.5f, 0.25f, 1.0f, 0.75f, 0.0f};
    const int32_t y[] = {0, 1, 0, 1, 1};
    double low = fabs((1 - 0.5) + (0 - 0.25) + (0 - 0.0)), high = fabs((1 - 1.0) + (0 - 0.75));
    near(rt_eval_ece(p, y, 5, 1, 2), (low + high) / 5, 1e-15);
    const float nan_p[] = {NAN};
    assert_true(isnan(rt_eval_ece(nan_p, y, 1, 1, 15)));
}

static void entropy_by_hand(void **state) {
    (void)state;
    const float p[] = {0.5f, 0.5f, 1, 0};
    near(rt_eval_entropy(p, 2, 2), log(2) / 2, 1e-15);
}

static void diversity_by_hand(void **state) {
    (void)state;
    /* two members that are sure of different classes: all uncertainty is knowledge */
    const float p[] = {1, 0, 0, 1, 0.5f, 0.5f, 0.5f, 0.5f};
    near(rt_eval_mutual_information(p, 2, 2, 2), log(2) / 2, 1e-15);
    near(rt_eval_disagreement(p, 2, 2, 2), 0.5, 1e-15);
    const float three[] = {1, 0, 0, 1, 0, 1}; /* pairs: 01 differ, 02 differ, 12 agree */
    near(rt_eval_disagreement(three, 1, 3, 2), 2.0 / 3, 1e-15);
    assert_true(isnan(rt_eval_disagreement(three, 1, 1, 2)));
}

static void regression_by_hand(void **state) {
    (void)state;
    const float mu[] = {1, 3, 0, 0}, var[] = {1, 1, 4, 4}, y[] = {1, 2};
    near(rt_eval_rmse(mu, y, 2, 2), sqrt((1.0 + 4.0) / 2), 1e-12);
    double half_ln_2pi = 0.91893853320467274;
    double row0 = -log(0.5 * (exp(-half_ln_2pi) + exp(-half_ln_2pi - 2)));
    double row1 = half_ln_2pi + 0.5 * log(4) + 0.5;
    near(rt_eval_gaussian_nll(mu, var, y, 2, 2), (row0 + row1) / 2, 1e-12);
    const float far_mu[] = {0}, far_y[] = {1000},
                one[] = {1}; /* the density underflows, its logarithm does not */
    near(rt_eval_gaussian_nll(far_mu, one, far_y, 1, 1), half_ln_2pi + 500000, 1e-6);
}

static void softmax_by_hand(void **state) {
    (void)state;
    const float z[] = {0, 0, 1000, 998.613705639f}; /* (1, 2, 2): 1/2, 1/2 and 4/5, 1/5 */
    float p[2], q[4];
    rt_eval_softmax_mean(z, p, q, 1, 2, 2);
    near((double)q[0], 0.5, 1e-7);
    near((double)q[2], 0.8, 1e-5);
    near((double)p[0], 0.65, 1e-5);
    near((double)p[1], 0.35, 1e-5);
}

/* ---- twins ---- */

enum { N = 97, M = 5, K = 7 };
typedef struct random_case {
    float logits[N * M * K], p[N * K], member[N * M * K], mu[N * M], var[N * M], target[N];
    int32_t y[N];
} random_case;

static void make_case(random_case *c, uint64_t seed, double sharp) {
    rt_rng r = rt_rng_make(seed, RT_RNG_TEST, 0, 0);
    uint64_t at = 0;
    for (int i = 0; i < N * M * K; i++)
        c->logits[i] = (float)(sharp * rt_rng_normal(r, at++));
    for (int i = 0; i < N * M; i++) {
        c->mu[i] = (float)rt_rng_normal(r, at++);
        c->var[i] = (float)(0.05 + rt_rng_uniform(r, at++));
    }
    for (int i = 0; i < N; i++) {
        c->target[i] = (float)rt_rng_normal(r, at++);
        c->y[i] = (int32_t)rt_rng_below(r, at++, K);
    }
    rt_eval_softmax_mean(c->logits, c->p, c->member, N, M, K);
}

static double twin_entropy(const double *p) {
    double h = 0;
    for (int c = 0; c < K; c++)
        h -= p[c] > 0 ? p[c] * log(p[c]) : 0;
    return h;
}

static int twin_top(const double *p) {
    int best = K - 1;
    for (int c = K - 1; c >= 0; c--)
        best = p[c] >= p[best] ? c : best;
    return best;
}

static double twin_ece(const random_case *c, int bins) {
    double total = 0;
    for (int b = 0; b < bins; b++) {
        double right = 0, conf = 0, count = 0;
        for (int i = 0; i < N; i++) {
            double q[K];
            for (int j = 0; j < K; j++)
                q[j] = (double)c->p[i * K + j];
            int top = twin_top(q);
            if (q[top] > (double)b / bins && q[top] <= (double)(b + 1) / bins)
                count += 1, right += top == c->y[i], conf += q[top];
        }
        if (count > 0)
            total += count / N * fabs(right / count - conf / count);
    }
    return total;
}

static void classification_twins(void **state) {
    (void)state;
    static random_case c;
    for (uint64_t seed = 0; seed < 8; seed++) {
        make_case(&c, seed, seed % 2 ? 0.3 : 4);
        double right = 0, nll = 0, brier = 0, entropy = 0, mi = 0, differ = 0;
        for (int i = 0; i < N; i++) {
            double mean[K] = {0}, own = 0;
            double q[M][K];
            for (int m = 0; m < M; m++) {
                double sum = 0;
                for (int j = 0; j < K; j++)
                    sum += q[m][j] = exp((double)c.logits[(i * M + m) * K + j]);
                for (int j = 0; j < K; j++)
                    mean[j] += (q[m][j] /= sum) / M;
                own += twin_entropy(q[m]) / M;
            }
            for (int a = 0; a < M; a++)
                for (int b = 0; b < M; b++)
                    differ += a != b && twin_top(q[a]) != twin_top(q[b]);
            right += twin_top(mean) == c.y[i];
            nll -= log(mean[c.y[i]]);
            entropy += twin_entropy(mean);
            mi += twin_entropy(mean) - own;
            for (int j = 0; j < K; j++)
                brier += j == c.y[i] ? (mean[j] - 1) * (mean[j] - 1) : mean[j] * mean[j];
        }
        near(rt_eval_accuracy(c.p, c.y, N, K), right / N, 1e-12);
        near(rt_eval_nll(c.p, c.y, N, K), nll / N, 1e-6);
        near(rt_eval_brier(c.p, c.y, N, K), brier / N, 1e-6);
        near(rt_eval_entropy(c.p, N, K), entropy / N, 1e-6);
        near(rt_eval_mutual_information(c.member, N, M, K), mi / N, 1e-6);
        near(rt_eval_disagreement(c.member, N, M, K), differ / (N * M * (M - 1)), 1e-12);
        for (int bins = 1; bins <= 20; bins++)
            near(rt_eval_ece(c.p, c.y, N, K, bins), twin_ece(&c, bins), 1e-12);
    }
}

static void regression_twins(void **state) {
    (void)state;
    static random_case c;
    for (uint64_t seed = 0; seed < 4; seed++) {
        make_case(&c, seed, 1);
        double nll = 0, square = 0;
        for (int i = 0; i < N; i++) {
            double density = 0, mean = 0, y = (double)c.target[i];
            for (int m = 0; m < M; m++) {
                double mu = (double)c.mu[i * M + m], v = (double)c.var[i * M + m];
                density += exp(-(y - mu) * (y - mu) / (2 * v)) / sqrt(2 * 3.14159265358979323846 * v);
                mean += mu / M;
            }
            nll -= log(density / M);
            square += (mean - y) * (mean - y);
        }
        near(rt_eval_gaussian_nll(c.mu, c.var, c.target, N, M), nll / N, 1e-9);
        near(rt_eval_rmse(c.mu, c.target, N, M), sqrt(square / N), 1e-12);
    }
}

/* An ensemble larger than the scans kept gives the same mean as its parts. */
static void large_ensemble(void **state) {
    (void)state;
    enum { MANY = 150 };
    static float z[MANY * K], p[K], q[MANY * K];
    rt_rng r = rt_rng_make(3, RT_RNG_TEST, 1, 0);
    for (int i = 0; i < MANY * K; i++)
        z[i] = (float)rt_rng_normal(r, (uint64_t)i);
    rt_eval_softmax_mean(z, p, q, 1, MANY, K);
    for (int c = 0; c < K; c++) {
        double mean = 0;
        for (int m = 0; m < MANY; m++)
            mean += (double)q[m * K + c] / MANY;
        near((double)p[c], mean, 1e-7);
    }
}

/* ---- the table ---- */

static int index_of(const char *name, bool regression) {
    const rt_metric_info *info;
    int n = rt_metric_list(&info);
    for (int i = 0; i < n; i++)
        if (strcmp(info[i].name, name) == 0 && info[i].regression == regression)
            return i;
    fail_msg("metric %s is not in the table", name);
    return -1;
}

static void all_metrics(void **state) {
    (void)state;
    static random_case c;
    make_case(&c, 5, 2);
    const rt_metric_info *info;
    int n = rt_metric_list(&info);
    double v[32];
    const char *why[32];
    assert_in_range(n, 9, 32);
    rt_eval_input in = {.n = N, .m = M, .k = K, .logits = c.logits, .label = c.y, .temperature = 1.5};
    assert_int_equal(rt_eval_all(&in, v, why), RT_OK);
    for (int i = 0; i < n; i++) {
        assert_int_equal(isnan(v[i]) != 0, info[i].regression);
        assert_int_equal(why[i] != NULL, info[i].regression);
    }
    near(v[index_of("nll", false)], rt_eval_nll(c.p, c.y, N, K), 1e-6);
    near(v[index_of("ece", false)], rt_eval_ece(c.p, c.y, N, K, RT_ECE_BINS), 1e-6);
    assert_true(info[index_of("accuracy", false)].higher_is_better);
    assert_false(info[index_of("rmse", true)].higher_is_better);

    rt_eval_input reg = {.regression = true, .n = N, .m = M, .mu = c.mu, .var = c.var, .target = c.target};
    assert_int_equal(rt_eval_all(&reg, v, why), RT_OK);
    near(v[index_of("nll", true)], rt_eval_gaussian_nll(c.mu, c.var, c.target, N, M), 1e-12);
    assert_true(isnan(v[index_of("nll", false)]));
}

static void undefined_has_a_reason(void **state) {
    (void)state;
    static random_case c;
    make_case(&c, 6, 2);
    double v[32];
    const char *why[32];
    rt_eval_input in = {.n = N, .m = 1, .k = K, .logits = c.logits, .label = c.y};
    assert_int_equal(rt_eval_all(&in, v, why), RT_OK);
    int i = index_of("disagreement", false);
    assert_true(isnan(v[i]));
    assert_string_equal(why[i], "needs at least two members");
    c.logits[3] = NAN;
    assert_int_equal(rt_eval_all(&in, v, why), RT_OK);
    i = index_of("nll", false);
    assert_true(isnan(v[i]) && why[i]);
}

static void bad_input_is_refused(void **state) {
    (void)state;
    static random_case c;
    make_case(&c, 7, 2);
    double v[32];
    rt_eval_input in = {.n = N, .m = M, .k = K, .logits = c.logits, .label = c.y};
    c.y[11] = K;
    assert_int_equal(rt_eval_all(&in, v, NULL), RT_E_INPUT);
    assert_non_null(strstr(rt_error_text(), "row 11 has label 7"));
    c.y[11] = -1;
    assert_int_equal(rt_eval_all(&in, v, NULL), RT_E_INPUT);
    in.n = 0;
    assert_int_equal(rt_eval_all(&in, v, NULL), RT_E_INPUT);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(accuracy_by_hand),     cmocka_unit_test(nll_by_hand),
        cmocka_unit_test(brier_by_hand),        cmocka_unit_test(ece_by_hand),
        cmocka_unit_test(ece_borders),          cmocka_unit_test(entropy_by_hand),
        cmocka_unit_test(diversity_by_hand),    cmocka_unit_test(regression_by_hand),
        cmocka_unit_test(softmax_by_hand),      cmocka_unit_test(classification_twins),
        cmocka_unit_test(regression_twins),     cmocka_unit_test(large_ensemble),
        cmocka_unit_test(all_metrics),          cmocka_unit_test(undefined_has_a_reason),
        cmocka_unit_test(bad_input_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
