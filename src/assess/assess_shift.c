/*
 * assess_shift.c - how metrics decay: test rows corrupted by type and severity, rotated or rolled by amount.
 *
 * Each (type, severity) is one set of all test rows, measured by itself; the corrupted metrics are plain means
 * over sets (METHODS: "per set, then mean; not pooled"). Calibrated metrics use the run's temperature.
 */
#include "assess/assess_int.h"
#include "base/alloc.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { STEPS = RT_SHIFT_AMOUNTS };

/* Values of every metric at each severity; those of metrics.def that are followed are written. */
typedef struct series {
    double value[RT_METRICS_MAX][STEPS];
    const char *reason[RT_METRICS_MAX];
} series;

/* The name of metric i if it is followed for this task, else NULL. */
static const char *followed(const rt_subject *u, int i) {
    const rt_metric_info *list;
    const int n = rt_metric_list(&list);
    return i < n && list[i].followed && list[i].regression == u->regression ? list[i].name : NULL;
}

static rt_status answer(rt_subject *u, const rt_distortion *d, bool floats, const char *what,
                        rt_answers *out) {
    return rt_subject_answer(u, out, u->s->test, u->s->row,
                             &(rt_answer_how){.what = what, .distortion = d, .floats = floats});
}

static rt_status measure(const rt_subject *u, const rt_answers *y, series *out, int64_t at) {
    double v[RT_METRICS_MAX];
    const char *reason[RT_METRICS_MAX];
    RT_TRY(rt_eval_all(&y->in, v, reason));
    for (int i = 0; i < RT_METRICS_MAX; i++) {
        if (!followed(u, i))
            continue;
        out->value[i][at] = v[i];
        if (!isfinite(v[i]) && !out->reason[i])
            out->reason[i] = reason[i];
    }
    return RT_OK;
}

/* Into the object that is open. */
static void put_series(const rt_subject *u, const double *severity, const series *s, int64_t n, rt_json *j) {
    rt_put_array(j, "severity", severity, n, NULL);
    for (int i = 0; i < RT_METRICS_MAX; i++)
        if (followed(u, i))
            rt_put_array(j, followed(u, i), s->value[i], n, s->reason[i]);
}

static rt_status corrupt_type(rt_subject *u, const rt_corruption *c, series *out) {
    for (int severity = 1; severity <= RT_SEVERITIES; severity++) {
        rt_distortion *d = NULL;
        char what[64];
        snprintf(what, sizeof what, "%s %d", c->name, severity);
        rt_status st = rt_distortion_corrupt(&d, c, severity, u->s->row, u->s->o->seed);
        if (st == RT_OK && u->s->o->frost)
            st = rt_distortion_photographs(d, u->s->o->frost);
        rt_answers y = {0};
        if (st == RT_OK)
            st = answer(u, d, false, what, &y);
        if (st == RT_OK)
            st = measure(u, &y, out, severity - 1);
        rt_answers_free(&y);
        rt_distortion_destroy(&d);
        RT_TRY(st);
    }
    return RT_OK;
}

/* Means over types (mean) and over everything. */
static void put_means(const rt_subject *u, const series *mean, const double *severity, rt_json *j) {
    char key[64];
    for (int i = 0; i < RT_METRICS_MAX; i++) {
        double sum = 0;
        if (!followed(u, i))
            continue;
        for (int s = 0; s < RT_SEVERITIES; s++)
            sum += mean->value[i][s];
        snprintf(key, sizeof key, "%s_corrupted", followed(u, i));
        rt_json_f64_or(j, key, sum / RT_SEVERITIES, mean->reason[i] ? mean->reason[i] : "not finite");
    }
    rt_json_object_begin(j, "severity");
    put_series(u, severity, mean, RT_SEVERITIES, j);
    rt_json_object_end(j);
}

rt_status rt_assess_corrupt(rt_subject *u, rt_json *j) {
    const rt_assess_call *s = u->s;
    double severity[RT_SEVERITIES];
    series *types = NULL, mean = {0};
    rt_status st;
    for (int i = 0; i < RT_SEVERITIES; i++)
        severity[i] = i + 1;
    RT_TRY_GOTO(rt_calloc(&types, (size_t)s->ncorruptions, sizeof *types));
    for (int t = 0; t < s->ncorruptions; t++) {
        RT_TRY_GOTO(corrupt_type(u, s->corruption[t], &types[t]));
        for (int i = 0; i < RT_METRICS_MAX; i++) {
            for (int k = 0; k < RT_SEVERITIES; k++)
                mean.value[i][k] += types[t].value[i][k] / s->ncorruptions;
            if (!mean.reason[i])
                mean.reason[i] = types[t].reason[i];
        }
    }
    rt_json_object_begin(j, "corrupt");
    put_means(u, &mean, severity, j);
    rt_json_object_begin(j, "types");
    for (int t = 0; t < s->ncorruptions; t++) {
        rt_json_object_begin(j, s->corruption[t]->name);
        put_series(u, severity, &types[t], RT_SEVERITIES, j);
        rt_json_object_end(j);
    }
    rt_json_object_end(j);
    rt_json_object_end(j);
done:
    rt_free(types);
    return st;
}

