/*
 * pass_select.c - each node gets its kernel: the first of kern.def that supports the problem with the
 * layouts the layout pass left. Preparing it here means that nothing can fail, and nothing is decided, when
 * steps run. Statistics of a fused convolution whose kernel takes them in its store have no kernel: they ride
 * on that step.
 */
#include "base/alloc.h"
#include "plan/plan_int.h"

/* The step of the fused convolution that computes the statistics d, or NULL. */
static rt_pstep *carrier(const rt_plan *p, const rt_vinfo *vi, const rt_node *d) {
    if (d->op != RT_OP_BN_STATS && d->op != RT_OP_BN_GSTATS)
        return NULL;
    const rt_node *f = rt_graph_node(p->g, d->in[0]);
    if (f->op != RT_OP_FUSED_CONV || vi[d->in[0]].step < 0)
        return NULL;
    rt_pstep *s = &p->step[vi[d->in[0]].step];
    const rt_chain_step *last = &f->chain->step[f->chain->n - 1];
    bool same = last->op == d->op && rt_attr_equal(&last->attr, &d->attr) && s->kern->sides && s->side == 0;
    for (int i = 1; i < d->nin; i++)
        same = same && f->in[last->arg[i - 1]] == d->in[i];
    return same ? s : NULL;
}

static void count_leaves(rt_plan *p) {
    for (rt_val v = 1; v < (rt_val)rt_graph_count(p->g); v++) {
        const rt_node *d = rt_graph_node(p->g, v);
        int *n = d->leaf == RT_LEAF_INPUT   ? &p->ninputs
                 : d->leaf == RT_LEAF_FEED  ? &p->nfeeds
                 : d->leaf == RT_LEAF_PARAM ? &p->nslots
                                            : NULL;
        if (n != NULL)
            *n = RT_MAX(*n, d->slot + 1);
    }
    p->noutputs = rt_graph_outputs(p->g);
}

rt_status rt_pass_select(rt_compile *k) {
    rt_plan *p = k->p;
    const rt_choice c = k->choice;
    const rt_graph *g = p->g;
    const rt_val n = (rt_val)rt_graph_count(g);
    count_leaves(p);
    RT_TRY(rt_calloc(&k->vi, n, sizeof *k->vi));
    rt_vinfo *vi = k->vi;
    RT_TRY(rt_arena_alloc(&p->arena, &p->step, n * sizeof *p->step));
    for (rt_val v = 1; v < n; v++) {
        const rt_node *d = rt_graph_node(g, v);
        vi[v].step = -1;
        vi[v].output = -1;
        if (d->leaf != RT_LEAF_NONE)
            continue;
        if (rt_is_view(g, v)) {
            const rt_val x = d->in[0];
            vi[v].view_of = vi[x].view_of != 0 ? vi[x].view_of : x;
            continue;
        }
        rt_pstep *s = &p->step[p->nstep];
        s->v = v;
        RT_TRY(rt_problem_make(&s->p, &p->arena, g, v, NULL, d->layout));
        s->p.frozen = c.frozen;
        RT_TRY(rt_arena_alloc(&p->arena, &s->in, (size_t)(d->nin > 0 ? d->nin : 1) * sizeof *s->in));
        rt_pstep *with = carrier(p, vi, d);
        if (with != NULL) {
            vi[v].step = with->side = (int32_t)p->nstep++;
            s->rides = true;
            continue;
        }
        const rt_kern *list[16];
        int count = 0;
        RT_TRY(rt_kern_list(d->op, rt_graph_dtype(g), c.mask, list, 16, &count));
        for (int i = 0; i < count && s->kern == NULL; i++)
            if (list[i]->supports == NULL || list[i]->supports(&s->p))
                s->kern = list[i];
        RT_FAIL_IF(s->kern == NULL, RT_E_UNSUPPORTED, "no kernel for %s", rt_op_get(d->op)->name);
        vi[v].step = (int32_t)p->nstep++;
        if (s->kern->prepare != NULL)
            RT_TRY(s->kern->prepare(&s->p, &s->state, &s->scratch));
    }
    return RT_OK;
}
