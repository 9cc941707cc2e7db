/* npy: round trips, byte and index order, header forms accepted and refused. */
#include "io/io_int.h"
#include "unit/io/io_support.h"

static rt_status read_npy(const uint8_t *data, size_t n) {
    rt_npy a;
    rt_status st = rt_npy_decode(&a, data, n, "t.npy");
    rt_npy_deinit(&a);
    return st;
}

static uint8_t *build(int version, const char *header, const void *data, size_t data_n, size_t *n) {
    size_t h = strlen(header), lead = version == 1 ? 10 : 12;
    *n = lead + h + data_n;
    uint8_t *p = calloc(1, *n);
    assert_non_null(p);
    memcpy(p, "\x93NUMPY", 6);
    p[6] = (uint8_t)version;
    for (size_t i = 0; i < lead - 8; i++)
        p[8 + i] = (uint8_t)(h >> (8 * i));
    memcpy(p + lead, header, h);
    if (data_n)
        memcpy(p + lead + h, data, data_n);
    return p;
}

static void test_round_trip(void **state) {
    (void)state;
    scratch s;
    scratch_make(&s);
    const char *path = scratch_path(&s, "a.npy");
    const float f[6] = {1, 2, 3, 4, 5, 6};
    const rt_shape shapes[] = {rt_shape2(2, 3), rt_shape1(6), rt_shape3(1, 6, 1), rt_shape1(0), rt_shape0()};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        assert_ok(rt_npy_write(path, RT_DTYPE_F32, &shapes[i], f));
        rt_npy a;
        assert_ok(rt_npy_read(&a, path, 4096));
        assert_true(a.kind == 'f' && a.itemsize == 4 && rt_shape_equal(&a.shape, &shapes[i]));
        assert_memory_equal(a.data, f, (size_t)rt_shape_elems(&shapes[i]) * 4);
        rt_npy_deinit(&a);
        uint8_t *file = NULL;
        size_t n = 0;
        assert_ok(rt_file_read(path, 4096, &file, &n));
        assert_int_equal((n - (size_t)rt_shape_elems(&shapes[i]) * 4) % 64, 0);
        rt_free(file);
    }
    scratch_remove(&s);
}

static void test_orders(void **state) {
    (void)state;
    static const uint8_t big[] = {0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0, 5, 0, 0, 0, 6};
    const int32_t c_order[] = {1, 2, 3, 4, 5, 6}, f_order[] = {1, 3, 5, 2, 4, 6};
    for (int fortran = 0; fortran < 2; fortran++) {
        size_t n = 0;
        uint8_t *file = build(2,
                              fortran ? "{'descr': '>i4', 'fortran_order': True, 'shape': (2, 3), }\n"
                                      : "{'shape': (2, 3), 'descr': '>i4', 'fortran_order': False}",
                              big, sizeof big, &n);
        rt_npy a;
        assert_ok(rt_npy_decode(&a, file, n, "t"));
        assert_memory_equal(a.data, fortran ? f_order : c_order, sizeof c_order);
        rt_npy_deinit(&a);
        free(file);
    }
}

