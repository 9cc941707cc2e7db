/* test_reader.c - values, byte order, and refusal at every length. */
#include "base/reader.h"
#include <string.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static const uint8_t data[] = {0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x09, 0x0a,
                               0x0b, 0x0c, 0x0d, 0x0e, 0x0f, 0x10, 0x11, 0x12, 0x13};

static rt_status read_all(size_t n) {
    rt_reader r;
    rt_reader_init(&r, data, n, "f.bin");
    uint8_t a;
    uint16_t b;
    uint32_t c, e;
    uint64_t d;
    RT_TRY(rt_reader_u8(&r, &a));
    RT_TRY(rt_reader_u16le(&r, &b));
    RT_TRY(rt_reader_u32le(&r, &c));
    RT_TRY(rt_reader_u64le(&r, &d));
    RT_TRY(rt_reader_u32be(&r, &e));
    assert_int_equal(a, 0x01);
    assert_int_equal(b, 0x0302);
    assert_int_equal(c, 0x07060504);
    assert_true(d == UINT64_C(0x0f0e0d0c0b0a0908));
    assert_int_equal(e, 0x10111213);
    assert_int_equal(rt_reader_left(&r), 0);
    return RT_OK;
}

static void test_every_truncation(void **state) {
    (void)state;
    for (size_t n = 0; n < sizeof data; n++) {
        rt_error_clear();
        assert_int_equal(read_all(n), RT_E_INPUT);
        assert_non_null(strstr(rt_error_text(), "f.bin"));
    }
    assert_int_equal(read_all(sizeof data), RT_OK);
}

static void test_bytes(void **state) {
    (void)state;
    rt_reader r;
    rt_reader_init(&r, data, 10, "f.bin");
    const uint8_t *p;
    assert_int_equal(rt_reader_bytes(&r, &p, 4), RT_OK);
    assert_ptr_equal(p, data);
    assert_int_equal(rt_reader_bytes(&r, &p, 7), RT_E_INPUT);
    assert_string_equal(rt_error_text(), "f.bin: truncated: 7 bytes wanted at offset 4, 6 left");
    assert_null(p);
    assert_int_equal(rt_reader_bytes(&r, &p, SIZE_MAX), RT_E_INPUT);
    assert_int_equal(rt_reader_left(&r), 6);
    assert_int_equal(rt_reader_bytes(&r, &p, 6), RT_OK);
    assert_int_equal(rt_reader_bytes(&r, &p, 0), RT_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_truncation), cmocka_unit_test(test_bytes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
