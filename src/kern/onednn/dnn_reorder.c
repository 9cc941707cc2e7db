/*
 * dnn_reorder.c - the same 4-D tensor in another layout, by oneDNN.
 *
 * The destination's padding is written as zero by the library, so here, unlike in dnn_conv.c, descriptors
 * carry the real channel counts. Only the memory object of the source is described with the padded counts:
 * binding a buffer zeroes whatever its descriptor calls padding, and a source may be shared by workers that
 * read it.
 */
#include "kern/onednn/onednn_int.h"

static bool reorder_md(dnnl_memory_desc_t *md, const rt_desc *d) {
    if (d->dtype != RT_DTYPE_F32 || d->shape.rank != 4 || rt_layout_is_wino(d->layout))
        return false;
    for (int k = 0; k < 4; k++)
        if (d->shape.d[k] <= 0)
            return false;
    return rt_dnn_md(md, d->shape.d, d->layout) && dnnl_memory_desc_get_size(md) == rt_desc_bytes(d);
}

static dnnl_primitive_desc_t reorder_pd(const rt_problem *p, dnnl_memory_desc_t *src,
                                        dnnl_memory_desc_t *dst) {
    dnnl_engine_t engine = rt_dnn_engine();
    if (!engine || p->nin != 1 || !reorder_md(src, &p->in[0]) || !reorder_md(dst, &p->out))
        return NULL;
    dnnl_primitive_attr_t attr = rt_dnn_attr_create();
    if (!attr)
        return NULL;
    dnnl_primitive_desc_t pd = NULL;
    int saved = rt_dnn_omp_enter();
    dnnl_status_t made = dnnl_reorder_primitive_desc_create(&pd, src, engine, dst, engine, attr);
    return rt_dnn_pd_made(made, pd, attr, saved);
}

static bool supports(const rt_problem *p) {
    dnnl_memory_desc_t src, dst;
    dnnl_primitive_desc_t pd = reorder_pd(p, &src, &dst);
    if (pd)
        dnnl_primitive_desc_destroy(pd);
    return pd != NULL;
}

static rt_status prepare(const rt_problem *p, void **state, size_t *scratch) {
    dnnl_memory_desc_t src, dst, bare;
    dnnl_primitive_desc_t pd = reorder_pd(p, &src, &dst);
    RT_FAIL_IF(!pd, RT_E_UNSUPPORTED, "oneDNN: no reorder from %s to %s", rt_layout_name(p->in[0].layout),
               rt_layout_name(p->out.layout));
    rt_status st = RT_OK;
    rt_dnn_prim *s = NULL;
    if (!rt_dnn_md(&bare, src.padded_dims, p->in[0].layout))
        RT_FAIL_GOTO(RT_E_FAILED, "oneDNN: no descriptor of a padded %s tensor",
                     rt_layout_name(p->in[0].layout));
    rt_dnn_arg arg[2] = {{DNNL_ARG_FROM, bare}, {DNNL_ARG_TO, dst}};
    st = rt_dnn_prim_create(&s, scratch, pd, arg, 2);
done:
    dnnl_primitive_desc_destroy(pd);
    *state = s;
    return st;
}

static void run(const void *state, const rt_problem *p, void *out, const void *const *in,
                const rt_kern_ctx *ctx) {
    (void)p;
    rt_dnn_prim_run(state, (const void *const[2]){in[0], out}, ctx);
}

const rt_kern rt_k_reorder_f32__onednn = {
    .impl = "onednn",
    .supports = supports,
    .prepare = prepare,
    .release = rt_dnn_prim_release,
    .attach = rt_dnn_prim_attach,
    .run = run,
};
