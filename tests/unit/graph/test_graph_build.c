/* Building graphs: leaves, sharing, the first error, outputs, chains, print, verify. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "graph/graph.h"
#include <math.h>
#include <string.h>

static rt_graph *make(int64_t batch) {
    rt_graph *g = NULL;
    assert_int_equal(rt_graph_create(&g, batch, RT_DTYPE_F32), RT_OK);
    return g;
}

static void check_error(rt_graph *g, rt_status code, const char *part) {
    assert_int_equal(rt_graph_status(g), code);
    if (strstr(rt_error_text(), part) == NULL)
        fail_msg("message '%s', wanted '%s' in it", rt_error_text(), part);
}

static void check_print(const rt_graph *g, const char *want) {
    rt_str s;
    rt_str_init(&s);
    rt_graph_print(g, &s);
    assert_string_equal(rt_str_text(&s), want);
    rt_str_deinit(&s);
}

static void test_create_refuses(void **state) {
    (void)state;
    rt_graph *g = NULL;
    assert_int_equal(rt_graph_create(&g, 0, RT_DTYPE_F32), RT_E_USAGE);
    assert_null(g);
    assert_int_equal(rt_graph_create(&g, 1, RT_DTYPE_I32), RT_E_USAGE);
    rt_graph_destroy(&g);
}

static void test_leaves(void **state) {
    (void)state;
    rt_graph *g = make(8);
    rt_val x = rt_graph_input(g, "x", RT_DTYPE_F32, rt_shape1(5), 2);
    rt_val t = rt_graph_feed(g, "t", RT_DTYPE_F32, rt_shape0());
    rt_val y = rt_graph_input(g, "y", RT_DTYPE_I32, rt_shape0(), 1);
    rt_val i = rt_graph_feed(g, "i", RT_DTYPE_I32, rt_shape0());
    rt_val w = rt_graph_param(g, 3, "w", rt_shape2(5, 5));
    assert_int_equal(rt_graph_param(g, 3, "w", rt_shape2(5, 5)), w);
    assert_int_equal(rt_graph_count(g), 6);
    assert_int_equal(rt_graph_node(g, x)->slot, 0);
    assert_int_equal(rt_graph_node(g, y)->slot, 1);
    assert_int_equal(rt_graph_node(g, t)->slot, 0);
    assert_int_equal(rt_graph_node(g, i)->slot, 1);
    assert_int_equal(rt_graph_node(g, w)->slot, 3);
    assert_int_equal(rt_graph_node(g, x)->type.shape.d[0], 16);
    assert_int_equal(rt_graph_node(g, x)->type.kind, RT_KIND_ROWS);
    assert_int_equal(rt_graph_node(g, w)->type.kind, RT_KIND_GLOBAL);
    assert_int_equal(rt_graph_status(g), RT_OK);
    rt_graph_param(g, 3, "v", rt_shape2(5, 4));
    check_error(g, RT_E_USAGE, "parameter 'w' of slot 3 is 5x5, and 'v', 5x4");
    rt_graph_destroy(&g);
}

typedef struct leaf_case {
    const char *why;
    rt_dtype t;
    rt_shape s;
    int groups; /* 0: a feed */
} leaf_case;

static void test_bad_leaves(void **state) {
    (void)state;
    const leaf_case cases[] = {
        {"its type must be f32", RT_DTYPE_F64, {0}, 1},
        {"its type must be f32", RT_DTYPE_U8, {0}, 0},
        {"-1 groups", RT_DTYPE_F32, {0}, -1},
        {"rank 5", RT_DTYPE_F32, {.rank = 5, .d = {1, 1, 1, 1, 1}}, 1},
        {"0 elements", RT_DTYPE_F32, {.rank = 1, .d = {0}}, 1},
        {"0 elements", RT_DTYPE_F32, {.rank = 1, .d = {0}}, 0},
        {"too large", RT_DTYPE_F32, {.rank = 2, .d = {INT64_MAX / 4, 8}}, 0},
    };
    for (int64_t i = 0; i < RT_COUNT(cases); i++) {
        const leaf_case *k = &cases[i];
        rt_graph *g = make(4);
        rt_val v = k->groups != 0 ? rt_graph_input(g, "x", k->t, k->s, k->groups)
                                  : rt_graph_feed(g, "x", k->t, k->s);
        assert_int_equal(v, 0);
        check_error(g, RT_E_USAGE, k->why);
        rt_graph_destroy(&g);
    }
}

