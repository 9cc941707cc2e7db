/*
 * nll.c - proper scores of probabilities, and the probabilities themselves.
 *
 *     p_c = (1/M) sum_m softmax(z_m)_c          an ensemble is averaged in probability
 *     NLL = (1/n) sum -ln p_y                   p floored at 1e-12: a confident mistake costs 27.6 nats
 *     Brier = (1/n) sum_i sum_c (p_c - 1[c = y])^2     in [0, 2]
 *
 * Sums are double, in order of the rows. A NaN among the probabilities makes the result NaN: the floor lets
 * it pass.
 */
#include "eval/eval_int.h"
#include <math.h>

static const double P_FLOOR = 1e-12;

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

double rt_eval_nll(const float *p, const int32_t *y, int64_t n, int64_t k) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        double v = (double)p[i * k + y[i]];
        sum -= log(v < P_FLOOR ? P_FLOOR : v);
    }
    return sum / (double)n;
}

double rt_eval_brier(const float *p, const int32_t *y, int64_t n, int64_t k) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        for (int64_t c = 0; c < k; c++) {
            double d = (double)p[i * k + c] - (c == y[i] ? 1 : 0);
            sum += d * d;
        }
    }
    return sum / (double)n;
}
