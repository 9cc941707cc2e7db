/*
 * str.c - the growing text buffer, and the edit distance behind "did you mean".
 *
 * A failed growth is remembered and later appends do nothing, so a caller checks once, at the end. Clearing
 * keeps the failure: a buffer that is used again and again would lose it otherwise.
 */
#include "base/str.h"
#include "base/alloc.h"
#include "base/size.h"
#include <stdio.h>
#include <string.h>

void rt_str_init(rt_str *s) {
    memset(s, 0, sizeof *s);
}

void rt_str_deinit(rt_str *s) {
    rt_free(s->p);
    rt_str_init(s);
}

void rt_str_clear(rt_str *s) {
    s->len = 0;
    if (s->p)
        s->p[0] = 0;
}

/* Makes room for `extra` more characters and the terminator. */
static bool reserve(rt_str *s, size_t extra) {
    if (s->st != RT_OK)
        return false;
    size_t need;
    if (!rt_size_add(s->len, extra, &need) || !rt_size_add(need, 1, &need)) {
        s->st = rt_error_set(RT_E_MEMORY, __FILE__, __LINE__, "text of %zu more bytes does not fit", extra);
        return false;
    }
    if (need <= s->cap)
        return true;
    size_t cap = s->cap ? s->cap : 64;
    while (cap < need)
        if (!rt_size_mul(cap, 2, &cap))
            cap = need;
    s->st = rt_realloc(&s->p, s->len, cap);
    if (s->st != RT_OK)
        return false;
    s->cap = cap;
    s->p[s->len] = 0;
    return true;
}

void rt_str_append_n(rt_str *s, const char *text, size_t n) {
    if (!reserve(s, n))
        return;
    if (n)
        memcpy(s->p + s->len, text, n);
    s->len += n;
    s->p[s->len] = 0;
}

void rt_str_append(rt_str *s, const char *text) {
    rt_str_append_n(s, text, strlen(text));
}

void rt_str_append_char(rt_str *s, char c) {
    rt_str_append_n(s, &c, 1);
}

void rt_str_appendf(rt_str *s, const char *fmt, ...) {
    va_list ap, again;
    va_start(ap, fmt);
    va_copy(again, ap);
    char small[128];
    int n = vsnprintf(small, sizeof small, fmt, ap);
    if (n < 0) {
        if (s->st == RT_OK)
            s->st = rt_error_set(RT_E_FAILED, __FILE__, __LINE__, "cannot format text \"%s\"", fmt);
    } else if ((size_t)n < sizeof small) {
        rt_str_append_n(s, small, (size_t)n);
    } else if (reserve(s, (size_t)n)) {
        vsnprintf(s->p + s->len, (size_t)n + 1, fmt, again);
        s->len += (size_t)n;
    }
    va_end(again);
    va_end(ap);
}

void rt_str_append_shell(rt_str *s, const char *word) {
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=:,./@%^";
    if (*word && strspn(word, plain) == strlen(word)) {
        rt_str_append(s, word);
        return;
    }
    rt_str_append_char(s, '\'');
    for (; *word; word++) {
        if (*word == '\'')
            rt_str_append(s, "'\\''");
        else
            rt_str_append_char(s, *word);
    }
    rt_str_append_char(s, '\'');
}

void rt_str_fail(rt_str *s, rt_status st) {
    if (s->st == RT_OK)
        s->st = st;
}

void rt_str_append_str(rt_str *s, const rt_str *other) {
    rt_str_fail(s, other->st);
    rt_str_append_n(s, rt_str_text(other), other->len);
}

/* The failure may be long past: there must still be a message to report. */
rt_status rt_str_status(const rt_str *s) {
    if (s->st != RT_OK && rt_error_last()->code != s->st)
        return rt_error_set(s->st, __FILE__, __LINE__, "out of memory for a text");
    return s->st;
}

rt_status rt_str_get(const rt_str *s, const char **text) {
    *text = s->st == RT_OK ? rt_str_text(s) : "";
    return rt_str_status(s);
}

const char *rt_str_text(const rt_str *s) {
    return s->p ? s->p : "";
}

char *rt_strdup(const char *s) {
    size_t n = strlen(s) + 1;
    char *p;
    if (rt_alloc(&p, n) != RT_OK)
        return NULL;
    memcpy(p, s, n);
    return p;
}

size_t rt_utf8_length(const char *text) {
    const unsigned char *s = (const unsigned char *)text;
    if (s[0] < 0x80)
        return 1;
    size_t n = s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
    if (s[0] < 0xc2 || s[0] > 0xf4)
        return 0;
    unsigned low = s[0] == 0xe0 ? 0xa0 : s[0] == 0xf0 ? 0x90 : 0x80;
    unsigned high = s[0] == 0xed ? 0x9f : s[0] == 0xf4 ? 0x8f : 0xbf;
    if (s[1] < low || s[1] > high)
        return 0;
    for (size_t i = 2; i < n; i++)
        if (s[i] < 0x80 || s[i] > 0xbf)
            return 0;
    return n;
}

