/*
 * pass_simplify.c - algebra that costs nothing: identities go, nested scalings merge, reshapes collapse. What
 * stands before a batch normalisation with statistics of the batch cannot shift it, so the sum of its gradient
 * over the batch, the gradient of a bias there, is zero. Shared sub-expressions are already one node (the graph
 * hash-conses), dead ones are dropped when a rewrite ends.
 */
#include "base/alloc.h"
#include "plan/plan_int.h"

static bool is_identity_scale(const rt_node *d) {
    return d->op == RT_OP_SCALE && d->attr.alpha == 1.0 && d->attr.beta == 0.0;
}

/* The gradient with respect to the input of a batch normalisation in training. */
static bool is_bn_gradient(const rt_graph *g, const rt_node *d) {
    if (d->op != RT_OP_BN_GAPPLY)
        return false;
    const rt_node *k = rt_graph_node(g, d->in[2]);
    if (k->op != RT_OP_BN_GCOEF)
        return false;
    const rt_node *s = rt_graph_node(g, k->in[0]);
    return s->op == RT_OP_BN_GSTATS && s->in[0] == d->in[0] && s->in[1] == d->in[1];
}

static rt_status zeros(rt_val *out, rt_graph *g, rt_shape s) {
    double *data = NULL;
    RT_TRY(rt_calloc(&data, (size_t)rt_shape_elems(&s), sizeof *data));
    *out = rt_graph_const(g, s, data);
    rt_free(data);
    return RT_OK;
}

/* The value of the new graph that stands for node v of the old one, or 0 if v has to be copied. */
static rt_val simplified(rt_rewrite *w, const rt_node *d) {
    const rt_val x = d->nin > 0 ? w->map[d->in[0]] : 0;
    if (x == 0)
        return 0;
    const rt_node *p = rt_graph_node(w->to, x);
    if (d->op == RT_OP_STOP_GRAD || is_identity_scale(d))
        return x;
    if (d->op == RT_OP_SCALE && p->op == RT_OP_SCALE) {
        const double a = d->attr.alpha * p->attr.alpha, b = d->attr.alpha * p->attr.beta + d->attr.beta;
        return rt_scale(w->to, p->in[0], a, b);
    }
    if (d->op == RT_OP_RESHAPE) {
        if (rt_shape_equal(&d->type.shape, &p->type.shape))
            return x;
        if (p->op == RT_OP_RESHAPE)
            return rt_graph_op(w->to, RT_OP_RESHAPE, d->attr, &(rt_val){p->in[0]}, 1);
    }
    return 0;
}

rt_status rt_pass_simplify(rt_compile *k) {
    rt_graph **g = &k->p->g;
    rt_rewrite w;
    RT_TRY(rt_rewrite_begin(&w, *g));
    rt_status st = RT_OK;
    for (rt_val v = 1; v < (rt_val)rt_graph_count(*g); v++) {
        const rt_node *d = rt_graph_node(*g, v);
        rt_val s = simplified(&w, d);
        if (d->op == RT_OP_CHAN_SUM && is_bn_gradient(*g, rt_graph_node(*g, d->in[0])))
            RT_TRY_GOTO(zeros(&s, w.to, d->type.shape));
        if (s != 0)
            w.map[v] = s;
        else
            rt_rewrite_copy(&w, v);
    }
    RT_TRY_GOTO(rt_rewrite_end(&w, g));
done:
    rt_rewrite_abandon(&w);
    return st;
}
