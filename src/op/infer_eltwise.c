/*
 * infer_eltwise.c - shape rules of element-wise operations: the result is like in[0].
 *
 * Broadcast operands are explicit operations, never guessed from shapes: a scalar, one value per channel (and
 * member), or one per row.
 */
#include "op/op_int.h"

rt_status rt_infer_same(const rt_infer *q) {
    RT_TRY(rt_infer_need_float(q));
    RT_TRY(rt_infer_need_same(q, 0, 1));
    if (q->op == RT_OP_SOFTMAX_BWD || q->op == RT_OP_LOG_SOFTMAX_BWD)
        return rt_infer_unary(q);
    return rt_infer_like(q, &q->in[0]);
}

rt_status rt_infer_unary(const rt_infer *q) {
    const rt_attr *a = q->attr;
    const rt_type *x = &q->in[0];
    if (q->op != RT_OP_STOP_GRAD && q->op != RT_OP_REORDER)
        RT_TRY(rt_infer_need_float(q));
    switch (q->op) {
    case RT_OP_DROPOUT:
        RT_INFER_FAIL_IF(!(a->alpha >= 0 && a->alpha < 1), "probability alpha must be in [0, 1)");
        break;
    case RT_OP_RANDOM:
        RT_TRY(rt_infer_need_batched(q, 0));
        RT_INFER_FAIL_IF(a->index != 0 && a->index != 1, "no distribution has number %d", (int)a->index);
        break;
    case RT_OP_CLIP:
        RT_INFER_FAIL_IF(!(a->alpha <= a->beta),
                         "the lower bound alpha must not exceed the upper bound beta");
        break;
    case RT_OP_SOFTMAX:
    case RT_OP_SOFTMAX_BWD:
    case RT_OP_LOG_SOFTMAX:
    case RT_OP_LOG_SOFTMAX_BWD:
        RT_INFER_FAIL_IF(x->shape.rank < (x->groups > 0 ? 2 : 1), "needs an axis besides the rows");
        break;
    case RT_OP_REORDER:
        RT_INFER_FAIL_IF(a->index < 0 || a->index >= RT_LAYOUT_COUNT, "no layout has number %d",
                         (int)a->index);
        break;
    default:
        break;
    }
    return rt_infer_like(q, x);
}

rt_status rt_infer_with_scalar(const rt_infer *q) {
    RT_TRY(rt_infer_need_float(q));
    RT_TRY(rt_infer_need_global(q, 1));
    RT_INFER_FAIL_IF(q->in[1].shape.rank != 0, "input 1 must be a scalar");
    return rt_infer_like(q, &q->in[0]);
}

rt_status rt_infer_with_chan(const rt_infer *q) {
    const rt_type *x = &q->in[0], *b = &q->in[1];
    RT_TRY(rt_infer_need_float(q));
    RT_TRY(rt_infer_need_chan(q, 0));
    RT_TRY(rt_infer_need_global(q, 1));
    int64_t c = x->shape.d[1];
    bool shared = b->shape.rank == 1 && b->shape.d[0] == c;
    bool member = x->groups > 0 && b->shape.rank == 2 && b->shape.d[0] == x->groups && b->shape.d[1] == c;
    if (x->groups > 0)
        RT_INFER_FAIL_IF(!shared && !member, "input 1 must be (%lld) or (%d, %lld)", (long long)c,
                         (int)x->groups, (long long)c);
    else
        RT_INFER_FAIL_IF(!shared, "input 1 must be (%lld)", (long long)c);
    return rt_infer_like(q, x);
}

rt_status rt_infer_with_row(const rt_infer *q) {
    const rt_type *x = &q->in[0], *w = &q->in[1];
    RT_TRY(rt_infer_need_float(q));
    RT_TRY(rt_infer_need_batched(q, 0));
    RT_TRY(rt_infer_need_batched(q, 1));
    RT_INFER_FAIL_IF(w->shape.rank != 1 || w->groups != x->groups, "input 1 must be (%lld) in %d groups",
                     (long long)x->shape.d[0], (int)x->groups);
    return rt_infer_like(q, x);
}

/* The steps are checked where the chain is known (graph). */
rt_status rt_infer_chain(const rt_infer *q) {
    RT_INFER_FAIL_IF(!rt_type_is_float(&q->in[0]), "input 0 must be f32 or f64");
    return rt_infer_like(q, &q->in[0]);
}
