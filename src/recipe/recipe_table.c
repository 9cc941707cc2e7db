/*
 * recipe_table.c - what the runs of a recipe measured, as tables beside the paper's.
 *
 *   columns: {id, label, value, scale, offset, digits, better, tolerance, take, runs, where, when}
 *   rows:    {id, label, runs, where, value, paper: {column: "13.2 ± 0.4"}}
 *   claims:  {text, holds: "row.column < row.column", when}
 *   sort:    a column's id: rows from best to worst by it, those without a number last
 *
 * A cell is offset + scale * value, averaged over all finished runs of the stage `runs` (the row's, or else
 * the column's) whose loops agree with `where` of both. `value`, the row's or else the column's, is a path in the run's metrics.json, from
 * "evaluation" on, or from the top with a leading "/". Deviations are those of a sample (n - 1). `take: least` is the
 * least of the runs instead: times, which other work on the machine can only lengthen. Rows, columns and tables of
 * no run at this scale, or whose `when` is empty there, are left out, and claims on them. A cell is
 * reproduced when it is within the larger of the column's tolerance and twice the paper's deviation; a scale with
 * `compare: orderings` leaves that open.
 */
#include "base/alloc.h"
#include "base/file.h"
#include "base/json.h"
#include "recipe/recipe_int.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { CELLS_MAX = 65536, METRICS_MAX_BYTES = 64 << 20, NAME_MAX_BYTES = 64 };

typedef struct cell {
    double mean, deviation;
    int n, wanted, missing; /* runs that gave a number; runs there are; runs not measured yet */
    const char *paper;
    double paper_mean, paper_deviation; /* NaN: none given */
    bool judged, reproduced;
} cell;

typedef struct table {
    rt_recipe *r;
    rt_jval spec, columns, rows;
    int64_t ncolumns, nrows;
    cell *cells;    /* (nrows, ncolumns) */
    int64_t *order; /* rows as they are shown */
} table;

/* A scale too small for the paper's numbers says `compare: orderings`. */
static bool only_orderings(const rt_recipe *r) {
    return *rt_jval_text(r->scale, "compare") != 0;
}

static double number_of(rt_jval object, const char *key, double otherwise) {
    const char *s = rt_jval_text(object, key);
    double v;
    return *s && rt_parse_f64(s, strlen(s), false, &v) ? v : otherwise;
}

/* "sets.test.nll" in a document. */
static rt_jval follow(rt_jval v, const char *path) {
    char name[NAME_MAX_BYTES];
    while (v && *path) {
        size_t n = strcspn(path, ".");
        if (n >= sizeof name)
            return NULL;
        snprintf(name, sizeof name, "%.*s", (int)n, path);
        int64_t index;
        v = rt_parse_i64(name, n, &index) ? rt_jval_at(v, index) : rt_jval_get(v, name);
        path += n + (path[n] == '.');
    }
    return v;
}

static rt_status open_metrics(const char *dir, rt_jdoc **doc) {
    char *path;
    uint8_t *text = NULL;
    size_t n;
    RT_TRY(rt_path_join(&path, dir, "metrics.json"));
    rt_status st = rt_file_read(path, METRICS_MAX_BYTES, &text, &n);
    if (st == RT_OK)
        st = rt_jdoc_parse(doc, (const char *)text, n, path);
    rt_free(text);
    rt_free(path);
    return st;
}

static rt_status read_where(rt_recipe *r, rt_jval object, rt_binding *out) {
    rt_jval where = rt_jval_get(object, "where");
    for (int64_t i = 0; i < rt_jval_len(where); i++) {
        RT_FAIL_IF(out->n == RT_RECIPE_LOOPS, RT_E_INPUT, "recipe %s: too many conditions in 'where'",
                   r->name);
        out->name[out->n] = rt_jval_key(where, i);
        out->value[out->n++] = rt_jval_text(where, rt_jval_key(where, i));
    }
    return RT_OK;
}

