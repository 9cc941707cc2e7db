/*
 * soup.c - averages without renumbering: the plain mean, and model soups (Wortsman et al. 2022).
 *
 * A soup is the mean of models fine-tuned from one initialisation, which lie in one basin. The greedy one
 * takes the models from the best on validation rows to the worst and keeps each only if the mean with it is
 * strictly better than without: it is never worse on those rows than the best model.
 *
 * Whether models share an initialisation is seen in their kernels: the cosine of two that do stays near 1, that
 * of two that do not is that of random vectors, about 0. The mean of such models comes with a warning.
 */
#include "average/average.h"
#include "base/alloc.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

static const double STRANGERS = 0.5;

/* Mean over models of the cosine of their kernels with the first's. */
static double kinship(const rt_average *a) {
    double sum = 0;
    for (int m = 1; m < a->models; m++) {
        double xy = 0, xx = 0, yy = 0;
        for (int k = 0; k < rt_params_count(a->params); k++) {
            const rt_param *p = rt_params_get(a->params, k);
            const float *x = a->blocks[0] + p->offset, *y = a->blocks[m] + p->offset;
            for (int64_t i = 0; i < p->count && p->role == RT_ROLE_WEIGHT; i++) {
                xy += (double)x[i] * (double)y[i];
                xx += (double)x[i] * (double)x[i];
                yy += (double)y[i] * (double)y[i];
            }
        }
        sum += xx > 0 && yy > 0 ? xy / sqrt(xx * yy) : 1;
    }
    return sum / (a->models - 1);
}

static void warn_strangers(rt_average *a) {
    const double kin = kinship(a);
    if (kin < STRANGERS)
        snprintf(a->warning, sizeof a->warning,
                 "the models do not share an initialisation (cosine of their weights %.2f, of relatives near "
                 "1), and the "
                 "mean of such models is no network; --method match or perm renumbers their units first",
                 kin);
}

/* The baseline is the mean and nothing else; repair only if --repair says so. */
rt_status rt_average_by_naive(rt_average *a) {
    a->keep_scale = !rt_config_is_set(a->c, "repair");
    warn_strangers(a);
    rt_average_mean(a);
    return RT_OK;
}

rt_status rt_average_by_soup(rt_average *a) {
    a->keep_scale = true;
    warn_strangers(a);
    rt_average_mean(a);
    return RT_OK;
}

/* Is x better than y? Accuracy, or the loss of a regression. */
static bool better(const rt_average *a, rt_average_score x, rt_average_score y) {
    return a->regression ? x.loss < y.loss : x.accuracy > y.accuracy;
}

static rt_status stir(rt_average *a, int *order, rt_average_score *each) {
    RT_TRY(rt_average_progress(a, "judging the models", 0));
    RT_TRY(rt_average_measure(a, &a->valid, a->blocks, a->models, each, NULL));
    for (int m = 0; m < a->models; m++) {
        int at = m;
        for (; at > 0 && better(a, each[m], each[order[at - 1]]); at--)
            order[at] = order[at - 1];
        order[at] = m;
        a->used[m] = false;
    }
    rt_average_score best = each[order[0]];
    a->used[order[0]] = true;
    for (int k = 1; k < a->models; k++) {
        rt_average_score now;
        RT_TRY(rt_average_progress(a, "adding models", (double)k / a->models));
        a->used[order[k]] = true;
        rt_average_mean(a);
        RT_TRY(rt_average_refresh_bn(a, a->out, 0));
        RT_TRY(rt_average_measure(a, &a->valid, (const float *const *)&a->out, 1, &now, NULL));
        if (better(a, now, best))
            best = now;
        else
            a->used[order[k]] = false;
    }
    rt_average_mean(a);
    return RT_OK;
}

rt_status rt_average_by_greedy_soup(rt_average *a) {
    int *order = NULL;
    rt_average_score *each = NULL;
    rt_status st;
    a->keep_scale = true;
    RT_FAIL_IF(a->valid.n == 0, RT_E_USAGE,
               "greedy-soup chooses by validation rows, and the models held out none that is known");
    RT_TRY_GOTO(rt_calloc(&order, (size_t)a->models, sizeof *order));
    RT_TRY_GOTO(rt_calloc(&each, (size_t)a->models, sizeof *each));
    RT_TRY_GOTO(stir(a, order, each));
    int used = 0;
    for (int m = 0; m < a->models; m++)
        used += a->used[m];
    if (used > 1)
        warn_strangers(a);
done:
    rt_free(order);
    rt_free(each);
    return st;
}
