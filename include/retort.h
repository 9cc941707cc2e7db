/*
 * retort.h - ensembles of neural networks, distilled into one that keeps their uncertainty.
 *
 * The only header to include; C11 and C++. It reads top to bottom: failures, using a model, training.
 *
 *     rt_model *m = NULL;
 *     rt_session *s = NULL;
 *     float probs[10], entropy;
 *     rt_prediction out = {.probs = probs, .entropy = &entropy};
 *     if (rt_model_load(&m, "runs/student") || rt_session_create(&s, m, 1) || rt_session_run(s, image, 1, &out))
 *         fprintf(stderr, "%s\n", rt_error_text());
 *     rt_session_destroy(&s);
 *     rt_model_destroy(&m);
 *
 * Threads: a model is immutable and may be shared. A session is the scratch memory of one thread; it never
 * locks and, once created, never allocates. The library never prints, exits or aborts, and has no global
 * state but a thread-local error record, the log callback and the instruction set it found (once; the
 * environment variable RETORT_ISA=none|plain|avx2|avx512 may lower it).
 */
#ifndef RETORT_H
#define RETORT_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- failures
 * ------------------------------------------------------------------------------------------------ */

/* 0 is success. Numbers are stable. */
typedef enum rt_status {
    RT_OK = 0,
    RT_E_FAILED = 10,
    RT_E_MEMORY = 11,      /* not enough memory */
    RT_E_IO = 12,          /* the operating system refused: disk full, I/O error */
    RT_E_NUMERIC = 13,     /* a loss or a weight is not finite */
    RT_E_LOCKED = 14,      /* the run directory is in use */
    RT_E_UNSUPPORTED = 15, /* the combination makes no sense */
    RT_E_USAGE = 20,       /* bad setting */
    RT_E_INPUT = 30,       /* bad, truncated, missing or mismatching data */
    RT_E_INTERRUPTED = 40, /* asked to stop; the state is saved */
    RT_E_GATE = 60         /* a required metric was not met */
} rt_status;

const char *rt_version(void);
/* What went wrong in the last call that failed on this thread: the object, the place, what was found and
 * what was wanted. */
const char *rt_error_text(void);
const char *rt_status_name(rt_status s);

typedef enum rt_log_level { RT_LOG_DEBUG, RT_LOG_INFO, RT_LOG_WARN } rt_log_level;
typedef void (*rt_log_fn)(void *user, rt_log_level level, const char *text);
/* Where remarks go; the default is nowhere. Set it before other threads use the library. */
void rt_log_set(rt_log_fn fn, void *user);

/* ---- using a model
 * ------------------------------------------------------------------------------------------- */

/* A trained network, ensemble or student, with all it needs to read raw inputs. */
typedef struct rt_model rt_model;

rt_status rt_model_load(rt_model **out, const char *path); /* a run directory or a model file */
void rt_model_destroy(rt_model **m);
int rt_model_members(const rt_model *m);     /* predictions per input */
int64_t rt_model_outputs(const rt_model *m); /* classes, or 2 (mean, variance) for regression */
int64_t rt_model_row(
    const rt_model *m); /* floats of one input: pixels in [0, 1] by planes, or features as they are */
const char *rt_model_class_name(const rt_model *m, int64_t k); /* NULL for regression */

/* Memory to predict up to `rows` inputs at once. The model must outlive it. */
typedef struct rt_session rt_session;
rt_status rt_session_create(rt_session **out, const rt_model *m, int64_t rows);
void rt_session_destroy(rt_session **s);

/* Where results go; NULL: not wanted. Entropies are in nats. */
typedef struct rt_prediction {
    float *probs;              /* (rows, classes): of the model as a whole */
    float *member_probs;       /* (rows, members, classes) */
    float *entropy;            /* (rows): total uncertainty */
    float *expected_entropy;   /* (rows): data uncertainty */
    float *mutual_information; /* (rows): knowledge uncertainty */
    float *mean;               /* (rows): regression */
    float *variance;           /* (rows): total = data + knowledge */
    float *data_variance;
    float *knowledge_variance;
} rt_prediction;
/* x: (rows, rt_model_row), finite numbers; at most as many rows as the session was made for. */
rt_status rt_session_run(rt_session *s, const float *x, int64_t rows, const rt_prediction *out);

/* ---- training
 * ------------------------------------------------------------------------------------------------ */

/*
 * The verb `train`, with the keys of its flags: "data=fashion-mnist", "arch=mlp:200,200", "members=8",
 * "out=runs/teacher". *stop, if given, may be set at any time, also from a signal handler: the run saves
 * its state and returns RT_E_INTERRUPTED; "resume=true" continues it bit for bit.
 */
rt_status rt_train(const char *const *settings, int n, const volatile int *stop);
/* The verb `distill` likewise: "teacher=runs/teacher", "data=fashion-mnist", "method=latent-be",
 * "out=runs/student". */
rt_status rt_distill(const char *const *settings, int n, const volatile int *stop);

#ifdef __cplusplus
}
#endif

#endif
