/*
 * dirichlet.c - the uncertainty of one Dirichlet distribution over classes, alpha = e^z + offset, alpha_0 =
 * sum alpha, pi = alpha / alpha_0:
 *
 *     total       H     = -sum pi ln pi
 *     data        E[H]  = -sum pi (psi(alpha + 1) - psi(alpha_0 + 1))
 *     knowledge   MI    = H - E[H] = sum pi (phi(alpha) - phi(alpha_0)),      phi(x) = psi(x + 1) - ln x
 *     EPKL        (K - 1) / alpha_0
 *
 * The difference H - E[H] cancels where the distribution is sharp, which are the inputs that
 * out-of-distribution detection ranks; the form with phi does not, because phi(x) ~ 1/(2x) is summed as a
 * series for large x.
 */
#include "base/special.h"
#include "eval/eval_int.h"
#include <math.h>

static const double Z_MAX = 600; /* e^z and its sum over classes stay finite, and above zero */

static double phi(double x) {
    if (x < 16)
        return rt_digamma(x + 1) - log(x);
    const double y = 1 / x, t = y * y;
    return y * 0.5 - t * (1.0 / 12 - t * (1.0 / 120 - t * (1.0 / 252 - t * (1.0 / 240 - t / 132))));
}

static double concentration(float z, double offset) {
    return exp(RT_MIN(RT_MAX((double)z, -Z_MAX), Z_MAX)) + offset;
}

/* Every output may be NULL: pi in float and in double, ln pi, E ln p = psi(alpha) - psi(alpha_0). */
static rt_dirichlet walk(const float *z, int64_t k, double offset, float *p, double *pi, double *ln_pi,
                         double *mean_ln) {
    rt_dirichlet d = {0};
    for (int64_t c = 0; c < k; c++)
        d.precision += concentration(z[c], offset);
    const double sum = d.precision, phi0 = phi(sum), ln_sum = log(sum);
    for (int64_t c = 0; c < k; c++) {
        const double a = concentration(z[c], offset), v = a / sum, ln_v = log(a) - ln_sum, phi_a = phi(a);
        d.total -= v * ln_v;
        d.knowledge += v * (phi_a - phi0);
        if (p)
            p[c] = (float)v;
        if (pi)
            pi[c] = v;
        if (ln_pi)
            ln_pi[c] = ln_v;
        if (mean_ln)
            mean_ln[c] = ln_v + (phi_a - phi0) - (1 / a - 1 / sum); /* psi(x) = ln x + phi(x) - 1/x */
    }
    d.knowledge = d.knowledge < 0 ? 0 : d.knowledge;
    d.data = d.total - d.knowledge;
    d.epkl = (double)(k - 1) / sum;
    return d;
}

rt_dirichlet rt_dirichlet_uncertainty(const float *z, float *p, int64_t k, double offset) {
    return walk(z, k, offset, p, NULL, NULL, NULL);
}

rt_dirichlet rt_dirichlet_row(const float *z, int64_t k, double offset, double *pi, double *ln_pi,
                              double *mean_ln) {
    return walk(z, k, offset, NULL, pi, ln_pi, mean_ln);
}

double rt_eval_dirichlet_mean(const float *z, float *p, float *member_p, int64_t n, int64_t m, int64_t k,
                              double offset) {
    double knowledge = 0;
    for (int64_t i = 0; i < n; i++) {
        float *mean = p + i * k;
        for (int64_t j = 0; j < m; j++) {
            float *own = member_p + (i * m + j) * k;
            knowledge += rt_dirichlet_uncertainty(z + (i * m + j) * k, own, k, offset).knowledge;
        }
        for (int64_t c = 0; c < k; c++) {
            double sum = 0;
            for (int64_t j = 0; j < m; j++)
                sum += (double)member_p[(i * m + j) * k + c];
            mean[c] = (float)(sum / (double)m);
        }
    }
    return knowledge / ((double)n * (double)m);
}
