/*
 * test_fuzz_io.c - damaged JSON, safetensors, npy and packed files.
 */
#include "base/json.h"
#include "fuzz/containers.h"

#include <math.h>

static const char NAME[] = "mutant";

/* ---- JSON ---- */

static void json_open(void) {
    rt_str text;
    rt_json j;
    rt_str_init(&text);
    rt_json_init(&j, &text, true);
    rt_json_object_begin(&j, NULL);
    rt_json_str(&j, "name", "a \"quoted\" \xc3\xa4\xe2\x82\xac\xf0\x9f\x99\x82 text\n\t\x01");
    rt_json_i64(&j, "small", -9007199254740993);
    rt_json_f64(&j, "real", 4.638e-4);
    rt_json_f64(&j, "none", (double)INFINITY);
    rt_json_bool(&j, "yes", true);
    rt_json_array_begin(&j, "list");
    for (int i = 0; i < 5; i++)
        rt_json_f64(&j, NULL, i * 0.1);
    rt_json_array_begin(&j, NULL);
    rt_json_object_begin(&j, NULL);
    rt_json_object_end(&j);
    rt_json_array_end(&j);
    rt_json_array_end(&j);
    rt_json_object_end(&j);
    assert_ok(rt_str_status(&text));
    fuzz_add(text.p, text.len, NAME);
    rt_str_deinit(&text);
    fuzz_add_text("[\"\\ud83d\\ude42\\u00e4\\\\\\/\\b\", 1e-5, -0.0, 1E+2, null, [[[[[[]]]]]], false, 0]",
                  NAME);
    fuzz_add_text("{\"a\":{\"b\":{\"c\":[{\"d\":1},{\"d\":2}]}},\"e\":\"\",\"\":0}", NAME);
    fuzz_add_text("-12.5e3", NAME);
}

/* Asks every value everything. */
static int64_t json_walk(rt_jval v, int depth) {
    const char *s;
    int64_t i64 = 0, count = 1, n = rt_jval_len(v);
    double f;
    bool b;
    assert_true(depth <= RT_JSON_DEPTH_MAX);
    count += rt_jval_str(v, &s) ? (int64_t)strlen(s) : 0;
    count += rt_jval_i64(v, &i64) + rt_jval_f64(v, &f) + rt_jval_bool(v, &b);
    for (int64_t i = 0; i < n; i++) {
        const char *key = rt_jval_key(v, i);
        assert_true((key != NULL) == rt_jval_is_object(v));
        if (key)
            assert_non_null(rt_jval_get(v, key));
        count += json_walk(rt_jval_at(v, i), depth + 1);
    }
    assert_null(rt_jval_at(v, n < 0 ? 0 : n));
    assert_null(rt_jval_at(v, -1));
    return count;
}

static rt_status json_read(int seed, const uint8_t *data, size_t n) {
    (void)seed;
    rt_jdoc *doc = NULL;
    RT_TRY(rt_jdoc_parse(&doc, (const char *)data, n, NAME));
    assert_true(json_walk(rt_jdoc_root(doc), 0) > 0);
    rt_jdoc_destroy(&doc);
    return RT_OK;
}

/* ---- safetensors ---- */

static void safetensors_open(void) {
    static const float values[6] = {1, -2, 3, 0.5f, 1e-30f, 7};
    static const uint16_t halves[4] = {0x3c00, 0x0001, 0x7bff, 0x8000};
    static const double wide[2] = {1e300, -1};
    const rt_st_tensor t[] = {{"layer.0.weight", "F32", rt_shape2(2, 3), values, sizeof values},
                              {"layer.0.bias", "F16", rt_shape1(4), halves, sizeof halves},
                              {"numbers", "F64", rt_shape2(1, 2), wide, sizeof wide},
                              {"empty", "I64", rt_shape2(0, 3), values, 0},
                              {"bf", "BF16", rt_shape3(1, 2, 2), halves, sizeof halves}};
    const rt_st_meta meta[] = {{"format", "pt"}, {"architecture", "{\"spec\":\"mlp:4\",\"input\":[2]}"}};
    for (int i = 0; i < 2; i++) {
        assert_ok(rt_safetensors_write(scratch_path(&fuzz.dir, "seed"), t, i ? 2 : 5, meta, i ? 0 : 2));
        fuzz_add_file(scratch_path(&fuzz.dir, "seed"), NAME);
    }
}

