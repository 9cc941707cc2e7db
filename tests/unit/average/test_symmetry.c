/*
 * test_symmetry.c - the bundles found in a network's graph are the ones that exist, and renumbering any of
 * them changes the weights and not the function.
 */
#include "average/average.h"
#include "base/alloc.h"
#include "plan/plan.h"
#include "support/check.h"
#include <math.h>
#include <string.h>

enum { BATCH = 2 };

typedef struct fixture {
    rt_params *params;
    rt_net *net;
    rt_symmetry sym;
    rt_pool *pool;
    rt_graph *g;
    rt_plan *plan;
    rt_exec *exec;
    float *x, *y[2], *block[2];
    int64_t floats, outputs, *perm;
} fixture;

/* All at random, norms and statistics too, so that a mistake shows. */
static void fill(const rt_params *params, float *block) {
    for (int i = 0; i < rt_params_count(params); i++) {
        const rt_param *p = rt_params_get(params, i);
        const rt_rng r = rt_rng_make(7, RT_RNG_TEST, (uint64_t)i, 0);
        const bool weight = p->role == RT_ROLE_WEIGHT;
        const float low = weight ? -0.5f : 0.5f, scale = weight ? 4 / sqrtf((float)p->fan_in) : 1;
        uint32_t four[4] = {0};
        for (int64_t k = 0; k < p->count; k++) {
            if (k % 4 == 0)
                rt_rng_block(r, (uint64_t)k, four);
            block[p->offset + k] = scale * (low + (float)(four[k % 4] >> 8) / (float)(1 << 24));
        }
    }
}

static void open_fixture(fixture *f, rt_arch_config c) {
    memset(f, 0, sizeof *f);
    OK(rt_params_create(&f->params));
    OK(rt_net_create(&f->net, &c, f->params, NULL));
    OK(rt_symmetry_find(&f->sym, f->net, f->params));
    OK(rt_pool_create(&f->pool, 1));
    OK(rt_graph_create(&f->g, BATCH, RT_DTYPE_F32));
    rt_build b = {.g = f->g, .params = f->params};
    rt_graph_output(f->g, "y",
                    rt_net_forward(f->net, &b, rt_graph_input(f->g, "x", RT_DTYPE_F32, c.input, 1)));
    OK(rt_plan_compile(&f->plan, f->g, (rt_plan_options){.whole_batch = true}));
    OK(rt_exec_create(&f->exec, f->plan, f->pool));
    const int64_t row = rt_shape_elems(&c.input);
    f->floats = rt_params_floats(f->params);
    f->outputs = c.outputs * BATCH;
    OK(rt_calloc(&f->x, (size_t)(row * BATCH), sizeof(float)));
    OK(rt_calloc(&f->perm, (size_t)f->sym.total + 1, sizeof *f->perm));
    for (int i = 0; i < 2; i++) {
        OK(rt_calloc(&f->y[i], (size_t)f->outputs, sizeof(float)));
        OK(rt_calloc(&f->block[i], (size_t)f->floats, sizeof(float)));
    }
    for (int64_t k = 0; k < row * BATCH; k++)
        f->x[k] = (float)rt_rng_normal(rt_rng_make(3, RT_RNG_TEST, 0, 0), (uint64_t)k);
    fill(f->params, f->block[0]);
}

static void close_fixture(fixture *f) {
    for (int i = 0; i < 2; i++) {
        rt_free(f->y[i]);
        rt_free(f->block[i]);
    }
    rt_free(f->x);
    rt_free(f->perm);
    rt_exec_destroy(&f->exec);
    rt_plan_destroy(&f->plan);
    rt_graph_destroy(&f->g);
    rt_pool_destroy(&f->pool);
    rt_symmetry_deinit(&f->sym);
    rt_net_destroy(&f->net);
    rt_params_destroy(&f->params);
}

