/*
 * onnx_network.c - the graph of a network in evaluation mode, operation by operation, as ONNX nodes.
 *
 * A batched value of M groups is one tensor of M N rows, member-major, as in our own kernels; where members
 * differ (r, s and biases of a BatchEnsemble, batch normalisation of each) it is seen as (M, N, row...), so
 * that the factors are broadcast over an axis of their own and the weight is shared.
 *
 * A bias and a batch normalisation that alone read a convolution go into it:
 *
 *     a = gamma / sqrt(var + eps)      w' = a w      b' = a (b - mean) + beta
 *
 * so that runtimes find the form they are fast with; a bias behind a product likewise. Weights that were not
 * folded are the floats of the model under their names.
 */
#include "base/alloc.h"
#include "export/export_int.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct walk {
    rt_onnx *o;
    const rt_graph *g;
    const rt_params *params;
    const float *block;
    char prefix[32]; /* of the names of parameters */
    bool fold;
    rt_onnx_val *at; /* by value of the graph */
    int *uses;
    rt_val *reader; /* the last one; the only one where uses is 1 */
} walk;

static const rt_node *node(const walk *w, rt_val v) {
    return rt_graph_node(w->g, v);
}

static const float *values(const walk *w, rt_val v) {
    const rt_node *n = node(w, v);
    RT_ASSERT(n->leaf == RT_LEAF_PARAM);
    return w->block + rt_params_get(w->params, n->slot)->offset;
}

static rt_onnx_val named(const walk *w, const char *name, const rt_shape *s, const float *data) {
    char full[300];
    snprintf(full, sizeof full, "%s%s", w->prefix, name);
    return rt_onnx_tensor(w->o, full, s, data);
}

static rt_onnx_val leaf(const walk *w, const rt_node *n) {
    if (n->leaf == RT_LEAF_PARAM)
        return named(w, n->name, &n->type.shape, w->block + rt_params_get(w->params, n->slot)->offset);
    const int64_t count = rt_shape_elems(&n->type.shape);
    float *data = rt_onnx_floats(w->o, count);
    for (int64_t i = 0; data != NULL && i < count; i++)
        data[i] = (float)n->data[i];
    return named(w, "input.standard", &n->type.shape, data);
}

/* The tensor of a value; leaves are written when they are first read. */
static rt_onnx_val get(walk *w, rt_val v) {
    if (w->at[v] == NULL && node(w, v)->op == RT_OP_NONE)
        w->at[v] = leaf(w, node(w, v));
    return w->at[v];
}

/* ---- members ---- */

/* x as (M, N, row...) or back as (M N, row...). */
static rt_onnx_val regroup(walk *w, rt_onnx_val x, const rt_type *t, int members) {
    int64_t d[RT_MAX_RANK + 1];
    int n = 0;
    if (members > 1)
        d[n++] = members;
    d[n++] = -1;
    for (int i = 1; i < t->shape.rank; i++)
        d[n++] = t->shape.d[i];
    return rt_onnx_reshape(w->o, x, d, n);
}

/* x (rows, C, space...) with b (C), or with b (M, C) per member. */
static rt_onnx_val by_channel(walk *w, const char *op, const rt_type *t, rt_onnx_val x, rt_onnx_val b,
                              const rt_shape *s) {
    const int members = s->rank == 2 ? (int)s->d[0] : 1;
    int64_t d[RT_MAX_RANK + 1];
    int n = 0;
    if (members > 1) {
        d[n++] = members;
        d[n++] = 1;
    }
    d[n++] = s->d[s->rank - 1];
    for (int i = 2; i < t->shape.rank; i++)
        d[n++] = 1;
    if (n > 1)
        b = rt_onnx_reshape(w->o, b, d, n);
    if (members < 2)
        return rt_onnx_binary(w->o, op, x, b);
    return regroup(w, rt_onnx_binary(w->o, op, regroup(w, x, t, members), b), t, 1);
}

