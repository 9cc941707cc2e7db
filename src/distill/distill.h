/*
 * distill.h - what is trained, as pure graph builders: a student x an objective x a perturbation, on a
 * teacher.
 *
 *   student      a network or several in one, over parameters of its own                       students.def
 *   objective    the loss of the student's outputs given labels and the teacher's outputs      objectives.def
 *   perturbation of the inputs (perturb/perturb.h)                                             perturbs.def
 *   method       a named preset of the three, as a paper defined it                            methods.def
 *
 * rt_step_graph_build joins them into one graph. The trainer binds its inputs, feeds and parameters, and knows
 * none of them by name.
 */
#ifndef RT_DISTILL_DISTILL_H
#define RT_DISTILL_DISTILL_H

#include "eval/eval.h"
#include "nn/nn.h"

/* ---- students ---- */
typedef struct rt_student_config {
    const char *spec; /* "single", "batch-ensemble:4", "latent-be:4", "hydra:8", "dirichlet" */
    rt_arch_config arch;
    bool regression;  /* outputs are (mean, log-variance) */
    const char *head; /* hydra: hidden widths of the heads, "100,100"; NULL: the network's own last stages */
    const char *
        split; /* hydra: first stage that belongs to the heads, name or number; NULL: the architecture's default */
    rt_init fast_init; /* r, s of batch-ensemble; DEFAULT: N(1, 0.5) */
    double fast_scale;
    bool member_bn;          /* batch-ensemble, latent-be: one BN per member */
    bool product_of_means;   /* latent-be: collapse to theta o (mean s)(mean r)^T instead of the exact mean */
    bool full_bias_rate;     /* batch-ensemble: biases of members take the whole rate; runs of version 0.1 */
    double dirichlet_offset; /* dirichlet: alpha = exp(z) + offset; 0 for end2, 1 for proxy-end2 */
} rt_student_config;

/* Optimiser rule of a role: gradient times grad_scale, learning rate times lr_scale, L2 decay towards
 * centre. decay < 0: the run's weight decay. */
typedef struct rt_rule {
    double grad_scale, lr_scale, decay, centre;
} rt_rule;

typedef struct rt_student rt_student;
rt_status rt_student_create(rt_student **out, const rt_student_config *c, rt_params *params) RT_MUST_CHECK;
void rt_student_destroy(rt_student **s);
const char *rt_student_spec(const rt_student *s);
const rt_student_config *rt_student_get_config(const rt_student *s);
int rt_student_members(const rt_student *s); /* groups of its outputs */
const rt_net *rt_student_net(const rt_student *s);
rt_output_kind rt_student_output(const rt_student *s); /* what they mean: eval/eval.h */
double rt_student_flops(const rt_student *s);          /* forward of all members, per sample */
/* All members on the same inputs: x (n, row...) -> (members n, K), member-major. */
rt_val rt_student_forward(const rt_student *s, rt_build *b, rt_val x);
/* One member, chosen by an i32 scalar: (n, K), in eval mode. Only what that member needs is computed
 * (hydra: the body and all heads). */
rt_val rt_student_member(const rt_student *s, rt_build *b, rt_val x, rt_val index);
rt_rule rt_student_rule(const rt_student *s, rt_role role);
/* What training leaves to ship: a student of its own (latent-be collapses to single), or NULL when it
 * ships as it is. params and *block are new; the caller destroys and frees them. */
rt_status rt_student_collapse(const rt_student *s, const rt_params *params, const float *block,
                              rt_student **out, rt_params **out_params, float **out_block) RT_MUST_CHECK;
/* Does it? And the same into a block of the table that a collapsed student declares. */
bool rt_student_collapses(const rt_student *s);
/* Members that are plain networks in disguise (batch-ensemble, latent-be), mixed by weights (members; NULL: all
 * alike) into a block of the table of a student "single". */
bool rt_student_mixes(const rt_student *s);
rt_status rt_student_mix(const rt_student *s, const rt_params *params, const float *block,
                         const double *weight, const rt_params *to, float *dst) RT_MUST_CHECK;
rt_status rt_student_merge(const rt_student *s, const rt_params *params, const float *block,
                           const rt_params *to, float *dst) RT_MUST_CHECK;
/* Can a student go on from one of another specification: of a kind that grows, and with more members? */
bool rt_student_grows(const char *from, const char *to);
/* Its first block from the other's (Hydra: every head becomes a copy of head 0, the body is kept). */
rt_status rt_student_grow(const rt_student *s, const rt_params *from, const float *src, const rt_params *to,
                          float *dst) RT_MUST_CHECK;
