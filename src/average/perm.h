/*
 * perm.h - permAVG: soft permutations learned from labels.
 *
 * Model m > 0 has one free matrix X (n x n) per bundle of the symmetry; P = Sinkhorn(X / tau). The X of all
 * models and bundles are one block of floats, model-major.
 */
#ifndef RT_AVERAGE_PERM_H
#define RT_AVERAGE_PERM_H

#include "average/average.h"

typedef struct rt_perm_options {
    double tau;         /* temperature of Sinkhorn */
    double floor;       /* added to e^(X / tau); 0: none */
    int64_t iterations; /* of Sinkhorn, at most */
    int gradient;       /* RT_SINKHORN_AUTO, ... */
    bool inverse;       /* inputs of a layer are undone by P^-1 instead of P^T */
    double ridge;       /* inverse: (P^T P + ridge I)^-1 P^T; 0: the inverse itself */
} rt_perm_options;

/* Slots of the graph: models x parameters | parameters (only running statistics are used) | X */
typedef struct rt_perm_graph {
    rt_graph *g;
    int state, x; /* first slots */
    int models;
} rt_perm_graph;

/* ---- the graph (perm_build.c) ---- */
int64_t rt_perm_floats(const rt_symmetry *s, int models);
int64_t rt_perm_offset(const rt_symmetry *s, int model, int bundle); /* of X, in floats; model > 0 */
RT_INLINE int rt_perm_slot(const rt_perm_graph *p, const rt_symmetry *s, int model, int bundle) {
    return p->x + (model - 1) * s->bundles + bundle;
}

/*
 * The averaged network, sum over models of weight[m] times the model moved by its P, on a batch: inputs 0 (x)
 * and 1 (i32 labels); outputs "loss" (mean cross-entropy), "logits" and "grad:M:K", the gradient of X of
 * model M and bundle K. Parameters of all models are frozen.
 */
rt_status rt_perm_build_step(rt_perm_graph *out, const rt_net *net, rt_params *params, const rt_symmetry *s,
                             int models, const double *weight, rt_perm_options o, int64_t batch,
                             rt_dtype dtype) RT_MUST_CHECK;
/* Outputs "mean:SLOT", the parameters of that network (running statistics averaged like the others), and
 * "P:M:K". */
rt_status rt_perm_build_mean(rt_perm_graph *out, rt_params *params, const rt_symmetry *s, int models,
                             const double *weight, rt_perm_options o, rt_dtype dtype) RT_MUST_CHECK;

/* ---- learning X (perm_train.c) ---- */

/* A network and its frozen models. */
typedef struct rt_perm_models {
    const rt_net *net;
    rt_params *params;
    const rt_symmetry *sym;
    int n;
    const float *const *blocks; /* (n) */
    const double *weight;       /* (n): of each in the mean */
} rt_perm_models;

/* One step: loss, gradients, Adam. x (all X) and state (a block: running statistics of BN) are read and
 * written. */
typedef struct rt_perm_step rt_perm_step;
rt_status rt_perm_step_create(rt_perm_step **out, const rt_perm_models *m, rt_perm_options o, int64_t batch,
                              float *x, float *state, rt_pool *pool) RT_MUST_CHECK;
void rt_perm_step_destroy(rt_perm_step **s);
/* Number t, from 0; fails with RT_E_NUMERIC when the loss is not finite. */
rt_status rt_perm_step_run(rt_perm_step *s, const float *x, const int32_t *label, double lr, int64_t t,
                           double *loss) RT_MUST_CHECK;
double rt_perm_step_flops(const rt_perm_step *s);
size_t rt_perm_step_bytes(const rt_perm_step *s);

typedef struct rt_perm_training {
    rt_perm_options o;
    double lr; /* of Adam; falls to zero as a cosine */
    int64_t epochs, batch;
    rt_augment augment;
    uint64_t seed;
    double from, part; /* of all the work: progress counts from `from` over `part` */
} rt_perm_training;
/* On a's training rows. x: where it starts, and what was learned; state as above. loss: mean of the last
 * epoch. */
rt_status rt_perm_train(const rt_average *a, const rt_perm_models *m, const rt_perm_training *t, float *x,
                        float *state, double *loss) RT_MUST_CHECK;
/* The mean at x: out (a block) and pm, the matrices P in x's form; either may be NULL. */
rt_status rt_perm_mean(const rt_perm_models *m, rt_perm_options o, const float *x, float *out, float *pm,
                       rt_pool *pool) RT_MUST_CHECK;

/* ---- afterwards (perm_distill.c) ---- */
typedef struct rt_perm_distillation {
    int64_t epochs, batch;
    double lr, temperature, alpha; /* of Adam, falling as a cosine; of the softmax; weight of the models */
    rt_augment augment;
    uint64_t seed;
} rt_perm_distillation;
/* Trains block on the mean of the models' predictions; leaves it alone unless validation rows agree (kept). */
rt_status rt_perm_distill(const rt_average *a, const rt_perm_distillation *d, float *block,
                          bool *kept) RT_MUST_CHECK;

#endif
