/*
 * train.h - from a configuration to a trained run, and from a run back to predictions.
 *
 *   rt_config    every parameter of a run, one line each in params.def: parser, --help, YAML, saved resolved config, docs
 *   rt_step      the compiled training step of one or more members: graph, plan, execs, optimiser
 *   rt_predictor networks in evaluation mode over many rows
 *   rt_model     one or more trained members with all they need to predict: weights, standardisation, class names
 *   rt_train_run the verb `train`: data, members, schedule, validation, checkpoints, files
 */
#ifndef RT_TRAIN_TRAIN_H
#define RT_TRAIN_TRAIN_H

#include "base/file.h"
#include "base/json.h"
#include "base/pool.h"
#include "base/str.h"
#include "data/data.h"
#include "distill/distill.h"
#include "eval/decision.h"
#include "io/io.h"
#include "nn/nn.h"
#include "plan/plan.h"
#include <signal.h>

/* ---- configuration ---- */
typedef struct rt_config {
#define RT_PARAM_STR(field, def, verbs, alias, meta, help) const char *field;
#define RT_PARAM_I64(field, def, lo, hi, verbs, alias, meta, help) int64_t field;
#define RT_PARAM_F64(field, def, lo, hi, verbs, alias, meta, help) double field;
#define RT_PARAM_BOOL(field, def, verbs, alias, meta, help) bool field;
#define RT_PARAM_ENUM(field, def, choices, verbs, alias, meta, help) const char *field;
#define RT_PARAM_LIST(field, verbs, alias, meta, help)                                                       \
    const char *field; /* items, a line break between two */
#include "train/params.def"
#undef RT_PARAM_STR
#undef RT_PARAM_I64
#undef RT_PARAM_F64
#undef RT_PARAM_BOOL
#undef RT_PARAM_ENUM
#undef RT_PARAM_LIST
    struct rt_config_state *state; /* which were set, by what; owned strings */
} rt_config;

/* Verbs, as bits: which commands know a parameter. */
enum {
    RT_VERB_TRAIN = 1,
    RT_VERB_EVAL = 2,
    RT_VERB_PREDICT = 4,
    RT_VERB_DATA = 8,
    RT_VERB_INFO = 16,
    RT_VERB_BENCH = 32,
    RT_VERB_DISTILL = 64,
    RT_VERB_AVERAGE = 128,
    RT_VERB_REPORT = 256,
    RT_VERB_RECIPE = 512,
    RT_VERB_EXPORT = 1024,
    RT_VERB_CALIBRATE = 2048,
    RT_VERB_ALL = 4095,
    RT_PARAM_HOW = 1 << 16,  /* changes how a run is done, not its result */
    RT_PARAM_ONCE = 1 << 17, /* concerns one call only: not saved */
};

typedef enum rt_param_kind {
    RT_KIND_STR,
    RT_KIND_I64,
    RT_KIND_F64,
    RT_KIND_BOOL,
    RT_KIND_ENUM,
    RT_KIND_LIST
} rt_param_kind;
typedef struct rt_param_info {
    const char *key; /* "label-smoothing": the flag without dashes, and the YAML key */
    rt_param_kind kind;
    const char *def;     /* default as text */
    double lo, hi;       /* numbers */
    const char *choices; /* enums: "sgd|adam|adamw" */
    unsigned verbs;
    const char *alias; /* short or old name, or NULL */
    const char *meta;  /* "N", "SPEC", "DIR" */
    const char *help;
} rt_param_info;
int rt_config_list(const rt_param_info **out);

rt_status rt_config_init(rt_config *c) RT_MUST_CHECK; /* defaults */
void rt_config_deinit(rt_config *c);
/* Sets one parameter from text. origin is for messages ("--epochs", "run.yaml:12:3"). Unknown keys and
 * keys the verb does not know fail with the nearest known one. Later settings win, but a file never
 * overrides what the command line set. */
