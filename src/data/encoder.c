/*
 * encoder.c - what the columns of a table become, fitted to its training rows.
 *
 *     number     its value; a gap is the median
 *     category   one feature each, 1 where it is this one (one-hot). Categories of less than 3 rows, or of less than
 *                one row in 200, share the feature "other"; so do those that were never seen, and without such a
 *                feature all are 0
 *                with more than 64, or more than 20 if the rare ones are a tenth of the rows: 64 features
 *                (hashed), of which a hash of the text moves four by +-1, so that nearly every category has a
 *                pattern of its own (Serra, Karatzoglou 2017 call it a Bloom embedding)
 *     date       years since 1970, sine and cosine of the day in the year, one feature for each day of the week,
 *                and if there are times of day their sine and cosine; a gap is the median and 0
 *     gaps       one more feature, 1 where the value is missing, if training rows have gaps
 *
 * A column of texts that are nearly all different (more than 20, more than half of the rows) is no category: an
 * identifier, or prose. It is refused with advice. A column without values becomes nothing.
 */
#include "data/frame.h"

#include "base/alloc.h"
#include "base/size.h"
#include "base/stop.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { DIGITS = 1 << 16 };
enum { RARE_ROWS = 3, RARE_SHARE = 200, CATEGORIES_FEW = 20, DATE_WIDTH = 3 + 7, CLOCK_WIDTH = 2 };
static const double DAY = 86400, YEAR = 31556952; /* seconds; 365.2425 days */

/* ---- fitting ---- */

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Keys in the order of the numbers: negative ones have all bits turned, the others the sign. */
static uint64_t key_of(double v) {
    uint64_t k;
    memcpy(&k, &v, sizeof k);
    return k >> 63 ? ~k : k | UINT64_C(1) << 63;
}
static double of_key(uint64_t k) {
    double v;
    k = k >> 63 ? k & ~(UINT64_C(1) << 63) : ~k;
    memcpy(&v, &k, sizeof v);
    return v;
}

/* The value of that rank (0: the smallest), 16 bits of its key at a time, by counting; count: DIGITS. */
static double value_of_rank(const double *v, int64_t n, int64_t rank, int64_t *count) {
    uint64_t prefix = 0, mask = 0;
    for (int shift = 48; shift >= 0; shift -= 16) {
        uint64_t digit = 0;
        memset(count, 0, DIGITS * sizeof *count);
        for (int64_t i = 0; i < n; i++)
            if ((key_of(v[i]) & mask) == prefix)
                count[key_of(v[i]) >> shift & (DIGITS - 1)]++;
        while (rank >= count[digit])
            rank -= count[digit++];
        prefix |= digit << shift;
        mask |= (uint64_t)(DIGITS - 1) << shift;
    }
    return of_key(prefix);
}

/* Of n > 0 values; of an even number the mean of the middle two. Sorting would take most of the time that a large
 * table needs. */
static rt_status median_of(double *v, int64_t n, double *out) {
    int64_t *count = NULL;
    if (n < DIGITS) {
        qsort(v, (size_t)n, sizeof *v, by_value);
        *out = n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
        return RT_OK;
    }
    RT_TRY(rt_calloc(&count, DIGITS, sizeof *count));
    *out = (value_of_rank(v, n, (n - 1) / 2, count) + value_of_rank(v, n, n / 2, count)) / 2;
    rt_free(count);
    return RT_OK;
}

/* Values of numbers and dates at the rows, without gaps. */
static int64_t gather(const rt_column *c, const int64_t *rows, int64_t n, double *v) {
    int64_t count = 0;
    for (int64_t i = 0; i < n; i++) {
        const double x = c->kind == RT_COLUMN_NUMBER ? (double)c->number[rows[i]] : c->date[rows[i]];
        if (!isnan(x))
            v[count++] = x;
    }
    return count;
}

static rt_status fit_values(rt_encoded *e, const rt_column *c, const int64_t *rows, int64_t n) {
    double *v = NULL;
    RT_TRY(rt_calloc(&v, (size_t)n + 1, sizeof *v));
    const int64_t count = gather(c, rows, n, v);
    e->as = c->kind == RT_COLUMN_NUMBER ? RT_AS_NUMBER : RT_AS_DATE;
    e->gaps = count < n;
    if (count == 0) {
        e->as = RT_AS_NOTHING;
        e->why = "no values";
    }
    for (int64_t i = 0; i < count && e->as == RT_AS_DATE; i++)
        e->clock = e->clock || fmod(v[i], DAY) != 0;
    const rt_status st = count > 0 ? median_of(v, count, &e->median) : RT_OK;
    rt_free(v);
    return st;
}

