/*
 * report_table.c - tables of runs and the headline above them.
 *
 * A table is a list of columns, most of them from columns.def; rows are runs. Cells carry their value (data-v) and the
 * place it came from (data-path), by which the script sorts and checks them. The best value of a column is marked only
 * among runs measured on the same data.
 */
#include "base/alloc.h"
#include "eval/eval.h"
#include "report/report_int.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

typedef enum format { FORMAT_number, FORMAT_count, FORMAT_seconds, FORMAT_relative } format;
typedef enum table_id { TABLE_cost, TABLE_trained, TABLE_against } table_id;
enum { COLUMNS_MAX = 64 };

typedef struct column {
    const char *path, *heading, *meaning;
    int direction;
    format format;
} column;

typedef struct columns {
    rt_report *page;
    column at[COLUMNS_MAX];
    int n;
} columns;

static const struct {
    table_id table;
    column column;
} known[] = {
#define RT_COLUMN(table, path, heading, direction, format, meaning)                                          \
    {TABLE_##table, {path, heading, meaning, direction, FORMAT_##format}},
#include "report/columns.def"
#undef RT_COLUMN
};

static rt_status join(rt_arena *a, const char **out, const char *first, const char *second,
                      const char *third) {
    rt_str text;
    rt_str_init(&text);
    rt_str_append(&text, first);
    rt_str_append(&text, second);
    rt_str_append(&text, third);
    rt_status st = rt_arena_text(a, out, &text);
    rt_str_deinit(&text);
    return st;
}

/* Keys as words. */
static rt_status in_words(rt_arena *a, const char **out, const char *first, const char *key) {
    RT_TRY(join(a, out, first, strcmp(key, "epkl") == 0 ? "EPKL" : key, ""));
    for (char *s = (char *)*out; (s = strchr(s, '_')) != NULL;)
        *s = ' ';
    return RT_OK;
}

/* The interval of a number; of the mean of members alone, the lowest and the highest of them. */
static bool find_interval(rt_jval root, const column *c, double *low, double *high) {
    char place[2][256];
    static const char top[] = "evaluation/";
    const char *alone = strstr(c->path, "/single/");
    if (c->format != FORMAT_number || !rt_str_starts(c->path, top))
        return false;
    if (!alone)
        return rt_metrics_interval(NULL, rt_jval_get(root, "evaluation"), c->path + strlen(top), low, high);
    for (int i = 0; i < 2; i++)
        snprintf(place[i], sizeof place[i], "%.*s/single_%s/%s", (int)(alone - c->path), c->path,
                 i ? "max" : "min", alone + strlen("/single/"));
    return rt_report_number(root, place[0], low) && rt_report_number(root, place[1], high);
}

static rt_status add_column(columns *t, column c) {
    if (t->n == COLUMNS_MAX || !rt_report_any(t->page, c.path))
        return RT_OK;
    t->at[t->n++] = c;
    return RT_OK;
}

static rt_status add_known(columns *t, table_id table) {
    for (int64_t i = 0; i < RT_COUNT(known); i++)
        if (known[i].table == table)
            RT_TRY(add_column(t, known[i].column));
    return RT_OK;
}

static bool has_column(const columns *t, const char *path) {
    for (int i = 0; i < t->n; i++)
        if (strcmp(t->at[i].path, path) == 0)
            return true;
    return false;
}

/* Metrics of eval/metrics.def that are `wanted`, at `dir`/NAME`end`. */
static rt_status add_metrics(columns *t, const char *dir, const char *end, const char *heading,
                             bool (*wanted)(const rt_metric_info *m)) {
    const rt_metric_info *list;
    const int n = rt_metric_list(&list);
    for (int i = 0; i < n; i++) {
        column c = {.meaning = list[i].meaning, .direction = list[i].better};
        if (!wanted(&list[i]))
            continue;
        RT_TRY(join(&t->page->arena, &c.path, dir, list[i].name, end));
        RT_TRY(join(&t->page->arena, &c.heading, list[i].heading, heading, ""));
        if (!has_column(t, c.path)) /* both tasks have an NLL */
            RT_TRY(add_column(t, c));
    }
    return RT_OK;
}

static bool is_quality(const rt_metric_info *m) {
    return m->usual && m->better != 0;
}

static bool is_further(const rt_metric_info *m) {
    return !is_quality(m);
}

static bool is_accuracy(const rt_metric_info *m) {
    return strcmp(m->name, "accuracy") == 0;
}

static bool is_followed(const rt_metric_info *m) {
    return m->followed && m->better != 0;
}

/* ---- writing ---- */

static void put_number(rt_str *out, double v, format f) {
    if (f == FORMAT_number && v == floor(v) && fabs(v) >= 2 && fabs(v) < 1e6)
        rt_str_appendf(out, "%.0f", v); /* counts */
    else if (f == FORMAT_count)
        rt_report_si(out, v);
    else if (f == FORMAT_seconds)
        rt_report_seconds(out, v);
    else if (f == FORMAT_relative)
        rt_str_appendf(out, v >= 0.0995 ? "%.2f" : "%.3f", v);
    else if (v != 0 && (fabs(v) < 0.00095 || fabs(v) >= 1e5))
        rt_str_appendf(out, "%.2e", v);
    else
        rt_str_appendf(out, "%.*f", fabs(v) < 9.9995 ? 4 : 2, v);
}

/* The value of a cell. Where a run is its own teacher, agreement means nothing and is left out. */
static bool cell_value(const rt_report_run *r, const column *c, double *out) {
    const char *run = rt_report_text(r->root, "evaluation/run"),
               *teacher = rt_report_text(r->root, "evaluation/sets/against/teacher");
    if (run && teacher && strcmp(run, teacher) == 0 && rt_str_starts(c->path, "evaluation/sets/against/"))
        return false;
    return rt_report_number(r->root, c->path, out);
}

static double column_extreme(const rt_report *p, const column *c, int direction, int *count) {
    double best = NAN, v;
    *count = 0;
    for (int i = 0; i < p->n; i++)
        if (cell_value(&p->runs[i], c, &v)) {
            ++*count;
            if (isnan(best) || (direction > 0 ? v > best : v < best))
                best = v;
        }
    return best;
}

void rt_report_run_tag(const rt_report *p, int run, rt_str *out) {
    rt_str_appendf(out, "<span class=\"run c%d\"><i></i>", run % 8);
    rt_report_escape(out, p->runs[run].name);
    rt_str_append(out, "</span>");
}

void rt_report_tab_head(const rt_report *p, const rt_report_tab *t, rt_str *out) {
    rt_str_appendf(out,
                   "<div class=\"scroll tab\" data-tab=\"%s\" tabindex=\"0\" role=\"region\" "
                   "aria-label=\"%s\"><table class=\"sortable\"><caption><span>%s</span></caption>"
                   "<thead><tr><th scope=\"col\" class=\"name\">%s</th>",
                   t->name, t->label, t->caption, t->corner);
    for (int r = 0; r < p->n; r++) {
        if (!t->has(p, r))
            continue;
        rt_str_appendf(out, "<th scope=\"col\" class=\"num\" data-direction=\"%d\">", t->better);
        rt_report_run_tag(p, r, out);
        rt_str_append(out, "</th>");
    }
    rt_str_append(out, "</tr></thead><tbody>");
}

static void put_cell(const rt_report *p, const column *c, int run, double largest, double best, rt_str *out) {
    double v, low, high;
    char exact[40];
    if (!cell_value(&p->runs[run], c, &v)) {
        rt_str_append(out, "<td class=\"num none\">&ndash;</td>");
        return;
    }
    rt_format_f64(exact, v);
    rt_str_appendf(out, "<td class=\"num%s\" data-v=\"%s\" data-run=\"%d\" data-path=\"",
                   v == best ? " best" : "", exact, run);
    rt_report_escape(out, c->path);
    rt_str_appendf(out, "\" title=\"%s\">", exact);
    put_number(out, c->format == FORMAT_relative && largest > 0 ? v / largest : v, c->format);
    if (find_interval(p->runs[run].root, c, &low, &high)) {
        rt_str_append(out, "<small>");
        put_number(out, low, FORMAT_number);
        rt_str_append(out, " &ndash; ");
        put_number(out, high, FORMAT_number);
        rt_str_append(out, "</small>");
    }
    rt_str_append(out, "</td>");
}

static bool has_any(const columns *t, int run) {
    double v;
    for (int i = 0; i < t->n; i++)
        if (cell_value(&t->page->runs[run], &t->at[i], &v))
            return true;
    return false;
}

static void put_head(const columns *t, rt_str *out) {
    rt_str_append(out, "<thead><tr><th scope=\"col\" class=\"name\">run</th>");
    for (int i = 0; i < t->n; i++) {
        const column *c = &t->at[i];
        rt_str_appendf(out, "<th scope=\"col\" class=\"num\" data-direction=\"%d\" title=\"", c->direction);
        rt_report_escape(out, c->meaning);
        rt_str_append(out, "\">");
        rt_report_escape(out, c->heading);
        rt_str_append(out, c->direction > 0   ? "&nbsp;<b>&uarr;</b>"
                           : c->direction < 0 ? "&nbsp;<b>&darr;</b>"
                                              : "");
        rt_str_append(out, "</th>");
    }
    rt_str_append(out, "</tr></thead>");
}

/* all: rows for runs without any value, too. */
static void put_table(const columns *t, const char *caption, bool all, rt_str *out) {
    const rt_report *p = t->page;
    double best[COLUMNS_MAX], largest[COLUMNS_MAX];
    if (t->n == 0 && !all)
        return;
    for (int i = 0; i < t->n; i++) {
        int count;
        largest[i] = column_extreme(p, &t->at[i], 1, &count);
        best[i] = column_extreme(p, &t->at[i], t->at[i].direction, &count);
        double worst = column_extreme(p, &t->at[i], -t->at[i].direction, &count);
        if (best[i] == worst || t->at[i].direction == 0 || !p->comparable)
            best[i] = NAN;
    }
    rt_str_append(out, "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"");
    rt_report_escape(out, caption);
    rt_str_append(out, "\"><table class=\"sortable\"><caption><span>");
    rt_report_escape(out, caption);
    rt_str_append(out, "</span></caption>");
    put_head(t, out);
    rt_str_append(out, "<tbody>");
    for (int r = 0; r < p->n; r++) {
        if (!all && !has_any(t, r))
            continue;
        rt_str_appendf(out, "<tr data-run=\"%d\"><th scope=\"row\" class=\"name\">", r);
        rt_report_run_tag(p, r, out);
        const char *arch = rt_report_text(p->runs[r].root, "evaluation/arch"),
                   *method = rt_report_text(p->runs[r].root, "evaluation/method");
        if (all && arch) {
            rt_str_append(out, "<small>");
            rt_report_escape(out, method ? method : "");
            rt_str_append(out, method ? ", " : "");
            rt_report_escape(out, arch);
            rt_str_append(out, "</small>");
        } else if (all && !rt_report_find(p->runs[r].root, "evaluation")) {
            rt_str_append(out, "<small>not evaluated</small>");
        }
        rt_str_append(out, "</th>");
        for (int i = 0; i < t->n; i++)
            put_cell(p, &t->at[i], r, largest[i], best[i], out);
        rt_str_append(out, "</tr>");
    }
    rt_str_append(out, "</tbody></table></div>\n");
}

static rt_status known_table(rt_report *p, table_id table, const char *caption, rt_str *out) {
    columns t = {.page = p};
    RT_TRY(add_known(&t, table));
    put_table(&t, caption, false, out);
    return RT_OK;
}

/* ---- sections ---- */

/* AUROC of each foreign data set by the total uncertainty: the measure every model has. */
static rt_status add_foreign(columns *t) {
    static const char *const measures[][2] = {{"entropy", " by entropy"}, {"total_variance", " by variance"}};
    const char **sets;
    int n;
    RT_TRY(rt_report_keys(t->page, "evaluation/sets", "ood:", &sets, &n));
    for (int i = 0; i < 2 * n; i++) {
        const char *const *measure = measures[i % 2];
        column c = {.direction = 1,
                    .meaning = "area under the ROC curve of telling this data set from the test set"};
        RT_TRY(join(&t->page->arena, &c.path, "evaluation/sets/", sets[i / 2], "/auroc/"));
        RT_TRY(join(&t->page->arena, &c.path, c.path, measure[0], ""));
        RT_TRY(join(&t->page->arena, &c.heading, "AUROC ", sets[i / 2] + 4, measure[1]));
        RT_TRY(add_column(t, c));
    }
    return RT_OK;
}

rt_status rt_report_body_results(rt_report *p, rt_str *out) {
    columns t = {.page = p}, cost = {.page = p};
    RT_TRY(add_metrics(&t, "evaluation/sets/test/", "", "", is_quality));
    RT_TRY(add_metrics(&t, "evaluation/sets/corrupt/", "_corrupted", ", corrupted", is_accuracy));
    RT_TRY(add_foreign(&t));
    put_table(&t, "Test set; 95 % intervals below the values", true, out);
    RT_TRY(add_known(&cost, TABLE_cost));
    put_table(&cost, "Cost", false, out);
    RT_TRY(known_table(p, TABLE_against, "Agreement with the teacher", out));
    for (int r = 0; r < p->n; r++)
        if (!rt_report_find(p->runs[r].root, "evaluation"))
            return known_table(p, TABLE_trained, "As training left it, on validation rows", out);
    return RT_OK;
}

rt_status rt_report_body_uncertainty(rt_report *p, rt_str *out) {
    columns t = {.page = p}, alone = {.page = p};
    RT_TRY(add_metrics(&t, "evaluation/sets/test/", "", "", is_further));
    put_table(&t, "Further measures of the test set", false, out);
    RT_TRY(add_metrics(&alone, "evaluation/sets/test/single/", "", "", is_quality));
    put_table(&alone, "Members judged alone: mean, least to greatest", false, out);
    return RT_OK;
}

static rt_status measures_table(rt_report *p, const char *dir, const char *group, const char *caption,
                                rt_str *out) {
    columns t = {.page = p};
    const char **keys, *path;
    int n;
    RT_TRY(join(&p->arena, &path, dir, "/", group));
    RT_TRY(rt_report_keys(p, path, "", &keys, &n));
    for (int i = 0; i < n; i++) {
        column c = {.direction = 1, .meaning = caption};
        RT_TRY(join(&p->arena, &c.path, path, "/", keys[i]));
        RT_TRY(in_words(&p->arena, &c.heading, "by ", keys[i]));
        RT_TRY(add_column(&t, c));
    }
    put_table(&t, caption, false, out);
    return RT_OK;
}

rt_status rt_report_body_roc(rt_report *p, rt_str *out) {
    const char **sets, *dir, *caption;
    int n;
    RT_TRY(measures_table(p, "evaluation/sets/test/misclassification", "auroc",
                          "Finding errors: area under the ROC curve", out));
    RT_TRY(measures_table(p, "evaluation/sets/test/misclassification", "aupr",
                          "Finding errors: area under the precision-recall curve", out));
    RT_TRY(rt_report_keys(p, "evaluation/sets", "ood:", &sets, &n));
    for (int i = 0; i < n; i++) {
        RT_TRY(join(&p->arena, &dir, "evaluation/sets/", sets[i], ""));
        RT_TRY(join(&p->arena, &caption, "Telling ", sets[i] + 4,
                    " from the test set: area under the ROC curve"));
        RT_TRY(measures_table(p, dir, "auroc", caption, out));
    }
    return RT_OK;
}

/* ---- corruptions: rows are kinds, columns runs; one table per metric ---- */

static bool has_corruptions(const rt_report *p, int run) {
    return rt_report_find(p->runs[run].root, "evaluation/sets/corrupt") != NULL;
}

static bool mean_of(rt_jval v, const char *path, double *out) {
    rt_jval list = rt_report_find(v, path);
    double sum = 0, x;
    int64_t n = 0;
    for (int64_t i = 0; i < rt_jval_len(list); i++)
        if (rt_jval_f64(rt_jval_at(list, i), &x)) {
            sum += x;
            n++;
        }
    *out = n > 0 ? sum / (double)n : NAN;
    return n > 0;
}

static rt_status corruption_row(rt_report *p, const char *kind, const char *metric, bool higher,
                                rt_str *out) {
    char exact[40];
    const char *path;
    double v, best = NAN;
    int count = 0;
    RT_TRY(join(&p->arena, &path, "evaluation/sets/corrupt/types/", kind, "/"));
    RT_TRY(join(&p->arena, &path, path, metric, ""));
    for (int r = 0; r < p->n; r++)
        if (mean_of(p->runs[r].root, path, &v)) {
            best = isnan(best) || (higher ? v > best : v < best) ? v : best;
            count++;
        }
    rt_str_append(out, "<tr><th scope=\"row\" class=\"name\">");
    rt_report_escape(out, kind);
    rt_str_append(out, "</th>");
    for (int r = 0; r < p->n; r++) {
        if (!has_corruptions(p, r))
            continue;
        if (!mean_of(p->runs[r].root, path, &v)) {
            rt_str_append(out, "<td class=\"num none\">&ndash;</td>");
            continue;
        }
        rt_format_f64(exact, v);
        rt_str_appendf(out, "<td class=\"num%s\" data-v=\"%s\" title=\"%s\">",
                       count > 1 && p->comparable && v == best ? " best" : "", exact, exact);
        put_number(out, v, FORMAT_number);
        rt_str_append(out, "</td>");
    }
    rt_str_append(out, "</tr>");
    return RT_OK;
}

rt_status rt_report_body_corruptions(rt_report *p, rt_str *out) {
    columns all = {.page = p};
    const rt_metric_info *list;
    const int metrics = rt_metric_list(&list);
    const char **kinds, *path;
    int n;
    RT_TRY(add_metrics(&all, "evaluation/sets/corrupt/", "_corrupted", "", is_followed));
    put_table(&all, "Means over all corruptions", false, out);
    RT_TRY(rt_report_keys(p, "evaluation/sets/corrupt/types", "", &kinds, &n));
    for (int i = 0; i < metrics; i++) {
        RT_TRY(join(&p->arena, &path, "evaluation/sets/corrupt/types/*/", list[i].name, ""));
        if (!is_followed(&list[i]) || !rt_report_any(p, path) || rt_metric_find(list[i].name, false) < i)
            continue;
        rt_report_tab tab = {.name = list[i].name,
                             .label = list[i].heading,
                             .corner = "corruption",
                             .better = list[i].better,
                             .has = has_corruptions};
        RT_TRY(join(&p->arena, &tab.caption, list[i].heading, " by kind of corruption, mean over severities",
                    ""));
        rt_report_tab_head(p, &tab, out);
        for (int k = 0; k < n; k++)
            RT_TRY(corruption_row(p, kinds[k], list[i].name, list[i].better > 0, out));
        rt_str_append(out, "</tbody></table></div>\n");
    }
    return RT_OK;
}

/* ---- merged networks: rows are layers ---- */

static void mean_cell(rt_jval layer, const char *key, rt_str *out) {
    double v;
    char exact[40];
    if (!mean_of(layer, key, &v) && !rt_report_number(layer, key, &v)) {
        rt_str_append(out, "<td class=\"num none\">&ndash;</td>");
        return;
    }
    rt_format_f64(exact, v);
    rt_str_appendf(out, "<td class=\"num\" data-v=\"%s\" title=\"%s\">", exact, exact);
    put_number(out, v, FORMAT_number);
    rt_str_append(out, "</td>");
}

static void layers_table(const rt_report *p, int run, rt_str *out) {
    static const struct {
        const char *key, *heading, *meaning;
    } cells[] = {
        {"n", "units", "units of the layer that may change places"},
        {"row_entropy", "row entropy",
         "mean entropy of the rows of the permutation matrix, nats; 0: a hard permutation"},
        {"distance_before", "distance before", "mean distance of the models' weights, as they were"},
        {"distance_after", "distance after", "and after permuting"},
        {"correlation_before", "correlation before", "mean correlation of the models' weights, as they were"},
        {"correlation_after", "correlation after", "and after permuting"},
        {"std_before", "deviation before", "standard deviation of weights over models, as they were"},
        {"std_after", "deviation after", "and after permuting"}};
    rt_jval layers = rt_report_find(p->runs[run].root, "average/layers");
    const char *method = rt_report_text(p->runs[run].root, "average/method");
    rt_str_append(
        out,
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"layers\"><table><caption><span>");
    rt_report_run_tag(p, run, out);
    rt_str_append(out, ": layers");
    if (method) {
        rt_str_append(out, ", method ");
        rt_report_escape(out, method);
    }
    rt_str_append(
        out, "; means over models</span></caption><thead><tr><th scope=\"col\" class=\"name\">layer</th>");
    for (int64_t i = 0; i < RT_COUNT(cells); i++)
        rt_str_appendf(out, "<th scope=\"col\" class=\"num\" title=\"%s\">%s</th>", cells[i].meaning,
                       cells[i].heading);
    rt_str_append(out, "</tr></thead><tbody>");
    for (int64_t l = 0; l < rt_jval_len(layers); l++) {
        rt_jval layer = rt_jval_at(layers, l);
        const char *name = rt_report_text(layer, "name");
        rt_str_append(out, "<tr><th scope=\"row\" class=\"name\">");
        rt_report_escape(out, name ? name : "");
        rt_str_append(out, "</th>");
        for (int64_t i = 0; i < RT_COUNT(cells); i++)
            mean_cell(layer, cells[i].key, out);
        rt_str_append(out, "</tr>");
    }
    rt_str_append(out, "</tbody></table></div>\n");
}

/* How the merged network does beside the models it was made of. */
static void scores_table(const rt_report *p, int run, rt_str *out) {
    static const char *const rows[][2] = {{"models_mean", "models, mean"},
                                          {"models_best", "best of them"},
                                          {"ensemble", "their ensemble"},
                                          {"average", "merged"}};
    static const char *const cells[][2] = {
        {"valid", "accuracy"}, {"valid", "loss"}, {"test", "accuracy"}, {"test", "loss"}};
    rt_jval scores = rt_report_find(p->runs[run].root, "average/scores");
    rt_str_append(
        out,
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"scores\"><table><caption><span>");
    rt_report_run_tag(p, run, out);
    rt_str_append(out, ": beside the models it was made of</span></caption><thead><tr><th scope=\"col\" "
                       "class=\"name\">network</th>");
    for (int64_t i = 0; i < RT_COUNT(cells); i++)
        rt_str_appendf(out, "<th scope=\"col\" class=\"num\">%s %s</th>", cells[i][0], cells[i][1]);
    rt_str_append(out, "</tr></thead><tbody>");
    for (int64_t r = 0; r < RT_COUNT(rows); r++) {
        rt_str_appendf(out, "<tr><th scope=\"row\" class=\"name\">%s</th>", rows[r][1]);
        for (int64_t i = 0; i < RT_COUNT(cells); i++)
            mean_cell(rt_jval_get(rt_jval_get(scores, cells[i][0]), rows[r][0]), cells[i][1], out);
        rt_str_append(out, "</tr>");
    }
    rt_str_append(out, "</tbody></table></div>\n");
}

rt_status rt_report_body_average(rt_report *p, rt_str *out) {
    for (int r = 0; r < p->n; r++) {
        if (rt_report_find(p->runs[r].root, "average/scores"))
            scores_table(p, r, out);
        if (rt_report_find(p->runs[r].root, "average/layers"))
            layers_table(p, r, out);
    }
    return rt_report_body_matrices(p, out);
}

/* ---- headline ---- */

typedef struct card {
    column column;
    const char *label;
    int run;
    double value;
} card;

/* The best run of a column; false: no run has a number there. */
static bool best_of(const rt_report *p, const column *c, int *run, double *value) {
    int count;
    double v;
    *value = column_extreme(p, c, c->direction, &count);
    for (int r = 0; r < p->n && count > 0; r++)
        if (rt_report_number(p->runs[r].root, c->path, &v) && v == *value) {
            *run = r;
            return true;
        }
    return false;
}

/* Has every run that was evaluated something there? */
static bool all_have(const rt_report *p, const char *path) {
    for (int r = 0; r < p->n; r++)
        if (rt_report_find(p->runs[r].root, "evaluation") && !rt_report_find(p->runs[r].root, path))
            return false;
    return true;
}

/* The run that tells a foreign set from the test set best, by any measure; run and measure are named. A set that some
 * runs were not asked about has no best. */
static rt_status foreign_card(rt_report *p, card *best) {
    const char **sets, **measures, *dir;
    int nsets, n, run;
    double v;
    best->value = NAN;
    RT_TRY(rt_report_keys(p, "evaluation/sets", "ood:", &sets, &nsets));
    for (int i = 0; i < nsets; i++) {
        RT_TRY(join(&p->arena, &dir, "evaluation/sets/", sets[i], "/auroc"));
        if (!all_have(p, dir))
            continue;
        RT_TRY(rt_report_keys(p, dir, "", &measures, &n));
        for (int k = 0; k < n; k++) {
            column c = {.direction = 1, .format = FORMAT_number};
            RT_TRY(join(&p->arena, &c.path, dir, "/", measures[k]));
            if (!best_of(p, &c, &run, &v) || !(isnan(best->value) || v > best->value))
                continue;
            *best = (card){.column = c, .run = run, .value = v};
            RT_TRY(in_words(&p->arena, &best->label, " by ", measures[k]));
            RT_TRY(join(&p->arena, &best->label, "finds foreign data best: ", sets[i] + 4, best->label));
            RT_TRY(join(&p->arena, &best->label, best->label, " (AUROC)", ""));
        }
    }
    return RT_OK;
}

static void put_card(const rt_report *p, const card *c, rt_str *out) {
    rt_str_append(out, "<div class=\"card\"><dt>");
    rt_report_escape(out, c->label);
    rt_str_append(out, "</dt><dd><span class=\"value\">");
    put_number(out, c->value, c->column.format);
    rt_str_append(out, "</span>");
    rt_report_run_tag(p, c->run, out);
    rt_str_append(out, "</dd></div>");
}

rt_status rt_report_headline(rt_report *p, rt_str *out) {
    static const card cards[] = {
        {{.path = "evaluation/sets/test/accuracy", .direction = 1}, "highest accuracy", 0, 0},
        {{.path = "evaluation/sets/test/rmse", .direction = -1}, "lowest RMSE", 0, 0},
        {{.path = "evaluation/sets/test/nll", .direction = -1}, "lowest NLL", 0, 0},
        {{.path = "evaluation/sets/test/ece", .direction = -1}, "best calibrated (ECE)", 0, 0},
        {{.path = "evaluation/sets/test/interval_error", .direction = -1},
         "best intervals (interval error)",
         0,
         0},
        {{.path = "evaluation/sets/test/prr", .direction = 1}, "finds its errors best (PRR)", 0, 0},
        {{.path = "evaluation/flops", .direction = -1, .format = FORMAT_count}, "fewest FLOP", 0, 0}};
    card all[RT_COUNT(cards) + 1];
    int n = 0, evaluated = 0;
    for (int r = 0; r < p->n; r++)
        evaluated += rt_report_find(p->runs[r].root, "evaluation") != NULL;
    if (evaluated == 0 || !p->comparable)
        return RT_OK;
    for (int64_t i = 0; i < RT_COUNT(cards); i++) {
        all[n] = cards[i];
        n += best_of(p, &all[n].column, &all[n].run, &all[n].value);
    }
    all[n] = (card){.label = NULL};
    RT_TRY(foreign_card(p, &all[n]));
    n += all[n].label != NULL;
    /* One row, or two of nearly equal length: none of them stands alone. */
    rt_str_appendf(out, "<dl class=\"cards\" style=\"--across:%d\">", n <= 5 ? n : (n + 1) / 2);
    for (int i = 0; i < n; i++)
        put_card(p, &all[i], out);
    rt_str_append(out, "</dl>\n");
    return RT_OK;
}
