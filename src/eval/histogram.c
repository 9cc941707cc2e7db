/*
 * histogram.c - counts between given edges, increasing: bin b is [edge_b, edge_b+1). Values beyond the edges
 * are counted in the end bins, so that counts add up to the numbers given: rounding takes an entropy a
 * little above ln K.
 */
#include "eval/eval_int.h"
#include <math.h>

void rt_eval_histogram(const double *x, int64_t n, const double *edges, int bins, int64_t *count) {
    for (int b = 0; b < bins; b++)
        count[b] = 0;
    for (int64_t i = 0; i < n; i++) {
        if (isnan(x[i]))
            continue;
        int lo = 0, hi = bins; /* edges[lo] <= x < edges[hi], as far as there are such edges */
        while (hi - lo > 1) {
            const int mid = (lo + hi) / 2;
            if (x[i] < edges[mid])
                hi = mid;
            else
                lo = mid;
        }
        count[lo]++;
    }
}
