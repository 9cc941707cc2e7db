/*
 * infer_pool.c - shape rules of pooling.
 *
 * A max-pooling window always covers at least one real pixel: 2 pad <= k, as PyTorch demands.
 */
#include "op/op_int.h"

static rt_status need_image(const rt_infer *q, int i) {
    RT_TRY(rt_infer_need_float(q));
    RT_TRY(rt_infer_need_batched(q, i));
    RT_INFER_FAIL_IF(q->in[i].shape.rank != 4, "input %d must be (rows, c, h, w)", i);
    return RT_OK;
}

static rt_status pooled_row(const rt_infer *q, const rt_type *x, rt_shape *row) {
    const rt_attr *a = q->attr;
    RT_INFER_FAIL_IF(a->kh < 1 || a->kw < 1 || a->stride < 1, "kh, kw and stride must be at least 1");
    RT_INFER_FAIL_IF(a->pad < 0 || 2 * (int64_t)a->pad > RT_MIN(a->kh, a->kw),
                     "pad must be between 0 and half the window");
    int64_t rh = x->shape.d[2] + 2 * (int64_t)a->pad - a->kh,
            rw = x->shape.d[3] + 2 * (int64_t)a->pad - a->kw;
    RT_INFER_FAIL_IF(rh < 0 || rw < 0, "the window does not fit into the padded image");
    *row = rt_shape3(x->shape.d[1], rh / a->stride + 1, rw / a->stride + 1);
    return RT_OK;
}

rt_status rt_infer_maxpool(const rt_infer *q) {
    rt_shape row;
    RT_TRY(need_image(q, 0));
    RT_TRY(pooled_row(q, &q->in[0], &row));
    return rt_infer_rows(q, q->in[0].dtype, q->in[0].groups, &row);
}

rt_status rt_infer_maxpool_bwd(const rt_infer *q) {
    rt_shape row, dy = rt_type_tail(&q->in[0]);
    RT_TRY(need_image(q, 0));
    RT_TRY(need_image(q, 1));
    RT_TRY(pooled_row(q, &q->in[1], &row));
    RT_INFER_FAIL_IF(q->in[0].groups != q->in[1].groups || !rt_shape_equal(&row, &dy),
                     "input 0 does not have the shape of the pooled input 1");
    return rt_infer_like(q, &q->in[1]);
}

rt_status rt_infer_global_avgpool(const rt_infer *q) {
    RT_TRY(need_image(q, 0));
    rt_shape row = rt_shape1(q->in[0].shape.d[1]);
    return rt_infer_rows(q, q->in[0].dtype, q->in[0].groups, &row);
}

rt_status rt_infer_global_avgpool_bwd(const rt_infer *q) {
    RT_TRY(rt_infer_need_float(q));
    RT_TRY(rt_infer_need_batched(q, 0));
    RT_INFER_FAIL_IF(q->in[0].shape.rank != 2, "input 0 must be (rows, c)");
    RT_INFER_FAIL_IF(q->attr->h < 1 || q->attr->w < 1, "needs attr.h and attr.w");
    rt_shape row = rt_shape3(q->in[0].shape.d[1], q->attr->h, q->attr->w);
    return rt_infer_rows(q, q->in[0].dtype, q->in[0].groups, &row);
}
