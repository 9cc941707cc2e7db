/*
 * student_shy.c - one network whose outputs are halved: it is less sure of itself.
 */
#include "distill/distill_int.h"

static void shy_prepare(const rt_student *s, rt_build *b) {
    (void)s;
    b->members = 1;
}

static rt_val shy_forward(const rt_student *s, rt_build *b, rt_val x) {
    return rt_scale(b->g, rt_net_forward(s->net, b, x), 0.5, 0);
}

static rt_val shy_member(const rt_student *s, rt_build *b, rt_val x, rt_val index) {
    (void)index;
    return shy_forward(s, b, x);
}

static rt_rule shy_rule(const rt_student *s, rt_role role) {
    (void)s, (void)role;
    return (rt_rule){.grad_scale = 1, .lr_scale = 1, .decay = -1};
}

const rt_student_kind rt_student_shy = {.name = "shy",
                                        .form = "shy",
                                        .meaning = "one network whose outputs are halved",
                                        .prepare = shy_prepare,
                                        .forward = shy_forward,
                                        .member = shy_member,
                                        .rule = shy_rule};
