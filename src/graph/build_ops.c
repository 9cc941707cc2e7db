/*
 * build_ops.c - builders: operations with their attributes as arguments, and the small formulas made of them.
 *
 * A builder that would change nothing (dropout with p = 0, one member tiled once) returns its operand.
 */
#include "graph/graph_int.h"
#include <math.h>

rt_val rt_op1(rt_graph *g, rt_op op, rt_attr a, rt_val x) {
    return rt_graph_op(g, op, a, &x, 1);
}

rt_val rt_op2(rt_graph *g, rt_op op, rt_attr a, rt_val x, rt_val y) {
    return rt_graph_op(g, op, a, (rt_val[]){x, y}, 2);
}

rt_val rt_op3(rt_graph *g, rt_op op, rt_attr a, rt_val x, rt_val y, rt_val z) {
    return rt_graph_op(g, op, a, (rt_val[]){x, y, z}, 3);
}

/* Type of a value; of the invalid one (and of numbers that are no values) all zero. */
static rt_type type_of(const rt_graph *g, rt_val v) {
    return v != 0 && (int64_t)v < g->count ? g->nodes[v].type : (rt_type){0};
}

static const rt_attr no_attr = {0};

/* ---- element-wise ---- */

rt_val rt_add(rt_graph *g, rt_val a, rt_val b) {
    return rt_op2(g, RT_OP_ADD, no_attr, a, b);
}

rt_val rt_sub(rt_graph *g, rt_val a, rt_val b) {
    return rt_op2(g, RT_OP_SUB, no_attr, a, b);
}

rt_val rt_mul(rt_graph *g, rt_val a, rt_val b) {
    return rt_op2(g, RT_OP_MUL, no_attr, a, b);
}

rt_val rt_div(rt_graph *g, rt_val a, rt_val b) {
    return rt_op2(g, RT_OP_DIV, no_attr, a, b);
}

rt_val rt_scale(rt_graph *g, rt_val x, double alpha, double beta) {
    return rt_op1(g, RT_OP_SCALE, (rt_attr){.alpha = alpha, .beta = beta}, x);
}

rt_val rt_neg(rt_graph *g, rt_val x) {
    return rt_scale(g, x, -1, 0);
}

rt_val rt_unary(rt_graph *g, rt_op op, rt_val x) {
    return rt_op1(g, op, no_attr, x);
}

rt_val rt_relu(rt_graph *g, rt_val x) {
    return rt_op1(g, RT_OP_RELU, no_attr, x);
}

rt_val rt_leaky_relu(rt_graph *g, rt_val x, double slope) {
    return rt_op1(g, RT_OP_RELU, (rt_attr){.alpha = slope}, x);
}

rt_val rt_clip(rt_graph *g, rt_val x, double lo, double hi) {
    return rt_op1(g, RT_OP_CLIP, (rt_attr){.alpha = lo, .beta = hi}, x);
}

rt_val rt_stop_grad(rt_graph *g, rt_val x) {
    return rt_op1(g, RT_OP_STOP_GRAD, no_attr, x);
}

rt_val rt_dropout(rt_graph *g, rt_val x, double p, uint64_t stream) {
    if (p == 0)
        return x;
    return rt_op1(g, RT_OP_DROPOUT, (rt_attr){.alpha = p, .stream = stream}, x);
}

rt_val rt_random(rt_graph *g, rt_val x, bool normal, uint64_t stream) {
    return rt_op1(g, RT_OP_RANDOM, (rt_attr){.index = normal, .stream = stream}, x);
}

rt_val rt_mul_scalar(rt_graph *g, rt_val x, rt_val s) {
    return rt_op2(g, RT_OP_MUL_SCALAR, no_attr, x, s);
}

rt_val rt_add_chan(rt_graph *g, rt_val x, rt_val b) {
    return rt_op2(g, RT_OP_ADD_CHAN, no_attr, x, b);
}

