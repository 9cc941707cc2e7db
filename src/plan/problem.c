/*
 * problem.c - a node of the graph as the problem a kernel is asked to solve.
 */
#include "plan/plan_int.h"
#include "base/alloc.h"

rt_status rt_problem_make(rt_problem *out, rt_arena *a, const rt_graph *g, rt_val v, const rt_layout *in,
                          rt_layout outl) {
    const rt_node *d = rt_graph_node(g, v);
    rt_desc *desc = NULL;
    int32_t *groups = NULL;
    const size_t n = (size_t)(d->nin > 0 ? d->nin : 1);
    RT_TRY(rt_arena_alloc(a, &desc, n * sizeof *desc));
    RT_TRY(rt_arena_alloc(a, &groups, n * sizeof *groups));
    for (int i = 0; i < d->nin; i++) {
        const rt_node *x = rt_graph_node(g, d->in[i]);
        desc[i] = rt_desc_make(x->type.dtype, x->type.shape, in != NULL ? in[i] : x->layout);
        groups[i] = x->type.groups;
    }
    *out = (rt_problem){.op = d->op,
                        .attr = d->attr,
                        .chain = d->chain,
                        .nin = d->nin,
                        .in = desc,
                        .in_groups = groups,
                        .out = rt_desc_make(d->type.dtype, d->type.shape, outl),
                        .out_groups = d->type.groups,
                        .n = rt_graph_batch(g),
                        .kind = d->type.kind};
    return RT_OK;
}

bool rt_problem_suits(const rt_kern *k, const rt_problem *p, rt_layout *in, rt_layout *out) {
    rt_desc desc[RT_OP_MAX_IN];
    rt_problem q = *p;
    for (int i = 0; i < p->nin; i++)
        in[i] = p->in[i].layout;
    *out = p->out.layout;
    k->layouts(p, in, out);
    for (int i = 0; i < p->nin; i++) {
        desc[i] = p->in[i];
        desc[i].layout = in[i];
    }
    q.in = desc;
    q.out.layout = *out;
    return k->supports == NULL || k->supports(&q);
}

/* A RESHAPE of plain memory is another name for it. */
bool rt_is_view(const rt_graph *g, rt_val v) {
    const rt_node *d = rt_graph_node(g, v);
    return d->op == RT_OP_RESHAPE && d->layout == RT_LAYOUT_PLAIN &&
           rt_graph_node(g, d->in[0])->layout == RT_LAYOUT_PLAIN;
}

rt_status rt_actions_add(rt_actions *l, rt_action a) {
    if (l->n == l->cap) {
        const int64_t cap = l->cap > 0 ? 2 * l->cap : 16;
        RT_TRY(rt_realloc(&l->a, (size_t)l->cap * sizeof *l->a, (size_t)cap * sizeof *l->a));
        l->cap = cap;
    }
    l->a[l->n++] = a;
    return RT_OK;
}
