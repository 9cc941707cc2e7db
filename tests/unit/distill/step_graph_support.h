/*
 * step_graph_support.h - objectives and perturbations of the tests of step graphs, and one with teachers,
 * inputs, feeds and parameters bound to its slots.
 */
#ifndef RT_TESTS_STEP_GRAPH_SUPPORT_H
#define RT_TESTS_STEP_GRAPH_SUPPORT_H

#include "unit/distill/students_support.h"
#include "perturb/perturb.h"

enum { BATCH = 8, K = 4, MT_MAX = 3, MAX_PARAMS = 800, MAX_OUT = 256 };
static const rt_shape IMAGE = {3, {3, 8, 8}};

/* ---- objectives and perturbations of the test ---- */

/* CE(softmax(z_Tm / T), softmax(z_Sm / T)), member by member. */
static rt_val paired_build(const rt_objective_in *in) {
    const rt_val t = rt_unary(in->g, RT_OP_RECIP, in->temperature);
    const rt_val q = rt_softmax(in->g, rt_mul_scalar(in->g, in->teacher, t));
    return rt_batch_mean(in->g, rt_ce_dist(in->g, rt_mul_scalar(in->g, in->student, t), q));
}
/* CE to the mean teacher, mixed with the labels. */
static rt_val mean_build(const rt_objective_in *in) {
    const int ms = rt_graph_node(in->g, in->student)->type.groups;
    rt_val q = rt_mean_members(in->g, rt_softmax(in->g, in->teacher)), y = in->label;
    if (ms > 1) {
        q = rt_tile_members(in->g, q, ms);
        y = rt_tile_members(in->g, y, ms);
    }
    const rt_val soft = rt_batch_mean(in->g, rt_ce_dist(in->g, in->student, q));
    const rt_val hard = rt_batch_mean(in->g, rt_ce_label(in->g, in->student, y, in->label_smoothing));
    return rt_add(in->g, rt_scale(in->g, soft, in->alpha, 0), rt_scale(in->g, hard, 1 - in->alpha, 0));
}
/* Labels inside, e^z + offset near 1 outside. */
static rt_val ood_build(const rt_objective_in *in) {
    const rt_val a = rt_scale(in->g, rt_unary(in->g, RT_OP_EXP, in->ood_student), 1, in->dirichlet_offset);
    const rt_val far =
        rt_batch_mean(in->g, rt_row_sum(in->g, rt_unary(in->g, RT_OP_SQUARE, rt_unary(in->g, RT_OP_LOG, a))));
    return rt_add(in->g, rt_batch_mean(in->g, rt_ce_label(in->g, in->student, in->label, 0)), far);
}
static rt_val regression_build(const rt_objective_in *in) {
    const rt_val d =
        rt_row_sum(in->g, rt_unary(in->g, RT_OP_SQUARE, rt_sub(in->g, in->student, in->teacher)));
    return rt_batch_mean(in->g, d);
}

enum { BOTH = RT_OBJ_CLASSIFICATION | RT_OBJ_REGRESSION };
static const rt_objective PAIRED = {.name = "paired",
                                    .meaning = "",
                                    .needs = RT_OBJ_TEACHER | RT_OBJ_PAIRED | RT_OBJ_CLASSIFICATION,
                                    .build = paired_build};
static const rt_objective MEAN = {
    .name = "mean", .meaning = "", .needs = RT_OBJ_TEACHER | RT_OBJ_CLASSIFICATION, .build = mean_build};
static const rt_objective LONE = {
    .name = "lone", .meaning = "", .needs = RT_OBJ_TEACHER | RT_OBJ_SINGLE | BOTH, .build = mean_build};
static const rt_objective OUTSIDE = {.name = "outside",
                                     .meaning = "",
                                     .needs = RT_OBJ_OOD | RT_OBJ_DIRICHLET | RT_OBJ_CLASSIFICATION,
                                     .build = ood_build};
static const rt_objective NUMBERS = {.name = "numbers",
                                     .meaning = "",
                                     .needs = RT_OBJ_TEACHER | RT_OBJ_PAIRED | RT_OBJ_REGRESSION,
                                     .build = regression_build};

