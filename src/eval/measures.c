/*
 * measures.c - the uncertainty of each row, by every measure of measures.def.
 */
#include "eval/eval_int.h"
#include <math.h>
#include <string.h>

#define RT_MEASURE(id, name, knowledge, regression, meaning) MEASURE_##id,
enum {
#include "eval/measures.def"
    MEASURES
};
#undef RT_MEASURE

#define RT_MEASURE(id, name, knowledge, regression, meaning) {name, meaning, knowledge, regression},
static const rt_measure_info infos[] = {
#include "eval/measures.def"
};
#undef RT_MEASURE

_Static_assert((int)MEASURES <= (int)RT_MEASURES_MAX, "RT_MEASURES_MAX is too small");

int rt_measure_list(const rt_measure_info **out) {
    *out = infos;
    return MEASURES;
}

int rt_measure_find(const char *name, bool regression) {
    for (int i = 0; i < MEASURES; i++)
        if (infos[i].regression == regression && strcmp(infos[i].name, name) == 0)
            return i;
    return -1;
}

static rt_status classes(const rt_eval_input *in, double *out, bool *bad) {
    rt_row r;
    const int64_t n = in->n;
    RT_TRY(rt_row_init(&r, in));
    for (int64_t i = 0; i < n && !*bad; i++) {
        *bad = !rt_row_read(&r, in, i);
        out[MEASURE_CONFIDENCE * n + i] = r.rest;
        out[MEASURE_ENTROPY * n + i] = r.entropy;
        out[MEASURE_EXPECTED_ENTROPY * n + i] = r.expected_entropy;
        out[MEASURE_INFORMATION * n + i] = r.information;
        out[MEASURE_EPKL * n + i] = r.epkl;
    }
    rt_row_deinit(&r);
    return RT_OK;
}

static void gaussians(const rt_eval_input *in, double *out, bool *bad) {
    const int64_t n = in->n;
    for (int64_t i = 0; i < n && !*bad; i++) {
        rt_gauss_row r;
        *bad = !rt_gauss_row_read(&r, in, i);
        out[MEASURE_TOTAL_VARIANCE * n + i] = r.total;
        out[MEASURE_DATA_VARIANCE * n + i] = r.data;
        out[MEASURE_KNOWLEDGE_VARIANCE * n + i] = r.knowledge;
    }
}

static const char *why_not(const rt_eval_input *in, const rt_measure_info *m, bool bad) {
    if (m->regression != in->regression)
        return m->regression ? "for regression only" : "for classification only";
    if (m->knowledge && !rt_eval_knows(in))
        return rt_reason_one_member;
    return bad ? rt_reason_bad : NULL;
}

rt_status rt_eval_measures(const rt_eval_input *in, double *out, const char **reasons) {
    bool bad = false;
    RT_TRY(rt_eval_check(in));
    if (in->regression)
        gaussians(in, out, &bad);
    else
        RT_TRY(classes(in, out, &bad));
    for (int j = 0; j < MEASURES; j++) {
        reasons[j] = why_not(in, &infos[j], bad);
        for (int64_t i = 0; reasons[j] && i < in->n; i++)
            out[j * in->n + i] = NAN;
    }
    return RT_OK;
}
