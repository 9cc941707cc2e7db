/*
 * recipe_measured.c - what the commands of a recipe measured, in a file that can be committed.
 *
 * Runs are large and stay on the machine that made them; their numbers are small. <dir>/measured.json has them,
 * one line per finished command, sorted by name:
 *
 *     "measure.kd-1": {"key": "...", "seconds": 12.5, "cpu": "...", "metrics": {"flops": 254, "sets": {...}}}
 *
 * `metrics` of a command that makes a run is its metrics.json without the evaluation, of an evaluation the
 * evaluation alone; without texts, curves and pictures, what is per type of corruption, and lists of more than 32;
 * numbers that are not whole have 7 digits. A line counts if its key is the command's. A run that is here, by its
 * mark in done/, counts as well, and is read if its line is missing.
 */
#include "base/alloc.h"
#include "base/file.h"
#include "base/json.h"
#include "recipe/recipe_int.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LIST_MAX = 32, DEPTH_MAX = 12, KEY_CHARS = 64 };

/* ---- what is kept of metrics.json ---- */

static bool is_left_out(const char *key) {
    static const char *const names[] = {"curves", "pictures", "types", "single_min", "single_max"};
    for (int i = 0; i < RT_COUNT(names); i++)
        if (strcmp(key, names[i]) == 0)
            return true;
    return false;
}

static double with_7_digits(double v) {
    char text[40];
    if (v == rint(v) && fabs(v) < 1e15)
        return v;
    snprintf(text, sizeof text, "%.7g", v);
    return rt_parse_f64(text, strlen(text), false, &v) ? v : v;
}

static bool is_list_of_numbers(rt_jval v) {
    double x;
    if (!rt_jval_is_array(v) || rt_jval_len(v) > LIST_MAX)
        return false;
    for (int64_t i = 0; i < rt_jval_len(v); i++)
        if (!rt_jval_f64(rt_jval_at(v, i), &x))
            return false;
    return true;
}

static void keep(rt_json *j, const char *key, rt_jval v, int depth) {
    const char *text;
    double x;
    bool b;
    if (rt_jval_f64(v, &x)) {
        rt_json_f64(j, key, with_7_digits(x));
    } else if (rt_jval_is_object(v)) {
        if (depth == DEPTH_MAX)
            return;
        rt_json_object_begin(j, key);
        for (int64_t i = 0; i < rt_jval_len(v); i++)
            if (!is_left_out(rt_jval_key(v, i)))
                keep(j, rt_jval_key(v, i), rt_jval_get(v, rt_jval_key(v, i)), depth + 1);
        rt_json_object_end(j);
    } else if (is_list_of_numbers(v)) {
        rt_json_array_begin(j, key);
        for (int64_t i = 0; i < rt_jval_len(v); i++)
            keep(j, NULL, rt_jval_at(v, i), depth);
        rt_json_array_end(j);
    } else if (!rt_jval_is_array(v) && !rt_jval_str(v, &text) && !rt_jval_bool(v, &b)) {
        rt_json_str(j, key, NULL);
    }
}

/* The members of `v` but `without`, as a document of the node's own. */
static rt_status set_metrics(rt_recipe_node *n, rt_jval v, const char *without) {
    rt_str text;
    rt_json j;
    rt_str_init(&text);
    rt_json_init(&j, &text, false);
    rt_json_object_begin(&j, NULL);
    for (int64_t i = 0; i < rt_jval_len(v); i++) {
        const char *key = rt_jval_key(v, i);
        if (strcmp(key, without) != 0 && !is_left_out(key))
            keep(&j, key, rt_jval_get(v, key), 1);
    }
    rt_json_object_end(&j);
    rt_jdoc_destroy(&n->metrics);
    rt_status st = rt_str_status(&text);
    if (st == RT_OK)
        st = rt_jdoc_parse(&n->metrics, rt_str_text(&text), text.len, n->job.name);
    rt_str_deinit(&text);
    return st;
}

static rt_status read_json(const char *dir, const char *name, rt_jdoc **doc) {
    char *path;
    RT_TRY(rt_path_join(&path, dir, name));
    const rt_status st = rt_jdoc_read(doc, path);
    rt_free(path);
    return st;
}

