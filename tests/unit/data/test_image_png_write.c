/* A written PNG reads back to the same pixels; impossible sizes and places are refused. */
#include "unit/data/data_support.h"

static void test_round_trip(void **state) {
    (void)state;
    static const struct {
        int64_t h, w;
        int channels;
    } sizes[] = {{1, 1, 1}, {3, 5, 1}, {1, 1, 3}, {32, 17, 3}, {300, 200, 3}};
    scratch s;
    scratch_make(&s);
    for (int64_t i = 0; i < RT_COUNT(sizes); i++) {
        const int64_t h = sizes[i].h, w = sizes[i].w, c = sizes[i].channels;
        uint8_t *pixels = malloc((size_t)(h * w * c)), *bytes = NULL;
        size_t n = 0;
        rt_picture back;
        const char *path = scratch_path(&s, "p.png");
        for (int64_t k = 0; k < h * w * c; k++)
            pixels[k] = (uint8_t)(k * 37 + k / 7);
        assert_ok(rt_image_write_png(path, pixels, h, w, (int)c));
        assert_ok(rt_file_read(path, 1 << 20, &bytes, &n));
        assert_ok(rt_png_decode(&back, bytes, n, "p.png"));
        assert_true(back.c == c && back.h == h && back.w == w);
        for (int64_t y = 0; y < h; y++)
            for (int64_t x = 0; x < w; x++)
                for (int64_t k = 0; k < c; k++)
                    assert_int_equal(back.data[(k * h + y) * w + x], pixels[(y * w + x) * c + k]);
        rt_free(back.data);
        rt_free(bytes);
        free(pixels);
    }
    scratch_remove(&s);
}

static void test_refused(void **state) {
    (void)state;
    const uint8_t pixel[4] = {0};
    assert_int_equal(rt_image_write_png("x.png", pixel, 1, 1, 2), RT_E_USAGE);
    assert_int_equal(rt_image_write_png("x.png", pixel, 0, 1, 1), RT_E_USAGE);
    assert_int_equal(rt_image_write_png("x.png", pixel, INT64_MAX, 2, 1), RT_E_USAGE);
    assert_int_equal(rt_image_write_png("no/such/place/x.png", pixel, 1, 1, 1), RT_E_IO);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_round_trip), cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
