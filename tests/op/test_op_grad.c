/*
 * test_op_grad.c - gradient rules against central differences, in f64.
 *
 * For every operation of op.def with a gradient rule, and every small problem of op_cases.h:
 *
 *     loss = <op(operands), w>,   (loss(v + e) - loss(v - e)) / 2 e   against   rt_graph_grad
 *
 * for each element v of each floating operand. Operations without a problem fail, so none can be forgotten;
 * rule `none` must be reported, rule `zero` must give no gradient. The graph is walked here with the
 * reference kernels, so that what is tested is the rules, not a plan. Batch normalisation, whose rule spans
 * several operations, and compositions follow.
 */
#include "op/op_problem.h"

#include "graph/graph.h"

enum { SEED = 1, MAX_WRT = 6, MAX_VALUES = 400 };

/* ---- a graph and the data of its values ---- */

typedef struct prog {
    rt_graph *g;
    void *data[MAX_VALUES];
    void *scratch;
} prog;

static void prog_init(prog *p, int64_t batch) {
    *p = (prog){0};
    assert_int_equal(rt_graph_create(&p->g, batch, RT_DTYPE_F64), RT_OK);
    p->scratch = op_buffer(1 << 16);
}

static void prog_deinit(prog *p) {
    for (int i = 0; i < MAX_VALUES; i++)
        rt_free(p->data[i]);
    rt_free(p->scratch);
    rt_graph_destroy(&p->g);
}

static void *prog_data(prog *p, rt_val v) {
    const rt_type *t = &rt_graph_node(p->g, v)->type;
    assert_true(v < MAX_VALUES);
    if (!p->data[v])
        p->data[v] = op_buffer((size_t)rt_shape_elems(&t->shape) * rt_dtype_size(t->dtype));
    return p->data[v];
}

static rt_val prog_leaf(prog *p, rt_dtype t, int32_t groups, rt_shape s, const char *name) {
    if (groups == 0)
        return rt_graph_feed(p->g, name, t, s);
    rt_shape row = {.rank = s.rank - 1};
    memcpy(row.d, s.d + 1, sizeof row.d - sizeof row.d[0]);
    return rt_graph_input(p->g, name, t, row, groups);
}

/* A leaf filled with ordinary or positive values. */
static rt_val prog_value(prog *p, int32_t groups, rt_shape s, bool positive, const char *name) {
    if (groups > 0)
        s.d[0] *= rt_graph_batch(p->g) * groups;
    const rt_val v = prog_leaf(p, RT_DTYPE_F64, groups, s, name);
    assert_int_not_equal(v, 0);
    double *data = prog_data(p, v);
    const rt_rng r = rt_rng_make(SEED, RT_RNG_TEST, 1000, v);
    for (int64_t i = 0; i < rt_shape_elems(&s); i++)
        data[i] = positive ? 0.5 + fabs(op_value(r, i)) : op_value(r, i);
    return v;
}

static void prog_step(prog *p, rt_val v) {
    const rt_node *nd = rt_graph_node(p->g, v);
    rt_desc desc[OP_CASE_IN];
    int32_t groups[OP_CASE_IN];
    const void *in[OP_CASE_IN];
    double *out = prog_data(p, v);
    if (nd->leaf == RT_LEAF_CONST)
        for (int64_t i = 0; i < rt_shape_elems(&nd->type.shape); i++)
            op_store(nd->type.dtype, out, i, nd->data[i]);
    if (nd->leaf != RT_LEAF_NONE)
        return;
    assert_in_range(nd->nin, 1, OP_CASE_IN);
    for (int i = 0; i < nd->nin; i++) {
        const rt_type *t = &rt_graph_node(p->g, nd->in[i])->type;
        desc[i] = rt_desc_make(t->dtype, t->shape, RT_LAYOUT_PLAIN);
        groups[i] = t->groups;
        in[i] = prog_data(p, nd->in[i]);
    }
    const rt_problem q = {.op = nd->op,
                          .attr = nd->attr,
                          .nin = nd->nin,
                          .in = desc,
                          .in_groups = groups,
                          .out = rt_desc_make(nd->type.dtype, nd->type.shape, RT_LAYOUT_PLAIN),
                          .out_groups = nd->type.groups,
                          .n = rt_graph_batch(p->g),
                          .kind = nd->type.kind};
    const rt_kern_ctx ctx = {.scratch = p->scratch, .seed = 7, .batch = q.n};
    rt_kern_ref(nd->op, RT_DTYPE_F64)->run(NULL, &q, out, in, &ctx);
}

