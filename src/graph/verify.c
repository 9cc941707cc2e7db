/*
 * verify.c - a graph is what it says: order, arity, types, outputs. Run after every pass in debug builds.
 */
#include "graph/graph_int.h"

static rt_status verify_op(const rt_graph *g, int64_t v, const rt_node *nd) {
    rt_type types[RT_OP_MAX_IN], type;
    RT_FAIL_IF(nd->op <= RT_OP_NONE || nd->op >= RT_OP_COUNT, RT_E_FAILED, "value %lld: no operation",
               (long long)v);
    const char *name = rt_op_get(nd->op)->name;
    RT_FAIL_IF(nd->nin < 1 || nd->nin > RT_OP_MAX_IN, RT_E_FAILED, "value %lld, %s: %d inputs", (long long)v,
               name, nd->nin);
    for (int i = 0; i < nd->nin; i++)
        RT_FAIL_IF(nd->in[i] == 0 || (int64_t)nd->in[i] >= v, RT_E_FAILED,
                   "value %lld, %s: input %d is value %u, wanted an earlier one", (long long)v, name, i,
                   (unsigned)nd->in[i]);
    const bool chained = nd->op == RT_OP_CHAIN || nd->op == RT_OP_FUSED_CONV || nd->op == RT_OP_FUSED_MATMUL;
    RT_FAIL_IF(chained != (nd->chain != NULL), RT_E_FAILED, "value %lld, %s: chain missing or not wanted",
               (long long)v, name);
    RT_FAIL_IF(nd->op == RT_OP_REORDER && nd->attr.index != (int32_t)nd->layout, RT_E_FAILED,
               "value %lld, reorder: its layout is not the one asked for", (long long)v);
    rt_graph_in_types(g, nd->in, nd->nin, types);
    rt_status st = nd->chain != NULL ? rt_chain_infer(&type, nd->chain, types, nd->nin, g->batch)
                                     : rt_op_infer(&type, nd->op, &nd->attr, types, nd->nin, g->batch);
    if (st != RT_OK)
        return rt_error_prefix(st, "value %lld", (long long)v);
    RT_FAIL_IF(!rt_type_equal(&type, &nd->type, true), RT_E_FAILED,
               "value %lld, %s: its type is not the inferred one", (long long)v, name);
    return RT_OK;
}

static rt_status verify_leaf(const rt_graph *g, int64_t v, const rt_node *nd) {
    const rt_type *t = &nd->type;
    int64_t count;
    RT_FAIL_IF(nd->nin != 0 || nd->op != RT_OP_NONE, RT_E_FAILED, "value %lld: a leaf with an operation",
               (long long)v);
    RT_FAIL_IF((nd->leaf == RT_LEAF_INPUT) != (t->groups > 0), RT_E_FAILED,
               "value %lld: inputs alone are batched", (long long)v);
    RT_FAIL_IF(t->groups > 0 && (t->shape.rank < 1 || t->shape.d[0] != t->groups * g->batch), RT_E_FAILED,
               "value %lld: not %d groups of %lld rows", (long long)v, (int)t->groups, (long long)g->batch);
    RT_FAIL_IF(!rt_shape_count(&t->shape, &count), RT_E_FAILED, "value %lld: not a shape", (long long)v);
    RT_FAIL_IF((nd->leaf == RT_LEAF_CONST) != (nd->data != NULL), RT_E_FAILED,
               "value %lld: constants alone have data", (long long)v);
    return RT_OK;
}

rt_status rt_graph_verify(const rt_graph *g) {
    RT_TRY(rt_graph_status(g));
    for (int64_t v = 1; v < g->count; v++) {
        const rt_node *nd = &g->nodes[v];
        RT_FAIL_IF((unsigned)nd->layout >= (unsigned)RT_LAYOUT_COUNT, RT_E_FAILED, "value %lld: no layout",
                   (long long)v);
        RT_TRY(nd->leaf == RT_LEAF_NONE ? verify_op(g, v, nd) : verify_leaf(g, v, nd));
    }
    for (int i = 0; i < g->nouts; i++)
        RT_FAIL_IF(g->outs[i].v == 0 || (int64_t)g->outs[i].v >= g->count, RT_E_FAILED,
                   "output '%s' has no value", g->outs[i].name);
    return RT_OK;
}
