/*
 * step_graph.c - student, objective, perturbation and teachers joined into the graph of one training step.
 *
 *     x --perturbation--> x~ --teachers (eval)--> z_T --+
 *                          |                            +--> objective --> loss
 *                          +--student (train)--> z_S ---+
 *
 * Teachers inside the step are copies of one network whose parameters are bound from outside: one copy per
 * teacher for the targets, and one each for the drawn pair (i, j) when the perturbation asks for it, so that
 * a perturbation costs two forwards and one input gradient of each kind, however many members there are.
 * Stored teacher outputs are an input instead.
 */
#include "distill/distill_int.h"
#include "perturb/perturb.h"
#include <string.h>

typedef struct builder {
    const rt_distill_config *c;
    rt_step_graph *p;
    rt_params *params;
    rt_val i, j; /* feeds */
} builder;

/* ---- what fits together ---- */

/* Teachers that run inside the step see the student's inputs and give outputs of its width. */
static rt_status check_teacher(const rt_distill_config *c) {
    const rt_arch_config *s = &rt_student_get_config(c->student)->arch;
    if (c->teachers < 1 || c->teacher_net == NULL)
        return RT_OK;
    const rt_arch_config *t = rt_net_config(c->teacher_net);
    RT_FAIL_IF(t->outputs != s->outputs, RT_E_USAGE, "the teacher has %lld outputs, the student %lld",
               (long long)t->outputs, (long long)s->outputs);
    if (rt_shape_equal(&t->input, &s->input))
        return RT_OK;
    rt_str a, b;
    rt_str_init(&a);
    rt_str_init(&b);
    rt_shape_print(&t->input, &a);
    rt_shape_print(&s->input, &b);
    const rt_status st =
        rt_error_set(RT_E_USAGE, __FILE__, __LINE__, "the teacher reads inputs of %s, the student of %s",
                     rt_str_text(&a), rt_str_text(&b));
    rt_str_deinit(&a);
    rt_str_deinit(&b);
    return st;
}

static rt_status check_pull(const rt_distill_config *c) {
    const int members = rt_student_members(c->student);
    if (c->teacher_pull == 0)
        return RT_OK;
    RT_FAIL_IF(!(c->teacher_pull > 0), RT_E_USAGE,
               "pull to the teacher's weights: strength %g, wanted a positive number", c->teacher_pull);
    RT_FAIL_IF(c->teachers < 1 || c->teacher_net == NULL, RT_E_USAGE,
               "pull to the teacher's weights: needs a teacher run, not stored logits");
    RT_FAIL_IF(members != c->teachers, RT_E_USAGE,
               "pull to the teacher's weights: pairs each student member with a teacher: student %s has %d, "
               "the teacher %d",
               rt_student_spec(c->student), members, c->teachers);
    return RT_OK;
}

