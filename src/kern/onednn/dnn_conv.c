/*
 * dnn_conv.c - convolution and its two adjoints by oneDNN's direct kernels, f32.
 *
 *     y[n,o,p,q]  = sum over i,r,s  x[n,i,p*stride+r-pad,q*stride+s-pad] w[o,i,r,s]
 *     dx = the adjoint in x of that, dw = the adjoint in w
 *
 * Layouts. The fast kernels want channels in blocks of B = 8 (AVX2) or 16 (AVX-512), and weights blocked on
 * both sides; only a first layer, with fewer channels than a block, reads PLAIN. Which weight layout goes
 * with a pass is the library's choice (tag `any`).
 *
 * Padding. Channels that fill up a block are zero in every tensor, so the library is told the padded counts
 * as if they were real: zero weights give zero outputs, and zero activations zero gradients. It then never
 * re-zeroes padding by itself. (An infinite activation makes 0 * inf = NaN there; the real channels are not
 * finite either then.)
 */
#include "kern/onednn/onednn_int.h"

typedef enum conv_pass { FWD, BWD_DATA, BWD_WEIGHTS } conv_pass;

/* One convolution, whatever the pass: x and y are data or their gradients, w weights or theirs. */
typedef struct conv {
    conv_pass pass;
    rt_desc x, w, y;
    dnnl_dim_t stride, pad;
} conv;

/* Where x, w, y stand in a problem of each pass; -1 is the output. */
static const int k_place[3][3] = {{0, 1, -1}, {-1, 1, 0}, {0, -1, 1}};

static const rt_desc *desc_at(const rt_problem *p, int place) {
    return place < 0 ? &p->out : &p->in[place];
}

/* Gradients of the weights per member are as many problems of the same shape, one behind the other; members whose
 * channels fill no block do not stand so, and are left to other kernels. */
static int64_t members_of(const rt_problem *p, conv_pass pass) {
    return pass == BWD_WEIGHTS && p->attr.members > 1 ? p->attr.members : 1;
}

static bool conv_get(conv *c, const rt_problem *p, conv_pass pass) {
    if (p->nin != 2 || p->attr.stride < 1)
        return false;
    const int *place = k_place[pass];
    *c = (conv){.pass = pass, .stride = p->attr.stride, .pad = p->attr.pad};
    rt_desc *all[3] = {&c->x, &c->w, &c->y};
    for (int i = 0; i < 3; i++) {
        if (!rt_desc_divide(desc_at(p, place[i]), members_of(p, pass), all[i]))
            return false;
        if (all[i]->dtype != RT_DTYPE_F32 || all[i]->shape.rank != 4 || rt_layout_is_wino(all[i]->layout))
            return false;
        for (int k = 0; k < 4; k++)
            if (all[i]->shape.d[k] <= 0)
                return false;
    }
    return true;
}

static dnnl_dim_t padded(const rt_desc *d) {
    int64_t b = rt_layout_block(d->layout);
    return (d->shape.d[1] + b - 1) / b * b;
}

typedef struct mds {
    dnnl_memory_desc_t x, w, y;
} mds;

/* Descriptors with padded channel counts; a weight layout of RT_LAYOUT_COUNT stands for `any`. */
static bool conv_mds(mds *m, const conv *c) {
    const int64_t *x = c->x.shape.d, *w = c->w.shape.d, *y = c->y.shape.d;
    dnnl_dim_t ic = padded(&c->x), oc = padded(&c->y);
    return rt_dnn_md(&m->x, (const dnnl_dims_t){x[0], ic, x[2], x[3]}, c->x.layout) &&
           rt_dnn_md(&m->w, (const dnnl_dims_t){oc, ic, w[2], w[3]}, c->w.layout) &&
           rt_dnn_md(&m->y, (const dnnl_dims_t){y[0], oc, y[2], y[3]}, c->y.layout);
}

static dnnl_primitive_desc_t pd_forward(const conv *c, const mds *m) {
    const dnnl_dims_t stride = {c->stride, c->stride}, pad = {c->pad, c->pad};
    dnnl_convolution_desc_t d;
    if (dnnl_convolution_forward_desc_init(&d, dnnl_forward_training, dnnl_convolution_direct, &m->x, &m->w,
                                           NULL, &m->y, stride, pad, pad) != dnnl_success)
        return NULL;
    return rt_dnn_pd_create(&d, NULL);
}

