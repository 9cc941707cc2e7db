/*
 * json_read.c - a strict JSON reader (RFC 8259) for headers and records.
 *
 * The text is copied once and strings are unescaped in place, so they cost nothing more. Values are small
 * nodes; the children of an array or object stand side by side. While a container is open its children lie on
 * a stack; when it closes they move to the arena, behind them, for objects, the order of the keys sorted, by
 * which duplicates are found and members looked up in O(log n): a header with a million keys is read in n log
 * n.
 *
 * Refused: duplicate keys, NaN and Infinity, numbers beyond double, "-0" as an integer, control characters, broken
 * UTF-8, lone surrogates, U+0000, more than 64 levels or a million values, anything behind the value. The reader
 * recurses once per level, never deeper.
 */
#include "io/io_int.h"

#include "base/alloc.h"
#include "base/arena.h"
#include "base/file.h"
#include "base/size.h"

#include <stdlib.h>
#include <string.h>

typedef enum json_kind {
    JSON_NULL,
    JSON_BOOL,
    JSON_INT,
    JSON_REAL,
    JSON_STR,
    JSON_ARRAY,
    JSON_OBJECT
} json_kind;

typedef struct json_node {
    const char *key; /* of a member, else NULL */
    json_kind kind;
    int64_t count; /* children */
    union {
        bool b;
        int64_t i;
        double f;
        const char *s;
        struct json_node *child; /* for objects followed by int64_t order[count] */
    } u;
} json_node;

struct rt_jdoc {
    rt_arena arena;
    char *text;
    json_node root;
};

typedef struct json_parser {
    rt_jdoc *doc;
    char *p; /* the copy of the text, NUL behind it */
    size_t n, at, row_start;
    int64_t row;
    const char *name;
    json_node *stack;
    int64_t top, cap;
    int depth;
} json_parser;

#define JSON_FAIL(ps, what) return json_fail((ps), __LINE__, (what))

static rt_status json_fail(const json_parser *ps, int line, const char *what) {
    return rt_error_set(RT_E_INPUT, __FILE__, line, "%s: JSON line %lld column %lld: %s", ps->name,
                        (long long)ps->row, (long long)(ps->at - ps->row_start) + 1, what);
}

/* Newlines stand between values only, so lines are counted here (strings are rewritten in place, a later
 * count would err). */
static void json_space(json_parser *ps) {
    for (; ps->at < ps->n; ps->at++) {
        char c = ps->p[ps->at];
        if (c == '\n') {
            ps->row++;
            ps->row_start = ps->at + 1;
        } else if (c != ' ' && c != '\t' && c != '\r') {
            break;
        }
    }
}

static bool json_eat(json_parser *ps, char c) {
    if (ps->at < ps->n && ps->p[ps->at] == c) {
        ps->at++;
        return true;
    }
    return false;
}

static rt_status json_push(json_parser *ps, json_node v) {
    if (ps->top == ps->cap) {
        int64_t cap = ps->cap ? ps->cap * 2 : 64;
        RT_TRY(rt_realloc(&ps->stack, (size_t)ps->cap * sizeof(json_node), (size_t)cap * sizeof(json_node)));
        ps->cap = cap;
    }
    ps->stack[ps->top++] = v;
    return RT_OK;
}

static bool json_hex4(const json_parser *ps, size_t at, uint32_t *out) {
    if (ps->n < 4 || at > ps->n - 4)
        return false;
    uint32_t v = 0;
    for (size_t i = 0; i < 4; i++) {
        char c = ps->p[at + i];
        uint32_t d;
        if (c >= '0' && c <= '9')
            d = (uint32_t)(c - '0');
        else if (c >= 'a' && c <= 'f')
            d = (uint32_t)(c - 'a') + 10;
        else if (c >= 'A' && c <= 'F')
            d = (uint32_t)(c - 'A') + 10;
        else
            return false;
        v = v * 16 + d;
    }
    *out = v;
    return true;
}

/* Length of the UTF-8 sequence at p (n bytes there), 0 if it is not well-formed (overlong, surrogate, above
 * U+10FFFF). */
static size_t json_utf8(const uint8_t *p, size_t n) {
    size_t len = p[0] < 0x80                   ? 1
                 : p[0] >= 0xc2 && p[0] < 0xe0 ? 2
                 : (p[0] & 0xf0) == 0xe0       ? 3
                 : p[0] >= 0xf0 && p[0] < 0xf5 ? 4
                                               : 0;
    if (len == 0 || len > n)
        return 0;
    for (size_t i = 1; i < len; i++)
        if ((p[i] & 0xc0) != 0x80)
            return 0;
    if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] >= 0xa0) || (p[0] == 0xf0 && p[1] < 0x90) ||
        (p[0] == 0xf4 && p[1] >= 0x90))
        return 0;
    return len;
}

