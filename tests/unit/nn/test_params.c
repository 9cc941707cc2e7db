/*
 * test_params.c - the table of parameters: slots, places in the block, names, and what initial values are
 * drawn from.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "nn/nn.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

static rt_param spec(const char *name, int64_t n, rt_init init, int64_t fan_in, int64_t fan_out,
                     double scale) {
    return (rt_param){.name = name,
                      .shape = rt_shape1(n),
                      .init = init,
                      .init_scale = scale,
                      .fan_in = fan_in,
                      .fan_out = fan_out};
}

static void places(void **state) {
    (void)state;
    rt_params *p;
    assert_int_equal(rt_params_create(&p), RT_OK);
    int64_t floats = 0, trained = 0;
    for (int i = 0; i < 100; i++) {
        char name[16];
        snprintf(name, sizeof name, "p%d", i);
        rt_param s = spec(name, 1 + 7 * i, RT_INIT_ZERO, 1, 1, 0);
        s.role = i % 5 == 0 ? RT_ROLE_STATE : RT_ROLE_WEIGHT;
        int slot = -1;
        assert_int_equal(rt_params_add(p, s, &slot), RT_OK);
        assert_int_equal(slot, i);
        const rt_param *line = rt_params_get(p, i);
        assert_int_equal(line->offset, floats);
        assert_int_equal(line->offset % 16, 0);
        assert_int_equal(line->count, 1 + 7 * i);
        assert_string_equal(line->name, name);
        floats = (floats + line->count + 15) / 16 * 16;
        trained += i % 5 ? line->count : 0;
        assert_int_equal(rt_params_floats(p), floats);
    }
    assert_int_equal(rt_params_trainable(p), trained);
    assert_int_equal(rt_params_count(p), 100);
    assert_int_equal(rt_params_find(p, "p42"), 42);
    assert_int_equal(rt_params_find(p, "p100"), -1);
    rt_params_destroy(&p);
    assert_null(p);
}

static void bad_lines(void **state) {
    (void)state;
    rt_params *p;
    assert_int_equal(rt_params_create(&p), RT_OK);
    assert_int_equal(rt_params_add(p, spec("w", 3, RT_INIT_ONE, 1, 1, 0), NULL), RT_OK);
    assert_int_equal(rt_params_add(p, spec("w", 3, RT_INIT_ONE, 1, 1, 0), NULL), RT_E_USAGE);
    assert_int_equal(rt_params_add(p, spec("e", 0, RT_INIT_ONE, 1, 1, 0), NULL), RT_E_USAGE);
    assert_int_equal(rt_params_add(p, spec("h", INT64_MAX - 4, RT_INIT_ONE, 1, 1, 0), NULL), RT_E_USAGE);
    rt_param huge = spec("g", 1, RT_INIT_ONE, 1, 1, 0);
    huge.shape = rt_shape2(INT64_MAX / 2, 3);
    assert_int_equal(rt_params_add(p, huge, NULL), RT_E_USAGE);
    assert_int_equal(rt_params_count(p), 1);
    rt_params_destroy(&p);
}

/* Mean, deviation and range of 40,000 draws of each rule. */
static void distributions(void **state) {
    (void)state;
    enum { N = 40000 };
    static const struct {
        const char *name;
        rt_init init;
        int64_t in, out;
        double scale, mean, std, bound;
    } rule[] = {
        {"zero", RT_INIT_ZERO, 9, 9, 0, 0, 0, 0},
        {"one", RT_INIT_ONE, 9, 9, 0, 1, 0, 1},
        {"torch", RT_INIT_TORCH, 25, 9, 0, 0, 0.2 / 1.7320508, 0.2},
        {"default", RT_INIT_DEFAULT, 25, 9, 0, 0, 0.2 / 1.7320508, 0.2},
        {"he_out", RT_INIT_HE_FAN_OUT, 3, 8, 0, 0, 0.5, 99},
        {"he_in", RT_INIT_HE_FAN_IN, 32, 3, 0, 0, 0.25, 99},
        {"gain1", RT_INIT_KAIMING_GAIN1, 16, 3, 0, 0, 0.25, 99},
        {"glorot", RT_INIT_GLOROT, 10, 14, 0, 0, 0.5 / 1.7320508, 0.5},
        {"near_one", RT_INIT_NORMAL_AROUND_ONE, 1, 1, 0.5, 1, 0.5, 99},
        {"sign", RT_INIT_RANDOM_SIGN, 1, 1, 0, 0, 1, 1},
    };
    rt_params *p;
    assert_int_equal(rt_params_create(&p), RT_OK);
    for (int64_t i = 0; i < RT_COUNT(rule); i++)
        assert_int_equal(
            rt_params_add(p, spec(rule[i].name, N, rule[i].init, rule[i].in, rule[i].out, rule[i].scale),
                          NULL),
            RT_OK);
    float *w;
    assert_int_equal(rt_alloc(&w, (size_t)rt_params_floats(p) * sizeof *w), RT_OK);
    rt_params_init(p, w, 11);
    for (int64_t i = 0; i < RT_COUNT(rule); i++) {
        const float *v = w + rt_params_get(p, (int)i)->offset;
        double sum = 0, square = 0, most = 0;
        for (int j = 0; j < N; j++) {
            sum += (double)v[j];
            square += (double)v[j] * (double)v[j];
            most = fmax(most, fabs((double)v[j]));
        }
        double mean = sum / N, std = sqrt(fmax(square / N - mean * mean, 0));
        if (fabs(mean - rule[i].mean) > 0.03 || fabs(std - rule[i].std) > 0.01 ||
            most > rule[i].bound * 1.000001)
            fail_msg("%s: mean %g, deviation %g, largest %g", rule[i].name, mean, std, most);
    }
    rt_free(w);
    rt_params_destroy(&p);
}

/* Values depend on seed and name, not on the place in the table; gaps are zero. */
static void pure_function(void **state) {
    (void)state;
    rt_params *p, *q;
    assert_int_equal(rt_params_create(&p), RT_OK);
    assert_int_equal(rt_params_create(&q), RT_OK);
    assert_int_equal(rt_params_add(p, spec("a", 5, RT_INIT_HE_FAN_IN, 4, 4, 0), NULL), RT_OK);
    assert_int_equal(rt_params_add(p, spec("b", 5, RT_INIT_HE_FAN_IN, 4, 4, 0), NULL), RT_OK);
    assert_int_equal(rt_params_add(q, spec("b", 5, RT_INIT_HE_FAN_IN, 4, 4, 0), NULL), RT_OK);
    float w[32], v[16], u[16];
    memset(w, 0xff, sizeof w);
    rt_params_init(p, w, 1);
    rt_params_init(q, v, 1);
    rt_params_init(q, u, 2);
    assert_memory_equal(w + 16, v, 16 * sizeof *v);
    assert_memory_not_equal(w, v, 5 * sizeof *v);
    assert_memory_not_equal(u, v, 5 * sizeof *v);
    for (int i = 5; i < 16; i++)
        assert_true(w[i] == 0);
    rt_params_destroy(&p);
    rt_params_destroy(&q);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(places),
        cmocka_unit_test(bad_lines),
        cmocka_unit_test(distributions),
        cmocka_unit_test(pure_function),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
