/*
 * model_predict.c - predictions of a model for raw inputs.
 *
 * Classification gives logits. Regression networks answer in standardised units, y' = (y - a) / b, with output (mu',
 * v'); back in the target's own units the mean is a + b mu' and the variance b^2 e^v', v' cut as in training; a
 * teacher's answers go the other way. With a transform, y here is the transformed target (eval/regression.c reads it).
 */
#include "base/alloc.h"
#include "model/model_int.h"
#include <math.h>
#include <string.h>

enum { PREDICT_BATCH = 128 };

typedef struct target {
    const rt_model *m;
    float *out; /* (n, members, outputs) */
} target;

static double cut(double v) {
    return RT_MIN(RT_MAX(v, -(double)RT_LOGVAR_MAX), (double)RT_LOGVAR_MAX);
}

void rt_target_unscale(const rt_target *t, float *y) {
    y[0] = (float)(t->mean + t->std * (double)y[0]);
    y[1] = (float)(t->std * t->std * exp(cut((double)y[1])));
}

void rt_target_rescale(const rt_target *t, float *y) {
    y[0] = (float)(((double)y[0] - t->mean) / t->std);
    y[1] = (float)cut(log((double)y[1] / (t->std * t->std)));
}

void rt_model_answer(const rt_model *m, const float *y, int64_t stride, float *out) {
    const int64_t k = rt_model_outputs(m);
    for (int s = 0; s < rt_student_members(m->student); s++, out += k) {
        memcpy(out, y + s * stride, (size_t)k * sizeof *out);
        if (m->task == RT_TASK_REGRESSION)
            rt_target_unscale(&m->target, out);
    }
}

static void take(void *user, int network, int64_t row, int64_t n, const float *y, int64_t stride) {
    const target *t = user;
    const int64_t k = rt_model_outputs(t->m), first = network * rt_student_members(t->m->student);
    for (int64_t r = 0; r < n; r++)
        rt_model_answer(t->m, y + r * k, stride, t->out + ((row + r) * rt_model_members(t->m) + first) * k);
}

void rt_model_set_batch(rt_model *m, int64_t rows) {
    m->batch = rows;
}

rt_status rt_model_predictor(const rt_model *m, rt_predictor **out, int64_t rows, rt_pool *pool) {
    if (rows < 1)
        rows = m->batch > 0 ? m->batch : (int64_t)PREDICT_BATCH;
    return rt_predictor_create(out, m->student, m->params, rows, m->networks, pool);
}

rt_status rt_model_predict_by(const rt_model *m, rt_predictor *by, const rt_part *p, float *out,
                              const volatile sig_atomic_t *stop) {
    if (p->n == 0)
        return RT_OK;
    const rt_subset all = rt_subset_all(p);
    return rt_predictor_run(by, &all, m->list, m->networks, take, &(target){m, out}, stop);
}

rt_status rt_model_predict(const rt_model *m, const rt_part *p, rt_pool *pool, float *out,
                           const volatile sig_atomic_t *stop) {
    if (p->n == 0)
        return RT_OK;
    rt_predictor *predictor = NULL;
    const int64_t batch = m->batch > 0 ? m->batch : (int64_t)PREDICT_BATCH;
    rt_status st = rt_model_predictor(m, &predictor, RT_MIN(batch, p->n), pool);
    if (st == RT_OK)
        st = rt_model_predict_by(m, predictor, p, out, stop);
    rt_predictor_destroy(&predictor);
    return st;
}
