/*
 * Malformed data files of every binary kind: forged sizes, wrong counts, wrong types, labels out of range,
 * bombs, every cut, many changed bytes; and every allocation failing once. Each must end in the documented
 * status, without a crash, a leak, or a large allocation. The sizes come first, while the peak of memory is
 * still small.
 */
#include "io/io.h"
#include "unit/data/picture_support.h"

#include <math.h>

SCRATCH_OF_GROUP(s)

static uint64_t peak(void) {
    rt_alloc_stats st;
    rt_alloc_get_stats(&st);
    return st.peak_bytes;
}

/* ---- idx ---- */

static rt_status open_idx(const uint8_t *images, size_t images_n, const uint8_t *labels, size_t labels_n) {
    scratch_write(&s, "t10k-images-idx3-ubyte", images, images_n);
    scratch_write(&s, "t10k-labels-idx1-ubyte", labels, labels_n);
    char spec[128];
    snprintf(spec, sizeof spec, "mnist:%s", s.dir);
    return try_open(spec);
}

static const uint32_t image_dims[] = {4, 2, 3}, label_dims[] = {4};

static void test_idx_forged(void **state) {
    (void)state;
    static const uint32_t values[] = {0, 1, 3, 5, 0x7fffffff, 0xffffffff, 0x80000000};
    size_t in = 0, ln = 0;
    uint8_t *images = make_idx(image_dims, 3, 256, &in), *labels = make_idx(label_dims, 1, 10, &ln);
    assert_int_equal(open_idx(images, in, labels, ln), RT_OK);
    for (size_t field = 0; field < 3; field++)
        for (size_t v = 0; v < sizeof values / sizeof *values; v++) {
            uint8_t *copy = malloc(in);
            memcpy(copy, images, in);
            for (size_t b = 0; b < 4; b++)
                copy[4 + 4 * field + b] = (uint8_t)(values[v] >> (24 - 8 * b));
            if (memcmp(copy, images, in) != 0)
                assert_int_equal(open_idx(copy, in, labels, ln), RT_E_INPUT);
            free(copy);
        }
    assert_true(peak() < 1 << 20);
    free(images);
    free(labels);
}

static void test_idx_table(void **state) {
    (void)state;
    static const struct {
        const char *what;
        size_t at; /* byte of images (or of labels, if behind 1000) to set */
        int value;
        const char *word;
    } cases[] = {
        {"magic", 0, 1, "not an IDX"},         {"magic", 1, 1, "not an IDX"},
        {"type f4", 2, 0x0d, "type 0x0d"},     {"rank 2", 3, 2, "dimensions"},
        {"rank 5", 3, 5, "dimensions"},        {"rank 255", 3, 255, "dimensions"},
        {"label 10", 1008, 10, "label 10"},    {"label 255", 1011, 255, "row 3"},
        {"label rank", 1003, 2, "dimensions"}, {"label type", 1002, 9, "0x09"},
    };
    size_t in = 0, ln = 0;
    uint8_t *images = make_idx(image_dims, 3, 256, &in), *labels = make_idx(label_dims, 1, 10, &ln);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint8_t *byte = cases[i].at < 1000 ? images + cases[i].at : labels + (cases[i].at - 1000),
                old = *byte;
        *byte = (uint8_t)cases[i].value;
        if (open_idx(images, in, labels, ln) != RT_E_INPUT || strstr(rt_error_text(), cases[i].word) == NULL)
            fail_msg("%s: %s", cases[i].what, rt_error_text());
        *byte = old;
    }
    free(labels);
    const uint32_t five[] = {5};
    labels = make_idx(five, 1, 10, &ln);
    assert_int_equal(open_idx(images, in, labels, ln), RT_E_INPUT);
    assert_non_null(strstr(rt_error_text(), "4 images"));
    assert_non_null(strstr(rt_error_text(), "5 labels"));
    free(images);
    free(labels);
}

