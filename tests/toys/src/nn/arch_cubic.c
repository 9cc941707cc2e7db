/*
 * arch_cubic.c - cubic: y = V (U x)^3, with as many hidden units as inputs.
 */
#include "nn/nn_int.h"

static rt_val cubic_stage(const rt_net *net, rt_build *b, const rt_stage *s, rt_val x) {
    x = rt_nn_linear(b, s->name, x, s->width, rt_arch_init(net, RT_INIT_TORCH), true);
    return s->last ? x : rt_unary(b->g, RT_OP_CUBE, x);
}

static rt_status cubic_plan(rt_net *net, const char *args) {
    RT_TRY(rt_arch_no_args(net, args));
    const rt_shape *in = &net->config.input;
    RT_TRY(rt_net_add_stage(net, (rt_stage){.name = "u", .build = cubic_stage, .width = rt_shape_elems(in)}));
    return rt_net_add_stage(
        net, (rt_stage){
                 .name = "v", .build = cubic_stage, .width = net->config.outputs, .index = 1, .last = true});
}

const rt_arch rt_arch_cubic = {.name = "cubic", .plan = cubic_plan, .no_norm = true};
