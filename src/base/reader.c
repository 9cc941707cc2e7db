/*
 * reader.c - bounded reading of binary data. Nothing is copied and no length is trusted: `n > n_total - at`
 * cannot overflow, unlike `at + n > n_total`.
 */
#include "base/reader.h"

void rt_reader_init(rt_reader *r, const void *data, size_t n, const char *name) {
    *r = (rt_reader){.p = data, .n = n, .name = name};
}

size_t rt_reader_left(const rt_reader *r) {
    return r->n - r->at;
}

rt_status rt_reader_bytes(rt_reader *r, const uint8_t **out, size_t n) {
    *out = NULL;
    RT_FAIL_IF(n > rt_reader_left(r), RT_E_INPUT, "%s: truncated: %zu bytes wanted at offset %zu, %zu left",
               r->name, n, r->at, rt_reader_left(r));
    *out = r->p + r->at;
    r->at += n;
    return RT_OK;
}

/* Little-endian number of n <= 8 bytes. */
static rt_status read_le(rt_reader *r, uint64_t *out, size_t n) {
    const uint8_t *p;
    RT_TRY(rt_reader_bytes(r, &p, n));
    uint64_t v = 0;
    for (size_t i = n; i-- > 0;)
        v = v << 8 | p[i];
    *out = v;
    return RT_OK;
}

rt_status rt_reader_u8(rt_reader *r, uint8_t *out) {
    uint64_t v;
    RT_TRY(read_le(r, &v, 1));
    *out = (uint8_t)v;
    return RT_OK;
}

rt_status rt_reader_u16le(rt_reader *r, uint16_t *out) {
    uint64_t v;
    RT_TRY(read_le(r, &v, 2));
    *out = (uint16_t)v;
    return RT_OK;
}

rt_status rt_reader_u32le(rt_reader *r, uint32_t *out) {
    uint64_t v;
    RT_TRY(read_le(r, &v, 4));
    *out = (uint32_t)v;
    return RT_OK;
}

rt_status rt_reader_u64le(rt_reader *r, uint64_t *out) {
    return read_le(r, out, 8);
}

rt_status rt_reader_u32be(rt_reader *r, uint32_t *out) {
    const uint8_t *p;
    RT_TRY(rt_reader_bytes(r, &p, 4));
    *out = (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
    return RT_OK;
}
