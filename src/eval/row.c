/*
 * row.c - one row, the outputs (m, k) of m members, in double: the mean prediction and every uncertainty. Here
 * classes; Gaussians are in regression.c.
 *
 *     p = mean_m p_m,   H = -sum_c p ln p                                       total
 *     E[H] = mean_m -sum_c p_m ln p_m                                           data
 *     MI   = H - E[H] = mean_m sum_c q f(d),  d = (p_m - q) / q,  q = p         knowledge
 *            f(d) = (1 + d) ln(1 + d) - d  >= 0
 *     EPKL = (1/M^2) sum_ij KL(p_i || p_j) = sum_c cov_m(p_c, ln p_c)
 *     diversity = sum over i != j, / (M (M - 1)) = EPKL M / (M - 1)
 *
 * Nothing small is the difference of large numbers, because out-of-distribution detection ranks exactly the
 * small numbers of sure rows: ln p comes from the logits, 1 - max p is the sum of the other classes, the
 * terms of MI are of one sign (f by its series near 0), and EPKL is a covariance about the means.
 *
 * So is the likelihood: -ln p_y = -ln (1/M) sum_m e^(ln p_my) has no floor, whatever the logits.
 *
 * Members that are Dirichlet distributions (dirichlet.c) stand for their means pi_m in p and MI; to what
 * comes from the members' differences each adds its own knowledge uncertainty, and
 *     EPKL = mean_m (K - 1)/alpha_m0 + sum_c cov_m(pi_mc, E_m ln p_c),
 * which is the expected KL of two draws, each from a member drawn at random.
 */
#include "base/alloc.h"
#include "base/size.h"
#include "eval/eval_int.h"
#include <math.h>
#include <string.h>

bool rt_reading_knows(const rt_reading *how) {
    return how->m > 1 || how->kind == RT_OUTPUT_DIRICHLET;
}

rt_status rt_row_init(rt_row *r, rt_reading how) {
    size_t all, doubles, bytes;
    *r = (rt_row){.how = how};
    RT_FAIL_IF(!rt_size_mul((size_t)how.m, (size_t)how.k, &all) || !rt_size_mul(all, 4, &doubles) ||
                   !rt_size_add(doubles, 3 * (size_t)how.k, &doubles) ||
                   !rt_size_mul(doubles, sizeof(double), &bytes),
               RT_E_MEMORY, "evaluation: too many predictions to address");
    RT_TRY(rt_alloc(&r->block, bytes));
    r->member_p = r->block;
    r->member_ln = r->member_p + all;
    r->alpha = r->member_ln + all;
    r->mean_ln = r->alpha + all;
    r->p = r->mean_ln + all;
    r->ln_p = r->p + how.k;
    r->votes = (int32_t *)(void *)(r->ln_p + how.k);
    return RT_OK;
}

void rt_row_deinit(rt_row *r) {
    rt_free(r->block);
    *r = (rt_row){0};
}

static int64_t first_largest(const float *z, int64_t k) {
    int64_t top = 0;
    for (int64_t c = 1; c < k; c++)
        top = z[c] > z[top] ? c : top;
    return top;
}

/* e^(l / tau) over their sum in p, its logarithm in l; l has its largest element at top. The logarithm of the
 * top is -ln(1 + others), exact where it is near zero. Returns the sum of the other probabilities. */
static double normalise(double *p, double *l, int64_t k, int64_t top, double tau) {
    const double shift = l[top];
    double others = 0;
    for (int64_t c = 0; c < k; c++) {
        l[c] = (l[c] - shift) / tau;
        p[c] = exp(l[c]);
        others += c == top ? 0 : p[c];
    }
    const double ln_sum = log1p(others), scale = 1 / (1 + others);
    for (int64_t c = 0; c < k; c++) {
        p[c] *= scale;
        l[c] -= ln_sum;
    }
    return others * scale;
}

static rt_dirichlet read_members(rt_row *r) {
    const int64_t k = r->how.k;
    const double m = (double)r->how.m, tau = r->how.member_temperature > 0 ? r->how.member_temperature : 1;
    rt_dirichlet own = {0};
    memset(r->votes, 0, (size_t)k * sizeof *r->votes);
    for (int64_t j = 0; j < r->how.m; j++) {
        const float *z = r->y + j * k;
        const int64_t top = first_largest(z, k);
        r->votes[top]++;
        if (r->how.kind == RT_OUTPUT_DIRICHLET) {
            const rt_dirichlet d = rt_row_read_dirichlet(r, j);
            own.knowledge += d.knowledge / m;
            own.epkl += d.epkl / m;
            own.differential_entropy += d.differential_entropy / m;
            continue;
        }
        for (int64_t c = 0; c < k; c++)
            r->member_ln[j * k + c] = (double)z[c];
        (void)normalise(r->member_p + j * k, r->member_ln + j * k, k, top, tau);
    }
    return own;
}

/* ln of the mean over members of e^ln, where the mean itself has underflowed. */
static double ln_mean(const double *ln, int64_t m, int64_t k) {
    double most = ln[0], sum = 0;
    for (int64_t j = 1; j < m; j++)
        most = fmax(most, ln[j * k]);
    for (int64_t j = 0; j < m; j++)
        sum += exp(ln[j * k] - most);
    return most + log(sum / (double)m);
}