/* Calls back for every amount of a shift. */
typedef rt_status (*shift_fn)(void *user, rt_subject *u, const rt_distortion *d, const char *what,
                              int64_t at);

static rt_status each_amount(rt_subject *u, const rt_shift *shift, shift_fn fn, void *user) {
    double amount[STEPS];
    char what[96];
    const int64_t n = rt_shift_amounts(shift, u->s->row, amount);
    for (int64_t i = 0; i < n; i++) {
        rt_distortion *d = NULL;
        snprintf(what, sizeof what, "%s by %g %s", shift->name, amount[i], shift->unit);
        rt_status st = rt_distortion_shift(&d, shift, amount[i], u->s->row);
        if (st == RT_OK)
            st = fn(user, u, d, what, i);
        rt_distortion_destroy(&d);
        RT_TRY(st);
    }
    return RT_OK;
}

static rt_status keep_scores(void *user, rt_subject *u, const rt_distortion *d, const char *what,
                             int64_t at) {
    rt_scores *out = user;
    rt_answers y;
    RT_TRY(answer(u, d, true, what, &y));
    const rt_status st = rt_scores_of(&out[at], &y.in);
    rt_answers_free(&y);
    return st;
}

rt_status rt_shift_scores(rt_subject *u, const rt_shift *shift, rt_scores *out) {
    return each_amount(u, shift, keep_scores, out);
}

typedef struct shifted {
    series s;
    const rt_scores *teacher; /* NULL: none */
    double difference[STEPS]; /* of mutual information */
    const char *reason;
} shifted;

static rt_status measure_amount(void *user, rt_subject *u, const rt_distortion *d, const char *what,
                                int64_t at) {
    shifted *t = user;
    rt_scores mine = {0};
    rt_answers y;
    RT_TRY(answer(u, d, true, what, &y));
    rt_status st = measure(u, &y, &t->s, at);
    if (st == RT_OK && t->teacher) {
        const char *reason;
        st = rt_scores_of(&mine, &y.in);
        t->difference[at] =
            st == RT_OK ? rt_scores_difference(&mine, &t->teacher[at], "mutual_information", &reason) : NAN;
        if (st == RT_OK && reason)
            t->reason = reason;
        rt_scores_free(&mine);
    }
    rt_answers_free(&y);
    return st;
}

static void put_mean(rt_json *j, const char *key, const double *v, int64_t n, const char *reason) {
    double sum = 0;
    for (int64_t k = 0; k < n; k++)
        sum += v[k] / (double)n;
    rt_json_f64_or(j, key, sum, reason ? reason : "not finite");
}

/* Of every series, over the amounts. */
static void put_shift_means(const rt_subject *u, const shifted *t, int64_t n, rt_json *j) {
    rt_json_object_begin(j, "mean");
    for (int i = 0; i < RT_METRICS_MAX; i++)
        if (followed(u, i))
            put_mean(j, followed(u, i), t->s.value[i], n, t->s.reason[i]);
    if (t->teacher)
        put_mean(j, "mutual_information_difference", t->difference, n, t->reason);
    rt_json_object_end(j);
}

rt_status rt_assess_shift(rt_subject *u, int i, rt_json *j) {
    const rt_shift *shift = u->s->shift[i];
    double amount[STEPS];
    char key[64];
    shifted t = {.teacher = u->s->teacher_shift && !u->regression
                                ? u->s->teacher_shift + (ptrdiff_t)i * RT_SHIFT_AMOUNTS
                                : NULL};
    const int64_t n = rt_shift_amounts(shift, u->s->row, amount);
    RT_TRY(each_amount(u, shift, measure_amount, &t));
    snprintf(key, sizeof key, "shift:%s", shift->name);
    rt_json_object_begin(j, key);
    rt_json_str(j, "unit", shift->unit);
    put_series(u, amount, &t.s, n, j);
    if (t.teacher)
        rt_put_array(j, "mutual_information_difference", t.difference, n, t.reason);
    put_shift_means(u, &t, n, j);
    rt_json_object_end(j);
    return RT_OK;
}