static void run(fixture *f, int which) {
    rt_exec_bind_block(f->exec, 0, f->block[which], rt_params_offsets(f->params), rt_params_count(f->params));
    rt_exec_bind_input(f->exec, 0, f->x);
    rt_exec_bind_output(f->exec, 0, f->y[which]);
    rt_exec_run(&f->exec, &(rt_run){0}, 1, f->pool);
}

/* Largest difference of the outputs, relative to the largest output. */
static double difference(const fixture *f) {
    double most = 0, size = 0;
    for (int64_t k = 0; k < f->outputs; k++) {
        most = fmax(most, fabs((double)f->y[0][k] - (double)f->y[1][k]));
        size = fmax(size, fabs((double)f->y[0][k]));
    }
    assert_true(size > 0 && isfinite(size));
    return most / size;
}

static const struct {
    const char *spec;
    rt_shape input;
    int64_t outputs;
    int bundles;
    int64_t total;
    const char *first; /* name of the first bundle */
} archs[] = {
    {"mlp:512", {1, {20}}, 10, 1, 512, "layers.0"},
    {"mlp:64,32,16", {3, {1, 8, 8}}, 10, 3, 112, "layers.0"},
    {"mlp:24", {3, {3, 4, 4}}, 2, 1, 24, "layers.0"},
    /* 13 convolutions and two dense layers; 2 x 2 maps are left of 28 pixels and of 32 one */
    {"vgg16", {3, {3, 32, 32}}, 10, 15, 4224 + 4096, "features.0"},
    {"vgg16", {3, {1, 12, 12}}, 10, 15, 4224 + 4096, "features.0"},
    /* one stream per width, and the inside of each block */
    {"resnet20", {3, {3, 32, 32}}, 10, 3 + 9, 16 + 32 + 64 + 3 * (16 + 32 + 64), "conv1"},
    {"resnet18", {3, {3, 16, 16}}, 10, 4 + 8, 960 + 2 * 960, "conv1"},
    {"resnet18", {3, {3, 64, 64}}, 10, 4 + 8, 960 + 2 * 960, "conv1"},
    /* the stem's 64 are a bundle of their own, because the first block has a projection */
    {"resnet50",
     {3, {3, 8, 8}},
     10,
     1 + 4 + 32,
     64 + 3840 + 2 * (3 * 64 + 4 * 128 + 6 * 256 + 3 * 512),
     "conv1"},
    {"wrn:10,1", {3, {3, 16, 16}}, 10, 3 + 3, 112 + 112, "conv1"},
    {"wrn:16,2", {3, {3, 16, 16}}, 10, 1 + 3 + 6, 16 + 224 + 448, "conv1"},
};

static void every_architecture(void **state) {
    (void)state;
    for (int64_t i = 0; i < RT_COUNT(archs); i++) {
        fixture f;
        double mean[3] = {0.1, 0.2, 0.3}, std[3] = {2, 3, 4};
        const bool plain = archs[i].input.rank == 1;
        open_fixture(&f, (rt_arch_config){.spec = archs[i].spec,
                                          .input = archs[i].input,
                                          .outputs = archs[i].outputs,
                                          .norm = plain ? 0 : (int)archs[i].input.d[0],
                                          .mean = mean,
                                          .std = std});
        if (f.sym.bundles != archs[i].bundles || f.sym.total != archs[i].total || f.sym.nfixed != 0 ||
            strcmp(f.sym.bundle[0].name, archs[i].first) != 0) {
            rt_str text;
            rt_str_init(&text);
            rt_symmetry_print(&f.sym, f.params, &text);
            fail_msg("%s: %d bundles of %lld units, %d fixed; wanted %d, %lld, 0\n%s", archs[i].spec,
                     f.sym.bundles, (long long)f.sym.total, f.sym.nfixed, archs[i].bundles,
                     (long long)archs[i].total, rt_str_text(&text));
        }
        run(&f, 0);
        rt_perm_random(&f.sym, f.perm, rt_rng_make(1, RT_RNG_TEST, 9, 0));
        rt_perm_apply(&f.sym, f.params, f.block[1], f.block[0], f.perm);
        run(&f, 1);
        if (!(difference(&f) < 1e-4))
            fail_msg("%s: outputs differ by %g of their size", archs[i].spec, difference(&f));
        close_fixture(&f);
    }
}

