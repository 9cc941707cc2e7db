/*
 * assess_map.c - where inputs are points of a plane, maps of a model's uncertainty: total, data and knowledge,
 * on a grid over the rows' range and half of it more on every side, so that what the model makes of places it
 * has never seen is most of the picture. Dots are rows of the run's training data, or of the test data where
 * that is not at hand.
 *
 * Colours run from dark violet (0) over blue and green to yellow (the most of this map) in steps that look
 * equal: points of a curve of fourth degree in the OKLab space whose lightness grows linearly, as the map
 * "viridis" has it.
 */
#include "assess/assess_int.h"
#include "base/alloc.h"
#include "base/log.h"
#include "base/rng.h"
#include <float.h>
#include <math.h>

enum { MAP = 200, DOTS = 500 };

static void paint(uint8_t *dst, double v) {
    static const double stops[][3] = {
        {68, 1, 84},    {67, 28, 102},  {65, 47, 117},  {62, 64, 129},  {58, 80, 137},  {52, 97, 143},
        {46, 113, 145}, {39, 130, 144}, {34, 146, 141}, {37, 161, 135}, {49, 176, 126}, {70, 190, 114},
        {96, 203, 100}, {128, 214, 83}, {164, 223, 64}, {205, 228, 44}, {251, 229, 33}};
    const double at = RT_MIN(RT_MAX(v, 0.0), 1.0) * (RT_COUNT(stops) - 1);
    const int i = (int)RT_MIN(at, (double)RT_COUNT(stops) - 2);
    for (int k = 0; k < 3; k++)
        dst[k] = (uint8_t)(stops[i][k] + (stops[i + 1][k] - stops[i][k]) * (at - i) + 0.5);
}

static bool is_plane(const rt_shape *row) {
    return row->rank == 1 && row->d[0] == 2;
}

/* Rows to show: those of training, if they are at hand. */
static const rt_part *shown_rows(const rt_subject *u) {
    const rt_assess_call *s = u->s;
    if (u->source_known) {
        const rt_shape row = rt_dataset_row(s->held_out.data);
        const rt_part *p = rt_dataset_train(s->held_out.data);
        if (is_plane(&row) && p->f32 && p->n > 0)
            return p;
    }
    return s->test;
}

static void extent_of(const rt_part *p, double e[4]) {
    for (int axis = 0; axis < 2; axis++) {
        double lo = (double)p->f32[axis], hi = lo;
        for (int64_t i = 0; i < p->n; i++) {
            lo = RT_MIN(lo, (double)p->f32[2 * i + axis]);
            hi = RT_MAX(hi, (double)p->f32[2 * i + axis]);
        }
        const double margin = hi > lo ? (hi - lo) / 2 : 1;
        e[2 * axis] = lo - margin;
        e[2 * axis + 1] = hi + margin;
    }
}

/* White, let through by half. */
static void dot(uint8_t *picture, const float *x, const double e[4]) {
    const int64_t at = (int64_t)(((double)x[0] - e[0]) / (e[1] - e[0]) * MAP);
    const int64_t down = (int64_t)((e[3] - (double)x[1]) / (e[3] - e[2]) * MAP);
    uint8_t *p = picture + 3 * (RT_MIN(down, (int64_t)MAP - 1) * MAP + RT_MIN(at, (int64_t)MAP - 1));
    for (int k = 0; k < 3; k++)
        p[k] = (uint8_t)((p[k] + 255) / 2);
}

/* The picture's first line is the greatest y. */
static rt_status draw(rt_assessment *a, const char *file, const double *value, const rt_part *shown,
                      const double e[4], double *most) {
    uint8_t *out;
    RT_TRY(rt_picture_add(a, file, MAP, MAP, 3, &out));
    *most = 0;
    for (int64_t i = 0; i < MAP * MAP; i++)
        *most = RT_MAX(*most, value[i]);
    for (int64_t i = 0; i < MAP * MAP; i++)
        paint(out + 3 * i, *most > 0 ? value[i] / *most : 0);
    const int64_t dots = RT_MIN(shown->n, (int64_t)DOTS);
    const rt_rng r = rt_rng_make(0, RT_RNG_DATA, 0, DOTS); /* drawn: files may be sorted by class */
    for (int64_t i = 0; i < dots; i++)
        dot(out, shown->f32 + 2 * (int64_t)rt_rng_below(r, (uint64_t)i, (uint64_t)shown->n), e);
    return RT_OK;
}

static rt_status draw_all(rt_subject *u, const rt_scores *s, const double e[4], rt_assessment *a,
                          rt_json *j) {
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
        RT_TRY(draw(a, maps[i].file, s->value + (int64_t)k * s->n, shown_rows(u), e, &most[n++]));
        rt_json_str(j, maps[i].key, a->picture[a->npictures - 1].file);
    }
    rt_put_array(j, "extent", e, 4, NULL);
    rt_put_array(j, "max", most, n, NULL);
    rt_json_object_end(j);
    return RT_OK;
}

rt_status rt_assess_map(rt_subject *u, rt_assessment *a, rt_json *j) {
    double e[4];
    float *grid = NULL;
    rt_answers y = {0};
    rt_scores s = {0};
    rt_status st;
    if (!is_plane(&u->s->row) || !u->s->test->f32)
        return RT_OK;
    extent_of(shown_rows(u), e);
    for (int i = 0; i < 4; i++)
        if (!(fabs(e[i]) < FLT_MAX))
            return RT_OK; /* features near the largest number there is: nothing can be shown around them */
    RT_TRY_GOTO(rt_calloc(&grid, (size_t)MAP * MAP * 2, sizeof *grid));
    for (int64_t i = 0; i < MAP * MAP; i++) {
        grid[2 * i] = (float)(e[0] + (e[1] - e[0]) * ((double)(i % MAP) + 0.5) / MAP);
        grid[2 * i + 1] = (float)(e[3] - (e[3] - e[2]) * ((double)(i / MAP) + 0.5) / MAP);
    }
    st = rt_subject_answer(u, &y, &(rt_part){.n = MAP * MAP, .f32 = grid}, u->s->row,
                           &(rt_answer_how){.what = "map", .unlabelled = true});
    if (st == RT_E_NUMERIC) { /* no answer far from the data: no reason to withhold the evaluation */
        rt_log(RT_LOG_WARN, "no map: %s", rt_error_text());
        st = RT_OK;
        goto done;
    }
    RT_TRY_GOTO(st);
    RT_TRY_GOTO(rt_scores_of(&s, &y.in));
    RT_TRY_GOTO(draw_all(u, &s, e, a, j));
done:
    rt_answers_free(&y);
    rt_scores_free(&s);
    rt_free(grid);
    return st;
}
