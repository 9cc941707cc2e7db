/*
 * flags.h - configurations as lists of flags, which end in {NULL, NULL}; later ones win. Training and distilling with
 * them.
 */
#ifndef RT_TESTS_SUPPORT_FLAGS_H
#define RT_TESTS_SUPPORT_FLAGS_H

#include "config/config.h"
#include "support/check.h"
#include "train/train.h"

typedef struct flag {
    const char *key, *value;
} flag;

static inline void set_flag(rt_config *c, unsigned verb, const char *key, const char *value) {
    OK(rt_config_set(c, verb, key, value, key, false));
}

static inline void set_flags(rt_config *c, unsigned verb, const flag *f) {
    for (; f && f->key; f++)
        set_flag(c, verb, f->key, f->value);
}

static inline void configure(rt_config *c, unsigned verb, const flag *f) {
    OK(rt_config_init(c));
    set_flags(c, verb, f);
}

/* `train` or `distill`, and the end of the configuration. */
static inline rt_status run_config(rt_config *c, unsigned verb, rt_train_result *out) {
    rt_train_result local;
    rt_status (*const run)(const rt_config *, const rt_train_hooks *, rt_train_result *) =
        verb == RT_VERB_TRAIN ? rt_train_run : rt_distill_run;
    const rt_status st = run(c, NULL, out ? out : &local);
    rt_config_deinit(c);
    return st;
}

#endif
