/*
 * test_line.c - the segment between two members: its ends are the members, it is flat between equal ones, and
 * statistics of batch normalisation are those of the data.
 */
#include "assess/assess.h"
#include "base/rng.h"
#include "support/flags.h"
#include "support/root.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { POINTS = 21 };

static void make_run(unsigned verb, const char *dir, const flag *flags, int n) {
    rt_config c;
    configure(&c, verb, (const flag[]){{"out", dir}, {"threads", "1"}, {NULL, NULL}});
    for (int i = 0; i < n; i++)
        set_flag(&c, verb, flags[i].key, flags[i].value);
    OK(run_config(&c, verb, NULL));
}

static void train(const char *dir, const flag *flags, int n) {
    make_run(RT_VERB_TRAIN, dir, flags, n);
}

typedef struct result {
    double loss[POINTS], accuracy[POINTS];
    double alone[2];     /* nll of the members, least and greatest */
    bool line, accurate; /* is there one */
} result;

static bool numbers(rt_jval array, double *out) {
    if (!array)
        return false;
    assert_int_equal(rt_jval_len(array), POINTS);
    for (int i = 0; i < POINTS; i++)
        assert_true(rt_jval_f64(rt_jval_at(array, i), &out[i]));
    return true;
}

static result assess(const char *dir, const char *data) {
    rt_pool *pool;
    rt_assessment *a = NULL;
    rt_jdoc *doc;
    rt_str text;
    rt_json j;
    result r = {0};
    OK(rt_pool_create(&pool, 2));
    rt_assess_options o = {.data = data, .curves = true};
    OK(rt_assess_run(&o, &dir, 1, pool, &a));
    rt_assessment_value(a, "test.single_min.nll", &r.alone[0], NULL);
    rt_assessment_value(a, "test.single_max.nll", &r.alone[1], NULL);
    rt_str_init(&text);
    rt_json_init(&j, &text, false);
    rt_assessment_write(a, &j, NULL, true);
    OK(rt_jdoc_parse(&doc, rt_str_text(&text), text.len, "assessment"));
    const rt_jval line = rt_jval_get(rt_jval_get(rt_jdoc_root(doc), "curves"), "line");
    double alpha[POINTS];
    r.line = line && numbers(rt_jval_get(line, "alpha"), alpha) && numbers(rt_jval_get(line, "loss"), r.loss);
    r.accurate = r.line && numbers(rt_jval_get(line, "accuracy"), r.accuracy);
    for (int i = 0; r.line && i < POINTS; i++)
        assert_true(fabs(alpha[i] - i / 20.0) < 1e-12);
    rt_jdoc_destroy(&doc);
    rt_str_deinit(&text);
    rt_assessment_destroy(&a);
    rt_pool_destroy(&pool);
    return r;
}

static void ends_are_the_members(const result *r, double tol) {
    assert_true(r->line);
    near(fmin(r->loss[0], r->loss[POINTS - 1]), r->alone[0], tol);
    near(fmax(r->loss[0], r->loss[POINTS - 1]), r->alone[1], tol);
}

static void plain_networks(void **state) {
    (void)state;
    const flag flags[] = {{"data", "spiral:n=60"}, {"arch", "mlp:12,12"}, {"members", "2"}, {"epochs", "20"}};
    train(in_root("plain"), flags, RT_COUNT(flags));
    const result r = assess(in_root("plain"), "spiral:n=60");
    ends_are_the_members(&r, 1e-9);
    assert_true(r.accurate);
    for (int i = 0; i < POINTS; i++)
        assert_true(isfinite(r.loss[i]) && r.accuracy[i] >= 0 && r.accuracy[i] <= 1);
    assert_true(fabs(r.loss[10] - r.loss[0]) > 1e-6); /* it does move */
}

/* One file in place of the other: every point is the same network. */
static void equal_members(void **state) {
    (void)state;
    char command[2500];
    snprintf(command, sizeof command, "cp %s/member-000.safetensors %s/member-001.safetensors",
             in_root("plain"), in_root("plain"));
    assert_int_equal(system(command), 0);
    const result r = assess(in_root("plain"), "spiral:n=60");
    for (int i = 0; i < POINTS; i++) {
        near(r.loss[i], r.loss[0], 1e-6);
        near(r.accuracy[i], r.accuracy[0], 0);
    }
}

static void one_network_has_none(void **state) {
    (void)state;
    const flag flags[] = {{"data", "spiral:n=60"}, {"arch", "mlp:6"}, {"epochs", "1"}};
    train(in_root("one"), flags, RT_COUNT(flags));
    assert_false(assess(in_root("one"), "spiral:n=60").line);
}

static void regression(void **state) {
    (void)state;
    float x[80 * 2], y[80];
    rt_rng r = rt_rng_make(4, RT_RNG_TEST, 0, 0);
    for (uint64_t i = 0; i < 80; i++) {
        x[2 * i] = (float)rt_rng_normal(r, 3 * i);
        x[2 * i + 1] = (float)rt_rng_normal(r, 3 * i + 1);
        y[i] = 100 + 20 * (x[2 * i] - x[2 * i + 1]) + (float)rt_rng_normal(r, 3 * i + 2);
    }
    char spec[2500];
    const rt_shape sx = rt_shape2(80, 2), sy = rt_shape1(80);
    OK(rt_npy_write(in_root("rx.npy"), RT_DTYPE_F32, &sx, x));
    OK(rt_npy_write(in_root("ry.npy"), RT_DTYPE_F32, &sy, y));
    snprintf(spec, sizeof spec, "npy:%s,%s,task=regression", in_root("rx.npy"), in_root("ry.npy"));
    const flag flags[] = {
        {"data", spec}, {"arch", "mlp:8"}, {"members", "2"}, {"epochs", "5"}, {"lr", "0.01"}};
    train(in_root("regression"), flags, RT_COUNT(flags));
    const result got = assess(in_root("regression"), spec);
    ends_are_the_members(&got, 1e-9);
    assert_false(got.accurate);
}

