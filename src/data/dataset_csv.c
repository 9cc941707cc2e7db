/*
 * dataset_csv.c - a table with one target column, as a data set.
 *
 * The file: RFC 4180 with ',', ';' or tab (the one in the header, of .tsv tab; sep=comma|semicolon|tab tells), a header
 * row (header=no if there is none; columns are then called "column 1", ...), CRLF or LF, a UTF-8 mark at the start.
 *
 * Target: target=NAME, else a column called y, target, label or class, else the last; target=none for rows to
 * predict (they are all test rows). Task: numbers are regression, text is classification; task= overrides.
 * Classes are the distinct values, numbers in numeric order, texts in byte order.
 *
 * The others are features (encoder.c says what becomes of them) but for drop=a+b or those not in use=a+b, and
 * columns that count the rows, unless use= names them. category=a+b: columns of numbers that are names of things.
 *
 * For a model (rt_data_like) its own columns are looked up by name, in any order, and turned into what it was
 * trained on; the target may be missing. Columns that it wants and that are not there are named, and so are those
 * it does not know.
 *
 * Rows without an answer are refused, or with unlabelled=skip left out and counted.
 *
 * Test part: splits=FILE,split=K (one line per split: zero-based row numbers of the test rows), else a share
 * test=0.1 of the rows (rt_holdout_mask).
 */
#include "data/data_int.h"
#include "data/frame.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/log.h"
#include "base/size.h"
#include "io/io.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { NAMES_SHOWN = 8, COUNTED_ROWS = 10 };

struct rt_columns {
    rt_frame table;
    rt_encoder encoder;
    int64_t target; /* column, -1: none */
    bool fixed;     /* the encoder is a model's */
    uint8_t *skip;  /* rows of the file that are not in the table, or NULL */
    int64_t skipped;
    int64_t *rows[2]; /* of the table, in the training and in the test part */
    float *x[2];
    rt_str json; /* the encoder */
};

void rt_columns_destroy(rt_columns **kp) {
    rt_columns *k = *kp;
    if (k == NULL)
        return;
    rt_frame_deinit(&k->table);
    rt_encoder_deinit(&k->encoder);
    for (int i = 0; i < 2; i++) {
        rt_free(k->rows[i]);
        rt_free(k->x[i]);
    }
    rt_str_deinit(&k->json);
    rt_free(k->skip);
    rt_free(k);
    *kp = NULL;
}

/* ---- columns ---- */

/* One of the words, the first if nothing is said. */
static rt_status choice(const rt_spec *s, const char *key, const char *const *words, int64_t n,
                        int64_t *out) {
    const char *text = rt_spec_get(s, key);
    *out = 0;
    if (text == NULL)
        return RT_OK;
    for (; *out < n; ++*out)
        if (strcmp(text, words[*out]) == 0)
            return RT_OK;
    rt_str list;
    rt_str_init(&list);
    for (int64_t i = 0; i < n; i++)
        rt_str_appendf(&list, "%s%s", i == 0 ? "" : i + 1 < n ? ", " : " or ", words[i]);
    rt_status st = rt_error_set(RT_E_USAGE, __FILE__, __LINE__, "data '%s': %s=%s, wanted %s", s->whole, key,
                                text, rt_str_text(&list));
    rt_str_deinit(&list);
    return st;
}

static rt_status no_column(const rt_frame *t, const char *wanted) {
    const char **names = NULL;
    RT_TRY(rt_calloc(&names, (size_t)t->columns, sizeof *names));
    for (int64_t c = 0; c < t->columns; c++)
        names[c] = t->column[c].name;
    const rt_status st = rt_error_unknown(RT_E_USAGE, __FILE__, __LINE__, wanted, names, t->columns,
                                          "%s: no column is called", t->path);
    rt_free(names);
    return st;
}

