/* safetensors: what is written reads back; conversions; a table of hostile headers. */
#include "io/io_int.h"
#include "unit/io/io_support.h"

#include <math.h>

static rt_status read_st(const uint8_t *data, size_t n) {
    uint8_t *copy = NULL;
    assert_ok(rt_alloc(&copy, n ? n : 1));
    memcpy(copy, data, n);
    rt_safetensors *s = NULL;
    rt_status st = rt_safetensors_decode_take(&s, copy, n, "t.safetensors");
    rt_safetensors_destroy(&s);
    return st;
}

/* Builds length + header + `data_n` zero bytes. */
static uint8_t *build(const char *header, size_t data_n, size_t *n) {
    size_t h = strlen(header);
    *n = 8 + h + data_n;
    uint8_t *p = calloc(1, *n);
    assert_non_null(p);
    for (int i = 0; i < 8; i++)
        p[i] = (uint8_t)((uint64_t)h >> (8 * i));
    memcpy(p + 8, header, h);
    return p;
}

static void test_round_trip(void **state) {
    (void)state;
    scratch s;
    scratch_make(&s);
    const float a[6] = {1, 2, 3, -0.0f, 1e-40f, 6};
    const uint8_t b[3] = {7, 8, 9};
    const rt_st_tensor t[] = {
        {.name = "layer.weight", .dtype = "F32", .shape = rt_shape2(2, 3), .data = a, .bytes = sizeof a},
        {.name = "quote\"\xc3\xa9", .dtype = "U8", .shape = rt_shape1(3), .data = b, .bytes = sizeof b},
        {.name = "empty", .dtype = "F32", .shape = rt_shape1(0), .data = NULL, .bytes = 0},
        {.name = "scalar", .dtype = "F32", .shape = rt_shape0(), .data = a + 1, .bytes = 4},
    };
    const rt_st_meta meta[] = {{"format", "pt"}, {"json", "{\"k\": [1]}\n"}};
    const char *path = scratch_path(&s, "m.safetensors");
    for (int again = 0; again < 2; again++) { /* the second time over the first file */
        assert_ok(rt_safetensors_write(path, t, 4, meta, 2));
        rt_safetensors *r = NULL;
        assert_ok(rt_safetensors_read(&r, path));
        assert_int_equal(rt_safetensors_count(r), 4);
        const rt_st_tensor *w = rt_safetensors_find(r, "layer.weight");
        assert_non_null(w);
        assert_int_equal(w->shape.rank, 2);
        assert_memory_equal(w->data, a, sizeof a);
        assert_int_equal((uintptr_t)w->data % 8, 0);
        assert_memory_equal(rt_safetensors_find(r, t[1].name)->data, b, 3);
        assert_int_equal(rt_safetensors_find(r, "scalar")->shape.rank, 0);
        assert_int_equal(rt_safetensors_find(r, "empty")->bytes, 0);
        assert_null(rt_safetensors_find(r, "nothing"));
        assert_null(rt_safetensors_get(r, 4));
        assert_int_equal(rt_safetensors_meta_count(r), 2);
        assert_string_equal(rt_safetensors_meta(r, "json"), meta[1].value);
        assert_null(rt_safetensors_meta(r, "absent"));
        float back[6];
        assert_ok(rt_safetensors_to_f32(r, w, back, 6));
        assert_memory_equal(back, a, sizeof a);
        assert_int_equal(rt_safetensors_to_f32(r, w, back, 5), RT_E_INPUT);
        assert_int_equal(rt_safetensors_to_f32(r, rt_safetensors_find(r, t[1].name), back, 3), RT_E_INPUT);
        rt_safetensors_destroy(&r);
    }
    const rt_st_tensor twice[] = {t[0], t[0]};
    assert_int_equal(rt_safetensors_write(path, twice, 2, NULL, 0), RT_E_USAGE);
    rt_st_tensor wrong = t[0];
    wrong.bytes = 20;
    assert_int_equal(rt_safetensors_write(path, &wrong, 1, NULL, 0), RT_E_USAGE);
    scratch_remove(&s);
}

