/*
 * rows.c - every row's contribution to every metric, computed once; then all metrics under integer weights
 * w of the rows:
 *
 *     MEAN, ROOT   sum w v / sum w, and its root                    v: a column of rt_rows.value
 *     ECE          sum_b |sum over rows of bin b of w (right - confidence)| / sum w
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

const double rt_nll_max = 27.631021115928547; /* a confident mistake costs this much: p is floored at 1e-12 */
const char *const rt_reason_bad = "a prediction is not finite";
const char *const rt_reason_one_member = "needs at least two members";

rt_status rt_eval_check(const rt_eval_input *in) {
    RT_FAIL_IF(in->n < 1 || in->m < 1, RT_E_INPUT,
               "evaluation of %lld rows by %lld members, wanted at least one of each", (long long)in->n,
               (long long)in->m);
    if (in->regression)
        return RT_OK;
    RT_FAIL_IF(in->k < 1, RT_E_INPUT, "evaluation with %lld classes, wanted at least 1", (long long)in->k);
    for (int64_t i = 0; in->label && i < in->n; i++)
        RT_FAIL_IF(in->label[i] < 0 || in->label[i] >= in->k, RT_E_INPUT,
                   "evaluation: row %lld has label %d, the model has %lld classes", (long long)i,
                   (int)in->label[i], (long long)in->k);
    return RT_OK;
}

bool rt_eval_knows(const rt_eval_input *in) {
    return in->m > 1 || (in->dirichlet && !in->regression);
}

/* ---- contributions ---- */

static void set_gap(rt_rows *r, int which, int64_t i, double confidence, bool right) {
    r->gap[which][i] = (right ? 1 : 0) - confidence;
    r->bin[which][i] = (uint8_t)rt_ece_bin(confidence, RT_ECE_BINS);
}

/* softmax(ln p / tau): the top class stays, its probability is 1 / sum_c e^((ln p_c - ln p_top) / tau). */
static void calibrate(rt_rows *r, const rt_row *row, int64_t i, double *v) {
    const rt_eval_input *in = r->in;
    const int32_t y = in->label[i];
    const double b = 1 / in->temperature, top = row->ln_p[row->top];
    double sum = 0;
    for (int64_t c = 0; c < in->k; c++)
        sum += exp(b * (row->ln_p[c] - top));
    v[RT_COL_NLL_CALIBRATED] = RT_MIN(log(sum) - b * (row->ln_p[y] - top), rt_nll_max);
    set_gap(r, 1, i, 1 / sum, row->top == y);
}

static void judge(rt_rows *r, const rt_row *row, int64_t i, double *v) {
    const int32_t y = r->in->label[i];
    double brier = 0;
    for (int64_t c = 0; c < r->in->k; c++) {
        /* 1 - p of a sure top class is better known as the sum of the others */
        const double d = c != y ? row->p[c] : c == row->top ? row->rest : 1 - row->p[c];
        brier += d * d;
    }
    v[RT_COL_RIGHT] = row->top == y;
    v[RT_COL_NLL] = RT_MIN(-row->ln_p[y], rt_nll_max);
    v[RT_COL_BRIER] = brier;
    set_gap(r, 0, i, row->p[row->top], row->top == y);
    if (r->gap[1])
        calibrate(r, row, i, v);
}

static rt_status read_classes(rt_rows *r, bool *bad) {
    const rt_eval_input *in = r->in;
    rt_row row = {0};
    double *unsure = NULL;
    uint8_t *wrong = NULL;
    rt_status st;
    RT_TRY_GOTO(rt_row_init(&row, in));
    RT_TRY_GOTO(rt_calloc(&unsure, (size_t)in->n, sizeof *unsure));
    RT_TRY_GOTO(rt_calloc(&wrong, (size_t)in->n, sizeof *wrong));
    for (int64_t i = 0; i < in->n && !*bad; i++) {
        double *v = r->value + i * RT_COLS;
        *bad = !rt_row_read(&row, in, i);
        if (*bad)
            break;
        v[RT_COL_ENTROPY] = row.entropy;
        v[RT_COL_EXPECTED_ENTROPY] = row.expected_entropy;
        v[RT_COL_INFORMATION] = row.information;
        v[RT_COL_EPKL] = row.epkl;
        v[RT_COL_DIVERSITY] = row.diversity;
        v[RT_COL_DISAGREEMENT] = row.disagreement;
        unsure[i] = row.rest;
        wrong[i] = in->label && row.top != in->label[i];
        if (in->label)
            judge(r, &row, i, v);
    }
    if (in->label && !*bad)
        st = rt_order_init(&r->order, unsure, wrong, in->n);
done:
    rt_free(unsure);
    rt_free(wrong);
    rt_row_deinit(&row);
    return st;
}

