/*
 * test_ranking.c - AUROC, AUPR, PRR and their curves by hand, against counting of all pairs and of all
 * thresholds, with ties; histograms.
 */
#include "unit/eval/eval_case.h"
#include <stdlib.h>

enum { ROWS = 211 };

/* levels > 0: so many different scores. */
static void random_rows(double *score, uint8_t *positive, uint64_t seed, uint64_t levels) {
    rt_rng r = rt_rng_make(seed, RT_RNG_TEST, 2, levels);
    for (uint64_t i = 0; i < ROWS; i++) {
        positive[i] = rt_rng_uniform(r, 3 * i) < 0.3;
        score[i] = levels ? (double)rt_rng_below(r, 3 * i + 1, levels) : rt_rng_normal(r, 3 * i + 1);
        score[i] += positive[i] ? 0.7 * (levels ? 1 : rt_rng_uniform(r, 3 * i + 2)) : 0;
    }
}

static double twin_auroc(const double *score, const uint8_t *positive, int n) {
    double won = 0, pairs = 0;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            if (positive[i] && !positive[j]) {
                pairs += 1;
                won += score[i] > score[j] ? 1 : score[i] == score[j] ? 0.5 : 0;
            }
    return won / pairs;
}

static int falling(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return x > y ? -1 : x < y;
}

/* A point for every score as threshold, from (recall 0, precision 1). */
static double twin_aupr(const double *score, const uint8_t *positive, int n) {
    double at[ROWS], area = 0, recall = 0, precision = 1, all = 0;
    memcpy(at, score, (size_t)n * sizeof *at);
    qsort(at, (size_t)n, sizeof *at, falling);
    for (int i = 0; i < n; i++)
        all += positive[i];
    for (int t = 0; t < n; t++) {
        double tp = 0, chosen = 0;
        for (int i = 0; i < n; i++) {
            chosen += score[i] >= at[t];
            tp += score[i] >= at[t] && positive[i];
        }
        area += (tp / all - recall) * (tp / chosen + precision) / 2;
        recall = tp / all;
        precision = tp / chosen;
    }
    return area;
}

static void by_hand(void **state) {
    (void)state;
    const double score[] = {0.9, 0.8, 0.8, 0.4, 0.1};
    const uint8_t positive[] = {1, 1, 0, 1, 0};
    rt_ranking r;
    assert_int_equal(rt_eval_ranking(score, positive, 5, &r), RT_OK);
    assert_null(r.reason);
    near(r.auroc, (1 + 1 + 0.5 + 1 + 0 + 1) / 6, 1e-15); /* six pairs */
    near(r.prr, 2 * 4.5 / 6 - 1, 1e-15);
    /* points (0, 1), (1/3, 1), (2/3, 2/3), (1, 3/4), (1, 3/5) */
    near(r.aupr, 1.0 / 3 + (1 + 2.0 / 3) / 6 + (2.0 / 3 + 0.75) / 6, 1e-15);

    double curve[RT_CURVE_POINTS];
    assert_int_equal(rt_eval_rejection(score, positive, 5, curve), RT_OK);
    near(curve[0], 3.0 / 5, 1e-15);
    near(curve[20], 2.0 / 5, 1e-15);
    near(curve[40], 1.5 / 5, 1e-15); /* within the tie: half an error */
    near(curve[60], 1.0 / 5, 1e-15);
    near(curve[70], 0.5 / 5, 1e-15);
    near(curve[80], 0, 1e-15);
    near(curve[100], 0, 0);

    rt_roc roc;
    assert_int_equal(rt_eval_roc(score, positive, 5, &roc), RT_OK);
    const double fpr[] = {0, 0, 0.5, 0.5, 1}, tpr[] = {0, 1.0 / 3, 2.0 / 3, 1, 1};
    assert_int_equal(roc.points, 5);
    for (int i = 0; i < 5; i++) {
        near(roc.fpr[i], fpr[i], 1e-15);
        near(roc.tpr[i], tpr[i], 1e-15);
    }
}

static void extremes(void **state) {
    (void)state;
    const uint8_t positive[] = {0, 0, 1, 1};
    const double best[] = {1, 2, 3, 4}, worst[] = {4, 3, 2, 1}, tied[] = {1, 1, 1, 1};
    rt_ranking r;
    assert_int_equal(rt_eval_ranking(best, positive, 4, &r), RT_OK);
    near(r.auroc, 1, 0);
    near(r.aupr, 1, 0);
    near(r.prr, 1, 1e-15);
    assert_int_equal(rt_eval_ranking(worst, positive, 4, &r), RT_OK);
    near(r.auroc, 0, 0);
    near(r.prr, -1, 1e-15);
    assert_int_equal(rt_eval_ranking(tied, positive, 4, &r), RT_OK);
    near(r.auroc, 0.5, 0);
    near(r.aupr, 0.75, 0); /* from (0, 1) to (1, 1/2) */
    near(r.prr, 0, 1e-15);
}

static void against_all_pairs(void **state) {
    (void)state;
    static double score[ROWS];
    static uint8_t positive[ROWS];
    for (uint64_t seed = 0; seed < 12; seed++) {
        random_rows(score, positive, seed, seed % 3 == 0 ? 0 : seed % 3 == 1 ? 4 : 40);
        rt_ranking r;
        assert_int_equal(rt_eval_ranking(score, positive, ROWS, &r), RT_OK);
        near(r.auroc, twin_auroc(score, positive, ROWS), 1e-14);
        near(r.aupr, twin_aupr(score, positive, ROWS), 1e-14);
        near(r.prr, 2 * r.auroc - 1, 1e-13);
    }
}

