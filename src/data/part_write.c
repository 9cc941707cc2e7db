/*
 * part_write.c - data sets on their way out: as CSV, NumPy arrays, IDX files, folders of PNG files.
 *
 * What is written reads back to the same rows, labels and class numbers. Bytes stay bytes; floats become
 * bytes, where a format has nothing else, by clipping to [0, 1] and rounding. The loader of folders numbers
 * classes by the sorted names of folders, so names that would be sorted differently get their number in
 * front.
 *
 *     images:DIR   one part:   DIR/CLASS/000000.png            idx:DIR   {train,t10k}-images-idx3-ubyte
 *                  two:        DIR/{train,test}/CLASS/...                {train,t10k}-labels-idx1-ubyte
 */
#include "data/data_int.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/stop.h"
#include "io/io.h"

#include <stdio.h>
#include <string.h>

/* Row i of a part as bytes (c, h, w). */
static void row_bytes(uint8_t *dst, const rt_part *p, int64_t i, int64_t elems) {
    if (p->u8) {
        memcpy(dst, p->u8 + i * elems, (size_t)elems);
        return;
    }
    for (int64_t k = 0; k < elems; k++) {
        const float v = p->f32[i * elems + k];
        dst[k] = v <= 0.0f ? 0 : v >= 1.0f ? 255 : (uint8_t)(v * 255.0f + 0.5f);
    }
}

static rt_status check_images(const rt_dataset *d, const char *to) {
    RT_FAIL_IF(d->row.rank != 3 || !rt_dataset_labelled(d) || d->task != RT_TASK_CLASSIFICATION, RT_E_USAGE,
               "%s: that form is for images with classes; a table can be written as FILE.csv or X.npy,Y.npy",
               to);
    return RT_OK;
}

/* ---- NumPy ---- */

static rt_status write_npy(const rt_dataset *d, const rt_part *p, const char *to) {
    rt_spec s = {.whole = NULL};
    float *floats = NULL; /* rows that stay in their file */
    rt_status st = RT_OK;
    rt_str text;
    rt_str_init(&text);
    rt_str_appendf(&text, "%s%s", rt_str_starts(to, "npy:") ? "" : "npy:", to);
    RT_TRY_GOTO(rt_str_status(&text));
    RT_TRY_GOTO(rt_spec_parse(&s, rt_str_text(&text)));
    rt_shape x = d->row, y = rt_shape1(p->n);
    if (s.paths != 2 || s.options > 0)
        RT_FAIL_GOTO(RT_E_USAGE, "%s: wanted two files, X.npy,Y.npy", to);
    if (p->label == NULL && p->target == NULL)
        RT_FAIL_GOTO(RT_E_USAGE, "%s: the rows have neither labels nor targets; FILE.csv can hold them", to);
    if (x.rank >= RT_MAX_RANK)
        RT_FAIL_GOTO(RT_E_UNSUPPORTED, "%s: rows of %d dimensions", to, x.rank);
    memmove(x.d + 1, x.d, (size_t)x.rank * sizeof *x.d);
    x.d[0] = p->n;
    x.rank++;
    for (int i = 0; i < 2; i++)
        RT_TRY_GOTO(rt_file_may_write(s.path[i]));
    if (p->stored)
        RT_TRY_GOTO(rt_part_convert(&floats, p, d->row, d->row));
    RT_TRY_GOTO(rt_npy_write(s.path[0], p->u8 ? RT_DTYPE_U8 : RT_DTYPE_F32, &x,
                             p->u8    ? (const void *)p->u8
                             : floats ? (const void *)floats
                                      : (const void *)p->f32));
    st = rt_npy_write(s.path[1], p->label ? RT_DTYPE_I32 : RT_DTYPE_F32, &y,
                      p->label ? (const void *)p->label : (const void *)p->target);
done:
    rt_free(floats);
    rt_spec_deinit(&s);
    rt_str_deinit(&text);
    return st;
}

/* ---- IDX ---- */

