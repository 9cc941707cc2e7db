/*
 * arch_vgg.c - vgg16 as Malinin et al. (2020) train it on small images.
 *
 *     13 x [conv 3x3 + bias, BN, LeakyReLU 0.2, dropout max(p - 0.3, 0.2)],
 *     a 2x2 max-pool after numbers 2, 4, 7, 10, 13,
 *     average over what is left of the map, dense 2048, 2048 (LeakyReLU 0.2, dropout p), dense K
 *
 * The original replicates the 1x1 map of a 32x32 image to 7x7; a dense layer on 49 equal copies is a dense
 * layer on one, so the first dense layer is 512 wide (its 49 equal columns move alike: the rate of that layer is
 * 49 times ours). A pool that would bring a side to zero (images under
 * 32 pixels) is left out. Weights N(0, 1/fan_in), biases zero. Names count modules as torchvision's vgg16_bn
 * does (convolution, norm, activation, pool), whether a pool is left out or not.
 */
#include "nn/nn_int.h"
#include <stdio.h>

enum { VGG_CONVS = 13, VGG_DENSE = 2048 };
static const double VGG_SLOPE = 0.2;

static rt_val vgg_unit(const rt_net *net, rt_build *b, const rt_stage *s, rt_val x) {
    char norm[32];
    double p = net->config.dropout;
    snprintf(norm, sizeof norm, "features.%d", s->index + 1);
    x = rt_nn_conv(b, s->name, x, s->width, 3, 1, 1, rt_arch_init(net, RT_INIT_KAIMING_GAIN1), true);
    x = rt_nn_batch_norm(b, norm, x, 1e-5, 0.1);
    x = rt_leaky_relu(b->g, x, VGG_SLOPE);
    x = rt_nn_dropout(b, x, p > 0 ? RT_MAX(p - 0.3, 0.2) : 0);
    rt_shape row = rt_nn_row(b, x);
    return s->pool && row.rank == 3 && row.d[1] > 1 && row.d[2] > 1 ? rt_maxpool(b->g, x, 2, 2, 0) : x;
}

static rt_val vgg_pool(const rt_net *net, rt_build *b, const rt_stage *s, rt_val x) {
    (void)net, (void)s;
    rt_shape row = rt_nn_row(b, x);
    return row.rank == 3 && row.d[1] * row.d[2] > 1 ? rt_global_avgpool(b->g, x) : rt_flatten(b->g, x);
}

static rt_val vgg_dense(const rt_net *net, rt_build *b, const rt_stage *s, rt_val x) {
    x = rt_nn_linear(b, s->name, x, s->width, rt_arch_init(net, RT_INIT_KAIMING_GAIN1), true);
    return s->last ? x : rt_nn_dropout(b, rt_leaky_relu(b->g, x, VGG_SLOPE), net->config.dropout);
}

static rt_status vgg_plan(rt_net *net, const char *args) {
    static const struct {
        int16_t width;
        bool pool;
    } unit[VGG_CONVS] = {{64, 0},  {64, 1},  {128, 0}, {128, 1}, {256, 0}, {256, 0}, {256, 1},
                         {512, 0}, {512, 0}, {512, 1}, {512, 0}, {512, 0}, {512, 1}};
    RT_TRY(rt_arch_no_args(net, args));
    RT_TRY(rt_arch_need_image(net));
    int module = 0;
    for (int i = 0; i < VGG_CONVS; i++) {
        rt_stage s = {.build = vgg_unit, .width = unit[i].width, .index = module, .pool = unit[i].pool};
        snprintf(s.name, sizeof s.name, "features.%d", module);
        RT_TRY(rt_net_add_stage(net, s));
        module += unit[i].pool ? 4 : 3;
    }
    RT_TRY(rt_net_add_stage(net, (rt_stage){.name = "avgpool", .build = vgg_pool}));
    for (int i = 0; i < 3; i++) {
        rt_stage s = {
            .build = vgg_dense, .width = i < 2 ? VGG_DENSE : net->config.outputs, .index = i, .last = i == 2};
        snprintf(s.name, sizeof s.name, "classifier.%d", 3 * i);
        RT_TRY(rt_net_add_stage(net, s));
    }
    return RT_OK;
}

const rt_arch rt_arch_vgg16 = {.name = "vgg16", .plan = vgg_plan};
