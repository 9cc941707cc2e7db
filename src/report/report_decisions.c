/*
 * report_decisions.c - the rules that `calibrate` stored in models, what they promise and what they keep on the test
 * rows, and the warning that belongs beside every such promise.
 */
#include "eval/eval.h"
#include "report/report_int.h"
#include <stdio.h>
#include <string.h>

#define AT "evaluation/sets/test/decision"

static void cell_begin(rt_str *out, double v) {
    rt_str_appendf(out, "<td class=\"num\" data-v=\"%.9g\">", v);
}

static void no_cell(rt_str *out) {
    rt_str_append(out, "<td class=\"num none\">&ndash;</td>");
}

/* "95.1 % [94.2, 96.0]" */
static void share_cell(rt_jval root, const char *path, rt_str *out) {
    char place[128];
    double v, lo, hi;
    if (!rt_report_number(root, path, &v)) {
        no_cell(out);
        return;
    }
    cell_begin(out, v);
    rt_str_appendf(out, "%.1f&nbsp;%%", 100 * v);
    snprintf(place, sizeof place, "%s_interval", path);
    const rt_jval ends = rt_report_find(root, place);
    if (rt_jval_f64(rt_jval_at(ends, 0), &lo) && rt_jval_f64(rt_jval_at(ends, 1), &hi))
        rt_str_appendf(out, " <small>[%.1f, %.1f]</small>", 100 * lo, 100 * hi);
    rt_str_append(out, "</td>");
}

static void number_cell(rt_jval root, const char *path, rt_str *out) {
    double v;
    if (!rt_report_number(root, path, &v)) {
        no_cell(out);
        return;
    }
    cell_begin(out, v);
    rt_str_appendf(out, "%.4g</td>", v);
}

/* "mutual_information above 0.0123 (coverage=0.95)" */
static void rule_cell(rt_jval root, rt_str *out) {
    const char *measure = rt_report_text(root, AT "/stored/reject/measure"),
               *rule = rt_report_text(root, AT "/stored/reject/rule");
    const rt_measure_info *list;
    double threshold;
    (void)rt_measure_list(&list);
    if (measure == NULL || !rt_report_number(root, AT "/stored/reject/threshold", &threshold)) {
        no_cell(out);
        return;
    }
    rt_str_append(out, "<td>");
    rt_report_escape(out, measure);
    const int i = rt_measure_find(measure, false);
    rt_str_appendf(out, " %s %.4g", i >= 0 && list[i].certainty ? "below" : "above", threshold);
    if (rule != NULL) {
        rt_str_append(out, " <small>(");
        rt_report_escape(out, rule);
        rt_str_append(out, ")</small>");
    }
    rt_str_append(out, "</td>");
}

static void promise_cell(rt_jval root, rt_str *out) {
    const char *kind = rt_report_text(root, AT "/stored/conformal/kind");
    double alpha, rows;
    if (kind == NULL || !rt_report_number(root, AT "/stored/conformal/alpha", &alpha)) {
        no_cell(out);
        return;
    }
    cell_begin(out, 1 - alpha);
    rt_str_appendf(out, "&ge;&nbsp;%.4g&nbsp;%% <small>(", 100 * (1 - alpha));
    rt_report_escape(out, kind);
    if (rt_report_number(root, AT "/stored/conformal/rows", &rows))
        rt_str_appendf(out, ", %.0f rows", rows);
    rt_str_append(out, ")</small></td>");
}

rt_status rt_report_body_decisions(rt_report *p, rt_str *out) {
    const char **foreign;
    int n;
    RT_TRY(rt_report_keys(p, "evaluation/sets", "ood:", &foreign, &n));
    rt_str_append(
        out,
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"decisions\"><table "
        "class=\"sortable\">"
        "<caption><span>Promises of <code>calibrate</code>, and what is kept on the test "
        "rows</span></caption>"
        "<thead><tr><th scope=\"col\" class=\"name\">run</th><th scope=\"col\">rejects where</th>"
        "<th scope=\"col\" class=\"num\">answered</th><th scope=\"col\" class=\"num\">risk of answers</th>"
        "<th scope=\"col\" class=\"num\">bound of risk</th><th scope=\"col\" class=\"num\">sets promise</th>"
        "<th scope=\"col\" class=\"num\">sets hold the truth</th><th scope=\"col\" class=\"num\">size of "
        "sets</th>");
    for (int i = 0; i < n; i++) {
        rt_str_append(out, "<th scope=\"col\" class=\"num\">rejected of ");
        rt_report_escape(out, foreign[i] + strlen("ood:"));
        rt_str_append(out, "</th>");
    }
    rt_str_append(out, "</tr></thead><tbody>");
    for (int r = 0; r < p->n; r++) {
        const rt_jval root = p->runs[r].root;
        if (!rt_report_find(root, AT))
            continue;
        rt_str_append(out, "<tr><th scope=\"row\" class=\"name\">");
        rt_report_run_tag(p, r, out);
        rt_str_append(out, "</th>");
        rule_cell(root, out);
        share_cell(root, AT "/reject/coverage", out);
        share_cell(root, AT "/reject/risk", out);
        share_cell(root, AT "/stored/reject/risk_bound", out);
        promise_cell(root, out);
        share_cell(root, AT "/conformal/coverage", out);
        number_cell(root,
                    rt_report_find(root, AT "/conformal/width") ? AT "/conformal/width"
                                                                : AT "/conformal/set_size",
                    out);
        for (int i = 0; i < n; i++) {
            char place[256];
            snprintf(place, sizeof place, "evaluation/sets/%s/rejected", foreign[i]);
            share_cell(root, place, out);
        }
        rt_str_append(out, "</tr>");
    }
    rt_str_append(
        out,
        "</tbody></table></div>\n<p class=\"warning\"><strong>Shift breaks these promises.</strong> They "
        "hold "
        "for rows drawn like the held-out rows they were fitted on. On corrupted, shifted or foreign rows "
        "coverage and risk may be anything: look at the share that is rejected, and fit again on new rows "
        "(<code>retort calibrate RUN --data ...</code>).</p>\n");
    return rt_str_status(out);
}
