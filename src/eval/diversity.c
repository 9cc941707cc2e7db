/*
 * diversity.c - how uncertain a prediction is, and how much of that comes from members that differ.
 *
 *     total       H(mean_m p_m) = -sum_c p_c ln p_c
 *     knowledge   MI = H(mean_m p_m) - mean_m H(p_m)          >= 0; rounding below zero is cut off
 *                 Dirichlet outputs add their own, dirichlet.c
 *     disagreement = fraction of the pairs i < j of members with argmax p_i != argmax p_j
 */
#include "eval/eval_int.h"
#include <math.h>

/* Nats; 0 ln 0 = 0. */
static double row_entropy(const float *p, int64_t k) {
    double h = 0;
    for (int64_t c = 0; c < k; c++)
        h -= p[c] == 0 ? 0 : (double)p[c] * log((double)p[c]);
    return h;
}

double rt_eval_entropy(const float *p, int64_t n, int64_t k) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += row_entropy(p + i * k, k);
    return sum / (double)n;
}

/* Of one row, (m, k): entropy of the mean, member by member for each class, less the mean entropy. */
static double row_information(const float *p, int64_t m, int64_t k) {
    double total = 0, own = 0;
    for (int64_t c = 0; c < k; c++) {
        double mean = 0;
        for (int64_t j = 0; j < m; j++)
            mean += (double)p[j * k + c];
        mean /= (double)m;
        total -= mean == 0 ? 0 : mean * log(mean);
    }
    for (int64_t j = 0; j < m; j++)
        own += row_entropy(p + j * k, k);
    double mi = total - own / (double)m;
    return mi < 0 ? 0 : mi;
}

double rt_eval_mutual_information(const float *member_p, int64_t n, int64_t m, int64_t k) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += row_information(member_p + i * m * k, m, k);
    return sum / (double)n;
}

double rt_eval_disagreement(const float *member_p, int64_t n, int64_t m, int64_t k) {
    if (m < 2)
        return NAN;
    int64_t differ = 0;
    for (int64_t i = 0; i < n; i++) {
        const float *p = member_p + i * m * k; // (m, k)
        for (int64_t a = 0; a < m; a++) {
            int64_t top = rt_argmax(p + a * k, k);
            for (int64_t b = a + 1; b < m; b++)
                differ += rt_argmax(p + b * k, k) != top;
        }
    }
    return (double)differ / ((double)n * (double)m * (double)(m - 1) / 2);
}