static void test_identical_nodes_are_shared(void **state) {
    (void)state;
    rt_graph *g = make(4);
    rt_val x = rt_graph_input(g, "x", RT_DTYPE_F32, rt_shape1(5), 1);
    assert_int_equal(rt_relu(g, x), rt_relu(g, x));
    assert_int_not_equal(rt_relu(g, x), rt_leaky_relu(g, x, 0.1));
    assert_int_equal(rt_dropout(g, x, 0.5, 1), rt_dropout(g, x, 0.5, 1));
    assert_int_not_equal(rt_dropout(g, x, 0.5, 1), rt_dropout(g, x, 0.5, 2));
    assert_int_equal(rt_dropout(g, x, 0, 1), x);
    assert_int_not_equal(rt_add(g, x, rt_relu(g, x)), rt_add(g, rt_relu(g, x), x));
    assert_int_equal(rt_graph_scalar(g, 2), rt_graph_scalar(g, 2));
    assert_int_not_equal(rt_graph_scalar(g, 0.0), rt_graph_scalar(g, -0.0));
    const double d[] = {1, 2};
    assert_int_equal(rt_graph_const(g, rt_shape1(2), d), rt_graph_const(g, rt_shape1(2), d));
    assert_int_not_equal(rt_graph_const(g, rt_shape1(2), d), rt_graph_const(g, rt_shape2(1, 2), d));
    assert_int_equal(rt_flatten(g, x), x);
    assert_int_equal(rt_tile_members(g, x, 1), x);
    assert_int_equal(rt_mean_members(g, x), x);
    /* Inputs are never the same, even with the same name. */
    assert_int_not_equal(rt_graph_input(g, "x", RT_DTYPE_F32, rt_shape1(5), 1), x);
    assert_int_equal(rt_graph_status(g), RT_OK);
    rt_graph_destroy(&g);
}

/* Sharing keeps working while the tables grow. */
static void test_many_nodes(void **state) {
    (void)state;
    enum { MANY = 5000 };
    rt_graph *g = make(4);
    rt_val x = rt_graph_input(g, "x", RT_DTYPE_F32, rt_shape1(5), 1), first = 0;
    for (int i = 0; i < MANY; i++) {
        rt_val v = rt_scale(g, x, i + 1, 0);
        first = i == 0 ? v : first;
        assert_int_equal(v, first + (rt_val)i);
    }
    for (int i = 0; i < MANY; i++)
        assert_int_equal(rt_scale(g, x, i + 1, 0), first + (rt_val)i);
    assert_int_equal(rt_graph_verify(g), RT_OK);
    rt_graph_destroy(&g);
}

static void test_first_error_stays(void **state) {
    (void)state;
    rt_graph *g = make(4);
    rt_val x = rt_graph_input(g, "x", RT_DTYPE_F32, rt_shape1(5), 1);
    rt_val w = rt_graph_param(g, 0, "w", rt_shape2(4, 3));
    rt_graph_scope(g, "layer1");
    rt_val h = rt_matmul(g, x, w, false, false);
    assert_int_equal(h, 0);
    assert_int_equal(rt_relu(g, h), 0);
    assert_int_equal(rt_relu(g, x), 0); /* even of a good value */
    assert_int_equal(rt_transpose(g, x), 0);
    assert_int_equal(rt_graph_param(g, 1, "v", rt_shape0()), 0);
    rt_graph_output(g, "h", h);
    rt_graph_update(g, w, h);
    rt_error_clear();
    check_error(g, RT_E_USAGE, "layer1: matmul(f32 [1x] 4x5, f32 4x3): inner dimensions 5 and 4 differ");
    assert_int_equal(rt_graph_outputs(g), 0);
    rt_val grad;
    assert_int_equal(rt_graph_grad(g, x, &w, 1, &grad), RT_E_USAGE);
    assert_int_equal(rt_graph_verify(g), RT_E_USAGE);
    rt_graph_destroy(&g);
}