rt_status rt_config_set(rt_config *c, unsigned verb, const char *key, const char *value, const char *origin,
                        bool from_file) RT_MUST_CHECK;
rt_status rt_config_load(rt_config *c, unsigned verb,
                         const char *path) RT_MUST_CHECK; /* YAML: a flat mapping, '-' or '_' in keys */
bool rt_config_is_set(const rt_config *c, const char *key);
void rt_config_write(const rt_config *c, unsigned verb,
                     rt_str *out);     /* YAML of every parameter the verb knows */
bool rt_config_v3(const rt_config *c); /* --isa v3 */
void rt_config_hash(const rt_config *c, unsigned verb,
                    char out[65]); /* of what decides the result: not out, threads, progress, ... */

/* ---- one training step of one or more members ---- */
typedef struct rt_step_options {
    int64_t batch;
    int members; /* networks of the same kind that are trained side by side */
    int of;      /* as part of so many; 0: they are all */
    /* optimiser */
    const char *optimiser; /* "sgd", "adam", "adamw" */
    double momentum, beta1, beta2, eps;
    bool nesterov;
    double weight_decay;       /* added to the gradient (sgd, adam) or decoupled (adamw) */
    const char *decay_rule;    /* "all", "weights" (no decay on biases and BN) */
    const double *group_decay; /* per depth group, of all but BN; or NULL */
    double clip_norm;          /* 0: none */
    int64_t slice;             /* 0: chosen */
} rt_step_options;

typedef struct rt_step rt_step;
rt_status rt_step_create(rt_step **out, const rt_distill_config *what, rt_params *params, rt_step_options o,
                         rt_pool *pool) RT_MUST_CHECK;
void rt_step_destroy(rt_step **s);
float *rt_step_values(rt_step *s, int member);                 /* parameter block */
float *rt_step_state(rt_step *s, int member, int64_t *floats); /* optimiser state, for checkpoints */
size_t rt_step_bytes(const rt_step *s);
const rt_plan *rt_step_plan(const rt_step *s);
double rt_step_flops(const rt_step *s); /* of one step of one member */
/* One step of every member. x (members, batch, row...), label / target (members, batch). t counts from
 * 0; lr[m] per member; losses[m], correct[m] (may be NULL) out. Members that are frozen (active[m] ==
 * false; active may be NULL) are skipped. Batches of another size than `batch` compile a second plan
 * once. Fails with RT_E_NUMERIC when a loss is not finite, naming member and step. */
typedef struct rt_step_io {
    const float *x;
    const int32_t *label;
    const float *target;
    int64_t rows;
    int64_t t;
    const double *lr;
    const uint64_t *seeds;
    const bool *active;
    double *losses, *correct;
    /* distillation */
    float temperature;
    int32_t pair[2];      /* drawn teachers (and student members) i, j */
    const float *teacher; /* (members, teachers, rows, outputs): stored outputs, member-major in each batch */
    const float *const *teacher_blocks; /* parameters of teachers that run inside the step */
    const float *ood;                   /* (members, rows, row...) */
    double *profile; /* NULL, or added to: seconds of the actions of rt_step_plan, with one worker */
    const volatile sig_atomic_t *stop; /* NULL, or: RT_E_INTERRUPTED from within a long step once it is set */
} rt_step_io;
rt_status rt_step_run(rt_step *s, const rt_step_io *io) RT_MUST_CHECK;
/* After RT_E_INTERRUPTED: no member was changed, the step can be done again. */
bool rt_step_intact(const rt_step *s);
/* Compiles the step for a smaller last batch ahead of time, so that running allocates nothing. */
rt_status rt_step_prepare(rt_step *s, int64_t rows) RT_MUST_CHECK;

/* ---- schedules: constant | step:E1,E2:f | cosine | one-cycle[:LEN] | waves:LEN, each with warm-up; a pure
 * function of progress ---- */
