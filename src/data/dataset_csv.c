/*
 * dataset_csv.c - a table of numbers with one target column.
 *
 * RFC 4180 with ',' and nothing guessed: a header row (header=no if there is none), quotes, CRLF or LF, a
 * UTF-8 mark at the start. Refused, with the line an editor shows and the column: rows of another length,
 * empty fields, anything that is not a finite decimal number ("nan", "inf", "0x1p4", "1,5"), a lone carriage
 * return, NUL.
 *
 * Target: target=NAME, else a column called y, target, label or class, else the last; target=none for rows to
 * predict (they are all test rows). Task: numbers are regression, text is classification; task= overrides.
 * Classes are the distinct values, numbers in numeric order, texts in byte order. A column that mixes numbers
 * and texts is refused unless task=classification is given: it is more often a damaged number than a class.
 *
 * Test part: splits=FILE,split=K (one line per split: zero-based row numbers of the test rows), else a share
 * test=0.1 of the rows (rt_holdout_mask).
 */
#include "data/data_int.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/size.h"
#include "io/io.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct csv_field {
    const char *p; /* NUL-terminated */
    size_t n;
} csv_field;

typedef struct csv_table {
    const char *name;
    char *text;
    size_t n, at;
    int64_t line, line_start; /* of the next and of the current record */
    csv_field *field;         /* of the current record */
    int64_t fields, field_cap;
    csv_field *header;                 /* NULL with header=no */
    int64_t columns, target, features; /* target -1: there is none */
    bool pending;                      /* the current record is not yet a row */
    float *x;                          /* (rows, features) */
    csv_field *y;
    int64_t *y_line;
    int64_t rows, row_cap;
} csv_table;

static void csv_deinit(csv_table *t) {
    rt_free(t->text);
    rt_free(t->field);
    rt_free(t->header);
    rt_free(t->x);
    rt_free(t->y);
    rt_free(t->y_line);
}

/* ---- records ---- */

static rt_status csv_push(csv_table *t, char *start, char *end) {
    if (t->fields == t->field_cap) {
        int64_t cap = t->field_cap ? t->field_cap * 2 : 64;
        RT_TRY(
            rt_realloc(&t->field, (size_t)t->field_cap * sizeof *t->field, (size_t)cap * sizeof *t->field));
        t->field_cap = cap;
    }
    t->field[t->fields++] = (csv_field){.p = start, .n = (size_t)(end - start)};
    return RT_OK;
}

/* A quoted field: moves its content together; t->at ends behind the closing quote. */
static rt_status csv_quoted(csv_table *t, char **start, char **end) {
    char *to = t->text + t->at;
    *start = to;
    for (t->at++; t->at < t->n; t->at++) {
        char c = t->text[t->at];
        if (c == '"') {
            if (t->at + 1 >= t->n || t->text[t->at + 1] != '"') {
                t->at++;
                *end = to;
                return RT_OK;
            }
            t->at++;
        }
        t->line += c == '\n';
        *to++ = c;
    }
    RT_FAIL(RT_E_INPUT, "%s: line %lld, column %lld: the quote is never closed", t->name,
            (long long)t->line_start, (long long)t->fields + 1);
}

static bool csv_blank(char c) {
    return c == ' ' || c == '\t';
}

