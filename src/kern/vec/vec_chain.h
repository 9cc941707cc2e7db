/*
 * vec_chain.h - what the parts of the chain kernel share: the steps a chain is compiled to.
 *
 * A step maps a tile of up to CHAIN_TILE floats, in groups of 16: dst = f(x, streams). A stream is a second
 * operand: a pointer and the number of floats it advances per group, 16 for a value of the same shape or one
 * laid out like it, 0 for a pattern of 16 floats that repeats (a scalar, one channel, a block of 8 or 16
 * channels). So ADD, ADD_CHAN and ADD_ROW are one step.
 */
#ifndef RT_KERN_VEC_CHAIN_H
#define RT_KERN_VEC_CHAIN_H

#include "base/rng.h"
#include "kern/kern.h"
#include "kern/vec/simd.h"

enum { CHAIN_TILE = 1024, CHAIN_STREAMS = 5 };

typedef struct chain_stream {
    const float *p;
    int64_t step; /* 0 or V_GROUP */
} chain_stream;

typedef struct chain_par {
    float alpha, beta;
    uint32_t threshold;
} chain_par;

typedef void chain_fn(float *dst, const float *x, const chain_stream *s, int64_t groups,
                      const chain_par *par);

/* Steps; letters are the streams in order: x is the running value. */
typedef enum chain_step_id {
    STEP_COPY,
    STEP_ADD,      /* x + a */
    STEP_SUB,      /* x - a */
    STEP_RSUB,     /* a - x */
    STEP_MUL,      /* x a */
    STEP_DIV,      /* x / a */
    STEP_RDIV,     /* a / x */
    STEP_ADD_RELU, /* relu(x + a) */
    STEP_SCALE,
    STEP_RELU,
    STEP_RELU_BWD,  /* a > 0 ? x : alpha x */
    STEP_RRELU_BWD, /* x > 0 ? a : alpha a */
    STEP_EXP,
    STEP_LOG,
    STEP_SQRT,
    STEP_SQUARE,
    STEP_RECIP,
    STEP_XLOGX,
    STEP_SIGMOID,
    STEP_TANH,
    STEP_SOFTPLUS,
    STEP_CLIP,
    STEP_CLIP_BWD,  /* alpha <= a <= beta ? x : 0 */
    STEP_RCLIP_BWD, /* alpha <= x <= beta ? a : 0 */
    STEP_LGAMMA,
    STEP_DIGAMMA,
    STEP_TRIGAMMA,
    STEP_DROPOUT,         /* a: random bits */
    STEP_AFFINE,          /* a x + b */
    STEP_AFFINE_RELU,     /* relu(a x + b) */
    STEP_AFFINE_RELU_MUL, /* c relu(a x + b) */
    STEP_GAPPLY,          /* b x + c a + d */
    STEP_GAPPLY_ADD,      /* b x + c a + d + e */
    STEP_COUNT
} chain_step_id;

extern chain_fn *const RT_V(rt_k_chain_fns)[STEP_COUNT];

/* Random bits of dropout masks: `count` blocks of the generator, four words each, in runs of `per`
 * consecutive blocks whose first ones are `stride` apart: block j is first + j / per * stride + j % per. per:
 * 2, 4, or count. Writes up to 4 V_W words more. */
void RT_V(rt_k_dropout_blocks)(uint32_t *dst, rt_rng rng, uint64_t first, int64_t per, int64_t stride,
                               int64_t count);

#endif
