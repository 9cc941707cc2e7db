/* test_pool.c - every job runs once, on a worker that exists, in any mixture of job and worker counts. */
#include "base/pool.h"
#include "base/alloc.h"
#include "base/timer.h"
#include <float.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { JOBS_MAX = 500 };

typedef struct tally {
    atomic_int runs[JOBS_MAX];
    atomic_int bad_worker;
    int workers;
    int64_t sum[JOBS_MAX];
} tally;

static void count_job(void *ctx, int64_t job, int worker) {
    tally *t = ctx;
    atomic_fetch_add(&t->runs[job], 1);
    if (worker < 0 || worker >= t->workers)
        atomic_store(&t->bad_worker, 1);
    int64_t x = job; /* some work, of uneven length */
    for (int64_t i = 0; i < job % 17 * 20; i++)
        x = x * 6364136223846793005 + 1442695040888963407;
    t->sum[job] = x;
}

static void test_every_job_once(void **state) {
    (void)state;
    static const int worker_counts[] = {1, 2, 3, 8, 17};
    static const int64_t job_counts[] = {0, 1, 2, 3, 7, 64, JOBS_MAX};
    static tally t, reference;
    for (int64_t w = 0; w < RT_COUNT(worker_counts); w++) {
        rt_pool *p;
        assert_int_equal(rt_pool_create(&p, worker_counts[w]), RT_OK);
        assert_int_equal(rt_pool_workers(p), worker_counts[w]);
        for (int64_t n = 0; n < RT_COUNT(job_counts); n++)
            for (int repeat = 0; repeat < 20; repeat++) {
                memset(&t, 0, sizeof t);
                t.workers = worker_counts[w];
                rt_pool_run(p, count_job, &t, job_counts[n]);
                for (int64_t i = 0; i < JOBS_MAX; i++)
                    assert_int_equal(atomic_load(&t.runs[i]), i < job_counts[n]);
                assert_false(atomic_load(&t.bad_worker));
            }
        if (w == 0)
            memcpy(reference.sum, t.sum, sizeof t.sum);
        assert_memory_equal(t.sum, reference.sum, sizeof t.sum);
        rt_pool_destroy(&p);
        assert_null(p);
        rt_pool_destroy(&p);
    }
}

typedef struct cell {
    int64_t value;
} cell;

static void add_one(void *ctx, int64_t job, int worker) {
    (void)worker;
    ((cell *)ctx)[job].value++;
}

static void add_many(void *ctx, int64_t job, int worker) {
    (void)worker;
    ((cell *)ctx)[job].value += 1000000;
}

/* Short sections back to back, alternating functions and contexts: a late worker must not mix them up. */
static void test_sections_do_not_mix(void **state) {
    (void)state;
    enum { SECTIONS = 20000, JOBS = 5 };
    rt_pool *p;
    assert_int_equal(rt_pool_create(&p, 4), RT_OK);
    cell a[JOBS] = {{0}}, b[JOBS + 1] = {{0}};
    for (int i = 0; i < SECTIONS; i++) {
        rt_pool_run(p, add_one, a, JOBS);
        rt_pool_run(p, add_many, b, JOBS + 1);
    }
    for (int i = 0; i < JOBS; i++)
        assert_int_equal(a[i].value, SECTIONS);
    for (int i = 0; i < JOBS + 1; i++)
        assert_int_equal(b[i].value, (int64_t)SECTIONS * 1000000);
    rt_pool_destroy(&p);
}

static void wait_job(void *ctx, int64_t job, int worker) {
    (void)worker;
    usleep(job == 0 ? 3000 : 300);
    ((cell *)ctx)[job].value++;
}

/* Long jobs and long pauses: both the workers and the caller go to sleep and are woken. */
static void test_sleeping(void **state) {
    (void)state;
    rt_pool *p;
    assert_int_equal(rt_pool_create(&p, 3), RT_OK);
    cell c[4] = {{0}};
    double cpu = rt_time_cpu();
    for (int i = 0; i < 20; i++) {
        rt_pool_run(p, wait_job, c, 4);
        usleep(2000);
    }
    for (int i = 0; i < 4; i++)
        assert_int_equal(c[i].value, 20);
    usleep(100000); /* idle workers must not burn the processor */
    assert_true(rt_time_cpu() - cpu < 0.1);
    rt_pool_destroy(&p);
}

