/*
 * frame.h - a table on its way to a network: text -> typed columns -> rows of floats.
 *
 *     csv_reader.c   fields of a record (RFC 4180)
 *     frame.c        typed columns: numbers, dates, categories, with gaps
 *     encoder.c      fitted to training rows: what each column becomes (encoder_json.c: in a model's metadata)
 *     dataset_csv.c  all of it as a data set
 *
 * Columns stay as they were read until the rows to train on are known: medians, categories and what counts as
 * rare come from those rows alone.
 */
#ifndef RT_DATA_FRAME_H
#define RT_DATA_FRAME_H

#include "base/arena.h"
#include "base/json.h"
#include "base/map.h"
#include "base/str.h"

/* ---- records ---- */
typedef struct rt_csv_field {
    const char *p; /* not NUL-terminated; valid until the next record */
    size_t n;
} rt_csv_field;

typedef struct rt_csv {
    const char *name; /* of the file, for messages */
    const char *text;
    size_t n, at;
    char separator;
    int64_t line, line_start; /* of the next and of the current record */
    rt_csv_field *field;      /* of the current record */
    int64_t fields, cap;
    char *decoded; /* fields with quotes inside, put together */
    size_t decoded_n, decoded_cap;
} rt_csv;
/* At the first record: behind a UTF-8 mark. separator 0: the one of ',', ';' and tab that stands in the first
 * line, ',' if several do. */
void rt_csv_start(rt_csv *r, const char *name, const char *text, size_t n, char separator);
void rt_csv_deinit(rt_csv *r);
rt_status rt_csv_next(rt_csv *r, bool *end_of_file) RT_MUST_CHECK;

/* ---- typed columns ---- */
typedef enum rt_column_kind {
    RT_COLUMN_UNKNOWN, /* only gaps so far */
    RT_COLUMN_NUMBER,
    RT_COLUMN_DATE,
    RT_COLUMN_CATEGORY,
    RT_COLUMN_IGNORED
} rt_column_kind;

typedef struct rt_category {
    const char *text;
    bool number;         /* a text that is a number */
    int64_t count, line; /* rows, the first of them */
} rt_category;

typedef struct rt_column {
    const char *name;
    rt_column_kind kind;
    bool told;    /* the kind was given, not found */
    bool unnamed; /* the header says nothing */
    bool stale;   /* found to be of another kind on the way: the file is read again */
    bool asked;   /* named by who wants it */
    bool counts;  /* row i holds start + i, a whole number */
    double start;
    float *number; /* NaN: a gap */
    double *date;  /* seconds since 1970; NaN: a gap */
    int32_t *code; /* index of category; -1: a gap */
    int64_t gaps, first_gap;
    rt_map codes;
    rt_category *category; /* in the order of their first rows */
    int64_t categories, category_cap;
} rt_column;

typedef struct rt_frame_format {
    char separator; /* 0: found */
    bool no_header, decimal_comma;
} rt_frame_format;

typedef struct rt_frame {
    const char *path;
    rt_frame_format format;
    rt_arena arena;
    char *text; /* of the file, until the columns are filled */
    size_t n;
    int64_t rows, row_cap, columns;
    rt_column *column;
    int64_t *line;  /* of each row */
    rt_csv reader;  /* behind the header */
    double started; /* reading rows */
} rt_frame;
/* Reads the file and its header. Set kinds (and told) of columns then, and fill the table. */
rt_status rt_frame_open(rt_frame *t, const char *path, rt_frame_format f) RT_MUST_CHECK;
rt_status rt_frame_fill(rt_frame *t) RT_MUST_CHECK;
void rt_frame_deinit(rt_frame *t);
int64_t rt_frame_find(const rt_frame *t, const char *name); /* column, or -1 */
/* Leaves out the rows whose mask is not 0. */
void rt_frame_skip(rt_frame *t, const uint8_t *mask);
bool rt_column_gap(const rt_column *c, int64_t row); /* of a column that was read and has values */
/* A gap: nothing, or one of the usual words for it (NA, ?, null, ...). */
bool rt_is_gap(const char *s, size_t n);
/* 2024-03-01, 2024/3/1 or 1.3.2024, perhaps with a time (14:30, 14:30:05.5, Z, +01:00) behind 'T' or a space.
 * Seconds since 1970 in UTC. */
bool rt_parse_date(const char *s, size_t n, double *seconds);
/* What to do about a text that was perhaps meant otherwise: 3/4/2024, $12.50, 5%, 1,007.5. NULL: a text. */
const char *rt_text_advice(const char *s, size_t n);

/* ---- what columns become ---- */
typedef enum rt_column_as {
    RT_AS_NUMBER,
    RT_AS_ONE_HOT,
    RT_AS_HASHED,
    RT_AS_DATE,
    RT_AS_NOTHING
} rt_column_as;
enum { RT_ONE_HOT_MAX = 64, RT_HASH_WIDTH = 64, RT_HASH_PROBES = 4, RT_TABLE_WIDTH_MAX = 1 << 20 };

typedef struct rt_encoded {
    const char *name;
    rt_column_as as;
    const char *why; /* RT_AS_NOTHING: the reason */
    bool gaps;       /* a feature says where values were missing */
    bool other;      /* one-hot: a feature for rare categories, and for those never seen */
    bool clock;      /* date: there are times of day */
    double median;   /* number, date */
    int64_t categories;
    const char **category; /* one-hot, in byte order */
    int64_t first, width;  /* features */
} rt_encoded;

typedef struct rt_encoder {
    rt_arena arena;
    const char *target; /* NULL: there was none */
    int64_t columns, width;
    rt_encoded *column;
} rt_encoder;
/* From rows of a table; all columns but the ignored ones and the target (-1: none). */
rt_status rt_encoder_fit(rt_encoder *e, const rt_frame *t, int64_t target, const int64_t *rows,
                         int64_t n) RT_MUST_CHECK;
void rt_encoder_deinit(rt_encoder *e);
int64_t rt_encoder_find(const rt_encoder *e, const char *name); /* column, or -1 */
/* The kind a table must read for it. */
rt_column_kind rt_encoder_kind(const rt_encoded *c);
/* Rows of a table that was read by these kinds, as floats (n, width). */
rt_status rt_encoder_run(const rt_encoder *e, const rt_frame *t, const int64_t *rows, int64_t n,
                         float *out) RT_MUST_CHECK;
/* Appends the name of feature k of a column: "city=Paris", "age missing". */
void rt_encoder_feature(const rt_encoded *c, int64_t k, rt_str *out);
/* Appends in words what a column becomes. */
void rt_encoder_describe(const rt_encoded *c, rt_str *out);
void rt_encoder_write(const rt_encoder *e, rt_str *out);
rt_status rt_encoder_read(rt_encoder *e, const char *json, const char *name) RT_MUST_CHECK;
rt_status rt_encoder_layout(rt_encoder *e, const char *name) RT_MUST_CHECK; /* first and width of all */

#endif
