/*
 * train_int.h - what the files of this module share.
 */
#ifndef RT_TRAIN_TRAIN_INT_H
#define RT_TRAIN_TRAIN_INT_H

#include "base/file.h"
#include "io/io.h"
#include "model/model.h"
#include "model/run.h"
#include "perturb/perturb.h"
#include "step/step.h"
#include "train/train.h"

/* ---- teachers ---- */
/* Networks of one kind, or a file of outputs. */
typedef struct rt_teacher_part {
    const char *name; /* of the first of them */
    rt_model *model;  /* NULL: stored outputs */
    int members;
    int64_t outputs;
    char digest[65]; /* of all that decides what it answers */
    int64_t rows;    /* of stored outputs */
    float *logits;   /* (rows, members, outputs); of stored outputs, and while they are computed */
} rt_teacher_part;
typedef struct rt_teacher {
    rt_teacher_part *part;
    int nparts;
    char **names; /* as given */
    int64_t nnames;
    const rt_model *model; /* all of it, if it is networks of one kind: what can run in a step; else NULL */
    const rt_model *first; /* the first model of all; NULL: none, outputs are stored */
    int members;
    int64_t outputs;
    const float **blocks; /* weights of the networks of `model` */
    char digest[65];      /* of all parts */
    int64_t rows;
    float *logits; /* (rows, members, outputs); NULL before they are computed */
} rt_teacher;
/* One or several (a list of config.h) of DIR | FILE.safetensors | logits:FILE.npy, as one ensemble; v3: it answers with
 * the same bits on every x86-64-v3 processor */
rt_status rt_teacher_open(rt_teacher **out, const char *list, bool v3) RT_MUST_CHECK;
/* The first run or model file of such a list; NULL: there is none. */
rt_status rt_teacher_first_run(const char *list, char **out) RT_MUST_CHECK;
void rt_teacher_destroy(rt_teacher **t);
rt_status rt_teacher_check(const rt_teacher *t, const rt_dataset *d,
                           int64_t rows) RT_MUST_CHECK; /* made for this data? */
/* Can it run inside a step? `why` it must begins the message. */
rt_status rt_teacher_check_online(const rt_teacher *t, const char *why) RT_MUST_CHECK;
/* Fills in the outputs for all rows of p, from a file in dir if there is one for this teacher and data,
 * else into it. */
rt_status rt_teacher_compute(rt_teacher *t, const rt_part *p, const char *data_hash, const char *dir,
                             rt_pool *pool, const volatile sig_atomic_t *stop) RT_MUST_CHECK;
void rt_teacher_standardise(
    rt_teacher *t, const rt_target *by); /* regression: from (mean, variance) to the student's scaling */
void rt_teacher_gather(const rt_teacher *t, const int64_t *source, int64_t rows,
                       float *out); /* (members, rows, outputs) */
/* Mean KL over pairs of different teachers, on the first rows of a set; NaN of one teacher. */
rt_status rt_teacher_diversity(const rt_teacher *t, const rt_subset *rows, int64_t most,
                               double *out) RT_MUST_CHECK;

/* ---- inputs besides the data set's ---- */
typedef struct rt_aux {
    bool outside; /* out of distribution: batches of their own; else joined to the training rows */
    rt_dataset *source;
    int64_t n, floats; /* rows, floats of one */
    float *rows;       /* (n, row...) in the data set's shape */
    rt_part part;      /* joined: training rows, then these */
    float *x, *target;
    int32_t *label;
    rt_subset set;
    rt_prefetch *prefetch;
} rt_aux;
rt_status rt_aux_open(rt_aux *a, const rt_dataset *d, const rt_config *c, bool outside,
                      int64_t batch) RT_MUST_CHECK;
rt_status rt_aux_extend(const rt_aux *a, rt_subset *train) RT_MUST_CHECK;
rt_status rt_aux_start(rt_aux *a, const rt_batch_spec *like, const uint64_t *seeds, int members,
                       int64_t step) RT_MUST_CHECK;
rt_status rt_aux_next(rt_aux *a, int members, int64_t rows, const float **out) RT_MUST_CHECK;
void rt_aux_close(rt_aux *a);

