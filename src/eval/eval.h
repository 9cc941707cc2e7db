/*
 * eval.h - metrics of predictions: pure functions of arrays, double accumulation in a fixed order, names
 * and directions in metrics.def.
 *
 * Classification: p is (n, k) probabilities; an ensemble is averaged in probability first. ECE: equal-width
 * bins (lo, hi] on the top-label confidence, 15 of them. Regression: mu, var are (n, m) member means and
 * variances in the target's own units; the prediction is their equal-weight mixture.
 */
#ifndef RT_EVAL_EVAL_H
#define RT_EVAL_EVAL_H

#include "tensor/tensor.h"

enum { RT_ECE_BINS = 15 };

double rt_eval_accuracy(const float *p, const int32_t *y, int64_t n, int64_t k);
double rt_eval_nll(const float *p, const int32_t *y, int64_t n,
                   int64_t k); /* mean -ln p_y, p floored at 1e-12 */
double rt_eval_brier(const float *p, const int32_t *y, int64_t n,
                     int64_t k); /* mean sum_c (p_c - 1[c = y])^2 */
double rt_eval_ece(const float *p, const int32_t *y, int64_t n, int64_t k, int bins);
double rt_eval_entropy(const float *p, int64_t n, int64_t k); /* mean predictive entropy, nats */
/* logits (n, m, k) -> p (n, k), the mean over members of softmax; member_p (n, m, k) may be NULL. */
void rt_eval_softmax_mean(const float *logits, float *p, float *member_p, int64_t n, int64_t m, int64_t k);
double rt_eval_mutual_information(const float *member_p, int64_t n, int64_t m, int64_t k);
double rt_eval_disagreement(const float *member_p, int64_t n, int64_t m, int64_t k);
/* One Dirichlet with alpha = e^z + offset, z (k): its mean goes to p (may be NULL). Nats; total = data +
 * knowledge. */
typedef struct rt_dirichlet {
    double total, data, knowledge, epkl, precision; /* precision: sum of alpha */
} rt_dirichlet;
rt_dirichlet rt_dirichlet_uncertainty(const float *z, float *p, int64_t k, double offset);
/* z (n, m, k) -> p (n, k), member_p (n, m, k): means of m Dirichlets each. Returns the mean of their own
 * knowledge uncertainties; that of their differences (rt_eval_mutual_information of member_p) comes on
 * top. */
double rt_eval_dirichlet_mean(const float *z, float *p, float *member_p, int64_t n, int64_t m, int64_t k,
                              double offset);
double rt_eval_rmse(const float *mu, const float *y, int64_t n, int64_t m);
double rt_eval_gaussian_nll(const float *mu, const float *var, const float *y, int64_t n,
                            int64_t m); /* mixture, log-sum-exp */

typedef struct rt_metric_info {
    const char *name, *meaning;
    bool higher_is_better, regression;
} rt_metric_info;
int rt_metric_list(const rt_metric_info **out);

typedef struct rt_eval_input {
    bool regression;
    int64_t n, m, k;
    const float *logits; /* classification (n, m, k) */
    bool dirichlet;      /* logits are those of Dirichlet distributions, alpha = e^z + offset */
    double dirichlet_offset;
    const int32_t *label;
    const float *mu, *var; /* regression (n, m) */
    const float *target;
} rt_eval_input;
/* All metrics of metrics.def, in the order of rt_metric_list; NaN where not defined, with a reason
 * (static text). */
rt_status rt_eval_all(const rt_eval_input *in, double *values, const char **reasons) RT_MUST_CHECK;

#endif
