/*
 * aux_data.c - inputs besides those of the data set (--aux): their labels are not looked at.
 *
 * An objective that distils takes them like the others: the training part becomes one part, the data set's
 * rows first, then these, and the teacher answers for all. Their label is -1, which is no class. An objective
 * that tells in from out of distribution gets a batch of them beside every batch; batch number t (the step)
 * is batch t mod n of epoch t / n of a set that repeats itself up to one batch, when it is smaller.
 */
#include "base/alloc.h"
#include "base/size.h"
#include "train/train_int.h"
#include <string.h>

/* Rows of any shape and type, as floats of the data set's shape. */
static rt_status load_rows(rt_aux *a, const rt_dataset *d, const rt_config *c) {
    rt_data_options how = rt_config_data(c);
    const rt_data_like like = rt_dataset_like(d);
    how.unlabelled = true;
    how.like = like.table ? &like : NULL;
    RT_TRY(rt_dataset_open(&a->source, c->aux, how));
    const rt_part *p =
        rt_dataset_train(a->source)->n > 0 ? rt_dataset_train(a->source) : rt_dataset_test(a->source);
    RT_FAIL_IF(p->n < 1, RT_E_INPUT, "--aux: %s has no rows", c->aux);
    const rt_shape from = rt_dataset_row(a->source), to = rt_dataset_row(d);
    RT_FAIL_IF(from.rank != to.rank || (to.rank == 1 && from.d[0] != to.d[0]), RT_E_INPUT,
               "--aux: %s has inputs of another kind than %s; wanted %s", c->aux, rt_dataset_spec(d),
               to.rank == 3 ? "images" : "a table of as many columns");
    RT_TRY(rt_part_convert(&a->rows, p, from, to));
    a->n = p->n;
    a->floats = rt_shape_elems(&to);
    return RT_OK;
}

static rt_status join(rt_aux *a, const rt_dataset *d) {
    const rt_part *p = rt_dataset_train(d);
    const rt_shape row = rt_dataset_row(d);
    size_t n, bytes;
    float *first = NULL;
    rt_status st;
    RT_FAIL_IF(!rt_size_add((size_t)p->n, (size_t)a->n, &n) ||
                   !rt_size_mul(n, (size_t)a->floats * sizeof(float), &bytes),
               RT_E_MEMORY, "--aux: too many rows");
    RT_TRY_GOTO(rt_memory_check(bytes, "training rows and --aux together"));
    RT_TRY_GOTO(rt_alloc(&a->x, bytes));
    RT_TRY_GOTO(rt_part_convert(&first, p, row, row));
    memcpy(a->x, first, (size_t)p->n * (size_t)a->floats * sizeof(float));
    memcpy(a->x + p->n * a->floats, a->rows, (size_t)a->n * (size_t)a->floats * sizeof(float));
    a->part = (rt_part){.n = (int64_t)n, .f32 = a->x};
    if (p->label) {
        RT_TRY_GOTO(rt_calloc(&a->label, n, sizeof *a->label));
        memcpy(a->label, p->label, (size_t)p->n * sizeof *a->label);
        for (int64_t i = p->n; i < (int64_t)n; i++)
            a->label[i] = -1;
        a->part.label = a->label;
    } else {
        RT_TRY_GOTO(rt_calloc(&a->target, n, sizeof *a->target));
        memcpy(a->target, p->target, (size_t)p->n * sizeof *a->target);
        a->part.target = a->target;
    }
done:
    rt_free(first);
    return st;
}

rt_status rt_aux_open(rt_aux *a, const rt_dataset *d, const rt_config *c, bool outside, int64_t batch) {
    RT_TRY(load_rows(a, d, c));
    a->outside = outside;
    if (!outside)
        return join(a, d);
    int64_t *index = NULL;
    const int64_t n = RT_MAX(a->n, batch);
    a->part = (rt_part){.n = a->n, .f32 = a->rows};
    RT_TRY(rt_calloc(&index, (size_t)n, sizeof *index));
    for (int64_t i = 0; i < n; i++)
        index[i] = i % a->n;
    rt_status st = rt_subset_rows(&a->set, &a->part, index, n);
    rt_free(index);
    return st;
}

/* All rows of a training set, then those joined to it. */
rt_status rt_aux_extend(const rt_aux *a, rt_subset *train) {
    int64_t *index = NULL;
    rt_subset all = {0};
    const int64_t first = a->part.n - a->n;
    RT_TRY(rt_calloc(&index, (size_t)(train->n + a->n), sizeof *index));
    for (int64_t i = 0; i < train->n; i++)
        index[i] = rt_subset_row(train, i);
    for (int64_t i = 0; i < a->n; i++)
        index[train->n + i] = first + i;
    rt_status st = rt_subset_rows(&all, &a->part, index, train->n + a->n);
    rt_free(index);
    if (st == RT_OK) {
        rt_subset_deinit(train);
        *train = all;
    }
    return st;
}

rt_status rt_aux_start(rt_aux *a, const rt_batch_spec *like, const uint64_t *seeds, int members,
                       int64_t step) {
    rt_batch_spec spec = *like;
    spec.set = &a->set;
    spec.drop_last = true; /* batches are always full; a smaller one takes its first rows */
    const int64_t n = rt_batch_count(&spec);
    return rt_prefetch_create(&a->prefetch, &spec, seeds, members, step / n, step % n);
}

/* Rows (members, rows, row...) beside a batch. */
rt_status rt_aux_next(rt_aux *a, int members, int64_t rows, const float **out) {
    const rt_batch *b;
    RT_TRY(rt_prefetch_next(a->prefetch, &b));
    for (int m = 1; rows < b->rows && m < members;
         m++) /* closer together: the batch is ours until the next one */
        memmove(b->x + m * rows * a->floats, b->x + m * b->rows * a->floats,
                (size_t)(rows * a->floats) * sizeof(float));
    *out = b->x;
    return RT_OK;
}

void rt_aux_close(rt_aux *a) {
    rt_prefetch_destroy(&a->prefetch);
    rt_subset_deinit(&a->set);
    rt_free(a->rows);
    rt_free(a->x);
    rt_free(a->label);
    rt_free(a->target);
    rt_dataset_destroy(&a->source);
    memset(a, 0, sizeof *a);
}
