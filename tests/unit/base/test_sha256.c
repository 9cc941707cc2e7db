/* test_sha256.c - the examples of FIPS 180-4, in one piece and in all splits. */
#include "base/sha256.h"
#include "base/compiler.h"
#include <string.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void digest(const char *text, size_t split, char hex[65]) {
    rt_sha256 s;
    uint8_t out[32];
    rt_sha256_init(&s);
    rt_sha256_update(&s, text, split);
    rt_sha256_update(&s, text + split, strlen(text) - split);
    rt_sha256_final(&s, out);
    rt_sha256_hex(out, hex);
}

static void test_examples(void **state) {
    (void)state;
    static const struct {
        const char *text, *want;
    } table[] = {
        {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
        {"abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmn"
         "hijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu",
         "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1"},
    };
    for (int64_t i = 0; i < RT_COUNT(table); i++)
        for (size_t split = 0; split <= strlen(table[i].text); split++) {
            char hex[65];
            digest(table[i].text, split, hex);
            assert_string_equal(hex, table[i].want);
        }
}

static void test_million(void **state) {
    (void)state;
    rt_sha256 s;
    uint8_t block[1000], out[32];
    char hex[65];
    memset(block, 'a', sizeof block);
    rt_sha256_init(&s);
    for (int i = 0; i < 1000; i++)
        rt_sha256_update(&s, block, sizeof block);
    rt_sha256_final(&s, out);
    rt_sha256_hex(out, hex);
    assert_string_equal(hex, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

/* Message lengths around the padding's edges must all differ and not depend on how they are cut. */
static void test_padding_edges(void **state) {
    (void)state;
    char text[140], seen[139][65];
    memset(text, 'x', sizeof text);
    for (size_t n = 0; n < 139; n++) {
        text[n] = 0;
        char other[65];
        digest(text, 0, seen[n]);
        digest(text, n / 2, other);
        assert_string_equal(seen[n], other);
        for (size_t k = 0; k < n; k++)
            assert_string_not_equal(seen[k], seen[n]);
        text[n] = 'x';
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_examples),
        cmocka_unit_test(test_million),
        cmocka_unit_test(test_padding_edges),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
