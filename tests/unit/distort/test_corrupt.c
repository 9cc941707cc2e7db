/* Properties of corruptions and shifts: determinism, range, growth with severity, moments of noise, refusals.
 */
#include "base/rng.h"
#include "distort/distort.h"
#include "unit/data/data_support.h"

#include <math.h>

static const struct {
    int64_t c, h, w;
} sizes[] = {{1, 8, 8},   {3, 8, 8},   {1, 28, 28}, {3, 28, 28}, {1, 32, 32},
             {3, 32, 32}, {3, 33, 17}, {1, 17, 33}, {1, 64, 64}, {3, 64, 64}};

/* n smooth pictures with some detail, rt_alloc'ed. */
static uint8_t *make_rows(int64_t n, rt_shape row) {
    const int64_t elems = rt_shape_elems(&row), w = row.d[2], plane = row.d[1] * w;
    uint8_t *p = NULL;
    assert_ok(rt_alloc(&p, (size_t)(n * elems)));
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; k < elems; k++) {
            const double y = (double)(k % plane / w), x = (double)(k % w), c = (double)(k / plane),
                         r = (double)i;
            const double v =
                0.5 + 0.25 * sin(0.35 * x + 0.7 * r + c) + 0.2 * sin(0.3 * y - 0.05 * x * (1 + r) + 2 * c);
            p[i * elems + k] = (uint8_t)(255 * v);
        }
    return p;
}

static void corrupt_part(rt_part *out, const char *name, int severity, rt_shape row, uint64_t seed,
                         const rt_part *in, rt_pool *pool) {
    const rt_corruption *kind = NULL;
    rt_distortion *d = NULL;
    assert_ok(rt_corruption_find(&kind, name));
    assert_ok(rt_distortion_corrupt(&d, kind, severity, row, seed));
    assert_ok(rt_distortion_part(d, in, pool, out));
    rt_distortion_destroy(&d);
}

static double mean_distance(const rt_part *a, const rt_part *b, int64_t elems) {
    double sum = 0;
    for (int64_t i = 0; i < a->n * elems; i++)
        sum += fabs((double)a->u8[i] - (double)b->u8[i]);
    return sum / (double)(a->n * elems);
}

static void test_table(void **state) {
    (void)state;
    int64_t benchmark = 0;
    const rt_corruption *c = NULL;
    for (int64_t i = 0; i < rt_corruption_count(); i++) {
        benchmark += rt_corruption_get(i)->benchmark;
        assert_true(rt_corruption_get(i)->benchmark == (i < 15));
        assert_ok(rt_corruption_find(&c, rt_corruption_get(i)->name));
        assert_ptr_equal(c, rt_corruption_get(i));
    }
    assert_int_equal(benchmark, 15);
    assert_int_equal(rt_corruption_count(), 19);
    assert_int_equal(rt_corruption_find(&c, "gaussian_nose"), RT_E_USAGE);
    assert_non_null(strstr(rt_error_text(), "did you mean 'gaussian_noise'"));
}

/* Rows in any order, alone or by threads, and floats instead of bytes: the same bytes. Another seed, another
 * result. */
