/*
 * perm_train.c - learning the matrices X of permAVG, and the mean they lead to.
 *
 * Adam on the cross-entropy of training labels, with a learning rate that falls to zero as a cosine over all
 * steps. Only X is trained; the models are bound to the graph where they are. A last batch that is smaller is
 * left out.
 */
#include "average/perm.h"
#include "base/alloc.h"
#include "plan/optim.h"
#include "plan/plan.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { CHUNK = 16384 }; /* floats per job of the optimiser */
static const double PI = 3.14159265358979323846;

/* ---- a compiled graph and what it is bound to ---- */

typedef struct machine {
    rt_perm_graph p;
    rt_plan *plan;
    rt_exec *exec;
} machine;

static void machine_deinit(machine *m) {
    rt_exec_destroy(&m->exec);
    rt_plan_destroy(&m->plan);
    rt_graph_destroy(&m->p.g);
}

static rt_status machine_start(machine *m, const rt_perm_models *w, const float *x, float *state,
                               rt_pool *pool) {
    const int slots = rt_params_count(w->params);
    RT_TRY(rt_plan_compile(&m->plan, m->p.g, (rt_plan_options){.v3 = rt_params_v3(w->params)}));
    RT_TRY(rt_exec_create(&m->exec, m->plan, pool));
    const int64_t *offsets = rt_params_offsets(w->params);
    for (int i = 0; i < w->n; i++)
        rt_exec_bind_block(m->exec, i * slots, w->blocks[i], offsets, slots);
    if (state)
        rt_exec_bind_own_block(m->exec, m->p.state, state, offsets, slots);
    for (int i = 1; i < w->n; i++)
        for (int k = 0; k < w->sym->bundles; k++)
            rt_exec_bind_block(m->exec, rt_perm_slot(&m->p, w->sym, i, k), x,
                               &(int64_t){rt_perm_offset(w->sym, i, k)}, 1);
    return RT_OK;
}

/* Where the output of that name goes, if there is one. */
static void machine_take(machine *m, const char *name, float *to) {
    for (int i = 0; i < rt_graph_outputs(m->p.g); i++)
        if (strcmp(rt_graph_get_output(m->p.g, i)->name, name) == 0)
            rt_exec_bind_output(m->exec, i, to);
}

/* Outputs KIND:M:K go to a block in x's form. */
static void machine_take_matrices(machine *m, const rt_symmetry *s, const char *kind, float *block) {
    char name[32];
    for (int i = 1; i < m->p.models; i++)
        for (int k = 0; k < s->bundles; k++) {
            snprintf(name, sizeof name, "%s:%d:%d", kind, i, k);
            machine_take(m, name, block + rt_perm_offset(s, i, k));
        }
}

/* ---- a step ---- */

struct rt_perm_step {
    machine m;
    rt_pool *pool;
    float *x, *grad, *mean, *square; /* gradients stay zero where X has no influence */
    int64_t n;
    rt_optim rule;
    float loss;
};

rt_status rt_perm_step_create(rt_perm_step **out, const rt_perm_models *w, rt_perm_options o, int64_t batch,
                              float *x, float *state, rt_pool *pool) {
    rt_perm_step *s = NULL;
    rt_status st;
    *out = NULL;
    RT_TRY(rt_calloc(&s, 1, sizeof *s));
    s->pool = pool;
    s->x = x;
    s->n = rt_perm_floats(w->sym, w->n);
    s->rule = (rt_optim){.rule = RT_OPTIM_ADAM, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .gscale = 1};
    RT_TRY_GOTO(rt_calloc(&s->grad, (size_t)s->n, sizeof *s->grad));
    RT_TRY_GOTO(rt_calloc(&s->mean, (size_t)s->n, sizeof *s->mean));
    RT_TRY_GOTO(rt_calloc(&s->square, (size_t)s->n, sizeof *s->square));
    RT_TRY_GOTO(
        rt_perm_build_step(&s->m.p, w->net, w->params, w->sym, w->n, w->weight, o, batch, RT_DTYPE_F32));
    RT_TRY_GOTO(machine_start(&s->m, w, x, state, pool));
    machine_take_matrices(&s->m, w->sym, "grad", s->grad);
    machine_take(&s->m, "loss", &s->loss);
    *out = s;
    s = NULL;
done:
    rt_perm_step_destroy(&s);
    return st;
}

void rt_perm_step_destroy(rt_perm_step **sp) {
    rt_perm_step *s = *sp;
    if (!s)
        return;
    machine_deinit(&s->m);
    rt_free(s->grad);
    rt_free(s->mean);
    rt_free(s->square);
    rt_free(s);
    *sp = NULL;
}

