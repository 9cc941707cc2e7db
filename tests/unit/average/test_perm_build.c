/*
 * test_perm_build.c - the graph of permAVG: averaged parameters give the network that averages activations;
 * matrices that are permutations renumber exactly; gradients of X follow central differences.
 */
#include "average/perm.h"
#include "base/alloc.h"
#include "plan/plan.h"
#include "support/check.h"
#include <stdio.h>
#include <string.h>

enum { MAX_MODELS = 4, MAX_SLOTS = 1024 };
static const double WEIGHT[MAX_MODELS] = {0.25, 0.25, 0.25, 0.25};

/* Models of one architecture in double, and the X of all but the first. */
typedef struct fixture {
    rt_params *params;
    rt_net *net;
    rt_symmetry sym;
    int models;
    int64_t batch;
    double *block[MAX_MODELS + 1]; /* the last one: running statistics */
    double *x, *in;
    int32_t *label;
    const void *slots[MAX_SLOTS];
} fixture;

static double normal(uint64_t key, int64_t i) {
    return rt_rng_normal(rt_rng_make(key, RT_RNG_TEST, 0, 0), (uint64_t)i);
}

static void open_fixture(fixture *f, const char *arch, rt_shape input, int models, int64_t batch,
                         double x_scale) {
    *f = (fixture){.models = models, .batch = batch};
    const rt_arch_config c = {.spec = arch, .input = input, .outputs = 3};
    OK(rt_params_create(&f->params));
    OK(rt_net_create(&f->net, &c, f->params, NULL));
    OK(rt_symmetry_find(&f->sym, f->net, f->params));
    const int64_t floats = rt_params_floats(f->params), row = rt_shape_elems(&input);
    for (int m = 0; m <= models; m++) {
        OK(rt_calloc(&f->block[m], (size_t)floats, sizeof(double)));
        for (int k = 0; k < rt_params_count(f->params); k++) {
            const rt_param *p = rt_params_get(f->params, k);
            for (int64_t i = 0; i < p->count; i++)
                f->block[m][p->offset + i] =
                    p->role == RT_ROLE_WEIGHT
                        ? normal((uint64_t)m + 10, p->offset + i) * sqrt(2.0 / (double)p->fan_in)
                        : 1 + 0.3 * normal((uint64_t)m + 20, p->offset + i);
        }
    }
    const int64_t xs = rt_perm_floats(&f->sym, models);
    OK(rt_calloc(&f->x, (size_t)xs + 1, sizeof(double)));
    OK(rt_calloc(&f->in, (size_t)(row * batch), sizeof(double)));
    OK(rt_calloc(&f->label, (size_t)batch, sizeof(int32_t)));
    for (int64_t i = 0; i < xs; i++)
        f->x[i] = x_scale * normal(30, i);
    for (int64_t i = 0; i < row * batch; i++)
        f->in[i] = normal(31, i);
    for (int64_t i = 0; i < batch; i++)
        f->label[i] = (int32_t)(i % 3);
}

static void close_fixture(fixture *f) {
    for (int m = 0; m <= f->models; m++)
        rt_free(f->block[m]);
    rt_free(f->x);
    rt_free(f->in);
    rt_free(f->label);
    rt_symmetry_deinit(&f->sym);
    rt_net_destroy(&f->net);
    rt_params_destroy(&f->params);
}

/* Runs a program in double; takes[i]: where output i goes. */
static void run(fixture *f, const rt_perm_graph *p, void *const *takes) {
    const int slots = rt_params_count(f->params);
    assert_true(p->x + (f->models - 1) * f->sym.bundles < MAX_SLOTS);
    for (int m = 0; m <= f->models; m++)
        for (int k = 0; k < slots; k++)
            f->slots[m * slots + k] = f->block[m] + rt_params_get(f->params, k)->offset;
    for (int m = 1; m < f->models; m++)
        for (int k = 0; k < f->sym.bundles; k++)
            f->slots[rt_perm_slot(p, &f->sym, m, k)] = f->x + rt_perm_offset(&f->sym, m, k);
    OK(rt_interp_run(p->g, f->slots, (const void *[]){f->in, f->label}, NULL, takes, (rt_run){0}));
}

