/*
 * cpu.c - which instruction set the kernels may use.
 *
 * AVX2 means AVX2 and FMA; AVX512 means F, DQ, BW and VL, what the vector files are compiled for. Asked once;
 * RETORT_ISA can only lower the answer, so that a slow path can be tested on a fast machine but never the
 * other way round. NONE leaves our vector kernels out altogether: what oneDNN and the reference compute is what
 * they are compared with.
 */
#include "base/status.h"
#include "kern/kern.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static rt_isa detect(void) {
#if defined(__x86_64__) && defined(__GNUC__)
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma"))
        return RT_ISA_PLAIN;
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl"))
        return RT_ISA_AVX512;
    return RT_ISA_AVX2;
#else
    return RT_ISA_PLAIN;
#endif
}

static const struct {
    const char *name;
    rt_isa isa;
} NAMES[] = {
    {"none", RT_ISA_NONE}, {"plain", RT_ISA_PLAIN}, {"avx2", RT_ISA_AVX2}, {"avx512", RT_ISA_AVX512}};

/* Place of a name in the list, or -1. */
static int find(const char *name) {
    for (int i = 0; i < RT_COUNT(NAMES); i++)
        if (strcmp(name, NAMES[i].name) == 0)
            return i;
    return -1;
}

static rt_isa lower(rt_isa have) {
    const char *want = getenv("RETORT_ISA");
    const int i = want ? find(want) : -1;
    return i >= 0 ? RT_MIN(have, NAMES[i].isa) : have;
}

rt_status rt_cpu_check(void) {
    const char *want = getenv("RETORT_ISA");
    RT_FAIL_IF(want && *want && find(want) < 0, RT_E_USAGE,
               "environment variable RETORT_ISA: '%.40s', wanted none, plain, avx2 or avx512", want);
    return RT_OK;
}

rt_status rt_isa_check_v3(void) {
    RT_FAIL_IF(rt_cpu_isa() < RT_ISA_AVX2, RT_E_UNSUPPORTED,
               "--isa v3, the same bits on every x86-64-v3 processor, needs AVX2 and FMA: this one lacks "
               "them, or RETORT_ISA "
               "forbids them; predict --isa native computes with what there is, and rounds differently");
    return RT_OK;
}

rt_isa rt_cpu_isa(void) {
    static _Atomic int known; /* 1 + rt_isa, 0: not asked yet. Threads that race find the same answer. */
    int k = atomic_load_explicit(&known, memory_order_relaxed);
    if (k == 0) {
        k = 1 + (int)lower(detect());
        atomic_store_explicit(&known, k, memory_order_relaxed);
    }
    return (rt_isa)(k - 1);
}
