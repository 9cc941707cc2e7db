/*
 * eval.h - metrics of predictions: pure functions of arrays, double accumulation in a fixed order, names
 * and directions in metrics.def, per-row measures of uncertainty in measures.def.
 *
 * Classification: an ensemble is averaged in probability first. ECE: equal-width bins (lo, hi] on the
 * top-label confidence, 15 of them. Regression: the prediction is the equal-weight mixture of the members'
 * Gaussians, in the target's own units.
 *
 * One row is read by rt_row_read: trainer, search, averaging, assessments, `predict` and the sessions of
 * retort.h all call it, so a number means the same in each of them.
 *
 * Nothing is undefined in silence: a NaN comes with a reason, a static text. Uncertainties are in nats.
 * The order of use: rt_eval_temperature on the validation rows, rt_eval_all (and rt_eval_bootstrap) on the
 * test rows, rt_eval_measures on every set, then ranking and curves of the measures.
 */
#ifndef RT_EVAL_EVAL_H
#define RT_EVAL_EVAL_H

#include "base/pool.h"
#include "eval/warp.h"
#include "tensor/tensor.h"

enum { RT_ECE_BINS = 15, RT_CURVE_POINTS = 101, RT_METRICS_MAX = 32, RT_MEASURES_MAX = 12 };

/* ---- one prediction: what the outputs of a model mean is said here and nowhere else ---- */

/* What a member gives: logits; those of a Dirichlet, alpha = e^z + offset; mean and variance of the target, or
 * of what `warp` makes of it. */
typedef enum rt_output_kind { RT_OUTPUT_LOGITS, RT_OUTPUT_DIRICHLET, RT_OUTPUT_GAUSSIAN } rt_output_kind;

typedef struct rt_reading {
    rt_output_kind kind;
    int64_t m, k;              /* members, outputs of each: classes, or 2 */
    double offset;             /* of Dirichlets */
    double temperature;        /* tau > 0: the mean prediction is softmax(ln p / tau); 0: as it is */
    double member_temperature; /* > 0: that of every member's logits, before the mean; 0: 1 */
    const rt_warp *warp; /* of Gaussians: they are of this transform of the target; NULL: of the target */
} rt_reading;
bool rt_reading_knows(const rt_reading *how); /* members or Dirichlets: knowledge uncertainty is defined */

/* Uncertainties are those of the members as they are, total = data + knowledge, in nats or squared units of
 * the target; a temperature changes p, ln p, rest and the likelihood. */
typedef struct rt_row {
    rt_reading how;
    const float *y;                       /* (m, k) what was read */
    double *p, *ln_p;                     /* (k) mean prediction */
    double *member_p, *member_ln, *alpha; /* (m, k); alpha: of Dirichlets */
    int64_t top;                          /* first of the largest p */
    double rest;                          /* 1 - p[top], without cancellation */
    double mean;                          /* of Gaussians, in the target's own units */
    double centre, spread; /* mean and variance of the mixture as the members say it, before warp^-1 */
    double total, data, knowledge; /* uncertainty */
    double epkl, diversity, disagreement, differential_entropy;
    double *mean_ln; /* (m, k) Dirichlets: E ln p */
    int32_t *votes;  /* (k) members for a class */
    void *block;
} rt_row;
rt_status rt_row_init(rt_row *r, rt_reading how) RT_MUST_CHECK;
void rt_row_deinit(rt_row *r);
/* Reads outputs (m, k); false: one is not finite, or a variance not above zero, and nothing else in r means
 * anything. Allocates nothing. */
bool rt_row_read(rt_row *r, const float *y);
/* -ln of the probability of a class, or of the density at a target: exact, from the logits. */
double rt_row_nll(const rt_row *r, double truth);
/* The same of one Gaussian of the transformed target, without a network. */
double rt_gaussian_nll(double mean, double variance, const rt_warp *warp, double y);
/* softmax(ln p / tau) in the place of p. */
void rt_row_temper(rt_row *r, double tau);
/* ln alpha: softmax of these is the mean of the Dirichlet. */
float rt_dirichlet_logit(float z, double offset);

/* -ln(e^-sum + e^-nll); a sum of nothing is INFINITY. */
double rt_mixture_add(double sum, double nll);
/* Mean over n rows of the NLL of a mixture: so many members, whose sums these are, and one more. */
double rt_mixture_nll(const double *sum, int64_t members, const double *nll, int64_t n);

/* ---- many of them ---- */

