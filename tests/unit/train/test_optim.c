/*
 * test_optim.c - update rules against closed forms, computed here in double.
 */
#include "plan/optim.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { N = 37, STEPS = 20 };

/* One scalar, by the formulas of the papers in PyTorch's arrangement. */
static void twin(const rt_optim *o, double *w, double g, double *m, double *v) {
    g *= o->gscale;
    if (o->rule != RT_OPTIM_ADAMW)
        g += o->decay * (*w - o->centre);
    if (o->rule == RT_OPTIM_SGD) {
        *m = o->momentum * *m + g;
        *w -= o->lr * (o->nesterov ? g + o->momentum * *m : *m);
        return;
    }
    double t = (double)o->t + 1;
    if (o->rule == RT_OPTIM_ADAMW)
        *w -= o->lr * o->decay * (*w - o->centre);
    *m = o->beta1 * *m + (1 - o->beta1) * g;
    *v = o->beta2 * *v + (1 - o->beta2) * g * g;
    *w -= o->lr * (*m / (1 - pow(o->beta1, t))) / (sqrt(*v / (1 - pow(o->beta2, t))) + o->eps);
}

static void test_rules(void **state) {
    (void)state;
    static const rt_optim cases[] = {
        {.rule = RT_OPTIM_SGD, .lr = 0.1, .gscale = 1},
        {.rule = RT_OPTIM_SGD, .lr = 0.1, .momentum = 0.9, .gscale = 1},
        {.rule = RT_OPTIM_SGD, .lr = 0.1, .momentum = 0.9, .nesterov = true, .decay = 5e-2, .gscale = 0.3},
        {.rule = RT_OPTIM_ADAM, .lr = 0.01, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .gscale = 1},
        {.rule = RT_OPTIM_ADAM,
         .lr = 0.01,
         .beta1 = 0.9,
         .beta2 = 0.99,
         .eps = 1e-3,
         .decay = 0.1,
         .gscale = 0.5},
        {.rule = RT_OPTIM_ADAMW,
         .lr = 0.01,
         .beta1 = 0.9,
         .beta2 = 0.999,
         .eps = 1e-8,
         .decay = 0.1,
         .gscale = 1},
        {.rule = RT_OPTIM_SGD, .lr = 0.1, .momentum = 0.9, .decay = 5e-2, .centre = 1, .gscale = 1},
        {.rule = RT_OPTIM_ADAM,
         .lr = 0.01,
         .beta1 = 0.9,
         .beta2 = 0.99,
         .eps = 1e-3,
         .decay = 0.1,
         .centre = 1,
         .gscale = 1},
        {.rule = RT_OPTIM_ADAMW,
         .lr = 0.01,
         .beta1 = 0.9,
         .beta2 = 0.999,
         .eps = 1e-8,
         .decay = 0.1,
         .centre = 1,
         .gscale = 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        float w[N], g[N], m[N] = {0}, v[N] = {0};
        double tw[N], tm[N] = {0}, tv[N] = {0};
        rt_optim o = cases[i];
        for (int k = 0; k < N; k++)
            tw[k] = w[k] = (float)(k - 18) / 10;
        for (o.t = 0; o.t < STEPS; o.t++) {
            for (int k = 0; k < N; k++)
                g[k] = (float)sin(k + 3.0 * (double)o.t);
            rt_optim_step(&o, w, g, m, v, N);
            for (int k = 0; k < N; k++)
                twin(&o, &tw[k], (double)g[k], &tm[k], &tv[k]);
        }
        for (int k = 0; k < N; k++)
            if (fabs((double)w[k] - tw[k]) > 2e-5)
                fail_msg("case %zu, element %d: %g, wanted %g", i, k, (double)w[k], tw[k]);
    }
}

/* Factors: without a gradient every rule leads to the centre, and to nowhere else. */
static void test_centre(void **state) {
    (void)state;
    for (int rule = RT_OPTIM_SGD; rule <= RT_OPTIM_ADAMW; rule++) {
        float w[N], g[N] = {0}, m[N] = {0}, v[N] = {0};
        rt_optim o = {.rule = (rt_optim_rule)rule,
                      .lr = 0.1,
                      .momentum = 0.5,
                      .beta1 = 0.5,
                      .beta2 = 0.9,
                      .eps = 1e-2,
                      .decay = 0.5,
                      .centre = 1,
                      .gscale = 1};
        for (int k = 0; k < N; k++)
            w[k] = 1 + (float)(k - 18) / 10;
        for (o.t = 0; o.t < 400; o.t++)
            rt_optim_step(&o, w, g, m, v, N);
        for (int k = 0; k < N; k++)
            if (fabs((double)w[k] - 1) > 1e-3)
                fail_msg("rule %d, element %d: %g, wanted 1", rule, k, (double)w[k]);
    }
}

/* Ranges may be cut anywhere: the bits are those of one call. */
static void test_cuts(void **state) {
    (void)state;
    rt_optim o = {.rule = RT_OPTIM_ADAM,
                  .lr = 0.01,
                  .beta1 = 0.9,
                  .beta2 = 0.999,
                  .eps = 1e-8,
                  .decay = 0.01,
                  .gscale = 1};
    float w[2][N], g[N], m[2][N] = {{0}}, v[2][N] = {{0}};
    for (int k = 0; k < N; k++)
        w[0][k] = w[1][k] = g[k] = (float)cos(k);
    rt_optim_step(&o, w[0], g, m[0], v[0], N);
    static const int cut[] = {0, 1, 8, 17, N};
    for (int c = 0; c < 4; c++)
        rt_optim_step(&o, w[1] + cut[c], g + cut[c], m[1] + cut[c], v[1] + cut[c], cut[c + 1] - cut[c]);
    assert_memory_equal(w[0], w[1], sizeof w[0]);
    assert_memory_equal(m[0], m[1], sizeof m[0]);
    assert_memory_equal(v[0], v[1], sizeof v[0]);
}

static void test_names(void **state) {
    (void)state;
    rt_optim_rule r;
    assert_true(rt_optim_find(&r, "adamw"));
    assert_int_equal(r, RT_OPTIM_ADAMW);
    assert_int_equal(rt_optim_slots(RT_OPTIM_SGD), 1);
    assert_int_equal(rt_optim_slots(RT_OPTIM_ADAM), 2);
    assert_false(rt_optim_find(&r, "lion"));
}

static void test_sum_squares(void **state) {
    (void)state;
    float g[] = {3, 4, 0, 12};
    assert_true(rt_optim_sum_squares(g, 4, false) == 169);
    assert_true(rt_optim_sum_squares(g, 0, false) == 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rules), cmocka_unit_test(test_centre),
                                       cmocka_unit_test(test_cuts), cmocka_unit_test(test_names),
                                       cmocka_unit_test(test_sum_squares)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
