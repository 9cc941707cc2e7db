/*
 * infer_loss.c - shape rules of the losses: logits (rows, K) against labels (rows), distributions or
 * Dirichlet targets (rows, K) -> (rows).
 *
 * Targets have the groups of the logits; targets shared by all members are tiled explicitly (TILE_MEMBERS).
 */
#include "op/op_int.h"
#include <math.h>

static rt_status need_logits(const rt_infer *q, int i) {
    const rt_type *z = &q->in[i];
    RT_TRY(rt_infer_need_batched(q, i));
    RT_INFER_FAIL_IF(!rt_type_is_float(z) || z->shape.rank != 2, "input %d must be logits (rows, K)", i);
    return RT_OK;
}

static rt_status need_labels(const rt_infer *q, int i, const rt_type *z) {
    const rt_type *y = &q->in[i];
    RT_INFER_FAIL_IF(y->dtype != RT_DTYPE_I32 || y->shape.rank != 1, "input %d must be i32 labels (rows)", i);
    RT_INFER_FAIL_IF(y->groups != z->groups,
                     "input %d must have the %d groups of the logits, has %d (tile it)", i, (int)z->groups,
                     (int)y->groups);
    RT_INFER_FAIL_IF(!(q->attr->alpha >= 0 && q->attr->alpha <= 1), "smoothing alpha must be in [0, 1]");
    return RT_OK;
}

/* The gradient of the per-row losses. */
static rt_status need_dl(const rt_infer *q, const rt_type *z) {
    const rt_type *dl = &q->in[0];
    RT_INFER_FAIL_IF(dl->dtype != z->dtype || dl->groups != z->groups || dl->shape.rank != 1,
                     "input 0 must be (rows), of the type and groups of the logits");
    return RT_OK;
}

static rt_status per_row(const rt_infer *q, const rt_type *z) {
    rt_shape row = rt_shape0();
    return rt_infer_rows(q, z->dtype, z->groups, &row);
}

rt_status rt_infer_ce_label(const rt_infer *q) {
    RT_TRY(need_logits(q, 0));
    RT_TRY(need_labels(q, 1, &q->in[0]));
    return per_row(q, &q->in[0]);
}

rt_status rt_infer_ce_label_bwd(const rt_infer *q) {
    RT_TRY(need_logits(q, 1));
    RT_TRY(need_dl(q, &q->in[1]));
    RT_TRY(need_labels(q, 2, &q->in[1]));
    return rt_infer_like(q, &q->in[1]);
}

rt_status rt_infer_ce_dist(const rt_infer *q) {
    RT_TRY(need_logits(q, 0));
    RT_TRY(rt_infer_need_same(q, 0, 1));
    return per_row(q, &q->in[0]);
}

rt_status rt_infer_ce_dist_bwd(const rt_infer *q) {
    RT_TRY(need_logits(q, 1));
    RT_TRY(need_dl(q, &q->in[1]));
    RT_TRY(rt_infer_need_same(q, 1, 2));
    return rt_infer_like(q, &q->in[1]);
}

/* ---- Dirichlet ---- */

static rt_status need_offset(const rt_infer *q) {
    RT_INFER_FAIL_IF(!(q->attr->alpha >= 0 && q->attr->alpha < HUGE_VAL),
                     "offset alpha must not be negative");
    return RT_OK;
}

rt_status rt_infer_dirichlet(const rt_infer *q) {
    RT_TRY(need_offset(q));
    return rt_infer_ce_dist(q);
}

rt_status rt_infer_dirichlet_bwd(const rt_infer *q) {
    RT_TRY(need_offset(q));
    return rt_infer_ce_dist_bwd(q);
}

rt_status rt_infer_dirichlet_proxy(const rt_infer *q) {
    RT_TRY(need_logits(q, 0));
    RT_INFER_FAIL_IF(!(q->attr->alpha > 0), "floor alpha must be positive");
    const rt_shape row = rt_shape1(q->in[0].shape.d[1]);
    return rt_infer_rows(q, q->in[0].dtype, 1, &row);
}

/* The weights of M vectors: as many numbers as the input has rows. */
rt_status rt_infer_qp_simplex(const rt_infer *q) {
    const rt_type *v = &q->in[0];
    RT_TRY(rt_infer_need_float(q));
    RT_INFER_FAIL_IF(v->shape.rank != 2, "input 0 must be vectors (M, K)");
    RT_INFER_FAIL_IF(!(q->attr->alpha > 0), "upper bound alpha must be positive");
    return v->groups > 0 ? per_row(q, v) : rt_infer_global(q, v->dtype, rt_shape1(v->shape.d[0]));
}
