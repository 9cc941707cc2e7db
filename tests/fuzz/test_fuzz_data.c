/*
 * test_fuzz_data.c - damaged pictures, IDX, CIFAR and CSV files, folders of pictures, and SPECs typed badly.
 */
#include "fuzz/containers.h"
#include "unit/data/picture_support.h"

#include <fcntl.h>
#include <math.h>

static const char NAME[] = "mutant";

/* A data set that was opened keeps the promises of data.h. */
static void use_part(const rt_dataset *d, const rt_part *p) {
    const rt_shape row = rt_dataset_row(d);
    const int64_t elems = rt_shape_elems(&row);
    for (int64_t i = 0; p->f32 && i < p->n * elems; i++)
        assert_true(isfinite(p->f32[i]));
    for (int64_t i = 0; p->label && i < p->n; i++)
        assert_true(p->label[i] >= 0 && p->label[i] < rt_dataset_classes(d));
    for (int64_t i = 0; p->target && i < p->n; i++)
        assert_true(isfinite(p->target[i]));
}

static rt_status use_spec(const char *spec) {
    rt_dataset *d = NULL;
    RT_TRY(rt_dataset_open(&d, spec, (rt_data_options){.seed = 1}));
    use_part(d, rt_dataset_train(d));
    use_part(d, rt_dataset_test(d));
    for (int64_t k = 0; k < rt_dataset_classes(d); k++)
        assert_non_null(rt_dataset_class_name(d, k));
    assert_int_equal(strlen(rt_dataset_hash(d)), 64); /* touches every byte */
    rt_dataset_destroy(&d);
    return RT_OK;
}

/* ---- pictures ---- */

static rt_status use_picture(rt_picture *p) {
    uint64_t sum = 0;
    for (int64_t i = 0; i < p->c * p->h * p->w; i++)
        sum += p->data[i];
    assert_true(sum <= 255 * (uint64_t)(p->c * p->h * p->w));
    rt_free(p->data);
    return RT_OK;
}

static void png_open(void) {
    static const struct {
        int depth, colour, interlace;
    } kinds[] = {{8, PNG_COLOR_TYPE_RGB, PNG_INTERLACE_NONE},
                 {8, PNG_COLOR_TYPE_GRAY, PNG_INTERLACE_ADAM7},
                 {16, PNG_COLOR_TYPE_RGBA, PNG_INTERLACE_NONE},
                 {1, PNG_COLOR_TYPE_PALETTE, PNG_INTERLACE_NONE},
                 {8, PNG_COLOR_TYPE_PALETTE, PNG_INTERLACE_ADAM7}};
    for (int64_t i = 0; i < RT_COUNT(kinds); i++) {
        rt_str file;
        make_png(&file, 9, 7, kinds[i].depth, kinds[i].colour, kinds[i].interlace);
        fuzz_add(file.p, file.len, NAME);
        rt_str_deinit(&file);
    }
}

static rt_status png_read(int seed, const uint8_t *data, size_t n) {
    (void)seed;
    rt_picture p;
    RT_TRY(rt_png_decode(&p, data, n, NAME));
    return use_picture(&p);
}

static void jpeg_open(void) {
    static const struct {
        int channels;
        jpeg_style style;
    } kinds[] = {{3, JPEG_PLAIN}, {1, JPEG_PLAIN}, {3, JPEG_PROGRESSIVE}};
    for (int64_t i = 0; i < RT_COUNT(kinds); i++) {
        rt_str file;
        make_jpeg(&file, 17, 12, kinds[i].channels, kinds[i].style);
        fuzz_add(file.p, file.len, NAME);
        rt_str_deinit(&file);
    }
}

static rt_status jpeg_read(int seed, const uint8_t *data, size_t n) {
    (void)seed;
    rt_picture p;
    RT_TRY(rt_jpeg_decode(&p, data, n, NAME));
    return use_picture(&p);
}

/* ---- files behind a SPEC: each seed has a directory of its own, in which only its file ever changes ---- */

static struct { char file[64], spec[128]; /* '%' in the latter: the scratch directory */ } places[FUZZ_SEEDS];

static void add_place(const char *file, const char *spec, const void *data, size_t n) {
    snprintf(places[fuzz.nseeds].file, sizeof places[0].file, "%s", file);
    snprintf(places[fuzz.nseeds].spec, sizeof places[0].spec, "%s", spec);
    fuzz_add(data, n, fuzz.dir.dir);
}

/* The spec with "%" standing for the scratch directory. */
static void expand(char *out, size_t size, const char *spec) {
    size_t at = 0;
    for (; *spec && at + 1 < size; spec++)
        at += (size_t)snprintf(out + at, size - at, "%.*s", *spec == '%' ? 64 : 1,
                               *spec == '%' ? fuzz.dir.dir : spec);
}

