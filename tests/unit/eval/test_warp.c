/*
 * test_warp.c - transforms of a target against sums: there and back, slopes, and every number that is said of a row
 * whose members see the target transformed. Moments and probabilities are taken here by the midpoint rule over u, the
 * density by differences of the distribution function; nothing of warp.c but t itself is used for them.
 */
#include "unit/eval/eval_case.h"

#include "eval/decision.h"
#include "eval/eval_int.h"

enum { ROWS = 1500 };
static rt_warp by_log, by_quantile;
static double targets[ROWS];

static int set_up(void **state) {
    (void)state;
    const rt_rng r = rt_rng_make(3, RT_RNG_TEST, 0, 0);
    double y[ROWS];
    for (int i = 0; i < ROWS; i++)
        y[i] = targets[i] = exp(2 * rt_rng_normal(r, (uint64_t)i) + 1);
    if (rt_warp_fit(&by_log, RT_WARP_LOG, y, ROWS) != RT_OK)
        return -1;
    for (int i = 0; i < ROWS; i++) /* both signs */
        y[i] = targets[i] * (i % 3 ? 1 : -0.2);
    return rt_warp_fit(&by_quantile, RT_WARP_QUANTILE, y, ROWS) == RT_OK ? 0 : -1;
}

static void there_and_back(void **state) {
    (void)state;
    const rt_warp *all[] = {&by_log, &by_quantile};
    for (int w = 0; w < 2; w++)
        for (double u = -9; u < 9; u += 0.0371) {
            const double y = rt_warp_invert(all[w], u), h = 1e-6 * (1 + fabs(y));
            near(rt_warp_apply(all[w], y), u, 1e-9);
            assert_true(rt_warp_invert(all[w], u + 1e-3) > y);
            const double slope = (rt_warp_apply(all[w], y + h) - rt_warp_apply(all[w], y - h)) / (2 * h);
            bool knot = false; /* where two lines meet there is no slope */
            for (int i = 0; i < all[w]->knots; i++)
                knot = knot || fabs(y - all[w]->y[i]) <= 2 * h;
            if (!knot)
                near(rt_warp_log_slope(all[w], y), log(slope), 1e-3);
        }
    near(rt_warp_apply(&by_log, 7.5), log(7.5), 1e-15);
    assert_true(rt_warp_apply(&by_log, -3) < rt_warp_apply(&by_log, 0)); /* defined, and rising, below zero */
}

/* What quantiles are for: u of the rows it was fitted to is nearly Gaussian. */
static void quantiles_make_gaussians(void **state) {
    (void)state;
    double mean = 0, m2 = 0, m3 = 0, m4 = 0;
    for (int i = 0; i < ROWS; i++) {
        const double u = rt_warp_apply(&by_quantile, targets[i] * (i % 3 ? 1 : -0.2));
        mean += u / ROWS;
        m2 += u * u / ROWS;
        m3 += u * u * u / ROWS;
        m4 += u * u * u * u / ROWS;
    }
    near(mean, 0, 0.02);
    near(m2, 1, 0.03);
    near(m3, 0, 0.1);
    near(m4, 3, 0.3);
}

/* E f(y), u a mixture of Gaussians. */
static double expected(const rt_warp *w, const float *g, int members, double about, int power) {
    enum { STEPS = 400000 };
    double sum = 0;
    for (int m = 0; m < members; m++) {
        const double mu = (double)g[2 * m], s = sqrt((double)g[2 * m + 1]), width = 24 * s / STEPS;
        for (int i = 0; i < STEPS; i++) {
            const double u = mu - 12 * s + (i + 0.5) * width, z = (u - mu) / s;
            sum += pow(rt_warp_invert(w, u) - about, power) * exp(-0.5 * z * z) / 2.5066282746310002 * width /
                   s / members;
        }
    }
    return sum;
}

static void moments_by_sums(void **state) {
    (void)state;
    const rt_warp *all[] = {&by_log, &by_quantile};
    /* inside, at both ends, beyond them; narrow, wide, wild */
    const float at[][2] = {{1, 0.3F},   {1, 1e-4F}, {-6, 1},  {8, 2}, {12, 0.5F},
                           {-14, 0.1F}, {0.5F, 30}, {2, 400}, {3, 4}};
    for (int w = 0; w < 2; w++)
        for (size_t i = 0; i < sizeof at / sizeof at[0]; i++) {
            double mean, variance;
            rt_warp_moments(all[w], (double)at[i][0], (double)at[i][1], &mean, &variance);
            const double want = expected(all[w], at[i], 1, 0, 1),
                         square = expected(all[w], at[i], 1, want, 2);
            near(mean, want, 1e-7 * (fabs(want) + sqrt(square)));
            near(variance, square, 1e-6 * square);
        }
    double mean, variance; /* all within the curve: the moments of a log-normal distribution */
    rt_warp_moments(&by_log, 1, 0.09, &mean, &variance);
    near(mean, exp(1.045), 1e-12);
    near(variance, expm1(0.09) * exp(2.09), 1e-12);
    rt_warp_moments(&by_log, 1, 1e-12, &mean, &variance);
    near(variance / (exp(2) * 1e-12), 1, 1e-9);
}