static rt_status find_target(rt_columns *k, const rt_spec *s, const char *of_model) {
    static const char *const usual[] = {"y", "target", "label", "class"};
    const rt_frame *t = &k->table;
    const char *wanted = rt_spec_get(s, "target");
    k->target = wanted ? rt_frame_find(t, wanted) : -1;
    if (wanted) {
        const bool none = k->target < 0 && strcmp(wanted, "none") == 0;
        return k->target >= 0 || none ? RT_OK : no_column(t, wanted);
    }
    if (k->fixed) {
        k->target = of_model ? rt_frame_find(t, of_model) : -1;
        return RT_OK;
    }
    for (int64_t i = 0; k->target < 0 && i < RT_COUNT(usual); i++)
        k->target = rt_frame_find(t, usual[i]);
    if (k->target < 0)
        k->target = t->columns - 1;
    return RT_OK;
}

/* Calls `set` for each column of "a+b"; a name with '+' in it can be given alone. */
static rt_status each_column(rt_columns *k, const rt_spec *s, const char *key,
                             void (*set)(const rt_columns *k, rt_column *c)) {
    const char *list = rt_spec_get(s, key);
    rt_str name;
    rt_status st = RT_OK;
    rt_str_init(&name);
    for (bool more = list != NULL; more;) {
        const bool whole = rt_frame_find(&k->table, list) >= 0;
        const size_t n = whole ? strlen(list) : strcspn(list, "+");
        rt_str_clear(&name);
        rt_str_append_n(&name, list, n);
        RT_TRY_GOTO(rt_str_status(&name));
        const int64_t c = rt_frame_find(&k->table, rt_str_text(&name));
        if (c < 0)
            RT_TRY_GOTO(no_column(&k->table, rt_str_text(&name)));
        set(k, &k->table.column[c]);
        more = list[n] != 0;
        list += n + 1;
    }
done:
    rt_str_deinit(&name);
    return st;
}

static void set_ignored(const rt_columns *k, rt_column *c) {
    if (c - k->table.column != k->target)
        c->kind = RT_COLUMN_IGNORED;
}
static void set_used(const rt_columns *k, rt_column *c) {
    (void)k;
    c->kind = RT_COLUMN_UNKNOWN;
    c->asked = true;
}
static void set_category(const rt_columns *k, rt_column *c) {
    (void)k;
    c->kind = RT_COLUMN_CATEGORY;
    c->told = true;
}

static rt_status choose_columns(rt_columns *k, const rt_spec *s) {
    const bool use = rt_spec_get(s, "use") != NULL;
    RT_FAIL_IF(use && rt_spec_get(s, "drop"), RT_E_USAGE, "data '%s': use= and drop=, wanted one of them",
               s->whole);
    for (int64_t c = 0; use && c < k->table.columns; c++)
        set_ignored(k, &k->table.column[c]);
    RT_TRY(each_column(k, s, "use", set_used));
    RT_TRY(each_column(k, s, "category", set_category));
    return each_column(k, s, "drop", set_ignored);
}

/* ---- columns of a model ---- */

/* What pandas and R write before the first column: it has no name. */
static bool is_index(const rt_frame *t, int64_t i) {
    return i == 0 && t->column[i].unnamed && !t->format.no_header;
}

static void name_append(rt_str *list, int *count, const char *name) {
    if ((*count)++ < NAMES_SHOWN)
        rt_str_appendf(list, "%s%s", *count > 1 ? ", " : "", name);
    else if (*count == NAMES_SHOWN + 1)
        rt_str_append(list, ", ...");
}

static rt_status mismatch(const rt_columns *k, const rt_str *missing, const rt_str *unknown) {
    const bool a = missing->len > 0, b = unknown->len > 0;
    RT_FAIL(RT_E_INPUT, "%s: its columns are not the model's: %s%s%s%s%s%s", k->table.path,
            a ? "missing: " : "", rt_str_text(missing), a && b ? "; " : "", b ? "unknown: " : "",
            rt_str_text(unknown), b && !a ? " (drop=NAME leaves one out)" : "");
}

