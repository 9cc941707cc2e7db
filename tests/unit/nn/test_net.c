/*
 * test_net.c - architectures: parameter counts that are published or can be counted by hand, names, stages,
 * the list of layers, and what is refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "nn/nn.h"
#include <math.h>
#include <string.h>

typedef struct fixture {
    rt_params *params;
    rt_net *net;
} fixture;

static void open_net(fixture *f, rt_arch_config c) {
    memset(f, 0, sizeof *f);
    assert_int_equal(rt_params_create(&f->params), RT_OK);
    if (rt_net_create(&f->net, &c, f->params, NULL) != RT_OK)
        fail_msg("%s: %s", c.spec, rt_error_text());
}

static void close_net(fixture *f) {
    rt_net_destroy(&f->net);
    rt_params_destroy(&f->params);
}

static int64_t numbers_under(const rt_params *p, const char *prefix) {
    int64_t n = 0;
    for (int i = 0; i < rt_params_count(p); i++)
        n += rt_str_starts(rt_params_get(p, i)->name, prefix) ? rt_params_get(p, i)->count : 0;
    return n;
}

static int64_t all_numbers(const rt_params *p) {
    return numbers_under(p, "");
}

static void parameter_counts(void **state) {
    (void)state;
    static const struct {
        const char *spec;
        rt_shape input;
        int64_t outputs, trained, all;
        int stages;
    } row[] = {
        {"mlp:200,200", {3, {1, 28, 28}}, 10, 199210, 199210, 3}, /* Tran et al. 2020 */
        {"mlp:50", {1, {13}}, 2, 13 * 50 + 50 + 102, 802, 2},
        {"resnet20", {3, {3, 32, 32}}, 10, 273066, 274442, 12},         /* Keras: 1,376 not trainable */
        {"resnet18", {3, {3, 224, 224}}, 1000, 11689512, 11699112, 11}, /* torchvision */
        {"resnet50", {3, {3, 224, 224}}, 1000, 25557032, 25610152, 19}, /* torchvision */
        {"resnet18", {3, {3, 32, 32}}, 10, 11173962, 11183562, 11},     /* the usual CIFAR form */
        {"wrn:28,1", {3, {3, 32, 32}}, 10, 369498, 369498 + 2 * 912, 15},
        {"wrn:28,10", {3, {3, 32, 32}}, 10, 36479194, 36497146, 15},
        /* 13 convolutions 14,714,688 with biases, their norms 2 x 4224, dense layers 1,050,624 + 4,196,352 +
           20,490 */
        {"vgg16", {3, {3, 32, 32}}, 10, 14714688 + 8448 + 1050624 + 4196352 + 20490, 19999050, 17},
    };
    for (int64_t i = 0; i < RT_COUNT(row); i++) {
        fixture f;
        open_net(&f, (rt_arch_config){.spec = row[i].spec, .input = row[i].input, .outputs = row[i].outputs});
        if (rt_params_trainable(f.params) != row[i].trained || all_numbers(f.params) != row[i].all ||
            rt_net_stages(f.net) != row[i].stages)
            fail_msg("%s: %lld trained (wanted %lld), %lld in all (wanted %lld), %d stages (wanted %d)",
                     row[i].spec, (long long)rt_params_trainable(f.params), (long long)row[i].trained,
                     (long long)all_numbers(f.params), (long long)row[i].all, rt_net_stages(f.net),
                     row[i].stages);
        close_net(&f);
    }
}

