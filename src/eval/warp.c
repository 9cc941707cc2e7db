/*
 * warp.c - transforms of a target, as pieces between knots (u_i, y_i), with the same slope beyond the last ones:
 *
 *     LOG        u = ln y from the smallest to the largest training target, its tangents outside: u is defined for every
 *                y, zero and below as well, and y grows no faster than a line where the network guesses wildly
 *     QUANTILE   straight lines; y_i is the quantile Phi(u_i) of the training targets, the u_i equidistant, so that u
 *                is nearly Gaussian and tails have as many knots as the middle
 *
 * Moments of y = g(u), u ~ N(mu, s^2), are sums over pieces from z_0 = (u_0 - mu)/s to z_1 of
 *
 *     y = c + b (u - mu)      E y = c P + b s D,   E y^2 = c^2 P + 2 c b s D + b^2 s^2 (P + z_0 phi_0 - z_1 phi_1)
 *                             P = Phi(z_1) - Phi(z_0),   D = phi(z_0) - phi(z_1)
 *     y = e^u                 E y^k = T_k(z_1) - T_k(z_0),   T_k(z) = e^(k mu + k^2 s^2 / 2) Phi(z - k s)
 *
 * taken about y = g(mu), so that the variance is no difference of large numbers. T_k with z below k s is a huge
 * number times a tiny one; with erfcx(x) = e^(x^2) erfc(x) it is e^(k u - z^2 / 2) erfcx((k s - z) / sqrt 2) / 2.
 */
#include "base/compiler.h"
#include "eval/eval_int.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const k_names[RT_WARP_KINDS] = {"none", "log", "quantile"};

const char *rt_warp_name(rt_warp_kind kind) {
    return k_names[kind];
}

bool rt_warp_find(const char *name, rt_warp_kind *out) {
    for (int i = 0; i < RT_WARP_KINDS; i++)
        if (strcmp(name, k_names[i]) == 0) {
            *out = (rt_warp_kind)i;
            return true;
        }
    return false;
}

/* ---- the normal distribution ---- */

static const double SQRT_HALF = 0.70710678118654752440, SQRT_2PI = 2.5066282746310005024;

static double density(double z) {
    return exp(-0.5 * z * z) / SQRT_2PI;
}

static double z_density(double z) {
    return isinf(z) ? 0 : z * density(z);
}

static double cdf(double z) {
    return 0.5 * erfc(-z * SQRT_HALF);
}

/* Phi(b) - Phi(a), a <= b: both tails are as exact as the middle. */
static double mass(double a, double b) {
    return a > 0 ? cdf(-a) - cdf(-b) : cdf(b) - cdf(a);
}

/* e^(x^2) erfc(x), x >= 0. */
static double erfcx(double x) {
    const double r = 1 / (2 * x * x), sqrt_pi = 1.7724538509055160273;
    return x < 20 ? exp(x * x) * erfc(x) : (1 - r * (1 - 3 * r * (1 - 5 * r))) / (x * sqrt_pi);
}

/* Phi^-1(p), 0 < p < 1: bisection, for a few knots when a target is fitted. */
static double quantile_of_normal(double p) {
    double lo = -40, hi = 40;
    for (int i = 0; i < 100; i++) {
        const double mid = 0.5 * (lo + hi);
        *(cdf(mid) < p ? &lo : &hi) = mid;
    }
    return 0.5 * (lo + hi);
}

/* ---- fitting ---- */

/* Between order statistics: the p-th of n values is at p n - 1/2. */
static double sample_quantile(const double *sorted, int64_t n, double p) {
    const double at = fmin(fmax(p * (double)n - 0.5, 0), (double)(n - 1));
    const int64_t i = (int64_t)at;
    return i + 1 < n ? sorted[i] + (at - (double)i) * (sorted[i + 1] - sorted[i]) : sorted[n - 1];
}