/* The model's columns among the table's; what it does not use is ignored. */
static rt_status match_columns(rt_columns *k, const rt_spec *s) {
    rt_map of_model, of_table;
    rt_str missing, unknown;
    rt_status st = RT_OK;
    int nmissing = 0, nunknown = 0;
    const rt_encoder *e = &k->encoder;
    rt_map_init(&of_model);
    rt_map_init(&of_table);
    rt_str_init(&missing);
    rt_str_init(&unknown);
    for (int64_t c = 0; c < e->columns; c++)
        RT_TRY_GOTO(rt_map_put(&of_model, e->column[c].name, c, NULL));
    RT_TRY_GOTO(each_column(k, s, "drop", set_ignored));
    for (int64_t c = 0; c < k->table.columns; c++) {
        rt_column *column = &k->table.column[c];
        int64_t at = -1;
        RT_TRY_GOTO(rt_map_put(&of_table, column->name, c, NULL));
        if (c == k->target || column->kind == RT_COLUMN_IGNORED)
            continue;
        if (rt_map_get(&of_model, column->name, &at)) {
            column->kind = rt_encoder_kind(&e->column[at]);
            column->told = true;
            continue;
        }
        const bool target = e->target && strcmp(column->name, e->target) == 0;
        if (!is_index(&k->table, c) && !target)
            name_append(&unknown, &nunknown, column->name);
        column->kind = RT_COLUMN_IGNORED;
    }
    for (int64_t c = 0; c < e->columns; c++) {
        int64_t at = -1;
        const bool there =
            rt_map_get(&of_table, e->column[c].name, &at) && k->table.column[at].kind != RT_COLUMN_IGNORED;
        if (e->column[c].as != RT_AS_NOTHING && !there)
            name_append(&missing, &nmissing, e->column[c].name);
    }
    if (nmissing > 0 || nunknown > 0)
        st = mismatch(k, &missing, &unknown);
done:
    rt_str_deinit(&unknown);
    rt_str_deinit(&missing);
    rt_map_deinit(&of_table);
    rt_map_deinit(&of_model);
    return st;
}

/* ---- target ---- */

static const rt_category *category_of(const rt_column *c, int64_t k) {
    return &c->category[k];
}

typedef struct csv_class {
    const char *text;
    double number;
    int64_t code;
} csv_class;

static int by_text(const void *a, const void *b) {
    return strcmp(((const csv_class *)a)->text, ((const csv_class *)b)->text);
}
static int by_number(const void *a, const void *b) {
    const double x = ((const csv_class *)a)->number, y = ((const csv_class *)b)->number;
    return x < y ? -1 : x > y ? 1 : by_text(a, b);
}

/* Classes of the target's categories: label_of[code]. Texts of one number are one class. */
static rt_status name_classes(rt_dataset *d, const rt_frame *t, const rt_column *y, int32_t *label_of) {
    csv_class *v = NULL;
    const char **names = NULL;
    bool numeric = true;
    rt_status st = RT_OK;
    RT_TRY_GOTO(rt_calloc(&v, (size_t)y->categories, sizeof *v));
    RT_TRY_GOTO(rt_calloc(&names, (size_t)y->categories, sizeof *names));
    for (int64_t k = 0; k < y->categories; k++) {
        const rt_category *g = category_of(y, k);
        v[k] = (csv_class){.text = g->text, .code = k};
        numeric = rt_parse_f64(g->text, strlen(g->text), false, &v[k].number) && numeric;
    }
    qsort(v, (size_t)y->categories, sizeof *v, numeric ? by_number : by_text);
    d->classes = 0;
    for (int64_t k = 0; k < y->categories; k++) {
        if (k == 0 || !numeric || v[k].number > v[k - 1].number)
            names[d->classes++] = v[k].text;
        label_of[v[k].code] = (int32_t)(d->classes - 1);
    }
    if (d->classes > RT_CLASSES_MAX)
        RT_FAIL_GOTO(RT_E_INPUT, "%s: more than %d classes in column %s", t->path, RT_CLASSES_MAX, y->name);
    st = rt_dataset_name_classes(d, names);
done:
    rt_free(v);
    rt_free(names);
    return st;
}

