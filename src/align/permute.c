/*
 * permute.c - sets of permutations, one per bundle of a symmetry, and what they do to a block of parameters.
 *
 * Place i of the result is place p[i] of the source. An axis of a parameter follows its bundle in blocks of
 * `repeat` elements; a parameter of rank r is gathered along all its axes at once, with the index tables of
 * its axes worked out on the way: the innermost run that no permutation touches is copied whole.
 */
#include "align/align.h"
#include <string.h>

void rt_perm_identity(const rt_symmetry *s, int64_t *perm) {
    for (int g = 0; g < s->bundles; g++)
        for (int64_t i = 0; i < s->bundle[g].n; i++)
            perm[s->bundle[g].offset + i] = i;
}

void rt_perm_random(const rt_symmetry *s, int64_t *perm, rt_rng r) {
    for (int g = 0; g < s->bundles; g++) {
        rt_rng own = {r.seed, r.stream + (uint64_t)g};
        rt_rng_permutation(own, perm + s->bundle[g].offset, s->bundle[g].n);
    }
}

void rt_perm_compose(const rt_symmetry *s, int64_t *dst, const int64_t *a, const int64_t *b, int64_t *tmp) {
    for (int g = 0; g < s->bundles; g++) {
        const int64_t at = s->bundle[g].offset;
        for (int64_t i = 0; i < s->bundle[g].n; i++)
            tmp[at + i] = a[at + b[at + i]];
    }
    memcpy(dst, tmp, (size_t)s->total * sizeof *dst);
}

void rt_perm_invert(const rt_symmetry *s, int64_t *dst, const int64_t *a) {
    for (int g = 0; g < s->bundles; g++) {
        const int64_t at = s->bundle[g].offset;
        for (int64_t i = 0; i < s->bundle[g].n; i++)
            dst[at + a[at + i]] = i;
    }
}

/* Element i of an axis comes from this one of the source. */
static int64_t source(const rt_symmetry *s, rt_sym_axis a, const int64_t *perm, int64_t i) {
    if (a.bundle < 0)
        return i;
    return perm[s->bundle[a.bundle].offset + i / a.repeat] * a.repeat + i % a.repeat;
}

static void apply_param(const rt_symmetry *s, const rt_param *p, const rt_sym_axis *axis, float *dst,
                        const float *src, const int64_t *perm) {
    int64_t run = 1; /* elements behind the last axis that moves */
    int rank = p->shape.rank;
    while (rank > 0 && axis[rank - 1].bundle < 0)
        run *= p->shape.d[--rank];
    const int64_t outer = p->count / run;
    for (int64_t k = 0; k < outer; k++) {
        int64_t rest = k, from = 0, stride = 1;
        for (int i = rank - 1; i >= 0; i--) {
            from += source(s, axis[i], perm, rest % p->shape.d[i]) * stride;
            rest /= p->shape.d[i];
            stride *= p->shape.d[i];
        }
        memcpy(dst + k * run, src + from * run, (size_t)run * sizeof *dst);
    }
}

void rt_perm_apply(const rt_symmetry *s, const rt_params *params, float *dst, const float *src,
                   const int64_t *perm) {
    memset(dst, 0, (size_t)rt_params_floats(params) * sizeof *dst);
    for (int slot = 0; slot < s->slots; slot++) {
        const rt_param *p = rt_params_get(params, slot);
        apply_param(s, p, s->axis + slot * RT_MAX_RANK, dst + p->offset, src + p->offset, perm);
    }
}
