/* Pictures: every PNG form, JPEG, folders, sizes, and damaged files. */
#include "unit/data/picture_support.h"

static void test_png_forms(void **state) {
    (void)state;
    static const struct {
        int depth, colour;
        int64_t channels;
    } forms[] = {
        {1, PNG_COLOR_TYPE_GRAY, 1},        {2, PNG_COLOR_TYPE_GRAY, 1},
        {4, PNG_COLOR_TYPE_GRAY, 1},        {8, PNG_COLOR_TYPE_GRAY, 1},
        {16, PNG_COLOR_TYPE_GRAY, 1},       {8, PNG_COLOR_TYPE_GRAY_ALPHA, 1},
        {16, PNG_COLOR_TYPE_GRAY_ALPHA, 1}, {8, PNG_COLOR_TYPE_RGB, 3},
        {16, PNG_COLOR_TYPE_RGB, 3},        {8, PNG_COLOR_TYPE_RGB_ALPHA, 3},
        {16, PNG_COLOR_TYPE_RGB_ALPHA, 3},  {1, PNG_COLOR_TYPE_PALETTE, 3},
        {2, PNG_COLOR_TYPE_PALETTE, 3},     {8, PNG_COLOR_TYPE_PALETTE, 3},
    };
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        for (int interlace = 0; interlace < 2; interlace++) {
            rt_str file;
            rt_picture p;
            make_png(&file, 9, 5, forms[i].depth, forms[i].colour,
                     interlace ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE);
            assert_ok(rt_png_decode(&p, (const uint8_t *)file.p, file.len, "t.png"));
            assert_int_equal(p.c, forms[i].channels);
            assert_int_equal(p.h, 5);
            assert_int_equal(p.w, 9);
            if (forms[i].colour == PNG_COLOR_TYPE_RGB && forms[i].depth == 8)
                assert_int_equal(p.data[1 * 45 + 2 * 9 + 3], 2 * 37 + 10 * 5); /* green of (2, 3) */
            if (forms[i].colour == PNG_COLOR_TYPE_PALETTE && forms[i].depth == 8)
                assert_int_equal(p.data[2 * 45 + 1 * 9 + 1], 90); /* blue of entry 2 */
            if (forms[i].colour == PNG_COLOR_TYPE_GRAY && forms[i].depth == 1)
                assert_true(p.data[0] == 0 || p.data[0] == 255);
            rt_free(p.data);
            rt_str_deinit(&file);
        }
}

static void test_jpeg_forms(void **state) {
    (void)state;
    static const struct {
        int channels;
        jpeg_style style;
        rt_status want;
    } forms[] = {{1, JPEG_PLAIN, RT_OK},       {3, JPEG_PLAIN, RT_OK},      {1, JPEG_PROGRESSIVE, RT_OK},
                 {3, JPEG_PROGRESSIVE, RT_OK}, {4, JPEG_PLAIN, RT_E_INPUT}, {3, JPEG_MANY_SCANS, RT_E_INPUT}};
    uint64_t before = live_blocks();
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        rt_str file;
        rt_picture p;
        make_jpeg(&file, 16, 12, forms[i].channels, forms[i].style);
        rt_status st = rt_jpeg_decode(&p, (const uint8_t *)file.p, file.len, "t.jpg");
        if (st != forms[i].want)
            fail_msg("form %zu: %s", i, rt_error_text());
        if (st == RT_OK) {
            assert_int_equal(p.c, forms[i].channels);
            assert_int_equal(p.h, 12);
            if (p.c == 1)
                assert_in_range(p.data[5 * 16 + 7], 60 + 20 + 7 - 6, 60 + 20 + 7 + 6);
        }
        rt_free(p.data);
        rt_str_deinit(&file);
    }
    assert_int_equal(live_blocks(), before);
}

static rt_status read_png(const uint8_t *data, size_t n) {
    rt_picture p;
    rt_status st = rt_png_decode(&p, data, n, "t.png");
    rt_free(p.data);
    return st;
}
static rt_status read_jpeg(const uint8_t *data, size_t n) {
    rt_picture p;
    rt_status st = rt_jpeg_decode(&p, data, n, "t.jpg");
    rt_free(p.data);
    return st;
}