bool rt_student_is_plain(const rt_student *s); /* one network as it is */
/* The student that a network of this configuration is without its members: what it collapses to, or one of
 * the networks it mixes. */
rt_student_config rt_student_plain_config(const rt_student *s);
typedef struct rt_student_info {
    const char *name, *form, *meaning;
    bool many; /* takes a number of members */
} rt_student_info;
int rt_student_count(void);
rt_student_info rt_student_get(int i);

/* ---- objectives ---- */
/* Of regressions: log-variances are cut to +- this, everywhere (gaussian_loss.c). */
enum { RT_LOGVAR_MAX = 10 };
typedef struct rt_objective_in {
    rt_graph *g;
    rt_val student;     /* (Ms n, K) logits, Ms groups; regression (Ms n, 2): mean, log-variance */
    rt_val teacher;     /* (Mt n, K) logits, no gradient; regression (Mt n, 2): mean, log-variance; 0: none */
    rt_val label;       /* i32 (n); 0: none */
    rt_val target;      /* (n) regression, standardised; 0: none */
    rt_val ood_student; /* (n, K) outputs for out-of-distribution inputs; 0: none */
    rt_val temperature; /* scalar feed */
    bool regression;
    double alpha; /* weight of the distillation term; 1 - alpha: labels */
    double label_smoothing;
    bool
        teacher_logits; /* kd: the mean of the teachers is that of their logits, not of their probabilities */
    const double *class_weight; /* (K) of the labels' loss; NULL: all 1 */
    double teacher_smoothing;   /* end2: gamma, 1e-4 */
    bool temper_mean;           /* end2: T divides the mean of a row's logits, too (the paper) */
    double ae_c;                /* ae-kd: C, 0.6 */
    bool ae_per_sample;
    double prior_beta; /* prior-net: concentration of the true class, 100 */
    double ood_weight; /* prior-net: gamma, 1 */
    double dirichlet_offset;
} rt_objective_in;

enum {
    RT_OBJ_TEACHER = 1,   /* needs a teacher */
    RT_OBJ_LABELS = 2,    /* needs labels or targets even when alpha is 1 */
    RT_OBJ_PAIRED = 4,    /* as many student members as teachers */
    RT_OBJ_DIRICHLET = 8, /* student with concentration outputs */
    RT_OBJ_OOD = 16,      /* needs out-of-distribution inputs */
    RT_OBJ_REGRESSION = 32,
    RT_OBJ_CLASSIFICATION = 64,
    RT_OBJ_SINGLE = 128,  /* a student of one member */
    RT_OBJ_MEAN = 256,    /* has a mean of teachers, which may be one of logits */
    RT_OBJ_WEIGHTED = 512 /* is a loss of labels: classes may have weights */
};
/* How a paper trained with it, for runs that choose no other optimiser; name NULL: as any run. */
typedef struct rt_optimiser_preset {
    const char *name;
    double lr;
    const char *schedule;
    double clip_norm, weight_decay;
} rt_optimiser_preset;
typedef struct rt_objective {
    const char *name, *meaning;
    unsigned needs;
    rt_val (*build)(const rt_objective_in *in); /* scalar: mean over the batch */
    double offset;                              /* of a Dirichlet: alpha = e^z + offset */
    rt_optimiser_preset optimiser;
} rt_objective;
const rt_objective *rt_objective_find(const char *name);        /* NULL if unknown */
rt_status rt_objective_unknown(const char *name) RT_MUST_CHECK; /* fails, telling which there are */
int rt_objective_list(const rt_objective *const **out);

/* ---- methods: presets (methods.def) ---- */
enum { RT_PHASES_MAX = 2 };
typedef struct rt_method_phase {
    const char *student;                /* without a number: as many members as teachers */
    const char *objective, *regression; /* objective for classification, and for regression (NULL: none) */
} rt_method_phase;
typedef struct rt_method {
    const char *name, *paper, *perturb;
    double temperature, anneal, alpha;
    const char *keep; /* "accuracy", "loss" */
    const char *meaning;
    rt_method_phase phase[RT_PHASES_MAX]; /* in order; those without a student are not there */
} rt_method;
const rt_method *rt_method_find(const char *name); /* NULL if unknown */
rt_status rt_method_unknown(const char *name) RT_MUST_CHECK;
const rt_method *rt_method_plain(void);       /* the first line: what a run without a teacher does */
const rt_objective *rt_objective_plain(void); /* and its objective */
int rt_method_phases(const rt_method *m);
const rt_method_phase *rt_method_last(const rt_method *m); /* the phase whose student is the result */
int rt_method_count(void);
const rt_method *rt_method_get(int i);
/* Temperature at a fraction of training: t0, annealed to 1 as methods.def says. */
double rt_method_temperature(double t0, double anneal, double progress);

