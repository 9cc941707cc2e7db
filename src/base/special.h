/*
 * special.h - functions libm lacks or that are not thread-safe there. Positive arguments; about 1e-13
 * relative.
 */
#ifndef RT_BASE_SPECIAL_H
#define RT_BASE_SPECIAL_H

double rt_lgamma(double x);   /* ln Gamma(x), x > 0 */
double rt_digamma(double x);  /* psi(x), x > 0 */
double rt_trigamma(double x); /* psi'(x), x > 0 */
/* What is left when the leading terms of large arguments cancel, as in sums over a Dirichlet's
 * concentrations. */
double rt_lgamma_rest(double x);   /* ln Gamma(x) - x psi(x) + x, about -1/2 ln x */
double rt_trigamma_rest(double x); /* x psi'(x) - 1, about 1 / (2 x) */

#endif
