/* The strict JSON reader: values, and a table of texts it must refuse. */
#include "io/io_int.h"
#include "unit/io/io_support.h"

#include <math.h>

static rt_status read_json(const uint8_t *data, size_t n) {
    rt_jdoc *d = NULL;
    rt_status st = rt_jdoc_parse(&d, (const char *)data, n, "t.json");
    rt_jdoc_destroy(&d);
    return st;
}

static void test_values(void **state) {
    (void)state;
    static const char text[] =
        " {\"a\": [1, -2.5e1, true, false, null, \"x\\n\\u00e9\\ud83d\\ude00\\\"\"],\n"
        "  \"b\": {}, \"big\": 9223372036854775807, \"bigger\": 9223372036854775808, \"z\": -0}\r\n";
    rt_jdoc *d = NULL;
    assert_ok(rt_jdoc_parse(&d, text, sizeof text - 1, "t.json"));
    rt_jval root = rt_jdoc_root(d), a = rt_jval_get(root, "a");
    assert_int_equal(rt_jval_len(root), 5);
    assert_string_equal(rt_jval_key(root, 2), "big");
    assert_null(rt_jval_key(root, 5));
    assert_int_equal(rt_jval_len(a), 6);
    int64_t i = 0;
    double f = 0;
    bool b = false;
    const char *s = NULL;
    assert_true(rt_jval_i64(rt_jval_at(a, 0), &i) && i == 1);
    assert_true(rt_jval_f64(rt_jval_at(a, 0), &f) && f == 1.0);
    assert_false(rt_jval_i64(rt_jval_at(a, 1), &i));
    assert_true(rt_jval_f64(rt_jval_at(a, 1), &f) && f == -25.0);
    assert_true(rt_jval_bool(rt_jval_at(a, 2), &b) && b);
    assert_true(rt_jval_bool(rt_jval_at(a, 3), &b) && !b);
    assert_false(rt_jval_bool(rt_jval_at(a, 4), &b));
    assert_true(rt_jval_str(rt_jval_at(a, 5), &s));
    assert_string_equal(s, "x\n\xc3\xa9\xf0\x9f\x98\x80\"");
    assert_null(rt_jval_at(a, 6));
    assert_null(rt_jval_at(a, -1));
    assert_int_equal(rt_jval_len(rt_jval_get(root, "b")), 0);
    assert_int_equal(rt_jval_len(rt_jval_at(a, 0)), -1);
    assert_null(rt_jval_get(root, "c"));
    assert_null(rt_jval_get(a, "a"));
    assert_true(rt_jval_i64(rt_jval_get(root, "big"), &i) && i == INT64_MAX);
    assert_false(rt_jval_i64(rt_jval_get(root, "bigger"), &i));
    assert_true(rt_jval_f64(rt_jval_get(root, "bigger"), &f) && f == 0x1p63);
    assert_false(rt_jval_i64(rt_jval_get(root, "z"), &i));
    assert_true(rt_jval_f64(rt_jval_get(root, "z"), &f) && f == 0 && signbit(f));
    rt_jdoc_destroy(&d);
}

static void test_refused(void **state) {
    (void)state;
    static const char *const bad[] = {
        "",
        " ",
        "{",
        "}",
        "[",
        "]",
        "[1,]",
        "[,1]",
        "[1 2]",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":1,}",
        "{a:1}",
        "{'a':1}",
        "nul",
        "True",
        "NaN",
        "Infinity",
        "-Infinity",
        "+1",
        "-",
        ".5",
        "1.",
        "1e",
        "1e+",
        "01",
        "-01",
        "0x10",
        "1e999",
        "1 2",
        "{} {}",
        "[1]x",
        "\"abc",
        "\"\\x\"",
        "\"\\u12\"",
        "\"\\u12g4\"",
        "\"\\ud800\"",
        "\"\\udc00\"",
        "\"\\ud800\\u0041\"",
        "\"\\u0000\"",
        "\"\\",
        "\"\t\"",
        "\"\x80\"",
        "\"\xc0\xaf\"",
        "\"\xe0\x80\xaf\"",
        "\"\xed\xa0\x80\"",
        "\"\xf4\x90\x80\x80\"",
        "\"\xf8\"",
        "\"\xe2\x82",
        "{\"a\":1,\"a\":2}",
        "{\"a\":1,\"\\u0061\":2}",
        "[{\"k\":{\"q\":1,\"r\":2,\"q\":1}}]",
        "// c\n1",
        "[1]/**/",
        "\xef\xbb\xbf{}",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (torment_run(read_json, (const uint8_t *)bad[i], strlen(bad[i])) != RT_E_INPUT)
            fail_msg("accepted: %s", bad[i]);
    static const char nul[] = "[1]\0";
    assert_int_equal(torment_run(read_json, (const uint8_t *)nul, 4), RT_E_INPUT);
}

static void test_place(void **state) {
    (void)state;
    static const char text[] = "{\"a\": \"x\\ny\",\n  \"b\": ?}";
    assert_int_equal(read_json((const uint8_t *)text, sizeof text - 1), RT_E_INPUT);
    assert_non_null(strstr(rt_error_text(), "t.json: JSON line 2 column 8"));
}

static void test_depth(void **state) {
    (void)state;
    static const struct {
        size_t depth;
        rt_status want;
    } cases[] = {{63, RT_OK}, {64, RT_OK}, {65, RT_E_INPUT}, {1000000, RT_E_INPUT}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t n = cases[i].depth;
        char *text = malloc(2 * n);
        memset(text, '[', n);
        memset(text + n, ']', n);
        assert_int_equal(read_json((const uint8_t *)text, 2 * n), cases[i].want);
        free(text);
    }
}

static void test_many_keys(void **state) {
    (void)state;
    rt_str t;
    rt_str_init(&t);
    rt_str_append(&t, "{");
    for (int i = 0; i < 100000; i++)
        rt_str_appendf(&t, "%s\"key%d\": %d", i ? "," : "", i, i);
    rt_str_append(&t, "}");
    assert_ok(rt_str_status(&t));
    rt_jdoc *d = NULL;
    assert_ok(rt_jdoc_parse(&d, t.p, t.len, "t"));
    int64_t v = 0;
    for (int i = 0; i < 100000; i += 997) {
        char key[32];
        snprintf(key, sizeof key, "key%d", i);
        assert_true(rt_jval_i64(rt_jval_get(rt_jdoc_root(d), key), &v) && v == i);
    }
    rt_jdoc_destroy(&d);
    rt_str_deinit(&t);
}

static void test_torment(void **state) {
    (void)state;
    static const char text[] =
        "{\"a\": [1, -2.5e1, true, null, \"x\\n\\u00e9\\ud83d\\ude00\xc3\xa9\"], \"b\": {\"c\": \"d\"}}";
    uint64_t before = live_blocks();
    torment_truncate(read_json, (const uint8_t *)text, sizeof text - 1);
    assert_true(torment_flip(read_json, (const uint8_t *)text, sizeof text - 1) > 0);
    size_t n = 1000000; /* a number of a million digits */
    char *digits = malloc(n);
    memset(digits, '7', n);
    assert_int_equal(read_json((const uint8_t *)digits, n), RT_E_INPUT);
    free(digits);
    assert_int_equal(live_blocks(), before);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values), cmocka_unit_test(test_refused),   cmocka_unit_test(test_place),
        cmocka_unit_test(test_depth),  cmocka_unit_test(test_many_keys), cmocka_unit_test(test_torment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
