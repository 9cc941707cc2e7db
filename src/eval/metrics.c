/*
 * metrics.c - the table of metrics, and all of them at once.
 */
#include "base/alloc.h"
#include "eval/eval_int.h"
#include <math.h>
#include <string.h>

#define RT_METRIC(name, higher, regression, kind, of, meaning) {name, meaning, higher, regression},
static const rt_metric_info infos[] = {
#include "eval/metrics.def"
};
#undef RT_METRIC

#define RT_METRIC(name, higher, regression, kind, of, meaning)                                               \
    {{name, meaning, higher, regression}, RT_KIND_##kind, of},
static const rt_metric_def defs[] = {
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

int rt_metric_defs(const rt_metric_def **out) {
    *out = defs;
    return (int)RT_COUNT(defs);
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
