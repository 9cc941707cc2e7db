/*
 * test_model.c - model files that are not what they should be: each is refused with a message that says why.
 */
#include "base/alloc.h"
#include "base/file.h"
#include "io/io.h"
#include "model/model.h"
#include "support/check.h"
#include "support/root.h"

/* A file as retort would write it for mlp:4 on two features and three classes, from any number of tensors and
 * lines. */
enum { TENSORS = 4, LINES = 3 };
static float weights[12];
static rt_st_tensor tensors[TENSORS + 1];
static rt_st_meta lines[LINES];
static char names[TENSORS][64];

static const char *write_file(const char *name, int64_t n, int64_t nmeta) {
    const char *path = in_root(name);
    assert_int_equal(rt_safetensors_write(path, tensors, n, lines, nmeta), RT_OK);
    return path;
}

static void reset(void) {
    rt_params *params;
    rt_net *net;
    rt_arch_config a = {.spec = "mlp:4", .input = rt_shape1(2), .outputs = 3};
    assert_int_equal(rt_params_create(&params), RT_OK);
    assert_int_equal(rt_net_create(&net, &a, params, NULL), RT_OK);
    assert_int_equal(rt_params_count(params), TENSORS);
    for (int i = 0; i < 12; i++)
        weights[i] = (float)i / 10;
    for (int i = 0; i < TENSORS; i++) {
        const rt_param *p = rt_params_get(params, i);
        snprintf(names[i], sizeof names[i], "%s", p->name);
        tensors[i] = (rt_st_tensor){names[i], "F32", p->shape, weights, (size_t)p->count * sizeof(float)};
    }
    rt_net_destroy(&net);
    rt_params_destroy(&params);
    tensors[TENSORS] = (rt_st_tensor){"extra", "F32", rt_shape1(2), weights, 8};
    lines[0] = (rt_st_meta){"architecture",
                            "{\"spec\":\"mlp:4\",\"input\":[2],\"outputs\":3,\"activation\":\"relu\","
                            "\"dropout\":0,\"dropout_input\":false}"};
    lines[1] = (rt_st_meta){"preprocessing", "{\"mean\":[0,1],\"std\":[1,2]}"};
    lines[2] = (rt_st_meta){"task", "{\"kind\":\"classification\",\"classes\":[\"a\",\"b\",\"c\"]}"};
}

static void expect_refused(const char *path, const char *says) {
    rt_model *m;
    rt_status st = rt_model_load(&m, path);
    if (st == RT_OK)
        fail_msg("accepted; wanted '%s'", says);
    assert_null(m);
    assert_int_equal(st, RT_E_INPUT);
    if (!strstr(rt_error_text(), says) || !strstr(rt_error_text(), root.path))
        fail_msg("'%s' does not say '%s'", rt_error_text(), says);
}

static void test_good(void **state) {
    (void)state;
    rt_model *m;
    reset();
    if (rt_model_load(&m, write_file("good", TENSORS, LINES)) != RT_OK)
        fail_msg("%s", rt_error_text());
    assert_int_equal(rt_model_members(m), 1);
    assert_string_equal(rt_model_class_name(m, 2), "c");
    assert_null(rt_model_class_name(m, 3));
    assert_null(rt_model_meta(m, "provenance"));
    assert_true(rt_model_block(m, 0)[rt_params_get(rt_model_params(m), 0)->offset + 1] == weights[1]);
    rt_model_destroy(&m);
}

