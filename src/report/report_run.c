/*
 * report_run.c - the files of one run: metrics.json, log.jsonl, config.yaml. All may be missing (a run that is still
 * going has no metrics, a merged one no log), but not all at once: then the path is no run.
 */
#include "base/alloc.h"
#include "base/file.h"
#include "report/report_int.h"
#include <math.h>
#include <string.h>

enum { METRICS_MAX = 64 << 20, LOG_MAX = 512 << 20, CONFIG_MAX = 1 << 20 };

const char *const rt_report_log_columns[] = {
    "epoch",
    "seconds",
    "lr",
    "temperature",
    "train_loss",
    "train_accuracy",
    "valid_loss",
    "valid_accuracy",
    "student_diversity",
    "student_diversity_perturbed",
    "teacher_diversity",
    "teacher_diversity_perturbed",
};

int rt_report_log_column_count(void) {
    return (int)RT_COUNT(rt_report_log_columns);
}

static rt_status read_optional(const char *dir, const char *name, size_t max, char **path, uint8_t **text,
                               size_t *n) {
    *text = NULL;
    *n = 0;
    RT_TRY(rt_path_join(path, dir, name));
    bool found;
    RT_TRY(rt_file_find(*path, &found));
    return found ? rt_file_read(*path, max, text, n) : RT_OK;
}

static rt_status read_metrics(rt_report_run *r) {
    uint8_t *text = NULL;
    size_t n;
    rt_status st;
    RT_TRY_GOTO(read_optional(r->path, "metrics.json", METRICS_MAX, &r->metrics_path, &text, &n));
    if (!text)
        goto done;
    RT_TRY_GOTO(rt_jdoc_parse(&r->metrics, (const char *)text, n, r->metrics_path));
    r->root = rt_jdoc_root(r->metrics);
    if (!rt_jval_is_object(r->root))
        RT_FAIL_GOTO(RT_E_INPUT, "%s: expected an object", r->metrics_path);
    st = rt_report_check(r);
done:
    rt_free(text);
    return st;
}

/* ---- log.jsonl ---- */

typedef struct log_reader {
    const char *path;
    int64_t line;
    rt_report_log *log;
    int64_t cap;
    double *rows; /* (row, column) while reading */
} log_reader;

static void keep_time(char out[32], rt_jval line) {
    const char *time = rt_report_text(line, "time");
    if (time && strlen(time) < 32)
        memcpy(out, time, strlen(time) + 1);
}

static rt_status add_epoch(log_reader *l, rt_jval line) {
    int columns = rt_report_log_column_count();
    size_t row = (size_t)columns * sizeof(double);
    if (l->log->rows == l->cap) {
        int64_t cap = l->cap ? 2 * l->cap : 64;
        RT_TRY(rt_realloc(&l->rows, (size_t)l->cap * row, (size_t)cap * row));
        l->cap = cap;
    }
    double *to = l->rows + l->log->rows * columns;
    for (int c = 0; c < columns; c++)
        if (!rt_report_number(line, rt_report_log_columns[c], &to[c]))
            to[c] = NAN;
    l->log->rows++;
    return RT_OK;
}

static rt_status read_line(log_reader *l, const char *text, size_t n) {
    rt_jdoc *doc = NULL;
    RT_TRY(rt_jdoc_parse(&doc, text, n, "line"));
    rt_jval line = rt_jdoc_root(doc);
    rt_status st = RT_OK;
    const char *event = rt_report_text(line, "event");
    if (!rt_jval_is_object(line))
        st = rt_error_set(RT_E_INPUT, __FILE__, __LINE__, "expected an object");
    else if (event && strcmp(event, "epoch") == 0)
        st = add_epoch(l, line);
    if (st == RT_OK) {
        l->log->finished = event && strcmp(event, "finished") == 0;
        keep_time(l->log->started[0] ? l->log->ended : l->log->started, line);
    }
    rt_jdoc_destroy(&doc);
    return st;
}

