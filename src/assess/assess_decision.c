/*
 * assess_decision.c - what becomes of the promises that `calibrate` stored, on the test rows: the share that is
 * answered, the errors among them, the share of truths inside sets or intervals; each with its binomial interval
 * (Clopper and Pearson).
 *
 *     "decision": {"reject": {"coverage": 0.95, "coverage_interval": [..], "risk": .., "risk_interval": [..]},
 *                  "conformal": {"coverage": .., "coverage_interval": [..], "set_size" or "width": ..}, "stored": {..}}
 *
 * stored is what calibrate wrote, with what it promised. Of foreign rows the share that is rejected is reported.
 */
#include "assess/assess_int.h"
#include "eval/decision.h"
#include "model/model.h"
#include <math.h>
#include <stdio.h>

typedef struct counts {
    int64_t rows, answered, wrong, held;
    double size;
} counts;

static const rt_decision *decision_of(const rt_subject *u) {
    const rt_decision *d = rt_model_decision(u->model);
    const bool rules = d->measure >= 0 || d->conformal != RT_CONFORMAL_NONE;
    return rules && !u->s->o->raw && rt_model_meta(u->model, "decision") != NULL ? d : NULL;
}

static void count_row(counts *n, const rt_decision *d, const rt_row *row, const rt_eval_input *in,
                      int64_t i) {
    const bool regression = rt_eval_regression(in), answered = !rt_decision_rejects(d, row);
    const bool labelled = regression ? in->target != NULL : in->label != NULL;
    double lower, upper;
    n->rows++;
    n->answered += answered;
    n->wrong += answered && labelled && !regression && row->top != in->label[i];
    if (d->conformal == RT_CONFORMAL_INTERVAL) {
        rt_decision_interval(d, row, &lower, &upper);
        n->size += upper - lower;
        n->held += labelled && in->target[i] >= (float)lower && in->target[i] <= (float)upper;
    }
    for (int64_t c = 0; d->conformal != RT_CONFORMAL_NONE && !regression && c < row->how.k; c++) {
        const bool in_set = rt_decision_contains(d, row, c);
        n->size += in_set;
        n->held += in_set && labelled && in->label[i] == c;
    }
}

static rt_status count_rows(counts *n, const rt_decision *d, const rt_eval_input *in) {
    rt_row row;
    rt_status st = RT_OK;
    RT_TRY(rt_row_init(&row, in->how));
    for (int64_t i = 0; i < in->n && st == RT_OK; i++) {
        if (rt_row_read(&row, in->y + i * in->how.m * in->how.k))
            count_row(n, d, &row, in, i);
        else
            st = rt_error_set(RT_E_NUMERIC, __FILE__, __LINE__, "the prediction of row %lld is not finite",
                              (long long)i);
    }
    rt_row_deinit(&row);
    return st;
}

/* k of n under a name, and the interval that holds the true share in 95 of 100 cases. */
static void put_share(rt_json *j, const char *key, int64_t k, int64_t n) {
    char name[64];
    if (n < 1) {
        rt_json_f64_or(j, key, NAN, "no row is answered");
        return;
    }
    rt_json_f64(j, key, (double)k / (double)n);
    snprintf(name, sizeof name, "%s_interval", key);
    rt_json_array_begin(j, name);
    rt_json_f64(j, NULL, rt_binomial_lower(k, n, 0.025));
    rt_json_f64(j, NULL, rt_binomial_upper(k, n, 0.025));
    rt_json_array_end(j);
}

rt_status rt_assess_decision(const rt_subject *u, const rt_eval_input *in, rt_json *j) {
    const rt_decision *d = decision_of(u);
    const bool labelled = u->regression ? in->target != NULL : in->label != NULL;
    counts n = {0};
    if (d == NULL)
        return RT_OK;
    RT_TRY(count_rows(&n, d, in));
    rt_json_object_begin(j, "decision");
    if (d->measure >= 0) {
        rt_json_object_begin(j, "reject");
        put_share(j, "coverage", n.answered, n.rows);
        if (labelled && !u->regression)
            put_share(j, "risk", n.wrong, n.answered);
        rt_json_object_end(j);
    }
    if (d->conformal != RT_CONFORMAL_NONE) {
        rt_json_object_begin(j, "conformal");
        if (labelled)
            put_share(j, "coverage", n.held, n.rows);
        rt_json_f64(j, u->regression ? "width" : "set_size", n.size / (double)RT_MAX(n.rows, (int64_t)1));
        rt_json_object_end(j);
    }
    rt_json_raw(j, "stored", rt_model_meta(u->model, "decision"));
    rt_json_object_end(j);
    return RT_OK;
}

void rt_assess_rejected(const rt_subject *u, const rt_scores *s, rt_json *j) {
    const rt_decision *d = decision_of(u);
    int64_t k = 0;
    if (d == NULL || d->measure < 0)
        return;
    for (int64_t i = 0; i < s->n; i++)
        k += s->value[(int64_t)d->measure * s->n + i] > d->threshold;
    put_share(j, "rejected", k, s->n);
}
