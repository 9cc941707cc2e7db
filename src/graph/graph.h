/*
 * graph.h - a differentiable computation, as a list of operations on values.
 *
 * Builders return values, so networks read as maths. The graph remembers the first error and returns the
 * invalid value 0 from then on; rt_graph_status (and rt_plan_compile) report it. Values are 32-bit ids, in
 * order of creation: inputs of a node have smaller ids. A graph is built for a batch of n samples;
 * rt_graph_rebatch derives the same graph for another n (a slice).
 *
 *     rt_val x = rt_graph_input(g, "x", RT_DTYPE_F32, rt_shape1(784), 1);          // (n, 784)
 *     rt_val w = rt_graph_param(g, 0, "fc.weight", rt_shape2(10, 784));
 *     rt_val z = rt_matmul(g, x, w, false, true);
 *     rt_val loss = rt_scale(g, rt_total_sum(g, rt_ce_label(g, z, y, 0)), 1.0 / n, 0);
 *     RT_TRY(rt_graph_grad(g, loss, &w, 1, &dw));
 *     rt_graph_output(g, "grad:fc.weight", dw);
 */
#ifndef RT_GRAPH_GRAPH_H
#define RT_GRAPH_GRAPH_H

#include "op/op.h"

typedef uint32_t rt_val; /* 0 is the invalid value */
typedef struct rt_graph rt_graph;

typedef enum rt_leaf {
    RT_LEAF_NONE,  /* the result of an operation */
    RT_LEAF_INPUT, /* batched data, bound at run: rows x row shape */
    RT_LEAF_FEED,  /* global data, bound at run: temperatures, member indices */
    RT_LEAF_PARAM, /* slot of a parameter store, bound at run */
    RT_LEAF_CONST, /* literal */
} rt_leaf;

typedef struct rt_node {
    rt_op op; /* RT_OP_NONE for leaves */
    rt_leaf leaf;
    rt_attr attr;
    rt_type type;
    const rt_val *in;
    int nin;
    int32_t slot;          /* inputs, feeds: their running number; parameters: slot of the store */
    const char *name;      /* leaves: name; operations: NULL or a scope for printing */
    const double *data;    /* RT_LEAF_CONST: elements */
    const rt_chain *chain; /* RT_OP_CHAIN, RT_OP_FUSED_CONV, RT_OP_FUSED_MATMUL */
    rt_layout layout;      /* set by the layout pass; PLAIN before */
} rt_node;

typedef struct rt_graph_out {
    const char *name;
    rt_val v;
    int32_t update_slot; /* >= 0: the value replaces this parameter slot after the run (running statistics) */
} rt_graph_out;

/* dtype: F32, or F64 for reference computations; it is the type of all floating values but BN statistics. */
rt_status rt_graph_create(rt_graph **out, int64_t batch, rt_dtype dtype) RT_MUST_CHECK;
void rt_graph_destroy(rt_graph **g);
rt_status
rt_graph_status(const rt_graph *g) RT_MUST_CHECK; /* the first error, recorded again on this thread */
void rt_graph_set_error(
    rt_graph *g, rt_status st); /* takes the thread's current error record as the graph's first error */
int64_t rt_graph_batch(const rt_graph *g);
rt_dtype rt_graph_dtype(const rt_graph *g);
int64_t rt_graph_count(const rt_graph *g);                 /* values are 1 .. count-1 */
const rt_node *rt_graph_node(const rt_graph *g, rt_val v); /* v valid; borrowed until the graph grows */
int rt_graph_outputs(const rt_graph *g);
const rt_graph_out *rt_graph_get_output(const rt_graph *g, int i);
rt_val rt_graph_find_output(const rt_graph *g, const char *name);
/* Names given to nodes created from now on carry this scope in prints; NULL ends it. */
void rt_graph_scope(rt_graph *g, const char *scope);

rt_val rt_graph_input(rt_graph *g, const char *name, rt_dtype t, rt_shape row, int groups);
rt_val rt_graph_feed(rt_graph *g, const char *name, rt_dtype t, rt_shape s);
rt_val rt_graph_param(rt_graph *g, int slot, const char *name,
                      rt_shape s); /* one leaf per slot: asking again gives the same value */