/* Reads one record into t->field. *end_of_file when nothing but empty lines is left. */
static rt_status csv_record(csv_table *t, bool *end_of_file) {
    size_t probe = t->at;
    while (probe < t->n && (t->text[probe] == '\n' || t->text[probe] == '\r'))
        probe++;
    *end_of_file = probe == t->n;
    t->fields = 0;
    t->line_start = t->line;
    for (bool more = !*end_of_file; more;) {
        while (t->at < t->n && csv_blank(t->text[t->at]))
            t->at++;
        char *start = t->text + t->at, *end = start;
        if (t->at < t->n && *start == '"') {
            RT_TRY(csv_quoted(t, &start, &end));
            while (t->at < t->n && csv_blank(t->text[t->at]))
                t->at++;
        } else {
            while (t->at < t->n && t->text[t->at] != ',' && t->text[t->at] != '\n' && t->text[t->at] != '\r')
                t->at++;
            end = t->text + t->at;
            while (end > start && csv_blank(end[-1]))
                end--;
        }
        RT_TRY(csv_push(t, start, end));
        char c = t->at < t->n ? t->text[t->at] : '\n';
        more = c == ',';
        if (c == '\r') {
            RT_FAIL_IF(t->at + 1 < t->n && t->text[t->at + 1] != '\n', RT_E_INPUT,
                       "%s: line %lld: carriage return without line feed", t->name, (long long)t->line);
            t->at++;
        } else {
            RT_FAIL_IF(c != ',' && c != '\n', RT_E_INPUT,
                       "%s: line %lld, column %lld: text behind the closing quote", t->name,
                       (long long)t->line_start, (long long)t->fields);
        }
        t->at = RT_MIN(t->at + 1, t->n);
        t->line += c != ',';
        *end = 0;
    }
    return RT_OK;
}

/* ---- columns ---- */

static const char *csv_column_name(const csv_table *t, int64_t c) {
    return t->header ? t->header[c].p : "no name";
}

static rt_status csv_find_target(csv_table *t, const char *wanted, const char *whole) {
    static const char *const usual[] = {"y", "target", "label", "class"};
    t->target = t->columns - 1;
    if (wanted == NULL) {
        for (int64_t k = 0; t->header && k < RT_COUNT(usual); k++)
            for (int64_t c = 0; c < t->columns; c++)
                if (strcmp(t->header[c].p, usual[k]) == 0) {
                    t->target = c;
                    return RT_OK;
                }
        return RT_OK;
    }
    RT_FAIL_IF(t->header == NULL && strcmp(wanted, "none") != 0, RT_E_USAGE,
               "data '%s': target=%s needs a header row", whole, wanted);
    int64_t found = 0;
    for (int64_t c = 0; t->header && c < t->columns; c++)
        if (strcmp(t->header[c].p, wanted) == 0) {
            t->target = c;
            found++;
        }
    RT_FAIL_IF(found > 1, RT_E_INPUT, "%s: %lld columns are called %s", t->name, (long long)found, wanted);
    if (found == 1)
        return RT_OK;
    if (strcmp(wanted, "none") == 0) {
        t->target = -1;
        return RT_OK;
    }
    const char **names = NULL;
    RT_TRY(rt_calloc(&names, (size_t)t->columns, sizeof *names));
    for (int64_t c = 0; c < t->columns; c++)
        names[c] = t->header[c].p;
    int64_t near = rt_str_nearest(wanted, names, t->columns);
    rt_status st =
        rt_error_set(RT_E_USAGE, __FILE__, __LINE__, "%s: no column is called %s%s%s%s", t->name, wanted,
                     near >= 0 ? ", did you mean " : "", near >= 0 ? names[near] : "", near >= 0 ? "?" : "");
    rt_free(names);
    return st;
}

/* The first record: the names, or with header=no the first row (t->pending). */
static rt_status csv_header(csv_table *t, bool has_header, const char *target, const char *whole) {
    bool end = false, numbers = true;
    double v;
    RT_TRY(csv_record(t, &end));
    RT_FAIL_IF(end, RT_E_INPUT, "%s: the file is empty", t->name);
    t->columns = t->fields;
    t->pending = !has_header;
    if (has_header) {
        for (int64_t c = 0; c < t->fields; c++)
            numbers = numbers && rt_parse_f64(t->field[c].p, t->field[c].n, false, &v);
        RT_FAIL_IF(numbers, RT_E_INPUT,
                   "%s: line 1 holds numbers, wanted column names (say header=no if there are none)",
                   t->name);
        t->header = t->field;
        t->field = NULL;
        t->fields = t->field_cap = 0;
    }
    RT_TRY(csv_find_target(t, target, whole));
    t->features = t->columns - (t->target >= 0);
    RT_FAIL_IF(t->features < 1, RT_E_INPUT,
               "%s: line 1 has %lld column, wanted a feature and a target at least", t->name,
               (long long)t->columns);
    return RT_OK;
}

