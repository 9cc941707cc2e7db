/*
 * recipe_page.c - the tables of all recipes that were run on one page: every cell a strip with our mean and its
 * interval above, the paper's number below.
 *
 * A strip spans the numbers of its column. Those farther from the middle half than three times its width stand at the
 * edge as arrows if that halves the strip: one network that learnt nothing would hide all other differences. An interval
 * is the mean -+ 2 standard errors, ours; of a paper's number its deviation. Where a scale only compares orderings, the
 * paper's numbers have an axis of their own. Nothing of the page moves: it has style and drawings, and no script.
 */
#include "base/alloc.h"
#include "recipe/recipe_table.h"
#include "report/report.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STRIP_WIDTH = 132, STRIP_MARGIN = 7 };

static const char style[] = ".recipes main { padding-bottom: 4rem } td.s { padding: .25rem .6rem; "
                            "text-align: left } td.s svg { display: block }\n"
                            "td.s span { font-size: .8rem; white-space: nowrap } .paper { color: "
                            "var(--run-1) } td.best span.ours { font-weight: 650 }\n"
                            "th .axis { display: flex; justify-content: space-between; font-weight: 400; "
                            "font-size: .72rem; color: var(--dim); min-width: 132px }\n"
                            ".verdict { display: inline-block; min-width: 7.2rem; text-align: center; "
                            "border-radius: 3px; font-size: .8rem; padding: 0 .4rem; "
                            "border: 1px solid var(--line); margin-right: .4rem }\n"
                            ".holds { background: var(--mark); color: var(--mark-ink) } .fails { color: "
                            "var(--wrong); border-color: var(--wrong) }\n"
                            "ul.claims { list-style: none; padding: 0; margin: 0 0 1rem } ul.claims li { "
                            "margin: .2rem 0 } .lesson { max-width: 60rem; font-weight: 500 }\n"
                            "svg .o { stroke: var(--run-0); fill: var(--run-0) } svg .p { stroke: "
                            "var(--run-1); fill: var(--run-1) } svg .g { stroke: var(--line) }\n"
                            "svg .h { fill: var(--run-2) } svg .n { fill: var(--line) } svg .f { fill: "
                            "var(--wrong) } svg .u { fill: var(--soft); stroke: var(--line) }\n";

/* ---- axes ---- */

typedef struct axis {
    double lo, hi;
} axis;