static void names_and_shapes(void **state) {
    (void)state;
    static const struct {
        const char *spec, *name;
        rt_shape input, shape;
    } row[] = {
        {"mlp:20,30", "layers.1.weight", {3, {1, 8, 8}}, {2, {30, 20}}},
        {"mlp:20,30", "layers.2.bias", {3, {1, 8, 8}}, {1, {10}}},
        {"resnet20", "layer2.0.downsample.0.bias", {3, {3, 16, 16}}, {1, {32}}},
        {"resnet20", "layer3.2.bn2.running_var", {3, {3, 16, 16}}, {1, {64}}},
        {"resnet18", "conv1.weight", {3, {3, 32, 32}}, {4, {64, 3, 3, 3}}},
        {"resnet18", "conv1.weight", {3, {3, 64, 64}}, {4, {64, 3, 7, 7}}},
        {"resnet18", "layer4.0.downsample.1.weight", {3, {3, 32, 32}}, {1, {512}}},
        {"resnet50", "layer1.0.downsample.0.weight", {3, {3, 32, 32}}, {4, {256, 64, 1, 1}}},
        {"resnet50", "layer2.3.conv3.weight", {3, {3, 32, 32}}, {4, {512, 128, 1, 1}}},
        {"vgg16", "features.40.weight", {3, {1, 28, 28}}, {4, {512, 512, 3, 3}}},
        {"vgg16", "features.41.running_mean", {3, {1, 28, 28}}, {1, {512}}},
        {"vgg16", "classifier.6.weight", {3, {1, 28, 28}}, {2, {10, 2048}}},
        {"wrn:10,2", "layer1.0.shortcut.weight", {3, {1, 9, 7}}, {4, {32, 16, 1, 1}}},
        {"wrn:10,1", "layer2.0.conv1.weight", {3, {5, 8, 8}}, {4, {32, 16, 3, 3}}},
        {"wrn:10,1", "bn.weight", {3, {5, 8, 8}}, {1, {64}}},
    };
    for (int64_t i = 0; i < RT_COUNT(row); i++) {
        fixture f;
        open_net(&f, (rt_arch_config){.spec = row[i].spec, .input = row[i].input, .outputs = 10});
        int slot = rt_params_find(f.params, row[i].name);
        if (slot < 0)
            fail_msg("%s has no parameter %s", row[i].spec, row[i].name);
        assert_true(rt_shape_equal(&rt_params_get(f.params, slot)->shape, &row[i].shape));
        close_net(&f);
    }
    fixture f; /* no projection where the shape stays */
    open_net(&f, (rt_arch_config){.spec = "wrn:10,1", .input = rt_shape3(3, 8, 8), .outputs = 10});
    assert_int_equal(rt_params_find(f.params, "layer1.0.shortcut.weight"), -1);
    close_net(&f);
}

/* Any number of channels, any size that is left. */
static void any_image(void **state) {
    (void)state;
    static const char *const specs[] = {"mlp:5", "vgg16", "resnet20", "resnet18", "wrn:10,1"};
    static const int64_t size[][3] = {{1, 1, 1}, {3, 5, 9}, {2, 28, 28}, {4, 64, 70}};
    for (int64_t i = 0; i < RT_COUNT(specs); i++) {
        for (int64_t j = 0; j < RT_COUNT(size); j++) {
            fixture f;
            open_net(&f, (rt_arch_config){.spec = specs[i],
                                          .input = rt_shape3(size[j][0], size[j][1], size[j][2]),
                                          .outputs = 4});
            rt_graph *g;
            assert_int_equal(rt_graph_create(&g, 6, RT_DTYPE_F32), RT_OK);
            rt_build b = {.g = g, .params = f.params, .train = true};
            rt_val z = rt_net_forward(f.net, &b,
                                      rt_graph_input(g, "x", RT_DTYPE_F32, rt_net_config(f.net)->input, 1));
            if (rt_graph_status(g) != RT_OK)
                fail_msg("%s: %s", specs[i], rt_error_text());
            rt_shape want = rt_shape2(6, 4);
            assert_true(rt_shape_equal(&rt_graph_node(g, z)->type.shape, &want));
            assert_int_equal(rt_graph_verify(g), RT_OK);
            rt_graph_destroy(&g);
            close_net(&f);
        }
    }
}

/* Hydra's cut of resnet20: the head is the last block and the classifier, the body ends in a 64x8x8 map. */
static void stages_cut(void **state) {
    (void)state;
    fixture f;
    open_net(&f, (rt_arch_config){.spec = "resnet20", .input = rt_shape3(3, 32, 32), .outputs = 10});
    int last = -1;
    for (int i = 0; i < rt_net_stages(f.net); i++)
        if (strcmp(rt_net_stage_name(f.net, i), "layer3.2") == 0)
            last = i;
    assert_int_equal(last, rt_net_stages(f.net) - 3);
    rt_graph *g;
    assert_int_equal(rt_graph_create(&g, 2, RT_DTYPE_F32), RT_OK);
    rt_build body = {.g = g, .params = f.params};
    rt_val map =
        rt_net_range(f.net, &body, rt_graph_input(g, "x", RT_DTYPE_F32, rt_shape3(3, 32, 32), 1), 0, last);
    rt_shape want = rt_shape4(2, 64, 8, 8);
    assert_true(rt_shape_equal(&rt_graph_node(g, map)->type.shape, &want));
    assert_int_equal(rt_graph_node(g, map)->op, RT_OP_RELU);
    rt_build b = {.g = g, .params = f.params, .declare = true, .prefix = "heads.3."};
    rt_net_range(f.net, &b, map, last, rt_net_stages(f.net));
    assert_int_equal(rt_graph_status(g), RT_OK);
    assert_int_equal(numbers_under(f.params, "heads.3."), 75018);
    assert_true(rt_params_find(f.params, "heads.3.fc.weight") >= 0);
    assert_string_equal(b.prefix, "heads.3.");
    rt_graph_destroy(&g);
    close_net(&f);
}