static char *json_put_utf8(char *to, uint32_t c) {
    if (c < 0x80) {
        *to++ = (char)c;
    } else if (c < 0x800) {
        *to++ = (char)(0xc0 | (c >> 6));
        *to++ = (char)(0x80 | (c & 0x3f));
    } else if (c < 0x10000) {
        *to++ = (char)(0xe0 | (c >> 12));
        *to++ = (char)(0x80 | ((c >> 6) & 0x3f));
        *to++ = (char)(0x80 | (c & 0x3f));
    } else {
        *to++ = (char)(0xf0 | (c >> 18));
        *to++ = (char)(0x80 | ((c >> 12) & 0x3f));
        *to++ = (char)(0x80 | ((c >> 6) & 0x3f));
        *to++ = (char)(0x80 | (c & 0x3f));
    }
    return to;
}

/* Behind a backslash: writes the character at *to; the written form is never longer than the escape. */
static rt_status json_escape(json_parser *ps, char **to) {
    static const char from_set[] = "\"\\/bfnrt", to_set[] = "\"\\/\b\f\n\r\t";
    if (ps->at >= ps->n)
        JSON_FAIL(ps, "text ends inside a string");
    char c = ps->p[ps->at];
    const char *hit = c ? strchr(from_set, c) : NULL;
    if (hit) {
        *(*to)++ = to_set[hit - from_set];
        ps->at++;
        return RT_OK;
    }
    uint32_t u = 0, low = 0;
    if (c != 'u' || !json_hex4(ps, ps->at + 1, &u))
        JSON_FAIL(ps, "unknown escape in a string");
    if (u == 0)
        JSON_FAIL(ps, "character U+0000 in a string");
    size_t used = 5;
    if (u >= 0xd800 && u < 0xe000) {
        size_t second = ps->at + 5;
        if (u >= 0xdc00 || second + 6 > ps->n || ps->p[second] != '\\' || ps->p[second + 1] != 'u' ||
            !json_hex4(ps, second + 2, &low) || low < 0xdc00 || low >= 0xe000)
            JSON_FAIL(ps, "half of a surrogate pair in a string");
        u = 0x10000 + ((u - 0xd800) << 10) + (low - 0xdc00);
        used = 11;
    }
    *to = json_put_utf8(*to, u);
    ps->at += used;
    return RT_OK;
}

static rt_status json_string(json_parser *ps, const char **out) {
    ps->at++; /* the quote */
    char *start = ps->p + ps->at, *to = start;
    while (ps->at < ps->n) {
        uint8_t c = (uint8_t)ps->p[ps->at];
        if (c == '"') {
            ps->at++;
            *to = 0;
            *out = start;
            return RT_OK;
        }
        if (c < 0x20)
            JSON_FAIL(ps, "control character in a string");
        if (c == '\\') {
            ps->at++;
            RT_TRY(json_escape(ps, &to));
            continue;
        }
        size_t len = json_utf8((const uint8_t *)ps->p + ps->at, ps->n - ps->at);
        if (len == 0)
            JSON_FAIL(ps, "string is not UTF-8");
        memmove(to, ps->p + ps->at, len);
        to += len;
        ps->at += len;
    }
    JSON_FAIL(ps, "text ends inside a string");
}

static size_t json_digits(const json_parser *ps, size_t at) {
    size_t n = 0;
    while (at + n < ps->n && ps->p[at + n] >= '0' && ps->p[at + n] <= '9')
        n++;
    return n;
}

static rt_status json_number(json_parser *ps, json_node *v) {
    size_t start = ps->at, at = start;
    bool negative = ps->p[at] == '-', whole = true;
    at += negative;
    size_t digits = json_digits(ps, at);
    if (digits == 0)
        JSON_FAIL(ps, "expected a value");
    if (digits > 1 && ps->p[at] == '0')
        JSON_FAIL(ps, "number with a leading zero");
    if (negative && digits == 1 && ps->p[at] == '0')
        whole = false; /* -0 is a number but no integer */
    at += digits;
    if (at < ps->n && ps->p[at] == '.') {
        whole = false;
        digits = json_digits(ps, at + 1);
        if (digits == 0)
            JSON_FAIL(ps, "number without digits behind the point");
        at += 1 + digits;
    }
    if (at < ps->n && (ps->p[at] == 'e' || ps->p[at] == 'E')) {
        whole = false;
        at++;
        if (at < ps->n && (ps->p[at] == '+' || ps->p[at] == '-'))
            at++;
        digits = json_digits(ps, at);
        if (digits == 0)
            JSON_FAIL(ps, "number without digits in its exponent");
        at += digits;
    }
    if (whole && rt_parse_i64(ps->p + start, at - start, &v->u.i)) {
        v->kind = JSON_INT;
    } else {
        v->kind = JSON_REAL;
        if (!rt_parse_f64(ps->p + start, at - start, false, &v->u.f))
            JSON_FAIL(ps, "number beyond double precision");
    }
    ps->at = at;
    return RT_OK;
}