/* Knots of equal y become one, in the middle of their u. */
static void fit_quantiles(rt_warp *w, const double *sorted, int64_t n) {
    enum { ROWS_PER_PIECE = 16, PIECES_MIN = 4 };
    const int64_t most = RT_WARP_KNOTS - 1, want = RT_MAX(n / ROWS_PER_PIECE, (int64_t)PIECES_MIN);
    const int pieces = (int)RT_MIN(want, most);
    const double end = quantile_of_normal(1 - 0.5 / (double)n);
    double first = 0;
    for (int i = 0; i <= pieces; i++) {
        const double u = -end + 2 * end * i / pieces, y = sample_quantile(sorted, n, cdf(u));
        if (w->knots == 0 || y > w->y[w->knots - 1]) {
            first = u;
            w->y[w->knots] = y;
            w->u[w->knots++] = u;
        } else {
            w->u[w->knots - 1] = 0.5 * (first + u);
        }
    }
}

rt_status rt_warp_fit(rt_warp *w, rt_warp_kind kind, double *y, int64_t n) {
    *w = (rt_warp){.kind = kind};
    if (kind == RT_WARP_NONE)
        return RT_OK;
    qsort(y, (size_t)n, sizeof *y, rt_by_size);
    if (kind == RT_WARP_QUANTILE && n > 1) {
        fit_quantiles(w, y, n);
    } else if (kind == RT_WARP_LOG) {
        int64_t first = 0;
        while (first < n && !(y[first] > 0))
            first++;
        RT_FAIL_IF(first == n, RT_E_INPUT,
                   "--target-transform log: no target of the training rows is above zero");
        w->knots = y[n - 1] > y[first] ? 2 : 0;
        w->y[0] = y[first];
        w->y[1] = y[n - 1];
        for (int i = 0; i < 2; i++)
            w->u[i] = log(w->y[i]);
    }
    RT_FAIL_IF(!rt_warp_valid(w), RT_E_INPUT,
               "--target-transform %s: the targets of the training rows hardly differ", k_names[kind]);
    return RT_OK;
}

bool rt_warp_valid(const rt_warp *w) {
    if (w->kind == RT_WARP_NONE)
        return w->knots == 0;
    if (w->knots < 2 || w->knots > RT_WARP_KNOTS ||
        (w->kind == RT_WARP_LOG && (w->knots != 2 || !(w->y[0] > 0))))
        return false;
    for (int i = 0; i < w->knots; i++)
        if (!isfinite(w->y[i]) || !isfinite(w->u[i]) ||
            (i > 0 && !(w->y[i] > w->y[i - 1] && w->u[i] > w->u[i - 1])))
            return false;
    return true;
}

typedef struct shape {
    double skewness, kurtosis;
} shape;

static shape shape_of(const double *y, int64_t n, bool logs) {
    double mean = 0, m2 = 0, m3 = 0, m4 = 0;
    for (int64_t i = 0; i < n; i++)
        mean += (logs ? log(y[i]) : y[i]) / (double)n;
    for (int64_t i = 0; i < n; i++) {
        const double d = (logs ? log(y[i]) : y[i]) - mean, d2 = d * d;
        m2 += d2 / (double)n;
        m3 += d2 * d / (double)n;
        m4 += d2 * d2 / (double)n;
    }
    return m2 > 0 ? (shape){m3 / (m2 * sqrt(m2)), m4 / (m2 * m2)} : (shape){0, 0};
}

rt_warp_kind rt_warp_choose(const double *y, int64_t n) {
    enum { ROWS_FOR_QUANTILES = 200 };
    const rt_warp_kind otherwise = n < ROWS_FOR_QUANTILES ? RT_WARP_NONE : RT_WARP_QUANTILE;
    const shape s = shape_of(y, n, false);
    if (!(fabs(s.skewness) > 2 || s.kurtosis > 12))
        return RT_WARP_NONE;
    for (int64_t i = 0; i < n; i++)
        if (!(y[i] > 0))
            return otherwise;
    return fabs(shape_of(y, n, true).skewness) <= 1 ? RT_WARP_LOG : otherwise;
}

/* ---- there and back ---- */

/* Slope dy/du of the straight piece i: piece 0 lies below the first knot, piece `knots` beyond the last. */
static double slope(const rt_warp *w, int i) {
    const int k = w->knots;
    if (w->kind == RT_WARP_LOG)
        return w->y[i == 0 ? 0 : 1];
    const int j = i == 0 ? 1 : i == k ? k - 1 : i;
    return (w->y[j] - w->y[j - 1]) / (w->u[j] - w->u[j - 1]);
}