rt_status rt_distill_check(const rt_distill_config *c) {
    const rt_objective *o = c->objective;
    const char *student = rt_student_spec(c->student);
    const int members = rt_student_members(c->student);
    RT_FAIL_IF(c->regression != rt_student_get_config(c->student)->regression, RT_E_USAGE,
               "student %s was made for %s, the data is %s", student,
               c->regression ? "classification" : "regression",
               c->regression ? "a regression" : "a classification");
    const bool dirichlet = rt_student_output(c->student) == RT_OUTPUT_DIRICHLET;
    RT_FAIL_IF((o->needs & RT_OBJ_TEACHER) != 0 && c->teachers < 1, RT_E_USAGE,
               "objective %s needs a teacher", o->name);
    RT_FAIL_IF((o->needs & RT_OBJ_TEACHER) != 0 && (o->needs & RT_OBJ_DIRICHLET) != 0 && c->teachers < 2,
               RT_E_USAGE, "objective %s learns how far teachers are apart; this teacher is a single network",
               o->name);
    RT_FAIL_IF(c->regression && (o->needs & RT_OBJ_REGRESSION) == 0, RT_E_USAGE,
               "objective %s is for classification, the data is a regression", o->name);
    RT_FAIL_IF(!c->regression && (o->needs & RT_OBJ_CLASSIFICATION) == 0, RT_E_USAGE,
               "objective %s is for regression, the data is a classification", o->name);
    RT_FAIL_IF((o->needs & RT_OBJ_PAIRED) != 0 && members != c->teachers, RT_E_USAGE,
               "objective %s pairs each student member with a teacher: student %s has %d, the teacher %d",
               o->name, student, members, c->teachers);
    RT_FAIL_IF((o->needs & RT_OBJ_DIRICHLET) != 0 && !dirichlet, RT_E_USAGE,
               "objective %s fits a Dirichlet distribution, student %s gives class probabilities; use "
               "student dirichlet",
               o->name, student);
    RT_FAIL_IF((o->needs & RT_OBJ_DIRICHLET) == 0 && dirichlet, RT_E_USAGE,
               "student dirichlet needs an objective that fits a Dirichlet distribution (end2, proxy-end2, "
               "prior-net), not %s",
               o->name);
    RT_FAIL_IF((o->needs & RT_OBJ_SINGLE) != 0 && members > 1, RT_E_USAGE,
               "objective %s is for one network, student %s has %d members", o->name, student, members);
    RT_FAIL_IF((o->needs & RT_OBJ_OOD) != 0 && !c->ood, RT_E_USAGE,
               "objective %s needs out-of-distribution inputs: --aux SPEC", o->name);
    RT_FAIL_IF((o->needs & RT_OBJ_OOD) != 0 && members > 1, RT_E_USAGE,
               "objective %s is for one network, student %s has %d members", o->name, student, members);
    RT_TRY(check_teacher(c));
    RT_TRY(check_pull(c));
    if (c->perturb == NULL || c->perturb->needs == 0)
        return RT_OK;
    RT_FAIL_IF(c->teachers < 1 || c->teacher_net == NULL, RT_E_USAGE,
               "perturbation %s follows the teacher's gradient: it needs a teacher run, not stored logits",
               c->perturb->name);
    RT_FAIL_IF((c->perturb->needs & RT_NEEDS_TEACHER_J) != 0 && c->teachers < 2, RT_E_USAGE,
               "perturbation %s compares two teachers, the teacher has %d", c->perturb->name, c->teachers);
    RT_FAIL_IF((c->perturb->needs & RT_NEEDS_STUDENT_PAIR) != 0 && members < 2, RT_E_USAGE,
               "perturbation %s compares two student members, student %s has one", c->perturb->name, student);
    RT_FAIL_IF(
        (c->perturb->needs & RT_NEEDS_STUDENT_PAIR) != 0 && members != c->teachers, RT_E_USAGE,
        "perturbation %s draws one pair for teacher and student: the teacher has %d members, student %s %d",
        c->perturb->name, c->teachers, student, members);
    RT_FAIL_IF((c->perturb->needs & RT_NEEDS_CLASSES) != 0 && c->regression, RT_E_USAGE,
               "perturbation %s is for classification", c->perturb->name);
    return RT_OK;
}

/* ---- models ---- */

static rt_val too_many(builder *k) {
    rt_graph_set_error(k->p->g,
                       rt_error_set(RT_E_USAGE, __FILE__, __LINE__,
                                    "more than %d teachers inside a step; store their logits instead",
                                    RT_STEP_TEACHERS_MAX));
    return 0;
}

/* First parameter slot of a copy of the teacher network; member -1, -2: the drawn i, j. Asking for the same
 * member again shares the copy. There are never more than RT_STEP_COPIES_MAX, because all_teachers counts.
 */
static int teacher_slot(builder *k, int member) {
    rt_step_graph *p = k->p;
    int t = 0;
    while (t < p->nteacher && p->teacher[t].member != member)
        t++;
    if (t == p->nteacher) {
        RT_ASSERT(t < RT_STEP_COPIES_MAX);
        p->teacher[t].member = member;
        p->teacher[t].first = rt_params_count(k->params) + t * rt_params_count(k->c->teacher_params);
        p->nteacher++;
    }
    return p->teacher[t].first;
}

