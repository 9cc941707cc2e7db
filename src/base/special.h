/*
 * special.h - functions libm lacks or that are not thread-safe there. Positive arguments; about 1e-13 relative.
 */
#ifndef RT_BASE_SPECIAL_H
#define RT_BASE_SPECIAL_H

double rt_lgamma(double x);   /* ln Gamma(x), x > 0 */
double rt_digamma(double x);  /* psi(x), x > 0 */
double rt_trigamma(double x); /* psi'(x), x > 0 */

#endif
