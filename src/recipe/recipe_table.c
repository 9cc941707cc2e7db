/*
 * recipe_table.c - tables of a recipe as Markdown and JSON, from what is finished.
 *
 * recipe_cell.c fills in the cells, recipe_claim.c judges the claims. Rows, columns and tables of no run at this
 * scale, or whose `when` is empty there, are left out, and claims on them. `lesson` has, by scale, what a reader
 * should take from a table. Without a single finished command, cells are those of results.json as it is: of a time
 * when numbers of commands were not kept.
 */
#include "base/alloc.h"
#include "base/file.h"
#include "base/json.h"
#include "recipe/recipe_table.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- JSON ---- */

static void json_cell(rt_json *j, const rt_cell *c, const char *column) {
    rt_json_object_begin(j, column);
    rt_json_f64_or(j, "mean", c->mean,
                   !c->wanted   ? "not part of this scale"
                   : c->missing ? "not measured yet"
                                : "not defined for this model");
    if (isfinite(c->deviation))
        rt_json_f64(j, "deviation", c->deviation);
    if (isfinite(c->error))
        rt_json_f64(j, "error", c->error);
    rt_json_i64(j, "runs", c->n);
    if (c->paper) {
        rt_json_str(j, "paper", c->paper);
        if (c->judged)
            rt_json_bool(j, "reproduced", c->reproduced);
    }
    rt_json_object_end(j);
}

static void json_table(rt_json *j, const rt_table *t) {
    for (int64_t i = 0; i < t->nrows; i++) {
        rt_json_object_begin(j, rt_jval_text(rt_jval_at(t->rows, i), "id"));
        for (int64_t k = 0; k < t->ncolumns; k++)
            json_cell(j, rt_table_cell(t, i, k), rt_jval_text(rt_jval_at(t->columns, k), "id"));
        rt_json_object_end(j);
    }
}

/* ---- Markdown ---- */

