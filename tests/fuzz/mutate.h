/*
 * mutate.h - changes to a file or a text that a careless program, a broken disk or an attacker would make.
 *
 * A mutation is a pure function of the intact input (a seed), another one to splice with, and a row of dice,
 * which are counter-based (base/rng.h): the same family, round and seed give the same bytes on every machine.
 * All edits of spans are one primitive, fuzz_replace. Edits of text know what text is made of: numbers become
 * others that are too large, too small or no numbers; words and lines move; brackets, quotes and escapes
 * appear where none should be.
 *
 * Memory comes from malloc, not from base/alloc, whose counters are for the code under test.
 */
#ifndef RT_TESTS_FUZZ_MUTATE_H
#define RT_TESTS_FUZZ_MUTATE_H

#include "base/compiler.h"
#include "base/rng.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { FUZZ_BYTES_MAX = 1 << 17 };

typedef struct fuzz_dice {
    rt_rng rng;
    uint64_t at;
} fuzz_dice;

typedef struct fuzz_bytes {
    uint8_t *p; /* n bytes, and a NUL behind them */
    size_t n;
} fuzz_bytes;

static inline uint64_t fuzz_below(fuzz_dice *d, uint64_t n) {
    return n ? rt_rng_below(d->rng, d->at++, n) : 0;
}

static inline bool fuzz_chance(fuzz_dice *d, uint64_t one_in) {
    return fuzz_below(d, one_in) == 0;
}

/* Mostly short lengths, up to n. */
static inline size_t fuzz_length(fuzz_dice *d, size_t n) {
    const uint64_t most = fuzz_chance(d, 4) ? n : RT_MIN(n, (size_t)16);
    return (size_t)fuzz_below(d, most + 1);
}

/* b[at, at + gone) becomes the n bytes of `with`, which may be part of b. What would grow too long stays. */
static inline void fuzz_replace(fuzz_bytes *b, size_t at, size_t gone, const void *with, size_t n) {
    const size_t rest = b->n - at - gone, size = at + n + rest;
    if (size > FUZZ_BYTES_MAX && n > gone)
        return;
    uint8_t *p = malloc(size + 1);
    if (!p)
        abort();
    if (at)
        memcpy(p, b->p, at);
    if (n)
        memcpy(p + at, with, n);
    if (rest)
        memcpy(p + at + n, b->p + at + gone, rest);
    p[size] = 0;
    free(b->p);
    *b = (fuzz_bytes){.p = p, .n = size};
}

static inline fuzz_bytes fuzz_copy(const void *p, size_t n) {
    fuzz_bytes b = {.p = NULL, .n = 0};
    fuzz_replace(&b, 0, 0, p, n);
    return b;
}

static inline void fuzz_free(fuzz_bytes *b) {
    free(b->p);
    *b = (fuzz_bytes){.p = NULL};
}

/* ---- bytes ---- */

static inline void fuzz_flip(fuzz_bytes *b, fuzz_dice *d) {
    if (b->n)
        b->p[fuzz_below(d, b->n)] ^= (uint8_t)(1u << fuzz_below(d, 8));
}

static inline void fuzz_set_byte(fuzz_bytes *b, fuzz_dice *d) {
    static const uint8_t values[] = {0,   1,    0x7f, 0x80, 0xff, 0xfe, '\n', '\r',
                                     '"', '\\', ',',  ':',  '-',  '0',  '9'};
    if (b->n)
        b->p[fuzz_below(d, b->n)] =
            fuzz_chance(d, 3) ? (uint8_t)fuzz_below(d, 256) : values[fuzz_below(d, sizeof values)];
}

