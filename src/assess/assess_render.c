/*
 * assess_render.c - one table as text, CSV, Markdown or LaTeX.
 *
 * A cell is a number and, where the assessment has an interval of it, half the interval's width behind "+-".
 * On a terminal that is shown only if the whole table still fits; CSV has the two ends in columns of their
 * own. The best of a column, and what rounds to the same, is bold, or has an asterisk in the space behind it.
 */
#include "assess/assess_int.h"
#include "base/alloc.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { CELL = 128 };

typedef struct grid_cell {
    char text[CELL], spread[24];
    bool best, left;
} grid_cell;

typedef struct grid {
    grid_cell *cell; /* (rows, columns); the first row is the heading */
    int rows, columns, fixed;
} grid;

static grid_cell *at(const grid *g, int row, int column) {
    return &g->cell[row * g->columns + column];
}

/* ---- numbers ---- */

static void print_si(char *out, double v) {
    static const char *const units[] = {"", "k", "M", "G", "T"};
    int u = 0;
    for (; u < 4 && fabs(v) >= 999.5; u++)
        v /= 1000;
    const int decimals = u == 0 && v == floor(v) ? 0 : fabs(v) < 9.995 ? 2 : fabs(v) < 99.95 ? 1 : 0;
    snprintf(out, CELL, "%.*f%s", decimals, v, units[u]);
}

static void print_number(char *out, const rt_table_column *c, double v, rt_table_format format) {
    if (!isfinite(v))
        snprintf(out, CELL, "%s", format == RT_TABLE_CSV ? "" : "-");
    else if (format == RT_TABLE_CSV)
        rt_format_f64(out, v);
    else if (c->si)
        print_si(out, v);
    else if (fabs(v) >= 1e5 || (v != 0 && fabs(v) < 1e-5))
        snprintf(out, CELL, "%.3g", v);
    else
        snprintf(out, CELL, "%.*f", fabs(v) >= 1000 ? 1 : fabs(v) >= 100 ? 2 : c->decimals, v);
}

static void fill_number(grid_cell *g, const rt_table_column *c, const rt_assessment *a,
                        rt_table_format format) {
    double v, lo, hi;
    (void)rt_assessment_value(a, c->path, &v, NULL);
    print_number(g->text, c, v, format);
    if (isfinite(v) && !c->si && format != RT_TABLE_CSV && rt_assessment_interval(a, c->path, &lo, &hi))
        snprintf(g->spread, sizeof g->spread, "%.*f", c->decimals, (hi - lo) / 2);
}

/* Does a line of members alone follow that of the run? */
static int has_alone(const rt_table *t, int run) {
    return t->alone && rt_assessment_info(t->run[run])->members > 1;
}

/* Marks the best of a column among the runs; nothing when all are alike. */
static void mark_best(const rt_table *t, const grid *g, int column) {
    const rt_table_column *c = &t->column[column];
    double best = NAN, v;
    const char *text = NULL;
    bool differ = false;
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0, row = 1; i < t->nruns; i++, row++) {
            (void)rt_assessment_value(t->run[i], c->path, &v, NULL);
            grid_cell *cell = at(g, row, g->fixed + column);
            if (pass == 0 && isfinite(v)) {
                differ = differ || (text && strcmp(text, cell->text) != 0);
                if (!text || (v - best) * c->better > 0) {
                    best = v;
                    text = cell->text;
                }
            } else if (pass == 1 && differ && text && strcmp(cell->text, text) == 0) {
                cell->best = true;
            }
            row += has_alone(t, i);
        }
    }
}

/* ---- filling ---- */

static void fill_heading(const rt_table *t, grid *g, rt_table_format format) {
    int column = 0;
    snprintf(at(g, 0, column)->text, CELL, "run");
    at(g, 0, column++)->left = true;
    if (format == RT_TABLE_CSV) {
        static const char *const more[] = {"task", "arch", "student", "method"};
        for (int i = 0; i < RT_COUNT(more); i++)
            snprintf(at(g, 0, column++)->text, CELL, "%s", more[i]);
    }
    if (t->members)
        snprintf(at(g, 0, column++)->text, CELL, "%s", format == RT_TABLE_CSV ? "members" : "M");
    g->fixed = column;
    for (int i = 0; i < t->ncolumns; i++)
        snprintf(at(g, 0, g->fixed + i)->text, CELL, "%s", t->column[i].title);
}

