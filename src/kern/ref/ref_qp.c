/*
 * ref_qp.c - weights on a capped simplex: minimise 1/2 w' G w, sum w = 1, 0 <= w <= cap.
 *
 * Sequential minimal optimisation: weight moves from the member lo with the largest gradient (G w) among
 * those that have some, to the member up with the smallest among those that have room, as far as the parabola
 * along that line asks and the bounds allow. At the optimum no such pair differs. Where the minimiser is not
 * unique (0 lies in the hull of the vectors) the fixed start w = 1/m makes the answer reproducible.
 */
#include "kern/ref/ref_int.h"

enum { STEPS_MAX = 20000 };

void ref_qp_simplex(double *w, double *gw, const double *g, int64_t m, double cap) {
    const double even = 1.0 / (double)m;
    double scale = 0;
    cap = RT_MIN(RT_MAX(cap, even), 1.0);
    for (int64_t i = 0; i < m; i++) {
        w[i] = even;
        gw[i] = 0;
        for (int64_t j = 0; j < m; j++)
            gw[i] += g[i * m + j] * even;
        scale = RT_MAX(scale, g[i * m + i]);
    }
    for (int step = 0; step < STEPS_MAX; step++) {
        int64_t up = -1, lo = -1;
        for (int64_t i = 0; i < m; i++) {
            if (w[i] < cap && (up < 0 || gw[i] < gw[up]))
                up = i;
            if (w[i] > 0 && (lo < 0 || gw[i] > gw[lo]))
                lo = i;
        }
        if (up < 0 || lo < 0 || !(gw[lo] - gw[up] > 1e-14 * scale))
            return;
        const double bend = g[up * m + up] + g[lo * m + lo] - 2 * g[up * m + lo];
        const double room = cap - w[up], best = bend > 0 ? (gw[lo] - gw[up]) / bend : 1;
        const double t = RT_MIN(best, RT_MIN(room, w[lo]));
        w[up] =
            t == room ? cap : w[up] + t; /* bounds are reached exactly, or the pair would be chosen again */
        w[lo] = t == w[lo] ? 0 : w[lo] - t;
        for (int64_t i = 0; i < m; i++)
            gw[i] += t * (g[i * m + up] - g[i * m + lo]);
    }
}
