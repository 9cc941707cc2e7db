/* test_str.c - the growing buffer, prefixes, and suggestions for misspelt names. */
#include "base/alloc.h"
#include "base/arena.h"
#include "base/file.h"
#include "base/str.h"
#include <string.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void test_append(void **state) {
    (void)state;
    rt_str s;
    rt_str_init(&s);
    assert_string_equal(rt_str_text(&s), "");
    rt_str_append(&s, "a");
    rt_str_append_n(&s, "bcd", 2);
    rt_str_append_char(&s, '-');
    rt_str_appendf(&s, "%d %s", 42, "x");
    assert_string_equal(rt_str_text(&s), "abc-42 x");
    assert_int_equal(s.len, 8);
    rt_str_clear(&s);
    assert_string_equal(rt_str_text(&s), "");
    for (int i = 0; i < 1000; i++)
        rt_str_appendf(&s, "%0200d", i); /* longer than the small buffer inside */
    assert_int_equal(s.len, 200000);
    assert_int_equal(strlen(rt_str_text(&s)), 200000);
    assert_string_equal(rt_str_text(&s) + 199997, "999");
    assert_int_equal(rt_str_status(&s), RT_OK);
    rt_str_deinit(&s);
}

static bool refuse(void *user, uint64_t call, size_t bytes) {
    (void)user;
    (void)call;
    (void)bytes;
    return false;
}

static void test_failure_is_remembered(void **state) {
    (void)state;
    rt_str s;
    rt_str_init(&s);
    rt_str_append(&s, "kept");
    rt_alloc_set_hook(refuse, NULL);
    for (int i = 0; i < 100; i++)
        rt_str_append(&s, "....");
    assert_null(rt_strdup("x"));
    rt_alloc_set_hook(NULL, NULL);
    size_t len = s.len;
    rt_str_append(&s, "more");
    rt_str_appendf(&s, "%d", 1);
    assert_int_equal(s.len, len);
    assert_int_equal(rt_str_status(&s), RT_E_MEMORY);
    assert_memory_equal(rt_str_text(&s), "kept", 4);
    rt_str_deinit(&s);
}

/* Wherever a failed text goes, the failure goes along; a message is there whatever was recorded since. */
static void test_failure_travels(void **state) {
    (void)state;
    rt_str s, all;
    rt_str_init(&s);
    rt_str_init(&all);
    rt_str_append(&all, "before");
    rt_str_append_str(&all, &s);
    assert_int_equal(rt_str_status(&all), RT_OK);
    rt_alloc_set_hook(refuse, NULL);
    rt_str_append(&s, "text");
    rt_alloc_set_hook(NULL, NULL);
    rt_error_clear();
    rt_str_clear(&s);
    rt_str_append(&s, "later");
    const char *text = NULL;
    assert_int_equal(rt_str_get(&s, &text), RT_E_MEMORY);
    assert_string_equal(text, "");
    assert_string_not_equal(rt_error_text(), "");
    rt_str_append_str(&all, &s);
    assert_int_equal(rt_str_status(&all), RT_E_MEMORY);
    rt_arena arena;
    rt_arena_init(&arena);
    assert_int_equal(rt_arena_text(&arena, &text, &s), RT_E_MEMORY);
    assert_int_equal(rt_file_write_text("/nowhere/at/all", &s), RT_E_MEMORY);
    rt_str_deinit(&s); /* begins anew */
    rt_str_append(&s, "text");
    assert_int_equal(rt_arena_text(&arena, &text, &s), RT_OK);
    assert_string_equal(text, "text");
    rt_arena_deinit(&arena);
    rt_str_deinit(&s);
    rt_str_deinit(&all);
}

static void test_ends(void **state) {
    (void)state;
    assert_true(rt_str_starts("model.onnx", "model"));
    assert_false(rt_str_starts("mod", "model"));
    assert_true(rt_str_ends("model.onnx", ".onnx"));
    assert_false(rt_str_ends("nnx", ".onnx"));
    assert_true(rt_str_ends("x", ""));
    assert_true(rt_str_heads("wrn:28-10", "wrn") && rt_str_heads("wrn", "wrn"));
    assert_false(rt_str_heads("wrn2:1", "wrn") || rt_str_heads("wr", "wrn") || rt_str_heads(":1", "wrn"));
}