rt_val rt_graph_const(rt_graph *g, rt_shape s, const double *data); /* copied */
rt_val rt_graph_scalar(rt_graph *g, double v);
/* Any operation. Identical nodes (same op, attributes, inputs) are shared. */
rt_val rt_graph_op(rt_graph *g, rt_op op, rt_attr attr, const rt_val *in, int nin);
/* CHAIN, FUSED_CONV if a step is a convolution, or FUSED_MATMUL if the first is a product; passes only. */
rt_val rt_graph_chain(rt_graph *g, const rt_chain *chain, const rt_val *in, int nin);
rt_val rt_graph_reorder(rt_graph *g, rt_val v, rt_layout layout);  /* passes only */
void rt_graph_set_layout(rt_graph *g, rt_val v, rt_layout layout); /* passes only */
void rt_graph_output(rt_graph *g, const char *name,
                     rt_val v); /* a used name, or the invalid value, is an error */
/* After the run, param's slot takes v; once per slot. The output is named "update:<parameter>". Nothing
 * happens when v is 0. */
void rt_graph_update(rt_graph *g, rt_val param, rt_val v);

/* Gradients of a scalar loss with respect to any values: parameters, inputs, intermediate. grads[i] is 0
 * when wrt[i] does not influence the loss. Appends ordinary nodes. */
rt_status rt_graph_grad(rt_graph *g, rt_val loss, const rt_val *wrt, int nwrt, rt_val *grads) RT_MUST_CHECK;
/* The same with a given gradient of y instead of 1 for a scalar. */
rt_status rt_graph_grad_from(rt_graph *g, rt_val y, rt_val dy, const rt_val *wrt, int nwrt,
                             rt_val *grads) RT_MUST_CHECK;

/* The same graph for another batch size, dead nodes dropped if prune; map[old] = new id (0 if
 * dropped), caller frees. map may be NULL. */
rt_status rt_graph_rebatch(rt_graph **out, const rt_graph *g, int64_t batch, bool prune,
                           rt_val **map) RT_MUST_CHECK;
rt_status rt_graph_verify(const rt_graph *g) RT_MUST_CHECK; /* every type re-inferred, order, arity */
void rt_graph_print(const rt_graph *g, rt_str *out);

/* ---- builders: one per operation, attributes as arguments ---- */
rt_val rt_add(rt_graph *g, rt_val a, rt_val b);
rt_val rt_sub(rt_graph *g, rt_val a, rt_val b);
rt_val rt_mul(rt_graph *g, rt_val a, rt_val b);
rt_val rt_div(rt_graph *g, rt_val a, rt_val b);
rt_val rt_scale(rt_graph *g, rt_val x, double alpha, double beta); /* alpha x + beta */
rt_val rt_neg(rt_graph *g, rt_val x);
rt_val rt_unary(rt_graph *g, rt_op op,
                rt_val x); /* EXP, LOG, SQRT, SQUARE, RECIP, XLOGX, SIGMOID, TANH, SOFTPLUS, LGAMMA, ... */
rt_val rt_relu(rt_graph *g, rt_val x);
rt_val rt_leaky_relu(rt_graph *g, rt_val x, double slope);
rt_val rt_clip(rt_graph *g, rt_val x, double lo, double hi);
rt_val rt_stop_grad(rt_graph *g, rt_val x);
rt_val rt_dropout(rt_graph *g, rt_val x, double p, uint64_t stream); /* p = 0 is x itself */
rt_val rt_random(rt_graph *g, rt_val x, bool normal,
                 uint64_t stream); /* in the shape of x; else uniform in [-1, 1) */
