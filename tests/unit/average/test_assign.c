/*
 * test_assign.c - assignments against all permutations of a few, and against planted optima of many.
 */
#include "average/average.h"
#include "base/alloc.h"
#include "base/timer.h"
#include "support/check.h"
#include <math.h>

static double value(const double *gain, const int64_t *perm, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += gain[i * n + perm[i]];
    return sum;
}

static bool is_permutation(const int64_t *perm, int64_t n) {
    bool seen[4096] = {false};
    for (int64_t i = 0; i < n; i++) {
        if (perm[i] < 0 || perm[i] >= n || seen[perm[i]])
            return false;
        seen[perm[i]] = true;
    }
    return true;
}

/* The best of all permutations of the places from `at` on. */
static double best_of_all(const double *gain, int64_t *perm, int64_t n, int64_t at) {
    if (at == n)
        return value(gain, perm, n);
    double best = -INFINITY;
    for (int64_t k = at; k < n; k++) {
        int64_t t = perm[at];
        perm[at] = perm[k];
        perm[k] = t;
        best = fmax(best, best_of_all(gain, perm, n, at + 1));
        perm[k] = perm[at];
        perm[at] = t;
    }
    return best;
}

static void brute_force(void **state) {
    (void)state;
    for (int64_t n = 1; n <= 7; n++) {
        for (uint64_t trial = 0; trial < (n < 7 ? 60 : 20); trial++) {
            double gain[49];
            int64_t perm[7], all[7];
            const rt_rng r = rt_rng_make(trial, RT_RNG_TEST, (uint64_t)n, 0);
            for (int64_t k = 0; k < n * n; k++) /* every third of small whole numbers: many ties */
                gain[k] = trial % 3 ? rt_rng_normal(r, (uint64_t)k) : (double)rt_rng_below(r, (uint64_t)k, 3);
            for (int64_t i = 0; i < n; i++)
                all[i] = i;
            OK(rt_assign(perm, gain, n));
            assert_true(is_permutation(perm, n));
            const double want = best_of_all(gain, all, n, 0), have = value(gain, perm, n);
            if (fabs(want - have) > 1e-12 * (1 + fabs(want)))
                fail_msg("n %lld, trial %llu: %g, the best is %g", (long long)n, (unsigned long long)trial,
                         have, want);
        }
    }
}

/* Noise of size one, and a planted permutation that is better by more than any noise can make good. */
static void planted(void **state) {
    (void)state;
    static const int64_t sizes[] = {64, 512, 777};
    for (int64_t s = 0; s < RT_COUNT(sizes); s++) {
        const int64_t n = sizes[s];
        double *gain = NULL;
        int64_t *perm = NULL, *want = NULL;
        OK(rt_calloc(&gain, (size_t)(n * n), sizeof *gain));
        OK(rt_calloc(&perm, (size_t)n, sizeof *perm));
        OK(rt_calloc(&want, (size_t)n, sizeof *want));
        rt_rng_permutation(rt_rng_make(1, RT_RNG_TEST, 0, 0), want, n);
        for (int64_t k = 0; k < n * n; k++)
            gain[k] = rt_rng_uniform(rt_rng_make(2, RT_RNG_TEST, 0, 0), (uint64_t)k);
        for (int64_t i = 0; i < n; i++)
            gain[i * n + want[i]] += 1;
        OK(rt_assign(perm, gain, n));
        assert_memory_equal(perm, want, (size_t)n * sizeof *perm);
        rt_free(gain);
        rt_free(perm);
        rt_free(want);
    }
}

/* Optimal potentials prove an optimum: of random gains, no exchange of two or rotation of three rows is
 * better; and the mean of the expected optimum of uniform costs, pi^2 / 6 in all, is met. */
static void random_costs(void **state) {
    (void)state;
    enum { N = 512 };
    double *gain = NULL;
    int64_t perm[N];
    OK(rt_calloc(&gain, N * N, sizeof *gain));
    for (int64_t k = 0; k < N * N; k++)
        gain[k] = -rt_rng_uniform(rt_rng_make(3, RT_RNG_TEST, 0, 0), (uint64_t)k);
    const double started = rt_time_now();
    OK(rt_assign(perm, gain, N));
    const double seconds = rt_time_now() - started;
    assert_true(is_permutation(perm, N));
    const double sum = -value(gain, perm, N);
    if (!(sum > 1.45 && sum < 1.85))
        fail_msg("sum of costs %g, wanted about 1.64", sum);
    for (int64_t i = 0; i < N; i++)
        for (int64_t j = 0; j < i; j++)
            assert_true(gain[i * N + perm[j]] + gain[j * N + perm[i]] <=
                        gain[i * N + perm[i]] + gain[j * N + perm[j]] + 1e-12);
    print_message("%d units: %.3f s\n", N, seconds);
    rt_free(gain);
}

static void equal_and_not_finite(void **state) {
    (void)state;
    double gain[16] = {0};
    int64_t perm[4];
    OK(rt_assign(perm, gain, 4)); /* all equal: some permutation, and it ends */
    assert_true(is_permutation(perm, 4));
    gain[5] = NAN;
    assert_int_equal(rt_assign(perm, gain, 4), RT_E_NUMERIC);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(brute_force),
        cmocka_unit_test(planted),
        cmocka_unit_test(random_costs),
        cmocka_unit_test(equal_and_not_finite),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
