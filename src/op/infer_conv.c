/*
 * infer_conv.c - shape rules of the convolution and its two adjoints.
 *
 *     out = floor((in + 2 pad - k) / stride) + 1
 *
 * With stride > 1 several input sizes give one output size; the adjoints are told theirs (attr.h, attr.w,
 * attr.kh, attr.kw) and the rule checks that the forward convolution would lead back. With the gradient of the
 * weights, and that of weights that differ by rank one between members, which is made of it.
 */
#include "op/op_int.h"

/* Output size, or 0 if the window does not fit. */
static int64_t out_size(int64_t in, int64_t k, const rt_attr *a) {
    int64_t room = in + 2 * (int64_t)a->pad - k;
    return room < 0 ? 0 : room / a->stride + 1;
}

static rt_status need_conv(const rt_infer *q) {
    RT_TRY(rt_infer_need_float(q));
    RT_INFER_FAIL_IF(q->attr->stride < 1 || q->attr->pad < 0, "stride must be at least 1 and pad at least 0");
    RT_TRY(rt_infer_need_batched(q, 0));
    RT_INFER_FAIL_IF(q->in[0].shape.rank != 4, "input 0 must be (rows, c, h, w)");
    RT_INFER_FAIL_IF(q->in[1].shape.rank != 4, "input 1 must have rank 4");
    return RT_OK;
}

rt_status rt_infer_conv2d(const rt_infer *q) {
    RT_TRY(need_conv(q));
    RT_TRY(rt_infer_need_global(q, 1));
    const int64_t *x = q->in[0].shape.d, *w = q->in[1].shape.d;
    RT_INFER_FAIL_IF(x[1] != w[1], "the weights want %lld input channels, input 0 has %lld", (long long)w[1],
                     (long long)x[1]);
    rt_shape row = rt_shape3(w[0], out_size(x[2], w[2], q->attr), out_size(x[3], w[3], q->attr));
    RT_INFER_FAIL_IF(row.d[1] < 1 || row.d[2] < 1, "the %lldx%lld kernel does not fit into the padded image",
                     (long long)w[2], (long long)w[3]);
    return rt_infer_rows(q, q->in[0].dtype, q->in[0].groups, &row);
}

rt_status rt_infer_conv2d_bwd_data(const rt_infer *q) {
    RT_TRY(need_conv(q));
    RT_TRY(rt_infer_need_global(q, 1));
    const int64_t *dy = q->in[0].shape.d, *w = q->in[1].shape.d;
    RT_INFER_FAIL_IF(dy[1] != w[0], "the weights have %lld output channels, input 0 has %lld",
                     (long long)w[0], (long long)dy[1]);
    RT_INFER_FAIL_IF(q->attr->h < 1 || q->attr->w < 1 || out_size(q->attr->h, w[2], q->attr) != dy[2] ||
                         out_size(q->attr->w, w[3], q->attr) != dy[3],
                     "no convolution of a %lldx%lld image gives input 0", (long long)q->attr->h,
                     (long long)q->attr->w);
    rt_shape row = rt_shape3(w[1], q->attr->h, q->attr->w);
    return rt_infer_rows(q, q->in[0].dtype, q->in[0].groups, &row);
}

rt_status rt_infer_conv2d_bwd_weights(const rt_infer *q) {
    RT_TRY(need_conv(q));
    const int64_t *x = q->in[0].shape.d, *dy = q->in[1].shape.d;
    RT_INFER_FAIL_IF(q->in[1].groups != q->in[0].groups, "inputs must have the same groups");
    RT_INFER_FAIL_IF(q->attr->kh < 1 || q->attr->kw < 1 || out_size(x[2], q->attr->kh, q->attr) != dy[2] ||
                         out_size(x[3], q->attr->kw, q->attr) != dy[3],
                     "no convolution of input 0 with a %dx%d kernel gives input 1", (int)q->attr->kh,
                     (int)q->attr->kw);
    const int64_t m = rt_attr_groups(q->attr);
    int64_t oc = 0;
    RT_INFER_FAIL_IF(m > 1 && q->in[0].groups != m, "attr.members must be the groups of the inputs");
    RT_INFER_FAIL_IF(!rt_i64_mul(m, dy[1], &oc), "too many channels");
    return rt_infer_global(q, q->in[0].dtype, rt_shape4(oc, x[1], q->attr->kh, q->attr->kw));
}

rt_status rt_infer_rank1_bwd(const rt_infer *q) {
    RT_TRY(rt_infer_need_float(q));
    for (int i = 0; i < 4; i++)
        RT_TRY(rt_infer_need_global(q, i));
    const rt_shape *d = &q->in[0].shape, *w = &q->in[1].shape, *r = &q->in[2].shape, *s = &q->in[3].shape;
    RT_INFER_FAIL_IF(w->rank != 4 || r->rank != 2 || s->rank != 2 || r->d[1] != w->d[1] ||
                         s->d[1] != w->d[0] || r->d[0] != s->d[0],
                     "inputs 1 to 3 must be (oc, ic, kh, kw), (M, ic) and (M, oc)");
    rt_shape all = *w;
    RT_INFER_FAIL_IF(!rt_i64_mul(r->d[0], w->d[0], &all.d[0]) || !rt_shape_equal(d, &all),
                     "input 0 must be (M oc, ic, kh, kw)");
    RT_INFER_FAIL_IF(q->attr->index < 0 || q->attr->index > 2, "attr.index must be 0, 1 or 2");
    return rt_infer_global(q, q->in[0].dtype, q->attr->index == 0 ? *w : q->attr->index == 1 ? *r : *s);
}

/* The steps are checked, and the result's type found, where the chain is known (graph). */
rt_status rt_infer_fused_chain(const rt_infer *q) {
    RT_INFER_FAIL_IF(!rt_type_is_float(&q->in[0]), "input 0 must be f32 or f64");
    RT_TRY(rt_infer_need_batched(q, 0));
    return rt_infer_like(q, &q->in[0]);
}
