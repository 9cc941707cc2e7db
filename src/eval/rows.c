/*
 * rows.c - every row's contribution to every metric, computed once; then all metrics under integer weights
 * w of the rows:
 *
 *     MEAN, ROOT   sum w v / sum w, and its root                    v: a column of rt_rows.value
 *     ECE          sum_b |sum over rows of bin b of w (right - confidence)| / sum w
 *     BALANCED     mean over classes that have rows of sum w right / sum w
 *     PRR          ranking.c, by 1 - max p
 *     COVERAGE     mean over levels of |share of the rows inside the interval - level|
 *
 * Sums are double, in order of the rows. The inner loop of the means runs over the columns of one row, so
 * that a bootstrap draw reads its numbers once and in order.
 */
#include "base/alloc.h"
#include "base/size.h"
#include "eval/eval_int.h"
#include <math.h>

const char *const rt_reason_bad = "a prediction is not finite";
const char *const rt_reason_one_member = "needs at least two members";

rt_status rt_eval_check(const rt_eval_input *in) {
    RT_FAIL_IF(in->n < 1 || in->how.m < 1, RT_E_INPUT,
               "evaluation of %lld rows by %lld members, wanted at least one of each", (long long)in->n,
               (long long)in->how.m);
    if (rt_eval_regression(in))
        return RT_OK;
    RT_FAIL_IF(in->how.k < 1, RT_E_INPUT, "evaluation with %lld classes, wanted at least 1",
               (long long)in->how.k);
    for (int64_t i = 0; in->label && i < in->n; i++)
        RT_FAIL_IF(in->label[i] < 0 || in->label[i] >= in->how.k, RT_E_INPUT,
                   "evaluation: row %lld has label %d, the model has %lld classes", (long long)i,
                   (int)in->label[i], (long long)in->how.k);
    return RT_OK;
}

/* ---- contributions ---- */

static void set_gap(rt_rows *r, int which, int64_t i, const rt_row *row) {
    const double confidence = row->p[row->top];
    r->gap[which][i] = (row->top == r->in->label[i] ? 1 : 0) - confidence;
    r->bin[which][i] = (uint8_t)rt_ece_bin(confidence, RT_ECE_BINS);
}

/* What a row of classes adds to the metrics that need its label; tempers the row. plain: its outputs read as
 * logits. */
static void judge_class(rt_rows *r, rt_row *row, rt_row *plain, int64_t i, double *v) {
    const int32_t y = r->in->label[i];
    for (int64_t c = 0; c < r->in->how.k; c++) {
        /* 1 - p of a sure top class is better known as the sum of the others */
        const double d = c != y ? row->p[c] : c == row->top ? row->rest : 1 - row->p[c];
        v[RT_COL_BRIER] += d * d;
    }
    v[RT_COL_RIGHT] = row->top == y;
    set_gap(r, RT_GAP_PLAIN, i, row);
    if (r->gap[RT_GAP_SOFTMAX] && rt_row_read(plain, row->y)) {
        v[RT_COL_NLL_SOFTMAX] = rt_row_nll(plain, y);
        set_gap(r, RT_GAP_SOFTMAX, i, plain);
    }
    if (r->gap[RT_GAP_CALIBRATED]) {
        rt_row_temper(row, r->in->temperature);
        v[RT_COL_NLL_CALIBRATED] = rt_row_nll(row, y);
        set_gap(r, RT_GAP_CALIBRATED, i, row);
    }
}

static void judge_target(rt_rows *r, const rt_row *row, int64_t i, double *v) {
    const double y = (double)r->in->target[i], d = row->mean - y, far = 2 * fabs(rt_row_cdf(row, y) - 0.5);
    v[RT_COL_SQUARE] = d * d;
    int level = 0;
    while (level < RT_INTERVAL_LEVELS && !(far <= rt_interval_levels[level]))
        level++;
    r->level[i] = (uint8_t)level;
}

static bool labelled(const rt_eval_input *in) {
    return rt_eval_regression(in) ? in->target != NULL : in->label != NULL;
}

static void read_row(rt_rows *r, rt_row *row, rt_row *plain, int64_t i) {
    const rt_eval_input *in = r->in;
    const bool regression = rt_eval_regression(in);
    double *v = r->value + i * RT_COLS;
    v[RT_COL_TOTAL] = row->total;
    v[RT_COL_DATA] = row->data;
    v[RT_COL_KNOWLEDGE] = row->knowledge;
    v[RT_COL_EPKL] = row->epkl;
    v[RT_COL_DIFFERENTIAL_ENTROPY] = row->differential_entropy;
    v[RT_COL_DIVERSITY] = row->diversity;
    v[RT_COL_DISAGREEMENT] = row->disagreement;
    if (!labelled(in))
        return;
    v[RT_COL_NLL] = rt_row_nll(row, regression ? (double)in->target[i] : (double)in->label[i]);
    if (regression)
        judge_target(r, row, i, v);
    else
        judge_class(r, row, plain, i, v);
}

