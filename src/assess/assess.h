/*
 * assess.h - runs measured on clean, shifted, corrupted and foreign data.
 *
 * rt_assess_run loads each run, predicts every set that the options name, and gives one assessment per run:
 * all metrics of eval/metrics.def with intervals, how well each measure of uncertainty finds errors and
 * foreign inputs, how all that decays under shift, agreement with a teacher, curves and pictures for a page.
 * An assessment is a tree of numbers, the same that metrics.json keeps under "evaluation" (docs/formats/metrics.md):
 * numbers are asked for by path, "test.nll", "ood:digits.auroc.entropy".
 *
 * Nothing is fitted on test rows: the temperature comes from the rows that the run itself held out, or there
 * is none, with a reason.
 */
#ifndef RT_ASSESS_ASSESS_H
#define RT_ASSESS_ASSESS_H

#include "base/json.h"
#include "config/config.h"
#include "model/model.h"
#include "model/run.h"
#include "train/train.h"

enum { RT_ASSESS_OOD_MAX = 16, RT_ASSESS_NAME_MAX = 48 };

/* How far it is: run `run` of `runs`, predicting the set `what`. */
typedef struct rt_assess_progress {
    int run, runs;
    const char *name, *what;
    double done;         /* share of the whole, 0 to 1 */
    double seconds_left; /* NaN: unknown */
} rt_assess_progress;

typedef struct rt_assess_options {
    const char *data; /* SPEC; its test part, or the only part */
    bool raw;         /* without what `calibrate` stored in the models */
    uint64_t seed;    /* of generated data, corruptions and the bootstrap */
    int64_t limit;    /* rows; 0: all */
    bool split_told;  /* test rows are drawn by `split`; else as the runs say */
    rt_split split;
    bool skip_broken; /* pictures */
    int64_t batch;    /* rows per run of a network; 0: chosen. Not part of the result */
    const char *ood;  /* "NAME=SPEC" items, a line break between two; NULL: none */
    /* "benchmark" (15 types), "all", or names with commas between; NULL: none */
    const char *corrupt;
    const char *frost;                 /* directory of photographs; NULL: drawn */
    const char *shift;                 /* names with commas between; NULL: none */
    int64_t bootstrap;                 /* draws; 0: no intervals */
    const char *against;               /* a run to agree with; NULL: none */
    const char *command;               /* as it is to be remembered; NULL: not */
    bool curves, pictures;             /* wanted for a page */
    const volatile sig_atomic_t *stop; /* may be NULL */
    void (*progress)(void *user, const rt_assess_progress *p);
    void *user;
} rt_assess_options;

typedef struct rt_assessment rt_assessment;
/* Assesses n runs (directories or model files). All or none: the first failure frees what is there, and its
 * message names the run. out has n entries. */
rt_assess_options rt_assess_options_of(const rt_config *c); /* all but command, stop and progress */
rt_status rt_assess_run(const rt_assess_options *o, const char *const *runs, int n, rt_pool *pool,
                        rt_assessment **out) RT_MUST_CHECK;
/* Refuses what --ood would: items of another form, and data that are not there (rt_source_there). */
rt_status rt_foreigns_there(const char *ood) RT_MUST_CHECK;
void rt_assessment_destroy(rt_assessment **a);
/* What rt_assessment_save left in a run's metrics.json; *out is NULL if there is nothing. It can be asked and
 * put into tables, but not written again. */
rt_status rt_assessment_read(rt_assessment **out, const char *run) RT_MUST_CHECK;
/* The same from the text of metrics.json; name is for messages. */
rt_status rt_assessment_decode(rt_assessment **out, const char *text, size_t n,
                               const char *name) RT_MUST_CHECK;

typedef struct rt_assess_info {
    const char *run, *arch, *student, *method, *data, *data_hash, *command;
    const char *unit; /* regression, where the model says it */
    bool regression;
    int members, networks;
    int64_t parameters;                     /* of all networks */
    double flops;                           /* of one forward pass of one input through all networks */
    double training_seconds, infer_seconds; /* the first NaN if unknown */
} rt_assess_info;
const rt_assess_info *rt_assessment_info(const rt_assessment *a);

/* A number by its path (rt_metrics_find): "test.nll", "nll", "corrupt.accuracy_corrupted", "parameters". False: there
 * is no such number; NaN with *reason (may be NULL itself): it is not defined. */
