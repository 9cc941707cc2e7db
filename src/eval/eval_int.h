/*
 * eval_int.h - what the files of eval share: one row of a prediction in double (row.c, row_gauss.c), all rows
 * as columns of contributions (rows.c), and an order of rows by a score (ranking.c).
 *
 * A metric is a statistic of the rows under integer weights: all one for its value, how often each row was
 * drawn for a bootstrap draw. So value and interval come from the same code.
 */
#ifndef RT_EVAL_EVAL_INT_H
#define RT_EVAL_EVAL_INT_H

#include "eval/eval.h"

/* ---- one row ---- */

typedef struct rt_row {
    double *p, *ln_p;             /* (k) the mean prediction */
    double *member_p, *member_ln; /* (m, k) */
    double *mean_ln;              /* (m, k) Dirichlet: E ln p */
    int32_t *votes;               /* (k) members for a class */
    int64_t top;                  /* first of the largest p */
    double rest;                  /* 1 - p[top], without cancellation */
    double entropy, expected_entropy, information, epkl, diversity, disagreement;
    void *block;
} rt_row;
rt_status rt_row_init(rt_row *r, const rt_eval_input *in) RT_MUST_CHECK;
void rt_row_deinit(rt_row *r);
/* Row i; false: a logit is not finite, and nothing else in r means anything. */
bool rt_row_read(rt_row *r, const rt_eval_input *in, int64_t i);

typedef struct rt_gauss_row {
    double mean, total, data, knowledge; /* of the mixture; total = data + knowledge */
} rt_gauss_row;
bool rt_gauss_row_read(rt_gauss_row *r, const rt_eval_input *in, int64_t i);
double rt_gauss_row_nll(const rt_eval_input *in, int64_t i);
/* Distribution function of the mixture at the target. */
double rt_gauss_row_cdf(const rt_eval_input *in, int64_t i);

extern const double rt_nll_max; /* -ln 1e-12: what a probability of 0 costs */
extern const char *const rt_reason_bad, *const rt_reason_one_member;
int rt_ece_bin(double confidence, int bins);
/* Mean and variance of a Dirichlet's logarithms: pi, ln pi and E ln p, (k) each. */
rt_dirichlet rt_dirichlet_row(const float *z, int64_t k, double offset, double *pi, double *ln_pi,
                              double *mean_ln);
rt_status rt_eval_check(const rt_eval_input *in) RT_MUST_CHECK;
bool rt_eval_knows(const rt_eval_input *in); /* members or Dirichlet: knowledge uncertainty is defined */

/* ---- rows in order of a score ---- */

typedef struct rt_order {
    int64_t n;
    int32_t *row;      /* decreasing score; equal ones by number */
    uint8_t *positive; /* of these rows */
    uint8_t *last;     /* the last one of its score */
} rt_order;
/* Scores must be numbers. */
rt_status rt_order_init(rt_order *o, const double *score, const uint8_t *positive, int64_t n) RT_MUST_CHECK;
void rt_order_deinit(rt_order *o);
/* Row i counts count[i] times. */
rt_ranking rt_order_ranking(const rt_order *o, const uint16_t *count);

/* ---- all rows ---- */

enum {
    RT_COL_RIGHT,
    RT_COL_NLL,
    RT_COL_BRIER,
    RT_COL_NLL_CALIBRATED,
    RT_COL_ENTROPY,
    RT_COL_EXPECTED_ENTROPY,
    RT_COL_INFORMATION,
    RT_COL_EPKL,
    RT_COL_DIVERSITY,
    RT_COL_DISAGREEMENT,
    RT_COLS = 10
};
enum {
    RT_COL_GAUSSIAN_NLL,
    RT_COL_SQUARE,
    RT_COL_TOTAL_VARIANCE,
    RT_COL_DATA_VARIANCE,
    RT_COL_KNOWLEDGE_VARIANCE
};

typedef struct rt_rows {
    const rt_eval_input *in;
    int64_t n;
    double *value;                      /* (n, RT_COLS) what a row adds to the means; 0 where undefined */
    double *gap[2];                     /* right - confidence: plain, calibrated; NULL: undefined */
    uint8_t *bin[2];                    /* of the confidence */
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
    RT_KIND_COVERAGE,
    RT_KIND_GIVEN,
} rt_metric_kind;
typedef struct rt_metric_def {
    rt_metric_info info;
    rt_metric_kind kind;
    int of;
} rt_metric_def;
int rt_metric_defs(const rt_metric_def **out);

#endif