static rt_status read_rows(rt_rows *r, bool *bad) {
    const rt_eval_input *in = r->in;
    rt_row row = {0}, plain = {0};
    rt_reading logits = {.m = in->how.m, .k = in->how.k};
    double *unsure = NULL;
    uint8_t *wrong = NULL;
    rt_status st;
    RT_TRY_GOTO(rt_row_init(&row, in->how));
    RT_TRY_GOTO(rt_row_init(&plain, logits));
    RT_TRY_GOTO(rt_calloc(&unsure, (size_t)in->n, sizeof *unsure));
    RT_TRY_GOTO(rt_calloc(&wrong, (size_t)in->n, sizeof *wrong));
    for (int64_t i = 0; i < in->n && !*bad; i++) {
        *bad = !rt_row_read(&row, rt_eval_row(in, i));
        unsure[i] = row.rest;
        wrong[i] = in->label && row.top != in->label[i];
        if (!*bad)
            read_row(r, &row, &plain, i);
    }
    if (in->label && !rt_eval_regression(in) && !*bad)
        st = rt_order_init(&r->order, unsure, wrong, in->n);
done:
    rt_free(unsure);
    rt_free(wrong);
    rt_row_deinit(&row);
    rt_row_deinit(&plain);
    return st;
}

/* ---- which metrics are defined ---- */

static const char *why_not(const rt_rows *r, const rt_metric_info *info, rt_metric_kind kind, bool bad) {
    const rt_eval_input *in = r->in;
    if (info->regression != rt_eval_regression(in))
        return info->regression ? "for regression only" : "for classification only";
    if ((info->needs & RT_NEEDS_TEMPERATURE) && !(in->temperature > 0))
        return in->temperature_reason ? in->temperature_reason : "no validation rows";
    if ((info->needs & RT_NEEDS_LABEL) && !labelled(in))
        return "no labels";
    const char *lacks = rt_needs_why_not(info->needs, &in->how);
    return lacks ? lacks : bad && kind != RT_KIND_GIVEN ? rt_reason_bad : NULL;
}

static const char *why_no_ranking(const rt_rows *r) {
    int64_t wrong = 0;
    for (int64_t i = 0; i < r->order.n; i++)
        wrong += r->order.positive[i];
    return wrong == 0 ? "no errors" : wrong == r->order.n ? "nothing but errors" : NULL;
}

/* Counted, then dealt out: rows of a class keep their order. */
static rt_status order_by_class(rt_rows *r) {
    const rt_eval_input *in = r->in;
    int64_t *start = NULL;
    rt_status st;
    if (!in->label || rt_eval_regression(in))
        return RT_OK;
    RT_TRY_GOTO(rt_calloc(&r->by_class, (size_t)in->n, sizeof *r->by_class));
    RT_TRY_GOTO(rt_calloc(&start, (size_t)in->how.k + 1, sizeof *start));
    for (int64_t i = 0; i < in->n; i++)
        start[in->label[i] + 1]++;
    for (int64_t c = 0; c < in->how.k; c++)
        start[c + 1] += start[c];
    for (int64_t i = 0; i < in->n; i++)
        r->by_class[start[in->label[i]]++] = (int32_t)i;
done:
    rt_free(start);
    return st;
}

/* Which readings have an ECE. */
static rt_status make_gaps(rt_rows *r) {
    const rt_eval_input *in = r->in;
    const bool wanted[RT_GAPS] = {[RT_GAP_PLAIN] = true,
                                  [RT_GAP_CALIBRATED] = in->temperature > 0,
                                  [RT_GAP_SOFTMAX] = !rt_needs_why_not(RT_NEEDS_OFFSET, &in->how)};
    for (int c = 0; c < RT_GAPS; c++) {
        if (!wanted[c] || rt_eval_regression(in))
            continue;
        RT_TRY(rt_calloc(&r->gap[c], (size_t)in->n, sizeof *r->gap[c]));
        RT_TRY(rt_calloc(&r->bin[c], (size_t)in->n, sizeof *r->bin[c]));
    }
    return RT_OK;
}

