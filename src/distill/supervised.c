/*
 * supervised.c - learning from labels or targets, with no teacher.
 *
 *     classification   L = mean over rows of CE((1 - e) one-hot(y) + e / K, softmax(z)),  e the label
 * smoothing regression       L = mean over rows of 1/2 (v + (y - mu)^2 e^-v) + 1/2 ln 2 pi,  (mu, v) the
 * outputs, v cut to [-10, 10]
 *
 * The cut keeps e^-v within 22026, so that one lucky row cannot ruin a step; outside it v has no gradient,
 * but mu still has.
 */
#include "distill/distill_int.h"

static const double HALF_LN_2PI = 0.91893853320467274178;
static const double LOGVAR_MAX = 10;

static rt_val gaussian_nll(rt_graph *g, rt_val out, rt_val target) {
    rt_val mu = rt_reshape_rows(g, rt_slice_last(g, out, 0, 1), rt_shape0());     // (rows)
    rt_val logvar = rt_reshape_rows(g, rt_slice_last(g, out, 1, 1), rt_shape0()); // (rows)
    logvar = rt_clip(g, logvar, -LOGVAR_MAX, LOGVAR_MAX);
    rt_val sq = rt_unary(g, RT_OP_SQUARE, rt_sub(g, mu, target));
    rt_val fit = rt_mul(g, sq, rt_unary(g, RT_OP_EXP, rt_neg(g, logvar)));
    return rt_scale(g, rt_batch_mean(g, rt_add(g, fit, logvar)), 0.5, HALF_LN_2PI);
}

static rt_loss supervised_build(rt_loss_ctx *c, int stage) {
    (void)stage;
    rt_graph *g = c->build.g;
    rt_loss r;
    r.logits = rt_net_forward(c->net, &c->build, c->x);
    r.loss = c->regression ? gaussian_nll(g, r.logits, c->target)
                           : rt_batch_mean(g, rt_ce_label(g, r.logits, c->label, c->label_smoothing));
    return r;
}

const rt_method rt_method_supervised = {"supervised", "train on labels or targets", 1, supervised_build};
