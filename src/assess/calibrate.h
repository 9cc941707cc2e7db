/*
 * calibrate.h - the verb `calibrate`: temperature, reject threshold and conformal rule of a run, fitted on rows it
 * has not seen and stored in its model.
 */
#ifndef RT_ASSESS_CALIBRATE_H
#define RT_ASSESS_CALIBRATE_H

#include "base/json.h"
#include "config/config.h"
#include "model/model.h"
#include "model/run.h"
#include "train/train.h"

typedef struct rt_calibrate_options {
    const char *run;
    const char *data;        /* NULL: the rows the run held out; else the test part of this SPEC */
    const char *temperature; /* "mean", "members", "none"; NULL: mean */
    const char *reject;      /* "coverage=0.95", "risk=0.01", "ood=0.05"; NULL: no rule */
    const char *measure;     /* NULL: entropy, or total_variance */
    const char *conformal;   /* "alpha=0.1", "alpha=0.1,aps"; NULL: no rule */
    const char *ood;         /* "NAME=SPEC" of foreign rows; the share that is rejected is reported */
    double delta;            /* of the bound of risk; 0: 0.05 */
    uint64_t seed;           /* of the halves */
    bool dry;                /* store nothing */
    rt_pool *pool;
    const volatile sig_atomic_t *stop;
} rt_calibrate_options;

typedef struct rt_calibration {
    rt_decision decision;
    int members;
    const char *rule;                  /* of rejection, as given */
    const char *rows_from;             /* "held-out rows" or "rows of --data" */
    int64_t rows;                      /* of all */
    int64_t fit_rows;                  /* of the temperature */
    int64_t rule_rows;                 /* of threshold and quantile */
    double nll_before, nll_after;      /* of rule_rows, classification */
    double coverage, risk, risk_bound; /* of the reject rule on rule_rows; NaN without labels */
    double found;                      /* share of foreign rows that are rejected; NaN */
    double set_size;                   /* mean size of sets (or width of intervals) on rule_rows */
    rt_str text;                       /* as stored */
} rt_calibration;
rt_calibrate_options rt_calibrate_options_of(const rt_config *c); /* all but run, pool and stop */
rt_status rt_calibrate(rt_calibration *out, const rt_calibrate_options *o) RT_MUST_CHECK;
/* As keys of an open object. */
void rt_calibration_write(const rt_calibration *c, rt_json *j);
void rt_calibration_deinit(rt_calibration *c);

#endif
