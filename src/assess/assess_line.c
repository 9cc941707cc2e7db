/*
 * assess_line.c - are two members in one valley? Loss and accuracy of the networks (1 - a) w_0 + a w_1 on the
 * segment between the weights of the first two, at 21 points, on at most 2,000 test rows. Members trained from
 * different starts show a barrier between them (Garipov et al. 2018, Frankle et al. 2020); branches of one run
 * do not. Members inside one network that are plain ones in disguise (BatchEnsemble, and LatentBE before it
 * collapsed, from members.safetensors) are taken as these: w_m = theta o s_m r_m^T (Nam et al. 2022, Figure 2).
 *
 * Running statistics of batch normalisation do not belong to interpolated weights: at every point, the ends
 * included, they are estimated anew over a few batches (model/norms.c): of training rows where the run's data is at
 * hand, and of test rows otherwise; labels are not looked at.
 */
#include "assess/assess_int.h"
#include "base/alloc.h"
#include "base/rng.h"
#include "model/taps.h"
#include <math.h>
#include <string.h>

enum { POINTS = 21, ROWS = 2000, NORM_ROWS = 512 };

/* ---- statistics ---- */

typedef struct norms {
    rt_student *student; /* the model's, without dropout: predictions have none */
    rt_params *params;
    rt_subset set;
    rt_taps taps;
} norms;

static const rt_part *norm_rows(const rt_subject *u) {
    const rt_assess_call *s = u->s;
    const rt_shape input = rt_model_input(u->model);
    if (u->source_known && rt_dataset_train(s->held_out.data)->n > 0) {
        const rt_shape row = rt_dataset_row(s->held_out.data);
        if (rt_shape_equal(&row, &input))
            return rt_dataset_train(s->held_out.data);
    }
    return s->test;
}

static void norms_close(norms *b) {
    rt_taps_close(&b->taps);
    rt_student_destroy(&b->student);
    rt_params_destroy(&b->params);
}

static rt_status tell(void *subject, double done) {
    (void)done;
    const volatile sig_atomic_t *stop = ((const rt_subject *)subject)->s->o->stop;
    RT_FAIL_IF(stop && *stop, RT_E_INTERRUPTED, "interrupted while interpolating");
    return RT_OK;
}

static rt_status norms_open(norms *b, rt_subject *u, const rt_student *student) {
    rt_student_config config = *rt_student_get_config(student);
    config.arch.dropout = 0;
    b->set = rt_subset_all(norm_rows(u));
    RT_TRY(rt_params_create(&b->params));
    RT_TRY(rt_student_create(&b->student, &config, b->params));
    rt_params_set_v3(b->params, rt_params_v3(rt_model_params(u->model)));
    return rt_taps_of_norms(&b->taps, &(rt_taps_input){.student = b->student,
                                                       .params = b->params,
                                                       .set = &b->set,
                                                       .rows = NORM_ROWS,
                                                       .seed = u->s->o->seed,
                                                       .pool = u->s->pool,
                                                       .tell = tell,
                                                       .user = u});
}

/* ---- the segment ---- */

typedef struct line {
    rt_subject *u;
    rt_model *members; /* of a student that collapsed; NULL: the model has them itself */
    /* what is interpolated: */
    const rt_student *student; /* of the points, and their parameters */
    rt_params *params;
    rt_predictor *predictor;
    rt_student *plain; /* created here for members inside one network; else NULL, as are the next two */
    rt_params *plain_params;
    rt_predictor *plain_predictor;
    float *block; /* the network at this point */
    int64_t n, m; /* rows; members inside a point */
    int32_t *label;
    float *target;
    rt_subset set;
    float *y; /* (n, m, k) */
} line;

static void take(void *user, int network, int64_t row, int64_t n, const float *y, int64_t stride) {
    (void)network;
    const line *l = user;
    const int64_t k = l->u->k;
    for (int64_t r = 0; r < n; r++)
        for (int64_t s = 0; s < l->m; s++) {
            float *dst = l->y + ((row + r) * l->m + s) * k;
            memcpy(dst, y + s * stride + r * k, (size_t)k * sizeof *dst);
            if (l->u->regression)
                rt_target_unscale(rt_model_target(l->u->model), dst);
        }
}

/* The model whose members are inside one network: this one, or what the run kept of it before it collapsed. */
static rt_status find_members(line *l, const rt_model **out) {
    char *dir = NULL, *path = NULL;
    rt_status st = RT_OK;
    *out = rt_model_networks(l->u->model) == 1 ? l->u->model : NULL;
    if (!*out || rt_student_mixes(rt_model_student(*out)))
        return RT_OK;
    *out = NULL;
    RT_TRY_GOTO(rt_path_expand(&dir, l->u->name));
    RT_TRY_GOTO(rt_path_join(&path, dir, "members.safetensors"));
    if (rt_dir_exists(dir) && rt_file_exists(path)) {
        RT_TRY_GOTO(rt_model_load(&l->members, path));
        if (rt_student_mixes(rt_model_student(l->members)))
            *out = l->members;
    }
done:
    rt_free(path);
    rt_free(dir);
    return st;
}

/* A plain network and all that runs it. */
static rt_status make_plain(line *l, const rt_model *of) {
    const rt_student_config c = rt_student_plain_config(rt_model_student(of));
    RT_TRY(rt_params_create(&l->plain_params));
    RT_TRY(rt_student_create(&l->plain, &c, l->plain_params));
    RT_TRY(
        rt_predictor_create(&l->plain_predictor, l->plain, l->plain_params, l->u->batch, 1, l->u->s->pool));
    l->student = l->plain;
    l->params = l->plain_params;
    l->predictor = l->plain_predictor;
    return RT_OK;
}