/* The classes are the model's. */
static rt_status match_classes(rt_dataset *d, const rt_frame *t, const rt_column *y, const rt_data_like *like,
                               int32_t *label_of) {
    d->classes = like->classes;
    RT_TRY(rt_dataset_name_classes(d, like->class_name));
    for (int64_t k = 0; y && k < y->categories; k++) {
        const rt_category *g = category_of(y, k);
        double a, b;
        label_of[k] = -1;
        for (int64_t c = 0; c < like->classes && label_of[k] < 0; c++) {
            const char *name = like->class_name[c];
            if (strcmp(name, g->text) == 0 || (rt_parse_f64(name, strlen(name), false, &a) &&
                                               rt_parse_f64(g->text, strlen(g->text), false, &b) && a == b))
                label_of[k] = (int32_t)c;
        }
        RT_FAIL_IF(label_of[k] < 0, RT_E_INPUT, "%s: line %lld, column %s: the model has no class '%.60s'",
                   t->path, (long long)g->line, y->name, g->text);
    }
    return RT_OK;
}

static rt_status target_gaps(const rt_columns *k) {
    const rt_column *y = &k->table.column[k->target];
    RT_FAIL_IF(y->gaps > 0, RT_E_INPUT,
               "%s: line %lld, column %lld (%.60s) has no value, and it is the target (%lld rows: "
               "unlabelled=skip leaves them out; target=none predicts all rows)",
               k->table.path, (long long)y->first_gap, (long long)k->target + 1, y->name, (long long)y->gaps);
    return RT_OK;
}

/* unlabelled=skip: rows without an answer leave the table, unless none has one. */
static rt_status skip_unlabelled(rt_columns *k, const rt_spec *s) {
    static const char *const words[] = {"refuse", "skip"};
    rt_column *y = k->target >= 0 ? &k->table.column[k->target] : NULL;
    int64_t skip = 0;
    RT_TRY(choice(s, "unlabelled", words, RT_COUNT(words), &skip));
    RT_FAIL_IF(skip && rt_spec_get(s, "splits"), RT_E_USAGE,
               "data '%s': splits= has row numbers of the whole file; unlabelled=skip would change them",
               s->whole);
    if (!skip || !y || y->gaps == 0 || y->gaps == k->table.rows)
        return RT_OK;
    RT_TRY(rt_calloc(&k->skip, (size_t)k->table.rows, 1));
    for (int64_t i = 0; i < k->table.rows; i++)
        k->skip[i] = rt_column_gap(y, i);
    rt_frame_skip(&k->table, k->skip);
    k->skipped = y->gaps;
    y->gaps = 0;
    rt_log(RT_LOG_INFO, "%s: %lld %s no %.60s and %s left out", k->table.path, (long long)k->skipped,
           k->skipped == 1 ? "row has" : "rows have", y->name, k->skipped == 1 ? "is" : "are");
    return RT_OK;
}

static rt_status read_labels(rt_dataset *d, const rt_columns *k, const rt_data_like *like, int32_t *label) {
    const rt_column *y = &k->table.column[k->target];
    int32_t *label_of = NULL;
    RT_TRY(target_gaps(k));
    RT_TRY(rt_calloc(&label_of, (size_t)y->categories + 1, sizeof *label_of));
    rt_status st =
        like ? match_classes(d, &k->table, y, like, label_of) : name_classes(d, &k->table, y, label_of);
    for (int64_t i = 0; st == RT_OK && i < k->table.rows; i++)
        label[i] = label_of[y->code[i]];
    rt_free(label_of);
    return st;
}

/* How the target is read, before it is. */
static rt_status tell_target(rt_columns *k, const rt_spec *s, const rt_data_like *like) {
    bool given = false;
    rt_task task = RT_TASK_REGRESSION;
    RT_TRY(rt_spec_get_task(s, &task, &given));
    if (like)
        task = like->task;
    if (k->target < 0 || (!given && !like))
        return RT_OK;
    rt_column *y = &k->table.column[k->target];
    y->kind = task == RT_TASK_REGRESSION ? RT_COLUMN_NUMBER : RT_COLUMN_CATEGORY;
    y->told = true;
    return RT_OK;
}