static rt_status place_read(int seed, const uint8_t *data, size_t n) {
    char spec[512];
    scratch_write(&fuzz.dir, places[seed].file, data, n);
    expand(spec, sizeof spec, places[seed].spec);
    return use_spec(spec);
}

static void idx_open(void) {
    const uint32_t images[] = {5, 3, 4}, coloured[] = {5, 3, 2, 2}, labels[] = {5};
    for (int k = 0; k < 5; k++) {
        char sub[16], file[64], spec[64];
        size_t image_n = 0, label_n = 0, packed_n = 0;
        uint8_t *image = make_idx(k == 1 ? coloured : images, k == 1 ? 4 : 3, 256, &image_n);
        uint8_t *label = make_idx(labels, 1, 10, &label_n);
        snprintf(sub, sizeof sub, "%d", k);
        scratch_mkdir(&fuzz.dir, sub);
        snprintf(spec, sizeof spec, k == 3 ? "idx:%%/%d,classes=10" : "idx:%%/%d", k);
        const bool of_labels = k == 2 || k == 3, packed = k == 4;
        for (int part = 0; part < 2; part++) {
            const bool seed = part == of_labels;
            snprintf(file, sizeof file, "%d/train-%s-ubyte%s", k, part ? "labels-idx1" : "images-idx3",
                     packed && seed ? ".gz" : "");
            uint8_t *p = part ? label : image;
            const size_t n = part ? label_n : image_n;
            uint8_t *gz = packed ? pack_gzip(p, n, &packed_n) : NULL;
            if (!seed)
                scratch_write(&fuzz.dir, file, p, n);
            else
                add_place(file, spec, packed ? gz : p, packed ? packed_n : n);
            free(gz);
        }
        free(image);
        free(label);
    }
}

static void place_mutate(fuzz_bytes *b, int seed, const fuzz_bytes *other, fuzz_dice *d) {
    const char *file = places[seed].file;
    if (rt_str_ends(file, ".gz") || rt_str_ends(file, ".xz"))
        fuzz_mutate_packed(b, other, d, false);
    else
        fuzz_mutate(b, other, d, fuzz.family->text);
}

static void cifar_open(void) {
    enum { RECORD10 = 3073, RECORD100 = 3074 };
    uint8_t records[2 * RECORD100];
    for (size_t i = 0; i < sizeof records; i++)
        records[i] = (uint8_t)(i % 9);
    size_t n = 0;
    add_place("one.bin", "cifar10:%/one.bin", records, 2 * RECORD10);
    add_place("two.bin", "cifar100:%/two.bin", records, 2 * RECORD100);
    uint8_t *p = fuzz_pack_xz(records, 2 * RECORD10, &n);
    add_place("three.bin.xz", "cifar10:%/three.bin.xz", p, n);
    free(p);
    scratch_mkdir(&fuzz.dir, "dir");
    scratch_write(&fuzz.dir, "dir/test_batch.bin", records, RECORD10);
    static const char names[] = "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\n";
    add_place("dir/batches.meta.txt", "cifar10:%/dir", names, sizeof names - 1);
}

static void csv_open(void) {
    static const char *const tables[][2] = {
        {"csv:%/0.csv,test=0.25", "a,b,y\n1,2,0.5\n-3.25,4e-3,7\n0,0,1e5\n5,6,-7\n"},
        {"csv:%/1.csv",
         "\xef\xbb\xbfx1,x2,class\r\n1,2,red\r\n3,4,\"bl\"\"ue\"\r\n5,6,\"gr,een\"\r\n7,8,red\r\n"},
        {"csv:%/2.csv,header=no,task=classification", "1, 2,3\n4,5 ,6\n7,8,6\n"},
        {"csv:%/3.csv,target=none", "a,b\n1,2\n3,4"},
        {"csv:%/4.csv,target=b,task=regression,seed=4,test=0.5", "\"a\",\"b\",\"c\"\n1,2,3\n4,5,6\n7,8,9\n"},
        {"csv:%/5.csv,test=0.4", "id;n;\"c \"\"d\"\"\";when;kind\n0;1.5;red;2024-02-29;a\n1;;red;2024-03-01 "
                                 "06:00;b\n2;NA;\"re\nd\";?;a\n"
                                 "3;4;blue;1.3.2024;b\n4;5;red;;b\n"},
        {"csv:%/6.csv,drop=id,category=zip,sep=tab,decimal=comma,test=0",
         "id\tzip\tx\ty\nq\t8000\t1,5\t2\nr\t8001\t2,5\t3,25\ns\t8000\t-1e2\t4\n"},
    };
    for (int64_t i = 0; i < RT_COUNT(tables); i++) {
        char file[16];
        snprintf(file, sizeof file, "%d.csv", (int)i);
        add_place(file, tables[i][0], tables[i][1], strlen(tables[i][1]));
    }
    static const char table[] = "a,y\n1,2\n3,4\n5,6\n7,8\n9,10\n", splits[] = "0 2\n1 3 4\r\n4\n";
    scratch_text(&fuzz.dir, "t.csv", table);
    for (int k = 0; k < 2; k++) {
        char file[32], spec[96];
        snprintf(file, sizeof file, "splits%d.txt", k);
        snprintf(spec, sizeof spec, "csv:%%/t.csv,splits=%%/%s,split=%d", file, k);
        add_place(file, spec, splits, sizeof splits - 1);
    }
}