rt_status rt_rows_init(rt_rows *r, const rt_eval_input *in) {
    const rt_metric_info *info;
    const int metrics = rt_metric_list(&info);
    bool bad = false;
    rt_status st;
    size_t values;
    *r = (rt_rows){.in = in, .n = in->n};
    RT_TRY(rt_eval_check(in));
    RT_FAIL_IF(!rt_size_mul((size_t)in->n, RT_COLS, &values), RT_E_MEMORY, "evaluation: too many rows");
    RT_TRY_GOTO(rt_calloc(&r->value, values, sizeof *r->value));
    RT_TRY_GOTO(rt_calloc(&r->level, (size_t)in->n, sizeof *r->level));
    RT_TRY_GOTO(make_gaps(r));
    RT_TRY_GOTO(order_by_class(r));
    RT_TRY_GOTO(read_rows(r, &bad));
    for (int i = 0; i < metrics; i++) {
        r->reason[i] = why_not(r, &info[i], rt_metric_defs[i].kind, bad);
        if (rt_metric_defs[i].kind == RT_KIND_PRR && !r->reason[i])
            r->reason[i] = why_no_ranking(r);
    }
done:
    if (st != RT_OK)
        rt_rows_deinit(r);
    return st;
}

void rt_rows_deinit(rt_rows *r) {
    rt_free(r->value);
    rt_free(r->level);
    rt_free(r->by_class);
    for (int c = 0; c < RT_GAPS; c++) {
        rt_free(r->gap[c]);
        rt_free(r->bin[c]);
    }
    rt_order_deinit(&r->order);
    *r = (rt_rows){0};
}

/* ---- statistics ---- */

static void sums(const rt_rows *r, const uint16_t *count, double out[RT_COLS], double *all) {
    double sum[RT_COLS] = {0};
    int64_t total = 0;
    for (int64_t i = 0; i < r->n; i++) {
        const double w = (double)count[i], *v = r->value + i * RT_COLS;
        total += count[i];
        for (int c = 0; c < RT_COLS; c++)
            sum[c] += w * v[c];
    }
    for (int c = 0; c < RT_COLS; c++)
        out[c] = sum[c];
    *all = (double)total;
}

static double ece(const rt_rows *r, int which, const uint16_t *count, double all) {
    double gap[RT_ECE_BINS] = {0}, sum = 0;
    for (int64_t i = 0; i < r->n; i++)
        gap[r->bin[which][i]] += (double)count[i] * r->gap[which][i];
    for (int b = 0; b < RT_ECE_BINS; b++)
        sum += fabs(gap[b]);
    return sum / all;
}

static double balanced(const rt_rows *r, const uint16_t *count) {
    double sum = 0, classes = 0, right = 0, rows = 0;
    for (int64_t i = 0; i < r->n; i++) {
        const int32_t row = r->by_class[i];
        right += (double)count[row] * r->value[row * RT_COLS + RT_COL_RIGHT];
        rows += count[row];
        if (i + 1 < r->n && r->in->label[r->by_class[i + 1]] == r->in->label[row])
            continue;
        sum += rows > 0 ? right / rows : 0; /* the last row of its class */
        classes += rows > 0;
        right = rows = 0;
    }
    return sum / classes;
}

static double interval_error(const rt_rows *r, const uint16_t *count, double all) {
    int64_t inside[RT_INTERVAL_LEVELS + 1] = {0}, so_far = 0;
    double sum = 0;
    for (int64_t i = 0; i < r->n; i++)
        inside[r->level[i]] += count[i];
    for (int l = 0; l < RT_INTERVAL_LEVELS; l++) {
        so_far += inside[l];
        sum += fabs((double)so_far / all - rt_interval_levels[l]);
    }
    return sum / RT_INTERVAL_LEVELS;
}

void rt_rows_metrics(const rt_rows *r, const uint16_t *count, double *values) {
    const rt_metric_info *info;
    const rt_metric_def *def = rt_metric_defs;
    const int metrics = rt_metric_list(&info);
    double sum[RT_COLS], all;
    sums(r, count, sum, &all);
    for (int i = 0; i < metrics; i++) {
        values[i] = NAN;
        if (r->reason[i])
            continue;
        switch (def[i].kind) {
        case RT_KIND_MEAN:
            values[i] = sum[def[i].of] / all;
            break;
        case RT_KIND_ROOT:
            values[i] = sqrt(sum[def[i].of] / all);
            break;
        case RT_KIND_ECE:
            values[i] = ece(r, def[i].of, count, all);
            break;
        case RT_KIND_BALANCED:
            values[i] = balanced(r, count);
            break;
        case RT_KIND_PRR:
            values[i] = rt_order_ranking(&r->order, count).prr;
            break;
        case RT_KIND_COVERAGE:
            values[i] = interval_error(r, count, all);
            break;
        case RT_KIND_GIVEN:
            values[i] = r->in->temperature;
            break;
        }
    }
}
