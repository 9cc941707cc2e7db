/*
 * retort.h - ensembles of neural networks, distilled into one that keeps their uncertainty.
 *
 * The only header to include; C11 and C++. It reads top to bottom: versions, failures, using a model, data from
 * memory, verbs (what the program does with runs), their settings.
 *
 *     rt_model *m = NULL;
 *     rt_session *s = NULL;
 *     float probs[10], entropy;
 *     rt_prediction out = RT_PREDICTION_INIT;
 *     out.probs = probs;
 *     out.entropy = &entropy;
 *     if (rt_model_load(&m, "runs/student") || rt_session_create(&s, m, 1) || rt_session_run(s, image, 1, &out))
 *         fprintf(stderr, "%s\n", rt_error_text());
 *     rt_session_destroy(&s);
 *     rt_model_destroy(&m);
 *
 * Rules for all functions, unless one says otherwise:
 *   - Those that can fail return an rt_status, 0 for success; rt_error_text() then says what went wrong. An
 *     argument that is NULL and must not be is RT_E_USAGE. Outputs are not touched by a call that fails, but for
 *     handles, which become NULL.
 *   - What a create or load function gives belongs to the caller, who gives it to the destroy function of its
 *     kind; destroying NULL does nothing. Texts that are returned belong to the object they were asked of.
 *   - Structs that may grow begin with their size; initialise them with the macro of their name.
 *   - The library never prints, exits or aborts. Its only global state is the thread-local error record, the log
 *     callback, a limit of memory while a call with max-memory runs, and the instruction set it found (once;
 *     RETORT_ISA=none|plain|avx2|avx512 may lower it).
 *   - Different threads may use different objects. A model is immutable and may be shared by all threads; a session
 *     belongs to one thread at a time.
 */
#ifndef RETORT_H
#define RETORT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__) || defined(__clang__)
#define RT_API __attribute__((visibility("default")))
#define RT_CHECKED __attribute__((warn_unused_result))
#else
#define RT_API
#define RT_CHECKED
#endif

/* ---- versions ---- */

#define RT_VERSION_MAJOR 0
#define RT_VERSION_MINOR 2
#define RT_VERSION_PATCH 0
#define RT_VERSION_NUMBER (RT_VERSION_MAJOR * 10000 + RT_VERSION_MINOR * 100 + RT_VERSION_PATCH)

/* Of the library that runs: "0.2.0", and 200. RT_VERSION_NUMBER is that of the header. Since 0.1, 0.2. */
RT_API const char *rt_version(void);
RT_API int rt_version_number(void);

/* ---- failures ---- */

/* 0 is success. Numbers are stable. The program's exit code follows from them. */
typedef enum rt_status {
    RT_OK = 0,
    RT_E_FAILED = 10,      /* anything that went wrong while running             -> exit 1 */
    RT_E_MEMORY = 11,      /* allocation failed or would exceed a limit          -> exit 1 */
    RT_E_IO = 12,          /* the operating system refused: disk full, I/O error -> exit 1 */
    RT_E_NUMERIC = 13,     /* a loss, a weight or a prediction is not finite     -> exit 1 */
    RT_E_LOCKED = 14,      /* the run directory is in use                        -> exit 1 */
    RT_E_UNSUPPORTED = 15, /* the combination makes no sense                     -> exit 2 */
    RT_E_USAGE = 20,       /* bad argument, key or value                         -> exit 2 */
    RT_E_INPUT = 30,       /* bad, truncated, missing or mismatching data        -> exit 3 */
    RT_E_INTERRUPTED = 40, /* asked to stop; the state is saved                  -> exit 4 */
    RT_E_GATE = 60         /* eval: a required metric was not met                -> exit 5 */
} rt_status;

/* What went wrong in the last call that failed on this thread: the object, the place, what was found and what
 * was wanted. Never NULL; valid until the next failure on this thread. Since 0.1. */
RT_API const char *rt_error_text(void);
/* "RT_E_INPUT". Since 0.1. */
RT_API const char *rt_status_name(rt_status s);

typedef enum rt_log_level { RT_LOG_DEBUG, RT_LOG_INFO, RT_LOG_WARN } rt_log_level;
typedef void (*rt_log_fn)(void *user, rt_log_level level, const char *text);
/* Where remarks go; default: nowhere. Set it before other threads use the library; it is called from any of
 * them. Since 0.1. */
RT_API void rt_log_set(rt_log_fn fn, void *user);

/* Frees a text that the library allocated (rt_job.json). Since 0.2. */
RT_API void rt_free(void *text);

/* ---- using a model ---- */

typedef enum rt_task { RT_TASK_CLASSIFICATION, RT_TASK_REGRESSION } rt_task;

/* A trained network, ensemble or student, with all it needs to read raw inputs, and the decision that `retort
 * calibrate` stored in it. */
typedef struct rt_model rt_model;

