/*
 * ranking.c - does a score put the positive rows (errors, foreign inputs) first? P positive and N negative
 * rows, walked by decreasing score, one group of equal scores at a time; tp and fp are those already seen.
 *
 *     AUROC  Mann-Whitney with ties counted half: sum over groups neg (tp + pos/2) / (P N)
 *     AUPR   trapezoid over the points (recall, precision) after each group, beginning at (0, 1)
 *     PRR    rows are answered by an oracle in this order; errors left / n against the share answered falls
 *            from e to 0, in a straight line within a group (the mean over its orders). With A the area
 *            below, e/2 that of a random order and e^2/2 that of the best:
 *                PRR = (e/2 - A) / (e (1 - e) / 2)          which is 2 AUROC - 1, ties included
 *
 * Sums are of integers, exact for any weights, except AUPR's.
 */
#include "base/alloc.h"
#include "eval/eval_int.h"
#include <math.h>
#include <stdlib.h>

typedef struct scored {
    double score;
    int32_t row;
} scored;

static int by_score(const void *a, const void *b) {
    const scored *x = a, *y = b;
    if (x->score != y->score)
        return x->score < y->score ? 1 : -1;
    return x->row < y->row ? -1 : 1;
}

rt_status rt_order_init(rt_order *o, const double *score, const uint8_t *positive, int64_t n) {
    scored *s = NULL;
    rt_status st;
    *o = (rt_order){.n = n};
    RT_FAIL_IF(n < 0 || n > INT32_MAX, RT_E_INPUT, "ranking of %lld rows, at most %d are possible",
               (long long)n, INT32_MAX);
    RT_TRY_GOTO(rt_calloc(&s, (size_t)n + 1, sizeof *s));
    RT_TRY_GOTO(rt_calloc(&o->row, (size_t)n + 1, sizeof *o->row));
    RT_TRY_GOTO(rt_calloc(&o->positive, (size_t)n + 1, sizeof *o->positive));
    RT_TRY_GOTO(rt_calloc(&o->last, (size_t)n + 1, sizeof *o->last));
    for (int64_t i = 0; i < n; i++)
        s[i] = (scored){score[i], (int32_t)i};
    qsort(s, (size_t)n, sizeof *s, by_score);
    for (int64_t i = 0; i < n; i++) {
        o->row[i] = s[i].row;
        o->positive[i] = positive[s[i].row] != 0;
        o->last[i] = i + 1 == n || s[i + 1].score < s[i].score;
    }
done:
    rt_free(s);
    if (st != RT_OK)
        rt_order_deinit(o);
    return st;
}

void rt_order_deinit(rt_order *o) {
    rt_free(o->row);
    rt_free(o->positive);
    rt_free(o->last);
    *o = (rt_order){0};
}

static const rt_ranking undefined = {NAN, NAN, NAN, NULL};

/* One pass: the area of PRR is P n less what was answered, sum over groups of size (tp + pos/2). A precision
 * is taken after every group, whether it has positive rows or not: which ones do is random in a bootstrap
 * draw, and a mispredicted branch costs more than a division. */
rt_ranking rt_order_ranking(const rt_order *o, const uint16_t *count) {
    rt_ranking r = undefined;
    int64_t tp = 0, seen = 0, pos = 0, both = 0, pairs2 = 0, answered2 = 0;
    double aupr = 0, precision = 1;
    for (int64_t i = 0; i < o->n; i++) {
        const int64_t w = count[o->row[i]];
        both += w;
        pos += w & -(int64_t)o->positive[i];
        if (!o->last[i])
            continue;
        pairs2 += (both - pos) * (2 * tp + pos);
        answered2 += both * (2 * tp + pos);
        tp += pos;
        seen += both;
        const double before = precision;
        if (seen > 0)
            precision = (double)tp / (double)seen;
        aupr += (double)pos * (before + precision);
        pos = both = 0;
    }
    const double p = (double)tp, n = (double)seen, e = p / n;
    r.reason = tp == 0 ? "no positive rows" : tp == seen ? "no negative rows" : NULL;
    if (r.reason)
        return r;
    r.auroc = (double)pairs2 / 2 / (p * (n - p));
    r.aupr = aupr / 2 / p;
    r.prr = (e / 2 - (p * n - (double)answered2 / 2) / (n * n)) / (e * (1 - e) / 2);
    return r;
}

bool rt_any_nan(const double *score, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        if (isnan(score[i]))
            return true;
    return false;
}

