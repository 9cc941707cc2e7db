/* Gradients as graphs: every rule gives gradients of the right type; known networks give known operations;
 * refusals. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "unit/op/infer_cases.h"

static rt_graph *make(int64_t batch) {
    rt_graph *g = NULL;
    assert_int_equal(rt_graph_create(&g, batch, RT_DTYPE_F32), RT_OK);
    return g;
}

static rt_val leaf(rt_graph *g, const rt_type *t, int slot) {
    rt_shape row = {0};
    for (int i = 1; i < t->shape.rank; i++)
        row.d[row.rank++] = t->shape.d[i];
    if (t->groups > 0)
        return rt_graph_input(g, "in", t->dtype, row, t->groups);
    return t->dtype == RT_DTYPE_I32 ? rt_graph_feed(g, "in", t->dtype, t->shape)
                                    : rt_graph_param(g, slot, "in", t->shape);
}

/* Operations that are not f32 from leaves to result, or whose rule looks behind its inputs. */
static bool needs_context(const op_case *k) {
    rt_type in[CASE_MAX_IN], out;
    case_read_type(&out, k->out);
    if (out.dtype == RT_DTYPE_F64)
        return true;
    int nin = case_read_inputs(in, k->in);
    for (int i = 0; i < nin; i++)
        if (in[i].dtype == RT_DTYPE_F64)
            return true;
    return k->op == RT_OP_BN_APPLY || case_is_internal(k);
}

/* Builds the operation of a case on leaves and asks for all gradients at once. */
static rt_status grad_of_case(rt_graph *g, const op_case *k, rt_val *in, rt_val *grads, int *nwrt,
                              rt_val *wrt) {
    rt_type types[CASE_MAX_IN];
    int nin = case_read_inputs(types, k->in);
    *nwrt = 0;
    for (int i = 0; i < nin; i++) {
        in[i] = leaf(g, &types[i], i);
        if (types[i].dtype != RT_DTYPE_I32)
            wrt[(*nwrt)++] = in[i];
    }
    rt_val y = rt_graph_op(g, k->op, k->attr, in, nin);
    assert_int_not_equal(y, 0);
    rt_type t = rt_graph_node(g, y)->type;
    if (t.dtype != RT_DTYPE_F32)
        return rt_graph_status(g);
    return rt_graph_grad_from(g, y, leaf(g, &t, 100), wrt, *nwrt, grads);
}

static bool has_zero_part(const op_case *k) {
    return k->op == RT_OP_RELU_BWD || k->op == RT_OP_CLIP_BWD;
}

static void test_every_rule(void **state) {
    (void)state;
    for (int64_t i = 0; i < RT_COUNT(op_cases); i++) {
        const op_case *k = &op_cases[i];
        const char *name = rt_op_get(k->op)->name, *rule = case_grad_rule[k->op];
        rt_val in[CASE_MAX_IN], grads[CASE_MAX_IN] = {0}, wrt[CASE_MAX_IN];
        int nwrt = 0;
        if (k->out == NULL || needs_context(k))
            continue;
        rt_graph *g = make(CASE_BATCH);
        rt_status st = grad_of_case(g, k, in, grads, &nwrt, wrt);
        if (strcmp(rule, "none") == 0) {
            assert_int_equal(st, RT_E_UNSUPPORTED);
            assert_non_null(strstr(rt_error_text(), name));
        } else if (st != RT_OK) {
            fail_msg("%s(%s): %s", name, k->in, rt_error_text());
        } else {
            for (int j = 0; j < nwrt; j++) {
                if (strcmp(rule, "zero") == 0 || (has_zero_part(k) && j == 1)) {
                    assert_int_equal(grads[j], 0);
                    continue;
                }
                if (grads[j] == 0 && rt_graph_node(g, in[0])->type.dtype != RT_DTYPE_I32)
                    fail_msg("%s(%s): no gradient of input %d", name, k->in, j);
                if (grads[j] == 0)
                    continue;
                rt_type a = rt_graph_node(g, grads[j])->type, b = rt_graph_node(g, wrt[j])->type;
                if (a.dtype != b.dtype || a.groups != b.groups || !rt_shape_equal(&a.shape, &b.shape))
                    fail_msg("%s(%s): gradient %d has another type than the input", name, k->in, j);
            }
            assert_int_equal(rt_graph_verify(g), RT_OK);
        }
        rt_graph_destroy(&g);
    }
}

/* Number of nodes with this operation. */
static int count_op(const rt_graph *g, rt_op op) {
    int n = 0;
    for (int64_t v = 1; v < rt_graph_count(g); v++)
        n += rt_graph_node(g, (rt_val)v)->op == op;
    return n;
}

