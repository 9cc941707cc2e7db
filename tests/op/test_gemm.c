/*
 * test_gemm.c - the vector products at sizes around their tiles, panels and blocks, against sums in double:
 * every instruction set of this machine, both transpositions of both operands, one product and several.
 * Nothing beyond the operands is read into the result or written, and what is not finite stays so. Fused
 * products against the reference.
 */
#include "kern/kern.h"
#include "op/op.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { GUARD = 32, MAX_KERN = 16 };

typedef struct gemm_case {
    int64_t count, m, n, k;
    bool ta, tb;
} gemm_case;

static float number(int64_t i) {
    return (float)((i * 2654435761LL >> 7) % 2001 - 1000) / 512.0f;
}

/* Guarded by NaN on both sides: a kernel that reads too far shows it. */
static float *guarded(int64_t n) {
    float *p = aligned_alloc(64, (size_t)(n + 2 * GUARD + 15) / 16 * 64);
    for (int64_t i = 0; i < n + 2 * GUARD; i++)
        p[i] = i < GUARD || i >= n + GUARD ? NAN : number(i + n);
    return p;
}

static void make(const gemm_case *c, rt_problem *p, rt_desc in[2], int32_t groups[2]) {
    const int64_t d[3][2] = {
        {c->ta ? c->k : c->m, c->ta ? c->m : c->k}, {c->tb ? c->n : c->k, c->tb ? c->k : c->n}, {c->m, c->n}};
    rt_desc desc[3];
    for (int i = 0; i < 3; i++) {
        const rt_shape s = c->count > 0 ? rt_shape3(c->count, d[i][0], d[i][1]) : rt_shape2(d[i][0], d[i][1]);
        desc[i] = rt_desc_make(RT_DTYPE_F32, s, RT_LAYOUT_PLAIN);
    }
    in[0] = desc[0];
    in[1] = desc[1];
    groups[0] = groups[1] = 0;
    *p = (rt_problem){.op = c->count > 0 ? RT_OP_BMM : RT_OP_MATMUL,
                      .attr = {.ta = c->ta, .tb = c->tb},
                      .nin = 2,
                      .in = in,
                      .in_groups = groups,
                      .out = desc[2],
                      .n = 1};
}

static void check(const gemm_case *c, const rt_kern *k, const rt_problem *p, const float *a, const float *b,
                  const float *out) {
    for (int64_t q = 0; q < RT_MAX(c->count, 1); q++)
        for (int64_t i = 0; i < c->m; i++)
            for (int64_t j = 0; j < c->n; j++) {
                double sum = 0, size = 0;
                for (int64_t l = 0; l < c->k; l++) {
                    const double x = (double)a[q * c->m * c->k + (c->ta ? l * c->m + i : i * c->k + l)];
                    const double y = (double)b[q * c->k * c->n + (c->tb ? j * c->k + l : l * c->n + j)];
                    sum += x * y;
                    size += fabs(x * y);
                }
                const double got = (double)out[(q * c->m + i) * c->n + j];
                /* k sums and a product, each rounded: the bound of the textbook, and far below any one term */
                const double bound = (double)(c->k + 2) * 0x1p-24 * size;
                const bool same = isfinite(sum) ? fabs(got - sum) <= bound : !isfinite(got);
                if (!same)
                    fail_msg("%s by %s, %lld x %lldx%lldx%lld ta %d tb %d: (%lld, %lld) is %.9g, wanted %.9g",
                             rt_op_get(p->op)->name, k->impl, (long long)c->count, (long long)c->m,
                             (long long)c->n, (long long)c->k, c->ta, c->tb, (long long)i, (long long)j, got,
                             sum);
            }
}

