/*
 * student_latent_be.c - LatentBE (Nam et al. 2022): a BatchEnsemble that is trained to be averaged.
 *
 * r = s = 1 at the start, and decay pulls them back to one. The loss is a mean over members, so the shared
 * weights get the mean gradient (1/M) sum_m; the factors get their member's full gradient, i.e. M times what
 * the mean gives them. After training the members collapse to
 *
 *     W = theta o (1/M) sum_m s_m r_m^T
 *     b = (1/M) sum_m b_m, the effective member biases: b o mean_m s_m
 *
 * the exact mean of member weights (Eq. 5), or, with product_of_means, theta o (mean s)(mean r)^T as the
 * authors' code evaluates. BN is shared already.
 */
#include "distill/distill_int.h"

static void latent_prepare(const rt_student *s, rt_build *b) {
    b->members = s->members;
    b->fast_init = RT_INIT_ONE;
    b->member_bn = s->config.member_bn;
    b->shared_bias = true;
}

static rt_rule latent_rule(const rt_student *s, rt_role role) {
    if (role == RT_ROLE_FAST)
        return (rt_rule){.grad_scale = s->members, .lr_scale = 1, .decay = -1, .centre = 1};
    return (rt_rule){.grad_scale = 1, .lr_scale = 1, .decay = -1};
}

static rt_status latent_collapse(const rt_student *s, const rt_params *params, const float *block,
                                 const rt_params *to, float *dst) {
    return rt_student_mix(s, params, block, NULL, to, dst);
}

const rt_student_kind rt_student_latent_be = {
    .name = "latent-be",
    .form = "latent-be:M",
    .meaning = "batch-ensemble near r = s = 1 that collapses to one network",
    .many = true,
    .mixes = true,
    .prepare = latent_prepare,
    .forward = rt_be_forward,
    .member = rt_be_member,
    .rule = latent_rule,
    .collapse = latent_collapse};