/* Every loop of `where` must be one of the run's. */
static bool is_meant(const rt_recipe_node *n, const char *stage, const rt_binding *where) {
    if (!n->job.dir || strcmp(n->job.stage, stage) != 0 || !rt_binding_agrees(where, &n->at))
        return false;
    for (int i = 0; i < where->n; i++) {
        bool has = false;
        for (int k = 0; k < n->at.n; k++)
            has = has || strcmp(where->name[i], n->at.name[k]) == 0;
        if (!has)
            return false;
    }
    return true;
}

/* "13.2 ± 0.4", "13.2" */
static void read_paper(cell *c, const char *text) {
    c->paper = *text ? text : NULL;
    c->paper_mean = c->paper_deviation = NAN;
    size_t n = strcspn(text, " \xc2+");
    if (!rt_parse_f64(text, n, false, &c->paper_mean))
        return;
    const char *rest = text + n;
    rest += strcspn(rest, "0123456789.");
    rt_parse_f64(rest, strlen(rest), false, &c->paper_deviation);
}

static rt_status fill_cell(table *t, rt_jval row, rt_jval column, cell *c) {
    const char *stage = rt_jval_text(row, "runs"), *path = rt_jval_text(column, "value");
    rt_binding where = {.n = 0};
    double scale = number_of(column, "scale", 1), offset = number_of(column, "offset", 0), sum = 0,
           squares = 0, least = INFINITY;
    const char *take = rt_jval_text(column, "take");
    const bool take_least = strcmp(take, "least") == 0;
    RT_FAIL_IF(*take && !take_least, RT_E_INPUT,
               "recipe %s: column '%s' takes '%s'; wanted least, or nothing for the mean", t->r->name,
               rt_jval_text(column, "id"), take);
    if (!*stage)
        stage = rt_jval_text(column, "runs");
    if (*rt_jval_text(row, "value"))
        path = rt_jval_text(row, "value");
    RT_TRY(read_where(t->r, row, &where));
    RT_TRY(read_where(t->r, column, &where));
    *c = (cell){.mean = NAN, .deviation = NAN};
    bool on;
    RT_TRY(rt_recipe_is_on(t->r, column, &on));
    for (int i = 0; on && i < t->r->count; i++) {
        const rt_recipe_node *n = &t->r->nodes[i];
        if (!is_meant(n, stage, &where))
            continue;
        c->wanted++;
        rt_jdoc *doc = NULL;
        double v;
        if (!n->job.done || open_metrics(n->job.dir, &doc) != RT_OK) {
            c->missing++;
            continue;
        }
        rt_jval top = rt_jdoc_root(doc);
        rt_jval at = path[0] == '/' ? follow(top, path + 1) : follow(rt_jval_get(top, "evaluation"), path);
        c->missing += at == NULL;
        if (rt_jval_f64(at, &v)) {
            v = offset + scale * v;
            sum += v;
            squares += v * v;
            least = fmin(least, v);
            c->n++;
        }
        rt_jdoc_destroy(&doc);
    }
    if (c->n > 0)
        c->mean = take_least ? least : sum / c->n;
    if (c->n > 1 && !take_least)
        c->deviation = sqrt(fmax(0, (squares - sum * sum / c->n) / (c->n - 1)));
    read_paper(c, rt_jval_text(rt_jval_get(row, "paper"), rt_jval_text(column, "id")));
    double bound = number_of(column, "tolerance", 0);
    if (isfinite(c->paper_deviation))
        bound = fmax(bound, 2 * c->paper_deviation);
    c->judged = c->n > 0 && isfinite(c->paper_mean) && !only_orderings(t->r);
    c->reproduced = fabs(c->mean - c->paper_mean) <= bound;
    return RT_OK;
}