/* Drawn, because files may be sorted by class or deal classes out in turn. */
static rt_status draw_rows(line *l, const rt_part *p) {
    int64_t *order;
    RT_TRY(rt_calloc(&order, (size_t)p->n, sizeof *order));
    rt_rng_permutation(rt_rng_make(l->u->s->o->seed, RT_RNG_DATA, 0, ROWS), order, p->n);
    const rt_status st = rt_subset_rows(&l->set, p, order, l->n);
    rt_free(order);
    return st;
}

/* *any is false where there are no two members to go between. */
static rt_status line_open(line *l, rt_subject *u, const rt_model **inside, bool *any) {
    const rt_part *p = u->s->test;
    *l = (line){.u = u,
                .n = RT_MIN(p->n, (int64_t)ROWS),
                .student = rt_model_student(u->model),
                .params = (rt_params *)(uintptr_t)rt_model_params(u->model),
                .predictor = u->predictor};
    RT_TRY(find_members(l, inside));
    *any = *inside || rt_model_networks(u->model) > 1;
    if (!*any)
        return RT_OK;
    if (*inside)
        RT_TRY(make_plain(l, *inside));
    l->m = rt_student_members(l->student);
    RT_TRY(rt_calloc(&l->block, (size_t)rt_params_floats(l->params), sizeof *l->block));
    RT_TRY(draw_rows(l, p));
    RT_TRY(rt_calloc(&l->label, (size_t)l->n, sizeof *l->label));
    RT_TRY(rt_calloc(&l->target, (size_t)l->n, sizeof *l->target));
    for (int64_t i = 0; i < l->n; i++) {
        if (p->label)
            l->label[i] = rt_subset_label(&l->set, i);
        if (p->target)
            l->target[i] = (float)rt_subset_target(&l->set, i);
    }
    return rt_calloc(&l->y, (size_t)(l->n * l->m * u->k), sizeof *l->y);
}

static void line_close(line *l) {
    rt_subset_deinit(&l->set);
    rt_predictor_destroy(&l->plain_predictor);
    rt_student_destroy(&l->plain);
    rt_params_destroy(&l->plain_params);
    rt_model_destroy(&l->members);
    rt_free(l->block);
    rt_free(l->label);
    rt_free(l->target);
    rt_free(l->y);
}

/* (1 - a) w_0 + a w_1 in the block. */
static rt_status interpolate(line *l, const rt_model *inside, double a) {
    if (inside) {
        double *weight;
        const rt_student *s = rt_model_student(inside);
        RT_TRY(rt_calloc(&weight, (size_t)rt_student_members(s), sizeof *weight));
        weight[0] = 1 - a;
        weight[1] = a;
        const rt_status st = rt_student_mix(s, rt_model_params(inside), rt_model_block(inside, 0), weight,
                                            l->params, l->block);
        rt_free(weight);
        return st;
    }
    const float *first = rt_model_block(l->u->model, 0), *second = rt_model_block(l->u->model, 1);
    for (int64_t i = 0; i < rt_params_floats(l->params); i++)
        l->block[i] = (float)((1 - a) * (double)first[i] + a * (double)second[i]);
    return RT_OK;
}

static rt_status score(const line *l, double *loss, double *accuracy) {
    const rt_subject *u = l->u;
    rt_eval_input in = {.how = u->how, .n = l->n, .y = l->y, .label = l->label, .target = l->target};
    double v[RT_METRICS_MAX];
    in.how.m = l->m;
    RT_TRY(rt_eval_all(&in, v, NULL));
    *loss = v[rt_metric_find("nll", u->regression)];
    *accuracy = u->regression ? NAN : v[rt_metric_find("accuracy", false)];
    return RT_OK;
}

static void put_line(const line *l, const double *a, const double *loss, const double *accuracy, rt_json *j) {
    static const char why[] = "a prediction is not finite";
    rt_json_object_begin(j, "line");
    rt_json_i64(j, "first", 0);
    rt_json_i64(j, "second", 1);
    rt_json_i64(j, "rows", l->n);
    rt_put_array(j, "alpha", a, POINTS, NULL);
    rt_put_array(j, "loss", loss, POINTS, why);
    if (!l->u->regression)
        rt_put_array(j, "accuracy", accuracy, POINTS, why);
    rt_json_object_end(j);
}

/* Nothing is written for a run without two members. */
rt_status rt_assess_line(rt_subject *u, rt_json *j) {
    double a[POINTS], loss[POINTS], accuracy[POINTS];
    const rt_model *inside = NULL;
    bool any;
    line l = {0};
    norms b = {0};
    rt_status st;
    RT_TRY_GOTO(line_open(&l, u, &inside, &any));
    if (!any)
        goto done;
    const bool normed = rt_norms_any(l.params);
    if (normed)
        RT_TRY_GOTO(norms_open(&b, u, l.student));
    for (int i = 0; i < POINTS; i++) {
        a[i] = (double)i / (POINTS - 1);
        RT_TRY_GOTO(interpolate(&l, inside, a[i]));
        if (normed)
            RT_TRY_GOTO(rt_norms_estimate(&b.taps, l.block));
        const float *block = l.block;
        RT_TRY_GOTO(rt_predictor_run(l.predictor, &l.set, &block, 1, take, &l, u->s->o->stop));
        RT_TRY_GOTO(score(&l, &loss[i], &accuracy[i]));
        rt_subject_tell(u, "line between members", l.n);
    }
    put_line(&l, a, loss, accuracy, j);
done:
    norms_close(&b);
    line_close(&l);
    return st;
}