static void note_worker(void *ctx, int worker) {
    atomic_int *seen = ctx;
    atomic_fetch_add(&seen[worker], 1);
}

static void test_each(void **state) {
    (void)state;
    static const int worker_counts[] = {1, 2, 9};
    for (int64_t w = 0; w < RT_COUNT(worker_counts); w++) {
        rt_pool *p;
        assert_int_equal(rt_pool_create(&p, worker_counts[w]), RT_OK);
        atomic_int seen[16] = {0};
        cell c[3] = {{0}};
        for (int i = 0; i < 50; i++) {
            rt_pool_each(p, note_worker, seen);
            rt_pool_run(p, add_one, c, 3);
            if (i % 25 == 0)
                usleep(1000);
        }
        for (int i = 0; i < 16; i++)
            assert_int_equal(atomic_load(&seen[i]), i < worker_counts[w] ? 50 : 0);
        rt_pool_destroy(&p);
    }
}

static void tiny_product(void *ctx, int64_t job, int worker) {
    (void)worker;
    volatile float small = FLT_MIN;
    ((float *)ctx)[job] = small * 0.5f;
    usleep(10);
}

/* Denormals are flushed in jobs, on all workers alike, and the caller's own mode comes back. */
static void test_denormals(void **state) {
    (void)state;
    for (int workers = 1; workers <= 3; workers++) {
        rt_pool *p;
        assert_int_equal(rt_pool_create(&p, workers), RT_OK);
        float out[32];
        rt_pool_run(p, tiny_product, out, 32);
        for (int i = 1; i < 32; i++)
            assert_memory_equal(&out[i], &out[0], sizeof out[0]);
#if defined(__x86_64__)
        assert_true(out[0] == 0.0f);
#endif
        volatile float small = FLT_MIN;
        assert_true(small * 0.5f > 0.0f);
        rt_pool_destroy(&p);
    }
}

static void note_mask(void *ctx, int worker) {
    sigset_t set;
    pthread_sigmask(SIG_SETMASK, NULL, &set);
    ((int *)ctx)[worker] = sigismember(&set, SIGTERM);
}

static void test_signals_stay_with_the_caller(void **state) {
    (void)state;
    rt_pool *p;
    int blocked[3] = {9, 9, 9};
    assert_int_equal(rt_pool_create(&p, 3), RT_OK);
    rt_pool_each(p, note_mask, blocked);
    assert_int_equal(blocked[0], 0);
    assert_int_equal(blocked[1], 1);
    assert_int_equal(blocked[2], 1);
    rt_pool_destroy(&p);
}

static bool fail_nth(void *user, uint64_t call, size_t bytes) {
    (void)call;
    (void)bytes;
    return --*(int *)user != 0;
}

static void test_refusals(void **state) {
    (void)state;
    rt_pool *p;
    assert_int_equal(rt_pool_create(&p, 0), RT_E_USAGE);
    assert_int_equal(rt_pool_create(&p, RT_POOL_MAX + 1), RT_E_USAGE);
    assert_null(p);
    rt_alloc_stats before, after;
    rt_alloc_get_stats(&before);
    for (int n = 1; n <= 2; n++) {
        int countdown = n;
        rt_alloc_set_hook(fail_nth, &countdown);
        assert_int_equal(rt_pool_create(&p, 2), RT_E_MEMORY);
        rt_alloc_set_hook(NULL, NULL);
        assert_null(p);
    }
    rt_alloc_get_stats(&after);
    assert_int_equal(after.live_blocks, before.live_blocks);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_job_once), cmocka_unit_test(test_sections_do_not_mix),
        cmocka_unit_test(test_sleeping),       cmocka_unit_test(test_each),
        cmocka_unit_test(test_denormals),      cmocka_unit_test(test_signals_stay_with_the_caller),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