static rt_status fill_table(table *t, rt_recipe *r, rt_jval spec) {
    *t = (table){.r = r, .spec = spec};
    t->columns = rt_jval_get(spec, "columns");
    t->rows = rt_jval_get(spec, "rows");
    t->ncolumns = rt_jval_len(t->columns);
    t->nrows = rt_jval_len(t->rows);
    RT_FAIL_IF(t->ncolumns < 1 || t->nrows < 1, RT_E_INPUT, "recipe %s: table '%s' needs columns and rows",
               r->name, rt_jval_text(spec, "id"));
    RT_FAIL_IF(t->nrows > CELLS_MAX / t->ncolumns, RT_E_INPUT,
               "recipe %s: table '%s' has %lld rows of %lld columns; at most %d cells are supported", r->name,
               rt_jval_text(spec, "id"), (long long)t->nrows, (long long)t->ncolumns, CELLS_MAX);
    RT_TRY(rt_calloc(&t->cells, (size_t)(t->ncolumns * t->nrows), sizeof *t->cells));
    for (int64_t i = 0; i < t->nrows; i++)
        for (int64_t k = 0; k < t->ncolumns; k++)
            RT_TRY(fill_cell(t, rt_jval_at(t->rows, i), rt_jval_at(t->columns, k),
                             &t->cells[i * t->ncolumns + k]));
    return RT_OK;
}

/* Whether a run of this scale is in row i and column k; -1: in any of them. */
static bool is_part(const table *t, int64_t i, int64_t k) {
    for (int64_t a = RT_MAX(i, 0); a < (i < 0 ? t->nrows : i + 1); a++)
        for (int64_t b = RT_MAX(k, 0); b < (k < 0 ? t->ncolumns : k + 1); b++)
            if (t->cells[a * t->ncolumns + b].wanted > 0)
                return true;
    return false;
}

/* ---- claims ---- */

/* Is s[0..n) "row.column"? */
static bool names_cell(const char *s, size_t n, const char *row, const char *column) {
    const size_t nr = strlen(row), nc = strlen(column);
    return n == nr + 1 + nc && memcmp(s, row, nr) == 0 && s[nr] == '.' && memcmp(s + nr + 1, column, nc) == 0;
}

/* "row.column", or a number; *part: whether it is one at this scale. */
static bool operand(const table *t, const char *s, size_t n, double *out, bool *part) {
    while (n && s[n - 1] == ' ')
        n--;
    if (rt_parse_f64(s, n, false, out))
        return true;
    for (int64_t i = 0; i < t->nrows; i++)
        for (int64_t k = 0; k < t->ncolumns; k++)
            if (names_cell(s, n, rt_jval_text(rt_jval_at(t->rows, i), "id"),
                           rt_jval_text(rt_jval_at(t->columns, k), "id"))) {
                *out = t->cells[i * t->ncolumns + k].mean;
                *part = *part && is_part(t, i, k);
                return true;
            }
    return false;
}

/* 1: holds, 0: does not, -1: not known yet, -2: not part of this scale. */
static rt_status judge(const table *t, const char *text, int *verdict) {
    size_t n = strcspn(text, "<>");
    const char *rest = text + n + (text[n] != 0);
    double left, right;
    bool equal = *rest == '=', part = true;
    rest += equal;
    rest += strspn(rest, " ");
    RT_FAIL_IF(!text[n] || !operand(t, text, n, &left, &part) ||
                   !operand(t, rest, strlen(rest), &right, &part),
               RT_E_INPUT, "recipe %s: table '%s': claim '%s' is not of the form row.column < row.column",
               t->r->name, rt_jval_text(t->spec, "id"), text);
    if (!isfinite(left) || !isfinite(right))
        *verdict = part ? -1 : -2;
    else if (text[n] == '<')
        *verdict = equal ? left <= right : left < right;
    else
        *verdict = equal ? left >= right : left > right;
    return RT_OK;
}

/* ---- writing ---- */

