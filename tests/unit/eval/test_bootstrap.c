/*
 * test_bootstrap.c - intervals against the slow way: the rows of every draw are really collected into a new
 * data set, measured as any other, and the results sorted. Then: threads change nothing, intervals hold what
 * theory says, undefined metrics have none.
 */
#include "unit/eval/eval_case.h"
#include "base/pool.h"
#include <stdlib.h>

enum { DRAWS = 40 };

static int rising(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static rt_interval middle(double *v, int n, double level) {
    double end[2];
    qsort(v, (size_t)n, sizeof *v, rising);
    for (int i = 0; i < 2; i++) {
        const double at = (i ? 1 + level : 1 - level) / 2 * (n - 1), below = floor(at);
        const int j = (int)below;
        end[i] = v[j] + (j + 1 < n ? (at - below) * (v[j + 1] - v[j]) : 0);
    }
    return (rt_interval){end[0], end[1]};
}

/* Row i of draw d: as documented in bootstrap.c, four 32-bit numbers a block, scaled to the number of rows. */
static int64_t drawn(uint64_t seed, uint64_t d, uint64_t part, int64_t i, int64_t n) {
    uint32_t u[4];
    rt_rng_block(rt_rng_make(seed, RT_RNG_BOOTSTRAP, d, part), (uint64_t)i / 4, u);
    return (int64_t)(((uint64_t)u[i % 4] * (uint64_t)n) >> 32);
}

static void resample(random_case *to, const random_case *from, uint64_t seed, uint64_t d) {
    for (int64_t i = 0; i < N; i++) {
        const int64_t j = drawn(seed, d, 0, i, N);
        memcpy(to->logits + i * M * K, from->logits + j * M * K, M * K * sizeof(float));
        memcpy(to->gaussian + i * M * 2, from->gaussian + j * M * 2, M * 2 * sizeof(float));
        to->target[i] = from->target[j];
        to->y[i] = from->y[j];
    }
}

static void against_resampled_rows(void **state) {
    (void)state;
    static random_case c, r;
    static double draws[RT_METRICS_MAX][DRAWS];
    const rt_metric_info *info;
    const int metrics = rt_metric_list(&info);
    make_case(&c, 21, 2);
    for (int task = 0; task < 3; task++) { /* classes, Dirichlets, Gaussians */
        rt_eval_input in = task == 2 ? gaussians_of(&c) : classes_of(&c);
        if (task == 1)
            in.how.kind = RT_OUTPUT_DIRICHLET;
        in.temperature = 1.7;
        rt_interval got[RT_METRICS_MAX];
        assert_int_equal(rt_eval_bootstrap(&in, (rt_bootstrap){.draws = DRAWS, .level = 0.9, .seed = 5}, got),
                         RT_OK);
        for (uint64_t d = 0; d < DRAWS; d++) {
            double v[RT_METRICS_MAX];
            resample(&r, &c, 5, d);
            rt_eval_input again = task == 2 ? gaussians_of(&r) : classes_of(&r);
            again.how = in.how;
            again.temperature = in.temperature;
            assert_int_equal(rt_eval_all(&again, v, NULL), RT_OK);
            for (int i = 0; i < metrics; i++)
                draws[i][d] = v[i];
        }
        for (int i = 0; i < metrics; i++) {
            if (info[i].regression != rt_eval_regression(&in) || strcmp(info[i].name, "temperature") == 0 ||
                rt_needs_why_not(info[i].needs, &in.how)) {
                assert_true(isnan(got[i].lo) && isnan(got[i].hi));
                continue;
            }
            const rt_interval want = middle(draws[i], DRAWS, 0.9);
            near(got[i].lo, want.lo, 1e-12);
            near(got[i].hi, want.hi, 1e-12);
        }
    }
}

enum { ROWS = 150, POSITIVE = 40, SCORES = 3 };

static void make_scores(double *score, uint8_t *positive) {
    rt_rng r = rt_rng_make(8, RT_RNG_TEST, 4, 0);
    for (int i = 0; i < ROWS; i++) {
        positive[i] = i % 4 == 3 || i > ROWS - 4;
        for (int s = 0; s < SCORES; s++) {
            double v = rt_rng_normal(r, (uint64_t)(s * ROWS + i)) + (positive[i] ? 0.8 : 0);
            score[s * ROWS + i] = s == 1 ? floor(2 * v) : v;
        }
    }
    score[2 * ROWS + 7] = NAN;
}

static void rankings_against_resampled_rows(void **state) {
    (void)state;
    static double score[SCORES * ROWS], again[ROWS], draws[3][DRAWS];
    static uint8_t positive[ROWS], flag[ROWS];
    int64_t rows[2][ROWS], n[2];
    make_scores(score, positive);
    for (int two = 0; two < 2; two++) {
        rt_ranking_interval got[SCORES];
        assert_int_equal(rt_eval_ranking_bootstrap(score, SCORES, positive, ROWS, two != 0,
                                                   (rt_bootstrap){.draws = DRAWS, .seed = 3}, got),
                         RT_OK);
        for (int s = 0; s < 2; s++) {
            for (uint64_t d = 0; d < DRAWS; d++) {
                int64_t at = 0;
                n[0] = n[1] = 0;
                for (int64_t i = 0; i < ROWS; i++) {
                    const int part = two && positive[i];
                    rows[part][n[part]++] = i;
                }
                for (int part = 0; part < 2; part++)
                    for (int64_t i = 0; i < n[part]; i++, at++) {
                        const int64_t j = rows[part][drawn(3, d, (uint64_t)part, i, n[part])];
                        again[at] = score[s * ROWS + j];
                        flag[at] = positive[j];
                    }
                rt_ranking r;
                assert_int_equal(rt_eval_ranking(again, flag, ROWS, &r), RT_OK);
                draws[0][d] = r.auroc;
                draws[1][d] = r.aupr;
                draws[2][d] = r.prr;
            }
            const rt_interval *g[] = {&got[s].auroc, &got[s].aupr, &got[s].prr};
            for (int v = 0; v < 3; v++) {
                const rt_interval want = middle(draws[v], DRAWS, 0.95);
                near(g[v]->lo, want.lo, 1e-12);
                near(g[v]->hi, want.hi, 1e-12);
            }
        }
        assert_true(isnan(got[2].auroc.lo) && isnan(got[2].aupr.hi)); /* a score is not a number */
    }
}

static void threads_change_nothing(void **state) {
    (void)state;
    static random_case c;
    static double score[SCORES * ROWS];
    static uint8_t positive[ROWS];
    make_case(&c, 23, 2);
    make_scores(score, positive);
    rt_eval_input in = classes_of(&c);
    in.temperature = 0.8;
    rt_interval want[RT_METRICS_MAX], got[RT_METRICS_MAX];
    rt_ranking_interval want_r[SCORES], got_r[SCORES];
    assert_int_equal(rt_eval_bootstrap(&in, (rt_bootstrap){.draws = 200}, want), RT_OK);
    assert_int_equal(
        rt_eval_ranking_bootstrap(score, SCORES, positive, ROWS, true, (rt_bootstrap){.draws = 200}, want_r),
        RT_OK);
    const rt_metric_info *info;
    const size_t bytes = (size_t)rt_metric_list(&info) * sizeof *want;
    for (int workers = 1; workers <= 4; workers++) {
        rt_pool *pool = NULL;
        assert_int_equal(rt_pool_create(&pool, workers), RT_OK);
        const rt_bootstrap o = {.draws = 200, .pool = pool};
        assert_int_equal(rt_eval_bootstrap(&in, o, got), RT_OK);
        assert_memory_equal(got, want, bytes);
        assert_int_equal(rt_eval_ranking_bootstrap(score, SCORES, positive, ROWS, true, o, got_r), RT_OK);
        assert_memory_equal(got_r, want_r, sizeof want_r);
        rt_pool_destroy(&pool);
    }
    assert_int_equal(rt_eval_bootstrap(&in, (rt_bootstrap){.draws = 200, .seed = 1}, got), RT_OK);
    assert_memory_not_equal(got, want, bytes);
}

/* Accuracy of n rows: the interval is about p +- 1.96 sqrt(p (1 - p) / n). */
static void as_theory_says(void **state) {
    (void)state;
    enum { MANY = 2000 };
    static float z[MANY * 2];
    static int32_t y[MANY];
    for (int i = 0; i < MANY; i++) {
        z[2 * i] = 1;
        y[i] = i % 10 == 0;
    }
    const rt_eval_input in = {.n = MANY, .how = {.m = 1, .k = 2}, .y = z, .label = y};
    rt_interval got[RT_METRICS_MAX];
    assert_int_equal(rt_eval_bootstrap(&in, (rt_bootstrap){0}, got), RT_OK);
    const int a = rt_metric_find("accuracy", false);
    const double half = 1.96 * sqrt(0.9 * 0.1 / MANY);
    near(got[a].lo, 0.9 - half, 0.15 * half);
    near(got[a].hi, 0.9 + half, 0.15 * half);
}

static void undefined_and_refused(void **state) {
    (void)state;
    const float z[] = {3, 0, 2, 0, 1, 0};
    const int32_t right[] = {0, 0, 0};
    rt_eval_input in = {.n = 3, .how = {.m = 1, .k = 2}, .y = z, .label = right};
    rt_interval got[RT_METRICS_MAX];
    assert_int_equal(rt_eval_bootstrap(&in, (rt_bootstrap){.draws = 10}, got), RT_OK);
    assert_true(isnan(got[rt_metric_find("prr", false)].lo)); /* no errors */
    near(got[rt_metric_find("accuracy", false)].lo, 1, 0);
    assert_int_equal(rt_eval_bootstrap(&in, (rt_bootstrap){.level = 1}, got), RT_E_USAGE);
    in.n = 0;
    assert_int_equal(rt_eval_bootstrap(&in, (rt_bootstrap){0}, got), RT_E_INPUT);
    /* one error in three rows: absent from (2/3)^3 = 30% of the draws, alone in 4% */
    const int32_t one_wrong[] = {0, 0, 1};
    in.n = 3;
    in.label = one_wrong;
    assert_int_equal(rt_eval_bootstrap(&in, (rt_bootstrap){0}, got), RT_OK);
    near(got[rt_metric_find("prr", false)].lo, 1, 1e-12);
    /* one row in two samples of one each: every draw is the same */
    const double score[] = {1, 2};
    const uint8_t positive[] = {0, 1};
    rt_ranking_interval r;
    assert_int_equal(rt_eval_ranking_bootstrap(score, 1, positive, 2, true, (rt_bootstrap){0}, &r), RT_OK);
    near(r.auroc.lo, 1, 0);
    assert_int_equal(rt_eval_ranking_bootstrap(score, 1, positive, 0, true, (rt_bootstrap){0}, &r), RT_OK);
    assert_true(isnan(r.auroc.lo));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(against_resampled_rows), cmocka_unit_test(rankings_against_resampled_rows),
        cmocka_unit_test(threads_change_nothing), cmocka_unit_test(as_theory_says),
        cmocka_unit_test(undefined_and_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