static rt_status json_word(json_parser *ps, json_node *v) {
    static const struct {
        const char *word;
        json_kind kind;
        bool value;
    } words[] = {{"true", JSON_BOOL, true}, {"false", JSON_BOOL, false}, {"null", JSON_NULL, false}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        size_t len = strlen(words[i].word);
        if (ps->n - ps->at >= len && memcmp(ps->p + ps->at, words[i].word, len) == 0) {
            v->kind = words[i].kind;
            v->u.b = words[i].value;
            ps->at += len;
            return RT_OK;
        }
    }
    JSON_FAIL(ps, "expected a value");
}

static int json_key_compare(const void *a, const void *b, void *children) {
    const json_node *c = children;
    int64_t i = *(const int64_t *)a, j = *(const int64_t *)b;
    return strcmp(c[i].key, c[j].key);
}

/* Moves the children above `base` from the stack to the arena; v becomes their container. */
static rt_status json_close(json_parser *ps, json_node *v, int64_t base) {
    int64_t count = ps->top - base;
    size_t bytes = 0, order_bytes = 0;
    if (!rt_size_mul((size_t)count, sizeof(json_node), &bytes) ||
        !rt_size_mul((size_t)count, sizeof(int64_t), &order_bytes))
        JSON_FAIL(ps, "too many values");
    if (v->kind != JSON_OBJECT)
        order_bytes = 0;
    v->count = count;
    v->u.child = NULL;
    ps->top = base;
    if (count == 0)
        return RT_OK;
    RT_TRY(rt_arena_alloc(&ps->doc->arena, &v->u.child, bytes + order_bytes));
    memcpy(v->u.child, ps->stack + base, bytes);
    if (v->kind == JSON_OBJECT) {
        int64_t *order = (int64_t *)(v->u.child + count);
        for (int64_t i = 0; i < count; i++)
            order[i] = i;
        qsort_r(order, (size_t)count, sizeof *order, json_key_compare, v->u.child);
        for (int64_t i = 1; i < count; i++)
            if (strcmp(v->u.child[order[i - 1]].key, v->u.child[order[i]].key) == 0)
                RT_FAIL(RT_E_INPUT, "%s: JSON key \"%.200s\" appears twice in one object", ps->name,
                        v->u.child[order[i]].key);
    }
    return RT_OK;
}

static rt_status json_value(json_parser *ps, json_node *v);

static rt_status json_container(json_parser *ps, json_node *v, bool object) {
    if (++ps->depth > RT_JSON_DEPTH_MAX)
        JSON_FAIL(ps, "nested deeper than 64 levels");
    ps->at++;
    int64_t base = ps->top;
    char end = object ? '}' : ']';
    json_space(ps);
    if (!json_eat(ps, end)) {
        do {
            json_node child = {.key = NULL};
            json_space(ps);
            if (object) {
                if (ps->at >= ps->n || ps->p[ps->at] != '"')
                    JSON_FAIL(ps, "expected a key in quotes");
                const char *key = NULL;
                RT_TRY(json_string(ps, &key));
                json_space(ps);
                if (!json_eat(ps, ':'))
                    JSON_FAIL(ps, "expected ':' behind the key");
                RT_TRY(json_value(ps, &child));
                child.key = key;
            } else {
                RT_TRY(json_value(ps, &child));
            }
            RT_TRY(json_push(ps, child));
            json_space(ps);
        } while (json_eat(ps, ','));
        if (!json_eat(ps, end))
            JSON_FAIL(ps, object ? "expected ',' or '}'" : "expected ',' or ']'");
    }
    v->kind = object ? JSON_OBJECT : JSON_ARRAY;
    ps->depth--;
    return json_close(ps, v, base);
}

static rt_status json_value(json_parser *ps, json_node *v) {
    json_space(ps);
    if (ps->at >= ps->n)
        JSON_FAIL(ps, "text ends where a value is expected");
    switch (ps->p[ps->at]) {
    case '{':
        return json_container(ps, v, true);
    case '[':
        return json_container(ps, v, false);
    case '"':
        v->kind = JSON_STR;
        return json_string(ps, &v->u.s);
    case 't':
    case 'f':
    case 'n':
        return json_word(ps, v);
    default:
        return json_number(ps, v);
    }
}

/* A value costs up to a hundred bytes, its text perhaps two: counted before anything is taken. Every value but the
 * first follows a comma or an opening bracket; those in strings count, too. */