static rt_val teacher_logits(builder *k, int member, rt_val x) {
    rt_build b = {.g = k->p->g,
                  .params = (rt_params *)(uintptr_t)k->c->teacher_params,
                  .slot_base = teacher_slot(k, member)};
    return rt_net_forward(k->c->teacher_net, &b, x);
}

static rt_val forward(void *user, int who, rt_val x) {
    builder *k = user;
    if (who == RT_WHO_TEACHER_I || who == RT_WHO_TEACHER_J)
        return teacher_logits(k, who == RT_WHO_TEACHER_I ? -1 : -2, x);
    rt_build b = {.g = k->p->g, .params = k->params};
    return rt_student_member(k->c->student, &b, x, who == RT_WHO_STUDENT_I ? k->i : k->j);
}

static rt_val all_teachers(builder *k, rt_val x) {
    rt_val z[RT_STEP_TEACHERS_MAX];
    const int n = k->c->teachers;
    if (n > RT_STEP_TEACHERS_MAX)
        return too_many(k);
    for (int m = 0; m < n; m++)
        z[m] = teacher_logits(k, m, x);
    return rt_stop_grad(k->p->g, n == 1 ? z[0] : rt_concat_members(k->p->g, z, n));
}

/* The loss with lambda times the distance to the teachers' weights added. */
static rt_val with_pull(builder *k, rt_val loss) {
    int first[RT_STEP_TEACHERS_MAX];
    if (k->c->teacher_pull == 0 || k->c->teachers > RT_STEP_TEACHERS_MAX)
        return loss;
    for (int m = 0; m < k->c->teachers; m++)
        first[m] = teacher_slot(k, m);
    const rt_val pull = rt_teacher_pull(k->p->g, k->params, k->c->teacher_params, first, k->c->teachers);
    return rt_add(k->p->g, loss, rt_scale(k->p->g, pull, k->c->teacher_pull, 0));
}

/* ---- the step ---- */

static rt_val perturbed(builder *k, rt_val x, rt_val temperature) {
    const rt_distill_config *c = k->c;
    if (c->perturb == NULL)
        return x;
    const rt_perturb_in in = {.g = k->p->g,
                              .x = x,
                              .temperature = temperature,
                              .size = c->perturb_size > 0 ? c->perturb_size : 1.0 / 255.0,
                              .stream = 1,
                              .forward = forward,
                              .user = k};
    return c->perturb->build(&in);
}

static void feeds(builder *k) {
    rt_step_graph *p = k->p;
    const unsigned needs = k->c->perturb != NULL ? k->c->perturb->needs : 0;
    p->feed_i = p->feed_j = -1;
    int n = p->feed_temperature + 1;
    if ((needs & (RT_NEEDS_TEACHER_I | RT_NEEDS_STUDENT_PAIR)) != 0) {
        k->i = rt_graph_feed(p->g, "i", RT_DTYPE_I32, rt_shape0());
        p->feed_i = n++;
    }
    if ((needs & (RT_NEEDS_TEACHER_J | RT_NEEDS_STUDENT_PAIR)) != 0) {
        k->j = rt_graph_feed(p->g, "j", RT_DTYPE_I32, rt_shape0());
        p->feed_j = n++;
    }
}

