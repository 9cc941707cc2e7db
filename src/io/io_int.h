/*
 * io_int.h - what the files of io share: the parsers as functions of bytes in memory. The public readers are
 * these behind a file; tests and fuzzers call them without a disk.
 */
#ifndef RT_IO_IO_INT_H
#define RT_IO_IO_INT_H

#include "io/io.h"

enum {
    RT_ST_HEADER_MAX = 100000000, /* bytes of a safetensors header, as the reference library */
    RT_NPY_HEADER_MAX = 65536,
    RT_JSON_DEPTH_MAX = 64,
    RT_JSON_VALUES_MAX = 1 << 20,
};

/* Unpacks gzip or xz; *data is a new block with a NUL behind it. Other bytes: *data = NULL and RT_OK, use src
 * as it is. */
rt_status rt_bytes_decode(const uint8_t *src, size_t n, const char *name, size_t max_bytes, uint8_t **data,
                          size_t *out_n) RT_MUST_CHECK;
rt_status rt_bytes_decode_as(const uint8_t *src, size_t n, const char *name, size_t max_bytes,
                             rt_bytes_header header, uint8_t **data, size_t *out_n) RT_MUST_CHECK;
/* Takes ownership of `file` (rt_alloc'ed), whatever happens. */
rt_status rt_safetensors_decode_take(rt_safetensors **out, uint8_t *file, size_t n,
                                     const char *name) RT_MUST_CHECK;
rt_status rt_npy_decode(rt_npy *out, const uint8_t *src, size_t n, const char *name) RT_MUST_CHECK;

#endif
