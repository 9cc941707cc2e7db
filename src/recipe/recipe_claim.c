/*
 * recipe_claim.c - whether a claim on a table holds, given the noise of its numbers.
 *
 *   row.column < row.column     also <=, >, >=; a number may stand for either side
 *   lowest row.column           than every other row that has a number in that column; also highest,
 *   lowest row.column of a, b   or than the rows named
 *
 * With d by how much the claim is true and e the standard error of d, it
 *
 *   holds          if d >  2 e
 *   does not hold  if d < -2 e
 *   is within noise otherwise.
 *
 * e^2 is the sum of the squared standard errors of both cells (recipe_cell.c), or, with `pair: split`, that of the
 * differences of runs with the same value of that loop: what the runs have in common, such as a hard test set, is then
 * no noise. "lowest" holds if all comparisons do, and does not hold if one does not. The error of a single run is that
 * of its test rows: seeds differ by more; and two runs can be close to each other by luck. Verdicts on so few are
 * marked.
 */
#include "base/alloc.h"
#include "recipe/recipe_table.h"
#include <math.h>
#include <string.h>

typedef struct operand {
    double value;
    int64_t row, column; /* -1: a number */
} operand;

static const char *id_of(rt_jval list, int64_t i) {
    return rt_jval_text(rt_jval_at(list, i), "id");
}

/* Is s[0..n) "row.column"? */
static bool names_cell(const char *s, size_t n, const char *row, const char *column) {
    const size_t nr = strlen(row), nc = strlen(column);
    return n == nr + 1 + nc && memcmp(s, row, nr) == 0 && s[nr] == '.' && memcmp(s + nr + 1, column, nc) == 0;
}

static bool read_operand(const rt_table *t, const char *s, size_t n, operand *out) {
    while (n && s[n - 1] == ' ')
        n--;
    *out = (operand){.row = -1, .column = -1};
    if (rt_parse_f64(s, n, false, &out->value))
        return true;
    for (int64_t i = 0; i < t->nrows; i++)
        for (int64_t k = 0; k < t->ncolumns; k++)
            if (names_cell(s, n, id_of(t->rows, i), id_of(t->columns, k))) {
                *out = (operand){.value = rt_table_cell(t, i, k)->mean, .row = i, .column = k};
                return true;
            }
    return false;
}

/* ---- noise ---- */

static const char *loop_value(const rt_recipe_node *n, const char *loop) {
    for (int i = 0; i < n->at.n; i++)
        if (strcmp(n->at.name[i], loop) == 0)
            return n->at.value[i];
    return "";
}

/* Standard error of the mean of a - b over pairs; NaN unless there are two or more, and every run has its partner. */
static double error_of_pairs(const rt_recipe *r, const char *loop, const rt_sample *a, int na,
                             const rt_sample *b, int nb) {
    double mean = 0, squares = 0;
    int n = 0;
    for (int i = 0; i < na; i++)
        for (int k = 0; k < nb; k++)
            if (strcmp(loop_value(&r->nodes[a[i].node], loop), loop_value(&r->nodes[b[k].node], loop)) == 0) {
                const double d = a[i].value - b[k].value, delta = d - mean; /* Welford */
                n++;
                mean += delta / n;
                squares += delta * (d - mean);
            }
    return n == na && n == nb && n > 1 ? sqrt(squares / (n - 1) / n) : NAN;
}

static rt_status paired_error(const rt_table *t, const char *loop, const operand *a, const operand *b,
                              double *out) {
    rt_sample *x = NULL, *y = NULL;
    int nx, ny, wanted, missing;
    rt_status st;
    *out = NAN;
    RT_TRY_GOTO(rt_calloc(&x, (size_t)t->r->count + 1, sizeof *x));
    RT_TRY_GOTO(rt_calloc(&y, (size_t)t->r->count + 1, sizeof *y));
    RT_TRY_GOTO(rt_table_samples(t, a->row, a->column, x, &nx, &wanted, &missing));
    RT_TRY_GOTO(rt_table_samples(t, b->row, b->column, y, &ny, &wanted, &missing));
    *out = error_of_pairs(t->r, loop, x, nx, y, ny);
done:
    rt_free(x);
    rt_free(y);
    return st;
}

static double error_of(const rt_table *t, const operand *o) {
    return o->row < 0 ? 0 : rt_table_cell(t, o->row, o->column)->error;
}

static int fewest_runs(const rt_table *t, const operand *a, const operand *b) {
    const int x = a->row < 0 ? 0 : rt_table_cell(t, a->row, a->column)->n,
              y = b->row < 0 ? 0 : rt_table_cell(t, b->row, b->column)->n;
    return x && y ? RT_MIN(x, y) : x + y;
}

const char *rt_judgement_caution(const rt_judgement *g) {
    return g->runs == 1 ? ", one run" : g->runs == 2 ? ", two runs" : "";
}

/* ---- judging ---- */