static void groups_follow_depth(void **state) {
    (void)state;
    fixture f;
    open_net(&f, (rt_arch_config){.spec = "wrn:10,1", .input = rt_shape3(3, 8, 8), .outputs = 10});
    int32_t before = 0;
    for (int i = 0; i < rt_params_count(f.params); i++) {
        assert_true(rt_params_get(f.params, i)->group >= before);
        before = rt_params_get(f.params, i)->group;
    }
    assert_int_equal(rt_params_get(f.params, 0)->group, 0);
    assert_int_equal(before, rt_net_stages(f.net) - 1);
    close_net(&f);
}

static void layer_list(void **state) {
    (void)state;
    fixture f;
    const double mean[] = {0.5}, std[] = {0.25};
    open_net(&f, (rt_arch_config){.spec = "wrn:10,1",
                                  .input = rt_shape3(1, 8, 8),
                                  .outputs = 10,
                                  .norm = 1,
                                  .mean = mean,
                                  .std = std});
    rt_layer_info *layer;
    int n;
    assert_int_equal(rt_net_layers(f.net, &layer, &n), RT_OK);
    int64_t params = 0;
    double flops = 0;
    int convs = 0, norms = 0;
    for (int i = 0; i < n; i++) {
        params += layer[i].params;
        flops += layer[i].flops;
        convs += strcmp(layer[i].kind, "conv") == 0;
        norms += strcmp(layer[i].kind, "bn") == 0;
        assert_true(layer[i].kind[0] && layer[i].flops > 0);
    }
    assert_int_equal(params, rt_params_trainable(f.params));
    assert_true(flops == rt_net_flops(f.net));
    assert_int_equal(convs, 9);
    assert_int_equal(norms, 7);
    assert_string_equal(layer[0].kind, "scale");
    assert_string_equal(layer[1].name, "conv1");
    rt_shape want = rt_shape3(16, 8, 8);
    assert_true(rt_shape_equal(&layer[1].out, &want));
    assert_int_equal(layer[1].params, 144);
    assert_true(fabs(layer[1].flops / (2.0 * 144 * 64) - 1) < 0.5); /* borders may or may not be counted */
    assert_string_equal(layer[n - 1].name, "fc");
    assert_string_equal(layer[n - 1].kind, "linear");
    assert_string_equal(layer[n - 2].kind, "pool");
    rt_free(layer);
    close_net(&f);
}

/* 109.9 MFLOP forward per image is the published work of this network. */
static void known_work(void **state) {
    (void)state;
    fixture f;
    open_net(&f, (rt_arch_config){.spec = "wrn:28,1", .input = rt_shape3(3, 32, 32), .outputs = 10});
    assert_true(fabs(rt_net_flops(f.net) / 109.9e6 - 1) < 0.1);
    close_net(&f);
}

