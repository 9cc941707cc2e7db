/*
 * trainer_setup.c - everything a run needs before its first step: data, moments, network, weights, compiled
 * step, buffers.
 *
 * Whatever can be refused is refused here, before a file is written: bad specs, impossible splits, too little
 * memory.
 */
#include "base/alloc.h"
#include "base/rng.h"
#include "base/size.h"
#include "train/train_int.h"
#include <math.h>
#include <string.h>

enum { VALID_BATCH = 128 };

static rt_status init_of(rt_init *out, const char *name) {
    static const struct {
        const char *name;
        rt_init init;
    } table[] = {{"default", RT_INIT_DEFAULT},     {"torch", RT_INIT_TORCH},
                 {"he-fan-in", RT_INIT_HE_FAN_IN}, {"he-fan-out", RT_INIT_HE_FAN_OUT},
                 {"glorot", RT_INIT_GLOROT},       {"kaiming", RT_INIT_KAIMING_GAIN1}};
    for (int64_t i = 0; i < RT_COUNT(table); i++) {
        if (strcmp(name, table[i].name) == 0) {
            *out = table[i].init;
            return RT_OK;
        }
    }
    RT_FAIL(RT_E_USAGE, "--init: '%s' is unknown", name);
}

static rt_status split(rt_trainer *t) {
    const rt_config *c = t->c;
    const rt_part *p = rt_dataset_train(t->data);
    RT_FAIL_IF(p->n == 0, RT_E_INPUT, "%s has no rows to train on", c->data);
    double want = c->valid < 1 ? floor(c->valid * (double)p->n + 0.5) : c->valid;
    RT_FAIL_IF(want >= (double)p->n, RT_E_USAGE,
               "--valid: %g validation rows leave nothing of %lld rows to train on", want, (long long)p->n);
    RT_FAIL_IF(want != floor(want), RT_E_USAGE,
               "--valid: %g is neither a fraction below 1 nor a whole number", want);
    return rt_subset_split(&t->train, &t->valid, p, (int64_t)want, c->valid_shuffle, (uint64_t)c->seed);
}

static rt_status make_model(rt_trainer *t) {
    const rt_config *c = t->c;
    rt_shape row = rt_dataset_row(t->data);
    int64_t norm = row.d[0]; /* channels, or features */
    double *mean = NULL, target_mean = 0, target_std = 1;
    rt_arch_config a = {.spec = c->arch,
                        .input = row,
                        .outputs = t->regression ? 2 : rt_dataset_classes(t->data),
                        .activation = c->activation,
                        .dropout = c->dropout,
                        .dropout_input = c->dropout_input};
    rt_status st;
    RT_TRY_GOTO(init_of(&a.init, c->init));
    RT_TRY_GOTO(rt_calloc(&mean, 2 * (size_t)norm, sizeof *mean));
    rt_subset_moments(&t->train, row, mean, mean + norm, t->regression ? &target_mean : NULL,
                      t->regression ? &target_std : NULL);
    if (c->standardise) {
        a.norm = (int)norm;
        a.mean = mean;
        a.std = mean + norm;
    }
    RT_TRY_GOTO(rt_model_create(&t->model, &a, t->data, target_mean, target_std, t->members));
done:
    rt_free(mean);
    return st;
}

static rt_status make_step(rt_trainer *t) {
    const rt_config *c = t->c;
    rt_step_options o = {.batch = t->batches.batch,
                         .members = t->members,
                         .regression = t->regression,
                         .label_smoothing = c->label_smoothing,
                         .optimiser = c->optimiser,
                         .momentum = c->momentum,
                         .beta1 = c->beta1,
                         .beta2 = c->beta2,
                         .eps = c->eps,
                         .nesterov = c->nesterov,
                         .weight_decay = c->weight_decay,
                         .decay_rule = c->decay_rule,
                         .clip_norm = c->clip_norm,
                         .slice = c->slice};
    RT_TRY(rt_step_create(&t->step, t->model->net, t->model->params, o, t->pool));
    RT_TRY(rt_step_prepare(t->step, rt_batch_rows(&t->batches, t->nbatches - 1)));
    for (int m = 0; m < t->members; m++)
        rt_params_init(t->model->params, rt_step_values(t->step, m), t->seeds[m]);
    return RT_OK;
}

