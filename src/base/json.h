/*
 * json.h - JSON writer into an rt_str. Commas and nesting are kept by the writer; a non-finite number is
 * written as null followed by "<key>_reason". Reading JSON is io's business.
 */
#ifndef RT_BASE_JSON_H
#define RT_BASE_JSON_H

#include "base/str.h"

typedef struct rt_json {
    rt_str *out;
    int depth;
    bool first[32];
    bool pretty; /* newline and two spaces per level */
} rt_json;

void rt_json_init(rt_json *j, rt_str *out, bool pretty);
void rt_json_object_begin(rt_json *j, const char *key); /* key NULL inside arrays and at top level */
void rt_json_object_end(rt_json *j);
void rt_json_array_begin(rt_json *j, const char *key);
void rt_json_array_end(rt_json *j);
void rt_json_str(rt_json *j, const char *key,
                 const char *value); /* value NULL writes null; escapes, keeps UTF-8 */
void rt_json_i64(rt_json *j, const char *key, int64_t value);
void rt_json_bool(rt_json *j, const char *key, bool value);
void rt_json_f64(rt_json *j, const char *key,
                 double value); /* not finite: null and, in objects, "<key>_reason" */
void rt_json_f64_or(rt_json *j, const char *key, double value, const char *reason); /* the reason to give */
/* Arrays of n values; a number that is not finite is null. */
void rt_json_i64s(rt_json *j, const char *key, const int64_t *v, int64_t n);
void rt_json_f64s(rt_json *j, const char *key, const double *v, int64_t n);
void rt_json_strs(rt_json *j, const char *key, const char *const *v, int64_t n);
void rt_json_raw(rt_json *j, const char *key, const char *json_text);

#endif