static int output(const rt_graph *g, const char *name) {
    for (int i = 0; i < rt_graph_outputs(g); i++)
        if (strcmp(rt_graph_get_output(g, i)->name, name) == 0)
            return i;
    fail_msg("no output %s", name);
    return -1;
}

/* ---- collapsed and literal ---- */

/* P and Q of a model as arrays. */
static void matrices(fixture *f, const rt_perm_options *o, double *pm) {
    rt_perm_graph p;
    void *takes[MAX_SLOTS] = {0};
    char name[32];
    OK(rt_perm_build_mean(&p, f->params, &f->sym, f->models, WEIGHT, *o, RT_DTYPE_F64));
    for (int m = 1; m < f->models; m++)
        for (int k = 0; k < f->sym.bundles; k++) {
            snprintf(name, sizeof name, "P:%d:%d", m, k);
            takes[output(p.g, name)] = pm + rt_perm_offset(&f->sym, m, k);
        }
    run(f, &p, takes);
    rt_graph_destroy(&p.g);
}

/* The thesis' forward pass of an MLP: activations averaged before each ReLU. Layer l: slots 2 l, 2 l + 1. */
static rt_val literal(fixture *f, rt_graph *g, rt_val x, const double *pm, bool inverse) {
    const int layers = rt_params_count(f->params) / 2, bundles = f->sym.bundles;
    for (int l = 0; l < layers; l++) {
        rt_val sum = 0;
        for (int m = 0; m < f->models; m++) {
            rt_val h = x, p[2] = {0}; /* before and after the layer */
            for (int side = 0; side < 2 && m > 0; side++) {
                const int k = l - 1 + side;
                if (k >= 0 && k < bundles)
                    p[side] = rt_graph_const(g, rt_shape2(f->sym.bundle[k].n, f->sym.bundle[k].n),
                                             pm + rt_perm_offset(&f->sym, m, k));
            }
            if (p[0]) /* rows are samples: (Q h)^T = h^T Q^T */
                h = inverse ? rt_matmul(g, h, rt_matinv(g, p[0]), false, true)
                            : rt_matmul(g, h, p[0], false, false);
            const rt_param *w = rt_params_get(f->params, 2 * l), *b = rt_params_get(f->params, 2 * l + 1);
            h = rt_matmul(g, h, rt_graph_const(g, w->shape, f->block[m] + w->offset), false, true);
            h = rt_add_chan(g, h, rt_graph_const(g, b->shape, f->block[m] + b->offset));
            if (p[1])
                h = rt_matmul(g, h, p[1], false, true);
            sum = m == 0 ? h : rt_add(g, sum, h);
        }
        x = rt_scale(g, sum, 1.0 / f->models, 0);
        x = l + 1 < layers ? rt_relu(g, x) : x;
    }
    return x;
}

static void test_collapse(void **state) {
    (void)state;
    static const rt_perm_options ways[] = {{.tau = 1, .iterations = 200},
                                           {.tau = 0.3, .iterations = 20, .floor = 1e-3},
                                           {.tau = 0.3, .iterations = 200, .inverse = true}};
    for (int64_t i = 0; i < RT_COUNT(ways); i++) {
        fixture f;
        open_fixture(&f, "mlp:9,7,8", rt_shape1(5), 4, 6, 1);
        double *pm = NULL, want[18], got[18];
        OK(rt_calloc(&pm, (size_t)rt_perm_floats(&f.sym, f.models), sizeof *pm));
        matrices(&f, &ways[i], pm);
        rt_graph *g = NULL;
        OK(rt_graph_create(&g, f.batch, RT_DTYPE_F64));
        rt_graph_output(
            g, "y",
            literal(&f, g, rt_graph_input(g, "x", RT_DTYPE_F64, rt_shape1(5), 1), pm, ways[i].inverse));
        OK(rt_interp_run(g, NULL, (const void *[]){f.in}, NULL, (void *[]){want}, (rt_run){0}));
        rt_graph_destroy(&g);

        rt_perm_graph p;
        void *takes[MAX_SLOTS] = {0};
        OK(rt_perm_build_step(&p, f.net, f.params, &f.sym, f.models, WEIGHT, ways[i], f.batch, RT_DTYPE_F64));
        takes[output(p.g, "logits")] = got;
        run(&f, &p, takes);
        rt_graph_destroy(&p.g);
        for (int k = 0; k < 18; k++)
            assert_true(fabs(got[k] - want[k]) < 1e-10 * (1 + fabs(want[k])));
        rt_free(pm);
        close_fixture(&f);
    }
}

