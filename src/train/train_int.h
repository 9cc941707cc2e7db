/*
 * train_int.h - what the files of this module share.
 */
#ifndef RT_TRAIN_TRAIN_INT_H
#define RT_TRAIN_TRAIN_INT_H

#include "base/arena.h"
#include "base/file.h"
#include "io/io.h"
#include "train/train.h"

/* Appends "key (a's value, now b's value), ..." for every parameter of the verb that decides the result and
 * differs. */
void rt_config_diff(const rt_config *a, const rt_config *b, unsigned verb, rt_str *out);
/* Parameters of the verb that were set in src are set in dst too, and those that only say how to run are
 * always taken. */
rt_status rt_config_overlay(rt_config *dst, const rt_config *src, unsigned verb) RT_MUST_CHECK;

/* Fails with RT_E_MEMORY when `more` bytes beside those in use are more than this process may have. */
rt_status rt_memory_check(size_t more, const char *what) RT_MUST_CHECK;
/* Is the net so small that members are better run one per worker? passes: 1 forward, 3 with gradients. */
bool rt_whole_batch(const rt_net *net, int members, double passes);

/* ---- models ---- */
struct rt_model {
    rt_arena arena; /* texts */
    rt_params *params;
    rt_net *net;
    rt_task task;
    int64_t nclasses;
    const char **classes;
    double target_mean, target_std; /* regression */
    int members;
    int64_t floats;
    float *blocks; /* (members, floats) */
    int64_t batch; /* rows per run of the predictions; 0: the default */
    const rt_st_meta *meta;
    int64_t nmeta;
};
/* A model without weights (zero) for a data set. */
rt_status rt_model_create(rt_model **out, const rt_arch_config *arch, const rt_dataset *d, double target_mean,
                          double target_std, int members) RT_MUST_CHECK;
rt_status rt_model_set_net(rt_model *m, const rt_arch_config *arch, int members) RT_MUST_CHECK;
float *rt_model_weights(rt_model *m, int member);
typedef struct rt_provenance {
    const char *method, *data, *data_hash, *config_hash;
    int64_t seed, epochs, kept_epoch;
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

/* ---- checkpoints ---- */
/* What a run has to remember besides what follows from its configuration. */
typedef struct rt_progress_state {
    int64_t epoch, index, step; /* next batch: index of epoch; index == batches: validation is next */
    int64_t log_position;
    double seconds;
    double *loss_sum, *correct; /* (members): of the current epoch */
    double *kept_loss, *kept_accuracy,
        *kept_epoch; /* (members): of the weights to keep so far; epoch 0: none yet */
} rt_progress_state;
typedef struct rt_checkpoint {
    const char *config_hash, *data_hash;
    int members;
    int64_t floats;
    rt_step *step;  /* values, state */
    rt_model *best; /* best weights so far; NULL: the last ones are kept */
    rt_progress_state *at;
} rt_checkpoint;
rt_status rt_checkpoint_write(const rt_checkpoint *c, const char *path) RT_MUST_CHECK;
rt_status rt_checkpoint_read(const rt_checkpoint *c, const char *path) RT_MUST_CHECK;

/* ---- the trainer ---- */
typedef struct rt_trainer {
    const rt_config *c;
    const rt_train_hooks *hooks;
    rt_pool *pool;
    rt_dataset *data;
    rt_subset train, valid;
    rt_batch_spec batches;
    int64_t nbatches, epoch_rows; /* per epoch */
    int members;
    bool regression, keep_best;
    rt_schedule schedule;
    rt_model *model; /* its weights are the ones kept */
    rt_step *step;
    rt_predictor *predictor; /* NULL without validation */
    rt_prefetch *prefetch;
    char config_hash[65];
    rt_run_dir dir;
    rt_progress_state at;
    rt_checkpoint checkpoint;
    /* per member */
    uint64_t *seeds;
    double *numbers; /* what at points to, and the next three */
    double *lr, *losses, *valid_loss, *valid_accuracy;
    int64_t *correct;
    const float **blocks;
    float *target;        /* (members, batch): standardised */
    int64_t *valid_order; /* identity */
    rt_str line;
    /* clocks: of this session */
    double started, seconds_before, last_progress, last_checkpoint;
    int64_t first_step, rows_done;
} rt_trainer;
rt_status rt_trainer_open(rt_trainer *t) RT_MUST_CHECK; /* data, network, step, buffers; no files */
void rt_trainer_close(rt_trainer *t);
double rt_trainer_seconds(const rt_trainer *t); /* all sessions */
double rt_trainer_rate(const rt_trainer *t);    /* samples per second of this session */
double rt_mean(const double *v, int n);
/* Lines of log.jsonl, metrics.json, and the progress callback. */
rt_status rt_trainer_log_event(rt_trainer *t, const char *event) RT_MUST_CHECK;
rt_status rt_trainer_log_epoch(rt_trainer *t) RT_MUST_CHECK;
rt_status rt_trainer_write_metrics(rt_trainer *t, const rt_train_result *r) RT_MUST_CHECK;
rt_status rt_trainer_read_metrics(const char *dir, rt_train_result *r) RT_MUST_CHECK; /* of a finished run */
void rt_trainer_progress(rt_trainer *t, bool epoch_end, const char *note);

#endif
