/*
 * softmax.c - probabilities from logits in float, for those who print or store them, and their entropy.
 *
 *     p_c = (1/M) sum_m softmax(z_m)_c          an ensemble is averaged in probability
 *     H   = -sum_c p_c ln p_c                   nats; 0 ln 0 = 0
 */
#include "eval/eval_int.h"
#include <math.h>

typedef struct row_softmax {
    double top, sum; /* softmax(z)_c = e^(z_c - top) / sum */
} row_softmax;

static row_softmax softmax_scan(const float *z, int64_t k) {
    row_softmax r = {(double)z[0], 0};
    for (int64_t c = 1; c < k; c++)
        r.top = (double)z[c] > r.top ? (double)z[c] : r.top;
    for (int64_t c = 0; c < k; c++)
        r.sum += exp((double)z[c] - r.top);
    return r;
}

static double softmax_at(row_softmax r, float z) {
    return exp((double)z - r.top) / r.sum;
}

/* Class by class, so that the mean over members needs one double and no scratch; the scan is kept only for
 * the first members, and repeated for the others of a very large ensemble. */
enum { SCANS_KEPT = 64 };

void rt_eval_softmax_mean(const float *logits, float *p, float *member_p, int64_t n, int64_t m, int64_t k) {
    row_softmax scan[SCANS_KEPT];
    for (int64_t i = 0; i < n; i++) {
        const float *z = logits + i * m * k; // (m, k)
        for (int64_t j = 0; j < RT_MIN(m, (int64_t)SCANS_KEPT); j++)
            scan[j] = softmax_scan(z + j * k, k);
        for (int64_t c = 0; c < k; c++) {
            double sum = 0;
            for (int64_t j = 0; j < m; j++) {
                row_softmax r = j < SCANS_KEPT ? scan[j] : softmax_scan(z + j * k, k);
                double v = softmax_at(r, z[j * k + c]);
                sum += v;
                if (member_p)
                    member_p[(i * m + j) * k + c] = (float)v;
            }
            p[i * k + c] = (float)(sum / (double)m);
        }
    }
}

double rt_eval_entropy(const float *p, int64_t n, int64_t k) {
    double sum = 0;
    for (int64_t i = 0; i < n * k; i++)
        sum -= p[i] == 0 ? 0 : (double)p[i] * log((double)p[i]);
    return sum / (double)n;
}
