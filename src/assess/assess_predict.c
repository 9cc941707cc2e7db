/*
 * assess_predict.c - answers of a run to a set of rows.
 *
 * Rows reach the model in chunks: as they are, converted to its input shape, or distorted by the pool. So the
 * memory of a set is that of its answers and one chunk, however many sets there are. The predictor is
 * compiled once per run.
 *
 *     rows    [ chunk 0 | chunk 1 | ... ]      distort: jobs of 32 rows, scratch per worker
 *                  |                           convert: rt_part_convert
 *              predictor (all members) -> y[first ...]
 *
 * An answer that is not finite ends the assessment, with run, set, member and row.
 */
#include "assess/assess_int.h"
#include "base/alloc.h"
#include "base/size.h"
#include "base/timer.h"
#include <math.h>
#include <string.h>

enum { DISTORT_ROWS = 32, CHUNK_BYTES = 32 << 20, DEFAULT_BATCH = 128 };

rt_status rt_subject_open(rt_subject *u, rt_assess_call *s, const char *name) {
    *u = (rt_subject){.s = s, .name = name, .temperature = NAN};
    RT_TRY(rt_model_load(&u->model, name));
    rt_status st = rt_dataset_encode_as(s->data, rt_model_like(u->model).table);
    for (int i = 0; st == RT_OK && i < s->nforeign; i++)
        st = rt_dataset_encode_as(s->foreign[i].data, rt_model_like(u->model).table);
    if (st == RT_OK) {
        s->row = rt_dataset_row(s->data);
        st = rt_model_check_data(u->model, s->data);
    }
    if (st != RT_OK)
        return rt_error_prefix(st, "%s", name);
    RT_TRY(rt_subject_check_unseen(u));
    u->how = s->o->raw ? rt_model_reading(u->model) : rt_model_answering(u->model);
    u->regression = u->how.kind == RT_OUTPUT_GAUSSIAN;
    u->m = u->how.m;
    u->k = u->how.k;
    u->batch = RT_MIN(s->o->batch > 0 ? s->o->batch : (int64_t)DEFAULT_BATCH, s->test->n);
    return rt_model_predictor(u->model, &u->predictor, u->batch, s->pool);
}

void rt_subject_close(rt_subject *u) {
    rt_predictor_destroy(&u->predictor);
    rt_model_destroy(&u->model);
    rt_scores_free(&u->scores);
    for (int i = 0; i < RT_ASSESS_OOD_MAX; i++)
        rt_scores_free(&u->foreign[i]);
}

/* ---- distorting a chunk ---- */

typedef struct distort_call {
    const rt_distortion *d;
    const rt_part *src;
    int64_t first, n, elems;
    uint8_t *u8; /* one of the two */
    float *f32;
    uint8_t *scratch;
    size_t scratch_bytes; /* per worker */
    rt_error *error;      /* per worker */
} distort_call;

static void distort_rows(void *ctx, int64_t job, int worker) {
    distort_call *c = ctx;
    const int64_t end = RT_MIN((job + 1) * DISTORT_ROWS, c->n);
    for (int64_t r = job * DISTORT_ROWS; r < end && c->error[worker].code == RT_OK; r++) {
        const int64_t row = c->first + r;
        rt_status st =
            rt_distortion_run(c->d, row, c->scratch + (size_t)worker * c->scratch_bytes,
                              c->src->u8 ? c->src->u8 + row * c->elems : NULL,
                              c->src->f32 ? c->src->f32 + row * c->elems : NULL,
                              c->u8 ? c->u8 + r * c->elems : NULL, c->f32 ? c->f32 + r * c->elems : NULL);
        if (st != RT_OK)
            rt_error_save(&c->error[worker]);
    }
}

static rt_status distort_chunk(distort_call *c, rt_pool *pool, int64_t first, int64_t n) {
    c->first = first;
    c->n = n;
    rt_pool_run(pool, distort_rows, c, (n + DISTORT_ROWS - 1) / DISTORT_ROWS);
    for (int w = 0; w < rt_pool_workers(pool); w++) {
        if (c->error[w].code != RT_OK) {
            rt_error_restore(&c->error[w]);
            return c->error[w].code;
        }
    }
    return RT_OK;
}

static rt_status distort_open(distort_call *c, rt_pool *pool, int64_t rows, bool floats) {
    const size_t workers = (size_t)rt_pool_workers(pool);
    size_t bytes;
    c->scratch_bytes = rt_distortion_scratch(c->d);
    RT_FAIL_IF(!rt_size_align_up(c->scratch_bytes, 64, &c->scratch_bytes) ||
                   !rt_size_mul(c->scratch_bytes, workers, &bytes),
               RT_E_MEMORY, "the scratch of distortions is too large");
    RT_TRY(rt_alloc(&c->scratch, bytes + 64));
    RT_TRY(rt_calloc(&c->error, workers, sizeof *c->error));
    const size_t elems = (size_t)(rows * c->elems);
    return floats ? rt_alloc(&c->f32, elems * sizeof *c->f32) : rt_alloc(&c->u8, elems);
}

static void distort_close(distort_call *c) {
    rt_free(c->scratch);
    rt_free(c->error);
    rt_free(c->u8);
    rt_free(c->f32);
}

/* ---- a set ---- */