/* Computes values 1 .. last. */
static double prog_run(prog *p, rt_val last) {
    for (rt_val v = 1; v <= last; v++)
        prog_step(p, v);
    return *(double *)prog_data(p, last);
}

static rt_val weighted_sum(prog *p, rt_val y) {
    const rt_type t = rt_graph_node(p->g, y)->type;
    rt_shape s = t.shape;
    if (t.groups > 0)
        s.d[0] = 1;
    const rt_val w = prog_value(p, t.groups, s, false, "w");
    return rt_graph_op(p->g, RT_OP_TOTAL_DOT, (rt_attr){0}, (rt_val[]){y, w}, 2);
}

/* ---- the comparison ---- */

static void check(prog *p, const char *name, rt_val loss, const rt_val *wrt, int nwrt) {
    rt_val grads[MAX_WRT] = {0};
    if (rt_graph_status(p->g) != RT_OK || rt_graph_grad(p->g, loss, wrt, nwrt, grads) != RT_OK)
        fail_msg("%s: %s", name, rt_error_text());
    prog_run(p, (rt_val)(rt_graph_count(p->g) - 1));
    const double base = *(double *)prog_data(p, loss);
    for (int k = 0; k < nwrt; k++) {
        const rt_type t = rt_graph_node(p->g, wrt[k])->type;
        const int64_t n = rt_shape_elems(&t.shape);
        if (grads[k] != 0) {
            const rt_type tg = rt_graph_node(p->g, grads[k])->type;
            if (!rt_shape_equal(&tg.shape, &t.shape) || tg.groups != t.groups || tg.dtype != t.dtype)
                fail_msg("%s: gradient %d has another type than its value", name, k);
        }
        double *v = prog_data(p, wrt[k]), *got = grads[k] ? prog_data(p, grads[k]) : NULL;
        double *want = op_buffer((size_t)n * sizeof(double)), largest = 0;
        for (int64_t i = 0; i < n; i++) {
            const double old = v[i], e = 1e-5 * fmax(0.1, fabs(old));
            v[i] = old + e;
            const double up = prog_run(p, loss);
            v[i] = old - e;
            want[i] = (up - prog_run(p, loss)) / (2 * e);
            v[i] = old;
            largest = fmax(largest, fabs(want[i]));
        }
        for (int64_t i = 0; i < n; i++) {
            const double g = got ? got[i] : 0;
            if (!(fabs(g - want[i]) <= 1e-6 * largest + 2e-9 * (1 + fabs(base))))
                fail_msg("%s, seed %d: gradient of operand %d, element %lld is %.12g, differences give %.12g",
                         name, SEED, k, (long long)i, g, want[i]);
        }
        rt_free(want);
    }
}

/* ---- every operation ---- */

typedef enum rule { RULE_SOME, RULE_NONE, RULE_ZERO } rule;

typedef struct sweep {
    rule rule;
    int cases;
} sweep;

/* loss = <op(operands), w>; wrt gets the floating operands. */
static rt_val build_case(prog *p, const op_case *c, rt_val *wrt, int *nwrt) {
    static const char *const names[] = {"a", "b", "c", "d"};
    rt_val in[OP_CASE_IN];
    *nwrt = 0;
    prog_init(p, c->n);
    for (int i = 0; i < c->nin; i++) {
        in[i] = prog_leaf(p, c->in[i].dtype, c->in[i].groups, c->in[i].shape, names[i]);
        assert_int_not_equal(in[i], 0);
        op_case_fill(c, i, SEED, prog_data(p, in[i]));
        if (c->in[i].dtype == RT_DTYPE_F64)
            wrt[(*nwrt)++] = in[i];
    }
    const rt_val y = rt_graph_op(p->g, c->op, c->attr, in, c->nin);
    return y ? weighted_sum(p, y) : 0;
}