static void test_determinism(void **state) {
    (void)state;
    enum { ROWS = 130 };
    const rt_shape row = rt_shape3(3, 16, 20);
    const int64_t elems = rt_shape_elems(&row);
    uint8_t *rows = make_rows(ROWS, row), *one = NULL;
    const rt_part part = {.n = ROWS, .u8 = rows};
    float *as_f32 = NULL, *from = NULL;
    rt_pool *pool = NULL;
    assert_ok(rt_pool_create(&pool, 3));
    assert_ok(rt_alloc(&one, (size_t)elems));
    assert_ok(rt_calloc(&as_f32, (size_t)elems, sizeof *as_f32));
    assert_ok(rt_calloc(&from, (size_t)elems, sizeof *from));
    for (int64_t k = 0; k < rt_corruption_count(); k++) {
        const rt_corruption *kind = rt_corruption_get(k);
        rt_part alone, threads, other;
        rt_distortion *d = NULL;
        void *work = NULL;
        corrupt_part(&alone, kind->name, 4, row, 5, &part, NULL);
        corrupt_part(&threads, kind->name, 4, row, 5, &part, pool);
        corrupt_part(&other, kind->name, 4, row, 6, &part, pool);
        if (memcmp(alone.u8, threads.u8, (size_t)(ROWS * elems)) != 0)
            fail_msg("%s: threads change the result", kind->name);
        assert_ok(rt_distortion_corrupt(&d, kind, 4, row, 5));
        assert_ok(rt_alloc(&work, rt_distortion_scratch(d)));
        memset(work, 0xff, rt_distortion_scratch(d)); /* what is there does not matter */
        for (int64_t i = ROWS - 1; i >= 0; i -= 43) {
            rt_pixels_to_f32(from, rows + i * elems, elems);
            assert_ok(rt_distortion_run(d, i, work, NULL, from, one, as_f32));
            if (memcmp(one, alone.u8 + i * elems, (size_t)elems) != 0)
                fail_msg("%s: row %lld alone differs", kind->name, (long long)i);
            for (int64_t e = 0; e < elems; e++)
                assert_true(as_f32[e] == (float)one[e] / 255.0f);
        }
        static const char *const fixed[] = {"defocus_blur", "zoom_blur",        "brightness",    "contrast",
                                            "pixelate",     "jpeg_compression", "gaussian_blur", "saturate"};
        bool random = true;
        for (int64_t f = 0; f < RT_COUNT(fixed); f++)
            random = random && strcmp(kind->name, fixed[f]) != 0;
        if ((memcmp(alone.u8, other.u8, (size_t)(ROWS * elems)) != 0) != random)
            fail_msg("%s: another seed should %schange it", kind->name, random ? "" : "not ");
        rt_free(work);
        rt_distortion_destroy(&d);
        rt_part_free(&alone);
        rt_part_free(&threads);
        rt_part_free(&other);
    }
    rt_free(rows);
    rt_free(one);
    rt_free(as_f32);
    rt_free(from);
    rt_pool_destroy(&pool);
}

/* Every kind at every size changes images, but leaves them recognisable. */
static void test_sizes(void **state) {
    (void)state;
    enum { ROWS = 4 };
    for (int64_t s = 0; s < RT_COUNT(sizes); s++) {
        const rt_shape row = rt_shape3(sizes[s].c, sizes[s].h, sizes[s].w);
        uint8_t *rows = make_rows(ROWS, row);
        const rt_part part = {.n = ROWS, .u8 = rows};
        for (int64_t k = 0; k < rt_corruption_count(); k++)
            for (int severity = 1; severity <= RT_SEVERITIES; severity++) {
                const char *name = rt_corruption_get(k)->name;
                const bool none = strcmp(name, "saturate") == 0 && row.d[0] == 1;
                const bool little = strcmp(name, "spatter") == 0 || /* a small image may stay dry, */
                                    strcmp(name, "zoom_blur") == 0; /* and its zooms round to its own size */
                rt_part out;
                corrupt_part(&out, name, severity, row, 1, &part, NULL);
                const double distance = mean_distance(&out, &part, rt_shape_elems(&row));
                if (none ? distance > 0 : (distance <= 0 && !little) || distance > 110)
                    fail_msg("%s, severity %d, %lldx%lldx%lld: distance %g", name, severity,
                             (long long)row.d[0], (long long)row.d[1], (long long)row.d[2], distance);
                rt_part_free(&out);
            }
        rt_free(rows);
    }
}

/* The mean distance to the original grows; except where the benchmark's own parameters trade one effect for
 * another. */
static void test_growth(void **state) {
    (void)state;
    enum { ROWS = 60 };
    static const char *const not [] = {"elastic_transform", "saturate", "frost", "glass_blur", "spatter"};
    const rt_shape row = rt_shape3(3, 32, 32);
    uint8_t *rows = make_rows(ROWS, row);
    const rt_part part = {.n = ROWS, .u8 = rows};
    for (int64_t k = 0; k < rt_corruption_count(); k++) {
        const char *name = rt_corruption_get(k)->name;
        bool grows = true;
        double distance[RT_SEVERITIES];
        for (int64_t i = 0; i < RT_COUNT(not ); i++)
            grows = grows && strcmp(name, not [i]) != 0;
        for (int s = 0; s < RT_SEVERITIES; s++) {
            rt_part out;
            corrupt_part(&out, name, s + 1, row, 3, &part, NULL);
            distance[s] = mean_distance(&out, &part, rt_shape_elems(&row));
            rt_part_free(&out);
            if (grows && s > 0 && distance[s] <= 0.95 * distance[s - 1])
                fail_msg("%s: distance %g at severity %d, %g at %d", name, distance[s - 1], s, distance[s],
                         s + 1);
        }
        if (grows && distance[4] < 1.05 * distance[0])
            fail_msg("%s: distance %g at severity 1, %g at 5", name, distance[0], distance[4]);
    }
    rt_free(rows);
}