static void check_ops(const rt_graph *g, const rt_op *ops, const int *counts, int n) {
    for (int i = 0; i < n; i++)
        if (count_op(g, ops[i]) != counts[i])
            fail_msg("%s: %d times, wanted %d", rt_op_get(ops[i])->name, count_op(g, ops[i]), counts[i]);
}

typedef struct mlp {
    rt_val x, y, w1, b1, w2, h, z, loss;
} mlp;

static mlp make_mlp(rt_graph *g) {
    mlp m;
    m.x = rt_graph_input(g, "x", RT_DTYPE_F32, rt_shape1(6), 1);
    m.y = rt_graph_input(g, "y", RT_DTYPE_I32, rt_shape0(), 1);
    m.w1 = rt_graph_param(g, 0, "w1", rt_shape2(5, 6));
    m.b1 = rt_graph_param(g, 1, "b1", rt_shape1(5));
    m.w2 = rt_graph_param(g, 2, "w2", rt_shape2(3, 5));
    m.h = rt_relu(g, rt_add_chan(g, rt_matmul(g, m.x, m.w1, false, true), m.b1));
    m.z = rt_matmul(g, m.h, m.w2, false, true);
    m.loss = rt_batch_mean(g, rt_ce_label(g, m.z, m.y, 0));
    return m;
}

static void test_mlp(void **state) {
    (void)state;
    rt_graph *g = make(4);
    mlp m = make_mlp(g);
    rt_val wrt[] = {m.w1, m.b1, m.w2}, grads[3];
    assert_int_equal(rt_graph_grad(g, m.loss, wrt, 3, grads), RT_OK);
    const rt_op ops[] = {RT_OP_MATMUL,       RT_OP_RELU_BWD,     RT_OP_CHAN_SUM,
                         RT_OP_CE_LABEL_BWD, RT_OP_EXPAND_TOTAL, RT_OP_ADD};
    const int counts[] = {5, 1, 1, 1, 1, 0}; /* no product for dx: nobody asked */
    check_ops(g, ops, counts, (int)RT_COUNT(ops));
    assert_int_equal(rt_graph_node(g, grads[0])->op, RT_OP_MATMUL);
    assert_int_equal(rt_graph_node(g, grads[0])->type.kind, RT_KIND_SUM);
    assert_int_equal(rt_graph_node(g, grads[1])->op, RT_OP_CHAN_SUM);

    /* The same question again makes nothing new. */
    int64_t count = rt_graph_count(g);
    rt_val again[3];
    assert_int_equal(rt_graph_grad(g, m.loss, wrt, 3, again), RT_OK);
    assert_memory_equal(grads, again, sizeof grads);
    assert_int_equal(rt_graph_count(g), count);
    assert_int_equal(rt_graph_verify(g), RT_OK);
    rt_graph_destroy(&g);
}

static void test_inputs_and_intermediates(void **state) {
    (void)state;
    rt_graph *g = make(4);
    mlp m = make_mlp(g);
    rt_val other = rt_graph_param(g, 9, "other", rt_shape0());
    rt_val wrt[] = {m.x, m.h, other, 0, m.loss}, grads[5];
    assert_int_equal(rt_graph_grad(g, m.loss, wrt, 5, grads), RT_OK);
    assert_int_equal(rt_graph_node(g, grads[0])->type.shape.d[1], 6);
    assert_int_equal(rt_graph_node(g, grads[1])->type.shape.d[1], 5);
    assert_int_equal(grads[2], 0);
    assert_int_equal(grads[3], 0);
    assert_int_equal(rt_graph_node(g, grads[4])->leaf, RT_LEAF_CONST);
    rt_graph_destroy(&g);
}

static void test_stop_grad(void **state) {
    (void)state;
    rt_graph *g = make(4);
    rt_val a = rt_graph_param(g, 0, "a", rt_shape1(3)), b = rt_graph_param(g, 1, "b", rt_shape1(3)), grads[2];
    rt_val loss = rt_total_sum(g, rt_mul(g, rt_stop_grad(g, rt_unary(g, RT_OP_EXP, a)), b));
    assert_int_equal(rt_graph_grad(g, loss, (rt_val[]){a, b}, 2, grads), RT_OK);
    assert_int_equal(grads[0], 0);
    assert_int_not_equal(grads[1], 0);
    rt_graph_destroy(&g);
}

/* A value used twice gets the sum of its gradients: x + x and x * x. */
static void test_accumulation(void **state) {
    (void)state;
    rt_graph *g = make(4);
    rt_val x = rt_graph_input(g, "x", RT_DTYPE_F32, rt_shape1(3), 1), dx;
    rt_val loss = rt_total_sum(g, rt_mul(g, x, x));
    assert_int_equal(rt_graph_grad(g, loss, &x, 1, &dx), RT_OK);
    assert_int_equal(rt_graph_node(g, dx)->op, RT_OP_ADD);
    rt_graph_destroy(&g);
}

