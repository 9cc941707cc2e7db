/*
 * average.h - several trained networks of one architecture become one, by aligning and averaging their
 * weights.
 *
 * The hidden units of a network may be renumbered without changing what it computes. Two networks that
 * learned the same features in another order are far apart in weight space, and their mean computes nothing;
 * renumbered so that like units have like numbers, the mean can work.
 *
 *   rt_symmetry          which axes of which parameters are renumbered together: read off the graph
 *   rt_assign            the best one-to-one assignment (Jonker-Volgenant)
 *   rt_average           a call: models, data, and what a method leaves behind
 *   average_methods.def  the methods, one line and one function each
 */
#ifndef RT_AVERAGE_AVERAGE_H
#define RT_AVERAGE_AVERAGE_H

#include "base/json.h"
#include "base/rng.h"
#include "train/train.h"

/* ---- symmetries (symmetry.c) ---- */

/* A set of axes, of parameters and of values, whose n places can be permuted together. */
typedef struct rt_sym_group {
    int64_t n;
    int64_t offset; /* of its n entries in a set of permutations */
    char name[64];  /* the first layer that writes these units: "layers.0", "conv1" */
} rt_sym_group;

/* What an axis of a parameter follows: place i of the group is elements [i repeat, (i + 1) repeat) of the
 * axis, so that its length is n repeat. A dense layer after a map of h x w has repeat h w. group -1: stays as
 * it is. */
typedef struct rt_sym_axis {
    int group;
    int64_t repeat;
} rt_sym_axis;

/* Places that could not be freed, and why. Inputs and outputs of the network are not listed. */
typedef struct rt_sym_fixed {
    int64_t n;
    char name[64], reason[96];
} rt_sym_fixed;