static void refused(void **state) {
    (void)state;
    static const double mean[] = {0, 0}, std[] = {1, 0};
    static const struct {
        rt_arch_config c;
        const char *says;
    } row[] = {
        {{.spec = "lenet", .input = {3, {1, 8, 8}}, .outputs = 2}, "wanted one of mlp, vgg16"},
        {{.spec = "wrm:16,1", .input = {3, {1, 8, 8}}, .outputs = 2}, "did you mean 'wrn'?"},
        {{.spec = "", .input = {1, {4}}, .outputs = 2}, "unknown"},
        {{.spec = "mlp", .input = {1, {4}}, .outputs = 2}, "wanted numbers"},
        {{.spec = "mlp:", .input = {1, {4}}, .outputs = 2}, "not a whole number"},
        {{.spec = "mlp:20,", .input = {1, {4}}, .outputs = 2}, "not a whole number"},
        {{.spec = "mlp:20,x", .input = {1, {4}}, .outputs = 2}, "\"x\""},
        {{.spec = "mlp:0", .input = {1, {4}}, .outputs = 2}, "from 1 to"},
        {{.spec = "mlp:99999999999999999999", .input = {1, {4}}, .outputs = 2}, "not a whole number"},
        {{.spec = "mlp:4", .input = {1, {4}}, .outputs = 2, .activation = "tanh"},
         "wanted one of relu, softplus"},
        {{.spec = "wrn:28", .input = {3, {3, 8, 8}}, .outputs = 2}, "wrn:DEPTH,WIDTH"},
        {{.spec = "wrn:27,1", .input = {3, {3, 8, 8}}, .outputs = 2}, "6n + 4"},
        {{.spec = "wrn:4,1", .input = {3, {3, 8, 8}}, .outputs = 2}, "6n + 4"},
        {{.spec = "wrn:28,65", .input = {3, {3, 8, 8}}, .outputs = 2}, "width 65"},
        {{.spec = "wrn:28,1,1", .input = {3, {3, 8, 8}}, .outputs = 2}, "more than 2"},
        {{.spec = "resnet20", .input = {1, {13}}, .outputs = 2}, "13 features"},
        {{.spec = "vgg16:3", .input = {3, {3, 8, 8}}, .outputs = 2}, "takes no numbers"},
        {{.spec = "vgg16", .input = {3, {3, 8, 8}}, .outputs = 2, .activation = "softplus"}, "only mlp"},
        {{.spec = "mlp:4", .input = {2, {3, 8}}, .outputs = 2}, "rank 2"},
        {{.spec = "mlp:4", .input = {1, {0}}, .outputs = 2}, "no elements"},
        {{.spec = "mlp:4", .input = {1, {4}}, .outputs = 0}, "0 outputs"},
        {{.spec = "mlp:4", .input = {1, {4}}, .outputs = 2, .dropout = 1}, "dropout 1"},
        {{.spec = "mlp:4", .input = {1, {4}}, .outputs = 2, .dropout = NAN}, "dropout"},
        {{.spec = "mlp:4", .input = {1, {4}}, .outputs = 2, .norm = 2, .mean = mean, .std = std},
         "4 features"},
        {{.spec = "mlp:4", .input = {1, {2}}, .outputs = 2, .norm = 2, .mean = mean, .std = std},
         "positive deviation"},
    };
    for (int64_t i = 0; i < RT_COUNT(row); i++) {
        rt_params *p;
        rt_net *net = NULL;
        assert_int_equal(rt_params_create(&p), RT_OK);
        rt_status st = rt_net_create(&net, &row[i].c, p, NULL);
        if (st != RT_E_USAGE || net || !strstr(rt_error_text(), row[i].says))
            fail_msg("row %d (%s): status %d, \"%s\", wanted \"%s\"", (int)i, row[i].c.spec, (int)st,
                     rt_error_text(), row[i].says);
        assert_int_equal(rt_params_count(p), 0);
        rt_params_destroy(&p);
    }
}

static void wrong_table(void **state) {
    (void)state;
    fixture f, other;
    open_net(&f, (rt_arch_config){.spec = "mlp:20", .input = rt_shape1(4), .outputs = 2});
    open_net(&other, (rt_arch_config){.spec = "mlp:21", .input = rt_shape1(4), .outputs = 2});
    rt_graph *g;
    assert_int_equal(rt_graph_create(&g, 2, RT_DTYPE_F32), RT_OK);
    rt_build b = {.g = g, .params = other.params};
    assert_int_equal(rt_net_forward(f.net, &b, rt_graph_input(g, "x", RT_DTYPE_F32, rt_shape1(4), 1)), 0);
    assert_int_equal(rt_graph_status(g), RT_E_USAGE);
    assert_non_null(strstr(rt_error_text(), "layers.0.weight: has shape 21x4"));
    rt_graph_destroy(&g);
    rt_params *empty;
    assert_int_equal(rt_params_create(&empty), RT_OK);
    assert_int_equal(rt_graph_create(&g, 2, RT_DTYPE_F32), RT_OK);
    b = (rt_build){.g = g, .params = empty};
    rt_net_forward(f.net, &b, rt_graph_input(g, "x", RT_DTYPE_F32, rt_shape1(4), 1));
    assert_int_equal(rt_graph_status(g), RT_E_USAGE);
    assert_non_null(strstr(rt_error_text(), "not in the table"));
    rt_graph_destroy(&g);
    rt_params_destroy(&empty);
    close_net(&f);
    close_net(&other);
}

