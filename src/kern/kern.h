/*
 * kern.h - how an operation is computed.
 *
 * A kernel is asked once whether it supports a problem, may say which layouts it wants, prepares its state
 * and scratch size once, and then only runs: it returns nothing and allocates nothing. Problems are solved
 * by one thread; parallelism is the plan's (slices). kern.def lists kernels best first; the reference
 * kernel of op.def stands last, always there, f32 and f64, PLAIN layout.
 */
#ifndef RT_KERN_KERN_H
#define RT_KERN_KERN_H

#include "op/op.h"

typedef struct rt_problem {
    rt_op op;
    rt_attr attr;
    const rt_chain *chain; /* RT_OP_CHAIN, RT_OP_FUSED_CONV, RT_OP_FUSED_MATMUL */
    int nin;
    const rt_desc *in;
    const int32_t *in_groups; /* 0: global */
    rt_desc out;
    int32_t out_groups;
    int64_t n;    /* samples per group in this slice; batched shapes are (groups * n, ...) */
    rt_kind kind; /* of the result; SUM: this slice's part of the sum */
    bool frozen;  /* parameters stay as they are for many runs: their layout costs nothing */
} rt_problem;

/* A second problem, solved in the same run as another (rt_kern.joins). */
typedef struct rt_kern_with {
    const rt_problem *p;
    const void *state;
    void *out;
    const void *const *in;
} rt_kern_with;

typedef struct rt_kern_ctx {
    int worker;    /* < RT_POOL_MAX */
    void *scratch; /* 64-byte aligned, as large as prepare, or joins, asked */
    uint64_t seed; /* randomness: seed of the member, step, ... */
    uint64_t step;
    int64_t row0;  /* first sample of this slice in the batch */
    int64_t batch; /* samples in the whole batch: row r of group m is global row m * batch + row0 + r */
    void *side;    /* where the statistics of a FUSED_CONV go; NULL: not wanted */
    const rt_kern_with *with; /* a problem to be solved as well; NULL: none */
} rt_kern_ctx;

typedef struct rt_kern {
    const char *impl; /* "ref", "avx2", "onednn" ... */
    /* true if it can solve this problem with exactly these layouts, and is worth it */
    bool (*supports)(const rt_problem *p);
    /* in words, which problems are worth it; NULL: all it can solve */
    void (*rule)(rt_str *out);
    /* the layouts it would like for a problem whose descs are all in their current layouts: in[i], *out
     * are preset to those and may be changed. NULL: wants what `any` layout-agnostic kernel wants (see
     * plan/pass_layout.c). */
    void (*layouts)(const rt_problem *p, rt_layout *in, rt_layout *out);
    /* may be NULL: no state, no scratch */
    rt_status (*prepare)(const rt_problem *p, void **state, size_t *scratch);
    void (*release)(void *state);
    /* a FUSED_CONV's statistics are computed with it, where ctx->side says */
    bool sides;
    /* whether `other`, prepared by a kernel with this same function, is better solved together with p, to the
     * same bits; same[i] is the input of p that is input i of the other, or -1. Then scratch gets what both need.
     * Called when plans are made (other->out, ->in: NULL); may be NULL: never */
    bool (*joins)(const rt_problem *p, const void *state, const rt_kern_with *other, const int *same,
                  size_t *scratch);
    /* called once per worker before the first run on it; may be NULL */
    rt_status (*attach)(void *state, int worker);
    void (*run)(const void *state, const rt_problem *p, void *out, const void *const *in,
                const rt_kern_ctx *ctx);
} rt_kern;

/* CPU features, found once. */
typedef enum rt_isa { RT_ISA_NONE, RT_ISA_PLAIN, RT_ISA_AVX2, RT_ISA_AVX512 } rt_isa;
/* The highest the CPU supports; the environment variable RETORT_ISA=none|plain|avx2|avx512 lowers it. NONE: no
 * vector kernels of our own, oneDNN as it likes. */
rt_isa rt_cpu_isa(void);
rt_status
rt_cpu_check(void) RT_MUST_CHECK; /* fails if RETORT_ISA is none of these, which else changes nothing */
const char *rt_isa_name(rt_isa isa); /* as RETORT_ISA has it */
/* "AMD EPYC (family 26, model 2), avx512": to be noted beside figures. */
enum { RT_CPU_NAME = 96 }; /* bytes that hold any */
void rt_cpu_name(char *out, size_t size);

/* Which families of kernels may be chosen; 0 in a mask bit forbids. The reference is always allowed. */
enum { RT_KERN_VEC = 1, RT_KERN_ONEDNN = 2, RT_KERN_ALL = 3 };
/* Instead of families: kernels that give the same bits on every x86-64-v3 processor. Those are ours for AVX2 and FMA,
 * whatever more the CPU has, and the reference. rt_isa_check_v3 says whether this CPU can. */
enum { RT_KERN_V3 = 4 };
rt_status rt_isa_check_v3(void) RT_MUST_CHECK;

/* Candidates for an operation on values of type dtype, best first, those the CPU or the mask forbid left
 * out; n gets the count. The last one is the reference. */
rt_status rt_kern_list(rt_op op, rt_dtype dtype, unsigned mask, const rt_kern **list, int cap,
                       int *n) RT_MUST_CHECK;
const rt_kern *rt_kern_ref(rt_op op, rt_dtype dtype);

/* Per-thread set-up of oneDNN: one OpenMP thread. Call on every worker. */
void rt_kern_thread_init(void);

/* ---- kernels outside the graph: sums over slices, optimisers. Element ranges, so that workers can
 * share them. ---- */

/* dst[i] = sum over s of src[s][i] by a fixed binary tree over s; dst may be src[0]. */
void rt_k_tree_sum_f32(float *dst, const float *const *src, int nsrc, int64_t lo, int64_t hi);
void rt_k_tree_sum_f64(double *dst, const double *const *src, int nsrc, int64_t lo, int64_t hi);

/* One pass: clip scale, weight decay, momentum, update. g is multiplied by gscale first. lambda: L2
 * decay added to the gradient, decoupled: subtracted as lr * decoupled * (w - centre); both pull towards `centre`,
 * which is 0 for weights and 1 for factors. */
typedef struct rt_k_sgd {
    float lr, momentum, lambda, gscale, centre;
    bool nesterov;
} rt_k_sgd;
void rt_k_sgd_f32(float *w, const float *g, float *m, int64_t n, rt_k_sgd o);
typedef struct rt_k_adam {
    float lr, beta1, beta2, eps, lambda, decoupled, gscale, centre;
    float bias1, bias2; /* 1 - beta^t */
} rt_k_adam;
void rt_k_adam_f32(float *w, const float *g, float *m, float *v, int64_t n, rt_k_adam o);
/* Double accumulation in a fixed order, which the width of vectors decides; v3: that of AVX2. The kernels above give
 * the same bits for AVX2 and AVX-512. */
double rt_k_sum_squares_f32(const float *x, int64_t n, bool v3);

#endif
