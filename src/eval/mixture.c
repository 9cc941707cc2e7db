/*
 * mixture.c - the likelihood of an ensemble that grows: a mixture of M members gives a row's truth the likelihood
 *
 *     (1/M) sum_m e^-a_m,      a_m: NLL of the truth by member m (rt_row_nll)
 *
 * so a search keeps -ln sum_m e^-a_m of each row, and asks of every candidate what the mixture with it would have. That
 * is the NLL of rt_row_read for all members at once, without reading any of them again.
 */
#include "eval/eval.h"
#include <math.h>

double rt_mixture_add(double sum, double nll) {
    const double least = RT_MIN(sum, nll);
    return isinf(least) ? least : least - log1p(exp(least - RT_MAX(sum, nll)));
}

double rt_mixture_nll(const double *sum, int64_t members, const double *nll, int64_t n) {
    double all = 0;
    for (int64_t i = 0; i < n; i++)
        all += rt_mixture_add(sum[i], nll[i]);
    return all / (double)n + log((double)(members + 1));
}