bool rt_str_starts(const char *s, const char *prefix) {
    return strncmp(s, prefix, strlen(prefix)) == 0;
}

bool rt_str_heads(const char *spec, const char *name) {
    const size_t n = strlen(name);
    return strncmp(spec, name, n) == 0 && (spec[n] == ':' || spec[n] == 0);
}

bool rt_str_ends(const char *s, const char *suffix) {
    size_t n = strlen(s), k = strlen(suffix);
    return n >= k && memcmp(s + n - k, suffix, k) == 0;
}

void rt_str_clean(char *text, const char *keep) {
    for (unsigned char *s = (unsigned char *)text; *s; s++) {
        const bool wide = s[0] == 0xc2 && s[1] >= 0x80 && s[1] < 0xa0; /* U+0080 to U+009F */
        if (wide)
            *s++ = '?';
        if ((*s < 0x20 && !strchr(keep, *s)) || *s == 0x7f || wide)
            *s = '?';
    }
}

int rt_str_columns(const char *text) {
    int n = 0;
    for (; *text; text++)
        n += ((unsigned char)*text & 0xc0) != 0x80;
    return n;
}

bool rt_str_holds_nothing_out(const char *spec) {
    double share;
    for (const char *s = strchr(spec, ','); s; s = strchr(s + 1, ','))
        if (rt_str_starts(s, ",test="))
            return rt_parse_f64(s + 6, strcspn(s + 6, ","), false, &share) && share == 0;
    return false;
}

/*
 * Optimal string alignment: insert, delete, replace, and swap of neighbours each cost one. Three rows of
 * the table are live. Names are short; texts longer than a row are simply as far apart as the longer one is
 * long.
 */
enum { DISTANCE_MAX = 128 };

int rt_str_distance(const char *a, const char *b) {
    if (strcmp(a, b) == 0)
        return 0;
    size_t na = strlen(a), nb = strlen(b);
    if (na >= DISTANCE_MAX || nb >= DISTANCE_MAX)
        return (int)RT_MIN(RT_MAX(na, nb), (size_t)INT32_MAX);
    int rows[3][DISTANCE_MAX];
    int *before = rows[0], *above = rows[1], *row = rows[2];
    for (size_t j = 0; j <= nb; j++)
        above[j] = (int)j;
    for (size_t i = 1; i <= na; i++) {
        row[0] = (int)i;
        for (size_t j = 1; j <= nb; j++) {
            int best = above[j - 1] + (a[i - 1] != b[j - 1]);
            best = RT_MIN(best, above[j] + 1);
            best = RT_MIN(best, row[j - 1] + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                best = RT_MIN(best, before[j - 2] + 1);
            row[j] = best;
        }
        int *oldest = before;
        before = above;
        above = row;
        row = oldest;
    }
    return above[nb];
}

int64_t rt_str_nearest(const char *s, const char *const *names, int64_t n) {
    int len = (int)RT_MIN(strlen(s), (size_t)DISTANCE_MAX);
    int limit = len <= 3 ? 1 : RT_MAX(2, len / 3);
    int64_t best = -1;
    for (int64_t i = 0; i < n; i++) {
        int d = rt_str_distance(s, names[i]);
        if (d <= limit && d < (int)RT_MIN(strlen(names[i]), (size_t)DISTANCE_MAX)) {
            best = i;
            limit = d - 1; /* only a strictly nearer name replaces this one */
        }
    }
    return best;
}

void rt_str_append_csv(rt_str *s, const char *text, bool safe) {
    const bool formula = safe && *text && strchr("=+-@\t\r", *text);
    if (!formula && !strpbrk(text, ",\"\r\n") && *text != ' ' && *text != '\t' && !rt_str_ends(text, " ")) {
        rt_str_append(s, text);
        return;
    }
    rt_str_append(s, formula ? "\"'" : "\"");
    for (; *text; text++) {
        if (*text == '"')
            rt_str_append_char(s, '"');
        rt_str_append_char(s, *text);
    }
    rt_str_append_char(s, '"');
}

int64_t rt_str_find(const char *s, const char *const *names, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        if (strcmp(names[i], s) == 0)
            return i;
    return -1;
}

rt_status rt_error_unknown(rt_status code, const char *file, int line, const char *name,
                           const char *const *names, int64_t n, const char *fmt, ...) {
    enum { LIST_MAX = 40 };
    const int64_t near = rt_str_nearest(name, names, n);
    char what[256];
    rt_str hint;
    va_list args;
    va_start(args, fmt);
    vsnprintf(what, sizeof what, fmt, args);
    va_end(args);
    rt_str_init(&hint);
    if (near >= 0)
        rt_str_appendf(&hint, "; did you mean '%s'?", names[near]);
    for (int64_t i = 0; n <= LIST_MAX && i < n; i++)
        rt_str_appendf(&hint, "%s%s",
                       i           ? ", "
                       : near >= 0 ? " Wanted one of "
                                   : "; wanted one of ",
                       names[i]);
    const rt_status st = rt_error_set(code, file, line, "%s '%.80s'%s", what, name, rt_str_text(&hint));
    rt_str_deinit(&hint);
    return st;
}
