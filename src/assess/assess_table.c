/*
 * assess_table.c - which numbers of several assessments stand side by side.
 *
 * Runs of one task share a table: the metrics of the test rows with their cost; then a small table for each
 * foreign set (AUROC by measure), for corruptions (means), for each shift (accuracy, or error, by amount) and
 * for the agreement with a teacher. CSV is one table with every number in a column of its own, named by its
 * path. --metrics chooses the columns of the first table.
 *
 * The best of a column is marked where better means something: of accuracy and loss, not of entropy.
 */
#include "assess/assess_int.h"
#include "base/alloc.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Numbers besides the metrics of eval/metrics.def. */
static const struct {
    const char *name, *title;
    int better; /* 1: more, -1: less, 0: neither */
} others[] = {
    {"kl", "kl", -1},
    {"agreement", "agreement", 1},
    {"mutual_information_difference", "mut.inf diff", -1},
    {"entropy_difference", "entropy diff", -1},
    {"total_variance_difference", "total var diff", -1},
    {"knowledge_variance_difference", "know.var diff", -1},
    {"parameters", "params", -1},
    {"flops", "FLOP", -1},
    {"training_seconds", "train s", -1},
    {"infer_seconds", "infer s", -1},
};

/* Title and direction of a number by its name; false: it is none of those that are known. */
static bool find_known(const char *name, const char **title, int *better) {
    const rt_metric_info *list;
    const int n = rt_metric_list(&list);
    for (int i = 0; i < n; i++)
        if (strcmp(list[i].name, name) == 0) {
            *title = list[i].title;
            *better = list[i].better;
            return true;
        }
    for (int i = 0; i < RT_COUNT(others); i++)
        if (strcmp(others[i].name, name) == 0) {
            *title = others[i].title;
            *better = others[i].better;
            return true;
        }
    return false;
}

/* Names, titles and directions of a number by the last part of its path; what ends in "_corrupted" is like
 * the clean one. */
static void fill_column(rt_table_column *c, const char *path, const char *title) {
    char last[sizeof c->path];
    snprintf(c->path, sizeof c->path, "%s", path);
    for (char *s = c->path; *s; s++) /* names of sets hold neither */
        if (*s == '/' && s > c->path)
            *s = '.';
    const char *dot = strrchr(c->path, '.');
    snprintf(last, sizeof last, "%s", dot ? dot + 1 : c->path);
    char *corrupted = strstr(last, "_corrupted");
    if (corrupted)
        *corrupted = 0;
    const bool rank = strstr(c->path, ".auroc.") || strstr(c->path, ".aupr.") || strstr(c->path, ".prr.");
    const char *known = last;
    c->better = 0;
    (void)find_known(last, &known, &c->better);
    if (rank)
        c->better = 1;
    snprintf(c->title, sizeof c->title, "%s", title ? title : known);
    rt_str_clean(c->title, "");
    c->si = strcmp(last, "parameters") == 0 || strcmp(last, "flops") == 0;
    c->decimals = 4;
}

static rt_table_column *new_column(rt_table *t, const char *path, const char *title) {
    if (t->ncolumns >= RT_TABLE_COLUMNS)
        return NULL;
    rt_table_column *c = &t->column[t->ncolumns++];
    fill_column(c, path, title);
    return c;
}

/* Does any of the runs have this number, defined or not? */
static bool any_has(const rt_table *t, const char *path) {
    double v;
    for (int i = 0; i < t->nruns; i++)
        if (rt_assessment_value(t->run[i], path, &v, NULL))
            return true;
    return false;
}

static bool any_defined(const rt_table *t, const char *path) {
    double v;
    for (int i = 0; i < t->nruns; i++)
        if (rt_assessment_value(t->run[i], path, &v, NULL) && isfinite(v))
            return true;
    return false;
}

static rt_status fail_column(const rt_table *t, const char *name) {
    const rt_metric_info *list;
    const char *names[RT_METRICS_MAX];
    const int n = rt_metric_list(&list);
    int known = 0;
    for (int i = 0; i < n; i++)
        if (any_has(t, list[i].name) && rt_str_find(list[i].name, names, known) < 0)
            names[known++] = list[i].name;
    RT_FAIL_UNKNOWN(RT_E_USAGE, name, names, known, "--metrics: %s has no number",
                    rt_assessment_info(t->run[0])->run);
}

static rt_status add_listed(rt_table *t, const char *list) {
    for (const char *s = list;; s++) {
        const size_t n = strcspn(s, ",");
        char name[RT_METRIC_PATH];
        RT_TRY(rt_metric_path(name, s, n, "metrics"));
        if (!any_has(t, name))
            return fail_column(t, name);
        RT_FAIL_IF(!new_column(t, name, NULL), RT_E_USAGE, "--metrics: more than %d columns",
                   RT_TABLE_COLUMNS);
        s += n;
        if (!*s)
            return RT_OK;
    }
}

