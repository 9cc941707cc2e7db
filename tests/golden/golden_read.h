/*
 * golden_read.h - the numbers of a golden file: cases of named arrays.
 *
 *     case NAME
 *     key count number ...
 *     end
 */
#ifndef RT_TESTS_GOLDEN_READ_H
#define RT_TESTS_GOLDEN_READ_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/compiler.h"
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { GOLDEN_KEYS = 32, GOLDEN_NUMBERS = 4096, GOLDEN_NAME = 32 };

typedef struct golden_case {
    char name[GOLDEN_NAME];
    int line; /* of the file, for messages */
    int nkeys, used;
    struct {
        char name[GOLDEN_NAME];
        int count;
        const double *v;
    } key[GOLDEN_KEYS];
    double numbers[GOLDEN_NUMBERS];
} golden_case;

/* Opens tests/golden/<name>. */
static inline FILE *golden_open(const char *name) {
    char path[512];
    snprintf(path, sizeof path, "%s/tests/golden/%s", RT_SOURCE_DIR, name);
    FILE *f = fopen(path, "r");
    if (f == NULL)
        fail_msg("cannot open %s", path);
    return f;
}

/* The next case; false at the end of the file. *line counts lines from 0. */
static inline bool golden_next(golden_case *c, FILE *f, int *line) {
    char word[GOLDEN_NAME];
    memset(c, 0, sizeof *c);
    for (;;) { /* a comment is a line of its own */
        if (fscanf(f, "%31s", word) != 1)
            return false;
        ++*line;
        if (strcmp(word, "case") == 0)
            break;
        for (int ch = 0; ch != '\n' && ch != EOF;)
            ch = fgetc(f);
    }
    assert_int_equal(fscanf(f, "%31s", c->name), 1);
    c->line = *line;
    while (fscanf(f, "%31s", word) == 1) {
        ++*line;
        if (strcmp(word, "end") == 0)
            return true;
        assert_in_range(c->nkeys, 0, GOLDEN_KEYS - 1);
        const int k = c->nkeys++;
        memcpy(c->key[k].name, word, sizeof word);
        assert_int_equal(fscanf(f, "%d", &c->key[k].count), 1);
        assert_in_range(c->key[k].count, 0, GOLDEN_NUMBERS - c->used);
        c->key[k].v = c->numbers + c->used;
        for (int i = 0; i < c->key[k].count; i++)
            assert_int_equal(fscanf(f, "%lf", &c->numbers[c->used++]), 1);
    }
    fail_msg("case %s, line %d, has no end", c->name, c->line);
    return false;
}

/* NULL: the case has no such key. */
static inline const double *golden_get(const golden_case *c, const char *key, int count) {
    for (int k = 0; k < c->nkeys; k++)
        if (strcmp(c->key[k].name, key) == 0) {
            if (c->key[k].count != count)
                fail_msg("case %s, line %d: %s has %d numbers, wanted %d", c->name, c->line, key,
                         c->key[k].count, count);
            return c->key[k].v;
        }
    return NULL;
}

#endif