static void update_job(void *ctx, int64_t job, int worker) {
    const rt_perm_step *s = ctx;
    const int64_t at = job * CHUNK, n = RT_MIN(s->n - at, (int64_t)CHUNK);
    (void)worker;
    rt_optim_step(&s->rule, s->x + at, s->grad + at, s->mean + at, s->square + at, n);
}

rt_status rt_perm_step_run(rt_perm_step *s, const float *x, const int32_t *label, double lr, int64_t t,
                           double *loss) {
    rt_exec_bind_input(s->m.exec, 0, x);
    rt_exec_bind_input(s->m.exec, 1, label);
    rt_exec_run(&s->m.exec, &(rt_run){.step = (uint64_t)t}, 1, s->pool);
    RT_FAIL_IF(!isfinite(s->loss), RT_E_NUMERIC,
               "perm, step %lld: the loss is not finite (%g); a smaller --perm-lr may help", (long long)t + 1,
               (double)s->loss);
    s->rule.lr = lr;
    s->rule.t = t;
    rt_pool_run(s->pool, update_job, s, (s->n + CHUNK - 1) / CHUNK);
    *loss = (double)s->loss;
    return RT_OK;
}

double rt_perm_step_flops(const rt_perm_step *s) {
    return rt_plan_flops(s->m.plan);
}

size_t rt_perm_step_bytes(const rt_perm_step *s) {
    return rt_plan_bytes(s->m.plan) + 4 * (size_t)s->n * sizeof(float);
}

/* ---- training ---- */

static rt_status run_steps(const rt_average *a, const rt_perm_training *t, rt_perm_step *s, rt_prefetch *data,
                           int64_t per_epoch, double *mean) {
    const int64_t steps = per_epoch * t->epochs;
    double sum = 0, loss;
    for (int64_t i = 0; i < steps; i++) {
        const rt_batch *b;
        RT_TRY(rt_prefetch_next(data, &b));
        const double lr = 0.5 * t->lr * (1 + cos(PI * (double)i / (double)steps));
        RT_TRY(rt_perm_step_run(s, b->x, b->label, lr, i, &loss));
        sum = i % per_epoch == 0 ? loss : sum + loss;
        RT_TRY(rt_average_progress(a, "learning permutations",
                                   t->from + t->part * (double)(i + 1) / (double)steps));
    }
    *mean = steps > 0 ? sum / (double)per_epoch : NAN;
    return RT_OK;
}

rt_status rt_perm_train(const rt_average *a, const rt_perm_models *m, const rt_perm_training *t, float *x,
                        float *state, double *loss) {
    rt_perm_step *step = NULL;
    rt_prefetch *data = NULL;
    rt_status st;
    RT_FAIL_IF(a->train.n < 1, RT_E_USAGE, "perm learns from training rows, and %s has none",
               rt_dataset_spec(a->data));
    const rt_batch_spec spec = {.set = &a->train,
                                .row = rt_dataset_row(a->data),
                                .batch = RT_MIN(t->batch, a->train.n),
                                .shuffle = true,
                                .drop_last = true,
                                .augment = t->augment};
    RT_TRY_GOTO(rt_perm_step_create(&step, m, t->o, spec.batch, x, state, a->pool));
    RT_TRY_GOTO(rt_prefetch_create(&data, &spec, &t->seed, 1, 0, 0));
    st = run_steps(a, t, step, data, rt_batch_count(&spec), loss);
done:
    rt_prefetch_destroy(&data);
    rt_perm_step_destroy(&step);
    return st;
}

/* ---- the mean ---- */

rt_status rt_perm_mean(const rt_perm_models *w, rt_perm_options o, const float *x, float *out, float *pm,
                       rt_pool *pool) {
    machine m = {0};
    char name[32];
    rt_status st;
    RT_TRY(rt_perm_build_mean(&m.p, w->params, w->sym, w->n, w->weight, o, RT_DTYPE_F32));
    RT_TRY_GOTO(machine_start(&m, w, x, NULL, pool));
    if (pm)
        machine_take_matrices(&m, w->sym, "P", pm);
    for (int k = 0; k < rt_params_count(w->params) && out; k++) {
        snprintf(name, sizeof name, "mean:%d", k);
        machine_take(&m, name, out + rt_params_get(w->params, k)->offset);
    }
    rt_exec_run(&m.exec, &(rt_run){0}, 1, pool);
done:
    machine_deinit(&m);
    return st;
}
