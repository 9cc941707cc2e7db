/* Augmentation: each kind against a plain restatement, and the parser. */
#include "unit/data/data_support.h"

#include <math.h>

enum { C = 2, H = 5, W = 7, PLANE = H * W, ELEMS = C * PLANE };
static uint8_t u8[ELEMS];
static float f32[ELEMS];

static int setup(void **state) {
    (void)state;
    for (int i = 0; i < ELEMS; i++) {
        u8[i] = (uint8_t)(1 + i * 53 % 255);
        f32[i] = (float)u8[i] / 255.0f;
    }
    return 0;
}

/* Bytes and floats must give the same picture. */
static void run(rt_augment a, int64_t epoch, int64_t row, float *out) {
    float twin[ELEMS];
    rt_augment_image(&a, 42, epoch, row, rt_shape3(C, H, W), u8, NULL, out);
    rt_augment_image(&a, 42, epoch, row, rt_shape3(C, H, W), NULL, f32, twin);
    assert_memory_equal(out, twin, sizeof twin);
}

static int reflect(int i, int n) {
    while (i < 0 || i >= n)
        i = i < 0 ? -i : 2 * (n - 1) - i;
    return i;
}

/* The picture moved by (dy, dx) and perhaps flipped; outside zero or reflected. */
static bool is_moved(const float *x, int dy, int dx, bool flip, bool mirror) {
    for (int c = 0; c < C; c++)
        for (int i = 0; i < H; i++)
            for (int j = 0; j < W; j++) {
                int sy = i + dy, sx = (flip ? W - 1 - j : j) + dx;
                bool in = sy >= 0 && sy < H && sx >= 0 && sx < W;
                if (mirror) {
                    sy = reflect(sy, H);
                    sx = reflect(sx, W);
                    in = true;
                }
                if (x[c * PLANE + i * W + j] != (in ? f32[c * PLANE + sy * W + sx] : 0))
                    return false;
            }
    return true;
}

static void test_moves(void **state) {
    (void)state;
    static const rt_augment cases[] = {
        {.flip = true},
        {.crop_pad = 2},
        {.crop_pad = 9, .reflect = true}, /* more than the picture */
        {.shift = 1},
        {.shift = 9},
        {.flip = true, .crop_pad = 3},
        {.flip = true, .crop_pad = 2, .reflect = true},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        int reach = (int)(cases[k].crop_pad + cases[k].shift), seen = 0;
        bool hit[2][40][40] = {{{false}}};
        for (int64_t row = 0; row < 300; row++) {
            float x[ELEMS];
            run(cases[k], 3, row, x);
            bool found = false;
            for (int flip = 0; flip <= cases[k].flip && !found; flip++)
                for (int dy = -reach; dy <= reach && !found; dy++)
                    for (int dx = -reach; dx <= reach && !found; dx++)
                        if (is_moved(x, dy, dx, flip, cases[k].reflect)) {
                            found = true;
                            seen += !hit[flip][dy + 20][dx + 20];
                            hit[flip][dy + 20][dx + 20] = true;
                        }
            assert_true(found);
        }
        assert_true(seen > (reach == 0 ? 1 : 5));
    }
}

static void test_flip_is_fair(void **state) {
    (void)state;
    int flips = 0;
    for (int64_t row = 0; row < 2000; row++) {
        float x[ELEMS];
        run((rt_augment){.flip = true}, row % 7, row, x);
        flips += is_moved(x, 0, 0, true, false);
    }
    assert_in_range(flips, 900, 1100);
}