static void test_torment(void **state) {
    (void)state;
    static const int colours[] = {PNG_COLOR_TYPE_RGB, PNG_COLOR_TYPE_PALETTE, PNG_COLOR_TYPE_GRAY_ALPHA};
    uint64_t before = live_blocks();
    rt_str file;
    for (int i = 0; i < 3; i++) {
        make_png(&file, 9, 5, 8, colours[i], i == 1 ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE);
        torment_truncate(read_png, (const uint8_t *)file.p, file.len);
        assert_true(torment_flip(read_png, (const uint8_t *)file.p, file.len) > file.len);
        rt_str_deinit(&file);
    }
    for (int i = 0; i < 2; i++) {
        make_jpeg(&file, 20, 9, i ? 3 : 1, i ? JPEG_PROGRESSIVE : JPEG_PLAIN);
        torment_truncate(read_jpeg, (const uint8_t *)file.p, file.len);
        assert_true(torment_flip(read_jpeg, (const uint8_t *)file.p, file.len) > 0);
        rt_str_deinit(&file);
    }
    assert_int_equal(live_blocks(), before);
}

/* A header that promises more pixels than we accept, or than the file can hold. */
static void test_forged_size(void **state) {
    (void)state;
    static const uint32_t sides[] = {0, 4000, 8000, 65535, 0x7fffffff, 0xffffffff};
    rt_str file;
    make_png(&file, 9, 5, 8, PNG_COLOR_TYPE_RGB, PNG_INTERLACE_NONE);
    uint8_t *p = (uint8_t *)file.p;
    for (size_t i = 0; i < sizeof sides / sizeof *sides; i++) {
        for (int b = 0; b < 4; b++)
            p[16 + b] = p[20 + b] = (uint8_t)(sides[i] >> (24 - 8 * b));
        uint32_t crc = (uint32_t)crc32(crc32(0, NULL, 0), p + 12, 17);
        for (int b = 0; b < 4; b++)
            p[29 + b] = (uint8_t)(crc >> (24 - 8 * b));
        assert_int_equal(read_png(p, file.len), RT_E_INPUT);
    }
    rt_str_deinit(&file);
    make_jpeg(&file, 16, 16, 3, JPEG_PLAIN);
    p = (uint8_t *)file.p;
    for (size_t at = 2; at + 9 < file.len; at++)
        if (p[at] == 0xff && p[at + 1] == 0xc0) {
            memset(p + at + 5, 0xff, 4);
            break;
        }
    assert_int_equal(read_jpeg(p, file.len), RT_E_INPUT);
    rt_alloc_stats stats;
    rt_alloc_get_stats(&stats);
    assert_true(stats.peak_bytes < 4 << 20);
    rt_str_deinit(&file);
}

static void put_png(scratch *s, const char *name, unsigned w, unsigned h, int colour) {
    rt_str file;
    make_png(&file, w, h, 8, colour, PNG_INTERLACE_NONE);
    scratch_write(s, name, file.p, file.len);
    rt_str_deinit(&file);
}

static void test_folders(void **state) {
    (void)state;
    scratch s;
    rt_dataset *d = NULL;
    scratch_make(&s);
    scratch_mkdir(&s, "b");
    scratch_mkdir(&s, "a");
    put_png(&s, "b/1.png", 6, 4, PNG_COLOR_TYPE_GRAY);
    put_png(&s, "b/2.PNG", 6, 4, PNG_COLOR_TYPE_RGB);
    put_png(&s, "a/9.png", 6, 4, PNG_COLOR_TYPE_GRAY);
    scratch_text(&s, "a/.hidden", "x");
    scratch_text(&s, "a/notes.txt", "x");
    assert_ok(open_with(&d, "images", s.dir, ",test=0", (rt_data_options){.seed = 0}));
    const rt_part *p = rt_dataset_train(d);
    const rt_shape row = rt_dataset_row(d), want = rt_shape3(3, 4, 6);
    assert_true(rt_shape_equal(&row, &want));
    assert_int_equal(p->n, 3);
    assert_string_equal(rt_dataset_class_name(d, 1), "b");
    assert_int_equal(p->label[0], 0);
    assert_int_equal(p->label[2], 1);
    assert_memory_equal(p->u8, p->u8 + 24, 24); /* grey in a colour set: three equal planes */
    rt_dataset_destroy(&d);
    rt_str jpeg;
    make_jpeg(&jpeg, 16, 16, 3, JPEG_PLAIN);
    scratch_write(&s, "a/z.jpeg", jpeg.p, jpeg.len);
    rt_str_deinit(&jpeg);
    assert_ok(open_with(&d, "images", s.dir, "", (rt_data_options){.seed = 0}));
    const rt_shape square = rt_shape3(3, 4, 4), median = rt_dataset_row(d);
    assert_true(rt_shape_equal(&median, &square)); /* shorter sides: 4, 4, 4, 16 */
    assert_string_equal(rt_dataset_resize(d), "crop");
    rt_dataset_destroy(&d);
    assert_ok(open_with(&d, "images", s.dir, ",size=8x8,test=0.25", (rt_data_options){.seed = 0}));
    assert_int_equal(rt_dataset_train(d)->n, 3);
    assert_int_equal(rt_dataset_test(d)->n, 1);
    rt_dataset_destroy(&d);
    assert_int_equal(open_with(&d, "images", s.dir, ",size=8", (rt_data_options){.seed = 0}), RT_E_USAGE);
    scratch_mkdir(&s, "c");
    assert_int_equal(open_with(&d, "images", s.dir, ",size=8x8", (rt_data_options){.seed = 0}),
                     RT_E_INPUT); /* empty class */
    scratch_remove(&s);
}

