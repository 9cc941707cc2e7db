/* The same program for another batch: there and back is identical, counts and scales stay, pruning keeps
 * input numbers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "unit/op/infer_cases.h"

static rt_graph *make(int64_t batch) {
    rt_graph *g = NULL;
    assert_int_equal(rt_graph_create(&g, batch, RT_DTYPE_F32), RT_OK);
    return g;
}

static void check_same_print(const rt_graph *a, const rt_graph *b) {
    rt_str s, t;
    rt_str_init(&s);
    rt_str_init(&t);
    rt_graph_print(a, &s);
    rt_graph_print(b, &t);
    assert_string_equal(rt_str_text(&s), rt_str_text(&t));
    rt_str_deinit(&s);
    rt_str_deinit(&t);
}

static rt_graph *rebatch(const rt_graph *g, int64_t batch, bool prune) {
    rt_graph *out = NULL;
    if (rt_graph_rebatch(&out, g, batch, prune, NULL) != RT_OK)
        fail_msg("%s", rt_error_text());
    if (rt_graph_verify(out) != RT_OK)
        fail_msg("%s", rt_error_text());
    return out;
}

static void check_there_and_back(const rt_graph *g) {
    rt_graph *small = rebatch(g, 1, false), *back = rebatch(small, rt_graph_batch(g), false);
    assert_int_equal(rt_graph_batch(small), 1);
    check_same_print(g, back);
    rt_graph_destroy(&small);
    rt_graph_destroy(&back);
}

/* A network with a bit of everything: members, batch norm, reshapes, all adjoints. */
static rt_graph *make_network(void) {
    rt_graph *g = make(8);
    rt_val x = rt_graph_input(g, "x", RT_DTYPE_F32, rt_shape3(3, 8, 8), 1);
    rt_val y = rt_graph_input(g, "y", RT_DTYPE_I32, rt_shape0(), 1);
    rt_val i = rt_graph_feed(g, "member", RT_DTYPE_I32, rt_shape0());
    rt_val w = rt_graph_param(g, 0, "conv", rt_shape4(4, 3, 3, 3)), p[4];
    for (int k = 0; k < 4; k++)
        p[k] = rt_graph_param(g, 1 + k, "bn", rt_shape2(2, 4));
    rt_graph_scope(g, "stem");
    rt_val h = rt_tile_members(g, rt_conv2d(g, x, w, 1, 1), 2);
    rt_bn_result bn = rt_batch_norm_train(g, h, p[0], p[1], p[2], p[3], 1e-5, 0.1, 2);
    h = rt_dropout(g, rt_maxpool(g, rt_relu(g, bn.y), 2, 2, 0), 0.1, 3);
    rt_graph_scope(g, "head");
    rt_val r = rt_graph_param(g, 5, "r", rt_shape2(2, 64)), f = rt_graph_param(g, 6, "fc", rt_shape2(10, 64));
    h = rt_mul_chan(g, rt_flatten(g, h), r);
    rt_val z = rt_matmul(g, h, f, false, true);
    rt_graph_scope(g, NULL);
    rt_val one = rt_member_get(g, z, i);
    rt_val q = rt_softmax(g, rt_mean_members(g, z));
    rt_val loss = rt_batch_mean(g, rt_add(g, rt_ce_label(g, one, y, 0.1), rt_kl_dist(g, q, one)));
    loss =
        rt_add(g, loss, rt_scale(g, rt_total_sum(g, rt_batch_sum(g, rt_unary(g, RT_OP_SQUARE, h))), 0.01, 0));
    rt_val wrt[] = {w, p[0], p[1], r, f, x}, grads[6];
    const char *names[] = {"dw", "dgamma", "dbeta", "dr", "df", "dx"};
    if (rt_graph_grad(g, loss, wrt, 6, grads) != RT_OK)
        fail_msg("%s", rt_error_text());
    rt_graph_output(g, "loss", loss);
    for (int k = 0; k < 6; k++)
        rt_graph_output(g, names[k], grads[k]);
    rt_graph_update(g, p[2], bn.mean);
    rt_graph_update(g, p[3], bn.var);
    assert_int_equal(rt_graph_verify(g), RT_OK);
    return g;
}

static void test_network_there_and_back(void **state) {
    (void)state;
    rt_graph *g = make_network();
    check_there_and_back(g);
    /* Everything is needed, so pruning an already pruned graph changes nothing. */
    rt_graph *a = rebatch(g, 8, true), *b = rebatch(a, 2, true), *c = rebatch(b, 8, true);
    check_same_print(a, c);
    rt_graph_destroy(&a);
    rt_graph_destroy(&b);
    rt_graph_destroy(&c);
    rt_graph_destroy(&g);
}

/* Counts and scales speak of the full batch. */
static void test_full_batch_numbers_stay(void **state) {
    (void)state;
    rt_graph *g = make_network(), *s = rebatch(g, 2, false);
    for (int64_t v = 1; v < rt_graph_count(g); v++) {
        const rt_node *a = rt_graph_node(g, (rt_val)v), *b = rt_graph_node(s, (rt_val)v);
        assert_true(rt_attr_equal(&a->attr, &b->attr));
        assert_int_equal(a->type.groups, b->type.groups);
        assert_int_equal(a->type.kind, b->type.kind);
        if (a->type.groups > 0)
            assert_int_equal(a->type.shape.d[0], 4 * b->type.shape.d[0]);
        else
            assert_true(rt_shape_equal(&a->type.shape, &b->type.shape));
    }
    rt_graph_destroy(&s);
    rt_graph_destroy(&g);
}

