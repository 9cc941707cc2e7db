/*
 * reader.h - one bounded reader for all binary parsers. Every length is compared with the bytes left before
 * it is used; a short read is an RT_E_INPUT error that names the file and the offset.
 */
#ifndef RT_BASE_READER_H
#define RT_BASE_READER_H

#include "base/status.h"

typedef struct rt_reader {
    const uint8_t *p;
    size_t n, at;
    const char *name; /* for messages */
} rt_reader;

void rt_reader_init(rt_reader *r, const void *data, size_t n, const char *name);
size_t rt_reader_left(const rt_reader *r);
rt_status rt_reader_bytes(rt_reader *r, const uint8_t **out, size_t n) RT_MUST_CHECK; /* borrowed */
rt_status rt_reader_u8(rt_reader *r, uint8_t *out) RT_MUST_CHECK;
rt_status rt_reader_u16le(rt_reader *r, uint16_t *out) RT_MUST_CHECK;
rt_status rt_reader_u32le(rt_reader *r, uint32_t *out) RT_MUST_CHECK;
rt_status rt_reader_u64le(rt_reader *r, uint64_t *out) RT_MUST_CHECK;
rt_status rt_reader_u32be(rt_reader *r, uint32_t *out) RT_MUST_CHECK;

#endif
