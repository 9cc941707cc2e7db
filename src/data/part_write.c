/*
 * part_write.c - data sets on their way out: as CSV, NumPy arrays, IDX files, folders of PNG files (picture_write.c).
 *
 * What is written reads back to the same rows, labels and class numbers. Bytes stay bytes; floats become bytes, where
 * a format has nothing else, by clipping to [0, 1] and rounding.
 *
 *     idx:DIR   {train,t10k}-images-idx3-ubyte, {train,t10k}-labels-idx1-ubyte
 */
#include "data/data_int.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/stop.h"
#include "io/io.h"

#include <stdio.h>
#include <string.h>

void rt_part_row_bytes(uint8_t *dst, const rt_part *p, int64_t i, int64_t elems) {
    if (p->u8) {
        memcpy(dst, p->u8 + i * elems, (size_t)elems);
        return;
    }
    for (int64_t k = 0; k < elems; k++) {
        const float v = p->f32[i * elems + k];
        dst[k] = v <= 0.0f ? 0 : v >= 1.0f ? 255 : (uint8_t)(v * 255.0f + 0.5f);
    }
}

rt_status rt_write_check_images(const rt_dataset *d, const char *to) {
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
        rt_part_row_bytes(row, p, i, elems);
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
    RT_TRY(rt_write_check_images(d, to));
    RT_FAIL_IF(d->classes > 256, RT_E_USAGE, "%s: %lld classes, an IDX label has 256", to,
               (long long)d->classes);
    RT_TRY(rt_dir_make(dir));
    if (train)
        RT_TRY(write_idx_part(d, train, dir, "train"));
    return test ? write_idx_part(d, test, dir, "t10k") : RT_OK;
}

/* ---- choosing ---- */

bool rt_dataset_write_takes_two(const char *to) {
    return rt_str_starts(to, "idx:") || rt_str_starts(to, "images:");
}

rt_status rt_dataset_write(const rt_dataset *d, const rt_part *train, const rt_part *test, const char *to) {
    if (rt_str_starts(to, "idx:"))
        return write_idx(d, train, test, to);
    if (rt_str_starts(to, "images:"))
        return rt_picture_folders_write(d, train, test, to);
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
