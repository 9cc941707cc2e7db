/*
 * optim.c - from a rule and its constants to the kernel that applies it (PyTorch's conventions):
 *
 *     sgd      g += decay (w - centre);  m = momentum m + g;  w -= lr (nesterov ? g + momentum m : m)
 *     adam     g += decay (w - centre);  m = b1 m + (1 - b1) g;  v = b2 v + (1 - b2) g^2
 *              w -= lr (m / (1 - b1^(t+1))) / (sqrt(v / (1 - b2^(t+1))) + eps)
 *     adamw    the same without decay in g, and w -= lr decay (w - centre)
 */
#include "plan/optim.h"
#include "kern/kern.h"
#include <math.h>
#include <string.h>

static const struct {
    const char *name;
    int slots;
} rules[] = {[RT_OPTIM_SGD] = {"sgd", 1}, [RT_OPTIM_ADAM] = {"adam", 2}, [RT_OPTIM_ADAMW] = {"adamw", 2}};

bool rt_optim_find(rt_optim_rule *out, const char *name) {
    for (int i = 0; i < (int)RT_COUNT(rules); i++) {
        if (strcmp(rules[i].name, name) == 0) {
            *out = (rt_optim_rule)i;
            return true;
        }
    }
    return false;
}

int rt_optim_slots(rt_optim_rule rule) {
    return rules[rule].slots;
}

void rt_optim_step(const rt_optim *o, float *w, const float *g, float *m, float *v, int64_t n) {
    if (o->rule == RT_OPTIM_SGD) {
        rt_k_sgd_f32(w, g, m, n,
                     (rt_k_sgd){.lr = (float)o->lr,
                                .momentum = (float)o->momentum,
                                .lambda = (float)o->decay,
                                .centre = (float)o->centre,
                                .gscale = (float)o->gscale,
                                .nesterov = o->nesterov});
        return;
    }
    bool decoupled = o->rule == RT_OPTIM_ADAMW;
    double t = (double)o->t + 1;
    rt_k_adam_f32(w, g, m, v, n,
                  (rt_k_adam){.lr = (float)o->lr,
                              .beta1 = (float)o->beta1,
                              .beta2 = (float)o->beta2,
                              .eps = (float)o->eps,
                              .lambda = decoupled ? 0 : (float)o->decay,
                              .centre = (float)o->centre,
                              .decoupled = decoupled ? (float)o->decay : 0,
                              .gscale = (float)o->gscale,
                              .bias1 = (float)(1 - pow(o->beta1, t)),
                              .bias2 = (float)(1 - pow(o->beta2, t))});
}

double rt_optim_sum_squares(const float *g, int64_t n, bool v3) {
    return rt_k_sum_squares_f32(g, n, v3);
}