/* From a run directory or a model file (.safetensors). Both since 0.1. */
RT_API rt_status rt_model_load(rt_model **out, const char *path) RT_CHECKED;
RT_API void rt_model_destroy(rt_model **m);

/* What it is. Of NULL: 0 or NULL. Since 0.1; task, dims, unit and meta since 0.2. */
RT_API rt_task rt_model_task(const rt_model *m);
RT_API int rt_model_members(const rt_model *m);                         /* predictions per input */
RT_API int64_t rt_model_outputs(const rt_model *m);                     /* classes; of a regression 2 */
RT_API int64_t rt_model_row(const rt_model *m);                         /* floats of one input */
RT_API int rt_model_dims(const rt_model *m, int64_t dims[3]);           /* their shape: 1 (features) or 3 (c, h, w) */
RT_API const char *rt_model_class_name(const rt_model *m, int64_t k);   /* NULL: a regression, or no such class */
RT_API const char *rt_model_unit(const rt_model *m);                    /* of a mean, by `unit`; NULL: not said */
/* An entry of the file's metadata as text, mostly JSON: "architecture", "student", "network", "preprocessing", "task",
 * "table" (columns, and the name of the target, of a model of a table), "method", "provenance", "decision", "sha256"
 * (docs/formats/model.md); NULL: absent. */
RT_API const char *rt_model_meta(const rt_model *m, const char *key);

/*
 * Where the answers for a batch of rows go. NULL: not wanted. What the model cannot say is RT_E_USAGE, never
 * an unwritten array: knowledge needs members or a Dirichlet, alpha a Dirichlet, reject, set, lower and
 * upper a decision of that kind. Entropies are in nats; numbers are those of `retort predict` and of exports.
 */
typedef struct rt_prediction {
    size_t size; /* sizeof(rt_prediction) */
    float *probs;              /* (rows, classes): of the model as a whole, at its temperature */
    float *member_probs;       /* (rows, members, classes) */
    float *logits;             /* (rows, members, outputs): raw; of a regression mean and variance */
    int64_t *label;            /* (rows): the likeliest class */
    float *confidence;         /* (rows): its probability */
    float *entropy;            /* (rows): total uncertainty */
    float *expected_entropy;   /* (rows): data uncertainty */
    float *mutual_information; /* (rows): knowledge uncertainty */
    float *epkl;               /* (rows): expected pairwise KL, knowledge uncertainty */
    float *alpha;              /* (rows, members, classes): concentrations of Dirichlets */
    uint8_t *reject;           /* (rows): 1 where the model should not be believed */
    uint8_t *set;              /* (rows, classes): 1 for the classes of the conformal set */
    float *mean;               /* (rows): regression */
    float *variance;           /* (rows): total = data + knowledge */
    float *data_variance;
    float *knowledge_variance;
    float *lower, *upper; /* (rows): conformal interval */
} rt_prediction;
#define RT_PREDICTION_INIT {sizeof(rt_prediction), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}

/* A predictor of one thread, for up to `rows` inputs at once (at most 1,048,576). The model must outlive it. The
 * library itself allocates nothing in rt_session_run; oneDNN, where a layer runs by it, does. All three since 0.1. */
typedef struct rt_session rt_session;
RT_API rt_status rt_session_create(rt_session **out, const rt_model *m, int64_t rows) RT_CHECKED;
RT_API void rt_session_destroy(rt_session **s);
/* x: (rows, rt_model_row), finite: pixels in [0, 1] by planes, or features as they are; 1 to as many rows as the
 * session was made for. RT_E_NUMERIC: an answer to one of them is not finite. */
RT_API rt_status rt_session_run(rt_session *s, const float *x, int64_t rows, const rt_prediction *out) RT_CHECKED;
/* The same for any number of rows, by several threads (0: one per core). They are answered in pieces: a call that
 * fails with RT_E_NUMERIC, which names the row, may have written answers to rows before it. Since 0.2. */
RT_API rt_status rt_model_run(const rt_model *m, const float *x, int64_t rows, const rt_prediction *out,
                              int threads) RT_CHECKED;

/* ---- data from memory ---- */

/* Rows of a data set: x (rows, row...), and label or target unless they are only predicted. Borrowed. */
typedef struct rt_arrays {
    int64_t rows;
    const float *x;
    const int32_t *label; /* classification: 0 to classes - 1 */
    const float *target;  /* regression */
    const void *reserved[4]; /* NULL */
} rt_arrays;

/* A data set that the settings of a call name "data=memory:NAME" (or ood, aux: any key that takes a SPEC). Without
 * test rows a tenth of the training rows, of each class the same share, is held out for testing; test=0 behind the
 * name ("memory:NAME,test=0") keeps all. The sets of one call are all of one size. */
typedef struct rt_memory {
    size_t size; /* sizeof(rt_memory) */
    const char *name;
    rt_task task;
    int rank;                       /* 1: dims[0] features; 3: channels, height, width, pixels in [0, 1] */
    int64_t dims[3];
    int64_t classes;                /* classification */
    const char *const *class_names; /* NULL: numbers */
    rt_arrays train, test;
} rt_memory;

