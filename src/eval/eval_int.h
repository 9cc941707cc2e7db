/*
 * eval_int.h - what the files of eval share: the parts of a row (row.c, dirichlet.c, regression.c), all rows
 * as columns of contributions (rows.c), and an order of rows by a score (ranking.c).
 *
 * A metric is a statistic of the rows under integer weights: all one for its value, how often each row was
 * drawn for a bootstrap draw. So value and interval come from the same code.
 */
#ifndef RT_EVAL_EVAL_INT_H
#define RT_EVAL_EVAL_INT_H

#include "eval/eval.h"

/* ---- parts of a row ---- */

bool rt_row_read_gaussians(rt_row *r);
double rt_row_gaussian_nll(const rt_row *r, double y);
/* Distribution function of the mixture at the target. */
double rt_row_cdf(const rt_row *r, double y);
/* Member j as a Dirichlet: alpha, pi, ln pi and E ln p go to the row's places for it. */
typedef struct rt_dirichlet {
    double knowledge, epkl, differential_entropy;
} rt_dirichlet;
rt_dirichlet rt_row_read_dirichlet(rt_row *r, int64_t j);

int rt_by_size(const void *a, const void *b); /* of doubles, for qsort */
extern const char *const rt_reason_bad, *const rt_reason_one_member;
int rt_ece_bin(double confidence, int bins);
rt_status rt_eval_check(const rt_eval_input *in) RT_MUST_CHECK;
/* Outputs of row i. */
static inline const float *rt_eval_row(const rt_eval_input *in, int64_t i) {
    return in->y + i * in->how.m * in->how.k;
}

/* ---- rows in order of a score ---- */

typedef struct rt_order {
    int64_t n;
    int32_t *row;      /* decreasing score; equal ones by number */
    uint8_t *positive; /* of these rows */
    uint8_t *last;     /* the last one of its score */
} rt_order;
bool rt_any_nan(const double *score, int64_t n);
/* Scores must be numbers. */
rt_status rt_order_init(rt_order *o, const double *score, const uint8_t *positive, int64_t n) RT_MUST_CHECK;
void rt_order_deinit(rt_order *o);
/* Row i counts count[i] times. */
rt_ranking rt_order_ranking(const rt_order *o, const uint16_t *count);

/* ---- all rows ---- */

enum {
    RT_COL_RIGHT,
    RT_COL_NLL, /* of either task */
    RT_COL_BRIER,
    RT_COL_SQUARE,
    RT_COL_NLL_CALIBRATED,
    RT_COL_NLL_SOFTMAX,
    RT_COL_TOTAL, /* uncertainty, of either task */
    RT_COL_DATA,
    RT_COL_KNOWLEDGE,
    RT_COL_EPKL,
    RT_COL_DIFFERENTIAL_ENTROPY,
    RT_COL_DIVERSITY,
    RT_COL_DISAGREEMENT,
    RT_COLS
};
enum { RT_GAP_PLAIN, RT_GAP_CALIBRATED, RT_GAP_SOFTMAX, RT_GAPS }; /* readings of which there is an ECE */

typedef struct rt_rows {
    const rt_eval_input *in;
    int64_t n;
    double *value;                      /* (n, RT_COLS) what a row adds to the means; 0 where undefined */
    double *gap[RT_GAPS];               /* right - confidence; NULL: undefined */
    uint8_t *bin[RT_GAPS];              /* of the confidence */
    int32_t *by_class;                  /* rows in order of their labels; NULL: there are none */
    uint8_t *level;                     /* regression: the first central interval with the target inside */
    rt_order order;                     /* by 1 - max p; positive: wrong */
    const char *reason[RT_METRICS_MAX]; /* why a metric is not defined for these rows */
} rt_rows;
rt_status rt_rows_init(rt_rows *r, const rt_eval_input *in) RT_MUST_CHECK;
void rt_rows_deinit(rt_rows *r);
/* All metrics of the list; NaN where a reason is set, or where these counts leave one undefined. */
void rt_rows_metrics(const rt_rows *r, const uint16_t *count, double *values);

/* ---- the table ---- */

typedef enum rt_metric_kind {
    RT_KIND_MEAN,
    RT_KIND_ROOT,
    RT_KIND_ECE,
    RT_KIND_PRR,
    RT_KIND_BALANCED,
    RT_KIND_COVERAGE,
    RT_KIND_GIVEN,
} rt_metric_kind;
typedef struct rt_metric_def {
    rt_metric_kind kind;
    int of;
} rt_metric_def;
extern const rt_metric_def rt_metric_defs[]; /* in the order of rt_metric_list */

#endif
