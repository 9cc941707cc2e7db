/*
 * report.h - one HTML page that compares runs.
 *
 * A page is made from the files of runs alone: metrics.json (what training, `eval` and `average` wrote), log.jsonl,
 * config.yaml and pictures. No model is loaded. The page is one file that needs no network: style, script, plots and
 * pictures are inside.
 */
#ifndef RT_REPORT_REPORT_H
#define RT_REPORT_REPORT_H

#include "base/embed.h"
#include "base/json.h"
#include "base/str.h"

enum { RT_REPORT_RUNS_MAX = 64 };

typedef struct rt_report_options {
    const char *title; /* NULL: made from the runs */
} rt_report_options;

typedef struct rt_report_result {
    size_t bytes;
    int runs, evaluated; /* of them with an evaluation */
    int pictures_left_out;
    rt_str hint; /* the `retort eval` command for runs without an evaluation; empty if there are none */
} rt_report_result;

void rt_report_result_write(const rt_report_result *r, const char *out,
                            rt_json *j); /* keys of an open object */
void rt_report_result_deinit(rt_report_result *r);

/* The page as text. Fails with RT_E_INPUT, naming file and place, for a path that is no run and for files that are not what they should
 * be; nothing of them reaches the page unchecked. */
rt_status rt_report_render(rt_str *page, rt_report_result *result, const char *const *runs, int n,
                           rt_report_options o) RT_MUST_CHECK;
/* Renders and replaces `path`. */
rt_status rt_report_write(const char *path, rt_report_result *result, const char *const *runs, int n,
                          rt_report_options o) RT_MUST_CHECK;

/* ---- for other pages ---- */

/* Text for HTML and quoted attributes: whatever it holds, it is text. */
void rt_report_escape(rt_str *out, const char *text);
/* Style, script and frame that the program carries: page.css, ... */
const rt_embedded *rt_embedded_page(int *count);

#endif
