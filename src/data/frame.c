/*
 * frame.c - a file as typed columns.
 *
 * The kind of a column is that of its first value: a number, a date or else a category; gaps are of any kind.
 * When a later value contradicts, the column is one of categories and the file is read once more, so that
 * every value is kept as it was written. A column in which at least half of the values are numbers and others
 * are not is refused: it is more often damaged than a column of categories. Kinds that were told (by a model,
 * by the SPEC) are held to: a value of another kind is an error with its line.
 *
 * Numbers are kept in single precision, categories as indices: four bytes a value, beside the text of the file
 * while it is read.
 */
#include "data/frame.h"

#include "base/alloc.h"
#include "base/log.h"
#include "base/size.h"
#include "base/stop.h"
#include "base/timer.h"
#include "data/data_int.h"
#include "io/io.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { CATEGORIES_MAX = 1 << 20, TEXT_MAX = 1 << 16, TELL_ROWS = 1 << 12 };
static const double TELL_FIRST = 1, TELL_AGAIN = 5; /* seconds */

bool rt_is_gap(const char *s, size_t n) {
    static const char *const words[] = {"?",   "NA",  "N/A",  "n/a",  "#N/A", "NaN",
                                        "nan", "NAN", "NULL", "null", "None", "<NA>"};
    bool gap = n == 0;
    for (int64_t i = 0; i < RT_COUNT(words) && n <= 4 && !gap; i++)
        gap = strlen(words[i]) == n && memcmp(words[i], s, n) == 0;
    return gap;
}

/* ---- life ---- */

static void column_clear(rt_column *c) {
    rt_map_deinit(&c->codes);
    rt_free(c->number);
    rt_free(c->date);
    rt_free(c->code);
    rt_free(c->category);
    c->number = NULL;
    c->date = NULL;
    c->code = NULL;
    c->category = NULL;
    c->categories = c->category_cap = c->gaps = c->first_gap = 0;
    c->stale = c->counts = false;
}

void rt_frame_deinit(rt_frame *t) {
    for (int64_t c = 0; t->column && c < t->columns; c++)
        column_clear(&t->column[c]);
    rt_free(t->column);
    rt_free(t->line);
    rt_free(t->text);
    rt_csv_deinit(&t->reader);
    rt_arena_deinit(&t->arena);
    *t = (rt_frame){.path = NULL};
}

static rt_status text_copy(rt_frame *t, const char **out, const rt_csv_field *f, int64_t line,
                           int64_t column) {
    char *copy = NULL;
    RT_FAIL_IF(memchr(f->p, 0, f->n) != NULL, RT_E_INPUT, "%s: line %lld, column %lld: NUL in a text",
               t->path, (long long)line, (long long)column + 1);
    RT_TRY(rt_arena_alloc(&t->arena, &copy, f->n + 1));
    memcpy(copy, f->p, f->n);
    for (const char *p = copy; *p;) {
        const size_t step = rt_utf8_length(p);
        RT_FAIL_IF(step == 0, RT_E_INPUT,
                   "%s: line %lld, column %lld: the text is not UTF-8 (iconv -f latin1 -t utf8 converts)",
                   t->path, (long long)line, (long long)column + 1);
        p += step;
    }
    *out = copy;
    return RT_OK;
}

/* ---- header ---- */

static rt_status name_column(rt_frame *t, int64_t c) {
    rt_csv_field *f = &t->reader.field[c];
    rt_column *column = &t->column[c];
    char number[32];
    column->unnamed = t->format.no_header || f->n == 0;
    if (column->unnamed) {
        snprintf(number, sizeof number, "column %lld", (long long)c + 1);
        return rt_arena_strdup(&t->arena, &column->name, number);
    }
    return text_copy(t, &column->name, f, 1, c);
}

