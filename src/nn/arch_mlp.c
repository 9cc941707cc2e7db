/*
 * arch_mlp.c - mlp:H1,H2,...: dense layers with ReLU or softplus between them.
 *
 *     x -> [dropout] layers.0 -> act -> dropout layers.1 -> act -> ... -> dropout layers.L
 *
 * A stage is one layer with its activation, so a cut after any stage is post-activation. Dropout stands
 * before every layer, the first one only if asked (dropout_input). Names and shapes are those of a PyTorch
 * ModuleList of nn.Linear called `layers`.
 */
#include "nn/nn_int.h"
#include <stdio.h>
#include <string.h>

enum { MLP_LAYERS_MAX = 64, MLP_WIDTH_MAX = 1 << 20 };

static rt_val mlp_stage(const rt_net *net, rt_build *b, const rt_stage *s, rt_val x) {
    const rt_arch_config *c = &net->config;
    if (s->index == 0 && rt_nn_row(b, x).rank > 1)
        x = rt_flatten(b->g, x);
    if (s->index > 0 || c->dropout_input)
        x = rt_nn_dropout(b, x, c->dropout);
    x = rt_nn_linear(b, s->name, x, s->width, rt_arch_init(net, RT_INIT_TORCH), true);
    if (s->last)
        return x;
    bool softplus = c->activation && strcmp(c->activation, "softplus") == 0;
    return softplus ? rt_unary(b->g, RT_OP_SOFTPLUS, x) : rt_relu(b->g, x);
}

static rt_status mlp_plan(rt_net *net, const char *args) {
    const rt_arch_config *c = &net->config;
    static const char *const known[] = {"relu", "softplus"};
    if (c->activation && rt_str_find(c->activation, known, RT_COUNT(known)) < 0)
        RT_FAIL_UNKNOWN(RT_E_USAGE, c->activation, known, RT_COUNT(known),
                        "architecture %s: unknown activation", c->spec);
    int64_t width[MLP_LAYERS_MAX];
    int n;
    RT_TRY(rt_arch_ints(net, args, MLP_WIDTH_MAX, width, MLP_LAYERS_MAX, &n));
    for (int i = 0; i <= n; i++) {
        rt_stage s = {.build = mlp_stage, .width = i < n ? width[i] : c->outputs, .index = i, .last = i == n};
        snprintf(s.name, sizeof s.name, "layers.%d", i);
        RT_TRY(rt_net_add_stage(net, s));
    }
    return RT_OK;
}

const rt_arch rt_arch_mlp = {.name = "mlp", .plan = mlp_plan, .no_norm = true};
