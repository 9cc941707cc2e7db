/*
 * split.c - which rows are held out, for testing or for validation.
 *
 *     stratified   of class k, which has n_k of n rows, take * n_k / n rows: rounded down, and what is left goes to the
 *                  largest remainders (of equal ones the first class). The last row of a class is never taken while
 *                  others can be. Without classes: random
 *     random       the first rows of a permutation
 *     last         the last rows, as they stand: for rows in order of time, and for published orders
 *
 * A class's rows are drawn by walking the same permutation as for random, so that rows of one class only are drawn
 * alike by both. Everything follows from the labels, the number of rows and the seed.
 */
#include "data/data_int.h"

#include "base/alloc.h"
#include "base/stop.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[RT_SPLITS] = {"stratified", "random", "last"};

const char *rt_split_name(rt_split s) {
    return names[s];
}

rt_split rt_split_find(const char *name) {
    int s = 0;
    while (s < RT_SPLITS && strcmp(names[s], name) != 0)
        s++;
    return (rt_split)s;
}

typedef struct stratum {
    int64_t k, rows, quota;
    double remainder;
} stratum;

static int by_remainder(const void *a, const void *b) {
    const stratum *x = a, *y = b;
    return x->remainder != y->remainder ? (x->remainder < y->remainder ? 1 : -1)
                                        : (x->k > y->k) - (x->k < y->k);
}

/* Rows to take of each class; quota (classes). */
static rt_status quotas(int64_t *quota, const int32_t *label, int64_t classes, int64_t n, int64_t take) {
    stratum *s = NULL;
    int64_t left = take;
    RT_TRY(rt_calloc(&s, (size_t)classes, sizeof *s));
    for (int64_t i = 0; i < n; i++)
        s[label[i]].rows++;
    for (int64_t k = 0; k < classes; k++) {
        const double exact = (double)take / (double)n * (double)s[k].rows;
        s[k].k = k;
        s[k].quota = (int64_t)RT_MIN(floor(exact), (double)s[k].rows);
        s[k].remainder = exact - (double)s[k].quota;
        left -= s[k].quota;
    }
    qsort(s, (size_t)classes, sizeof *s, by_remainder);
    for (int spare = 1; spare >= 0; spare--) /* leave one row of each class; if that cannot be, none */
        for (int64_t before = -1; left > 0 && left != before;) {
            before = left;
            for (int64_t k = 0; k < classes && left > 0; k++)
                if (s[k].quota < s[k].rows - spare) {
                    s[k].quota++;
                    left--;
                }
        }
    for (int64_t k = 0; k < classes; k++)
        quota[s[k].k] = s[k].quota;
    rt_free(s);
    return RT_OK;
}

rt_status rt_split_mask(uint8_t *mask, int64_t n, int64_t take, rt_split how, const int32_t *label,
                        rt_rng r) {
    int64_t *order = NULL, *quota = NULL, classes = 1;
    const bool by_class = how == RT_SPLIT_STRATIFIED && label && n > 0;
    rt_status st = RT_OK;
    if (how == RT_SPLIT_LAST) {
        memset(mask + (n - take), 1, (size_t)take);
        return RT_OK;
    }
    for (int64_t i = 0; by_class && i < n; i++)
        classes = RT_MAX(classes, (int64_t)label[i] + 1);
    RT_TRY_GOTO(rt_calloc(&order, (size_t)n + 1, sizeof *order));
    RT_TRY_GOTO(rt_calloc(&quota, (size_t)classes, sizeof *quota));
    quota[0] = take;
    if (by_class)
        RT_TRY_GOTO(quotas(quota, label, classes, n, take));
    RT_TRY_GOTO(rt_stop_check("dividing", "rows"));
    rt_rng_permutation(r, order, n);
    RT_TRY_GOTO(rt_stop_check("dividing", "rows"));
    for (int64_t i = 0; i < n; i++) {
        int64_t *left = &quota[by_class ? label[order[i]] : 0];
        mask[order[i]] = *left > 0;
        *left -= *left > 0;
    }
done:
    rt_free(order);
    rt_free(quota);
    return st;
}

rt_status rt_holdout_mask(rt_dataset *d, uint8_t **is_test, const rt_spec *s, const rt_data_options *o,
                          int64_t n, const int32_t *label) {
    double share = 0.1;
    *is_test = NULL;
    RT_TRY(rt_spec_get_f64(s, "test", 0, 1, &share));
    RT_TRY(rt_spec_get_u64(s, "seed", &d->split_seed));
    const int64_t take = o->whole || o->unlabelled ? n : RT_MIN((int64_t)(share * (double)n + 0.5), n);
    RT_TRY(rt_calloc(is_test, (size_t)n + 1, 1));
    d->drawn = take > 0 && take < n;
    rt_status st =
        rt_split_mask(*is_test, n, take, o->split, label, rt_rng_make(d->split_seed, RT_RNG_SPLIT, 1, 0));
    if (st != RT_OK) {
        rt_free(*is_test);
        *is_test = NULL;
    }
    return st;
}

rt_status rt_subset_split(rt_subset *train, rt_subset *valid, const rt_part *p, int64_t valid_n, rt_split how,
                          uint64_t seed) {
    *train = *valid = (rt_subset){.part = p};
    RT_FAIL_IF(valid_n < 0 || valid_n >= p->n, RT_E_USAGE, "%lld validation rows of %lld, wanted 0 to %lld",
               (long long)valid_n, (long long)p->n, (long long)p->n - 1);
    if (valid_n == 0) {
        *train = rt_subset_all(p);
        return RT_OK;
    }
    uint8_t *is_valid = NULL;
    int64_t at[2] = {0, 0};
    rt_status st = RT_OK;
    RT_TRY_GOTO(rt_calloc(&is_valid, (size_t)p->n, 1));
    RT_TRY_GOTO(rt_subset_new(train, p, p->n - valid_n));
    RT_TRY_GOTO(rt_subset_new(valid, p, valid_n));
    RT_TRY_GOTO(rt_split_mask(is_valid, p->n, valid_n, how, p->label, rt_rng_make(seed, RT_RNG_SPLIT, 0, 0)));
    for (int64_t i = 0; i < p->n; i++)
        (is_valid[i] ? valid : train)->index[at[is_valid[i]]++] = i;
done:
    rt_free(is_valid);
    if (st != RT_OK) {
        rt_subset_deinit(train);
        rt_subset_deinit(valid);
    }
    return st;
}
