/*
 * spec.c - reads a data SPEC: "kind:path,path,key=value,...".
 *
 * Pieces with '=' are options, the others are paths. A loader states which options it knows; a misspelt one
 * is an error that names the nearest, never ignored.
 */
#include "data/data_int.h"

#include "base/alloc.h"
#include "base/file.h"

#include <math.h>
#include <string.h>

rt_status rt_spec_parse(rt_spec *out, const char *text) {
    *out = (rt_spec){.whole = text};
    rt_status st = RT_OK;
    out->text = rt_strdup(text);
    if (out->text == NULL)
        return RT_E_MEMORY;
    char *rest = strchr(out->text, ':');
    out->kind = out->text;
    if (rest)
        *rest++ = 0;
    while (rest && *rest) {
        char *piece = rest, *comma = strchr(rest, ','), *equals;
        rest = comma ? comma + 1 : NULL;
        if (comma)
            *comma = 0;
        equals = strchr(piece, '=');
        if (equals && strchr(piece, '/') && strchr(piece, '/') < equals)
            equals = NULL; /* a path with '=' in it */
        if (equals) {
            *equals = 0;
            if (out->options == RT_SPEC_OPTIONS)
                RT_FAIL_GOTO(RT_E_USAGE, "data '%s': too many options", text);
            if (rt_spec_get(out, piece))
                RT_FAIL_GOTO(RT_E_USAGE, "data '%s': option %s is given twice", text, piece);
            out->option[out->options].key = piece;
            out->option[out->options].value = equals + 1;
            out->options++;
        } else {
            if (out->paths == RT_SPEC_PATHS || *piece == 0)
                RT_FAIL_GOTO(RT_E_USAGE, "data '%s': unexpected '%s', wanted key=value", text, piece);
            RT_TRY_GOTO(rt_path_expand(&out->path[out->paths], piece));
            out->paths++;
        }
    }
done:
    if (st != RT_OK)
        rt_spec_deinit(out);
    return st;
}

void rt_spec_deinit(rt_spec *s) {
    for (int i = 0; i < RT_SPEC_PATHS; i++)
        rt_free(s->path[i]);
    rt_free(s->text);
    *s = (rt_spec){.whole = NULL};
}

rt_status rt_spec_check(const rt_spec *s, int min_paths, int max_paths, const char *const *keys, int64_t n) {
    RT_FAIL_IF(s->files == 0 && (s->paths < min_paths || s->paths > max_paths), RT_E_USAGE,
               "data '%s': %d paths, wanted %d%s", s->whole, s->paths, min_paths,
               max_paths > min_paths ? " or more" : "");
    for (int i = 0; i < s->options; i++)
        if (rt_str_find(s->option[i].key, keys, n) < 0)
            RT_FAIL_UNKNOWN(RT_E_USAGE, s->option[i].key, keys, n, "data '%s': unknown option", s->whole);
    return RT_OK;
}

const char *rt_spec_get(const rt_spec *s, const char *key) {
    for (int i = 0; i < s->options; i++)
        if (strcmp(s->option[i].key, key) == 0)
            return s->option[i].value;
    return NULL;
}

rt_status rt_spec_get_i64(const rt_spec *s, const char *key, int64_t min, int64_t max, int64_t *out) {
    const char *text = rt_spec_get(s, key);
    int64_t v = 0;
    if (text == NULL)
        return RT_OK;
    RT_FAIL_IF(!rt_parse_i64(text, strlen(text), &v) || v < min || v > max, RT_E_USAGE,
               "data '%s': %s=%s, wanted a whole number from %lld to %lld", s->whole, key, text,
               (long long)min, (long long)max);
    *out = v;
    return RT_OK;
}

rt_status rt_spec_get_u64(const rt_spec *s, const char *key, uint64_t *out) {
    const char *text = rt_spec_get(s, key);
    RT_FAIL_IF(text && !rt_parse_u64(text, strlen(text), out), RT_E_USAGE,
               "data '%s': %s=%s, wanted a whole number >= 0", s->whole, key, text);
    return RT_OK;
}

rt_status rt_spec_get_f64(const rt_spec *s, const char *key, double min, double max, double *out) {
    const char *text = rt_spec_get(s, key);
    double v = 0;
    if (text == NULL)
        return RT_OK;
    RT_FAIL_IF(!rt_parse_f64(text, strlen(text), false, &v) || v < min || v > max, RT_E_USAGE,
               "data '%s': %s=%s, wanted a number from %g to %g", s->whole, key, text, min, max);
    *out = v;
    return RT_OK;
}

const char *const rt_task_names[RT_TASKS] = {
    [RT_TASK_CLASSIFICATION] = "classification", [RT_TASK_REGRESSION] = "regression"};

rt_status rt_spec_get_task(const rt_spec *s, rt_task *out, bool *given) {
    const char *text = rt_spec_get(s, "task");
    *given = text != NULL;
    if (text == NULL)
        return RT_OK;
    const int64_t found = rt_str_find(text, rt_task_names, RT_TASKS);
    if (found < 0)
        RT_FAIL_UNKNOWN(RT_E_USAGE, text, rt_task_names, RT_TASKS, "data '%s': unknown task", s->whole);
    *out = (rt_task)found;
    return RT_OK;
}