/* A whole number of 2, 4 or 8 bytes, in either order, at the edge of something. */
static inline void fuzz_set_number(fuzz_bytes *b, fuzz_dice *d) {
    const uint64_t edges[] = {0,          1,      2,          0x7f,        0x80,        0xff,
                              0x7fff,     0xffff, 0x7fffffff, 0x80000000u, 0xffffffffu, UINT64_MAX >> 1,
                              UINT64_MAX, b->n,   b->n + 1,   b->n - 1,    100000000,   65536};
    const size_t size = (size_t)2 << fuzz_below(d, 3);
    if (b->n < size)
        return;
    const uint64_t v = edges[fuzz_below(d, sizeof edges / sizeof *edges)];
    uint8_t *p = b->p + (fuzz_chance(d, 3) ? 0 : fuzz_below(d, b->n - size + 1));
    const bool big = fuzz_chance(d, 2);
    for (size_t i = 0; i < size; i++)
        p[big ? size - 1 - i : i] = (uint8_t)(v >> (8 * i));
}

static inline void fuzz_truncate(fuzz_bytes *b, fuzz_dice *d) {
    const size_t at = (size_t)fuzz_below(d, b->n + 1);
    if (fuzz_chance(d, 8))
        fuzz_replace(b, 0, at, NULL, 0);
    else
        fuzz_replace(b, at, b->n - at, NULL, 0);
}

static inline void fuzz_remove(fuzz_bytes *b, fuzz_dice *d) {
    const size_t at = (size_t)fuzz_below(d, b->n + 1);
    fuzz_replace(b, at, fuzz_length(d, b->n - at), NULL, 0);
}

/* A span of `from` (b itself, or another seed) put in, or put over what is there. */
static inline void fuzz_graft(fuzz_bytes *b, const fuzz_bytes *from, fuzz_dice *d) {
    const size_t src = (size_t)fuzz_below(d, from->n + 1), n = fuzz_length(d, from->n - src);
    const size_t at = (size_t)fuzz_below(d, b->n + 1);
    fuzz_replace(b, at, fuzz_chance(d, 2) ? RT_MIN(n, b->n - at) : 0, from->p + src, n);
}

/* The same span many times over. */
static inline void fuzz_repeat(fuzz_bytes *b, fuzz_dice *d) {
    const size_t at = (size_t)fuzz_below(d, b->n + 1), n = fuzz_length(d, b->n - at);
    for (uint64_t k = (uint64_t)1 << fuzz_below(d, 8); k && b->n < FUZZ_BYTES_MAX / 4; k--)
        fuzz_replace(b, at, 0, b->p + at, n);
}

static inline void fuzz_splice(fuzz_bytes *b, const fuzz_bytes *other, fuzz_dice *d) {
    const size_t at = (size_t)fuzz_below(d, b->n + 1), from = (size_t)fuzz_below(d, other->n + 1);
    fuzz_replace(b, at, b->n - at, other->p + from, other->n - from);
}

/* ---- text ---- */

static inline bool fuzz_is_digit(uint8_t c) {
    return c >= '0' && c <= '9';
}
static inline bool fuzz_is_word(uint8_t c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c >= 0x80;
}

/* The first run, at or behind a random place, of bytes that `is` holds for; false if there is none. */
static inline bool fuzz_find_run(const fuzz_bytes *b, fuzz_dice *d, bool (*is)(uint8_t), size_t *at,
                                 size_t *n) {
    const size_t start = (size_t)fuzz_below(d, b->n);
    for (size_t k = 0; k < b->n; k++) {
        size_t i = (start + k) % b->n;
        if (!is(b->p[i]))
            continue;
        while (i > 0 && is(b->p[i - 1]))
            i--;
        *at = i;
        for (*n = 1; i + *n < b->n && is(b->p[i + *n]);)
            ++*n;
        return true;
    }
    return false;
}

