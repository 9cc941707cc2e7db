/*
 * kern_dropout.h - which element of a dropout mask gets which random bits.
 *
 * The index of an element counts (global row, position, channel), channels fastest: it depends on neither
 * layout, slice nor thread. A row's global number is group * batch + row0 + r. Four neighbouring indices
 * share one block of the generator, so a kernel that walks channels draws one block per four elements.
 */
#ifndef RT_KERN_KERN_DROPOUT_H
#define RT_KERN_KERN_DROPOUT_H

#include "base/rng.h"
#include "kern/kern.h"

RT_INLINE rt_rng rt_dropout_rng(const rt_attr *attr, const rt_kern_ctx *ctx) {
    return rt_rng_make(ctx->seed, RT_RNG_DROPOUT, attr->stream, ctx->step);
}

/* Global number of local row r (0 .. groups * n - 1); of a global value the row itself. */
RT_INLINE int64_t rt_dropout_row(const rt_problem *p, const rt_kern_ctx *ctx, int64_t r) {
    return p->out_groups > 0 ? r / p->n * ctx->batch + ctx->row0 + r % p->n : r;
}

/* Index of channel c at position hw of global row R, for c of C channels and HW positions. */
RT_INLINE uint64_t rt_dropout_index(int64_t R, int64_t HW, int64_t hw, int64_t C, int64_t c) {
    return (uint64_t)((R * HW + hw) * C + c);
}

/* An element is kept iff its 32 bits reach this. */
RT_INLINE uint64_t rt_dropout_threshold(double alpha) {
    const double t = alpha * 4294967296.0;
    const uint64_t lo = (uint64_t)t;
    return (double)lo < t ? lo + 1 : lo;
}

RT_INLINE bool rt_dropout_keep(rt_rng rng, uint64_t index, uint64_t threshold) {
    uint32_t bits[4];
    rt_rng_block(rng, index / 4, bits);
    return bits[index % 4] >= threshold;
}

#endif
