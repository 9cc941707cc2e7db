/*
 * arch_resnet.c - residual networks (He et al. 2016): resnet20 for small images, resnet18 and resnet50.
 *
 *     basic       x -> conv3x3(stride) BN ReLU conv3x3 BN        -> + shortcut(x) -> ReLU
 *     bottleneck  x -> conv1x1 BN ReLU conv3x3(stride) BN ReLU conv1x1(4w) BN -> + shortcut(x) -> ReLU
 *
 * A stage is a block, so a cut after any stage is the map after the ReLU. Names are torchvision's.
 *
 * resnet20 is the network of Keras' example that Hydra (Tran et al. 2020) counts parameters on: convolutions
 * have biases, the shortcut of a block that changes shape is a 1x1 convolution without norm, eps is 1e-3,
 * and the running statistics move by 0.01. With ten classes it has 274,442 numbers, running statistics
 * included; the last block and the classifier have 75,018 of them. resnet18 and resnet50 follow torchvision,
 * with a norm in the shortcut; images under 64 pixels get a 3x3 stem instead of the 7x7 one with stride 2
 * and its max-pool.
 */
#include "nn/nn_int.h"
#include <stdio.h>

typedef struct rt_resnet_kind {
    int stages, blocks[4];
    int64_t width, expansion; /* of the first stage; output channels per width */
    double eps, momentum;
    rt_init init, init_fc;
    bool bias, shortcut_norm, large_stem; /* large_stem: if the image is large */
} rt_resnet_kind;

enum { LARGE_IMAGE = 64 };

static const rt_resnet_kind resnet20 = {.stages = 3,
                                        .blocks = {3, 3, 3},
                                        .width = 16,
                                        .expansion = 1,
                                        .eps = 1e-3,
                                        .momentum = 0.01,
                                        .init = RT_INIT_HE_FAN_IN,
                                        .init_fc = RT_INIT_HE_FAN_IN,
                                        .bias = true};
static const rt_resnet_kind resnet18 = {.stages = 4,
                                        .blocks = {2, 2, 2, 2},
                                        .width = 64,
                                        .expansion = 1,
                                        .eps = 1e-5,
                                        .momentum = 0.1,
                                        .init = RT_INIT_HE_FAN_OUT,
                                        .init_fc = RT_INIT_TORCH,
                                        .shortcut_norm = true,
                                        .large_stem = true};
static const rt_resnet_kind resnet50 = {.stages = 4,
                                        .blocks = {3, 4, 6, 3},
                                        .width = 64,
                                        .expansion = 4,
                                        .eps = 1e-5,
                                        .momentum = 0.1,
                                        .init = RT_INIT_HE_FAN_OUT,
                                        .init_fc = RT_INIT_TORCH,
                                        .shortcut_norm = true,
                                        .large_stem = true};

static const rt_resnet_kind *kind_of(const rt_net *net) {
    if (net->arch == &rt_arch_resnet20)
        return &resnet20;
    return net->arch == &rt_arch_resnet18 ? &resnet18 : &resnet50;
}

/* conv and norm of one place in a block: "layer2.0" + ".conv1" / ".bn1" */
static rt_val conv_norm(const rt_net *net, rt_build *b, const char *block, int place, rt_val x, int64_t out,
                        int k, int stride) {
    const rt_resnet_kind *r = kind_of(net);
    char conv[48], norm[48];
    snprintf(conv, sizeof conv, "%s%sconv%d", block, *block ? "." : "", place);
    snprintf(norm, sizeof norm, "%s%sbn%d", block, *block ? "." : "", place);
    x = rt_nn_conv(b, conv, x, out, k, stride, k / 2, rt_arch_init(net, r->init), r->bias);
    return rt_nn_batch_norm(b, norm, x, r->eps, r->momentum);
}

