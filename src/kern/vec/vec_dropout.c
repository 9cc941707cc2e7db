/*
 * vec_dropout.c - the random bits of dropout masks, V_W blocks of Philox4x32-10 at a time.
 *
 * The same function as rt_rng_block (base/rng.h), lane by lane: lane j of c0 .. c3 is the state of block j.
 * At the end the four words of a block are brought together by two rounds of interleaving, so that words come
 * out in the order of the element indices.
 */
#include "kern/vec/vec_chain.h"

#if V_W == 16
#define LOW_HALVES                                                                                           \
    (vi) {                                                                                                   \
        0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23                                               \
    }
#define HIGH_HALVES                                                                                          \
    (vi) {                                                                                                   \
        8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31                                         \
    }
#elif V_W == 8
#define LOW_HALVES                                                                                           \
    (vi) {                                                                                                   \
        0, 8, 1, 9, 2, 10, 3, 11                                                                             \
    }
#define HIGH_HALVES                                                                                          \
    (vi) {                                                                                                   \
        4, 12, 5, 13, 6, 14, 7, 15                                                                           \
    }
#else
#define LOW_HALVES                                                                                           \
    (vi) {                                                                                                   \
        0, 4, 1, 5                                                                                           \
    }
#define HIGH_HALVES                                                                                          \
    (vi) {                                                                                                   \
        2, 6, 3, 7                                                                                           \
    }
#endif

RT_INLINE void store_words(uint32_t *dst, vu c0, vu c1, vu c2, vu c3) {
    const vu even0 = __builtin_shuffle(c0, c2, LOW_HALVES), even1 = __builtin_shuffle(c0, c2, HIGH_HALVES);
    const vu odd0 = __builtin_shuffle(c1, c3, LOW_HALVES), odd1 = __builtin_shuffle(c1, c3, HIGH_HALVES);
    *(vi_any *)(void *)(dst + 0 * V_W) = (vi)__builtin_shuffle(even0, odd0, LOW_HALVES);
    *(vi_any *)(void *)(dst + 1 * V_W) = (vi)__builtin_shuffle(even0, odd0, HIGH_HALVES);
    *(vi_any *)(void *)(dst + 2 * V_W) = (vi)__builtin_shuffle(even1, odd1, LOW_HALVES);
    *(vi_any *)(void *)(dst + 3 * V_W) = (vi)__builtin_shuffle(even1, odd1, HIGH_HALVES);
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
