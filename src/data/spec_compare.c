/*
 * spec_compare.c - do two SPECs read the same rows, and do they divide them alike?
 *
 * A source without a test part of its own is divided by its SPEC. Read again with another test=, seed=, splits= or
 * split=, its test rows are rows that others were trained on. Only files can be compared by name: what a generator
 * makes of another seed is other data, and what a program lends is what it says.
 */
#include "data/data_int.h"

#include "base/file.h"

#include <fcntl.h>
#include <string.h>

static bool same_file(const char *a, const char *b) {
    struct stat x, y;
    const rt_io *io = rt_io_get();
    return strcmp(a, b) == 0 ||
           (io->fstatat(AT_FDCWD, a, &x, 0) == 0 && io->fstatat(AT_FDCWD, b, &y, 0) == 0 &&
            x.st_dev == y.st_dev && x.st_ino == y.st_ino);
}

static bool same_option(const rt_spec *a, const rt_spec *b, const char *key, const char *usual) {
    const char *x = rt_spec_get(a, key), *y = rt_spec_get(b, key);
    double u = 0, v = 0;
    x = x ? x : usual;
    y = y ? y : usual;
    return strcmp(x, y) == 0 ||
           (rt_parse_f64(x, strlen(x), false, &u) && rt_parse_f64(y, strlen(y), false, &v) && u == v);
}

static rt_spec_relation relation(const rt_spec *a, const rt_spec *b) {
    if (a->paths < 1 || b->paths < 1 || strcmp(a->kind, "memory") == 0 || strcmp(a->kind, b->kind) != 0 ||
        !same_file(a->path[0], b->path[0]) || !same_option(a, b, "x", ""))
        return RT_SPEC_OTHER;
    return same_option(a, b, "test", "0.1") && same_option(a, b, "seed", "0") &&
                   same_option(a, b, "splits", "") && same_option(a, b, "split", "0")
               ? RT_SPEC_SAME
               : RT_SPEC_DIVIDED;
}

rt_status rt_spec_compare(rt_spec_relation *out, const char *a, const char *b) {
    rt_spec x, y;
    *out = strcmp(a, b) == 0 ? RT_SPEC_SAME : RT_SPEC_OTHER;
    if (*out == RT_SPEC_SAME)
        return RT_OK;
    RT_TRY(rt_spec_parse(&x, a));
    rt_status st = rt_spec_parse(&y, b);
    if (st == RT_OK)
        *out = relation(&x, &y);
    rt_spec_deinit(&x);
    rt_spec_deinit(&y);
    return st;
}