static rt_status check_names(const rt_frame *t) {
    rt_map seen;
    rt_status st = RT_OK;
    rt_map_init(&seen);
    for (int64_t c = 0; c < t->columns; c++) {
        bool twice = false;
        RT_TRY_GOTO(rt_map_put(&seen, t->column[c].name, c, &twice));
        if (twice)
            RT_FAIL_GOTO(RT_E_INPUT, "%s: 2 columns are called %.60s", t->path, t->column[c].name);
    }
done:
    rt_map_deinit(&seen);
    return st;
}

static rt_status read_header(rt_frame *t) {
    bool end = false, numbers = true;
    double v;
    rt_csv *r = &t->reader;
    rt_csv_start(r, t->path, t->text, t->n, t->format.separator);
    const size_t first = r->at;
    RT_TRY(rt_csv_next(r, &end));
    RT_FAIL_IF(end, RT_E_INPUT, "%s: the file is empty", t->path);
    for (int64_t c = 0; c < r->fields; c++)
        numbers = numbers && rt_parse_f64(r->field[c].p, r->field[c].n, false, &v);
    RT_FAIL_IF(numbers && !t->format.no_header, RT_E_INPUT,
               "%s: line 1 holds numbers, wanted column names (say header=no if there are none)", t->path);
    RT_TRY(rt_calloc(&t->column, (size_t)r->fields, sizeof *t->column));
    t->columns = r->fields;
    for (int64_t c = 0; c < t->columns; c++) {
        rt_map_init(&t->column[c].codes);
        RT_TRY(name_column(t, c));
    }
    if (t->format.no_header) { /* the record is a row */
        r->at = first;
        r->line = 1;
    }
    return check_names(t);
}

rt_status rt_frame_open(rt_frame *t, const char *path, rt_frame_format f) {
    uint8_t *bytes = NULL;
    *t = (rt_frame){.path = path, .format = f};
    rt_arena_init(&t->arena);
    RT_TRY(rt_arena_strdup(&t->arena, &t->path, path));
    RT_TRY(rt_bytes_read(path, rt_data_file_max, &bytes, &t->n));
    t->text = (char *)bytes;
    return read_header(t);
}

int64_t rt_frame_find(const rt_frame *t, const char *name) {
    for (int64_t c = 0; c < t->columns; c++)
        if (strcmp(t->column[c].name, name) == 0)
            return c;
    return -1;
}

bool rt_column_gap(const rt_column *c, int64_t row) {
    return c->kind == RT_COLUMN_NUMBER ? isnan(c->number[row])
           : c->kind == RT_COLUMN_DATE ? isnan(c->date[row])
                                       : c->code[row] < 0;
}

void rt_frame_skip(rt_frame *t, const uint8_t *mask) {
    int64_t kept = 0;
    for (int64_t i = 0; i < t->rows; i++) {
        for (int64_t c = 0; c < t->columns && !mask[i]; c++) {
            rt_column *k = &t->column[c];
            if (k->number)
                k->number[kept] = k->number[i];
            if (k->date)
                k->date[kept] = k->date[i];
            if (k->code)
                k->code[kept] = k->code[i];
        }
        t->line[kept] = t->line[i];
        kept += !mask[i];
    }
    t->rows = kept;
}

/* ---- values ---- */

static rt_status grow(rt_frame *t) {
    if (t->rows < t->row_cap)
        return RT_OK;
    const size_t old = (size_t)t->row_cap, cap = old ? old * 2 : 16;
    RT_TRY(rt_realloc(&t->line, old * sizeof *t->line, cap * sizeof *t->line));
    for (int64_t c = 0; c < t->columns; c++) {
        rt_column *k = &t->column[c];
        if (k->number)
            RT_TRY(rt_realloc(&k->number, old * sizeof *k->number, cap * sizeof *k->number));
        if (k->date)
            RT_TRY(rt_realloc(&k->date, old * sizeof *k->date, cap * sizeof *k->date));
        if (k->code)
            RT_TRY(rt_realloc(&k->code, old * sizeof *k->code, cap * sizeof *k->code));
    }
    t->row_cap = (int64_t)cap;
    return RT_OK;
}