/* From the run of the command, or the one it measured. */
static rt_status read_run(rt_recipe *r, rt_recipe_node *n) {
    const bool evaluation = n->measures >= 0;
    const char *dir = evaluation ? r->nodes[n->measures].job.dir : n->job.dir;
    rt_jdoc *doc = NULL;
    rt_jval v;
    if (!dir)
        return RT_OK;
    rt_status st;
    RT_TRY_GOTO(read_json(dir, "metrics.json", &doc));
    v = evaluation ? rt_jval_get(rt_jdoc_root(doc), "evaluation") : rt_jdoc_root(doc);
    if (!rt_jval_is_object(v))
        RT_FAIL_GOTO(RT_E_IO, "%s: its result is not in %s/metrics.json: it could not be stored there",
                     n->job.name, dir);
    st = set_metrics(n, v, evaluation ? "" : "evaluation");
done:
    rt_jdoc_destroy(&doc);
    return st;
}

/* ---- files ---- */

static rt_status mark_path(const rt_recipe *r, const char *job, char **out) {
    char *dir;
    RT_TRY(rt_path_join(&dir, r->dir, "done"));
    rt_status st = rt_path_join(out, dir, job);
    rt_free(dir);
    return st;
}

static rt_status set_cpu(rt_recipe *r, rt_recipe_node *n, const char *cpu, size_t len) {
    char *copy = NULL;
    if (len > 0) {
        RT_TRY(rt_arena_alloc(&r->arena, &copy, len + 1));
        memcpy(copy, cpu, len);
    }
    n->cpu = copy;
    return RT_OK;
}

static rt_status take_line(rt_recipe *r, rt_recipe_node *n, rt_jval line) {
    const char *cpu = rt_jval_text(line, "cpu");
    if (strcmp(rt_jval_text(line, "key"), n->job.key) != 0)
        return RT_OK;
    n->job.done = true;
    rt_jval_f64(rt_jval_get(line, "seconds"), &n->seconds);
    RT_TRY(set_cpu(r, n, cpu, strlen(cpu)));
    return rt_jval_get(line, "metrics") ? set_metrics(n, rt_jval_get(line, "metrics"), "") : RT_OK;
}

static rt_status load_lines(rt_recipe *r, bool *there) {
    rt_jdoc *doc = NULL;
    char *path;
    RT_TRY(rt_path_join(&path, r->dir, "measured.json"));
    *there = rt_file_exists(path);
    rt_free(path);
    if (!*there)
        return RT_OK;
    rt_status st = read_json(r->dir, "measured.json", &doc);
    rt_jval commands = rt_jval_get(rt_jdoc_root(doc), "commands");
    for (int i = 0; st == RT_OK && i < r->count; i++)
        st = take_line(r, &r->nodes[i], rt_jval_get(commands, r->nodes[i].job.name));
    rt_jdoc_destroy(&doc);
    return st;
}

/* Is this command's mark, "KEY SECONDS CPU", here, and what it made? */
static rt_status read_mark(rt_recipe *r, rt_recipe_node *n) {
    char *path;
    uint8_t *text = NULL;
    size_t size = 0;
    rt_status st = RT_OK;
    RT_TRY(mark_path(r, n->job.name, &path));
    if (rt_file_exists(path))
        st = rt_file_read(path, 4096, &text, &size);
    n->here = st == RT_OK && size > KEY_CHARS && memcmp(text, n->job.key, KEY_CHARS) == 0 &&
              (!n->job.dir || rt_dir_exists(n->job.dir));
    if (n->here) {
        const char *seconds = (const char *)text + KEY_CHARS + 1, *cpu = seconds + strcspn(seconds, " \n");
        rt_parse_f64(seconds, (size_t)(cpu - seconds), false, &n->seconds);
        cpu += strspn(cpu, " ");
        st = set_cpu(r, n, cpu, strcspn(cpu, "\n"));
    }
    rt_free(text);
    rt_free(path);
    return st;
}

static rt_status look_here(rt_recipe *r, rt_recipe_node *n) {
    rt_status st = read_mark(r, n);
    if (st == RT_OK && n->here && !n->job.done) {
        st = read_run(r, n);
        n->job.done = n->here = st == RT_OK;
    }
    return st == RT_E_MEMORY ? st : RT_OK; /* what cannot be read is not finished */
}

rt_status rt_measured_load(rt_recipe *r) {
    bool there;
    char *path;
    RT_TRY(load_lines(r, &there));
    for (int i = 0; i < r->count; i++) {
        RT_TRY(look_here(r, &r->nodes[i]));
        there = there || r->nodes[i].job.done;
    }
    if (there)
        return RT_OK;
    RT_TRY(rt_path_join(&path, r->dir, "results.json"));
    rt_status st = rt_file_exists(path) ? read_json(r->dir, "results.json", &r->kept) : RT_OK;
    rt_free(path);
    return st;
}

