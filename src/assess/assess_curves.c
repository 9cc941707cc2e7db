/*
 * assess_curves.c - what a page draws: reliability, rejection, ROC, histograms, coverage of intervals, and the
 * loss on the line between two members.
 *
 * All histograms of a measure share their edges, so that test rows, wrong ones and foreign ones can lie over
 * each other: 50 bins from 0 (or the least value below it) to the greatest of any of them.
 */
#include "assess/assess_int.h"
#include "base/alloc.h"
#include <math.h>
#include <string.h>

enum { BINS = 50 };

static rt_status put_reliability(const rt_eval_input *in, rt_json *j) {
    rt_reliability r;
    RT_TRY(rt_eval_reliability(in, &r));
    rt_json_object_begin(j, "reliability");
    rt_json_f64s(j, "confidence", r.confidence, RT_ECE_BINS);
    rt_json_f64s(j, "accuracy", r.accuracy, RT_ECE_BINS);
    rt_json_i64s(j, "count", r.count, RT_ECE_BINS);
    rt_json_object_end(j);
    return RT_OK;
}

static rt_status put_rejection(const rt_scores *s, rt_json *j) {
    const rt_measure_info *list;
    const int n = rt_measure_list(&list);
    double curve[RT_CURVE_POINTS], other[RT_CURVE_POINTS], wrong = 0;
    rt_json_object_begin(j, "rejection");
    for (int i = 0; i < RT_CURVE_POINTS; i++)
        curve[i] = (double)i / (RT_CURVE_POINTS - 1);
    rt_json_f64s(j, "fraction", curve, RT_CURVE_POINTS);
    for (int i = 0; i < n; i++) {
        if (list[i].regression || s->reason[i])
            continue;
        RT_TRY(rt_eval_rejection(s->value + (int64_t)i * s->n, s->wrong, s->n, curve));
        rt_json_f64s(j, list[i].name, curve, RT_CURVE_POINTS);
    }
    for (int64_t i = 0; i < s->n; i++)
        wrong += s->wrong[i];
    rt_eval_rejection_limits(wrong / (double)s->n, curve, other);
    rt_json_f64s(j, "random", curve, RT_CURVE_POINTS);
    rt_json_f64s(j, "oracle", other, RT_CURVE_POINTS);
    rt_json_object_end(j);
    return RT_OK;
}

static rt_status put_roc(const char *key, const double *score, const uint8_t *positive, int64_t n,
                         rt_json *j) {
    rt_roc roc;
    RT_TRY(rt_eval_roc(score, positive, n, &roc));
    if (roc.points == 0)
        return RT_OK;
    rt_json_object_begin(j, key);
    rt_json_f64s(j, "fpr", roc.fpr, roc.points);
    rt_json_f64s(j, "tpr", roc.tpr, roc.points);
    rt_json_object_end(j);
    return RT_OK;
}

static rt_status put_misclassification_roc(const rt_subject *u, rt_json *j) {
    const rt_scores *s = &u->scores;
    const rt_measure_info *list;
    const int n = rt_measure_list(&list);
    rt_json_object_begin(j, "misclassification");
    for (int i = 0; i < n; i++)
        if (list[i].regression == u->regression && !s->reason[i])
            RT_TRY(put_roc(list[i].name, s->value + (int64_t)i * s->n, s->wrong, s->n, j));
    rt_json_object_end(j);
    return RT_OK;
}

static rt_status put_foreign_roc(const rt_subject *u, int f, rt_json *j) {
    const rt_scores *a = &u->scores, *b = &u->foreign[f];
    const rt_measure_info *list;
    const int n = rt_measure_list(&list);
    double *score = NULL;
    uint8_t *positive = NULL;
    rt_status st;
    RT_TRY_GOTO(rt_scores_join(a, b, &score, &positive));
    rt_json_object_begin(j, u->s->foreign[f].set);
    for (int i = 0; i < n; i++)
        if (list[i].regression == u->regression && !a->reason[i] && !b->reason[i])
            RT_TRY_GOTO(put_roc(list[i].name, score + (int64_t)i * (a->n + b->n), positive, a->n + b->n, j));
    rt_json_object_end(j);
done:
    rt_free(score);
    rt_free(positive);
    return st;
}

/* ---- histograms ---- */