rt_val rt_mul_scalar(rt_graph *g, rt_val x, rt_val s);
rt_val rt_add_chan(rt_graph *g, rt_val x, rt_val b);
rt_val rt_mul_chan(rt_graph *g, rt_val x, rt_val r);
rt_val rt_add_row(rt_graph *g, rt_val x, rt_val w);
rt_val rt_mul_row(rt_graph *g, rt_val x, rt_val w);
rt_val rt_reshape_rows(rt_graph *g, rt_val x, rt_shape row); /* batched */
rt_val rt_flatten(rt_graph *g, rt_val x);                    /* (rows, ...) -> (rows, product) */
rt_val rt_reshape(rt_graph *g, rt_val x, rt_shape s);        /* global */
rt_val rt_transpose(rt_graph *g, rt_val x);
rt_val rt_tile_members(rt_graph *g, rt_val x, int members);
rt_val rt_sum_members(rt_graph *g, rt_val x);
rt_val rt_mean_members(rt_graph *g, rt_val x);
rt_val rt_member_get(rt_graph *g, rt_val x, rt_val index);
rt_val rt_member_range(rt_graph *g, rt_val x, int start, int count);
rt_val rt_concat_members(rt_graph *g, const rt_val *x, int n);
rt_val rt_slice_last(rt_graph *g, rt_val x, int64_t start, int64_t count);
rt_val rt_one_hot(rt_graph *g, rt_val labels, int64_t classes);
rt_val rt_row_sum(rt_graph *g, rt_val x);
rt_val rt_row_max(rt_graph *g, rt_val x);
rt_val rt_row_dot(rt_graph *g, rt_val a, rt_val b);
rt_val rt_row_norm(rt_graph *g, rt_val x, double floor); /* max(||row||_2, floor) */
rt_val rt_expand_row(rt_graph *g, rt_val w, rt_shape row);
rt_val rt_chan_sum(rt_graph *g, rt_val x, int members);
rt_val rt_total_sum(rt_graph *g, rt_val x);
rt_val rt_batch_mean(rt_graph *g, rt_val rows); /* (rows) -> scalar mean over all rows */
rt_val rt_batch_sum(rt_graph *g, rt_val x);
rt_val rt_matmul(rt_graph *g, rt_val a, rt_val b, bool ta, bool tb);
rt_val rt_bmm(rt_graph *g, rt_val a, rt_val b, bool ta, bool tb);
rt_val rt_conv2d(rt_graph *g, rt_val x, rt_val w, int stride, int pad);
rt_val rt_maxpool(rt_graph *g, rt_val x, int k, int stride, int pad);
rt_val rt_global_avgpool(rt_graph *g, rt_val x);
typedef struct rt_bn_result {
    rt_val y, mean, var; /* mean, var: new running statistics (train mode), else 0 */
} rt_bn_result;
/* members > 1: one set of statistics per group. momentum: weight of the new batch (PyTorch's 0.1). */
rt_bn_result rt_batch_norm_train(rt_graph *g, rt_val x, rt_val gamma, rt_val beta, rt_val mean, rt_val var,
                                 double eps, double momentum, int members);
rt_val rt_batch_norm_eval(rt_graph *g, rt_val x, rt_val gamma, rt_val beta, rt_val mean, rt_val var,
                          double eps, int members);
rt_val rt_softmax(rt_graph *g, rt_val z);
rt_val rt_log_softmax(rt_graph *g, rt_val z);
rt_val rt_ce_label(rt_graph *g, rt_val z, rt_val labels, double smoothing); /* (rows) */
rt_val rt_ce_dist(rt_graph *g, rt_val z, rt_val q);                         /* (rows) */
rt_val rt_kl_dist(rt_graph *g, rt_val q, rt_val z);                         /* (rows): KL(q || softmax(z)) */
/* Dirichlet losses per row, of concentrations a = e^z + offset: see op.def. */
rt_val rt_dirichlet_nll(rt_graph *g, rt_val z, rt_val mean_log, double offset);
rt_val rt_dirichlet_kl(rt_graph *g, rt_val z, rt_val b, double offset); /* KL(Dir(a) || Dir(b)) */
rt_val rt_dirichlet_proxy(rt_graph *g, rt_val teachers,
                          double floor);                 /* logits (M n, K) -> concentrations (n, K) */
rt_val rt_qp_simplex(rt_graph *g, rt_val v, double cap); /* weights of M vectors, global or per sample */
rt_val rt_matinv(rt_graph *g, rt_val a);
rt_val rt_solve(rt_graph *g, rt_val a, rt_val b, bool transposed);
rt_val rt_sinkhorn(rt_graph *g, rt_val x, double tau, double floor, int64_t iterations);

#endif