/* The compiled step in float against the interpreter in double. */
static void test_plan(void **state) {
    (void)state;
    fixture f;
    open_fixture(&f, "mlp:40,33", rt_shape1(7), 3, 16, 1);
    const rt_perm_options o = {.tau = 1, .iterations = 100};
    rt_perm_graph p;
    void *takes[MAX_SLOTS] = {0};
    double want[48];
    float got[48];
    OK(rt_perm_build_step(&p, f.net, f.params, &f.sym, f.models, WEIGHT, o, f.batch, RT_DTYPE_F64));
    const int logits = output(p.g, "logits");
    takes[logits] = want;
    run(&f, &p, takes);
    rt_graph_destroy(&p.g);

    const int64_t floats = rt_params_floats(f.params), xs = rt_perm_floats(&f.sym, f.models);
    const int slots = rt_params_count(f.params);
    float *block = NULL, *x = NULL, in[16 * 7];
    OK(rt_calloc(&block, (size_t)(floats * f.models), sizeof *block));
    OK(rt_calloc(&x, (size_t)xs, sizeof *x));
    for (int64_t i = 0; i < floats * f.models; i++)
        block[i] = (float)f.block[i / floats][i % floats];
    for (int64_t i = 0; i < xs; i++)
        x[i] = (float)f.x[i];
    for (int i = 0; i < 16 * 7; i++)
        in[i] = (float)f.in[i];
    rt_pool *pool = NULL;
    rt_plan *plan = NULL;
    rt_exec *e = NULL;
    OK(rt_pool_create(&pool, 1));
    OK(rt_perm_build_step(&p, f.net, f.params, &f.sym, f.models, WEIGHT, o, f.batch, RT_DTYPE_F32));
    OK(rt_plan_compile(&plan, p.g, (rt_plan_options){0}));
    OK(rt_exec_create(&e, plan, pool));
    for (int m = 0; m < f.models; m++)
        rt_exec_bind_block(e, m * slots, block + m * floats, rt_params_offsets(f.params), slots);
    for (int m = 1; m < f.models; m++)
        for (int k = 0; k < f.sym.bundles; k++)
            rt_exec_bind_param(e, rt_perm_slot(&p, &f.sym, m, k), x + rt_perm_offset(&f.sym, m, k));
    rt_exec_bind_input(e, 0, in);
    rt_exec_bind_input(e, 1, f.label);
    rt_exec_bind_output(e, logits, got);
    rt_exec_run(&e, &(rt_run){0}, 1, pool);
    for (int k = 0; k < 48; k++)
        assert_true(fabs((double)got[k] - want[k]) < 1e-5 * (1 + fabs(want[k])));
    rt_exec_destroy(&e);
    rt_plan_destroy(&plan);
    rt_pool_destroy(&pool);
    rt_graph_destroy(&p.g);
    rt_free(block);
    rt_free(x);
    close_fixture(&f);
}

/* ---- hard permutations ---- */