rt_val rt_mul_chan(rt_graph *g, rt_val x, rt_val r) {
    return rt_op2(g, RT_OP_MUL_CHAN, no_attr, x, r);
}

rt_val rt_add_row(rt_graph *g, rt_val x, rt_val w) {
    return rt_op2(g, RT_OP_ADD_ROW, no_attr, x, w);
}

rt_val rt_mul_row(rt_graph *g, rt_val x, rt_val w) {
    return rt_op2(g, RT_OP_MUL_ROW, no_attr, x, w);
}

/* ---- shape and members ---- */

static rt_val reshape_inner(rt_graph *g, rt_val x, rt_shape s, bool batched) {
    if (x == 0 || g->st != RT_OK)
        return 0;
    rt_type t = type_of(g, x);
    if ((t.groups > 0) != batched)
        return rt_graph_refuse(
            g, rt_error_set(RT_E_USAGE, __FILE__, __LINE__, "reshape: value %u is %s, wanted %s", (unsigned)x,
                            batched ? "global" : "batched", batched ? "batched" : "global"));
    rt_shape now = rt_type_row(&t);
    return rt_shape_equal(&now, &s) ? x : rt_op1(g, RT_OP_RESHAPE, (rt_attr){.shape = s}, x);
}

rt_val rt_reshape_rows(rt_graph *g, rt_val x, rt_shape row) {
    return reshape_inner(g, x, row, true);
}

rt_val rt_flatten(rt_graph *g, rt_val x) {
    rt_type t = type_of(g, x);
    rt_shape row = rt_type_row(&t);
    return reshape_inner(g, x, rt_shape1(rt_shape_elems(&row)), true);
}

rt_val rt_reshape(rt_graph *g, rt_val x, rt_shape s) {
    return reshape_inner(g, x, s, false);
}

rt_val rt_transpose(rt_graph *g, rt_val x) {
    return rt_op1(g, RT_OP_TRANSPOSE, no_attr, x);
}

rt_val rt_tile_members(rt_graph *g, rt_val x, int members) {
    if (members == 1 && type_of(g, x).groups == 1)
        return x;
    return rt_op1(g, RT_OP_TILE_MEMBERS, (rt_attr){.members = members}, x);
}

rt_val rt_sum_members(rt_graph *g, rt_val x) {
    return type_of(g, x).groups == 1 ? x : rt_op1(g, RT_OP_SUM_MEMBERS, no_attr, x);
}

rt_val rt_mean_members(rt_graph *g, rt_val x) {
    int32_t m = type_of(g, x).groups;
    rt_val s = rt_sum_members(g, x);
    return m > 1 ? rt_scale(g, s, 1.0 / m, 0) : s;
}

rt_val rt_member_get(rt_graph *g, rt_val x, rt_val index) {
    return rt_op2(g, RT_OP_MEMBER_GET, no_attr, x, index);
}

rt_val rt_member_range(rt_graph *g, rt_val x, int start, int count) {
    return rt_op1(g, RT_OP_MEMBER_RANGE, (rt_attr){.start = start, .count = count}, x);
}

rt_val rt_concat_members(rt_graph *g, const rt_val *x, int n) {
    return n == 1 ? x[0] : rt_graph_op(g, RT_OP_CONCAT_MEMBERS, no_attr, x, n);
}

rt_val rt_slice_last(rt_graph *g, rt_val x, int64_t start, int64_t count) {
    return rt_op1(g, RT_OP_SLICE_LAST, (rt_attr){.start = start, .count = count}, x);
}

rt_val rt_one_hot(rt_graph *g, rt_val labels, int64_t classes) {
    return rt_op1(g, RT_OP_ONE_HOT, (rt_attr){.count = classes, .tb = g->dtype == RT_DTYPE_F64}, labels);
}

/* ---- reductions ---- */

rt_val rt_row_sum(rt_graph *g, rt_val x) {
    return rt_op1(g, RT_OP_ROW_SUM, no_attr, x);
}

