/* test_alloc.c - alignment, counters, the fault hook, and checked size arithmetic. */
#include "base/alloc.h"
#include "base/size.h"
#include <string.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void test_alignment_and_counters(void **state) {
    (void)state;
    rt_alloc_stats before, during, after;
    rt_alloc_get_stats(&before);
    static const size_t sizes[] = {0, 1, 63, 64, 65, 4096, 1000003};
    unsigned char *p[RT_COUNT(sizes)];
    size_t sum = 0;
    for (int64_t i = 0; i < RT_COUNT(sizes); i++) {
        assert_int_equal(rt_alloc(&p[i], sizes[i]), RT_OK);
        assert_non_null(p[i]);
        assert_int_equal((uintptr_t)p[i] % 64, 0);
        memset(p[i], 0xab, sizes[i]);
        sum += sizes[i];
    }
    rt_alloc_get_stats(&during);
    assert_int_equal(during.live_blocks - before.live_blocks, RT_COUNT(sizes));
    assert_int_equal(during.live_bytes - before.live_bytes, sum);
    assert_int_equal(during.total_calls - before.total_calls, RT_COUNT(sizes));
    assert_true(during.peak_bytes >= during.live_bytes);
    for (int64_t i = 0; i < RT_COUNT(sizes); i++)
        rt_free(p[i]);
    rt_free(NULL);
    rt_alloc_get_stats(&after);
    assert_int_equal(after.live_blocks, before.live_blocks);
    assert_int_equal(after.live_bytes, before.live_bytes);
    assert_true(after.peak_bytes >= during.live_bytes);
}

static void test_calloc_and_realloc(void **state) {
    (void)state;
    unsigned char *p = NULL;
    assert_int_equal(rt_calloc(&p, 10, 10), RT_OK);
    for (int i = 0; i < 100; i++)
        assert_int_equal(p[i], 0);
    memset(p, 7, 100);
    assert_int_equal(rt_realloc(&p, 100, 5000), RT_OK);
    assert_int_equal(p[99], 7);
    assert_int_equal(rt_realloc(&p, 5000, 3), RT_OK);
    assert_int_equal(p[2], 7);
    rt_free(p);
    p = NULL;
    assert_int_equal(rt_realloc(&p, 0, 8), RT_OK);
    assert_non_null(p);
    rt_free(p);
}

static void test_refusals(void **state) {
    (void)state;
    void *p = &p;
    assert_int_equal(rt_alloc(&p, SIZE_MAX), RT_E_MEMORY);
    assert_null(p);
    assert_int_equal(rt_alloc(&p, SIZE_MAX - 64), RT_E_MEMORY);
    assert_int_equal(rt_alloc(&p, SIZE_MAX / 2), RT_E_MEMORY);
    assert_non_null(strstr(rt_error_text(), "9223372036854775807"));
    assert_int_equal(rt_calloc(&p, SIZE_MAX / 2, 3), RT_E_MEMORY);
    assert_null(p);
}

static bool fail_third(void *user, uint64_t call, size_t bytes) {
    (void)call;
    (void)bytes;
    return ++*(int *)user != 3;
}

static void test_hook(void **state) {
    (void)state;
    int calls = 0;
    char *p = NULL, *q = NULL;
    rt_alloc_set_hook(fail_third, &calls);
    assert_int_equal(rt_alloc(&p, 4), RT_OK);
    assert_int_equal(rt_alloc(&q, 4), RT_OK);
    memcpy(p, "abc", 4);
    assert_int_equal(rt_realloc(&p, 4, 400), RT_E_MEMORY);
    assert_string_equal(p, "abc"); /* the old block is kept */
    assert_int_equal(rt_realloc(&p, 4, 400), RT_OK);
    assert_string_equal(p, "abc");
    rt_alloc_set_hook(NULL, NULL);
    rt_free(p);
    rt_free(q);
    assert_int_equal(calls, 4);
}

static void test_sizes(void **state) {
    (void)state;
    size_t r = 5;
    assert_true(rt_size_add(2, 3, &r) && r == 5);
    assert_false(rt_size_add(SIZE_MAX, 1, &r));
    assert_false(rt_size_mul(SIZE_MAX / 2 + 1, 2, &r));
    assert_int_equal(r, 5);
    assert_true(rt_size_mul(SIZE_MAX, 1, &r) && r == SIZE_MAX);
    assert_true(rt_size_align_up(65, 64, &r) && r == 128);
    assert_true(rt_size_align_up(0, 64, &r) && r == 0);
    assert_false(rt_size_align_up(SIZE_MAX - 3, 64, &r));
    int64_t i = 1;
    assert_true(rt_i64_mul(-3, 4, &i) && i == -12);
    assert_false(rt_i64_mul(INT64_MAX, 2, &i));
    assert_false(rt_i64_mul(INT64_MIN, -1, &i));
    assert_false(rt_i64_add(INT64_MIN, -1, &i));
    assert_int_equal(i, -12);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_alignment_and_counters),
        cmocka_unit_test(test_calloc_and_realloc),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_hook),
        cmocka_unit_test(test_sizes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
