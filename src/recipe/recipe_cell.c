/*
 * recipe_cell.c - the cells of a table: means over runs, with their noise.
 *
 *   columns: {id, label, value, scale, offset, digits, better, tolerance, take, rows, runs, where, when}
 *   rows:    {id, label, runs, where, value, paper: {column: "13.2 ± 0.4"}}
 *
 * A cell is offset + scale * value, averaged over all finished runs of the stage `runs` (the row's, or else the
 * column's) whose loops agree with `where` of both. `value`, the row's or else the column's, is a path in what was
 * measured (io/json_path.c): from "evaluation" on, or from the top of metrics.json with a leading "/".
 *
 *   deviation  s, of a sample (n - 1)
 *   error      s / sqrt(n); of one run a quarter of its 95 % bootstrap interval, or, of an accuracy p counted on
 *              `rows` rows, sqrt(p (1 - p) / rows)
 *
 * `take: least` is the least of the runs instead, and has neither: times, which other work on the machine can only
 * lengthen. A cell is reproduced when it is within the larger of the column's tolerance and twice the paper's
 * deviation; a scale with `compare: orderings` leaves that open.
 */
#include "base/alloc.h"
#include "recipe/recipe_table.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { CELLS_MAX = 65536 };

bool rt_recipe_only_orderings(const rt_recipe *r) {
    return *rt_jval_text(r->scale, "compare") != 0;
}

const char *rt_recipe_title(const rt_recipe *r) {
    const char *own = rt_jval_text(r->scale, "title");
    return *own ? own : rt_jval_text(r->root, "title");
}

double rt_jval_number(rt_jval object, const char *key, double otherwise) {
    const char *s = rt_jval_text(object, key);
    double v;
    return *s && rt_parse_f64(s, strlen(s), false, &v) ? v : otherwise;
}

const rt_cell *rt_table_cell(const rt_table *t, int64_t row, int64_t column) {
    return &t->cells[row * t->ncolumns + column];
}

/* ---- which runs ---- */