/* Through an input gradient: normalise it, move the input along it, stop there, and differentiate the rest.
 */
static void test_gradient_of_gradient_graph(void **state) {
    (void)state;
    rt_graph *g = make(4);
    mlp m = make_mlp(g);
    rt_val dx, dw;
    assert_int_equal(rt_graph_grad(g, m.loss, &m.x, 1, &dx), RT_OK);
    rt_val unit = rt_mul_row(g, dx, rt_unary(g, RT_OP_RECIP, rt_row_norm(g, dx, 1e-12)));
    rt_val moved = rt_stop_grad(g, rt_clip(g, rt_add(g, m.x, rt_scale(g, unit, 0.1, 0)), 0, 1));
    rt_val h = rt_relu(g, rt_add_chan(g, rt_matmul(g, moved, m.w1, false, true), m.b1));
    rt_val loss = rt_total_sum(g, h);
    assert_int_equal(rt_graph_grad(g, loss, &m.w1, 1, &dw), RT_OK);
    assert_int_not_equal(dw, 0);

    /* Second order where all operations have rules. */
    rt_val w = rt_graph_param(g, 5, "w", rt_shape1(6)), dxw, ddw;
    rt_val f = rt_total_sum(g, rt_unary(g, RT_OP_TANH, rt_mul_chan(g, m.x, w)));
    assert_int_equal(rt_graph_grad(g, f, &m.x, 1, &dxw), RT_OK);
    assert_int_equal(rt_graph_grad(g, rt_total_sum(g, rt_unary(g, RT_OP_SQUARE, dxw)), &w, 1, &ddw), RT_OK);
    assert_int_not_equal(ddw, 0);
    assert_int_equal(rt_graph_verify(g), RT_OK);
    rt_graph_destroy(&g);
}

static void test_refusals(void **state) {
    (void)state;
    rt_graph *g = make(4);
    rt_val x = rt_graph_input(g, "x", RT_DTYPE_F32, rt_shape1(3), 1), dx;
    assert_int_equal(rt_graph_grad(g, x, &x, 1, &dx), RT_E_USAGE);
    assert_int_equal(rt_graph_grad_from(g, x, rt_relu(g, rt_row_sum(g, x)), &x, 1, &dx), RT_E_USAGE);
    assert_int_equal(rt_graph_grad(g, 0, &x, 1, &dx), RT_E_USAGE);
    /* ROW_MAX has no gradient: fine beside the path, an error on it. */
    rt_val p = rt_graph_param(g, 0, "p", rt_shape1(3)), dp;
    rt_val loss = rt_total_sum(g, rt_mul_row(g, rt_mul_chan(g, x, p), rt_row_max(g, x)));
    assert_int_equal(rt_graph_grad(g, loss, &p, 1, &dp), RT_OK);
    assert_int_equal(rt_graph_grad(g, loss, &x, 1, &dx), RT_E_UNSUPPORTED);
    assert_non_null(strstr(rt_error_text(), "row_max"));
    assert_int_equal(dx, 0);
    assert_int_equal(rt_graph_status(g), RT_E_UNSUPPORTED);
    rt_graph_destroy(&g);
}

/* ---- batch normalisation ---- */

typedef struct bn_net {
    rt_val x, gamma, beta, mean, var, loss;
} bn_net;

static bn_net make_bn(rt_graph *g, int groups, int members, bool per_member, bool train) {
    bn_net b;
    rt_shape s = per_member ? rt_shape2(groups, 5) : rt_shape1(5);
    rt_shape stats = members > 1 ? rt_shape2(members, 5) : rt_shape1(5);
    b.x = rt_graph_input(g, "x", RT_DTYPE_F32, rt_shape3(5, 2, 2), groups);
    b.gamma = rt_graph_param(g, 0, "gamma", s);
    b.beta = rt_graph_param(g, 1, "beta", s);
    b.mean = rt_graph_param(g, 2, "mean", stats);
    b.var = rt_graph_param(g, 3, "var", stats);
    rt_val y = train ? rt_batch_norm_train(g, b.x, b.gamma, b.beta, b.mean, b.var, 1e-5, 0.1, members).y
                     : rt_batch_norm_eval(g, b.x, b.gamma, b.beta, b.mean, b.var, 1e-5, members);
    b.loss = rt_total_sum(g, rt_unary(g, RT_OP_SQUARE, y));
    return b;
}

static int64_t bn_count(const rt_graph *g, rt_op op) {
    for (int64_t v = 1; v < rt_graph_count(g); v++)
        if (rt_graph_node(g, (rt_val)v)->op == op)
            return rt_graph_node(g, (rt_val)v)->attr.n;
    return -1;
}

