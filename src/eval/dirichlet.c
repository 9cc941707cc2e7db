/*
 * dirichlet.c - the uncertainty of one Dirichlet distribution over classes, alpha = e^z + offset, alpha_0 =
 * sum alpha, pi = alpha / alpha_0:
 *
 *     total       H     = -sum pi ln pi
 *     data        E[H]  = -sum pi (psi(alpha + 1) - psi(alpha_0 + 1))
 *     knowledge   MI    = H - E[H] = sum pi (phi(alpha) - phi(alpha_0)),      phi(x) = psi(x + 1) - ln x
 *     EPKL        (K - 1) / alpha_0
 *     differential entropy   ln B(alpha) + (alpha_0 - K) psi(alpha_0) - sum (alpha - 1) psi(alpha)
 *                            = sum (g(alpha) + psi(alpha) - psi(alpha_0)) - g(alpha_0),   g(x) = ln Gamma(x) - x psi(x) + x
 *
 * The difference H - E[H] cancels where the distribution is sharp, which are the inputs that
 * out-of-distribution detection ranks; the form with phi does not, because phi(x) ~ 1/(2x) is summed as a
 * series for large x. Of the differential entropy the terms of size alpha_0 are taken out beforehand (g,
 * base/special.h).
 */
#include "base/special.h"
#include "eval/eval_int.h"
#include <math.h>

static const double Z_MAX = 600; /* e^z and its sum over classes stay finite, and above zero */
static const double NOTHING =
    1e-200; /* alpha_0 below this: a draw is a class, and phi(a) - phi(alpha_0) is -ln pi */

static double phi(double x) {
    if (x < 16)
        return rt_digamma(x + 1) - log(x);
    const double y = 1 / x, t = y * y;
    return y * 0.5 - t * (1.0 / 12 - t * (1.0 / 120 - t * (1.0 / 252 - t * (1.0 / 240 - t / 132))));
}

static double concentration(float z, double offset) {
    return exp(RT_MIN(RT_MAX((double)z, -Z_MAX), Z_MAX)) + offset;
}

/* pi = alpha / alpha_0 and its logarithm, of outputs of any size: the softmax of ln alpha. */
static void read_mean(double *pi, double *ln_pi, const float *z, int64_t k, double offset) {
    int64_t top = 0;
    double others = 0;
    for (int64_t c = 0; c < k; c++) {
        const double v = (double)z[c];
        ln_pi[c] = offset <= 0 ? v : v > 0 ? v + log1p(offset * exp(-v)) : log(exp(v) + offset);
        top = ln_pi[c] > ln_pi[top] ? c : top;
    }
    const double shift = ln_pi[top];
    for (int64_t c = 0; c < k; c++) {
        ln_pi[c] -= shift;
        pi[c] = exp(ln_pi[c]);
        others += c == top ? 0 : pi[c];
    }
    for (int64_t c = 0; c < k; c++) {
        ln_pi[c] -= log1p(others);
        pi[c] /= 1 + others;
    }
}

float rt_dirichlet_logit(float z, double offset) {
    return offset > 0 ? (float)log(concentration(z, offset)) : z;
}

rt_dirichlet rt_row_read_dirichlet(rt_row *r, int64_t j) {
    const int64_t k = r->how.k;
    const float *z = r->y + j * k;
    double *alpha = r->alpha + j * k, *pi = r->member_p + j * k, *ln_pi = r->member_ln + j * k;
    double *mean_ln = r->mean_ln + j * k, sum = 0;
    for (int64_t c = 0; c < k; c++)
        sum += alpha[c] = concentration(z[c], r->how.offset);
    read_mean(pi, ln_pi, z, k, r->how.offset);
    const double phi0 = phi(sum);
    rt_dirichlet d = {.epkl = (double)(k - 1) / sum, .differential_entropy = -rt_lgamma_rest(sum)};
    for (int64_t c = 0; c < k; c++) {
        const double a = alpha[c], phi_a = phi(a);
        const double apart = sum < NOTHING ? -ln_pi[c] : phi_a - phi0;
        mean_ln[c] = ln_pi[c] + apart - (1 / a - 1 / sum); /* psi(x) = ln x + phi(x) - 1/x */
        d.knowledge += pi[c] * apart;
        d.differential_entropy += rt_lgamma_rest(a) + mean_ln[c];
    }
    d.knowledge = RT_MAX(d.knowledge, 0.0);
    return d;
}
