/* test_number.c - numbers survive the way to text and back; what is not a number is refused. */
#include "base/rng.h"
#include "base/str.h"
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void test_integers(void **state) {
    (void)state;
    static const struct {
        const char *text;
        bool ok;
        int64_t value;
    } table[] = {{"0", true, 0},
                 {"-0", true, 0},
                 {"+7", true, 7},
                 {"007", true, 7},
                 {"9223372036854775807", true, INT64_MAX},
                 {"-9223372036854775808", true, INT64_MIN},
                 {"9223372036854775808", false, 0},
                 {"-9223372036854775809", false, 0},
                 {"99999999999999999999999", false, 0},
                 {"", false, 0},
                 {"-", false, 0},
                 {"+", false, 0},
                 {" 1", false, 0},
                 {"1 ", false, 0},
                 {"1.0", false, 0},
                 {"0x10", false, 0},
                 {"1e3", false, 0},
                 {"--1", false, 0}};
    for (int64_t i = 0; i < RT_COUNT(table); i++) {
        int64_t v = 0;
        assert_int_equal(rt_parse_i64(table[i].text, strlen(table[i].text), &v), table[i].ok);
        assert_int_equal(v, table[i].value);
    }
    uint64_t u;
    assert_true(rt_parse_u64("18446744073709551615", 20, &u) && u == UINT64_MAX);
    assert_false(rt_parse_u64("18446744073709551616", 20, &u));
    assert_false(rt_parse_u64("-1", 2, &u));
    assert_true(rt_parse_u64("123456", 3, &u) && u == 123); /* length-bounded */
}

static void test_reals(void **state) {
    (void)state;
    static const struct {
        const char *text;
        double value;
    } good[] = {{"0", 0.0},
                {"-0", -0.0},
                {"1", 1.0},
                {"+1.5", 1.5},
                {".5", 0.5},
                {"5.", 5.0},
                {"1e3", 1000.0},
                {"1E-3", 0.001},
                {"0.1", 0.1},
                {"123456789012345678", 123456789012345678.0},
                {"9007199254740993", 9007199254740992.0}, /* half way, to even */
                {"9007199254740993.0000000000000000000000001", 9007199254740994.0},
                {"1.7976931348623157e308", DBL_MAX},
                {"2.2250738585072014e-308", DBL_MIN},
                {"4.9e-324", 4.9e-324},
                {"1e-400", 0.0},
                {"0e99999999999", 0.0},
                {"0.000000000000000000000000000000000000000000001", 1e-45},
                {"10000000000000000000000000000000000000000000000000", 1e49}};
    for (int64_t i = 0; i < RT_COUNT(good); i++) {
        double v = 77.0;
        assert_true(rt_parse_f64(good[i].text, strlen(good[i].text), false, &v));
        assert_memory_equal(&v, &good[i].value, sizeof v);
    }
    static const char *const bad[] = {"",     " 1",  "1 ",  "1,5", "0x1p3", "inf",   "nan", "-",       "+",
                                      ".",    "e5",  "1e",  "1e+", "1.2.3", "1e400", "1f",  "1e5.5",   "--1",
                                      "1\n2", "1_0", ".e1", "१",   "-.",    "1e-",   "+-1", "infinity"};
    for (int64_t i = 0; i < RT_COUNT(bad); i++) {
        double v = 77.0;
        assert_false(rt_parse_f64(bad[i], strlen(bad[i]), false, &v));
        assert_true(v == 77.0);
    }
    double v;
    assert_true(rt_parse_f64("inf", 3, true, &v) && isinf(v) && v > 0);
    assert_true(rt_parse_f64("-Infinity", 9, true, &v) && isinf(v) && v < 0);
    assert_true(rt_parse_f64("NaN", 3, true, &v) && isnan(v));
    assert_false(rt_parse_f64("nano", 4, true, &v));
    assert_true(rt_parse_f64("1.25,", 4, false, &v) && v == 1.25);
    char longer[1000];
    memset(longer, '1', sizeof longer);
    assert_false(rt_parse_f64(longer, sizeof longer, false, &v));
}

static void test_format(void **state) {
    (void)state;
    static const struct {
        double value;
        const char *text;
    } table[] = {{0.0, "0"},
                 {-0.0, "-0"},
                 {0.1, "0.1"},
                 {1e21, "1e+21"},
                 {1.0 / 3, "0.3333333333333333"},
                 {123456.0, "123456"},
                 {5e-324, "5e-324"},
                 {0.1 + 0.2, "0.30000000000000004"},
                 {-2.5, "-2.5"}};
    char buf[40];
    for (int64_t i = 0; i < RT_COUNT(table); i++) {
        rt_format_f64(buf, table[i].value);
        assert_string_equal(buf, table[i].text);
    }
    rt_format_f64(buf, -(double)NAN);
    assert_string_equal(buf, "nan");
    rt_format_f64(buf, -(double)INFINITY);
    assert_string_equal(buf, "-inf");
    rt_format_f32(buf, 0.1f);
    assert_string_equal(buf, "0.1");
    rt_format_f32(buf, FLT_MAX);
    assert_string_equal(buf, "3.4028235e+38");
    rt_format_f32(buf, 1e-45f);
    assert_string_equal(buf, "1e-45");
}

/* Random bit patterns, all exponents: text and back is the identity; parsing agrees with strtod. */
static void test_round_trip(void **state) {
    (void)state;
    rt_rng r = rt_rng_make(1, RT_RNG_TEST, 0, 0);
    for (uint64_t i = 0; i < 20000; i++) {
        uint64_t bits = rt_rng_u64(r, i);
        double v, back = 0.0;
        memcpy(&v, &bits, sizeof v);
        if (i % 2)
            v = (double)(int64_t)(bits >> 40) * 1e-4; /* short decimals: the fast road */
        char buf[40];
        rt_format_f64(buf, v);
        if (isfinite(v)) {
            assert_true(rt_parse_f64(buf, strlen(buf), false, &back));
            assert_memory_equal(&back, &v, sizeof v);
            assert_true(strtod(buf, NULL) == v);
        }
        uint32_t small = (uint32_t)bits;
        float f;
        memcpy(&f, &small, sizeof f);
        rt_format_f32(buf, f);
        if (isfinite(f)) {
            float again = strtof(buf, NULL);
            assert_memory_equal(&again, &f, sizeof f);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_integers),
        cmocka_unit_test(test_reals),
        cmocka_unit_test(test_format),
        cmocka_unit_test(test_round_trip),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