/* ---- rows ---- */

static rt_status csv_grow(csv_table *t) {
    if (t->rows < t->row_cap)
        return RT_OK;
    size_t old = (size_t)t->row_cap, cap = old ? old * 2 : 256, features = (size_t)t->features, bytes = 0;
    RT_FAIL_IF(!rt_size_mul(cap, features * sizeof(float), &bytes), RT_E_INPUT, "%s: too many rows", t->name);
    RT_TRY(rt_realloc(&t->x, old * features * sizeof(float), bytes));
    RT_TRY(rt_realloc(&t->y, old * sizeof *t->y, cap * sizeof *t->y));
    RT_TRY(rt_realloc(&t->y_line, old * sizeof *t->y_line, cap * sizeof *t->y_line));
    t->row_cap = (int64_t)cap;
    return RT_OK;
}

static rt_status csv_number(const csv_table *t, int64_t column, const csv_field *f, int64_t line,
                            float *out) {
    double v = 0;
    RT_FAIL_IF(f->n == 0, RT_E_INPUT, "%s: line %lld, column %lld (%.60s) is empty", t->name, (long long)line,
               (long long)column + 1, csv_column_name(t, column));
    RT_FAIL_IF(!rt_parse_f64(f->p, f->n, false, &v), RT_E_INPUT,
               "%s: line %lld, column %lld (%.60s): '%.60s' is not a number", t->name, (long long)line,
               (long long)column + 1, csv_column_name(t, column), f->p);
    *out = (float)v;
    RT_FAIL_IF(!isfinite(*out), RT_E_INPUT,
               "%s: line %lld, column %lld (%.60s): %.60s is beyond single precision", t->name,
               (long long)line, (long long)column + 1, csv_column_name(t, column), f->p);
    return RT_OK;
}

static rt_status csv_rows(csv_table *t) {
    for (;;) {
        bool end = false;
        if (!t->pending)
            RT_TRY(csv_record(t, &end));
        t->pending = false;
        if (end)
            break;
        RT_FAIL_IF(t->fields != t->columns, RT_E_INPUT, "%s: line %lld has %lld columns, wanted %lld",
                   t->name, (long long)t->line_start, (long long)t->fields, (long long)t->columns);
        RT_TRY(csv_grow(t));
        float *x = t->x + t->rows * t->features;
        for (int64_t c = 0; c < t->columns; c++)
            if (c != t->target)
                RT_TRY(csv_number(t, c, &t->field[c], t->line_start, x++));
        t->y[t->rows] = t->target >= 0 ? t->field[t->target] : (csv_field){.p = "", .n = 0};
        t->y_line[t->rows] = t->line_start;
        RT_FAIL_IF(t->target >= 0 && t->y[t->rows].n == 0, RT_E_INPUT,
                   "%s: line %lld, column %lld (%.60s) is empty", t->name, (long long)t->line_start,
                   (long long)t->target + 1, csv_column_name(t, t->target));
        t->rows++;
    }
    RT_FAIL_IF(t->rows == 0, RT_E_INPUT, "%s: no rows behind the header", t->name);
    return RT_OK;
}

/* ---- target ---- */

/* One target value: its row, its text, its number if it is one. */
typedef struct csv_value {
    const char *text;
    double number;
    int64_t row;
} csv_value;

static int csv_by_text(const void *a, const void *b) {
    return strcmp(((const csv_value *)a)->text, ((const csv_value *)b)->text);
}
static int csv_by_number(const void *a, const void *b) {
    double x = ((const csv_value *)a)->number, y = ((const csv_value *)b)->number;
    return (x > y) - (x < y);
}

