/*
 * trainer_data.c - the rows of a run: which are trained on and which validate, their batches, and the targets of a
 * regression as networks see them.
 */
#include "base/alloc.h"
#include "base/size.h"
#include "train/train_int.h"

rt_status rt_train_data_open(rt_train_data *d, rt_config *c) {
    RT_TRY(rt_augment_parse(&d->batches.augment, c->augment));
    RT_TRY(rt_dataset_open(&d->set, c->data, rt_config_data(c)));
    RT_TRY(rt_dataset_need_labels(d->set, "training"));
    rt_config_name_splits(c, d->set);
    d->regression = rt_dataset_task(d->set) == RT_TASK_REGRESSION;
    return RT_OK;
}

rt_status rt_train_data_split(rt_train_data *d, const rt_config *c, const rt_model *teacher) {
    RT_TRY(rt_split_rows(c, d->set, &d->train, &d->valid));
    if (teacher) /* one encoding for both */
        RT_TRY(rt_dataset_encode_as(d->set, rt_model_like(teacher).table));
    RT_TRY(rt_dataset_fit(d->set, &d->train));
    return rt_subset_some(&d->labelled, &d->train, 0);
}

/* A perturbation keeps inputs in [0, 1]: for pictures, and for tables that are like them. */
static rt_status check_range(const rt_train_data *d, const rt_perturb *perturb) {
    const rt_part *p = d->train.part;
    const int64_t floats = rt_shape_elems(&d->batches.row);
    for (int64_t i = 0; perturb && !p->u8 && i < p->n * floats; i++) {
        float value;
        rt_part_values(p, floats, i / floats, i % floats, 1, &value);
        RT_FAIL_IF(!(value >= 0 && value <= 1), RT_E_USAGE,
                   "perturbation %s keeps inputs in [0, 1], as pictures are; row %lld of the data has %g",
                   perturb->name, (long long)(i / floats), (double)value);
    }
    return RT_OK;
}

rt_status rt_train_data_batches(rt_train_data *d, const rt_config *c, const rt_perturb *perturb,
                                int members) {
    size_t targets;
    d->batches.set = &d->train;
    d->batches.row = rt_dataset_row(d->set);
    d->batches.batch = RT_MIN(c->batch, d->train.n);
    d->batches.shuffle = true;
    d->batches.drop_last = c->drop_last;
    RT_TRY(rt_batch_check(&d->batches));
    d->nbatches = rt_batch_count(&d->batches);
    for (int64_t i = 0; i < d->nbatches; i++)
        d->epoch_rows += rt_batch_rows(&d->batches, i);
    RT_TRY(check_range(d, perturb));
    RT_FAIL_IF(!rt_size_mul((size_t)members, (size_t)d->batches.batch, &targets), RT_E_MEMORY,
               "the batch is too large");
    return d->regression ? rt_calloc(&d->target, targets, sizeof *d->target) : RT_OK;
}

/* An epoch that is through but for its validation is followed by the next. */
rt_status rt_train_data_start(rt_train_data *d, const rt_members *m, const rt_progress_state *at) {
    return rt_prefetch_create(&d->prefetch, &d->batches, m->seeds, m->own,
                              at->epoch + (at->index == d->nbatches), at->index % d->nbatches);
}

rt_status rt_train_data_next(rt_train_data *d, const rt_target *as, int members, const rt_batch **out) {
    RT_TRY(rt_prefetch_next(d->prefetch, out));
    for (int64_t i = 0; d->regression && i < members * (*out)->rows; i++)
        d->target[i] = rt_target_scale(as, (*out)->target[i]);
    return RT_OK;
}

void rt_train_data_close(rt_train_data *d) {
    rt_prefetch_destroy(&d->prefetch);
    rt_subset_deinit(&d->train);
    rt_subset_deinit(&d->valid);
    rt_subset_deinit(&d->labelled);
    rt_free(d->class_weight);
    rt_free(d->target);
    rt_dataset_destroy(&d->set);
}
