/*
 * grad_norm.c - gradient of batch normalisation, y = gamma xhat + beta, xhat = (x - mean) rstd.
 *
 * One rule, at BN_APPLY, handles the whole; nothing flows through coefficients and statistics. Which rule
 * depends on who made the coefficients:
 *
 *     BN_COEF (train)        s = sum dy, t = sum dy xhat over the n elements of a channel (BN_GSTATS)
 *                            dx = gamma rstd (dy - s / n - xhat t / n)      (BN_GCOEF, BN_GAPPLY)
 *     BN_COEF_EVAL (fixed)   dx = gamma rstd dy                             (BN_GCOEF_EVAL, BN_GAPPLY)
 *     both                   dgamma = t, dbeta = s                          (BN_GPARAM)
 *
 * With fixed statistics s and t are computed only if gamma or beta want a gradient: an input gradient stays
 * free of sums over the batch, and so of synchronisation.
 */
#include "graph/graph_int.h"

typedef struct bn {
    rt_val x, coef, gamma, beta;
    rt_attr attr; /* members, and n in training */
    bool train;
} bn;

static void give_param(rt_grad_ctx *c, const bn *b, rt_val gstats, rt_val p, int row) {
    if (!rt_grad_wants(c, p))
        return;
    rt_type t = c->g->nodes[p].type;
    rt_attr a = {
        .members = b->attr.members, .index = row, .ta = t.shape.rank == 2, .tb = t.dtype == RT_DTYPE_F64};
    rt_grad_give(c, p, rt_op1(c->g, RT_OP_BN_GPARAM, a, gstats));
}

static void give_all(rt_grad_ctx *c, const bn *b, rt_val dy) {
    rt_graph *g = c->g;
    const rt_attr members = {.members = b->attr.members};
    bool params = rt_grad_wants(c, b->gamma) || rt_grad_wants(c, b->beta), input = rt_grad_wants(c, b->x);
    rt_val gstats = 0, k = 0;
    if (params || (input && b->train))
        gstats = rt_op3(g, RT_OP_BN_GSTATS, members, dy, b->x, b->coef);
    if (params) {
        give_param(c, b, gstats, b->gamma, 1);
        give_param(c, b, gstats, b->beta, 0);
    }
    if (!input)
        return;
    if (b->train)
        k = rt_op3(g, RT_OP_BN_GCOEF, (rt_attr){.members = b->attr.members, .n = b->attr.n}, gstats, b->coef,
                   b->gamma);
    else
        k = rt_op1(g, RT_OP_BN_GCOEF_EVAL, members, b->coef);
    rt_grad_give(c, b->x, rt_op3(g, RT_OP_BN_GAPPLY, members, dy, b->x, k));
}

RT_GRAD_RULE(bn_apply) {
    const rt_node coef = c->g->nodes[nd->in[1]];
    bn b = {.x = nd->in[0], .coef = nd->in[1], .attr = coef.attr};
    if (coef.op == RT_OP_BN_COEF && c->g->nodes[coef.in[0]].op == RT_OP_BN_STATS &&
        c->g->nodes[coef.in[0]].in[0] == b.x) {
        b.train = true;
        b.gamma = coef.in[1];
        b.beta = coef.in[2];
        give_all(c, &b, dy);
        return;
    }
    if (coef.op == RT_OP_BN_COEF_EVAL && !rt_grad_wants(c, coef.in[0]) && !rt_grad_wants(c, coef.in[1])) {
        b.gamma = coef.in[2];
        b.beta = coef.in[3];
        give_all(c, &b, dy);
        return;
    }
    rt_graph_refuse(
        c->g, rt_error_set(RT_E_UNSUPPORTED, __FILE__, __LINE__,
                           "value %u: bn_apply has a gradient with its own batch statistics or with fixed "
                           "ones that need no gradient",
                           (unsigned)y));
}