/* ---- diversity ---- */
enum { RT_PROBE_MAX = 8 };
typedef struct rt_probe rt_probe;
rt_status rt_probe_create(rt_probe **out, const rt_distill_config *what, rt_params *params,
                          const rt_subset *set, rt_shape row, rt_pool *pool) RT_MUST_CHECK;
void rt_probe_destroy(rt_probe **p);
void rt_probe_run(rt_probe *p, const float *block, const float *const *teachers, double temperature,
                  const int32_t pair[2], uint64_t seed, int64_t step);
int rt_probe_count(const rt_probe *p);
const char *rt_probe_get(const rt_probe *p, int i, double *value); /* name */

/* ---- checkpoints ---- */
/* What a run has to remember besides what follows from its configuration. */
typedef struct rt_progress_state {
    int64_t epoch, index, step; /* next batch: index of epoch; index == batches: validation is next */
    int64_t log_position;
    double seconds;
    double *loss_sum, *correct; /* (members): of the current epoch */
    double *kept_loss, *kept_accuracy,
        *kept_epoch; /* (members): of the weights to keep so far; epoch 0: none yet */
    double *lowest;  /* (members): training loss of an epoch so far */
} rt_progress_state;
typedef struct rt_checkpoint {
    const char *config_hash, *data_hash;
    int all, first, members; /* of the run; of these, what is here */
    int64_t floats;
    rt_step *step;  /* values, state */
    rt_model *best; /* best weights so far; NULL: the last ones are kept */
    rt_progress_state *at;
} rt_checkpoint;
rt_status rt_checkpoint_write(const rt_checkpoint *c, const char *path) RT_MUST_CHECK;
rt_status rt_checkpoint_read(const rt_checkpoint *c, const char *path) RT_MUST_CHECK;
rt_status rt_checkpoint_epoch(const char *path, int64_t *epoch)
    RT_MUST_CHECK; /* where it is, before anything can be read into */

