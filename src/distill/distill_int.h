/*
 * distill_int.h - what the files of distill share: the vtable of a student, and pieces of losses that
 * several objectives use.
 */
#ifndef RT_DISTILL_DISTILL_INT_H
#define RT_DISTILL_DISTILL_INT_H

#include "distill/distill.h"

typedef struct rt_student_kind {
    const char *name, *form, *meaning;
    bool many;             /* takes a number of members */
    bool mixes;            /* they are plain networks in disguise (member_mix.c), with a BN each if wanted */
    bool heads;            /* takes a head and a split */
    rt_output_kind output; /* of a classification */
    /* settings of the builder for this kind; called before every build */
    void (*prepare)(const rt_student *s, rt_build *b);
    rt_val (*forward)(const rt_student *s, rt_build *b, rt_val x);
    rt_val (*member)(const rt_student *s, rt_build *b, rt_val x, rt_val index);
    rt_rule (*rule)(const rt_student *s, rt_role role);
    rt_status (*plan)(rt_student *s); /* may be NULL: kind-specific checks and settings */
    rt_status (*collapse)(const rt_student *s, const rt_params *params, const float *block,
                          const rt_params *to, float *dst); /* NULL: ships as it is */
    /* NULL: does not grow; else the first block of one with more members */
    rt_status (*grow)(const rt_params *from, const float *src, const rt_params *to, float *dst);
} rt_student_kind;

struct rt_student {
    rt_student_config config; /* texts owned */
    const rt_student_kind *kind;
    rt_net *net;
    int members;
    int split;        /* hydra: first stage of the heads */
    int64_t head[16]; /* hydra: hidden widths of own heads */
    int nhead;        /* 0: the heads are the network's last stages */
    double flops;
};

#define RT_STUDENT(id) extern const rt_student_kind rt_student_##id;
#include "distill/students.def"
#undef RT_STUDENT
#define RT_OBJECTIVE(id) extern const rt_objective rt_objective_##id;
#include "distill/objectives.def"
#undef RT_OBJECTIVE

/* A BatchEnsemble's: every member sees every row; the member `index` alone (student_be.c). */
rt_val rt_be_forward(const rt_student *s, rt_build *b, rt_val x);
rt_val rt_be_member(const rt_student *s, rt_build *b, rt_val x, rt_val index);

/* Mean over rows of the labels' cross-entropy, or of the Gaussian NLL in regression; labels and targets
 * are tiled to the student's members. */
rt_val rt_labels_loss(const rt_objective_in *in);
/* alpha times the distillation term plus (1 - alpha) times the labels' loss. */
rt_val rt_mix_labels(const rt_objective_in *in, rt_val distilled);
rt_val rt_over_temperature(const rt_objective_in *in, rt_val logits); /* z / T */
rt_val rt_times_temperature2(const rt_objective_in *in, rt_val loss); /* T^2 loss, a scalar */
/* Regression: outputs (rows, 2) -> (rows), the log-variance cut to [-10, 10]; and the mean cross-entropy
 * of N(mean, var) to them, (rows) each, var 0: the likelihood of mean. */
rt_val rt_gaussian_mean(rt_graph *g, rt_val out);
rt_val rt_gaussian_logvar(rt_graph *g, rt_val out);
rt_val rt_gaussian_loss(rt_graph *g, rt_val out, rt_val mean, rt_val var);
int rt_groups(const rt_graph *g, rt_val v);

/* Mean over kernel entries and members of (W0 o s_m r_m^T - W_m)^2, a scalar; teacher m's parameters have the
 * slots from first[m] on. */
rt_val rt_teacher_pull(rt_graph *g, const rt_params *student, const rt_params *teacher, const int *first,
                       int members);
/* The parameter "layer" + "." + field beside another parameter of that layer, or NULL. */
const rt_param *rt_params_beside(const rt_params *p, const char *name, const char *field);
/* The teacher's parameter for a kernel, bias or statistic of a student: of the same name, and of the
 * same shape if it is a kernel. */
rt_status rt_teacher_param(const rt_param **out, const rt_param *student,
                           const rt_params *teacher) RT_MUST_CHECK;

#endif