/* That a is less than b (sign 1), or greater (sign -1). */
static rt_status compare(const rt_table *t, const operand *a, const operand *b, double sign, const char *pair,
                         rt_judgement *out) {
    *out = (rt_judgement){.verdict = RT_CLAIM_UNKNOWN, .difference = NAN, .error = NAN};
    out->column = a->row >= 0 ? a->column : b->column;
    if ((a->row >= 0 && !rt_table_has(t, a->row, a->column)) ||
        (b->row >= 0 && !rt_table_has(t, b->row, b->column))) {
        out->verdict = RT_CLAIM_NO_PART;
        return RT_OK;
    }
    if (!isfinite(a->value) || !isfinite(b->value))
        return RT_OK;
    out->difference = sign * (b->value - a->value);
    if (*pair && a->row >= 0 && b->row >= 0)
        RT_TRY(paired_error(t, pair, a, b, &out->error));
    if (!isfinite(out->error))
        out->error = hypot(error_of(t, a), error_of(t, b));
    out->runs = fewest_runs(t, a, b);
    out->verdict = !isfinite(out->error)               ? RT_CLAIM_NO_NOISE_KNOWN
                   : out->difference > 2 * out->error  ? RT_CLAIM_HOLDS
                   : out->difference < -2 * out->error ? RT_CLAIM_FAILS
                                                       : RT_CLAIM_IN_NOISE;
    return RT_OK;
}

/* Is `id` one of "a, b"? An empty list has all. */
static bool is_listed(const char *list, const char *id) {
    if (!*list)
        return true;
    while (*list) {
        list += strspn(list, ", ");
        const size_t n = strcspn(list, ", ");
        if (n == strlen(id) && n > 0 && memcmp(list, id, n) == 0)
            return true;
        list += n;
    }
    return false;
}

/* Every word of the list must be a row. */
static bool are_rows(const rt_table *t, const char *list) {
    while (*(list += strspn(list, ", "))) {
        const size_t n = strcspn(list, ", ");
        bool found = false;
        for (int64_t i = 0; i < t->nrows; i++)
            found = found || (n == strlen(id_of(t->rows, i)) && memcmp(list, id_of(t->rows, i), n) == 0);
        if (!found)
            return false;
        list += n;
    }
    return true;
}

/* The hardest comparison decides: the verdict that is least, and the smallest difference among equals. */
static rt_status compare_all(const rt_table *t, const operand *a, double sign, const char *list,
                             const char *pair, rt_judgement *out) {
    bool any = false;
    *out = (rt_judgement){.verdict = RT_CLAIM_NO_PART, .difference = NAN, .error = NAN, .column = a->column};
    for (int64_t i = 0; i < t->nrows; i++) {
        rt_judgement one;
        operand b = {.value = rt_table_cell(t, i, a->column)->mean, .row = i, .column = a->column};
        if (i == a->row || !is_listed(list, id_of(t->rows, i)))
            continue;
        RT_TRY(compare(t, a, &b, sign, pair, &one));
        const rt_cell *c = rt_table_cell(t, i, a->column);
        if (one.verdict == RT_CLAIM_NO_PART || (c->n == 0 && c->missing == 0)) /* no number, and never one */
            continue;
        if (!any || one.verdict < out->verdict ||
            (one.verdict == out->verdict && one.difference < out->difference))
            *out = one;
        any = true;
    }
    if (any && !rt_table_has(t, a->row, a->column))
        out->verdict = RT_CLAIM_NO_PART;
    return RT_OK;
}

static bool word(const char **s, const char *text) {
    const size_t n = strlen(text);
    if (strncmp(*s, text, n) != 0 || (*s)[n] != ' ')
        return false;
    *s += n + strspn(*s + n, " ");
    return true;
}

static rt_status refuse(const rt_table *t, const char *text) {
    RT_FAIL(RT_E_INPUT,
            "recipe %s: table '%s': claim '%s' is neither of the form row.column < row.column nor lowest "
            "row.column",
            t->r->name, rt_jval_text(t->spec, "id"), text);
}

rt_status rt_claim_judge(const rt_table *t, rt_jval claim, rt_judgement *out) {
    const char *text = rt_jval_text(claim, "holds"), *pair = rt_jval_text(claim, "pair"), *s = text;
    const bool lowest = word(&s, "lowest"), highest = !lowest && word(&s, "highest");
    operand a, b;
    bool on;
    RT_TRY(rt_recipe_is_on(t->r, claim, &on));
    if (lowest || highest) {
        const char *of = strstr(s, " of "), *list = of ? of + 4 : "";
        if (!read_operand(t, s, of ? (size_t)(of - s) : strlen(s), &a) || a.row < 0 || !are_rows(t, list))
            return refuse(t, text);
        RT_TRY(compare_all(t, &a, lowest ? 1 : -1, list, pair, out));
    } else {
        const size_t n = strcspn(s, "<>");
        const char *rest = s + n + (s[n] != 0);
        rest += *rest == '=';
        rest += strspn(rest, " ");
        if (!s[n] || !read_operand(t, s, n, &a) || !read_operand(t, rest, strlen(rest), &b))
            return refuse(t, text);
        RT_TRY(compare(t, &a, &b, s[n] == '<' ? 1 : -1, pair, out));
        if (out->verdict == RT_CLAIM_IN_NOISE && out->difference == 0 &&
            out->error == 0) /* equal, and exactly so */
            out->verdict = strchr(s, '=') ? RT_CLAIM_HOLDS : RT_CLAIM_FAILS;
    }
    if (!on)
        out->verdict = RT_CLAIM_NO_PART;
    return RT_OK;
}