static void test_rotation(void **state) {
    (void)state;
    /* a constant picture stays constant in the middle */
    float flat[81], out[81];
    rt_augment a = {.rotate = 30};
    for (int i = 0; i < 81; i++)
        flat[i] = 0.5f;
    double change = 0;
    for (int64_t row = 0; row < 50; row++) {
        rt_augment_image(&a, 1, 0, row, rt_shape3(1, 9, 9), NULL, flat, out);
        assert_close(out[40], 0.5, 1e-6);
        assert_close(out[4 * 9 + 2], 0.5, 1e-6);
        change += fabsf(out[0] - 0.5f);
    }
    assert_true(change > 1);
    /* a plane z = x turns into z = cx + cos(angle) dx - sin(angle) dy: recover the angle and check all of the
     * inside */
    for (int i = 0; i < 81; i++)
        flat[i] = (float)(i % 9);
    for (int64_t row = 0; row < 20; row++) {
        rt_augment_image(&a, 1, 0, row, rt_shape3(1, 9, 9), NULL, flat, out);
        double cs = out[4 * 9 + 5] - 4.0, sn = 4.0 - out[5 * 9 + 4];
        assert_close(cs * cs + sn * sn, 1, 1e-5);
        assert_true(cs >= cos(30 * 3.14159265358979 / 180) - 1e-6);
        for (int y = 2; y < 7; y++)
            for (int x = 2; x < 7; x++)
                assert_close(out[y * 9 + x], 4 + cs * (x - 4) - sn * (y - 4), 1e-4);
        /* so does a parabola, for a cubic; a bilinear one is off by up to a quarter */
        float bowl[81], turned[81];
        for (int i = 0; i < 81; i++)
            bowl[i] = (float)((i % 9 - 4) * (i % 9 - 4));
        rt_augment_image(&a, 1, 0, row, rt_shape3(1, 9, 9), NULL, bowl, turned);
        for (int y = 2; y < 7; y++)
            for (int x = 2; x < 7; x++) {
                const double place = cs * (x - 4) - sn * (y - 4);
                assert_close(turned[y * 9 + x], place * place, 1e-4);
            }
        /* and bytes stay bytes */
        uint8_t edge[81];
        for (int i = 0; i < 81; i++)
            edge[i] = i % 9 < 4 ? 0 : 255;
        rt_augment_image(&a, 1, 0, row, rt_shape3(1, 9, 9), edge, NULL, turned);
        for (int i = 0; i < 81; i++)
            assert_true(turned[i] >= 0 && turned[i] <= 1);
    }
}

static void test_wide(void **state) {
    (void)state;
    enum { WIDE = 700 };
    static float x[WIDE * 2], y[WIDE * 2];
    for (int i = 0; i < WIDE * 2; i++)
        x[i] = (float)i + 1;
    rt_augment a = {.flip = true, .crop_pad = 3};
    rt_augment_image(&a, 1, 0, 5, rt_shape3(1, 2, WIDE), NULL, x, y);
    int changes = 0; /* neighbours still differ by one wherever both are inside */
    for (int i = 1; i < WIDE; i++)
        changes += y[i] != 0 && y[i - 1] != 0 && fabsf(y[i] - y[i - 1]) != 1;
    assert_int_equal(changes, 0);
}

static void test_parse(void **state) {
    (void)state;
    rt_augment a;
    assert_ok(rt_augment_parse(&a, "flip,crop:4,reflect,shift:2,rotate:15"));
    assert_true(a.flip && a.crop_pad == 4 && a.reflect && a.shift == 2 && a.rotate == 15);
    assert_ok(rt_augment_parse(&a, "none"));
    assert_false(rt_augment_any(&a));
    assert_ok(rt_augment_parse(&a, ""));
    assert_false(rt_augment_any(&a));
    static const char *const bad[] = {
        "flop",      "crop",     "crop:0",     "crop:-1",      "crop:x",
        "flip:1",    "rotate:0", "rotate:nan", "shift:1.5",    "flip,none",
        "none,flip", "reflect",  ",",          "flip,,crop:1", "crop:99999999999999999999"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (rt_augment_parse(&a, bad[i]) != RT_E_USAGE)
            fail_msg("accepted: %s", bad[i]);
    assert_int_equal(rt_augment_parse(&a, "flipp"), RT_E_USAGE);
    assert_non_null(strstr(rt_error_text(), "did you mean 'flip'?"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_moves), cmocka_unit_test(test_flip_is_fair), cmocka_unit_test(test_rotation),
        cmocka_unit_test(test_wide),  cmocka_unit_test(test_parse),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