static void test_idx_torment(void **state) {
    (void)state;
    size_t in = 0, ln = 0;
    uint8_t *images = make_idx(image_dims, 3, 256, &in), *labels = make_idx(label_dims, 1, 10, &ln);
    for (size_t k = 0; k < in; k++)
        assert_int_equal(open_idx(images, k, labels, ln), RT_E_INPUT);
    for (size_t k = 0; k < ln; k++)
        assert_int_equal(open_idx(images, in, labels, k), RT_E_INPUT);
    for (size_t k = 0; k < in; k++) {
        images[k] ^= 0xff;
        assert_int_equal(open_idx(images, in, labels, ln), k < 16 ? RT_E_INPUT : RT_OK);
        images[k] ^= 0xff;
    }
    uint8_t *longer = calloc(1, in + 1);
    memcpy(longer, images, in);
    assert_int_equal(open_idx(longer, in + 1, labels, ln), RT_E_INPUT);
    free(longer);
    free(images);
    free(labels);
}

/* A small packed file whose content would be huge. */
static void test_idx_bomb(void **state) {
    (void)state;
    size_t n = (size_t)32 << 20, packed_n = 0;
    uint8_t *zeros = calloc(1, n), *packed = pack_xz(zeros, n, &packed_n);
    assert_true(packed_n < 10000);
    scratch_write(&s, "train-images-idx3-ubyte.xz", packed, packed_n);
    scratch_write(&s, "train-labels-idx1-ubyte.xz", packed, packed_n);
    char spec[128];
    snprintf(spec, sizeof spec, "idx:%s", s.dir);
    uint64_t before = live_blocks();
    assert_int_equal(try_open(spec), RT_E_INPUT);
    assert_int_equal(live_blocks(), before);
    assert_true(peak() < n);
    unlink(scratch_path(&s, "train-images-idx3-ubyte.xz"));
    unlink(scratch_path(&s, "train-labels-idx1-ubyte.xz"));
    free(zeros);
    free(packed);
}

/* A file that is long only on paper. */
static void test_sparse(void **state) {
    (void)state;
    scratch_text(&s, "sparse.bin", "");
    assert_int_equal(truncate(scratch_path(&s, "sparse.bin"), (off_t)1 << 40), 0);
    char spec[128];
    snprintf(spec, sizeof spec, "cifar10:%s/sparse.bin", s.dir);
    assert_int_equal(try_open(spec), RT_E_INPUT);
    unlink(scratch_path(&s, "sparse.bin"));
    assert_true(peak() < (uint64_t)1 << 30);
}

/* ---- npy ---- */

static rt_status open_npy(const char *tail) {
    char spec[300];
    snprintf(spec, sizeof spec, "npy:%s/x.npy,%s/y.npy%s", s.dir, s.dir, tail);
    return try_open(spec);
}

static void put_npy(const char *name, rt_dtype t, rt_shape shape, const void *data) {
    assert_ok(rt_npy_write(scratch_path(&s, name), t, &shape, data));
}