static rt_status csv_classes(rt_dataset *d, const csv_table *t, csv_value *v, bool numeric, int32_t *label) {
    int (*compare)(const void *, const void *) = numeric ? csv_by_number : csv_by_text;
    const char **names = NULL;
    rt_status st = RT_OK;
    RT_TRY(rt_calloc(&names, RT_CLASSES_MAX, sizeof *names));
    qsort(v, (size_t)t->rows, sizeof *v, compare);
    d->classes = 0;
    for (int64_t i = 0; i < t->rows; i++) {
        if (i == 0 || compare(&v[i - 1], &v[i]) != 0) {
            if (d->classes == RT_CLASSES_MAX)
                RT_FAIL_GOTO(RT_E_INPUT, "%s: more than %d classes in column %s", t->name, RT_CLASSES_MAX,
                             csv_column_name(t, t->target));
            names[d->classes++] = v[i].text;
        }
        label[v[i].row] = (int32_t)(d->classes - 1);
    }
    st = rt_dataset_name_classes(d, names);
done:
    rt_free(names);
    return st;
}

/* Decides the task and fills label or target (rows each). */
static rt_status csv_target(rt_dataset *d, const csv_table *t, const rt_spec *s, int32_t *label,
                            float *target) {
    bool given = false;
    rt_task task = RT_TASK_REGRESSION;
    csv_value *v = NULL;
    int64_t numbers = 0, first_text = -1;
    rt_status st = RT_OK;
    RT_TRY(rt_spec_get_task(s, &task, &given));
    RT_TRY(rt_calloc(&v, (size_t)t->rows, sizeof *v));
    for (int64_t i = 0; i < t->rows; i++) {
        v[i] = (csv_value){.text = t->y[i].p, .row = i};
        bool number = rt_parse_f64(t->y[i].p, t->y[i].n, false, &v[i].number);
        numbers += number;
        if (!number && first_text < 0)
            first_text = i;
        if (strlen(t->y[i].p) != t->y[i].n)
            RT_FAIL_GOTO(RT_E_INPUT, "%s: line %lld: NUL in the target", t->name, (long long)t->y_line[i]);
    }
    if (!given && numbers == 0)
        task = RT_TASK_CLASSIFICATION;
    if (!given && numbers > 0 && first_text >= 0)
        RT_FAIL_GOTO(RT_E_INPUT,
                     "%s: line %lld, column %s: '%.60s' is not a number, but %lld rows have one (say "
                     "task=classification "
                     "if these are classes)",
                     t->name, (long long)t->y_line[first_text], csv_column_name(t, t->target),
                     t->y[first_text].p, (long long)numbers);
    d->task = task;
    if (task == RT_TASK_REGRESSION) {
        for (int64_t i = 0; i < t->rows; i++)
            RT_TRY_GOTO(csv_number(t, t->target, &t->y[i], t->y_line[i], &target[i]));
    } else {
        RT_TRY_GOTO(csv_classes(d, t, v, first_text < 0, label));
    }
done:
    rt_free(v);
    return st;
}

/* ---- the test rows of split k ---- */

static rt_status csv_split_line(uint8_t *is_test, const char *line, size_t n, int64_t rows, const char *path,
                                int64_t k) {
    int64_t count = 0;
    for (size_t at = 0; at < n;) {
        size_t len = 0;
        int64_t row = 0;
        if (csv_blank(line[at]) || line[at] == '\r') {
            at++;
            continue;
        }
        while (at + len < n && !csv_blank(line[at + len]) && line[at + len] != '\r')
            len++;
        RT_FAIL_IF(!rt_parse_i64(line + at, len, &row) || row < 0 || row >= rows, RT_E_INPUT,
                   "%s: line %lld: '%.*s', wanted a row number from 0 to %lld", path, (long long)k + 1,
                   (int)RT_MIN(len, (size_t)60), line + at, (long long)rows - 1);
        RT_FAIL_IF(is_test[row], RT_E_INPUT, "%s: line %lld: row %lld is there twice", path, (long long)k + 1,
                   (long long)row);
        is_test[row] = 1;
        count++;
        at += len;
    }
    RT_FAIL_IF(count == 0, RT_E_INPUT, "%s: line %lld is empty", path, (long long)k + 1);
    return RT_OK;
}

