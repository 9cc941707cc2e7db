/*
 * perm_build.c - the network of permAVG (Norris Mitchell 2021) as a graph.
 *
 * The thesis averages activations before each ReLU,
 *
 *     y_l = (1/N) sum_n P_l,n (W_l,n Q_(l-1),n relu(y_(l-1)) + b_l,n)
 *
 * where P are doubly stochastic matrices and Q = P^T (or P^-1) undoes them on the next layer's inputs. All of
 * that is linear in what enters the layer, so the same function is the plain network with the parameters
 *
 *     W_l = (1/N) sum_n P_l,n W_l,n Q_(l-1),n        b_l = (1/N) sum_n P_l,n b_l,n
 *
 * and that is how it is built here: X -> Sinkhorn -> P -> averaged parameters -> the network's own forward
 * pass over these values. It costs one forward pass whatever N, works for every architecture whose symmetries
 * are known, and the gradients of X are those of any graph.
 *
 * A parameter is seen as (axis 0, the rest, axis 1), axis 1 last, so that both sides are plain products:
 *
 *     conv (o, i, k, k) -> (o, k k, i):  (o k k, i) Q -> P (o, k k i) -> sum over models -> (o, i, k, k)
 *
 * A dense layer after a map of h x w has i = channels and "the rest" h w.
 */
#include "average/perm.h"
#include "base/alloc.h"
#include <stdio.h>

int64_t rt_perm_offset(const rt_symmetry *s, int model, int bundle) {
    int64_t all = 0, before = 0;
    for (int k = 0; k < s->bundles; k++) {
        before += k < bundle ? s->bundle[k].n * s->bundle[k].n : 0;
        all += s->bundle[k].n * s->bundle[k].n;
    }
    return (model - 1) * all + before;
}

int64_t rt_perm_floats(const rt_symmetry *s, int models) {
    return rt_perm_offset(s, models, 0);
}

typedef struct builder {
    rt_graph *g;
    rt_params *params;
    const rt_symmetry *s;
    const rt_perm_graph *p;
    const double *weight;
    rt_val *x, *pm, *q; /* (models, bundles): X, P, Q; of model 0 nothing, no Q where it is P^T */
} builder;

static rt_val identity(rt_graph *g, int64_t n) {
    double *one = NULL;
    const rt_status st = rt_calloc(&one, (size_t)(n * n), sizeof *one);
    if (st != RT_OK) {
        rt_graph_set_error(g, st);
        return 0;
    }
    for (int64_t i = 0; i < n; i++)
        one[i * n + i] = 1;
    const rt_val v = rt_graph_const(g, rt_shape2(n, n), one);
    rt_free(one);
    return v;
}

/* Q of the inverse kind, (n, n): P^-1 or (P^T P + ridge I)^-1 P^T. */
static rt_val inverse(rt_graph *g, rt_val pm, int64_t n, const rt_perm_options *o) {
    if (o->ridge <= 0)
        return rt_matinv(g, pm);
    const rt_val square = rt_matmul(g, pm, pm, true, false);
    return rt_solve(g, rt_add(g, square, rt_scale(g, identity(g, n), o->ridge, 0)), rt_transpose(g, pm),
                    false);
}

static void build_matrices(builder *b, const rt_perm_options *o) {
    char name[32];
    for (int m = 1; m < b->p->models; m++)
        for (int k = 0; k < b->s->bundles; k++) {
            const int64_t n = b->s->bundle[k].n;
            const int at = m * b->s->bundles + k;
            snprintf(name, sizeof name, "X:%d:%d", m, k);
            b->x[at] = rt_graph_param(b->g, rt_perm_slot(b->p, b->s, m, k), name, rt_shape2(n, n));
            const rt_attr attr = {
                .alpha = o->tau, .beta = o->floor, .count = o->iterations, .index = o->gradient};
            b->pm[at] = rt_graph_op(b->g, RT_OP_SINKHORN, attr, &b->x[at], 1);
            b->q[at] = o->inverse ? inverse(b->g, b->pm[at], n, o) : 0;
        }
}

/* A parameter as (first, rest, last): see above. */
typedef struct view {
    int64_t first, rest, last;
    int out, in; /* bundles, -1: none */
} view;

static view view_of(const builder *b, int slot) {
    const rt_shape *sh = &rt_params_get(b->params, slot)->shape;
    view v = {1, 1, 1, -1, -1};
    for (int a = 0; a < sh->rank; a++) {
        const rt_sym_axis axis = rt_symmetry_axis(b->s, slot, a);
        const int64_t n = axis.bundle < 0 ? sh->d[a] : b->s->bundle[axis.bundle].n;
        if (a == 0) {
            v.out = axis.bundle;
            v.first = n;
            v.rest *= axis.bundle < 0 ? 1 : axis.repeat;
        } else if (a == 1 && axis.bundle >= 0) {
            v.in = axis.bundle;
            v.last = n;
            v.rest *= axis.repeat;
        } else {
            if (axis.bundle >= 0)
                rt_graph_set_error(b->g, rt_error_set(RT_E_UNSUPPORTED, __FILE__, __LINE__,
                                                      "parameter %s: axis %d cannot be permuted softly",
                                                      rt_params_get(b->params, slot)->name, a));
            v.rest *= n;
        }
    }
    return v;
}