static void fill_run(const rt_table *t, grid *g, int row, const rt_assessment *a, rt_table_format format) {
    const rt_assess_info *info = rt_assessment_info(a);
    int column = 0;
    grid_cell *name = at(g, row, column++);
    /* The end of a long path says more than its beginning. */
    const size_t n = strlen(info->run), most = format == RT_TABLE_TEXT ? 40 : CELL - 1;
    snprintf(name->text, CELL, "%s", n > most ? info->run + (n - most) : info->run);
    rt_str_clean(name->text, "");
    name->left = true;
    if (format == RT_TABLE_CSV) {
        const char *more[] = {info->regression ? "regression" : "classification", info->arch, info->student,
                              info->method};
        for (int i = 0; i < RT_COUNT(more); i++)
            snprintf(at(g, row, column++)->text, CELL, "%s", more[i] ? more[i] : "");
    }
    if (t->members)
        snprintf(at(g, row, column++)->text, CELL, "%d", info->members);
    for (int i = 0; i < t->ncolumns; i++)
        fill_number(at(g, row, g->fixed + i), &t->column[i], a, format);
}

static void fill_alone(const rt_table *t, grid *g, int row, const rt_assessment *a, rt_table_format format) {
    snprintf(at(g, row, 0)->text, CELL, "%seach alone", format == RT_TABLE_TEXT ? "  " : "");
    at(g, row, 0)->left = true;
    for (int i = 0; i < t->ncolumns; i++) {
        char path[160];
        double v;
        snprintf(path, sizeof path, "test.single.%s", t->column[i].path);
        if (rt_assessment_value(a, path, &v, NULL))
            print_number(at(g, row, g->fixed + i)->text, &t->column[i], v, format);
    }
}

static rt_status fill_grid(const rt_table *t, grid *g, rt_table_format format) {
    g->rows = 1;
    g->columns = t->ncolumns + 1 + (t->members ? 1 : 0) + (format == RT_TABLE_CSV ? 4 : 0);
    for (int i = 0; i < t->nruns; i++)
        g->rows += 1 + has_alone(t, i);
    RT_TRY(rt_calloc(&g->cell, (size_t)g->rows * (size_t)g->columns, sizeof *g->cell));
    fill_heading(t, g, format);
    for (int i = 0, row = 1; i < t->nruns; i++) {
        fill_run(t, g, row++, t->run[i], format);
        if (has_alone(t, i))
            fill_alone(t, g, row++, t->run[i], format);
    }
    for (int i = 0; i < t->ncolumns; i++)
        if (t->column[i].better && t->nruns > 1)
            mark_best(t, g, i);
    return RT_OK;
}

/* Why a cell has no number: for every column each reason once, with the mark that stands in the cell. */
static void print_reasons(const rt_table *t, const char *lead, const char *mark, rt_str *out) {
    for (int c = 0; c < t->ncolumns; c++)
        for (int i = 0; i < t->nruns; i++) {
            double v;
            const char *reason = NULL, *earlier = NULL;
            (void)rt_assessment_value(t->run[i], t->column[c].path, &v, &reason);
            if (isfinite(v) || !reason)
                continue;
            bool said = false;
            for (int k = 0; k < i && !said; k++) {
                (void)rt_assessment_value(t->run[k], t->column[c].path, &v, &earlier);
                said = !isfinite(v) && earlier && strcmp(earlier, reason) == 0;
            }
            if (!said)
                rt_str_appendf(out, "%s%s %s: %s\n", lead, mark, t->column[c].title, reason);
        }
}

/* ---- text ---- */

static int cell_width(const grid_cell *c, bool spread) {
    return rt_str_columns(c->text) + (spread && *c->spread ? 2 + rt_str_columns(c->spread) : 0);
}

static int column_width(const grid *g, int column, bool spread) {
    int w = 0;
    for (int r = 0; r < g->rows; r++)
        w = RT_MAX(w, cell_width(at(g, r, column), spread));
    return w;
}

static void text_cell(const rt_table_options *o, const grid_cell *c, int width, bool spread, bool head,
                      int *due, rt_str *out) {
    const int fill = width - cell_width(c, spread);
    const char *on = head ? o->head_on : c->best ? o->best_on : NULL;
    const char *off = head ? o->head_off : c->best ? o->best_off : NULL;
    if (*c->text) {
        rt_str_appendf(out, "%*s%s%s", *due + (c->left ? 0 : fill), "", on ? on : "", c->text);
        if (spread && *c->spread)
            rt_str_appendf(out, "+-%s", c->spread);
        rt_str_append(out, off ? off : "");
        *due = c->left ? fill : 0;
    } else {
        *due += width;
    }
    /* Two spaces between columns; the mark stands in the first. */
    if (c->best && !o->best_on) {
        rt_str_append_char(out, '*');
        *due += 1;
    } else {
        *due += 2;
    }
}

