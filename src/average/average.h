/*
 * average.h - several trained networks of one architecture become one, by aligning and averaging their
 * weights.
 *
 * The hidden units of a network may be renumbered without changing what it computes. Two networks that
 * learned the same features in another order are far apart in weight space, and their mean computes nothing;
 * renumbered so that like units have like numbers (align/align.h), the mean can work.
 *
 *   rt_average           a call: models, data, and what a method leaves behind
 *   average_methods.def  the methods, one line and one function each
 */
#ifndef RT_AVERAGE_AVERAGE_H
#define RT_AVERAGE_AVERAGE_H

#include "align/align.h"
#include "base/json.h"
#include "base/rng.h"
#include "config/config.h"
#include "model/model.h"
#include "model/run.h"
#include "train/train.h"
#include <string.h>

/* ---- one call ---- */

typedef struct rt_average_hooks {
    /* what: the stage of the work; done: 0 .. 1 of it. */
    void (*progress)(void *user, const char *what, double done);
    void *user;
    const volatile sig_atomic_t *stop;
} rt_average_hooks;

enum { RT_AVERAGE_WARNING = 256 };

/* Where models come from. */
typedef struct rt_average_origin {
    const char *name;
    bool known; /* it is a run, or a file in one: the configuration says which rows it saw */
    rt_config config;
} rt_average_origin;

typedef struct rt_average {
    /* given */
    const rt_config *c;            /* &config */
    rt_config config;              /* as called, and what the runs know better: rows, augmentation */
    rt_average_origin *runs;       /* (nloaded) */
    const rt_average_hooks *hooks; /* may be NULL */
    rt_pool *pool;
    rt_dataset *data;
    rt_subset train, valid; /* as the runs cut them (average_rows.c); valid.n may be 0 */
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
    float *out;        /* (floats): the average */
    float **aligned;   /* (models): blocks as they went into the mean; NULL: as given. Owned */
    int64_t *perms;    /* (models, sym.total): permutations; the identity unless set */
    float **matrix;    /* (models, sym.bundles): soft methods leave (n, n) matrices; NULL: perms. Owned */
    bool *used;        /* (models): soups may leave some out */
    bool keep_scale;   /* repair is not wanted: soups, whose models lie together */
    bool distilled;    /* out is no mean any more */
    const char *stage; /* of the work, reported while rows are predicted; NULL: the caller reports */
    char warning[RT_AVERAGE_WARNING]; /* what the caller should know; empty: nothing */
} rt_average;

RT_INLINE float **rt_average_matrix(const rt_average *a, int model, int bundle) {
    return &a->matrix[model * a->sym.bundles + bundle];
}
RT_INLINE int64_t *rt_average_perms(const rt_average *a, int model) {
    return a->perms + model * a->sym.total;
}
/* --teacher-mean: together, the models say the mean of their logits instead of their probabilities. */
RT_INLINE bool rt_average_mean_logits(const rt_average *a) {
    return !a->regression && strcmp(a->c->teacher_mean, "logits") == 0;
}
RT_INLINE int rt_average_used(const rt_average *a) {
    int used = 0;
    for (int m = 0; m < a->models; m++)
        used += a->used[m];
    return used;
}
/* The weights of a model as they go into the mean. */
RT_INLINE const float *rt_average_block(const rt_average *a, int model) {
    return a->aligned[model] ? a->aligned[model] : a->blocks[model];
}

/* Loads and compares the runs, opens the data, finds the symmetries. What cannot be averaged is refused with
 * both sides named: architecture, student, classes, standardisation, rows. a must stay where it is. */
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

/* ---- tools for methods (average_measure.c, repair.c) ---- */

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

/* Running statistics of batch normalisation become the means of the batches' over `rows` training rows (0:
 * --stat-rows): a cumulative mean, in train mode, in a fixed order. Nothing happens without BN, or with
 * --no-refresh-bn. */
rt_status rt_average_refresh_bn(const rt_average *a, float *block, int64_t rows) RT_MUST_CHECK;
/* Rescales units that no BN follows, layer by layer, so that mean and deviation of what enters their
 * activation are the means of the models' (aligned, used). Folded into weights and biases. */
rt_status rt_average_repair(const rt_average *a, float *block) RT_MUST_CHECK;

/* ---- methods: average_methods.def ---- */
typedef enum rt_chosen { RT_CHOSEN_NEVER, RT_CHOSEN_LABELS, RT_CHOSEN_OTHERS } rt_chosen;
typedef struct rt_average_method {
    const char *name, *meaning;
    rt_chosen chosen;                /* where no method is named */
    rt_status (*run)(rt_average *a); /* fills in out, aligned, perms, matrix, used */
} rt_average_method;
int rt_average_method_list(const rt_average_method **out);
const rt_average_method *rt_average_method_find(const char *name); /* NULL if unknown */
#define RT_AVERAGE_METHOD(id, name, chosen, meaning)                                                         \
    rt_status rt_average_by_##id(rt_average *a) RT_MUST_CHECK;
#include "average/average_methods.def"
#undef RT_AVERAGE_METHOD

/* ---- the verb (average_run.c) ---- */
typedef struct rt_average_board {                   /* scores on some rows */
    int64_t rows;                                   /* 0: there are none */
    rt_average_score mean, best, average, ensemble; /* models: mean, and the one that is best on these rows */
} rt_average_board;
typedef struct rt_average_result {
    const char *method;
    int models, used;
    int64_t parameters;
    bool regression, distilled; /* distilled: no mean any more */
    char warning[RT_AVERAGE_WARNING];
    double seconds;
    rt_average_board valid, test;
} rt_average_result;
/* As keys of an open object. */
void rt_average_result_write(const rt_average_result *r, const char *run, rt_json *j);
void rt_average_write_scores(rt_json *j, const rt_average_result *r); /* "scores": {...} */
rt_status rt_average_run(const rt_config *c, const char *const *runs, int nruns, rt_pool *pool,
                         const rt_average_hooks *hooks, rt_average_result *out) RT_MUST_CHECK;

#endif
