/*
 * str.h - growing text buffer, locale-free number parsing and small text helpers.
 *
 * An rt_str remembers the first failure to grow until rt_str_deinit: append calls need no check. The place that
 * uses the text checks once: rt_str_get, rt_str_append_str, rt_file_write_text and rt_arena_text take the
 * failure along with the text. rt_str_text does not look: it is for text that is only read on the way.
 */
#ifndef RT_BASE_STR_H
#define RT_BASE_STR_H

#include "base/status.h"

typedef struct rt_str {
    char *p; /* always NUL-terminated once something was appended; may be NULL when empty */
    size_t len, cap;
    rt_status st;
} rt_str;

void rt_str_init(rt_str *s);
void rt_str_deinit(rt_str *s);
void rt_str_clear(rt_str *s); /* the text, not the failure */
void rt_str_append(rt_str *s, const char *text);
void rt_str_append_n(rt_str *s, const char *text, size_t n);
void rt_str_append_char(rt_str *s, char c);
void rt_str_appendf(rt_str *s, const char *fmt, ...) RT_PRINTF(2, 3);
void rt_str_append_shell(rt_str *s, const char *word); /* as a shell reads one word: quoted if need be */
/* A field of a CSV file, quoted if need be (RFC 4180). safe: what a spreadsheet would compute (=, +, -, @) begins with
 * an apostrophe, which it takes for "text". */
void rt_str_append_csv(rt_str *s, const char *text, bool safe);
void rt_str_append_str(rt_str *s, const rt_str *other); /* its text, or its failure */
void rt_str_fail(rt_str *s, rt_status st); /* the buffer is not what it should be; OK does nothing */
rt_status rt_str_status(const rt_str *s) RT_MUST_CHECK;
rt_status rt_str_get(const rt_str *s, const char **text) RT_MUST_CHECK; /* "" when it failed */
const char *rt_str_text(const rt_str *s);                               /* never NULL */

char *rt_strdup(const char *s); /* rt_alloc'ed; NULL on failure with the error recorded */
/* Length of the well-formed UTF-8 character at NUL-ended text (Unicode table 3-7), 0 if there is none. */
size_t rt_utf8_length(const char *text);
bool rt_str_starts(const char *s, const char *prefix);
bool rt_str_heads(const char *spec, const char *name); /* is `name` what stands before the colon, if any? */
bool rt_str_ends(const char *s, const char *suffix);
/* Control characters (C1, too) become '?', but those of `keep`: names in files must not steer a terminal, nor break a
 * line of a table. */
void rt_str_clean(char *text, const char *keep);
int rt_str_columns(const char *text); /* characters of UTF-8 text */
/* Does a data SPEC hold out nothing to evaluate on ("csv:t.csv,test=0")? Here, for whoever knows it as a text only. */
bool rt_str_holds_nothing_out(const char *spec);

/* Whole-text parsers: leading/trailing space, hex, locale commas, trailing junk and overflow are refused
 * (false). rt_parse_f64 accepts decimal notation and "inf", "nan" only when allow_nonfinite. Correctly
 * rounded. */
bool rt_parse_i64(const char *s, size_t n, int64_t *out);
bool rt_parse_u64(const char *s, size_t n, uint64_t *out);
bool rt_parse_f64(const char *s, size_t n, bool allow_nonfinite, double *out);
/* Shortest text that reads back to the same double (float); locale-free. buf >= 40 bytes. */
void rt_format_f64(char *buf, double v);
void rt_format_f32(char *buf, float v);
/* Damerau-Levenshtein distance, and the index of the nearest of n names if it is near enough to suggest,
 * else -1. */
int rt_str_distance(const char *a, const char *b);
int64_t rt_str_nearest(const char *s, const char *const *names, int64_t n);
int64_t rt_str_find(const char *s, const char *const *names, int64_t n); /* the place of s among them; -1 */
/* A name that is none of n: "WHAT 'kdd'; did you mean 'kd'?
 * Wanted one of kd, end2". WHAT is the format; lists of more than 40 names are left out. */
rt_status rt_error_unknown(rt_status code, const char *file, int line, const char *name,
                           const char *const *names, int64_t n, const char *fmt, ...) RT_PRINTF(7, 8);
#define RT_FAIL_UNKNOWN(code, name, names, n, ...)                                                           \
    return rt_error_unknown((code), __FILE__, __LINE__, (name), (names), (n), __VA_ARGS__)

#endif