typedef struct rt_schedule {
    const char *name;
    double lr;           /* base; one-cycle: the initial one */
    double warmup;       /* epochs */
    double warmup_start; /* fraction of lr at the start, 0.01 */
    double epochs;
    double milestones[16]; /* step: epochs */
    int nmilestones;
    double gamma; /* step: factor */
    double
        cycle; /* one-cycle: epochs up to 10 lr and back, the rest falls to lr / 1000; waves: epochs of one */
} rt_schedule;
rt_status rt_schedule_parse(rt_schedule *out, const char *text, double lr, double warmup,
                            double epochs) RT_MUST_CHECK;
double rt_schedule_lr(const rt_schedule *s, double epoch); /* fractional epoch = steps / steps per epoch */

/* ---- evaluation mode over many rows ---- */
typedef struct rt_predictor rt_predictor;
/* Outputs of one network for rows [row, row + n) of the set: student member s of row r is at y + s *
 * stride + r * outputs. */
typedef void (*rt_predictor_take)(void *user, int network, int64_t row, int64_t n, const float *y,
                                  int64_t stride);
rt_status rt_predictor_create(rt_predictor **out, const rt_student *student, rt_params *params, int64_t batch,
                              int networks, rt_pool *pool) RT_MUST_CHECK;
void rt_predictor_destroy(rt_predictor **p);
/* Whether to keep the weights of so many networks as their kernels want them, or one after the other. */
bool rt_keep_networks(const rt_params *p, int networks);
/* A promise: from now on the same block means the same numbers in it, from call to call. */
void rt_predictor_keep_blocks(rt_predictor *p);
rt_status rt_predictor_run(rt_predictor *p, const rt_subset *set, const float *const *blocks, int members, rt_predictor_take take, void *user,
                           const volatile sig_atomic_t *stop) RT_MUST_CHECK;

/* ---- models ---- */
typedef struct rt_model rt_model;
/* A run directory (all members), or one or several model files of equal architecture. */
rt_status rt_model_load(rt_model **out, const char *path) RT_MUST_CHECK;
void rt_model_destroy(rt_model **m);
int rt_model_networks(const rt_model *m);                     /* files */
bool rt_model_given(const rt_model *m, const char *function); /* false: NULL, and a message is left */
int rt_model_members(const rt_model *m);                      /* networks times the members inside each */
const rt_student *rt_model_student(const rt_model *m);
rt_task rt_model_task(const rt_model *m);
/* What rt_model_predict gives means (eval/eval.h). */
rt_reading rt_model_reading(const rt_model *m);
/* The same with the temperature that was fitted to the model: what it answers to users. */
rt_reading rt_model_answering(const rt_model *m);
const rt_decision *rt_model_decision(const rt_model *m); /* of `calibrate` (model_decision.c) */
/* Rewrites the file of a model, or the first of a run, with another decision; NULL: none. */
rt_status rt_model_store_decision(const char *path, const char *text) RT_MUST_CHECK;
int64_t rt_model_outputs(const rt_model *m); /* classes, or 2 */
rt_shape rt_model_input(const rt_model *m);
const rt_net *rt_model_net(const rt_model *m);
const rt_params *rt_model_params(const rt_model *m);
const float *rt_model_block(const rt_model *m, int network);
const char *rt_model_class_name(const rt_model *m, int64_t k);
const char *rt_model_meta(const rt_model *m, const char *key); /* provenance; NULL if absent */
/* Does its provenance have this value under this key? */
rt_status rt_model_comes_from(const rt_model *m, const char *key, const char *value, bool *out) RT_MUST_CHECK;
rt_data_like rt_model_like(const rt_model *m); /* to open data for it; borrowed */
/* Is that data's hash in its provenance? */
rt_status rt_model_trained_on(const rt_model *m, const char *hash, bool *out) RT_MUST_CHECK;
double rt_model_target_mean(const rt_model *m); /* regression: the target is standardised by these */
double rt_model_target_std(const rt_model *m);
/* Refuses data the model was not made for: other input shape, task, number or names of classes (both
 * sides named). */