/* ---- the trainer ---- */
enum { RT_SPEC_MAX = 96 };
typedef struct rt_phase {
    char student[RT_SPEC_MAX];
    const rt_objective *objective;
    int64_t first, epochs;
} rt_phase;
/* A part of an ensemble that is trained by itself (portions.c). */
typedef struct rt_portion {
    const rt_config *whole;
    const rt_run_dir *dir; /* of the whole: members go there */
    int first;             /* number of the first member */
} rt_portion;
/* What is trained, from the words of the configuration (method.c). */
typedef struct rt_aim {
    const char *method;
    const rt_perturb *perturb;
    rt_phase phases[RT_PHASES_MAX];
    int nphases, phase; /* the phase follows from the epoch; it changes when an epoch ends */
    bool keep_best, keep_by_loss;
} rt_aim;
/* The rows that it is trained on and validated by (trainer_data.c). */
typedef struct rt_train_data {
    rt_dataset *set;
    char hash[65]; /* of everything a run reads: data, --aux, teacher */
    bool regression;
    rt_subset train, valid;
    rt_subset labelled;   /* train without --aux */
    double *class_weight; /* --class-weights; NULL: none */
    rt_batch_spec batches;
    int64_t nbatches, epoch_rows; /* per epoch */
    rt_prefetch *prefetch;
    float *target; /* (members, batch): of a regression, standardised */
} rt_train_data;
/* What is learned from besides labels (teaching.c). */
typedef struct rt_teaching {
    rt_teacher *teacher; /* NULL: none */
    float *rows;         /* (members, teachers, batch, outputs): its stored outputs for a batch */
    double diversity;    /* of stored outputs on the probe's rows; NaN: none */
    rt_aux aux;
    rt_reconstruct_report reconstruction; /* of --init-from-teacher */
    rt_reconstruct_report unmatched; /* the same before teachers were renumbered; layers 0: they were not */
} rt_teaching;
/* The networks of a phase, and what runs them (trainer_phase.c). */
typedef struct rt_networks {
    rt_schedule schedule;
    double *group_decay;
    rt_model *model; /* what is trained; its weights are the ones kept */
    rt_model *ship;  /* what is validated and saved: the same, or what it collapses to */
    rt_step *step;
    rt_probe *probe;
    rt_predictor *predictor; /* of validation, as the next three; NULL without it */
    rt_row row;              /* of one network */
    float *y;                /* (student members, outputs): of one row */
    const float **blocks;    /* (members) */
} rt_networks;
/* The members of the run, those of this rank, and their numbers (trainer_ranks.c). */
enum { RT_MEMBER_NUMBERS = 10 };
typedef struct rt_members {
    int all, own;
    rt_team team;     /* which are this rank's, and what ranks work on them together */
    int64_t agree_at; /* step before which ranks agree again on whether to stop */
    double agreed;    /* when they did last, and before which step */
    int64_t agreed_at;
    /* (RT_MEMBER_NUMBERS, all): what at and the next four point to, where this rank's begin */
    double *numbers;
    double *packed; /* (all, RT_MEMBER_NUMBERS): the same on its way */
    size_t *offset; /* (ranks + 1) */
    double *lr, *losses, *valid_loss, *valid_accuracy;
    double *correct; /* (own), as are seeds */
    uint64_t *seeds;
} rt_members;
/* Clocks of this session, and what it tells (trainer_log.c). */
typedef struct rt_train_log {
    double started, seconds_before, last_progress, last_checkpoint;
    int64_t first_step, rows_done;
    const char *doubt; /* of the result, at the end */
    rt_str line;
} rt_train_log;
typedef struct rt_trainer {
    unsigned verb;             /* RT_VERB_TRAIN or RT_VERB_DISTILL */
    rt_config config;          /* as given, then with everything filled in; texts are borrowed */
    const rt_config *c;        /* that */
    const rt_portion *portion; /* NULL: the run is the whole */
    bool tells;                /* of its parts: not so candidates and later portions */
    const rt_train_hooks *hooks;
    char config_hash[65], settings_hash[65]; /* with and without the names of data and teacher */
    rt_pool *pool;
    rt_run_dir dir;
    rt_aim aim;
    rt_train_data data;
    rt_teaching teach;
    rt_networks net;
    rt_members members;
    rt_train_log log;
    rt_progress_state at; /* the position */
    rt_checkpoint checkpoint;
} rt_trainer;
/* NULL, or the flag that asks to stop. */
static inline const volatile sig_atomic_t *rt_trainer_stop(const rt_trainer *t) {
    return t->hooks ? t->hooks->stop : NULL;
}

/* ---- what is trained (method.c) ---- */
/* Method, objective, perturbation, teacher, phases. */
rt_status rt_trainer_resolve(rt_trainer *t) RT_MUST_CHECK;
static inline const rt_phase *rt_aim_phase(const rt_aim *a) { /* of now */
    return &a->phases[a->phase];
}
static inline bool rt_aim_last(const rt_aim *a) {
    return a->phase == a->nphases - 1;
}
int rt_aim_phase_at(const rt_aim *a, int64_t epoch);
const char *rt_aim_kept(const rt_aim *a); /* which weights are kept: "loss", "accuracy", "last" */
/* All but the architecture; of this phase. */
rt_status rt_trainer_student(const rt_trainer *t, rt_student_config *s) RT_MUST_CHECK;
rt_distill_config rt_trainer_what(const rt_trainer *t);
double rt_trainer_temperature(const rt_trainer *t, double epoch);       /* fractional; of this phase */
double rt_trainer_last_temperature(const rt_trainer *t, int64_t epoch); /* of its last step */

/* ---- rows (trainer_data.c) ---- */
rt_status rt_train_data_open(rt_train_data *d, rt_config *c) RT_MUST_CHECK;
/* Into rows for training and validation; teacher: its model, or NULL. */
rt_status rt_train_data_split(rt_train_data *d, const rt_config *c, const rt_model *teacher) RT_MUST_CHECK;
rt_status rt_train_data_batches(rt_train_data *d, const rt_config *c, const rt_perturb *perturb,
                                int members) RT_MUST_CHECK;
rt_status rt_train_data_start(rt_train_data *d, const rt_members *m,
                              const rt_progress_state *at) RT_MUST_CHECK;