static inline void fuzz_text_number(fuzz_bytes *b, fuzz_dice *d) {
    static const char *const numbers[] = {"0",
                                          "1",
                                          "2",
                                          "-1",
                                          "-0",
                                          "00",
                                          "007",
                                          "1.",
                                          ".5",
                                          "0.5",
                                          "1e",
                                          "1e3",
                                          "1e-400",
                                          "1e308",
                                          "-1e308",
                                          "1e309",
                                          "1e1000000000",
                                          "NaN",
                                          "nan",
                                          "inf",
                                          "-inf",
                                          "Infinity",
                                          "255",
                                          "256",
                                          "4095",
                                          "4096",
                                          "65535",
                                          "65536",
                                          "100000",
                                          "1000000",
                                          "16777216",
                                          "2147483647",
                                          "2147483648",
                                          "-2147483648",
                                          "4294967295",
                                          "4294967296",
                                          "1152921504606846976",
                                          "4611686018427387904",
                                          "9223372036854775807",
                                          "9223372036854775808",
                                          "-9223372036854775808",
                                          "-9223372036854775809",
                                          "18446744073709551615",
                                          "18446744073709551616",
                                          "123456789012345678901234567890123456789012345678901234567890",
                                          "0.1e+",
                                          "0x10",
                                          "1_000",
                                          "1,5",
                                          "+3",
                                          "1..9223372036854775807",
                                          "9223372036854775800..9223372036854775807",
                                          "-5..5"};
    size_t at, n;
    if (!fuzz_find_run(b, d, fuzz_is_digit, &at, &n))
        return;
    if (fuzz_chance(d, 4)) { /* a neighbour of the number */
        b->p[at + fuzz_below(d, n)] = (uint8_t)('0' + fuzz_below(d, 10));
        return;
    }
    const char *with = numbers[fuzz_below(d, sizeof numbers / sizeof *numbers)];
    fuzz_replace(b, at, n, with, strlen(with));
}

static inline void fuzz_text_word(fuzz_bytes *b, const fuzz_bytes *other, fuzz_dice *d) {
    size_t at, n, from, m;
    const fuzz_bytes *source = fuzz_chance(d, 2) ? other : b;
    if (!fuzz_find_run(b, d, fuzz_is_word, &at, &n) || !fuzz_find_run(source, d, fuzz_is_word, &from, &m))
        return;
    uint8_t word[64];
    m = RT_MIN(m, sizeof word);
    memcpy(word, source->p + from, m);
    fuzz_replace(b, at, n, word, m);
}

static inline void fuzz_text_insert(fuzz_bytes *b, fuzz_dice *d) {
    static const char *const tokens[] = {"\"",
                                         "'",
                                         "{",
                                         "}",
                                         "[",
                                         "]",
                                         "{}",
                                         "[]",
                                         "(",
                                         ")",
                                         ",",
                                         ":",
                                         ";",
                                         "=",
                                         "@",
                                         "|",
                                         "&",
                                         "*",
                                         "!",
                                         "%s",
                                         "%n",
                                         "<",
                                         ">=",
                                         "/",
                                         "../",
                                         "~/",
                                         "~",
                                         "#",
                                         "-",
                                         "--",
                                         "---\n",
                                         "- ",
                                         "? ",
                                         "&a ",
                                         "*a",
                                         "!!int ",
                                         "<<: ",
                                         "${",
                                         "${x}",
                                         "${${",
                                         "}",
                                         "null",
                                         "true",
                                         "false",
                                         "\n",
                                         "\r",
                                         "\r\n",
                                         "\t",
                                         " ",
                                         "\xef\xbb\xbf",
                                         "\xff",
                                         "\xc0\x80",
                                         "\xed\xa0\x80",
                                         "\xe2\x82",
                                         "\\",
                                         "\\u0000",
                                         "\\ud800",
                                         "\\udc00\\ud800",
                                         "\\x",
                                         "1e",
                                         "0"};
    const char *token = tokens[fuzz_below(d, sizeof tokens / sizeof *tokens)];
    const size_t n = strlen(token), at = (size_t)fuzz_below(d, b->n + 1);
    for (uint64_t k = fuzz_chance(d, 8) ? fuzz_below(d, 200) : 1; k; k--)
        fuzz_replace(b, at, 0, token, n);
}