/* Areas of the curves are the numbers: all rows for rejection (a multiple of 100, so that the points fall on
 * rows), few enough different scores for the whole ROC curve. */
static void curves_hold_their_areas(void **state) {
    (void)state;
    static double score[ROWS];
    static uint8_t positive[ROWS];
    for (uint64_t seed = 20; seed < 26; seed++) {
        random_rows(score, positive, seed, 30);
        const int64_t n = 100;
        double curve[RT_CURVE_POINTS], random[RT_CURVE_POINTS], oracle[RT_CURVE_POINTS];
        double a = 0, flat = 0, least = 0, e = 0;
        rt_ranking r;
        rt_roc roc;
        for (int i = 0; i < n; i++)
            e += (double)positive[i] / (double)n;
        assert_int_equal(rt_eval_ranking(score, positive, n, &r), RT_OK);
        assert_int_equal(rt_eval_rejection(score, positive, n, curve), RT_OK);
        rt_eval_rejection_limits(e, random, oracle);
        for (int i = 0; i < 100; i++) {
            a += (curve[i] + curve[i + 1]) / 200;
            flat += (random[i] + random[i + 1]) / 200;
            least += (oracle[i] + oracle[i + 1]) / 200;
            assert_true(curve[i] >= oracle[i] - 1e-12);
        }
        near((flat - a) / (flat - least), r.prr, 1e-12);
        assert_int_equal(rt_eval_roc(score, positive, n, &roc), RT_OK);
        a = 0;
        for (int i = 1; i < roc.points; i++)
            a += (roc.fpr[i] - roc.fpr[i - 1]) * (roc.tpr[i] + roc.tpr[i - 1]) / 2;
        near(a, r.auroc, 0.01); /* steps shorter than 1/100 of the way are joined */
    }
}

static void long_roc_is_thinned(void **state) {
    (void)state;
    enum { MANY = 5000 };
    static double score[MANY];
    static uint8_t positive[MANY];
    rt_rng r = rt_rng_make(9, RT_RNG_TEST, 3, 0);
    for (uint64_t i = 0; i < MANY; i++) {
        positive[i] = i % 2;
        score[i] = rt_rng_normal(r, i) + (i % 2 ? 1 : 0);
    }
    rt_roc roc;
    rt_ranking want;
    double area = 0;
    assert_int_equal(rt_eval_roc(score, positive, MANY, &roc), RT_OK);
    assert_int_equal(rt_eval_ranking(score, positive, MANY, &want), RT_OK);
    assert_in_range(roc.points, 90, RT_CURVE_POINTS);
    near(roc.fpr[0] + roc.tpr[0], 0, 0);
    near(roc.fpr[roc.points - 1] + roc.tpr[roc.points - 1], 2, 0);
    for (int i = 1; i < roc.points; i++) {
        assert_true(roc.fpr[i] >= roc.fpr[i - 1] && roc.tpr[i] >= roc.tpr[i - 1]);
        area += (roc.fpr[i] - roc.fpr[i - 1]) * (roc.tpr[i] + roc.tpr[i - 1]) / 2;
    }
    near(area, want.auroc, 1e-3);
}

static void undefined(void **state) {
    (void)state;
    const double score[] = {1, 2, 3}, bad[] = {1, NAN, 3};
    const uint8_t none[] = {0, 0, 0}, all[] = {1, 1, 1}, some[] = {1, 0, 1};
    static const struct {
        int64_t n;
        const char *reason;
    } want[] = {{3, "no positive rows"},
                {3, "no negative rows"},
                {3, "a score is not a number"},
                {0, "no positive rows"}};
    const uint8_t *const positive[] = {none, all, some, some};
    for (int i = 0; i < 4; i++) {
        rt_ranking r;
        rt_roc roc;
        double curve[RT_CURVE_POINTS];
        const double *s = i == 2 ? bad : score;
        assert_int_equal(rt_eval_ranking(s, positive[i], want[i].n, &r), RT_OK);
        assert_true(isnan(r.auroc) && isnan(r.aupr) && isnan(r.prr));
        assert_string_equal(r.reason, want[i].reason);
        assert_int_equal(rt_eval_roc(s, positive[i], want[i].n, &roc), RT_OK);
        assert_int_equal(roc.points, 0);
        assert_int_equal(rt_eval_rejection(s, positive[i], want[i].n, curve), RT_OK);
        assert_int_equal(isnan(curve[50]) != 0, i >= 2);
    }
}

static void histograms(void **state) {
    (void)state;
    const double x[] = {-1, 0, 0.5, 0.999, 1, 1.5, 2, 7, NAN}, edges[] = {0, 1, 1.5, 2};
    int64_t count[3];
    rt_eval_histogram(x, 9, edges, 3, count);
    assert_int_equal(count[0], 4);
    assert_int_equal(count[1], 1);
    assert_int_equal(count[2], 3);
    rt_eval_histogram(x, 0, edges, 3, count);
    assert_int_equal(count[0] + count[1] + count[2], 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_hand),
        cmocka_unit_test(extremes),
        cmocka_unit_test(against_all_pairs),
        cmocka_unit_test(curves_hold_their_areas),
        cmocka_unit_test(long_roc_is_thinned),
        cmocka_unit_test(undefined),
        cmocka_unit_test(histograms),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
