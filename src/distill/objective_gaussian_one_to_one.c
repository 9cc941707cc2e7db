/*
 * objective_gaussian_one_to_one.c - member m of the student imitates teacher m, in regression (Tran et al.
 * 2020, with the sign that makes it a cross-entropy).
 *
 *     L = mean_m mean over rows of CE(N(mu_Tm, s_Tm^2), N(mu_m, e^v_m))
 */
#include "distill/distill_int.h"

static rt_val build(const rt_objective_in *in) {
    rt_graph *g = in->g;
    const rt_val var = rt_unary(g, RT_OP_EXP, rt_gaussian_logvar(g, in->teacher)); // (M n)
    return rt_mix_labels(in, rt_gaussian_loss(g, in->student, rt_gaussian_mean(g, in->teacher), var));
}

const rt_objective rt_objective_gaussian_one_to_one = {
    .name = "gaussian-one-to-one",
    .meaning = "cross-entropy of member m to the Gaussian of teacher m",
    .needs = RT_OBJ_TEACHER | RT_OBJ_PAIRED | RT_OBJ_REGRESSION,
    .build = build};
