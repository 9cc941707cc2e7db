/*
 * assess_sets.c - what is said of the test rows, of foreign sets, and of agreement with a teacher.
 *
 * Every metric of the task is written, null with a reason where it is not defined, so that a script finds
 * the same keys in every assessment. An ensemble's members are also judged alone: the mean, the least and
 * the greatest value over them.
 */
#include "assess/assess_int.h"
#include "base/alloc.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct values {
    double v[RT_METRICS_MAX];
    const char *reason[RT_METRICS_MAX];
} values;

void rt_put_array(rt_json *j, const char *key, const double *v, int64_t n, const char *reason) {
    char name[96];
    bool finite = true;
    rt_json_f64s(j, key, v, n);
    for (int64_t i = 0; i < n; i++)
        finite = finite && isfinite(v[i]);
    if (finite)
        return;
    snprintf(name, sizeof name, "%s_reason", key);
    rt_json_str(j, name, reason ? reason : "not finite");
}

static void put_values(rt_json *j, const values *s, bool regression, bool defined_only) {
    const rt_metric_info *list;
    const int n = rt_metric_list(&list);
    for (int i = 0; i < n; i++)
        if (list[i].regression == regression && !(defined_only && !isfinite(s->v[i])))
            rt_json_f64_or(j, list[i].name, s->v[i], s->reason[i] ? s->reason[i] : "not finite");
}

static void put_interval(rt_json *j, const char *key, rt_interval v) {
    if (!isfinite(v.lo) || !isfinite(v.hi))
        return;
    rt_json_array_begin(j, key);
    rt_json_f64(j, NULL, v.lo);
    rt_json_f64(j, NULL, v.hi);
    rt_json_array_end(j);
}

static rt_bootstrap draws_of(const rt_subject *u) {
    const rt_assess_options *o = u->s->o;
    return (rt_bootstrap){.draws = (int)o->bootstrap, .seed = o->seed, .pool = u->s->pool};
}

static rt_status put_intervals(const rt_subject *u, const rt_eval_input *in, rt_json *j) {
    const rt_metric_info *list;
    const int n = rt_metric_list(&list);
    rt_interval interval[RT_METRICS_MAX];
    if (u->s->o->bootstrap < 1)
        return RT_OK;
    RT_TRY(rt_eval_bootstrap(in, draws_of(u), interval));
    rt_json_object_begin(j, "interval");
    for (int i = 0; i < n; i++)
        if (list[i].regression == u->regression)
            put_interval(j, list[i].name, interval[i]);
    rt_json_object_end(j);
    return RT_OK;
}

/* ---- members alone ---- */

static rt_status put_members(const rt_eval_input *in, rt_json *j) {
    const rt_metric_info *list;
    const int n = rt_metric_list(&list);
    const int64_t k = in->how.k;
    values mean = {0}, least = {0}, greatest = {0}, one;
    rt_answers alone = {.in = *in};
    rt_status st;
    RT_TRY_GOTO(rt_calloc(&alone.y, (size_t)(in->n * k) + 1, sizeof(float)));
    alone.in.how.m = 1;
    alone.in.y = alone.y;
    alone.in.temperature = NAN; /* that of the ensemble is not the members' */
    for (int64_t m = 0; m < in->how.m; m++) {
        for (int64_t i = 0; i < in->n; i++)
            memcpy(alone.y + i * k, in->y + (i * in->how.m + m) * k, (size_t)k * sizeof(float));
        RT_TRY_GOTO(rt_eval_all(&alone.in, one.v, one.reason));
        for (int i = 0; i < n; i++) {
            mean.v[i] += one.v[i] / (double)in->how.m;
            least.v[i] = m == 0 ? one.v[i] : RT_MIN(least.v[i], one.v[i]);
            greatest.v[i] = m == 0 ? one.v[i] : RT_MAX(greatest.v[i], one.v[i]);
        }
    }
    values *const each[] = {&mean, &least, &greatest};
    static const char *const keys[] = {"single", "single_min", "single_max"};
    for (int i = 0; i < 3; i++) {
        rt_json_object_begin(j, keys[i]);
        put_values(j, each[i], rt_eval_regression(in), true);
        rt_json_object_end(j);
    }
done:
    rt_answers_free(&alone);
    return st;
}

/* ---- ranking by measures ---- */

typedef struct ranking {
    const rt_measure_info *list;
    int n;
    rt_ranking by[RT_MEASURES_MAX];
} ranking;

static rt_status rank_all(ranking *r, const double *score, const char *const *reasons,
                          const uint8_t *positive, int64_t n) {
    r->n = rt_measure_list(&r->list);
    for (int i = 0; i < r->n; i++) {
        if (reasons[i])
            r->by[i] = (rt_ranking){NAN, NAN, NAN, reasons[i]};
        else
            RT_TRY(rt_eval_ranking(score + (int64_t)i * n, positive, n, &r->by[i]));
    }
    return RT_OK;
}

typedef enum ranking_field { AUROC, AUPR, PRR } ranking_field;

