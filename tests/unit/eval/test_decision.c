/*
 * test_decision.c - bounds against scipy's beta quantiles, order statistics at their edges, sets by hand, and the
 * promises themselves over many draws.
 */
#include "eval/decision.h"
#include "unit/eval/eval_case.h"

static void bounds(void **state) {
    (void)state;
    /* scipy.stats.beta.ppf(1 - delta, k + 1, n - k), beta.ppf(delta, k, n - k + 1) */
    near(rt_binomial_upper(0, 100, 0.05), 0.02951304960703993, 1e-12);
    near(rt_binomial_upper(5, 100, 0.05), 0.1022533776432745, 1e-12);
    near(rt_binomial_upper(37, 1000, 0.01), 0.05333813477690706, 1e-12);
    near(rt_binomial_upper(999, 1000, 0.05), 0.999948708021091, 1e-9);
    near(rt_binomial_upper(7, 7, 0.05), 1, 0);
    near(rt_binomial_lower(0, 10, 0.05), 0, 0);
    near(rt_binomial_lower(5, 100, 0.05), 0.019905563662171832, 1e-12);
    near(rt_binomial_lower(999, 1000, 0.05), 0.9952650064245002, 1e-9);
}

static void quantiles(void **state) {
    (void)state;
    double v[9] = {9, 1, 8, 2, 7, 3, 6, 4, 5};
    near(rt_conformal_quantile(v, 9, 0.1), 9, 0); /* ceil(10 * 0.9) = 9 */
    near(rt_conformal_quantile(v, 9, 0.5), 5, 0);
    assert_true(isinf(rt_conformal_quantile(v, 9, 0.05))); /* ceil(9.5) = 10: there is none */
    near(rt_reject_by_coverage(v, 9, 0.8), 8, 0);
}

static rt_row read_row(const float *y, int64_t m, int64_t k, rt_output_kind kind) {
    rt_row r;
    assert_int_equal(rt_row_init(&r, (rt_reading){.kind = kind, .m = m, .k = k}), RT_OK);
    assert_true(rt_row_read(&r, y));
    return r;
}

static int set_of(const rt_decision *d, const rt_row *r) {
    int mask = 0;
    for (int64_t c = 0; c < r->how.k; c++)
        mask |= rt_decision_contains(d, r, c) << c;
    return mask;
}

static void sets(void **state) {
    (void)state;
    const float y[4] = {logf(0.5f), logf(0.1f), logf(0.3f), logf(0.1f)};
    rt_row r = read_row(y, 1, 4, RT_OUTPUT_LOGITS);
    rt_decision d = {.measure = -1, .conformal = RT_CONFORMAL_LAC, .quantile = 0.71};
    assert_int_equal(set_of(&d, &r), 1 | 4); /* p >= 0.29 */
    d.quantile = 0.4;
    assert_int_equal(set_of(&d, &r), 0);
    d.quantile = INFINITY;
    assert_int_equal(set_of(&d, &r), 15);
    d = (rt_decision){.measure = -1, .conformal = RT_CONFORMAL_APS, .quantile = 0.85};
    assert_int_equal(set_of(&d, &r), 1 | 4); /* sums down to a class: 0.5, 0.9, 0.8, 1.0 */
    d.quantile = 0.95;
    assert_int_equal(set_of(&d, &r), 1 | 2 | 4); /* of the two at 0.1 the lower comes first */
    d.quantile = 0.2;
    assert_int_equal(set_of(&d, &r), 1); /* never empty */
    near(rt_conformal_score(RT_CONFORMAL_APS, &r, 3), 1, 1e-7);
    near(rt_conformal_score(RT_CONFORMAL_LAC, &r, 2), 0.7, 1e-7);
    d = (rt_decision){.measure = rt_measure_find("confidence", false), .threshold = 0.49};
    assert_true(rt_decision_rejects(&d, &r)); /* 1 - max p = 0.5 */
    d.threshold = 0.51;
    assert_false(rt_decision_rejects(&d, &r));
    d.measure = -1;
    assert_false(rt_decision_rejects(&d, &r));
    rt_row_deinit(&r);
    const float g[4] = {1, 3, 5, 1}; /* means 1 and 5, variances 3 and 1: total 2 + 4 */
    r = read_row(g, 2, 2, RT_OUTPUT_GAUSSIAN);
    double lower, upper;
    d = (rt_decision){.measure = -1, .conformal = RT_CONFORMAL_INTERVAL, .quantile = 2};
    rt_decision_interval(&d, &r, &lower, &upper);
    near(lower, 3 - 2 * sqrt(6), 1e-12);
    near(upper, 3 + 2 * sqrt(6), 1e-12);
    near(rt_conformal_score(RT_CONFORMAL_INTERVAL, &r, 3 + 2 * sqrt(6)), 2, 1e-12);
    rt_row_deinit(&r);
}