static rt_val darker_build(const rt_perturb_in *in) {
    return rt_stop_grad(in->g, rt_scale(in->g, in->x, 0.75, 0.1));
}
/* A step along the gradient of H(p_j, p_i) of teachers, minus that of the student if it takes part. */
static rt_val step_along(const rt_perturb_in *in, bool student) {
    rt_graph *g = in->g;
    rt_val gap = 0, dx = 0;
    for (int who = RT_WHO_TEACHER_I; who <= (student ? RT_WHO_STUDENT_I : RT_WHO_TEACHER_I); who += 2) {
        const rt_val zi = in->forward(in->user, who, in->x), zj = in->forward(in->user, who + 1, in->x);
        const rt_val h = rt_batch_mean(g, rt_ce_dist(g, zi, rt_stop_grad(g, rt_softmax(g, zj))));
        gap = gap == 0 ? h : rt_sub(g, gap, h);
    }
    if (rt_graph_grad(g, gap, &in->x, 1, &dx) != RT_OK)
        return 0;
    const rt_val scale =
        rt_scale(g, rt_unary(g, RT_OP_RECIP, rt_row_norm(g, dx, 1e-12)), in->size * sqrt(192), 0);
    return rt_stop_grad(g, rt_clip(g, rt_add(g, in->x, rt_mul_row(g, dx, scale)), 0, 1));
}
static rt_val teachers_build(const rt_perturb_in *in) {
    return step_along(in, false);
}
static rt_val pair_build(const rt_perturb_in *in) {
    return step_along(in, true);
}
static rt_val one_build(const rt_perturb_in *in) {
    rt_val dx = 0;
    if (rt_graph_grad(in->g, rt_total_sum(in->g, in->forward(in->user, RT_WHO_TEACHER_I, in->x)), &in->x, 1,
                      &dx) != RT_OK)
        return 0;
    return rt_stop_grad(in->g, rt_clip(in->g, rt_add(in->g, in->x, dx), 0, 1));
}
static const rt_perturb DARKER = {"darker", "", 0, darker_build};
static const rt_perturb ONE = {"one", "", RT_NEEDS_TEACHER_I, one_build};
static const rt_perturb TEACHERS = {
    "teachers", "", RT_NEEDS_TEACHER_I | RT_NEEDS_TEACHER_J | RT_NEEDS_CLASSES, teachers_build};
static const rt_perturb PAIR = {
    "pair", "", RT_NEEDS_TEACHER_I | RT_NEEDS_TEACHER_J | RT_NEEDS_STUDENT_PAIR | RT_NEEDS_CLASSES,
    pair_build};

/* ---- a step graph with everything bound ---- */

typedef struct world {
    learner student, teacher[MT_MAX];
    rt_distill_config c;
    float *x, *ood, *target, *teacher_logits;
    int32_t label[BATCH];
    float temperature;
    int32_t i, j;
} world;

static world world_make(const char *student, const char *student_arch, const char *teacher_arch, int teachers,
                        bool regression) {
    world w = {.temperature = 2.5f, .i = 2 % teachers, .j = 0};
    const int64_t outputs = regression ? 2 : K;
    w.student =
        learner_make((rt_student_config){.spec = student,
                                         .arch = {.spec = student_arch, .input = IMAGE, .outputs = outputs},
                                         .regression = regression,
                                         .dirichlet_offset = 0.5});
    for (int m = 0; m < teachers; m++) {
        w.teacher[m] = learner_make((rt_student_config){
            .spec = "single", .arch = {.spec = teacher_arch, .input = IMAGE, .outputs = outputs}});
        for (int64_t k = 0; k < rt_params_floats(w.teacher[m].params); k++)
            w.teacher[m].block[k] *= 1 + 0.3f * (float)m * (float)hash_uniform("teacher", k);
    }
    w.x = inputs_make("x", BATCH * 192);
    w.ood = inputs_make("ood", BATCH * 192);
    w.target = inputs_make("target", BATCH);
    OK(rt_calloc(&w.teacher_logits, (size_t)(teachers * BATCH * outputs), sizeof *w.teacher_logits));
    for (int m = 0; m < teachers; m++) {
        float *z = student_eval(&w.teacher[m], w.x, BATCH, -1);
        memcpy(w.teacher_logits + m * BATCH * outputs, z, (size_t)(BATCH * outputs) * sizeof *z);
        rt_free(z);
    }
    for (int k = 0; k < BATCH; k++)
        w.label[k] = k * 7 % K;
    w.c = (rt_distill_config){.student = w.student.student,
                              .regression = regression,
                              .teachers = teachers,
                              .teacher_net = rt_student_net(w.teacher[0].student),
                              .teacher_params = w.teacher[0].params,
                              .options = {.alpha = 0.7,
                                          .label_smoothing = 0.1,
                                          .teacher_smoothing = 1e-4,
                                          .ae_c = 0.6,
                                          .prior_beta = 100,
                                          .ood_weight = 1},
                              .perturb_size = 0.05};
    return w;
}

static void world_drop(world *w) {
    learner_drop(&w->student);
    for (int m = 0; m < MT_MAX; m++)
        learner_drop(&w->teacher[m]);
    rt_free(w->x);
    rt_free(w->ood);
    rt_free(w->target);
    rt_free(w->teacher_logits);
}