static rt_status transpose(log_reader *l) {
    int columns = rt_report_log_column_count();
    int64_t rows = l->log->rows;
    if (rows == 0)
        return RT_OK;
    RT_TRY(rt_calloc(&l->log->values, (size_t)rows * (size_t)columns, sizeof(double)));
    for (int64_t i = 0; i < rows; i++)
        for (int c = 0; c < columns; c++)
            l->log->values[c * rows + i] = l->rows[i * columns + c];
    return RT_OK;
}

static rt_status read_log(rt_report_run *r, bool *there) {
    char *path = NULL;
    uint8_t *text = NULL;
    size_t n;
    log_reader l = {.log = &r->log};
    rt_status st;
    RT_TRY_GOTO(read_optional(r->path, "log.jsonl", LOG_MAX, &path, &text, &n));
    *there = text != NULL;
    l.path = path;
    /* A last line without its end is one that is being written, or was when the machine stopped: not part of the log. */
    for (const char *s = (const char *)text, *end = s + n, *stop;
         s < end && (stop = memchr(s, '\n', (size_t)(end - s))); s = stop + 1) {
        l.line++;
        if (stop == s)
            continue;
        st = read_line(&l, s, (size_t)(stop - s));
        if (st != RT_OK) {
            st = rt_error_prefix(st, "%s: line %lld", path, (long long)l.line);
            goto done;
        }
    }
    st = transpose(&l);
done:
    rt_free(l.rows);
    rt_free(text);
    rt_free(path);
    return st;
}

/* ---- config.yaml: text for the reader, and two values for the commands we suggest ---- */

/* Value of a line `key: "text"` or `key: text`; NULL if there is none. */
static rt_status config_value(const char **out, rt_arena *arena, const char *text, const char *key) {
    size_t klen = strlen(key);
    *out = NULL;
    for (const char *s = text; s; s = strchr(s, '\n') ? strchr(s, '\n') + 1 : NULL) {
        if (strncmp(s, key, klen) != 0 || strncmp(s + klen, ": ", 2) != 0)
            continue;
        const char *value = s + klen + 2;
        size_t n = strcspn(value, "\r\n");
        rt_jdoc *doc = NULL;
        const char *quoted = NULL;
        rt_status st = RT_OK;
        if (*value == '"')
            st = rt_jdoc_parse(&doc, value, n, key);
        if (doc && rt_jval_str(rt_jdoc_root(doc), &quoted)) {
            st = rt_arena_strdup(arena, out, quoted);
        } else if (*value != '"') {
            char *copy;
            st = rt_arena_alloc(arena, &copy, n + 1);
            if (st == RT_OK) {
                memcpy(copy, value, n);
                *out = copy;
            }
        }
        rt_jdoc_destroy(&doc);
        return st == RT_E_INPUT ? RT_OK : st;
    }
    return RT_OK;
}

static rt_status read_config(rt_report_run *r, rt_arena *arena) {
    char *path = NULL;
    size_t n;
    rt_status st = read_optional(r->path, "config.yaml", CONFIG_MAX, &path, (uint8_t **)&r->config, &n);
    rt_free(path);
    RT_TRY(st);
    if (!r->config)
        return RT_OK;
    RT_TRY(config_value(&r->data, arena, r->config, "data"));
    return config_value(&r->teacher, arena, r->config, "teacher");
}

rt_status rt_report_run_read(rt_report_run *r, rt_arena *arena, const char *path) {
    bool log = false;
    memset(r, 0, sizeof *r);
    r->path = path;
    RT_FAIL_IF(!rt_dir_exists(path), RT_E_INPUT, "%s: %s", path,
               rt_file_exists(path) ? "a file; a report is made from run directories" : "no such directory");
    RT_TRY(read_metrics(r));
    RT_TRY(read_log(r, &log));
    RT_TRY(read_config(r, arena));
    RT_FAIL_IF(!r->metrics && !log && !r->config, RT_E_INPUT,
               "%s: not a run: neither metrics.json nor log.jsonl nor config.yaml is there", path);
    return RT_OK;
}

void rt_report_run_deinit(rt_report_run *r) {
    rt_jdoc_destroy(&r->metrics);
    rt_free(r->metrics_path);
    rt_free(r->log.values);
    rt_free(r->config);
}