static void json_cell(rt_json *j, const cell *c, const char *column) {
    rt_json_object_begin(j, column);
    rt_json_f64_or(j, "mean", c->mean,
                   !c->wanted   ? "not part of this scale"
                   : c->missing ? "not measured yet"
                                : "not defined for this model");
    if (isfinite(c->deviation))
        rt_json_f64(j, "deviation", c->deviation);
    rt_json_i64(j, "runs", c->n);
    if (c->paper) {
        rt_json_str(j, "paper", c->paper);
        if (c->judged)
            rt_json_bool(j, "reproduced", c->reproduced);
    }
    rt_json_object_end(j);
}

static void json_table(rt_json *j, const table *t) {
    for (int64_t i = 0; i < t->nrows; i++) {
        rt_jval row = rt_jval_at(t->rows, i);
        rt_json_object_begin(j, rt_jval_text(row, "id"));
        for (int64_t k = 0; k < t->ncolumns; k++)
            json_cell(j, &t->cells[i * t->ncolumns + k], rt_jval_text(rt_jval_at(t->columns, k), "id"));
        rt_json_object_end(j);
    }
}

static void text_cell(rt_str *out, const cell *c, int digits, bool best) {
    const char *mark = best ? "**" : "";
    if (c->n == 0) {
        rt_str_append(out, c->missing ? " ..." : " -");
    } else {
        rt_str_appendf(out, " %s%.*f%s", mark, digits, c->mean, mark);
        if (isfinite(c->deviation))
            rt_str_appendf(out, " ± %.*f", digits, c->deviation);
    }
    if (c->paper)
        rt_str_appendf(out, " (%s%s)", c->paper, !c->judged ? "" : c->reproduced ? " ✓" : " ✗");
    rt_str_append(out, " |");
}

/* Whether cell a is better than b in column k, which says what better is; a number is better than none. */
static bool is_better(const table *t, int64_t k, int64_t a, int64_t b) {
    const double x = t->cells[a * t->ncolumns + k].mean, y = t->cells[b * t->ncolumns + k].mean;
    if (!isfinite(x) || !isfinite(y))
        return isfinite(x) && !isfinite(y);
    return strcmp(rt_jval_text(rt_jval_at(t->columns, k), "better"), "lower") == 0 ? x < y : x > y;
}

/* Row of the best number of a column; -1: none is better than another. */
static int64_t best_row(const table *t, int64_t k) {
    int64_t best = -1;
    if (!*rt_jval_text(rt_jval_at(t->columns, k), "better"))
        return -1;
    for (int64_t i = 0; i < t->nrows; i++)
        if (isfinite(t->cells[i * t->ncolumns + k].mean) && (best < 0 || is_better(t, k, i, best)))
            best = i;
    return best;
}

/* Rows in the order they are shown in; equal ones stay as they are. */
static rt_status order_rows(table *t) {
    const char *by = rt_jval_text(t->spec, "sort");
    int64_t k = 0;
    RT_TRY(rt_calloc(&t->order, (size_t)t->nrows, sizeof *t->order));
    for (int64_t i = 0; i < t->nrows; i++)
        t->order[i] = i;
    if (!*by)
        return RT_OK;
    while (k < t->ncolumns && strcmp(rt_jval_text(rt_jval_at(t->columns, k), "id"), by) != 0)
        k++;
    RT_FAIL_IF(k == t->ncolumns || !*rt_jval_text(rt_jval_at(t->columns, k), "better"), RT_E_INPUT,
               "recipe %s: table '%s' is sorted by '%s', which is no column that says what is better",
               t->r->name, rt_jval_text(t->spec, "id"), by);
    for (int64_t i = 1; i < t->nrows; i++)
        for (int64_t at = i; at > 0 && is_better(t, k, t->order[at], t->order[at - 1]); at--) {
            const int64_t row = t->order[at];
            t->order[at] = t->order[at - 1];
            t->order[at - 1] = row;
        }
    return RT_OK;
}

/* A double has no more than 17. */
static int digits_of(rt_jval column) {
    return (int)fmin(fmax(number_of(column, "digits", 3), 0), 17);
}

