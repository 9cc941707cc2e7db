/*
 * perm.c - the method `perm`: from flags to a mean over learned soft permutations.
 *
 *     start        units of each model renumbered by weight matching, or left as they are; X = gain I
 *     joint        all X at once, every model with weight 1/N
 *     sequential   model after model: the mean of those before it, with weight m/(m+1), stays as it is while
 *                  the X of model m is learned
 *
 *     distil       optionally, a few passes of distillation from the models
 *
 * What was learned belongs to the renumbered models; the matrices that are left behind are those of the models
 * as they were given, P times the permutation.
 */
#include "average/perm.h"
#include "base/alloc.h"
#include <math.h>
#include <string.h>

typedef struct perm {
    rt_average *a;
    rt_perm_training t;
    rt_perm_models all;
    const float **blocks; /* (models): what is averaged, renumbered */
    double *weight;
    float *x, *pm; /* all X, all P */
    float *state;
    double loss;
} perm;

static int gradient_of(const char *name) {
    return strcmp(name, "implicit") == 0   ? RT_SINKHORN_IMPLICIT
           : strcmp(name, "unrolled") == 0 ? RT_SINKHORN_UNROLLED
                                           : RT_SINKHORN_AUTO;
}

static rt_status perm_init(perm *p, rt_average *a) {
    const rt_config *c = a->c;
    const size_t models = (size_t)a->models, xs = (size_t)rt_perm_floats(&a->sym, a->models);
    *p = (perm){.a = a,
                .loss = NAN,
                .t = {.o = {.tau = c->perm_tau,
                            .floor = c->perm_floor,
                            .iterations = c->perm_iterations,
                            .gradient = gradient_of(c->perm_gradient),
                            .inverse = strcmp(c->perm_inverse, "inverse") == 0,
                            .ridge = c->perm_ridge},
                      .lr = c->perm_lr,
                      .epochs = c->perm_epochs,
                      .batch = c->perm_batch,
                      .seed = (uint64_t)c->seed,
                      .part = 1}};
    RT_FAIL_IF(a->regression, RT_E_UNSUPPORTED,
               "perm learns from labels: it cannot average regressions; match can");
    RT_FAIL_IF(a->sym.bundles == 0, RT_E_UNSUPPORTED, "perm: no units of this network can be permuted");
    RT_TRY(rt_augment_parse(&p->t.augment, c->augment));
    RT_TRY(rt_calloc(&p->blocks, models, sizeof *p->blocks));
    RT_TRY(rt_calloc(&p->weight, models, sizeof *p->weight));
    RT_TRY(rt_calloc(&p->x, xs, sizeof *p->x));
    RT_TRY(rt_calloc(&p->pm, xs, sizeof *p->pm));
    RT_TRY(rt_calloc(&p->state, (size_t)a->floats, sizeof *p->state));
    memcpy(p->state, a->blocks[0], (size_t)a->floats * sizeof *p->state);
    for (int m = 0; m < a->models; m++) {
        p->blocks[m] = a->blocks[m];
        p->weight[m] = 1.0 / a->models;
    }
    p->all = (rt_perm_models){.net = rt_student_net(a->student),
                              .params = a->params,
                              .sym = &a->sym,
                              .n = a->models,
                              .blocks = p->blocks,
                              .weight = p->weight};
    return RT_OK;
}

static void perm_deinit(perm *p) {
    rt_free(p->blocks);
    rt_free(p->weight);
    rt_free(p->x);
    rt_free(p->pm);
    rt_free(p->state);
}

/* ---- start ---- */

static rt_status match(perm *p) {
    rt_average *a = p->a;
    RT_TRY(rt_average_by_match(a));
    for (int m = 1; m < a->models; m++)
        p->blocks[m] = a->aligned[m];
    return RT_OK;
}

/* X = gain I. The gain of a matched start gives each unit the share `mass` of its own row. */
static void start_x(perm *p, bool matched) {
    const rt_average *a = p->a;
    const double mass = a->c->perm_start_mass;
    for (int m = 1; m < a->models; m++)
        for (int k = 0; k < a->sym.bundles; k++) {
            const int64_t n = a->sym.bundle[k].n;
            const double gain = matched && n > 1 ? p->t.o.tau * log(mass * (double)(n - 1) / (1 - mass)) : 1;
            for (int64_t i = 0; i < n; i++)
                p->x[rt_perm_offset(&a->sym, m, k) + i * n + i] = (float)gain;
        }
}

/* ---- orders ---- */

static rt_status learn_joint(perm *p) {
    const rt_average *a = p->a;
    RT_TRY(rt_perm_train(a, &p->all, &p->t, p->x, p->state, &p->loss));
    return rt_perm_mean(&p->all, p->t.o, p->x, a->out, p->pm, a->pool);
}