static rt_onnx_val lower_chan(walk *w, const rt_node *n) {
    return by_channel(w, n->op == RT_OP_MUL_CHAN ? "Mul" : "Add", &n->type, get(w, n->in[0]),
                      get(w, n->in[1]), &node(w, n->in[1])->type.shape);
}

static rt_onnx_val lower_tile(walk *w, const rt_node *n) {
    int64_t times[RT_MAX_RANK] = {n->attr.members};
    for (int i = 1; i < n->type.shape.rank; i++)
        times[i] = 1;
    return rt_onnx_binary(w->o, "Tile", get(w, n->in[0]), rt_onnx_ints(w->o, times, n->type.shape.rank));
}

static rt_onnx_val lower_concat(walk *w, const rt_node *n) {
    rt_onnx_val in[RT_OP_MAX_IN];
    for (int i = 0; i < n->nin; i++)
        in[i] = get(w, n->in[i]);
    return rt_onnx_concat(w->o, in, n->nin, 0);
}

/* ---- layers ---- */

static bool is_plain_bias(const walk *w, const rt_node *n) {
    return n->op == RT_OP_ADD_CHAN && node(w, n->in[1])->leaf == RT_LEAF_PARAM &&
           node(w, n->in[1])->type.shape.rank == 1;
}

static bool is_plain_norm(const walk *w, const rt_node *n) {
    const rt_node *coef = n->op == RT_OP_BN_APPLY ? node(w, n->in[1]) : NULL;
    return coef != NULL && coef->op == RT_OP_BN_COEF_EVAL && coef->attr.members < 2;
}

/* The convolution or product that n, through a bias, takes in; 0: none. */
static rt_val base_of(const walk *w, const rt_node *n) {
    rt_val v = n->in[0];
    const rt_node *below = node(w, v);
    const bool norm = is_plain_norm(w, n);
    if (!norm && !is_plain_bias(w, n))
        return 0;
    if (w->uses[v] != 1)
        return 0;
    if (norm && is_plain_bias(w, below) && w->uses[below->in[0]] == 1) {
        v = below->in[0];
        below = node(w, v);
    }
    if (below->op == RT_OP_CONV2D)
        return norm && !w->fold ? 0 : v;
    return !norm && below->op == RT_OP_MATMUL && below->attr.tb && !below->attr.ta ? v : 0;
}

/* Is v taken in by its only reader? */
static bool absorbed(const walk *w, rt_val v) {
    if (w->uses[v] != 1)
        return false;
    const rt_node *r = node(w, w->reader[v]);
    if (r->in[0] != v)
        return false;
    if (base_of(w, r) != 0)
        return true;
    /* a convolution, behind whose bias stands a normalisation: that takes both */
    return is_plain_bias(w, r) && w->uses[w->reader[v]] == 1 && node(w, v)->op == RT_OP_CONV2D &&
           base_of(w, node(w, w->reader[w->reader[v]])) == v;
}

static rt_onnx_val conv(walk *w, const rt_node *n, rt_onnx_val weight, rt_onnx_val bias) {
    const rt_attr *a = &n->attr;
    const rt_shape *k = &node(w, n->in[1])->type.shape;
    const int64_t kernel[2] = {k->d[2], k->d[3]}, stride[2] = {a->stride, a->stride},
                  pad[4] = {a->pad, a->pad, a->pad, a->pad};
    const rt_onnx_attr attrs[] = {RT_ONNX_IS("kernel_shape", kernel, 2),
                                  RT_ONNX_IS("strides", stride, 2),
                                  RT_ONNX_IS("pads", pad, 4),
                                  {0}};
    return rt_onnx_node(w->o, "Conv", (rt_onnx_val[]){get(w, n->in[0]), weight, bias}, bias != NULL ? 3 : 2,
                        attrs);
}

static rt_onnx_val gemm(walk *w, const rt_node *n, rt_onnx_val bias) {
    const rt_onnx_attr attrs[] = {RT_ONNX_I("transA", n->attr.ta), RT_ONNX_I("transB", n->attr.tb), {0}};
    return rt_onnx_node(w->o, "Gemm", (rt_onnx_val[]){get(w, n->in[0]), get(w, n->in[1]), bias},
                        bias != NULL ? 3 : 2, attrs);
}