/* Every operation that fits, and its gradient, for every batch. */
static void test_every_operation(void **state) {
    (void)state;
    for (int64_t i = 0; i < RT_COUNT(op_cases); i++) {
        const op_case *k = &op_cases[i];
        rt_type types[CASE_MAX_IN];
        rt_val in[CASE_MAX_IN];
        int nin = case_read_inputs(types, k->in);
        bool skip = k->out == NULL || case_is_internal(k);
        for (int j = 0; j < nin; j++)
            skip = skip || types[j].dtype == RT_DTYPE_F64;
        if (skip)
            continue;
        rt_graph *g = make(CASE_BATCH);
        for (int j = 0; j < nin; j++) {
            rt_shape row = {0};
            for (int d = 1; d < types[j].shape.rank; d++)
                row.d[row.rank++] = types[j].shape.d[d];
            in[j] = types[j].groups > 0 ? rt_graph_input(g, "x", types[j].dtype, row, types[j].groups)
                                        : rt_graph_feed(g, "f", types[j].dtype, types[j].shape);
        }
        rt_val y = rt_graph_op(g, k->op, k->attr, in, nin);
        bool differentiable = strcmp(case_grad_rule[k->op], "none") != 0 && k->op != RT_OP_BN_APPLY;
        if (differentiable && types[0].dtype == RT_DTYPE_F32) {
            rt_val d[CASE_MAX_IN];
            int floats = nin > 1 && types[nin - 1].dtype == RT_DTYPE_I32 ? nin - 1 : nin;
            assert_int_equal(rt_graph_grad(g, rt_total_sum(g, y), in, floats, d), RT_OK);
        }
        check_there_and_back(g);
        rt_graph_destroy(&g);
    }
}

static void test_prune(void **state) {
    (void)state;
    rt_graph *g = make(4), *h = NULL;
    rt_val a = rt_graph_input(g, "a", RT_DTYPE_F32, rt_shape1(3), 1);
    rt_val b = rt_graph_input(g, "b", RT_DTYPE_F32, rt_shape1(3), 1);
    rt_val dead_param = rt_graph_param(g, 4, "dead", rt_shape1(3));
    rt_val moved = rt_graph_param(g, 5, "moved", rt_shape1(3));
    rt_val dead = rt_mul_chan(g, a, dead_param), live = rt_relu(g, b);
    rt_graph_output(g, "y", live);
    rt_graph_update(g, moved, rt_batch_sum(g, b));
    rt_val *map = NULL;
    assert_int_equal(rt_graph_rebatch(&h, g, 2, true, &map), RT_OK);
    assert_int_equal(map[dead], 0);
    assert_int_equal(map[dead_param], 0);
    assert_int_not_equal(map[a], 0);
    assert_int_equal(rt_graph_node(h, map[b])->slot, 1);
    assert_int_equal(rt_graph_find_output(h, "y"), map[live]);
    assert_int_equal(rt_graph_get_output(h, 1)->update_slot, 5);
    assert_int_equal(rt_graph_verify(h), RT_OK);
    rt_free(map);
    rt_graph_destroy(&h);
    rt_graph_destroy(&g);
}

static void test_layouts_chains_and_scopes_are_copied(void **state) {
    (void)state;
    rt_graph *g = make(4);
    rt_val x = rt_graph_input(g, "x", RT_DTYPE_F32, rt_shape3(8, 2, 2), 1);
    rt_val b = rt_graph_param(g, 0, "b", rt_shape1(8));
    rt_graph_scope(g, "block");
    rt_val r = rt_graph_reorder(g, x, RT_LAYOUT_C8);
    rt_chain c = {.n = 2,
                  .step = {{.op = RT_OP_ADD_CHAN, .arg = {1}}, {.op = RT_OP_RELU, .attr = {.alpha = 0.1}}}};
    rt_val y = rt_graph_chain(g, &c, (rt_val[]){r, b}, 2);
    rt_graph_set_layout(g, y, RT_LAYOUT_C8);
    rt_graph_scope(g, NULL);
    rt_graph_output(g, "y", rt_graph_reorder(g, y, RT_LAYOUT_PLAIN));
    check_there_and_back(g);
    rt_graph *h = rebatch(g, 2, true);
    assert_int_equal(rt_graph_node(h, y)->layout, RT_LAYOUT_C8);
    assert_int_equal(rt_graph_node(h, y)->chain->n, 2);
    assert_string_equal(rt_graph_node(h, y)->name, "block");
    rt_graph_destroy(&h);
    rt_graph_destroy(&g);
}

static void test_errors_travel(void **state) {
    (void)state;
    rt_graph *g = make(4), *h = NULL;
    assert_int_equal(rt_graph_rebatch(&h, g, 0, true, NULL), RT_E_USAGE);
    assert_null(h);
    rt_graph_output(g, "nothing", 0);
    assert_int_equal(rt_graph_rebatch(&h, g, 2, true, NULL), RT_E_USAGE);
    assert_null(h);
    rt_graph_destroy(&g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_network_there_and_back),
        cmocka_unit_test(test_full_batch_numbers_stay),
        cmocka_unit_test(test_every_operation),
        cmocka_unit_test(test_prune),
        cmocka_unit_test(test_layouts_chains_and_scopes_are_copied),
        cmocka_unit_test(test_errors_travel),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