/* ---- frost ---- */

enum { CROPS = 400, SIDE = 32, CROP = 3 * SIDE * SIDE };

/* Mean, contrast within and between crops of the ice that is laid over black images, in bytes of ice. */
static void ice_moments(rt_distortion *d, double b, double *mean, double *within, double *between) {
    uint8_t *black = NULL;
    rt_part out;
    assert_ok(rt_calloc(&black, CROPS * CROP, 1));
    assert_ok(rt_distortion_part(d, &(rt_part){.n = CROPS, .u8 = black}, NULL, &out));
    double sum = 0, squares = 0, inner = 0;
    for (int64_t i = 0; i < CROPS; i++) {
        double s = 0, q = 0;
        for (int64_t k = 0; k < CROP; k++) {
            const double v = (out.u8[i * CROP + k] + 0.5) / b;
            s += v / CROP;
            q += v * v / CROP;
        }
        sum += s / CROPS;
        squares += s * s / CROPS;
        inner += sqrt(q - s * s) / CROPS;
    }
    *mean = sum;
    *within = inner;
    *between = sqrt(squares - sum * sum);
    rt_part_free(&out);
    rt_free(black);
}

static rt_distortion *frost_of(uint64_t seed) {
    const rt_corruption *kind = NULL;
    rt_distortion *d = NULL;
    assert_ok(rt_corruption_find(&kind, "frost"));
    assert_ok(rt_distortion_corrupt(&d, kind, 5, rt_shape3(3, SIDE, SIDE), seed));
    return d;
}

/* The published photographs: 160, 23 and 40. */
static void test_frost_statistics(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 3; seed++) {
        double mean, within, between;
        rt_distortion *d = frost_of(seed);
        ice_moments(d, 0.45, &mean, &within, &between);
        if (fabs(mean - 160) > 8 || fabs(within - 23) > 3 || fabs(between - 40) > 6)
            fail_msg("seed %d: ice of mean %g, contrast %g within and %g between crops", (int)seed, mean,
                     within, between);
        rt_distortion_destroy(&d);
    }
}

/* Photographs take the place of drawn ice: one white, one black, each as often, every fifth pixel of them. */
static void test_frost_photographs(void **state) {
    (void)state;
    enum { WIDE = 200 };
    scratch tmp;
    uint8_t *pixels = NULL;
    rt_distortion *d = frost_of(1);
    scratch_make(&tmp);
    const char *dir = tmp.dir;
    assert_ok(rt_alloc(&pixels, WIDE * WIDE));
    assert_int_equal(rt_distortion_photographs(d, dir), RT_E_INPUT);
    assert_non_null(strstr(rt_error_text(), "has no pictures"));
    rt_distortion_destroy(&d);
    for (int white = 0; white < 2; white++) {
        for (int64_t i = 0; i < WIDE * WIDE; i++) /* pixels that are not looked at are grey */
            pixels[i] = i % WIDE % 5 == 2 && i / WIDE % 5 == 2 ? (uint8_t)(255 * white) : 99;
        assert_ok(
            rt_image_write_png(scratch_path(&tmp, white ? "white.png" : "black.png"), pixels, WIDE, WIDE, 1));
    }
    double mean, within, between;
    d = frost_of(1);
    assert_ok(rt_distortion_photographs(d, dir));
    ice_moments(d, 0.45, &mean, &within, &between);
    assert_true(fabs(mean - 127) < 15 && within < 0.01 && fabs(between - 127) < 10);
    rt_distortion_destroy(&d);
    const rt_corruption *kind = NULL; /* too small for larger images */
    assert_ok(rt_corruption_find(&kind, "frost"));
    assert_ok(rt_distortion_corrupt(&d, kind, 5, rt_shape3(3, 41, 41), 1));
    assert_int_equal(rt_distortion_photographs(d, dir), RT_E_INPUT);
    rt_distortion_destroy(&d);
    assert_ok(rt_corruption_find(&kind, "fog")); /* others do not care */
    assert_ok(rt_distortion_corrupt(&d, kind, 5, rt_shape3(3, 41, 41), 1));
    assert_ok(rt_distortion_photographs(d, "nowhere"));
    rt_distortion_destroy(&d);
    rt_free(pixels);
    scratch_remove(&tmp);
}