/* Task, classes and answers of all rows; none if there is no target. */
static rt_status read_target(rt_dataset *d, rt_columns *k, const rt_data_like *like, rt_part *all,
                             int32_t *label) {
    rt_column *y = k->target >= 0 ? &k->table.column[k->target] : NULL;
    d->task = like ? like->task : RT_TASK_REGRESSION;
    if (y && y->gaps == k->table.rows && like) /* a column that is still to be filled in */
        y = NULL;
    if (y == NULL) {
        k->target = -1;
        return like && d->task == RT_TASK_CLASSIFICATION ? match_classes(d, &k->table, NULL, like, NULL)
                                                         : RT_OK;
    }
    RT_TRY(target_gaps(k));
    RT_FAIL_IF(
        y->kind == RT_COLUMN_DATE, RT_E_INPUT,
        "%s: column %s holds dates, wanted numbers or classes (task=classification takes them as classes)",
        k->table.path, y->name);
    if (y->kind == RT_COLUMN_NUMBER) {
        all->target = y->number;
        return RT_OK;
    }
    d->task = RT_TASK_CLASSIFICATION;
    all->label = label;
    return read_labels(d, k, like, label);
}

static bool is_blank(char c) {
    return c == ' ' || c == '\t';
}

/* ---- the test rows of split k ---- */

