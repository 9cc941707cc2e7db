/*
 * dataset_idx.c - IDX files, the format of MNIST.
 *
 *     00 00 type rank | rank big-endian u32 dims | data          type 08 = u8, the only one here
 *
 * A directory holds {train,t10k}-images-idx3-ubyte and {train,t10k}-labels-idx1-ubyte, plain, .gz or .xz; one
 * pair is enough. Images are (n, h, w) or (n, c, h, w). The product of the dims must equal the bytes that are
 * there, both counts must agree, and no label may reach the number of classes: known for MNIST and
 * Fashion-MNIST, otherwise the largest label of both parts plus one (so that the test part alone gives the
 * same number), or classes=K.
 */
#include "data/data_int.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/reader.h"
#include "base/size.h"
#include "io/io.h"

#include <stdio.h>
#include <string.h>

static const char *const fashion_names[10] = {"T-shirt/top", "Trouser", "Pullover", "Dress", "Coat",
                                              "Sandal",      "Shirt",   "Sneaker",  "Bag",   "Ankle boot"};

typedef struct idx_array {
    char *path;
    uint8_t *file; /* rt_alloc'ed */
    rt_shape shape;
    const uint8_t *data;
} idx_array;

static void idx_deinit(idx_array *a) {
    rt_free(a->path);
    rt_free(a->file);
    *a = (idx_array){.path = NULL};
}

/* 0, 0, type, rank, and the dimensions, big-endian. */
static rt_status idx_header(rt_reader *r, rt_shape *shape, int64_t *elems, const char *path) {
    const uint8_t *magic = NULL;
    RT_TRY(rt_reader_bytes(r, &magic, 4));
    RT_FAIL_IF(magic[0] != 0 || magic[1] != 0, RT_E_INPUT, "%s: not an IDX file", path);
    RT_FAIL_IF(magic[2] != 8, RT_E_INPUT, "%s: IDX type 0x%02x, wanted 0x08 (unsigned bytes)", path,
               magic[2]);
    RT_FAIL_IF(magic[3] < 1 || magic[3] > RT_MAX_RANK, RT_E_INPUT, "%s: IDX array of %d dimensions", path,
               magic[3]);
    *shape = rt_shape0();
    shape->rank = magic[3];
    for (int k = 0; k < shape->rank; k++) {
        uint32_t dim = 0;
        RT_TRY(rt_reader_u32be(r, &dim));
        RT_FAIL_IF(dim == 0, RT_E_INPUT, "%s: IDX dimension %d is 0", path, k);
        shape->d[k] = dim;
    }
    RT_FAIL_IF(!rt_shape_count(shape, elems), RT_E_INPUT, "%s: the size of the IDX dimensions overflows",
               path);
    return RT_OK;
}

static rt_status idx_promise(const uint8_t *head, size_t n, const char *path, size_t *total) {
    rt_reader r;
    rt_shape shape;
    int64_t elems = 0;
    rt_reader_init(&r, head, n, path);
    RT_TRY(idx_header(&r, &shape, &elems, path));
    if (!rt_size_add(r.at, (size_t)elems, total))
        *total = SIZE_MAX;
    return RT_OK;
}

static rt_status idx_parse(idx_array *a, size_t n, int min_rank, int max_rank) {
    rt_reader r;
    int64_t elems = 0;
    rt_reader_init(&r, a->file, n, a->path);
    RT_TRY(idx_header(&r, &a->shape, &elems, a->path));
    RT_FAIL_IF(a->shape.rank < min_rank || a->shape.rank > max_rank, RT_E_INPUT,
               "%s: IDX array of %d dimensions, wanted %d%s", a->path, a->shape.rank, min_rank,
               max_rank > min_rank ? " or one more" : "");
    RT_FAIL_IF((size_t)elems != rt_reader_left(&r), RT_E_INPUT,
               "%s: %zu bytes of data, the IDX dimensions want %lld", a->path, rt_reader_left(&r),
               (long long)elems);
    a->data = a->file + r.at;
    return RT_OK;
}

static rt_status idx_read(idx_array *a, int min_rank, int max_rank) {
    size_t n = 0;
    RT_TRY(rt_bytes_read_as(a->path, rt_data_file_max, idx_promise, &a->file, &n));
    return idx_parse(a, n, min_rank, max_rank);
}

/* "train", "images", 3 -> DIR/train-images-idx3-ubyte or DIR/train-images.idx3-ubyte; path stays NULL if
 * absent. */
static rt_status idx_find(idx_array *a, const char *dir, const char *part, const char *what, int rank) {
    char stem[64];
    snprintf(stem, sizeof stem, "%s-%s-idx%d-ubyte", part, what, rank);
    RT_TRY(rt_find_packed(&a->path, dir, stem));
    if (a->path == NULL) {
        snprintf(stem, sizeof stem, "%s-%s.idx%d-ubyte", part, what, rank);
        RT_TRY(rt_find_packed(&a->path, dir, stem));
    }
    return RT_OK;
}

typedef struct idx_part {
    idx_array images, labels;
} idx_part;

static rt_status idx_part_find(idx_part *p, const char *dir, const char *part) {
    RT_TRY(idx_find(&p->images, dir, part, "images", 3));
    RT_TRY(idx_find(&p->labels, dir, part, "labels", 1));
    RT_FAIL_IF(p->images.path == NULL && p->labels.path, RT_E_INPUT,
               "%s: there is %s but no images file beside it", dir, p->labels.path);
    return RT_OK;
}