static void test_distance(void **state) {
    (void)state;
    static const struct {
        const char *a, *b;
        int d;
    } table[] = {{"", "", 0},       {"", "abc", 3},        {"abc", "", 3},           {"abc", "abc", 0},
                 {"abc", "acb", 1}, {"epohc", "epoch", 1}, {"kitten", "sitting", 3}, {"ca", "abc", 3},
                 {"lr", "rl", 1},   {"flaw", "lawn", 2}};
    for (int64_t i = 0; i < RT_COUNT(table); i++) {
        assert_int_equal(rt_str_distance(table[i].a, table[i].b), table[i].d);
        assert_int_equal(rt_str_distance(table[i].b, table[i].a), table[i].d);
    }
    char longer[400];
    memset(longer, 'a', sizeof longer);
    longer[399] = 0;
    assert_int_equal(rt_str_distance(longer, "a"), 399);
    assert_int_equal(rt_str_distance(longer, longer), 0);
}

static void test_nearest(void **state) {
    (void)state;
    static const char *const names[] = {"learning_rate", "epochs", "batch_size", "lr", "seed", "members"};
    static const struct {
        const char *typed;
        int64_t want;
    } table[] = {{"learnig_rate", 0}, {"epoch", 1},  {"batchsize", 2}, {"lr", 3},     {"sed", 4},
                 {"member", 5},       {"zebra", -1}, {"", -1},         {"x", -1},     {"weight_decay", -1},
                 {"rl", 3},           {"see", 4},    {"bach_sise", 2}, {"qwerty", -1}};
    for (int64_t i = 0; i < RT_COUNT(table); i++)
        assert_int_equal(rt_str_nearest(table[i].typed, names, RT_COUNT(names)), table[i].want);
    assert_int_equal(rt_str_nearest("x", NULL, 0), -1);
}

static void test_unknown(void **state) {
    (void)state;
    static const char *const names[] = {"kd", "hydra", "end2"};
    assert_int_equal(rt_str_find("end2", names, 3), 2);
    assert_int_equal(rt_str_find("end", names, 3), -1);
    assert_int_equal(
        rt_error_unknown(RT_E_USAGE, __FILE__, __LINE__, "hydar", names, 3, "--%s: unknown", "method"),
        RT_E_USAGE);
    assert_string_equal(rt_error_text(),
                        "--method: unknown 'hydar'; did you mean 'hydra'? Wanted one of kd, hydra, end2");
    assert_int_equal(rt_error_unknown(RT_E_INPUT, __FILE__, __LINE__, "forest", names, 3, "no method"),
                     RT_E_INPUT);
    assert_string_equal(rt_error_text(), "no method 'forest'; wanted one of kd, hydra, end2");
}

static void test_csv(void **state) {
    (void)state;
    static const struct {
        const char *text;
        bool safe;
        const char *want;
    } table[] = {{"plain", true, "plain"},
                 {"", true, ""},
                 {"a,b", false, "\"a,b\""},
                 {"say \"no\"", false, "\"say \"\"no\"\"\""},
                 {"two\nlines", false, "\"two\nlines\""},
                 {" x", false, "\" x\""},
                 {"x ", false, "\"x \""},
                 {"=1+1", false, "=1+1"},
                 {"=1+1", true, "\"'=1+1\""}};
    for (int64_t i = 0; i < RT_COUNT(table); i++) {
        rt_str s;
        rt_str_init(&s);
        rt_str_append_csv(&s, table[i].text, table[i].safe);
        assert_string_equal(rt_str_text(&s), table[i].want);
        rt_str_deinit(&s);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_append),          cmocka_unit_test(test_failure_is_remembered),
        cmocka_unit_test(test_failure_travels), cmocka_unit_test(test_ends),
        cmocka_unit_test(test_distance),        cmocka_unit_test(test_nearest),
        cmocka_unit_test(test_unknown),         cmocka_unit_test(test_csv),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