static void text_cell(rt_str *out, const rt_cell *c, int digits, bool best) {
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

/* Row of the best number of a column; -1: none is better than another. */
static int64_t best_row(const rt_table *t, int64_t k) {
    const char *better = rt_jval_text(rt_jval_at(t->columns, k), "better");
    const double sign = strcmp(better, "lower") == 0 ? 1 : -1;
    int64_t best = -1;
    for (int64_t i = 0; *better && i < t->nrows; i++) {
        const double x = rt_table_cell(t, i, k)->mean;
        if (isfinite(x) && (best < 0 || sign * x < sign * rt_table_cell(t, best, k)->mean))
            best = i;
    }
    return best;
}

/* How many runs the cells of a row are of: "3", or "1-3". */
static void text_runs(rt_str *out, const rt_table *t, int64_t row) {
    int least = 0, most = 0;
    for (int64_t k = 0; k < t->ncolumns; k++) {
        const int n = rt_table_cell(t, row, k)->n;
        least = n > 0 && (least == 0 || n < least) ? n : least;
        most = RT_MAX(most, n);
    }
    rt_str_appendf(out, " %d", least);
    if (most > least)
        rt_str_appendf(out, "-%d", most);
    rt_str_append(out, " |");
}

static void text_head(rt_str *out, const rt_table *t) {
    rt_str_appendf(out, "| %s |", rt_jval_text(t->spec, "corner"));
    for (int64_t k = 0; k < t->ncolumns; k++)
        if (rt_table_has(t, -1, k))
            rt_str_appendf(out, " %s |", rt_jval_text(rt_jval_at(t->columns, k), "label"));
    rt_str_append(out, " runs |\n|---|");
    for (int64_t k = 0; k < t->ncolumns; k++)
        rt_str_append(out, rt_table_has(t, -1, k) ? "---:|" : "");
    rt_str_append(out, "---:|\n");
}

static void text_open_rows(rt_str *out, const rt_table *t) {
    rt_str open;
    rt_str_init(&open);
    rt_str_fail(out, rt_table_open_rows(t, &open));
    if (open.len)
        rt_str_appendf(out, "%s\n\n", rt_str_text(&open));
    rt_str_deinit(&open);
}

static void text_table(rt_str *out, const rt_table *t) {
    rt_str_appendf(out, "### %s\n\n", rt_jval_text(t->spec, "title"));
    if (!rt_table_has(t, -1, -1)) {
        rt_str_append(out, "Not part of this scale.\n\n");
        return;
    }
    if (!rt_table_is_begun(t)) {
        rt_str_append(out, "Not measured yet.\n\n");
        return;
    }
    if (*rt_jval_text(t->spec, "note"))
        rt_str_appendf(out, "%s\n\n", rt_jval_text(t->spec, "note"));
    text_head(out, t);
    for (int64_t at = 0; at < t->nrows; at++) {
        const int64_t i = t->order[at];
        if (!rt_table_has(t, i, -1) || rt_table_row_is_open(t, i))
            continue;
        rt_str_appendf(out, "| %s |", rt_jval_text(rt_jval_at(t->rows, i), "label"));
        for (int64_t k = 0; k < t->ncolumns; k++)
            if (rt_table_has(t, -1, k))
                text_cell(out, rt_table_cell(t, i, k), rt_table_digits(t, k), best_row(t, k) == i);
        text_runs(out, t, i);
        rt_str_append(out, "\n");
    }
    rt_str_append(out, "\n");
    text_open_rows(out, t);
}

/* ---- claims and lessons ---- */

static void text_claim(rt_str *out, const rt_table *t, const rt_judgement *g, const char *text) {
    static const char *const marks[RT_VERDICTS] = {[RT_CLAIM_FAILS] = "**does not hold:**",
                                                   [RT_CLAIM_UNKNOWN] = "(not known yet)",
                                                   [RT_CLAIM_NO_NOISE_KNOWN] =
                                                       "(single runs, noise not known)",
                                                   [RT_CLAIM_IN_NOISE] = "**within noise:**",
                                                   [RT_CLAIM_HOLDS] = "**holds:**"};
    if (g->verdict == RT_CLAIM_NO_PART)
        return;
    rt_str_appendf(out, "- %s %s", marks[g->verdict], text);
    const int digits = rt_table_digits(t, g->column) + 1;
    if (isfinite(g->difference))
        rt_str_appendf(out, " (by %.*f", digits, g->difference);
    if (isfinite(g->difference) && isfinite(g->error))
        rt_str_appendf(out, " ± %.*f%s", digits, g->error, rt_judgement_caution(g));
    rt_str_append(out, isfinite(g->difference) ? ")\n" : "\n");
}

static void json_claim(rt_json *j, const rt_judgement *g, rt_jval claim) {
    static const char *const verdicts[RT_VERDICTS] = {
        [RT_CLAIM_NO_PART] = "not part of this scale", [RT_CLAIM_FAILS] = "does not hold",
        [RT_CLAIM_UNKNOWN] = "not known yet",          [RT_CLAIM_NO_NOISE_KNOWN] = "noise not known",
        [RT_CLAIM_IN_NOISE] = "within noise",          [RT_CLAIM_HOLDS] = "holds"};
    rt_json_object_begin(j, NULL);
    rt_json_str(j, "text", rt_jval_text(claim, "text"));
    rt_json_str(j, "rule", rt_jval_text(claim, "holds"));
    rt_json_str(j, "verdict", verdicts[g->verdict]);
    if (isfinite(g->difference))
        rt_json_f64(j, "difference", g->difference);
    if (isfinite(g->error))
        rt_json_f64(j, "error", g->error);
    if (isfinite(g->error))
        rt_json_i64(j, "runs", g->runs);
    rt_json_object_end(j);
}

static rt_status write_claims(rt_json *j, rt_str *out, const rt_table *t) {
    rt_jval claims = rt_jval_get(t->spec, "claims");
    const size_t before = out->len;
    rt_json_array_begin(j, "claims");
    for (int64_t i = 0; i < rt_jval_len(claims); i++) {
        rt_judgement g;
        RT_TRY(rt_claim_judge(t, rt_jval_at(claims, i), &g));
        json_claim(j, &g, rt_jval_at(claims, i));
        if (rt_table_is_begun(t))
            text_claim(out, t, &g, rt_jval_text(rt_jval_at(claims, i), "text"));
    }
    rt_json_array_end(j);
    rt_str_append(out, out->len > before ? "\n" : "");
    const char *lesson = rt_jval_text(rt_jval_get(t->spec, "lesson"), t->r->scale_name);
    if (*lesson && rt_table_has(t, -1, -1)) {
        rt_json_str(j, "lesson", lesson);
        rt_str_appendf(out, "%s\n\n", lesson);
    }
    return RT_OK;
}

/* ---- the whole ---- */

static void write_stage(rt_json *j, const char *name, int64_t commands, int64_t finished, double seconds) {
    rt_json_object_begin(j, name);
    rt_json_i64(j, "commands", commands);
    rt_json_i64(j, "finished", finished);
    rt_json_f64(j, "seconds", round(seconds * 10) / 10);
    rt_json_object_end(j);
}

static void write_kept_stages(const rt_recipe *r, rt_json *j, double *total) {
    rt_jval stages = rt_jval_get(rt_jdoc_root(r->kept), "stages");
    for (int64_t i = 0; i < rt_jval_len(stages); i++) {
        rt_jval s = rt_jval_get(stages, rt_jval_key(stages, i));
        int64_t commands = 0, finished = 0;
        double seconds = 0;
        rt_jval_i64(rt_jval_get(s, "commands"), &commands);
        rt_jval_i64(rt_jval_get(s, "finished"), &finished);
        rt_jval_f64(rt_jval_get(s, "seconds"), &seconds);
        write_stage(j, rt_jval_key(stages, i), commands, finished, seconds);
        *total += seconds;
    }
}

static void write_stages(const rt_recipe *r, rt_json *j, double *total) {
    *total = 0;
    rt_json_object_begin(j, "stages");
    if (r->kept)
        write_kept_stages(r, j, total);
    for (int i = 0; i < r->count && !r->kept;) {
        const char *stage = r->nodes[i].job.stage;
        int64_t commands = 0, done = 0;
        double seconds = 0;
        for (; i < r->count && r->nodes[i].job.stage == stage; i++, commands++)
            if (r->nodes[i].job.done) {
                seconds += r->nodes[i].seconds;
                done++;
            }
        write_stage(j, stage, commands, done, seconds);
        *total += seconds;
    }
    rt_json_object_end(j);
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

/* How many commands a processor ran; NULL: the processors that were not noted. */
static int commands_on(const rt_recipe *r, const char *cpu) {
    int n = 0;
    for (int i = 0; i < r->count; i++) {
        const char *other = r->nodes[i].cpu;
        n += r->nodes[i].job.done && (cpu && other ? strcmp(cpu, other) == 0 : cpu == other);
    }
    return n;
}

/* The next node whose processor no node before it has, from `at` on; r->count: none. */
static int next_cpu(const rt_recipe *r, int at) {
    for (; at < r->count; at++) {
        const char *cpu = r->nodes[at].cpu;
        bool before = !r->nodes[at].job.done || !cpu;
        for (int i = 0; i < at && !before; i++)
            before = r->nodes[i].job.done && r->nodes[i].cpu && strcmp(r->nodes[i].cpu, cpu) == 0;
        if (!before)
            break;
    }
    return at;
}

static void json_cpus(rt_json *j, const rt_recipe *r) {
    rt_json_object_begin(j, "processors");
    for (int i = next_cpu(r, 0); i < r->count; i = next_cpu(r, i + 1))
        rt_json_i64(j, r->nodes[i].cpu, commands_on(r, r->nodes[i].cpu));
    rt_json_object_end(j);
}

static void text_cpus(rt_str *out, const rt_recipe *r) {
    const int not_noted = commands_on(r, NULL);
    int first = next_cpu(r, 0);
    if (first == r->count) {
        rt_str_append(out, " on the machine these numbers are from");
        return;
    }
    for (int i = first; i < r->count; i = next_cpu(r, i + 1))
        rt_str_appendf(out, "%s%d on %s", i == first ? " (commands: " : "; ", commands_on(r, r->nodes[i].cpu),
                       r->nodes[i].cpu);
    if (not_noted > 0)
        rt_str_appendf(out, "; %d on processors that were not noted", not_noted);
    rt_str_append_char(out, ')');
}

static void text_intro(rt_str *out, const rt_recipe *r, double seconds) {
    rt_jval tables = rt_jval_get(r->root, "tables");
    const char *scale =
        rt_jval_text(r->kept ? rt_jdoc_root(r->kept) : r->scale, "about"); /* as it was measured */
    rt_str_appendf(out, "## %s\n\n%s\n\n", rt_recipe_title(r), rt_jval_text(r->root, "about"));
    rt_str_appendf(out, "Source: %s. Scale `%s`: %s Command: `retort recipe run %s --scale %s`, %.0f minutes",
                   rt_jval_text(r->root, "source"), r->scale_name, scale, r->name, r->scale_name,
                   ceil(seconds / 60));
    text_cpus(out, r);
    rt_str_appendf(
        out, ". Cells: mean ± deviation over runs%s.",
        !has_paper(tables) ? ""
        : rt_recipe_only_orderings(r)
            ? "; in parentheses the paper's, from settings so much larger that only orderings can be compared"
            : "; in parentheses the paper's, with ✓ if ours agrees within the tolerance of the recipe or "
              "twice the paper's deviation, else ✗");
    rt_str_append(out, " A claim holds, or does not, if its difference (in parentheses, ± standard error) is "
                       "more than two standard "
                       "errors; else it is within noise. The error of one run is that of its test rows, and "
                       "says nothing of seeds; that of two is a weak one.\n\n");
}

/* Breaks lines of prose at 120 columns, by turning spaces into line ends; headings and tables stay. No line begins with
 * what Markdown would take for a list, a heading or a table. */
static void fold(rt_str *text) {
    enum { COLUMNS = 120 };
    char *line = text->p, *space = NULL;
    bool prose = true;
    int column = 0;
    for (char *c = line; c && *c; c++) {
        if (c == line && column == 0)
            prose = *c != '#' && *c != '|';
        if (*c == '\n') {
            line = c + 1, space = NULL, column = 0;
            continue;
        }
        if (*c == ' ' && !strchr("-+*#|>0123456789", c[1]))
            space = c;
        column += ((unsigned char)*c & 0xC0) != 0x80; /* of a UTF-8 character, its first byte */
        if (prose && column > COLUMNS && space) {
            *space = '\n';
            column = 0;
            for (char *d = space + 1; d <= c; d++)
                column += ((unsigned char)*d & 0xC0) != 0x80;
            space = NULL;
        }
    }
}

rt_status rt_recipe_results(const rt_recipe *r, rt_str *json, rt_str *markdown) {
    rt_json j;
    double seconds;
    rt_jval tables = rt_jval_get(r->root, "tables");
    rt_json_init(&j, json, true);
    rt_json_object_begin(&j, NULL);
    rt_json_str(&j, "recipe", r->name);
    rt_json_str(&j, "scale", r->scale_name);
    rt_json_str(&j, "about", rt_jval_text(r->kept ? rt_jdoc_root(r->kept) : r->scale, "about"));
    write_stages(r, &j, &seconds);
    rt_json_f64(&j, "seconds", round(seconds));
    json_cpus(&j, r);
    text_intro(markdown, r, seconds);
    rt_json_object_begin(&j, "tables");
    for (int64_t i = 0; i < rt_jval_len(tables); i++) {
        rt_table t;
        rt_status st = rt_table_fill(&t, (rt_recipe *)r, rt_jval_at(tables, i));
        if (st == RT_OK) {
            rt_json_object_begin(&j, rt_jval_text(t.spec, "id"));
            text_table(markdown, &t);
            json_table(&j, &t);
            st = write_claims(&j, markdown, &t);
            rt_json_object_end(&j);
        }
        rt_table_deinit(&t);
        RT_TRY(st);
    }
    rt_json_object_end(&j);
    rt_json_object_end(&j);
    rt_str_append_char(json, '\n');
    RT_TRY(rt_str_status(json));
    RT_TRY(rt_str_status(markdown));
    fold(markdown);
    return RT_OK;
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