/* ---- the tables ---- */

/* The usual metrics of the task, and cost. */
static void add_usual(rt_table *t, bool regression, const rt_table_options *o) {
    const rt_metric_info *list;
    const int n = rt_metric_list(&list);
    for (int i = 0; i < n; i++)
        if ((list[i].usual || (o->per_class && rt_metric_find("balanced_accuracy", regression) == i)) &&
            list[i].regression == regression && any_has(t, list[i].name))
            (void)new_column(t, list[i].name, NULL);
    (void)new_column(t, "parameters", NULL);
    (void)new_column(t, "flops", NULL);
}

static rt_status test_table(rt_table *t, bool regression, const rt_table_options *o, rt_str *out) {
    snprintf(t->title, sizeof t->title, "%s", "");
    t->ncolumns = 0;
    t->members = t->alone = true;
    if (o->metrics)
        RT_TRY(add_listed(t, o->metrics));
    else
        add_usual(t, regression, o);
    return rt_table_print(t, o, out);
}

/* AUROC by measure, of every foreign set. */
static rt_status foreign_table(rt_table *t, const char *set, bool regression, const rt_table_options *o,
                               rt_str *out) {
    const rt_measure_info *list;
    const int n = rt_measure_list(&list);
    char path[128];
    double rows;
    snprintf(path, sizeof path, "%s.rows", set);
    if (!rt_assessment_value(t->run[0], path, &rows, NULL))
        rows = 0;
    snprintf(t->title, sizeof t->title, "%s, %.0f rows: AUROC by measure", set, rows);
    t->ncolumns = 0;
    for (int i = 0; i < n; i++) {
        snprintf(path, sizeof path, "%s.auroc.%s", set, list[i].name);
        if (list[i].regression == regression && any_defined(t, path))
            (void)new_column(t, path, NULL);
    }
    return rt_table_print(t, o, out);
}

static rt_status corrupt_table(rt_table *t, bool regression, const rt_table_options *o, rt_str *out) {
    const rt_metric_info *list;
    const int n = rt_metric_list(&list);
    char path[128];
    const rt_jval types = rt_jval_get(rt_jval_get(rt_assessment_sets(t->run[0]), "corrupt"), "types");
    snprintf(t->title, sizeof t->title, "corrupt: means over %lld types x %d severities",
             (long long)RT_MAX(rt_jval_len(types), (int64_t)0), RT_SEVERITIES);
    t->ncolumns = 0;
    for (int i = 0; i < n; i++) {
        snprintf(path, sizeof path, "corrupt.%s_corrupted", list[i].name);
        if (list[i].followed && list[i].regression == regression && any_defined(t, path))
            (void)new_column(t, path, NULL);
    }
    return rt_table_print(t, o, out);
}

static rt_status shift_table(rt_table *t, const char *set, const char *metric, const rt_table_options *o,
                             rt_str *out) {
    const rt_jval amounts = rt_jval_get(rt_jval_get(rt_assessment_sets(t->run[0]), set), "severity");
    char path[128], title[32];
    double amount;
    snprintf(t->title, sizeof t->title, "%s: %s by amount", set, metric);
    t->ncolumns = 0;
    for (int64_t i = 0; i < rt_jval_len(amounts); i++) {
        if (!rt_jval_f64(rt_jval_at(amounts, i), &amount))
            continue;
        snprintf(path, sizeof path, "%s.%s.%lld", set, metric, (long long)i);
        snprintf(title, sizeof title, "%g", amount);
        rt_table_column *c = any_defined(t, path) ? new_column(t, path, title) : NULL;
        if (!c)
            continue;
        c->decimals = 3;
        const char *known;
        (void)find_known(metric, &known, &c->better);
    }
    return t->ncolumns > 0 ? rt_table_print(t, o, out) : RT_OK;
}

static rt_status against_table(rt_table *t, const rt_table_options *o, rt_str *out) {
    static const char *const names[] = {"kl",
                                        "entropy_difference",
                                        "mutual_information_difference",
                                        "total_variance_difference",
                                        "knowledge_variance_difference",
                                        "agreement"};
    const char *teacher = "the teacher";
    char path[128];
    (void)rt_jval_str(rt_jval_get(rt_jval_get(rt_assessment_sets(t->run[0]), "against"), "teacher"),
                      &teacher);
    snprintf(t->title, sizeof t->title, "against %.100s", teacher);
    rt_str_clean(t->title, "");
    t->ncolumns = 0;
    for (int i = 0; i < RT_COUNT(names); i++) {
        snprintf(path, sizeof path, "against.%s", names[i]);
        if (any_defined(t, path))
            (void)new_column(t, path, NULL);
    }
    return rt_table_print(t, o, out);
}

