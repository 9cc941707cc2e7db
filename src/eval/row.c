/*
 * row.c - one row of a classification, (m, k) logits, in double: the mean prediction and every uncertainty.
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

rt_status rt_row_init(rt_row *r, const rt_eval_input *in) {
    size_t all, doubles, bytes;
    *r = (rt_row){0};
    RT_FAIL_IF(!rt_size_mul((size_t)in->m, (size_t)in->k, &all) || !rt_size_mul(all, 3, &doubles) ||
                   !rt_size_add(doubles, 3 * (size_t)in->k, &doubles) ||
                   !rt_size_mul(doubles, sizeof(double), &bytes),
               RT_E_MEMORY, "evaluation: too many predictions to address");
    RT_TRY(rt_alloc(&r->block, bytes));
    r->member_p = r->block;
    r->member_ln = r->member_p + all;
    r->mean_ln = r->member_ln + all;
    r->p = r->mean_ln + all;
    r->ln_p = r->p + in->k;
    r->votes = (int32_t *)(void *)(r->ln_p + in->k);
    return RT_OK;
}

void rt_row_deinit(rt_row *r) {
    rt_free(r->block);
    *r = (rt_row){0};
}

/* softmax and its logarithm; returns the top class, -1: a logit is not finite. The logarithm of the top is
 * -ln(1 + others), exact where it is near zero. */
static int64_t softmax_row(const float *z, double *p, double *ln_p, int64_t k) {
    int64_t top = 0;
    for (int64_t c = 0; c < k; c++) {
        if (!isfinite(z[c]))
            return -1;
        top = z[c] > z[top] ? c : top;
    }
    double others = 0;
    for (int64_t c = 0; c < k; c++) {
        ln_p[c] = (double)z[c] - (double)z[top];
        p[c] = exp(ln_p[c]);
        others += c == top ? 0 : p[c];
    }
    const double ln_sum = log1p(others), scale = 1 / (1 + others);
    for (int64_t c = 0; c < k; c++) {
        p[c] *= scale;
        ln_p[c] -= ln_sum;
    }
    return top;
}

static bool read_members(rt_row *r, const rt_eval_input *in, const float *z, rt_dirichlet *own) {
    memset(r->votes, 0, (size_t)in->k * sizeof *r->votes);
    for (int64_t j = 0; j < in->m; j++) {
        const int64_t at = j * in->k;
        int64_t top = softmax_row(z + at, r->member_p + at, r->member_ln + at, in->k);
        if (top < 0)
            return false;
        r->votes[top]++;
        if (!in->dirichlet)
            continue;
        const rt_dirichlet d = rt_dirichlet_row(z + at, in->k, in->dirichlet_offset, r->member_p + at,
                                                r->member_ln + at, r->mean_ln + at);
        own->knowledge += d.knowledge / (double)in->m;
        own->epkl += d.epkl / (double)in->m;
    }
    return true;
}

/* p, its top and the sum of the others, ln p. A class that every member gives less than 1e-290 takes the
 * largest of their logarithms, for the sum has underflowed. */
static void read_mean(rt_row *r, int64_t m, int64_t k) {
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
    if (m == 1) {
        memcpy(r->ln_p, r->member_ln, (size_t)k * sizeof *r->ln_p);
        if (r->rest < 0.5)
            r->ln_p[r->top] = log1p(-r->rest);
        return;
    }
    for (int64_t c = 0; c < k; c++) {
        if (r->p[c] > 1e-290) {
            r->ln_p[c] = c == r->top && r->rest < 0.5 ? log1p(-r->rest) : log(r->p[c]);
            continue;
        }
        double most = r->member_ln[c];
        for (int64_t j = 1; j < m; j++)
            most = fmax(most, r->member_ln[j * k + c]);
        r->ln_p[c] = most;
    }
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

bool rt_row_read(rt_row *r, const rt_eval_input *in, int64_t i) {
    const int64_t m = in->m, k = in->k;
    rt_dirichlet own = {0};
    if (!read_members(r, in, in->logits + i * m * k, &own))
        return false;
    read_mean(r, m, k);
    r->entropy = entropy_of(r->p, r->ln_p, k);
    r->expected_entropy = m > 1 ? entropy_of(r->member_p, r->member_ln, m * k) / (double)m : r->entropy;
    r->expected_entropy = RT_MAX(r->expected_entropy - own.knowledge, 0.0);
    r->information = own.knowledge + (m > 1 ? information_of(r, m, k) : 0);
    const double cov = m > 1 ? covariance_of(r, r->member_ln, m, k) : 0;
    r->epkl = own.epkl + (m > 1 && in->dirichlet ? covariance_of(r, r->mean_ln, m, k) : cov);
    r->diversity = m > 1 ? cov * (double)m / (double)(m - 1) : 0;
    r->disagreement = m > 1 ? disagreement_of(r, m, k) : 0;
    return true;
}

/* ---- small uses ---- */

int64_t rt_eval_bad_rows(const rt_eval_input *in) {
    int64_t bad = 0;
    for (int64_t i = 0; i < in->n; i++) {
        rt_gauss_row g;
        bool good = !in->regression || rt_gauss_row_read(&g, in, i);
        for (int64_t j = 0; good && !in->regression && j < in->m * in->k; j++)
            good = isfinite(in->logits[i * in->m * in->k + j]);
        bad += !good;
    }
    return bad;
}

rt_status rt_eval_classes(const rt_eval_input *in, int32_t *out) {
    rt_row r;
    RT_FAIL_IF(in->regression, RT_E_USAGE, "classes of a regression");
    RT_TRY(rt_row_init(&r, in));
    for (int64_t i = 0; i < in->n; i++)
        out[i] = rt_row_read(&r, in, i) ? (int32_t)r.top : -1;
    rt_row_deinit(&r);
    return RT_OK;
}
