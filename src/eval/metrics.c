/*
 * metrics.c - the table of metrics, and all of them at once.
 */
#include "base/alloc.h"
#include "eval/eval_int.h"
#include <math.h>
#include <string.h>

#define RT_METRIC(name, title, heading, better, regression, kind, of, needs, usual, followed, meaning)       \
    {name, title, heading, meaning, better, regression, RT_NEEDS_##needs, usual, followed},
static const rt_metric_info infos[] = {
#include "eval/metrics.def"
};
#undef RT_METRIC

#define RT_METRIC(name, title, heading, better, regression, kind, of, needs, usual, followed, meaning)       \
    {RT_KIND_##kind, of},
const rt_metric_def rt_metric_defs[] = {
#include "eval/metrics.def"
};
#undef RT_METRIC

_Static_assert(sizeof infos / sizeof infos[0] <= RT_METRICS_MAX, "RT_METRICS_MAX is too small");

int rt_metric_list(const rt_metric_info **out) {
    *out = infos;
    return (int)RT_COUNT(infos);
}

int rt_metric_find(const char *name, bool regression) {
    for (int i = 0; i < (int)RT_COUNT(infos); i++)
        if (infos[i].regression == regression && strcmp(infos[i].name, name) == 0)
            return i;
    return -1;
}

const char *rt_needs_why_not(int needs, const rt_reading *how) {
    const bool dirichlet = how->kind == RT_OUTPUT_DIRICHLET;
    if (((needs & RT_NEEDS_KNOWLEDGE) && !rt_reading_knows(how)) ||
        ((needs & RT_NEEDS_MEMBERS) && how->m < 2))
        return rt_reason_one_member;
    if ((needs & RT_NEEDS_DIRICHLET) && (!dirichlet || how->m > 1))
        return "for a single Dirichlet only";
    if ((needs & RT_NEEDS_OFFSET) && (!dirichlet || how->offset == 0))
        return "for Dirichlet outputs with an offset only";
    return NULL;
}

rt_status rt_eval_all(const rt_eval_input *in, double *values, const char **reasons) {
    rt_rows r = {0};
    uint16_t *count = NULL;
    rt_status st;
    RT_TRY_GOTO(rt_rows_init(&r, in));
    RT_TRY_GOTO(rt_calloc(&count, (size_t)in->n, sizeof *count));
    for (int64_t i = 0; i < in->n; i++)
        count[i] = 1;
    rt_rows_metrics(&r, count, values);
    for (int64_t i = 0; reasons && i < RT_COUNT(infos); i++)
        reasons[i] = r.reason[i] ? r.reason[i] : isnan(values[i]) ? "a target is not a number" : NULL;
done:
    rt_free(count);
    rt_rows_deinit(&r);
    return st;
}
