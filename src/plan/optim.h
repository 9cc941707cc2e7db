/*
 * optim.h - update rules on ranges of a parameter block: the door through which training reaches the
 * optimiser kernels.
 *
 * All rules work element by element, so a block may be cut anywhere and the pieces run on any worker.
 */
#ifndef RT_PLAN_OPTIM_H
#define RT_PLAN_OPTIM_H

#include "base/status.h"

typedef enum rt_optim_rule { RT_OPTIM_SGD, RT_OPTIM_ADAM, RT_OPTIM_ADAMW } rt_optim_rule;

typedef struct rt_optim {
    rt_optim_rule rule;
    double lr;
    double momentum; /* sgd */
    bool nesterov;
    double beta1, beta2, eps; /* adam, adamw */
    int64_t t;                /* steps done before this one */
    double decay;             /* sgd, adam: added to the gradient; adamw: w - centre shrinks by lr * decay */
    double centre;            /* what decay pulls towards: 0, or 1 for factors */
    double gscale;            /* factor of the gradient: clipping */
} rt_optim;

bool rt_optim_find(rt_optim_rule *out, const char *name); /* "sgd", "adam", "adamw" */
int rt_optim_slots(rt_optim_rule rule);                   /* floats of state per parameter: 1 or 2 */
/* w -= ...; m (and v for adam) are the state of the same range. */
void rt_optim_step(const rt_optim *o, float *w, const float *g, float *m, float *v, int64_t n);
double rt_optim_sum_squares(const float *g, int64_t n,
                            bool v3); /* double, fixed order; v3 as in rt_plan_options */

#endif