void rt_subject_tell(const rt_subject *u, const char *what, int64_t rows) {
    rt_assess_call *s = u->s;
    s->rows += (double)rows;
    if (!s->o->progress)
        return;
    const double here = s->rows_all > 0 ? RT_MIN(s->rows / s->rows_all, 1.0) : 1;
    const double done = (s->run + here) / s->runs, seconds = rt_time_now() - s->started;
    s->o->progress(s->o->user,
                   &(rt_assess_progress){.run = s->run,
                                         .runs = s->runs,
                                         .name = u->name,
                                         .what = what,
                                         .done = done,
                                         .seconds_left = done > 0 ? seconds * (1 - done) / done : NAN});
}

static rt_status check_finite(const rt_subject *u, const float *y, int64_t first, int64_t n,
                              const char *what) {
    for (int64_t i = 0; i < n * u->m * u->k; i++)
        RT_FAIL_IF(!isfinite(y[i]), RT_E_NUMERIC, "%s: member %lld answers row %lld of %s with %s", u->name,
                   (long long)(i / u->k % u->m), (long long)(first + i / (u->k * u->m)), what,
                   isnan(y[i]) ? "NaN" : "infinity");
    return RT_OK;
}

static rt_status predict_chunks(rt_subject *u, float *y, const rt_part *p, rt_shape row, distort_call *c,
                                int64_t chunk, const char *what) {
    const rt_shape input = rt_model_input(u->model);
    const bool convert = !rt_shape_equal(&row, &input);
    const int64_t elems = rt_shape_elems(&row);
    for (int64_t first = 0; first < p->n; first += chunk) {
        const int64_t n = RT_MIN(chunk, p->n - first);
        float *converted = NULL, *dst = y + first * u->m * u->k;
        rt_part part = {.n = n};
        if (c) {
            RT_TRY(distort_chunk(c, u->s->pool, first, n));
            part.u8 = c->u8;
            part.f32 = c->f32;
        } else {
            part.u8 = p->u8 ? p->u8 + first * elems : NULL;
            part.f32 = p->f32 ? p->f32 + first * elems : NULL;
            part.stored = p->stored;
            part.at = p->stored ? p->at + first : NULL;
        }
        if (convert) {
            RT_TRY(rt_part_convert(&converted, &part, row, input));
            part = (rt_part){.n = n, .f32 = converted};
        }
        const rt_status st = rt_model_predict_by(u->model, u->predictor, &part, dst, u->s->o->stop);
        rt_free(converted);
        RT_TRY(st);
        RT_TRY(check_finite(u, dst, first, n, what));
        rt_subject_tell(u, what, n);
    }
    return RT_OK;
}

rt_status rt_subject_answer(rt_subject *u, rt_answers *out, const rt_part *p, rt_shape row,
                            const rt_answer_how *how) {
    memset(out, 0, sizeof *out);
    const rt_distortion *d = how->distortion;
    distort_call call = {.d = d, .src = p, .elems = rt_shape_elems(&row)};
    int64_t floats;
    rt_status st;
    /* Whole batches, so that none but the last of a set is padded. */
    const int64_t row_bytes = call.elems * (int64_t)(p->u8 && !how->floats ? 1 : sizeof(float));
    int64_t chunk = RT_MAX(CHUNK_BYTES / RT_MAX(row_bytes, 1) / u->batch, 1) * u->batch;
    chunk = RT_MIN(chunk, RT_MAX(p->n, 1));
    if (!rt_i64_mul(p->n, u->m * u->k, &floats))
        RT_FAIL_GOTO(RT_E_MEMORY, "predictions of %s are too large", u->name);
    RT_TRY_GOTO(rt_calloc(&out->y, (size_t)floats + 1, sizeof(float)));
    if (d)
        RT_TRY_GOTO(distort_open(&call, u->s->pool, chunk, how->floats));
    RT_TRY_GOTO(predict_chunks(u, out->y, p, row, d ? &call : NULL, chunk, how->what));
    out->in = (rt_eval_input){.how = u->how,
                              .n = p->n,
                              .y = out->y,
                              .label = how->unlabelled ? NULL : p->label,
                              .target = how->unlabelled ? NULL : p->target,
                              .temperature = u->temperature,
                              .temperature_reason = u->temperature_reason};
done:
    distort_close(&call);
    if (st != RT_OK)
        rt_answers_free(out);
    return st;
}

void rt_answers_free(rt_answers *a) {
    rt_free(a->y);
    memset(a, 0, sizeof *a);
}

/* ---- measures of every row ---- */

rt_status rt_scores_of(rt_scores *out, const rt_eval_input *in) {
    const rt_measure_info *list;
    const int measures = rt_measure_list(&list);
    int32_t *class = NULL;
    rt_status st;
    memset(out, 0, sizeof *out);
    out->n = in->n;
    RT_TRY_GOTO(rt_calloc(&out->value, (size_t)in->n * (size_t)measures + 1, sizeof *out->value));
    RT_TRY_GOTO(rt_eval_measures(in, out->value, out->reason));
    if (in->label && !rt_eval_regression(in)) {
        RT_TRY_GOTO(rt_calloc(&class, (size_t)in->n + 1, sizeof *class));
        RT_TRY_GOTO(rt_calloc(&out->wrong, (size_t)in->n + 1, 1));
        RT_TRY_GOTO(rt_eval_classes(in, class));
        for (int64_t i = 0; i < in->n; i++)
            out->wrong[i] = class[i] != in->label[i];
    }
done:
    rt_free(class);
    if (st != RT_OK)
        rt_scores_free(out);
    return st;
}

void rt_scores_free(rt_scores *s) {
    rt_free(s->value);
    rt_free(s->wrong);
    memset(s, 0, sizeof *s);
}
