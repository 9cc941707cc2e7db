/*
 * config.h - every parameter of a run: one line each in params.def gives parser, --help, YAML, saved configuration and
 * docs.
 *
 * Texts and numbers only: what they mean for data and networks is known further up.
 */
#ifndef RT_CONFIG_CONFIG_H
#define RT_CONFIG_CONFIG_H

#include "base/status.h"
#include "base/str.h"

typedef struct rt_config {
#define RT_PARAM(field, kind, type, def, lo, hi, choices, verbs, alias, meta, help)                          \
    type field; /* a list: items, a line break between two */
#include "config/params.def"
    struct rt_config_state *state; /* which were set, by what; owned strings */
} rt_config;

/* Verbs, as bits: which commands know a parameter. A new one goes to the end. */
#define RT_VERBS(V)                                                                                          \
    V(TRAIN, train)                                                                                          \
    V(EVAL, eval) V(PREDICT, predict) V(DATA, data) V(INFO, info) V(BENCH, bench) V(DISTILL, distill)        \
        V(AVERAGE, average) V(REPORT, report) V(RECIPE, recipe) V(EXPORT, export) V(CALIBRATE, calibrate)    \
            V(GATHER, gather)
enum {
#define RT_VERB_PLACE(ID, name) RT_VERB_PLACE_##ID,
    RT_VERBS(RT_VERB_PLACE) RT_VERB_COUNT
#undef RT_VERB_PLACE
};
enum {
#define RT_VERB_BIT(ID, name) RT_VERB_##ID = 1 << RT_VERB_PLACE_##ID,
    RT_VERBS(RT_VERB_BIT)
#undef RT_VERB_BIT
        RT_VERB_ALL = (1 << RT_VERB_COUNT) - 1,
    RT_PARAM_HOW = 1 << 16,  /* changes how a run is done, not its result */
    RT_PARAM_ONCE = 1 << 17, /* concerns one call only: not saved */
    RT_PARAM_NAME = 1 << 18, /* where something is that has a hash of its own */
    RT_PARAM_MAIN = 1 << 19, /* of the program alone: the library refuses it */
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
rt_status rt_config_items(const char *list, char ***out,
                          int64_t *n) RT_MUST_CHECK; /* of a list; for rt_names_free (base/file.h) */
void rt_config_write(const rt_config *c, unsigned verb,
                     rt_str *out);     /* YAML of every parameter the verb knows */
bool rt_config_v3(const rt_config *c); /* --isa v3 */
/* Of what decides the result: not out, threads, progress, ... Names of data and teacher are in it only if wanted: a
 * model file has the hashes of both, and is the same wherever they lie. */
void rt_config_hash(const rt_config *c, unsigned verb, bool names, char out[65]);

/* Of a configuration loaded from a run: the hash leaves out what its file does not have, parameters of a later version. */
void rt_config_mark_saved(rt_config *c);
/* It is for runs that begin now: no longer so, unless they go by the rules of an earlier version. */
void rt_config_mark_new(rt_config *c);
bool rt_config_older(
    const rt_config *c); /* of a run that version 0.1 began: its file has none of the later parameters */
/* Appends "key (a's value, now b's value), ..." for every parameter of the verb that decides the result and
 * differs. */
void rt_config_diff(const rt_config *a, const rt_config *b, unsigned verb, rt_str *out);
/* Parameters of the verb that were set in src are set in dst too, and those that only say how to run are
 * always taken. */
rt_status rt_config_overlay(rt_config *dst, const rt_config *src, unsigned verb) RT_MUST_CHECK;

#endif