typedef struct rt_eval_input {
    rt_reading how;
    int64_t n;
    const float *y;                 /* (n, m, k) */
    const int32_t *label;           /* NULL: metrics that need labels are undefined */
    const float *target;            /* NULL: likewise */
    double temperature;             /* of rt_eval_temperature; 0 or NaN: there is none */
    const char *temperature_reason; /* why not; NULL: "no validation rows" */
} rt_eval_input;
bool rt_eval_regression(const rt_eval_input *in);

/* Rows with an infinite or undefined prediction. rt_eval_all reports NaN, with a reason, if there is one. */
int64_t rt_eval_bad_rows(const rt_eval_input *in);
/* The predicted class of each row; ties go to the lower class. -1: the prediction is not finite. */
rt_status rt_eval_classes(const rt_eval_input *in, int32_t *out) RT_MUST_CHECK; // (n)

/* ---- all metrics at once ---- */

/* What must be there for a metric or a measure to be defined. */
enum {
    RT_NEEDS_NOTHING = 0,
    RT_NEEDS_LABEL = 1,
    RT_NEEDS_TEMPERATURE = 2,
    RT_NEEDS_KNOWLEDGE = 4,  /* two members, or a Dirichlet */
    RT_NEEDS_MEMBERS = 8,    /* two of them */
    RT_NEEDS_DIRICHLET = 16, /* one of them */
    RT_NEEDS_OFFSET = 32,    /* Dirichlets whose mean is not the softmax of their logits */
};
/* Why predictions of this kind lack it; NULL: they do not (labels and temperature are no question of kind). */
const char *rt_needs_why_not(int needs, const rt_reading *how);

typedef struct rt_metric_info {
    const char *name, *title, *heading, *meaning; /* title: short, for tables; heading: for a page */
    int better;                                   /* 1: more, -1: less, 0: neither */
    bool regression;
    int needs;
    bool usual;    /* a column of the first table, unless others are asked for */
    bool followed; /* under shift and corruption */
} rt_metric_info;
int rt_metric_list(const rt_metric_info **out); /* at most RT_METRICS_MAX */
/* Index of a metric of the task in that list, -1: there is none of this name. */
int rt_metric_find(const char *name, bool regression);

/* All metrics of metrics.def, in the order of rt_metric_list; NaN where not defined, with a reason
 * (static text). reasons may be NULL. */
rt_status rt_eval_all(const rt_eval_input *in, double *values, const char **reasons) RT_MUST_CHECK;

typedef struct rt_bootstrap {
    int draws;     /* 0: 1000 */
    double level;  /* 0: 0.95 */
    uint64_t seed; /* draws are functions of (seed, draw): same intervals whatever the threads */
    rt_pool *pool; /* NULL: the calling thread */
} rt_bootstrap;
typedef struct rt_interval {
    double lo, hi; /* both NaN: undefined, because the metric is, or was in most draws, or is no statistic
                    * of these rows (the temperature) */
} rt_interval;
/* Percentile intervals of all metrics, in the order of rt_metric_list: rows are drawn with replacement. */
rt_status rt_eval_bootstrap(const rt_eval_input *in, rt_bootstrap options, rt_interval *out) RT_MUST_CHECK;

/* ---- uncertainty of each row ---- */

typedef struct rt_measure_info {
    const char *name, *meaning;
    bool regression;
    bool certainty; /* people read and write 1 - value, and reject rows below it */
    int needs;
} rt_measure_info;
int rt_measure_list(const rt_measure_info **out);       /* at most RT_MEASURES_MAX */
int rt_measure_find(const char *name, bool regression); /* -1: none */
double rt_measure_of(int measure, const rt_row *r);
double rt_measure_shown(int measure, double value); /* as people read it; also back again */
/* All measures of measures.def, out (measures of the list, n); larger is less certain, "confidence" is 1 -
 * max p. reasons[i] != NULL: measure i is not defined for this input (one member, the other task, a
 * prediction that is not finite) and its row of out is NaN. Needs no labels. */
rt_status rt_eval_measures(const rt_eval_input *in, double *out, const char **reasons) RT_MUST_CHECK;

/* ---- calibration ---- */

/* tau minimising the NLL of softmax(ln p / tau) on these (validation) rows, within e^-4 .. e^4; NaN with a
 * reason if there are none. */