rt_val rt_row_max(rt_graph *g, rt_val x) {
    return rt_op1(g, RT_OP_ROW_MAX, no_attr, x);
}

rt_val rt_row_dot(rt_graph *g, rt_val a, rt_val b) {
    return rt_op2(g, RT_OP_ROW_DOT, no_attr, a, b);
}

/* The floor is put under the sum of squares, not under the root: the gradient of a zero row is then 0, not 0
 * / 0. */
rt_val rt_row_norm(rt_graph *g, rt_val x, double floor) {
    rt_val s = rt_row_sum(g, rt_unary(g, RT_OP_SQUARE, x));
    if (floor > 0)
        s = rt_clip(g, s, floor * floor, HUGE_VAL);
    return rt_unary(g, RT_OP_SQRT, s);
}

rt_val rt_expand_row(rt_graph *g, rt_val w, rt_shape row) {
    return rt_op1(g, RT_OP_EXPAND_ROW, (rt_attr){.shape = row}, w);
}

rt_val rt_chan_sum(rt_graph *g, rt_val x, int members) {
    return rt_op1(g, RT_OP_CHAN_SUM, (rt_attr){.members = members > 1 ? members : 0}, x);
}

rt_val rt_total_sum(rt_graph *g, rt_val x) {
    return rt_op1(g, RT_OP_TOTAL_SUM, no_attr, x);
}

rt_val rt_batch_mean(rt_graph *g, rt_val rows) {
    rt_type t = type_of(g, rows);
    if (rows != 0 && g->st == RT_OK && t.shape.rank != 1)
        return rt_graph_refuse(g, rt_error_set(RT_E_USAGE, __FILE__, __LINE__,
                                               "batch mean: value %u has rank %d, wanted one number per row",
                                               (unsigned)rows, t.shape.rank));
    return rt_scale(g, rt_total_sum(g, rows), rows != 0 ? 1.0 / (double)t.shape.d[0] : 0, 0);
}

rt_val rt_batch_sum(rt_graph *g, rt_val x) {
    return rt_op1(g, RT_OP_BATCH_SUM, no_attr, x);
}

/* ---- products and pooling ---- */

rt_val rt_matmul(rt_graph *g, rt_val a, rt_val b, bool ta, bool tb) {
    return rt_op2(g, RT_OP_MATMUL, (rt_attr){.ta = ta, .tb = tb}, a, b);
}

rt_val rt_bmm(rt_graph *g, rt_val a, rt_val b, bool ta, bool tb) {
    return rt_op2(g, RT_OP_BMM, (rt_attr){.ta = ta, .tb = tb}, a, b);
}

rt_val rt_conv2d(rt_graph *g, rt_val x, rt_val w, int stride, int pad) {
    return rt_op2(g, RT_OP_CONV2D, (rt_attr){.stride = stride, .pad = pad}, x, w);
}

rt_val rt_maxpool(rt_graph *g, rt_val x, int k, int stride, int pad) {
    return rt_op1(g, RT_OP_MAXPOOL, (rt_attr){.kh = k, .kw = k, .stride = stride, .pad = pad}, x);
}

rt_val rt_global_avgpool(rt_graph *g, rt_val x) {
    return rt_op1(g, RT_OP_GLOBAL_AVGPOOL, no_attr, x);
}

/* ---- batch normalisation ---- */

