/*
 * test_perm_train.c - learning soft permutations: a planted permutation is found from the labels alone,
 * whatever the number of threads.
 */
#include "average/perm.h"
#include "base/alloc.h"
#include "plan/plan.h"
#include "support/check.h"
#include <stdio.h>
#include <string.h>

enum { ROWS = 8192, FEATURES = 64, CLASSES = 10, SURE = 10 };

/* A network, and a copy with its units renumbered and a little noise; rows labelled by the network itself. */
typedef struct planted {
    rt_average a;
    rt_params *params;
    float *block[2];
    const float *blocks[2];
    float *x;
    int32_t *label;
    int64_t *perm; /* of the copy: unit i of the network is unit perm[i] of it */
} planted;

static void label_rows(planted *p, const rt_net *net) {
    rt_graph *g = NULL;
    rt_plan *plan = NULL;
    rt_exec *e = NULL;
    float *z = NULL;
    OK(rt_graph_create(&g, ROWS, RT_DTYPE_F32));
    rt_build b = {.g = g, .params = p->params};
    rt_graph_output(g, "z",
                    rt_net_forward(net, &b, rt_graph_input(g, "x", RT_DTYPE_F32, rt_shape1(FEATURES), 1)));
    OK(rt_plan_compile(&plan, g, (rt_plan_options){0}));
    OK(rt_exec_create(&e, plan, p->a.pool));
    OK(rt_calloc(&z, ROWS * CLASSES, sizeof *z));
    rt_exec_bind_block(e, 0, p->block[0], rt_params_offsets(p->params), rt_params_count(p->params));
    rt_exec_bind_input(e, 0, p->x);
    rt_exec_bind_output(e, 0, z);
    rt_exec_run(&e, &(rt_run){0}, 1, p->a.pool);
    for (int64_t r = 0; r < ROWS; r++)
        for (int64_t k = 1; k < CLASSES; k++)
            if (z[r * CLASSES + k] > z[r * CLASSES + p->label[r]])
                p->label[r] = (int32_t)k;
    rt_free(z);
    rt_exec_destroy(&e);
    rt_plan_destroy(&plan);
    rt_graph_destroy(&g);
}

static void open_planted(planted *p, const char *arch, int threads) {
    *p = (planted){0};
    const rt_student_config c = {.spec = "single",
                                 .arch = {.spec = arch, .input = rt_shape1(FEATURES), .outputs = CLASSES}};
    OK(rt_pool_create(&p->a.pool, threads));
    OK(rt_params_create(&p->params));
    OK(rt_student_create(&p->a.student, &c, p->params));
    const rt_net *net = rt_student_net(p->a.student);
    OK(rt_symmetry_find(&p->a.sym, net, p->params));
    const size_t floats = (size_t)rt_params_floats(p->params);
    OK(rt_calloc(&p->x, ROWS * FEATURES, sizeof *p->x));
    OK(rt_calloc(&p->label, ROWS, sizeof *p->label));
    OK(rt_calloc(&p->perm, (size_t)p->a.sym.total, sizeof *p->perm));
    for (int m = 0; m < 2; m++)
        OK(rt_calloc(&p->block[m], floats, sizeof(float)));
    const rt_rng w = rt_rng_make(1, RT_RNG_TEST, 0, 0), noise = rt_rng_make(2, RT_RNG_TEST, 0, 0);
    for (int k = 0; k < rt_params_count(p->params); k++) {
        const rt_param *line = rt_params_get(p->params, k);
        const bool last =
            line->shape.d[0] == CLASSES; /* sure of its answers: nothing is better than itself */
        const double scale =
            line->role != RT_ROLE_WEIGHT ? 0.1 : sqrt(2 / (double)line->fan_in) * (last ? SURE : 1);
        for (int64_t i = line->offset; i < line->offset + line->count; i++)
            p->block[0][i] = (float)(scale * rt_rng_normal(w, (uint64_t)i));
    }
    for (int64_t i = 0; i < ROWS * FEATURES; i++)
        p->x[i] = (float)rt_rng_normal(rt_rng_make(3, RT_RNG_TEST, 0, 0), (uint64_t)i);
    label_rows(p, net);

    int64_t *back = NULL;
    OK(rt_calloc(&back, (size_t)p->a.sym.total, sizeof *back));
    rt_perm_random(&p->a.sym, back, rt_rng_make(4, RT_RNG_TEST, 0, 0));
    rt_perm_apply(&p->a.sym, p->params, p->block[1], p->block[0], back);
    rt_perm_invert(&p->a.sym, p->perm, back);
    rt_free(back);
    for (size_t i = 0; i < floats; i++)
        p->block[1][i] *= (float)(1 + 0.05 * rt_rng_normal(noise, (uint64_t)i));

    const rt_part part = {.n = ROWS, .f32 = p->x, .label = p->label};
    OK(rt_dataset_from_arrays(&p->a.data, RT_TASK_CLASSIFICATION, rt_shape1(FEATURES), CLASSES, &part, NULL));
    p->a.train = rt_subset_all(rt_dataset_train(p->a.data));
    for (int m = 0; m < 2; m++)
        p->blocks[m] = p->block[m];
    p->a.params = p->params;
    p->a.floats = (int64_t)floats;
    p->a.models = 2;
    p->a.blocks = p->blocks;
}

