/* sha256.h - SHA-256 (FIPS 180-4), for data and configuration fingerprints. */
#ifndef RT_BASE_SHA256_H
#define RT_BASE_SHA256_H

#include <stddef.h>
#include <stdint.h>

typedef struct rt_sha256 {
    uint32_t h[8];
    uint64_t n;
    uint8_t buf[64];
} rt_sha256;

void rt_sha256_init(rt_sha256 *s);
void rt_sha256_update(rt_sha256 *s, const void *data, size_t n);
void rt_sha256_final(rt_sha256 *s, uint8_t out[32]);
void rt_sha256_hex(const uint8_t digest[32], char out[65]);

#endif
