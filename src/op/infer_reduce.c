/*
 * infer_reduce.c - shape rules of sums over rows, channels or everything, and of their adjoints.
 *
 * Reducing away axis 0 of a batched value gives a global one: a sum over samples. The adjoints know from
 * their attributes how many groups of rows to make, never how many rows, so that the same node serves every
 * batch size.
 */
#include "op/op_int.h"

rt_status rt_infer_row_reduce(const rt_infer *q) {
    const rt_type *x = &q->in[0];
    RT_TRY(rt_infer_need_float(q));
    if (q->nin == 2)
        RT_TRY(rt_infer_need_same(q, 0, 1));
    RT_INFER_FAIL_IF(x->shape.rank < 1, "input 0 must be (rows, ...)");
    rt_shape row = rt_shape0();
    if (x->groups > 0)
        return rt_infer_rows(q, x->dtype, x->groups, &row);
    return rt_infer_global(q, x->dtype, rt_shape1(x->shape.d[0]));
}

rt_status rt_infer_expand_row(const rt_infer *q) {
    const rt_type *w = &q->in[0];
    RT_TRY(rt_infer_need_float(q));
    RT_INFER_FAIL_IF(w->shape.rank != 1, "input 0 must be (rows)");
    if (w->groups > 0)
        return rt_infer_rows(q, w->dtype, w->groups, &q->attr->shape);
    RT_INFER_FAIL_IF(q->attr->shape.rank + 1 > RT_MAX_RANK, "the result would have rank %d",
                     q->attr->shape.rank + 1);
    rt_shape s = {.rank = q->attr->shape.rank + 1, .d = {w->shape.d[0]}};
    for (int i = 0; i < q->attr->shape.rank; i++)
        s.d[i + 1] = q->attr->shape.d[i];
    return rt_infer_global(q, w->dtype, s);
}

rt_status rt_infer_chan_reduce(const rt_infer *q) {
    const rt_type *x = &q->in[0];
    int64_t m = rt_attr_groups(q->attr);
    RT_TRY(rt_infer_need_float(q));
    RT_TRY(rt_infer_need_chan(q, 0));
    if (q->nin == 2)
        RT_TRY(rt_infer_need_same(q, 0, 1));
    if (m == 1)
        return rt_infer_global(q, x->dtype, rt_shape1(x->shape.d[1]));
    RT_INFER_FAIL_IF(x->groups != m, "attr.members must be the groups of input 0");
    return rt_infer_global(q, x->dtype, rt_shape2(m, x->shape.d[1]));
}

rt_status rt_infer_expand_chan(const rt_infer *q) {
    const rt_type *b = &q->in[0];
    const rt_shape *space = &q->attr->shape;
    int64_t m = rt_attr_groups(q->attr), count = q->attr->count;
    RT_TRY(rt_infer_need_float(q));
    RT_TRY(rt_infer_need_global(q, 0));
    RT_INFER_FAIL_IF(space->rank != 0 && space->rank != 2, "attr.shape must be empty or (h, w)");
    RT_INFER_FAIL_IF(count < 0 || count > INT32_MAX, "attr.count must be the groups of the result");
    RT_INFER_FAIL_IF(b->shape.rank != (m > 1 ? 2 : 1), "input 0 must be %s", m > 1 ? "(M, C)" : "(C)");
    RT_INFER_FAIL_IF(m > 1 && (b->shape.d[0] != m || count != m),
                     "attr.members, attr.count and axis 0 of input 0 must agree");
    rt_shape row = {.rank = 1 + space->rank, .d = {b->shape.d[b->shape.rank - 1], space->d[0], space->d[1]}};
    if (count > 0)
        return rt_infer_rows(q, b->dtype, (int32_t)count, &row);
    rt_shape s = {.rank = row.rank + 1, .d = {q->attr->n, row.d[0], row.d[1], row.d[2]}};
    return rt_infer_global(q, b->dtype, s);
}

rt_status rt_infer_total_sum(const rt_infer *q) {
    RT_TRY(rt_infer_need_float(q));
    if (q->nin == 2)
        RT_TRY(rt_infer_need_same(q, 0, 1));
    return rt_infer_global(q, q->in[0].dtype, rt_shape0());
}

rt_status rt_infer_expand_total(const rt_infer *q) {
    RT_TRY(rt_infer_need_float(q));
    RT_TRY(rt_infer_need_global(q, 0));
    RT_INFER_FAIL_IF(q->in[0].shape.rank != 0, "input 0 must be a scalar");
    if (q->attr->members > 0)
        return rt_infer_rows(q, q->in[0].dtype, q->attr->members, &q->attr->shape);
    return rt_infer_global(q, q->in[0].dtype, q->attr->shape);
}

rt_status rt_infer_batch_sum(const rt_infer *q) {
    RT_TRY(rt_infer_need_float(q));
    RT_INFER_FAIL_IF(q->in[0].shape.rank < 1, "input 0 must be (rows, ...)");
    return rt_infer_global(q, q->in[0].dtype, rt_type_tail(&q->in[0]));
}

rt_status rt_infer_expand_batch(const rt_infer *q) {
    const rt_type *x = &q->in[0];
    RT_TRY(rt_infer_need_float(q));
    RT_TRY(rt_infer_need_global(q, 0));
    if (q->attr->members > 0)
        return rt_infer_rows(q, x->dtype, q->attr->members, &x->shape);
    RT_INFER_FAIL_IF(x->shape.rank + 1 > RT_MAX_RANK, "the result would have rank %d", x->shape.rank + 1);
    rt_shape s = {.rank = x->shape.rank + 1, .d = {q->attr->n}};
    for (int i = 0; i < x->shape.rank; i++)
        s.d[i + 1] = x->shape.d[i];
    return rt_infer_global(q, x->dtype, s);
}