static void read_gaussians(rt_rows *r, bool *bad) {
    const rt_eval_input *in = r->in;
    for (int64_t i = 0; i < in->n; i++) {
        double *v = r->value + i * RT_COLS;
        rt_gauss_row row;
        *bad = !rt_gauss_row_read(&row, in, i);
        if (*bad)
            return;
        v[RT_COL_TOTAL_VARIANCE] = row.total;
        v[RT_COL_DATA_VARIANCE] = row.data;
        v[RT_COL_KNOWLEDGE_VARIANCE] = row.knowledge;
        if (!in->target)
            continue;
        const double d = row.mean - (double)in->target[i], far = 2 * fabs(rt_gauss_row_cdf(in, i) - 0.5);
        v[RT_COL_GAUSSIAN_NLL] = rt_gauss_row_nll(in, i);
        v[RT_COL_SQUARE] = d * d;
        int level = 0;
        while (level < RT_INTERVAL_LEVELS && !(far <= rt_interval_levels[level]))
            level++;
        r->level[i] = (uint8_t)level;
    }
}

/* ---- which metrics are defined ---- */

static bool needs_label(const rt_metric_def *d) {
    if (d->kind != RT_KIND_MEAN)
        return d->kind != RT_KIND_GIVEN;
    return d->info.regression ? d->of == RT_COL_GAUSSIAN_NLL
                              : d->of == RT_COL_RIGHT || d->of == RT_COL_NLL || d->of == RT_COL_BRIER ||
                                    d->of == RT_COL_NLL_CALIBRATED;
}

static bool needs_temperature(const rt_metric_def *d) {
    return !d->info.regression && (d->kind == RT_KIND_GIVEN || (d->kind == RT_KIND_ECE && d->of == 1) ||
                                   (d->kind == RT_KIND_MEAN && d->of == RT_COL_NLL_CALIBRATED));
}

static bool needs_knowledge(const rt_metric_def *d) {
    return d->kind == RT_KIND_MEAN &&
           (d->info.regression ? d->of == RT_COL_KNOWLEDGE_VARIANCE
                               : d->of == RT_COL_INFORMATION || d->of == RT_COL_EPKL);
}

static bool needs_members(const rt_metric_def *d) {
    return !d->info.regression && d->kind == RT_KIND_MEAN &&
           (d->of == RT_COL_DIVERSITY || d->of == RT_COL_DISAGREEMENT);
}

static const char *why_not(const rt_rows *r, const rt_metric_def *d, bool bad) {
    const rt_eval_input *in = r->in;
    const bool labelled = in->regression ? in->target != NULL : in->label != NULL;
    if (d->info.regression != in->regression)
        return d->info.regression ? "for regression only" : "for classification only";
    if (needs_temperature(d) && !(in->temperature > 0))
        return in->temperature_reason ? in->temperature_reason : "no validation rows";
    if (needs_label(d) && !labelled)
        return "no labels";
    if ((needs_knowledge(d) && !rt_eval_knows(in)) || (needs_members(d) && in->m < 2))
        return rt_reason_one_member;
    return bad && d->kind != RT_KIND_GIVEN ? rt_reason_bad : NULL;
}

static const char *why_no_ranking(const rt_rows *r) {
    int64_t wrong = 0;
    for (int64_t i = 0; i < r->order.n; i++)
        wrong += r->order.positive[i];
    return wrong == 0 ? "no errors" : wrong == r->order.n ? "nothing but errors" : NULL;
}

rt_status rt_rows_init(rt_rows *r, const rt_eval_input *in) {
    const rt_metric_def *def;
    const int metrics = rt_metric_defs(&def);
    bool bad = false;
    rt_status st;
    size_t values;
    *r = (rt_rows){.in = in, .n = in->n};
    RT_TRY(rt_eval_check(in));
    RT_FAIL_IF(!rt_size_mul((size_t)in->n, RT_COLS, &values), RT_E_MEMORY, "evaluation: too many rows");
    RT_TRY_GOTO(rt_calloc(&r->value, values, sizeof *r->value));
    if (in->regression) {
        RT_TRY_GOTO(rt_calloc(&r->level, (size_t)in->n, sizeof *r->level));
        read_gaussians(r, &bad);
    } else {
        for (int c = 0; c < (in->temperature > 0 ? 2 : 1); c++) {
            RT_TRY_GOTO(rt_calloc(&r->gap[c], (size_t)in->n, sizeof *r->gap[c]));
            RT_TRY_GOTO(rt_calloc(&r->bin[c], (size_t)in->n, sizeof *r->bin[c]));
        }
        RT_TRY_GOTO(read_classes(r, &bad));
    }
    for (int i = 0; i < metrics; i++) {
        r->reason[i] = why_not(r, &def[i], bad);
        if (def[i].kind == RT_KIND_PRR && !r->reason[i])
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
    for (int c = 0; c < 2; c++) {
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
    const rt_metric_def *def;
    const int metrics = rt_metric_defs(&def);
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
