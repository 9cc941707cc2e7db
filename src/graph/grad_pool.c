/*
 * grad_pool.c - gradient rules of pooling. The average pool and its adjoint are each other's gradient.
 */
#include "graph/graph_int.h"

void rt_grad_maxpool(rt_grad_ctx *c, const rt_node *nd, rt_val y, rt_val dy) {
    (void)y;
    rt_grad_give(c, nd->in[0], rt_op2(c->g, RT_OP_MAXPOOL_BWD, nd->attr, dy, nd->in[0]));
}

void rt_grad_global_avgpool(rt_grad_ctx *c, const rt_node *nd, rt_val y, rt_val dy) {
    (void)y;
    rt_shape x = c->g->nodes[nd->in[0]].type.shape;
    rt_attr a = {.h = x.d[2], .w = x.d[3]};
    rt_grad_give(c, nd->in[0], rt_op1(c->g, RT_OP_GLOBAL_AVGPOOL_BWD, a, dy));
}

void rt_grad_global_avgpool_bwd(rt_grad_ctx *c, const rt_node *nd, rt_val y, rt_val dy) {
    (void)y;
    rt_grad_give(c, nd->in[0], rt_global_avgpool(c->g, dy));
}
