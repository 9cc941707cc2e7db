/*
 * autodiff.c - gradients, graph to graph.
 *
 * One sweep over the values in decreasing order. Inputs have smaller ids than results, so a value's gradient
 * is complete when the sweep arrives, and its rule (the grad column of op.def) hands parts of it to the
 * inputs by appending ordinary nodes. Only values that depend on a wanted one take part; an operation with
 * rule `zero` depends on nothing. The result is again a graph of operations with rules, so gradients of
 * gradients are the same call.
 */
#include "base/alloc.h"
#include "graph/graph_int.h"

static rt_grad_fn *const g_rules[RT_OP_COUNT] = {
#define RT_OP(ID, name, arity, infer, grad, flags, meaning) [RT_OP_##ID] = rt_grad_##grad,
#include "op/op.def"
#undef RT_OP
};

bool rt_grad_wants(const rt_grad_ctx *c, rt_val v) {
    return (int64_t)v < c->limit && c->need[v];
}

void rt_grad_give(rt_grad_ctx *c, rt_val v, rt_val dv) {
    if (!rt_grad_wants(c, v) || dv == 0)
        return;
    RT_ASSERT(rt_type_equal(&c->g->nodes[v].type, &c->g->nodes[dv].type, false));
    c->grad[v] = c->grad[v] != 0 ? rt_add(c->g, c->grad[v], dv) : dv;
}

rt_type rt_grad_type(const rt_grad_ctx *c, const rt_node *nd, int i) {
    return c->g->nodes[nd->in[i]].type;
}

RT_GRAD_RULE(none) {
    rt_graph_refuse(c->g, rt_error_set(RT_E_UNSUPPORTED, __FILE__, __LINE__,
                                       "value %u is made by %s, which has no gradient", (unsigned)y,
                                       rt_op_get(nd->op)->name));
}

RT_GRAD_RULE(zero) {
    (void)c, (void)nd;
}

/* True if the gradient of this node's result flows on to an input. */
static bool flows(const rt_grad_ctx *c, const rt_node *nd) {
    if (nd->leaf != RT_LEAF_NONE || g_rules[nd->op] == rt_grad_zero)
        return false;
    for (int i = 0; i < nd->nin; i++)
        if (c->need[nd->in[i]])
            return true;
    return false;
}

/* Batch normalisation hands gradients past its statistics and coefficients (grad_norm.c): they have none of
 * their own. */
static bool is_bn_inner(rt_op op) {
    return op == RT_OP_BN_STATS || op == RT_OP_BN_COEF || op == RT_OP_BN_COEF_EVAL;
}

static rt_status mark(rt_grad_ctx *c, const rt_val *wrt, int nwrt) {
    const rt_graph *g = c->g;
    for (int i = 0; i < nwrt; i++) {
        RT_FAIL_IF((int64_t)wrt[i] >= g->count, RT_E_USAGE, "gradient: the graph has no value %u",
                   (unsigned)wrt[i]);
        const rt_node *nd = &g->nodes[wrt[i]];
        RT_FAIL_IF(is_bn_inner(nd->op), RT_E_UNSUPPORTED,
                   "gradient with respect to value %u: made by %s, which has none", (unsigned)wrt[i],
                   rt_op_get(nd->op)->name);
        RT_FAIL_IF(wrt[i] != 0 && nd->type.dtype == RT_DTYPE_I32, RT_E_UNSUPPORTED,
                   "gradient with respect to value %u: it is i32", (unsigned)wrt[i]);
        if ((int64_t)wrt[i] < c->limit)
            c->need[wrt[i]] = true;
    }
    c->need[0] = false;
    for (int64_t v = 1; v < c->limit; v++)
        c->need[v] = c->need[v] || flows(c, &g->nodes[v]);
    return RT_OK;
}

static rt_status sweep(rt_grad_ctx *c) {
    rt_graph *g = c->g;
    const char *scope = g->scope;
    for (int64_t v = c->limit - 1; v > 0 && g->st == RT_OK; v--) {
        if (c->grad[v] == 0 || !flows(c, &g->nodes[v]))
            continue;
        const rt_node nd = g->nodes[v]; /* a copy: the array moves when rules append */
        g->scope = nd.name;
        g_rules[nd.op](c, &nd, (rt_val)v, c->grad[v]);
    }
    g->scope = scope;
    return rt_graph_status(g);
}

rt_status rt_graph_grad_from(rt_graph *g, rt_val y, rt_val dy, const rt_val *wrt, int nwrt, rt_val *grads) {
    rt_status st = RT_OK;
    rt_grad_ctx c = {.g = g, .limit = (int64_t)y + 1};
    for (int i = 0; i < nwrt; i++)
        grads[i] = 0;
    RT_TRY(rt_graph_status(g));
    RT_FAIL_IF(y == 0 || dy == 0 || (int64_t)y >= g->count || (int64_t)dy >= g->count, RT_E_USAGE,
               "gradient: the graph has no values %u and %u", (unsigned)y, (unsigned)dy);
    RT_FAIL_IF(!rt_type_equal(&g->nodes[y].type, &g->nodes[dy].type, false), RT_E_USAGE,
               "gradient of value %u: value %u is not of its shape", (unsigned)y, (unsigned)dy);
    RT_TRY_GOTO(rt_calloc(&c.grad, (size_t)c.limit, sizeof *c.grad));
    RT_TRY_GOTO(rt_calloc(&c.need, (size_t)c.limit, sizeof *c.need));
    RT_TRY_GOTO(mark(&c, wrt, nwrt));
    rt_grad_give(&c, y, dy);
    RT_TRY_GOTO(sweep(&c));
    for (int i = 0; i < nwrt; i++)
        grads[i] = (int64_t)wrt[i] < c.limit ? c.grad[wrt[i]] : 0;
done:
    rt_graph_set_error(g, st);
    rt_free(c.grad);
    rt_free(c.need);
    return st;
}

rt_status rt_graph_grad(rt_graph *g, rt_val loss, const rt_val *wrt, int nwrt, rt_val *grads) {
    for (int i = 0; i < nwrt; i++)
        grads[i] = 0;
    RT_TRY(rt_graph_status(g));
    RT_FAIL_IF(loss == 0 || (int64_t)loss >= g->count, RT_E_USAGE, "gradient: the loss is no value");
    const rt_type *t = &g->nodes[loss].type;
    RT_FAIL_IF(t->groups != 0 || t->shape.rank != 0, RT_E_USAGE,
               "gradient: the loss, value %u, is not a scalar", (unsigned)loss);
    rt_val one = rt_graph_scalar(g, 1);
    RT_TRY(rt_graph_status(g));
    return rt_graph_grad_from(g, loss, one, wrt, nwrt, grads);
}