/* A model's size, colours and classes; the middle of a picture; what its files are called; no classes at all. */
static void test_for_a_model(void **state) {
    (void)state;
    static const char *const names[] = {"a", "b", "c"};
    scratch s;
    rt_dataset *d = NULL;
    scratch_make(&s);
    scratch_mkdir(&s, "c");
    put_png(&s, "c/1.png", 12, 4, PNG_COLOR_TYPE_GRAY);
    rt_data_like like = {
        .task = RT_TASK_CLASSIFICATION, .row = rt_shape3(3, 4, 4), .classes = 3, .class_name = names};
    rt_data_options o = {.like = &like, .whole = true};
    assert_ok(open_with(&d, "images", s.dir, "", o));
    assert_int_equal(rt_dataset_classes(d), 3);
    assert_int_equal(rt_dataset_test(d)->label[0], 2);
    const rt_shape row = rt_dataset_row(d);
    assert_true(rt_shape_equal(&row, &like.row));
    assert_true(rt_str_ends(rt_dataset_row_name(d, rt_dataset_test(d), 0), "/c/1.png"));
    rt_dataset *whole = NULL;
    assert_ok(open_with(&whole, "images", s.dir, "", (rt_data_options){.whole = true}));
    for (int y = 0; y < 4; y++)
        for (int x = 0; x < 4; x++)
            assert_int_equal(rt_dataset_test(d)->u8[16 + y * 4 + x],
                             rt_dataset_test(whole)->u8[y * 12 + 4 + x]);
    rt_dataset_destroy(&whole);
    rt_dataset_destroy(&d);
    like.resize = "stretch";
    assert_ok(open_with(&d, "images", s.dir, "", o));
    assert_string_equal(rt_dataset_resize(d), "stretch");
    rt_dataset_destroy(&d);
    like.class_name = (const char *const[]){"x", "y", "z"};
    assert_ok(open_with(&d, "images", s.dir, "", o)); /* folders that are no classes */
    assert_false(rt_dataset_labelled(d));
    assert_string_equal(rt_dataset_class_name(d, 0), "x");
    assert_int_equal(rt_dataset_need_labels(d, "training"), RT_E_INPUT);
    rt_dataset_destroy(&d);
    o.whole = false;
    assert_int_equal(open_with(&d, "images", s.dir, "", o), RT_E_INPUT);
    assert_non_null(strstr(rt_error_text(), "'c' is not among the model's classes"));
    scratch_remove(&s);
}

/* Sizes from headers are those of the decoder; nothing of a header is believed that is not there. */
static void test_header_sizes(void **state) {
    (void)state;
    static const int modes[] = {JPEG_PLAIN};
    rt_str file;
    rt_picture p;
    make_png(&file, 9, 5, 8, PNG_COLOR_TYPE_RGB, PNG_INTERLACE_NONE);
    assert_true(rt_picture_size(&p, (const uint8_t *)file.p, file.len));
    assert_true(p.w == 9 && p.h == 5 && p.c == 3);
    for (size_t n = 0; n < 26; n++)
        assert_false(rt_picture_size(&p, (const uint8_t *)file.p, n));
    rt_str_deinit(&file);
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        make_jpeg(&file, 32, 16, 3, (jpeg_style)modes[i]);
        assert_true(rt_picture_size(&p, (const uint8_t *)file.p, file.len));
        assert_true(p.w == 32 && p.h == 16 && p.c == 3);
        for (size_t n = 0; n < 60; n++)
            (void)rt_picture_size(&p, (const uint8_t *)file.p, n);
        rt_str_deinit(&file);
    }
}