/* A value of another kind: what stands between a colon and the end of it, or the kind of a pair of brackets. */
static inline void fuzz_text_value(fuzz_bytes *b, fuzz_dice *d) {
    static const char *const values[] = {
        "[]", "{}",   "[1, 2]", "{\"a\": 1}",  "[\"a\", [\"b\"]]", "\"\"",     "null",
        "~",  "true", "-1",     "\"1..5000\"", "[[[[]]]]",         "\"${a}\"", "\"@a\""};
    const size_t start = (size_t)fuzz_below(d, b->n + 1);
    const uint8_t *colon = memchr(b->p + start, ':', b->n - start), *open = NULL;
    if (fuzz_chance(d, 2)) { /* the bracket that opens at or behind the place, and the one that closes it */
        int depth = 0;
        for (uint8_t *p = b->p + start; p < b->p + b->n; p++) {
            const bool opens = *p == '{' || *p == '[', closes = *p == '}' || *p == ']';
            if (!open && opens)
                open = p;
            depth += open && opens;
            depth -= open && closes;
            if (open && closes && depth == 0) {
                b->p[open - b->p] = *open == '{' ? '[' : '{';
                *p = *p == '}' ? ']' : '}';
                return;
            }
        }
        return;
    }
    if (!colon)
        return;
    const size_t at = (size_t)(colon - b->p) + 1;
    size_t n = 0;
    for (int depth = 0; at + n < b->n; n++) {
        const uint8_t c = b->p[at + n];
        depth += c == '{' || c == '[';
        if (depth == 0 && (c == ',' || c == '}' || c == ']' || c == '\n'))
            break;
        depth -= c == '}' || c == ']';
    }
    const char *with = values[fuzz_below(d, sizeof values / sizeof *values)];
    fuzz_replace(b, at, n, with, strlen(with));
    fuzz_replace(b, at, 0, " ", 1);
}

static inline size_t fuzz_line_start(const fuzz_bytes *b, size_t at) {
    while (at > 0 && b->p[at - 1] != '\n')
        at--;
    return at;
}

/* A line goes, comes twice, or comes elsewhere. */
static inline void fuzz_text_line(fuzz_bytes *b, fuzz_dice *d) {
    const size_t at = fuzz_line_start(b, (size_t)fuzz_below(d, b->n + 1));
    const uint8_t *stop = memchr(b->p + at, '\n', b->n - at);
    const size_t n = stop ? (size_t)(stop - b->p) - at + 1 : b->n - at;
    const uint64_t way = fuzz_below(d, 3);
    if (way == 0)
        fuzz_replace(b, at, n, NULL, 0);
    else if (way == 1)
        fuzz_replace(b, at, 0, b->p + at, n);
    else
        fuzz_replace(b, fuzz_line_start(b, (size_t)fuzz_below(d, b->n + 1)), 0, b->p + at, n);
}

/* ---- one to four of them ---- */

static inline void fuzz_mutate_once(fuzz_bytes *b, const fuzz_bytes *other, fuzz_dice *d, bool text) {
    const uint64_t kinds = 9, choice = fuzz_below(d, kinds + (text ? 12 : 1));
    switch (choice) {
    case 0:
        fuzz_flip(b, d);
        break;
    case 1:
        fuzz_set_byte(b, d);
        break;
    case 2:
        fuzz_set_number(b, d);
        break;
    case 3:
        fuzz_truncate(b, d);
        break;
    case 4:
        fuzz_remove(b, d);
        break;
    case 5:
        fuzz_graft(b, b, d);
        break;
    case 6:
        fuzz_graft(b, other, d);
        break;
    case 7:
        fuzz_repeat(b, d);
        break;
    case 8:
        fuzz_splice(b, other, d);
        break;
    case 9:
    case 10:
    case 11:
        fuzz_text_number(b, d);
        break;
    case 12:
    case 13:
        fuzz_text_word(b, other, d);
        break;
    case 14:
    case 15:
        fuzz_text_line(b, d);
        break;
    case 16:
    case 17:
        fuzz_text_insert(b, d);
        break;
    default:
        fuzz_text_value(b, d);
        break;
    }
}

static inline void fuzz_mutate(fuzz_bytes *b, const fuzz_bytes *other, fuzz_dice *d, bool text) {
    do
        fuzz_mutate_once(b, other, d, text);
    while (fuzz_chance(d, 2));
}

#endif