static int count_op(const rt_graph *g, rt_op op) {
    int n = 0;
    for (rt_val v = 1; v < (rt_val)rt_graph_count(g); v++)
        n += rt_graph_node(g, v)->op == op;
    return n;
}

static void dropout_places(void **state) {
    (void)state;
    static const struct {
        const char *spec;
        bool input;
        int drops;
        double p;
    } row[] = {{"mlp:8,8", false, 2, 0.4},
               {"mlp:8,8", true, 3, 0.4},
               {"vgg16", false, 15, 0.2},
               {"wrn:10,1", false, 3, 0.4},
               {"resnet20", false, 1, 0.4}};
    for (int64_t i = 0; i < RT_COUNT(row); i++) {
        fixture f;
        open_net(&f, (rt_arch_config){.spec = row[i].spec,
                                      .input = rt_shape3(1, 8, 8),
                                      .outputs = 3,
                                      .dropout = 0.4,
                                      .dropout_input = row[i].input});
        for (int train = 0; train < 2; train++) {
            rt_graph *g;
            assert_int_equal(rt_graph_create(&g, 4, RT_DTYPE_F32), RT_OK);
            rt_build b = {.g = g, .params = f.params, .train = train};
            rt_net_forward(f.net, &b, rt_graph_input(g, "x", RT_DTYPE_F32, rt_shape3(1, 8, 8), 1));
            assert_int_equal(rt_graph_status(g), RT_OK);
            assert_int_equal(count_op(g, RT_OP_DROPOUT), train ? row[i].drops : 0);
            assert_int_equal(b.dropout_stream, train ? row[i].drops : 0);
            for (rt_val v = 1; v < (rt_val)rt_graph_count(g); v++) {
                if (rt_graph_node(g, v)->op == RT_OP_DROPOUT) {
                    assert_true(fabs(rt_graph_node(g, v)->attr.alpha - row[i].p) < 1e-12);
                    break;
                }
            }
            rt_graph_destroy(&g);
        }
        close_net(&f);
    }
}

static void architecture_table(void **state) {
    (void)state;
    const rt_arch_info *info;
    int n = rt_arch_list(&info);
    assert_true(n > 0);
    for (int i = 0; i < n; i++)
        assert_true(info[i].name && info[i].form && info[i].meaning[0]);
}

/* Every allocation of creation may fail: an error, no leak. */
static bool fail_at(void *user, uint64_t call, size_t bytes) {
    (void)call, (void)bytes;
    int64_t *left = user;
    return (*left)-- != 0;
}

static void out_of_memory(void **state) {
    (void)state;
    const double mean[] = {0.5}, std[] = {0.25};
    rt_arch_config c = {
        .spec = "wrn:10,1", .input = rt_shape3(1, 8, 8), .outputs = 10, .norm = 1, .mean = mean, .std = std};
    bool done = false;
    for (int64_t at = 0; !done; at += 1 + at / 20) {
        rt_alloc_stats before, after;
        rt_alloc_get_stats(&before);
        rt_params *p = NULL;
        rt_net *net = NULL;
        int64_t left = at;
        rt_alloc_set_hook(fail_at, &left);
        rt_status st = rt_params_create(&p);
        if (st == RT_OK)
            st = rt_net_create(&net, &c, p, "n.");
        rt_alloc_set_hook(NULL, NULL);
        done = left >= 0;
        assert_int_equal(st, done ? RT_OK : RT_E_MEMORY);
        rt_net_destroy(&net);
        rt_params_destroy(&p);
        rt_alloc_get_stats(&after);
        assert_int_equal(after.live_blocks, before.live_blocks);
        assert_true(at < 1000000);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parameter_counts),    cmocka_unit_test(names_and_shapes),
        cmocka_unit_test(any_image),           cmocka_unit_test(stages_cut),
        cmocka_unit_test(layer_list),          cmocka_unit_test(known_work),
        cmocka_unit_test(groups_follow_depth), cmocka_unit_test(refused),
        cmocka_unit_test(wrong_table),         cmocka_unit_test(dropout_places),
        cmocka_unit_test(architecture_table),  cmocka_unit_test(out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
