/*
 * peak.c - what this machine can do at most: fused multiply-adds on registers, and bytes to and from memory,
 * on every worker at once.
 *
 * An FMA takes about four cycles and two can start per cycle, so eight independent sums would keep the unit
 * busy; twelve leave room, and fit the sixteen registers together with the two factors. The best of many
 * short rounds counts, because other work on the machine can only make a round slower.
 *
 * Bandwidth is that of the triad a = b + s c on arrays larger than any cache: 12 bytes per element. That a line
 * is also read before it is written is not counted, neither here nor in the traffic of a plan.
 */
#include "base/alloc.h"
#include "base/timer.h"
#include "cli/cli.h"
#include "kern/kern.h"
#if defined(__x86_64__) && RT_WITH_X86
#include <immintrin.h>
#endif

enum { SUMS = 12, ITERATIONS = 100000, ROUNDS_MIN = 5, TRIAD_FLOATS = 1 << 24 };

/* Each kernel makes ITERATIONS x SUMS vector FMAs and returns something that depends on all of them. */
typedef float (*fma_kernel)(float seed);

#if defined(__x86_64__) && RT_WITH_X86
RT_TARGET("avx512f") static float fma_avx512(float seed) {
    __m512 s[SUMS], a = _mm512_set1_ps(0.999f), b = _mm512_set1_ps(seed);
    float out[16];
    RT_UNROLL(12)
    for (int i = 0; i < SUMS; i++)
        s[i] = _mm512_set1_ps((float)i);
    for (int k = 0; k < ITERATIONS; k++) {
        RT_UNROLL(12)
        for (int i = 0; i < SUMS; i++)
            s[i] = _mm512_fmadd_ps(s[i], a, b);
    }
    RT_UNROLL(12)
    for (int i = 1; i < SUMS; i++)
        s[0] = _mm512_add_ps(s[0], s[i]);
    _mm512_storeu_ps(out, s[0]);
    return out[0];
}

RT_TARGET("avx2,fma") static float fma_avx2(float seed) {
    __m256 s[SUMS], a = _mm256_set1_ps(0.999f), b = _mm256_set1_ps(seed);
    float out[8];
    RT_UNROLL(12)
    for (int i = 0; i < SUMS; i++)
        s[i] = _mm256_set1_ps((float)i);
    for (int k = 0; k < ITERATIONS; k++) {
        RT_UNROLL(12)
        for (int i = 0; i < SUMS; i++)
            s[i] = _mm256_fmadd_ps(s[i], a, b);
    }
    RT_UNROLL(12)
    for (int i = 1; i < SUMS; i++)
        s[0] = _mm256_add_ps(s[0], s[i]);
    _mm256_storeu_ps(out, s[0]);
    return out[0];
}
#endif

/* Four lanes, multiply and add: what any 64-bit machine has. */
static float fma_plain(float seed) {
    float s[SUMS][4];
    for (int i = 0; i < SUMS; i++)
        for (int l = 0; l < 4; l++)
            s[i][l] = (float)(i + l);
    for (int k = 0; k < ITERATIONS; k++)
        for (int i = 0; i < SUMS; i++)
            for (int l = 0; l < 4; l++)
                s[i][l] = s[i][l] * 0.999f + seed;
    float sum = 0;
    for (int i = 0; i < SUMS; i++)
        sum += s[i][0] + s[i][1] + s[i][2] + s[i][3];
    return sum;
}

typedef struct round_ctx {
    fma_kernel kernel;
    float seed;
    volatile float sink;
} round_ctx;

static void run_kernel(void *ctx, int64_t job, int worker) {
    (void)job;
    (void)worker;
    round_ctx *r = ctx;
    r->sink = r->kernel(r->seed);
}

double cli_peak_flops(rt_pool *pool, double seconds) {
    round_ctx r = {.kernel = fma_plain, .seed = 1e-3f};
    double lanes = 4, best = 0, end = rt_time_now() + seconds;
#if defined(__x86_64__) && RT_WITH_X86
    if (rt_cpu_isa() >= RT_ISA_AVX2) {
        r.kernel = rt_cpu_isa() == RT_ISA_AVX512 ? fma_avx512 : fma_avx2;
        lanes = rt_cpu_isa() == RT_ISA_AVX512 ? 16 : 8;
    }
#endif
    int workers = rt_pool_workers(pool);
    for (int i = 0; i < ROUNDS_MIN || rt_time_now() < end; i++) {
        double t = rt_time_now();
        rt_pool_run(pool, run_kernel, &r, workers);
        t = rt_time_now() - t;
        double rate = t > 0 ? 2 * lanes * SUMS * ITERATIONS * workers / t : 0;
        best = RT_MAX(best, rate);
    }
    return best;
}

/* ---- memory ---- */

typedef struct triad_ctx {
    float *a;
    const float *b, *c;
    int64_t part; /* elements of a job */
} triad_ctx;

static void run_triad(void *ctx, int64_t job, int worker) {
    (void)worker;
    const triad_ctx *t = ctx;
    float *restrict a = t->a + job * t->part;
    const float *restrict b = t->b + job * t->part, *restrict c = t->c + job * t->part;
    for (int64_t i = 0; i < t->part; i++)
        a[i] = b[i] + 0.5f * c[i];
}

rt_status cli_peak_bandwidth(double *out, rt_pool *pool, double seconds) {
    const int workers = rt_pool_workers(pool);
    float *block = NULL;
    RT_TRY(rt_alloc(&block, 3 * (size_t)TRIAD_FLOATS * sizeof *block));
    for (int64_t i = 0; i < 3 * (int64_t)TRIAD_FLOATS; i++)
        block[i] = 1; /* pages that were never written may all be the same one */
    triad_ctx t = {
        .a = block, .b = block + TRIAD_FLOATS, .c = block + 2 * TRIAD_FLOATS, .part = TRIAD_FLOATS / workers};
    double best = 0, end = rt_time_now() + seconds;
    for (int i = 0; i < ROUNDS_MIN || rt_time_now() < end; i++) {
        double s = rt_time_now();
        rt_pool_run(pool, run_triad, &t, workers);
        s = rt_time_now() - s;
        best = RT_MAX(best, s > 0 ? 3 * sizeof *block * (double)(t.part * workers) / s : 0);
    }
    rt_free(block);
    *out = best;
    return RT_OK;
}
