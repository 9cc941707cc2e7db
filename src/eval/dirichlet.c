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

rt_dirichlet rt_dirichlet_uncertainty(const float *z, float *p, int64_t k, double offset) {
    rt_dirichlet d = {0};
    double sum = 0;
    for (int64_t c = 0; c < k; c++)
        sum += concentration(z[c], offset);
    const double phi0 = phi(sum);
    for (int64_t c = 0; c < k; c++) {
        const double a = concentration(z[c], offset), pi = a / sum;
        if (p)
            p[c] = (float)pi;
        d.total -= pi > 0 ? pi * log(pi) : 0;
        d.knowledge += pi > 0 ? pi * (phi(a) - phi0) : 0;
    }
    d.knowledge = d.knowledge < 0 ? 0 : d.knowledge;
    d.data = d.total - d.knowledge;
    d.epkl = (double)(k - 1) / sum;
    d.precision = sum;
    return d;
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