/* ---- noise ---- */

/* Mean and variance, in [0, 1] units, of a corruption of many flat pictures. */
static void moments(const char *name, int severity, int level, double *mean, double *variance) {
    enum { ROWS = 100 };
    const rt_shape row = rt_shape3(3, 32, 32);
    const int64_t n = ROWS * rt_shape_elems(&row);
    uint8_t *rows = NULL;
    rt_part out;
    double sum = 0, square = 0;
    assert_ok(rt_alloc(&rows, (size_t)n));
    memset(rows, level, (size_t)n);
    const rt_part part = {.n = ROWS, .u8 = rows};
    corrupt_part(&out, name, severity, row, 9, &part, NULL);
    for (int64_t i = 0; i < n; i++) {
        const double v =
            ((double)out.u8[i] + (out.u8[i] < 255 && out.u8[i] > 0 ? 0.5 : 0)) / 255; /* truncated */
        sum += v;
        square += v * v;
    }
    *mean = sum / (double)n;
    *variance = square / (double)n - *mean * *mean;
    rt_part_free(&out);
    rt_free(rows);
}

static void test_noise_moments(void **state) {
    (void)state;
    const double c_normal[] = {.04, .06, .08, .09, .10}, c_shot[] = {500, 250, 100, 75, 50},
                 c_impulse[] = {.01, .02, .03, .05, .07}, c_speckle[] = {.06, .1, .12, .16, .2};
    const double x = 128.0 / 255;
    for (int s = 1; s <= RT_SEVERITIES; s++) {
        const struct {
            const char *name;
            double mean, variance, tolerance;
        } want[] = {
            {"gaussian_noise", x, c_normal[s - 1] * c_normal[s - 1], .02},
            {"shot_noise", x, x / c_shot[s - 1], .03},
            {"speckle_noise", x, x * x * c_speckle[s - 1] * c_speckle[s - 1], .02},
            {"impulse_noise", x + c_impulse[s - 1] * (.5 - x),
             c_impulse[s - 1] * (.5 * x * x + .5 * (1 - x) * (1 - x)), .05},
        };
        for (int64_t k = 0; k < RT_COUNT(want); k++) {
            double mean, variance;
            moments(want[k].name, s, 128, &mean, &variance);
            if (fabs(mean - want[k].mean) > 2.5e-3 ||
                fabs(variance / want[k].variance - 1) > want[k].tolerance)
                fail_msg("%s, severity %d: mean %g, wanted %g; variance %g, wanted %g", want[k].name, s, mean,
                         want[k].mean, variance, want[k].variance);
        }
    }
    double mean, variance;
    moments("shot_noise", 1, 0, &mean, &variance); /* no light, no photons */
    assert_true(mean == 0 && variance == 0);
    moments("shot_noise", 5, 10, &mean, &variance); /* about two photons */
    assert_true(fabs(variance / (10.0 / 255 / 50) - 1) < .05);
}

/* Salt and pepper in equal numbers. */
static void test_impulse(void **state) {
    (void)state;
    const rt_shape row = rt_shape3(1, 64, 64);
    uint8_t *rows = NULL;
    enum { ROWS = 50, N = ROWS * 64 * 64 };
    assert_ok(rt_alloc(&rows, N));
    memset(rows, 77, N);
    const rt_part part = {.n = ROWS, .u8 = rows};
    rt_part out;
    int64_t count[256] = {0};
    corrupt_part(&out, "impulse_noise", 5, row, 2, &part, NULL);
    for (int64_t i = 0; i < N; i++)
        count[out.u8[i]]++;
    assert_int_equal(count[0] + count[77] + count[255], N);
    assert_in_range(count[0], (int64_t)(.035 * N * .95), (int64_t)(.035 * N * 1.05));
    assert_in_range(count[255], (int64_t)(.035 * N * .95), (int64_t)(.035 * N * 1.05));
    rt_part_free(&out);
    rt_free(rows);
}

/* ---- single corruptions ---- */

/* Severity 1 does not blur: every pixel is a copy of one at most a few steps up and left; two rows and
 * columns stay. */