static int compare_doubles(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Of n numbers, which are sorted. */
static axis axis_of(double *x, int64_t n) {
    qsort(x, (size_t)n, sizeof *x, compare_doubles);
    axis a = {.lo = n ? x[0] : 0, .hi = n ? x[n - 1] : 1};
    if (n >= 4) {
        const double low = x[n / 4], high = x[(3 * n) / 4], far = 3 * (high - low);
        int64_t first = 0, last = n - 1;
        while (x[first] < low - far)
            first++;
        while (x[last] > high + far)
            last--;
        if (x[last] > x[first] && a.hi - a.lo >= 2 * (x[last] - x[first]))
            a = (axis){.lo = x[first], .hi = x[last]};
    }
    if (!(a.hi > a.lo)) {
        const double wide = fmax(fabs(a.lo) * 0.05, 1e-9);
        a = (axis){.lo = a.lo - wide, .hi = a.hi + wide};
    }
    return a;
}

static double place(const axis *a, double v) {
    const double x = (v - a->lo) / (a->hi - a->lo);
    return STRIP_MARGIN + fmin(fmax(x, 0), 1) * (STRIP_WIDTH - 2 * STRIP_MARGIN);
}

/* The axis of a column's own numbers, and of the paper's: one for both, unless only orderings are compared. */
static rt_status find_axes(const rt_table *t, int64_t k, axis *ours, axis *papers) {
    double *x;
    int64_t n = 0, first = 0;
    const bool apart = rt_recipe_only_orderings(t->r);
    RT_TRY(rt_calloc(&x, (size_t)(2 * t->nrows), sizeof *x));
    for (int64_t i = 0; i < t->nrows; i++)
        if (isfinite(rt_table_cell(t, i, k)->mean))
            x[n++] = rt_table_cell(t, i, k)->mean;
    if (apart) {
        *ours = axis_of(x, n);
        first = n;
    }
    for (int64_t i = 0; i < t->nrows; i++)
        if (rt_table_cell(t, i, k)->paper && isfinite(rt_table_cell(t, i, k)->paper_mean))
            x[n++] = rt_table_cell(t, i, k)->paper_mean;
    *papers = axis_of(x + first, n - first);
    if (!apart)
        *ours = *papers;
    rt_free(x);
    return RT_OK;
}

/* ---- strips ---- */

static void draw(rt_str *out, const axis *a, double v, double half, int y, const char *class) {
    const double x = place(a, v);
    if (isfinite(half) && half > 0)
        rt_str_appendf(out,
                       "<line class=\"%s\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\" stroke-width=\"2\"/>",
                       class, place(a, v - half), place(a, v + half), y, y);
    if (v < a->lo || v > a->hi) {
        const int tip = v < a->lo ? -5 : 5;
        rt_str_appendf(out, "<path class=\"%s\" d=\"M%.1f %dl%d -4v8z\"/>", class, x + tip, y, -tip);
    } else if (*class == 'o') {
        rt_str_appendf(out, "<circle class=\"o\" cx=\"%.1f\" cy=\"%d\" r=\"3.5\"/>", x, y);
    } else {
        rt_str_appendf(out, "<path class=\"p\" d=\"M%.1f %dl4 4l-4 4l-4 -4z\"/>", x, y - 4);
    }
}

static void strip(rt_str *out, const rt_cell *c, const axis *ours, const axis *papers, bool any_paper) {
    const int height = any_paper ? 24 : 14;
    const bool paper = c->paper && isfinite(c->paper_mean);
    rt_str_appendf(out,
                   "<svg width=\"%d\" height=\"%d\" aria-hidden=\"true\"><line class=\"g\" x1=\"0\" "
                   "x2=\"%d\" y1=\"%d\" y2=\"%d\"/>",
                   STRIP_WIDTH, height, STRIP_WIDTH, height - 1, height - 1);
    if (c->n > 0)
        draw(out, ours, c->mean, 2 * c->error, 7, "o");
    if (paper)
        draw(out, papers, c->paper_mean, c->paper_deviation, 17, "p");
    rt_str_append(out, "</svg>");
}

static void cell(rt_str *out, const rt_table *t, int64_t i, int64_t k, const axis *ours, const axis *papers,
                 bool any_paper) {
    const rt_cell *c = rt_table_cell(t, i, k);
    const int digits = rt_table_digits(t, k);
    rt_str_append(out, "<td class=\"s\">");
    if (c->n > 0 || c->paper)
        strip(out, c, ours, papers, any_paper);
    if (c->n > 0) {
        rt_str_appendf(out, "<span class=\"ours\" title=\"%d run%s\">%.*f", c->n, c->n == 1 ? "" : "s",
                       digits, c->mean);
        if (isfinite(c->deviation))
            rt_str_appendf(out, " ± %.*f", digits, c->deviation);
        rt_str_append(out, "</span>");
    } else {
        rt_str_append(out, c->missing ? "<span>not yet</span>" : "<span>–</span>");
    }
    if (c->paper) {
        rt_str_append(out, " <span class=\"paper\">");
        rt_report_escape(out, c->paper);
        rt_str_append(out, "</span>");
    }
    rt_str_append(out, "</td>");
}

static void paragraph(rt_str *out, const char *class, const char *text) {
    if (!*text)
        return;
    rt_str_appendf(out, "<p class=\"%s\">", class);
    rt_report_escape(out, text);
    rt_str_append(out, "</p>\n");
}

/* ---- a table ---- */

static bool has_paper(const rt_table *t, int64_t k) {
    for (int64_t i = 0; i < t->nrows; i++)
        if (rt_table_cell(t, i, k)->paper)
            return true;
    return false;
}

static void head(rt_str *out, const rt_table *t, const axis *ours) {
    rt_str_append(out, "<div class=\"scroll\" tabindex=\"0\"><table><thead><tr><th class=\"name\">");
    rt_report_escape(out, rt_jval_text(t->spec, "corner"));
    rt_str_append(out, "</th>");
    for (int64_t k = 0; k < t->ncolumns; k++) {
        if (!rt_table_has(t, -1, k))
            continue;
        rt_str_append(out, "<th>");
        rt_report_escape(out, rt_jval_text(rt_jval_at(t->columns, k), "label"));
        rt_str_appendf(out, "<span class=\"axis\"><span>%.*f</span><span>%.*f</span></span></th>",
                       rt_table_digits(t, k), ours[k].lo, rt_table_digits(t, k), ours[k].hi);
    }
    rt_str_append(out, "</tr></thead><tbody>");
}

static rt_status draw_table(rt_str *out, const rt_table *t) {
    axis *ours = NULL;
    rt_str open;
    rt_status st;
    rt_str_init(&open);
    RT_TRY_GOTO(rt_calloc(&ours, (size_t)(2 * t->ncolumns), sizeof *ours));
    axis *papers = ours + t->ncolumns;
    for (int64_t k = 0; k < t->ncolumns; k++)
        RT_TRY_GOTO(find_axes(t, k, &ours[k], &papers[k]));
    head(out, t, ours);
    for (int64_t at = 0; at < t->nrows; at++) {
        const int64_t i = t->order[at];
        if (!rt_table_has(t, i, -1) || rt_table_row_is_open(t, i))
            continue;
        rt_str_append(out, "<tr><th class=\"name\" scope=\"row\">");
        rt_report_escape(out, rt_jval_text(rt_jval_at(t->rows, i), "label"));
        rt_str_append(out, "</th>");
        for (int64_t k = 0; k < t->ncolumns; k++)
            if (rt_table_has(t, -1, k))
                cell(out, t, i, k, &ours[k], &papers[k], has_paper(t, k));
        rt_str_append(out, "</tr>\n");
    }
    rt_str_append(out, "</tbody></table></div>\n");
    RT_TRY_GOTO(rt_table_open_rows(t, &open));
    paragraph(out, "note", rt_str_text(&open));
done:
    rt_str_deinit(&open);
    rt_free(ours);
    return st;
}

/* ---- claims ---- */

typedef struct tally {
    int n[RT_VERDICTS];
} tally;

static rt_status list_claims(rt_str *out, const rt_table *t, tally *sum) {
    static const struct {
        const char *class, *text;
    } shown[RT_VERDICTS] = {[RT_CLAIM_FAILS] = {"fails", "does not hold"},
                            [RT_CLAIM_UNKNOWN] = {"open", "not known yet"},
                            [RT_CLAIM_NO_NOISE_KNOWN] = {"open", "noise not known"},
                            [RT_CLAIM_IN_NOISE] = {"noise", "within noise"},
                            [RT_CLAIM_HOLDS] = {"holds", "holds"}};
    rt_jval claims = rt_jval_get(t->spec, "claims");
    rt_str_append(out, "<ul class=\"claims\">");
    for (int64_t i = 0; i < rt_jval_len(claims); i++) {
        rt_judgement g;
        RT_TRY(rt_claim_judge(t, rt_jval_at(claims, i), &g));
        if (g.verdict == RT_CLAIM_NO_PART)
            continue;
        sum->n[g.verdict]++;
        rt_str_appendf(out, "<li><span class=\"verdict %s\">%s</span>", shown[g.verdict].class,
                       shown[g.verdict].text);
        rt_report_escape(out, rt_jval_text(rt_jval_at(claims, i), "text"));
        if (isfinite(g.difference) && isfinite(g.error))
            rt_str_appendf(out, " <span class=\"note\">by %.*f ± %.*f%s</span>",
                           rt_table_digits(t, g.column) + 1, g.difference, rt_table_digits(t, g.column) + 1,
                           g.error, rt_judgement_caution(&g));
        rt_str_append(out, "</li>\n");
    }
    rt_str_append(out, "</ul>\n");
    return RT_OK;
}

static rt_status add_recipe(rt_str *out, rt_recipe *r, tally *sum) {
    rt_jval tables = rt_jval_get(r->root, "tables");
    rt_str_appendf(out, "<section id=\"%s-%s\"><h2>", r->name, r->scale_name);
    rt_report_escape(out, rt_recipe_title(r));
    rt_str_append(out, "</h2>\n");
    paragraph(out, "note", rt_jval_text(r->root, "source"));
    paragraph(out, "reading", rt_jval_text(r->root, "about"));
    rt_str_appendf(out, "<p class=\"note\"><code>retort recipe run %s --scale %s</code>: ", r->name,
                   r->scale_name);
    rt_report_escape(out, rt_jval_text(r->kept ? rt_jdoc_root(r->kept) : r->scale, "about"));
    rt_str_append(out, "</p>\n");
    for (int64_t i = 0; i < rt_jval_len(tables); i++) {
        rt_table t;
        rt_status st = rt_table_fill(&t, r, rt_jval_at(tables, i));
        if (st == RT_OK && rt_table_is_begun(&t)) {
            rt_str_append(out, "<h3>");
            rt_report_escape(out, rt_jval_text(t.spec, "title"));
            rt_str_append(out, "</h3>\n");
            paragraph(out, "note", rt_jval_text(t.spec, "note"));
            st = draw_table(out, &t);
            if (st == RT_OK)
                st = list_claims(out, &t, sum);
            paragraph(out, "lesson", rt_jval_text(rt_jval_get(t.spec, "lesson"), r->scale_name));
        }
        rt_table_deinit(&t);
        RT_TRY(st);
    }
    rt_str_append(out, "</section>\n");
    return RT_OK;
}

/* ---- the page ---- */

enum { SQUARES = 24 }; /* side by side */

/* Each claim of a recipe a square: those that hold, are within noise, are open, do not hold. */
static void overview_row(rt_str *out, const rt_recipe *r, const tally *s) {
    const int part[] = {s->n[RT_CLAIM_HOLDS], s->n[RT_CLAIM_IN_NOISE],
                        s->n[RT_CLAIM_UNKNOWN] + s->n[RT_CLAIM_NO_NOISE_KNOWN], s->n[RT_CLAIM_FAILS]};
    static const char *const classes[] = {"h", "n", "u", "f"};
    const int lines = (part[0] + part[1] + part[2] + part[3] + SQUARES - 1) / SQUARES;
    rt_str_appendf(out, "<tr><th scope=\"row\"><a href=\"#%s-%s\">", r->name, r->scale_name);
    rt_report_escape(out, rt_recipe_title(r));
    rt_str_appendf(
        out, "</a></th><td>%s</td><td class=\"s\"><svg width=\"%d\" height=\"%d\" aria-hidden=\"true\">",
        r->scale_name, 12 * SQUARES, 14 * RT_MAX(lines, 1));
    for (int i = 0, at = 0; i < RT_COUNT(part); i++)
        for (int k = 0; k < part[i]; k++, at++)
            rt_str_appendf(out, "<rect class=\"%s\" x=\"%d\" y=\"%d\" width=\"11\" height=\"12\"/>",
                           classes[i], 12 * (at % SQUARES), 1 + 14 * (at / SQUARES));
    rt_str_append(out, "</svg></td>");
    for (int i = 0; i < RT_COUNT(part); i++)
        rt_str_appendf(out, "<td>%d</td>", part[i]);
    rt_str_append(out, "</tr>\n");
}

static void begin_page(rt_str *out) {
    int n;
    const rt_embedded *files = rt_embedded_page(&n);
    rt_str_append(
        out,
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>retort: results</title>\n"
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<style>\n");
    for (int i = 0; i < n; i++)
        if (strcmp(files[i].name, "page.css") == 0)
            rt_str_append_n(out, files[i].data, files[i].bytes);
    rt_str_append(out, style);
    rt_str_append(
        out, "</style></head>\n<body class=\"recipes\"><main><header><h1>Results, beside the papers'</h1>\n");
    paragraph(out, "summary",
              "Every experiment that was run, as retort recipe run makes it. A circle is our mean over "
              "runs with two standard errors to "
              "each side, a diamond below it the paper's number with its deviation; where settings are so "
              "much smaller that only orderings "
              "can be compared, diamonds have an axis of their own. An arrow stands for a number outside the "
              "axis. A claim holds, or does "
              "not, if the difference is more than two standard errors; that of one run knows test rows, not "
              "seeds, and that of two is a weak one.");
    rt_str_append(out, "</header>\n<section><h2>Claims</h2><div "
                       "class=\"scroll\"><table><thead><tr><th>experiment</th><th>scale</th>"
                       "<th>each claim a square</th><th>hold</th><th>within noise</th>"
                       "<th>open</th><th>do not hold</th></tr></thead><tbody>\n");
}

bool rt_recipe_has_results(const rt_recipe *r) {
    bool any = r->kept != NULL;
    for (int i = 0; i < r->count; i++)
        any = any || r->nodes[i].job.done;
    return any;
}

rt_status rt_recipe_page(rt_recipe *const *list, int n, rt_str *out) {
    rt_str body;
    rt_status st = RT_OK;
    rt_str_init(&body);
    begin_page(out);
    for (int i = 0; i < n; i++) {
        tally sum = {{0}};
        RT_TRY_GOTO(add_recipe(&body, list[i], &sum));
        overview_row(out, list[i], &sum);
    }
    RT_TRY_GOTO(rt_str_status(&body));
    rt_str_append(out, "</tbody></table></div></section>\n");
    rt_str_append(out, rt_str_text(&body));
    rt_str_append(out, "</main></body></html>\n");
    st = rt_str_status(out);
done:
    rt_str_deinit(&body);
    return st;
}
