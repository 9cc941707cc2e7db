/*
 * grad_pool.c - gradient rules of pooling. The average pool and its adjoint are each other's gradient.
 */
#include "graph/graph_int.h"

RT_GRAD_RULE(maxpool) {
    rt_grad_give(c, nd->in[0], rt_op2(c->g, RT_OP_MAXPOOL_BWD, nd->attr, dy, nd->in[0]));
}

RT_GRAD_RULE(global_avgpool) {
    rt_shape x = rt_grad_type(c, nd, 0).shape;
    rt_attr a = {.h = x.d[2], .w = x.d[3]};
    rt_grad_give(c, nd->in[0], rt_op1(c->g, RT_OP_GLOBAL_AVGPOOL_BWD, a, dy));
}

RT_GRAD_RULE(global_avgpool_bwd) {
    rt_grad_give(c, nd->in[0], rt_global_avgpool(c->g, dy));
}