static void test_conversion(void **state) {
    (void)state;
    static const struct {
        const char *dtype;
        uint64_t bits;
        size_t size;
        float want;
    } cases[] = {
        {"F16", 0x3c00, 2, 1.0f},         {"F16", 0xc000, 2, -2.0f},
        {"F16", 0x0001, 2, 0x1p-24f},     {"F16", 0x8000, 2, -0.0f},
        {"F16", 0x7bff, 2, 65504.0f},     {"F16", 0x7c00, 2, INFINITY},
        {"F16", 0x03ff, 2, 0x1.ff8p-15f}, {"BF16", 0x3f80, 2, 1.0f},
        {"BF16", 0xc049, 2, -3.140625f},  {"F64", 0x3fd5555555555555, 8, (float)(1.0 / 3)},
        {"F32", 0x3f800000, 4, 1.0f},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char header[200];
        snprintf(header, sizeof header, "{\"x\":{\"dtype\":\"%s\",\"shape\":[1],\"data_offsets\":[0,%zu]}}",
                 cases[i].dtype, cases[i].size);
        size_t n = 0;
        uint8_t *file = build(header, cases[i].size, &n), *copy = NULL;
        for (size_t b = 0; b < cases[i].size; b++)
            file[n - cases[i].size + b] = (uint8_t)(cases[i].bits >> (8 * b));
        assert_ok(rt_alloc(&copy, n));
        memcpy(copy, file, n);
        rt_safetensors *s = NULL;
        assert_ok(rt_safetensors_decode_take(&s, copy, n, "t"));
        float got = 99;
        assert_ok(rt_safetensors_to_f32(s, rt_safetensors_get(s, 0), &got, 1));
        assert_memory_equal(&got, &cases[i].want, 4);
        rt_safetensors_destroy(&s);
        free(file);
    }
}

#define T(name, shape, b, e)                                                                                 \
    "\"" name "\":{\"dtype\":\"U8\",\"shape\":[" shape "],\"data_offsets\":[" #b "," #e "]}"

static void test_headers(void **state) {
    (void)state;
    static const struct {
        const char *header;
        size_t data;
        rt_status want;
    } cases[] = {
        {"{}", 0, RT_OK},
        {"{}   ", 0, RT_OK},
        {"{" T("a", "8", 0, 8) "}", 8, RT_OK},
        {"{" T("b", "4", 4, 8) "," T("a", "4", 0, 4) "}", 8, RT_OK}, /* any order */
        {"{" T("a", "4", 0, 4) "," T("z", "0", 4, 4) "," T("b", "4", 4, 8) "}", 8, RT_OK},
        {"{" T("z", "0", 0, 0) "," T("a", "4", 0, 4) "}", 4, RT_OK},
        {"{" T("a", "1,1,1,1,4", 0, 4) "}", 4, RT_OK},
        {"{" T("a", "1,1,1,1,1,4", 0, 4) "}", 4, RT_E_INPUT},
        {"{}", 1, RT_E_INPUT},
        {" {}", 0, RT_E_INPUT},
        {"[]", 0, RT_E_INPUT},
        {"{" T("a", "8", 0, 8) "," T("b", "8", 4, 12) "}", 12, RT_E_INPUT}, /* overlap */
        {"{" T("a", "8", 0, 8) "," T("b", "8", 0, 8) "}", 8, RT_E_INPUT},
        {"{" T("a", "4", 1, 5) "}", 5, RT_E_INPUT},                       /* hole first */
        {"{" T("a", "4", 0, 4) "," T("b", "4", 5, 9) "}", 9, RT_E_INPUT}, /* hole between */
        {"{" T("a", "4", 0, 4) "}", 5, RT_E_INPUT},                       /* byte behind */
        {"{" T("a", "4", 0, 4) "," T("z", "0", 2, 2) "}", 4, RT_E_INPUT}, /* empty inside another */
        {"{" T("a", "9", 0, 9) "}", 8, RT_E_INPUT},
        {"{" T("a", "4", 0, 5) "}", 5, RT_E_INPUT},
        {"{" T("a", "4", 4, 0) "}", 4, RT_E_INPUT},
        {"{" T("a", "4", -4, 0) "}", 4, RT_E_INPUT},
        {"{" T("a", "4", 9223372036854775803, 9223372036854775807) "}", 4, RT_E_INPUT},
        {"{" T("a", "4", 18446744073709551615, 3) "}", 4, RT_E_INPUT},
        {"{" T("a", "-1", 0, 1) "}", 1, RT_E_INPUT},
        {"{" T("a", "4.0", 0, 4) "}", 4, RT_E_INPUT},
        {"{" T("a", "4e0", 0, 4) "}", 4, RT_E_INPUT},
        {"{" T("a", "-0", 0, 0) "}", 0, RT_E_INPUT},
        {"{" T("a", "\"4\"", 0, 4) "}", 4, RT_E_INPUT},
        {"{" T("a", "4194305,4194305,211106198978564", 0, 4) "}", 4, RT_E_INPUT},
        {"{" T("a", "9223372036854775807,9223372036854775807", 0, 1) "}", 1, RT_E_INPUT},
        {"{" T("a", "4294967296,4294967296", 0, 0) "}", 0, RT_E_INPUT},
        {"{" T("a", "4", 0, 4) "," T("a", "4", 4, 8) "}", 8, RT_E_INPUT},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[4194305,4194305,211106198978564],\"data_offsets\":[0,16]}}",
         16, RT_E_INPUT},
        {"{\"a\":{\"dtype\":\"F4\",\"shape\":[2],\"data_offsets\":[0,1]}}", 1, RT_E_INPUT},
        {"{\"a\":{\"dtype\":\"f32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4, RT_E_INPUT},
        {"{\"a\":{\"dtype\":5,\"shape\":[1],\"data_offsets\":[0,4]}}", 4, RT_E_INPUT},
        {"{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4, RT_E_INPUT},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4],\"x\":1}}", 4, RT_E_INPUT},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":{},\"data_offsets\":[0,4]}}", 4, RT_E_INPUT},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":{\"x\":0,\"y\":4}}}", 4, RT_E_INPUT},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0]}}", 4, RT_E_INPUT},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4,4]}}", 4, RT_E_INPUT},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1]}}", 4, RT_E_INPUT},
        {"{\"a\":7}", 0, RT_E_INPUT},
        {"{\"__metadata__\":{\"k\":\"v\"}}", 0, RT_OK},
        {"{\"__metadata__\":{\"k\":1}}", 0, RT_E_INPUT},
        {"{\"__metadata__\":[]}", 0, RT_E_INPUT},
        {"{\"__metadata__\":\"x\"}", 0, RT_E_INPUT},
        {"{\"__metadata__\":{},\"__metadata__\":{}}", 0, RT_E_INPUT},
        {"{\"__metadata__\":{\"k\":\"\xff\"}}", 0, RT_E_INPUT},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t n = 0;
        uint8_t *file = build(cases[i].header, cases[i].data, &n);
        rt_status st = torment_run(read_st, file, n);
        if (st != cases[i].want)
            fail_msg("%s with %zu bytes: %s", cases[i].header, cases[i].data, rt_status_name(st));
        free(file);
    }
}

