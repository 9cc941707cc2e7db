/*
 * model.h - trained networks with all they need to predict: weights, standardisation, class names, decisions.
 *
 *   rt_model      one or more networks of one kind, from files or about to be trained
 *   rt_predictor  networks in evaluation mode over many rows (predictor.h)
 *   rt_run_dir    the directory they live in, and the rows they were trained and validated on (run.h)
 */
#ifndef RT_MODEL_MODEL_H
#define RT_MODEL_MODEL_H

#include "base/arena.h"
#include "data/data.h"
#include "distill/distill.h"
#include "eval/decision.h"
#include "eval/eval.h"
#include "io/io.h"
#include "model/predictor.h"

typedef struct rt_model rt_model;
/* How networks see the target y of a regression: (t(y) - mean) / std, t a transform or nothing. */
typedef struct rt_target {
    rt_warp warp;
    double mean, std;
    const char *unit; /* of y; NULL: not said */
} rt_target;
/* What a network says, (mean, log-variance cut to +-RT_LOGVAR_MAX), to mean and variance of t(y), in place; and back. */
void rt_target_unscale(const rt_target *t, float *y);
void rt_target_rescale(const rt_target *t, float *y);
/* A run directory (all members), or one or several model files of equal architecture. */
rt_status rt_model_load(rt_model **out, const char *path) RT_MUST_CHECK;
void rt_model_destroy(rt_model **m);
/* What keeps the networks of two models from being members of one: a key of their metadata; NULL: nothing does. */
const char *rt_model_differs(const rt_model *a, const rt_model *b);
/* No network of m, which is called `name` in messages, is among those of `all`: tasks that forgot --first-member train
 * one network many times. */
rt_status rt_model_check_new(const rt_model *all, const rt_model *m, const char *name) RT_MUST_CHECK;
/* Several runs as one ensemble: the networks of `more`, all new, behind those of m. */
rt_status rt_model_add(rt_model *m, const rt_model *more, const char *name) RT_MUST_CHECK;
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
rt_params *rt_model_own_params(rt_model *m); /* the same, for those who train it */
int64_t rt_model_floats(const rt_model *m);  /* of one network */
const float *rt_model_block(const rt_model *m, int network);
const char *rt_model_class_name(const rt_model *m, int64_t k);
const char *rt_model_unit(const rt_model *m);                  /* of its target; NULL: not said */
const char *rt_model_meta(const rt_model *m, const char *key); /* provenance; NULL if absent */
/* A text inside a piece of provenance, which is JSON; NULL if absent. */
rt_status rt_model_meta_text(const rt_model *m, const char *meta, const char *key, rt_arena *arena,
                             const char **out) RT_MUST_CHECK;
rt_data_like rt_model_like(const rt_model *m); /* to open data for it; borrowed */
/* Is that data's hash in its provenance? */
rt_status rt_model_trained_on(const rt_model *m, const char *hash, bool *out) RT_MUST_CHECK;
const rt_target *rt_model_target(const rt_model *m); /* regression; borrowed */
/* Refuses data the model was not made for: other input shape, task, number or names of classes (both
 * sides named). */
rt_status rt_model_check_data(const rt_model *m, const rt_dataset *d) RT_MUST_CHECK;
/* Rows per run of the predictions; 0: the default. Not part of the result. */
void rt_model_set_batch(rt_model *m, int64_t rows);
/* Raw inputs (n, row...) -> (n, members, outputs): logits; regression: mean and variance of the target, or of
 * what its transform makes of it (rt_model_reading has that). stop may be NULL. */
rt_status rt_model_predict(const rt_model *m, const rt_part *p, rt_pool *pool, float *out,
                           const volatile sig_atomic_t *stop) RT_MUST_CHECK;
/* The same in two steps, for many parts: a predictor that takes `rows` rows at a time (0: as many as
 * rt_model_set_batch says), and its use. It must not outlive the model. */
rt_status rt_model_predictor(const rt_model *m, rt_predictor **out, int64_t rows,
                             rt_pool *pool) RT_MUST_CHECK;
rt_status rt_model_predict_by(const rt_model *m, rt_predictor *by, const rt_part *p, float *out,
                              const volatile sig_atomic_t *stop) RT_MUST_CHECK;

/* What a network says of one row, as rt_model_predict gives it: member s inside it is at y + s * stride; out
 * (student members, outputs). */
void rt_model_answer(const rt_model *m, const float *y, int64_t stride, float *out);

/* ---- making models ---- */
void rt_model_set_v3(rt_model *m,
                     bool v3); /* how it predicts from now on; what it was trained with stays in its file */
/* A model without weights (zero) for a data set; target: of a regression, NULL: as it is. */
rt_status rt_model_create(rt_model **out, const rt_student_config *student, const rt_dataset *d,
                          const rt_target *target, int networks) RT_MUST_CHECK;
rt_status rt_model_set_student(rt_model *m, const rt_student_config *student, int networks) RT_MUST_CHECK;
float *rt_model_weights(rt_model *m, int network);
typedef struct rt_provenance {
    const char *method, *data_hash, *config_hash;
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

#endif
