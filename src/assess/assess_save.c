/*
 * assess_save.c - an assessment goes into metrics.json of its run.
 *
 * metrics.json belongs to several writers: training wrote its end into it, averaging its diagnostics. So it is
 * read, checked to be one JSON object, and copied member by member, byte by byte; only the value of the key
 * that is ours is exchanged, or appended. The run's lock is held from reading to replacing.
 *
 *     {  "retort": "0.1.0",  ...,  "evaluation": {old},  "average": {...}  }
 *        `---- copied ------------'  `-- replaced ----'  `-- copied ----'
 */
#include "assess/assess_int.h"
#include "base/alloc.h"
#include <stdio.h>
#include <string.h>

enum { METRICS_MAX_BYTES = 64 << 20 };
static const char KEY[] = "evaluation";

/* ---- text ---- */

/* The end of the JSON value that begins at s. The text was parsed before: it is well formed. */
static const char *skip_value(const char *s, const char *end) {
    int depth = 0;
    bool in_string = false;
    for (; s < end; s++) {
        if (in_string) {
            if (*s == '\\')
                s++;
            else if (*s == '"')
                in_string = false;
            if (!in_string && depth == 0)
                return s + 1;
            continue;
        }
        if (*s == '"')
            in_string = true;
        else if (*s == '{' || *s == '[')
            depth++;
        else if (*s == '}' || *s == ']') {
            if (depth == 0)
                return s; /* the end of what is around a number */
            if (--depth == 0)
                return s + 1;
        } else if (depth == 0 && (*s == ',' || *s == ' ' || *s == '\n' || *s == '\t' || *s == '\r')) {
            return s;
        }
    }
    return s;
}

static const char *skip_to(const char *s, const char *end, const char *stops) {
    while (s < end && !strchr(stops, *s))
        s++;
    return s;
}

static const char *skip_space(const char *s, const char *end) {
    while (s < end && strchr(" \t\r\n", *s))
        s++;
    return s;
}

/* The members of the object in `text`, and where the value of member `at` (-1: none) begins and ends; *close
 * is the last byte that belongs to a member, or the opening brace. */
static void find_value(const char *text, const char *end, int64_t at, const char **from, const char **to,
                       const char **close) {
    const char *s = skip_to(text, end, "{") + 1;
    *close = s;
    for (int64_t i = 0;; i++) {
        s = skip_space(s, end);
        if (s >= end || *s == '}')
            return;
        s = skip_space(skip_value(s, end), end) + 1; /* key and colon */
        const char *value = skip_space(s, end);
        s = skip_value(value, end);
        *close = s;
        if (i == at) {
            *from = value;
            *to = s;
        }
        s = skip_space(s, end);
        if (s < end && *s == ',')
            s++;
    }
}

rt_status rt_metrics_merge(const char *text, size_t n, const char *name, const char *key, const char *value,
                           rt_str *out) {
    rt_jdoc *doc = NULL;
    if (!text || n == 0) {
        rt_str_appendf(out, "{\n  \"%s\": %s\n}\n", key, value);
        return rt_str_status(out);
    }
    RT_TRY(rt_jdoc_parse(&doc, text, n, name));
    const int64_t count = rt_jval_len(rt_jdoc_root(doc));
    int64_t at = -1;
    const bool object = count == 0 || rt_jval_key(rt_jdoc_root(doc), 0) != NULL;
    for (int64_t i = 0; object && i < count; i++)
        if (strcmp(rt_jval_key(rt_jdoc_root(doc), i), key) == 0)
            at = i;
    rt_jdoc_destroy(&doc);
    RT_FAIL_IF(count < 0 || !object || *skip_space(text, text + n) != '{', RT_E_INPUT,
               "%s: wanted a JSON object", name);
    const char *from = NULL, *to = NULL, *close = NULL;
    find_value(text, text + n, at, &from, &to, &close);
    if (from) {
        rt_str_append_n(out, text, (size_t)(from - text));
        rt_str_append(out, value);
        rt_str_append_n(out, to, (size_t)(text + n - to));
    } else {
        rt_str_append_n(out, text, (size_t)(close - text));
        rt_str_appendf(out, "%s\n  \"%s\": %s", count > 0 ? "," : "", key, value);
        const char *rest = close;
        if (count == 0)
            rest = skip_space(close, text + n);
        if (*rest == '}')
            rt_str_append_char(out, '\n');
        rt_str_append_n(out, rest, (size_t)(text + n - rest));
    }
    return rt_str_status(out);
}