/* A temperature of members divides logits before the mean; one of the mean comes after. */
static void temperatures(void **state) {
    (void)state;
    const float y[4] = {2, 0, 0, 1};
    rt_row r;
    assert_int_equal(rt_row_init(&r, (rt_reading){.m = 2, .k = 2, .member_temperature = 4}), RT_OK);
    assert_true(rt_row_read(&r, y));
    const double a = 1 / (1 + exp(-0.5)), b = 1 / (1 + exp(0.25));
    near(r.member_p[0], a, 1e-12);
    near(r.p[0], (a + b) / 2, 1e-12);
    near(r.total, r.data + r.knowledge, 1e-12);
    rt_row_deinit(&r);
}

/* ---- the promises, over draws: classifier with a random, wrong idea of probabilities ---- */

enum { CLASSES = 5, FIT = 60, TEST = 400, DRAWS = 200 };

static double draw_row(rt_row *r, rt_rng g, uint64_t i, int64_t *y) {
    float z[CLASSES];
    for (int c = 0; c < CLASSES; c++)
        z[c] = 2 * (float)rt_rng_normal(g, i * 16 + (uint64_t)c);
    *y = 0; /* the truth follows logits that the model does not know */
    double best = -1e9;
    for (int c = 0; c < CLASSES; c++) {
        const double v = 0.6 * (double)z[c] + rt_rng_normal(g, i * 16 + 8 + (uint64_t)c);
        *y = v > best ? c : *y;
        best = fmax(v, best);
    }
    assert_true(rt_row_read(r, z));
    return r->total;
}

static void coverage_holds(void **state) {
    (void)state;
    for (int kind = RT_CONFORMAL_LAC; kind <= RT_CONFORMAL_APS; kind++) {
        double covered = 0;
        rt_row r;
        assert_int_equal(rt_row_init(&r, (rt_reading){.m = 1, .k = CLASSES}), RT_OK);
        for (int d = 0; d < DRAWS; d++) {
            const rt_rng g = rt_rng_make(7, RT_RNG_TEST, (uint64_t)d, (uint64_t)kind);
            double score[FIT];
            int64_t y;
            for (uint64_t i = 0; i < FIT; i++) {
                (void)draw_row(&r, g, i, &y);
                score[i] = rt_conformal_score((rt_conformal)kind, &r, (double)y);
            }
            const rt_decision rule = {.measure = -1,
                                      .conformal = (rt_conformal)kind,
                                      .quantile = rt_conformal_quantile(score, FIT, 0.1)};
            for (uint64_t i = FIT; i < FIT + TEST; i++) {
                (void)draw_row(&r, g, i, &y);
                covered += rt_decision_contains(&rule, &r, y);
            }
        }
        covered /= DRAWS * TEST;
        /* mean over draws: between 0.9 and 0.9 + 1/61, less or more its noise (0.04 / sqrt(200)); the top class of
         * APS may add to it */
        assert_true(covered > 0.9 - 0.009);
        assert_true(covered < 0.9 + 1.0 / 61 + (kind == RT_CONFORMAL_APS ? 0.03 : 0.009));
        rt_row_deinit(&r);
    }
}

/* The risk of what is answered is above the wanted one in at most delta of the draws, and something is answered. */
static void risk_holds(void **state) {
    (void)state;
    enum { ROWS = 1500 };
    static double measure[ROWS];
    static uint8_t wrong[ROWS];
    static int64_t order[ROWS];
    int broken = 0, found = 0;
    for (int d = 0; d < 100; d++) {
        const rt_rng g = rt_rng_make(9, RT_RNG_TEST, (uint64_t)d, 0);
        double threshold = 0;
        for (uint64_t i = 0; i < ROWS; i++) { /* P(wrong) = u^2 */
            measure[i] = rt_rng_uniform(g, 2 * i);
            wrong[i] = rt_rng_uniform(g, 2 * i + 1) < measure[i] * measure[i];
        }
        if (!rt_reject_by_risk(measure, wrong, ROWS, 0.1, 0.1, order, &threshold))
            continue;
        found++;
        broken += threshold * threshold / 3 > 0.1; /* the true risk of u <= t is t^2 / 3 */
        assert_true(threshold > 0.3);
    }
    assert_int_equal(found, 100);
    assert_true(broken <= 10);
    uint8_t all_wrong[20];
    memset(all_wrong, 1, sizeof all_wrong);
    double t;
    assert_false(rt_reject_by_risk(measure, all_wrong, 20, 0.1, 0.05, order, &t));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(bounds),         cmocka_unit_test(quantiles),
                                       cmocka_unit_test(sets),           cmocka_unit_test(temperatures),
                                       cmocka_unit_test(coverage_holds), cmocka_unit_test(risk_holds)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
