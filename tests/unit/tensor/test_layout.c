/* test_layout.c - positions by hand for each layout; every layout is one-to-one and stays inside its size. */
#include "base/alloc.h"
#include "tensor/tensor.h"
#include <string.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static rt_desc desc(rt_layout l, int64_t a, int64_t b, int64_t c, int64_t d) {
    return rt_desc_make(RT_DTYPE_F32, rt_shape4(a, b, c, d), l);
}

/* The drawings of tensor.h, written out as sums of strides. */
static int64_t position_by_hand(rt_layout l, const int64_t d[4], int64_t o, int64_t i, int64_t h, int64_t w) {
    int64_t W = d[3], HW = d[2] * d[3], c8 = (d[1] + 7) / 8, c16 = (d[1] + 15) / 16, at = h * W + w;
    switch (l) {
    case RT_LAYOUT_PLAIN:
        return o * d[1] * HW + i * HW + at;
    case RT_LAYOUT_C8:
        return o * c8 * HW * 8 + i / 8 * HW * 8 + at * 8 + i % 8;
    case RT_LAYOUT_C16:
        return o * c16 * HW * 16 + i / 16 * HW * 16 + at * 16 + i % 16;
    case RT_LAYOUT_W_OIHW8I8O:
        return o / 8 * c8 * HW * 64 + i / 8 * HW * 64 + at * 64 + i % 8 * 8 + o % 8;
    case RT_LAYOUT_W_OIHW8O8I:
        return o / 8 * c8 * HW * 64 + i / 8 * HW * 64 + at * 64 + o % 8 * 8 + i % 8;
    case RT_LAYOUT_W_OHWI8O:
        return o / 8 * HW * d[1] * 8 + at * d[1] * 8 + i * 8 + o % 8;
    case RT_LAYOUT_W_OIHW16I16O:
        return o / 16 * c16 * HW * 256 + i / 16 * HW * 256 + at * 256 + i % 16 * 16 + o % 16;
    case RT_LAYOUT_W_OIHW16O16I:
        return o / 16 * c16 * HW * 256 + i / 16 * HW * 256 + at * 256 + o % 16 * 16 + i % 16;
    case RT_LAYOUT_W_OHWI16O:
        return o / 16 * HW * d[1] * 16 + at * d[1] * 16 + i * 16 + o % 16;
    case RT_LAYOUT_W_IOHW16O16I:
        return i / 16 * ((d[0] + 15) / 16) * HW * 256 + o / 16 * HW * 256 + at * 256 + o % 16 * 16 + i % 16;
    default:
        return -1;
    }
}

static void test_positions(void **state) {
    (void)state;
    static const int64_t shapes[][4] = {{1, 1, 1, 1},  {2, 3, 5, 4},   {8, 8, 3, 3}, {16, 16, 1, 1},
                                        {17, 9, 3, 2}, {10, 33, 2, 3}, {24, 3, 3, 3}};
    for (int l = 0; l < RT_LAYOUT_W_WINO; l++)
        for (int64_t s = 0; s < RT_COUNT(shapes); s++) {
            const int64_t *d = shapes[s];
            rt_desc x = desc((rt_layout)l, d[0], d[1], d[2], d[3]);
            int64_t n = rt_desc_elems(&x);
            assert_int_equal(rt_desc_bytes(&x), n * 4);
            unsigned char *seen;
            assert_int_equal(rt_calloc(&seen, (size_t)n, 1), RT_OK);
            for (int64_t a = 0; a < d[0]; a++)
                for (int64_t b = 0; b < d[1]; b++)
                    for (int64_t h = 0; h < d[2]; h++)
                        for (int64_t w = 0; w < d[3]; w++) {
                            int64_t at = rt_desc_index4(&x, a, b, h, w);
                            assert_int_equal(at, position_by_hand((rt_layout)l, d, a, b, h, w));
                            assert_in_range(at, 0, n - 1);
                            assert_int_equal(seen[at], 0);
                            seen[at] = 1;
                        }
            rt_free(seen);
        }
}

