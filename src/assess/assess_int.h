/*
 * assess_int.h - what the files of this module share.
 *
 *   call       what is the same for all runs: data, foreign sets, distortions, the teacher's answers
 *   subject    the run that is being assessed: its model, a predictor, the temperature
 *   answers    predictions of one set, as eval wants them
 *   scores     measures of uncertainty of every row of one set
 */
#ifndef RT_ASSESS_ASSESS_INT_H
#define RT_ASSESS_ASSESS_INT_H

#include "assess/assess.h"
#include "base/arena.h"
#include "distort/distort.h"
#include "eval/eval.h"

enum { RT_ASSESS_DISTORT_MAX = 64, RT_ASSESS_REASON_MAX = 256 };

typedef struct rt_foreign {
    char name[RT_ASSESS_NAME_MAX], set[RT_ASSESS_NAME_MAX + 8]; /* "digits", "ood:digits" */
    const char *spec;
    rt_dataset *data;
} rt_foreign;

typedef struct rt_answers {
    float *y; /* (n, m, k) as the model gives it */
    rt_eval_input in;
} rt_answers;

typedef struct rt_scores {
    double *value; /* (measures, n) */
    const char *reason[RT_MEASURES_MAX];
    int64_t n;
    uint8_t *wrong; /* (n), of labelled classification */
} rt_scores;

typedef struct rt_assess_call {
    const rt_assess_options *o;
    rt_pool *pool;
    char *specs; /* what foreign sets point into */
    rt_dataset *data;
    const rt_part *test;
    rt_shape row;
    rt_foreign foreign[RT_ASSESS_OOD_MAX];
    int nforeign;
    const rt_corruption *corruption[RT_ASSESS_DISTORT_MAX];
    int ncorruptions;
    const rt_shift *shift[RT_ASSESS_DISTORT_MAX];
    int nshifts;
    /* what --against says; empty without it */
    rt_answers teacher; /* on the test rows */
    rt_scores teacher_foreign[RT_ASSESS_OOD_MAX];
    rt_scores *teacher_shift; /* (nshifts, RT_SHIFT_AMOUNTS) */
    rt_held_out held_out;     /* rows, and the data a run was trained on */
    /* progress */
    int run, runs;
    double rows, rows_all, started; /* of this run */
} rt_assess_call;

typedef struct rt_subject {
    rt_assess_call *s;
    const char *name;
    rt_model *model;
    rt_predictor *predictor;
    rt_reading how;
    bool regression;
    double temperature;
    int64_t m, k, batch;
    char temperature_reason[RT_ASSESS_REASON_MAX];
    bool source_known; /* s->held_out.data is what this run was trained on */
    rt_scores scores;  /* of the test rows */
    rt_scores foreign[RT_ASSESS_OOD_MAX];
    double infer_seconds;
} rt_subject;

typedef struct rt_picture {
    char file[48]; /* "pictures/map-total.png" */
    uint8_t *pixels;
    int64_t h, w;
    int channels;
} rt_picture;
enum { RT_PICTURES_MAX = 8 };

struct rt_assessment {
    rt_assess_info info;
    rt_arena text;                 /* strings of info */
    rt_str classes;                /* JSON array, or empty */
    rt_str sets, curves, pictures; /* JSON objects, or empty */
    rt_jdoc *doc;                  /* of the object without curves and pictures, or of a whole metrics.json */
    rt_jval root;                  /* the object in it */
    /* what pictures are made of, written when the assessment is saved */
    rt_picture picture[RT_PICTURES_MAX];
    int npictures;
};

/* ---- assess_predict.c ---- */
rt_status rt_subject_open(rt_subject *u, rt_assess_call *s, const char *name) RT_MUST_CHECK;
void rt_subject_close(rt_subject *u);
/* Predictions of rows of shape `row`, distorted if asked, converted to the model's input if need be. */
typedef struct rt_answer_how {
    const char *what; /* the set, for messages and progress */
    bool unlabelled;  /* labels and targets of the rows mean nothing here */
    const rt_distortion *distortion;
    bool floats; /* what it gives */
} rt_answer_how;
rt_status rt_subject_answer(rt_subject *u, rt_answers *out, const rt_part *p, rt_shape row,
                            const rt_answer_how *how) RT_MUST_CHECK;