static bool json_has_too_many(const char *text, size_t n) {
    size_t values = 1;
    for (size_t i = 0; i < n; i++)
        values += text[i] == ',' || text[i] == '[' || text[i] == '{';
    return values > RT_JSON_VALUES_MAX;
}

rt_status rt_jdoc_parse(rt_jdoc **out, const char *text, size_t n, const char *name) {
    *out = NULL;
    rt_jdoc *d = NULL;
    size_t bytes = 0;
    RT_FAIL_IF(!rt_size_add(n, 1, &bytes), RT_E_INPUT, "%s: JSON text is too long", name);
    RT_FAIL_IF(json_has_too_many(text, n), RT_E_INPUT, "%s: JSON of more than %d values", name,
               RT_JSON_VALUES_MAX);
    RT_TRY(rt_calloc(&d, 1, sizeof *d));
    rt_arena_init(&d->arena);
    json_parser ps = {.doc = d, .n = n, .row = 1, .name = name};
    rt_status st = RT_OK;
    RT_TRY_GOTO(rt_alloc(&d->text, bytes));
    if (n > 0)
        memcpy(d->text, text, n);
    d->text[n] = 0;
    ps.p = d->text;
    RT_TRY_GOTO(json_value(&ps, &d->root));
    json_space(&ps);
    if (ps.at != n)
        st = json_fail(&ps, __LINE__, "text behind the value");
done:
    rt_free(ps.stack);
    if (st != RT_OK)
        rt_jdoc_destroy(&d);
    *out = d;
    return st;
}

void rt_jdoc_destroy(rt_jdoc **d) {
    if (d == NULL || *d == NULL)
        return;
    rt_arena_deinit(&(*d)->arena);
    rt_free((*d)->text);
    rt_free(*d);
    *d = NULL;
}

rt_status rt_jdoc_read(rt_jdoc **out, const char *path) {
    enum { MAX_BYTES = 64 << 20 };
    uint8_t *text = NULL;
    size_t n;
    *out = NULL;
    rt_status st = rt_file_read(path, MAX_BYTES, &text, &n);
    if (st == RT_OK)
        st = rt_jdoc_parse(out, (const char *)text, n, path);
    rt_free(text);
    return st;
}

rt_jval rt_jdoc_root(const rt_jdoc *d) {
    return d ? &d->root : NULL;
}

static const json_node *json_of(rt_jval v, json_kind kind) {
    const json_node *n = v;
    return n && n->kind == kind ? n : NULL;
}

bool rt_jval_is_array(rt_jval v) {
    return json_of(v, JSON_ARRAY) != NULL;
}

bool rt_jval_is_object(rt_jval v) {
    return json_of(v, JSON_OBJECT) != NULL;
}

rt_jval rt_jval_get(rt_jval object, const char *key) {
    const json_node *o = json_of(object, JSON_OBJECT);
    if (o == NULL || o->count == 0)
        return NULL;
    const int64_t *order = (const int64_t *)(o->u.child + o->count);
    int64_t lo = 0, hi = o->count;
    while (lo < hi) {
        int64_t mid = lo + (hi - lo) / 2;
        int c = strcmp(o->u.child[order[mid]].key, key);
        if (c == 0)
            return &o->u.child[order[mid]];
        if (c < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return NULL;
}

rt_jval rt_jval_at(rt_jval array, int64_t i) {
    const json_node *a = array;
    if (rt_jval_len(array) <= i || i < 0)
        return NULL;
    return &a->u.child[i];
}

int64_t rt_jval_len(rt_jval v) {
    const json_node *n = v;
    return n && (n->kind == JSON_ARRAY || n->kind == JSON_OBJECT) ? n->count : -1;
}

const char *rt_jval_key(rt_jval object, int64_t i) {
    const json_node *o = json_of(object, JSON_OBJECT);
    return o && i >= 0 && i < o->count ? o->u.child[i].key : NULL;
}

bool rt_jval_str(rt_jval v, const char **out) {
    const json_node *n = json_of(v, JSON_STR);
    if (n)
        *out = n->u.s;
    return n != NULL;
}

bool rt_jval_i64(rt_jval v, int64_t *out) {
    const json_node *n = json_of(v, JSON_INT);
    if (n)
        *out = n->u.i;
    return n != NULL;
}

bool rt_jval_f64(rt_jval v, double *out) {
    const json_node *n = v;
    if (n == NULL || (n->kind != JSON_INT && n->kind != JSON_REAL))
        return false;
    *out = n->kind == JSON_INT ? (double)n->u.i : n->u.f;
    return true;
}

bool rt_jval_bool(rt_jval v, bool *out) {
    const json_node *n = json_of(v, JSON_BOOL);
    if (n)
        *out = n->u.b;
    return n != NULL;
}