static void close_planted(planted *p) {
    rt_subset_deinit(&p->a.train);
    rt_dataset_destroy(&p->a.data);
    rt_symmetry_deinit(&p->a.sym);
    rt_student_destroy(&p->a.student);
    rt_params_destroy(&p->params);
    rt_pool_destroy(&p->a.pool);
    for (int m = 0; m < 2; m++)
        rt_free(p->block[m]);
    rt_free(p->x);
    rt_free(p->label);
    rt_free(p->perm);
}

/* Learns from X = I; P in pm. Returns the loss of the last epoch. */
static double learn(planted *p, int64_t epochs, double tau, float *x, float *pm) {
    const rt_perm_models m = {.net = rt_student_net(p->a.student),
                              .params = p->params,
                              .sym = &p->a.sym,
                              .n = 2,
                              .blocks = p->blocks,
                              .weight = (const double[]){0.5, 0.5}};
    const rt_perm_training t = {.o = {.tau = tau, .iterations = 100},
                                .lr = 0.1,
                                .epochs = epochs,
                                .batch = 256,
                                .seed = 1,
                                .part = 1};
    double loss = NAN;
    for (int k = 0; k < p->a.sym.bundles; k++) {
        const int64_t n = p->a.sym.bundle[k].n;
        for (int64_t i = 0; i < n * n; i++)
            x[rt_perm_offset(&p->a.sym, 1, k) + i] = i % (n + 1) == 0;
    }
    OK(rt_perm_train(&p->a, &m, &t, x, p->block[0], &loss));
    OK(rt_perm_mean(&m, t.o, x, NULL, pm, p->a.pool));
    return loss;
}

/* Units of a bundle whose largest share is not the planted one. */
static int64_t count_wrong(const planted *p, int bundle, const float *pm) {
    const rt_sym_bundle *g = &p->a.sym.bundle[bundle];
    int64_t wrong = 0;
    for (int64_t r = 0; r < g->n; r++) {
        int64_t best = 0;
        for (int64_t j = 1; j < g->n; j++)
            best = pm[r * g->n + j] > pm[r * g->n + best] ? j : best;
        wrong += best != p->perm[g->offset + r];
    }
    return wrong;
}

static void test_planted(void **state) {
    (void)state;
    static const struct {
        const char *arch;
        int64_t epochs;
    } cases[] = {{"mlp:32", 20}, {"mlp:64,64", 20}};
    for (int64_t i = 0; i < RT_COUNT(cases); i++) {
        planted p;
        float *x = NULL, *pm = NULL;
        open_planted(&p, cases[i].arch, 1);
        OK(rt_calloc(&x, (size_t)rt_perm_floats(&p.a.sym, 2), sizeof *x));
        OK(rt_calloc(&pm, (size_t)rt_perm_floats(&p.a.sym, 2), sizeof *pm));
        const double loss = learn(&p, cases[i].epochs, 1, x, pm);
        int64_t wrong = 0;
        for (int k = 0; k < p.a.sym.bundles; k++)
            wrong += count_wrong(&p, k, pm + rt_perm_offset(&p.a.sym, 1, k));
        if (wrong > 0)
            fail_msg("%s: %lld of %lld units are wrong, loss %g", cases[i].arch, (long long)wrong,
                     (long long)p.a.sym.total, loss);
        rt_free(x);
        rt_free(pm);
        close_planted(&p);
    }
}