rt_bn_result rt_batch_norm_train(rt_graph *g, rt_val x, rt_val gamma, rt_val beta, rt_val mean, rt_val var,
                                 double eps, double momentum, int members) {
    rt_bn_result r = {0};
    int32_t m = members > 1 ? members : 0;
    rt_type t = type_of(g, x);
    if (x == 0 || g->st != RT_OK)
        return r;
    /* Elements per channel and set of statistics: rows x space of the full batch. */
    int64_t n = t.shape.rank > 0 ? t.shape.d[0] : 1;
    for (int i = 2; i < t.shape.rank; i++)
        n *= t.shape.d[i];
    n /= m > 0 ? m : 1;
    rt_val stats = rt_op1(g, RT_OP_BN_STATS, (rt_attr){.members = m}, x);
    rt_val coef = rt_op3(g, RT_OP_BN_COEF, (rt_attr){.members = m, .n = n, .alpha = eps}, stats, gamma, beta);
    rt_attr run = {.members = m, .n = n, .alpha = momentum, .ta = true};
    r.y = rt_op2(g, RT_OP_BN_APPLY, (rt_attr){.members = m}, x, coef);
    r.mean = rt_op2(g, RT_OP_BN_RUNNING, run, stats, mean);
    run.index = 1;
    r.var = rt_op2(g, RT_OP_BN_RUNNING, run, stats, var);
    return r;
}

rt_val rt_batch_norm_eval(rt_graph *g, rt_val x, rt_val gamma, rt_val beta, rt_val mean, rt_val var,
                          double eps, int members) {
    int32_t m = members > 1 ? members : 0;
    rt_val coef = rt_graph_op(g, RT_OP_BN_COEF_EVAL, (rt_attr){.members = m, .alpha = eps},
                              (rt_val[]){mean, var, gamma, beta}, 4);
    return rt_op2(g, RT_OP_BN_APPLY, (rt_attr){.members = m}, x, coef);
}

/* ---- losses ---- */

rt_val rt_softmax(rt_graph *g, rt_val z) {
    return rt_op1(g, RT_OP_SOFTMAX, no_attr, z);
}

rt_val rt_log_softmax(rt_graph *g, rt_val z) {
    return rt_op1(g, RT_OP_LOG_SOFTMAX, no_attr, z);
}

rt_val rt_ce_label(rt_graph *g, rt_val z, rt_val labels, double smoothing) {
    return rt_op2(g, RT_OP_CE_LABEL, (rt_attr){.alpha = smoothing}, z, labels);
}

rt_val rt_ce_dist(rt_graph *g, rt_val z, rt_val q) {
    return rt_op2(g, RT_OP_CE_DIST, no_attr, z, q);
}

/* KL(q || p) = sum q ln q - sum q ln p */
rt_val rt_kl_dist(rt_graph *g, rt_val q, rt_val z) {
    return rt_add(g, rt_row_sum(g, rt_unary(g, RT_OP_XLOGX, q)), rt_ce_dist(g, z, q));
}

/* ---- linear algebra ---- */

rt_val rt_dirichlet_nll(rt_graph *g, rt_val z, rt_val mean_log, double offset) {
    return rt_op2(g, RT_OP_DIRICHLET_NLL, (rt_attr){.alpha = offset}, z, mean_log);
}

rt_val rt_dirichlet_kl(rt_graph *g, rt_val z, rt_val b, double offset) {
    return rt_op2(g, RT_OP_DIRICHLET_KL, (rt_attr){.alpha = offset}, z, b);
}

rt_val rt_dirichlet_proxy(rt_graph *g, rt_val teachers, double floor) {
    return rt_op1(g, RT_OP_DIRICHLET_PROXY, (rt_attr){.alpha = floor}, teachers);
}

rt_val rt_qp_simplex(rt_graph *g, rt_val v, double cap) {
    return rt_op1(g, RT_OP_QP_SIMPLEX, (rt_attr){.alpha = cap}, v);
}

rt_val rt_matinv(rt_graph *g, rt_val a) {
    return rt_op1(g, RT_OP_MATINV, no_attr, a);
}

rt_val rt_solve(rt_graph *g, rt_val a, rt_val b, bool transposed) {
    return rt_op2(g, RT_OP_SOLVE, (rt_attr){.ta = transposed}, a, b);
}

rt_val rt_sinkhorn(rt_graph *g, rt_val x, double tau, double floor, int64_t iterations) {
    return rt_op1(g, RT_OP_SINKHORN, (rt_attr){.alpha = tau, .beta = floor, .count = iterations}, x);
}
