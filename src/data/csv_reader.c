/*
 * csv_reader.c - records of a text by RFC 4180: quotes, commas and line ends inside them, CRLF or LF.
 *
 * Fields point into the text, which is never changed, so that it can be read twice; only one with a doubled
 * quote inside is put together elsewhere. Blanks around a field do not count. Refused, with the line an editor
 * shows and the column: a quote that is never closed, text behind a closing quote, a lone carriage return.
 */
#include "base/alloc.h"
#include "data/frame.h"
#include <string.h>

static char find_separator(const char *text, size_t n) {
    static const char known[] = {',', ';', '\t'};
    bool seen[sizeof known] = {false}, quoted = false;
    for (size_t i = 0; i < n && (quoted || (text[i] != '\n' && text[i] != '\r')); i++) {
        quoted = quoted != (text[i] == '"');
        for (size_t k = 0; k < sizeof known; k++)
            seen[k] = seen[k] || (!quoted && text[i] == known[k]);
    }
    for (size_t k = 0; k < sizeof known; k++)
        if (seen[k])
            return known[k];
    return ',';
}

void rt_csv_start(rt_csv *r, const char *name, const char *text, size_t n, char separator) {
    rt_csv_field *field = r->field;
    int64_t cap = r->cap;
    char *decoded = r->decoded;
    size_t decoded_cap = r->decoded_cap;
    size_t at = n >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
    *r = (rt_csv){.name = name,
                  .text = text,
                  .n = n,
                  .at = at,
                  .separator = separator ? separator : find_separator(text + at, n - at),
                  .line = 1,
                  .field = field,
                  .cap = cap,
                  .decoded = decoded,
                  .decoded_cap = decoded_cap};
}

void rt_csv_deinit(rt_csv *r) {
    rt_free(r->field);
    rt_free(r->decoded);
    *r = (rt_csv){.name = NULL};
}

static rt_status push(rt_csv *r, const char *p, size_t n) {
    if (r->fields == r->cap) {
        int64_t cap = r->cap ? r->cap * 2 : 64;
        RT_TRY(rt_realloc(&r->field, (size_t)r->cap * sizeof *r->field, (size_t)cap * sizeof *r->field));
        r->cap = cap;
    }
    r->field[r->fields++] = (rt_csv_field){.p = p, .n = n};
    return RT_OK;
}

/* Room for n more decoded bytes; fields of this record that are there already move along. */
static rt_status decoded_grow(rt_csv *r, size_t n) {
    if (r->decoded_cap - r->decoded_n >= n)
        return RT_OK;
    const char *old = r->decoded;
    const size_t cap = RT_MAX(2 * r->decoded_cap, r->decoded_n + n + 256);
    const uintptr_t from = (uintptr_t)old, to = from + r->decoded_n;
    RT_TRY(rt_realloc(&r->decoded, r->decoded_cap, cap));
    r->decoded_cap = cap;
    for (int64_t i = 0; i < r->fields; i++) {
        const uintptr_t at = (uintptr_t)r->field[i].p;
        if (from != 0 && at >= from && at < to)
            r->field[i].p = r->decoded + (at - from);
    }
    return RT_OK;
}

static rt_status decode(rt_csv *r, const char *from, size_t n, const char **out, size_t *out_n) {
    RT_TRY(decoded_grow(r, n));
    char *to = r->decoded + r->decoded_n;
    *out = to;
    for (size_t i = 0; i < n; i++) {
        *to++ = from[i];
        i += from[i] == '"'; /* the second of a pair */
    }
    *out_n = (size_t)(to - *out);
    r->decoded_n += *out_n;
    return RT_OK;
}

/* At an opening quote; ends behind the closing one. */
static rt_status quoted_field(rt_csv *r, const char **p, size_t *n) {
    const size_t start = ++r->at;
    bool doubled = false;
    for (; r->at < r->n; r->at++) {
        if (r->text[r->at] == '"') {
            if (r->at + 1 >= r->n || r->text[r->at + 1] != '"')
                break;
            doubled = true;
            r->at++;
        }
        r->line += r->text[r->at] == '\n';
    }
    RT_FAIL_IF(r->at >= r->n, RT_E_INPUT, "%s: line %lld, column %lld: the quote is never closed", r->name,
               (long long)r->line_start, (long long)r->fields + 1);
    *p = r->text + start;
    *n = r->at++ - start;
    return doubled ? decode(r, *p, *n, p, n) : RT_OK;
}

static bool is_blank(const rt_csv *r, char c) {
    return c != r->separator && (c == ' ' || c == '\t');
}

static void skip_blanks(rt_csv *r) {
    while (r->at < r->n && is_blank(r, r->text[r->at]))
        r->at++;
}

static void plain_field(rt_csv *r, const char **p, size_t *n) {
    const size_t start = r->at;
    while (r->at < r->n && r->text[r->at] != r->separator && r->text[r->at] != '\n' && r->text[r->at] != '\r')
        r->at++;
    size_t end = r->at;
    while (end > start && is_blank(r, r->text[end - 1]))
        end--;
    *p = r->text + start;
    *n = end - start;
}

/* What stands behind a field: another one (*more), or the end of the record. */
static rt_status field_end(rt_csv *r, bool *more) {
    const char c = r->at < r->n ? r->text[r->at] : '\n';
    *more = c == r->separator;
    if (c == '\r') {
        RT_FAIL_IF(r->at + 1 < r->n && r->text[r->at + 1] != '\n', RT_E_INPUT,
                   "%s: line %lld: carriage return without line feed", r->name, (long long)r->line);
        r->at++;
    } else {
        RT_FAIL_IF(!*more && c != '\n', RT_E_INPUT,
                   "%s: line %lld, column %lld: text behind the closing quote", r->name,
                   (long long)r->line_start, (long long)r->fields);
    }
    r->at = RT_MIN(r->at + 1, r->n);
    r->line += !*more;
    return RT_OK;
}

rt_status rt_csv_next(rt_csv *r, bool *end_of_file) {
    size_t probe = r->at;
    while (probe < r->n && (r->text[probe] == '\n' || r->text[probe] == '\r'))
        probe++;
    *end_of_file = probe == r->n;
    r->fields = 0;
    r->decoded_n = 0;
    r->line_start = r->line;
    for (bool more = !*end_of_file; more;) {
        const char *p = NULL;
        size_t n = 0;
        skip_blanks(r);
        if (r->at < r->n && r->text[r->at] == '"') {
            RT_TRY(quoted_field(r, &p, &n));
            skip_blanks(r);
        } else {
            plain_field(r, &p, &n);
        }
        RT_TRY(push(r, p, n));
        RT_TRY(field_end(r, &more));
    }
    return RT_OK;
}