static void build(builder *k) {
    const rt_distill_config *c = k->c;
    rt_step_graph *p = k->p;
    rt_graph *g = p->g;
    const rt_arch_config *arch = rt_net_config(rt_student_net(c->student));
    rt_objective_in in = c->options;
    int n = 0;
    const rt_val x = rt_graph_input(g, "x", RT_DTYPE_F32, arch->input, 1);
    p->in_x = n++;
    p->in_label = p->in_target = p->in_teacher = p->in_ood = -1;
    if (c->regression) {
        in.target = rt_graph_input(g, "target", RT_DTYPE_F32, rt_shape0(), 1);
        p->in_target = n++;
    } else {
        in.label = rt_graph_input(g, "label", RT_DTYPE_I32, rt_shape0(), 1);
        p->in_label = n++;
    }
    in.temperature = rt_graph_feed(g, "temperature", RT_DTYPE_F32, rt_shape0());
    p->feed_temperature = 0;
    feeds(k);
    const rt_val xp = perturbed(k, x, in.temperature);
    if (c->teachers > 0 && c->teacher_net == NULL) {
        in.teacher = rt_graph_input(g, "teacher", RT_DTYPE_F32, rt_shape1(arch->outputs), c->teachers);
        p->in_teacher = n++;
    } else if (c->teachers > 0) {
        in.teacher = all_teachers(k, xp);
    }
    rt_build b = {.g = g, .params = k->params, .train = true};
    in.g = g;
    in.regression = c->regression;
    in.dirichlet_offset = rt_student_get_config(c->student)->dirichlet_offset;
    if (c->ood && (c->objective->needs & RT_OBJ_OOD) != 0) {
        /* One forward over both halves: two would move the running statistics of BN twice, the second
         * forgetting the first. */
        const rt_val half[2] = {xp, rt_graph_input(g, "ood", RT_DTYPE_F32, arch->input, 1)};
        p->in_ood = n++;
        const rt_val z = rt_student_forward(c->student, &b, rt_concat_members(g, half, 2));
        in.student = rt_member_range(g, z, 0, 1);
        in.ood_student = rt_member_range(g, z, 1, 1);
    } else {
        in.student = rt_student_forward(c->student, &b, xp);
    }
    p->logits = in.student;
    p->loss = with_pull(k, c->objective->build(&in));
    rt_graph_output(g, "loss", p->loss);
}

rt_status rt_step_graph_build(rt_step_graph *out, const rt_distill_config *c, rt_params *params,
                              int64_t batch) {
    builder k = {.c = c, .p = out, .params = params};
    *out = (rt_step_graph){0};
    RT_TRY(rt_distill_check(c));
    RT_TRY(rt_graph_create(&out->g, batch, RT_DTYPE_F32));
    build(&k);
    const rt_status st = rt_graph_status(out->g);
    if (st != RT_OK)
        rt_step_graph_deinit(out);
    return st;
}

/* Logits of two members or more: whose diversity is measured. */
static void output_many(rt_graph *g, const char *name, rt_val z) {
    if (rt_groups(g, z) > 1)
        rt_graph_output(g, name, z);
}

static void probe(builder *k, rt_val x, const char *student, const char *teacher) {
    rt_graph *g = k->p->g;
    rt_build b = {.g = g, .params = k->params};
    output_many(g, student, rt_student_forward(k->c->student, &b, x));
    if (k->c->teachers > 0 && k->c->teacher_net != NULL)
        output_many(g, teacher, all_teachers(k, x));
}

rt_status rt_probe_build(rt_step_graph *out, const rt_distill_config *c, rt_params *params, int64_t batch) {
    builder k = {.c = c, .p = out, .params = params};
    *out = (rt_step_graph){0};
    RT_TRY(rt_distill_check(c));
    RT_TRY(rt_graph_create(&out->g, batch, RT_DTYPE_F32));
    rt_graph *g = out->g;
    out->in_label = out->in_target = out->in_teacher = out->in_ood = -1;
    const rt_val x =
        rt_graph_input(g, "x", RT_DTYPE_F32, rt_net_config(rt_student_net(c->student))->input, 1);
    const rt_val temperature = rt_graph_feed(g, "temperature", RT_DTYPE_F32, rt_shape0());
    feeds(&k);
    const rt_val xp = perturbed(&k, x, temperature);
    if (!c->regression) { /* distributions over classes */
        probe(&k, x, "student_diversity", "teacher_diversity");
        if (xp != x)
            probe(&k, xp, "student_diversity_perturbed", "teacher_diversity_perturbed");
    }
    const rt_status st = rt_graph_status(g);
    if (st != RT_OK)
        rt_step_graph_deinit(out);
    return st;
}

void rt_step_graph_deinit(rt_step_graph *p) {
    rt_graph_destroy(&p->g);
}