static void print_text(const rt_table *t, const grid *g, const rt_table_options *o, rt_str *out) {
    int total = -2;
    for (int c = 0; c < g->columns; c++)
        total += column_width(g, c, true) + 2;
    const bool spread = o->width <= 0 || total <= o->width;
    if (*t->title)
        rt_str_appendf(out, "%s\n", t->title);
    for (int r = 0; r < g->rows; r++) {
        int due = 0;
        for (int c = 0; c < g->columns; c++)
            text_cell(o, at(g, r, c), column_width(g, c, spread), spread, r == 0, &due, out);
        rt_str_append_char(out, '\n');
    }
    print_reasons(t, "  ", "-", out);
}

/* ---- the others ---- */

static void print_csv(const rt_table *t, const grid *g, rt_str *out) {
    double lo, hi;
    char number[40];
    for (int r = 0; r < g->rows; r++) {
        for (int c = 0; c < g->columns; c++) {
            if (c > 0)
                rt_str_append_char(out, ',');
            rt_str_append_csv(out, at(g, r, c)->text, false);
            const rt_table_column *column = c >= g->fixed ? &t->column[c - g->fixed] : NULL;
            if (!column || !rt_assessment_interval(t->run[0], column->path, &lo, &hi))
                continue;
            if (r == 0) {
                rt_str_appendf(out, ",%s.lo,%s.hi", column->title, column->title);
                continue;
            }
            const bool have = rt_assessment_interval(t->run[r - 1], column->path, &lo, &hi);
            rt_format_f64(number, lo);
            rt_str_appendf(out, ",%s", have ? number : "");
            rt_format_f64(number, hi);
            rt_str_appendf(out, ",%s", have ? number : "");
        }
        rt_str_append_char(out, '\n');
    }
}

static void escape(rt_str *out, const char *text, const char *special) {
    for (; *text; text++) {
        if (strchr(special, *text))
            rt_str_append_char(out, '\\');
        rt_str_append_char(out, *text);
    }
}

void rt_table_append_markdown(rt_str *out, const char *text) {
    escape(out, text, "|*_`\\<");
}

static void print_markdown(const rt_table *t, const grid *g, rt_str *out) {
    if (*t->title)
        rt_str_appendf(out, "%s\n\n", t->title);
    for (int r = 0; r < g->rows; r++) {
        for (int c = 0; c < g->columns; c++) {
            const grid_cell *cell = at(g, r, c);
            rt_str_append(out, c ? " | " : "| ");
            rt_str_append(out, cell->best ? "**" : "");
            rt_table_append_markdown(out, cell->text);
            if (*cell->spread)
                rt_str_appendf(out, " \xc2\xb1 %s", cell->spread);
            rt_str_append(out, cell->best ? "**" : "");
        }
        rt_str_append(out, " |\n");
        for (int c = 0; r == 0 && c < g->columns; c++)
            rt_str_appendf(out, "|%s%s", c == 0 ? ":---" : "---:", c + 1 == g->columns ? "|\n" : "");
    }
    rt_str reasons;
    rt_str_init(&reasons);
    print_reasons(t, "- ", "no", &reasons);
    if (reasons.len)
        rt_str_appendf(out, "\n%s", rt_str_text(&reasons));
    rt_str_fail(out, reasons.st);
    rt_str_deinit(&reasons);
}

static void print_latex(const rt_table *t, const grid *g, rt_str *out) {
    if (*t->title) {
        rt_str_append(out, "% ");
        rt_str_appendf(out, "%s\n", t->title);
    }
    rt_str_append(out, "\\begin{tabular}{l");
    for (int c = 1; c < g->columns; c++)
        rt_str_append_char(out, 'r');
    rt_str_append(out, "}\n\\hline\n");
    for (int r = 0; r < g->rows; r++) {
        for (int c = 0; c < g->columns; c++) {
            const grid_cell *cell = at(g, r, c);
            rt_str_append(out, c ? " & " : "");
            rt_str_append(out, cell->best ? "\\textbf{" : "");
            escape(out, cell->text, "&%$#_{}");
            rt_str_append(out, cell->best ? "}" : "");
            if (*cell->spread)
                rt_str_appendf(out, " $\\pm$ %s", cell->spread);
        }
        rt_str_append(out, r == 0 ? " \\\\\n\\hline\n" : " \\\\\n");
    }
    rt_str_append(out, "\\hline\n\\end{tabular}\n");
    print_reasons(t, "% ", "-", out);
}

rt_status rt_table_print(const rt_table *t, const rt_table_options *o, rt_str *out) {
    grid g = {0};
    rt_status st = fill_grid(t, &g, o->format);
    if (st == RT_OK) {
        if (o->format == RT_TABLE_CSV)
            print_csv(t, &g, out);
        else if (o->format == RT_TABLE_MARKDOWN)
            print_markdown(t, &g, out);
        else if (o->format == RT_TABLE_LATEX)
            print_latex(t, &g, out);
        else
            print_text(t, &g, o, out);
        st = rt_str_status(out);
    }
    rt_free(g.cell);
    return st;
}
