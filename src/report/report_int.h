/*
 * report_int.h - what the files of report share.
 *
 * Places in metrics.json are written as paths from its top (io/json_path.c): "evaluation/sets/test/accuracy".
 */
#ifndef RT_REPORT_REPORT_INT_H
#define RT_REPORT_REPORT_INT_H

#include "base/arena.h"
#include "base/embed.h"
#include "base/str.h"
#include "io/io.h"
#include "report/report.h"

/* ---- one run, read (report_run.c) ---- */
typedef struct rt_report_log {
    int64_t rows;
    double *values;              /* (column, row), NaN where the line has none */
    char started[32], ended[32]; /* times of the first and the last event; "" if unknown */
    bool finished;
} rt_report_log;

typedef struct rt_report_run {
    const char *path;   /* as given */
    const char *name;   /* short, unique in the page; from the page's arena */
    char *metrics_path; /* for messages */
    rt_jdoc *metrics;   /* NULL without metrics.json */
    rt_jval root;       /* of metrics, NULL without */
    rt_report_log log;
    char *config;     /* config.yaml as text, NULL without */
    const char *data; /* the data set of the configuration, NULL if not found */
    const char *teacher;
} rt_report_run;

/* Columns of the log that the page shows. */
extern const char *const rt_report_log_columns[];
int rt_report_log_column_count(void);

rt_status rt_report_run_read(rt_report_run *r, rt_arena *arena, const char *path) RT_MUST_CHECK;
void rt_report_run_deinit(rt_report_run *r);
rt_status
rt_report_check(const rt_report_run *r) RT_MUST_CHECK; /* report_check.c: metrics.json against schema.def */

/* ---- the page in the making ---- */
typedef struct rt_report {
    rt_report_run *runs;
    int n;
    rt_arena arena;
    bool comparable;      /* all evaluations are of the same data */
    size_t picture_bytes; /* embedded so far */
    int pictures_left_out;
    rt_report_options options;
} rt_report;

/* ---- places in JSON (report_path.c) ---- */
rt_jval rt_report_find(rt_jval v, const char *path); /* the first match; NULL if absent or null */
bool rt_report_number(rt_jval v, const char *path, double *out);
const char *rt_report_text(rt_jval v, const char *path); /* NULL if absent */
/* Keys of the objects at `path` that begin with `prefix`, of all runs, each once; without the reasons that stand beside nulls. */
rt_status rt_report_keys(rt_report *p, const char *path, const char *prefix, const char ***out,
                         int *n) RT_MUST_CHECK;
bool rt_report_any(const rt_report *p,
                   const char *path); /* of any run; "log/NAME" looks at columns of the log */

/* ---- text (report_text.c) ---- */
void rt_report_script_safe(rt_str *out, const char *json, size_t n); /* '<' of JSON text as \u003c */
void rt_report_base64(rt_str *out, const uint8_t *data, size_t n);
void rt_report_si(rt_str *out, double v); /* 1.23 M */
void rt_report_seconds(rt_str *out, double v);

/* ---- parts of the page ---- */
rt_status rt_report_data(const rt_report *p, rt_str *out)
    RT_MUST_CHECK; /* report_data.c: what the script draws from, safe JSON */
void rt_report_run_tag(const rt_report *p, int run, rt_str *out); /* name with its colour */
/* The head of a table that is a tab of its own: a row for each `corner`, a column for each run that `has` one. */
typedef struct rt_report_tab {
    const char *name, *label, *caption, *corner;
    int better; /* 1: more is better, -1: less */
    bool (*has)(const rt_report *p, int run);
} rt_report_tab;
void rt_report_tab_head(const rt_report *p, const rt_report_tab *t, rt_str *out);
rt_status rt_report_headline(rt_report *p, rt_str *out) RT_MUST_CHECK;
rt_status rt_report_hint(const rt_report *p, rt_str *out) RT_MUST_CHECK; /* the command, as text */

/* What a section holds besides its plots, which the script draws. */
typedef rt_status (*rt_report_body)(rt_report *p, rt_str *out);
rt_status rt_report_body_none(rt_report *p, rt_str *out) RT_MUST_CHECK;
rt_status rt_report_body_results(rt_report *p, rt_str *out) RT_MUST_CHECK;
rt_status rt_report_body_uncertainty(rt_report *p, rt_str *out) RT_MUST_CHECK;
rt_status rt_report_body_classes(rt_report *p, rt_str *out) RT_MUST_CHECK;
rt_status rt_report_body_decisions(rt_report *p, rt_str *out) RT_MUST_CHECK; /* report_decisions.c */
rt_status rt_report_body_roc(rt_report *p, rt_str *out) RT_MUST_CHECK;
rt_status rt_report_body_corruptions(rt_report *p, rt_str *out) RT_MUST_CHECK;
rt_status rt_report_body_average(rt_report *p, rt_str *out) RT_MUST_CHECK;
rt_status rt_report_body_maps(rt_report *p, rt_str *out) RT_MUST_CHECK;
rt_status rt_report_body_doubtful(rt_report *p, rt_str *out) RT_MUST_CHECK;
rt_status rt_report_body_matrices(rt_report *p, rt_str *out) RT_MUST_CHECK;
rt_status rt_report_body_commands(rt_report *p, rt_str *out) RT_MUST_CHECK;

/* ---- embedded files: page.html, page.css, page.js, chart.min.js ---- */
const rt_embedded *rt_report_asset(const char *name);

#endif
