/*
 * report_data.c - the JSON block that the page's script draws from: every run with its metrics and the columns of its
 * log.
 *
 *     {"retort": "...", "metrics": [{"name", "heading", "better", "usual", "followed"}, ...] (metrics.def),
 *      "measures": [{"name", "certainty"}, ...] (measures.def), "runs": [{"name", "path", "metrics": {...}, "log": {"epoch": [...], "train_loss": [...], ...}}, ...]}
 *
 * Values are written anew from what the strict reader understood, so nothing of a file is copied as bytes. Long arrays
 * of numbers are thinned to `limit` elements, i -> round(i (n - 1) / (limit - 1)): the choice depends on the length
 * alone, so columns of one table stay in step. If the block is still large, the limit is halved.
 */
#include "base/alloc.h"
#include "base/json.h"
#include "eval/eval.h"
#include "report/report_int.h"
#include <math.h>
#include <string.h>

enum { ELEMENTS_MAX = 512, ELEMENTS_MIN = 32, BLOCK_BYTES = 1200000 };

static int64_t thinned(int64_t n, int64_t limit) {
    return RT_MIN(n, limit);
}

static int64_t thinned_at(int64_t i, int64_t n, int64_t limit) {
    return n <= limit ? i : (int64_t)llround((double)i * (double)(n - 1) / (double)(limit - 1));
}

static bool all_numbers(rt_jval array) {
    for (int64_t i = 0; i < rt_jval_len(array); i++) {
        const char *s;
        bool b;
        rt_jval v = rt_jval_at(array, i);
        if (rt_jval_len(v) >= 0 || rt_jval_str(v, &s) || rt_jval_bool(v, &b))
            return false;
    }
    return true;
}

/* Per-member details of training are as many as there are members, and no plot shows them. */
static bool left_out(const char *key) {
    return strcmp(key, "kept") == 0;
}

static void put(rt_json *j, const char *key, rt_jval v, int64_t limit) {
    const char *s;
    int64_t n = rt_jval_len(v), i64;
    double f;
    bool b;
    if (rt_jval_is_array(v)) {
        int64_t most = all_numbers(v) ? limit : INT64_MAX;
        rt_json_array_begin(j, key);
        for (int64_t i = 0; i < thinned(n, most); i++)
            put(j, NULL, rt_jval_at(v, thinned_at(i, n, most)), limit);
        rt_json_array_end(j);
    } else if (rt_jval_is_object(v)) {
        rt_json_object_begin(j, key);
        for (int64_t i = 0; i < n; i++)
            if (!left_out(rt_jval_key(v, i)))
                put(j, rt_jval_key(v, i), rt_jval_get(v, rt_jval_key(v, i)), limit);
        rt_json_object_end(j);
    } else if (rt_jval_str(v, &s)) {
        rt_json_str(j, key, s);
    } else if (rt_jval_i64(v, &i64)) {
        rt_json_i64(j, key, i64);
    } else if (rt_jval_f64(v, &f)) {
        rt_json_f64(j, key, f);
    } else if (rt_jval_bool(v, &b)) {
        rt_json_bool(j, key, b);
    } else {
        rt_json_str(j, key, NULL);
    }
}

static void put_log(rt_json *j, const rt_report_log *log, int64_t limit) {
    rt_json_object_begin(j, "log");
    for (int c = 0; log->rows > 0 && c < rt_report_log_column_count(); c++) {
        const double *column = log->values + c * log->rows;
        bool any = false;
        for (int64_t i = 0; i < log->rows; i++)
            any = any || isfinite(column[i]);
        if (!any)
            continue;
        rt_json_array_begin(j, rt_report_log_columns[c]);
        for (int64_t i = 0; i < thinned(log->rows, limit); i++) {
            double v = column[thinned_at(i, log->rows, limit)];
            if (isfinite(v))
                rt_json_f64(j, NULL, v);
            else
                rt_json_str(j, NULL, NULL);
        }
        rt_json_array_end(j);
    }
    rt_json_object_end(j);
}

/* What the script needs to know of the tables; a metric that both tasks have is there once. */
static void put_tables(rt_json *j) {
    const rt_metric_info *metric;
    const rt_measure_info *measure;
    const int metrics = rt_metric_list(&metric), measures = rt_measure_list(&measure);
    rt_json_array_begin(j, "metrics");
    for (int i = 0; i < metrics; i++) {
        if (metric[i].regression && rt_metric_find(metric[i].name, false) >= 0)
            continue;
        rt_json_object_begin(j, NULL);
        rt_json_str(j, "name", metric[i].name);
        rt_json_str(j, "heading", metric[i].heading);
        rt_json_i64(j, "better", metric[i].better);
        rt_json_bool(j, "usual", metric[i].usual);
        rt_json_bool(j, "followed", metric[i].followed);
        rt_json_object_end(j);
    }
    rt_json_array_end(j);
    rt_json_array_begin(j, "measures");
    for (int i = 0; i < measures; i++) {
        rt_json_object_begin(j, NULL);
        rt_json_str(j, "name", measure[i].name);
        rt_json_bool(j, "certainty", measure[i].certainty);
        rt_json_object_end(j);
    }
    rt_json_array_end(j);
}

static rt_status put_all(const rt_report *p, rt_str *out, int64_t limit) {
    rt_json j;
    rt_json_init(&j, out, false);
    rt_json_object_begin(&j, NULL);
    rt_json_str(&j, "retort", RT_VERSION);
    put_tables(&j);
    rt_json_array_begin(&j, "runs");
    for (int i = 0; i < p->n; i++) {
        const rt_report_run *r = &p->runs[i];
        rt_json_object_begin(&j, NULL);
        rt_json_str(&j, "name", r->name);
        rt_json_str(&j, "path", r->path);
        if (r->root)
            put(&j, "metrics", r->root, limit);
        put_log(&j, &r->log, limit);
        rt_json_object_end(&j);
        rt_status st = rt_str_status(out);
        if (st != RT_OK)
            return rt_error_prefix(st, "%s", r->metrics_path);
    }
    rt_json_array_end(&j);
    rt_json_object_end(&j);
    return rt_str_status(out);
}

rt_status rt_report_data(const rt_report *p, rt_str *out) {
    rt_str json;
    rt_str_init(&json);
    rt_status st;
    for (int64_t limit = ELEMENTS_MAX;; limit /= 2) {
        rt_str_clear(&json);
        RT_TRY_GOTO(put_all(p, &json, limit));
        if (json.len <= BLOCK_BYTES || limit <= ELEMENTS_MIN)
            break;
    }
    rt_report_script_safe(out, rt_str_text(&json), json.len);
    st = rt_str_status(out);
done:
    rt_str_deinit(&json);
    return st;
}
