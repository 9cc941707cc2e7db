/*
 * vec_dropout.c - the random bits of dropout masks, V_W blocks of Philox4x32-10 at a time.
 *
 * The same function as rt_rng_block (base/rng.h), lane by lane: lane j of c0 .. c3 is the state of block j.
 * At the end the four words of a block are brought together by two rounds of interleaving, so that words come
 * out in the order of the element indices.
 */
#include "kern/vec/vec_chain.h"

RT_INLINE void store_words(uint32_t *dst, vu c0, vu c1, vu c2, vu c3) {
    const vi even0 = vi_zip_lo((vi)c0, (vi)c2), even1 = vi_zip_hi((vi)c0, (vi)c2);
    const vi odd0 = vi_zip_lo((vi)c1, (vi)c3), odd1 = vi_zip_hi((vi)c1, (vi)c3);
    vi_any *to = (vi_any *)(void *)dst;
    to[0] = vi_zip_lo(even0, odd0);
    to[1] = vi_zip_hi(even0, odd0);
    to[2] = vi_zip_lo(even1, odd1);
    to[3] = vi_zip_hi(even1, odd1);
}

enum { ROUNDS = 10 };

void RT_V(rt_k_dropout_blocks)(uint32_t *dst, rt_rng rng, uint64_t first, int64_t per, int64_t stride,
                               int64_t count) {
    /* lanes: their distance from the first block of a batch of V_W; batches: how far apart */
    const bool runs = per <= V_W && per < count;
    RT_ASSERT(!runs || V_W % per == 0);
    const uint64_t advance = runs ? (uint64_t)(V_W / per * stride) : V_W;
    uint32_t lane[V_W];
    for (int i = 0; i < V_W; i++)
        lane[i] = (uint32_t)(runs ? i / per * stride + i % per : i);
    vu offset, key0[ROUNDS], key1[ROUNDS];
    memcpy(&offset, lane, sizeof(offset));
    for (int r = 0; r < ROUNDS; r++) {
        key0[r] = (vu)vi_set((int32_t)((uint32_t)rng.seed + (uint32_t)r * UINT32_C(0x9E3779B9)));
        key1[r] = (vu)vi_set((int32_t)((uint32_t)(rng.seed >> 32) + (uint32_t)r * UINT32_C(0xBB67AE85)));
    }
    const vu stream0 = (vu)vi_set((int32_t)(uint32_t)rng.stream);
    const vu stream1 = (vu)vi_set((int32_t)(uint32_t)(rng.stream >> 32));
    for (int64_t j = 0; j < count; j += V_W, dst += 4 * V_W, first += advance) {
        const vu low = (vu)vi_set((int32_t)(uint32_t)first),
                 high = (vu)vi_set((int32_t)(uint32_t)(first >> 32));
        vu c0 = low + offset, c1 = high - (vu)(c0 < low); /* a comparison gives -1: the carry */
        vu c2 = stream0, c3 = stream1;
        for (int r = 0; r < ROUNDS; r++) {
            vu hi0, lo0, hi1, lo1;
            v_mul_wide(c0, UINT32_C(0xD2511F53), &hi0, &lo0);
            v_mul_wide(c2, UINT32_C(0xCD9E8D57), &hi1, &lo1);
            c0 = hi1 ^ c1 ^ key0[r];
            c2 = hi0 ^ c3 ^ key1[r];
            c1 = lo1;
            c3 = lo0;
        }
        store_words(dst, c0, c1, c2, c3);
    }
}
