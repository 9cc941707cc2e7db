/*
 * decision.h - what to do with a prediction: answer it or leave it to a person, which classes to name, which
 * interval. Fitted on rows that the model has not seen (`retort calibrate`), stored in the model, and applied to
 * a row that was read (rt_row_read) wherever predictions are made.
 */
#ifndef RT_EVAL_DECISION_H
#define RT_EVAL_DECISION_H

#include "eval/eval.h"

typedef enum rt_conformal {
    RT_CONFORMAL_NONE,
    RT_CONFORMAL_LAC,
    RT_CONFORMAL_APS,
    RT_CONFORMAL_INTERVAL
} rt_conformal;
const char *rt_conformal_name(rt_conformal c);
rt_conformal rt_conformal_find(const char *name); /* NONE if there is none of that name */

typedef struct rt_decision {
    double temperature; /* of the mean, or of each member; 0: none */
    bool of_members;
    int measure; /* rejected where this measure of uncertainty is above the threshold; -1: never */
    double threshold;
    rt_conformal conformal;
    double alpha,
        quantile; /* sets and intervals miss the truth in at most alpha of rows; infinite: all classes */
} rt_decision;

bool rt_decision_rejects(const rt_decision *d, const rt_row *r);
/* Is class c in the set of the row? */
bool rt_decision_contains(const rt_decision *d, const rt_row *r, int64_t c);
/* The interval of a regression: centre -+ quantile sqrt(spread), in the target's own units. */
void rt_decision_interval(const rt_decision *d, const rt_row *r, double *lower, double *upper);

/* ---- fitting ---- */

/* How badly the truth fits the row: LAC 1 - p_y, APS the probability of the classes down to y, INTERVAL
 * |y - centre| / sqrt(spread). Large is bad. */
double rt_conformal_score(rt_conformal c, const rt_row *r, double truth);
/* The ceil((n + 1)(1 - alpha))-th smallest of the scores, infinite if there is none: rows drawn like these
 * score at most this with probability 1 - alpha or more (Vovk). Sorts. */
double rt_conformal_quantile(double *score, int64_t n, double alpha);
/* The threshold below or at which a share of at least `coverage` of rows drawn like these falls, likewise. Sorts. */
double rt_reject_by_coverage(double *measure, int64_t n, double coverage);
/* The largest share of rows that can be answered so that, with probability 1 - delta, their risk is at most
 * `risk` (Geifman and El-Yaniv 2017): bisection over thresholds, each tested with delta / steps. False: no threshold
 * passes, the rows are too few or the model too bad. order: scratch (n). */
bool rt_reject_by_risk(const double *measure, const uint8_t *wrong, int64_t n, double risk, double delta,
                       int64_t *order, double *threshold);
/* Clopper and Pearson's one-sided bounds of a share, k of n, at level 1 - delta. */
double rt_binomial_upper(int64_t k, int64_t n, double delta);
double rt_binomial_lower(int64_t k, int64_t n, double delta);

#endif