static rt_status safetensors_read(int seed, const uint8_t *data, size_t n) {
    (void)seed;
    rt_safetensors *s = NULL;
    uint8_t *file = NULL;
    float *to = NULL;
    rt_status st = RT_OK;
    RT_TRY(rt_alloc(&file, n + 1));
    memcpy(file, data, n);
    RT_TRY(rt_safetensors_decode_take(&s, file, n, NAME));
    for (int64_t i = 0; i < rt_safetensors_count(s); i++) {
        const rt_st_tensor *t = rt_safetensors_get(s, i);
        int64_t elems = 0;
        assert_ptr_equal(rt_safetensors_find(s, t->name), t);
        assert_true(rt_shape_count(&t->shape, &elems));
        RT_TRY_GOTO(rt_calloc(&to, (size_t)elems + 1, sizeof *to));
        if (t->dtype[0] == 'F' || t->dtype[0] == 'B')
            st = rt_safetensors_to_f32(s, t, to, elems);
        rt_free(to);
        if (st != RT_OK)
            goto done;
    }
    for (int64_t i = 0; i < rt_safetensors_meta_count(s); i++)
        assert_non_null(rt_safetensors_meta(s, rt_safetensors_meta_get(s, i)->key));
done:
    rt_safetensors_destroy(&s);
    return st;
}

/* ---- npy ---- */

static void npy_open(void) {
    static const float f32[6] = {1, 2, 3, 4, 5, 6};
    static const uint8_t u8[24] = {9, 8, 7};
    const rt_shape shapes[] = {rt_shape2(2, 3), rt_shape4(2, 3, 2, 2), rt_shape1(0)};
    const rt_dtype types[] = {RT_DTYPE_F32, RT_DTYPE_U8, RT_DTYPE_I32};
    const void *const values[] = {f32, u8, NULL};
    for (int i = 0; i < 3; i++) {
        assert_ok(rt_npy_write(scratch_path(&fuzz.dir, "seed"), types[i], &shapes[i], values[i]));
        fuzz_add_file(scratch_path(&fuzz.dir, "seed"), NAME);
    }
    static const char header[] = "{'descr': '>f4', 'fortran_order': True, 'shape': (2, 2L,) }\n";
    uint8_t fortran[10 + sizeof header - 1 + 16] = "\x93NUMPY\x01";
    fuzz_put_le(fortran + 8, sizeof header - 1, 2);
    memcpy(fortran + 10, header, sizeof header - 1);
    fuzz_add(fortran, sizeof fortran, NAME);
}

static rt_status npy_read(int seed, const uint8_t *data, size_t n) {
    (void)seed;
    rt_npy a;
    RT_TRY(rt_npy_decode(&a, data, n, NAME));
    int64_t elems = 0;
    assert_true(rt_shape_count(&a.shape, &elems));
    unsigned sum = 0;
    for (int64_t i = 0; i < elems * a.itemsize; i++)
        sum += a.data[i];
    assert_true(sum <= 255 * (uint64_t)n);
    rt_npy_deinit(&a);
    return RT_OK;
}

/* ---- gzip and xz ---- */

enum { PLAIN_MAX = 1 << 16 };

static void packed_open(void) {
    static const char text[] = "a text that is packed, a text that is packed, and packed again\n";
    size_t n;
    uint8_t *p = pack_gzip(text, sizeof text, &n);
    fuzz_add(p, n, NAME);
    free(p);
    p = fuzz_pack_xz(text, sizeof text, &n);
    fuzz_add(p, n, NAME);
    free(p);
    static const uint8_t zeros[PLAIN_MAX] = {0};
    p = pack_gzip(zeros, sizeof zeros, &n);
    fuzz_add(p, n, NAME);
    free(p);
}

static void packed_mutate(fuzz_bytes *b, int seed, const fuzz_bytes *other, fuzz_dice *d) {
    (void)seed;
    fuzz_mutate_packed(b, other, d, false);
}

static rt_status packed_read(int seed, const uint8_t *data, size_t n) {
    (void)seed;
    uint8_t *plain = NULL;
    size_t plain_n = 0;
    RT_TRY(rt_bytes_decode(data, n, NAME, PLAIN_MAX, &plain, &plain_n));
    if (plain) {
        assert_true(plain_n <= PLAIN_MAX);
        assert_int_equal(plain[plain_n], 0);
    }
    rt_free(plain);
    return RT_OK;
}

static const fuzz_family families[] = {
    {.name = "json", .rounds = 6000, .text = true, .mib = 4, .open = json_open, .read = json_read},
    {.name = "safetensors",
     .rounds = 4000,
     .mib = 4,
     .open = safetensors_open,
     .mutate = fuzz_mutate_safetensors,
     .read = safetensors_read},
    {.name = "npy", .rounds = 4000, .mib = 4, .open = npy_open, .mutate = fuzz_mutate_npy, .read = npy_read},
    {.name = "packed", .rounds = 1000, .open = packed_open, .mutate = packed_mutate, .read = packed_read},
};

int main(void) {
    return fuzz_main(families, RT_COUNT(families), "fuzz_io");
}
