/*
 * grad_eltwise.c - gradient rules of element-wise operations.
 *
 * Where the derivative can be said by the result (exp, sqrt, sigmoid, tanh, relu) the rule uses y and not x:
 * then x need not be kept.
 */
#include "graph/graph_int.h"
#include <math.h>

RT_GRAD_RULE(add) {
    rt_grad_give(c, nd->in[0], dy);
    rt_grad_give(c, nd->in[1], dy);
}

RT_GRAD_RULE(sub) {
    rt_grad_give(c, nd->in[0], dy);
    if (rt_grad_wants(c, nd->in[1]))
        rt_grad_give(c, nd->in[1], rt_neg(c->g, dy));
}

RT_GRAD_RULE(mul) {
    if (rt_grad_wants(c, nd->in[0]))
        rt_grad_give(c, nd->in[0], rt_mul(c->g, dy, nd->in[1]));
    if (rt_grad_wants(c, nd->in[1]))
        rt_grad_give(c, nd->in[1], rt_mul(c->g, dy, nd->in[0]));
}

/* d(a / b) = da / b - y db / b */
RT_GRAD_RULE(div) {
    rt_val q = rt_div(c->g, dy, nd->in[1]);
    rt_grad_give(c, nd->in[0], q);
    if (rt_grad_wants(c, nd->in[1]))
        rt_grad_give(c, nd->in[1], rt_neg(c->g, rt_mul(c->g, q, y)));
}

RT_GRAD_RULE(scale) {
    rt_grad_give(c, nd->in[0], nd->attr.alpha == 1 ? dy : rt_scale(c->g, dy, nd->attr.alpha, 0));
}

/* y and x have the same sign, unless the slope is negative. */
RT_GRAD_RULE(relu) {
    rt_grad_give(c, nd->in[0],
                 rt_op2(c->g, RT_OP_RELU_BWD, nd->attr, dy, nd->attr.alpha >= 0 ? y : nd->in[0]));
}

/* Linear in dy; x only decides the branch. */
RT_GRAD_RULE(relu_bwd) {
    if (rt_grad_wants(c, nd->in[0]))
        rt_grad_give(c, nd->in[0], rt_op2(c->g, RT_OP_RELU_BWD, nd->attr, dy, nd->in[1]));
}

RT_GRAD_RULE(exp) {
    rt_grad_give(c, nd->in[0], rt_mul(c->g, dy, y));
}

RT_GRAD_RULE(log) {
    rt_grad_give(c, nd->in[0], rt_div(c->g, dy, nd->in[0]));
}

RT_GRAD_RULE(sqrt) {
    rt_grad_give(c, nd->in[0], rt_scale(c->g, rt_div(c->g, dy, y), 0.5, 0));
}

RT_GRAD_RULE(square) {
    rt_grad_give(c, nd->in[0], rt_scale(c->g, rt_mul(c->g, dy, nd->in[0]), 2, 0));
}

RT_GRAD_RULE(recip) {
    rt_grad_give(c, nd->in[0], rt_neg(c->g, rt_mul(c->g, dy, rt_unary(c->g, RT_OP_SQUARE, y))));
}

/* ln x + 1. At 0 the slope is infinite; it is kept finite, so that 0 times it (a softmax behind) is 0 and no
 * NaN. */
RT_GRAD_RULE(xlogx) {
    double tiny = c->g->dtype == RT_DTYPE_F64 ? 1e-300 : 1e-37;
    rt_val l = rt_unary(c->g, RT_OP_LOG, rt_clip(c->g, nd->in[0], tiny, HUGE_VAL));
    rt_grad_give(c, nd->in[0], rt_mul(c->g, dy, rt_scale(c->g, l, 1, 1)));
}

/* y (1 - y) */
RT_GRAD_RULE(sigmoid) {
    rt_val d = rt_mul(c->g, y, rt_scale(c->g, y, -1, 1));
    rt_grad_give(c, nd->in[0], rt_mul(c->g, dy, d));
}