/* A backward descriptor needs a forward one as hint; the weights of that one may be in any layout. */
static dnnl_primitive_desc_t pd_backward(const conv *c, const mds *m) {
    conv hint_conv = *c;
    hint_conv.w.layout = RT_LAYOUT_COUNT;
    mds hint_mds;
    dnnl_primitive_desc_t hint = conv_mds(&hint_mds, &hint_conv) ? pd_forward(&hint_conv, &hint_mds) : NULL;
    if (!hint)
        return NULL;
    const dnnl_dims_t stride = {c->stride, c->stride}, pad = {c->pad, c->pad};
    dnnl_convolution_desc_t d;
    dnnl_status_t e = c->pass == BWD_DATA
                          ? dnnl_convolution_backward_data_desc_init(&d, dnnl_convolution_direct, &m->x,
                                                                     &m->w, &m->y, stride, pad, pad)
                          : dnnl_convolution_backward_weights_desc_init(&d, dnnl_convolution_direct, &m->x,
                                                                        &m->w, NULL, &m->y, stride, pad, pad);
    dnnl_primitive_desc_t pd = e == dnnl_success ? rt_dnn_pd_create(&d, hint) : NULL;
    dnnl_primitive_desc_destroy(hint);
    return pd;
}

static dnnl_primitive_desc_t conv_pd(const conv *c, mds *m) {
    if (!conv_mds(m, c))
        return NULL;
    return c->pass == FWD ? pd_forward(c, m) : pd_backward(c, m);
}

/* Tries the data layouts of c with the weights left to the library; true if there is a fast kernel and we can
 * name its choice. */
static bool try_any(conv *c) {
    mds m;
    c->w.layout = RT_LAYOUT_COUNT;
    dnnl_primitive_desc_t pd = conv_pd(c, &m);
    if (!pd)
        return false;
    dnnl_query_t what = c->pass == BWD_WEIGHTS ? dnnl_query_diff_weights_md : dnnl_query_weights_md;
    const dnnl_memory_desc_t *w = dnnl_primitive_desc_query_md(pd, what, 0);
    bool named = w && rt_dnn_weight_layout(&c->w.layout, w);
    dnnl_primitive_desc_destroy(pd);
    return named;
}

static bool try_named(conv *c, int64_t block) {
    static const rt_layout k_named[2][3] = {
        {RT_LAYOUT_W_OIHW8I8O, RT_LAYOUT_W_OIHW8O8I, RT_LAYOUT_W_OHWI8O},
        {RT_LAYOUT_W_OIHW16I16O, RT_LAYOUT_W_OIHW16O16I, RT_LAYOUT_W_OHWI16O}};
    for (int i = 0; i < 3; i++) {
        mds m;
        c->w.layout = k_named[block == 16][i];
        dnnl_primitive_desc_t pd = conv_pd(c, &m);
        if (pd) {
            dnnl_primitive_desc_destroy(pd);
            return true;
        }
    }
    return false;
}

static bool choose(conv *c) {
    const rt_layout x0 = c->x.layout;
    for (int64_t block = rt_cpu_isa() == RT_ISA_AVX512 ? 16 : 8; block >= 8; block /= 2) {
        rt_layout blocked = block == 16 ? RT_LAYOUT_C16 : RT_LAYOUT_C8;
        bool plain_first = c->pass != BWD_DATA && x0 == RT_LAYOUT_PLAIN && c->x.shape.d[1] < block;
        for (int i = plain_first ? 0 : 1; i < 2; i++) {
            c->x.layout = i == 0 ? RT_LAYOUT_PLAIN : blocked;
            c->y.layout = blocked;
            if (try_any(c) || try_named(c, block))
                return true;
        }
    }
    return false;
}

static void layouts(const rt_problem *p, conv_pass pass, rt_layout *in, rt_layout *out) {
    conv c;
    if (!conv_get(&c, p, pass) || !choose(&c))
        return;
    const rt_layout want[3] = {c.x.layout, c.w.layout, c.y.layout};
    for (int i = 0; i < 3; i++)
        *(k_place[pass][i] < 0 ? out : &in[k_place[pass][i]]) = want[i];
}

