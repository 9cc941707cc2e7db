/*
 * json.c - the JSON writer. Output is always valid JSON in valid UTF-8: control characters are escaped,
 * bytes that are not UTF-8 (file names may hold any byte) become U+FFFD, and numbers JSON cannot express
 * become null with a reason beside them.
 */
#include "base/json.h"
#include <math.h>
#include <string.h>

enum { DEPTH_MAX = 32 };

void rt_json_init(rt_json *j, rt_str *out, bool pretty) {
    memset(j, 0, sizeof *j);
    j->out = out;
    j->pretty = pretty;
    j->first[0] = true;
}

static void put_text(rt_str *out, const char *text) {
    static const char named[] = "\"\"\\\\\bb\ff\nn\rr\tt"; /* pairs: character, letter after the backslash */
    rt_str_append_char(out, '"');
    const unsigned char *s = (const unsigned char *)text;
    while (*s) {
        size_t n = rt_utf8_length((const char *)s);
        const char *letter = NULL;
        for (const char *p = named; *p && !letter; p += 2)
            if ((unsigned char)*p == *s)
                letter = p + 1;
        if (n == 0) {
            rt_str_append(out, "\xef\xbf\xbd");
            n = 1;
        } else if (letter) {
            rt_str_append_char(out, '\\');
            rt_str_append_char(out, *letter);
        } else if (*s < 0x20) {
            rt_str_appendf(out, "\\u%04x", (unsigned)*s);
        } else {
            rt_str_append_n(out, (const char *)s, n);
        }
        s += n;
    }
    rt_str_append_char(out, '"');
}

/* Whether the next value is the first of its level. Levels too deep share a flag; the text is void then. */
static bool *first_here(rt_json *j) {
    return &j->first[RT_MIN(j->depth, DEPTH_MAX - 1)];
}

static void new_line(rt_json *j, int depth) {
    if (!j->pretty)
        return;
    rt_str_append_char(j->out, '\n');
    for (int i = 0; i < depth; i++)
        rt_str_append(j->out, "  ");
}

/* Comma, line break and key in front of a value. */
static void begin_value(rt_json *j, const char *key) {
    if (!*first_here(j))
        rt_str_append_char(j->out, ',');
    if (j->depth > 0)
        new_line(j, j->depth);
    *first_here(j) = false;
    if (key) {
        put_text(j->out, key);
        rt_str_append(j->out, j->pretty ? ": " : ":");
    }
}

static void begin_nest(rt_json *j, const char *key, char open) {
    begin_value(j, key);
    rt_str_append_char(j->out, open);
    j->depth++;
    if (j->depth >= DEPTH_MAX && j->out->st == RT_OK)
        j->out->st =
            rt_error_set(RT_E_FAILED, __FILE__, __LINE__, "JSON nested deeper than %d", DEPTH_MAX - 1);
    *first_here(j) = true;
}

static void end_nest(rt_json *j, char close) {
    RT_ASSERT(j->depth > 0);
    bool empty = *first_here(j);
    j->depth--;
    if (!empty)
        new_line(j, j->depth);
    rt_str_append_char(j->out, close);
}

void rt_json_object_begin(rt_json *j, const char *key) {
    begin_nest(j, key, '{');
}

void rt_json_object_end(rt_json *j) {
    end_nest(j, '}');
}

void rt_json_array_begin(rt_json *j, const char *key) {
    begin_nest(j, key, '[');
}

void rt_json_array_end(rt_json *j) {
    end_nest(j, ']');
}

void rt_json_raw(rt_json *j, const char *key, const char *json_text) {
    begin_value(j, key);
    rt_str_append(j->out, json_text);
}

void rt_json_str(rt_json *j, const char *key, const char *value) {
    begin_value(j, key);
    if (value)
        put_text(j->out, value);
    else
        rt_str_append(j->out, "null");
}

void rt_json_i64(rt_json *j, const char *key, int64_t value) {
    begin_value(j, key);
    rt_str_appendf(j->out, "%lld", (long long)value);
}

void rt_json_bool(rt_json *j, const char *key, bool value) {
    rt_json_raw(j, key, value ? "true" : "false");
}

void rt_json_f64_or(rt_json *j, const char *key, double value, const char *reason) {
    if (isfinite(value)) {
        char text[40];
        rt_format_f64(text, value);
        rt_json_raw(j, key, text);
        return;
    }
    rt_json_raw(j, key, "null");
    if (!key)
        return;
    rt_str reason_key;
    rt_str_init(&reason_key);
    rt_str_appendf(&reason_key, "%s_reason", key);
    if (reason_key.st == RT_OK)
        rt_json_str(j, rt_str_text(&reason_key), reason);
    rt_str_fail(j->out, reason_key.st);
    rt_str_deinit(&reason_key);
}

void rt_json_f64(rt_json *j, const char *key, double value) {
    rt_json_f64_or(j, key, value, isnan(value) ? "not a number" : value > 0 ? "infinite" : "minus infinite");
}

void rt_json_i64s(rt_json *j, const char *key, const int64_t *v, int64_t n) {
    rt_json_array_begin(j, key);
    for (int64_t i = 0; i < n; i++)
        rt_json_i64(j, NULL, v[i]);
    rt_json_array_end(j);
}

void rt_json_f64s(rt_json *j, const char *key, const double *v, int64_t n) {
    rt_json_array_begin(j, key);
    for (int64_t i = 0; i < n; i++)
        rt_json_f64(j, NULL, v[i]);
    rt_json_array_end(j);
}

void rt_json_strs(rt_json *j, const char *key, const char *const *v, int64_t n) {
    rt_json_array_begin(j, key);
    for (int64_t i = 0; i < n; i++)
        rt_json_str(j, NULL, v[i]);
    rt_json_array_end(j);
}
