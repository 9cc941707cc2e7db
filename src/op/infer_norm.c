/*
 * infer_norm.c - shape rules of batch normalisation in pieces.
 *
 *     BN_STATS   x -> (2, MC) f64              BN_GSTATS  dy, x, coef -> (2, MC) f64
 *     BN_COEF    stats, gamma, beta -> (4, MC) BN_GCOEF   gstats, coef, gamma -> (3, MC)
 *     BN_APPLY   x, coef -> y                  BN_GAPPLY  dy, x, gcoef -> dx
 *
 * M = attr.members (1 if 0) sets of statistics, group-major. Sums are f64 because they cross slices and
 * cancel in E[x^2] - E[x]^2. The element count attr.n is of the full batch and therefore not comparable with
 * the shapes of a slice.
 */
#include "op/op_int.h"

/* (rows, C[, h, w]) in the M groups that attr.members asks for; mc gets M C. */
static rt_status need_x(const rt_infer *q, int i, int64_t *mc) {
    const rt_type *x = &q->in[i];
    int64_t m = rt_attr_groups(q->attr);
    RT_INFER_FAIL_IF(!rt_type_is_float(x), "input %d must be f32 or f64", i);
    RT_TRY(rt_infer_need_batched(q, i));
    RT_TRY(rt_infer_need_chan(q, i));
    RT_INFER_FAIL_IF(m > 1 && x->groups != m, "attr.members must be the groups of input %d", i);
    RT_INFER_FAIL_IF(!rt_i64_mul(m, x->shape.d[1], mc), "too many channels");
    return RT_OK;
}

/* Global (rows, M C); mc 0 takes any. */
static rt_status need_rows_of(const rt_infer *q, int i, int64_t rows, int64_t *mc) {
    const rt_type *t = &q->in[i];
    RT_TRY(rt_infer_need_global(q, i));
    bool fits = t->shape.rank == 2 && t->shape.d[0] == rows && (*mc == 0 || t->shape.d[1] == *mc);
    if (*mc == 0)
        RT_INFER_FAIL_IF(!fits, "input %d must be (%lld, C)", i, (long long)rows);
    else
        RT_INFER_FAIL_IF(!fits, "input %d must be (%lld, %lld)", i, (long long)rows, (long long)*mc);
    *mc = t->shape.d[1];
    return RT_OK;
}

static rt_status need_stats(const rt_infer *q, int i, int64_t *mc) {
    RT_TRY(need_rows_of(q, i, 2, mc));
    RT_INFER_FAIL_IF(q->in[i].dtype != RT_DTYPE_F64, "input %d (statistics) must be f64", i);
    RT_INFER_FAIL_IF(*mc % rt_attr_groups(q->attr) != 0, "%lld channels are no multiple of attr.members",
                     (long long)*mc);
    return RT_OK;
}

/* A per-channel parameter: (M, C), or (C) if it may be shared. */
static rt_status need_param(const rt_infer *q, int i, int64_t mc, bool may_share) {
    const rt_type *t = &q->in[i];
    int64_t m = rt_attr_groups(q->attr), c = mc / m;
    RT_INFER_FAIL_IF(!rt_type_is_float(t), "input %d must be f32 or f64", i);
    RT_TRY(rt_infer_need_global(q, i));
    bool shared = t->shape.rank == 1 && t->shape.d[0] == c && (m == 1 || may_share);
    bool member = t->shape.rank == 2 && t->shape.d[0] == m && t->shape.d[1] == c;
    RT_INFER_FAIL_IF(!shared && !member, "input %d must be %s(%lld, %lld)", i,
                     m == 1 || may_share ? "a channel vector or " : "", (long long)m, (long long)c);
    return RT_OK;
}

static rt_status need_one_type(const rt_infer *q, int i, int j) {
    RT_INFER_FAIL_IF(q->in[i].dtype != q->in[j].dtype, "inputs %d and %d must have one type", i, j);
    return RT_OK;
}

static rt_status need_count(const rt_infer *q) {
    RT_INFER_FAIL_IF(q->attr->n < 1, "attr.n (elements per channel) must be at least 1");
    return RT_OK;
}

rt_status rt_infer_bn_stats(const rt_infer *q) {
    int64_t mc;
    RT_TRY(need_x(q, 0, &mc));
    return rt_infer_global(q, RT_DTYPE_F64, rt_shape2(2, mc));
}

