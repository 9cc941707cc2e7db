/*
 * rewrite.c - replaying a graph into a new one, node by node. A pass visits the old nodes in order, maps
 * each to a value of the new graph (copied, or replaced by something better) and ends; dead nodes are
 * dropped by the graph itself.
 */
#include "base/alloc.h"
#include "plan/plan_int.h"

rt_status rt_rewrite_begin(rt_rewrite *w, const rt_graph *from) {
    rt_status st = RT_OK;
    const size_t n = (size_t)rt_graph_count(from);
    *w = (rt_rewrite){.from = from};
    RT_TRY_GOTO(rt_graph_create(&w->to, rt_graph_batch(from), rt_graph_dtype(from)));
    RT_TRY_GOTO(rt_calloc(&w->map, n, sizeof *w->map));
    RT_TRY_GOTO(rt_calloc(&w->uses, n, sizeof *w->uses));
    for (rt_val v = 1; v < n; v++) {
        const rt_node *d = rt_graph_node(from, v);
        for (int i = 0; i < d->nin; i++)
            w->uses[d->in[i]]++;
    }
    for (int i = 0; i < rt_graph_outputs(from); i++)
        w->uses[rt_graph_get_output(from, i)->v]++;
done:
    if (st != RT_OK)
        rt_rewrite_abandon(w);
    return st;
}

void rt_rewrite_copy(rt_rewrite *w, rt_val v) {
    const rt_node *d = rt_graph_node(w->from, v);
    rt_val in[RT_OP_MAX_IN];
    for (int i = 0; i < d->nin; i++)
        in[i] = w->map[d->in[i]];
    rt_val r = 0;
    rt_graph_scope(w->to, d->leaf == RT_LEAF_NONE ? d->name : NULL);
    switch (d->leaf) {
    case RT_LEAF_INPUT: {
        rt_shape row = d->type.shape;
        row.rank--;
        for (int i = 0; i < row.rank; i++)
            row.d[i] = d->type.shape.d[i + 1];
        r = rt_graph_input(w->to, d->name, d->type.dtype, row, d->type.groups);
        break;
    }
    case RT_LEAF_FEED:
        r = rt_graph_feed(w->to, d->name, d->type.dtype, d->type.shape);
        break;
    case RT_LEAF_PARAM:
        r = rt_graph_param(w->to, d->slot, d->name, d->type.shape);
        break;
    case RT_LEAF_CONST:
        r = rt_graph_const(w->to, d->type.shape, d->data);
        break;
    case RT_LEAF_NONE:
        if (d->chain != NULL)
            r = rt_graph_chain(w->to, d->chain, in, d->nin);
        else if (d->op == RT_OP_REORDER)
            r = rt_graph_reorder(w->to, in[0], d->layout);
        else
            r = rt_graph_op(w->to, d->op, d->attr, in, d->nin);
        break;
    }
    w->map[v] = r;
}

rt_status rt_rewrite_end(rt_rewrite *w, rt_graph **g) {
    rt_graph *out = NULL;
    for (int i = 0; i < rt_graph_outputs(w->from); i++) {
        const rt_graph_out *o = rt_graph_get_output(w->from, i);
        if (o->update_slot < 0) {
            rt_graph_output(w->to, o->name, w->map[o->v]);
            continue;
        }
        for (rt_val v = 1; v < (rt_val)rt_graph_count(w->from); v++) {
            const rt_node *d = rt_graph_node(w->from, v);
            if (d->leaf == RT_LEAF_PARAM && d->slot == o->update_slot)
                rt_graph_update(w->to, w->map[v], w->map[o->v]);
        }
    }
    rt_status st = rt_graph_status(w->to);
    if (st == RT_OK)
        st = rt_graph_rebatch(&out, w->to, rt_graph_batch(w->from), true, NULL);
    rt_rewrite_abandon(w);
    if (st != RT_OK)
        return st;
    rt_graph_destroy(g);
    *g = out;
    return RT_OK;
}

void rt_rewrite_abandon(rt_rewrite *w) {
    rt_graph_destroy(&w->to);
    rt_free(w->map);
    rt_free(w->uses);
    *w = (rt_rewrite){0};
}
