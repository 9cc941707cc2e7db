/*
 * rng.h - counter-based randomness: Philox4x32-10 (Salmon et al. 2011).
 *
 * There is no generator state to save. A draw is a pure function of (seed, stream, index): the seed of the
 * run, a stream that says what the number is for, and the index of the thing it is drawn for (sample, row,
 * parameter). Hence the same result whatever the number of threads, ranks or interruptions.
 *
 * A stream is a purpose and up to two numbers (member, epoch, step, layer ...): rt_rng_stream(RT_RNG_INIT,
 * layer, 0).
 */
#ifndef RT_BASE_RNG_H
#define RT_BASE_RNG_H

#include <stdint.h>
#include <stddef.h>

/* Purposes; append only, numbers are part of reproducibility. */
typedef enum rt_rng_purpose {
    RT_RNG_INIT = 1,
    RT_RNG_SHUFFLE = 2,
    RT_RNG_AUGMENT = 3,
    RT_RNG_DROPOUT = 4,
    RT_RNG_SPLIT = 5,
    RT_RNG_DATA = 6,
    RT_RNG_PERTURB = 7,
    RT_RNG_PAIR = 8,
    RT_RNG_SEARCH = 9,
    RT_RNG_CORRUPT = 10,
    RT_RNG_BOOTSTRAP = 11,
    RT_RNG_TEST = 12,
    RT_RNG_MATCH = 13,
    RT_RNG_SINKHORN = 14,
} rt_rng_purpose;

typedef struct rt_rng {
    uint64_t seed, stream;
} rt_rng;

uint64_t rt_rng_stream(rt_rng_purpose purpose, uint64_t a, uint64_t b);
rt_rng rt_rng_make(uint64_t seed, rt_rng_purpose purpose, uint64_t a, uint64_t b);
/* Seed of member m of an ensemble with this seed; member 0 keeps the seed. */
uint64_t rt_rng_member_seed(uint64_t seed, int64_t member);

/* The block function: 128 random bits for a counter. */
void rt_rng_block(rt_rng r, uint64_t index, uint32_t out[4]);
uint64_t rt_rng_u64(rt_rng r, uint64_t index);
double rt_rng_uniform(rt_rng r, uint64_t index);             /* [0,1), 53 bits */
float rt_rng_uniform_f32(rt_rng r, uint64_t index);          /* [0,1), 24 bits */
double rt_rng_normal(rt_rng r, uint64_t index);              /* Box-Muller on own log, sin, cos */
uint64_t rt_rng_below(rt_rng r, uint64_t index, uint64_t n); /* [0,n), unbiased to 2^-64 */
/* perm[0..n) becomes a random permutation of 0..n-1 (Fisher-Yates on counters 0..n-1). */
void rt_rng_permutation(rt_rng r, int64_t *perm, int64_t n);

#endif