/* Each bundle alone moves weights; the same permutation applied to one of its axes only breaks the function,
 * which shows that the comparison above can fail. */
static void each_bundle(void **state) {
    (void)state;
    static const char *const specs[] = {"mlp:64,32", "wrn:10,2", "resnet20"};
    for (int64_t i = 0; i < RT_COUNT(specs); i++) {
        fixture f;
        open_fixture(&f, (rt_arch_config){.spec = specs[i], .input = rt_shape3(3, 8, 8), .outputs = 5});
        run(&f, 0);
        for (int g = 0; g < f.sym.bundles; g++) {
            const rt_sym_bundle *bundle = &f.sym.bundle[g];
            rt_perm_identity(&f.sym, f.perm);
            rt_rng_permutation(rt_rng_make(2, RT_RNG_TEST, (uint64_t)g, 1), f.perm + bundle->offset,
                               bundle->n);
            rt_perm_apply(&f.sym, f.params, f.block[1], f.block[0], f.perm);
            assert_memory_not_equal(f.block[0], f.block[1], (size_t)f.floats * sizeof(float));
            run(&f, 1);
            assert_true(difference(&f) < 1e-4);
            for (int k = 0; k < f.sym.slots * RT_MAX_RANK; k++) {
                if (f.sym.axis[k].bundle != g)
                    continue;
                f.sym.axis[k].bundle = -1;
                rt_perm_apply(&f.sym, f.params, f.block[1], f.block[0], f.perm);
                f.sym.axis[k].bundle = g;
                run(&f, 1);
                assert_true(difference(&f) > 1e-4);
            }
        }
        close_fixture(&f);
    }
}

/* ---- what no architecture of ours has, on graphs written here ---- */

static rt_val param(rt_graph *g, rt_params *params, const char *name, rt_shape s) {
    int slot;
    OK(rt_params_add(params, (rt_param){.name = name, .shape = s}, &slot));
    return rt_graph_param(g, slot, name, s);
}

/* A dense layer behind a map follows whole channels: each is 9 consecutive columns. */
static void flattened_maps(void **state) {
    (void)state;
    rt_graph *g;
    rt_params *params;
    rt_symmetry s;
    OK(rt_graph_create(&g, BATCH, RT_DTYPE_F32));
    OK(rt_params_create(&params));
    rt_val x = rt_graph_input(g, "x", RT_DTYPE_F32, rt_shape3(2, 3, 3), 1);
    rt_val h = rt_relu(g, rt_conv2d(g, x, param(g, params, "conv.weight", rt_shape4(4, 2, 3, 3)), 1, 1));
    rt_graph_output(
        g, "y", rt_matmul(g, rt_flatten(g, h), param(g, params, "fc.weight", rt_shape2(5, 36)), false, true));
    OK(rt_symmetry_of(&s, g, params, rt_graph_find_output(g, "y")));
    assert_int_equal(s.bundles, 1);
    assert_int_equal(s.bundle[0].n, 4);
    assert_int_equal(rt_symmetry_axis(&s, 0, 0).bundle, 0);
    assert_int_equal(rt_symmetry_axis(&s, 0, 1).bundle, -1);
    assert_int_equal(rt_symmetry_axis(&s, 1, 0).bundle, -1);
    assert_int_equal(rt_symmetry_axis(&s, 1, 1).bundle, 0);
    assert_int_equal(rt_symmetry_axis(&s, 1, 1).repeat, 9);

    const int64_t perm[4] = {2, 0, 3, 1};
    float in[36 * BATCH], block[2][512], y[2][5 * BATCH];
    for (int k = 0; k < 36; k++)
        in[k] = (float)rt_rng_normal(rt_rng_make(3, RT_RNG_TEST, 0, 0), (uint64_t)k);
    fill(params, block[0]);
    rt_perm_apply(&s, params, block[1], block[0], perm);
    for (int i = 0; i < 2; i++) {
        const void *p[2] = {block[i], block[i] + rt_params_get(params, 1)->offset}, *inputs[1] = {in};
        void *out[1] = {y[i]};
        OK(rt_interp_run(g, p, inputs, NULL, out, (rt_run){0}));
    }
    for (int k = 0; k < 5 * BATCH; k++)
        assert_float_equal(y[0][k], y[1][k], 1e-4);
    rt_symmetry_deinit(&s);
    rt_params_destroy(&params);
    rt_graph_destroy(&g);
}