bool rt_assessment_value(const rt_assessment *a, const char *path, double *out, const char **reason);
/* Its interval, if there is one. */
bool rt_assessment_interval(const rt_assessment *a, const char *path, double *lo, double *hi);
rt_jval rt_assessment_sets(const rt_assessment *a); /* the object "sets" */
/* The object, under a key or (NULL) as an element; whole: with curves and pictures. */
void rt_assess_write(rt_assessment *const *runs, int n, const char *data,
                     rt_json *j); /* what --json prints, as keys of an open object */
void rt_assessment_write(const rt_assessment *a, rt_json *j, const char *key, bool whole);

/* Puts the whole assessment into metrics.json of its run, under "evaluation"; the other keys stay as they are,
 * byte by byte. Runs that are files are left alone. */
rt_status rt_assessment_save(const rt_assessment *a) RT_MUST_CHECK;
/* Each of n: all are tried, since evaluating took long, and the first failure is told. */
rt_status rt_assess_save(rt_assessment *const *a, int n) RT_MUST_CHECK;
/* `text` (an object; NULL or empty: {}) with the member `key` replaced or appended, the rest byte by byte. */
rt_status rt_metrics_merge(const char *text, size_t n, const char *name, const char *key, const char *value,
                           rt_str *out) RT_MUST_CHECK;

/* ---- requirements: "ece<0.03", "ood:digits.auroc.entropy >= 0.9" ---- */
enum { RT_METRIC_PATH = 96, RT_REQUIREMENTS_MAX = 64 };
/* The first n characters of `word` as the path of a number; the heading of a column ("acc") stands for its metric. A name
 * that is almost a metric's is refused. */
rt_status rt_metric_path(char path[RT_METRIC_PATH], const char *word, size_t n,
                         const char *flag) RT_MUST_CHECK;
rt_status
rt_metrics_check(const char *list) RT_MUST_CHECK; /* of --metrics, before anything is evaluated; or NULL */
typedef enum rt_require_op { RT_REQUIRE_LT, RT_REQUIRE_LE, RT_REQUIRE_GT, RT_REQUIRE_GE } rt_require_op;
typedef struct rt_requirement {
    char path[RT_METRIC_PATH];
    rt_require_op op;
    double bound;
} rt_requirement;
typedef struct rt_requirements {
    rt_requirement at[RT_REQUIREMENTS_MAX];
    int n;
} rt_requirements;
rt_status rt_requirement_parse(rt_requirement *out, const char *text) RT_MUST_CHECK;
/* Appends a line for each that a run does not meet; RT_E_USAGE when a run has no such number. */
rt_status rt_requirement_check(const rt_requirement *r, const rt_assessment *a, rt_str *failures,
                               int *failed) RT_MUST_CHECK;
/* A line break between two; NULL: none. */
rt_status rt_requirements_parse(rt_requirements *out, const char *list) RT_MUST_CHECK;
/* Of all n runs; RT_E_GATE names every number that falls short. */
rt_status rt_requirements_check(const rt_requirements *r, rt_assessment *const *a, int n) RT_MUST_CHECK;

/* ---- tables of several assessments ---- */
typedef enum rt_table_format {
    RT_TABLE_TEXT,
    RT_TABLE_CSV,
    RT_TABLE_MARKDOWN,
    RT_TABLE_LATEX
} rt_table_format;
typedef struct rt_table_options {
    rt_table_format format;
    const char *metrics;            /* columns, names with commas between; NULL: the usual ones */
    bool per_class;                 /* also class by class, and the confusion matrix */
    int width;                      /* text: columns of the terminal; 0: unlimited */
    const char *head_on, *head_off; /* text: around headings; NULL: nothing */
    const char *best_on, *best_off; /* text: around the best of a column; NULL: an asterisk behind it */
} rt_table_options;
/* Refuses columns that no run has. */
rt_status rt_assess_tables(rt_assessment *const *a, int n, const rt_table_options *o,
                           rt_str *out) RT_MUST_CHECK;

/* ---- --out FILE: tables, or the object of --json; the name says which (assess_file.c) ---- */
rt_status rt_assess_file_check(const char *path) RT_MUST_CHECK; /* before anything is evaluated; or NULL */
rt_status rt_assess_file_write(const char *path, rt_assessment *const *a, int n,
                               const rt_config *c) RT_MUST_CHECK;

#endif