static rt_status idx_open(rt_writer **w, const char *dir, const char *name, const int64_t *dims, int rank) {
    char *path = NULL;
    uint8_t head[4 + 4 * RT_MAX_RANK] = {0, 0, 8, (uint8_t)rank};
    for (int k = 0; k < rank; k++)
        for (int b = 0; b < 4; b++)
            head[4 + 4 * k + b] = (uint8_t)(dims[k] >> (24 - 8 * b));
    RT_TRY(rt_path_join(&path, dir, name));
    rt_status st = rt_writer_open(w, path);
    rt_free(path);
    RT_TRY(st);
    return rt_writer_write(*w, head, (size_t)(4 + 4 * rank));
}

static rt_status write_idx_part(const rt_dataset *d, const rt_part *p, const char *dir, const char *part) {
    const int64_t elems = rt_shape_elems(&d->row), skip = d->row.d[0] == 1 ? 1 : 0;
    const int64_t dims[4] = {p->n, d->row.d[0], d->row.d[1], d->row.d[2]}, flat[3] = {p->n, dims[2], dims[3]};
    char name[64];
    uint8_t *row = NULL;
    rt_writer *w = NULL;
    rt_status st = RT_OK;
    RT_FAIL_IF(p->n > UINT32_MAX, RT_E_USAGE, "idx: %lld rows are too many", (long long)p->n);
    RT_TRY_GOTO(rt_alloc(&row, (size_t)elems));
    snprintf(name, sizeof name, "%s-images-idx3-ubyte", part);
    RT_TRY_GOTO(idx_open(&w, dir, name, skip ? flat : dims, skip ? 3 : 4));
    for (int64_t i = 0; i < p->n; i++) {
        RT_TRY_GOTO(rt_stop_check("writing", dir));
        row_bytes(row, p, i, elems);
        RT_TRY_GOTO(rt_writer_write(w, row, (size_t)elems));
    }
    RT_TRY_GOTO(rt_writer_commit(&w));
    snprintf(name, sizeof name, "%s-labels-idx1-ubyte", part);
    RT_TRY_GOTO(idx_open(&w, dir, name, dims, 1));
    for (int64_t i = 0; i < p->n; i++) {
        const uint8_t label = (uint8_t)p->label[i];
        RT_TRY_GOTO(rt_writer_write(w, &label, 1));
    }
    st = rt_writer_commit(&w);
done:
    rt_writer_abandon(&w);
    rt_free(row);
    return st;
}

static rt_status write_idx(const rt_dataset *d, const rt_part *train, const rt_part *test, const char *to) {
    const char *dir = to + strlen("idx:");
    RT_TRY(check_images(d, to));
    RT_FAIL_IF(d->classes > 256, RT_E_USAGE, "%s: %lld classes, an IDX label has 256", to,
               (long long)d->classes);
    RT_TRY(rt_dir_make(dir));
    if (train)
        RT_TRY(write_idx_part(d, train, dir, "train"));
    return test ? write_idx_part(d, test, dir, "t10k") : RT_OK;
}

/* ---- folders of PNG files ---- */

/* The folder of a class: its name, without what a folder cannot have; numbered when the names are not sorted.
 */
static void folder_name(rt_str *out, const rt_dataset *d, int64_t k, bool numbered) {
    rt_str_clear(out);
    if (numbered)
        rt_str_appendf(out, "%0*lld-", d->classes > 10000 ? 5 : d->classes > 100 ? 4 : 2, (long long)k);
    for (const char *s = d->class_name[k]; *s; s++)
        rt_str_append_char(out, *s == '/' || (unsigned char)*s < ' ' ? '_' : *s);
}

static bool folders_numbered(const rt_dataset *d) {
    bool numbered = false;
    for (int64_t k = 0; k < d->classes; k++) {
        const char *name = d->class_name[k];
        numbered = numbered || name[0] == 0 || name[0] == '.' || strlen(name) > 200 || strchr(name, '/');
        numbered = numbered || (k > 0 && strcmp(d->class_name[k - 1], name) >= 0);
    }
    return numbered;
}