static void test_headers(void **state) {
    (void)state;
    static const struct {
        const char *header;
        size_t data;
        rt_status want;
    } cases[] = {
        {"{'descr': '|u1', 'fortran_order': False, 'shape': (4,), }", 4, RT_OK},
        {"{\"descr\":\"|u1\",\"fortran_order\":False,\"shape\":(4,)}", 4, RT_OK},
        {"{'descr': 'u1', 'fortran_order': False, 'shape': (4L,), }", 4, RT_OK},
        {"{'descr': '<u1', 'fortran_order': True, 'shape': (2, 2)}", 4, RT_OK},
        {"{'descr': '|b1', 'fortran_order': False, 'shape': (4,)}", 4, RT_OK},
        {"{'descr': '<i2', 'fortran_order': False, 'shape': (2,)}", 4, RT_OK},
        {"{'descr': '<b2', 'fortran_order': False, 'shape': (2,)}", 4, RT_E_INPUT},
        {"{'descr': '=f4', 'fortran_order': False, 'shape': (1,)}", 4, RT_OK},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': ()}", 4, RT_OK},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (0, 7)}", 0, RT_OK},
        {"{'descr': '|u1', 'fortran_order': False, 'shape': (4,), }", 5, RT_E_INPUT},
        {"{'descr': '|u1', 'fortran_order': False, 'shape': (4,), }", 3, RT_E_INPUT},
        {"{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", 8, RT_E_INPUT},
        {"{'descr': '|V4', 'fortran_order': False, 'shape': (1,), }", 4, RT_E_INPUT},
        {"{'descr': '<c8', 'fortran_order': False, 'shape': (1,), }", 8, RT_E_INPUT},
        {"{'descr': '|f4', 'fortran_order': False, 'shape': (1,), }", 4, RT_E_INPUT},
        {"{'descr': '<f16', 'fortran_order': False, 'shape': (2,), }", 4, RT_E_INPUT},
        {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }", 4, RT_E_INPUT},
        {"{'descr': '<f4', 'fortran_order': 0, 'shape': (1,), }", 4, RT_E_INPUT},
        {"{'descr': '<f4', 'fortran_order': Falsely, 'shape': (1,), }", 4, RT_E_INPUT},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }", 4, RT_E_INPUT},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1), }", 4, RT_E_INPUT},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': [1], }", 4, RT_E_INPUT},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1.0,), }", 4, RT_E_INPUT},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1 1), }", 4, RT_E_INPUT},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1), }", 4, RT_E_INPUT},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (65536, 65536), }", 4, RT_E_INPUT},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296), }", 0, RT_E_INPUT},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387905,), }", 4, RT_E_INPUT},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }", 4, RT_E_INPUT},
        {"{'descr': '<f4', 'fortran_order': False, }", 4, RT_E_INPUT},
        {"{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (1,)}", 4, RT_E_INPUT},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'x': 1}", 4, RT_E_INPUT},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} x", 4, RT_E_INPUT},
        {"{'descr': '<f4' 'fortran_order': False, 'shape': (1,)}", 4, RT_E_INPUT},
        {"", 0, RT_E_INPUT},
    };
    for (int version = 1; version <= 4; version++)
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            static const uint8_t zeros[16];
            size_t n = 0;
            uint8_t *file = build(version, cases[i].header, zeros, cases[i].data, &n);
            rt_status want = version == 4 ? RT_E_INPUT : cases[i].want, st = torment_run(read_npy, file, n);
            if (st != want)
                fail_msg("version %d %s: %s %s", version, cases[i].header, rt_status_name(st),
                         rt_error_text());
            free(file);
        }
}

/* Headers at the edges of fixed buffers and of the limit. */
static void test_header_length(void **state) {
    (void)state;
    static const size_t lengths[] = {255, 256, 257, 65534, 65535, 65536, 65537, 100000};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        char *header = malloc(lengths[i] + 1);
        static const char dict[] = "{'descr': '|u1', 'fortran_order': False, 'shape': (1,), }";
        memset(header, ' ', lengths[i]);
        memcpy(header, dict, sizeof dict - 1);
        header[lengths[i]] = 0;
        size_t n = 0;
        uint8_t *file = build(2, header, "x", 1, &n);
        assert_int_equal(read_npy(file, n), lengths[i] <= RT_NPY_HEADER_MAX ? RT_OK : RT_E_INPUT);
        memset(file + 8, 0xff, 4);
        assert_int_equal(read_npy(file, n), RT_E_INPUT);
        free(file);
        free(header);
    }
}

static void test_torment(void **state) {
    (void)state;
    size_t n = 0;
    uint8_t *file = build(1, "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }    \n",
                          "abcdefghijklmnopqrstuvwx", 24, &n);
    uint64_t before = live_blocks();
    torment_truncate(read_npy, file, n);
    assert_true(torment_flip(read_npy, file, n) > 0);
    assert_int_equal(live_blocks(), before);
    free(file);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),    cmocka_unit_test(test_orders),  cmocka_unit_test(test_headers),
        cmocka_unit_test(test_header_length), cmocka_unit_test(test_torment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
