/*
 * objective_gaussian_kd.c - knowledge distillation of regression: every member of the student against all
 * teachers.
 *
 *     L = mean over rows and teachers m of CE(N(mu_m, s_m^2), N(mu, e^v))
 *
 * The mean over teachers needs their first two moments only: it is the cross-entropy to one Gaussian with the
 * mixture's mean and variance, mean s_m^2 + mean (mu_m - mean mu)^2 (data and knowledge uncertainty), which
 * is also its minimum.
 */
#include "distill/distill_int.h"

static rt_val build(const rt_objective_in *in) {
    rt_graph *g = in->g;
    const int members = rt_groups(g, in->student), teachers = rt_groups(g, in->teacher);
    const rt_val mu = rt_gaussian_mean(g, in->teacher), mean = rt_mean_members(g, mu); // (Mt n), (n)
    const rt_val data = rt_unary(g, RT_OP_EXP, rt_gaussian_logvar(g, in->teacher));
    const rt_val knowledge = rt_unary(g, RT_OP_SQUARE, rt_sub(g, mu, rt_tile_members(g, mean, teachers)));
    const rt_val var = rt_mean_members(g, rt_add(g, data, knowledge)); // (n)
    return rt_mix_labels(in, rt_gaussian_loss(g, in->student, rt_tile_members(g, mean, members),
                                              rt_tile_members(g, var, members)));
}

const rt_objective rt_objective_gaussian_kd = {.name = "gaussian-kd",
                                               .meaning =
                                                   "cross-entropy to the mixture of the teachers' Gaussians",
                                               .needs = RT_OBJ_TEACHER | RT_OBJ_REGRESSION,
                                               .build = build};
