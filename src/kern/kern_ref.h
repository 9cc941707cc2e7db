/*
 * kern_ref.h - the reference kernels: rt_ref_<name>_f32 and rt_ref_<name>_f64 for every line of op.def.
 *
 * They are the oracle of all other kernels and the last candidate of every operation, so they are plain loops
 * that follow op.def word by word. All but REORDER want PLAIN layouts. The f32 versions compute and sum in
 * double and round once. Operations that only move data go by the element size of the output, so they serve
 * i32 values too.
 */
#ifndef RT_KERN_KERN_REF_H
#define RT_KERN_KERN_REF_H

#include "kern/kern.h"

#define RT_REF_ARGS                                                                                          \
    const void *state RT_UNUSED, const rt_problem *p RT_UNUSED, void *out RT_UNUSED,                         \
        const void *const *in RT_UNUSED, const rt_kern_ctx *ctx RT_UNUSED

#define RT_OP(ID, name, arity, infer, grad, flags, meaning)                                                  \
    void rt_ref_##name##_f32(RT_REF_ARGS);                                                                   \
    void rt_ref_##name##_f64(RT_REF_ARGS);
#include "op/op.def"
#undef RT_OP

/* Bytes of ctx->scratch a reference kernel needs: matrices in double for linear algebra and quadratic
 * programs, and the like; else 0. False: overflow. */
bool rt_ref_scratch(const rt_problem *p, size_t *bytes);
/* Which step of a FUSED_CONV's chain is the convolution. */
int rt_ref_conv_step(const rt_chain *chain);

#endif