/* Every builder takes the invalid value without complaint. */
static void test_invalid_value_is_silent(void **state) {
    (void)state;
    rt_graph *g = make(4);
    rt_val none[2] = {0, 0};
    rt_val x = rt_graph_input(g, "x", RT_DTYPE_F32, rt_shape1(5), 1);
    int64_t count = rt_graph_count(g);
    const rt_val got[] = {
        rt_add(g, x, 0),
        rt_add(g, 0, x),
        rt_sub(g, 0, 0),
        rt_mul(g, 0, x),
        rt_div(g, x, 0),
        rt_scale(g, 0, 1, 0),
        rt_neg(g, 0),
        rt_unary(g, RT_OP_EXP, 0),
        rt_relu(g, 0),
        rt_leaky_relu(g, 0, 0.1),
        rt_clip(g, 0, 2, 1),
        rt_stop_grad(g, 0),
        rt_dropout(g, 0, 0.5, 1),
        rt_dropout(g, 0, 0, 1),
        rt_mul_scalar(g, x, 0),
        rt_add_chan(g, x, 0),
        rt_mul_chan(g, x, 0),
        rt_add_row(g, x, 0),
        rt_mul_row(g, x, 0),
        rt_reshape_rows(g, 0, rt_shape1(2)),
        rt_flatten(g, 0),
        rt_reshape(g, 0, rt_shape1(2)),
        rt_transpose(g, 0),
        rt_tile_members(g, 0, 2),
        rt_sum_members(g, 0),
        rt_mean_members(g, 0),
        rt_member_get(g, x, 0),
        rt_member_range(g, 0, 0, 1),
        rt_concat_members(g, none, 2),
        rt_concat_members(g, none, 1),
        rt_slice_last(g, 0, 0, 1),
        rt_one_hot(g, 0, 3),
        rt_row_sum(g, 0),
        rt_row_max(g, 0),
        rt_row_dot(g, 0, x),
        rt_row_norm(g, 0, 1e-9),
        rt_expand_row(g, 0, rt_shape1(2)),
        rt_chan_sum(g, 0, 2),
        rt_total_sum(g, 0),
        rt_batch_mean(g, 0),
        rt_batch_sum(g, 0),
        rt_matmul(g, x, 0, false, false),
        rt_bmm(g, x, 0, false, false),
        rt_conv2d(g, 0, 0, 1, 1),
        rt_maxpool(g, 0, 2, 2, 0),
        rt_global_avgpool(g, 0),
        rt_batch_norm_train(g, 0, 0, 0, 0, 0, 1e-5, 0.1, 1).y,
        rt_batch_norm_eval(g, x, 0, 0, 0, 0, 1e-5, 1),
        rt_softmax(g, 0),
        rt_log_softmax(g, 0),
        rt_ce_label(g, 0, 0, 0),
        rt_ce_dist(g, 0, 0),
        rt_kl_dist(g, 0, 0),
        rt_matinv(g, 0),
        rt_solve(g, 0, 0, false),
        rt_sinkhorn(g, 0, 1, 0, 1),
        rt_graph_reorder(g, 0, RT_LAYOUT_C8),
    };
    for (int64_t i = 0; i < RT_COUNT(got); i++)
        assert_int_equal(got[i], 0);
    assert_int_equal(rt_graph_count(g), count);
    assert_int_equal(rt_graph_status(g), RT_OK);
    rt_graph_destroy(&g);
}

static void test_outputs(void **state) {
    (void)state;
    rt_graph *g = make(4);
    rt_val x = rt_graph_input(g, "x", RT_DTYPE_F32, rt_shape1(5), 1);
    rt_val p = rt_graph_param(g, 7, "p", rt_shape1(5));
    rt_graph_output(g, "y", x);
    rt_graph_update(g, p, rt_batch_sum(g, x));
    rt_graph_update(g, p, 0); /* nothing to say: silent */
    assert_int_equal(rt_graph_outputs(g), 2);
    assert_int_equal(rt_graph_get_output(g, 0)->update_slot, -1);
    assert_int_equal(rt_graph_get_output(g, 1)->update_slot, 7);
    assert_int_equal(rt_graph_find_output(g, "y"), x);
    assert_int_equal(rt_graph_find_output(g, "z"), 0);
    assert_int_equal(rt_graph_verify(g), RT_OK);
    rt_graph_destroy(&g);
}