static void run_case(void *user, const op_case *c) {
    sweep *s = user;
    char text[512];
    op_case_print(c, text, sizeof text);
    if (c->in[0].dtype == RT_DTYPE_I32 && s->rule != RULE_ZERO)
        return; /* there is nothing to differentiate in moving integers */
    prog p;
    rt_val wrt[MAX_WRT], grads[MAX_WRT] = {0};
    int nwrt;
    const rt_val loss = build_case(&p, c, wrt, &nwrt);
    if (loss == 0)
        fail_msg("%s: %s", text, rt_graph_status(p.g) == RT_OK ? "no value" : rt_error_text());
    s->cases++;
    const bool each = c->op == RT_OP_CONV2D_BWD_WEIGHTS && c->attr.members > 1; /* for passes only */
    if (s->rule == RULE_SOME && !each) {
        check(&p, text, loss, wrt, nwrt);
    } else if (s->rule == RULE_NONE || each) {
        if (rt_graph_grad(p.g, loss, wrt, nwrt, grads) != RT_E_UNSUPPORTED)
            fail_msg("%s: has no gradient, but asking for it is no error", text);
    } else if (nwrt > 0) {
        assert_int_equal(rt_graph_grad(p.g, loss, wrt, nwrt, grads), RT_OK);
        for (int i = 0; i < nwrt; i++)
            assert_int_equal(grads[i], 0);
    }
    prog_deinit(&p);
}

static const struct {
    rt_op op;
    const char *grad;
} rules[] = {
#define RT_OP(ID, name, arity, infer, grad, flags, meaning) {RT_OP_##ID, #grad},
#include "op/op.def"
#undef RT_OP
};

static void test_rules(void **state) {
    (void)state;
    for (int64_t i = 0; i < RT_COUNT(rules); i++) {
        const rt_op op = rules[i].op;
        if (op == RT_OP_BN_APPLY || (rt_op_get(op)->flags & RT_OP_INTERNAL))
            continue; /* test_batch_norm; no graph has them */
        sweep s = {.rule = strcmp(rules[i].grad, "none") == 0   ? RULE_NONE
                           : strcmp(rules[i].grad, "zero") == 0 ? RULE_ZERO
                                                                : RULE_SOME};
        op_cases_each(op, &(op_sweep){.dtype = RT_DTYPE_F64, .max_elems = 130, .fn = run_case, .user = &s});
        if (s.cases == 0)
            fail_msg("%s has no case small enough for a gradient check", rt_op_get(op)->name);
    }
}

/* ---- batch normalisation ---- */

static void test_batch_norm(void **state) {
    (void)state;
    static const struct {
        const char *name;
        int members;
        bool own; /* gamma and beta per member */
        rt_shape row;
    } list[] = {{"2-D", 1, false, {1, {3}}},
                {"4-D", 1, false, {3, {3, 2, 2}}},
                {"2-D, 2 members", 2, false, {1, {3}}},
                {"4-D, 2 members", 2, false, {3, {3, 2, 2}}},
                {"4-D, 2 members with their own scales", 2, true, {3, {2, 1, 3}}}};
    for (int64_t i = 0; i < RT_COUNT(list); i++)
        for (int train = 0; train < 2; train++) {
            prog p;
            prog_init(&p, 4);
            char text[96];
            snprintf(text, sizeof text, "batch norm, %s, %s", list[i].name, train ? "train" : "eval");
            const int64_t c = list[i].row.d[0], m = list[i].members;
            const rt_shape per = m > 1 ? rt_shape2(m, c) : rt_shape1(c),
                           scale = list[i].own ? per : rt_shape1(c);
            rt_shape x_shape = {.rank = list[i].row.rank + 1,
                                .d = {1, c, list[i].row.d[1], list[i].row.d[2]}};
            const rt_val x = prog_value(&p, list[i].members, x_shape, false, "x");
            const rt_val gamma = prog_value(&p, 0, scale, true, "gamma"),
                         beta = prog_value(&p, 0, scale, false, "beta");
            const rt_val mean = prog_value(&p, 0, per, false, "mean"),
                         var = prog_value(&p, 0, per, true, "var");
            const rt_val y =
                train ? rt_batch_norm_train(p.g, x, gamma, beta, mean, var, 1e-3, 0.1, list[i].members).y
                      : rt_batch_norm_eval(p.g, x, gamma, beta, mean, var, 1e-3, list[i].members);
            if (y == 0)
                fail_msg("%s: %s", text, rt_graph_status(p.g) == RT_OK ? "no value" : rt_error_text());
            /* a tanh in front, so that the gradient also passes through */
            const rt_val loss = weighted_sum(&p, rt_unary(p.g, RT_OP_TANH, y));
            check(&p, text, loss, (rt_val[]){x, gamma, beta}, 3);
            prog_deinit(&p);
        }
}

