/*
 * reconstruct.c - M trained networks rewritten as one BatchEnsemble (Mariet et al. 2021): per kernel
 *
 *     minimise over W0, r, s:   E = sum_m sum_{o,i,k} (W0_oik s_mo r_mi - W_m,oik)^2
 *     k runs over the window of a convolution
 *
 * E is quadratic in each of r, s, W0 with the other two fixed, and every number of a block has an equation of
 * its own:
 *
 *     r_mi  = sum_o s_mo a_moi / sum_o s_mo^2 q_oi      a_moi = sum_k W0 W_m,  q_oi = sum_k W0^2
 *     s_mo  = sum_i r_mi a_moi / sum_i r_mi^2 q_oi
 *     W0_oik = sum_m s_mo r_mi W_m / sum_m (s_mo r_mi)^2
 *
 * Solving one block after the other never raises E. A denominator of zero means that E does not depend on the
 * number: it is kept. W0 -> c W0, s -> s / c and r_m -> c r_m, s_m -> s_m / c change nothing; after each
 * sweep ||r_m||^2 = in, and mean_m ||s_m||^2 = out, so that no factor drifts out of range. The start, mean
 * weight and r = s = 1, is optimal in W0 already, hence the order r, s, W0.
 */
#include "base/alloc.h"
#include "base/size.h"
#include "distill/distill_int.h"
#include <float.h>
#include <math.h>
#include <string.h>

enum { SWEEPS = 100, RATIO_SWEEPS = 50 };
static const double TOLERANCE = 1e-6;

typedef struct als {
    int members;
    int64_t out, in, window;
    const float *const *w;
    double *w0, *r, *s; /* (out, in, window), (M, in), (M, out) */
    double *a, *q;      /* (M, out, in), (out, in) */
} als;

static double ratio_or(double num, double den, double keep) {
    return den >= DBL_MIN ? num / den : keep;
}

static void products(als *t) {
    for (int64_t oi = 0; oi < t->out * t->in; oi++) {
        const double *w0 = t->w0 + oi * t->window;
        double q = 0;
        for (int64_t k = 0; k < t->window; k++)
            q += w0[k] * w0[k];
        t->q[oi] = q;
        for (int m = 0; m < t->members; m++) {
            const float *w = t->w[m] + oi * t->window;
            double a = 0;
            for (int64_t k = 0; k < t->window; k++)
                a += w0[k] * (double)w[k];
            t->a[m * t->out * t->in + oi] = a;
        }
    }
}

/* One member's factor over `n` places from its factor over the `others`; a and q are addressed by strides. */
static void solve_factor(double *x, const double *y, const double *a, const double *q, int64_t n,
                         int64_t step, int64_t others, int64_t other_step) {
    for (int64_t i = 0; i < n; i++) {
        double num = 0, den = 0;
        for (int64_t o = 0; o < others; o++) {
            const int64_t at = i * step + o * other_step;
            num += y[o] * a[at];
            den += y[o] * y[o] * q[at];
        }
        x[i] = ratio_or(num, den, x[i]);
    }
}

static void solve_factors(als *t) {
    products(t);
    for (int m = 0; m < t->members; m++) {
        const double *a = t->a + m * t->out * t->in;
        double *r = t->r + m * t->in, *s = t->s + m * t->out;
        solve_factor(r, s, a, t->q, t->in, 1, t->out, t->in);
        solve_factor(s, r, a, t->q, t->out, t->in, t->in, 1);
    }
}

static void solve_weight(als *t) {
    for (int64_t oi = 0; oi < t->out * t->in; oi++)
        for (int64_t k = 0; k < t->window; k++) {
            double num = 0, den = 0;
            for (int m = 0; m < t->members; m++) {
                const double f = t->s[m * t->out + oi / t->in] * t->r[m * t->in + oi % t->in];
                num += f * (double)t->w[m][oi * t->window + k];
                den += f * f;
            }
            t->w0[oi * t->window + k] = ratio_or(num, den, t->w0[oi * t->window + k]);
        }
}

static double sum_squares(const double *x, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += x[i] * x[i];
    return sum;
}
static void times(double *x, int64_t n, double c) {
    for (int64_t i = 0; i < n; i++)
        x[i] *= c;
}

