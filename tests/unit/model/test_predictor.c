/*
 * test_predictor.c - predictions do not depend on how many rows go together, on the number of workers, or on
 * which networks had their weights made ready before; and they follow the weights, unless these were promised
 * to stay.
 */
#include "base/alloc.h"
#include "base/rng.h"
#include "model/predictor.h"
#include "support/check.h"
#include <math.h>
#include <string.h>

enum { ROWS = 5, NETWORKS = 6, OUTPUTS = 10, INPUT = 3 * 16 * 16, BIG = 40 };

typedef float answers[NETWORKS][ROWS][OUTPUTS];

typedef struct fixture {
    rt_params *params;
    rt_student *student;
    float *x, *block[NETWORKS];
    rt_part part;
    rt_subset set;
} fixture;

static void open_fixture(fixture *f) {
    *f = (fixture){0};
    OK(rt_params_create(&f->params));
    const rt_student_config c = {
        .spec = "single", .arch = {.spec = "wrn:10,1", .outputs = OUTPUTS, .input = rt_shape3(3, 16, 16)}};
    OK(rt_student_create(&f->student, &c, f->params));
    for (int m = 0; m < NETWORKS; m++) {
        OK(rt_calloc(&f->block[m], (size_t)rt_params_floats(f->params), sizeof(float)));
        rt_params_init(f->params, f->block[m], (uint64_t)m + 1);
    }
    OK(rt_calloc(&f->x, ROWS * INPUT, sizeof *f->x));
    const rt_rng r = rt_rng_make(3, RT_RNG_TEST, 0, 0);
    for (int64_t i = 0; i < ROWS * INPUT; i++)
        f->x[i] = rt_rng_uniform_f32(r, (uint64_t)i) - 0.5f;
    f->part = (rt_part){.n = ROWS, .f32 = f->x};
    f->set = rt_subset_all(&f->part);
}

static void close_fixture(fixture *f) {
    rt_student_destroy(&f->student);
    rt_params_destroy(&f->params);
    for (int m = 0; m < NETWORKS; m++)
        rt_free(f->block[m]);
    rt_free(f->x);
}

static void take(void *user, int network, int64_t row, int64_t n, const float *y, int64_t stride) {
    (void)stride;
    float(*to)[ROWS][OUTPUTS] = user;
    memcpy(to[network][row], y, (size_t)n * OUTPUTS * sizeof *y);
}

static void run(const fixture *f, rt_predictor *p, int networks, answers to) {
    OK(rt_predictor_run(p, &f->set, (const float *const *)f->block, networks, take, to, NULL));
}

static void check_close(const answers a, const answers b, int networks) {
    for (int m = 0; m < networks; m++)
        for (int r = 0; r < ROWS; r++)
            for (int k = 0; k < OUTPUTS; k++)
                if (!(fabsf(a[m][r][k] - b[m][r][k]) <= 1e-4f))
                    fail_msg("network %d, row %d, output %d: %g and %g", m, r, k, (double)a[m][r][k],
                             (double)b[m][r][k]);
}

/* Networks alone and together, more and fewer of them than lanes, batches smaller and larger than the set. */
static void test_batches_and_workers(void **state) {
    (void)state;
    static const int BATCHES[] = {1, 2, BIG}, COUNTS[] = {1, 3, NETWORKS};
    fixture f;
    answers want = {{{0}}}, first = {{{0}}}, got = {{{0}}};
    open_fixture(&f);
    for (int n = 0; n < RT_COUNT(COUNTS); n++)
        for (int i = 0; i < RT_COUNT(BATCHES); i++)
            for (int workers = 1; workers <= 2; workers++) {
                rt_pool *pool = NULL;
                rt_predictor *p = NULL;
                OK(rt_pool_create(&pool, workers));
                OK(rt_predictor_create(&p, f.student, f.params, BATCHES[i], COUNTS[n], pool));
                answers *to = n + i == 0 && workers == 1 ? &want : workers == 1 ? &first : &got;
                run(&f, p, COUNTS[n], *to);
                check_close(*to, want, 1);
                if (workers == 2 && n + i > 0)
                    assert_memory_equal(first, got, (size_t)COUNTS[n] * sizeof got[0]);
                run(&f, p, COUNTS[n], got); /* again, with whatever is ready */
                assert_memory_equal(*to, got, (size_t)COUNTS[n] * sizeof got[0]);
                rt_predictor_destroy(&p);
                rt_pool_destroy(&pool);
            }
    close_fixture(&f);
}

static void test_weights_change(void **state) {
    (void)state;
    fixture f;
    rt_pool *pool = NULL;
    answers before = {{{0}}}, after = {{{0}}}, now = {{{0}}};
    open_fixture(&f);
    OK(rt_pool_create(&pool, 2));
    for (int keep = 0; keep < 2; keep++) {
        rt_predictor *p = NULL;
        OK(rt_predictor_create(&p, f.student, f.params, 1, 2, pool));
        if (keep)
            rt_predictor_keep_blocks(p);
        run(&f, p, 2, before);
        run(&f, p, 2, after);
        assert_memory_equal(before, after, 2 * sizeof after[0]);
        float *other = f.block[2]; /* another block is another network, promise or not */
        f.block[2] = f.block[0];
        f.block[0] = other;
        run(&f, p, 2, after);
        assert_memory_equal(before[1], after[1], sizeof after[1]);
        assert_memory_not_equal(before[0], after[0], sizeof after[0]);
        if (!keep) {
            rt_params_init(f.params, f.block[0], 100);
            run(&f, p, 2, now);
            assert_memory_not_equal(now[0], after[0], sizeof after[0]);
        }
        rt_predictor_destroy(&p);
    }
    rt_pool_destroy(&pool);
    close_fixture(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_batches_and_workers),
        cmocka_unit_test(test_weights_change),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
