/*
 * gaussian_loss.c - cross-entropy of a Gaussian target to predicted Gaussians, which regression losses share.
 *
 *     mean over rows of  (s^2 + (m - mu)^2) / (2 e^v) + v / 2 + ln(2 pi) / 2
 *
 * with the target (m, s^2) and the prediction (mu, v). s = 0 is the likelihood of a number. Tran et al. 2020
 * print it with the sign reversed. The log-variance v is cut to [-10, 10]: e^-v stays within 22026, so that
 * one lucky row cannot ruin a step. Outside v has no gradient, but mu still has.
 */
#include "distill/distill_int.h"

static const double HALF_LN_2PI = 0.91893853320467274178;

static rt_val column(rt_graph *g, rt_val out, int64_t i) {
    return rt_reshape_rows(g, rt_slice_last(g, out, i, 1), rt_shape0()); // (rows)
}

rt_val rt_gaussian_mean(rt_graph *g, rt_val out) {
    return column(g, out, 0);
}

rt_val rt_gaussian_logvar(rt_graph *g, rt_val out) {
    return rt_clip(g, column(g, out, 1), -RT_LOGVAR_MAX, RT_LOGVAR_MAX);
}

rt_val rt_gaussian_loss(rt_graph *g, rt_val out, rt_val mean, rt_val var) {
    const rt_val logvar = rt_gaussian_logvar(g, out);
    const rt_val sq = rt_unary(g, RT_OP_SQUARE, rt_sub(g, rt_gaussian_mean(g, out), mean));
    const rt_val spread = var != 0 ? rt_add(g, sq, var) : sq;
    const rt_val fit = rt_mul(g, spread, rt_unary(g, RT_OP_EXP, rt_neg(g, logvar)));
    return rt_scale(g, rt_batch_mean(g, rt_add(g, fit, logvar)), 0.5, HALF_LN_2PI);
}
