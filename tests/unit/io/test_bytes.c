/* gzip and xz unpacking: round trips, members in a row, cut and damaged streams, bombs. */
#include "base/alloc.h"
#include "io/io_int.h"
#include "unit/io/io_support.h"

static uint8_t *sample(size_t n) {
    uint8_t *p = malloc(n);
    assert_non_null(p);
    for (size_t i = 0; i < n; i++)
        p[i] = (uint8_t)((i * i >> 3) ^ (i % 7));
    return p;
}

typedef uint8_t *(*pack_fn)(const void *src, size_t n, size_t *out_n);
static const pack_fn packers[] = {pack_gzip, pack_xz};

static void check_same(const uint8_t *packed, size_t packed_n, const uint8_t *want, size_t n) {
    uint8_t *got = NULL;
    size_t got_n = 0;
    assert_ok(rt_bytes_decode(packed, packed_n, "t", n, &got, &got_n));
    assert_int_equal(got_n, n);
    assert_memory_equal(got, want, n);
    assert_int_equal(got[n], 0);
    rt_free(got);
}

static void test_round_trip(void **state) {
    (void)state;
    static const size_t sizes[] = {1, 100, 65535, 65536, 65537, 3000000};
    for (size_t k = 0; k < sizeof packers / sizeof *packers; k++)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            size_t n = sizes[i], packed_n = 0;
            uint8_t *src = sample(n), *packed = packers[k](src, n, &packed_n);
            check_same(packed, packed_n, src, n);
            /* twice in a row is the text twice */
            uint8_t *two = malloc(2 * packed_n), *both = malloc(2 * n);
            memcpy(two, packed, packed_n);
            memcpy(two + packed_n, packed, packed_n);
            memcpy(both, src, n);
            memcpy(both + n, src, n);
            check_same(two, 2 * packed_n, both, 2 * n);
            free(two);
            free(both);
            free(src);
            free(packed);
        }
}

static rt_status read_small(const uint8_t *data, size_t n) {
    uint8_t *got = NULL;
    size_t got_n = 0;
    rt_status st = rt_bytes_decode(data, n, "t", 4096, &got, &got_n);
    rt_free(got);
    return st;
}

static void test_torment(void **state) {
    (void)state;
    uint64_t before = live_blocks();
    for (size_t k = 0; k < sizeof packers / sizeof *packers; k++) {
        size_t packed_n = 0;
        uint8_t *src = sample(300), *packed = packers[k](src, 300, &packed_n);
        size_t magic = k == 0 ? 2 : 6; /* fewer bytes are not recognised as packed */
        for (size_t cut = magic; cut < packed_n; cut++)
            assert_int_equal(torment_run(read_small, packed, cut), RT_E_INPUT);
        torment_flip(read_small, packed, packed_n);
        free(src);
        free(packed);
    }
    assert_int_equal(live_blocks(), before);
}

static void test_garbage_behind(void **state) {
    (void)state;
    for (size_t k = 0; k < sizeof packers / sizeof *packers; k++) {
        size_t packed_n = 0;
        uint8_t *src = sample(300), *packed = packers[k](src, 300, &packed_n);
        packed = realloc(packed, packed_n + 3);
        memcpy(packed + packed_n, "abc", 3);
        for (size_t extra = 1; extra <= 3; extra++)
            assert_int_equal(torment_run(read_small, packed, packed_n + extra), RT_E_INPUT);
        free(src);
        free(packed);
    }
}