static void test_glass_copies(void **state) {
    (void)state;
    const rt_shape row = rt_shape3(3, 20, 20);
    uint8_t pixels[3 * 400];
    int64_t moved = 0;
    for (int i = 0; i < 1200; i++)
        pixels[i] = (uint8_t)(i % 400 % 256);
    const rt_part part = {.n = 1, .u8 = pixels};
    rt_part out;
    corrupt_part(&out, "glass_blur", 1, row, 4, &part, NULL);
    for (int c = 0; c < 3; c++)
        for (int y = 0; y < 20; y++)
            for (int x = 0; x < 20; x++) {
                const int i = y * 20 + x, got = out.u8[c * 400 + i];
                const int near[4] = {i, i - 1, i - 20, i - 21};
                bool found = got == pixels[i];
                for (int k = 1; k < 4 && y > 1 && x > 1; k++)
                    found = found || got == pixels[near[k]];
                assert_true(found);
                moved += got != pixels[i];
            }
    assert_in_range(moved, 3 * 324 / 2, 3 * 324); /* three of four, the same in each channel */
    rt_part_free(&out);
}

/* A white image under fog spans (1 + c p) / (1 + c) for p from 0 to 1; a black one has no light to scatter.
 */
static void test_fog(void **state) {
    (void)state;
    const rt_shape row = rt_shape3(1, 32, 32);
    const double c[] = {.2, .5, .75, 1, 1.5};
    uint8_t pixels[1024];
    for (int s = 1; s <= RT_SEVERITIES; s++) {
        const rt_part part = {.n = 1, .u8 = pixels};
        rt_part out;
        uint8_t low = 255, high = 0;
        memset(pixels, 255, sizeof pixels);
        corrupt_part(&out, "fog", s, row, 4, &part, NULL);
        for (int i = 0; i < 1024; i++) {
            low = RT_MIN(low, out.u8[i]);
            high = RT_MAX(high, out.u8[i]);
        }
        assert_int_equal(high, 255);
        assert_in_range(low, (int)(255 / (1 + c[s - 1])) - 1, (int)(255 / (1 + c[s - 1])));
        rt_part_free(&out);
        memset(pixels, 0, sizeof pixels);
        corrupt_part(&out, "fog", s, row, 4, &part, NULL);
        for (int i = 0; i < 1024; i++)
            assert_int_equal(out.u8[i], 0);
        rt_part_free(&out);
    }
}

/* What only moves pixels leaves a flat image flat. */
static void test_flat(void **state) {
    (void)state;
    static const char *const names[] = {"elastic_transform", "glass_blur", "motion_blur", "zoom_blur",
                                        "defocus_blur",      "pixelate",   "contrast",    "gaussian_blur"};
    const rt_shape row = rt_shape3(3, 16, 24);
    uint8_t pixels[3 * 16 * 24];
    memset(pixels, 200, sizeof pixels);
    const rt_part part = {.n = 1, .u8 = pixels};
    for (int64_t k = 0; k < RT_COUNT(names); k++)
        for (int s = 1; s <= RT_SEVERITIES; s++) {
            rt_part out;
            corrupt_part(&out, names[k], s, row, 4, &part, NULL);
            for (size_t i = 0; i < sizeof pixels; i++)
                if (out.u8[i] != 200 && out.u8[i] != 199) /* truncation may lose one */
                    fail_msg("%s, severity %d: %d of a flat 200", names[k], s, out.u8[i]);
            rt_part_free(&out);
        }
}

/* ---- shifts ---- */

static void test_shift_amounts(void **state) {
    (void)state;
    const rt_shift *rotate = NULL, *roll = NULL;
    double a[RT_SHIFT_AMOUNTS];
    assert_ok(rt_shift_find(&rotate, "rotate"));
    assert_ok(rt_shift_find(&roll, "roll"));
    assert_int_equal(rt_shift_amounts(rotate, rt_shape3(1, 28, 28), a), 12);
    assert_true(a[0] == 15 && a[11] == 180);
    assert_int_equal(rt_shift_amounts(roll, rt_shape3(1, 28, 28), a), 13);
    assert_true(a[0] == 2 && a[12] == 26);
    assert_int_equal(rt_shift_amounts(roll, rt_shape3(3, 32, 32), a), 7);
    assert_true(a[0] == 4 && a[6] == 28);
    assert_int_equal(rt_shift_amounts(roll, rt_shape1(5), a), 0);
    for (int64_t w = RT_IMAGE_MIN; w < 600; w++) {
        const int64_t n = rt_shift_amounts(roll, rt_shape3(1, 10, w), a);
        assert_in_range(n, 2, RT_SHIFT_AMOUNTS);
        assert_true(a[n - 1] < (double)w);
    }
    assert_int_equal(rt_shift_find(&roll, "rol"), RT_E_USAGE);
}

