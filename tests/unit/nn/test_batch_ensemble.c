/*
 * test_batch_ensemble.c - member m of a network with rank-one factors is the plain network whose weights are
 * W o (s_m r_m^T): both are run, in double, and must give the same logits.
 */
#include "base/alloc.h"
#include "base/rng.h"
#include "nn/nn.h"
#include "plan/plan.h"
#include "support/check.h"
#include <stdio.h>
#include <string.h>

enum { MEMBERS = 3, ROWS = 4, CLASSES = 5 };

/* A table of parameters with values in double. */
typedef struct model {
    rt_params *params;
    double *w;
    void **slot;
} model;

static void model_bind(model *m) {
    OK(rt_calloc(&m->w, (size_t)rt_params_floats(m->params), sizeof *m->w));
    OK(rt_calloc(&m->slot, (size_t)rt_params_count(m->params), sizeof *m->slot));
    for (int i = 0; i < rt_params_count(m->params); i++)
        m->slot[i] = m->w + rt_params_get(m->params, i)->offset;
}

static void model_deinit(model *m) {
    rt_free(m->w);
    rt_free(m->slot);
    rt_params_destroy(&m->params);
}

static double *value(const model *m, const char *name) {
    int slot = rt_params_find(m->params, name);
    return slot < 0 ? NULL : m->slot[slot];
}

/* Draws near one for everything: no factor is neutral, variances stay positive. */
static void randomise(model *m) {
    for (int i = 0; i < rt_params_count(m->params); i++) {
        const rt_param *p = rt_params_get(m->params, i);
        rt_rng r = rt_rng_make(17, RT_RNG_TEST, (uint64_t)i, 0);
        for (int64_t j = 0; j < p->count; j++) {
            double u = rt_rng_uniform(r, (uint64_t)j);
            m->w[p->offset + j] = p->role == RT_ROLE_WEIGHT ? u - 0.5 : 0.5 + u;
        }
    }
}

/* Weights and biases of member m as a plain model. */
static void take_member(model *plain, const model *be, int m) {
    for (int i = 0; i < rt_params_count(plain->params); i++) {
        const rt_param *p = rt_params_get(plain->params, i);
        const double *src = value(be, p->name);
        double *dst = plain->slot[i];
        int64_t own = rt_params_get(be->params, rt_params_find(be->params, p->name))->count > p->count
                          ? m * p->count
                          : 0;
        memcpy(dst, src + own, (size_t)p->count * sizeof *dst);
        if (p->role != RT_ROLE_WEIGHT)
            continue;
        char name[80];
        int stem = (int)strlen(p->name) - (int)strlen("weight");
        snprintf(name, sizeof name, "%.*sr", stem, p->name);
        const double *r = value(be, name);
        snprintf(name, sizeof name, "%.*ss", stem, p->name);
        const double *s = value(be, name);
        int64_t out = p->shape.d[0], in = p->shape.d[1], window = p->count / (out * in);
        for (int64_t o = 0; o < out; o++)
            for (int64_t k = 0; k < in * window; k++)
                dst[o * in * window + k] *= s[m * out + o] * r[m * in + k / window];
    }
}

static rt_graph *build(const rt_net *net, rt_params *params, int members, bool member_bn) {
    rt_graph *g = NULL;
    OK(rt_graph_create(&g, ROWS, RT_DTYPE_F64));
    rt_val x = rt_graph_input(g, "x", RT_DTYPE_F64, rt_net_config(net)->input, 1);
    rt_build b = {
        .g = g, .params = params, .declare = members > 1, .members = members, .member_bn = member_bn};
    rt_graph_output(g, "logits", rt_net_forward(net, &b, members > 1 ? rt_tile_members(g, x, members) : x));
    OK(rt_graph_status(g));
    return g;
}