/* The next batch of the members, and targets as networks see them. */
rt_status rt_train_data_next(rt_train_data *d, const rt_target *as, int members,
                             const rt_batch **out) RT_MUST_CHECK;
void rt_train_data_close(rt_train_data *d);
/* Rows to look at while training: held out, if there are such. */
static inline const rt_subset *rt_train_data_judges(const rt_train_data *d) {
    return d->valid.n > 0 ? &d->valid : &d->train;
}
static inline double rt_train_data_last_step(const rt_train_data *d,
                                             int64_t epoch) { /* as a fractional epoch */
    return (double)epoch + (double)(d->nbatches - 1) / (double)d->nbatches;
}
rt_status rt_class_weights(rt_trainer *t) RT_MUST_CHECK; /* from the labelled rows (class_weights.c) */

/* ---- teaching (teaching.c) ---- */
rt_status rt_teaching_open(rt_trainer *t) RT_MUST_CHECK;
rt_status rt_teaching_make_room(rt_teaching *g, int members,
                                int64_t batch) RT_MUST_CHECK; /* for stored outputs */
rt_status rt_teaching_ask(rt_trainer *t) RT_MUST_CHECK;       /* for all outputs; the run directory is open */
void rt_teaching_pair(const rt_teaching *g, int64_t seed, int64_t step, uint64_t purpose, int32_t pair[2]);
/* What teacher and --aux add to a batch. */
rt_status rt_teaching_next(rt_teaching *g, const rt_batch *b, int members, rt_step_io *io) RT_MUST_CHECK;
void rt_teaching_close(rt_teaching *g);
bool rt_trainer_reconstructs(const rt_trainer *t); /* --init-from-teacher */
/* Fills a block of the student from the teachers (init_teacher.c). */
rt_status rt_trainer_reconstruct(rt_trainer *t, float *block) RT_MUST_CHECK;

/* ---- networks (trainer_phase.c, trainer_valid.c) ---- */
rt_status rt_trainer_enter(rt_trainer *t, int phase) RT_MUST_CHECK; /* those of a phase, with fresh weights */
rt_status rt_trainer_grow(rt_trainer *t) RT_MUST_CHECK;  /* the next phase, from the weights this one keeps */
void rt_networks_keep(const rt_networks *n, int member); /* its weights of now */
/* What a block collapses to becomes network m of what is shipped. */
rt_status rt_networks_merge(const rt_networks *n, const float *block, int m) RT_MUST_CHECK;
/* What a network says of a row (rt_predictor_take), into n->row; false: it is not finite. */
bool rt_networks_read(rt_networks *n, const float *y, int64_t stride);
void rt_networks_close(rt_networks *n);
rt_status rt_trainer_validate(rt_trainer *t) RT_MUST_CHECK;

/* ---- members and ranks (trainer_ranks.c) ---- */
rt_status rt_members_open(rt_members *m, rt_progress_state *at, const rt_config *c) RT_MUST_CHECK;
void rt_members_close(rt_members *m);
/* Of a row of numbers, such as at.loss_sum: those of all members. Those of others are as old as the last
 * rt_members_gather. */
static inline const double *rt_members_all(const rt_members *m, const double *own) {
    return own - m->team.members.lo;
}
double rt_members_mean(const rt_members *m, const double *own); /* over all */
rt_status rt_members_gather(rt_members *m) RT_MUST_CHECK;
/* Before a step: does a rank want to stop? All find the same. */
rt_status rt_trainer_agree(rt_trainer *t, bool *stop) RT_MUST_CHECK;
/* st, or RT_E_INTERRUPTED if another rank was. */
rt_status rt_trainer_together(rt_status st) RT_MUST_CHECK;
/* The same configuration and data everywhere? */
rt_status rt_trainer_check_ranks(const rt_trainer *t) RT_MUST_CHECK;
/* The block of a member of the run, from the rank that has it to rank 0; `from` and `to` are NULL elsewhere. */
rt_status rt_member_to_first(const float *from, float *to, int64_t floats, int all, int member) RT_MUST_CHECK;