static void npy_pair_open(void) {
    static const float x[12] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
    static const uint8_t pixels[24] = {1, 2, 3};
    static const int32_t label[3] = {0, 2, 1};
    const rt_shape rows = rt_shape2(3, 4), images = rt_shape4(3, 2, 2, 2), n = rt_shape1(3);
    for (int k = 0; k < 3; k++) {
        char file[32], spec[64];
        assert_ok(rt_npy_write(scratch_path(&fuzz.dir, "x.npy"), RT_DTYPE_F32, &rows, x));
        assert_ok(rt_npy_write(scratch_path(&fuzz.dir, "i.npy"), RT_DTYPE_U8, &images, pixels));
        assert_ok(rt_npy_write(scratch_path(&fuzz.dir, "y.npy"), RT_DTYPE_I32, &n, label));
        snprintf(file, sizeof file, "seed%d.npy", k);
        snprintf(spec, sizeof spec, k == 2 ? "npy:%%/x.npy,%%/%s" : "npy:%%/%s,%%/y.npy,test=0.4", file);
        static const char *const from[] = {"x.npy", "i.npy", "y.npy"};
        uint8_t *data = NULL;
        size_t size = 0;
        assert_ok(rt_file_read(scratch_path(&fuzz.dir, from[k]), 4096, &data, &size));
        add_place(file, spec, data, size);
        rt_free(data);
    }
}

static void images_open(void) {
    for (int k = 0; k < 3; k++) {
        char name[32], spec[64];
        rt_str file;
        snprintf(name, sizeof name, "%d", k);
        scratch_mkdir(&fuzz.dir, name);
        for (int c = 0; c < 2; c++) {
            snprintf(name, sizeof name, "%d/%c", k, 'a' + c);
            scratch_mkdir(&fuzz.dir, name);
            make_png(&file, 5, 4, 8, PNG_COLOR_TYPE_GRAY, PNG_INTERLACE_NONE);
            snprintf(name, sizeof name, "%d/%c/1.png", k, 'a' + c);
            scratch_write(&fuzz.dir, name, file.p, file.len);
            rt_str_deinit(&file);
        }
        snprintf(spec, sizeof spec, k == 1 ? "images:%%/%d" : "images:%%/%d,size=6x3,test=0.3", k);
        snprintf(name, sizeof name, "%d/a/2.%s", k, k == 2 ? "jpg" : "png");
        if (k == 2)
            make_jpeg(&file, 5, 4, 3, JPEG_PLAIN);
        else
            make_png(&file, 5, 4, 8, PNG_COLOR_TYPE_RGB, PNG_INTERLACE_NONE);
        add_place(name, spec, file.p, file.len);
        rt_str_deinit(&file);
    }
}

static void images_mutate(fuzz_bytes *b, int seed, const fuzz_bytes *other, fuzz_dice *d) {
    if (rt_str_ends(places[seed].file, ".png"))
        fuzz_mutate_png(b, seed, other, d);
    else
        fuzz_mutate(b, other, d, false);
}

/* ---- SPECs ---- */

static int home =
    -1; /* where the program was started: SPECs name files in the scratch directory without its name */

static void spec_close(void) {
    assert_int_equal(fchdir(home), 0);
    close(home);
}