static void text_table(rt_str *out, const table *t) {
    rt_str_appendf(out, "### %s\n\n", rt_jval_text(t->spec, "title"));
    if (!is_part(t, -1, -1)) {
        rt_str_append(out, "Not part of this scale.\n\n");
        return;
    }
    if (*rt_jval_text(t->spec, "note"))
        rt_str_appendf(out, "%s\n\n", rt_jval_text(t->spec, "note"));
    rt_str_appendf(out, "| %s |", rt_jval_text(t->spec, "corner"));
    for (int64_t k = 0; k < t->ncolumns; k++)
        if (is_part(t, -1, k))
            rt_str_appendf(out, " %s |", rt_jval_text(rt_jval_at(t->columns, k), "label"));
    rt_str_append(out, "\n|---|");
    for (int64_t k = 0; k < t->ncolumns; k++)
        rt_str_append(out, is_part(t, -1, k) ? "---:|" : "");
    rt_str_append(out, "\n");
    for (int64_t at = 0; at < t->nrows; at++) {
        const int64_t i = t->order[at];
        if (!is_part(t, i, -1))
            continue;
        rt_str_appendf(out, "| %s |", rt_jval_text(rt_jval_at(t->rows, i), "label"));
        for (int64_t k = 0; k < t->ncolumns; k++)
            if (is_part(t, -1, k))
                text_cell(out, &t->cells[i * t->ncolumns + k], digits_of(rt_jval_at(t->columns, k)),
                          best_row(t, k) == i);
        rt_str_append(out, "\n");
    }
    rt_str_append(out, "\n");
}

static rt_status write_claims(rt_json *j, rt_str *out, const table *t) {
    static const char *const verdicts[] = {"not part of this scale", "not known yet", "does not hold",
                                           "holds"},
                             *const marks[] = {"", "(not known yet)", "**does not hold:**", "**holds:**"};
    rt_jval claims = rt_jval_get(t->spec, "claims");
    int shown = 0;
    rt_json_array_begin(j, "claims");
    for (int64_t i = 0; i < rt_jval_len(claims); i++) {
        rt_jval claim = rt_jval_at(claims, i);
        int verdict = -1;
        bool on;
        RT_TRY(judge(t, rt_jval_text(claim, "holds"), &verdict));
        RT_TRY(rt_recipe_is_on(t->r, claim, &on));
        if (!on)
            verdict = -2;
        rt_json_object_begin(j, NULL);
        rt_json_str(j, "text", rt_jval_text(claim, "text"));
        rt_json_str(j, "rule", rt_jval_text(claim, "holds"));
        rt_json_str(j, "verdict", verdicts[verdict + 2]);
        rt_json_object_end(j);
        if (verdict > -2)
            rt_str_appendf(out, "- %s %s\n", marks[verdict + 2], rt_jval_text(claim, "text"));
        shown += verdict > -2;
    }
    rt_json_array_end(j);
    rt_str_append(out, shown > 0 ? "\n" : "");
    return RT_OK;
}

static rt_status seconds_of(const rt_recipe *r, const rt_recipe_job *j, double *out) {
    char *path;
    uint8_t *text = NULL;
    size_t n = 0;
    RT_TRY(rt_recipe_done_path(r, j->name, &path));
    rt_status st = rt_file_read(path, 4096, &text, &n);
    *out = NAN;
    if (st == RT_OK && n > 65)
        rt_parse_f64((const char *)text + 65, strcspn((const char *)text + 65, "\n"), false, out);
    rt_free(text);
    rt_free(path);
    return st;
}

static rt_status write_stages(const rt_recipe *r, rt_json *j, double *total) {
    rt_json_object_begin(j, "stages");
    *total = 0;
    for (int i = 0; i < r->count;) {
        const char *stage = r->nodes[i].job.stage;
        int commands = 0, done = 0;
        double seconds = 0, s;
        for (; i < r->count && r->nodes[i].job.stage == stage; i++, commands++)
            if (r->nodes[i].job.done) {
                RT_TRY(seconds_of(r, &r->nodes[i].job, &s));
                seconds += isfinite(s) ? s : 0;
                done++;
            }
        rt_json_object_begin(j, stage);
        rt_json_i64(j, "commands", commands);
        rt_json_i64(j, "finished", done);
        rt_json_f64(j, "seconds", round(seconds * 10) / 10);
        rt_json_object_end(j);
        *total += seconds;
    }
    rt_json_object_end(j);
    return RT_OK;
}