static void rows_by_sums(void **state) {
    (void)state;
    const rt_warp *all[] = {&by_log, &by_quantile};
    const float g[] = {1, 0.2F, 1.5F, 0.1F, 0.2F, 0.6F};
    for (int w = 0; w < 2; w++) {
        const rt_reading how = {.kind = RT_OUTPUT_GAUSSIAN, .m = 3, .k = 2, .warp = all[w]};
        const rt_decision d = {.measure = -1, .conformal = RT_CONFORMAL_INTERVAL, .quantile = 1.3};
        rt_row r;
        double lower, upper;
        assert_int_equal(rt_row_init(&r, how), RT_OK);
        assert_true(rt_row_read(&r, g));
        const double mean = expected(all[w], g, 3, 0, 1), variance = expected(all[w], g, 3, mean, 2);
        near(r.mean, mean, 1e-7 * fabs(mean));
        near(r.total, variance, 1e-6 * variance);
        near(r.data + r.knowledge, r.total, 1e-12 * variance);
        for (int m = 0; m < 3; m++)
            near(rt_row_cdf(&r, rt_warp_invert(all[w], -8 + 10 * m)),
                 rt_row_cdf(&(rt_row){.how = {.kind = RT_OUTPUT_GAUSSIAN, .m = 3, .k = 2}, .y = g},
                            -8 + 10 * m),
                 1e-12);
        /* the density is the slope of the distribution function */
        for (double u = -2; u < 3; u += 0.317) {
            const double y = rt_warp_invert(all[w], u), h = 1e-6 * (1 + fabs(y));
            near(rt_row_nll(&r, y), -log((rt_row_cdf(&r, y + h) - rt_row_cdf(&r, y - h)) / (2 * h)), 1e-4);
        }
        /* an end of the interval has the score of the quantile */
        rt_decision_interval(&d, &r, &lower, &upper);
        assert_true(lower < upper);
        near(rt_conformal_score(d.conformal, &r, lower), 1.3, 1e-9);
        near(rt_conformal_score(d.conformal, &r, upper), 1.3, 1e-9);
        rt_row_deinit(&r);
    }
}

/* One Gaussian without a network is a row of one member. */
static void gaussian_as_row(void **state) {
    (void)state;
    const rt_warp none = {.kind = RT_WARP_NONE}, *all[] = {&none, &by_log, &by_quantile};
    const float said[] = {0.75f, 1.5f};
    for (int w = 0; w < 3; w++) {
        rt_row r;
        const rt_reading how = {.kind = RT_OUTPUT_GAUSSIAN, .m = 1, .k = 2, .warp = all[w]};
        assert_int_equal(rt_row_init(&r, how), RT_OK);
        assert_true(rt_row_read(&r, said));
        for (int i = 0; i < ROWS; i++)
            near(rt_gaussian_nll(0.75, 1.5, all[w], targets[i]), rt_row_nll(&r, targets[i]), 0);
        rt_row_deinit(&r);
    }
}

static void choice(void **state) {
    (void)state;
    const rt_rng r = rt_rng_make(4, RT_RNG_TEST, 0, 0);
    double normal[ROWS], prices[ROWS], both[ROWS], steep[ROWS];
    for (int i = 0; i < ROWS; i++) {
        normal[i] = 450 + 17 * rt_rng_normal(r, (uint64_t)i);
        prices[i] = targets[i];
        both[i] = targets[i] - 3;
        steep[i] = exp(targets[i] / 100);
    }
    assert_int_equal(rt_warp_choose(normal, ROWS), RT_WARP_NONE);
    assert_int_equal(rt_warp_choose(prices, ROWS), RT_WARP_LOG);
    assert_int_equal(rt_warp_choose(both, ROWS), RT_WARP_QUANTILE);
    assert_int_equal(rt_warp_choose(steep, ROWS), RT_WARP_QUANTILE); /* its logarithm is heavy-tailed, too */
    assert_int_equal(rt_warp_choose(both, 150), RT_WARP_NONE);       /* too few for quantiles */
    double same[] = {2, 2, 2};
    assert_int_equal(rt_warp_choose(same, 3), RT_WARP_NONE);
    rt_warp w;
    double low[] = {-2, -1, 0};
    assert_int_equal(rt_warp_fit(&w, RT_WARP_LOG, same, 3), RT_E_INPUT);
    assert_int_equal(rt_warp_fit(&w, RT_WARP_QUANTILE, same, 3), RT_E_INPUT);
    assert_int_equal(rt_warp_fit(&w, RT_WARP_LOG, low, 3), RT_E_INPUT);
    double ties[] = {0, 0, 0, 0, 0, 0, 1, 1, 1, 5};
    assert_int_equal(rt_warp_fit(&w, RT_WARP_QUANTILE, ties, 10), RT_OK);
    assert_true(rt_warp_valid(&w));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(there_and_back),  cmocka_unit_test(quantiles_make_gaussians),
        cmocka_unit_test(moments_by_sums), cmocka_unit_test(rows_by_sums),
        cmocka_unit_test(gaussian_as_row), cmocka_unit_test(choice)};
    return cmocka_run_group_tests(tests, set_up, NULL);
}
