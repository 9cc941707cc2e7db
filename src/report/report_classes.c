/*
 * report_classes.c - class by class: recall, precision and calibration with a column for every run, and a
 * confusion matrix for each run, its cells shaded by their share of the row.
 */
#include "report/report_int.h"
#include <math.h>
#include <stdio.h>

enum { MATRIX_MAX = 30 }; /* classes */

static bool cell_at(const rt_report *p, int run, const char *number, int64_t c, double *out) {
    char path[96];
    snprintf(path, sizeof path, "evaluation/sets/test/per_class/%s/%lld", number, (long long)c);
    return rt_report_number(p->runs[run].root, path, out);
}

static void put_class_name(const rt_report *p, int run, int64_t c, rt_str *out) {
    char path[48], number[24];
    snprintf(path, sizeof path, "evaluation/classes/%lld", (long long)c);
    snprintf(number, sizeof number, "%lld", (long long)c);
    const char *name = rt_report_text(p->runs[run].root, path);
    rt_report_escape(out, name ? name : number);
}

static bool has_classes(const rt_report *p, int run) {
    return rt_report_find(p->runs[run].root, "evaluation/sets/test/per_class/rows") != NULL;
}

/* The best of a class is marked where the runs saw the same rows. */
static double best_of(const rt_report *p, const char *number, int64_t c, int better) {
    double best = NAN, worst = NAN, v;
    for (int r = 0; r < p->n; r++) {
        if (!cell_at(p, r, number, c, &v))
            continue;
        best = isnan(best) || v * better > best * better ? v : best;
        worst = isnan(worst) || v * better < worst * better ? v : worst;
    }
    return p->comparable && best != worst ? best : NAN;
}

static void put_row(const rt_report *p, int first, const char *number, int64_t c, int better, rt_str *out) {
    const double best = best_of(p, number, c, better);
    char exact[40];
    double v;
    rt_str_append(out, "<tr><th scope=\"row\" class=\"name\">");
    put_class_name(p, first, c, out);
    rt_str_append(out, "</th>");
    for (int r = 0; r < p->n; r++) {
        if (!has_classes(p, r))
            continue;
        if (!cell_at(p, r, number, c, &v)) {
            rt_str_append(out, "<td class=\"num none\">&ndash;</td>");
            continue;
        }
        rt_format_f64(exact, v);
        rt_str_appendf(out,
                       "<td class=\"num%s\" data-v=\"%s\" data-run=\"%d\" "
                       "data-path=\"evaluation/sets/test/per_class/%s/%lld\" title=\"%s\">%.4f</td>",
                       v == best ? " best" : "", exact, r, number, (long long)c, exact, v);
    }
    rt_str_append(out, "</tr>");
}

static void put_matrix(const rt_report *p, int run, rt_str *out) {
    const rt_jval matrix = rt_report_find(p->runs[run].root, "evaluation/sets/test/confusion");
    const int64_t k = rt_jval_len(matrix);
    if (k < 1 || k > MATRIX_MAX)
        return;
    rt_str_append(out, "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"confusion "
                       "matrix\"><table class=\"confusion\"><caption><span>");
    rt_report_run_tag(p, run, out);
    rt_str_append(out, ": rows of a class by the predicted one</span></caption><thead><tr><th scope=\"col\" "
                       "class=\"name\">class</th>");
    for (int64_t c = 0; c < k; c++) {
        rt_str_append(out, "<th scope=\"col\" class=\"num\">");
        put_class_name(p, run, c, out);
        rt_str_append(out, "</th>");
    }
    rt_str_append(out, "</tr></thead><tbody>");
    for (int64_t r = 0; r < k; r++) {
        const rt_jval row = rt_jval_at(matrix, r);
        double all = 0, v;
        for (int64_t c = 0; c < k; c++)
            all += rt_jval_f64(rt_jval_at(row, c), &v) ? v : 0;
        rt_str_append(out, "<tr><th scope=\"row\" class=\"name\">");
        put_class_name(p, run, r, out);
        rt_str_append(out, "</th>");
        for (int64_t c = 0; c < k; c++) {
            v = rt_jval_f64(rt_jval_at(row, c), &v) ? v : 0;
            rt_str_appendf(out, "<td class=\"num%s\" style=\"--share:%.3f\">%.0f</td>",
                           r == c ? " right" : "", all > 0 ? v / all : 0, v);
        }
        rt_str_append(out, "</tr>");
    }
    rt_str_append(out, "</tbody></table></div>\n");
}

rt_status rt_report_body_classes(rt_report *p, rt_str *out) {
    static const struct {
        const char *number, *caption;
        int better;
    } tables[] = {{"recall", "Recall: share of the rows of a class that are right", 1},
                  {"precision", "Precision: share of the rows called so that are right", 1},
                  {"ece", "Calibration error of the rows called so", -1}};
    int first = 0;
    while (first < p->n && !has_classes(p, first))
        first++;
    if (first == p->n)
        return RT_OK;
    const int64_t k = rt_jval_len(rt_report_find(p->runs[first].root, "evaluation/sets/test/per_class/rows"));
    for (int64_t i = 0; i < RT_COUNT(tables); i++) {
        const rt_report_tab tab = {.name = tables[i].number,
                                   .label = tables[i].caption,
                                   .caption = tables[i].caption,
                                   .corner = "class",
                                   .better = tables[i].better,
                                   .has = has_classes};
        rt_report_tab_head(p, &tab, out);
        for (int64_t c = 0; c < k; c++)
            put_row(p, first, tables[i].number, c, tables[i].better, out);
        rt_str_append(out, "</tbody></table></div>\n");
    }
    for (int r = 0; r < p->n; r++)
        put_matrix(p, r, out);
    return RT_OK;
}
