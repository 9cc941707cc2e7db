/* test_arena.c - blocks do not overlap, are zeroed and aligned, and all go at once. */
#include "base/alloc.h"
#include "base/arena.h"
#include <string.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void test_many_blocks(void **state) {
    (void)state;
    enum { N = 3000 };
    static unsigned char *p[N];
    static size_t size[N];
    rt_alloc_stats before, after;
    rt_alloc_get_stats(&before);
    rt_arena a;
    rt_arena_init(&a);
    for (int i = 0; i < N; i++) {
        size[i] = i % 500 == 499 ? 300000 : (size_t)(i * 37 % 211);
        assert_int_equal(rt_arena_alloc(&a, &p[i], size[i]), RT_OK);
        assert_int_equal((uintptr_t)p[i] % 16, 0);
        for (size_t k = 0; k < size[i]; k++)
            assert_int_equal(p[i][k], 0);
        memset(p[i], i % 251, size[i]);
    }
    for (int i = 0; i < N; i++)
        for (size_t k = 0; k < size[i]; k++)
            assert_int_equal(p[i][k], i % 251);
    rt_arena_deinit(&a);
    rt_alloc_get_stats(&after);
    assert_int_equal(after.live_bytes, before.live_bytes);
    assert_true(after.total_calls - before.total_calls < 30);
}

static void test_strdup(void **state) {
    (void)state;
    rt_arena a;
    rt_arena_init(&a);
    const char *s, *t;
    assert_int_equal(rt_arena_strdup(&a, &s, "hello"), RT_OK);
    assert_int_equal(rt_arena_strdup(&a, &t, ""), RT_OK);
    assert_string_equal(s, "hello");
    assert_string_equal(t, "");
    rt_arena_deinit(&a);
}

static bool refuse(void *user, uint64_t call, size_t bytes) {
    (void)user;
    (void)call;
    (void)bytes;
    return false;
}

static void test_failure_leaves_the_arena_usable(void **state) {
    (void)state;
    rt_arena a;
    rt_arena_init(&a);
    void *p;
    assert_int_equal(rt_arena_alloc(&a, &p, SIZE_MAX), RT_E_MEMORY);
    assert_int_equal(rt_arena_alloc(&a, &p, SIZE_MAX - 20), RT_E_MEMORY);
    rt_alloc_set_hook(refuse, NULL);
    assert_int_equal(rt_arena_alloc(&a, &p, 8), RT_E_MEMORY);
    assert_null(p);
    rt_alloc_set_hook(NULL, NULL);
    assert_int_equal(rt_arena_alloc(&a, &p, 8), RT_OK);
    assert_non_null(p);
    rt_arena_deinit(&a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_many_blocks),
        cmocka_unit_test(test_strdup),
        cmocka_unit_test(test_failure_leaves_the_arena_usable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