void rt_answers_free(rt_answers *a);
void rt_subject_tell(const rt_subject *u, const char *what, int64_t rows); /* rows more are answered */
rt_status rt_scores_of(rt_scores *out, const rt_eval_input *in) RT_MUST_CHECK;
void rt_scores_free(rt_scores *s);
/* Measures of two sets side by side, (measures, a->n + b->n); the rows of b are positive. rt_alloc'ed. */
rt_status rt_scores_join(const rt_scores *a, const rt_scores *b, double **score,
                         uint8_t **positive) RT_MUST_CHECK;

/* ---- assessment.c ---- */
rt_status rt_assessment_create(rt_assessment **out, const rt_subject *u) RT_MUST_CHECK;
rt_status rt_assessment_finish(rt_assessment *a) RT_MUST_CHECK; /* the tree is complete: read it */

/* ---- assess_valid.c ---- */
/* Refuses data without test rows that the run was trained on. */
rt_status rt_subject_check_unseen(const rt_subject *u) RT_MUST_CHECK;
/* Sets temperature, or temperature_reason. Fails only for want of memory or by interruption. */
rt_status rt_subject_calibrate(rt_subject *u) RT_MUST_CHECK;

/* ---- sections of the tree ---- */
rt_status rt_assess_test(rt_subject *u, const rt_answers *y, rt_json *j) RT_MUST_CHECK;
rt_status rt_assess_foreign(rt_subject *u, int i, rt_json *j) RT_MUST_CHECK;
/* "decision" of the test rows, and "rejected" of foreign ones, where the model has one (assess_decision.c). */
rt_status rt_assess_decision(const rt_subject *u, const rt_eval_input *in, rt_json *j) RT_MUST_CHECK;
void rt_assess_rejected(const rt_subject *u, const rt_scores *s, rt_json *j);
rt_status rt_assess_against(rt_subject *u, const rt_answers *y, rt_json *j) RT_MUST_CHECK;
rt_status rt_assess_corrupt(rt_subject *u, rt_json *j) RT_MUST_CHECK;
rt_status rt_assess_shift(rt_subject *u, int i, rt_json *j) RT_MUST_CHECK;
/* What a run says of the test rows, shifted: scores (RT_SHIFT_AMOUNTS). */
rt_status rt_shift_scores(rt_subject *u, const rt_shift *shift, rt_scores *out) RT_MUST_CHECK;
/* Mean absolute difference of a measure over the rows of one set; NaN with a reason where one has none. */
double rt_scores_difference(const rt_scores *a, const rt_scores *b, const char *measure, const char **reason);
rt_status rt_assess_curves(rt_subject *u, const rt_answers *y, rt_json *j) RT_MUST_CHECK;
rt_status rt_assess_line(rt_subject *u, rt_json *j) RT_MUST_CHECK; /* one of the curves */

/* Pictures go into the assessment and, with it, into the run's directory. */
rt_status rt_assess_pictures(rt_subject *u, const rt_answers *y, rt_assessment *a, rt_json *j) RT_MUST_CHECK;
rt_status rt_assess_map(rt_subject *u, rt_assessment *a, rt_json *j) RT_MUST_CHECK; /* one of the pictures */
/* A picture of zeros, "pictures/<file>". */
rt_status rt_picture_add(rt_assessment *a, const char *file, int64_t h, int64_t w, int channels,
                         uint8_t **pixels) RT_MUST_CHECK;
rt_status rt_pictures_write(const rt_assessment *a, const char *dir) RT_MUST_CHECK;

/* Numbers as an array, null where not finite, and then "<key>_reason" beside it. */
void rt_put_array(rt_json *j, const char *key, const double *v, int64_t n, const char *reason);

/* ---- tables: chosen by assess_table.c, printed by assess_render.c ---- */
enum { RT_TABLE_COLUMNS = 160 };
typedef struct rt_table_column {
    char title[96], path[96];
    int better; /* 1: more, -1: less, 0: neither */
    int decimals;
    bool si; /* as 1.23M */
} rt_table_column;
typedef struct rt_table {
    char title[160]; /* may be empty */
    const rt_assessment **run;
    int nruns;
    bool members, alone; /* a column for the number of members; a line for the mean of members alone */
    rt_table_column column[RT_TABLE_COLUMNS];
    int ncolumns;
} rt_table;
void rt_table_append_markdown(rt_str *out, const char *text); /* a cell */
rt_status rt_table_print(const rt_table *t, const rt_table_options *o, rt_str *out) RT_MUST_CHECK;

#endif