/* The folder of class k in dir, and picture i in it unless i is -1. */
static rt_status picture_path(rt_str *out, const rt_dataset *d, const char *dir, int64_t k, int64_t i) {
    rt_str folder;
    rt_str_init(&folder);
    folder_name(&folder, d, k, folders_numbered(d));
    rt_str_clear(out);
    rt_str_appendf(out, "%s/%s", dir, rt_str_text(&folder));
    if (i >= 0)
        rt_str_appendf(out, "/%06lld.png", (long long)i);
    rt_str_fail(out, folder.st);
    rt_str_deinit(&folder);
    return rt_str_status(out);
}

/* Takes back what was written, so that another try finds an empty folder. What cannot be removed stays. */
static void remove_folders(const rt_dataset *d, const rt_part *p, const char *dir, int64_t rows) {
    rt_str path;
    rt_str_init(&path);
    for (int64_t i = 0; i < rows; i++)
        if (picture_path(&path, d, dir, p->label[i], i) == RT_OK)
            rt_file_discard(rt_str_text(&path));
    for (int64_t k = 0; k < d->classes; k++)
        if (picture_path(&path, d, dir, k, -1) == RT_OK)
            rt_file_discard(rt_str_text(&path));
    rt_str_deinit(&path);
}

static rt_status write_folders(const rt_dataset *d, const rt_part *p, const char *dir) {
    const int64_t c = d->row.d[0], plane = d->row.d[1] * d->row.d[2], elems = c * plane;
    uint8_t *row = NULL, *pixels = NULL;
    int64_t i = 0;
    rt_str path;
    rt_status st = RT_OK;
    rt_str_init(&path);
    RT_TRY_GOTO(rt_alloc(&row, (size_t)elems));
    RT_TRY_GOTO(rt_alloc(&pixels, (size_t)elems));
    for (int64_t k = 0; k < d->classes; k++) {
        RT_TRY_GOTO(picture_path(&path, d, dir, k, -1));
        RT_TRY_GOTO(rt_dir_make(rt_str_text(&path)));
    }
    for (; i < p->n; i++) {
        RT_TRY_GOTO(rt_stop_check("writing", dir));
        row_bytes(row, p, i, elems);
        for (int64_t e = 0; e < elems; e++)
            pixels[e % plane * c + e / plane] = row[e];
        RT_TRY_GOTO(picture_path(&path, d, dir, p->label[i], i));
        RT_TRY_GOTO(rt_image_write_png(rt_str_text(&path), pixels, d->row.d[1], d->row.d[2], (int)c));
    }
done:
    if (st != RT_OK)
        remove_folders(d, p, dir, i);
    rt_free(row);
    rt_free(pixels);
    rt_str_deinit(&path);
    return st;
}

/* The names of folders are the classes: one without a picture would be refused when they are read. */
static rt_status check_every_class(const rt_dataset *d, const rt_part *p, const char *to) {
    uint8_t *seen;
    RT_TRY(rt_calloc(&seen, (size_t)d->classes + 1, 1));
    for (int64_t i = 0; i < p->n; i++)
        seen[p->label[i]] = 1;
    int64_t k = 0;
    while (k < d->classes && seen[k])
        k++;
    rt_free(seen);
    RT_FAIL_IF(k < d->classes, RT_E_USAGE,
               "%s: class %lld (%.60s) has none of the %lld rows, and a folder of pictures cannot be empty; "
               "more rows, or "
               "another form (npy:, csv:)",
               to, (long long)k, d->class_name && d->class_name[k] ? d->class_name[k] : "", (long long)p->n);
    return RT_OK;
}

