/*
 * infer_shape.c - shape rules of operations that move elements: reshapes, members, slices.
 *
 * Member operations act on groups of rows of a batched value and on axis 0 of a global one, so that
 * per-member parameters (M, ...) and per-member activations (M n, ...) are selected alike. All of them move
 * any element type.
 */
#include "op/op_int.h"

/* A value of `m` members: groups of rows, or axis 0 of a global value. */
static int64_t members_of(const rt_type *t) {
    if (t->groups > 0)
        return t->groups;
    return t->shape.rank > 0 ? t->shape.d[0] : 0;
}

static rt_status with_members(const rt_infer *q, const rt_type *t, int64_t m) {
    rt_shape tail = rt_type_tail(t);
    RT_INFER_FAIL_IF(m < 1 || m > INT32_MAX, "the result would have %lld members", (long long)m);
    if (t->groups > 0)
        return rt_infer_rows(q, t->dtype, (int32_t)m, &tail);
    rt_shape s = t->shape;
    s.d[0] = m;
    return rt_infer_global(q, t->dtype, s);
}

rt_status rt_infer_reshape(const rt_infer *q) {
    const rt_type *x = &q->in[0];
    rt_shape from = x->groups > 0 ? rt_type_tail(x) : x->shape;
    int64_t have = rt_shape_elems(&from), want = 0;
    RT_INFER_FAIL_IF(!rt_shape_count(&q->attr->shape, &want) || have != want,
                     "%lld elements%s do not fit the new shape", (long long)have,
                     x->groups > 0 ? " per row" : "");
    if (x->groups > 0)
        return rt_infer_rows(q, x->dtype, x->groups, &q->attr->shape);
    return rt_infer_global(q, x->dtype, q->attr->shape);
}

rt_status rt_infer_transpose(const rt_infer *q) {
    RT_TRY(rt_infer_need_global(q, 0));
    rt_shape s = q->in[0].shape;
    RT_INFER_FAIL_IF(s.rank != 2 && s.rank != 3, "input 0 must be (a, b) or (M, a, b)");
    int64_t last = s.d[s.rank - 1];
    s.d[s.rank - 1] = s.d[s.rank - 2];
    s.d[s.rank - 2] = last;
    return rt_infer_global(q, q->in[0].dtype, s);
}

rt_status rt_infer_tile_members(const rt_infer *q) {
    RT_TRY(rt_infer_need_batched(q, 0));
    RT_INFER_FAIL_IF(q->in[0].groups != 1, "input 0 must be one group of rows");
    return with_members(q, &q->in[0], q->attr->members);
}

rt_status rt_infer_sum_members(const rt_infer *q) {
    RT_TRY(rt_infer_need_float(q));
    RT_TRY(rt_infer_need_batched(q, 0));
    return with_members(q, &q->in[0], 1);
}

static rt_status need_index(const rt_infer *q) {
    const rt_type *i = &q->in[1];
    RT_INFER_FAIL_IF(i->dtype != RT_DTYPE_I32 || i->groups != 0 || i->shape.rank != 0,
                     "input 1 must be a global i32 scalar");
    return RT_OK;
}

rt_status rt_infer_member_get(const rt_infer *q) {
    const rt_type *x = &q->in[0];
    RT_TRY(need_index(q));
    if (x->groups > 0)
        return with_members(q, x, 1);
    RT_INFER_FAIL_IF(x->shape.rank < 1, "input 0 must be (M, ...)");
    return rt_infer_global(q, x->dtype, rt_type_tail(x));
}

rt_status rt_infer_member_put(const rt_infer *q) {
    const rt_type *x = &q->in[0];
    RT_TRY(need_index(q));
    RT_INFER_FAIL_IF(q->attr->members < 1, "needs attr.members");
    if (x->groups > 0) {
        RT_INFER_FAIL_IF(x->groups != 1, "input 0 must be one group of rows");
        return with_members(q, x, q->attr->members);
    }
    RT_INFER_FAIL_IF(x->shape.rank + 1 > RT_MAX_RANK, "the result would have rank %d", x->shape.rank + 1);
    rt_shape s = {.rank = x->shape.rank + 1, .d = {q->attr->members}};
    for (int i = 0; i < x->shape.rank; i++)
        s.d[i + 1] = x->shape.d[i];
    return rt_infer_global(q, x->dtype, s);
}