/* ---- files ---- */

/* metrics.json tells that a run is finished: it must not appear in one that is not. */
static rt_status may_create(const char *dir, bool *ok) {
    static const char *const signs[] = {"config.yaml", "checkpoint.safetensors"};
    *ok = true;
    for (int i = 0; i < RT_COUNT(signs); i++) {
        char *path;
        bool found = true;
        RT_TRY(rt_path_join(&path, dir, signs[i]));
        rt_status st = rt_file_find(path, &found);
        rt_free(path);
        RT_TRY(st);
        *ok = *ok && !found;
    }
    return RT_OK;
}

static rt_status replace(const rt_assessment *a, const char *dir, const char *path) {
    uint8_t *old = NULL;
    size_t n = 0;
    rt_str value, text;
    rt_json j;
    bool ok;
    rt_status st;
    rt_str_init(&value);
    rt_str_init(&text);
    RT_TRY_GOTO(rt_file_find(path, &ok));
    if (ok) {
        RT_TRY_GOTO(rt_file_read(path, METRICS_MAX_BYTES, &old, &n));
    } else {
        RT_TRY_GOTO(may_create(dir, &ok));
        if (!ok)
            RT_FAIL_GOTO(RT_E_FAILED, "the run is not finished");
    }
    rt_json_init(&j, &value, false);
    rt_assessment_write(a, &j, NULL, true);
    RT_TRY_GOTO(rt_str_status(&value));
    RT_TRY_GOTO(rt_metrics_merge((const char *)old, n, path, KEY, rt_str_text(&value), &text));
    RT_TRY_GOTO(rt_pictures_write(a, dir));
    st = rt_file_write_text(path, &text);
done:
    rt_free(old);
    rt_str_deinit(&value);
    rt_str_deinit(&text);
    return st;
}

rt_status rt_assessment_save(const rt_assessment *a) {
    char *dir = NULL, *path = NULL;
    rt_lock *lock = NULL;
    bool found;
    rt_status st;
    RT_TRY_GOTO(rt_path_expand(&dir, a->info.run));
    RT_TRY_GOTO(rt_dir_find(dir, &found));
    if (!found)
        goto done; /* a model file: there is no run to keep it in */
    RT_TRY_GOTO(rt_path_join(&path, dir, "metrics.json"));
    RT_TRY_GOTO(rt_lock_take(&lock, dir));
    RT_TRY_GOTO(rt_dir_sweep(dir));
    RT_TRY_GOTO(replace(a, dir, path));
done:
    rt_lock_release(&lock);
    rt_free(path);
    rt_free(dir);
    return st;
}

rt_status rt_assess_save(rt_assessment *const *a, int n) {
    rt_error first = {.code = RT_OK};
    const char *run = NULL;
    int lost = 0;
    for (int i = 0; i < n; i++) {
        if (rt_assessment_save(a[i]) == RT_OK)
            continue;
        if (lost++ == 0) {
            rt_error_save(&first);
            run = a[i]->info.run;
        }
    }
    if (lost == 0)
        return RT_OK;
    rt_error_restore(&first);
    const rt_status code = first.code == RT_E_INPUT ? RT_E_FAILED : first.code;
    if (lost > 1)
        return rt_error_prefix(
            code, "the evaluation of %.200s, and of %d more, is not stored (--no-save: not wanted)", run,
            lost - 1);
    return rt_error_prefix(code, "the evaluation of %.200s is not stored (--no-save: not wanted)", run);
}