static rt_status write_two(const rt_dataset *d, const rt_part *train, const rt_part *test, const char *dir) {
    char *first = NULL, *second = NULL;
    rt_status st;
    RT_TRY_GOTO(rt_path_join(&first, dir, "train"));
    RT_TRY_GOTO(rt_path_join(&second, dir, "test"));
    RT_TRY_GOTO(write_folders(d, train, first));
    st = write_folders(d, test, second);
    if (st != RT_OK)
        remove_folders(d, train, first, train->n);
done:
    for (int i = 0; st != RT_OK && first && second && i < 2; i++)
        rt_file_discard(i ? second : first);
    rt_free(first);
    rt_free(second);
    return st;
}

static rt_status write_images(const rt_dataset *d, const rt_part *train, const rt_part *test,
                              const char *to) {
    const char *dir = to + strlen("images:");
    char **names = NULL;
    int64_t n = 0;
    RT_TRY(check_images(d, to));
    RT_FAIL_IF(d->row.d[0] != 1 && d->row.d[0] != 3, RT_E_USAGE, "%s: %lld channels, a picture has 1 or 3",
               to, (long long)d->row.d[0]);
    if (train)
        RT_TRY(check_every_class(d, train, to));
    if (test)
        RT_TRY(check_every_class(d, test, to));
    RT_TRY(rt_dir_make(dir));
    RT_TRY(rt_dir_list(dir, &names, &n));
    rt_names_free(names, n);
    RT_FAIL_IF(n > 0, RT_E_USAGE, "%s is not empty: pictures would be mixed", dir);
    if (!train || !test)
        return write_folders(d, train ? train : test, dir);
    return write_two(d, train, test, dir);
}

/* ---- choosing ---- */

bool rt_dataset_write_takes_two(const char *to) {
    return rt_str_starts(to, "idx:") || rt_str_starts(to, "images:");
}

rt_status rt_dataset_write(const rt_dataset *d, const rt_part *train, const rt_part *test, const char *to) {
    if (rt_str_starts(to, "idx:"))
        return write_idx(d, train, test, to);
    if (rt_str_starts(to, "images:"))
        return write_images(d, train, test, to);
    RT_FAIL_IF(train && test, RT_E_USAGE, "%s takes one part", to);
    const rt_part *p = train ? train : test;
    if (rt_str_ends(to, ".csv"))
        return rt_dataset_write_csv(d, p, rt_str_starts(to, "csv:") ? to + strlen("csv:") : to);
    if (rt_str_ends(to, ".npy"))
        return write_npy(d, p, to);
    RT_FAIL(RT_E_USAGE, "'%s': wanted FILE.csv, X.npy,Y.npy, idx:DIR or images:DIR", to);
}

rt_status rt_subset_copy(rt_part *out, const rt_subset *s, rt_shape row) {
    const rt_part *p = s->part;
    const size_t elems = (size_t)rt_shape_elems(&row), n = (size_t)s->n;
    uint8_t *u8 = NULL;
    float *f32 = NULL, *target = NULL;
    int32_t *label = NULL;
    rt_status st = RT_OK;
    *out = (rt_part){.n = 0};
    if (p->u8)
        RT_TRY_GOTO(rt_calloc(&u8, n * elems + 1, sizeof *u8));
    else
        RT_TRY_GOTO(rt_calloc(&f32, n * elems + 1, sizeof *f32));
    if (p->label)
        RT_TRY_GOTO(rt_calloc(&label, n + 1, sizeof *label));
    if (p->target)
        RT_TRY_GOTO(rt_calloc(&target, n + 1, sizeof *target));
    for (size_t i = 0; i < n; i++) {
        const size_t from = (size_t)rt_subset_row(s, (int64_t)i);
        if (u8)
            memcpy(u8 + i * elems, p->u8 + from * elems, elems);
        else
            rt_part_values(p, (int64_t)elems, (int64_t)from, 0, (int64_t)elems, f32 + i * elems);
        if (label)
            label[i] = p->label[from];
        if (target)
            target[i] = p->target[from];
    }
    *out = (rt_part){.n = s->n, .u8 = u8, .f32 = f32, .label = label, .target = target};
    return RT_OK;
done:
    rt_free(u8);
    rt_free(f32);
    rt_free(label);
    rt_free(target);
    return st;
}
