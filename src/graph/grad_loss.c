/*
 * grad_loss.c - gradient rules of softmax and the cross entropies.
 */
#include "graph/graph_int.h"

RT_GRAD_RULE(softmax) {
    rt_grad_give(c, nd->in[0], rt_op2(c->g, RT_OP_SOFTMAX_BWD, (rt_attr){0}, dy, y));
}

RT_GRAD_RULE(log_softmax) {
    rt_grad_give(c, nd->in[0], rt_op2(c->g, RT_OP_LOG_SOFTMAX_BWD, (rt_attr){0}, dy, y));
}

RT_GRAD_RULE(ce_label) {
    rt_grad_give(c, nd->in[0], rt_op3(c->g, RT_OP_CE_LABEL_BWD, nd->attr, dy, nd->in[0], nd->in[1]));
}

/* l = -sum q ln p:  dz by the fused operation, dq = -dl ln p */
RT_GRAD_RULE(ce_dist) {
    rt_val z = nd->in[0], q = nd->in[1];
    if (rt_grad_wants(c, z))
        rt_grad_give(c, z, rt_op3(c->g, RT_OP_CE_DIST_BWD, (rt_attr){0}, dy, z, q));
    if (rt_grad_wants(c, q))
        rt_grad_give(c, q, rt_mul_row(c->g, rt_neg(c->g, rt_log_softmax(c->g, z)), dy));
}