static void test_npy_table(void **state) {
    (void)state;
    static const float good_f[] = {1, 2, 3, 4, 5, 6}, nan_f[] = {1, 2, NAN, 4, 5, 6},
                       inf_f[] = {1, 2, 3, 4, 5, INFINITY};
    static const int32_t good_i[] = {0, 1, 2}, minus[] = {0, -1, 2}, large[] = {0, 1, 70000},
                         below[] = {0, 1, 3};
    static const double big[] = {1, 2, 1e300};
    const rt_shape x = rt_shape2(3, 2), y = rt_shape1(3);
    const struct {
        const char *what;
        const void *x, *y;
        rt_dtype yt;
        rt_shape xs, ys;
        const char *tail;
        rt_status want;
        const char *word;
    } cases[] = {
        {"good", good_f, good_i, RT_DTYPE_I32, x, y, "", RT_OK, ""},
        {"good column", good_f, good_i, RT_DTYPE_I32, x, rt_shape2(3, 1), ",test=0.34", RT_OK, ""},
        {"regression", good_f, good_f, RT_DTYPE_F32, x, y, "", RT_OK, ""},
        {"whole floats as classes", good_f, good_f, RT_DTYPE_F32, x, y, ",task=classification", RT_OK, ""},
        {"images", good_f, good_i, RT_DTYPE_I32, rt_shape4(3, 1, 1, 2), y, "", RT_OK, ""},
        {"NaN", nan_f, good_i, RT_DTYPE_I32, x, y, "", RT_E_INPUT, "row 1, value 0"},
        {"infinity", inf_f, good_i, RT_DTYPE_I32, x, y, "", RT_E_INPUT, "row 2, value 1"},
        {"NaN target", good_f, nan_f, RT_DTYPE_F32, x, y, "", RT_E_INPUT, "row 2"},
        {"large target", good_f, big, RT_DTYPE_F64, x, y, "", RT_E_INPUT, "row 2"},
        {"negative label", good_f, minus, RT_DTYPE_I32, x, y, "", RT_E_INPUT, "label -1 of row 1"},
        {"large label", good_f, large, RT_DTYPE_I32, x, y, "", RT_E_INPUT, "label 70000"},
        {"label = classes", good_f, below, RT_DTYPE_I32, x, y, ",classes=3", RT_E_INPUT, "label 3 of row 2"},
        {"counts", good_f, good_i, RT_DTYPE_I32, rt_shape2(2, 3), y, "", RT_E_INPUT, "has 2 rows"},
        {"rank 1 rows", good_f, good_i, RT_DTYPE_I32, rt_shape1(6), y, "", RT_E_INPUT, "dimensions"},
        {"rank 0 labels", good_f, good_i, RT_DTYPE_I32, x, rt_shape0(), "", RT_E_INPUT, "one value per row"},
        {"wide labels", good_f, good_f, RT_DTYPE_F32, x, x, "", RT_E_INPUT, "one value per row"},
        {"no rows", good_f, good_i, RT_DTYPE_I32, rt_shape2(0, 2), rt_shape1(0), "", RT_E_INPUT, "empty"},
        {"no features", good_f, good_i, RT_DTYPE_I32, rt_shape2(3, 0), y, "", RT_E_INPUT, "empty"},
        {"option", good_f, good_i, RT_DTYPE_I32, x, y, ",clases=3", RT_E_USAGE, "did you mean 'classes'?"},
    };
    uint64_t before = live_blocks();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        put_npy("x.npy", RT_DTYPE_F32, cases[i].xs, cases[i].x);
        put_npy("y.npy", cases[i].yt, cases[i].ys, cases[i].y);
        rt_status st = open_npy(cases[i].tail);
        if (st != cases[i].want || (st != RT_OK && strstr(rt_error_text(), cases[i].word) == NULL))
            fail_msg("%s: %s %s", cases[i].what, rt_status_name(st), st ? rt_error_text() : "");
    }
    assert_int_equal(live_blocks(), before);
    static const uint8_t bytes[] = {0, 128, 255};
    put_npy("x.npy", RT_DTYPE_U8, rt_shape3(3, 1, 1), bytes);
    put_npy("y.npy", RT_DTYPE_U8, rt_shape1(3), bytes);
    rt_dataset *d = NULL;
    char spec[300];
    snprintf(spec, sizeof spec, "npy:%s/x.npy,%s/y.npy,test=0", s.dir, s.dir);
    assert_ok(rt_dataset_open(&d, spec, (rt_data_options){.seed = 0}));
    assert_memory_equal(rt_dataset_train(d)->u8, bytes, 3);
    assert_int_equal(rt_dataset_classes(d), 256);
    rt_dataset_destroy(&d);
    put_npy("x.npy", RT_DTYPE_I32, rt_shape2(3, 1), good_i);
    assert_ok(rt_dataset_open(&d, spec, (rt_data_options){.seed = 0}));
    assert_true(rt_dataset_train(d)->f32[2] == 2);
    rt_dataset_destroy(&d);
    put_npy("y.npy", RT_DTYPE_U8, rt_shape1(1), bytes);
    put_npy("x.npy", RT_DTYPE_F32, rt_shape4(1, 6, 1, 1), good_f); /* features of a network */
    assert_ok(open_npy(""));
    put_npy("x.npy", RT_DTYPE_F32, rt_shape4(1, 3, 2, 1), good_f);
    assert_int_equal(open_npy(""), RT_E_INPUT);
    assert_non_null(strstr(rt_error_text(), "colours stand last"));
}

