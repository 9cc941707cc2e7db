/*
 * train.h - from a configuration to a trained run: the verbs `train` and `distill`.
 */
#ifndef RT_TRAIN_TRAIN_H
#define RT_TRAIN_TRAIN_H

#include "base/json.h"
#include "base/log.h"
#include "config/config.h"
#include <signal.h>

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
    int64_t kept_first, kept_last; /* epochs of the kept weights, least and most over members; 0: not known */
    const char *keep; /* which those are: best validation "loss" or "accuracy", or "last"; NULL: not known */
} rt_train_result;
/* As keys of an open object. */
void rt_train_result_write(const rt_train_result *r, const char *run, rt_json *j);
rt_status rt_train_run(const rt_config *c, const rt_train_hooks *hooks, rt_train_result *out) RT_MUST_CHECK;
/* The verb `distill`: the same, with a teacher (params.def). */
rt_status rt_distill_run(const rt_config *c, const rt_train_hooks *hooks, rt_train_result *out) RT_MUST_CHECK;

#endif