static void spec_open(void) {
    home = open(".", O_RDONLY | O_DIRECTORY);
    assert_true(home >= 0);
    assert_int_equal(chdir(fuzz.dir.dir), 0);
    images_open();
    npy_pair_open();
    while (fuzz.nseeds > 0)
        fuzz_free(&fuzz.seeds[--fuzz.nseeds]);
    make_idx_part(&fuzz.dir, "t10k", 3);
    scratch_text(&fuzz.dir, "t.csv", "a,b,y\n1,2,red\n3,4,blue\n5,6,red\n");
    scratch_text(&fuzz.dir, "n.csv", "a,b\n1,2\n3,4\n5,6\n");
    scratch_text(&fuzz.dir, "s.txt", "0\n1 2\n");
    static const char *const specs[] = {
        "csv:t.csv,target=y,task=classification,test=0.5,seed=3",
        "csv:t.csv,splits=s.txt,split=1",
        "csv:t.csv,use=a+b,category=b,sep=comma,decimal=point",
        "csv:t.csv,drop=a,target=none",
        "csv:n.csv,target=a,task=regression,header=yes",
        "npy:x.npy,y.npy,task=classification,classes=3,test=0.2,seed=1",
        "npy:i.npy,y.npy",
        "idx:.,classes=10",
        "mnist:./",
        "images:0,size=6x3,test=0.3,seed=2",
        "spiral:n=10,noise=0.1,arms=3,seed=1",
        "ring:n=30,radius=8,sigma=0.1,seed=7",
        "spiral",
    };
    for (int64_t i = 0; i < RT_COUNT(specs); i++)
        fuzz_add_text(specs[i], NULL);
    for (int k = 0; k < 3; k++) { /* the files that images_open leaves to its rounds */
        rt_str file;
        char name[32];
        make_png(&file, 5, 4, 8, PNG_COLOR_TYPE_RGB, PNG_INTERLACE_NONE);
        snprintf(name, sizeof name, "%d/b/2.png", k);
        scratch_write(&fuzz.dir, name, file.p, file.len);
        rt_str_deinit(&file);
    }
}

static rt_status spec_read(int seed, const uint8_t *data, size_t n) {
    (void)seed;
    (void)n;
    return use_spec((const char *)data);
}

/* ---- augmentation ---- */

static void augment_open(void) {
    fuzz_add_text("flip,crop:4,reflect,shift:2,rotate:15", NULL);
    fuzz_add_text("none", NULL);
    fuzz_add_text("crop:2,rotate:0.5", NULL);
}

static rt_status augment_read(int seed, const uint8_t *data, size_t n) {
    (void)seed;
    (void)n;
    rt_augment a;
    return rt_augment_parse(&a, (const char *)data);
}

/* ---- what a model says about its columns ---- */

static char encoded[600]; /* SPEC */

static void encoder_open(void) {
    rt_dataset *d = NULL;
    scratch_text(&fuzz.dir, "e.csv",
                 "n,c,when,h,y\n1,red,2024-02-29,q,1\n2,blue,2024-03-01,r,2\n,red,,q,3\n4,,2024-01-01,,4\n");
    snprintf(encoded, sizeof encoded, "csv:%s,test=0", scratch_path(&fuzz.dir, "e.csv"));
    assert_ok(rt_dataset_open(&d, encoded, (rt_data_options){.seed = 0}));
    fuzz_add_text(rt_dataset_table(d), NULL);
    rt_dataset_destroy(&d);
    fuzz_add_text(
        "{\"target\":\"y\",\"columns\":[{\"name\":\"c\",\"as\":\"one-hot\",\"gaps\":true,\"other\":true,"
        "\"categories\":[\"blue\",\"red\"]},{\"name\":\"n\",\"as\":\"number\",\"gaps\":false,"
        "\"median\":0.5},{\"name\":\"h\",\"as\":\"hashed\",\"gaps\":true},{\"name\":\"when\",\"as\":"
        "\"date\",\"gaps\":false,\"clock\":true,\"median\":86400},{\"name\":\"x\",\"as\":\"nothing\","
        "\"why\":\"dropped\"}]}",
        NULL);
}

static rt_status encoder_read(int seed, const uint8_t *data, size_t n) {
    (void)seed;
    (void)n;
    rt_dataset *d = NULL;
    const rt_data_like like = {.task = RT_TASK_REGRESSION, .table = (const char *)data};
    const rt_status st = rt_dataset_open(&d, encoded, (rt_data_options){.like = &like});
    rt_dataset_destroy(&d);
    return st;
}

static const fuzz_family families[] = {
    {.name = "png", .rounds = 3000, .open = png_open, .mutate = fuzz_mutate_png, .read = png_read},
    {.name = "jpeg", .rounds = 3000, .open = jpeg_open, .read = jpeg_read},
    {.name = "idx", .rounds = 600, .open = idx_open, .mutate = place_mutate, .read = place_read},
    {.name = "cifar", .rounds = 400, .open = cifar_open, .mutate = place_mutate, .read = place_read},
    {.name = "csv", .rounds = 2000, .text = true, .open = csv_open, .read = place_read},
    {.name = "encoder", .rounds = 3000, .text = true, .open = encoder_open, .read = encoder_read},
    {.name = "npy_pair", .rounds = 600, .open = npy_pair_open, .mutate = fuzz_mutate_npy, .read = place_read},
    {.name = "images", .rounds = 400, .open = images_open, .mutate = images_mutate, .read = place_read},
    {.name = "spec",
     .rounds = 2000,
     .text = true,
     .user = true,
     .mib = 4,
     .open = spec_open,
     .close = spec_close,
     .read = spec_read},
    {.name = "augment", .rounds = 2000, .text = true, .open = augment_open, .read = augment_read},
};

int main(void) {
    return fuzz_main(families, RT_COUNT(families), "fuzz_data");
}
