/*
 * convert.c - rows in another input shape, and out to CSV.
 *
 * An OOD set rarely has the shape of the training data. Grey becomes colour by repeating the plane; colour
 * becomes grey by the luma weights 0.299 R + 0.587 G + 0.114 B; the size changes bilinearly with pixel
 * centres at half:
 *
 *     source = (i + 0.5) * from / to - 0.5, clamped to the picture
 *
 * Shrinking by whole factors in both directions averages boxes instead, which loses no pixel; other shrinks
 * may alias. Tables have no such freedom: their shapes must be equal.
 */
#include "data/data_int.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/size.h"
#include "base/stop.h"

#include <string.h>

static void resize_boxes(float *dst, int64_t dh, int64_t dw, const float *src, int64_t sh, int64_t sw) {
    int64_t fy = sh / dh, fx = sw / dw;
    for (int64_t y = 0; y < dh; y++)
        for (int64_t x = 0; x < dw; x++) {
            double sum = 0;
            for (int64_t j = 0; j < fy; j++)
                for (int64_t i = 0; i < fx; i++)
                    sum += src[(y * fy + j) * sw + x * fx + i];
            dst[y * dw + x] = (float)(sum / (double)(fy * fx));
        }
}

/* The two neighbours of a destination index and the weight of the second. */
static float resize_place(int64_t i, int64_t from, int64_t to, int64_t *lo, int64_t *hi) {
    double at = ((double)i + 0.5) * (double)from / (double)to - 0.5;
    at = RT_MAX(at, 0.0);
    *lo = RT_MIN((int64_t)at, from - 1);
    *hi = RT_MIN(*lo + 1, from - 1);
    return (float)(at - (double)*lo);
}

void rt_plane_resize(float *dst, int64_t dh, int64_t dw, const float *src, int64_t sh, int64_t sw) {
    if (sh % dh == 0 && sw % dw == 0) {
        resize_boxes(dst, dh, dw, src, sh, sw);
        return;
    }
    for (int64_t y = 0; y < dh; y++) {
        int64_t y0, y1, x0, x1;
        float wy = resize_place(y, sh, dh, &y0, &y1);
        for (int64_t x = 0; x < dw; x++) {
            float wx = resize_place(x, sw, dw, &x0, &x1);
            float top = src[y0 * sw + x0] * (1 - wx) + src[y0 * sw + x1] * wx;
            float bottom = src[y1 * sw + x0] * (1 - wx) + src[y1 * sw + x1] * wx;
            dst[y * dw + x] = top * (1 - wy) + bottom * wy;
        }
    }
}

/* (c, h, w) in `src` to (to.c, to.h, to.w): colours first, so that only what is needed is resized. src is
 * overwritten. */
static void convert_image(float *dst, float *src, const rt_shape *from, const rt_shape *to) {
    int64_t plane = from->d[1] * from->d[2], to_plane = to->d[1] * to->d[2], planes = from->d[0];
    if (from->d[0] == 3 && to->d[0] == 1) {
        for (int64_t i = 0; i < plane; i++)
            src[i] = 0.299f * src[i] + 0.587f * src[plane + i] + 0.114f * src[2 * plane + i];
        planes = 1;
    }
    for (int64_t c = 0; c < planes; c++)
        rt_plane_resize(dst + c * to_plane, to->d[1], to->d[2], src + c * plane, from->d[1], from->d[2]);
    for (int64_t c = planes; c < to->d[0]; c++)
        memcpy(dst + c * to_plane, dst, (size_t)to_plane * sizeof *dst);
}