static void test_bn_train(void **state) {
    (void)state;
    const struct {
        int groups, members;
        bool per_member;
        int64_t n;
    } cases[] = {{1, 1, false, 16}, {1, 1, true, 16}, {3, 1, false, 48}, {3, 3, false, 16}, {3, 3, true, 16}};
    for (int64_t i = 0; i < RT_COUNT(cases); i++) {
        rt_graph *g = make(4);
        bn_net b = make_bn(g, cases[i].groups, cases[i].members, cases[i].per_member, true);
        rt_val grads[3];
        rt_status st = rt_graph_grad(g, b.loss, (rt_val[]){b.x, b.gamma, b.beta}, 3, grads);
        if (st != RT_OK)
            fail_msg("%s", rt_error_text());
        const rt_op ops[] = {RT_OP_BN_STATS,  RT_OP_BN_COEF,   RT_OP_BN_GSTATS,  RT_OP_BN_GCOEF,
                             RT_OP_BN_GAPPLY, RT_OP_BN_GPARAM, RT_OP_BN_RUNNING, RT_OP_BN_GCOEF_EVAL};
        const int counts[] = {1, 1, 1, 1, 1, 2, 2, 0};
        check_ops(g, ops, counts, (int)RT_COUNT(ops));
        assert_int_equal(bn_count(g, RT_OP_BN_COEF), cases[i].n);
        assert_int_equal(bn_count(g, RT_OP_BN_GCOEF), cases[i].n);
        assert_int_equal(bn_count(g, RT_OP_BN_RUNNING), cases[i].n);
        assert_int_equal(rt_graph_node(g, grads[1])->attr.index, 1);
        assert_int_equal(rt_graph_node(g, grads[2])->attr.index, 0);
        for (int j = 1; j < 3; j++)
            assert_true(rt_shape_equal(&rt_graph_node(g, grads[j])->type.shape,
                                       &rt_graph_node(g, b.gamma)->type.shape));
        assert_int_equal(rt_graph_verify(g), RT_OK);
        rt_graph_destroy(&g);
    }
}

static void test_bn_eval(void **state) {
    (void)state;
    rt_graph *g = make(4);
    bn_net b = make_bn(g, 1, 1, false, false);
    rt_val grads[3];
    /* The input gradient alone needs no sums over the batch. */
    assert_int_equal(rt_graph_grad(g, b.loss, &b.x, 1, grads), RT_OK);
    assert_int_equal(count_op(g, RT_OP_BN_GSTATS), 0);
    assert_int_equal(count_op(g, RT_OP_BN_STATS), 0);
    assert_int_equal(count_op(g, RT_OP_BN_GCOEF_EVAL), 1);
    assert_int_equal(rt_graph_grad(g, b.loss, (rt_val[]){b.x, b.gamma, b.beta}, 3, grads), RT_OK);
    assert_int_equal(count_op(g, RT_OP_BN_GSTATS), 1);
    assert_int_equal(count_op(g, RT_OP_BN_GCOEF), 0);
    assert_int_equal(rt_graph_grad(g, b.loss, &b.mean, 1, grads), RT_E_UNSUPPORTED);
    rt_graph_destroy(&g);
}

/* The graph's type reaches operations that cannot see it in their inputs. */
static void test_f64_graph(void **state) {
    (void)state;
    rt_graph *g = NULL;
    assert_int_equal(rt_graph_create(&g, 4, RT_DTYPE_F64), RT_OK);
    rt_val x = rt_graph_input(g, "x", RT_DTYPE_F64, rt_shape1(5), 1);
    rt_val y = rt_graph_input(g, "y", RT_DTYPE_I32, rt_shape0(), 1);
    rt_val p[4];
    for (int i = 0; i < 4; i++)
        p[i] = rt_graph_param(g, i, "p", rt_shape1(5));
    rt_val z = rt_batch_norm_train(g, x, p[0], p[1], p[2], p[3], 1e-5, 0.1, 1).y;
    rt_val loss = rt_batch_mean(g, rt_kl_dist(g, rt_one_hot(g, y, 5), z)), grads[2];
    if (rt_graph_grad(g, loss, p, 2, grads) != RT_OK)
        fail_msg("%s", rt_error_text());
    assert_int_equal(rt_graph_node(g, grads[0])->type.dtype, RT_DTYPE_F64);
    assert_int_equal(rt_graph_verify(g), RT_OK);
    rt_graph_destroy(&g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_rule),
        cmocka_unit_test(test_mlp),
        cmocka_unit_test(test_inputs_and_intermediates),
        cmocka_unit_test(test_stop_grad),
        cmocka_unit_test(test_accumulation),
        cmocka_unit_test(test_gradient_of_gradient_graph),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_bn_train),
        cmocka_unit_test(test_bn_eval),
        cmocka_unit_test(test_f64_graph),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
