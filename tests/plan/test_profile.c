/*
 * What a plan says about the cost of its actions, and the executor's clock, on a product and a convolution whose
 * costs are known.
 */
#include "base/alloc.h"
#include "base/timer.h"
#include "plan/plan.h"
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

enum { ROWS = 8, IN = 24, OUT = 16, ACTIONS_MAX = 64 };

/* Sums over the actions of a kind; their number. */
static int sum_of(const rt_plan *p, const char *kind, double *flops, double *bytes) {
    int n = 0;
    *flops = *bytes = 0;
    for (int64_t i = 0; i < rt_plan_actions(p); i++) {
        const rt_action_cost c = rt_plan_action_cost(p, i);
        assert_non_null(c.kernel);
        if (strcmp(c.kind, kind) != 0)
            continue;
        *flops += c.flops;
        *bytes += c.bytes;
        n++;
    }
    return n;
}

static rt_graph *dense_layer(void) {
    rt_graph *g = NULL;
    assert_int_equal(rt_graph_create(&g, ROWS, RT_DTYPE_F32), RT_OK);
    const rt_val x = rt_graph_input(g, "x", RT_DTYPE_F32, rt_shape1(IN), 1),
                 w = rt_graph_param(g, 0, "w", rt_shape2(OUT, IN));
    const rt_val y = rt_matmul(g, x, w, false, true), loss = rt_batch_mean(g, rt_row_dot(g, y, y));
    rt_val wrt[2] = {w, x}, grad[2];
    assert_int_equal(rt_graph_grad(g, loss, wrt, 2, grad), RT_OK);
    rt_graph_output(g, "dw", grad[0]);
    rt_graph_output(g, "dx", grad[1]);
    return g;
}

/* Operands and results count once per slice, sums over slices once per slice and once for the result; a single
 * slice leaves nothing to sum. */
static void test_dense(void **state) {
    (void)state;
    for (int slices = 1; slices <= 4; slices *= 2) {
        rt_graph *g = dense_layer();
        rt_plan *p = NULL;
        double flops, bytes;
        const double product = 2.0 * ROWS * IN * OUT, x = 4.0 * ROWS * IN, y = 4.0 * ROWS * OUT,
                     w = 4.0 * IN * OUT;
        assert_int_equal(rt_plan_compile(&p, g, (rt_plan_options){.slice = ROWS / slices}), RT_OK);
        assert_int_equal(rt_plan_slices(p), slices);
        static const char *const KINDS[] = {"dense", "dense, data gradient", "dense, weight gradient"};
        for (int k = 0; k < 3; k++) {
            assert_int_equal(sum_of(p, KINDS[k], &flops, &bytes), 1);
            assert_true(flops == product);
            assert_true(bytes == x + y + slices * w);
        }
        const int sums = sum_of(p, "sum over slices", &flops, &bytes);
        assert_true(slices == 1 ? sums == 0 : bytes >= w * (slices + 1));
        rt_plan_destroy(&p);
        rt_graph_destroy(&g);
    }
}

/* A convolution counts as a direct one even if a fused kernel computes it, with what is fused into it. */
static void test_convolution(void **state) {
    (void)state;
    enum { C = 16, SIDE = 16 };
    const double direct = 2.0 * ROWS * C * SIDE * SIDE * C * 9, pixels = (double)ROWS * C * SIDE * SIDE;
    for (unsigned skip = 0; skip < 2; skip++) {
        rt_graph *g = NULL;
        rt_plan *p = NULL;
        double flops, bytes;
        assert_int_equal(rt_graph_create(&g, ROWS, RT_DTYPE_F32), RT_OK);
        const rt_val x = rt_graph_input(g, "x", RT_DTYPE_F32, rt_shape3(C, SIDE, SIDE), 1),
                     w = rt_graph_param(g, 0, "w", rt_shape4(C, C, 3, 3));
        rt_val y = rt_conv2d(g, rt_relu(g, rt_conv2d(g, x, w, 1, 1)), w, 1, 1);
        rt_graph_output(g, "y",
                        rt_batch_mean(g, rt_row_sum(g, rt_reshape_rows(g, y, rt_shape1(C * SIDE * SIDE)))));
        assert_int_equal(rt_plan_compile(&p, g, (rt_plan_options){.skip = skip << RT_PASS_FUSE_CONV}), RT_OK);
        assert_int_equal(sum_of(p, "convolution", &flops, &bytes), 2);
        assert_true(flops >= 2 * direct && flops <= 2 * direct + pixels);
        assert_true(bytes >= 4 * 4 * pixels);
        rt_plan_destroy(&p);
        rt_graph_destroy(&g);
    }
}

/* Runs add up, and the actions together take no longer than the run. */
static void test_clock(void **state) {
    (void)state;
    rt_graph *g = dense_layer();
    rt_plan *p = NULL;
    rt_pool *pool = NULL;
    rt_exec *e = NULL;
    static float x[ROWS * IN], w[OUT * IN];
    double seconds[ACTIONS_MAX] = {0}, before[ACTIONS_MAX];
    assert_int_equal(rt_plan_compile(&p, g, (rt_plan_options){.slice = 2}), RT_OK);
    assert_int_equal(rt_pool_create(&pool, 1), RT_OK);
    assert_int_equal(rt_exec_create(&e, p, pool), RT_OK);
    rt_exec_bind_input(e, 0, x);
    rt_exec_bind_param(e, 0, w);
    const int64_t n = rt_plan_actions(p);
    assert_true(n > 0 && n <= ACTIONS_MAX);
    for (int k = 0; k < 2; k++) {
        memcpy(before, seconds, sizeof before);
        const double start = rt_time_now();
        rt_exec_run(&e, &(rt_run){.profile = seconds}, 1, pool);
        const double took = rt_time_now() - start;
        double sum = 0;
        for (int64_t i = 0; i < n; i++) {
            assert_true(seconds[i] >= before[i]);
            sum += seconds[i] - before[i];
        }
        assert_true(sum > 0 && sum <= took);
    }
    rt_exec_destroy(&e);
    rt_pool_destroy(&pool);
    rt_plan_destroy(&p);
    rt_graph_destroy(&g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dense),
        cmocka_unit_test(test_convolution),
        cmocka_unit_test(test_clock),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