/* The primitive descriptor for exactly the layouts of p; NULL if there is none or if sizes disagree with
 * ours. */
static dnnl_primitive_desc_t exact_pd(const rt_problem *p, conv_pass pass, mds *m) {
    conv c;
    if (!conv_get(&c, p, pass))
        return NULL;
    dnnl_primitive_desc_t pd = conv_pd(&c, m);
    if (pd && (dnnl_memory_desc_get_size(&m->x) != rt_desc_bytes(&c.x) ||
               dnnl_memory_desc_get_size(&m->w) != rt_desc_bytes(&c.w) ||
               dnnl_memory_desc_get_size(&m->y) != rt_desc_bytes(&c.y))) {
        dnnl_primitive_desc_destroy(pd);
        pd = NULL;
    }
    return pd;
}

static bool supports(const rt_problem *p, conv_pass pass) {
    mds m;
    dnnl_primitive_desc_t pd = exact_pd(p, pass, &m);
    if (pd)
        dnnl_primitive_desc_destroy(pd);
    return pd != NULL;
}

static rt_status prepare(const rt_problem *p, conv_pass pass, void **state, size_t *scratch) {
    static const int k_role[3][3] = {{DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST},
                                     {DNNL_ARG_DIFF_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_DST},
                                     {DNNL_ARG_SRC, DNNL_ARG_DIFF_WEIGHTS, DNNL_ARG_DIFF_DST}};
    mds m;
    dnnl_primitive_desc_t pd = exact_pd(p, pass, &m);
    RT_FAIL_IF(!pd, RT_E_UNSUPPORTED, "oneDNN: %s: no fast kernel for these shapes and layouts",
               rt_op_get(p->op)->name);
    const int *role = k_role[pass];
    rt_dnn_arg arg[3] = {{role[0], m.x}, {role[1], m.w}, {role[2], m.y}};
    rt_dnn_prim *s = NULL;
    rt_status st = rt_dnn_prim_create(&s, scratch, pd, arg, 3);
    dnnl_primitive_desc_destroy(pd);
    *state = s;
    return st;
}

static void run(const void *state, const rt_problem *p, conv_pass pass, void *out, const void *const *in,
                const rt_kern_ctx *ctx) {
    const int64_t members = members_of(p, pass);
    const void *data[3];
    for (int64_t m = 0; m < members; m++) {
        for (int i = 0; i < 3; i++) {
            const int place = k_place[pass][i];
            const size_t bytes = rt_desc_bytes(desc_at(p, place)) / (size_t)members;
            data[i] = (const char *)(place < 0 ? out : in[place]) + (size_t)m * bytes;
        }
        rt_dnn_prim_run(state, data, ctx);
    }
}

#define CONV_KERNEL(name, PASS)                                                                              \
    static bool name##_supports(const rt_problem *p) {                                                       \
        return supports(p, PASS);                                                                            \
    }                                                                                                        \
    static void name##_layouts(const rt_problem *p, rt_layout *in, rt_layout *out) {                         \
        layouts(p, PASS, in, out);                                                                           \
    }                                                                                                        \
    static rt_status name##_prepare(const rt_problem *p, void **state, size_t *scratch) {                    \
        return prepare(p, PASS, state, scratch);                                                             \
    }                                                                                                        \
    static void name##_run(const void *state, const rt_problem *p, void *out, const void *const *in,         \
                           const rt_kern_ctx *ctx) {                                                         \
        run(state, p, PASS, out, in, ctx);                                                                   \
    }                                                                                                        \
    const rt_kern rt_k_##name##_f32__onednn = {                                                              \
        .impl = "onednn",                                                                                    \
        .supports = name##_supports,                                                                         \
        .layouts = name##_layouts,                                                                           \
        .prepare = name##_prepare,                                                                           \
        .release = rt_dnn_prim_release,                                                                      \
        .attach = rt_dnn_prim_attach,                                                                        \
        .run = name##_run,                                                                                   \
    };

CONV_KERNEL(conv2d, FWD)
CONV_KERNEL(conv2d_bwd_data, BWD_DATA)
CONV_KERNEL(conv2d_bwd_weights, BWD_WEIGHTS)
