/*
 * test_parity.c - training agrees with PyTorch: losses of several SGD steps and the logits after them.
 *
 * parity.py holds the definition of weights, images and labels (an integer hash, exact on both sides) and
 * wrote the numbers of parity_<arch>.txt in double. The network is run twice: by the interpreter in double,
 * where nothing but an error can differ, and in float as in training: plan, fast kernels, gradients,
 * running statistics, optimiser.
 */
#include "base/alloc.h"
#include "base/pool.h"
#include "distill/distill.h"
#include "golden/golden.h"
#include "plan/optim.h"
#include "plan/plan.h"
#include "support/check.h"
#include <stdio.h>
#include <string.h>

enum { BATCHES = 4, NUMBERS_MAX = 1024 };
static const double TOLERANCE_F32 = 1e-4, TOLERANCE_F64 = 1e-9;

static void fill_param(const rt_param *p, float *w) {
    uint32_t key = fnv1a(p->name);
    bool variance = rt_str_ends(p->name, "running_var"), weight = rt_str_ends(p->name, "weight");
    double scale = 4;
    if (p->shape.rank > 1)
        for (double k = 1; k * k < (double)(p->count / p->shape.d[0]); k *= 2)
            scale /= 2;
    for (int64_t i = 0; i < p->count; i++) {
        double u = uniform(key, i);
        if (p->role == RT_ROLE_STATE)
            w[i] = variance ? 1 : 0;
        else if (p->shape.rank > 1)
            w[i] = (float)(scale * u);
        else
            w[i] = (float)(weight ? 1 + u / 4 : u / 8);
    }
}

/* ---- the stored numbers ---- */

typedef struct golden {
    char spec[32];
    rt_shape input;
    int64_t classes, batch;
    int steps;
    double rate;
    double v[NUMBERS_MAX]; /* losses, then logits (batch, classes) */
    int n;
} golden;

static void read_golden(golden *g, const char *name) {
    char path[512], line[128];
    long long c, h, w, k, n;
    snprintf(path, sizeof path, "%s/tests/golden/parity_%s.txt", RT_SOURCE_DIR, name);
    FILE *f = fopen(path, "r");
    if (!f)
        fail_msg("%s: cannot open", path);
    assert_non_null(fgets(line, sizeof line, f));
    assert_int_equal(sscanf(line, "%31s %lld %lld %lld %lld %lld %d %lf", g->spec, &c, &h, &w, &k, &n,
                            &g->steps, &g->rate),
                     8);
    g->input = rt_shape3(c, h, w);
    g->classes = k;
    g->batch = n;
    for (g->n = 0; g->n < NUMBERS_MAX && fgets(line, sizeof line, f); g->n++)
        assert_true(rt_parse_f64(line, strcspn(line, "\n"), false, &g->v[g->n]));
    fclose(f);
    assert_int_equal(g->n, g->steps + n * k);
}

/* ---- a training run ---- */

typedef struct run {
    const golden *gold;
    rt_params *params;
    rt_net *net;
    rt_pool *pool;
    float *w, *g, *m; /* blocks: values, gradients, momentum */
    float *x, *logits, loss;
    int32_t *y;
} run;

static float *floats(int64_t n) {
    float *p = NULL;
    OK(rt_calloc(&p, (size_t)n, sizeof *p));
    return p;
}

static void run_init(run *r, const golden *gold) {
    memset(r, 0, sizeof *r);
    r->gold = gold;
    OK(rt_params_create(&r->params));
    rt_arch_config c = {.spec = gold->spec, .input = gold->input, .outputs = gold->classes};
    OK(rt_net_create(&r->net, &c, r->params, NULL));
    OK(rt_pool_create(&r->pool, 2));
    int64_t n = rt_params_floats(r->params);
    r->w = floats(n);
    r->g = floats(n);
    r->m = floats(n);
    for (int i = 0; i < rt_params_count(r->params); i++)
        fill_param(rt_params_get(r->params, i), r->w + rt_params_get(r->params, i)->offset);
    r->x = floats(gold->batch * rt_shape_elems(&gold->input));
    r->logits = floats(gold->batch * gold->classes);
    OK(rt_calloc(&r->y, (size_t)gold->batch, sizeof *r->y));
}

static void run_deinit(run *r) {
    rt_free(r->w);
    rt_free(r->g);
    rt_free(r->m);
    rt_free(r->x);
    rt_free(r->logits);
    rt_free(r->y);
    rt_pool_destroy(&r->pool);
    rt_net_destroy(&r->net);
    rt_params_destroy(&r->params);
}

static void load_batch(run *r, int index) {
    char name[16];
    snprintf(name, sizeof name, "x%d", index);
    uint32_t key = fnv1a(name);
    for (int64_t i = 0; i < r->gold->batch * rt_shape_elems(&r->gold->input); i++)
        r->x[i] = (float)(2 * uniform(key, i));
    snprintf(name, sizeof name, "y%d", index);
    for (int64_t i = 0; i < r->gold->batch; i++)
        r->y[i] = (int32_t)(bits(fnv1a(name), (uint32_t)i) % (uint32_t)r->gold->classes);
}