/* ---- class by class, when asked for ---- */

static const char *class_name(const rt_assessment *a, int64_t c, char number[24]) {
    const char *name;
    snprintf(number, 24, "%lld", (long long)c);
    return rt_jval_str(rt_jval_at(rt_jval_get(a->root, "classes"), c), &name) ? name : number;
}

/* Runs side by side, a column for each class. */
static rt_status class_table(rt_table *t, const char *number, const char *title, int better,
                             const rt_table_options *o, rt_str *out) {
    char path[96], text[24];
    snprintf(t->title, sizeof t->title, "%s", title);
    t->ncolumns = 0;
    for (int64_t c = 0; c < RT_TABLE_COLUMNS; c++) {
        snprintf(path, sizeof path, "test.per_class.%s.%lld", number, (long long)c);
        if (!any_has(t, path))
            break;
        rt_table_column *column = new_column(t, path, class_name(t->run[0], c, text));
        column->better = better;
        column->decimals = 3;
        column->si = better == 0; /* a count */
    }
    if (t->ncolumns == 0)
        return RT_OK;
    rt_str_append_char(out, '\n');
    return rt_table_print(t, o, out);
}

/* A cell of the confusion matrix: a text in so many columns, on its left or right. */
static void matrix_cell(rt_str *out, const char *text, int width, bool right, bool lines) {
    const int fill = RT_MAX(width - rt_str_columns(text), 0);
    rt_str_appendf(out, "%s%*s", lines ? "| " : right ? " " : "", right ? fill : 0, "");
    if (lines)
        rt_table_append_markdown(out, text);
    else
        rt_str_append(out, text);
    rt_str_appendf(out, "%*s", (right ? 0 : fill) + (lines || !right), "");
}

/* What stands before a row; numbered: with the number that stands above its column. */
static void matrix_label(char out[120], const rt_assessment *a, int64_t c, bool numbered) {
    char text[24];
    const char *name = class_name(a, c, text);
    if (numbered)
        snprintf(out, 120, "%lld %.90s", (long long)c, name);
    else
        snprintf(out, 120, "%.90s", name);
    rt_str_clean(out, "");
}

/* Rows by class, columns by the predicted one. Names that are too long for a column are numbered. */
static rt_status confusion_table(const rt_assessment *a, const rt_table_options *o, rt_str *out) {
    enum { CELL = 6 };
    const rt_jval matrix = rt_jval_get(rt_jval_get(rt_assessment_sets(a), "test"), "confusion");
    const int64_t k = rt_jval_len(matrix);
    const bool lines = o->format == RT_TABLE_MARKDOWN;
    char text[120];
    bool numbered = false;
    int width = 5;
    if (k < 1 || (o->format != RT_TABLE_TEXT && !lines))
        return RT_OK;
    for (int64_t c = 0; c < k; c++) {
        matrix_label(text, a, c, false);
        numbered = numbered || rt_str_columns(text) > CELL;
    }
    for (int64_t c = 0; c < k; c++) {
        matrix_label(text, a, c, numbered);
        width = RT_MAX(width, rt_str_columns(text));
    }
    snprintf(text, sizeof text, "%.110s", a->info.run);
    rt_str_clean(text, "");
    rt_str_appendf(out, "\n%s: rows of a class (down) by the predicted one (across)\n\n", text);
    for (int64_t r = -1; r < k; r++) {
        matrix_label(text, a, RT_MAX(r, (int64_t)0), numbered);
        matrix_cell(out, r < 0 ? "class" : text, width, false, lines);
        for (int64_t c = 0; c < k; c++) {
            int64_t n = c;
            if (r >= 0)
                (void)rt_jval_i64(rt_jval_at(rt_jval_at(matrix, r), c), &n);
            snprintf(text, sizeof text, "%lld", (long long)n);
            if (r < 0 && !numbered)
                matrix_label(text, a, c, false);
            matrix_cell(out, text, CELL, true, lines);
        }
        rt_str_append(out, lines ? "|\n" : "\n");
        for (int64_t c = 0; lines && r < 0 && c <= k; c++)
            rt_str_append(out, c == 0 ? "|---|" : c < k ? "---:|" : "---:|\n");
    }
    return rt_str_status(out);
}