static rt_status convert_check(const rt_shape *from, const rt_shape *to) {
    bool images = from->rank == 3 && to->rank == 3;
    bool colours = images && (from->d[0] == to->d[0] || (from->d[0] == 3 && to->d[0] == 1) ||
                              (from->d[0] == 1 && to->d[0] == 3));
    bool sizes = true;
    for (int k = 0; k < to->rank; k++)
        sizes = sizes && to->d[k] > 0;
    if (rt_shape_equal(from, to) || (images && colours && sizes))
        return RT_OK;
    rt_str a, b;
    rt_str_init(&a);
    rt_str_init(&b);
    rt_shape_print(from, &a);
    rt_shape_print(to, &b);
    rt_status st =
        rt_error_set(RT_E_INPUT, __FILE__, __LINE__, "rows of shape %s cannot become %s%s", rt_str_text(&a),
                     rt_str_text(&b), images ? "" : " (only images can be converted)");
    rt_str_deinit(&a);
    rt_str_deinit(&b);
    return st;
}

rt_status rt_part_convert(float **out, const rt_part *p, rt_shape from, rt_shape to) {
    *out = NULL;
    int64_t from_elems = 0, to_elems = 0, total = 0;
    size_t bytes = 0;
    RT_TRY(convert_check(&from, &to));
    RT_FAIL_IF(!rt_shape_count(&from, &from_elems) || !rt_shape_count(&to, &to_elems) ||
                   !rt_i64_mul(p->n, to_elems, &total) || !rt_size_mul((size_t)total, sizeof(float), &bytes),
               RT_E_USAGE, "the converted rows are too large");
    float *row = NULL, *all = NULL;
    rt_status st = RT_OK;
    RT_TRY_GOTO(rt_alloc(&all, bytes ? bytes : 1));
    RT_TRY_GOTO(rt_calloc(&row, (size_t)from_elems + 1, sizeof *row));
    bool same = rt_shape_equal(&from, &to);
    for (int64_t i = 0; i < p->n; i++) {
        RT_TRY_GOTO(rt_stop_check("converting", "rows"));
        rt_part_values(p, from_elems, i, 0, from_elems, same ? all + i * to_elems : row);
        if (!same)
            convert_image(all + i * to_elems, row, &from, &to);
    }
    *out = all;
    all = NULL;
done:
    rt_free(all);
    rt_free(row);
    return st;
}

/* ---- CSV ---- */

static void csv_write_row(rt_str *s, const rt_dataset *d, const rt_part *p, int64_t i, int64_t elems) {
    char number[48];
    for (int64_t k = 0; k < elems; k++) {
        float value;
        rt_part_values(p, elems, i, k, 1, &value);
        rt_format_f32(number, value);
        rt_str_append(s, number);
        rt_str_append_char(s, ',');
    }
    if (p->label) {
        rt_str_append_csv(s, d->class_name[p->label[i]], false);
    } else if (p->target) {
        rt_format_f32(number, p->target[i]);
        rt_str_append(s, number);
    } else {
        s->len--; /* no target: the last comma goes */
    }
    rt_str_append_char(s, '\n');
}

rt_status rt_dataset_write_csv(const rt_dataset *d, const rt_part *p, const char *path) {
    int64_t elems = rt_shape_elems(&d->row);
    rt_writer *w = NULL;
    rt_str s;
    rt_status st = RT_OK;
    rt_str_init(&s);
    RT_TRY_GOTO(rt_file_may_write(path));
    RT_TRY_GOTO(rt_writer_open(&w, path));
    for (int64_t k = 0; k < elems; k++)
        rt_str_appendf(&s, "%sx%lld", k ? "," : "", (long long)k);
    rt_str_append(&s, p->label || p->target ? ",y\n" : "\n");
    for (int64_t i = 0; i <= p->n; i++) {
        RT_TRY_GOTO(rt_stop_check("writing", path));
        RT_TRY_GOTO(rt_str_status(&s));
        RT_TRY_GOTO(rt_writer_write(w, s.p, s.len));
        rt_str_clear(&s);
        if (i < p->n)
            csv_write_row(&s, d, p, i, elems);
    }
    st = rt_writer_commit(&w);
done:
    rt_writer_abandon(&w);
    rt_str_deinit(&s);
    return st;
}