static int by_text(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool is_rare(int64_t count, int64_t n) {
    return count < RARE_ROWS || count * RARE_SHARE < n;
}

/* One feature for each of the frequent categories. */
static rt_status fit_one_hot(rt_encoder *all, rt_encoded *e, const rt_column *c, const int64_t *count,
                             int64_t n) {
    RT_TRY(rt_arena_alloc(&all->arena, &e->category, (size_t)(c->categories + 1) * sizeof *e->category));
    for (int64_t k = 0; k < c->categories; k++) {
        const bool rare = is_rare(count[k], n);
        e->other = e->other || (count[k] > 0 && rare);
        if (!rare)
            RT_TRY(rt_arena_strdup(&all->arena, &e->category[e->categories++], c->category[k].text));
    }
    e->as = RT_AS_ONE_HOT;
    qsort(e->category, (size_t)e->categories, sizeof *e->category, by_text);
    return RT_OK;
}

static rt_status fit_category(rt_encoder *all, rt_encoded *e, const rt_frame *t, const rt_column *c,
                              const int64_t *rows, int64_t n) {
    int64_t *count = NULL, values = 0, seen = 0, frequent = 0, rare = 0; /* rare: rows */
    rt_status st = RT_OK;
    RT_TRY(rt_calloc(&count, (size_t)c->categories + 1, sizeof *count));
    for (int64_t i = 0; i < n; i++)
        if (c->code[rows[i]] >= 0) {
            count[c->code[rows[i]]]++;
            values++;
        }
    for (int64_t k = 0; k < c->categories; k++) {
        seen += count[k] > 0;
        frequent += !is_rare(count[k], n);
        rare += is_rare(count[k], n) ? count[k] : 0;
    }
    e->gaps = values < n;
    const rt_category *first = c->categories > 0 ? c->category : NULL;
    const char *advice = first && !first->number ? rt_text_advice(first->text, strlen(first->text)) : NULL;
    if (!c->told && seen > CATEGORIES_FEW && 2 * seen > values)
        RT_FAIL_GOTO(RT_E_INPUT,
                     "%s: column %.60s holds texts, %lld different ones in %lld rows, the first '%.60s': %s "
                     "(leave it out with drop=%.60s, make numbers of it first, or say category=%.60s)",
                     t->path, c->name, (long long)seen, (long long)values, first->text,
                     advice ? advice : "prose or identifiers", c->name, c->name);
    if (values == 0) {
        e->as = RT_AS_NOTHING;
        e->why = "no values";
    } else if (frequent > RT_ONE_HOT_MAX || (seen > CATEGORIES_FEW && 10 * rare > values)) {
        e->as = RT_AS_HASHED;
    } else {
        st = fit_one_hot(all, e, c, count, n);
    }
done:
    rt_free(count);
    return st;
}

static rt_status fit_column(rt_encoder *all, rt_encoded *e, const rt_frame *t, const rt_column *c,
                            const int64_t *rows, int64_t n) {
    RT_TRY(rt_arena_strdup(&all->arena, &e->name, c->name));
    switch (c->kind) {
    case RT_COLUMN_NUMBER:
    case RT_COLUMN_DATE:
        return fit_values(e, c, rows, n);
    case RT_COLUMN_CATEGORY:
        return fit_category(all, e, t, c, rows, n);
    case RT_COLUMN_UNKNOWN:
        e->why = "no values";
        break;
    case RT_COLUMN_IGNORED:
        e->why = c->counts ? "it counts the rows" : "dropped";
        break;
    }
    e->as = RT_AS_NOTHING;
    return RT_OK;
}

rt_status rt_encoder_fit(rt_encoder *e, const rt_frame *t, int64_t target, const int64_t *rows, int64_t n) {
    *e = (rt_encoder){.width = 0};
    rt_arena_init(&e->arena);
    RT_TRY(rt_arena_alloc(&e->arena, &e->column, (size_t)t->columns * sizeof *e->column));
    if (target >= 0)
        RT_TRY(rt_arena_strdup(&e->arena, &e->target, t->column[target].name));
    for (int64_t c = 0; c < t->columns; c++)
        if (c != target) {
            RT_TRY(rt_stop_check("fitting columns of", t->path));
            RT_TRY(fit_column(e, &e->column[e->columns++], t, &t->column[c], rows, n));
        }
    return rt_encoder_layout(e, t->path);
}

void rt_encoder_deinit(rt_encoder *e) {
    rt_arena_deinit(&e->arena);
    *e = (rt_encoder){.width = 0};
}

/* ---- features ---- */

static int64_t width_of(const rt_encoded *c) {
    switch (c->as) {
    case RT_AS_NUMBER:
        return 1 + c->gaps;
    case RT_AS_ONE_HOT:
        return c->categories + c->other + c->gaps;
    case RT_AS_HASHED:
        return RT_HASH_WIDTH + c->gaps;
    case RT_AS_DATE:
        return DATE_WIDTH + (c->clock ? CLOCK_WIDTH : 0) + c->gaps;
    case RT_AS_NOTHING:
        break;
    }
    return 0;
}

rt_status rt_encoder_layout(rt_encoder *e, const char *name) {
    e->width = 0;
    for (int64_t c = 0; c < e->columns; c++) {
        e->column[c].first = e->width;
        e->column[c].width = width_of(&e->column[c]);
        e->width += e->column[c].width;
        RT_FAIL_IF(e->width > RT_TABLE_WIDTH_MAX, RT_E_INPUT, "%s: its columns become more than %d features",
                   name, RT_TABLE_WIDTH_MAX);
    }
    RT_FAIL_IF(e->width == 0, RT_E_INPUT, "%s: no column to predict from is left", name);
    return RT_OK;
}

int64_t rt_encoder_find(const rt_encoder *e, const char *name) {
    for (int64_t c = 0; c < e->columns; c++)
        if (strcmp(e->column[c].name, name) == 0)
            return c;
    return -1;
}

rt_column_kind rt_encoder_kind(const rt_encoded *c) {
    static const rt_column_kind kind[] = {[RT_AS_NUMBER] = RT_COLUMN_NUMBER,
                                          [RT_AS_ONE_HOT] = RT_COLUMN_CATEGORY,
                                          [RT_AS_HASHED] = RT_COLUMN_CATEGORY,
                                          [RT_AS_DATE] = RT_COLUMN_DATE,
                                          [RT_AS_NOTHING] = RT_COLUMN_IGNORED};
    return kind[c->as];
}

void rt_encoder_feature(const rt_encoded *c, int64_t k, rt_str *out) {
    static const char *const date[] = {"years",    "sin of year", "cos of year", "Monday",
                                       "Tuesday",  "Wednesday",   "Thursday",    "Friday",
                                       "Saturday", "Sunday",      "sin of day",  "cos of day"};
    rt_str_append(out, c->name);
    if (c->gaps && k == c->width - 1)
        rt_str_append(out, " missing");
    else if (c->as == RT_AS_ONE_HOT)
        rt_str_appendf(out, "=%s", k < c->categories ? c->category[k] : "(other)");
    else if (c->as == RT_AS_HASHED)
        rt_str_appendf(out, "#%lld", (long long)k);
    else if (c->as == RT_AS_DATE)
        rt_str_appendf(out, ": %s", date[k]);
}

void rt_encoder_describe(const rt_encoded *c, rt_str *out) {
    char number[40];
    switch (c->as) {
    case RT_AS_NUMBER:
        rt_str_append(out, "number");
        rt_format_f32(number, (float)c->median);
        if (c->gaps)
            rt_str_appendf(out, "; gaps: %s (median)", number);
        break;
    case RT_AS_ONE_HOT:
        rt_str_append(out, "one-hot:");
        for (int64_t k = 0; k < c->categories + c->other; k++)
            rt_str_appendf(out, "%s %s", k ? "," : "", k < c->categories ? c->category[k] : "(other)");
        break;
    case RT_AS_HASHED:
        rt_str_append(out, "hashed");
        break;
    case RT_AS_DATE:
        rt_str_appendf(out, "date: years, time of year, weekday%s", c->clock ? ", time of day" : "");
        break;
    case RT_AS_NOTHING:
        rt_str_appendf(out, "nothing (%s)", c->why);
        break;
    }
    if (c->gaps && c->as != RT_AS_NOTHING)
        rt_str_append(out, "; marked where missing");
}

/* ---- running ---- */

static void run_number(const rt_encoded *e, const rt_column *c, int64_t row, float *x) {
    const float v = c->number[row];
    x[0] = isnan(v) ? (float)e->median : v;
}

static void run_date(const rt_encoded *e, const rt_column *c, int64_t row, float *x) {
    const double t = c->date[row], turn = 2 * 3.14159265358979323846;
    x[0] = (float)((isnan(t) ? e->median : t) / YEAR);
    if (isnan(t))
        return;
    const double day = floor(t / DAY), year = turn * (fmod(t, YEAR) / YEAR), clock = turn * (t / DAY - day);
    x[1] = (float)sin(year);
    x[2] = (float)cos(year);
    x[3 + ((int64_t)day % 7 + 7 + 3) % 7] = 1; /* day 0 was a Thursday */
    if (e->clock) {
        x[DATE_WIDTH] = (float)sin(clock);
        x[DATE_WIDTH + 1] = (float)cos(clock);
    }
}

/* FNV-1a, then the finish of splitmix64: every bit of the text moves every bit of the result. */
static uint64_t hash_text(const char *text) {
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (; *text; text++)
        h = (h ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    h = (h ^ h >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    h = (h ^ h >> 27) * UINT64_C(0x94d049bb133111eb);
    return h ^ h >> 31;
}

static void run_hashed(const char *text, float *x) {
    uint64_t h = hash_text(text);
    for (int k = 0; k < RT_HASH_PROBES; k++, h >>= 16)
        x[h % RT_HASH_WIDTH] += h & 0x8000 ? 1.0F : -1.0F;
}

/* Feature of each category of the table, or -1. */
static rt_status slots_of(const rt_encoded *e, const rt_column *c, int64_t **out) {
    RT_TRY(rt_calloc(out, (size_t)c->categories + 1, sizeof **out));
    for (int64_t k = 0; k < c->categories; k++) {
        const char *const *found =
            bsearch(&c->category[k].text, e->category, (size_t)e->categories, sizeof *e->category, by_text);
        (*out)[k] = found ? found - (const char *const *)e->category : e->other ? e->categories : -1;
    }
    return RT_OK;
}

static rt_status run_column(const rt_encoder *all, const rt_encoded *e, const rt_column *c,
                            const int64_t *rows, int64_t n, float *out) {
    int64_t *slot = NULL;
    if (e->as == RT_AS_ONE_HOT)
        RT_TRY(slots_of(e, c, &slot));
    for (int64_t i = 0; i < n; i++) {
        float *x = out + i * all->width + e->first;
        const int64_t row = rows[i];
        if (e->as == RT_AS_NUMBER)
            run_number(e, c, row, x);
        else if (e->as == RT_AS_DATE)
            run_date(e, c, row, x);
        else if (e->as == RT_AS_HASHED && c->code[row] >= 0)
            run_hashed(c->category[c->code[row]].text, x);
        else if (e->as == RT_AS_ONE_HOT && c->code[row] >= 0 && slot[c->code[row]] >= 0)
            x[slot[c->code[row]]] = 1;
        if (e->gaps)
            x[e->width - 1] = rt_column_gap(c, row);
    }
    rt_free(slot);
    return RT_OK;
}

rt_status rt_encoder_run(const rt_encoder *e, const rt_frame *t, const int64_t *rows, int64_t n, float *out) {
    memset(out, 0, (size_t)n * (size_t)e->width * sizeof *out);
    rt_map at; /* columns of the table by name: there may be many */
    rt_status st = RT_OK;
    rt_map_init(&at);
    for (int64_t c = 0; c < t->columns; c++)
        RT_TRY_GOTO(rt_map_put(&at, t->column[c].name, c, NULL));
    for (int64_t c = 0; c < e->columns; c++) {
        int64_t from = -1;
        if (e->column[c].as == RT_AS_NOTHING)
            continue;
        const bool there = rt_map_get(&at, e->column[c].name, &from);
        RT_ASSERT(there && t->column[from].kind == rt_encoder_kind(&e->column[c]));
        RT_TRY_GOTO(rt_stop_check("encoding", t->path));
        RT_TRY_GOTO(run_column(e, &e->column[c], &t->column[from], rows, n, out));
    }
done:
    rt_map_deinit(&at);
    return st;
}
