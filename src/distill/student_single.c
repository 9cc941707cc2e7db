/*
 * student_single.c - one network, as it is.
 */
#include "distill/distill_int.h"

static void single_prepare(const rt_student *s, rt_build *b) {
    (void)s;
    b->members = 1;
}

static rt_val single_forward(const rt_student *s, rt_build *b, rt_val x) {
    return rt_net_forward(s->net, b, x);
}

static rt_val single_member(const rt_student *s, rt_build *b, rt_val x, rt_val index) {
    (void)index;
    return rt_net_forward(s->net, b, x);
}

static rt_rule single_rule(const rt_student *s, rt_role role) {
    (void)s, (void)role;
    return (rt_rule){.grad_scale = 1, .lr_scale = 1, .decay = -1};
}

const rt_student_kind rt_student_single = {.name = "single",
                                           .form = "single",
                                           .meaning = "one network",
                                           .prepare = single_prepare,
                                           .forward = single_forward,
                                           .member = single_member,
                                           .rule = single_rule};

/* ---- the same network read as a distribution over distributions (student_dirichlet) ---- */

const rt_student_kind rt_student_dirichlet = {
    .name = "dirichlet",
    .form = "dirichlet",
    .output = RT_OUTPUT_DIRICHLET,
    .meaning = "one network whose outputs are the concentrations of a Dirichlet distribution",
    .prepare = single_prepare,
    .forward = single_forward,
    .member = single_member,
    .rule = single_rule};