/* Does any row quote a paper? */
static bool has_paper(rt_jval tables) {
    for (int64_t i = 0; i < rt_jval_len(tables); i++) {
        rt_jval rows = rt_jval_get(rt_jval_at(tables, i), "rows");
        for (int64_t k = 0; k < rt_jval_len(rows); k++)
            if (rt_jval_len(rt_jval_get(rt_jval_at(rows, k), "paper")) > 0)
                return true;
    }
    return false;
}

rt_status rt_recipe_results(const rt_recipe *r, rt_str *json, rt_str *markdown) {
    rt_json j;
    double seconds;
    rt_jval tables = rt_jval_get(r->root, "tables");
    rt_json_init(&j, json, true);
    rt_json_object_begin(&j, NULL);
    rt_json_str(&j, "recipe", r->name);
    rt_json_str(&j, "scale", r->scale_name);
    rt_json_str(&j, "about", rt_jval_text(r->scale, "about"));
    RT_TRY(write_stages(r, &j, &seconds));
    rt_json_f64(&j, "seconds", round(seconds));
    rt_str_appendf(markdown, "## %s\n\n%s\n\n", rt_jval_text(r->root, "title"),
                   rt_jval_text(r->root, "about"));
    rt_str_appendf(
        markdown,
        "Source: %s. Scale `%s`: %s Command: `retort recipe run %s --scale %s`, %.0f minutes on the "
        "machine these numbers are from. Cells: mean ± deviation over runs%s.\n\n",
        rt_jval_text(r->root, "source"), r->scale_name, rt_jval_text(r->scale, "about"), r->name,
        r->scale_name, ceil(seconds / 60),
        !has_paper(tables) ? ""
        : only_orderings(r)
            ? "; in parentheses the paper's, from settings so much larger that only orderings can be compared"
            : "; in parentheses the paper's, with ✓ if ours agrees within the tolerance of the recipe or "
              "twice the paper's deviation, else ✗");
    rt_json_object_begin(&j, "tables");
    for (int64_t i = 0; i < rt_jval_len(tables); i++) {
        table t;
        rt_status st = fill_table(&t, (rt_recipe *)r, rt_jval_at(tables, i));
        if (st == RT_OK)
            st = order_rows(&t);
        if (st == RT_OK) {
            rt_json_object_begin(&j, rt_jval_text(t.spec, "id"));
            text_table(markdown, &t);
            json_table(&j, &t);
            st = write_claims(&j, markdown, &t);
            rt_json_object_end(&j);
        }
        rt_free(t.cells);
        rt_free(t.order);
        RT_TRY(st);
    }
    rt_json_object_end(&j);
    rt_json_object_end(&j);
    rt_str_append_char(json, '\n');
    RT_TRY(rt_str_status(json));
    return rt_str_status(markdown);
}

static rt_status write_file(const char *dir, const char *name, const rt_str *text) {
    char *path;
    RT_TRY(rt_path_join(&path, dir, name));
    rt_status st = rt_file_write_atomic(path, rt_str_text(text), text->len);
    rt_free(path);
    return st;
}

rt_status rt_recipe_write_results(const rt_recipe *r) {
    rt_str json, markdown;
    rt_str_init(&json);
    rt_str_init(&markdown);
    rt_status st = rt_recipe_results(r, &json, &markdown);
    if (st == RT_OK)
        st = write_file(r->dir, "results.json", &json);
    if (st == RT_OK)
        st = write_file(r->dir, "tables.md", &markdown);
    rt_str_deinit(&json);
    rt_str_deinit(&markdown);
    return st;
}
