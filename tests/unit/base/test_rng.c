/* test_rng.c - known answers of Philox, distributions, permutations, independence of streams. */
#include "base/compiler.h"
#include "base/rng.h"
#include <math.h>
#include <stdbool.h>
#include <string.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* Known-answer vectors of the Random123 distribution. */
static void test_known_answers(void **state) {
    (void)state;
    static const struct {
        uint64_t index, stream, seed;
        uint32_t want[4];
    } table[] = {
        {0, 0, 0, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {UINT64_MAX, UINT64_MAX, UINT64_MAX, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {UINT64_C(0x85a308d3243f6a88),
         UINT64_C(0x0370734413198a2e),
         UINT64_C(0x299f31d0a4093822),
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (int64_t i = 0; i < RT_COUNT(table); i++) {
        uint32_t out[4];
        rt_rng_block((rt_rng){.seed = table[i].seed, .stream = table[i].stream}, table[i].index, out);
        assert_memory_equal(out, table[i].want, sizeof out);
    }
}

static void test_uniform(void **state) {
    (void)state;
    enum { N = 100000 };
    rt_rng r = rt_rng_make(3, RT_RNG_TEST, 1, 2);
    double sum = 0, sum2 = 0, sumf = 0, lag = 0, before = 0.5;
    for (uint64_t i = 0; i < N; i++) {
        double u = rt_rng_uniform(r, i), f = (double)rt_rng_uniform_f32(r, i);
        assert_true(u >= 0 && u < 1 && f >= 0 && f < 1);
        sum += u;
        sum2 += u * u;
        sumf += f;
        lag += (u - 0.5) * (before - 0.5);
        before = u;
    }
    assert_true(fabs(sum / N - 0.5) < 0.005);
    assert_true(fabs(sumf / N - 0.5) < 0.005);
    assert_true(fabs(sum2 / N - 1.0 / 3) < 0.005);
    assert_true(fabs(lag / N) < 0.0015);
}

/* The own logarithm and cosine against libm's, and the first four moments. */
static void test_normal(void **state) {
    (void)state;
    enum { N = 200000 };
    rt_rng r = rt_rng_make(4, RT_RNG_TEST, 0, 0);
    double m[5] = {0};
    for (uint64_t i = 0; i < N; i++) {
        double x = rt_rng_normal(r, i);
        uint32_t w[4];
        rt_rng_block(r, i, w);
        uint64_t a = (uint64_t)w[0] | (uint64_t)w[1] << 32, b = (uint64_t)w[2] | (uint64_t)w[3] << 32;
        double u = (double)((a >> 11) + 1) * 0x1p-53, v = (double)(b >> 11) * 0x1p-53;
        double want = sqrt(-2 * log(u)) * cos(6.283185307179586476925 * v);
        assert_true(fabs(x - want) < 1e-13);
        double power = 1;
        for (int k = 0; k < 5; k++, power *= x)
            m[k] += power / N;
    }
    assert_true(fabs(m[1]) < 0.01);
    assert_true(fabs(m[2] - 1) < 0.015);
    assert_true(fabs(m[3]) < 0.03);
    assert_true(fabs(m[4] - 3) < 0.1);
}

/* Bits that must never change: initial weights of published runs depend on them. */
static void test_frozen_values(void **state) {
    (void)state;
    static const double want[] = {0x1.0592230a97914p-1, 0x1.3e3e7cb942787p+1, -0x1.deb004302567bp-5,
                                  0x1.54d40d2edeb33p-2};
    rt_rng r = rt_rng_make(42, RT_RNG_INIT, 7, 9);
    for (int64_t i = 0; i < RT_COUNT(want); i++) {
        double x = rt_rng_normal(r, (uint64_t)i);
        assert_memory_equal(&x, &want[i], sizeof x);
    }
    assert_true(rt_rng_stream(RT_RNG_SHUFFLE, 1, 2) == UINT64_C(0x801e15f481348278));
    assert_true(rt_rng_member_seed(42, 1) == UINT64_C(0xb903323f0dcf5e36));
}

static void test_below(void **state) {
    (void)state;
    rt_rng r = rt_rng_make(5, RT_RNG_TEST, 0, 0);
    int count[7] = {0};
    for (uint64_t i = 0; i < 70000; i++) {
        uint64_t k = rt_rng_below(r, i, 7);
        assert_true(k < 7);
        count[k]++;
    }
    for (int k = 0; k < 7; k++)
        assert_true(count[k] > 9600 && count[k] < 10400);
    static const uint64_t sizes[] = {1, 2, UINT64_C(1) << 32, UINT64_C(0xffffffffffff), UINT64_MAX};
    for (int64_t s = 0; s < RT_COUNT(sizes); s++)
        for (uint64_t i = 0; i < 1000; i++) {
            uint64_t x = rt_rng_u64(r, i), n = sizes[s];
            uint64_t want = (uint64_t)(((unsigned __int128)x * n) >> 64);
            assert_true(rt_rng_below(r, i, n) == want);
        }
}

static void test_permutation(void **state) {
    (void)state;
    enum { N = 1000 };
    int64_t p[N];
    bool seen[N] = {false};
    rt_rng_permutation(rt_rng_make(6, RT_RNG_SHUFFLE, 0, 0), p, N);
    int64_t fixed = 0;
    for (int i = 0; i < N; i++) {
        assert_in_range(p[i], 0, N - 1);
        assert_false(seen[p[i]]);
        seen[p[i]] = true;
        fixed += p[i] == i;
    }
    assert_true(fixed < 10);
    rt_rng_permutation(rt_rng_make(6, RT_RNG_SHUFFLE, 0, 0), p, 0);
    /* All six orders of three things are about equally frequent. */
    int count[27] = {0};
    for (uint64_t t = 0; t < 6000; t++) {
        rt_rng_permutation(rt_rng_make(t, RT_RNG_SHUFFLE, 0, 0), p, 3);
        count[p[0] * 9 + p[1] * 3 + p[2]]++;
    }
    for (int i = 0; i < 27; i++)
        assert_true(count[i] == 0 || (count[i] > 850 && count[i] < 1150));
}

static void test_streams_differ(void **state) {
    (void)state;
    uint64_t seen[400];
    int64_t n = 0;
    for (int purpose = RT_RNG_INIT; purpose <= RT_RNG_SHUFFLE; purpose++)
        for (uint64_t a = 0; a < 10; a++)
            for (uint64_t b = 0; b < 10; b++)
                seen[n++] = rt_rng_stream((rt_rng_purpose)purpose, a, b);
    for (int64_t m = 0; m < 100; m++)
        seen[n++] = rt_rng_member_seed(1234, m);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < i; j++)
            assert_true(seen[i] != seen[j]);
    assert_true(rt_rng_member_seed(1234, 0) == 1234);
    assert_true(rt_rng_member_seed(1, 2) != rt_rng_member_seed(2, 1));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_answers),  cmocka_unit_test(test_uniform),
        cmocka_unit_test(test_normal),         cmocka_unit_test(test_frozen_values),
        cmocka_unit_test(test_below),          cmocka_unit_test(test_permutation),
        cmocka_unit_test(test_streams_differ),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