static void fix_gauge(als *t) {
    double all = 0;
    for (int m = 0; m < t->members; m++) {
        const double c = sqrt(sum_squares(t->r + m * t->in, t->in) / (double)t->in);
        if (c > 0) {
            times(t->r + m * t->in, t->in, 1 / c);
            times(t->s + m * t->out, t->out, c);
        }
    }
    all = sqrt(sum_squares(t->s, t->members * t->out) / (double)(t->members * t->out));
    if (all > 0) {
        times(t->s, t->members * t->out, 1 / all);
        times(t->w0, t->out * t->in * t->window, all);
    }
}

static double squared_error(const als *t) {
    double sum = 0;
    for (int m = 0; m < t->members; m++)
        for (int64_t oi = 0; oi < t->out * t->in; oi++) {
            const double f = t->s[m * t->out + oi / t->in] * t->r[m * t->in + oi % t->in];
            for (int64_t k = 0; k < t->window; k++) {
                const double d = t->w0[oi * t->window + k] * f - (double)t->w[m][oi * t->window + k];
                sum += d * d;
            }
        }
    return sum;
}

static double squared_norm(const float *const *w, int members, int64_t n) {
    double sum = 0;
    for (int m = 0; m < members; m++)
        for (int64_t i = 0; i < n; i++)
            sum += (double)w[m][i] * (double)w[m][i];
    return sum;
}

static void start(als *t) {
    for (int64_t i = 0; i < t->out * t->in * t->window; i++) {
        double sum = 0;
        for (int m = 0; m < t->members; m++)
            sum += (double)t->w[m][i];
        t->w0[i] = sum / t->members;
    }
    for (int64_t i = 0; i < t->members * t->in; i++)
        t->r[i] = 1;
    for (int64_t i = 0; i < t->members * t->out; i++)
        t->s[i] = 1;
}

static void to_float(float *dst, const double *src, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        dst[i] = (float)src[i];
}

/* Elements of (out, in, window) times members are addressable, and there are some. */
static rt_status check_sizes(int members, int64_t out, int64_t in, int64_t window) {
    int64_t n = 0;
    RT_FAIL_IF(
        members < 1 || out < 1 || in < 1 || window < 1 || !rt_i64_mul(out, in, &n) ||
            !rt_i64_mul(n, window, &n) || !rt_i64_mul(n, members, &n) ||
            n > INT64_MAX / (int64_t)sizeof(double),
        RT_E_USAGE,
        "reconstruction: %d weights of %lld x %lld x %lld, wanted at least one of each, and addressable",
        members, (long long)out, (long long)in, (long long)window);
    return RT_OK;
}

rt_status rt_reconstruct_layer(float *w0, float *r, float *s, double *residual, const float *const *w,
                               int members, int64_t out, int64_t in, int64_t window, int sweeps,
                               double tolerance) {
    rt_status st = RT_OK;
    RT_TRY(check_sizes(members, out, in, window));
    als t = {.members = members, .out = out, .in = in, .window = window, .w = w};
    const size_t kernel = (size_t)(out * in * window), pairs = (size_t)(out * in), m = (size_t)members;
    const double total = squared_norm(w, members, out * in * window);
    RT_FAIL_IF(!isfinite(total), RT_E_INPUT, "reconstruction: the weights are not finite");
    RT_TRY_GOTO(rt_calloc(&t.w0, kernel, sizeof *t.w0));
    RT_TRY_GOTO(rt_calloc(&t.r, m * (size_t)in, sizeof *t.r));
    RT_TRY_GOTO(rt_calloc(&t.s, m * (size_t)out, sizeof *t.s));
    RT_TRY_GOTO(rt_calloc(&t.a, m * pairs, sizeof *t.a));
    RT_TRY_GOTO(rt_calloc(&t.q, pairs, sizeof *t.q));
    start(&t);
    double error = squared_error(&t);
    for (int i = 0; i < (sweeps > 0 ? sweeps : SWEEPS) && error > 0; i++) {
        solve_factors(&t);
        solve_weight(&t);
        fix_gauge(&t);
        const double next = squared_error(&t);
        RT_ASSERT(next <= error + 1e-12 * total); /* what rounding may add */
        const bool done = error - next <= (tolerance > 0 ? tolerance : TOLERANCE) * error;
        error = next;
        if (done)
            break;
    }
    to_float(w0, t.w0, (int64_t)kernel);
    to_float(r, t.r, members * in);
    to_float(s, t.s, members * out);
    *residual = total > 0 ? sqrt(error / total) : 0;
done:
    rt_free(t.w0);
    rt_free(t.r);
    rt_free(t.s);
    rt_free(t.a);
    rt_free(t.q);
    return st;
}