/* Does the mean with all weight on model 1 equal the model renumbered, for X that is a permutation? */
static void check_hard(fixture *f) {
    const int64_t floats = rt_params_floats(f->params);
    int64_t *perm = NULL;
    float *src = NULL, *want = NULL;
    double *got = NULL;
    OK(rt_calloc(&perm, (size_t)f->sym.total, sizeof *perm));
    OK(rt_calloc(&src, (size_t)floats, sizeof *src));
    OK(rt_calloc(&want, (size_t)floats, sizeof *want));
    OK(rt_calloc(&got, (size_t)floats, sizeof *got));
    for (int64_t i = 0; i < floats; i++)
        src[i] = (float)f->block[1][i];
    rt_perm_random(&f->sym, perm, rt_rng_make(5, RT_RNG_TEST, 0, 0));
    rt_perm_apply(&f->sym, f->params, want, src, perm);
    for (int k = 0; k < f->sym.bundles; k++) {
        const rt_sym_bundle *g = &f->sym.bundle[k];
        double *x = f->x + rt_perm_offset(&f->sym, 1, k);
        for (int64_t i = 0; i < g->n; i++)
            for (int64_t j = 0; j < g->n; j++)
                x[i * g->n + j] = perm[g->offset + i] == j ? 100 : 0;
    }
    rt_perm_graph p;
    void *takes[MAX_SLOTS] = {0};
    char name[32];
    OK(rt_perm_build_mean(&p, f->params, &f->sym, 2, (const double[]){0, 1},
                          (rt_perm_options){.tau = 1, .iterations = 3}, RT_DTYPE_F64));
    for (int k = 0; k < rt_params_count(f->params); k++) {
        snprintf(name, sizeof name, "mean:%d", k);
        takes[output(p.g, name)] = got + rt_params_get(f->params, k)->offset;
    }
    run(f, &p, takes);
    for (int k = 0; k < rt_params_count(f->params); k++) {
        const rt_param *line = rt_params_get(f->params, k);
        for (int64_t i = line->offset; i < line->offset + line->count; i++)
            if (!(fabs(got[i] - (double)want[i]) <= 1e-6 * (1 + fabs((double)want[i]))))
                fail_msg("%s: element %lld is %g, wanted %g", line->name, (long long)(i - line->offset),
                         got[i], (double)want[i]);
    }
    rt_graph_destroy(&p.g);
    rt_free(perm);
    rt_free(src);
    rt_free(want);
    rt_free(got);
}

static void test_hard(void **state) {
    (void)state;
    static const char *const archs[] = {"mlp:12,9", "resnet20", "wrn:10,1"};
    for (int64_t i = 0; i < RT_COUNT(archs); i++) {
        fixture f;
        open_fixture(&f, archs[i], i == 0 ? rt_shape1(5) : rt_shape3(3, 8, 8), 2, 1, 0);
        assert_true(f.sym.bundles > 0);
        check_hard(&f);
        close_fixture(&f);
    }
}

/* A dense layer behind a map of 2 x 3: each unit of the bundle is six inputs in a row. */
static void test_repeat(void **state) {
    (void)state;
    fixture f = {.models = 2, .batch = 1};
    int slot;
    OK(rt_params_create(&f.params));
    OK(rt_params_add(
        f.params, (rt_param){.name = "conv", .shape = rt_shape4(4, 2, 3, 3), .role = RT_ROLE_WEIGHT}, &slot));
    OK(rt_params_add(f.params, (rt_param){.name = "dense", .shape = rt_shape2(5, 24), .role = RT_ROLE_WEIGHT},
                     &slot));
    rt_sym_bundle bundle[2] = {{.n = 4, .offset = 0}, {.n = 5, .offset = 4}};
    rt_sym_axis axis[2 * RT_MAX_RANK];
    for (int i = 0; i < 2 * RT_MAX_RANK; i++)
        axis[i] = (rt_sym_axis){-1, 1};
    axis[0] = (rt_sym_axis){0, 1};
    axis[RT_MAX_RANK] = (rt_sym_axis){1, 1};
    axis[RT_MAX_RANK + 1] = (rt_sym_axis){0, 6};
    f.sym = (rt_symmetry){.bundles = 2, .slots = 2, .total = 9, .bundle = bundle, .axis = axis};
    for (int m = 0; m <= 2; m++) {
        OK(rt_calloc(&f.block[m], (size_t)rt_params_floats(f.params), sizeof(double)));
        for (int64_t i = 0; i < rt_params_floats(f.params); i++)
            f.block[m][i] = normal((uint64_t)m, i);
    }
    OK(rt_calloc(&f.x, (size_t)rt_perm_floats(&f.sym, 2), sizeof(double)));
    check_hard(&f);
    f.sym = (rt_symmetry){0};
    close_fixture(&f);
}