static rt_val resnet_stem(const rt_net *net, rt_build *b, const rt_stage *s, rt_val x) {
    const rt_shape *in = &net->config.input;
    bool large = kind_of(net)->large_stem && RT_MIN(in->d[1], in->d[2]) >= LARGE_IMAGE;
    x = rt_relu(b->g, conv_norm(net, b, "", 1, x, s->width, large ? 7 : 3, large ? 2 : 1));
    return large ? rt_maxpool(b->g, x, 3, 2, 1) : x;
}

static rt_val shortcut(const rt_net *net, rt_build *b, const rt_stage *s, rt_val x, int64_t out) {
    const rt_resnet_kind *r = kind_of(net);
    rt_shape row = rt_nn_row(b, x);
    if (s->stride == 1 && row.rank == 3 && row.d[0] == out)
        return x;
    char conv[48], norm[48];
    snprintf(conv, sizeof conv, "%s.downsample.0", s->name);
    snprintf(norm, sizeof norm, "%s.downsample.1", s->name);
    x = rt_nn_conv(b, conv, x, out, 1, s->stride, 0, rt_arch_init(net, r->init), r->bias);
    return r->shortcut_norm ? rt_nn_batch_norm(b, norm, x, r->eps, r->momentum) : x;
}

static rt_val resnet_basic(const rt_net *net, rt_build *b, const rt_stage *s, rt_val x) {
    rt_val y = rt_relu(b->g, conv_norm(net, b, s->name, 1, x, s->width, 3, s->stride));
    y = conv_norm(net, b, s->name, 2, y, s->width, 3, 1);
    return rt_relu(b->g, rt_add(b->g, y, shortcut(net, b, s, x, s->width)));
}

static rt_val resnet_bottleneck(const rt_net *net, rt_build *b, const rt_stage *s, rt_val x) {
    int64_t out = s->width * kind_of(net)->expansion;
    rt_val y = rt_relu(b->g, conv_norm(net, b, s->name, 1, x, s->width, 1, 1));
    y = rt_relu(b->g, conv_norm(net, b, s->name, 2, y, s->width, 3, s->stride));
    y = conv_norm(net, b, s->name, 3, y, out, 1, 1);
    return rt_relu(b->g, rt_add(b->g, y, shortcut(net, b, s, x, out)));
}

static rt_val resnet_pool(const rt_net *net, rt_build *b, const rt_stage *s, rt_val x) {
    (void)net, (void)s;
    return rt_global_avgpool(b->g, x);
}

static rt_val resnet_fc(const rt_net *net, rt_build *b, const rt_stage *s, rt_val x) {
    x = rt_nn_dropout(b, x, net->config.dropout);
    return rt_nn_linear(b, s->name, x, s->width, rt_arch_init(net, kind_of(net)->init_fc), true);
}

static rt_status resnet_plan(rt_net *net, const char *args) {
    const rt_resnet_kind *r = kind_of(net);
    RT_TRY(rt_arch_no_args(net, args));
    RT_TRY(rt_arch_need_image(net));
    RT_TRY(rt_net_add_stage(net, (rt_stage){.name = "stem", .build = resnet_stem, .width = r->width}));
    int64_t width = r->width;
    for (int i = 0; i < r->stages; i++, width *= 2) {
        for (int j = 0; j < r->blocks[i]; j++) {
            rt_stage s = {.build = r->expansion > 1 ? resnet_bottleneck : resnet_basic,
                          .width = width,
                          .stride = i && !j ? 2 : 1};
            snprintf(s.name, sizeof s.name, "layer%d.%d", i + 1, j);
            RT_TRY(rt_net_add_stage(net, s));
        }
    }
    RT_TRY(rt_net_add_stage(net, (rt_stage){.name = "avgpool", .build = resnet_pool}));
    return rt_net_add_stage(net, (rt_stage){.name = "fc", .build = resnet_fc, .width = net->config.outputs});
}

const rt_arch rt_arch_resnet20 = {.name = "resnet20", .plan = resnet_plan};
const rt_arch rt_arch_resnet18 = {.name = "resnet18", .plan = resnet_plan};
const rt_arch rt_arch_resnet50 = {.name = "resnet50", .plan = resnet_plan};
