/*
 * infer_linalg.c - shape rules of linear algebra on global square matrices.
 */
#include "op/op_int.h"

static rt_status need_square(const rt_infer *q, int i) {
    const rt_shape *s = &q->in[i].shape;
    RT_TRY(rt_infer_need_global(q, i));
    RT_INFER_FAIL_IF(s->rank != 2 || s->d[0] != s->d[1], "input %d must be a square matrix", i);
    return RT_OK;
}

static rt_status need_sinkhorn(const rt_infer *q) {
    RT_INFER_FAIL_IF(!(q->attr->alpha > 0), "temperature alpha must be positive");
    RT_INFER_FAIL_IF(!(q->attr->beta >= 0), "floor beta must not be negative");
    RT_INFER_FAIL_IF(q->attr->count < 1, "needs at least 1 iteration (attr.count)");
    RT_INFER_FAIL_IF(q->attr->index < RT_SINKHORN_AUTO || q->attr->index > RT_SINKHORN_UNROLLED,
                     "gradient attr.index must be 0 (auto), 1 (implicit) or 2 (unrolled)");
    return RT_OK;
}

rt_status rt_infer_square_matrix(const rt_infer *q) {
    RT_TRY(rt_infer_need_float(q));
    RT_TRY(need_square(q, 0));
    if (q->op == RT_OP_SINKHORN)
        RT_TRY(need_sinkhorn(q));
    return rt_infer_like(q, &q->in[0]);
}

rt_status rt_infer_solve(const rt_infer *q) {
    const rt_shape *b = &q->in[1].shape;
    RT_TRY(rt_infer_need_float(q));
    RT_TRY(need_square(q, 0));
    RT_TRY(rt_infer_need_global(q, 1));
    RT_INFER_FAIL_IF(b->rank != 2 || b->d[0] != q->in[0].shape.d[0], "input 1 must be (%lld, m)",
                     (long long)q->in[0].shape.d[0]);
    return rt_infer_like(q, &q->in[1]);
}

rt_status rt_infer_sinkhorn_bwd(const rt_infer *q) {
    RT_TRY(rt_infer_need_float(q));
    RT_TRY(need_square(q, 0));
    RT_TRY(rt_infer_need_same(q, 0, 1));
    RT_TRY(rt_infer_need_same(q, 0, 2));
    RT_TRY(need_sinkhorn(q));
    return rt_infer_like(q, &q->in[0]);
}