/* Parameter `slot` of the averaged network. */
static rt_val average_of(const builder *b, int slot) {
    const rt_param *line = rt_params_get(b->params, slot);
    const view v = view_of(b, slot);
    const bool turned = v.in >= 0 && v.rest > 1;
    rt_graph *g = b->g;
    rt_val sum = 0;
    for (int m = 0; m < b->p->models; m++) {
        rt_val w = rt_graph_param(g, m * rt_params_count(b->params) + slot, line->name, line->shape);
        if (turned)
            w = rt_transpose(g, rt_reshape(g, w, rt_shape3(v.first, v.last, v.rest)));
        const rt_val *pm = b->pm + m * b->s->bundles, *q = b->q + m * b->s->bundles;
        if (m > 0 && v.in >= 0) {
            w = rt_reshape(g, w, rt_shape2(v.first * v.rest, v.last));
            w = q[v.in] ? rt_matmul(g, w, q[v.in], false, false) : rt_matmul(g, w, pm[v.in], false, true);
        }
        w = rt_reshape(g, w, rt_shape2(v.first, v.rest * v.last));
        if (m > 0 && v.out >= 0)
            w = rt_matmul(g, pm[v.out], w, false, false);
        w = rt_scale(g, w, b->weight[m], 0);
        sum = m == 0 ? w : rt_add(g, sum, w);
    }
    if (turned)
        sum = rt_transpose(g, rt_reshape(g, sum, rt_shape3(v.first, v.rest, v.last)));
    return rt_reshape(g, sum, line->shape);
}

static rt_status builder_begin(builder *b, rt_perm_graph *out, rt_params *params, const rt_symmetry *s,
                               int models, const double *weight, const rt_perm_options *o, int64_t batch,
                               rt_dtype dtype) {
    const int slots = rt_params_count(params);
    const size_t cells = (size_t)(models * s->bundles + 1);
    *out = (rt_perm_graph){.models = models, .state = models * slots, .x = (models + 1) * slots};
    *b = (builder){.params = params, .s = s, .p = out, .weight = weight};
    RT_TRY(rt_graph_create(&out->g, batch, dtype));
    b->g = out->g;
    RT_TRY(rt_calloc(&b->x, cells, sizeof *b->x));
    RT_TRY(rt_calloc(&b->pm, cells, sizeof *b->pm));
    RT_TRY(rt_calloc(&b->q, cells, sizeof *b->q));
    build_matrices(b, o);
    return rt_graph_status(b->g);
}

static void builder_end(builder *b) {
    rt_free(b->x);
    rt_free(b->pm);
    rt_free(b->q);
}

static rt_status emit_gradients(const builder *b, rt_val loss) {
    char name[32];
    const int bundles = b->s->bundles, n = (b->p->models - 1) * bundles;
    rt_val *grad = NULL;
    RT_TRY(rt_calloc(&grad, (size_t)n + 1, sizeof *grad));
    rt_status st = rt_graph_grad(b->g, loss, b->x + bundles, n, grad);
    for (int i = 0; i < n && st == RT_OK; i++) {
        snprintf(name, sizeof name, "grad:%d:%d", 1 + i / bundles, i % bundles);
        rt_graph_output(b->g, name, grad[i]);
    }
    rt_free(grad);
    return st;
}

rt_status rt_perm_build_step(rt_perm_graph *out, const rt_net *net, rt_params *params, const rt_symmetry *s,
                             int models, const double *weight, rt_perm_options o, int64_t batch,
                             rt_dtype dtype) {
    builder b = {0};
    rt_val *values = NULL;
    rt_status st = builder_begin(&b, out, params, s, models, weight, &o, batch, dtype);
    if (st != RT_OK)
        goto done;
    RT_TRY_GOTO(rt_calloc(&values, (size_t)rt_params_count(params), sizeof *values));
    for (int k = 0; k < rt_params_count(params); k++) {
        const rt_param *line = rt_params_get(params, k);
        values[k] = line->role == RT_ROLE_STATE ? rt_graph_param(b.g, out->state + k, line->name, line->shape)
                                                : average_of(&b, k);
    }
    const rt_val x = rt_graph_input(b.g, "x", dtype, rt_net_config(net)->input, 1);
    const rt_val label = rt_graph_input(b.g, "label", RT_DTYPE_I32, rt_shape0(), 1);
    rt_build build = {.g = b.g, .params = params, .train = true, .values = values};
    const rt_val logits = rt_net_forward(net, &build, x);
    const rt_val loss = rt_batch_mean(b.g, rt_ce_label(b.g, logits, label, 0));
    rt_graph_output(b.g, "loss", loss);
    rt_graph_output(b.g, "logits", logits);
    RT_TRY_GOTO(rt_graph_status(b.g));
    RT_TRY_GOTO(emit_gradients(&b, loss));
    st = rt_graph_status(b.g);
done:
    rt_free(values);
    builder_end(&b);
    if (st != RT_OK)
        rt_graph_destroy(&out->g);
    return st;
}

rt_status rt_perm_build_mean(rt_perm_graph *out, rt_params *params, const rt_symmetry *s, int models,
                             const double *weight, rt_perm_options o, rt_dtype dtype) {
    builder b = {0};
    char name[32];
    rt_status st = builder_begin(&b, out, params, s, models, weight, &o, 1, dtype);
    if (st != RT_OK)
        goto done;
    for (int k = 0; k < rt_params_count(params); k++) {
        snprintf(name, sizeof name, "mean:%d", k);
        rt_graph_output(b.g, name, average_of(&b, k));
    }
    for (int i = s->bundles; i < models * s->bundles; i++) {
        snprintf(name, sizeof name, "P:%d:%d", i / s->bundles, i % s->bundles);
        rt_graph_output(b.g, name, b.pm[i]);
    }
    st = rt_graph_status(b.g);
done:
    builder_end(&b);
    if (st != RT_OK)
        rt_graph_destroy(&out->g);
    return st;
}
