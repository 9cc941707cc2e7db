/*
 * batch.c - which rows form batch i of an epoch, and their content. Everything is a pure function of (seed,
 * epoch, i).
 */
#include "data/data_int.h"

#include "base/rng.h"

#include <string.h>

int64_t rt_batch_count(const rt_batch_spec *s) {
    if (s->batch < 1)
        return 0;
    return s->drop_last ? s->set->n / s->batch : s->set->n / s->batch + (s->set->n % s->batch != 0);
}

int64_t rt_batch_rows(const rt_batch_spec *s, int64_t i) {
    return RT_MAX(RT_MIN(s->batch, s->set->n - i * s->batch), 0);
}

void rt_batch_order(const rt_batch_spec *s, uint64_t seed, int64_t epoch, int64_t *order) {
    if (s->shuffle) {
        rt_rng_permutation(rt_rng_make(seed, RT_RNG_SHUFFLE, (uint64_t)epoch, 0), order, s->set->n);
        return;
    }
    for (int64_t i = 0; i < s->set->n; i++)
        order[i] = i;
}

static void batch_row(const rt_batch_spec *s, uint64_t seed, int64_t epoch, int64_t source, int64_t elems,
                      bool augment, float *x) {
    const rt_part *p = s->set->part;
    const uint8_t *u8 = p->u8 ? p->u8 + source * elems : NULL;
    const float *f32 = p->f32 ? p->f32 + source * elems : NULL;
    if (augment)
        rt_augment_image(&s->augment, seed, epoch, source, s->row, u8, f32, x);
    else
        rt_part_values(p, elems, source, 0, elems, x);
}

void rt_batch_fill(const rt_batch_spec *s, uint64_t seed, int64_t epoch, int64_t i, const int64_t *order,
                   float *x, int32_t *label, float *target, int64_t *source) {
    const rt_part *p = s->set->part;
    int64_t rows = rt_batch_rows(s, i), elems = rt_shape_elems(&s->row);
    bool augment = rt_augment_any(&s->augment) && s->row.rank == 3;
    for (int64_t k = 0; k < rows; k++) {
        const int64_t at = i * s->batch + k, place = order ? order[at] : at;
        const int64_t row = rt_subset_row(s->set, place);
        batch_row(s, seed, epoch, row, elems, augment, x + k * elems);
        if (label)
            label[k] = p->label ? p->label[row] : 0;
        if (target)
            target[k] = p->target ? p->target[row] : 0;
        if (source)
            source[k] = row;
    }
}
