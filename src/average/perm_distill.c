/*
 * perm_distill.c - a short distillation of the mean from the models it was made of.
 *
 * The mean of aligned networks starts near a good network, and a few passes of knowledge distillation
 * (objective_kd.c, with labels of weight 1 - alpha) bring back what averaging lost. Its weights are then free:
 * this leaves the set of means. The models run inside the step, on the augmented inputs, in evaluation mode.
 * Adam, because its rate does not depend on the scale of the inputs or their number. What came out is kept if
 * its loss on validation rows is lower than the mean's.
 */
#include "average/perm.h"
#include "base/alloc.h"
#include "step/step.h"
#include <math.h>
#include <string.h>

static const double PI = 3.14159265358979323846;

static rt_status run_steps(const rt_average *a, const rt_perm_distillation *d, rt_step *s, rt_prefetch *data,
                           int64_t per_epoch) {
    const int64_t steps = per_epoch * d->epochs;
    double loss;
    for (int64_t i = 0; i < steps; i++) {
        const rt_batch *b;
        const double lr = 0.5 * d->lr * (1 + cos(PI * (double)i / (double)steps));
        RT_TRY(rt_prefetch_next(data, &b));
        const rt_step_io io = {.x = b->x,
                               .label = b->label,
                               .rows = b->rows,
                               .t = i,
                               .lr = &lr,
                               .seeds = &d->seed,
                               .losses = &loss,
                               .temperature = (float)d->temperature,
                               .teacher_blocks = a->blocks};
        RT_TRY(rt_step_run(s, &io));
        RT_TRY(rt_average_progress(a, "distilling", (double)(i + 1) / (double)steps));
    }
    return RT_OK;
}

/* Is `next` better than `block` on validation rows? Without any: yes. */
static rt_status judge(const rt_average *a, const float *block, const float *next, bool *better) {
    rt_average_score each[2];
    *better = true;
    if (a->valid.n == 0)
        return RT_OK;
    RT_TRY(rt_average_measure(a, &a->valid, (const float *const[]){block, next}, 2, each, NULL));
    *better = each[1].loss < each[0].loss;
    return RT_OK;
}

rt_status rt_perm_distill(const rt_average *a, const rt_perm_distillation *d, float *block, bool *kept) {
    rt_step *s = NULL;
    rt_prefetch *data = NULL;
    rt_status st;
    *kept = false;
    if (d->epochs == 0)
        return RT_OK;
    const rt_batch_spec spec = {.set = &a->train,
                                .row = rt_dataset_row(a->data),
                                .batch = RT_MIN(d->batch, a->train.n),
                                .shuffle = true,
                                .drop_last = true,
                                .augment = d->augment};
    const rt_distill_config what = {
        .student = a->student,
        .objective = rt_objective_find("kd"),
        .teachers = a->models,
        .teacher_net = rt_student_net(a->student),
        .teacher_params = a->params,
        .options = {.alpha = d->alpha, .teacher_logits = rt_average_mean_logits(a)}};
    const rt_step_options o = {.batch = spec.batch,
                               .members = 1,
                               .optimiser = "adam",
                               .beta1 = 0.9,
                               .beta2 = 0.999,
                               .eps = 1e-8,
                               .decay_rule = "all"};
    RT_TRY_GOTO(rt_step_create(&s, &what, a->params, o, a->pool));
    memcpy(rt_step_values(s, 0), block, (size_t)a->floats * sizeof *block);
    RT_TRY_GOTO(rt_prefetch_create(&data, &spec, &d->seed, 1, 0, 0));
    RT_TRY_GOTO(run_steps(a, d, s, data, rt_batch_count(&spec)));
    RT_TRY_GOTO(judge(a, block, rt_step_values(s, 0), kept));
    if (*kept)
        memcpy(block, rt_step_values(s, 0), (size_t)a->floats * sizeof *block);
done:
    rt_prefetch_destroy(&data);
    rt_step_destroy(&s);
    return st;
}