static void test_bomb(void **state) {
    (void)state;
    size_t n = (size_t)64 << 20, packed_n = 0;
    uint8_t *zeros = calloc(1, n);
    assert_non_null(zeros);
    for (size_t k = 0; k < sizeof packers / sizeof *packers; k++) {
        uint8_t *packed = packers[k](zeros, n, &packed_n), *got = NULL;
        size_t got_n = 0;
        /* the caller's limit */
        assert_int_equal(rt_bytes_decode(packed, packed_n, "bomb", 1 << 20, &got, &got_n), RT_E_INPUT);
        assert_null(got);
        /* our ratio, when the caller sets none: xz packs zeros by 7000 */
        if (k == 1) {
            assert_true(packed_n * 200 + (16 << 20) < n);
            assert_int_equal(rt_bytes_decode(packed, packed_n, "bomb", SIZE_MAX, &got, &got_n), RT_E_INPUT);
            assert_non_null(strstr(rt_error_text(), "limit"));
        }
        free(packed);
    }
    free(zeros);
}

static rt_status says_1000(const uint8_t *head, size_t n, const char *name, size_t *total) {
    (void)head, (void)n, (void)name;
    *total = 1000;
    return RT_OK;
}
static rt_status says_much(const uint8_t *head, size_t n, const char *name, size_t *total) {
    (void)head, (void)n, (void)name;
    *total = (size_t)8 << 30;
    return RT_OK;
}

/* A refusal takes no more memory than the first piece, whoever gives the promise: the end of the file, or the header
 * of the format inside. */
static void test_refusal_is_cheap(void **state) {
    (void)state;
    size_t n = (size_t)64 << 20, packed_n = 0, got_n = 0;
    uint8_t *zeros = calloc(1, n), *got = NULL;
    assert_non_null(zeros);
    static const rt_bytes_header headers[] = {NULL, says_1000, says_much};
    for (size_t k = 0; k < sizeof packers / sizeof *packers; k++)
        for (size_t h = 0; h < sizeof headers / sizeof *headers; h++) {
            uint8_t *packed = packers[k](zeros, n, &packed_n);
            rt_alloc_stats now;
            rt_alloc_get_stats(&now);
            rt_alloc_set_limit(now.live_bytes + (1 << 20)); /* what wants more fails as RT_E_MEMORY */
            rt_status st =
                rt_bytes_decode_as(packed, packed_n, "bomb", n - 1 + (h > 0), headers[h], &got, &got_n);
            rt_alloc_set_limit(0);
            assert_int_equal(st, RT_E_INPUT);
            assert_null(got);
            free(packed);
        }
    free(zeros);
}

static void test_files(void **state) {
    (void)state;
    scratch s;
    scratch_make(&s);
    uint8_t *got = NULL;
    size_t got_n = 0, packed_n = 0;
    uint8_t *packed = pack_gzip("hello", 5, &packed_n);
    scratch_write(&s, "a.gz", packed, packed_n);
    assert_ok(rt_bytes_read(scratch_path(&s, "a.gz"), 5, &got, &got_n));
    assert_int_equal(got_n, 5);
    assert_string_equal((char *)got, "hello");
    rt_free(got);
    assert_int_equal(rt_bytes_read(scratch_path(&s, "a.gz"), 4, &got, &got_n), RT_E_INPUT);
    scratch_text(&s, "plain", "hello");
    assert_ok(rt_bytes_read(scratch_path(&s, "plain"), 5, &got, &got_n));
    assert_string_equal((char *)got, "hello");
    rt_free(got);
    assert_int_equal(rt_bytes_read(scratch_path(&s, "plain"), 4, &got, &got_n), RT_E_INPUT);
    assert_int_equal(rt_bytes_read(s.dir, 100, &got, &got_n), RT_E_INPUT); /* a directory */
    assert_int_equal(rt_bytes_read(scratch_path(&s, "absent"), 100, &got, &got_n), RT_E_INPUT);
    assert_null(got);
    assert_int_equal(rt_bytes_read("/dev/zero", 100, &got, &got_n), RT_E_INPUT);
    free(packed);
    scratch_remove(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),       cmocka_unit_test(test_torment),
        cmocka_unit_test(test_garbage_behind),   cmocka_unit_test(test_bomb),
        cmocka_unit_test(test_refusal_is_cheap), cmocka_unit_test(test_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