rt_status rt_model_check_data(const rt_model *m, const rt_dataset *d) RT_MUST_CHECK;
/* Rows per run of the predictions; 0: the default. Not part of the result. */
void rt_model_set_batch(rt_model *m, int64_t rows);
/* Raw inputs (n, row...) -> (n, members, outputs): logits; regression: mean and variance in the target's
 * own units. stop may be NULL. */
rt_status rt_model_predict(const rt_model *m, const rt_part *p, rt_pool *pool, float *out,
                           const volatile sig_atomic_t *stop) RT_MUST_CHECK;
/* The same in two steps, for many parts: a predictor that takes `rows` rows at a time (0: as many as
 * rt_model_set_batch says), and its use. It must not outlive the model. */
rt_status rt_model_predictor(const rt_model *m, rt_predictor **out, int64_t rows,
                             rt_pool *pool) RT_MUST_CHECK;
rt_status rt_model_predict_by(const rt_model *m, rt_predictor *by, const rt_part *p, float *out,
                              const volatile sig_atomic_t *stop) RT_MUST_CHECK;

/* Outputs (mean, log-variance) of a regression network, in place, to mean and variance in the target's
 * own units. */
void rt_model_unscale(const rt_model *m, float *y);
/* What a network says of one row, as rt_model_predict gives it: member s inside it is at y + s * stride; out
 * (student members, outputs). */
void rt_model_answer(const rt_model *m, const float *y, int64_t stride, float *out);

/* ---- which rows are for testing and validation (splits.c) ---- */
void rt_config_new_splits(rt_config *c); /* of a run that begins now: what is not set is "auto" */
/* For data that a run was trained on: its way to hold out test rows, unless another is set. */
rt_status rt_config_follow_run(rt_config *c, const char *run) RT_MUST_CHECK;
rt_status rt_run_test_split(const char *run, rt_split *out,
                            bool *known) RT_MUST_CHECK; /* known: it is a run */
rt_data_options rt_config_data(const rt_config *c);     /* how it reads its data */
void rt_config_name_splits(rt_config *c,
                           const rt_dataset *d); /* "auto" becomes what it means for these data */
/* Training and validation rows. */
rt_status rt_split_rows(const rt_config *c, const rt_dataset *d, rt_subset *train,
                        rt_subset *valid) RT_MUST_CHECK;
/* The same for the networks that a finished run left behind: a hyper ensemble is retrained on all rows. */
rt_status rt_run_rows(const rt_config *c, const rt_dataset *d, rt_subset *train,
                      rt_subset *valid) RT_MUST_CHECK;
/* The data of a run (or `data`, if not NULL) and the rows that it held out. */
rt_status rt_run_open_valid(rt_dataset **d, rt_subset *train, rt_subset *valid, const char *run,
                            const char *data, const rt_data_like *like) RT_MUST_CHECK;

/* The rows that a run held out itself (held_out.c): whoever fits something to a run's predictions uses these or
 * none. All-zero before the first use; serves one run after another, and keeps the data between them. */
typedef struct rt_held_out {
    rt_part rows;       /* owned */
    const char *reason; /* why there are none; NULL: there are */
    bool known;         /* data is what the run was trained on */
    rt_dataset *data;
    char *spec;
    rt_data_options options;
} rt_held_out;
/* other: another name of the run's data, or NULL. */
rt_status rt_held_out_find(rt_held_out *h, const char *run, const rt_model *m,
                           const char *other) RT_MUST_CHECK;
void rt_held_out_deinit(rt_held_out *h);

/* ---- making models ---- */
void rt_model_set_v3(rt_model *m,
                     bool v3); /* how it predicts from now on; what it was trained with stays in its file */
/* A model without weights (zero) for a data set. */
rt_status rt_model_create(rt_model **out, const rt_student_config *student, const rt_dataset *d,
                          double target_mean, double target_std, int networks) RT_MUST_CHECK;
