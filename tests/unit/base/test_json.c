/* test_json.c - commas, nesting, escapes, numbers that JSON lacks. */
#include "base/json.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void write_example(rt_json *j) {
    rt_json_object_begin(j, NULL);
    rt_json_str(j, "name", "a\"b");
    rt_json_i64(j, "n", -3);
    rt_json_bool(j, "ok", true);
    rt_json_array_begin(j, "list");
    rt_json_f64(j, NULL, 0.5);
    rt_json_f64(j, NULL, (double)NAN);
    rt_json_object_begin(j, NULL);
    rt_json_object_end(j);
    rt_json_array_end(j);
    rt_json_array_begin(j, "empty");
    rt_json_array_end(j);
    rt_json_i64s(j, "whole", (const int64_t[]){1, -2}, 2);
    rt_json_f64s(j, "numbers", (const double[]){0.5, (double)INFINITY}, 2);
    rt_json_strs(j, "texts", (const char *const[]){"a", NULL}, 2);
    rt_json_raw(j, "raw", "[1]");
    rt_json_str(j, "none", NULL);
    rt_json_object_end(j);
}

static void test_nesting(void **state) {
    (void)state;
    rt_str out;
    rt_str_init(&out);
    rt_json j;
    rt_json_init(&j, &out, false);
    write_example(&j);
    assert_string_equal(rt_str_text(&out), "{\"name\":\"a\\\"b\",\"n\":-3,\"ok\":true,\"list\":[0.5,null,{}],"
                                           "\"empty\":[],\"whole\":[1,-2],\"numbers\":[0.5,null],"
                                           "\"texts\":[\"a\",null],\"raw\":[1],\"none\":null}");
    rt_str_clear(&out);
    rt_json_init(&j, &out, true);
    write_example(&j);
    assert_string_equal(rt_str_text(&out), "{\n"
                                           "  \"name\": \"a\\\"b\",\n"
                                           "  \"n\": -3,\n"
                                           "  \"ok\": true,\n"
                                           "  \"list\": [\n"
                                           "    0.5,\n"
                                           "    null,\n"
                                           "    {}\n"
                                           "  ],\n"
                                           "  \"empty\": [],\n"
                                           "  \"whole\": [\n"
                                           "    1,\n"
                                           "    -2\n"
                                           "  ],\n"
                                           "  \"numbers\": [\n"
                                           "    0.5,\n"
                                           "    null\n"
                                           "  ],\n"
                                           "  \"texts\": [\n"
                                           "    \"a\",\n"
                                           "    null\n"
                                           "  ],\n"
                                           "  \"raw\": [1],\n"
                                           "  \"none\": null\n"
                                           "}");
    rt_str_deinit(&out);
}

static void test_text(void **state) {
    (void)state;
    static const struct {
        const char *text, *want;
    } table[] = {
        {"", "\"\""},
        {"tab\tnl\ncr\rbs\bff\f", "\"tab\\tnl\\ncr\\rbs\\bff\\f\""},
        {"back\\slash/", "\"back\\\\slash/\""},
        {"\x01\x1f\x7f", "\"\\u0001\\u001f\x7f\""},
        {"h\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80", "\"h\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80\""},
        {"\xff|", "\"\xef\xbf\xbd|\""},                               /* never a UTF-8 byte */
        {"\xc3", "\"\xef\xbf\xbd\""},                                 /* cut short */
        {"\xc0\xaf", "\"\xef\xbf\xbd\xef\xbf\xbd\""},                 /* overlong */
        {"\xed\xa0\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""}, /* surrogate */
        {"\xe2\x82z", "\"\xef\xbf\xbd\xef\xbf\xbdz\""},
    };
    for (int64_t i = 0; i < RT_COUNT(table); i++) {
        rt_str out;
        rt_str_init(&out);
        rt_json j;
        rt_json_init(&j, &out, false);
        rt_json_str(&j, NULL, table[i].text);
        assert_string_equal(rt_str_text(&out), table[i].want);
        rt_str_deinit(&out);
    }
}

static void test_not_finite(void **state) {
    (void)state;
    rt_str out;
    rt_str_init(&out);
    rt_json j;
    rt_json_init(&j, &out, false);
    rt_json_object_begin(&j, NULL);
    rt_json_f64(&j, "a", (double)NAN);
    rt_json_f64(&j, "b", (double)INFINITY);
    rt_json_f64_or(&j, "c", -(double)INFINITY, "no samples");
    rt_json_f64_or(&j, "d", 1e300, "unused");
    rt_json_object_end(&j);
    assert_string_equal(rt_str_text(&out),
                        "{\"a\":null,\"a_reason\":\"not a number\",\"b\":null,\"b_reason\":\"infinite\","
                        "\"c\":null,\"c_reason\":\"no samples\",\"d\":1e+300}");
    rt_str_deinit(&out);
}

static void test_too_deep(void **state) {
    (void)state;
    rt_str out;
    rt_str_init(&out);
    rt_json j;
    rt_json_init(&j, &out, false);
    for (int i = 0; i < 31; i++)
        rt_json_array_begin(&j, NULL);
    assert_int_equal(rt_str_status(&out), RT_OK);
    for (int i = 0; i < 100; i++)
        rt_json_array_begin(&j, NULL);
    for (int i = 0; i < 131; i++)
        rt_json_array_end(&j);
    assert_int_equal(rt_str_status(&out), RT_E_FAILED);
    rt_str_deinit(&out);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nesting),
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_not_finite),
        cmocka_unit_test(test_too_deep),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
