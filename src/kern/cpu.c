/*
 * cpu.c - which instruction set the kernels may use, and what the processor is called.
 *
 * AVX2 means AVX2 and FMA; AVX512 means F, DQ, BW and VL, what the vector files are compiled for. Asked once;
 * RETORT_ISA can only lower the answer, so that a slow path can be tested on a fast machine but never the
 * other way round. NONE leaves our vector kernels out altogether: what oneDNN and the reference compute is what
 * they are compared with.
 */
#include "base/status.h"
#include "kern/kern.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if defined(__x86_64__) && defined(__GNUC__)
#include <cpuid.h>
#endif

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

/* ---- its name ---- */

#if defined(__x86_64__) && defined(__GNUC__)
/* What the maker calls it, and the numbers that tell apart what is called alike: virtual machines hide the model. */
static void brand(char *out, size_t size) {
    unsigned int r[12] = {0}, a, b, c, d;
    char text[sizeof r + 1] = "";
    if (__get_cpuid_max(0x80000000u, NULL) >= 0x80000004u) {
        for (unsigned int i = 0; i < 3; i++)
            __get_cpuid(0x80000002u + i, &r[4 * i], &r[4 * i + 1], &r[4 * i + 2], &r[4 * i + 3]);
        memcpy(text, r, sizeof r);
    }
    const char *name = text + strspn(text, " ");
    size_t n = strlen(name);
    while (n > 0 && name[n - 1] == ' ')
        n--;
    if (!__get_cpuid(1, &a, &b, &c, &d))
        a = 0;
    const unsigned int base = a >> 8 & 15, family = base + (base == 15 ? a >> 20 & 255 : 0),
                       model = (a >> 4 & 15) + (base == 6 || base == 15 ? a >> 12 & 240 : 0);
    snprintf(out, size, "%.*s (family %u, model %u)", (int)n, name, family, model);
}
#else
static void brand(char *out, size_t size) {
    snprintf(out, size, "another processor than x86-64");
}
#endif

const char *rt_isa_name(rt_isa isa) {
    for (int i = 0; i < RT_COUNT(NAMES); i++)
        if (NAMES[i].isa == isa)
            return NAMES[i].name;
    return "?";
}

void rt_cpu_name(char *out, size_t size) {
    char name[RT_CPU_NAME];
    brand(name, sizeof name);
    for (char *c = name; *c; c++) /* it goes into files of lines, and tables */
        if ((unsigned char)*c < ' ' || (unsigned char)*c > '~' || strchr("\"\\|", *c))
            *c = '?';
    snprintf(out, size, "%s, %s", name, rt_isa_name(rt_cpu_isa()));
}