static rt_onnx_val lower_conv(walk *w, const rt_node *n) {
    return conv(w, n, get(w, n->in[1]), NULL);
}

static rt_onnx_val lower_matmul(walk *w, const rt_node *n) {
    return gemm(w, n, NULL);
}

static rt_onnx_val lower_bias(walk *w, const rt_node *n) {
    const rt_val below = base_of(w, n);
    if (below == 0)
        return lower_chan(w, n);
    const rt_onnx_val bias = get(w, n->in[1]);
    const rt_node *c = node(w, below);
    return c->op == RT_OP_CONV2D ? conv(w, c, get(w, c->in[1]), bias) : gemm(w, c, bias);
}

/* Affine map per channel of BN_COEF_EVAL: y = a x + b. */
static void affine(const walk *w, const rt_node *coef, int64_t c, double *a, double *b) {
    const float *mean = values(w, coef->in[0]), *var = values(w, coef->in[1]),
                *gamma = values(w, coef->in[2]), *beta = values(w, coef->in[3]);
    const rt_shape *g = &node(w, coef->in[2])->type.shape;
    const int64_t affine_at = c % rt_shape_elems(g); /* shared by members, or one of each */
    *a = (double)gamma[affine_at] / sqrt((double)var[c] + coef->attr.alpha);
    *b = (double)beta[affine_at] - (double)mean[c] * *a;
}

static rt_onnx_val folded(walk *w, const rt_node *n, const rt_node *c) {
    const rt_node *coef = node(w, n->in[1]), *kernel = node(w, c->in[1]), *below = node(w, n->in[0]);
    const rt_shape *s = &kernel->type.shape;
    const int64_t out = s->d[0], each = rt_shape_elems(s) / out;
    const float *from = values(w, c->in[1]);
    const float *old = below != c ? values(w, below->in[1]) : NULL; /* the bias between them */
    float *weight = rt_onnx_floats(w->o, out * each), *bias = rt_onnx_floats(w->o, out);
    for (int64_t i = 0; weight != NULL && bias != NULL && i < out; i++) {
        double a, b;
        affine(w, coef, i, &a, &b);
        bias[i] = (float)(b + (old != NULL ? a * (double)old[i] : 0));
        for (int64_t k = 0; k < each; k++)
            weight[i * each + k] = (float)(a * (double)from[i * each + k]);
    }
    char name[256];
    const char *dot = strrchr(kernel->name, '.');
    snprintf(name, sizeof name, "%.*s.bias", (int)(dot != NULL ? dot - kernel->name : 200), kernel->name);
    const rt_shape rows = rt_shape1(out);
    const rt_onnx_val tw = named(w, kernel->name, s, weight), tb = named(w, name, &rows, bias);
    return conv(w, c, tw, tb);
}

/* One set of statistics per member: the affine maps are tensors of their own, (M, C). */
static rt_onnx_val member_norm(walk *w, const rt_node *n, const rt_node *coef) {
    const rt_shape s = node(w, coef->in[0])->type.shape;
    const int64_t count = rt_shape_elems(&s);
    float *a = rt_onnx_floats(w->o, count), *b = rt_onnx_floats(w->o, count);
    for (int64_t i = 0; a != NULL && b != NULL && i < count; i++) {
        double va, vb;
        affine(w, coef, i, &va, &vb);
        a[i] = (float)va;
        b[i] = (float)vb;
    }
    char name[256];
    const char *gamma = node(w, coef->in[2])->name, *dot = strrchr(gamma, '.');
    snprintf(name, sizeof name, "%.*s.scale", (int)(dot != NULL ? dot - gamma : 200), gamma);
    const rt_onnx_val ta = named(w, name, &s, a);
    snprintf(name, sizeof name, "%.*s.shift", (int)(dot != NULL ? dot - gamma : 200), gamma);
    const rt_onnx_val tb = named(w, name, &s, b);
    return by_channel(w, "Add", &n->type, by_channel(w, "Mul", &n->type, get(w, n->in[0]), ta, &s), tb, &s);
}

