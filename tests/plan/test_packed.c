/*
 * What a plan keeps of parameters between runs: execs that share it give what each gives alone, one exec can
 * change between networks, and nothing is made again until somebody says so.
 */
#include "base/alloc.h"
#include "base/rng.h"
#include "plan/plan.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

enum { ROWS = 2, C = 16, SIDE = 16, PARAMS = 3, NETWORKS = 2, SHARING = 4, OUTPUTS = 5 };

typedef struct fixture {
    rt_graph *g;
    rt_pool *pool;
    float *x, *param[NETWORKS][PARAMS];
    int64_t count[PARAMS];
} fixture;

typedef float answer[ROWS * OUTPUTS];

static float *noise(int64_t n, uint64_t stream) {
    float *v = NULL;
    assert_int_equal(rt_alloc(&v, (size_t)n * sizeof *v), RT_OK);
    const rt_rng r = rt_rng_make(5, RT_RNG_TEST, stream, 0);
    for (int64_t i = 0; i < n; i++)
        v[i] = rt_rng_uniform_f32(r, (uint64_t)i) - 0.5f;
    return v;
}

static void open_fixture(fixture *f) {
    const rt_shape shape[PARAMS] = {rt_shape4(C, C, 3, 3), rt_shape4(C, C, 3, 3), rt_shape2(OUTPUTS, C)};
    rt_val w[PARAMS];
    assert_int_equal(rt_graph_create(&f->g, ROWS, RT_DTYPE_F32), RT_OK);
    assert_int_equal(rt_pool_create(&f->pool, 2), RT_OK);
    const rt_val x = rt_graph_input(f->g, "x", RT_DTYPE_F32, rt_shape3(C, SIDE, SIDE), 1);
    for (int i = 0; i < PARAMS; i++) {
        w[i] = rt_graph_param(f->g, i, "w", shape[i]);
        f->count[i] = rt_shape_elems(&shape[i]);
        for (int m = 0; m < NETWORKS; m++)
            f->param[m][i] = noise(f->count[i], (uint64_t)(m * PARAMS + i) + 1);
    }
    const rt_val h = rt_conv2d(f->g, rt_relu(f->g, rt_conv2d(f->g, x, w[0], 1, 1)), w[1], 1, 1);
    rt_graph_output(f->g, "y", rt_matmul(f->g, rt_global_avgpool(f->g, h), w[2], false, true));
    assert_int_equal(rt_graph_status(f->g), RT_OK);
    f->x = noise(ROWS * C * SIDE * SIDE, 0);
}

static void close_fixture(fixture *f) {
    rt_graph_destroy(&f->g);
    rt_pool_destroy(&f->pool);
    rt_free(f->x);
    for (int m = 0; m < NETWORKS; m++)
        for (int i = 0; i < PARAMS; i++)
            rt_free(f->param[m][i]);
}

static void bind(rt_exec *e, const fixture *f, int network, float *y) {
    for (int i = 0; i < PARAMS; i++)
        rt_exec_bind_param(e, i, f->param[network][i]);
    rt_exec_bind_input(e, 0, f->x);
    rt_exec_bind_output(e, 0, y);
}

/* One exec with all that is its own. */
static void alone(const fixture *f, const rt_plan *p, int network, answer y) {
    rt_exec *e = NULL;
    assert_int_equal(rt_exec_create(&e, p, f->pool), RT_OK);
    bind(e, f, network, y);
    rt_exec_run(&e, &(rt_run){0}, 1, f->pool);
    rt_exec_destroy(&e);
}

static void check_oracle(const fixture *f, int network, const answer y) {
    answer want;
    const void *params[PARAMS], *x[] = {f->x};
    void *out[] = {want};
    for (int i = 0; i < PARAMS; i++)
        params[i] = f->param[network][i];
    assert_int_equal(rt_interp_run(f->g, params, x, NULL, out, (rt_run){0}), RT_OK);
    for (int i = 0; i < ROWS * OUTPUTS; i++)
        assert_true(fabsf(y[i] - want[i]) <= 1e-4f);
}

static void test_shared(void **state) {
    (void)state;
    for (int frozen = 0; frozen < 2; frozen++) {
        fixture f;
        rt_plan *p = NULL;
        rt_packed *packed[NETWORKS] = {NULL};
        rt_exec *e[SHARING];
        rt_run runs[SHARING];
        answer want[NETWORKS], got[SHARING];
        open_fixture(&f);
        assert_int_equal(rt_plan_compile(&p, f.g, (rt_plan_options){.slice = 1, .frozen = frozen}), RT_OK);
        for (int m = 0; m < NETWORKS; m++) {
            alone(&f, p, m, want[m]);
            check_oracle(&f, m, want[m]);
            assert_int_equal(rt_packed_create(&packed[m], p), RT_OK);
        }
        assert_memory_not_equal(want[0], want[1], sizeof want[0]);
        for (int i = 0; i < SHARING; i++) {
            assert_int_equal(rt_exec_create_sharing(&e[i], p, f.pool), RT_OK);
            runs[i] = (rt_run){.params_unchanged = true};
        }
        /* twice, so that everyone has been of both networks; what is packed is made in the first turn only */
        for (int turn = 0; turn < 2; turn++) {
            for (int i = 0; i < SHARING; i++) {
                const int m = (i + turn) % NETWORKS;
                bind(e[i], &f, m, got[i]);
                rt_exec_bind_packed(e[i], packed[m]);
                if (turn == 0 && i < NETWORKS)
                    rt_exec_prepare(e[i], f.pool);
            }
            rt_exec_run(e, runs, SHARING, f.pool);
            for (int i = 0; i < SHARING; i++)
                assert_memory_equal(got[i], want[(i + turn) % NETWORKS], sizeof got[i]);
        }
        for (int i = 0; i < SHARING; i++)
            rt_exec_destroy(&e[i]);
        for (int m = 0; m < NETWORKS; m++)
            rt_packed_destroy(&packed[m]);
        rt_plan_destroy(&p);
        close_fixture(&f);
    }
}

/* A run on one worker, and one that all share. */
static void test_made_once(void **state) {
    (void)state;
    fixture f;
    rt_plan *p = NULL;
    rt_exec *e = NULL;
    answer before, stale, after, want;
    open_fixture(&f);
    assert_int_equal(rt_plan_compile(&p, f.g, (rt_plan_options){.frozen = true}), RT_OK);
    for (int here = 0; here < 2; here++) {
        assert_int_equal(rt_exec_create(&e, p, f.pool), RT_OK);
        bind(e, &f, 0, before);
        rt_exec_run(&e, &(rt_run){.params_unchanged = true}, 1, f.pool); /* not made yet: made now */
        f.param[0][1][0] += 1;
        alone(&f, p, 0, want);
        assert_memory_not_equal(before, want, sizeof want);
        const rt_run unchanged = {.params_unchanged = true}, changed = {0};
        rt_exec_bind_output(e, 0, stale);
        if (here)
            rt_exec_run_here(e, &unchanged, 0);
        else
            rt_exec_run(&e, &unchanged, 1, f.pool);
        if (rt_plan_packed_bytes(p) > 0) /* without vector kernels weights are used as they are */
            assert_memory_equal(stale, before, sizeof stale);
        rt_exec_bind_output(e, 0, after);
        if (here)
            rt_exec_run_here(e, &changed, 0);
        else
            rt_exec_run(&e, &changed, 1, f.pool);
        assert_memory_equal(after, want, sizeof after);
        rt_exec_destroy(&e);
    }
    rt_plan_destroy(&p);
    close_fixture(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shared),
        cmocka_unit_test(test_made_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