/* ---- compositions: values used twice, builders of several operations, gradients of gradients ---- */

static rt_val c_shared(rt_graph *g, rt_val x, rt_val w) {
    const rt_val h = rt_unary(g, RT_OP_TANH, rt_matmul(g, x, w, false, false));
    return rt_add(g, rt_mul(g, h, h), rt_matmul(g, h, w, false, true));
}
static rt_val c_row_norm(rt_graph *g, rt_val x, rt_val w) {
    return rt_row_norm(g, rt_matmul(g, x, w, false, false), 1e-3);
}
static rt_val c_kl(rt_graph *g, rt_val x, rt_val w) {
    const rt_val z = rt_matmul(g, x, w, false, false);
    return rt_kl_dist(g, rt_softmax(g, x), z);
}
static rt_val c_members(rt_graph *g, rt_val x, rt_val w) {
    const rt_val t = rt_unary(g, RT_OP_SIGMOID, rt_matmul(g, rt_tile_members(g, x, 3), w, false, false));
    return rt_mean_members(g, t);
}
static rt_val c_entropy(rt_graph *g, rt_val x, rt_val w) {
    const rt_val p = rt_softmax(g, rt_matmul(g, x, w, false, false));
    return rt_neg(g, rt_row_sum(g, rt_unary(g, RT_OP_XLOGX, p)));
}
static rt_val c_batch_mean(rt_graph *g, rt_val x, rt_val w) {
    return rt_batch_mean(g, rt_row_dot(g, x, rt_matmul(g, x, w, false, false)));
}
static rt_val c_permuted(rt_graph *g, rt_val x, rt_val w) {
    const rt_val p = rt_sinkhorn(g, w, 2, 0, 400);
    return rt_matmul(g, rt_unary(g, RT_OP_TANH, rt_matmul(g, x, p, false, true)), rt_matinv(g, p), false,
                     false);
}
/* the gradient of a loss with respect to x, as a value like any other */
static rt_val c_second_order(rt_graph *g, rt_val x, rt_val w) {
    const rt_val h = rt_unary(g, RT_OP_TANH, rt_matmul(g, x, w, false, false));
    rt_val dx = 0;
    if (rt_graph_grad(g, rt_total_sum(g, rt_unary(g, RT_OP_SQUARE, h)), &x, 1, &dx) != RT_OK)
        return 0;
    return dx;
}

static void test_compositions(void **state) {
    (void)state;
    static const struct {
        const char *name;
        rt_val (*build)(rt_graph *g, rt_val x, rt_val w);
    } list[] = {{"values used twice", c_shared},
                {"row_norm", c_row_norm},
                {"kl_dist", c_kl},
                {"members", c_members},
                {"entropy", c_entropy},
                {"batch_mean", c_batch_mean},
                {"sinkhorn", c_permuted},
                {"gradient of a gradient", c_second_order}};
    for (int64_t i = 0; i < RT_COUNT(list); i++) {
        prog p;
        prog_init(&p, 3);
        const rt_val x = prog_value(&p, 1, rt_shape2(1, 4), false, "x"),
                     w = prog_value(&p, 0, rt_shape2(4, 4), false, "w");
        const rt_val y = list[i].build(p.g, x, w);
        if (y == 0)
            fail_msg("%s: %s", list[i].name, rt_error_text());
        check(&p, list[i].name, weighted_sum(&p, y), (rt_val[]){x, w}, 2);
        prog_deinit(&p);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rules), cmocka_unit_test(test_batch_norm),
                                       cmocka_unit_test(test_compositions)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
