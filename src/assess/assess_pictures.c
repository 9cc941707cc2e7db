/*
 * assess_pictures.c - the inputs a model is least certain of, as one sheet; and, where inputs are points of a
 * plane, maps of its uncertainty.
 *
 * Sheet: 24 images, 8 in a row, ordered by entropy of the prediction, each magnified to at least 56 pixels,
 * grey lines between them.
 * Maps: total, data and knowledge uncertainty of a grid over the test points and a quarter of their range
 * around them, from dark (0) to bright (the most of this map).
 */
#include "assess/assess_int.h"
#include "base/alloc.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { SHEET = 24, COLUMNS = 8, CELL_MIN = 56, GAP = 2, MAP = 200 };

static rt_status add_picture(rt_assessment *a, const char *file, int64_t h, int64_t w, int channels,
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
    RT_TRY(add_picture(a, "least-certain.png", sheet_h, sheet_w, (int)c, &out));
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
    const double v = s->value[(int64_t)i * s->n + row];
    rt_json_f64(j, name, strcmp(name, "confidence") == 0 ? 1 - v : v);
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

/* ---- maps ---- */

/* Black, blue, red, yellow, white: brightness grows all the way. */
static void paint(uint8_t *dst, double v) {
    static const double stops[][3] = {{0, 0, 0}, {40, 20, 120}, {190, 45, 80}, {250, 170, 40}, {255, 255, 225}};
    const double at = RT_MIN(RT_MAX(v, 0.0), 1.0) * (RT_COUNT(stops) - 1);
    const int i = (int)RT_MIN(at, (double)RT_COUNT(stops) - 2);
    for (int k = 0; k < 3; k++)
        dst[k] = (uint8_t)(stops[i][k] + (stops[i + 1][k] - stops[i][k]) * (at - i) + 0.5);
}

static void extent_of(const rt_part *p, double e[4]) {
    for (int axis = 0; axis < 2; axis++) {
        double lo = p->f32[axis], hi = lo;
        for (int64_t i = 0; i < p->n; i++) {
            lo = RT_MIN(lo, (double)p->f32[2 * i + axis]);
            hi = RT_MAX(hi, (double)p->f32[2 * i + axis]);
        }
        const double margin = hi > lo ? (hi - lo) / 4 : 1;
        e[2 * axis] = lo - margin;
        e[2 * axis + 1] = hi + margin;
    }
}

/* The picture's first line is the greatest y. */
static rt_status draw_map(rt_assessment *a, const char *file, const double *value, double *most) {
    uint8_t *out;
    RT_TRY(add_picture(a, file, MAP, MAP, 3, &out));
    *most = 0;
    for (int64_t i = 0; i < MAP * MAP; i++)
        *most = RT_MAX(*most, value[i]);
    for (int64_t i = 0; i < MAP * MAP; i++)
        paint(out + 3 * i, *most > 0 ? value[i] / *most : 0);
    return RT_OK;
}

static rt_status draw_maps(rt_subject *u, const rt_scores *s, const double *e, rt_assessment *a, rt_json *j) {
    static const struct {
        const char *key, *file, *measure, *regression;
    } maps[] = {{"total", "map-total.png", "entropy", "total_variance"},
                {"data", "map-data.png", "expected_entropy", "data_variance"},
                {"knowledge", "map-knowledge.png", "mutual_information", "knowledge_variance"}};
    double most[RT_COUNT(maps)];
    int n = 0;
    rt_json_object_begin(j, "map");
    for (int i = 0; i < RT_COUNT(maps); i++) {
        const int k = rt_measure_find(u->regression ? maps[i].regression : maps[i].measure, u->regression);
        if (k < 0 || s->reason[k])
            continue;
        RT_TRY(draw_map(a, maps[i].file, s->value + (int64_t)k * s->n, &most[n++]));
        rt_json_str(j, maps[i].key, a->picture[a->npictures - 1].file);
    }
    rt_put_array(j, "extent", e, 4, NULL);
    rt_put_array(j, "max", most, n, NULL);
    rt_json_object_end(j);
    return RT_OK;
}

static rt_status map_plane(rt_subject *u, rt_assessment *a, rt_json *j) {
    const rt_part *p = u->s->test;
    double e[4];
    float *grid = NULL;
    rt_answers y = {0};
    rt_scores s = {0};
    rt_status st;
    if (u->s->row.rank != 1 || u->s->row.d[0] != 2 || !p->f32)
        return RT_OK;
    extent_of(p, e);
    RT_TRY_GOTO(rt_calloc(&grid, (size_t)MAP * MAP * 2, sizeof *grid));
    for (int64_t i = 0; i < MAP * MAP; i++) {
        grid[2 * i] = (float)(e[0] + (e[1] - e[0]) * ((double)(i % MAP) + 0.5) / MAP);
        grid[2 * i + 1] = (float)(e[3] - (e[3] - e[2]) * ((double)(i / MAP) + 0.5) / MAP);
    }
    RT_TRY_GOTO(rt_subject_answer(u, &y, &(rt_part){.n = MAP * MAP, .f32 = grid}, u->s->row,
                                  &(rt_answer_how){.what = "map", .unlabelled = true}));
    RT_TRY_GOTO(rt_scores_of(&s, &y.in));
    RT_TRY_GOTO(draw_maps(u, &s, e, a, j));
done:
    rt_answers_free(&y);
    rt_scores_free(&s);
    rt_free(grid);
    return st;
}

rt_status rt_assess_pictures(rt_subject *u, const rt_answers *y, rt_assessment *a, rt_json *j) {
    rt_json_object_begin(j, NULL);
    RT_TRY(least_certain(u, y, a, j));
    RT_TRY(map_plane(u, a, j));
    rt_json_object_end(j);
    return rt_str_status(j->out);
}