static void run_case(gemm_case c, bool spoil) {
    rt_problem p;
    rt_desc in[2];
    int32_t groups[2];
    make(&c, &p, in, groups);
    const int64_t na = rt_desc_elems(&in[0]), nb = rt_desc_elems(&in[1]), nc = rt_desc_elems(&p.out);
    float *a = guarded(na), *b = guarded(nb), *out = guarded(nc), *first = guarded(nc);
    if (spoil) { /* one row and one column of the result become NaN or infinite */
        a[GUARD + na / 2] = NAN;
        b[GUARD + nb / 3] = INFINITY;
    }
    const rt_kern *list[MAX_KERN];
    int n = 0;
    assert_int_equal(rt_kern_list(p.op, RT_DTYPE_F32, RT_KERN_VEC, list, MAX_KERN, &n), RT_OK);
    for (int i = 0; i < n - 1; i++) { /* the last is the reference */
        void *state = NULL;
        size_t bytes = 0;
        if (!list[i]->supports(&p))
            continue;
        assert_int_equal(list[i]->prepare(&p, &state, &bytes), RT_OK);
        uint8_t *scratch = aligned_alloc(64, (bytes + 127) / 64 * 64);
        memset(scratch, 0xff, bytes + 1); /* NaN, and a byte to watch */
        scratch[bytes] = 0x5a;
        const rt_kern_ctx ctx = {.scratch = scratch};
        const void *operands[2] = {a + GUARD, b + GUARD};
        for (int64_t j = 0; j < nc; j++)
            out[GUARD + j] = NAN;
        list[i]->run(state, &p, out + GUARD, operands, &ctx);
        check(&c, list[i], &p, a + GUARD, b + GUARD, out + GUARD);
        assert_int_equal(scratch[bytes], 0x5a);
        for (int64_t j = 0; j < GUARD; j++)
            assert_true(isnan(out[j]) && isnan(out[GUARD + nc + j]));
        memcpy(first, out, (size_t)(nc + 2 * GUARD) * sizeof *out);
        list[i]->run(state, &p, out + GUARD, operands, &ctx); /* the same bits again */
        assert_memory_equal(first + GUARD, out + GUARD, (size_t)nc * sizeof *out);
        if (list[i]->release)
            list[i]->release(state);
        free(scratch);
    }
    free(a);
    free(b);
    free(out);
    free(first);
}

#define EACH_TRANSPOSITION(ta, tb)                                                                           \
    for (int ta = 0; ta < 2; ta++)                                                                           \
        for (int tb = 0; tb < 2; tb++)

static void test_edges_of_tiles(void **state) {
    (void)state;
    static const int64_t m[] = {1, 2, 5, 6, 7, 8, 11, 12, 13, 15, 18, 19, 25, 29},
                         k[] = {1, 3, 4, 7, 8, 9, 17};
    static const int64_t n[] = {1, 2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 24, 31, 33};
    for (size_t i = 0; i < RT_COUNT(m); i++)
        for (size_t j = 0; j < RT_COUNT(n); j++)
            for (size_t l = 0; l < RT_COUNT(k); l++)
                EACH_TRANSPOSITION(ta, tb) run_case((gemm_case){0, m[i], n[j], k[l], ta, tb}, false);
}

static void test_edges_of_blocks(void **state) {
    (void)state;
    static const int64_t s[][3] = {{252, 17, 257}, {253, 16, 255}, {259, 40, 20},   {5, 257, 30},
                                   {33, 270, 258}, {128, 10, 200}, {100, 100, 128}, {128, 100, 2},
                                   {7, 512, 40},   {300, 3, 513},  {30, 66, 128},   {29, 64, 129}};
    for (size_t i = 0; i < RT_COUNT(s); i++)
        EACH_TRANSPOSITION(ta, tb) run_case((gemm_case){0, s[i][0], s[i][1], s[i][2], ta, tb}, false);
}

static void test_several_products(void **state) {
    (void)state;
    EACH_TRANSPOSITION(ta, tb) {
        run_case((gemm_case){3, 7, 9, 11, ta, tb}, false);
        run_case((gemm_case){2, 30, 3, 40, ta, tb}, false);
    }
}

static void test_not_finite(void **state) {
    (void)state;
    EACH_TRANSPOSITION(ta, tb) {
        run_case((gemm_case){0, 13, 19, 9, ta, tb}, true);
        run_case((gemm_case){0, 40, 8, 300, ta, tb}, true);
        run_case((gemm_case){0, 3, 4, 2, ta, tb}, true);
    }
}

/* ---- with what stands behind the product ---- */

typedef struct fused_case {
    int64_t m, n, k;
    bool tb;
    rt_chain chain;
} fused_case;

#define PRODUCT(t)                                                                                           \
    {                                                                                                        \
        .op = RT_OP_MATMUL, .arg = {1}, .attr = {.tb = t }                                                   \
    }
#define STEP(ID, in, slope)                                                                                  \
    {                                                                                                        \
        .op = RT_OP_##ID, .arg = {in}, .attr = {.alpha = slope }                                             \
    }