static rt_status csv_split_mask(uint8_t *is_test, const char *path, int64_t k, int64_t rows) {
    uint8_t *text = NULL;
    size_t n = 0, at = 0;
    rt_status st = RT_OK;
    int64_t line = 0;
    RT_TRY(rt_bytes_read(path, rt_data_file_max, &text, &n));
    for (; at < n; line++) {
        const uint8_t *end = memchr(text + at, '\n', n - at);
        size_t len = end ? (size_t)(end - text) - at : n - at;
        if (line == k)
            RT_TRY_GOTO(csv_split_line(is_test, (const char *)text + at, len, rows, path, k));
        at += len + 1;
    }
    if (k >= line)
        RT_FAIL_GOTO(RT_E_USAGE, "%s: split=%lld, but the file has %lld splits (counted from 0)", path,
                     (long long)k, (long long)line);
done:
    rt_free(text);
    return st;
}

static rt_status csv_mask(uint8_t **is_test, const rt_spec *s, int64_t rows) {
    const char *splits = rt_spec_get(s, "splits");
    if (splits == NULL) {
        RT_FAIL_IF(rt_spec_get(s, "split"), RT_E_USAGE, "data '%s': split= without splits=FILE", s->whole);
        return rt_holdout_mask(is_test, s, rows);
    }
    RT_FAIL_IF(rt_spec_get(s, "test") || rt_spec_get(s, "seed"), RT_E_USAGE,
               "data '%s': splits= says which rows are for testing; test= and seed= have no use then",
               s->whole);
    int64_t k = 0;
    RT_TRY(rt_spec_get_i64(s, "split", 0, 1000000, &k));
    char *path = NULL;
    RT_TRY(rt_path_expand(&path, splits));
    rt_status st = rt_calloc(is_test, (size_t)rows, 1);
    if (st == RT_OK)
        st = csv_split_mask(*is_test, path, k, rows);
    rt_free(path);
    return st;
}

/* ---- all together ---- */

static rt_status csv_read(csv_table *t, const rt_spec *s) {
    const char *header = rt_spec_get(s, "header");
    bool yes = header == NULL || strcmp(header, "yes") == 0;
    RT_FAIL_IF(!yes && strcmp(header, "no") != 0, RT_E_USAGE, "data '%s': header=%s, wanted yes or no",
               s->whole, header);
    uint8_t *bytes = NULL;
    RT_TRY(rt_bytes_read(t->name, rt_data_file_max, &bytes, &t->n));
    t->text = (char *)bytes;
    if (t->n >= 3 && memcmp(t->text, "\xef\xbb\xbf", 3) == 0)
        t->at = 3;
    RT_TRY(csv_header(t, yes, rt_spec_get(s, "target"), s->whole));
    return csv_rows(t);
}

rt_status rt_load_csv(rt_dataset *d, const rt_spec *s, rt_data_options o) {
    static const char *const keys[] = {"target", "task", "splits", "split", "test", "seed", "header"};
    RT_TRY(rt_spec_check(s, 1, 1, keys, RT_COUNT(keys)));
    csv_table t = {.name = s->path[0], .line = 1};
    int32_t *label = NULL;
    float *target = NULL;
    uint8_t *is_test = NULL;
    rt_status st = RT_OK;
    RT_TRY_GOTO(csv_read(&t, s));
    RT_TRY_GOTO(rt_calloc(&label, (size_t)t.rows, sizeof *label));
    RT_TRY_GOTO(rt_calloc(&target, (size_t)t.rows, sizeof *target));
    d->row = rt_shape1(t.features);
    d->task = RT_TASK_REGRESSION;
    rt_part all = {.n = t.rows, .f32 = t.x};
    if (t.target >= 0) {
        RT_TRY_GOTO(csv_target(d, &t, s, label, target));
        RT_TRY_GOTO(csv_mask(&is_test, s, t.rows));
        all.label = d->task == RT_TASK_CLASSIFICATION ? label : NULL;
        all.target = d->task == RT_TASK_CLASSIFICATION ? NULL : target;
    } else {
        RT_TRY_GOTO(rt_alloc(&is_test, (size_t)t.rows));
        memset(is_test, 1, (size_t)t.rows);
    }
    st = rt_dataset_divide(d, &all, is_test, o.test_only);
done:
    rt_free(is_test);
    rt_free(target);
    rt_free(label);
    csv_deinit(&t);
    return st;
}