/* ---- clocks, log.jsonl, metrics.json, progress (trainer_log.c) ---- */
void rt_trainer_start_clocks(rt_trainer *t);    /* at the position of now */
double rt_trainer_seconds(const rt_trainer *t); /* all sessions */
double rt_trainer_rate(const rt_trainer *t);    /* samples per second of this session */
rt_status rt_trainer_log_event(rt_trainer *t, const char *event) RT_MUST_CHECK;
rt_status rt_trainer_log_epoch(rt_trainer *t) RT_MUST_CHECK;
rt_status rt_trainer_write_metrics(rt_trainer *t, const rt_train_result *r) RT_MUST_CHECK;
rt_status rt_trainer_read_metrics(const char *dir, rt_train_result *r) RT_MUST_CHECK; /* of a finished run */
void rt_trainer_progress(rt_trainer *t, bool epoch_end, const char *note);
/* Of runs made of smaller ones: a word on where they are, and their result as metrics.json. */
void rt_train_tell(const rt_train_hooks *hooks, int64_t epochs, const char *note);
rt_status rt_train_write_result(const rt_run_dir *dir, const rt_train_result *r, const char *extra,
                                int64_t count, const char *no_accuracy) RT_MUST_CHECK;
/* Rows and classes of the parts, as notes (tell_parts.c). */
rt_status rt_train_tell_parts(const rt_train_hooks *hooks, int64_t epochs, const rt_dataset *d,
                              const rt_subset *train, const rt_subset *valid) RT_MUST_CHECK;
/* Whether training was in vain (doubt.c): the lowest losses so far, at the end of an epoch, and a sentence, "" if not. */
void rt_trainer_lowest(rt_trainer *t);
rt_status rt_trainer_doubt(rt_trainer *t, char out[RT_DOUBT_MAX]) RT_MUST_CHECK;

/* ---- the target of a regression (target.c) ---- */
/* The transform that is asked for (NULL or auto: the one that suits) fitted to these rows, and mean and std if there is one. */
rt_status rt_target_fit(rt_target *t, const rt_subset *rows, const char *transform) RT_MUST_CHECK;
rt_status rt_target_follow(rt_target *t, const rt_model *teacher, const char *transform) RT_MUST_CHECK;
rt_status rt_target_name_unit(rt_target *t,
                              const char *unit) RT_MUST_CHECK; /* NULL: the teacher's, or none */
/* As networks see it. */
static inline float rt_target_scale(const rt_target *t, float y) {
    return (float)((rt_warp_apply(&t->warp, (double)y) - t->mean) / t->std);
}
void rt_train_tell_target(const rt_train_hooks *hooks, int64_t epochs, const rt_target *t);

/* ---- runs ---- */
rt_config rt_trainer_whole(const rt_trainer *t); /* the configuration, of the ensemble a portion is part of */
rt_status rt_trainer_open(rt_trainer *t) RT_MUST_CHECK; /* all parts, up to the first step; no files */
void rt_trainer_close(rt_trainer *t);
rt_status rt_trainer_run(const rt_config *c, unsigned verb, const rt_train_hooks *hooks,
                         rt_train_result *out) RT_MUST_CHECK;
rt_status rt_trainer_run_portion(const rt_config *c, const rt_portion *portion, const rt_train_hooks *hooks,
                                 rt_train_result *out) RT_MUST_CHECK;
/* A hyper ensemble: search, choice, retraining; c is resolved, and c->resume says whether there is
 * something to go on with. */
rt_status rt_hyper_run(const rt_config *c, const rt_train_hooks *hooks, rt_train_result *out) RT_MUST_CHECK;
/* Members in portions, one after another. */
bool rt_portions_wanted(const rt_config *c, unsigned verb);
rt_status rt_portions_run(const rt_config *c, const rt_train_hooks *hooks,
                          rt_train_result *out) RT_MUST_CHECK;
/* A run that version 0.1 began: its settings as they were meant, and its numbers as they are meant now (older.c). */
rt_status rt_older_settings(rt_trainer *t) RT_MUST_CHECK;
void rt_older_schedule(rt_trainer *t);
void rt_older_kept(rt_trainer *t);

#endif
