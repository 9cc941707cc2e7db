/*
 * class_weights.c - rare classes count as much as frequent ones (--class-weights balanced).
 *
 *     w_k = n / (K n_k)     n_k of the n training rows are of class k, one of K that occur
 *
 * The mean weight of a training row is 1, so learning rates keep their meaning. Losses that are reported of
 * validation and test rows are of rows as they are.
 */
#include "base/alloc.h"
#include "train/train_int.h"
#include <string.h>

static rt_status check(const rt_trainer *t) {
    const rt_objective *o = t->aim.phases[t->aim.nphases - 1].objective;
    RT_FAIL_IF(t->data.regression, RT_E_USAGE, "--class-weights: %s is for regression, it has no classes",
               rt_dataset_spec(t->data.set));
    RT_FAIL_IF(
        (o->needs & RT_OBJ_WEIGHTED) == 0 && !(t->verb == RT_VERB_DISTILL && t->c->alpha < 1), RT_E_USAGE,
        "--class-weights: objective %s does not look at labels; --alpha below 1 mixes them in", o->name);
    return RT_OK;
}

rt_status rt_class_weights(rt_trainer *t) {
    if (strcmp(t->c->class_weights, "none") == 0)
        return RT_OK;
    RT_TRY(check(t));
    const int64_t k = rt_dataset_classes(t->data.set);
    int64_t *count = NULL, present = 0;
    RT_TRY(rt_calloc(&t->data.class_weight, (size_t)k, sizeof *t->data.class_weight));
    RT_TRY(rt_calloc(&count, (size_t)k, sizeof *count));
    for (int64_t i = 0; i < t->data.labelled.n; i++)
        count[rt_subset_label(&t->data.labelled, i)]++;
    for (int64_t c = 0; c < k; c++)
        present += count[c] > 0;
    for (int64_t c = 0; c < k; c++)
        t->data.class_weight[c] =
            count[c] > 0 ? (double)t->data.labelled.n / ((double)present * (double)count[c]) : 1;
    rt_free(count);
    return RT_OK;
}