typedef struct rt_symmetry {
    int groups, slots, nfixed;
    int64_t total; /* sum of n over groups: numbers in a set of permutations */
    rt_sym_group *group;
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
 * A set of permutations is int64_t[total]: p = perm + group.offset, and place i of the result is place p[i]
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

/* ---- one call ---- */

typedef struct rt_average_hooks {
    /* what: what is being done; done: 0 .. 1, or NaN when nobody knows. */
    void (*progress)(void *user, const char *what, double done);
    void *user;
    const volatile sig_atomic_t *stop;
} rt_average_hooks;

typedef struct rt_average {
    /* given */
    const rt_config *c;
    const rt_average_hooks *hooks; /* may be NULL */
    rt_pool *pool;
    rt_dataset *data;
    rt_subset train, valid; /* as training cuts them; valid.n may be 0 */
    bool regression;
    rt_model **loaded; /* runs, in order; the first is what the result is saved as */
    int nloaded;
    rt_student *student; /* the network without dropout, over params */
    rt_params *params;
    int64_t floats; /* of a block */
    int models;
    char **names;         /* "runs/teacher", or "runs/teacher, member 3" */
    const float **blocks; /* weights of each; read only */
    rt_symmetry sym;
    /* what a method fills in */
    float *out;      /* (floats): the average */
    float **aligned; /* (models): blocks as they went into the mean; NULL: as given. Owned */
    int64_t *perms;  /* (models, sym.total): permutations; the identity unless set */
    float **matrix;  /* (models, sym.groups): soft methods leave (n, n) matrices; NULL: perms. Owned */
    bool *used;      /* (models): soups may leave some out */
    bool keep_scale; /* repair is not wanted: soups, whose models lie together */
    bool distilled;  /* out is no mean any more */
} rt_average;

RT_INLINE float **rt_average_matrix(const rt_average *a, int model, int group) {
    return &a->matrix[model * a->sym.groups + group];
}
RT_INLINE int64_t *rt_average_perms(const rt_average *a, int model) {
    return a->perms + model * a->sym.total;
}
/* The weights of a model as they go into the mean. */
RT_INLINE const float *rt_average_block(const rt_average *a, int model) {
    return a->aligned[model] ? a->aligned[model] : a->blocks[model];
}

/* Loads and compares the runs, opens the data, finds the symmetries. What cannot be averaged is refused with
 * both sides named: architecture, student, classes, standardisation. */
rt_status rt_average_open(rt_average *a, const rt_config *c, const char *const *runs, int nruns,
                          rt_pool *pool, const rt_average_hooks *hooks) RT_MUST_CHECK;
void rt_average_close(rt_average *a);
/* Says how far it is; RT_E_INTERRUPTED when asked to stop. */
rt_status rt_average_progress(const rt_average *a, const char *what, double done) RT_MUST_CHECK;

/* Makes aligned[m] from blocks[m] and perms[m], and proves on rows of the data that it computes the same:
 * |f - f'| <= 1e-4 of the largest |f|; else RT_E_FAILED. */
rt_status rt_average_align(rt_average *a, int model) RT_MUST_CHECK;
/* out = mean of the blocks that are used, aligned. */
void rt_average_mean(rt_average *a);

/* ---- tools for methods (average_measure.c, bn_refresh.c, repair.c) ---- */

typedef struct rt_average_score {
    double accuracy; /* NaN of a regression */
    double loss;     /* mean -ln p, nats; of a regression in the target's own units */
} rt_average_score;
/* Of n blocks each on its own; `together` (may be NULL): their predictions averaged. */
rt_status rt_average_measure(const rt_average *a, const rt_subset *set, const float *const *blocks, int n,
                             rt_average_score *each, rt_average_score *together) RT_MUST_CHECK;
/* The rows to judge by while averaging: validation rows, or training rows where there are none. At most
 * `most` of them, spread evenly; 0: all. */
rt_status rt_average_rows(const rt_average *a, int64_t most, rt_subset *out) RT_MUST_CHECK;

bool rt_average_has_bn(const rt_average *a);
/* Running statistics of batch normalisation become the means of the batches' over `rows` training rows (0:
 * --stat-rows): a cumulative mean, in train mode, in a fixed order. Nothing happens without BN, or with
 * --no-refresh-bn. */
rt_status rt_average_refresh_bn(const rt_average *a, float *block, int64_t rows) RT_MUST_CHECK;
/* Rescales units that no BN follows, layer by layer, so that mean and deviation of what enters their
 * activation are the means of the models' (aligned, used). Folded into weights and biases. */
rt_status rt_average_repair(const rt_average *a, float *block) RT_MUST_CHECK;

/* ---- methods: average_methods.def ---- */
typedef struct rt_average_method {
    const char *name, *meaning;
    rt_status (*run)(rt_average *a); /* fills in out, aligned, perms, matrix, used */
} rt_average_method;
int rt_average_method_list(const rt_average_method **out);
const rt_average_method *rt_average_method_find(const char *name); /* NULL if unknown */
#define RT_AVERAGE_METHOD(id, name, meaning) rt_status rt_average_by_##id(rt_average *a) RT_MUST_CHECK;
#include "average/average_methods.def"
#undef RT_AVERAGE_METHOD

/* ---- the verb (average_run.c) ---- */
typedef struct rt_average_board {                   /* scores on some rows */
    int64_t rows;                                   /* 0: there are none */
    rt_average_score mean, best, average, ensemble; /* models: mean, and the one that is best on these rows */
} rt_average_board;
typedef struct rt_average_result {
    int models, used;
    int64_t parameters;
    bool regression, distilled; /* distilled: no mean any more */
    double seconds;
    rt_average_board valid, test;
} rt_average_result;
void rt_average_write_scores(rt_json *j, const rt_average_result *r); /* "scores": {...} */
rt_status rt_average_run(rt_config *c, const char *const *runs, int nruns, rt_pool *pool,
                         const rt_average_hooks *hooks, rt_average_result *out) RT_MUST_CHECK;

#endif