rt_status rt_infer_bn_coef(const rt_infer *q) {
    int64_t mc = 0;
    RT_TRY(need_stats(q, 0, &mc));
    RT_TRY(need_param(q, 1, mc, true));
    RT_TRY(need_param(q, 2, mc, true));
    RT_TRY(need_one_type(q, 1, 2));
    RT_TRY(need_count(q));
    return rt_infer_global(q, q->in[1].dtype, rt_shape2(4, mc));
}

rt_status rt_infer_bn_coef_eval(const rt_infer *q) {
    const rt_shape *mean = &q->in[0].shape;
    int64_t m = rt_attr_groups(q->attr), mc = 0;
    RT_INFER_FAIL_IF(mean->rank < 1 || mean->rank > 2 || !rt_i64_mul(m, mean->d[mean->rank - 1], &mc),
                     "input 0 must be (C) or (M, C)");
    for (int i = 0; i < 4; i++) {
        RT_TRY(need_param(q, i, mc, i >= 2));
        RT_TRY(need_one_type(q, 0, i));
    }
    return rt_infer_global(q, q->in[0].dtype, rt_shape2(4, mc));
}

rt_status rt_infer_bn_apply(const rt_infer *q) {
    int64_t mc;
    RT_TRY(need_x(q, 0, &mc));
    RT_TRY(need_rows_of(q, 1, 4, &mc));
    RT_TRY(need_one_type(q, 0, 1));
    return rt_infer_like(q, &q->in[0]);
}

rt_status rt_infer_bn_gstats(const rt_infer *q) {
    int64_t mc;
    RT_TRY(need_x(q, 0, &mc));
    RT_TRY(rt_infer_need_same(q, 0, 1));
    RT_TRY(need_rows_of(q, 2, 4, &mc));
    RT_TRY(need_one_type(q, 0, 2));
    return rt_infer_global(q, RT_DTYPE_F64, rt_shape2(2, mc));
}

rt_status rt_infer_bn_gcoef(const rt_infer *q) {
    int64_t mc = 0;
    RT_TRY(need_stats(q, 0, &mc));
    RT_TRY(need_rows_of(q, 1, 4, &mc));
    RT_TRY(need_param(q, 2, mc, true));
    RT_TRY(need_one_type(q, 1, 2));
    RT_TRY(need_count(q));
    return rt_infer_global(q, q->in[2].dtype, rt_shape2(3, mc));
}

rt_status rt_infer_bn_gcoef_eval(const rt_infer *q) {
    int64_t mc = 0;
    RT_TRY(rt_infer_need_float(q));
    RT_TRY(need_rows_of(q, 0, 4, &mc));
    return rt_infer_global(q, q->in[0].dtype, rt_shape2(3, mc));
}

rt_status rt_infer_bn_gapply(const rt_infer *q) {
    int64_t mc;
    RT_TRY(need_x(q, 0, &mc));
    RT_TRY(rt_infer_need_same(q, 0, 1));
    RT_TRY(need_rows_of(q, 2, 3, &mc));
    RT_TRY(need_one_type(q, 0, 2));
    return rt_infer_like(q, &q->in[0]);
}

rt_status rt_infer_bn_relu_bwd(const rt_infer *q) {
    int64_t mc;
    RT_TRY(need_x(q, 0, &mc));
    RT_TRY(rt_infer_need_same(q, 0, 1));
    RT_TRY(need_rows_of(q, 2, 4, &mc));
    RT_TRY(need_one_type(q, 0, 2));
    return rt_infer_like(q, &q->in[0]);
}

rt_status rt_infer_bn_gparam(const rt_infer *q) {
    int64_t mc = 0, m = rt_attr_groups(q->attr);
    RT_TRY(need_stats(q, 0, &mc));
    RT_INFER_FAIL_IF(q->attr->index != 0 && q->attr->index != 1, "attr.index must be 0 (beta) or 1 (gamma)");
    rt_dtype t = q->attr->tb ? RT_DTYPE_F64 : RT_DTYPE_F32;
    return rt_infer_global(q, t, q->attr->ta ? rt_shape2(m, mc / m) : rt_shape1(mc / m));
}

rt_status rt_infer_bn_running(const rt_infer *q) {
    int64_t mc = 0;
    RT_TRY(need_stats(q, 0, &mc));
    RT_TRY(need_param(q, 1, mc, false));
    RT_TRY(need_count(q));
    RT_INFER_FAIL_IF(q->attr->index != 0 && q->attr->index != 1,
                     "attr.index must be 0 (mean) or 1 (variance)");
    return rt_infer_like(q, &q->in[1]);
}