static rt_onnx_val lower_norm(walk *w, const rt_node *n) {
    const rt_val below = base_of(w, n);
    const rt_node *coef = node(w, n->in[1]);
    if (below != 0)
        return folded(w, n, node(w, below));
    if (coef->attr.members > 1)
        return member_norm(w, n, coef);
    const rt_onnx_attr attrs[] = {RT_ONNX_F("epsilon", (float)coef->attr.alpha), {0}};
    return rt_onnx_node(w->o, "BatchNormalization",
                        (rt_onnx_val[]){get(w, n->in[0]), get(w, coef->in[2]), get(w, coef->in[3]),
                                        get(w, coef->in[0]), get(w, coef->in[1])},
                        5, attrs);
}

/* ---- the rest ---- */

static rt_onnx_val lower_relu(walk *w, const rt_node *n) {
    if (n->attr.alpha == 0)
        return rt_onnx_unary(w->o, "Relu", get(w, n->in[0]));
    const rt_onnx_attr attrs[] = {RT_ONNX_F("alpha", (float)n->attr.alpha), {0}};
    const rt_onnx_val x = get(w, n->in[0]);
    return rt_onnx_node(w->o, "LeakyRelu", &x, 1, attrs);
}

static rt_onnx_val lower_softplus(walk *w, const rt_node *n) {
    return rt_onnx_unary(w->o, "Softplus", get(w, n->in[0]));
}

static rt_onnx_val lower_add(walk *w, const rt_node *n) {
    return rt_onnx_add(w->o, get(w, n->in[0]), get(w, n->in[1]));
}

static rt_onnx_val lower_scale(walk *w, const rt_node *n) {
    return rt_onnx_affine(w->o, get(w, n->in[0]), n->attr.alpha, n->attr.beta);
}

static rt_onnx_val lower_reshape(walk *w, const rt_node *n) {
    return regroup(w, get(w, n->in[0]), &n->type, 1);
}

static rt_onnx_val lower_maxpool(walk *w, const rt_node *n) {
    const rt_attr *a = &n->attr;
    const int64_t kernel[2] = {a->kh, a->kw}, stride[2] = {a->stride, a->stride},
                  pad[4] = {a->pad, a->pad, a->pad, a->pad};
    const rt_onnx_attr attrs[] = {RT_ONNX_IS("kernel_shape", kernel, 2),
                                  RT_ONNX_IS("strides", stride, 2),
                                  RT_ONNX_IS("pads", pad, 4),
                                  {0}};
    const rt_onnx_val x = get(w, n->in[0]);
    return rt_onnx_node(w->o, "MaxPool", &x, 1, attrs);
}

static rt_onnx_val lower_avgpool(walk *w, const rt_node *n) {
    return regroup(w, rt_onnx_unary(w->o, "GlobalAveragePool", get(w, n->in[0])), &n->type, 1);
}

static rt_onnx_val lower_nothing(walk *w, const rt_node *n) { /* its reader looks at its inputs */
    (void)w, (void)n;
    return NULL;
}

typedef rt_onnx_val (*lowering)(walk *w, const rt_node *n);
static const lowering k_lower[RT_OP_COUNT] = {[RT_OP_ADD] = lower_add,
                                              [RT_OP_SCALE] = lower_scale,
                                              [RT_OP_RELU] = lower_relu,
                                              [RT_OP_SOFTPLUS] = lower_softplus,
                                              [RT_OP_ADD_CHAN] = lower_bias,
                                              [RT_OP_MUL_CHAN] = lower_chan,
                                              [RT_OP_RESHAPE] = lower_reshape,
                                              [RT_OP_TILE_MEMBERS] = lower_tile,
                                              [RT_OP_CONCAT_MEMBERS] = lower_concat,
                                              [RT_OP_MATMUL] = lower_matmul,
                                              [RT_OP_CONV2D] = lower_conv,
                                              [RT_OP_MAXPOOL] = lower_maxpool,
                                              [RT_OP_GLOBAL_AVGPOOL] = lower_avgpool,
                                              [RT_OP_BN_COEF_EVAL] = lower_nothing,
                                              [RT_OP_BN_APPLY] = lower_norm};