rt_status rt_model_set_student(rt_model *m, const rt_student_config *student, int networks) RT_MUST_CHECK;
float *rt_model_weights(rt_model *m, int network);
typedef struct rt_provenance {
    const char *method, *data, *data_hash, *config_hash;
    const char *objective, *perturb, *teacher_hash; /* NULL: none */
    int64_t seed, epochs, kept_epoch;
    int first, of; /* a model that is part of so many networks, from this one on; of = 0: it has all */
} rt_provenance;
rt_status rt_model_save(const rt_model *m, int member, const char *path,
                        const rt_provenance *from) RT_MUST_CHECK;
/* "model.safetensors" of one, or "member-007.safetensors". */
void rt_member_file(char name[48], int member, bool single);
/* SHA-256 over metadata and tensors, in order; the key "sha256" is left out. */
void rt_tensors_digest(const rt_st_tensor *t, int64_t n, const rt_st_meta *meta, int64_t nmeta, char hex[65]);
/* The same of a file that was read; fails with RT_E_INPUT when it does not agree with its own "sha256". */
rt_status rt_tensors_verify(const rt_safetensors *s, const char *path) RT_MUST_CHECK;

/* ---- run directories ---- */
typedef enum rt_run_state { RT_RUN_NONE, RT_RUN_UNFINISHED, RT_RUN_FINISHED } rt_run_state;
typedef struct rt_run_dir {
    char *path;
    rt_lock *lock;
    rt_appender *log;
} rt_run_dir;
rt_status rt_run_dir_state(const char *path, rt_run_state *out) RT_MUST_CHECK;
/* Refuses to touch an existing run unless told to. */
rt_status rt_run_dir_check(const char *path, bool resume, bool force) RT_MUST_CHECK;
/* Makes and locks the directory, and sweeps away what a killed process left. */
rt_status rt_run_dir_open(rt_run_dir *d, const char *path, bool resume, bool force) RT_MUST_CHECK;
void rt_run_dir_close(rt_run_dir *d);
rt_status rt_run_dir_clear(const rt_run_dir *d) RT_MUST_CHECK; /* removes the files of a run, and no others */
rt_status rt_run_dir_file(const rt_run_dir *d, const char *name,
                          char **out) RT_MUST_CHECK; /* rt_alloc'ed path */
rt_status rt_run_dir_write(const rt_run_dir *d, const char *name, const rt_str *text) RT_MUST_CHECK;
rt_status rt_run_dir_remove(const rt_run_dir *d, const char *name) RT_MUST_CHECK; /* absent is fine */

/* ---- the verb ---- */
typedef struct rt_train_hooks {
    void (*progress)(void *user, const rt_progress *p);
    void *user;
    const volatile sig_atomic_t *stop; /* set by a signal handler: save and return RT_E_INTERRUPTED */
} rt_train_hooks;
enum { RT_DOUBT_MAX = 400 };
typedef struct rt_train_result {
    int members;
    int64_t epochs, steps, parameters;
    double seconds, samples_per_s;
    double train_loss, valid_loss,
        valid_accuracy;       /* means over members, of the kept weights; NaN where absent */
    char doubt[RT_DOUBT_MAX]; /* why the result should not be trusted, as a sentence; "": nothing was found */
    const char *keep; /* which those are: best validation "loss" or "accuracy", or "last"; NULL: not known */
} rt_train_result;
/* As keys of an open object. */
void rt_train_result_write(const rt_train_result *r, const char *run, rt_json *j);
rt_status rt_train_run(const rt_config *c, const rt_train_hooks *hooks, rt_train_result *out) RT_MUST_CHECK;
/* The verb `distill`: the same, with a teacher (params.def). */
rt_status rt_distill_run(const rt_config *c, const rt_train_hooks *hooks, rt_train_result *out) RT_MUST_CHECK;

#endif