/* Room for the values of a kind; all rows so far are gaps. */
static rt_status column_begin(rt_frame *t, rt_column *c) {
    const size_t n = (size_t)t->row_cap;
    if (c->kind == RT_COLUMN_NUMBER) {
        RT_TRY(rt_calloc(&c->number, n, sizeof *c->number));
        for (int64_t i = 0; i < t->rows; i++)
            c->number[i] = NAN;
    } else if (c->kind == RT_COLUMN_DATE) {
        RT_TRY(rt_calloc(&c->date, n, sizeof *c->date));
        for (int64_t i = 0; i < t->rows; i++)
            c->date[i] = NAN;
    } else if (c->kind == RT_COLUMN_CATEGORY) {
        RT_TRY(rt_calloc(&c->code, n, sizeof *c->code));
        for (int64_t i = 0; i < t->rows; i++)
            c->code[i] = -1;
    }
    return RT_OK;
}

static bool parse_number(const rt_frame *t, const rt_csv_field *f, double *out) {
    char text[64];
    const char *comma = t->format.decimal_comma ? memchr(f->p, ',', f->n) : NULL;
    if (comma == NULL)
        return rt_parse_f64(f->p, f->n, false, out);
    if (f->n >= sizeof text)
        return false;
    memcpy(text, f->p, f->n);
    text[comma - f->p] = '.';
    return rt_parse_f64(text, f->n, false, out);
}

static rt_status not_this_kind(const rt_frame *t, const rt_column *c, const rt_csv_field *f) {
    const bool comma = memchr(f->p, ',', f->n) && !memchr(f->p, '.', f->n) && !t->format.decimal_comma;
    const char *advice = comma ? "say decimal=comma if that is a decimal comma" : rt_text_advice(f->p, f->n);
    RT_FAIL(RT_E_INPUT, "%s: line %lld, column %lld (%.60s): '%.*s' is not a %s%s%s%s", t->path,
            (long long)t->reader.line_start, (long long)(c - t->column) + 1, c->name,
            (int)RT_MIN(f->n, (size_t)60), f->p, c->kind == RT_COLUMN_DATE ? "date" : "number",
            advice ? " (" : "", advice ? advice : "", advice ? ")" : "");
}

static rt_status add_category(rt_frame *t, rt_column *c, const rt_csv_field *f, const char **text) {
    double v;
    if (c->categories == c->category_cap) {
        const int64_t cap = c->category_cap ? c->category_cap * 2 : 16;
        RT_TRY(rt_realloc(&c->category, (size_t)c->category_cap * sizeof *c->category,
                          (size_t)cap * sizeof *c->category));
        c->category_cap = cap;
    }
    RT_FAIL_IF(c->categories == CATEGORIES_MAX, RT_E_INPUT,
               "%s: column %.60s holds more than %d different texts; leave it out with drop=%.60s", t->path,
               c->name, CATEGORIES_MAX, c->name);
    RT_TRY(text_copy(t, text, f, t->reader.line_start, c - t->column));
    RT_TRY(rt_map_put(&c->codes, *text, c->categories, NULL));
    c->category[c->categories++] =
        (rt_category){.text = *text, .number = parse_number(t, f, &v), .line = t->reader.line_start};
    return RT_OK;
}

static rt_status put_category(rt_frame *t, rt_column *c, const rt_csv_field *f) {
    char key[256];
    const char *text = NULL;
    int64_t code = -1;
    const bool fits = f->n < sizeof key && memchr(f->p, 0, f->n) == NULL;
    if (fits) {
        memcpy(key, f->p, f->n);
        key[f->n] = 0;
    }
    if (!fits) /* long: copied first */
        RT_TRY(text_copy(t, &text, f, t->reader.line_start, c - t->column));
    if (!rt_map_get(&c->codes, fits ? key : text, &code)) {
        code = c->categories;
        RT_TRY(add_category(t, c, f, &text));
    }
    c->category[code].count++;
    c->code[t->rows] = (int32_t)code;
    return RT_OK;
}