/* The method with its defaults (and little training) finds wide planted permutations: it starts from matched
 * weights. */
static void test_method(void **state) {
    (void)state;
    static const char *const archs[] = {"mlp:64,64", "mlp:512"};
    static const char *const orders[] = {"joint", "sequential"};
    for (int64_t i = 0; i < RT_COUNT(archs); i++) {
        planted p;
        rt_config c;
        rt_model *model = NULL;
        float *aligned[2] = {0}, *matrix[8] = {0};
        open_planted(&p, archs[i], 1);
        OK(rt_config_init(&c));
        OK(rt_config_set(&c, RT_VERB_AVERAGE, "perm-epochs", "1", "test", false));
        OK(rt_config_set(&c, RT_VERB_AVERAGE, "perm-distill", i == 0 ? "1" : "0", "test", false));
        OK(rt_config_set(&c, RT_VERB_AVERAGE, "perm-order", orders[i], "test", false));
        OK(rt_model_create(&model, rt_student_get_config(p.a.student), p.a.data, NULL, 1));
        p.a.c = &c;
        p.a.loaded = &model;
        p.a.aligned = aligned;
        p.a.matrix = matrix;
        OK(rt_calloc(&p.a.out, (size_t)p.a.floats, sizeof *p.a.out));
        OK(rt_calloc(&p.a.perms, (size_t)p.a.sym.total * 2, sizeof *p.a.perms));
        OK(rt_calloc(&p.a.used, 2, sizeof *p.a.used));
        p.a.used[0] = p.a.used[1] = true;
        for (int m = 0; m < 2; m++)
            rt_perm_identity(&p.a.sym, rt_average_perms(&p.a, m));
        OK(rt_average_by_perm(&p.a));
        for (int k = 0; k < p.a.sym.bundles; k++) {
            const rt_sym_bundle *g = &p.a.sym.bundle[k];
            assert_int_equal(count_wrong(&p, k, *rt_average_matrix(&p.a, 1, k)), 0);
            double sum = 0;
            for (int64_t j = 0; j < g->n; j++)
                sum += (double)(*rt_average_matrix(&p.a, 1, k))[j];
            assert_true(fabs(sum - 1) < 1e-3);
        }
        if (i > 0) /* without distillation: the mean of what is left behind */
            for (int64_t j = 0; j < p.a.floats; j++)
                assert_true(fabsf(p.a.out[j] - 0.5f * (p.block[0][j] + aligned[1][j])) < 1e-4f);
        for (int k = 0; k < 8; k++)
            rt_free(matrix[k]);
        rt_free(aligned[1]);
        rt_free(p.a.out);
        rt_free(p.a.perms);
        rt_free(p.a.used);
        rt_model_destroy(&model);
        rt_config_deinit(&c);
        close_planted(&p);
    }
}

static void test_threads(void **state) {
    (void)state;
    float *x[2] = {0}, *pm[2] = {0};
    size_t bytes = 0;
    for (int t = 0; t < 2; t++) {
        planted p;
        open_planted(&p, "mlp:40,30", 1 + 2 * t);
        bytes = (size_t)rt_perm_floats(&p.a.sym, 2) * sizeof(float);
        OK(rt_alloc(&x[t], bytes));
        OK(rt_alloc(&pm[t], bytes));
        learn(&p, 1, 0.5, x[t], pm[t]);
        close_planted(&p);
    }
    assert_memory_equal(x[0], x[1], bytes);
    assert_memory_equal(pm[0], pm[1], bytes);
    for (int t = 0; t < 2; t++) {
        rt_free(x[t]);
        rt_free(pm[t]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_planted), cmocka_unit_test(test_method),
                                       cmocka_unit_test(test_threads)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
