/*
 * report_check.c - metrics.json against schema.def, so that tables and script may trust what they read. A file that
 * disagrees is refused with its name, the place in it, and what was expected there.
 */
#include "report/report_int.h"
#include <string.h>

typedef struct place {
    const rt_report_run *run;
    const char *path; /* of the schema */
    const char *key;  /* the last key on the way, for the message */
} place;

static bool is_number_or_null(rt_jval v) {
    const char *s;
    bool b;
    return rt_jval_len(v) < 0 && !rt_jval_str(v, &s) && !rt_jval_bool(v, &b);
}

static bool is_text(rt_jval v) {
    const char *s;
    return rt_jval_str(v, &s);
}

static rt_status refuse(const place *at, const char *member, const char *expected) {
    RT_FAIL(RT_E_INPUT, "%s: %s%s%.100s%s%.100s: expected %s", at->run->metrics_path, at->path,
            at->key     ? " at "
            : *at->path ? ""
                        : "top level",
            at->key ? at->key : "", member ? "/" : "", member ? member : "", expected);
}

static rt_status check_object(const place *at, rt_jval v) {
    return rt_jval_is_object(v) ? RT_OK : refuse(at, NULL, "an object");
}

static rt_status array_at(const place *at, const char *member, rt_jval v, bool (*is)(rt_jval v),
                          const char *expected) {
    if (!rt_jval_is_array(v))
        return refuse(at, member, expected);
    for (int64_t i = 0; i < rt_jval_len(v); i++)
        if (!is(rt_jval_at(v, i)))
            return refuse(at, member, expected);
    return RT_OK;
}

static rt_status numbers_at(const place *at, const char *member, rt_jval v) {
    return array_at(at, member, v, is_number_or_null, "an array of numbers");
}

static rt_status check_pairs(const place *at, rt_jval v) {
    RT_TRY(check_object(at, v));
    for (int64_t i = 0; i < rt_jval_len(v); i++) {
        const char *key = rt_jval_key(v, i);
        rt_jval pair = rt_jval_get(v, key);
        if (rt_jval_len(pair) < 0)
            continue; /* null with a reason beside it */
        RT_TRY(numbers_at(at, key, pair));
        if (rt_jval_len(pair) != 2)
            return refuse(at, key, "two numbers");
    }
    return RT_OK;
}

static rt_status check_texts(const place *at, rt_jval v) {
    return array_at(at, NULL, v, is_text, "an array of strings");
}

static rt_status check_table(const place *at, rt_jval v, bool edges) {
    int64_t length = -1;
    RT_TRY(check_object(at, v));
    for (int64_t i = 0; i < rt_jval_len(v); i++) {
        const char *key = rt_jval_key(v, i);
        rt_jval column = rt_jval_get(v, key);
        if (!rt_jval_is_array(column))
            continue; /* a single number, a reason, or an object such as the means of all columns */
        RT_TRY(numbers_at(at, key, column));
        int64_t n = rt_jval_len(column) - (edges && strcmp(key, "edges") == 0);
        if (length < 0)
            length = n;
        if (n != length)
            return refuse(at, key, "as many numbers as its neighbours have");
    }
    return edges && rt_jval_len(rt_jval_get(v, "edges")) < 2 ? refuse(at, "edges", "an array of numbers")
                                                             : RT_OK;
}

static rt_status check_columns(const place *at, rt_jval v) {
    return check_table(at, v, false);
}

static rt_status check_histogram(const place *at, rt_jval v) {
    return check_table(at, v, true);
}

static rt_status check_list(const place *at, rt_jval v) {
    return array_at(at, NULL, v, rt_jval_is_object, "an array of objects");
}

static rt_status check_numbers(const place *at, rt_jval v) {
    return numbers_at(at, NULL, v);
}

typedef rt_status (*check_fn)(const place *at, rt_jval v);
static const struct {
    const char *path;
    check_fn check;
} schema[] = {
#define RT_SCHEMA(path, kind) {path, check_##kind},
#include "report/schema.def"
#undef RT_SCHEMA
};

typedef struct checking {
    const rt_report_run *run;
    int64_t line; /* of the schema */
    rt_status st;
} checking;

/* Values that are null are absent. */
static bool check_place(void *user, rt_jval v, const char *star) {
    checking *c = user;
    const place at = {c->run, schema[c->line].path, star};
    if (!rt_jval_is_null(v))
        c->st = schema[c->line].check(&at, v);
    return c->st != RT_OK;
}

rt_status rt_report_check(const rt_report_run *r) {
    for (int64_t i = 0; r->root && i < RT_COUNT(schema); i++) {
        checking c = {.run = r, .line = i};
        if (rt_jval_walk(r->root, schema[i].path, check_place, &c))
            return c.st;
    }
    return RT_OK;
}