static rt_status csv_split_line(uint8_t *is_test, const char *line, size_t n, int64_t rows, const char *path,
                                int64_t k) {
    int64_t count = 0;
    for (size_t at = 0; at < n;) {
        size_t len = 0;
        int64_t row = 0;
        if (is_blank(line[at]) || line[at] == '\r') {
            at++;
            continue;
        }
        while (at + len < n && !is_blank(line[at + len]) && line[at + len] != '\r')
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

static rt_status csv_mask(rt_dataset *d, uint8_t **is_test, const rt_spec *s, const rt_data_options *o,
                          int64_t rows, const int32_t *label) {
    const char *splits = rt_spec_get(s, "splits");
    if (splits == NULL || o->whole || o->unlabelled) {
        RT_FAIL_IF(splits == NULL && rt_spec_get(s, "split"), RT_E_USAGE,
                   "data '%s': split= without splits=FILE", s->whole);
        return rt_holdout_mask(d, is_test, s, o, rows, label);
    }
    RT_FAIL_IF(rt_spec_get(s, "test") || rt_spec_get(s, "seed"), RT_E_USAGE,
               "data '%s': splits= says which rows are for testing; test= and seed= have no use then",
               s->whole);
    d->ordered = true;
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

/* ---- rows ---- */

/* Of few rows a column may say so by chance, but not an index. */
static bool counts_rows(const rt_columns *k, int64_t i, bool as_in_0_1) {
    const rt_frame *t = &k->table;
    const rt_column *c = &t->column[i];
    return c->counts && c->kind == RT_COLUMN_NUMBER && !c->asked &&
           (is_index(t, i) || (t->rows >= COUNTED_ROWS && !as_in_0_1));
}

/* The number of a row in its file is no feature: where the file is sorted it tells the answer, and of new rows nothing.
 * It stays if there is nothing else. */
static void ignore_row_numbers(rt_columns *k, bool as_in_0_1) {
    const rt_frame *t = &k->table;
    int64_t others = 0;
    for (int64_t i = 0; i < t->columns; i++)
        others += i != k->target && t->column[i].kind != RT_COLUMN_IGNORED &&
                  t->column[i].kind != RT_COLUMN_UNKNOWN && !counts_rows(k, i, as_in_0_1);
    for (int64_t i = 0; i < t->columns; i++) {
        if (i == k->target || !counts_rows(k, i, as_in_0_1))
            continue;
        rt_log(RT_LOG_INFO, "%s: column %.60s counts the rows and %s", t->path, t->column[i].name,
               others > 0 ? "is left out (use= takes it)" : "stays, since there is no other");
        if (others > 0)
            t->column[i].kind = RT_COLUMN_IGNORED;
    }
}

static rt_status list_rows(rt_columns *k, const rt_dataset *d, const uint8_t *is_test) {
    int64_t at[2] = {0, 0};
    RT_TRY(rt_calloc(&k->rows[0], (size_t)d->train.n + 1, sizeof **k->rows));
    RT_TRY(rt_calloc(&k->rows[1], (size_t)d->test.n + 1, sizeof **k->rows));
    for (int64_t i = 0; i < k->table.rows; i++)
        if (is_test[i] || d->train.n > 0) /* training rows may have been left out */
            k->rows[is_test[i]][at[is_test[i]]++] = i;
    return RT_OK;
}

/* Both parts as floats, by the encoder as it is now. */
static rt_status encode(rt_dataset *d) {
    rt_columns *k = d->columns;
    rt_part *const part[] = {&d->train, &d->test};
    for (int i = 0; i < 2; i++) {
        size_t floats = 0, bytes = 0;
        RT_FAIL_IF(!rt_size_mul((size_t)part[i]->n, (size_t)k->encoder.width, &floats) ||
                       !rt_size_mul(floats + 1, sizeof(float), &bytes),
                   RT_E_INPUT, "%s: too many rows", k->table.path);
        rt_free(k->x[i]);
        k->x[i] = NULL;
        part[i]->f32 = NULL;
        if (part[i]->n == 0)
            continue;
        RT_TRY(rt_alloc(&k->x[i], bytes));
        RT_TRY(rt_encoder_run(&k->encoder, &k->table, k->rows[i], part[i]->n, k->x[i]));
        part[i]->f32 = k->x[i];
    }
    d->row = rt_shape1(k->encoder.width);
    d->hash[0] = 0;
    rt_str_deinit(&k->json);
    rt_str_init(&k->json);
    rt_encoder_write(&k->encoder, &k->json);
    return rt_str_status(&k->json);
}

static rt_status fit(rt_dataset *d, const int64_t *rows, int64_t n) {
    rt_columns *k = d->columns;
    rt_encoder_deinit(&k->encoder);
    RT_TRY(rt_encoder_fit(&k->encoder, &k->table, k->target, rows, n));
    return encode(d);
}

/* To the training part, if there is one. */
static rt_status fit_part(rt_dataset *d) {
    const bool train = d->train.n > 0;
    return fit(d, d->columns->rows[!train], train ? d->train.n : d->test.n);
}

/* A model without a table, of version 0.1 or of other data, has a feature for every column. */
static rt_status take_row_numbers(rt_dataset *d) {
    const rt_frame *t = &d->columns->table;
    bool any = false;
    for (int64_t i = 0; i < t->columns; i++)
        if (t->column[i].counts && t->column[i].kind == RT_COLUMN_IGNORED && !is_index(t, i)) {
            t->column[i].kind = RT_COLUMN_NUMBER;
            any = true;
        }
    return any ? fit_part(d) : RT_OK;
}

rt_status rt_dataset_fit(rt_dataset *d, const rt_subset *rows) {
    rt_columns *k = d->columns;
    int64_t *of_table = NULL;
    if (k == NULL || k->fixed)
        return RT_OK;
    RT_ASSERT(rows->part == &d->train || rows->part == &d->test);
    const int64_t *of_part = k->rows[rows->part == &d->test];
    RT_TRY(rt_calloc(&of_table, (size_t)rows->n + 1, sizeof *of_table));
    for (int64_t i = 0; i < rows->n; i++)
        of_table[i] = of_part[rt_subset_row(rows, i)];
    rt_status st = fit(d, of_table, rows->n);
    rt_free(of_table);
    return st;
}

/* The encoder's columns are there; *other: some were not read as the kinds it takes. */
static rt_status check_kinds(const rt_columns *k, const rt_encoder *e, bool *other) {
    *other = false;
    for (int64_t c = 0; c < e->columns; c++) {
        const rt_column_kind want = rt_encoder_kind(&e->column[c]);
        if (want == RT_COLUMN_IGNORED)
            continue;
        const int64_t at = rt_frame_find(&k->table, e->column[c].name);
        RT_FAIL_IF(at < 0, RT_E_INPUT, "%s: its columns are not the model's: missing: %.60s", k->table.path,
                   e->column[c].name);
        RT_FAIL_IF(at == k->target, RT_E_INPUT,
                   "%s: column %.60s is the target here, and an input of the model", k->table.path,
                   e->column[c].name);
        *other = *other || k->table.column[at].kind != want;
    }
    return RT_OK;
}

/* Reads the file once more, by the kinds that an encoder takes. Answers were taken out of it the first time. */
static rt_status read_again(rt_columns *k, const rt_encoder *e) {
    rt_frame t;
    rt_status st = rt_frame_open(&t, k->table.path, k->table.format);
    for (int64_t c = 0; st == RT_OK && c < t.columns; c++) {
        const int64_t at = c == k->target ? -1 : rt_encoder_find(e, t.column[c].name);
        t.column[c].kind = at < 0 ? RT_COLUMN_IGNORED : rt_encoder_kind(&e->column[at]);
        t.column[c].told = true;
    }
    if (st == RT_OK)
        st = rt_frame_fill(&t);
    if (st == RT_OK && (t.rows != k->table.rows + k->skipped || t.columns != k->table.columns))
        st = rt_error_set(RT_E_INPUT, __FILE__, __LINE__, "%s: has changed since it was read", k->table.path);
    if (st == RT_OK && k->skip)
        rt_frame_skip(&t, k->skip);
    rt_frame old = k->table;
    if (st == RT_OK)
        k->table = t;
    rt_frame_deinit(st == RT_OK ? &old : &t);
    return st;
}

rt_status rt_dataset_encode_as(rt_dataset *d, const char *table) {
    rt_columns *k = d->columns;
    rt_encoder e;
    if (k == NULL)
        return RT_OK;
    if (table == NULL)
        return take_row_numbers(d);
    k->fixed = true;
    if (strcmp(table, rt_str_text(&k->json)) == 0)
        return RT_OK;
    bool other = false;
    rt_status st = rt_encoder_read(&e, table, "table of the model");
    if (st == RT_OK)
        st = check_kinds(k, &e, &other);
    if (st == RT_OK && other)
        st = read_again(k, &e);
    if (st != RT_OK) {
        rt_encoder_deinit(&e);
        return st;
    }
    rt_encoder_deinit(&k->encoder);
    k->encoder = e;
    return encode(d);
}

const char *rt_dataset_table(const rt_dataset *d) {
    return d->columns ? rt_str_text(&d->columns->json) : NULL;
}

rt_status rt_dataset_table_check(const char *table, int64_t width, const char *name) {
    rt_encoder e;
    rt_status st = rt_encoder_read(&e, table, name);
    const int64_t have = e.width;
    rt_encoder_deinit(&e);
    RT_TRY(st);
    RT_FAIL_IF(have != width, RT_E_INPUT, "%s: columns become %lld features, wanted %lld", name,
               (long long)have, (long long)width);
    return RT_OK;
}

rt_data_like rt_dataset_like(const rt_dataset *d) {
    return (rt_data_like){.task = d->task,
                          .row = d->row,
                          .classes = d->classes,
                          .class_name = d->class_name,
                          .resize = d->resize,
                          .table = rt_dataset_table(d)};
}

int64_t rt_dataset_columns(const rt_dataset *d) {
    return d->columns ? d->columns->encoder.columns : 0;
}

rt_column_info rt_dataset_column(const rt_dataset *d, int64_t c, rt_str *becomes) {
    const rt_encoded *e = &d->columns->encoder.column[c];
    rt_encoder_describe(e, becomes);
    return (rt_column_info){.name = e->name, .first = e->first, .width = e->width};
}

void rt_dataset_feature(const rt_dataset *d, int64_t c, int64_t k, rt_str *out) {
    rt_encoder_feature(&d->columns->encoder.column[c], k, out);
}

/* ---- all together ---- */

static rt_status read_format(rt_frame_format *f, const rt_spec *s) {
    static const char *const header[] = {"yes", "no"}, *const decimal[] = {"point", "comma"},
                             *const sep[] = {"auto", "comma", "semicolon", "tab"},
                             *const tab[] = {".tsv", ".tsv.gz", ".tsv.xz"};
    enum { TAB = 3 }; /* of sep */
    static const char separators[] = {0, ',', ';', '\t'};
    int64_t h = 0, d = 0, c = 0;
    RT_TRY(choice(s, "header", header, RT_COUNT(header), &h));
    RT_TRY(choice(s, "decimal", decimal, RT_COUNT(decimal), &d));
    RT_TRY(choice(s, "sep", sep, RT_COUNT(sep), &c));
    for (int64_t i = 0; i < RT_COUNT(tab); i++)
        c = c == 0 && rt_str_ends(s->path[0], tab[i]) ? TAB : c;
    *f = (rt_frame_format){.separator = separators[c], .no_header = h == 1, .decimal_comma = d == 1};
    return RT_OK;
}

static rt_status read_table(rt_columns *k, const rt_spec *s, const rt_data_options *o) {
    const rt_data_like *like = o->like;
    rt_frame_format format;
    RT_TRY(read_format(&format, s));
    RT_TRY(rt_frame_open(&k->table, s->path[0], format));
    if (like && like->table) {
        RT_TRY(rt_encoder_read(&k->encoder, like->table, "table of the model"));
        k->fixed = true;
    }
    RT_TRY(find_target(k, s, k->encoder.target));
    if (k->target >= 0 && o->unlabelled) {
        k->table.column[k->target].kind = RT_COLUMN_IGNORED;
        k->target = -1;
    }
    RT_TRY(k->fixed ? match_columns(k, s) : choose_columns(k, s));
    RT_TRY(tell_target(k, s, like));
    RT_TRY(rt_frame_fill(&k->table));
    if (!k->fixed)
        ignore_row_numbers(k, o->older || like);
    return skip_unlabelled(k, s);
}

static rt_status divide(rt_dataset *d, const rt_spec *s, const rt_part *all, rt_data_options o) {
    uint8_t *is_test = NULL;
    rt_status st = RT_OK;
    if (all->label || all->target) {
        RT_TRY_GOTO(csv_mask(d, &is_test, s, &o, all->n, all->label));
    } else { /* nothing to learn from: all rows are to be predicted */
        RT_TRY_GOTO(rt_alloc(&is_test, (size_t)all->n));
        memset(is_test, 1, (size_t)all->n);
    }
    RT_TRY_GOTO(rt_dataset_divide(d, all, is_test, o.test_only));
    st = list_rows(d->columns, d, is_test);
done:
    rt_free(is_test);
    return st;
}

rt_status rt_load_csv(rt_dataset *d, const rt_spec *s, rt_data_options o) {
    static const char *const keys[] = {"target", "task",    "splits",    "split", "test",
                                       "seed",   "header",  "drop",      "use",   "category",
                                       "sep",    "decimal", "unlabelled"};
    RT_TRY(rt_spec_check(s, 1, 1, keys, RT_COUNT(keys)));
    int32_t *label = NULL;
    rt_status st = RT_OK;
    RT_TRY(rt_calloc(&d->columns, 1, sizeof *d->columns));
    rt_columns *k = d->columns;
    rt_str_init(&k->json);
    RT_TRY(read_table(k, s, &o));
    RT_TRY_GOTO(rt_calloc(&label, (size_t)k->table.rows, sizeof *label));
    rt_part all = {.n = k->table.rows};
    RT_TRY_GOTO(read_target(d, k, o.like, &all, label));
    RT_TRY_GOTO(divide(d, s, &all, o));
    st = k->fixed ? encode(d) : fit_part(d);
done:
    rt_free(label);
    return st;
}