/* p, its top and the sum of the others, ln p. */
static void read_mean(rt_row *r) {
    const int64_t m = r->how.m, k = r->how.k;
    for (int64_t c = 0; c < k; c++) {
        double sum = 0;
        for (int64_t j = 0; j < m; j++)
            sum += r->member_p[j * k + c];
        r->p[c] = sum / (double)m;
    }
    r->top = 0;
    for (int64_t c = 1; c < k; c++)
        r->top = r->p[c] > r->p[r->top] ? c : r->top;
    r->rest = 0;
    for (int64_t c = 0; c < k; c++)
        r->rest += c == r->top ? 0 : r->p[c];
    for (int64_t c = 0; c < k; c++)
        r->ln_p[c] = c == r->top && r->rest < 0.5 ? log1p(-r->rest)
                     : m == 1                     ? r->member_ln[c]
                     : r->p[c] > 1e-290           ? log(r->p[c])
                                                  : ln_mean(r->member_ln + c, m, k);
}

void rt_row_temper(rt_row *r, double tau) {
    r->rest = normalise(r->p, r->ln_p, r->how.k, r->top, tau);
}

static double entropy_of(const double *p, const double *ln_p, int64_t k) {
    double h = 0;
    for (int64_t c = 0; c < k; c++)
        h -= p[c] * ln_p[c];
    return h;
}

/* x ln x - d, d = x - 1. */
static double divergence(double x, double ln_x, double d) {
    if (fabs(d) > 0.05)
        return x * ln_x - d;
    double sum = 0;
    for (int i = 11; i >= 2; i--) /* sum (-d)^i / (i (i - 1)) */
        sum = 1.0 / (i * (i - 1)) - d * sum;
    return d * d * sum;
}

/* mean_m KL(p_m || p) */
static double information_of(const rt_row *r, int64_t m, int64_t k) {
    double sum = 0;
    for (int64_t j = 0; j < m; j++) {
        const double *p = r->member_p + j * k, *ln_p = r->member_ln + j * k;
        double rest = 0;
        for (int64_t c = 0; c < k; c++)
            rest += c == r->top ? 0 : p[c];
        for (int64_t c = 0; c < k; c++) {
            const double q = r->p[c];
            if (q <= 0)
                continue;
            const double d = (c == r->top ? r->rest - rest : p[c] - q) / q;
            sum += q * (p[c] > 0 ? divergence(p[c] / q, ln_p[c] - r->ln_p[c], d) : 1);
        }
    }
    return sum / (double)m;
}

/* sum_c cov_m(p_c, l_c) */
static double covariance_of(const rt_row *r, const double *l, int64_t m, int64_t k) {
    double sum = 0;
    for (int64_t c = 0; c < k; c++) {
        double mean = 0;
        for (int64_t j = 0; j < m; j++)
            mean += l[j * k + c];
        mean /= (double)m;
        for (int64_t j = 0; j < m; j++)
            sum += (r->member_p[j * k + c] - r->p[c]) * (l[j * k + c] - mean);
    }
    return sum / (double)m;
}

static double disagreement_of(const rt_row *r, int64_t m, int64_t k) {
    double agree = 0;
    for (int64_t c = 0; c < k; c++)
        agree += (double)r->votes[c] * (r->votes[c] - 1);
    return 1 - agree / ((double)m * (double)(m - 1));
}

static bool all_finite(const float *y, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        if (!isfinite(y[i]))
            return false;
    return true;
}

static void measure(rt_row *r, rt_dirichlet own) {
    const int64_t m = r->how.m, k = r->how.k;
    const bool dirichlet = r->how.kind == RT_OUTPUT_DIRICHLET;
    r->total = entropy_of(r->p, r->ln_p, k);
    r->data = m > 1 ? entropy_of(r->member_p, r->member_ln, m * k) / (double)m : r->total;
    r->data = RT_MAX(r->data - own.knowledge, 0.0);
    r->knowledge = own.knowledge + (m > 1 ? information_of(r, m, k) : 0);
    const double cov = m > 1 ? covariance_of(r, r->member_ln, m, k) : 0;
    r->epkl = own.epkl + (m > 1 && dirichlet ? covariance_of(r, r->mean_ln, m, k) : cov);
    r->differential_entropy = own.differential_entropy;
    r->diversity = m > 1 ? cov * (double)m / (double)(m - 1) : 0;
    r->disagreement = m > 1 ? disagreement_of(r, m, k) : 0;
}

bool rt_row_read(rt_row *r, const float *y) {
    r->y = y;
    if (!all_finite(y, r->how.m * r->how.k))
        return false;
    if (r->how.kind == RT_OUTPUT_GAUSSIAN)
        return rt_row_read_gaussians(r);
    const rt_dirichlet own = read_members(r);
    read_mean(r);
    measure(r, own);
    if (r->how.temperature > 0)
        rt_row_temper(r, r->how.temperature);
    return true;
}

double rt_row_nll(const rt_row *r, double truth) {
    return r->how.kind == RT_OUTPUT_GAUSSIAN ? rt_row_gaussian_nll(r, truth) : -r->ln_p[(int64_t)truth];
}

/* ---- small uses ---- */

bool rt_eval_regression(const rt_eval_input *in) {
    return in->how.kind == RT_OUTPUT_GAUSSIAN;
}

int64_t rt_eval_bad_rows(const rt_eval_input *in) {
    rt_row r = {.how = in->how};
    int64_t bad = 0;
    for (int64_t i = 0; i < in->n; i++) {
        r.y = rt_eval_row(in, i);
        bad +=
            !all_finite(r.y, in->how.m * in->how.k) || (rt_eval_regression(in) && !rt_row_read_gaussians(&r));
    }
    return bad;
}

rt_status rt_eval_classes(const rt_eval_input *in, int32_t *out) {
    rt_row r;
    RT_FAIL_IF(rt_eval_regression(in), RT_E_USAGE, "classes of a regression");
    RT_TRY(rt_row_init(&r, in->how));
    for (int64_t i = 0; i < in->n; i++)
        out[i] = rt_row_read(&r, rt_eval_row(in, i)) ? (int32_t)r.top : -1;
    rt_row_deinit(&r);
    return RT_OK;
}