static rt_status lower_one(walk *w, rt_val v) {
    const rt_node *n = node(w, v);
    if (n->op == RT_OP_NONE || absorbed(w, v))
        return RT_OK;
    RT_FAIL_IF(k_lower[n->op] == NULL, RT_E_UNSUPPORTED, "export: operation %s has no form in ONNX here",
               rt_op_get(n->op)->name);
    w->at[v] = k_lower[n->op](w, n);
    return rt_onnx_status(w->o);
}

/* One network over the graph: the tensor of (student members N, outputs). */
static rt_status lower_network(walk *w, rt_val out, rt_val in, rt_onnx_val x, rt_onnx_val *y) {
    const int64_t count = rt_graph_count(w->g);
    memset(w->at, 0, (size_t)count * sizeof *w->at);
    w->at[in] = x;
    for (rt_val v = 1; v < (rt_val)count; v++)
        RT_TRY(lower_one(w, v));
    *y = w->at[out];
    return RT_OK;
}

static void count_uses(walk *w) {
    for (rt_val v = 1; v < (rt_val)rt_graph_count(w->g); v++)
        for (int i = 0; i < node(w, v)->nin; i++) {
            w->uses[node(w, v)->in[i]]++;
            w->reader[node(w, v)->in[i]] = v;
        }
}

static rt_status lower_model(rt_onnx *o, const rt_model *m, rt_onnx_val x, bool fold, rt_onnx_val *out) {
    const int networks = rt_model_networks(m);
    walk w = {.o = o, .params = rt_model_params(m), .fold = fold};
    rt_graph *g = NULL;
    rt_onnx_val *y = NULL;
    rt_status st;
    RT_TRY_GOTO(rt_graph_create(&g, 1, RT_DTYPE_F32));
    rt_build b = {.g = g, .params = (rt_params *)(uintptr_t)w.params}; /* nothing is declared */
    const rt_val in = rt_graph_input(g, "x", RT_DTYPE_F32, rt_model_input(m), 1);
    const rt_val z = rt_student_forward(rt_model_student(m), &b, in);
    RT_TRY_GOTO(rt_graph_status(g));
    w.g = g;
    const size_t count = (size_t)rt_graph_count(g);
    RT_TRY_GOTO(rt_calloc(&w.at, count, sizeof *w.at));
    RT_TRY_GOTO(rt_calloc(&w.uses, count, sizeof *w.uses));
    RT_TRY_GOTO(rt_calloc(&w.reader, count, sizeof *w.reader));
    RT_TRY_GOTO(rt_calloc(&y, (size_t)networks, sizeof *y));
    count_uses(&w);
    for (int i = 0; i < networks; i++) {
        if (networks > 1)
            snprintf(w.prefix, sizeof w.prefix, "members.%d.", i);
        w.block = rt_model_block(m, i);
        RT_TRY_GOTO(lower_network(&w, z, in, x, &y[i]));
    }
    *out = rt_onnx_reshape(o, rt_onnx_concat(o, y, networks, 0),
                           (int64_t[]){rt_model_members(m), -1, rt_model_outputs(m)}, 3);
    st = rt_onnx_status(o);
done:
    rt_free(w.at);
    rt_free(w.uses);
    rt_free(w.reader);
    rt_free(y);
    rt_graph_destroy(&g);
    return st;
}

rt_onnx_val rt_onnx_network(rt_onnx *o, const rt_model *m, rt_onnx_val x, bool fold) {
    rt_onnx_val out = NULL;
    rt_onnx_fail(o, lower_model(o, m, x, fold, &out));
    return out;
}