static void put_ranking(rt_json *j, const ranking *r, ranking_field field, bool regression) {
    static const char *const keys[] = {"auroc", "aupr", "prr"};
    rt_json_object_begin(j, keys[field]);
    for (int i = 0; i < r->n; i++) {
        const rt_ranking *b = &r->by[i];
        if (r->list[i].regression == regression)
            rt_json_f64_or(j, r->list[i].name,
                           field == AUROC  ? b->auroc
                           : field == AUPR ? b->aupr
                                           : b->prr,
                           b->reason ? b->reason : "not finite");
    }
    rt_json_object_end(j);
}

static rt_status put_misclassification(const rt_subject *u, rt_json *j) {
    const rt_scores *s = &u->scores;
    ranking r;
    if (!s->wrong)
        return RT_OK;
    RT_TRY(rank_all(&r, s->value, s->reason, s->wrong, s->n));
    rt_json_object_begin(j, "misclassification");
    put_ranking(j, &r, AUROC, false);
    put_ranking(j, &r, AUPR, false);
    put_ranking(j, &r, PRR, false);
    rt_json_object_end(j);
    return RT_OK;
}

/* ---- class by class ---- */

enum { CONFUSION_MAX = 100 }; /* classes */

static void put_class_numbers(rt_json *j, const char *key, const rt_class_stats *s, int64_t k, size_t field) {
    rt_json_array_begin(j, key);
    for (int64_t c = 0; c < k; c++)
        rt_json_f64(j, NULL, *(const double *)(const void *)((const char *)&s[c] + field));
    rt_json_array_end(j);
}

static void put_confusion(rt_json *j, const int64_t *count, int64_t k) {
    rt_json_array_begin(j, "confusion");
    for (int64_t c = 0; c < k; c++)
        rt_json_i64s(j, NULL, count + c * k, k);
    rt_json_array_end(j);
}

static rt_status put_classes(const rt_eval_input *in, rt_json *j) {
    const int64_t k = in->how.k;
    rt_class_stats *s = NULL;
    int64_t *confusion = NULL;
    rt_status st;
    if (rt_eval_regression(in) || !in->label)
        return RT_OK;
    RT_TRY_GOTO(rt_calloc(&s, (size_t)k, sizeof *s));
    if (k <= CONFUSION_MAX)
        RT_TRY_GOTO(rt_calloc(&confusion, (size_t)(k * k), sizeof *confusion));
    RT_TRY_GOTO(rt_eval_per_class(in, s, confusion));
    rt_json_object_begin(j, "per_class");
    rt_json_array_begin(j, "rows");
    for (int64_t c = 0; c < k; c++)
        rt_json_i64(j, NULL, s[c].rows);
    rt_json_array_end(j);
    put_class_numbers(j, "recall", s, k, offsetof(rt_class_stats, recall));
    put_class_numbers(j, "precision", s, k, offsetof(rt_class_stats, precision));
    put_class_numbers(j, "confidence", s, k, offsetof(rt_class_stats, confidence));
    put_class_numbers(j, "ece", s, k, offsetof(rt_class_stats, ece));
    rt_json_object_end(j);
    if (confusion)
        put_confusion(j, confusion, k);
done:
    rt_free(s);
    rt_free(confusion);
    return st;
}

rt_status rt_assess_test(rt_subject *u, const rt_answers *y, rt_json *j) {
    values all;
    RT_TRY(rt_eval_all(&y->in, all.v, all.reason));
    rt_json_object_begin(j, "test");
    rt_json_i64(j, "rows", y->in.n);
    put_values(j, &all, u->regression, false);
    RT_TRY(put_intervals(u, &y->in, j));
    RT_TRY(put_misclassification(u, j));
    RT_TRY(put_classes(&y->in, j));
    RT_TRY(rt_assess_decision(u, &y->in, j));
    if (y->in.how.m > 1)
        RT_TRY(put_members(&y->in, j));
    rt_json_object_end(j);
    return RT_OK;
}

/* ---- foreign sets ---- */

/* Means of the measures, as people read them. */
static void put_means(rt_json *j, const rt_scores *s, bool regression) {
    const rt_measure_info *list;
    const int n = rt_measure_list(&list);
    for (int i = 0; i < n; i++) {
        double sum = 0;
        if (list[i].regression != regression)
            continue;
        for (int64_t r = 0; r < s->n; r++)
            sum += s->value[(int64_t)i * s->n + r];
        rt_json_f64_or(j, list[i].name, s->reason[i] ? NAN : rt_measure_shown(i, sum / (double)s->n),
                       s->reason[i] ? s->reason[i] : "not finite");
    }
}

static rt_status put_ranking_intervals(const rt_subject *u, const double *score, const char *const *reasons,
                                       const uint8_t *positive, int64_t n, rt_json *j) {
    const rt_measure_info *list;
    const int measures = rt_measure_list(&list);
    rt_ranking_interval interval[RT_MEASURES_MAX];
    char key[96];
    if (u->s->o->bootstrap < 1)
        return RT_OK;
    rt_json_object_begin(j, "interval");
    for (int i = 0; i < measures; i++) {
        if (list[i].regression != u->regression || reasons[i])
            continue;
        RT_TRY(rt_eval_ranking_bootstrap(score + (int64_t)i * n, 1, positive, n, true, draws_of(u),
                                         &interval[i]));
        snprintf(key, sizeof key, "auroc_%s", list[i].name);
        put_interval(j, key, interval[i].auroc);
        snprintf(key, sizeof key, "aupr_%s", list[i].name);
        put_interval(j, key, interval[i].aupr);
    }
    rt_json_object_end(j);
    return RT_OK;
}