/* ---- gradients ---- */

static double loss_of(fixture *f, const rt_perm_graph *p) {
    double loss = 0;
    void *takes[MAX_SLOTS] = {0};
    takes[output(p->g, "loss")] = &loss;
    run(f, p, takes);
    return loss;
}

static void test_gradient(void **state) {
    (void)state;
    static const struct {
        const char *arch;
        double scale;
        rt_perm_options o;
    } cases[] = {
        {"mlp:6,5", 1, {.tau = 1, .iterations = 500, .gradient = RT_SINKHORN_IMPLICIT}},
        {"mlp:6,5", 1, {.tau = 1, .iterations = 500, .gradient = RT_SINKHORN_UNROLLED}},
        {"mlp:6,5", 2, {.tau = 0.5, .iterations = 4, .gradient = RT_SINKHORN_UNROLLED}},
        {"mlp:6,5", 1, {.tau = 0.7, .iterations = 500, .floor = 0.01}},
        {"mlp:6,5", 3, {.tau = 1, .iterations = 2000, .inverse = true}},
        {"mlp:6,5", 1, {.tau = 1, .iterations = 500, .inverse = true, .ridge = 0.1}},
        {"wrn:10,1", 1, {.tau = 1, .iterations = 60}},
    };
    for (int64_t i = 0; i < RT_COUNT(cases); i++) {
        fixture f;
        const bool conv = cases[i].arch[0] == 'w';
        open_fixture(&f, cases[i].arch, conv ? rt_shape3(1, 4, 4) : rt_shape1(4), conv ? 2 : 3, 4,
                     cases[i].scale);
        rt_perm_graph p;
        OK(rt_perm_build_step(&p, f.net, f.params, &f.sym, f.models, WEIGHT, cases[i].o, f.batch,
                              RT_DTYPE_F64));
        for (int k = 0; k < f.sym.bundles; k += conv ? 3 : 1) {
            const int m = f.models - 1;
            const int64_t n = f.sym.bundle[k].n, at = rt_perm_offset(&f.sym, m, k);
            double *grad = NULL;
            char name[32];
            void *takes[MAX_SLOTS] = {0};
            OK(rt_calloc(&grad, (size_t)(n * n), sizeof *grad));
            snprintf(name, sizeof name, "grad:%d:%d", m, k);
            takes[output(p.g, name)] = grad;
            run(&f, &p, takes);
            for (int64_t e = 0; e < n * n; e += conv ? n * n / 2 - 1 : 1) {
                const double h = 1e-4, x = f.x[at + e];
                double d[2];
                for (int s = 0; s < 2; s++) { /* fourth order */
                    f.x[at + e] = x + (s + 1) * h;
                    d[s] = loss_of(&f, &p);
                    f.x[at + e] = x - (s + 1) * h;
                    d[s] = (d[s] - loss_of(&f, &p)) / (2 * (s + 1) * h);
                }
                f.x[at + e] = x;
                const double want = (4 * d[0] - d[1]) / 3;
                if (!(fabs(grad[e] - want) < 1e-8))
                    fail_msg("case %lld, bundle %d, element %lld: gradient %.12g, differences %.12g",
                             (long long)i, k, (long long)e, grad[e], want);
            }
            rt_free(grad);
        }
        rt_graph_destroy(&p.g);
        close_fixture(&f);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_collapse), cmocka_unit_test(test_plan),     cmocka_unit_test(test_hard),
        cmocka_unit_test(test_repeat),   cmocka_unit_test(test_gradient),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