/* Weights that stay as they were drawn (rate 0) and running statistics that had a hundred steps to reach those
 * of the training rows: estimating them anew changes little, one row in 128 at most. */
static void statistics_of_the_data(void **state) {
    (void)state;
    enum { ROWS = 160, PIXELS = 3 * 8 * 8 };
    static float x[ROWS * PIXELS];
    int32_t y[ROWS];
    rt_rng r = rt_rng_make(5, RT_RNG_TEST, 0, 0);
    for (uint64_t i = 0; i < ROWS; i++) {
        y[i] = (int32_t)(i % 2);
        for (uint64_t k = 0; k < PIXELS; k++)
            x[i * PIXELS + k] = (float)(0.5 + 0.2 * rt_rng_normal(r, i * PIXELS + k));
    }
    char spec[2500];
    const rt_shape sx = rt_shape4(ROWS, 3, 8, 8), sy = rt_shape1(ROWS);
    OK(rt_npy_write(in_root("x.npy"), RT_DTYPE_F32, &sx, x));
    OK(rt_npy_write(in_root("y.npy"), RT_DTYPE_I32, &sy, y));
    snprintf(spec, sizeof spec, "npy:%s,%s,task=classification,test=0.2", in_root("x.npy"), in_root("y.npy"));
    const flag flags[] = {{"data", spec},   {"arch", "wrn:10,1"}, {"members", "2"}, {"epochs", "100"},
                          {"batch", "127"}, {"valid", "1"},       {"lr", "0"},      {"keep", "last"}};
    train(in_root("bn"), flags, RT_COUNT(flags));
    const result got = assess(in_root("bn"), spec);
    ends_are_the_members(&got, 0.02);
    assert_true(fabs(got.loss[0] - got.loss[POINTS - 1]) > 0.03); /* which the members are not */
}

/* The loss of one network in a file on these rows. */
static double alone(const char *file, const char *data) {
    rt_assessment *a;
    rt_pool *pool;
    double nll;
    OK(rt_pool_create(&pool, 1));
    OK(rt_assess_run(&(rt_assess_options){.data = data}, &file, 1, pool, &a));
    assert_true(rt_assessment_value(a, "test.nll", &nll, NULL));
    rt_assessment_destroy(&a);
    rt_pool_destroy(&pool);
    return nll;
}

/* Members inside one network: the ends are the members as they answer themselves. */
static void members_inside(void **state) {
    (void)state;
    const flag flags[] = {
        {"data", "spiral:n=60"}, {"arch", "mlp:12,12"}, {"student", "batch-ensemble:3"}, {"epochs", "20"}};
    train(in_root("be"), flags, RT_COUNT(flags));
    const result r = assess(in_root("be"), "spiral:n=60");
    assert_true(r.line && r.accurate);
    /* least and greatest over three members hold those of the first two */
    for (int end = 0; end < POINTS; end += POINTS - 1)
        assert_true(r.loss[end] >= r.alone[0] - 1e-6 && r.loss[end] <= r.alone[1] + 1e-6);
    assert_true(fabs(r.loss[10] - r.loss[0]) > 1e-6 && fabs(r.loss[0] - r.loss[POINTS - 1]) > 1e-6);
}

/* LatentBE of two: its middle is the network that it collapsed to. */
static void collapsed(void **state) {
    (void)state;
    char command[1300], teacher[1200];
    const flag flags[] = {{"data", "spiral:n=60"}, {"arch", "mlp:12,12"}, {"members", "2"}, {"epochs", "5"}};
    train(in_root("teacher"), flags, RT_COUNT(flags));
    snprintf(teacher, sizeof teacher, "%s", in_root("teacher"));
    const flag more[] = {{"data", "spiral:n=60"},
                         {"arch", "mlp:12,12"},
                         {"teacher", teacher},
                         {"epochs", "20"},
                         {"method", "latent-be"}};
    make_run(RT_VERB_DISTILL, in_root("latent"), more, RT_COUNT(more));
    const result r = assess(in_root("latent"), "spiral:n=60");
    assert_true(r.line && r.accurate);
    near(r.loss[10], alone(in_root("latent"), "spiral:n=60"), 1e-6);
    assert_true(fabs(r.loss[0] - r.loss[POINTS - 1]) > 1e-9);
    snprintf(command, sizeof command, "rm %s/members.safetensors", in_root("latent"));
    assert_int_equal(system(command), 0);
    assert_false(assess(in_root("latent"), "spiral:n=60").line);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_networks),
        cmocka_unit_test(equal_members),
        cmocka_unit_test(one_network_has_none),
        cmocka_unit_test(regression),
        cmocka_unit_test(statistics_of_the_data),
        cmocka_unit_test(members_inside),
        cmocka_unit_test(collapsed),
    };
    return cmocka_run_group_tests(tests, make_root, remove_root);
}