static rt_status ones(uint16_t **out, int64_t n) {
    RT_TRY(rt_calloc(out, (size_t)n + 1, sizeof **out));
    for (int64_t i = 0; i < n; i++)
        (*out)[i] = 1;
    return RT_OK;
}

rt_status rt_eval_ranking(const double *score, const uint8_t *positive, int64_t n, rt_ranking *out) {
    rt_order o = {0};
    uint16_t *count = NULL;
    rt_status st = RT_OK;
    *out = undefined;
    if (rt_any_nan(score, n)) {
        out->reason = "a score is not a number";
        return RT_OK;
    }
    RT_TRY_GOTO(ones(&count, n));
    RT_TRY_GOTO(rt_order_init(&o, score, positive, n));
    *out = rt_order_ranking(&o, count);
done:
    rt_order_deinit(&o);
    rt_free(count);
    return st;
}

/* ---- curves ---- */

/* A point is kept when it is 1/100 of the whole way from (0, 0) to (1, 1), horizontal and vertical steps
 * added up, beyond the last one kept: at most 101 points, dense where the curve moves. */
rt_status rt_eval_roc(const double *score, const uint8_t *positive, int64_t n, rt_roc *out) {
    rt_order o;
    *out = (rt_roc){0};
    if (rt_any_nan(score, n))
        return RT_OK;
    RT_TRY(rt_order_init(&o, score, positive, n));
    int64_t positives = 0, tp = 0, fp = 0;
    for (int64_t i = 0; i < n; i++)
        positives += o.positive[i];
    const double np = (double)positives, nn = (double)(n - positives);
    if (positives > 0 && positives < n) {
        out->points = 1;
        for (int64_t i = 0; i < n; i++) {
            tp += o.positive[i];
            fp += !o.positive[i];
            const double x = (double)fp / nn, y = (double)tp / np;
            const int last = out->points - 1;
            const double way = (x - out->fpr[last]) + (y - out->tpr[last]);
            const bool end = i == n - 1;
            if (!end && (!o.last[i] || way < 2.0 / (RT_CURVE_POINTS - 1)))
                continue;
            const int at = end && last == RT_CURVE_POINTS - 1 ? last : out->points++;
            out->fpr[at] = x;
            out->tpr[at] = y;
        }
    }
    rt_order_deinit(&o);
    return RT_OK;
}

/* errors[j]: left after the first j rows of the order, exact at the ends of groups and linear between. */
static void errors_left(const rt_order *o, double *errors) {
    int64_t left = 0;
    for (int64_t i = 0; i < o->n; i++)
        left += o->positive[i];
    errors[0] = (double)left;
    for (int64_t first = 0, i = 0, pos = 0; i < o->n; i++) {
        pos += o->positive[i];
        if (!o->last[i])
            continue;
        const double slope = (double)pos / (double)(i + 1 - first);
        for (int64_t j = first; j <= i; j++)
            errors[j + 1] = (double)left - slope * (double)(j + 1 - first);
        left -= pos;
        errors[i + 1] = (double)left;
        first = i + 1;
        pos = 0;
    }
}

rt_status rt_eval_rejection(const double *score, const uint8_t *wrong, int64_t n,
                            double curve[RT_CURVE_POINTS]) {
    rt_order o = {0};
    double *errors = NULL;
    rt_status st = RT_OK;
    for (int i = 0; i < RT_CURVE_POINTS; i++)
        curve[i] = NAN;
    if (n < 1 || rt_any_nan(score, n))
        return RT_OK;
    RT_TRY_GOTO(rt_order_init(&o, score, wrong, n));
    RT_TRY_GOTO(rt_calloc(&errors, (size_t)n + 1, sizeof *errors));
    errors_left(&o, errors);
    for (int i = 0; i < RT_CURVE_POINTS; i++) {
        const double at = (double)i / (RT_CURVE_POINTS - 1) * (double)n;
        const int64_t j = RT_MIN((int64_t)at, n - 1);
        const double part = at - (double)j;
        curve[i] = ((1 - part) * errors[j] + part * errors[j + 1]) / (double)n;
    }
done:
    rt_order_deinit(&o);
    rt_free(errors);
    return st;
}

void rt_eval_rejection_limits(double error, double random[RT_CURVE_POINTS], double oracle[RT_CURVE_POINTS]) {
    for (int i = 0; i < RT_CURVE_POINTS; i++) {
        const double x = (double)i / (RT_CURVE_POINTS - 1);
        random[i] = error * (1 - x);
        oracle[i] = fmax(error - x, 0);
    }
}