static rt_status write_mark(const rt_recipe *r, const rt_recipe_node *n) {
    char *path = NULL, number[40];
    rt_str text;
    rt_str_init(&text);
    rt_format_f64(number, n->seconds);
    rt_str_appendf(&text, "%s %s%s%s\n", n->job.key, number, n->cpu ? " " : "", n->cpu ? n->cpu : "");
    rt_status st = rt_str_status(&text);
    if (st == RT_OK)
        st = mark_path(r, n->job.name, &path);
    if (st == RT_OK)
        st = rt_file_write_atomic(path, rt_str_text(&text), text.len);
    rt_free(path);
    rt_str_deinit(&text);
    return st;
}

rt_status rt_measured_mark(rt_recipe *r, int command, double seconds, const char *cpu) {
    rt_recipe_node *n = &r->nodes[command];
    RT_TRY(read_run(r, n)); /* a result that was not stored is none */
    n->seconds = round(seconds * 1000) / 1000;
    RT_TRY(set_cpu(r, n, cpu ? cpu : "", cpu ? strlen(cpu) : 0));
    return write_mark(r, n);
}

rt_status rt_measured_add(rt_recipe *r, int command) {
    rt_recipe_node *n = &r->nodes[command];
    RT_TRY(read_mark(r, n));
    RT_FAIL_IF(!n->here, RT_E_IO, "%s has finished, and its mark in %s/done or its run is not there",
               n->job.name, r->dir);
    RT_TRY(read_run(r, n));
    n->job.done = true;
    n->job.wanted = false;
    rt_jdoc_destroy(&r->kept);
    return rt_measured_write(r);
}

static int compare_names(const void *a, const void *b) {
    return strcmp((*(const rt_recipe_node *const *)a)->job.name,
                  (*(const rt_recipe_node *const *)b)->job.name);
}

static void write_line(rt_str *out, const rt_recipe_node *n) {
    rt_json j;
    rt_json_init(&j, out, false);
    rt_json_object_begin(&j, NULL);
    rt_json_str(&j, "key", n->job.key);
    rt_json_f64(&j, "seconds", n->seconds);
    if (n->cpu)
        rt_json_str(&j, "cpu", n->cpu);
    if (n->metrics)
        keep(&j, "metrics", rt_jdoc_root(n->metrics), 0);
    rt_json_object_end(&j);
}

rt_status rt_measured_write(const rt_recipe *r) {
    const rt_recipe_node **done = NULL;
    char *path = NULL;
    rt_str out;
    int n = 0;
    rt_status st;
    rt_str_init(&out);
    RT_TRY_GOTO(rt_calloc(&done, (size_t)r->count + 1, sizeof *done));
    for (int i = 0; i < r->count; i++)
        if (r->nodes[i].job.done)
            done[n++] = &r->nodes[i];
    qsort(done, (size_t)n, sizeof *done, compare_names);
    rt_str_append(&out, "{\"form\": 1, \"commands\": {");
    for (int i = 0; i < n; i++) {
        rt_str_appendf(&out, "%s\n\"%s\": ", i ? "," : "", done[i]->job.name);
        write_line(&out, done[i]);
    }
    rt_str_append(&out, "\n}}\n");
    RT_TRY_GOTO(rt_str_status(&out));
    RT_TRY_GOTO(rt_path_join(&path, r->dir, "measured.json"));
    st = rt_file_write_atomic(path, rt_str_text(&out), out.len);
done:
    rt_free(done);
    rt_free(path);
    rt_str_deinit(&out);
    return st;
}

/* ---- looking up ---- */

/* A document of `command` or of an evaluation of its run, from node *i on; *i is then the one behind it. */
static bool next_document(const rt_recipe *r, int command, int *i, rt_jval *top, rt_jval *evaluation) {
    for (int at = *i; at < r->count; at++) {
        if (!r->nodes[at].metrics || (at != command && r->nodes[at].measures != command))
            continue;
        const rt_jval root = rt_jdoc_root(r->nodes[at].metrics);
        *top = at == command ? root : NULL;
        *evaluation = at == command ? NULL : root;
        *i = at + 1;
        return true;
    }
    return false;
}

bool rt_measured_find(const rt_recipe *r, int command, const char *path, rt_jval *out) {
    rt_jval top, evaluation;
    *out = NULL;
    for (int i = command; !*out && next_document(r, command, &i, &top, &evaluation);)
        *out = rt_metrics_find(top, evaluation, path);
    return *out != NULL;
}

bool rt_measured_interval(const rt_recipe *r, int command, const char *path, double *lo, double *hi) {
    rt_jval top, evaluation;
    for (int i = command; next_document(r, command, &i, &top, &evaluation);)
        if (rt_metrics_interval(top, evaluation, path, lo, hi))
            return true;
    return false;
}
