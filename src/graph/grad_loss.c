/*
 * grad_loss.c - gradient rules of softmax, the cross entropies and the Dirichlet losses.
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

/* ---- Dirichlet: the gradient of z is fused; that of a target, which no objective asks for, is put together
 * ---- */

/* e^z + offset, z cut as the operations cut it */
static rt_val concentration(rt_graph *g, rt_val z, double offset) {
    return rt_scale(g, rt_unary(g, RT_OP_EXP, rt_clip(g, z, -30, 30)), 1, offset);
}

/* Mean of ln p_c under Dir(a): psi(a_c) - psi(a_0) */
static rt_val mean_log(rt_graph *g, rt_val a) {
    return rt_add_row(g, rt_unary(g, RT_OP_DIGAMMA, a),
                      rt_neg(g, rt_unary(g, RT_OP_DIGAMMA, rt_row_sum(g, a))));
}

/* dt = dl (1 - a) */
RT_GRAD_RULE(dirichlet_nll) {
    const rt_val z = nd->in[0], t = nd->in[1];
    if (rt_grad_wants(c, z))
        rt_grad_give(c, z, rt_op3(c->g, RT_OP_DIRICHLET_NLL_BWD, nd->attr, dy, z, t));
    if (rt_grad_wants(c, t)) {
        const rt_val a = concentration(c->g, z, nd->attr.alpha);
        rt_grad_give(c, t, rt_mul_row(c->g, rt_scale(c->g, a, -1, 1), dy));
    }
}

/* db = dl (psi(b) - psi(b_0) - psi(a) + psi(a_0)) */
RT_GRAD_RULE(dirichlet_kl) {
    const rt_val z = nd->in[0], b = nd->in[1];
    if (rt_grad_wants(c, z))
        rt_grad_give(c, z, rt_op3(c->g, RT_OP_DIRICHLET_KL_BWD, nd->attr, dy, z, b));
    if (rt_grad_wants(c, b)) {
        const rt_val a = concentration(c->g, z, nd->attr.alpha);
        rt_grad_give(c, b, rt_mul_row(c->g, rt_sub(c->g, mean_log(c->g, b), mean_log(c->g, a)), dy));
    }
}