static void test_metadata(void **state) {
    (void)state;
    static const struct {
        int line;
        const char *text, *says;
    } cases[] = {
        {0, "", "metadata"},
        {0, "[]", "'architecture' must have"},
        {0,
         "{\"spec\":\"mlp:4\",\"input\":[2,2],\"outputs\":3,\"activation\":\"relu\",\"dropout\":0,\"dropout_"
         "input\":false}",
         "'architecture' must have"},
        {0,
         "{\"spec\":\"mlp:4\",\"input\":[-2],\"outputs\":3,\"activation\":\"relu\",\"dropout\":0,\"dropout_"
         "input\":false}",
         "input dimension 0"},
        {0,
         "{\"spec\":\"mlp:4\",\"input\":[2],\"outputs\":0,\"activation\":\"relu\",\"dropout\":0,\"dropout_"
         "input\":false}",
         "outputs"},
        {0,
         "{\"spec\":\"mlp:4\",\"input\":[2],\"outputs\":3,\"activation\":\"relu\",\"dropout\":1,\"dropout_"
         "input\":false}",
         "dropout"},
        {0,
         "{\"spec\":\"mpl:4\",\"input\":[2],\"outputs\":3,\"activation\":\"relu\",\"dropout\":0,\"dropout_"
         "input\":false}",
         "mpl"},
        {0,
         "{\"spec\":\"mlp:5\",\"input\":[2],\"outputs\":3,\"activation\":\"relu\",\"dropout\":0,\"dropout_"
         "input\":false}",
         "wanted 5x2"},
        {1, "{}", "mean and std of 2 numbers"},
        {1, "{\"mean\":[0],\"std\":[1]}", "mean and std of 2 numbers"},
        {1, "{\"mean\":[0,1],\"std\":[1,0]}", "std above 0"},
        {1, "{\"mean\":[0,\"1\"],\"std\":[1,1]}", "std above 0"},
        {2, "{}", "kind"},
        {2, "{\"kind\":\"ranking\"}", "ranking"},
        {2, "{\"kind\":\"regression\",\"target_mean\":0,\"target_std\":1}", "regression has 2"},
        {2, "{\"kind\":\"regression\",\"target_mean\":0,\"target_std\":0}", "target_std above 0"},
        {2, "{\"kind\":\"classification\",\"classes\":[\"a\",\"b\"]}", "2 class names for 3 outputs"},
        {2, "{\"kind\":\"classification\",\"classes\":[\"a\",\"b\",3]}", "class name 2"},
    };
    for (int64_t i = 0; i < RT_COUNT(cases); i++) {
        reset();
        lines[cases[i].line].value = cases[i].text;
        expect_refused(write_file("bad", TENSORS, LINES), cases[i].says);
    }
    for (int n = 0; n < LINES; n++) {
        reset();
        expect_refused(write_file("bad", TENSORS, n), "not a model written by retort");
    }
}

static void test_tensors(void **state) {
    (void)state;
    reset();
    expect_refused(write_file("bad", TENSORS - 1, LINES), "is missing, wanted 3");
    expect_refused(write_file("bad", TENSORS + 1, LINES), "extra is not part of the network");
    tensors[TENSORS].name = "bn.num_batches_tracked";
    rt_model *m;
    assert_int_equal(rt_model_load(&m, write_file("bad", TENSORS + 1, LINES)), RT_OK);
    rt_model_destroy(&m);
    tensors[0].shape = rt_shape2(2, 4);
    expect_refused(write_file("bad", TENSORS, LINES), "is 2x4, wanted 4x2");
    reset();
    weights[1] = NAN;
    expect_refused(write_file("bad", TENSORS, LINES), "element 1 of ");
    weights[1] = -INFINITY;
    expect_refused(write_file("bad", TENSORS, LINES), "is not finite");
    reset();
    tensors[1].dtype = "I32";
    expect_refused(write_file("bad", TENSORS, LINES), names[1]);
}

static void test_directories(void **state) {
    (void)state;
    reset();
    expect_refused(root.path, "no model.safetensors and no member-");
    write_file("member-000.safetensors", TENSORS, LINES);
    write_file("member-002.safetensors", TENSORS, LINES);
    expect_refused(root.path, "2 of 3 member files");
    lines[1].value = "{\"mean\":[],\"std\":[]}";
    write_file("member-001.safetensors", TENSORS, LINES);
    expect_refused(root.path, "preprocessing differs");
    reset();
    write_file("member-001.safetensors", TENSORS, LINES);
    rt_model *m;
    if (rt_model_load(&m, root.path) != RT_OK)
        fail_msg("%s", rt_error_text());
    assert_int_equal(rt_model_members(m), 3);
    rt_model_destroy(&m);
    write_file("model.safetensors", TENSORS, LINES);
    expect_refused(root.path, "holds model.safetensors and member files");
    expect_refused(in_root("none"), "none");
}

/* What a network says, in the target's units and back; log-variances are cut in either direction. */
static void test_target_units(void **state) {
    (void)state;
    const rt_target t = {.mean = 1000, .std = 25};
    float y[] = {0.5f, 2};
    rt_target_unscale(&t, y);
    assert_true(y[0] == 1012.5f && y[1] == (float)(625 * exp(2)));
    rt_target_rescale(&t, y);
    assert_true(y[0] == 0.5f && fabsf(y[1] - 2) < 1e-6f);
    y[1] = 11;
    rt_target_unscale(&t, y);
    assert_true(y[1] == (float)(625 * exp(10)));
    y[1] = 1e-30f;
    rt_target_rescale(&t, y);
    assert_true(y[1] == -10);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_target_units), cmocka_unit_test(test_good),
                                       cmocka_unit_test(test_metadata), cmocka_unit_test(test_tensors),
                                       cmocka_unit_test(test_directories)};
    return cmocka_run_group_tests(tests, make_root, remove_root);
}