/* Loss (or only logits) as output 0, then one gradient per trained parameter; order[i] is the slot of output
 * i. */
static rt_graph *build(const run *r, bool train, rt_dtype t) {
    rt_graph *g = NULL;
    OK(rt_graph_create(&g, r->gold->batch, t));
    rt_build b = {.g = g, .params = r->params, .train = train};
    const rt_val x = rt_graph_input(g, "x", t, r->gold->input, 1), z = rt_net_forward(r->net, &b, x);
    if (!train) {
        rt_graph_output(g, "logits", z);
        OK(rt_graph_status(g));
        return g;
    }
    const rt_objective_in in = {
        .g = g, .student = z, .label = rt_graph_input(g, "y", RT_DTYPE_I32, rt_shape0(), 1)};
    const rt_val loss = rt_objective_find("labels")->build(&in);
    rt_graph_output(g, "loss", loss);
    int n = rt_params_count(r->params), k = 0;
    rt_val *wrt = NULL, *grad = NULL;
    OK(rt_calloc(&wrt, (size_t)n, sizeof *wrt));
    OK(rt_calloc(&grad, (size_t)n, sizeof *grad));
    for (int i = 0; i < n; i++) {
        const rt_param *p = rt_params_get(r->params, i);
        if (p->role != RT_ROLE_STATE)
            wrt[k++] = rt_graph_param(g, i, p->name, p->shape);
    }
    OK(rt_graph_grad(g, loss, wrt, k, grad));
    for (int i = 0; i < k; i++)
        rt_graph_output(g, rt_graph_node(g, wrt[i])->name, grad[i]);
    OK(rt_graph_status(g));
    rt_free(wrt);
    rt_free(grad);
    return g;
}

static void bind(run *r, rt_exec *e, const rt_graph *g) {
    rt_exec_bind_own_block(e, 0, r->w, rt_params_offsets(r->params), rt_params_count(r->params));
    rt_exec_bind_input(e, 0, r->x);
    for (int i = 0; i < rt_graph_outputs(g); i++) {
        const rt_graph_out *o = rt_graph_get_output(g, i);
        if (o->update_slot >= 0)
            continue;
        if (strcmp(o->name, "loss") == 0)
            rt_exec_bind_output(e, i, &r->loss);
        else if (strcmp(o->name, "logits") == 0)
            rt_exec_bind_output(e, i, r->logits);
        else
            rt_exec_bind_output(e, i,
                                r->g + rt_params_get(r->params, rt_params_find(r->params, o->name))->offset);
    }
}

static void sgd(run *r) {
    rt_optim o = {.rule = RT_OPTIM_SGD,
                  .lr = r->gold->rate,
                  .momentum = 0.9,
                  .nesterov = true,
                  .decay = 5e-4,
                  .gscale = 1};
    for (int i = 0; i < rt_params_count(r->params); i++) {
        const rt_param *p = rt_params_get(r->params, i);
        if (p->role != RT_ROLE_STATE)
            rt_optim_step(&o, r->w + p->offset, r->g + p->offset, r->m + p->offset, NULL, p->count);
    }
}

static void agrees(const char *what, int at, double got, double want, double scale, double tolerance) {
    double d = fabs(got - want) / scale;
    if (!(d <= tolerance))
        fail_msg("%s %d: got %.12g, PyTorch %.12g, difference %.2g", what, at, got, want, d);
}

static double logit_scale(const golden *g) {
    double scale = 0;
    for (int i = g->steps; i < g->n; i++)
        scale = fmax(scale, fabs(g->v[i]));
    return scale;
}

static void compare(const char *name, rt_plan_options options) {
    static golden gold;
    run r;
    read_golden(&gold, name);
    run_init(&r, &gold);
    for (int phase = 0; phase < 2; phase++) {
        bool train = phase == 0;
        rt_plan *plan = NULL;
        rt_exec *e = NULL;
        rt_graph *g = build(&r, train, RT_DTYPE_F32);
        OK(rt_plan_compile(&plan, g, options));
        OK(rt_exec_create(&e, plan, r.pool));
        bind(&r, e, g);
        for (int step = 0; step < (train ? gold.steps : 1); step++) {
            load_batch(&r, step % BATCHES);
            if (train)
                rt_exec_bind_input(e, 1, r.y);
            rt_run how = {.step = (uint64_t)step};
            rt_exec_run(&e, &how, 1, r.pool);
            if (train) {
                agrees("loss", step, (double)r.loss, gold.v[step], fabs(gold.v[step]), TOLERANCE_F32);
                sgd(&r);
            }
        }
        rt_exec_destroy(&e);
        rt_plan_destroy(&plan);
        rt_graph_destroy(&g);
    }
    for (int i = gold.steps; i < gold.n; i++)
        agrees("logit", i - gold.steps, (double)r.logits[i - gold.steps], gold.v[i], logit_scale(&gold),
               TOLERANCE_F32);
    run_deinit(&r);
}

