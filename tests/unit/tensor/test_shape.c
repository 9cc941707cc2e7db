/* test_shape.c - element types and shapes. */
#include "tensor/tensor.h"
#include <string.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void test_dtypes(void **state) {
    (void)state;
    static const struct {
        rt_dtype t;
        size_t size;
        const char *name;
    } table[] = {
        {RT_DTYPE_F32, 4, "f32"}, {RT_DTYPE_F64, 8, "f64"}, {RT_DTYPE_I32, 4, "i32"}, {RT_DTYPE_U8, 1, "u8"}};
    assert_int_equal(RT_COUNT(table), RT_DTYPE_COUNT);
    for (int64_t i = 0; i < RT_COUNT(table); i++) {
        assert_int_equal(rt_dtype_size(table[i].t), table[i].size);
        assert_string_equal(rt_dtype_name(table[i].t), table[i].name);
    }
    assert_int_equal(rt_dtype_size(RT_DTYPE_COUNT), 0);
    assert_string_equal(rt_dtype_name((rt_dtype)-1), "?");
}

static void test_count_and_print(void **state) {
    (void)state;
    const int64_t big = INT64_C(1) << 40;
    const struct {
        rt_shape s;
        bool ok;
        int64_t count;
        const char *text;
    } table[] = {
        {rt_shape0(), true, 1, "scalar"},
        {rt_shape1(7), true, 7, "7"},
        {rt_shape2(0, 5), true, 0, "0x5"},
        {rt_shape3(2, 3, 4), true, 24, "2x3x4"},
        {rt_shape4(128, 3, 32, 32), true, 393216, "128x3x32x32"},
        {rt_shape_make(5, (int64_t)1, (int64_t)2, (int64_t)3, (int64_t)4, (int64_t)5), true, 120,
         "1x2x3x4x5"},
        {rt_shape2(-1, 3), false, 0, "-1x3"},
        {rt_shape2(0, -3), false, 0, "0x-3"},
        {rt_shape2(big, big), false, 0, "1099511627776x1099511627776"},
        {rt_shape3(0, big, big), false, 0, "0x1099511627776x1099511627776"},
        {rt_shape2(INT64_MAX, 1), true, INT64_MAX, "9223372036854775807x1"},
    };
    for (int64_t i = 0; i < RT_COUNT(table); i++) {
        int64_t n = -7;
        assert_int_equal(rt_shape_count(&table[i].s, &n), table[i].ok);
        assert_int_equal(n, table[i].ok ? table[i].count : -7);
        if (table[i].ok)
            assert_int_equal(rt_shape_elems(&table[i].s), table[i].count);
        rt_str out;
        rt_str_init(&out);
        rt_shape_print(&table[i].s, &out);
        assert_string_equal(rt_str_text(&out), table[i].text);
        rt_str_deinit(&out);
    }
    rt_shape bad = {.rank = RT_MAX_RANK + 1};
    int64_t n;
    assert_false(rt_shape_count(&bad, &n));
}

static void test_equal(void **state) {
    (void)state;
    rt_shape a = rt_shape2(2, 3), b = rt_shape2(2, 3), c = rt_shape2(3, 2), d = rt_shape3(2, 3, 1);
    assert_true(rt_shape_equal(&a, &b));
    assert_false(rt_shape_equal(&a, &c));
    assert_false(rt_shape_equal(&a, &d));
    b.d[4] = 9; /* beyond the rank */
    assert_true(rt_shape_equal(&a, &b));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dtypes),
        cmocka_unit_test(test_count_and_print),
        cmocka_unit_test(test_equal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