static void twice_output(rt_graph *g, rt_val x, rt_val p) {
    (void)p;
    rt_graph_output(g, "y", x);
    rt_graph_output(g, "y", x);
}
static void twice_update(rt_graph *g, rt_val x, rt_val p) {
    rt_graph_update(g, p, rt_batch_sum(g, x));
    rt_graph_update(g, p, p);
}
static void empty_output(rt_graph *g, rt_val x, rt_val p) {
    (void)x, (void)p;
    rt_graph_output(g, "y", 0);
}
static void update_of_input(rt_graph *g, rt_val x, rt_val p) {
    (void)p;
    rt_graph_update(g, x, x);
}
static void update_of_other_shape(rt_graph *g, rt_val x, rt_val p) {
    rt_graph_update(g, p, x);
}
static void foreign_value(rt_graph *g, rt_val x, rt_val p) {
    (void)x, (void)p;
    rt_relu(g, 1000);
}
static void row_mean_of_matrix(rt_graph *g, rt_val x, rt_val p) {
    (void)p;
    rt_batch_mean(g, x);
}
static void reshape_of_rows(rt_graph *g, rt_val x, rt_val p) {
    (void)p;
    rt_reshape(g, x, rt_shape1(20));
}

static void test_misuse(void **state) {
    (void)state;
    const struct {
        void (*act)(rt_graph *g, rt_val x, rt_val p);
        const char *why;
    } cases[] = {
        {twice_output, "'y' is already there"},     {twice_update, "'update:p' is already there"},
        {empty_output, "'y' has no value"},         {update_of_input, "not a parameter"},
        {update_of_other_shape, "another shape"},   {foreign_value, "value 1000"},
        {row_mean_of_matrix, "one number per row"}, {reshape_of_rows, "wanted global"},
    };
    for (int64_t i = 0; i < RT_COUNT(cases); i++) {
        rt_graph *g = make(4);
        rt_val x = rt_graph_input(g, "x", RT_DTYPE_F32, rt_shape1(5), 1);
        cases[i].act(g, x, rt_graph_param(g, 0, "p", rt_shape1(5)));
        check_error(g, RT_E_USAGE, cases[i].why);
        rt_graph_destroy(&g);
    }
}

static void test_print(void **state) {
    (void)state;
    rt_graph *g = make(8);
    rt_val x = rt_graph_input(g, "x", RT_DTYPE_F32, rt_shape3(3, 8, 8), 1);
    rt_val w = rt_graph_param(g, 2, "conv.weight", rt_shape4(16, 3, 3, 3));
    rt_graph_scope(g, "stem");
    rt_val y = rt_conv2d(g, x, w, 2, 1);
    rt_graph_set_layout(g, y, RT_LAYOUT_C8);
    rt_graph_scope(g, NULL);
    rt_val m = rt_tile_members(g, rt_global_avgpool(g, y), 2);
    rt_graph_output(g, "y", rt_mul_scalar(g, m, rt_graph_scalar(g, 0.5)));
    rt_graph_update(g, w, w);
    check_print(g, "%1 = input 0 'x' : f32 [1x] 8x3x8x8\n"
                   "%2 = param 2 'conv.weight' : f32 16x3x3x3\n"
                   "%3 = conv2d(%1, %2) stride=2 pad=1 : f32 [1x] 8x16x4x4 nChw8c  stem\n"
                   "%4 = global_avgpool(%3) : f32 [1x] 8x16\n"
                   "%5 = tile_members(%4) members=2 : f32 [2x] 16x16\n"
                   "%6 = const 0.5 : f32 scalar\n"
                   "%7 = mul_scalar(%5, %6) : f32 [2x] 16x16\n"
                   "output 'y' = %7\n"
                   "update 2 'update:conv.weight' = %2\n");
    rt_graph_destroy(&g);
}

