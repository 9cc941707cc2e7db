/*
 * align.h - networks whose units are renumbered: which may be, and how they come nearest to each other.
 *
 *   rt_symmetry   which axes of which parameters are renumbered together: read off the graph
 *   rt_perm_*     sets of permutations, and blocks of weights renumbered by them
 *   rt_assign     the best one-to-one assignment (Jonker-Volgenant)
 *   rt_matcher    the permutations that bring networks nearest to each other (weight matching)
 */
#ifndef RT_ALIGN_ALIGN_H
#define RT_ALIGN_ALIGN_H

#include "base/pool.h"
#include "base/rng.h"
#include "base/str.h"
#include "nn/nn.h"

/* ---- symmetries (symmetry.c) ---- */

/* A set of axes, of parameters and of values, whose n places can be permuted together. */
typedef struct rt_sym_bundle {
    int64_t n;
    int64_t offset; /* of its n entries in a set of permutations */
    char name[64];  /* the first layer that writes these units: "layers.0", "conv1" */
} rt_sym_bundle;

/* What an axis of a parameter follows: place i of the bundle is elements [i repeat, (i + 1) repeat) of the
 * axis, so that its length is n repeat. A dense layer after a map of h x w has repeat h w. bundle -1: stays as
 * it is. */
typedef struct rt_sym_axis {
    int bundle;
    int64_t repeat;
} rt_sym_axis;

/* Places that could not be freed, and why. Inputs and outputs of the network are not listed. */
typedef struct rt_sym_fixed {
    int64_t n;
    char name[64], reason[96];
} rt_sym_fixed;

typedef struct rt_symmetry {
    int bundles, slots, nfixed;
    int64_t total; /* sum of n over bundles: numbers in a set of permutations */
    rt_sym_bundle *bundle;
    rt_sym_axis *axis; /* (slots, RT_MAX_RANK) */
    rt_sym_fixed *fixed;
} rt_symmetry;

rt_status rt_symmetry_find(rt_symmetry *out, const rt_net *net, rt_params *params) RT_MUST_CHECK;
/* Of any graph in evaluation mode whose parameter slots are those of the table; y is its result. */
rt_status rt_symmetry_of(rt_symmetry *out, const rt_graph *g, const rt_params *params,
                         rt_val y) RT_MUST_CHECK;
void rt_symmetry_deinit(rt_symmetry *s);
RT_INLINE rt_sym_axis rt_symmetry_axis(const rt_symmetry *s, int slot, int axis) {
    return s->axis[slot * RT_MAX_RANK + axis];
}
void rt_symmetry_print(const rt_symmetry *s, const rt_params *params, rt_str *out);

/*
 * A set of permutations is int64_t[total]: p = perm + bundle.offset, and place i of the result is place p[i]
 * of the source. As a matrix P_{i, p[i]} = 1 and a weight (out, in) becomes P_out W P_in^T.
 */
void rt_perm_identity(const rt_symmetry *s, int64_t *perm);
void rt_perm_random(const rt_symmetry *s, int64_t *perm, rt_rng r);
/* dst = first a, then b: dst[i] = a[b[i]]. dst may be a or b only if tmp is neither; tmp has s->total
 * entries. */
void rt_perm_compose(const rt_symmetry *s, int64_t *dst, const int64_t *a, const int64_t *b, int64_t *tmp);
void rt_perm_invert(const rt_symmetry *s, int64_t *dst, const int64_t *a); /* dst is not a */
/* dst = the block src with every parameter renumbered; dst is not src. */
void rt_perm_apply(const rt_symmetry *s, const rt_params *params, float *dst, const float *src,
                   const int64_t *perm);

/* ---- assignment (assign.c) ---- */

/* The permutation that maximises sum_i gain[i n + perm[i]]; O(n^3), in double, the same for equal gains. */
rt_status rt_assign(int64_t *perm, const double *gain, int64_t n) RT_MUST_CHECK;

/* ---- weight matching (weight_match.c) ---- */

/* Permutations of `source` (starting from perm) that bring it nearest to target: weight matching. */
typedef struct rt_matcher rt_matcher;
rt_status rt_matcher_create(rt_matcher **out, const rt_symmetry *s, const rt_params *params,
                            rt_pool *pool) RT_MUST_CHECK;
void rt_matcher_destroy(rt_matcher **m);
/* perm in and out; *gain (may be NULL): how much <target, permuted source> rose. seed: of the order of
 * visits. */
rt_status rt_matcher_run(rt_matcher *m, const float *target, const float *source, int64_t *perm,
                         uint64_t seed, double *gain) RT_MUST_CHECK;
/* Every model to the mean of the others, or to the mean of those before it, as perms (models, total); the
 * first keeps its numbers. */
rt_status rt_matcher_many(rt_matcher *m, const float *const *blocks, int models, bool running, int64_t *perms,
                          uint64_t seed, rt_status (*progress)(void *user, int round, int model),
                          void *user) RT_MUST_CHECK;

#endif
