/*
 * step.h - the compiled training step of one or more members: graph, plan, execs, optimiser; and the rate at each step.
 */
#ifndef RT_STEP_STEP_H
#define RT_STEP_STEP_H

#include "base/pool.h"
#include "distill/distill.h"
#include "nn/nn.h"
#include "plan/plan.h"
#include <signal.h>

typedef struct rt_step_options {
    int64_t batch;
    int members;   /* networks of the same kind that are trained side by side */
    int of;        /* as part of so many; 0: they are all */
    int first;     /* number of the first of them, for messages */
    rt_ranks team; /* that share the slices of each batch; n 0: this one alone */
    bool idle;     /* ranks without a slice are no error */
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
    /* it warms up by itself, and only falls after its cycle */
    bool rises;
    double lr;           /* base; one-cycle: the initial one */
    double warmup;       /* epochs */
    double warmup_start; /* fraction of lr at the start, 0.01 */
    double epochs;
    double milestones[16]; /* step: epochs */
    int nmilestones;
    double gamma; /* step: factor */
    double
        cycle; /* one-cycle: epochs up to 10 lr and back, the rest falls to lr / 1000; waves: epochs of one */
    double low, high; /* one-cycle: at its ends and in its middle, in lr; 1 and 10 */
} rt_schedule;
rt_status rt_schedule_parse(rt_schedule *out, const char *text, double lr, double warmup,
                            double epochs) RT_MUST_CHECK;
double rt_schedule_lr(const rt_schedule *s, double epoch); /* fractional epoch = steps / steps per epoch */

/* ---- memory and shape of work ---- */
/* Fails with RT_E_MEMORY when `more` bytes beside those in use are more than this process may have. */
rt_status rt_memory_check(size_t more, const char *what) RT_MUST_CHECK;
/* Is the work of a sample so small that members are better run one per worker? */
bool rt_whole_batch(double flops, int members);

#endif
