/*
 * graph_int.h - storage of a graph, and what gradient rules share.
 *
 * Nodes lie in one growing array, indexed by value; what they point to (inputs, names, constants, chains)
 * lies in an arena and never moves. A hash table of node ids finds identical nodes, so that a subexpression
 * exists once however often it is built.
 */
#ifndef RT_GRAPH_GRAPH_INT_H
#define RT_GRAPH_GRAPH_INT_H

#include "base/arena.h"
#include "graph/graph.h"

struct rt_graph {
    int64_t batch;
    rt_dtype dtype;
    rt_status st; /* the first error, and its record */
    rt_error err;
    rt_arena arena;
    rt_node *nodes; /* nodes[0] is the invalid value */
    int64_t count, cap;
    rt_val *table; /* open addressing; 0 is free */
    int64_t table_cap;
    rt_graph_out *outs;
    int nouts, outs_cap;
    int32_t inputs, feeds;
    const char *scope;
};

/* Adds a node, or finds the one that is the same (never for chains). The node's pointers may be the caller's:
 * they are copied. */
rt_val rt_graph_append(rt_graph *g, const rt_node *node);
/* Type of the result of a chain, every step checked. */
rt_status rt_chain_infer(rt_type *out, const rt_chain *chain, const rt_type *in, int nin,
                         int64_t n) RT_MUST_CHECK;
/* Records the failure st as the graph's first error; returns the invalid value. */
rt_val rt_graph_refuse(rt_graph *g, rt_status st);
/* Types of a node's inputs; types holds RT_OP_MAX_IN. */
void rt_graph_in_types(const rt_graph *g, const rt_val *in, int nin, rt_type *types);

rt_shape rt_shape_tail(const rt_shape *s); /* without axis 0 */
rt_shape
rt_type_row(const rt_type *t); /* shape of one row of a batched value, the whole shape of a global one */
bool rt_type_equal(const rt_type *a, const rt_type *b, bool with_kind);
/* "[4x] 128x10" */
void rt_type_print(const rt_type *t, rt_str *out);

/* Operations by fixed arity. */
rt_val rt_op1(rt_graph *g, rt_op op, rt_attr a, rt_val x);
rt_val rt_op2(rt_graph *g, rt_op op, rt_attr a, rt_val x, rt_val y);
rt_val rt_op3(rt_graph *g, rt_op op, rt_attr a, rt_val x, rt_val y, rt_val z);

/* ---- gradient rules ---- */

typedef struct rt_grad_ctx {
    rt_graph *g;
    int64_t limit; /* values below take part */
    rt_val *grad;  /* gradient so far, 0: none */
    bool *need;    /* the value depends on a wanted one */
} rt_grad_ctx;

bool rt_grad_wants(const rt_grad_ctx *c, rt_val v);
/* Adds dv to v's gradient; nothing happens when v needs none. */
void rt_grad_give(rt_grad_ctx *c, rt_val v, rt_val dv);

/* nd is a copy of the node that makes y; dy its complete gradient. */
typedef void rt_grad_fn(rt_grad_ctx *c, const rt_node *nd, rt_val y, rt_val dy);
#define RT_OP(ID, name, arity, infer, grad, flags, meaning) rt_grad_fn rt_grad_##grad;
#include "op/op.def"
#undef RT_OP
#define RT_GRAD_RULE(name)                                                                                   \
    void rt_grad_##name(rt_grad_ctx *c, const rt_node *nd, RT_UNUSED rt_val y, RT_UNUSED rt_val dy)
/* Type of the node's input i. */
rt_type rt_grad_type(const rt_grad_ctx *c, const rt_node *nd, int i);

#endif
