/*
 * measures.c - the uncertainty of each row, by every measure of measures.def.
 */
#include "eval/eval_int.h"
#include <math.h>
#include <string.h>

#define RT_MEASURE(name, regression, needs, certainty, field, meaning)                                       \
    {name, meaning, regression, certainty, RT_NEEDS_##needs},
static const rt_measure_info infos[] = {
#include "eval/measures.def"
};
#undef RT_MEASURE

#define RT_MEASURE(name, regression, needs, certainty, field, meaning) offsetof(rt_row, field),
static const size_t fields[] = {
#include "eval/measures.def"
};
#undef RT_MEASURE

_Static_assert(sizeof infos / sizeof infos[0] <= RT_MEASURES_MAX, "RT_MEASURES_MAX is too small");

int rt_measure_list(const rt_measure_info **out) {
    *out = infos;
    return (int)RT_COUNT(infos);
}

int rt_measure_find(const char *name, bool regression) {
    for (int i = 0; i < (int)RT_COUNT(infos); i++)
        if (infos[i].regression == regression && strcmp(infos[i].name, name) == 0)
            return i;
    return -1;
}

double rt_measure_shown(int measure, double value) {
    return infos[measure].certainty ? 1 - value : value;
}

double rt_measure_of(int measure, const rt_row *r) {
    return *(const double *)(const void *)((const char *)r + fields[measure]);
}

static const char *why_not(const rt_eval_input *in, const rt_measure_info *m, bool bad) {
    if (m->regression != rt_eval_regression(in))
        return m->regression ? "for regression only" : "for classification only";
    const char *lacks = rt_needs_why_not(m->needs, &in->how);
    return lacks ? lacks : bad ? rt_reason_bad : NULL;
}

rt_status rt_eval_measures(const rt_eval_input *in, double *out, const char **reasons) {
    bool bad = false;
    rt_row r;
    RT_TRY(rt_eval_check(in));
    RT_TRY(rt_row_init(&r, in->how));
    for (int64_t i = 0; i < in->n && !bad; i++) {
        bad = !rt_row_read(&r, rt_eval_row(in, i));
        for (int j = 0; j < (int)RT_COUNT(infos); j++)
            out[j * in->n + i] = rt_measure_of(j, &r);
    }
    rt_row_deinit(&r);
    for (int j = 0; j < (int)RT_COUNT(infos); j++) {
        reasons[j] = why_not(in, &infos[j], bad);
        for (int64_t i = 0; reasons[j] && i < in->n; i++)
            out[j * in->n + i] = NAN;
    }
    return RT_OK;
}