rt_status rt_infer_member_range(const rt_infer *q) {
    int64_t m = members_of(&q->in[0]), start = q->attr->start, count = q->attr->count;
    RT_INFER_FAIL_IF(start < 0 || count < 1 || start > m || count > m - start,
                     "%lld members from %lld on do not exist in %lld", (long long)count, (long long)start,
                     (long long)m);
    return with_members(q, &q->in[0], count);
}

rt_status rt_infer_member_place(const rt_infer *q) {
    int64_t m = members_of(&q->in[0]), start = q->attr->start, all = q->attr->members;
    RT_INFER_FAIL_IF(m < 1, "input 0 must be (M, ...)");
    RT_INFER_FAIL_IF(start < 0 || start > all || m > all - start, "%lld members do not fit at %lld of %lld",
                     (long long)m, (long long)start, (long long)all);
    return with_members(q, &q->in[0], all);
}

rt_status rt_infer_concat_members(const rt_infer *q) {
    rt_shape first = rt_type_tail(&q->in[0]);
    int64_t m = 0;
    for (int i = 0; i < q->nin; i++) {
        const rt_type *x = &q->in[i];
        rt_shape tail = rt_type_tail(x);
        RT_INFER_FAIL_IF(x->shape.rank < 1, "input %d must be (M, ...)", i);
        RT_INFER_FAIL_IF((x->groups > 0) != (q->in[0].groups > 0),
                         "inputs must be all batched or all global");
        RT_INFER_FAIL_IF(x->dtype != q->in[0].dtype || !rt_shape_equal(&tail, &first),
                         "inputs 0 and %d differ in more than their members", i);
        m += members_of(x);
    }
    return with_members(q, &q->in[0], m);
}

static rt_status with_last(const rt_infer *q, int64_t last) {
    const rt_type *x = &q->in[0];
    RT_INFER_FAIL_IF(x->shape.rank < (x->groups > 0 ? 2 : 1), "needs an axis besides the rows");
    RT_TRY(rt_infer_like(q, x));
    q->out->shape.d[x->shape.rank - 1] = last;
    return RT_OK;
}

rt_status rt_infer_slice_last(const rt_infer *q) {
    const rt_shape *s = &q->in[0].shape;
    int64_t size = s->rank > 0 ? s->d[s->rank - 1] : 0, start = q->attr->start, count = q->attr->count;
    RT_INFER_FAIL_IF(start < 0 || count < 1 || start > size || count > size - start,
                     "%lld elements from %lld on do not exist in %lld", (long long)count, (long long)start,
                     (long long)size);
    return with_last(q, count);
}

rt_status rt_infer_pad_last(const rt_infer *q) {
    const rt_shape *s = &q->in[0].shape;
    int64_t size = s->rank > 0 ? s->d[s->rank - 1] : 0, start = q->attr->start, all = q->attr->index;
    RT_INFER_FAIL_IF(start < 0 || start > all || size > all - start,
                     "%lld elements do not fit at %lld of %lld", (long long)size, (long long)start,
                     (long long)all);
    return with_last(q, all);
}

rt_status rt_infer_one_hot(const rt_infer *q) {
    const rt_type *x = &q->in[0];
    rt_dtype t = q->attr->tb ? RT_DTYPE_F64 : RT_DTYPE_F32;
    RT_INFER_FAIL_IF(x->dtype != RT_DTYPE_I32 || x->shape.rank != 1, "input 0 must be i32 labels (rows)");
    RT_INFER_FAIL_IF(q->attr->count < 1, "needs attr.count classes");
    rt_shape row = rt_shape1(q->attr->count);
    if (x->groups > 0)
        return rt_infer_rows(q, t, x->groups, &row);
    return rt_infer_global(q, t, rt_shape2(x->shape.d[0], q->attr->count));
}