/* A step graph (or a probe), the gradients of its loss as outputs, and what is bound to its slots. */
typedef struct bench {
    rt_step_graph p;
    void *param[MAX_PARAMS];
    const void *input[8], *feed[4];
    int nparam, nout;
    int64_t count[MAX_OUT];
    float *out[MAX_OUT];
} bench;

static void bind_copy(bench *b, const learner *l, int first) {
    const int n = rt_params_count(l->params);
    assert_true(first + n <= MAX_PARAMS);
    for (int i = 0; i < n; i++)
        b->param[first + i] = l->block + rt_params_get(l->params, i)->offset;
    b->nparam = RT_MAX(b->nparam, first + n);
}

static void bench_bind(bench *b, world *w) {
    const rt_step_graph *p = &b->p;
    bind_copy(b, &w->student, 0);
    for (int t = 0; t < p->nteacher; t++) {
        const int m = p->teacher[t].member;
        bind_copy(b, &w->teacher[m >= 0 ? m : m == -1 ? w->i : w->j], p->teacher[t].first);
    }
    const struct {
        int slot;
        const void *data;
    } in[] = {{p->in_x, w->x},
              {p->in_label, w->label},
              {p->in_target, w->target},
              {p->in_teacher, w->teacher_logits},
              {p->in_ood, w->ood}},
      feed[] = {{p->feed_temperature, &w->temperature}, {p->feed_i, &w->i}, {p->feed_j, &w->j}};
    for (int64_t k = 0; k < RT_COUNT(in); k++)
        if (in[k].slot >= 0)
            b->input[in[k].slot] = in[k].data;
    for (int64_t k = 0; k < RT_COUNT(feed); k++)
        if (feed[k].slot >= 0)
            b->feed[feed[k].slot] = feed[k].data;
}

static void bench_outputs(bench *b) {
    b->nout = rt_graph_outputs(b->p.g);
    assert_true(b->nout <= MAX_OUT);
    for (int i = 0; i < b->nout; i++) {
        b->count[i] = rt_shape_elems(&rt_graph_node(b->p.g, rt_graph_get_output(b->p.g, i)->v)->type.shape);
        OK(rt_calloc(&b->out[i], (size_t)b->count[i], sizeof(float)));
    }
}

static bench *bench_make(world *w) {
    bench *b = NULL;
    OK(rt_calloc(&b, 1, sizeof *b));
    OK(rt_step_graph_build(&b->p, &w->c, w->student.params, BATCH));
    rt_graph *g = b->p.g;
    rt_graph_output(g, "logits", b->p.logits);
    const int n = rt_params_count(w->student.params);
    rt_val leaf[MAX_PARAMS], grad[MAX_PARAMS];
    for (int i = 0; i < n; i++) {
        const rt_param *p = rt_params_get(w->student.params, i);
        leaf[i] = rt_graph_param(g, i, p->name, p->shape);
    }
    OK(rt_graph_grad(g, b->p.loss, leaf, n, grad));
    for (int i = 0; i < n; i++) {
        char name[160];
        const rt_param *p = rt_params_get(w->student.params, i);
        snprintf(name, sizeof name, "grad:%s", p->name);
        if (p->role != RT_ROLE_STATE && grad[i] == 0)
            fail_msg("%s does not influence the loss", p->name);
        if (p->role != RT_ROLE_STATE && grad[i] != 0)
            rt_graph_output(g, name, grad[i]);
    }
    OK(rt_graph_status(g));
    OK(rt_graph_verify(g));
    bench_bind(b, w);
    bench_outputs(b);
    return b;
}

static void bench_drop(bench *b) {
    for (int i = 0; i < b->nout; i++)
        rt_free(b->out[i]);
    rt_step_graph_deinit(&b->p);
    rt_free(b);
}

static const rt_run RUN = {.seed = 3, .step = 7};

static void bench_interp(bench *b) {
    OK(rt_interp_run(b->p.g, (const void *const *)b->param, b->input, b->feed, (void *const *)b->out, RUN));
}

static const float *bench_get(const bench *b, const char *name) {
    for (int i = 0; i < b->nout; i++)
        if (strcmp(rt_graph_get_output(b->p.g, i)->name, name) == 0)
            return b->out[i];
    fail_msg("no output %s", name);
    return NULL;
}

static void assert_same_outputs(const bench *a, const bench *b, double tolerance, const char *what) {
    int compared = 0;
    for (int i = 0; i < a->nout; i++) {
        const rt_graph_out *o = rt_graph_get_output(a->p.g, i);
        char text[256];
        snprintf(text, sizeof text, "%s, %s", what, o->name);
        assert_near(bench_get(b, o->name), a->out[i], a->count[i], tolerance, text);
        compared++;
    }
    assert_true(compared > 2);
}

#endif