static rt_status learn_sequential(perm *p) {
    const rt_average *a = p->a;
    float *next = NULL;
    rt_status st = RT_OK;
    rt_perm_training t = p->t;
    rt_perm_models two = p->all;
    RT_TRY(rt_calloc(&next, (size_t)a->floats, sizeof *next)); /* zeros between parameters, too */
    memcpy(a->out, p->blocks[0], (size_t)a->floats * sizeof *a->out);
    for (int m = 1; m < a->models; m++) {
        const float *pair[2] = {a->out, p->blocks[m]};
        const double weight[2] = {m / (m + 1.0), 1 / (m + 1.0)};
        const int64_t at = rt_perm_offset(&a->sym, m, 0);
        two.n = 2;
        two.blocks = pair;
        two.weight = weight;
        t.part = 1.0 / (a->models - 1);
        t.from = (m - 1) * t.part;
        RT_TRY_GOTO(rt_perm_train(a, &two, &t, p->x + at, p->state, &p->loss));
        RT_TRY_GOTO(rt_perm_mean(&two, t.o, p->x + at, next, p->pm + at, a->pool));
        memcpy(a->out, next, (size_t)a->floats * sizeof *next);
    }
done:
    rt_free(next);
    return st;
}

/* ---- what is left behind ---- */

/* P times the permutation that the model started from. */
static rt_status leave_matrix(perm *p, int model, int bundle) {
    rt_average *a = p->a;
    const rt_sym_bundle *g = &a->sym.bundle[bundle];
    const float *soft = p->pm + rt_perm_offset(&a->sym, model, bundle);
    const int64_t *first = rt_average_perms(a, model) + g->offset;
    float **out = rt_average_matrix(a, model, bundle);
    RT_TRY(rt_calloc(out, (size_t)(g->n * g->n), sizeof **out));
    for (int64_t i = 0; i < g->n; i++)
        for (int64_t j = 0; j < g->n; j++)
            (*out)[i * g->n + first[j]] = soft[i * g->n + j];
    return RT_OK;
}

/* The model as P moves it, in place of the renumbered one. */
static rt_status leave_model(perm *p, int model) {
    rt_average *a = p->a;
    const float *pair[2] = {a->blocks[0], p->blocks[model]};
    rt_perm_models two = p->all;
    float *moved = NULL;
    two.n = 2;
    two.blocks = pair;
    two.weight = (const double[]){0, 1};
    RT_TRY(rt_calloc(&moved, (size_t)a->floats, sizeof *moved));
    const rt_status st =
        rt_perm_mean(&two, p->t.o, p->x + rt_perm_offset(&a->sym, model, 0), moved, NULL, a->pool);
    rt_free(a->aligned[model]);
    p->blocks[model] = a->aligned[model] = moved;
    return st;
}

/* Running statistics of the mean, as the last steps saw them. */
static void leave_statistics(perm *p) {
    const rt_average *a = p->a;
    for (int k = 0; k < rt_params_count(a->params) && p->t.epochs > 0; k++) {
        const rt_param *line = rt_params_get(a->params, k);
        if (line->role == RT_ROLE_STATE)
            memcpy(a->out + line->offset, p->state + line->offset, (size_t)line->count * sizeof *a->out);
    }
}

rt_status rt_average_by_perm(rt_average *a) {
    perm p;
    const bool matched = strcmp(a->c->perm_start, "match") == 0;
    /* measured on validation rows: it helps means of many models, not those of two */
    const int64_t distill = a->c->perm_distill >= 0 ? a->c->perm_distill : a->models > 2 ? 16 : 0;
    rt_status st;
    RT_TRY_GOTO(perm_init(&p, a));
    if (matched)
        RT_TRY_GOTO(match(&p));
    start_x(&p, matched);
    RT_TRY_GOTO(strcmp(a->c->perm_order, "sequential") == 0 ? learn_sequential(&p) : learn_joint(&p));
    leave_statistics(&p);
    for (int m = 1; m < a->models; m++) {
        for (int k = 0; k < a->sym.bundles; k++)
            RT_TRY_GOTO(leave_matrix(&p, m, k));
        RT_TRY_GOTO(leave_model(&p, m));
    }
    RT_TRY_GOTO(rt_perm_distill(a,
                                &(rt_perm_distillation){.epochs = distill,
                                                        .batch = a->c->perm_batch,
                                                        .lr = a->c->perm_distill_lr,
                                                        .temperature = 3,
                                                        .alpha = 0.9,
                                                        .augment = p.t.augment,
                                                        .seed = p.t.seed + 1},
                                a->out, &a->distilled));
    a->keep_scale = true; /* the mean was learned as it is */
done:
    perm_deinit(&p);
    return st;
}
