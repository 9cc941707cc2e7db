/*
 * data_support.h - small data files in every format, made in memory.
 */
#ifndef RT_TESTS_DATA_SUPPORT_H
#define RT_TESTS_DATA_SUPPORT_H

#include "data/data_int.h"
#include "unit/io/io_support.h"

/* IDX array of bytes: value of element i is (i * 7 + 1) % mod. */
static inline uint8_t *make_idx(const uint32_t *dims, int rank, int mod, size_t *n) {
    size_t elems = 1;
    for (int k = 0; k < rank; k++)
        elems *= dims[k];
    *n = 4 + 4 * (size_t)rank + elems;
    uint8_t *p = calloc(1, *n);
    assert_non_null(p);
    p[2] = 8;
    p[3] = (uint8_t)rank;
    for (int k = 0; k < rank; k++)
        for (int b = 0; b < 4; b++)
            p[4 + 4 * k + b] = (uint8_t)(dims[k] >> (24 - 8 * b));
    for (size_t i = 0; i < elems; i++)
        p[4 + 4 * (size_t)rank + i] = (uint8_t)((i * 7 + 1) % (size_t)mod);
    return p;
}

/* A directory in MNIST layout: `n` pictures of 3 x 4 with labels below 10. */
static inline void make_idx_part(scratch *s, const char *part, uint32_t n) {
    char name[64];
    size_t size = 0;
    const uint32_t image_dims[] = {n, 3, 4}, label_dims[] = {n};
    uint8_t *p = make_idx(image_dims, 3, 256, &size);
    snprintf(name, sizeof name, "%s-images-idx3-ubyte", part);
    scratch_write(s, name, p, size);
    free(p);
    p = make_idx(label_dims, 1, 10, &size);
    snprintf(name, sizeof name, "%s-labels-idx1-ubyte", part);
    scratch_write(s, name, p, size);
    free(p);
}

static inline rt_status open_with(rt_dataset **d, const char *kind, const char *path, const char *tail,
                                  rt_data_options o) {
    char spec[1024];
    snprintf(spec, sizeof spec, "%s:%s%s", kind, path, tail);
    return rt_dataset_open(d, spec, o);
}

/* Opens and closes; the status. */
static inline rt_status try_open(const char *spec) {
    rt_dataset *d = NULL;
    rt_status st = rt_dataset_open(&d, spec, (rt_data_options){.seed = 0});
    assert_true((st == RT_OK) == (d != NULL));
    rt_dataset_destroy(&d);
    return st;
}

/* Development data; NULL, with a word, when it is not there. RT_REQUIRE_SHARED (set by CI) makes that a failure. */
static inline const char *shared_data(const char *sub) {
    static char path[512];
    snprintf(path, sizeof path, "%s/../shared/data/%s", RT_SOURCE_DIR, sub);
    if (rt_dir_exists(path))
        return path;
    if (getenv("RT_REQUIRE_SHARED") != NULL)
        fail_msg("%s is not there", path);
    print_message("skipped: %s is not there\n", sub);
    return NULL;
}

#endif
