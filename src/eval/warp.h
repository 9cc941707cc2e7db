/*
 * warp.h - a target that a network sees through a rising function t: prices by their logarithm, anything with heavy
 * tails by its quantiles. The network's Gaussians are of u = t(y); everything that is said of y follows from them.
 */
#ifndef RT_EVAL_WARP_H
#define RT_EVAL_WARP_H

#include "base/status.h"
#include <stdbool.h>
#include <stdint.h>

typedef enum rt_warp_kind { RT_WARP_NONE, RT_WARP_LOG, RT_WARP_QUANTILE, RT_WARP_KINDS } rt_warp_kind;
const char *rt_warp_name(rt_warp_kind kind); /* none, log, quantile */
bool rt_warp_find(const char *name, rt_warp_kind *out);

enum { RT_WARP_KNOTS = 65 };
typedef struct rt_warp {
    rt_warp_kind kind;
    int knots;                                 /* of LOG two, of QUANTILE two or more */
    double y[RT_WARP_KNOTS], u[RT_WARP_KNOTS]; /* both rise strictly */
} rt_warp;

/* Fits t to these targets, which it sorts. LOG wants one above zero and two that differ, QUANTILE two that
 * differ. */
rt_status rt_warp_fit(rt_warp *w, rt_warp_kind kind, double *y, int64_t n) RT_MUST_CHECK;
/* The kind that these targets ask for: NONE unless their skewness is above 2 or below -2, or their kurtosis above 12 (that
 * of a Gaussian is 3); then LOG if all are above zero and the skewness of their logarithms is within -1 and 1, else
 * QUANTILE, for which there must be 200 of them (else NONE). */
rt_warp_kind rt_warp_choose(const double *y, int64_t n);
/* Is it one that rt_warp_fit could have made? For files. */
bool rt_warp_valid(const rt_warp *w);

double rt_warp_apply(const rt_warp *w, double y);     /* t(y) */
double rt_warp_invert(const rt_warp *w, double u);    /* t^-1(u) */
double rt_warp_log_slope(const rt_warp *w, double y); /* ln t'(y) */
/* Mean and variance of y where u has this mean and variance (above 0) and is Gaussian: exact. */
void rt_warp_moments(const rt_warp *w, double u_mean, double u_variance, double *mean, double *variance);

#endif