static void test_chain_and_reorder(void **state) {
    (void)state;
    rt_graph *g = make(4);
    rt_val x = rt_graph_input(g, "x", RT_DTYPE_F32, rt_shape3(8, 2, 2), 1);
    rt_val b = rt_graph_param(g, 0, "b", rt_shape1(8));
    rt_chain c = {.n = 3,
                  .step = {{.op = RT_OP_ADD_CHAN, .arg = {1}},
                           {.op = RT_OP_RELU},
                           {.op = RT_OP_SUB, .arg = {0}, .swap = true}}};
    rt_val y = rt_graph_chain(g, &c, (rt_val[]){x, b}, 2);
    rt_val r = rt_graph_reorder(g, y, RT_LAYOUT_C8);
    assert_int_equal(rt_graph_node(g, r)->layout, RT_LAYOUT_C8);
    assert_int_equal(rt_graph_reorder(g, y, RT_LAYOUT_C8), r);
    assert_int_not_equal(rt_graph_reorder(g, y, RT_LAYOUT_PLAIN), r);
    assert_int_equal(rt_graph_verify(g), RT_OK);
    rt_graph_set_layout(g, r, RT_LAYOUT_C16);
    assert_int_equal(rt_graph_verify(g), RT_E_FAILED);
    rt_graph_set_layout(g, r, RT_LAYOUT_C8);
    c.step[1] = (rt_chain_step){.op = RT_OP_ROW_SUM};
    assert_int_equal(rt_graph_chain(g, &c, (rt_val[]){x, b}, 2), 0);
    check_error(g, RT_E_USAGE, "row_sum, is not element-wise");
    rt_graph_destroy(&g);

    g = make(4);
    x = rt_graph_input(g, "x", RT_DTYPE_F32, rt_shape3(8, 2, 2), 1);
    c = (rt_chain){.n = 1, .step = {{.op = RT_OP_ADD, .arg = {3}}}};
    assert_int_equal(rt_graph_chain(g, &c, &x, 1), 0);
    check_error(g, RT_E_USAGE, "reads input 3 of 1");
    rt_graph_destroy(&g);
}

/* The floor of a norm stands under the root, so that a zero row has a finite gradient. */
static void test_row_norm(void **state) {
    (void)state;
    rt_graph *g = make(4);
    rt_val x = rt_graph_input(g, "x", RT_DTYPE_F32, rt_shape1(5), 1);
    rt_val n = rt_row_norm(g, x, 1e-6);
    assert_int_equal(rt_graph_node(g, n)->op, RT_OP_SQRT);
    const rt_node *clip = rt_graph_node(g, rt_graph_node(g, n)->in[0]);
    assert_int_equal(clip->op, RT_OP_CLIP);
    assert_true(clip->attr.alpha == 1e-6 * 1e-6 && clip->attr.beta == HUGE_VAL);
    rt_graph_destroy(&g);
}

/* Whichever allocation fails, the graph reports it and everything is freed. */
static bool fail_at(void *user, uint64_t call, size_t bytes) {
    (void)call, (void)bytes;
    int64_t *left = user;
    return (*left)-- > 0;
}

static void test_out_of_memory(void **state) {
    (void)state;
    rt_alloc_stats before, after;
    rt_alloc_get_stats(&before);
    bool done = false;
    for (int64_t k = 0; !done && k < 200; k++) {
        int64_t left = k;
        rt_graph *g = NULL, *h = NULL;
        rt_alloc_set_hook(fail_at, &left);
        rt_status st = rt_graph_create(&g, 4, RT_DTYPE_F32);
        if (st == RT_OK) {
            rt_val x = rt_graph_input(g, "x", RT_DTYPE_F32, rt_shape1(5), 1);
            rt_val w = rt_graph_param(g, 0, "w", rt_shape2(5, 5)), dw = 0;
            for (int i = 0; i < 100; i++)
                x = rt_relu(g, rt_matmul(g, x, w, false, false));
            st = rt_graph_grad(g, rt_total_sum(g, x), &w, 1, &dw);
            rt_graph_output(g, "dw", dw);
            if (st == RT_OK)
                st = rt_graph_rebatch(&h, g, 2, true, NULL);
        }
        rt_alloc_set_hook(NULL, NULL);
        done = st == RT_OK;
        assert_true(done || st == RT_E_MEMORY);
        rt_graph_destroy(&g);
        rt_graph_destroy(&h);
        rt_alloc_get_stats(&after);
        assert_int_equal(before.live_blocks, after.live_blocks);
    }
    assert_true(done);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_create_refuses),
        cmocka_unit_test(test_leaves),
        cmocka_unit_test(test_bad_leaves),
        cmocka_unit_test(test_identical_nodes_are_shared),
        cmocka_unit_test(test_many_nodes),
        cmocka_unit_test(test_first_error_stays),
        cmocka_unit_test(test_invalid_value_is_silent),
        cmocka_unit_test(test_outputs),
        cmocka_unit_test(test_misuse),
        cmocka_unit_test(test_print),
        cmocka_unit_test(test_chain_and_reorder),
        cmocka_unit_test(test_row_norm),
        cmocka_unit_test(test_out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
