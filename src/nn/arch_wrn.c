/*
 * arch_wrn.c - wrn:D,K: wide residual network (Zagoruyko and Komodakis 2016), depth D = 6n + 4, widening K.
 *
 *     conv3x3(16), 3 groups of n blocks with widths 16K, 32K, 64K and strides 1, 2, 2,
 *     BN ReLU, mean over the map, dense
 *     block: x -> BN ReLU conv3x3(stride) [dropout] BN ReLU conv3x3 -> + shortcut(x)
 *
 * The shortcut is x itself, or, when the shape changes, a 1x1 convolution of the block's raw input (before
 * its first BN), as in Nam et al. 2022. Convolutions have no bias. Weights are He-normal: fan_out for
 * convolutions; fan_in for the classifier, where fan_out, the number of classes, would start training with
 * logits of size five.
 */
#include "nn/nn_int.h"
#include <stdio.h>

enum { WRN_DEPTH_MAX = 1000, WRN_WIDTH_MAX = 64 };
static const double WRN_EPS = 1e-5, WRN_MOMENTUM = 0.1;

static rt_val norm_relu(rt_build *b, const char *name, rt_val x) {
    return rt_relu(b->g, rt_nn_batch_norm(b, name, x, WRN_EPS, WRN_MOMENTUM));
}

static rt_val wrn_conv(const rt_net *net, rt_build *b, const char *name, rt_val x, int64_t out, int k,
                       int stride) {
    return rt_nn_conv(b, name, x, out, k, stride, k / 2, rt_arch_init(net, RT_INIT_HE_FAN_OUT), false);
}

static rt_val wrn_stem(const rt_net *net, rt_build *b, const rt_stage *s, rt_val x) {
    return wrn_conv(net, b, "conv1", x, s->width, 3, 1);
}

static rt_val wrn_block(const rt_net *net, rt_build *b, const rt_stage *s, rt_val x) {
    char bn1[48], conv1[48], bn2[48], conv2[48], proj[48];
    snprintf(bn1, sizeof bn1, "%s.bn1", s->name);
    snprintf(conv1, sizeof conv1, "%s.conv1", s->name);
    snprintf(bn2, sizeof bn2, "%s.bn2", s->name);
    snprintf(conv2, sizeof conv2, "%s.conv2", s->name);
    snprintf(proj, sizeof proj, "%s.shortcut", s->name);
    rt_shape row = rt_nn_row(b, x);
    bool same = s->stride == 1 && row.rank == 3 && row.d[0] == s->width;
    rt_val y = wrn_conv(net, b, conv1, norm_relu(b, bn1, x), s->width, 3, s->stride);
    y = rt_nn_dropout(b, y, net->config.dropout);
    y = wrn_conv(net, b, conv2, norm_relu(b, bn2, y), s->width, 3, 1);
    return rt_add(b->g, y, same ? x : wrn_conv(net, b, proj, x, s->width, 1, s->stride));
}

static rt_val wrn_pool(const rt_net *net, rt_build *b, const rt_stage *s, rt_val x) {
    (void)net;
    return rt_global_avgpool(b->g, norm_relu(b, s->name, x));
}

static rt_val wrn_fc(const rt_net *net, rt_build *b, const rt_stage *s, rt_val x) {
    return rt_nn_linear(b, s->name, x, s->width, rt_arch_init(net, RT_INIT_HE_FAN_IN), true);
}

static rt_status wrn_plan(rt_net *net, const char *args) {
    int64_t v[2];
    int n;
    RT_TRY(rt_arch_ints(net, args, WRN_DEPTH_MAX, v, 2, &n));
    RT_FAIL_IF(n != 2, RT_E_USAGE, "architecture %s: wanted wrn:DEPTH,WIDTH, for example wrn:28,1",
               net->config.spec);
    RT_FAIL_IF(v[0] < 10 || (v[0] - 4) % 6 != 0, RT_E_USAGE,
               "architecture %s: depth %lld, wanted 6n + 4 (10, 16, 22, 28, 40, ...)", net->config.spec,
               (long long)v[0]);
    RT_FAIL_IF(v[1] > WRN_WIDTH_MAX, RT_E_USAGE, "architecture %s: width %lld, wanted 1 to %d",
               net->config.spec, (long long)v[1], WRN_WIDTH_MAX);
    RT_TRY(rt_arch_need_image(net));
    RT_TRY(rt_net_add_stage(net, (rt_stage){.name = "stem", .build = wrn_stem, .width = 16}));
    for (int i = 0; i < 3; i++) {
        for (int j = 0; j < (v[0] - 4) / 6; j++) {
            rt_stage s = {.build = wrn_block, .width = (16 << i) * v[1], .stride = i && !j ? 2 : 1};
            snprintf(s.name, sizeof s.name, "layer%d.%d", i + 1, j);
            RT_TRY(rt_net_add_stage(net, s));
        }
    }
    RT_TRY(rt_net_add_stage(net, (rt_stage){.name = "bn", .build = wrn_pool}));
    return rt_net_add_stage(net, (rt_stage){.name = "fc", .build = wrn_fc, .width = net->config.outputs});
}

const rt_arch rt_arch_wrn = {.name = "wrn", .plan = wrn_plan};
