/*
 * io_support.h - what the tests of io and data share: a scratch directory, files written byte by byte,
 * packing with zlib and liblzma, and two tests that every reader must pass: the file cut at every byte,
 * and bytes changed.
 */
#ifndef RT_TESTS_IO_SUPPORT_H
#define RT_TESTS_IO_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>
#include <lzma.h>
#include <zlib.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/status.h"
#include "base/str.h"

typedef struct scratch {
    char dir[64];
    char path[512];
} scratch;

static inline void scratch_make(scratch *s) {
    snprintf(s->dir, sizeof s->dir, "/tmp/rt-test-XXXXXX");
    assert_non_null(mkdtemp(s->dir));
}

static inline const char *scratch_path(scratch *s, const char *name) {
    snprintf(s->path, sizeof s->path, "%s/%s", s->dir, name);
    return s->path;
}

static inline void scratch_write(scratch *s, const char *name, const void *data, size_t n) {
    FILE *f = fopen(scratch_path(s, name), "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

static inline void scratch_text(scratch *s, const char *name, const char *text) {
    scratch_write(s, name, text, strlen(text));
}

static inline void scratch_mkdir(scratch *s, const char *name) {
    assert_int_equal(mkdir(scratch_path(s, name), 0777), 0);
}

static inline void scratch_remove_tree(const char *dir) {
    char **names = NULL;
    int64_t n = 0;
    assert_int_equal(rt_dir_list(dir, &names, &n), RT_OK);
    for (int64_t i = 0; i < n; i++) {
        char *path = NULL;
        assert_int_equal(rt_path_join(&path, dir, names[i]), RT_OK);
        if (rt_dir_exists(path))
            scratch_remove_tree(path);
        else
            unlink(path);
        rt_free(path);
    }
    rt_names_free(names, n);
    rmdir(dir);
}

static inline void scratch_remove(scratch *s) {
    scratch_remove_tree(s->dir);
}

/* One directory for all tests of a program: fixtures `setup` and `teardown` of the group. */
#define SCRATCH_OF_GROUP(s)                                                                                  \
    static scratch s;                                                                                        \
    static int setup(void **state) {                                                                         \
        (void)state;                                                                                         \
        scratch_make(&s);                                                                                    \
        return 0;                                                                                            \
    }                                                                                                        \
    static int teardown(void **state) {                                                                      \
        (void)state;                                                                                         \
        scratch_remove(&s);                                                                                  \
        return 0;                                                                                            \
    }

/* Packed copies; the caller frees with free(). */
static inline uint8_t *pack_gzip(const void *src, size_t n, size_t *out_n) {
    z_stream z;
    memset(&z, 0, sizeof z);
    assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
    size_t cap = n + n / 100 + 1024;
    uint8_t *out = malloc(cap);
    assert_non_null(out);
    z.next_in = (Bytef *)(uintptr_t)src;
    z.avail_in = (uInt)n;
    z.next_out = out;
    z.avail_out = (uInt)cap;
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    *out_n = cap - z.avail_out;
    deflateEnd(&z);
    return out;
}

static inline uint8_t *pack_xz(const void *src, size_t n, size_t *out_n) {
    size_t cap = n + n / 100 + 4096;
    uint8_t *out = malloc(cap);
    assert_non_null(out);
    *out_n = 0;
    assert_int_equal(lzma_easy_buffer_encode(6, LZMA_CHECK_CRC32, NULL, src, n, out, out_n, cap), LZMA_OK);
    return out;
}

/* A reader under test: takes bytes in a block of exactly n bytes, returns its status and frees what it made.
 */
typedef rt_status (*reader_fn)(const uint8_t *data, size_t n);

static inline rt_status torment_run(reader_fn read, const uint8_t *data, size_t n) {
    uint8_t *exact = malloc(n ? n : 1);
    assert_non_null(exact);
    memcpy(exact, data, n);
    rt_status st = read(exact, n);
    free(exact);
    return st;
}

/* Every proper prefix must be refused as bad input. */
static inline void torment_truncate(reader_fn read, const uint8_t *data, size_t n) {
    for (size_t k = 0; k < n; k++) {
        rt_status st = torment_run(read, data, k);
        if (st != RT_E_INPUT)
            fail_msg("cut to %zu of %zu bytes: %s, wanted a refusal", k, n, rt_status_name(st));
    }
}

/* Any byte may be anything: accepted or refused, but never a crash, never a strange status. Returns the
 * number refused. */
static inline size_t torment_flip(reader_fn read, const uint8_t *data, size_t n) {
    static const uint8_t masks[] = {0x01, 0x80, 0xff, 0x20};
    uint8_t *copy = malloc(n);
    assert_non_null(copy);
    memcpy(copy, data, n);
    size_t refused = 0;
    for (size_t k = 0; k < n; k++)
        for (size_t m = 0; m < sizeof masks; m++) {
            copy[k] = data[k] ^ masks[m];
            rt_status st = torment_run(read, copy, n);
            if (st != RT_OK && st != RT_E_INPUT)
                fail_msg("byte %zu ^ 0x%02x: %s: %s", k, masks[m], rt_status_name(st), rt_error_text());
            refused += st == RT_E_INPUT;
            copy[k] = data[k];
        }
    free(copy);
    return refused;
}

/* live blocks before and after must agree */
static inline uint64_t live_blocks(void) {
    rt_alloc_stats s;
    rt_alloc_get_stats(&s);
    return s.live_blocks;
}

/* in double; cmocka's own works in float */
#define assert_close(a, b, tolerance)                                                                        \
    do {                                                                                                     \
        double close_a_ = (double)(a), close_b_ = (double)(b);                                               \
        if (!(close_a_ - close_b_ <= (tolerance) && close_b_ - close_a_ <= (tolerance)))                     \
            fail_msg("%s = %.17g, wanted %s = %.17g", #a, close_a_, #b, close_b_);                           \
    } while (0)

#define assert_ok(expr)                                                                                      \
    do {                                                                                                     \
        rt_status ok_ = (expr);                                                                              \
        if (ok_ != RT_OK)                                                                                    \
            fail_msg("%s: %s: %s", #expr, rt_status_name(ok_), rt_error_text());                             \
    } while (0)

#endif