/* 1 - y^2 */
RT_GRAD_RULE(tanh) {
    rt_val d = rt_scale(c->g, rt_unary(c->g, RT_OP_SQUARE, y), -1, 1);
    rt_grad_give(c, nd->in[0], rt_mul(c->g, dy, d));
}

RT_GRAD_RULE(softplus) {
    rt_grad_give(c, nd->in[0], rt_mul(c->g, dy, rt_unary(c->g, RT_OP_SIGMOID, nd->in[0])));
}

RT_GRAD_RULE(clip) {
    rt_grad_give(c, nd->in[0], rt_op2(c->g, RT_OP_CLIP_BWD, nd->attr, dy, nd->in[0]));
}

RT_GRAD_RULE(clip_bwd) {
    if (rt_grad_wants(c, nd->in[0]))
        rt_grad_give(c, nd->in[0], rt_op2(c->g, RT_OP_CLIP_BWD, nd->attr, dy, nd->in[1]));
}

RT_GRAD_RULE(lgamma) {
    rt_grad_give(c, nd->in[0], rt_mul(c->g, dy, rt_unary(c->g, RT_OP_DIGAMMA, nd->in[0])));
}

RT_GRAD_RULE(digamma) {
    rt_grad_give(c, nd->in[0], rt_mul(c->g, dy, rt_unary(c->g, RT_OP_TRIGAMMA, nd->in[0])));
}

/* The mask depends on stream, step and element alone: the same operation on dy has the same mask. */
RT_GRAD_RULE(dropout) {
    rt_grad_give(c, nd->in[0], rt_op1(c->g, RT_OP_DROPOUT, nd->attr, dy));
}

/* ---- broadcast operands ---- */

RT_GRAD_RULE(mul_scalar) {
    if (rt_grad_wants(c, nd->in[0]))
        rt_grad_give(c, nd->in[0], rt_mul_scalar(c->g, dy, nd->in[1]));
    if (rt_grad_wants(c, nd->in[1]))
        rt_grad_give(c, nd->in[1], rt_op2(c->g, RT_OP_TOTAL_DOT, (rt_attr){0}, dy, nd->in[0]));
}

/* Gives a channel sum to an operand (C) or (M, C); of one member the sum has no member axis and takes it
 * here. */
static void give_chan(rt_grad_ctx *c, rt_val b, rt_op op, rt_val dy, rt_val x) {
    const rt_shape s = c->g->nodes[b].type.shape;
    rt_attr a = {.members = s.rank == 2 && s.d[0] > 1 ? (int32_t)s.d[0] : 0};
    rt_val d = op == RT_OP_CHAN_DOT ? rt_op2(c->g, op, a, dy, x) : rt_op1(c->g, op, a, dy);
    rt_grad_give(c, b, rt_reshape(c->g, d, s));
}

RT_GRAD_RULE(add_chan) {
    rt_grad_give(c, nd->in[0], dy);
    if (rt_grad_wants(c, nd->in[1]))
        give_chan(c, nd->in[1], RT_OP_CHAN_SUM, dy, 0);
}

RT_GRAD_RULE(mul_chan) {
    if (rt_grad_wants(c, nd->in[0]))
        rt_grad_give(c, nd->in[0], rt_mul_chan(c->g, dy, nd->in[1]));
    if (rt_grad_wants(c, nd->in[1]))
        give_chan(c, nd->in[1], RT_OP_CHAN_DOT, dy, nd->in[0]);
}

RT_GRAD_RULE(add_row) {
    rt_grad_give(c, nd->in[0], dy);
    if (rt_grad_wants(c, nd->in[1]))
        rt_grad_give(c, nd->in[1], rt_row_sum(c->g, dy));
}

RT_GRAD_RULE(mul_row) {
    if (rt_grad_wants(c, nd->in[0]))
        rt_grad_give(c, nd->in[0], rt_mul_row(c->g, dy, nd->in[1]));
    if (rt_grad_wants(c, nd->in[1]))
        rt_grad_give(c, nd->in[1], rt_row_dot(c->g, dy, nd->in[0]));
}