static void members_are_networks(const char *spec, bool member_bn) {
    rt_arch_config c = {.spec = spec, .input = rt_shape3(2, 6, 6), .outputs = CLASSES};
    model plain = {0}, be = {0};
    rt_net *net = NULL;
    OK(rt_params_create(&plain.params));
    OK(rt_params_create(&be.params));
    OK(rt_net_create(&net, &c, plain.params, NULL));
    rt_graph *gp = build(net, plain.params, 1, false), *gb = build(net, be.params, MEMBERS, member_bn);
    model_bind(&plain);
    model_bind(&be);
    randomise(&be);

    double x[ROWS * 72], all[MEMBERS * ROWS * CLASSES], one[ROWS * CLASSES];
    rt_rng r = rt_rng_make(3, RT_RNG_TEST, 99, 0);
    for (int i = 0; i < ROWS * 72; i++)
        x[i] = rt_rng_normal(r, (uint64_t)i);
    const void *in[] = {x};
    void *out_all[] = {all}, *out_one[] = {one};
    OK(rt_interp_run(gb, (const void *const *)be.slot, in, NULL, out_all, (rt_run){0}));
    for (int m = 0; m < MEMBERS; m++) {
        take_member(&plain, &be, m);
        OK(rt_interp_run(gp, (const void *const *)plain.slot, in, NULL, out_one, (rt_run){0}));
        for (int i = 0; i < ROWS * CLASSES; i++) {
            double got = all[m * ROWS * CLASSES + i];
            if (fabs(got - one[i]) > 1e-10 * (1 + fabs(one[i])))
                fail_msg("%s, member %d, logit %d: %.12g, alone %.12g", spec, m, i, got, one[i]);
        }
    }
    rt_graph_destroy(&gp);
    rt_graph_destroy(&gb);
    rt_net_destroy(&net);
    model_deinit(&plain);
    model_deinit(&be);
}

static void dense(void **state) {
    (void)state;
    members_are_networks("mlp:7,6", false);
}

static void convolutions(void **state) {
    (void)state;
    members_are_networks("wrn:10,1", false);
    members_are_networks("wrn:10,1", true);
    members_are_networks("resnet20", true);
}

static void factors(void **state) {
    (void)state;
    rt_arch_config c = {.spec = "wrn:10,1", .input = rt_shape3(2, 6, 6), .outputs = CLASSES};
    rt_net *net = NULL;
    rt_params *p = NULL;
    OK(rt_params_create(&p));
    OK(rt_net_create(&net, &c, NULL, NULL));
    rt_graph *g = build(net, p, MEMBERS, true);
    static const struct {
        const char *name;
        rt_role role;
        rt_init init;
        rt_shape shape;
    } row[] = {
        {"conv1.r", RT_ROLE_FAST, RT_INIT_NORMAL_AROUND_ONE, {2, {MEMBERS, 2}}},
        {"conv1.s", RT_ROLE_FAST, RT_INIT_NORMAL_AROUND_ONE, {2, {MEMBERS, 16}}},
        {"fc.bias", RT_ROLE_BIAS, RT_INIT_ZERO, {2, {MEMBERS, CLASSES}}},
        {"bn.weight", RT_ROLE_NORM, RT_INIT_ONE, {2, {MEMBERS, 64}}},
        {"fc.weight", RT_ROLE_WEIGHT, RT_INIT_HE_FAN_IN, {2, {CLASSES, 64}}},
    };
    for (int64_t i = 0; i < RT_COUNT(row); i++) {
        int slot = rt_params_find(p, row[i].name);
        assert_true(slot >= 0);
        const rt_param *line = rt_params_get(p, slot);
        assert_int_equal(line->role, row[i].role);
        assert_int_equal(line->init, row[i].init);
        assert_true(rt_shape_equal(&line->shape, &row[i].shape));
    }
    rt_graph_destroy(&g);
    rt_net_destroy(&net);
    rt_params_destroy(&p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dense),
        cmocka_unit_test(convolutions),
        cmocka_unit_test(factors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
