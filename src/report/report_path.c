/*
 * report_path.c - places in metrics.json, named by paths (report_int.h).
 */
#include "base/alloc.h"
#include "report/report_int.h"
#include <math.h>
#include <string.h>

rt_jval rt_report_find(rt_jval v, const char *path) {
    const rt_jval found = rt_jval_find(v, path);
    return rt_jval_is_null(found) ? NULL : found;
}

bool rt_report_number(rt_jval v, const char *path, double *out) {
    return rt_jval_f64(rt_report_find(v, path), out);
}

const char *rt_report_text(rt_jval v, const char *path) {
    const char *s = NULL;
    return rt_jval_str(rt_report_find(v, path), &s) ? s : NULL;
}

static bool in_log(const rt_report_log *log, const char *column) {
    for (int c = 0; c < rt_report_log_column_count(); c++)
        for (int64_t i = 0; strcmp(rt_report_log_columns[c], column) == 0 && i < log->rows; i++)
            if (isfinite(log->values[c * log->rows + i]))
                return true;
    return false;
}

bool rt_report_any(const rt_report *p, const char *path) {
    for (int i = 0; i < p->n; i++)
        if (rt_str_starts(path, "log/") ? in_log(&p->runs[i].log, path + 4)
                                        : rt_report_find(p->runs[i].root, path) != NULL)
            return true;
    return false;
}

static bool listed(const char *const *names, int n, const char *name) {
    for (int i = 0; i < n; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

rt_status rt_report_keys(rt_report *p, const char *path, const char *prefix, const char ***out, int *n) {
    int64_t most = 0;
    for (int r = 0; r < p->n; r++)
        most += RT_MAX(rt_jval_len(rt_report_find(p->runs[r].root, path)), 0);
    *n = 0;
    RT_TRY(rt_arena_alloc(&p->arena, out, (size_t)(most + 1) * sizeof **out));
    for (int r = 0; r < p->n; r++) {
        rt_jval object = rt_report_find(p->runs[r].root, path);
        for (int64_t i = 0; rt_jval_is_object(object) && i < rt_jval_len(object); i++) {
            const char *key = rt_jval_key(object, i);
            if (rt_str_starts(key, prefix) && !rt_str_ends(key, "_reason") && !listed(*out, *n, key))
                (*out)[(*n)++] = key;
        }
    }
    return RT_OK;
}