rt_status rt_scores_join(const rt_scores *a, const rt_scores *b, double **score, uint8_t **positive) {
    const rt_measure_info *list;
    const int measures = rt_measure_list(&list);
    const int64_t n = a->n + b->n;
    RT_TRY(rt_calloc(score, (size_t)measures * (size_t)n + 1, sizeof(double)));
    RT_TRY(rt_calloc(positive, (size_t)n + 1, 1));
    for (int i = 0; i < measures; i++) {
        double *dst = *score + (int64_t)i * n;
        memcpy(dst, a->value + (int64_t)i * a->n, (size_t)a->n * sizeof *dst);
        memcpy(dst + a->n, b->value + (int64_t)i * b->n, (size_t)b->n * sizeof *dst);
    }
    memset(*positive + a->n, 1, (size_t)b->n);
    return RT_OK;
}

double rt_scores_difference(const rt_scores *a, const rt_scores *b, const char *measure,
                            const char **reason) {
    const int k = rt_measure_find(measure, false);
    double sum = 0;
    *reason = k < 0 ? "no such measure" : a->reason[k] ? a->reason[k] : b->reason[k];
    if (*reason)
        return NAN;
    for (int64_t r = 0; r < a->n; r++)
        sum += fabs(a->value[(int64_t)k * a->n + r] - b->value[(int64_t)k * b->n + r]);
    return sum / (double)a->n;
}

/* How far a run is from its teacher in what it is unsure of (Tran et al. 2020, Table 1). */
static void put_differences(rt_json *j, const rt_scores *mine, const rt_scores *teacher) {
    static const char *const names[] = {"mutual_information", "entropy"};
    rt_json_object_begin(j, "against");
    for (int i = 0; i < (int)RT_COUNT(names); i++) {
        const char *reason;
        char key[64];
        const double v = rt_scores_difference(mine, teacher, names[i], &reason);
        snprintf(key, sizeof key, "%s_difference", names[i]);
        rt_json_f64_or(j, key, v, reason ? reason : "not finite");
    }
    rt_json_object_end(j);
}

rt_status rt_assess_foreign(rt_subject *u, int i, rt_json *j) {
    const rt_foreign *f = &u->s->foreign[i];
    const rt_scores *mine = &u->scores, *other = &u->foreign[i];
    double *score = NULL;
    uint8_t *positive = NULL;
    const char *reasons[RT_MEASURES_MAX];
    ranking r;
    rt_status st;
    for (int k = 0; k < RT_MEASURES_MAX; k++)
        reasons[k] = mine->reason[k] ? mine->reason[k] : other->reason[k];
    RT_TRY_GOTO(rt_scores_join(mine, other, &score, &positive));
    RT_TRY_GOTO(rank_all(&r, score, reasons, positive, mine->n + other->n));
    rt_json_object_begin(j, f->set);
    rt_json_i64(j, "rows", other->n);
    rt_json_str(j, "spec", f->spec);
    put_means(j, other, u->regression);
    rt_assess_rejected(u, other, j);
    put_ranking(j, &r, AUROC, u->regression);
    put_ranking(j, &r, AUPR, u->regression);
    RT_TRY_GOTO(put_ranking_intervals(u, score, reasons, positive, mine->n + other->n, j));
    if (u->s->o->against && !u->regression)
        put_differences(j, other, &u->s->teacher_foreign[i]);
    rt_json_object_end(j);
done:
    rt_free(score);
    rt_free(positive);
    return st;
}

/* ---- a teacher ---- */

rt_status rt_assess_against(rt_subject *u, const rt_answers *y, rt_json *j) {
    rt_agreement a;
    const bool regression = rt_dataset_task(u->s->data) == RT_TASK_REGRESSION;
    RT_TRY(rt_eval_agreement(&y->in, &u->s->teacher.in, &a));
    rt_json_object_begin(j, "against");
    rt_json_str(j, "teacher", u->s->o->against);
    rt_json_f64_or(j, "kl", a.kl, a.kl_reason ? a.kl_reason : "not finite");
    rt_json_f64_or(j, regression ? "knowledge_variance_difference" : "mutual_information_difference",
                   a.mutual_information_difference,
                   a.mutual_information_difference_reason ? a.mutual_information_difference_reason
                                                          : "not finite");
    rt_json_f64_or(j, regression ? "total_variance_difference" : "entropy_difference", a.entropy_difference,
                   a.entropy_difference_reason ? a.entropy_difference_reason : "not finite");
    rt_json_f64_or(j, "agreement", a.agreement, a.agreement_reason ? a.agreement_reason : "not finite");
    rt_json_object_end(j);
    return RT_OK;
}