/* ---- Theorem 1 ---- */

typedef struct ratio {
    const float *a, *b; /* a / b; undefined where both are zero */
    int64_t out, in, window;
    double *u, *v, *num, *den;
} ratio;

/* The ratio at a place; false where it says nothing. */
static bool ratio_at(const ratio *t, int64_t at, double *x) {
    if (t->b[at] == 0)
        return false;
    *x = (double)t->a[at] / (double)t->b[at];
    return true;
}

/* u (over_rows) or v from the other by least squares over the defined places. */
static void ratio_solve(ratio *t, bool rows) {
    const int64_t n = rows ? t->out : t->in;
    memset(t->num, 0, (size_t)n * sizeof *t->num);
    memset(t->den, 0, (size_t)n * sizeof *t->den);
    for (int64_t at = 0; at < t->out * t->in * t->window; at++) {
        const int64_t o = at / t->window / t->in, i = at / t->window % t->in;
        double x = 0;
        if (!ratio_at(t, at, &x))
            continue;
        const double y = rows ? t->v[i] : t->u[o];
        t->num[rows ? o : i] += x * y;
        t->den[rows ? o : i] += y * y;
    }
    double *dst = rows ? t->u : t->v;
    for (int64_t i = 0; i < n; i++)
        dst[i] = ratio_or(t->num[i], t->den[i], dst[i]);
}

static double ratio_error(const ratio *t, double *norm) {
    double sum = 0;
    *norm = 0;
    for (int64_t at = 0; at < t->out * t->in * t->window; at++) {
        double x = 0;
        if (ratio_at(t, at, &x)) {
            const double d = x - t->u[at / t->window / t->in] * t->v[at / t->window % t->in];
            sum += d * d;
            *norm += x * x;
        } else if (t->a[at] != 0) {
            return INFINITY;
        }
    }
    return sum;
}

/* Begins at the row of the largest norm: if the ratio has rank one, that is v. */
static double ratio_deviation(ratio *t) {
    double best = -1, norm = 0, error = INFINITY;
    for (int64_t o = 0; o < t->out; o++) {
        double sum = 0, x = 0;
        for (int64_t j = 0; j < t->in * t->window; j++)
            sum += ratio_at(t, o * t->in * t->window + j, &x) ? x * x : 0;
        if (sum <= best)
            continue;
        best = sum;
        for (int64_t i = 0; i < t->in; i++)
            t->v[i] = ratio_at(t, (o * t->in + i) * t->window, &x) ? x : 1;
    }
    for (int64_t o = 0; o < t->out; o++)
        t->u[o] = 1;
    for (int k = 0; k < RATIO_SWEEPS; k++) {
        ratio_solve(t, true);
        ratio_solve(t, false);
        const double next = ratio_error(t, &norm);
        if (!(next < error * (1 - 1e-9)))
            break;
        error = next;
    }
    return norm > 0 || isinf(error) ? sqrt(error / fmax(norm, DBL_MIN)) : 0;
}

rt_status rt_reconstruct_rank_one(double *deviation, const float *const *w, int members, int64_t out,
                                  int64_t in, int64_t window) {
    rt_status st = RT_OK;
    RT_TRY(check_sizes(members, out, in, window));
    ratio t = {.out = out, .in = in, .window = window};
    const size_t most = (size_t)RT_MAX(out, in);
    RT_TRY_GOTO(rt_calloc(&t.u, (size_t)out, sizeof *t.u));
    RT_TRY_GOTO(rt_calloc(&t.v, (size_t)in, sizeof *t.v));
    RT_TRY_GOTO(rt_calloc(&t.num, most, sizeof *t.num));
    RT_TRY_GOTO(rt_calloc(&t.den, most, sizeof *t.den));
    *deviation = 0;
    for (int i = 0; i < members; i++)
        for (int j = i + 1; j < members; j++) {
            t.a = w[i];
            t.b = w[j];
            *deviation = fmax(*deviation, ratio_deviation(&t));
        }
done:
    rt_free(t.u);
    rt_free(t.v);
    rt_free(t.num);
    rt_free(t.den);
    return st;
}