rt_status rt_eval_temperature(const rt_eval_input *valid, double *tau, const char **reason) RT_MUST_CHECK;
/* The same for the mean of softmax(z_m / tau) over members of logits z_m. */
rt_status rt_eval_member_temperature(const rt_eval_input *valid, double *tau,
                                     const char **reason) RT_MUST_CHECK;

typedef struct rt_reliability {
    double confidence[RT_ECE_BINS], accuracy[RT_ECE_BINS]; /* means; NaN where the count is 0 */
    int64_t count[RT_ECE_BINS];
} rt_reliability;
rt_status rt_eval_reliability(const rt_eval_input *in, rt_reliability *out) RT_MUST_CHECK;

/* ---- class by class (classes.c) ---- */

typedef struct rt_class_stats {
    int64_t rows, predicted; /* rows of the class, and those called so */
    double recall, precision, confidence,
        ece; /* the last three of what is called so; NaN where there is nothing */
} rt_class_stats;
/* out (k); confusion (k, k), rows by their class, columns by the predicted one, may be NULL. */
rt_status rt_eval_per_class(const rt_eval_input *in, rt_class_stats *out, int64_t *confusion) RT_MUST_CHECK;

/* ---- ranking by a score: misclassified rows or foreign ones (positive) should score high ---- */

typedef struct rt_ranking {
    double auroc, aupr, prr; /* prr = 2 auroc - 1, by its own definition; all NaN with a reason */
    const char *reason;      /* "no positive rows", "no negative rows", "a score is not a number" */
} rt_ranking;
rt_status rt_eval_ranking(const double *score, const uint8_t *positive, int64_t n,
                          rt_ranking *out) RT_MUST_CHECK;

typedef struct rt_ranking_interval {
    rt_interval auroc, aupr, prr;
} rt_ranking_interval;
/* For several scores (nscores, n) of the same rows. two_samples: positive and negative rows are drawn
 * apart, as for two data sets; otherwise together. */
rt_status rt_eval_ranking_bootstrap(const double *score, int nscores, const uint8_t *positive, int64_t n,
                                    bool two_samples, rt_bootstrap options,
                                    rt_ranking_interval *out) RT_MUST_CHECK;

typedef struct rt_roc {
    int points; /* 0: undefined; else from (0, 0) to (1, 1), at most RT_CURVE_POINTS */
    double fpr[RT_CURVE_POINTS], tpr[RT_CURVE_POINTS];
} rt_roc;
rt_status rt_eval_roc(const double *score, const uint8_t *positive, int64_t n, rt_roc *out) RT_MUST_CHECK;

/* Errors left / n after the share i/100 of the rows with the highest score was answered by an oracle, i =
 * 0..100; NaN if a score is not a number. */
rt_status rt_eval_rejection(const double *score, const uint8_t *wrong, int64_t n,
                            double curve[RT_CURVE_POINTS]) RT_MUST_CHECK;
/* The same for rows in random order and in the best, given the share of errors. */
void rt_eval_rejection_limits(double error, double random[RT_CURVE_POINTS], double oracle[RT_CURVE_POINTS]);

/* Counts in [edge_b, edge_b+1); what lies outside falls into the end bins, NaN nowhere. */
void rt_eval_histogram(const double *x, int64_t n, const double *edges, int bins, int64_t *count);

/* ---- against a teacher: two predictors of the same rows ---- */

typedef struct rt_agreement {
    double kl;                 /* mean KL(teacher || student) of the mean predictions; regression: of
                                           * Gaussians with the mixtures' means and variances */
    double entropy_difference; /* mean |difference|; regression: of total variance */
    double mutual_information_difference; /* mean |difference|; regression: of knowledge variance */
    double agreement;                     /* share of rows of equal class */
    const char *kl_reason, *entropy_difference_reason, *mutual_information_difference_reason;
    const char *agreement_reason; /* each non-NULL where the number is NaN */
} rt_agreement;
rt_status rt_eval_agreement(const rt_eval_input *student, const rt_eval_input *teacher,
                            rt_agreement *out) RT_MUST_CHECK;

/* ---- regression: central intervals of the mixture ---- */

enum { RT_INTERVAL_LEVELS = 10 };
extern const double rt_interval_levels[RT_INTERVAL_LEVELS]; /* .1, .2, ... .9, .95 */
/* Share of the targets inside the central interval of each level, by the mixture's distribution function. */
rt_status rt_eval_coverage(const rt_eval_input *in, const double *level, int levels,
                           double *coverage) RT_MUST_CHECK;

#endif