static void test_header_length(void **state) {
    (void)state;
    size_t n = 0;
    uint8_t *file = build("{" T("a", "8", 0, 8) "}", 8, &n);
    uint64_t right = n - 16;
    for (int bit = 0; bit < 64; bit++)
        for (int d = -1; d <= 1; d++) {
            uint64_t v = ((uint64_t)1 << bit) + (uint64_t)(int64_t)d;
            if (v == right)
                continue;
            for (int i = 0; i < 8; i++)
                file[i] = (uint8_t)(v >> (8 * i));
            assert_int_equal(torment_run(read_st, file, n), RT_E_INPUT);
        }
    free(file);
}

static void test_torment(void **state) {
    (void)state;
    size_t n = 0;
    uint8_t *file =
        build("{\"__metadata__\":{\"k\":\"v\"}," T("a", "2,2", 0, 4) "," T("b", "4", 4, 8) "}", 8, &n);
    uint64_t before = live_blocks();
    torment_truncate(read_st, file, n);
    assert_true(torment_flip(read_st, file, n) > 0);
    assert_int_equal(live_blocks(), before);
    free(file);
}

static void test_many(void **state) {
    (void)state;
    rt_str h;
    rt_str_init(&h);
    rt_str_append(&h, "{");
    for (int i = 0; i < 100000; i++)
        rt_str_appendf(&h, "%s\"t%d\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[%d,%d]}",
                       i ? "," : "", i, i, i + 1);
    rt_str_append(&h, "}");
    size_t n = 0;
    uint8_t *file = build(rt_str_text(&h), 100000, &n);
    assert_int_equal(read_st(file, n), RT_OK);
    free(file);
    rt_str_clear(&h);
    rt_str_append(&h, "{"); /* all on one byte */
    for (int i = 0; i < 100000; i++)
        rt_str_appendf(&h, "%s\"t%d\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}", i ? "," : "",
                       i);
    rt_str_append(&h, "}");
    file = build(rt_str_text(&h), 1, &n);
    assert_int_equal(read_st(file, n), RT_E_INPUT);
    free(file);
    rt_str_deinit(&h);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip), cmocka_unit_test(test_conversion),
        cmocka_unit_test(test_headers),    cmocka_unit_test(test_header_length),
        cmocka_unit_test(test_torment),    cmocka_unit_test(test_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