static void put_gap(const rt_frame *t, rt_column *c) {
    if (c->gaps++ == 0)
        c->first_gap = t->reader.line_start;
    c->counts = false;
    if (c->kind == RT_COLUMN_NUMBER)
        c->number[t->rows] = NAN;
    else if (c->kind == RT_COLUMN_DATE)
        c->date[t->rows] = NAN;
    else if (c->kind == RT_COLUMN_CATEGORY)
        c->code[t->rows] = -1;
}

/* "inf" is a number that nothing can be learned from, rather than a category. */
static bool is_infinite(const rt_csv_field *f) {
    double v;
    return rt_parse_f64(f->p, f->n, true, &v) && !isfinite(v);
}

static rt_column_kind kind_of(const rt_frame *t, const rt_csv_field *f) {
    double v;
    if (parse_number(t, f, &v))
        return RT_COLUMN_NUMBER;
    return rt_parse_date(f->p, f->n, &v) ? RT_COLUMN_DATE : RT_COLUMN_CATEGORY;
}

static rt_status put_value(rt_frame *t, rt_column *c, const rt_csv_field *f) {
    double v = 0;
    if (c->kind == RT_COLUMN_UNKNOWN && is_infinite(f))
        return not_this_kind(t, c, f);
    if (c->kind == RT_COLUMN_UNKNOWN) {
        c->kind = kind_of(t, f);
        RT_TRY(column_begin(t, c));
    }
    if (c->kind == RT_COLUMN_CATEGORY)
        return put_category(t, c, f);
    const bool fits = c->kind == RT_COLUMN_NUMBER ? parse_number(t, f, &v) : rt_parse_date(f->p, f->n, &v);
    if (!fits && (c->told || is_infinite(f)))
        return not_this_kind(t, c, f);
    c->stale = c->stale || !fits;
    if (c->kind == RT_COLUMN_DATE) {
        c->date[t->rows] = v;
        return RT_OK;
    }
    c->start = t->rows == 0 ? v : c->start;
    c->counts = (t->rows == 0 || c->counts) && v == floor(c->start) + (double)t->rows;
    c->number[t->rows] = (float)v;
    RT_FAIL_IF(!isfinite((float)v), RT_E_INPUT,
               "%s: line %lld, column %lld (%.60s): %.*s is beyond single precision", t->path,
               (long long)t->reader.line_start, (long long)(c - t->column) + 1, c->name,
               (int)RT_MIN(f->n, (size_t)60), f->p);
    return RT_OK;
}

static rt_status put_row(rt_frame *t) {
    const rt_csv *r = &t->reader;
    RT_FAIL_IF(r->fields != t->columns, RT_E_INPUT, "%s: line %lld has %lld columns, wanted %lld", t->path,
               (long long)r->line_start, (long long)r->fields, (long long)t->columns);
    RT_TRY(grow(t));
    t->line[t->rows] = r->line_start;
    for (int64_t c = 0; c < t->columns; c++) {
        rt_column *column = &t->column[c];
        const rt_csv_field *f = &r->field[c];
        if (column->kind == RT_COLUMN_IGNORED || column->stale)
            continue;
        RT_FAIL_IF(f->n > TEXT_MAX, RT_E_INPUT,
                   "%s: line %lld, column %lld (%.60s): %zu bytes, wanted at most %d (drop=%.60s leaves the "
                   "column out)",
                   t->path, (long long)r->line_start, (long long)c + 1, column->name, f->n, TEXT_MAX,
                   column->name);
        if (rt_is_gap(f->p, f->n))
            put_gap(t, column);
        else
            RT_TRY(put_value(t, column, f));
    }
    t->rows++;
    return RT_OK;
}