static rt_status class_tables(rt_table *t, const rt_table_options *o, rt_str *out) {
    t->members = t->alone = false;
    RT_TRY(class_table(t, "rows", "test rows by class", 0, o, out));
    RT_TRY(class_table(t, "recall", "recall by class: share of its rows that are right", 1, o, out));
    RT_TRY(class_table(t, "precision", "precision by class: share of the rows called so that are right", 1, o,
                       out));
    RT_TRY(class_table(t, "ece", "calibration error of the rows called so", -1, o, out));
    for (int i = 0; i < t->nruns; i++)
        RT_TRY(confusion_table(t->run[i], o, out));
    return RT_OK;
}

static rt_status small_tables(rt_table *t, bool regression, const rt_table_options *o, rt_str *out) {
    const rt_jval sets = rt_assessment_sets(t->run[0]);
    t->members = t->alone = false;
    for (int64_t i = 0; i < rt_jval_len(sets); i++) {
        const char *set = rt_jval_key(sets, i);
        if (strcmp(set, "test") == 0)
            continue;
        rt_str_append_char(out, '\n');
        if (rt_str_starts(set, "ood:"))
            RT_TRY(foreign_table(t, set, regression, o, out));
        else if (rt_str_starts(set, "shift:")) {
            RT_TRY(shift_table(t, set, regression ? "rmse" : "accuracy", o, out));
            rt_str_append_char(out, '\n');
            RT_TRY(shift_table(t, set, "nll", o, out));
        } else if (strcmp(set, "corrupt") == 0)
            RT_TRY(corrupt_table(t, regression, o, out));
        else if (strcmp(set, "against") == 0)
            RT_TRY(against_table(t, o, out));
    }
    return RT_OK;
}

/* ---- CSV: every number of the tree that is no array, below `path` ---- */

static void add_numbers(rt_table *t, rt_jval object, const char *path) {
    for (int64_t i = 0; i < rt_jval_len(object); i++) {
        const char *key = rt_jval_key(object, i);
        char name[160];
        double v;
        if (!key || strcmp(key, "interval") == 0 || strcmp(key, "types") == 0)
            continue;
        const int n = snprintf(name, sizeof name, "%s%s%s", path, *path ? "." : "", key);
        if (n < 0 || n >= (int)sizeof t->column[0].path)
            continue;
        const rt_jval child = rt_jval_get(object, key);
        const char *text;
        if (rt_jval_len(child) >= 0)
            add_numbers(t, child, name);
        else if (!rt_jval_str(child, &text) && rt_assessment_value(t->run[0], name, &v, NULL))
            (void)new_column(t, name, name);
    }
}

static rt_status csv_table(rt_table *t, const rt_table_options *o, rt_str *out) {
    static const char *const cost[] = {"parameters", "flops", "training_seconds", "infer_seconds"};
    t->title[0] = 0;
    t->ncolumns = 0;
    t->members = true;
    t->alone = false;
    if (o->metrics)
        RT_TRY(add_listed(t, o->metrics));
    for (int i = 0; !o->metrics && i < RT_COUNT(cost); i++)
        (void)new_column(t, cost[i], NULL);
    if (!o->metrics)
        add_numbers(t, rt_assessment_sets(t->run[0]), "");
    for (int i = 0; i < t->ncolumns; i++)
        memcpy(t->column[i].title, t->column[i].path, sizeof t->column[i].title);
    return rt_table_print(t, o, out);
}

static rt_status task_tables(rt_assessment *const *a, int n, bool regression, const rt_table_options *o,
                             rt_str *out) {
    rt_table *t;
    rt_status st = RT_OK;
    RT_TRY(rt_calloc(&t, 1, sizeof *t));
    RT_TRY_GOTO(rt_calloc(&t->run, (size_t)n, sizeof *t->run));
    for (int i = 0; i < n; i++)
        if (rt_assessment_info(a[i])->regression == regression)
            t->run[t->nruns++] = a[i];
    if (t->nruns == 0)
        goto done;
    if (out->len > 0)
        rt_str_append_char(out, '\n');
    if (o->format == RT_TABLE_CSV) {
        st = csv_table(t, o, out);
        goto done;
    }
    RT_TRY_GOTO(test_table(t, regression, o, out));
    if (o->per_class)
        RT_TRY_GOTO(class_tables(t, o, out));
    st = small_tables(t, regression, o, out);
done:
    rt_free(t->run);
    rt_free(t);
    return st;
}

rt_status rt_assess_tables(rt_assessment *const *a, int n, const rt_table_options *o, rt_str *out) {
    RT_TRY(task_tables(a, n, false, o, out));
    RT_TRY(task_tables(a, n, true, o, out));
    return rt_str_status(out);
}
