/* Corruptions without randomness, the line blur and rotations against numpy, scipy and Pillow (corruptions.py). */
#include "golden/golden_read.h"

#include "base/alloc.h"
#include "distort/corrupt_int.h"
#include "distort/distort.h"

#include <math.h>

enum { PIXELS = 4096 };

/* The picture of corruptions.py, as planes. */
static void make_picture(uint8_t *p, int64_t c, int64_t h, int64_t w) {
    for (int64_t k = 0; k < c; k++)
        for (int64_t y = 0; y < h; y++)
            for (int64_t x = 0; x < w; x++) {
                int64_t v = (y * 11 + x * (7 + 3 * k) + (y * x * (k + 1)) % 17 * 5 + k * 29) % 256;
                if (y >= 2 && y < 4 && x >= 2 && x < 5)
                    v = 90;
                if (y == 0 && x == 0)
                    v = 0;
                if (y == h - 1 && x == w - 1)
                    v = 255;
                p[(k * h + y) * w + x] = (uint8_t)v;
            }
}

/* Bytes may differ by one where a value lies on the border between two, and nowhere else. */
static void check_bytes(const golden_case *g, const uint8_t *got, const double *want, int n) {
    int off = 0;
    for (int i = 0; i < n; i++) {
        const double difference = fabs((double)got[i] - want[i]);
        if (difference > 1)
            fail_msg("%s, line %d: value %d is %d, wanted %g", g->name, g->line, i, got[i], want[i]);
        off += difference > 0;
    }
    if (off * 50 > n)
        fail_msg("%s, line %d: %d of %d values are off by one", g->name, g->line, off, n);
}

static void *scratch_for(const rt_distortion *d) {
    void *scratch = NULL;
    assert_int_equal(rt_alloc(&scratch, rt_distortion_scratch(d)), RT_OK);
    return scratch;
}

static void check_corruption(const golden_case *g, const double *what, const uint8_t *picture, rt_shape row) {
    const int n = (int)rt_shape_elems(&row);
    const rt_corruption *kind = NULL;
    rt_distortion *d = NULL;
    uint8_t got[PIXELS];
    assert_int_equal(rt_corruption_find(&kind, g->name), RT_OK);
    assert_int_equal(rt_distortion_corrupt(&d, kind, (int)what[3], row, 1), RT_OK);
    void *scratch = scratch_for(d);
    assert_int_equal(rt_distortion_run(d, 0, scratch, picture, NULL, got, NULL), RT_OK);
    check_bytes(g, got, golden_get(g, "out", n), n);
    rt_free(scratch);
    rt_distortion_destroy(&d);
}

static void check_line(const golden_case *g, const double *what, const uint8_t *picture, rt_shape row) {
    const int n = (int)rt_shape_elems(&row);
    float taps[RT_LINE_MAX], x[PIXELS], *scratch = NULL;
    uint8_t got[PIXELS];
    const int64_t count = rt_line_taps(taps, what[3], what[4]);
    assert_in_range(count, 2, 2 * (int64_t)what[3] + 1);
    assert_int_equal(rt_calloc(&scratch, (size_t)rt_line_scratch(row.d[1], row.d[2], count), sizeof *scratch),
                     RT_OK);
    rt_pixels_to_f32(x, picture, n);
    rt_plane_line(x, row.d[1], row.d[2], taps, count, what[5], scratch);
    for (int i = 0; i < n; i++)
        got[i] = (uint8_t)rt_to_byte(x[i]);
    check_bytes(g, got, golden_get(g, "out", n), n);
    rt_free(scratch);
}

static void check_rotation(const golden_case *g, const double *what, const uint8_t *picture, rt_shape row) {
    const int n = (int)rt_shape_elems(&row);
    const double *want = golden_get(g, "out", n);
    const rt_shift *kind = NULL;
    rt_distortion *d = NULL;
    float got[PIXELS];
    assert_int_equal(rt_shift_find(&kind, "rotate"), RT_OK);
    assert_int_equal(rt_distortion_shift(&d, kind, what[3], row), RT_OK);
    void *scratch = scratch_for(d);
    assert_int_equal(rt_distortion_run(d, 0, scratch, picture, NULL, NULL, got), RT_OK);
    for (int i = 0; i < n; i++)
        if (!(fabs((double)got[i] - want[i]) < 1e-4))
            fail_msg("rotate by %g, line %d: value %d is %g, wanted %g", what[3], g->line, i, (double)got[i],
                     want[i]);
    rt_free(scratch);
    rt_distortion_destroy(&d);
}

static void test_golden(void **state) {
    (void)state;
    FILE *f = golden_open("corruptions.txt");
    static golden_case g;
    int line = 0, cases = 0;
    while (golden_next(&g, f, &line)) {
        const bool is_line = strcmp(g.name, "line") == 0, is_rotation = strcmp(g.name, "rotate") == 0;
        const double *what = golden_get(&g, "what", is_line ? 6 : 4);
        const rt_shape row = rt_shape3((int64_t)what[0], (int64_t)what[1], (int64_t)what[2]);
        uint8_t picture[PIXELS];
        assert_in_range(rt_shape_elems(&row), 1, PIXELS);
        make_picture(picture, row.d[0], row.d[1], row.d[2]);
        (is_line ? check_line : is_rotation ? check_rotation : check_corruption)(&g, what, picture, row);
        cases++;
    }
    assert_in_range(cases, 90, 200);
    fclose(f);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_golden)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