static void shift_part(rt_part *out, const char *name, double amount, rt_shape row, const rt_part *in) {
    const rt_shift *kind = NULL;
    rt_distortion *d = NULL;
    assert_ok(rt_shift_find(&kind, name));
    assert_ok(rt_distortion_shift(&d, kind, amount, row));
    assert_ok(rt_distortion_part(d, in, NULL, out));
    rt_distortion_destroy(&d);
}

static void test_shifts(void **state) {
    (void)state;
    const rt_shape row = rt_shape3(3, 12, 12);
    const int64_t elems = rt_shape_elems(&row);
    uint8_t *rows = make_rows(3, row);
    const rt_part part = {.n = 3, .u8 = rows};
    rt_part a, b, c;
    shift_part(&a, "roll", 5, row, &part);
    assert_null(a.u8);
    for (int64_t i = 0; i < 3 * elems; i++)
        assert_true(a.f32[i] == (float)rows[i - i % 12 + (i % 12 + 12 - 5) % 12] / 255.0f);
    shift_part(&b, "roll", -7, row, &part);
    assert_memory_equal(a.f32, b.f32, (size_t)(3 * elems) * sizeof(float));
    rt_part_free(&a);
    rt_part_free(&b);
    /* A quarter turn is an exact move; two of them are a half turn. */
    shift_part(&a, "rotate", 90, row, &part);
    shift_part(&b, "rotate", 90, row, &a);
    shift_part(&c, "rotate", 180, row, &part);
    for (int64_t i = 0; i < 3 * elems; i++) {
        const int64_t y = i / 12 % 12, x = i % 12, plane = i / 144 * 144;
        assert_float_equal(a.f32[plane + (11 - x) * 12 + y], (double)rows[i] / 255, 1e-5);
        assert_float_equal(b.f32[i], c.f32[i], 1e-5);
    }
    rt_part_free(&a);
    rt_part_free(&b);
    rt_part_free(&c);
    rt_free(rows);
}

/* ---- refusals ---- */

static void test_refused(void **state) {
    (void)state;
    const rt_shape good = rt_shape3(3, 8, 8), bad[] = {rt_shape1(784), rt_shape3(2, 8, 8), rt_shape3(1, 7, 8),
                                                       rt_shape3(1, 8, 7), rt_shape3(1, 100000, 100000)};
    const rt_corruption *fog = NULL;
    const rt_shift *roll = NULL;
    const rt_corruption stranger = {.name = "stranger"};
    rt_distortion *d = NULL;
    assert_ok(rt_corruption_find(&fog, "fog"));
    assert_ok(rt_shift_find(&roll, "roll"));
    for (int64_t i = 0; i < RT_COUNT(bad); i++) {
        assert_int_equal(rt_distortion_corrupt(&d, fog, 1, bad[i], 0), RT_E_USAGE);
        assert_int_equal(rt_distortion_shift(&d, roll, 1, bad[i]), RT_E_USAGE);
        assert_null(d);
    }
    assert_int_equal(rt_distortion_corrupt(&d, fog, 0, good, 0), RT_E_USAGE);
    assert_int_equal(rt_distortion_corrupt(&d, fog, 6, good, 0), RT_E_USAGE);
    assert_int_equal(rt_distortion_corrupt(&d, &stranger, 1, good, 0), RT_E_USAGE);
    assert_int_equal(rt_distortion_shift(&d, roll, 1.5, good), RT_E_USAGE);
    assert_int_equal(rt_distortion_shift(&d, roll, NAN, good), RT_E_USAGE);
    assert_int_equal(rt_distortion_shift(&d, roll, 1e300, good), RT_E_USAGE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_determinism),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_growth),
        cmocka_unit_test(test_frost_statistics),
        cmocka_unit_test(test_frost_photographs),
        cmocka_unit_test(test_noise_moments),
        cmocka_unit_test(test_impulse),
        cmocka_unit_test(test_glass_copies),
        cmocka_unit_test(test_fog),
        cmocka_unit_test(test_flat),
        cmocka_unit_test(test_shift_amounts),
        cmocka_unit_test(test_shifts),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