/* An operation that mixes features holds its units in place, and says so. */
static void unknown_operations(void **state) {
    (void)state;
    rt_graph *g;
    rt_params *params;
    rt_symmetry s;
    OK(rt_graph_create(&g, BATCH, RT_DTYPE_F32));
    OK(rt_params_create(&params));
    rt_val x = rt_graph_input(g, "x", RT_DTYPE_F32, rt_shape1(3), 1);
    rt_val a = rt_relu(g, rt_matmul(g, x, param(g, params, "a.weight", rt_shape2(8, 3)), false, true));
    rt_val b =
        rt_slice_last(g, rt_matmul(g, a, param(g, params, "b.weight", rt_shape2(6, 8)), false, true), 0, 4);
    rt_val y = rt_matmul(g, b, param(g, params, "c.weight", rt_shape2(2, 4)), false, true);
    OK(rt_symmetry_of(&s, g, params, y));
    assert_int_equal(s.bundles, 1);
    assert_string_equal(s.bundle[0].name, "a");
    assert_int_equal(s.nfixed, 2);
    assert_string_equal(s.fixed[0].name, "b");
    assert_string_equal(s.fixed[0].reason, "slice_last");
    rt_str text;
    rt_str_init(&text);
    rt_symmetry_print(&s, params, &text);
    assert_non_null(strstr(rt_str_text(&text), "b (6): cannot move: slice_last"));
    rt_str_deinit(&text);
    rt_symmetry_deinit(&s);
    rt_params_destroy(&params);
    rt_graph_destroy(&g);
}

static void compose_and_invert(void **state) {
    (void)state;
    fixture f;
    open_fixture(&f, (rt_arch_config){.spec = "mlp:31,17", .input = rt_shape1(4), .outputs = 3});
    int64_t a[48], b[48], c[48], tmp[48];
    float *once = NULL, *twice = NULL;
    OK(rt_calloc(&once, (size_t)f.floats, sizeof *once));
    OK(rt_calloc(&twice, (size_t)f.floats, sizeof *twice));
    rt_perm_random(&f.sym, a, rt_rng_make(1, RT_RNG_TEST, 0, 0));
    rt_perm_random(&f.sym, b, rt_rng_make(2, RT_RNG_TEST, 0, 0));
    rt_perm_compose(&f.sym, c, a, b, tmp);
    rt_perm_apply(&f.sym, f.params, once, f.block[0], a);
    rt_perm_apply(&f.sym, f.params, twice, once, b);
    rt_perm_apply(&f.sym, f.params, f.block[1], f.block[0], c);
    assert_memory_equal(twice, f.block[1], (size_t)f.floats * sizeof(float));
    rt_perm_invert(&f.sym, b, c);
    rt_perm_apply(&f.sym, f.params, once, twice, b);
    assert_memory_equal(once, f.block[0], (size_t)f.floats * sizeof(float));
    rt_free(once);
    rt_free(twice);
    close_fixture(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_architecture), cmocka_unit_test(each_bundle),
        cmocka_unit_test(flattened_maps),     cmocka_unit_test(unknown_operations),
        cmocka_unit_test(compose_and_invert),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
