/*
 * pass_simplify.c - algebra that costs nothing: identities go, nested scalings merge, reshapes collapse.
 * Shared sub-expressions are already one node (the graph hash-conses), dead ones are dropped when a rewrite
 * ends.
 */
#include "plan/plan_int.h"

static bool is_identity_scale(const rt_node *d) {
    return d->op == RT_OP_SCALE && d->attr.alpha == 1.0 && d->attr.beta == 0.0;
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

rt_status rt_pass_simplify(rt_graph **g) {
    rt_rewrite w;
    RT_TRY(rt_rewrite_begin(&w, *g));
    for (rt_val v = 1; v < (rt_val)rt_graph_count(*g); v++) {
        const rt_val s = simplified(&w, rt_graph_node(*g, v));
        if (s != 0)
            w.map[v] = s;
        else
            rt_rewrite_copy(&w, v);
    }
    rt_graph *out = NULL;
    RT_TRY(rt_rewrite_end(&w, &out));
    rt_graph_destroy(g);
    *g = out;
    return RT_OK;
}