/* ---- specs ---- */

static void test_specs(void **state) {
    (void)state;
    static const struct {
        const char *spec;
        rt_status want;
        const char *word;
    } cases[] = {
        {"", RT_E_USAGE, "wanted one of mnist"},
        {"mnst:/x", RT_E_USAGE, "did you mean 'mnist'?"},
        {"something-else", RT_E_USAGE, "spiral"},
        {"mnist", RT_E_USAGE, "0 paths"},
        {"mnist:", RT_E_USAGE, "0 paths"},
        {"mnist:/nonexistent", RT_E_INPUT, "/nonexistent"},
        {"mnist:/nonexistent,classes=3", RT_E_USAGE, "classes"},
        {"idx:/nonexistent,clases=3", RT_E_USAGE, "did you mean 'classes'?"},
        {"cifar10:/nonexistent", RT_E_INPUT, "/nonexistent"},
        {"csv:/nonexistent.csv", RT_E_INPUT, "/nonexistent.csv"},
        {"npy:/nonexistent.npy", RT_E_INPUT, "/nonexistent.npy"},
        {"npy:", RT_E_USAGE, "0 paths"},
        {"npy:/a.npy,/b.npy", RT_E_INPUT, "/a.npy"},
        {"npy:/a,/b,/c", RT_E_USAGE, "unexpected"},
        {"images:/nonexistent", RT_E_INPUT, "/nonexistent"},
        {"fashion-mnist:/nonexistent", RT_E_INPUT, "/nonexistent"},
        {"spiral:n=1e3", RT_E_USAGE, "n=1e3"},
        {"spiral:noise=nan", RT_E_USAGE, "noise=nan"},
        {"spiral:arms=-1", RT_E_USAGE, "arms=-1"},
        {"spiral:n=", RT_E_USAGE, "n="},
        {"spiral:seed=-1", RT_E_USAGE, "seed=-1"},
        {"spiral:n=1,,", RT_E_USAGE, "unexpected"},
        {"spiral:a=1,b=1,c=1,d=1,e=1,f=1,g=1,h=1,i=1,j=1,k=1,l=1,m=1,o=1,p=1,q=1,r=1", RT_E_USAGE,
         "too many"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rt_status st = try_open(cases[i].spec);
        if (st != cases[i].want || strstr(rt_error_text(), cases[i].word) == NULL)
            fail_msg("%s: %s: %s", cases[i].spec, rt_status_name(st), rt_error_text());
    }
    const rt_source_info *info = NULL;
    assert_true(rt_source_list(&info) > 0);
    assert_string_equal(info[0].name, "mnist");
}

static void test_arrays(void **state) {
    (void)state;
    const float x[] = {1, 2, 3, 4}, bad_x[] = {1, 2, NAN, 4}, y[] = {1, INFINITY};
    const int32_t label[] = {0, 2};
    rt_part p = {.n = 2, .f32 = x, .label = label};
    rt_dataset *d = NULL;
    assert_ok(rt_dataset_from_arrays(&d, RT_TASK_CLASSIFICATION, rt_shape1(2), 3, &p, NULL));
    assert_ptr_equal(rt_dataset_test(d)->f32, x); /* borrowed; the only part */
    rt_dataset_destroy(&d);
    assert_int_equal(rt_dataset_from_arrays(&d, RT_TASK_CLASSIFICATION, rt_shape1(2), 2, &p, NULL),
                     RT_E_INPUT);
    p.f32 = bad_x;
    assert_int_equal(rt_dataset_from_arrays(&d, RT_TASK_CLASSIFICATION, rt_shape1(2), 3, &p, NULL),
                     RT_E_INPUT);
    p = (rt_part){.n = 2, .f32 = x, .target = y};
    assert_int_equal(rt_dataset_from_arrays(&d, RT_TASK_REGRESSION, rt_shape1(2), 0, &p, NULL), RT_E_INPUT);
    assert_int_equal(rt_dataset_from_arrays(&d, RT_TASK_REGRESSION, rt_shape2(1, 2), 0, &p, NULL),
                     RT_E_USAGE);
    p.f32 = NULL;
    assert_int_equal(rt_dataset_from_arrays(&d, RT_TASK_REGRESSION, rt_shape1(2), 0, &p, NULL), RT_E_USAGE);
    assert_null(d);
}

/* ---- the n-th allocation fails ---- */

typedef struct fault {
    uint64_t first, nth;
    bool hit;
} fault;

static bool fail_nth(void *user, uint64_t call, size_t bytes) {
    (void)bytes;
    fault *f = user;
    if (f->first == 0)
        f->first = call;
    if (call - f->first + 1 != f->nth)
        return true;
    f->hit = true;
    return false;
}

static void test_allocation_faults(void **state) {
    (void)state;
    char specs[6][300];
    static const float x[] = {1, 2, 3, 4, 5, 6};
    static const int32_t y[] = {0, 1, 2};
    size_t packed_n = 0, n = 2 * 3073;
    uint8_t *records = calloc(1, n), *packed = pack_xz(records, n, &packed_n);
    put_npy("x.npy", RT_DTYPE_F32, rt_shape2(3, 2), x);
    put_npy("y.npy", RT_DTYPE_I32, rt_shape1(3), y);
    scratch_write(&s, "one.bin.xz", packed, packed_n);
    scratch_text(&s, "t.csv", "a,b,y\n1,2,red\n3,4,blue\n");
    make_idx_part(&s, "t10k", 3);
    scratch_mkdir(&s, "pictures");
    scratch_mkdir(&s, "pictures/a");
    rt_str file;
    make_png(&file, 9, 5, 8, PNG_COLOR_TYPE_RGB, PNG_INTERLACE_NONE);
    scratch_write(&s, "pictures/a/1.png", file.p, file.len);
    rt_str_deinit(&file);
    make_jpeg(&file, 9, 5, 3, JPEG_PLAIN);
    scratch_write(&s, "pictures/a/2.jpg", file.p, file.len);
    rt_str_deinit(&file);
    snprintf(specs[0], sizeof specs[0], "npy:%s/x.npy,%s/y.npy", s.dir, s.dir);
    snprintf(specs[1], sizeof specs[1], "cifar10:%s/one.bin.xz", s.dir);
    snprintf(specs[2], sizeof specs[2], "csv:%s/t.csv,test=0.5", s.dir);
    snprintf(specs[3], sizeof specs[3], "mnist:%s", s.dir);
    snprintf(specs[4], sizeof specs[4], "images:%s/pictures,size=4x4", s.dir);
    snprintf(specs[5], sizeof specs[5], "spiral:n=10");
    for (size_t i = 0; i < 6; i++) {
        uint64_t before = live_blocks();
        bool finished = false;
        for (uint64_t nth = 1; nth < 500 && !finished; nth++) {
            fault f = {.nth = nth};
            rt_alloc_set_hook(fail_nth, &f);
            rt_status st = try_open(specs[i]);
            rt_alloc_set_hook(NULL, NULL);
            finished = !f.hit;
            if (st != (f.hit ? RT_E_MEMORY : RT_OK))
                fail_msg("%s, allocation %llu fails: %s: %s", specs[i], (unsigned long long)nth,
                         rt_status_name(st), rt_error_text());
            assert_int_equal(live_blocks(), before);
        }
        assert_true(finished);
    }
    free(records);
    free(packed);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_idx_forged),  cmocka_unit_test(test_idx_table),
        cmocka_unit_test(test_idx_torment), cmocka_unit_test(test_idx_bomb),
        cmocka_unit_test(test_sparse),      cmocka_unit_test(test_npy_table),
        cmocka_unit_test(test_specs),       cmocka_unit_test(test_allocation_faults),
        cmocka_unit_test(test_arrays),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
