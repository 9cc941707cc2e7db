/*
 * containers.h - mutations that know the outside of a format, so that the inside is reached.
 *
 * A safetensors file whose header grew by a byte is refused at its length, a PNG with a changed byte at its
 * checksum, a packed file at its first wrong bit. Here the part that is meant is mutated, and lengths,
 * checksums and packing are made to fit again, most of the time.
 */
#ifndef RT_TESTS_FUZZ_CONTAINERS_H
#define RT_TESTS_FUZZ_CONTAINERS_H

#include "fuzz/fuzz.h"
#include "io/io_int.h"

/* Bytes [at, at + n) as a buffer of their own. */
static inline fuzz_bytes fuzz_part(const fuzz_bytes *b, size_t at, size_t n) {
    at = RT_MIN(at, b->n);
    return fuzz_copy(b->p + at, RT_MIN(n, b->n - at));
}

static inline void fuzz_put_le(uint8_t *p, uint64_t v, size_t size) {
    for (size_t i = 0; i < size; i++)
        p[i] = (uint8_t)(v >> (8 * i));
}

static inline uint64_t fuzz_get_le(const uint8_t *p, size_t size) {
    uint64_t v = 0;
    for (size_t i = 0; i < size; i++)
        v |= (uint64_t)p[i] << (8 * i);
    return v;
}

/* A text of `length` bytes at `at`, whose length stands in the `size` bytes before it. */
static inline void fuzz_mutate_header(fuzz_bytes *b, const fuzz_bytes *other, fuzz_dice *d, size_t at,
                                      size_t size) {
    if (b->n < at || other->n < at || fuzz_chance(d, 4)) {
        fuzz_mutate(b, other, d, true);
        return;
    }
    const size_t length = RT_MIN((size_t)fuzz_get_le(b->p + at - size, size), b->n - at);
    fuzz_bytes header = fuzz_part(b, at, length);
    fuzz_bytes with = fuzz_part(other, at, (size_t)fuzz_get_le(other->p + at - size, size));
    fuzz_mutate(&header, &with, d, true);
    fuzz_replace(b, at, length, header.p, header.n);
    fuzz_put_le(b->p + at - size, header.n, size);
    fuzz_free(&header);
    fuzz_free(&with);
}

static inline void fuzz_mutate_npy(fuzz_bytes *b, int seed, const fuzz_bytes *other, fuzz_dice *d) {
    (void)seed;
    fuzz_mutate_header(b, other, d, 10, 2);
}

static inline void fuzz_mutate_safetensors(fuzz_bytes *b, int seed, const fuzz_bytes *other, fuzz_dice *d) {
    (void)seed;
    fuzz_mutate_header(b, other, d, 8, 8);
}

/* ---- PNG: the checksum of every chunk ---- */

static inline void fuzz_mutate_png(fuzz_bytes *b, int seed, const fuzz_bytes *other, fuzz_dice *d) {
    (void)seed;
    fuzz_mutate(b, other, d, false);
    if (fuzz_chance(d, 4))
        return;
    for (size_t at = 8; at + 12 <= b->n;) {
        const uint8_t *p = b->p + at;
        const size_t n = ((size_t)p[0] << 24) + ((size_t)p[1] << 16) + ((size_t)p[2] << 8) + p[3];
        if (n > b->n - at - 12)
            return;
        const unsigned long crc = crc32(0, p + 4, (unsigned)n + 4);
        for (size_t i = 0; i < 4; i++)
            b->p[at + 8 + n + i] = (uint8_t)(crc >> (24 - 8 * i));
        at += n + 12;
    }
}

/* ---- packed files ---- */

static inline uint8_t *fuzz_pack_xz(const void *src, size_t n, size_t *out_n) {
    const size_t cap = n + n / 100 + 4096;
    uint8_t *out = malloc(cap);
    assert_non_null(out);
    *out_n = 0;
    assert_int_equal(lzma_easy_buffer_encode(0, LZMA_CHECK_CRC32, NULL, src, n, out, out_n, cap), LZMA_OK);
    return out;
}

/* Unpacks, mutates, packs again; sometimes mutates what is packed. */
static inline void fuzz_mutate_packed(fuzz_bytes *b, const fuzz_bytes *other, fuzz_dice *d, bool text) {
    uint8_t *plain = NULL, *packed;
    size_t n = 0;
    const bool xz = b->p[0] != 0x1f;
    if (fuzz_chance(d, 2)) {
        fuzz_mutate(b, other, d, text);
        return;
    }
    assert_ok(rt_bytes_decode(b->p, b->n, "seed", 1 << 24, &plain, &n));
    fuzz_bytes inside = fuzz_copy(plain, n);
    rt_free(plain);
    fuzz_mutate(&inside, &inside, d, text);
    packed = xz ? fuzz_pack_xz(inside.p, inside.n, &n) : pack_gzip(inside.p, inside.n, &n);
    fuzz_replace(b, 0, b->n, packed, n);
    free(packed);
    fuzz_free(&inside);
}

#endif