/* Reports progress of a file that takes long: after a second, then every few seconds. */
static void tell(const rt_frame *t, double *told) {
    const double now = rt_time_now(), wait = *told == t->started ? TELL_FIRST : TELL_AGAIN;
    if (now - *told < wait)
        return;
    *told = now;
    rt_log(RT_LOG_INFO, "reading %s: %lld rows, %.0f %%", t->path, (long long)t->rows,
           100 * (double)t->reader.at / (double)t->n);
}

static rt_status read_rows(rt_frame *t) {
    double told = t->started = rt_time_now();
    RT_TRY(grow(t));
    for (int64_t c = 0; c < t->columns; c++)
        RT_TRY(column_begin(t, &t->column[c]));
    for (;;) {
        bool end = false;
        RT_TRY(rt_csv_next(&t->reader, &end));
        if (end)
            return RT_OK;
        RT_TRY(rt_stop_check("reading", t->path));
        RT_TRY(put_row(t));
        if (t->rows % TELL_ROWS == 0)
            tell(t, &told);
    }
}

/* Columns that turned out to be categories are so from the first row on, and everything is read again. */
static bool restart(rt_frame *t, size_t at, int64_t line) {
    bool again = false;
    for (int64_t c = 0; c < t->columns; c++)
        again = again || t->column[c].stale;
    if (!again)
        return false;
    for (int64_t c = 0; c < t->columns; c++) {
        rt_column *column = &t->column[c];
        if (column->stale)
            column->kind = RT_COLUMN_CATEGORY;
        column_clear(column);
        rt_map_init(&column->codes);
    }
    t->rows = 0;
    t->reader.at = at;
    t->reader.line = line;
    return true;
}

/* Half of the values or more are numbers, and others are not. */
static rt_status check_mixed(const rt_frame *t, const rt_column *c) {
    int64_t numbers = 0, texts = 0;
    const rt_category *first = NULL;
    for (int64_t k = 0; k < c->categories; k++) {
        const rt_category *g = &c->category[k];
        *(g->number ? &numbers : &texts) += g->count;
        if (!g->number && first == NULL)
            first = g;
    }
    const char *advice = first ? rt_text_advice(first->text, strlen(first->text)) : NULL;
    RT_FAIL_IF(!c->told && texts > 0 && numbers >= texts, RT_E_INPUT,
               "%s: line %lld, column %lld (%.60s): '%.60s' is not a number, but %lld rows have one (%s%s"
               "category=%.60s if these are categories, drop=%.60s to leave the column out)",
               t->path, (long long)first->line, (long long)(c - t->column) + 1, c->name, first->text,
               (long long)numbers, advice ? advice : "say ", advice ? "; " : "", c->name, c->name);
    return RT_OK;
}

/* Texts that somebody may have meant otherwise become categories; that is told, by the first of them. */
static void tell_texts(const rt_frame *t, const rt_column *c) {
    const rt_category *first = c->categories > 0 && !c->told ? c->category : NULL;
    const char *advice = first ? rt_text_advice(first->text, strlen(first->text)) : NULL;
    if (advice && !first->number)
        rt_log(RT_LOG_INFO, "%s: line %lld, column %.60s: '%.60s' is a category here (if it is %s)", t->path,
               (long long)first->line, c->name, first->text, advice);
}

rt_status rt_frame_fill(rt_frame *t) {
    const size_t at = t->reader.at;
    const int64_t line = t->reader.line;
    do {
        RT_TRY(read_rows(t));
    } while (restart(t, at, line));
    rt_free(t->text);
    t->text = NULL;
    RT_FAIL_IF(t->rows == 0, RT_E_INPUT, "%s: no rows behind the header", t->path);
    for (int64_t c = 0; c < t->columns; c++) {
        RT_TRY(check_mixed(t, &t->column[c]));
        tell_texts(t, &t->column[c]);
    }
    return RT_OK;
}