/* ---- the step graph ---- */
typedef struct rt_distill_config {
    const rt_student *student;
    const rt_objective *objective;
    const struct rt_perturb *perturb; /* perturb/perturb.h; NULL: none */
    bool regression;
    int teachers; /* Mt; 0: none */
    const rt_net *
        teacher_net; /* set: teachers run inside the step, from bound parameters; NULL: their outputs are an input */
    const rt_params *teacher_params; /* the table of one teacher */
    bool ood;                        /* out-of-distribution inputs come with each batch */
    rt_objective_in
        options; /* the numbers; values, regression and dirichlet_offset (the student's) are filled in */
    double perturb_size; /* 0: 1/255 */
    double
        teacher_pull; /* strength of the pull to the teachers' weights (Mariet et al. 2021, B.2); 0: none */
} rt_distill_config;

/* Refuses combinations that make no sense, with a sentence that says why. */
rt_status rt_distill_check(const rt_distill_config *c) RT_MUST_CHECK;

enum { RT_STEP_TEACHERS_MAX = 126, RT_STEP_COPIES_MAX = RT_STEP_TEACHERS_MAX + 2 };
typedef struct rt_step_graph {
    rt_graph *g; /* owned */
    rt_val loss, logits;
    /* slots, -1 when absent */
    int in_x, in_label, in_target, in_teacher, in_ood;
    int feed_temperature, feed_i, feed_j;
    /* copies of the teacher network: parameter slots first .. first + count(teacher table) - 1 belong to
     * teacher `member`, or to the one drawn as i (-1) or j (-2) for this step */
    int nteacher;
    struct {
        int first, member;
    } teacher[RT_STEP_COPIES_MAX];
} rt_step_graph;
rt_status rt_step_graph_build(rt_step_graph *out, const rt_distill_config *c, rt_params *params,
                              int64_t batch) RT_MUST_CHECK;
/* Logits (m batch, k) of student and teachers, in eval mode, before and after the perturbation, where they have two
 * members or more. Outputs have the names of what is read from them: student_diversity, teacher_diversity,
 * student_diversity_perturbed, teacher_diversity_perturbed. */
rt_status rt_probe_build(rt_step_graph *out, const rt_distill_config *c, rt_params *params,
                         int64_t batch) RT_MUST_CHECK;
void rt_step_graph_deinit(rt_step_graph *p);

/* ---- weights of teachers in BatchEnsemble form (Mariet et al. 2021): W_m ~ W0 o s_m r_m^T ---- */
/* Alternating least squares for one layer, in double, from r = s = 1 and the mean weight: w[m] is (out, in,
 * window), w0 likewise, r (members, in), s (members, out). sweeps 0: 100; tolerance 0: 1e-6, the relative
 * drop of
 * the squared error that ends it. residual: ||error|| / ||w||. */
rt_status rt_reconstruct_layer(float *w0, float *r, float *s, double *residual, const float *const *w,
                               int members, int64_t out, int64_t in, int64_t window, int sweeps,
                               double tolerance) RT_MUST_CHECK;
/* Theorem 1: the form is exact iff every ratio W_i / W_j, element by element, is s r^T (the same over
 * the window). The largest distance of a ratio from that form, relative to its norm; infinite when one
 * weight is zero where another is not. */
rt_status rt_reconstruct_rank_one(double *deviation, const float *const *w, int members, int64_t out,
                                  int64_t in, int64_t window) RT_MUST_CHECK;

typedef struct rt_reconstruct_line {
    const char *name; /* of the kernel; belongs to the student's table */
    double residual, rank_one;
} rt_reconstruct_line;
typedef struct rt_reconstruct_report {
    int layers;
    rt_reconstruct_line *line; /* owned */
    double residual;           /* over all kernels together */
} rt_reconstruct_report;
/* Fills a student's block from as many teachers of its architecture as it has members: kernels by alternating
 * least squares, BN and running statistics as means over teachers, biases per member. report may be NULL. */
rt_status rt_reconstruct_student(const rt_student *be, const rt_params *params, float *block,
                                 const rt_params *teacher_params, const float *const *teacher_blocks,
                                 int members, rt_reconstruct_report *report) RT_MUST_CHECK;
void rt_reconstruct_report_deinit(rt_reconstruct_report *r);

#endif