static void test_padding(void **state) {
    (void)state;
    static const struct {
        rt_layout l;
        int64_t shape[4], elems;
    } table[] = {
        {RT_LAYOUT_PLAIN, {2, 3, 5, 5}, 150},
        {RT_LAYOUT_C8, {2, 3, 5, 5}, 2 * 8 * 25},
        {RT_LAYOUT_C8, {2, 16, 5, 5}, 2 * 16 * 25},
        {RT_LAYOUT_C16, {2, 17, 5, 5}, 2 * 32 * 25},
        {RT_LAYOUT_W_OIHW8I8O, {10, 3, 3, 3}, 16 * 8 * 9},
        {RT_LAYOUT_W_OIHW8O8I, {8, 9, 1, 1}, 8 * 16},
        {RT_LAYOUT_W_OHWI8O, {10, 3, 3, 3}, 16 * 3 * 9},
        {RT_LAYOUT_W_OIHW16I16O, {10, 3, 3, 3}, 16 * 16 * 9},
        {RT_LAYOUT_W_OIHW16O16I, {33, 16, 1, 1}, 48 * 16},
        {RT_LAYOUT_W_OHWI16O, {33, 5, 1, 2}, 48 * 5 * 2},
        {RT_LAYOUT_W_IOHW16O16I, {33, 5, 1, 2}, 48 * 16 * 2},
        {RT_LAYOUT_W_WINO, {33, 5, 3, 3}, 48 * 5 * 36},
        {RT_LAYOUT_W_WINO_T, {33, 5, 3, 3}, 33 * 16 * 36},
    };
    for (int64_t i = 0; i < RT_COUNT(table); i++) {
        const int64_t *s = table[i].shape;
        rt_desc x = desc(table[i].l, s[0], s[1], s[2], s[3]);
        assert_int_equal(rt_desc_elems(&x), table[i].elems);
    }
    rt_desc scalar = rt_desc_make(RT_DTYPE_F64, rt_shape0(), RT_LAYOUT_PLAIN);
    assert_int_equal(rt_desc_bytes(&scalar), 8);
}

/* Whether part m of axis 0, all elements of it, stands where m parts before it end. */
static bool parts_follow(const rt_desc *x, const rt_desc *part, int64_t n) {
    const int64_t *d = part->shape.d, size = rt_desc_elems(part);
    bool good = n * size == rt_desc_elems(x);
    for (int64_t m = 0; m < n; m++)
        for (int64_t a = 0; a < d[0]; a++)
            for (int64_t b = 0; b < d[1]; b++)
                for (int64_t w = 0; w < d[3]; w++)
                    good = good && rt_desc_index4(x, m * d[0] + a, b, d[2] - 1, w) ==
                                       m * size + rt_desc_index4(part, a, b, d[2] - 1, w);
    return good;
}

/* Parts of 1 to 48 channels, on both sides of whole blocks: 2 of 5 in blocks of 8, and 2 of 9 in blocks of 16, take as
 * many bytes as 10 and 18, and are no parts. */
static void test_divide(void **state) {
    (void)state;
    for (int l = 0; l < RT_LAYOUT_COUNT; l++)
        for (int64_t n = 1; n <= 4; n++)
            for (int64_t c = 1; c <= 48; c++)
                for (int64_t other = 5; other <= 33; other += 14) {
                    const rt_desc x = desc((rt_layout)l, n * c, other, 3, 3),
                                  want = desc((rt_layout)l, c, other, 3, 3);
                    rt_desc part;
                    const bool divides = rt_desc_divide(&x, n, &part);
                    if (rt_layout_is_wino((rt_layout)l))
                        assert_true(divides == (n == 1));
                    else if (
                        l !=
                        RT_LAYOUT_W_IOHW16O16I) /* there single blocks of i follow each other by accident */
                        assert_true(divides == parts_follow(&x, &want, n));
                    else
                        assert_true(!divides || parts_follow(&x, &want, n));
                    assert_true(!divides || rt_desc_equal(&part, &want));
                }
    rt_desc part, x = desc(RT_LAYOUT_PLAIN, 7, 1, 1, 1);
    assert_false(rt_desc_divide(&x, 2, &part));
    assert_false(rt_desc_divide(&x, 0, &part));
}

static void test_names_and_equality(void **state) {
    (void)state;
    for (int a = 0; a < RT_LAYOUT_COUNT; a++)
        for (int b = 0; b < a; b++)
            assert_string_not_equal(rt_layout_name((rt_layout)a), rt_layout_name((rt_layout)b));
    assert_string_equal(rt_layout_name(RT_LAYOUT_C8), "nChw8c");
    assert_string_equal(rt_layout_name(RT_LAYOUT_W_OIHW8I8O), "OIhw8i8o");
    assert_string_equal(rt_layout_name(RT_LAYOUT_COUNT), "?");
    assert_int_equal(rt_layout_block(RT_LAYOUT_C8), 8);
    assert_int_equal(rt_layout_block(RT_LAYOUT_C16), 16);
    assert_int_equal(rt_layout_block(RT_LAYOUT_PLAIN), 1);
    assert_int_equal(rt_layout_block(RT_LAYOUT_W_OIHW8I8O), 1);
    rt_desc x = desc(RT_LAYOUT_C8, 1, 8, 2, 2), y = x;
    assert_true(rt_desc_equal(&x, &y));
    y.layout = RT_LAYOUT_PLAIN;
    assert_false(rt_desc_equal(&x, &y));
    y = x;
    y.dtype = RT_DTYPE_F64;
    assert_false(rt_desc_equal(&x, &y));
    y = x;
    y.shape.d[3] = 3;
    assert_false(rt_desc_equal(&x, &y));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_positions),
        cmocka_unit_test(test_padding),
        cmocka_unit_test(test_divide),
        cmocka_unit_test(test_names_and_equality),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