/* Knots at or below x: the piece it lies in. */
static int piece_of(const double *knot, int knots, double x) {
    int i = 0;
    while (i < knots && knot[i] <= x)
        i++;
    return i;
}

static bool is_curved(const rt_warp *w, int piece) {
    return w->kind == RT_WARP_LOG && piece == 1;
}

double rt_warp_apply(const rt_warp *w, double y) {
    if (w->kind == RT_WARP_NONE)
        return y;
    const int i = piece_of(w->y, w->knots, y), from = i == 0 ? 0 : i - 1;
    return is_curved(w, i) ? log(y) : w->u[from] + (y - w->y[from]) / slope(w, i);
}

double rt_warp_invert(const rt_warp *w, double u) {
    if (w->kind == RT_WARP_NONE)
        return u;
    const int i = piece_of(w->u, w->knots, u), from = i == 0 ? 0 : i - 1;
    return is_curved(w, i) ? exp(u) : w->y[from] + (u - w->u[from]) * slope(w, i);
}

double rt_warp_log_slope(const rt_warp *w, double y) {
    if (w->kind == RT_WARP_NONE)
        return 0;
    const int i = piece_of(w->y, w->knots, y);
    return -log(is_curved(w, i) ? y : slope(w, i));
}

/* ---- moments ---- */

typedef struct moments {
    double mean, square;
} moments;

static moments straight(double c, double b, double s, double z0, double z1) {
    const double p = mass(z0, z1), d = density(z0) - density(z1);
    return (moments){c * p + b * s * d,
                     c * c * p + 2 * c * b * s * d + b * b * s * s * (p + z_density(z0) - z_density(z1))};
}

/* E e^(k u) below z. */
static double exponential_below(double mu, double s, double z, double k) {
    const double above = z - k * s;
    if (above < 0)
        return 0.5 * exp(k * (mu + s * z) - 0.5 * z * z) * erfcx(-above * SQRT_HALF);
    return exp(k * mu + 0.5 * k * k * s * s) * cdf(above);
}

/* Where all of u is in the piece, about = e^mu and no small number is the difference of two large ones. */
static moments curved(double mu, double s, double z0, double z1, double about) {
    if (z0 < -8 - 2 * s && z1 > 8 + 2 * s) {
        const double one = expm1(0.5 * s * s);
        return (moments){about * one, about * about * (expm1(2 * s * s) - 2 * one)};
    }
    const double p = mass(z0, z1), m1 = exponential_below(mu, s, z1, 1) - exponential_below(mu, s, z0, 1),
                 m2 = exponential_below(mu, s, z1, 2) - exponential_below(mu, s, z0, 2);
    return (moments){m1 - about * p, m2 - 2 * about * m1 + about * about * p};
}

void rt_warp_moments(const rt_warp *w, double u_mean, double u_variance, double *mean, double *variance) {
    const double s = sqrt(u_variance), about = rt_warp_invert(w, u_mean);
    moments sum = {0, 0};
    if (w->kind == RT_WARP_NONE) {
        *mean = u_mean;
        *variance = u_variance;
        return;
    }
    for (int i = 0; i <= w->knots; i++) {
        const double z0 = i == 0 ? -INFINITY : (w->u[i - 1] - u_mean) / s,
                     z1 = i == w->knots ? INFINITY : (w->u[i] - u_mean) / s, b = slope(w, i);
        const int at = i == 0 ? 0 : i - 1;
        if (z0 > 12 || z1 < -12) /* 1e-32 of the mass: less than the rounding of the others, however steep */
            continue;
        const double c = w->y[at] + (u_mean - w->u[at]) * b - about; /* of the piece's line at the mean */
        const moments m = is_curved(w, i) ? curved(u_mean, s, z0, z1, about) : straight(c, b, s, z0, z1);
        sum.mean += m.mean;
        sum.square += m.square;
    }
    *mean = about + sum.mean;
    *variance = sum.square - sum.mean * sum.mean;
}