static int64_t idx_label_max(const idx_array *labels) {
    int64_t top = -1;
    for (int64_t i = 0; labels->data && i < labels->shape.d[0]; i++)
        top = RT_MAX(top, (int64_t)labels->data[i]);
    return top;
}

/* Moves a part that was read into the data set. */
static rt_status idx_part_take(rt_dataset *d, rt_part *out, idx_part *p) {
    const rt_shape *s = &p->images.shape;
    RT_FAIL_IF(p->labels.data && s->d[0] != p->labels.shape.d[0], RT_E_INPUT,
               "%s has %lld images, but %s has %lld labels", p->images.path, (long long)s->d[0],
               p->labels.path, (long long)p->labels.shape.d[0]);
    rt_shape row = s->rank == 4 ? rt_shape3(s->d[1], s->d[2], s->d[3]) : rt_shape3(1, s->d[1], s->d[2]);
    RT_FAIL_IF(d->row.rank != 0 && !rt_shape_equal(&row, &d->row), RT_E_INPUT,
               "%s: images of %lld x %lld x %lld, the other part has %lld x %lld x %lld", p->images.path,
               (long long)row.d[0], (long long)row.d[1], (long long)row.d[2], (long long)d->row.d[0],
               (long long)d->row.d[1], (long long)d->row.d[2]);
    d->row = row;
    int32_t *label = NULL;
    if (p->labels.data)
        RT_TRY(rt_calloc(&label, (size_t)s->d[0], sizeof *label));
    rt_dataset_keep(d, label);
    for (int64_t i = 0; label && i < s->d[0]; i++) {
        label[i] = p->labels.data[i];
        RT_FAIL_IF(label[i] >= d->classes, RT_E_INPUT, "%s: label %d of row %lld, wanted 0 to %lld",
                   p->labels.path, label[i], (long long)i, (long long)d->classes - 1);
    }
    rt_dataset_keep(d, p->images.file);
    p->images.file = NULL;
    *out = (rt_part){.n = s->d[0], .u8 = p->images.data, .label = label};
    return RT_OK;
}

/* One file of images, without labels. */
static rt_status idx_load_file(rt_dataset *d, const char *path) {
    idx_part part = {.images.path = rt_strdup(path)};
    if (part.images.path == NULL)
        return RT_E_MEMORY;
    rt_status st = idx_read(&part.images, 3, 4);
    if (st == RT_OK)
        st = idx_part_take(d, &d->test, &part);
    idx_deinit(&part.images);
    return st;
}

/* classes: 0 means find out. */
static rt_status idx_load(rt_dataset *d, const char *dir, int64_t classes, const rt_data_options *o) {
    idx_part part[2] = {{.images.path = NULL}, {.images.path = NULL}};
    rt_part *to[2] = {&d->train, &d->test};
    rt_status st = RT_OK;
    if (rt_file_exists(dir) && !rt_dir_exists(dir))
        return idx_load_file(d, dir);
    RT_TRY_GOTO(idx_part_find(&part[0], dir, "train"));
    RT_TRY_GOTO(idx_part_find(&part[1], dir, "t10k"));
    if (part[0].images.path == NULL && part[1].images.path == NULL)
        RT_FAIL_GOTO(RT_E_INPUT,
                     "%s: no train-images-idx3-ubyte and no t10k-images-idx3-ubyte (plain, .gz or .xz)", dir);
    bool skip_train = o->test_only && part[1].images.path;
    for (int i = 0; i < 2; i++)
        if (part[i].labels.path && !o->unlabelled && (classes == 0 || i == 1 || !skip_train))
            RT_TRY_GOTO(idx_read(&part[i].labels, 1, 1));
    d->ordered = true;
    d->classes = classes;
    if (classes == 0)
        d->classes = RT_MAX(idx_label_max(&part[0].labels), idx_label_max(&part[1].labels)) + 1;
    for (int i = 0; i < 2; i++)
        if (part[i].images.path && (i == 1 || !skip_train)) {
            RT_TRY_GOTO(idx_read(&part[i].images, 3, 4));
            RT_TRY_GOTO(idx_part_take(d, to[i], &part[i]));
        }
done:
    for (int i = 0; i < 2; i++) {
        idx_deinit(&part[i].images);
        idx_deinit(&part[i].labels);
    }
    return st;
}

rt_status rt_load_idx(rt_dataset *d, const rt_spec *s, rt_data_options o) {
    static const char *const keys[] = {"classes"};
    int64_t classes = 0;
    RT_TRY(rt_spec_check(s, 1, 1, keys, 1));
    RT_TRY(rt_spec_get_i64(s, "classes", 1, 256, &classes));
    if (classes == 0 && o.like && o.like->task == RT_TASK_CLASSIFICATION)
        classes = o.like->classes;
    return idx_load(d, s->path[0], classes, &o);
}

rt_status rt_load_mnist(rt_dataset *d, const rt_spec *s, rt_data_options o) {
    RT_TRY(rt_spec_check(s, 1, 1, NULL, 0));
    return idx_load(d, s->path[0], 10, &o);
}

rt_status rt_load_fashion_mnist(rt_dataset *d, const rt_spec *s, rt_data_options o) {
    RT_TRY(rt_spec_check(s, 1, 1, NULL, 0));
    RT_TRY(idx_load(d, s->path[0], 10, &o));
    return rt_dataset_name_classes(d, fashion_names);
}