static void listen(void *user, rt_log_level level, const char *text) {
    (void)level;
    snprintf(user, 256, "%s", text);
}

/* What decoding converts or drops is told, in one line. */
static void test_colours_told(void **state) {
    (void)state;
    scratch s;
    rt_dataset *d = NULL;
    char heard[256] = "";
    scratch_make(&s);
    scratch_mkdir(&s, "a");
    put_png(&s, "a/1.png", 6, 4, PNG_COLOR_TYPE_RGB);
    rt_log_set(listen, heard);
    assert_ok(open_with(&d, "images", s.dir, ",test=0", (rt_data_options){.seed = 0}));
    rt_dataset_destroy(&d);
    assert_string_equal(heard, "");
    put_png(&s, "a/2.png", 6, 4, PNG_COLOR_TYPE_GRAY);
    put_png(&s, "a/3.png", 6, 4, PNG_COLOR_TYPE_RGB_ALPHA);
    put_png(&s, "a/4.png", 6, 4, PNG_COLOR_TYPE_GRAY_ALPHA);
    put_png(&s, "a/5.png", 6, 4, PNG_COLOR_TYPE_PALETTE);
    rt_str deep;
    make_png(&deep, 6, 4, 16, PNG_COLOR_TYPE_RGB, PNG_INTERLACE_NONE);
    scratch_write(&s, "a/6.png", deep.p, deep.len);
    rt_str_deinit(&deep);
    assert_ok(open_with(&d, "images", s.dir, ",test=0", (rt_data_options){.seed = 0}));
    rt_log_set(NULL, NULL);
    assert_string_equal(heard,
                        "colours of 6 pictures: 2 grey become RGB, 1 with a palette become RGB, 2 lose their "
                        "transparency, 1 of 16 bits become 8");
    rt_dataset_destroy(&d);
    scratch_remove(&s);
}

static void test_two_parts(void **state) {
    (void)state;
    scratch s;
    rt_dataset *d = NULL;
    scratch_make(&s);
    static const char *const dirs[] = {"train", "train/x", "train/y", "test", "test/y"};
    for (size_t i = 0; i < 5; i++)
        scratch_mkdir(&s, dirs[i]);
    put_png(&s, "train/x/1.png", 6, 4, PNG_COLOR_TYPE_GRAY);
    put_png(&s, "train/y/1.png", 6, 4, PNG_COLOR_TYPE_GRAY);
    put_png(&s, "test/y/1.png", 6, 4, PNG_COLOR_TYPE_GRAY);
    assert_ok(open_with(&d, "images", s.dir, "", (rt_data_options){.seed = 0}));
    assert_int_equal(rt_dataset_train(d)->n, 2);
    assert_int_equal(rt_dataset_test(d)->n, 1);
    assert_int_equal(rt_dataset_test(d)->label[0], 1);
    rt_dataset_destroy(&d);
    assert_ok(open_with(&d, "images", s.dir, "", (rt_data_options){.test_only = true}));
    assert_int_equal(rt_dataset_train(d)->n, 0);
    assert_int_equal(rt_dataset_classes(d), 2);
    rt_dataset_destroy(&d);
    scratch_mkdir(&s, "test/z");
    put_png(&s, "test/z/1.png", 6, 4, PNG_COLOR_TYPE_GRAY);
    assert_int_equal(open_with(&d, "images", s.dir, "", (rt_data_options){.seed = 0}), RT_E_INPUT);
    assert_non_null(strstr(rt_error_text(), "'z'"));
    scratch_remove(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forged_size),  cmocka_unit_test(test_png_forms),
        cmocka_unit_test(test_jpeg_forms),   cmocka_unit_test(test_torment),
        cmocka_unit_test(test_folders),      cmocka_unit_test(test_for_a_model),
        cmocka_unit_test(test_header_sizes), cmocka_unit_test(test_two_parts),
        cmocka_unit_test(test_colours_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
