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

void RT_V(rt_k_dropout_blocks)(uint32_t *dst, rt_rng rng, uint64_t first, int64_t per, int64_t stride,
                               int64_t count) {
    int64_t in_run = 0;
    uint64_t run = first;
    for (int64_t j = 0; j < count; j += V_W, dst += 4 * V_W) {
        uint32_t lo[V_W], hi[V_W];
        for (int i = 0; i < V_W; i++) {
            const uint64_t block = run + (uint64_t)in_run;
            lo[i] = (uint32_t)block;
            hi[i] = (uint32_t)(block >> 32);
            if (++in_run == per) {
                in_run = 0;
                run += (uint64_t)stride;
            }
        }
        vu c0, c1;
        memcpy(&c0, lo, sizeof(c0));
        memcpy(&c1, hi, sizeof(c1));
        vu c2 = (vu)vi_set((int32_t)(uint32_t)rng.stream),
           c3 = (vu)vi_set((int32_t)(uint32_t)(rng.stream >> 32));
        uint32_t k0 = (uint32_t)rng.seed, k1 = (uint32_t)(rng.seed >> 32);
        for (int round = 0; round < 10; round++) {
            vu hi0, lo0, hi1, lo1;
            v_mul_wide(c0, UINT32_C(0xD2511F53), &hi0, &lo0);
            v_mul_wide(c2, UINT32_C(0xCD9E8D57), &hi1, &lo1);
            c0 = hi1 ^ c1 ^ k0;
            c2 = hi0 ^ c3 ^ k1;
            c1 = lo1;
            c3 = lo0;
            k0 += UINT32_C(0x9E3779B9);
            k1 += UINT32_C(0xBB67AE85);
        }
        store_words(dst, c0, c1, c2, c3);
    }
}