static rt_status read_where(const rt_recipe *r, rt_jval object, rt_binding *out) {
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

/* The command, and all that measure its run. */
static bool is_finished(const rt_recipe *r, int command) {
    bool done = r->nodes[command].job.done;
    for (int i = command + 1; i < r->count; i++)
        done = done && (r->nodes[i].measures != command || r->nodes[i].job.done);
    return done;
}

/* ---- one run ---- */

static double counting_error(double p, double rows) {
    return rows > 0 && p >= 0 && p <= 1 ? sqrt(p * (1 - p) / rows) : NAN;
}

static double error_of_one(const rt_recipe *r, int node, const char *path, double value, rt_jval column) {
    double lo, hi;
    if (rt_measured_interval(r, node, path, &lo, &hi))
        return (hi - lo) / 4;
    return counting_error(value, rt_jval_number(column, "rows", 0));
}

rt_status rt_table_samples(const rt_table *t, int64_t row, int64_t column, rt_sample *out, int *n,
                           int *wanted, int *missing) {
    rt_jval i = rt_jval_at(t->rows, row), k = rt_jval_at(t->columns, column);
    const char *stage = rt_jval_text(*rt_jval_text(i, "runs") ? i : k, "runs"),
               *path = rt_jval_text(*rt_jval_text(i, "value") ? i : k, "value");
    const double scale = rt_jval_number(k, "scale", 1), offset = rt_jval_number(k, "offset", 0);
    rt_binding where = {.n = 0};
    bool on;
    *n = *wanted = *missing = 0;
    RT_TRY(read_where(t->r, i, &where));
    RT_TRY(read_where(t->r, k, &where));
    RT_TRY(rt_recipe_is_on(t->r, t->spec, &on));
    if (on)
        RT_TRY(rt_recipe_is_on(t->r, k, &on));
    for (int at = 0; on && at < t->r->count; at++) {
        rt_jval v;
        double x;
        if (!is_meant(&t->r->nodes[at], stage, &where))
            continue;
        ++*wanted;
        if (!rt_measured_find(t->r, at, path, &v))
            *missing += !is_finished(t->r, at);
        else if (rt_jval_f64(v, &x))
            out[(*n)++] = (rt_sample){.node = at,
                                      .value = offset + scale * x,
                                      .error = fabs(scale) * error_of_one(t->r, at, path, x, k)};
    }
    return RT_OK;
}

/* ---- cells ---- */

/* "13.2 ± 0.4", "13.2" */
static void read_paper(rt_cell *c, const char *text) {
    c->paper = *text ? text : NULL;
    c->paper_mean = c->paper_deviation = NAN;
    size_t n = strcspn(text, " \xc2+");
    if (!rt_parse_f64(text, n, false, &c->paper_mean))
        return;
    const char *rest = text + n;
    rest += strcspn(rest, "0123456789.");
    rt_parse_f64(rest, strlen(rest), false, &c->paper_deviation);
}

static void set_statistics(rt_cell *c, const rt_sample *s, bool take_least) {
    double sum = 0, squares = 0, least = INFINITY;
    for (int i = 0; i < c->n; i++) {
        sum += s[i].value;
        least = fmin(least, s[i].value);
    }
    if (c->n == 0)
        return;
    c->mean = take_least ? least : sum / c->n;
    if (take_least)
        return;
    for (int i = 0; i < c->n; i++)
        squares += (s[i].value - c->mean) * (s[i].value - c->mean);
    if (c->n > 1) {
        c->deviation = sqrt(squares / (c->n - 1));
        c->error = c->deviation / sqrt(c->n);
    } else {
        c->error = s[0].error;
    }
}

/* From results.json as it was written before commands were kept. */
static void set_kept(const rt_table *t, rt_cell *c, int64_t row, int64_t column) {
    rt_jval k = rt_jval_at(t->columns, column), tables = rt_jval_get(rt_jdoc_root(t->r->kept), "tables"),
            v = rt_jval_get(rt_jval_get(rt_jval_get(tables, rt_jval_text(t->spec, "id")),
                                        rt_jval_text(rt_jval_at(t->rows, row), "id")),
                            rt_jval_text(k, "id"));
    int64_t n;
    c->missing = !v || strcmp(rt_jval_text(v, "mean_reason"), "not measured yet") == 0;
    if (!rt_jval_i64(rt_jval_get(v, "runs"), &n) || n < 1 || !rt_jval_f64(rt_jval_get(v, "mean"), &c->mean))
        return;
    c->n = c->wanted = (int)RT_MIN(n, 1000000);
    rt_jval_f64(rt_jval_get(v, "deviation"), &c->deviation);
    if (isfinite(c->deviation))
        c->error = c->deviation / sqrt(c->n);
    else if (!rt_jval_f64(rt_jval_get(v, "error"), &c->error) && c->n == 1)
        c->error = fabs(rt_jval_number(k, "scale", 1)) *
                   counting_error((c->mean - rt_jval_number(k, "offset", 0)) / rt_jval_number(k, "scale", 1),
                                  rt_jval_number(k, "rows", 0));
}

static rt_status fill_cell(const rt_table *t, int64_t row, int64_t column, rt_sample *samples, rt_cell *c) {
    rt_jval k = rt_jval_at(t->columns, column);
    const char *take = rt_jval_text(k, "take");
    const bool take_least = strcmp(take, "least") == 0;
    RT_FAIL_IF(*take && !take_least, RT_E_INPUT,
               "recipe %s: column '%s' takes '%s'; wanted least, or nothing for the mean", t->r->name,
               rt_jval_text(k, "id"), take);
    *c = (rt_cell){.mean = NAN, .deviation = NAN, .error = NAN};
    RT_TRY(rt_table_samples(t, row, column, samples, &c->n, &c->wanted, &c->missing));
    if (c->n == 0 && c->missing < c->wanted) /* finished, without this number: so will the others be */
        c->missing = 0;
    set_statistics(c, samples, take_least);
    if (t->r->kept && c->wanted > 0)
        set_kept(t, c, row, column);
    read_paper(c, rt_jval_text(rt_jval_get(rt_jval_at(t->rows, row), "paper"), rt_jval_text(k, "id")));
    double bound = rt_jval_number(k, "tolerance", 0);
    if (isfinite(c->paper_deviation))
        bound = fmax(bound, 2 * c->paper_deviation);
    c->judged = c->n > 0 && isfinite(c->paper_mean) && !rt_recipe_only_orderings(t->r);
    c->reproduced = fabs(c->mean - c->paper_mean) <= bound;
    return RT_OK;
}

/* ---- tables ---- */

/* Whether row a is better than b in column k, which says what better is; a number is better than none. */
static bool is_better(const rt_table *t, int64_t k, int64_t a, int64_t b) {
    const double x = rt_table_cell(t, a, k)->mean, y = rt_table_cell(t, b, k)->mean;
    if (!isfinite(x) || !isfinite(y))
        return isfinite(x) && !isfinite(y);
    return strcmp(rt_jval_text(rt_jval_at(t->columns, k), "better"), "lower") == 0 ? x < y : x > y;
}

/* Rows in the order they are shown in; equal ones stay as they are. */
static rt_status order_rows(rt_table *t) {
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

rt_status rt_table_fill(rt_table *t, rt_recipe *r, rt_jval spec) {
    *t = (rt_table){.r = r, .spec = spec};
    t->columns = rt_jval_get(spec, "columns");
    t->rows = rt_jval_get(spec, "rows");
    t->ncolumns = rt_jval_len(t->columns);
    t->nrows = rt_jval_len(t->rows);
    RT_FAIL_IF(t->ncolumns < 1 || t->nrows < 1, RT_E_INPUT, "recipe %s: table '%s' needs columns and rows",
               r->name, rt_jval_text(spec, "id"));
    RT_FAIL_IF(t->nrows > CELLS_MAX / t->ncolumns, RT_E_INPUT,
               "recipe %s: table '%s' has %lld rows of %lld columns; at most %d cells are supported", r->name,
               rt_jval_text(spec, "id"), (long long)t->nrows, (long long)t->ncolumns, CELLS_MAX);
    rt_sample *samples = NULL;
    rt_status st;
    RT_TRY_GOTO(rt_calloc(&t->cells, (size_t)(t->ncolumns * t->nrows), sizeof *t->cells));
    RT_TRY_GOTO(rt_calloc(&samples, (size_t)r->count + 1, sizeof *samples));
    for (int64_t i = 0; i < t->nrows; i++)
        for (int64_t k = 0; k < t->ncolumns; k++)
            RT_TRY_GOTO(fill_cell(t, i, k, samples, &t->cells[i * t->ncolumns + k]));
    st = order_rows(t);
done:
    rt_free(samples);
    return st;
}

void rt_table_deinit(rt_table *t) {
    rt_free(t->cells);
    rt_free(t->order);
}

bool rt_table_has(const rt_table *t, int64_t row, int64_t column) {
    for (int64_t i = RT_MAX(row, 0); i < (row < 0 ? t->nrows : row + 1); i++)
        for (int64_t k = RT_MAX(column, 0); k < (column < 0 ? t->ncolumns : column + 1); k++)
            if (rt_table_cell(t, i, k)->wanted > 0)
                return true;
    return false;
}

bool rt_table_row_is_open(const rt_table *t, int64_t row) {
    int missing = 0;
    for (int64_t k = 0; k < t->ncolumns; k++) {
        const rt_cell *c = rt_table_cell(t, row, k);
        if (c->n > 0 || c->paper)
            return false;
        missing += c->missing;
    }
    return missing > 0;
}

rt_status rt_table_open_rows(const rt_table *t, rt_str *out) {
    for (int64_t at = 0; at < t->nrows; at++)
        if (rt_table_row_is_open(t, t->order[at]))
            rt_str_appendf(out, "%s%s", out->len ? "; " : "Not measured yet: ",
                           rt_jval_text(rt_jval_at(t->rows, t->order[at]), "label"));
    if (out->len)
        rt_str_append(out, ".");
    return rt_str_status(out);
}

/* A double has no more than 17. */
int rt_table_digits(const rt_table *t, int64_t column) {
    return (int)fmin(fmax(rt_jval_number(rt_jval_at(t->columns, column), "digits", 3), 0), 17);
}

bool rt_table_is_begun(const rt_table *t) {
    bool any = false;
    for (int64_t i = 0; i < t->nrows * t->ncolumns; i++)
        any = any || t->cells[i].n > 0;
    return any;
}