/* From 0, or the least value if it is below, to the greatest. */
static void range_of(const rt_subject *u, int measure, double *least, double *most) {
    *least = *most = 0;
    for (int f = -1; f < u->s->nforeign; f++) {
        const rt_scores *s = f < 0 ? &u->scores : &u->foreign[f];
        for (int64_t r = 0; r < s->n; r++) {
            *most = RT_MAX(*most, s->value[(int64_t)measure * s->n + r]);
            *least = RT_MIN(*least, s->value[(int64_t)measure * s->n + r]);
        }
    }
    *most += *most == *least;
}

/* Of the wrong rows only. */
static rt_status put_wrong(const rt_scores *s, int measure, const double *edges, rt_json *j) {
    double *v;
    int64_t n = 0, count[BINS];
    if (!s->wrong)
        return RT_OK;
    RT_TRY(rt_calloc(&v, (size_t)s->n + 1, sizeof *v));
    for (int64_t r = 0; r < s->n; r++)
        if (s->wrong[r])
            v[n++] = s->value[(int64_t)measure * s->n + r];
    rt_eval_histogram(v, n, edges, BINS, count);
    rt_free(v);
    rt_json_i64s(j, "test_wrong", count, BINS);
    return RT_OK;
}

static rt_status put_histogram(const rt_subject *u, const char *name, int measure, rt_json *j) {
    double edges[BINS + 1];
    int64_t count[BINS];
    double least, most;
    range_of(u, measure, &least, &most);
    for (int i = 0; i <= BINS; i++)
        edges[i] = least + (most - least) * i / BINS;
    rt_json_object_begin(j, name);
    rt_json_f64s(j, "edges", edges, BINS + 1);
    rt_eval_histogram(u->scores.value + (int64_t)measure * u->scores.n, u->scores.n, edges, BINS, count);
    rt_json_i64s(j, "test", count, BINS);
    RT_TRY(put_wrong(&u->scores, measure, edges, j));
    for (int f = 0; f < u->s->nforeign; f++) {
        const rt_scores *s = &u->foreign[f];
        rt_eval_histogram(s->value + (int64_t)measure * s->n, s->n, edges, BINS, count);
        rt_json_i64s(j, u->s->foreign[f].set, count, BINS);
    }
    rt_json_object_end(j);
    return RT_OK;
}

static rt_status put_histograms(const rt_subject *u, rt_json *j) {
    const rt_measure_info *list;
    const int n = rt_measure_list(&list);
    rt_json_object_begin(j, "histogram");
    for (int i = 0; i < n; i++) {
        bool defined = !u->scores.reason[i];
        for (int f = 0; f < u->s->nforeign; f++)
            defined = defined && !u->foreign[f].reason[i];
        if (list[i].regression == u->regression && defined)
            RT_TRY(put_histogram(u, list[i].name, i, j));
    }
    rt_json_object_end(j);
    return RT_OK;
}

static rt_status put_coverage(const rt_eval_input *in, rt_json *j) {
    double coverage[RT_INTERVAL_LEVELS];
    RT_TRY(rt_eval_coverage(in, rt_interval_levels, RT_INTERVAL_LEVELS, coverage));
    rt_json_object_begin(j, "intervals");
    rt_json_f64s(j, "level", rt_interval_levels, RT_INTERVAL_LEVELS);
    rt_json_f64s(j, "coverage", coverage, RT_INTERVAL_LEVELS);
    rt_json_object_end(j);
    return RT_OK;
}

rt_status rt_assess_curves(rt_subject *u, const rt_answers *y, rt_json *j) {
    rt_json_object_begin(j, NULL);
    if (u->regression) {
        RT_TRY(put_coverage(&y->in, j));
    } else {
        RT_TRY(put_reliability(&y->in, j));
        RT_TRY(put_rejection(&u->scores, j));
    }
    rt_json_object_begin(j, "roc");
    if (!u->regression)
        RT_TRY(put_misclassification_roc(u, j));
    for (int f = 0; f < u->s->nforeign; f++)
        RT_TRY(put_foreign_roc(u, f, j));
    rt_json_object_end(j);
    RT_TRY(put_histograms(u, j));
    RT_TRY(rt_assess_line(u, j));
    rt_json_object_end(j);
    return rt_str_status(j->out);
}