/* Operands: x, w, bias, mask. */
static void run_fused(const fused_case *f) {
    const rt_desc in[4] = {
        rt_desc_make(RT_DTYPE_F32, rt_shape2(f->m, f->k), RT_LAYOUT_PLAIN),
        rt_desc_make(RT_DTYPE_F32, f->tb ? rt_shape2(f->n, f->k) : rt_shape2(f->k, f->n), RT_LAYOUT_PLAIN),
        rt_desc_make(RT_DTYPE_F32, rt_shape1(f->n), RT_LAYOUT_PLAIN),
        rt_desc_make(RT_DTYPE_F32, rt_shape2(f->m, f->n), RT_LAYOUT_PLAIN)};
    const int32_t groups[4] = {1, 0, 0, 1};
    const rt_problem p = {.op = RT_OP_FUSED_MATMUL,
                          .attr = {.count = f->chain.n},
                          .chain = &f->chain,
                          .nin = 4,
                          .in = in,
                          .in_groups = groups,
                          .out = in[3],
                          .out_groups = 1,
                          .n = f->m,
                          .kind = RT_KIND_ROWS};
    float *x[4], *want = guarded(f->m * f->n), *got = guarded(f->m * f->n);
    const void *operands[4];
    for (int i = 0; i < 4; i++)
        operands[i] = (x[i] = guarded(rt_desc_elems(&in[i]))) + GUARD;
    x[0][GUARD + f->m / 2 * f->k] = NAN; /* a row of NaN, and it must show behind a ReLU, too */
    rt_kern_ref(RT_OP_FUSED_MATMUL, RT_DTYPE_F32)->run(NULL, &p, want + GUARD, operands, &(rt_kern_ctx){0});
    const rt_kern *list[MAX_KERN];
    int n = 0;
    assert_int_equal(rt_kern_list(p.op, RT_DTYPE_F32, RT_KERN_VEC, list, MAX_KERN, &n), RT_OK);
    assert_true(n > 1);
    for (int i = 0; i < n - 1; i++) {
        void *state = NULL;
        size_t bytes = 0;
        assert_true(list[i]->supports(&p));
        assert_int_equal(list[i]->prepare(&p, &state, &bytes), RT_OK);
        const rt_kern_ctx ctx = {.scratch = aligned_alloc(64, (bytes + 127) / 64 * 64)};
        list[i]->run(state, &p, got + GUARD, operands, &ctx);
        for (int64_t j = -GUARD; j < f->m * f->n + GUARD; j++) {
            const float a = got[GUARD + j], b = want[GUARD + j];
            const bool masked = f->chain.step[1].op == RT_OP_RELU_BWD; /* 0 NaN is left open */
            if (isnan(b) ? !isnan(a) && !masked : !(fabsf(a - b) <= 2e-5f * (float)f->k))
                fail_msg(
                    "%lldx%lldx%lld by %s, %s %s: element %lld is %.9g, wanted %.9g", (long long)f->m,
                    (long long)f->n, (long long)f->k, list[i]->impl, rt_op_get(f->chain.step[1].op)->name,
                    rt_op_get(f->chain.step[f->chain.n - 1].op)->name, (long long)j, (double)a, (double)b);
        }
        free(ctx.scratch);
        list[i]->release(state);
    }
    for (int i = 0; i < 4; i++)
        free(x[i]);
    free(want);
    free(got);
}

static void test_fused(void **state) {
    (void)state;
    static const int64_t s[][3] = {{1, 1, 1},    {7, 3, 9},    {13, 4, 40},   {9, 5, 2},
                                   {8, 20, 3},   {5, 6, 4},    {30, 16, 8},   {29, 31, 17},
                                   {25, 12, 33}, {128, 28, 2}, {260, 36, 100}};
    for (size_t i = 0; i < RT_COUNT(s); i++)
        for (int tb = 0; tb < 2; tb++) {
            const rt_chain chains[] = {{2, {PRODUCT(tb), STEP(ADD_CHAN, 2, 0)}},
                                       {3, {PRODUCT(tb), STEP(ADD_CHAN, 2, 0), STEP(RELU, -1, 0)}},
                                       {3, {PRODUCT(tb), STEP(ADD_CHAN, 2, 0), STEP(RELU, -1, 0.25)}},
                                       {2, {PRODUCT(tb), STEP(RELU, -1, 0)}},
                                       {2, {PRODUCT(tb), STEP(RELU_BWD, 3, 0)}},
                                       {2, {PRODUCT(tb), STEP(RELU_BWD, 3, 0.25)}}};
            for (size_t k = 0; k < RT_COUNT(chains); k++)
                run_fused(&(fused_case){s[i][0], s[i][1], s[i][2], tb, chains[k]});
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_edges_of_tiles),
        cmocka_unit_test(test_edges_of_blocks),
        cmocka_unit_test(test_several_products),
        cmocka_unit_test(test_not_finite),
        cmocka_unit_test(test_fused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
