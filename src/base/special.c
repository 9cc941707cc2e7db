/*
 * special.c - ln Gamma, digamma and trigamma of positive arguments, for Dirichlet losses.
 *
 * All three shift x up to at least 10 by the recurrence Gamma(x+1) = x Gamma(x), then sum the asymptotic
 * series in 1/x^2 (Abramowitz and Stegun 6.1.41, 6.3.18, 6.4.12):
 *
 *     ln Gamma(x) ~ (x - 1/2) ln x - x + ln(2 pi)/2 + 1/(12x) - 1/(360x^3) + 1/(1260x^5) - ...
 *     psi(x)      ~ ln x - 1/(2x) - 1/(12x^2) + 1/(120x^4) - 1/(252x^6) + ...
 *     psi'(x)     ~ 1/x + 1/(2x^2) + 1/(6x^3) - 1/(30x^5) + ...
 *
 * libm's lgamma writes the global signgam and is not thread-safe; digamma and trigamma it lacks.
 */
#include "base/special.h"
#include "base/compiler.h"
#include <math.h>
#include <stdint.h>

enum { SHIFT_TO = 10 };

static double horner(const double *c, int n, double t) {
    double sum = 0.0;
    for (int i = n - 1; i >= 0; i--)
        sum = sum * t + c[i];
    return sum;
}

/*
 * Near its zeros at 1 and 2 the shifted form loses relative accuracy by cancellation; there the Taylor
 * series around the zero is used: ln Gamma(1+e) = -gamma e + sum_{k>=2} zeta(k) (-e)^k / k. Sixteen terms
 * suffice for |e| <= 0.1.
 */
static double lgamma_near_one(double e) {
    static const double zeta[] = {1.6449340668482264365, 1.2020569031595942854, 1.0823232337111381915,
                                  1.0369277551433699263, 1.0173430619844491397, 1.0083492773819228268,
                                  1.0040773561979443394, 1.0020083928260822144, 1.0009945751278180853,
                                  1.0004941886041194646, 1.0002460865533080483, 1.0001227133475784891,
                                  1.0000612481350587048, 1.0000305882363070205, 1.0000152822594086519};
    double sum = 0.0;
    for (int k = (int)RT_COUNT(zeta) + 1; k >= 2; k--)
        sum = (zeta[k - 2] / k - sum * e);
    return e * (e * sum - 0.57721566490153286061);
}

/* Coefficients of the three series, in powers of 1/x^2. */
static const double lgamma_c[] = {1.0 / 12,   -1.0 / 360,      1.0 / 1260, -1.0 / 1680,
                                  1.0 / 1188, -691.0 / 360360, 1.0 / 156,  -3617.0 / 122400};
static const double digamma_c[] = {-1.0 / 12,  1.0 / 120,     -1.0 / 252, 1.0 / 240,
                                   -1.0 / 132, 691.0 / 32760, -1.0 / 12,  3617.0 / 8160};
static const double trigamma_c[] = {1.0 / 6,  -1.0 / 30,     1.0 / 42, -1.0 / 30,
                                    5.0 / 66, -691.0 / 2730, 7.0 / 6,  -3617.0 / 510};
enum { TERMS = 8 };
static const double HALF_LN_2PI = 0.91893853320467274178;

double rt_lgamma(double x) {
    if (fabs(x - 1.0) <= 0.1)
        return lgamma_near_one(x - 1.0);
    if (fabs(x - 2.0) <= 0.1)
        return log(x - 1.0) + lgamma_near_one(x - 2.0);
    double product = 1.0;
    while (x < SHIFT_TO) {
        product *= x;
        x += 1.0;
    }
    double inv = 1.0 / x;
    double series = inv * horner(lgamma_c, TERMS, inv * inv);
    return (x - 0.5) * log(x) - x + HALF_LN_2PI + series - log(product);
}

double rt_digamma(double x) {
    double shift = 0.0;
    while (x < SHIFT_TO) {
        shift += 1.0 / x;
        x += 1.0;
    }
    double inv = 1.0 / x, t = inv * inv;
    return log(x) - 0.5 * inv + t * horner(digamma_c, TERMS, t) - shift;
}

double rt_trigamma(double x) {
    double shift = 0.0;
    while (x < SHIFT_TO) {
        shift += 1.0 / (x * x);
        x += 1.0;
    }
    double inv = 1.0 / x, t = inv * inv;
    return inv + 0.5 * t + inv * t * horner(trigamma_c, TERMS, t) + shift;
}

/* By the series the terms x ln x and x of both functions vanish before they are rounded; small arguments have
 * no such terms. */
double rt_lgamma_rest(double x) {
    if (x < SHIFT_TO)
        return rt_lgamma(x) - x * rt_digamma(x) + x;
    double inv = 1.0 / x, t = inv * inv;
    return -0.5 * log(x) + 0.5 + HALF_LN_2PI +
           inv * (horner(lgamma_c, TERMS, t) - horner(digamma_c, TERMS, t));
}

double rt_trigamma_rest(double x) {
    if (x < SHIFT_TO)
        return x * rt_trigamma(x) - 1.0;
    double inv = 1.0 / x, t = inv * inv;
    return 0.5 * inv + t * horner(trigamma_c, TERMS, t);
}
