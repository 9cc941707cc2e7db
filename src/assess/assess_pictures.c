/*
 * assess_pictures.c - the inputs a model is least certain of, as one sheet: 24 images, 8 in a row, ordered by
 * entropy of the prediction, each magnified to at least 56 pixels, grey lines between them.
 */
#include "assess/assess_int.h"
#include "base/alloc.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { SHEET = 24, COLUMNS = 8, CELL_MIN = 56, GAP = 2 };

rt_status rt_picture_add(rt_assessment *a, const char *file, int64_t h, int64_t w, int channels,
                         uint8_t **pixels) {
    RT_ASSERT(a->npictures < RT_PICTURES_MAX);
    rt_picture *p = &a->picture[a->npictures];
    RT_TRY(rt_calloc(&p->pixels, (size_t)(h * w * channels), 1));
    snprintf(p->file, sizeof p->file, "pictures/%s", file);
    p->h = h;
    p->w = w;
    p->channels = channels;
    a->npictures++;
    *pixels = p->pixels;
    return RT_OK;
}

rt_status rt_pictures_write(const rt_assessment *a, const char *dir) {
    char *path = NULL;
    if (a->npictures == 0)
        return RT_OK;
    RT_TRY(rt_path_join(&path, dir, "pictures"));
    rt_status st = rt_dir_make(path);
    rt_free(path);
    for (int i = 0; st == RT_OK && i < a->npictures; i++) {
        const rt_picture *p = &a->picture[i];
        st = rt_path_join(&path, dir, p->file);
        if (st == RT_OK)
            st = rt_image_write_png(path, p->pixels, p->h, p->w, p->channels);
        rt_free(path);
    }
    return st;
}

/* ---- the least certain ---- */

/* Rows of the greatest values, greatest first; of equal ones the first row. */
static int64_t pick(const double *value, int64_t n, int64_t row[SHEET]) {
    int64_t count = 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t at = count;
        while (at > 0 && value[row[at - 1]] < value[i])
            at--;
        if (at >= SHEET)
            continue;
        count = RT_MIN(count + 1, (int64_t)SHEET);
        for (int64_t k = count - 1; k > at; k--)
            row[k] = row[k - 1];
        row[at] = i;
    }
    return count;
}

static uint8_t pixel(const rt_part *p, int64_t at) {
    if (p->u8)
        return p->u8[at];
    const float v = p->f32[at];
    return (uint8_t)(RT_MIN(RT_MAX(v, 0.0f), 1.0f) * 255 + 0.5f);
}

static rt_status draw_sheet(const rt_subject *u, rt_assessment *a, const int64_t *row, int64_t n) {
    const rt_shape *s = &u->s->row;
    const int64_t c = s->d[0], h = s->d[1], w = s->d[2];
    const int64_t scale = RT_MAX((CELL_MIN + RT_MAX(h, w) - 1) / RT_MAX(h, w), 1);
    const int64_t ch = h * scale + GAP, cw = w * scale + GAP;
    const int64_t sheet_h = ((n + COLUMNS - 1) / COLUMNS) * ch + GAP, sheet_w = COLUMNS * cw + GAP;
    uint8_t *out;
    RT_TRY(rt_picture_add(a, "least-certain.png", sheet_h, sheet_w, (int)c, &out));
    memset(out, 128, (size_t)(sheet_h * sheet_w * c));
    for (int64_t i = 0; i < n; i++) {
        const int64_t top = GAP + i / COLUMNS * ch, left = GAP + i % COLUMNS * cw;
        for (int64_t y = 0; y < h * scale; y++)
            for (int64_t x = 0; x < w * scale; x++)
                for (int64_t k = 0; k < c; k++)
                    out[((top + y) * sheet_w + left + x) * c + k] =
                        pixel(u->s->test, ((row[i] * c + k) * h + y / scale) * w + x / scale);
    }
    return RT_OK;
}

static void put_measure(rt_json *j, const rt_scores *s, const char *name, int64_t row) {
    const int i = rt_measure_find(name, false);
    if (i < 0 || s->reason[i])
        return;
    rt_json_f64(j, name, rt_measure_shown(i, s->value[(int64_t)i * s->n + row]));
}

static rt_status least_certain(const rt_subject *u, const rt_answers *y, rt_assessment *a, rt_json *j) {
    const int entropy = rt_measure_find("entropy", false);
    const rt_shape *s = &u->s->row;
    int64_t row[SHEET];
    int32_t *class = NULL;
    rt_status st;
    if (u->regression || entropy < 0 || s->rank != 3 || (s->d[0] != 1 && s->d[0] != 3))
        return RT_OK;
    const int64_t n = pick(u->scores.value + (int64_t)entropy * u->scores.n, u->scores.n, row);
    RT_TRY_GOTO(draw_sheet(u, a, row, n));
    RT_TRY_GOTO(rt_calloc(&class, (size_t)y->in.n + 1, sizeof *class));
    RT_TRY_GOTO(rt_eval_classes(&y->in, class));
    rt_json_object_begin(j, "least_certain");
    rt_json_str(j, "file", a->picture[a->npictures - 1].file);
    rt_json_i64(j, "columns", COLUMNS);
    rt_json_array_begin(j, "items");
    for (int64_t i = 0; i < n; i++) {
        rt_json_object_begin(j, NULL);
        rt_json_i64(j, "row", row[i]);
        rt_json_i64(j, "label", u->s->test->label[row[i]]);
        rt_json_i64(j, "class", class[row[i]]);
        put_measure(j, &u->scores, "entropy", row[i]);
        put_measure(j, &u->scores, "mutual_information", row[i]);
        put_measure(j, &u->scores, "confidence", row[i]);
        rt_json_object_end(j);
    }
    rt_json_array_end(j);
    rt_json_object_end(j);
done:
    rt_free(class);
    return st;
}

rt_status rt_assess_pictures(rt_subject *u, const rt_answers *y, rt_assessment *a, rt_json *j) {
    rt_json_object_begin(j, NULL);
    RT_TRY(least_certain(u, y, a, j));
    RT_TRY(rt_assess_map(u, a, j));
    rt_json_object_end(j);
    return rt_str_status(j->out);
}