static rt_status make_buffers(rt_trainer *t) {
    size_t m = (size_t)t->members, targets;
    RT_TRY(rt_calloc(&t->numbers, 9 * m, sizeof *t->numbers));
    double **const rows[] = {&t->at.loss_sum,      &t->at.correct,    &t->at.kept_loss,
                             &t->at.kept_accuracy, &t->at.kept_epoch, &t->lr,
                             &t->losses,           &t->valid_loss,    &t->valid_accuracy};
    for (int64_t i = 0; i < RT_COUNT(rows); i++)
        *rows[i] = t->numbers + (size_t)i * m;
    for (int i = 0; i < t->members; i++)
        t->at.kept_loss[i] = t->at.kept_accuracy[i] = t->valid_loss[i] = t->valid_accuracy[i] = NAN;
    RT_TRY(rt_calloc(&t->correct, m, sizeof *t->correct));
    RT_TRY(rt_calloc(&t->blocks, m, sizeof *t->blocks));
    RT_TRY(rt_calloc(&t->seeds, m, sizeof *t->seeds));
    for (int i = 0; i < t->members; i++)
        t->seeds[i] = rt_rng_member_seed((uint64_t)t->c->seed, i);
    RT_FAIL_IF(!rt_size_mul(m, (size_t)t->batches.batch, &targets), RT_E_MEMORY, "the batch is too large");
    if (t->regression)
        RT_TRY(rt_calloc(&t->target, targets, sizeof *t->target));
    if (t->valid.n > 0) {
        RT_TRY(rt_calloc(&t->valid_order, (size_t)t->valid.n, sizeof *t->valid_order));
        for (int64_t i = 0; i < t->valid.n; i++)
            t->valid_order[i] = i;
    }
    return RT_OK;
}

rt_status rt_trainer_open(rt_trainer *t) {
    const rt_config *c = t->c;
    RT_FAIL_IF(!c->data, RT_E_USAGE, "what to train on? Give --data SPEC");
    RT_FAIL_IF(!c->arch, RT_E_USAGE, "what to train? Give --arch SPEC, for example mlp:200,200");
    RT_FAIL_IF(!c->out, RT_E_USAGE, "where should the run go? Give --out DIR");
    RT_TRY(rt_schedule_parse(&t->schedule, c->schedule, c->lr, c->warmup, (double)c->epochs));
    RT_TRY(rt_augment_parse(&t->batches.augment, c->augment));
    RT_TRY(rt_pool_create(&t->pool, c->threads > 0 ? (int)c->threads : rt_cpu_count()));
    RT_TRY(
        rt_dataset_open(&t->data, c->data, (rt_data_options){.seed = (uint64_t)c->seed, .limit = c->limit}));
    rt_config_hash(c, RT_VERB_TRAIN, t->config_hash);
    t->members = (int)c->members;
    t->regression = rt_dataset_task(t->data) == RT_TASK_REGRESSION;
    RT_TRY(split(t));
    t->keep_best = t->valid.n > 0 && strcmp(c->keep, "best") == 0;
    t->batches.set = &t->train;
    t->batches.row = rt_dataset_row(t->data);
    t->batches.batch = RT_MIN(c->batch, t->train.n);
    t->batches.shuffle = true;
    t->batches.drop_last = c->drop_last;
    t->nbatches = rt_batch_count(&t->batches);
    for (int64_t i = 0; i < t->nbatches; i++)
        t->epoch_rows += rt_batch_rows(&t->batches, i);
    RT_TRY(make_buffers(t));
    RT_TRY(make_model(t));
    RT_TRY(make_step(t));
    if (t->valid.n > 0)
        RT_TRY(rt_predictor_create(&t->predictor, t->model->net, t->model->params,
                                   RT_MIN((int64_t)VALID_BATCH, t->valid.n), t->members, t->pool));
    t->checkpoint = (rt_checkpoint){.config_hash = t->config_hash,
                                    .data_hash = rt_dataset_hash(t->data),
                                    .members = t->members,
                                    .floats = t->model->floats,
                                    .step = t->step,
                                    .best = t->keep_best ? t->model : NULL,
                                    .at = &t->at};
    return RT_OK;
}

void rt_trainer_close(rt_trainer *t) {
    rt_prefetch_destroy(&t->prefetch);
    rt_predictor_destroy(&t->predictor);
    rt_step_destroy(&t->step);
    rt_model_destroy(&t->model);
    rt_subset_deinit(&t->train);
    rt_subset_deinit(&t->valid);
    rt_dataset_destroy(&t->data);
    rt_free(t->seeds);
    rt_free(t->numbers);
    rt_free(t->correct);
    rt_free(t->blocks);
    rt_free(t->target);
    rt_free(t->valid_order);
    rt_str_deinit(&t->line);
    rt_run_dir_close(&t->dir);
    rt_pool_destroy(&t->pool);
}
