/* test_map.c - put, replace, get, growth, and failure half way. */
#include "base/alloc.h"
#include "base/map.h"
#include <stdio.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void test_put_and_get(void **state) {
    (void)state;
    rt_map m;
    rt_map_init(&m);
    int64_t v = -1;
    bool existed;
    assert_false(rt_map_get(&m, "a", &v));
    assert_int_equal(rt_map_put(&m, "a", 1, &existed), RT_OK);
    assert_false(existed);
    assert_int_equal(rt_map_put(&m, "", 2, NULL), RT_OK);
    assert_int_equal(rt_map_put(&m, "a", 3, &existed), RT_OK);
    assert_true(existed);
    assert_int_equal(m.count, 2);
    assert_true(rt_map_get(&m, "a", &v) && v == 3);
    assert_true(rt_map_get(&m, "", &v) && v == 2);
    assert_false(rt_map_get(&m, "b", &v));
    rt_map_deinit(&m);
    rt_map_deinit(&m);
}

static void test_growth(void **state) {
    (void)state;
    enum { N = 20000 };
    rt_map m;
    rt_map_init(&m);
    char key[32];
    for (int i = 0; i < N; i++) {
        snprintf(key, sizeof key, "layer%d.weight", i);
        assert_int_equal(rt_map_put(&m, key, i, NULL), RT_OK);
    }
    assert_int_equal(m.count, N);
    for (int i = 0; i < N; i++) {
        int64_t v;
        snprintf(key, sizeof key, "layer%d.weight", i);
        assert_true(rt_map_get(&m, key, &v) && v == i);
        snprintf(key, sizeof key, "layer%d.bias", i);
        assert_false(rt_map_get(&m, key, &v));
    }
    rt_map_deinit(&m);
}

static bool fail_nth(void *user, uint64_t call, size_t bytes) {
    (void)call;
    (void)bytes;
    return --*(int *)user != 0;
}

static void test_every_allocation_may_fail(void **state) {
    (void)state;
    rt_alloc_stats before, after;
    rt_alloc_get_stats(&before);
    for (int n = 1; n < 80; n++) {
        rt_map m;
        rt_map_init(&m);
        int countdown = n;
        rt_alloc_set_hook(fail_nth, &countdown);
        int64_t stored = 0;
        char key[16];
        rt_status st = RT_OK;
        for (; stored < 60 && st == RT_OK; stored += st == RT_OK) {
            snprintf(key, sizeof key, "k%d", (int)stored);
            st = rt_map_put(&m, key, stored, NULL);
        }
        rt_alloc_set_hook(NULL, NULL);
        assert_int_equal(m.count, stored);
        for (int64_t i = 0; i < stored; i++) {
            int64_t v;
            snprintf(key, sizeof key, "k%d", (int)i);
            assert_true(rt_map_get(&m, key, &v) && v == i);
        }
        rt_map_deinit(&m);
    }
    rt_alloc_get_stats(&after);
    assert_int_equal(after.live_blocks, before.live_blocks);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_put_and_get),
        cmocka_unit_test(test_growth),
        cmocka_unit_test(test_every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
