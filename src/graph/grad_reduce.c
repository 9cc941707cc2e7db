/*
 * grad_reduce.c - gradient rules of sums and of their adjoints. A sum hands its gradient to every element it
 * took; the adjoint of that is the sum again.
 */
#include "graph/graph_int.h"

RT_GRAD_RULE(row_sum) {
    rt_type x = rt_grad_type(c, nd, 0);
    rt_grad_give(c, nd->in[0], rt_expand_row(c->g, dy, rt_shape_tail(&x.shape)));
}

/* MUL_ROW is for batched values; global ones spell the expansion. */
static rt_val times_row(rt_grad_ctx *c, rt_val x, rt_val w) {
    rt_type t = c->g->nodes[x].type;
    if (t.groups > 0)
        return rt_mul_row(c->g, x, w);
    return rt_mul(c->g, x, rt_expand_row(c->g, w, rt_shape_tail(&t.shape)));
}

RT_GRAD_RULE(row_dot) {
    if (rt_grad_wants(c, nd->in[0]))
        rt_grad_give(c, nd->in[0], times_row(c, nd->in[1], dy));
    if (rt_grad_wants(c, nd->in[1]))
        rt_grad_give(c, nd->in[1], times_row(c, nd->in[0], dy));
}

RT_GRAD_RULE(expand_row) {
    rt_grad_give(c, nd->in[0], rt_row_sum(c->g, dy));
}

RT_GRAD_RULE(chan_sum) {
    rt_type x = rt_grad_type(c, nd, 0);
    rt_attr a = {.members = nd->attr.members > 1 ? nd->attr.members : 0, .count = x.groups};
    if (x.groups == 0)
        a.n = x.shape.d[0];
    if (x.shape.rank == 4)
        a.shape = rt_shape2(x.shape.d[2], x.shape.d[3]);
    rt_grad_give(c, nd->in[0], rt_op1(c->g, RT_OP_EXPAND_CHAN, a, dy));
}

RT_GRAD_RULE(chan_dot) {
    if (rt_grad_wants(c, nd->in[0]))
        rt_grad_give(c, nd->in[0], rt_mul_chan(c->g, nd->in[1], dy));
    if (rt_grad_wants(c, nd->in[1]))
        rt_grad_give(c, nd->in[1], rt_mul_chan(c->g, nd->in[0], dy));
}

RT_GRAD_RULE(expand_chan) {
    rt_grad_give(c, nd->in[0], rt_chan_sum(c->g, dy, nd->attr.members));
}

RT_GRAD_RULE(total_sum) {
    rt_type x = rt_grad_type(c, nd, 0);
    rt_attr a = {.members = x.groups, .shape = rt_type_row(&x)};
    rt_grad_give(c, nd->in[0], rt_op1(c->g, RT_OP_EXPAND_TOTAL, a, dy));
}

RT_GRAD_RULE(total_dot) {
    if (rt_grad_wants(c, nd->in[0]))
        rt_grad_give(c, nd->in[0], rt_mul_scalar(c->g, nd->in[1], dy));
    if (rt_grad_wants(c, nd->in[1]))
        rt_grad_give(c, nd->in[1], rt_mul_scalar(c->g, nd->in[0], dy));
}

RT_GRAD_RULE(expand_total) {
    rt_grad_give(c, nd->in[0], rt_total_sum(c->g, dy));
}

RT_GRAD_RULE(batch_sum) {
    rt_type x = rt_grad_type(c, nd, 0);
    rt_attr a = {.members = x.groups, .n = x.groups > 0 ? 0 : x.shape.d[0]};
    rt_grad_give(c, nd->in[0], rt_op1(c->g, RT_OP_EXPAND_BATCH, a, dy));
}

RT_GRAD_RULE(expand_batch) {
    rt_grad_give(c, nd->in[0], rt_batch_sum(c->g, dy));
}
