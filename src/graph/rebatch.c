/*
 * rebatch.c - the same graph for another number of samples.
 *
 * Every node is replayed with the new batch; types follow from the inputs' new row counts. That works because
 * no attribute speaks of rows: reshapes keep the shape of one row, adjoints of reductions the number of
 * groups. Element counts of batch norm and scales of losses stay those of the graph they were built in: a
 * slice computes its part of the full batch's sums.
 */
#include "base/alloc.h"
#include "graph/graph_int.h"

/* Marks what outputs and updates need; inputs and feeds stay in any case, so that their numbers do. */
static void mark_live(const rt_graph *g, bool *live) {
    for (int i = 0; i < g->nouts; i++)
        live[g->outs[i].v] = true;
    for (int64_t v = g->count - 1; v > 0; v--) {
        const rt_node *nd = &g->nodes[v];
        if (nd->leaf == RT_LEAF_INPUT || nd->leaf == RT_LEAF_FEED)
            live[v] = true;
        for (int i = 0; live[v] && i < nd->nin; i++)
            live[nd->in[i]] = true;
    }
}

static rt_val replay(rt_graph *g, const rt_node *nd, const rt_val *map) {
    rt_val in[RT_OP_MAX_IN];
    switch (nd->leaf) {
    case RT_LEAF_INPUT:
        return rt_graph_input(g, nd->name, nd->type.dtype, rt_type_row(&nd->type), nd->type.groups);
    case RT_LEAF_FEED:
        return rt_graph_feed(g, nd->name, nd->type.dtype, nd->type.shape);
    case RT_LEAF_PARAM:
        return rt_graph_param(g, nd->slot, nd->name, nd->type.shape);
    case RT_LEAF_CONST:
        return rt_graph_const(g, nd->type.shape, nd->data);
    case RT_LEAF_NONE:
        break;
    }
    for (int i = 0; i < nd->nin; i++)
        in[i] = map[nd->in[i]];
    rt_graph_scope(g, nd->name);
    if (nd->chain != NULL)
        return rt_graph_chain(g, nd->chain, in, nd->nin);
    return rt_graph_op(g, nd->op, nd->attr, in, nd->nin);
}

static void copy_outputs(rt_graph *to, const rt_graph *g, const rt_val *map) {
    rt_val param_of = 0;
    for (int i = 0; i < g->nouts; i++) {
        const rt_graph_out *o = &g->outs[i];
        if (o->update_slot < 0) {
            rt_graph_output(to, o->name, map[o->v]);
            continue;
        }
        for (int64_t v = 1; v < g->count; v++)
            if (g->nodes[v].leaf == RT_LEAF_PARAM && g->nodes[v].slot == o->update_slot)
                param_of = (rt_val)v;
        /* The parameter itself may be dead: then its leaf is made for the update alone. */
        rt_graph_update(to, map[param_of] != 0 ? map[param_of] : replay(to, &g->nodes[param_of], map),
                        map[o->v]);
    }
}

rt_status rt_graph_rebatch(rt_graph **out, const rt_graph *g, int64_t batch, bool prune, rt_val **map) {
    rt_status st = RT_OK;
    rt_graph *to = NULL;
    rt_val *m = NULL;
    bool *live = NULL;
    *out = NULL;
    if (map != NULL)
        *map = NULL;
    RT_TRY(rt_graph_status(g));
    RT_TRY_GOTO(rt_graph_create(&to, batch, g->dtype));
    RT_TRY_GOTO(rt_calloc(&m, (size_t)g->count, sizeof *m));
    RT_TRY_GOTO(rt_calloc(&live, (size_t)g->count, sizeof *live));
    if (prune)
        mark_live(g, live);
    for (int64_t v = 1; v < g->count; v++) {
        if (prune && !live[v])
            continue;
        m[v] = replay(to, &g->nodes[v], m);
        rt_graph_set_layout(to, m[v], g->nodes[v].layout);
    }
    rt_graph_scope(to, NULL);
    copy_outputs(to, g, m);
    RT_TRY_GOTO(rt_graph_status(to));
    *out = to;
    to = NULL;
    if (map != NULL) {
        *map = m;
        m = NULL;
    }
done:
    rt_graph_destroy(&to);
    rt_free(m);
    rt_free(live);
    return st;
}