/* ---- verbs ---- */

/* How far a job is. It grows at its end. "average" and "eval" have no epochs (0): step of steps is the share of the
 * work, of average that of the stage which note names; what they do not have is NaN. */
typedef struct rt_progress {
    int64_t epoch, epochs, step, steps; /* step within the epoch */
    double loss, accuracy;              /* running, mean over members; accuracy NaN for regression */
    double samples_per_s;               /* distinct inputs times members */
    double seconds, seconds_left; /* NaN: unknown */
    int epoch_end;                     /* 1: the epoch is over */
    double valid_loss, valid_accuracy; /* at epoch_end, NaN without validation */
    const char *note;                  /* "resumed at epoch 3", "matching", or NULL; valid during the callback */
} rt_progress;

typedef struct rt_job {
    size_t size;                 /* sizeof(rt_job) */
    const char *const *settings; /* "key=value": the flags of the verb without their dashes */
    int nsettings;
    const char *const *words; /* what is not a flag: runs */
    int nwords;
    const rt_memory *memory; /* data sets of this call */
    int nmemory;
    const volatile int *stop; /* may be set at any time, by any thread or a signal handler: RT_E_INTERRUPTED */
    void (*progress)(void *user, const rt_progress *p);
    void *user;
    /* NULL, or where the result goes, the object that --json prints; rt_free it. Given with RT_OK and RT_E_GATE. */
    char **json;
} rt_job;
#define RT_JOB_INIT {sizeof(rt_job), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
#define RT_MEMORY_INIT                                                                                       \
    {sizeof(rt_memory), 0, RT_TASK_CLASSIFICATION, 0, {0, 0, 0}, 0, 0, {0, 0, 0, 0, {0, 0, 0, 0}},            \
     {0, 0, 0, 0, {0, 0, 0, 0}}}

/*
 * What `retort VERB` does: "train", "distill", "average", "eval", "calibrate", "report", "export", "gather". Rows are
 * predicted by rt_model_run; data, info, bench and recipe are the program's alone. A run that was stopped saves its
 * state and returns RT_E_INTERRUPTED; "resume=true" continues it bit for bit. A "require" of eval that is not met is
 * RT_E_GATE, after all else was done. Since 0.2.
 *
 *   - All that the job points to, words and data sets too, is needed until the call returns, and no longer.
 *   - Several threads may run jobs at once, each with `threads` workers of its own; where two write one run, the second
 *     gets RT_E_LOCKED. max-memory limits what the library holds in the whole process while the call runs: one call
 *     at a time may set it. Without it there is no limit (the program has nine tenths of the machine's memory).
 *   - train, distill, average and eval call `progress`, on the thread that called them. It may set the stop flag and
 *     use models and sessions, but not run a job.
 *   - train, distill, average, eval and calibrate look at `stop`; report, export and gather run to their end.
 *
 *     const char *settings[] = {"data=memory:flowers", "arch=mlp:50", "members=5", "out=runs/flowers"};
 *     rt_job job = RT_JOB_INIT;
 *     job.settings = settings, job.nsettings = 4, job.memory = &flowers, job.nmemory = 1;
 *     if (rt_job_run("train", &job)) ...
 */
RT_API rt_status rt_job_run(const char *verb, const rt_job *job) RT_CHECKED;
/* rt_job_run of "train" and "distill" with settings and a stop flag alone. Since 0.1. */
RT_API rt_status rt_train(const char *const *settings, int n, const volatile int *stop) RT_CHECKED;
RT_API rt_status rt_distill(const char *const *settings, int n, const volatile int *stop) RT_CHECKED;

/* ---- settings ---- */

typedef struct rt_setting {
    size_t size; /* sizeof(rt_setting) */
    const char *key, *kind; /* kind: "text", "integer", "number", "boolean", "choice", "list" */
    const char *value;      /* default as text; NULL: none */
    double lowest, highest; /* of numbers */
    const char *choices;    /* "sgd|adam|adamw", or NULL */
    const char *help;
} rt_setting;
#define RT_SETTING_INIT {sizeof(rt_setting), 0, 0, 0, 0, 0, 0, 0}
/* The settings of a verb, 0 to rt_setting_count - 1; the texts are static. An unknown verb has -1. Flags that only a
 * terminal or a launcher of ranks has a use for (json, quiet, progress, color, rank-timeout; format of eval) are none.
 * Since 0.2. */
RT_API int rt_setting_count(const char *verb);
RT_API rt_status rt_setting_get(const char *verb, int i, rt_setting *out) RT_CHECKED;
/* Would the verb take these settings? Keys, values and ranges are looked at, no file is. Since 0.2. */
RT_API rt_status rt_settings_check(const char *verb, const char *const *settings, int n) RT_CHECKED;

#ifdef __cplusplus
}
#endif

#endif
