/*
 * grad_matmul.c - gradient rules of matrix products.
 *
 *     Y = op(A) op(B):   d op(A) = dY op(B)^T,   d op(B) = op(A)^T dY
 *
 * Written for A and B themselves, the transpositions move into the flags, and the four formulas below hold
 * for all three forms of the product (rows x global, a sum over rows, global x global): the adjoint of each
 * form is one of the others.
 */
#include "graph/graph_int.h"

static void product(rt_grad_ctx *c, const rt_node *nd, rt_val dy) {
    rt_graph *g = c->g;
    rt_val a = nd->in[0], b = nd->in[1];
    bool ta = nd->attr.ta, tb = nd->attr.tb;
    if (rt_grad_wants(c, a)) {
        if (ta)
            rt_grad_give(c, a, rt_op2(g, nd->op, (rt_attr){.ta = tb, .tb = true}, b, dy));
        else
            rt_grad_give(c, a, rt_op2(g, nd->op, (rt_attr){.ta = false, .tb = !tb}, dy, b));
    }
    if (rt_grad_wants(c, b)) {
        if (tb)
            rt_grad_give(c, b, rt_op2(g, nd->op, (rt_attr){.ta = true, .tb = ta}, dy, a));
        else
            rt_grad_give(c, b, rt_op2(g, nd->op, (rt_attr){.ta = !ta, .tb = false}, a, dy));
    }
}

RT_GRAD_RULE(matmul) {
    product(c, nd, dy);
}

RT_GRAD_RULE(bmm) {
    product(c, nd, dy);
}