/* ---- the same in double, by reference kernels ---- */

typedef struct wide {
    void **param, **out; /* where slots and outputs of the graph live */
    double *w, *g, *m, *x, *logits, loss;
} wide;

static void wide_init(wide *d, const run *r) {
    int64_t n = rt_params_floats(r->params), rows = r->gold->batch;
    size_t slots = (size_t)rt_params_count(r->params);
    OK(rt_calloc(&d->param, slots, sizeof *d->param));
    OK(rt_calloc(&d->out, 4 * slots + 1, sizeof *d->out));
    OK(rt_calloc(&d->w, (size_t)n, sizeof *d->w));
    OK(rt_calloc(&d->g, (size_t)n, sizeof *d->g));
    OK(rt_calloc(&d->m, (size_t)n, sizeof *d->m));
    OK(rt_calloc(&d->x, (size_t)(rows * rt_shape_elems(&r->gold->input)), sizeof *d->x));
    OK(rt_calloc(&d->logits, (size_t)(rows * r->gold->classes), sizeof *d->logits));
    for (int64_t i = 0; i < n; i++)
        d->w[i] = (double)r->w[i];
    for (size_t i = 0; i < slots; i++)
        d->param[i] = d->w + rt_params_get(r->params, (int)i)->offset;
}

static void wide_deinit(wide *d) {
    rt_free(d->param);
    rt_free(d->out);
    rt_free(d->w);
    rt_free(d->g);
    rt_free(d->m);
    rt_free(d->x);
    rt_free(d->logits);
}

/* Running statistics are written over the parameters themselves. */
static void wide_bind(wide *d, const run *r, const rt_graph *g) {
    for (int i = 0; i < rt_graph_outputs(g); i++) {
        const rt_graph_out *o = rt_graph_get_output(g, i);
        if (o->update_slot >= 0)
            d->out[i] = d->param[o->update_slot];
        else if (strcmp(o->name, "loss") == 0)
            d->out[i] = &d->loss;
        else if (strcmp(o->name, "logits") == 0)
            d->out[i] = d->logits;
        else
            d->out[i] = d->g + rt_params_get(r->params, rt_params_find(r->params, o->name))->offset;
    }
}

static void wide_sgd(wide *d, const run *r) {
    for (int s = 0; s < rt_params_count(r->params); s++) {
        const rt_param *p = rt_params_get(r->params, s);
        for (int64_t i = p->offset; p->role != RT_ROLE_STATE && i < p->offset + p->count; i++) {
            double g = d->g[i] + 5e-4 * d->w[i];
            d->m[i] = 0.9 * d->m[i] + g;
            d->w[i] -= r->gold->rate * (g + 0.9 * d->m[i]);
        }
    }
}

static void parity_double(void **state) {
    static golden gold;
    run r;
    wide d = {0};
    read_golden(&gold, *state);
    run_init(&r, &gold);
    wide_init(&d, &r);
    for (int phase = 0; phase < 2; phase++) {
        bool train = phase == 0;
        rt_graph *g = build(&r, train, RT_DTYPE_F64);
        wide_bind(&d, &r, g);
        for (int step = 0; step < (train ? gold.steps : 1); step++) {
            load_batch(&r, step % BATCHES);
            for (int64_t i = 0; i < gold.batch * rt_shape_elems(&gold.input); i++)
                d.x[i] = (double)r.x[i];
            const void *inputs[] = {d.x, r.y};
            OK(rt_interp_run(g, (const void *const *)d.param, inputs, NULL, d.out, (rt_run){0}));
            if (train) {
                agrees("loss", step, d.loss, gold.v[step], fabs(gold.v[step]), TOLERANCE_F64);
                wide_sgd(&d, &r);
            }
        }
        rt_graph_destroy(&g);
    }
    for (int i = gold.steps; i < gold.n; i++)
        agrees("logit", i - gold.steps, d.logits[i - gold.steps], gold.v[i], logit_scale(&gold),
               TOLERANCE_F64);
    wide_deinit(&d);
    run_deinit(&r);
}

static void parity(void **state) {
    compare(*state, (rt_plan_options){0});
}

/* vgg16 is left to the float run with fast convolutions: by the reference kernels it takes minutes. */
int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(parity, "mlp"),
        cmocka_unit_test_prestate(parity, "resnet20"),
        cmocka_unit_test_prestate(parity, "wrn"),
#if RT_WITH_ONEDNN
        cmocka_unit_test_prestate(parity, "vgg16"),
#endif
        cmocka_unit_test_prestate(parity_double, "mlp"),
        cmocka_unit_test_prestate(parity_double, "resnet20"),
        cmocka_unit_test_prestate(parity_double, "wrn"),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
