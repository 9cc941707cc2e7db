/*
 * student_be.c - BatchEnsemble as a student (Mariet et al. 2021; layers: nn/batch_ensemble.c).
 *
 * Inputs are tiled member-major, because every member must see every image with its own teacher. r and s
 * start at N(1, 0.5) (or as asked), take no decay and half the learning rate, as the reference
 * implementations do. Biases are per member, decay like weights, and take half the rate, too: in the released
 * code whatever is neither a shared kernel nor a normalisation is a fast weight.
 */
#include "distill/distill_int.h"

static void be_prepare(const rt_student *s, rt_build *b) {
    b->members = s->members;
    b->fast_init = s->config.fast_init;
    b->fast_scale = s->config.fast_scale;
    b->member_bn = s->config.member_bn;
}

rt_val rt_be_forward(const rt_student *s, rt_build *b, rt_val x) {
    return rt_net_forward(s->net, b, s->members > 1 ? rt_tile_members(b->g, x, s->members) : x);
}

rt_val rt_be_member(const rt_student *s, rt_build *b, rt_val x, rt_val index) {
    b->pick = index;
    return rt_net_forward(s->net, b, x);
}

static rt_rule be_rule(const rt_student *s, rt_role role) {
    if (role == RT_ROLE_FAST)
        return (rt_rule){.grad_scale = 1, .lr_scale = 0.5};
    if (role == RT_ROLE_BIAS && s->members > 1 && !s->config.full_bias_rate)
        return (rt_rule){.grad_scale = 1, .lr_scale = 0.5, .decay = -1};
    return (rt_rule){.grad_scale = 1, .lr_scale = 1, .decay = -1};
}

const rt_student_kind rt_student_batch_ensemble = {
    .name = "batch-ensemble",
    .form = "batch-ensemble:M",
    .meaning = "M members that share weights and differ by rank-one factors",
    .many = true,
    .mixes = true,
    .prepare = be_prepare,
    .forward = rt_be_forward,
    .member = rt_be_member,
    .rule = be_rule};
