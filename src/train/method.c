/*
 * method.c - from the words of a configuration to what is trained: a method's preset fills in what was not
 * said, the teacher says how many members, and phases follow.
 *
 *     train      one phase: the student on labels
 *     distill    one phase: student x objective x perturbation
 *                two, where the method grows heads: a single head on the mean teacher, then all from it
 *
 * Whatever does not fit together is refused here or in rt_distill_check, before anything is computed.
 */
#include "base/alloc.h"
#include "plan/optim.h"
#include "train/train_int.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

static rt_status parse_fast_init(rt_student_config *s, const char *text) {
    static const char *const forms[] = {"default", "ones", "sign", "sign:P", "normal:STD"};
    static const struct {
        const char *name;
        rt_init init;
    } table[] = {{"default", RT_INIT_DEFAULT}, {"ones", RT_INIT_ONE}, {"sign", RT_INIT_RANDOM_SIGN}};
    for (int64_t i = 0; i < RT_COUNT(table); i++)
        if (strcmp(text, table[i].name) == 0) {
            s->fast_init = table[i].init;
            return RT_OK;
        }
    if (rt_str_starts(text, "sign:")) {
        RT_FAIL_IF(!rt_parse_f64(text + 5, strlen(text + 5), false, &s->fast_scale) ||
                       !(s->fast_scale > 0 && s->fast_scale <= 1),
                   RT_E_USAGE, "--fast-init: '%s'; wanted sign:P with a probability of +1 above 0, at most 1",
                   text);
        s->fast_init = RT_INIT_RANDOM_SIGN;
        return RT_OK;
    }
    if (!rt_str_starts(text, "normal:"))
        RT_FAIL_UNKNOWN(RT_E_USAGE, text, forms, RT_COUNT(forms), "--fast-init: unknown");
    RT_FAIL_IF(!rt_parse_f64(text + 7, strlen(text + 7), false, &s->fast_scale) ||
                   !(s->fast_scale > 0 && s->fast_scale <= 100),
               RT_E_USAGE, "--fast-init: '%s'; wanted normal:STD with STD above 0, at most 100", text);
    s->fast_init = RT_INIT_NORMAL_AROUND_ONE;
    return RT_OK;
}

/* ---- the configuration, with everything filled in ---- */

static const char *objective_of(const rt_trainer *t, const rt_method_phase *p) {
    return t->data.regression ? p->regression : p->objective;
}

static rt_status resolve_method(rt_trainer *t, const rt_method **out) {
    rt_config *c = &t->config;
    const rt_method *m = rt_method_find(c->method);
    if (!m)
        return rt_method_unknown(c->method);
    if (!c->objective) {
        c->objective = objective_of(t, rt_method_last(m));
        RT_FAIL_IF(!c->objective, RT_E_USAGE, "method %s is for classification, %s is a regression", m->name,
                   c->data);
    }
    if (!c->student)
        c->student = rt_method_last(m)->student;
    if (!c->perturb)
        c->perturb = m->perturb;
    if (c->temperature <= 0)
        c->temperature = m->temperature;
    if (!rt_config_is_set(c, "alpha"))
        c->alpha = m->alpha;
    *out = m;
    return RT_OK;
}

/* Why teachers have to run inside the step, or NULL. */
static const char *online_reason(const rt_trainer *t) {
    const rt_config *c = &t->config;
    if (t->aim.perturb)
        return "--perturb";
    if (c->teacher_pull > 0)
        return "--teacher-pull";
    return NULL;
}

static rt_status resolve_teacher(rt_trainer *t, const rt_objective *o) {
    rt_config *c = &t->config;
    const bool augmented = t->data.batches.augment.flip || t->data.batches.augment.crop_pad > 0 ||
                           t->data.batches.augment.shift > 0 || t->data.batches.augment.rotate > 0;
    const bool needed = (o->needs & RT_OBJ_TEACHER) != 0, said = rt_config_is_set(c, "online-teacher");
    const char *reason = online_reason(t);
    RT_FAIL_IF(needed && !c->teacher, RT_E_USAGE,
               "objective %s needs a teacher: --teacher DIR, or logits:FILE.npy", o->name);
    if (!c->teacher) {
        c->online_teacher = false;
        RT_FAIL_IF(rt_trainer_reconstructs(t) || reason, RT_E_USAGE, "%s: needs a teacher",
                   reason ? reason : "--init-from-teacher");
        return RT_OK;
    }
    RT_TRY(rt_teacher_open(&t->teach.teacher, c->teacher, rt_config_v3(c)));
    const rt_teacher *teacher = t->teach.teacher;
    RT_FAIL_IF(reason && said && !c->online_teacher, RT_E_USAGE,
               "%s moves what teachers answer for: they run in each step, not once", reason);
    RT_FAIL_IF(
        !teacher->model && needed && augmented && !said && (o->needs & RT_OBJ_DIRICHLET) == 0, RT_E_USAGE,
        "--augment: %s are those of the rows as they are, not of what --augment makes of them; "
        "give "
        "the teacher's run, leave --augment out, or say --no-online-teacher to distil them all the same",
        teacher->first ? "outputs of teachers of several kinds" : "stored outputs");
    if (!said)
        c->online_teacher =
            reason || (needed && augmented && teacher->model && (o->needs & RT_OBJ_DIRICHLET) == 0);
    if (c->online_teacher)
        RT_TRY(rt_teacher_check_online(teacher, reason ? reason : "--online-teacher"));
    RT_FAIL_IF(strcmp(c->init_from_teacher, "match") == 0 && c->teacher_pull > 0, RT_E_USAGE,
               "--init-from-teacher match renumbers what the student starts from, --teacher-pull leads to "
               "the teachers' "
               "weights as they are: one or the other");
    RT_FAIL_IF(rt_trainer_reconstructs(t) && !teacher->model, RT_E_USAGE,
               teacher->first ? "--init-from-teacher: the teachers are not of one kind"
                              : "--init-from-teacher: stored logits have no weights; give the run");
    return RT_OK;
}

/* Without a word about it, the student is built like its teacher. */
static void resolve_arch(rt_trainer *t) {
    rt_config *c = &t->config;
    const rt_teacher *teacher = t->teach.teacher;
    if (c->arch || !teacher || !teacher->model)
        return;
    const rt_arch_config *a = rt_net_config(rt_model_net(teacher->model));
    c->arch = a->spec;
    if (a->activation && !rt_config_is_set(c, "activation"))
        c->activation = a->activation;
}

/* "latent-be" without a number has as many members as there are teachers. */
static rt_status complete_student(rt_trainer *t, char out[RT_SPEC_MAX]) {
    const char *spec = t->config.student;
    bool many = false;
    for (int i = 0; i < rt_student_count(); i++)
        many = many || (rt_student_get(i).many && strcmp(rt_student_get(i).name, spec) == 0);
    RT_FAIL_IF(strlen(spec) > 48, RT_E_USAGE, "--student: '%.48s...' is unknown", spec);
    RT_FAIL_IF(many && !t->teach.teacher, RT_E_USAGE, "--student: how many members? Give %s:M", spec);
    if (many)
        snprintf(out, RT_SPEC_MAX, "%s:%d", spec, t->teach.teacher->members);
    else
        snprintf(out, RT_SPEC_MAX, "%s", spec);
    return RT_OK;
}

/* A first phase where the method has one that the student can grow from; both have at least one epoch. */
static rt_status make_phases(rt_trainer *t, const rt_method *m, const rt_objective *o) {
    const rt_config *c = &t->config;
    const rt_method_phase *before = rt_method_phases(m) > 1 ? &m->phase[0] : NULL;
    rt_phase *last = &t->aim.phases[0];
    *last = (rt_phase){.objective = o, .epochs = c->epochs};
    RT_TRY(complete_student(t, last->student));
    t->aim.nphases = 1;
    const bool grows =
        before && rt_student_grows(before->student, last->student) && (o->needs & RT_OBJ_PAIRED) != 0;
    const int64_t first = RT_MIN((int64_t)floor(c->grow_fraction * (double)c->epochs + 0.5), c->epochs - 1);
    if (!grows || first < 1)
        return RT_OK;
    t->aim.phases[1] = *last;
    t->aim.phases[1].first = first;
    t->aim.phases[1].epochs = c->epochs - first;
    *last = (rt_phase){.epochs = first, .objective = rt_objective_find(objective_of(t, before))};
    snprintf(last->student, sizeof last->student, "%s", before->student);
    t->aim.nphases = 2;
    return RT_OK;
}

/* Settings that were not given are those of the objective's paper, unless another optimiser was chosen. */
static bool train_as_paper(rt_config *c, const rt_optimiser_preset *m) {
    if (!m->name || (rt_config_is_set(c, "optimiser") && strcmp(c->optimiser, m->name) != 0))
        return false;
    c->optimiser = m->name;
    if (!rt_config_is_set(c, "lr"))
        c->lr = m->lr;
    if (!rt_config_is_set(c, "schedule"))
        c->schedule = m->schedule;
    if (!rt_config_is_set(c, "clip-norm"))
        c->clip_norm = m->clip_norm;
    if (!rt_config_is_set(c, "weight-decay"))
        c->weight_decay = m->weight_decay;
    return true;
}

/* Unless epochs are set: as many as give so many steps, but no more passes than that. */
static void train_for(rt_trainer *t, int64_t steps, int64_t passes) {
    rt_config *c = &t->config;
    const int64_t each = RT_MAX((rt_dataset_train(t->data.set)->n + c->batch - 1) / c->batch, 1);
    if (!rt_config_is_set(c, "epochs"))
        c->epochs = RT_MAX(c->epochs, RT_MIN((steps + each - 1) / each, passes));
}

/* Errors far outside make the gradient of a likelihood as large as their squares: at the usual rate of sgd most tables
 * diverge. And tables are small: ten epochs of a few hundred rows are forty steps, which fit nothing. The weights of
 * the best validation loss are kept, so that more steps than needed cost seconds, not quality; tables without noise
 * (naval)
 * gain from every one of them, and lose by the decay that suits images. */
static void resolve_regression(rt_trainer *t) {
    const bool table = rt_dataset_row(t->data.set).rank == 1;
    const int64_t steps = table ? 20000 : 2000, passes = table ? 2000 : 400;
    rt_config *c = &t->config;
    if (!rt_config_is_set(c, "optimiser")) {
        c->optimiser = "adam";
        if (!rt_config_is_set(c, "lr"))
            c->lr = 0.01;
        if (table && !rt_config_is_set(c, "weight-decay"))
            c->weight_decay = 1e-5;
    }
    if (!rt_config_is_set(c, "clip-norm"))
        c->clip_norm = 1;
    train_for(t, steps, passes);
}

/* A folder of one's own is small, too: ten epochs of a thousand pictures are a hundred steps. */
static void resolve_pictures(rt_trainer *t) {
    if (rt_dataset_row(t->data.set).rank == 3 && !rt_dataset_ordered(t->data.set))
        train_for(t, 700, 60);
}

/* T^2 makes the gradients of a distillation large. In networks without batch normalisation sgd diverges at its usual
 * rate unless the norm of gradients is clipped. */
static void resolve_optimiser(rt_trainer *t, const rt_objective *o) {
    rt_config *c = &t->config;
    rt_optim_rule rule;
    if (!t->data.regression)
        resolve_pictures(t);
    if (train_as_paper(c, &o->optimiser))
        return;
    if (t->data.regression)
        resolve_regression(t);
    if (!rt_optim_find(&rule, c->optimiser) || rule != RT_OPTIM_SGD) {
        if (!rt_config_is_set(c, "lr") && !(t->data.regression && !rt_config_is_set(c, "optimiser")))
            c->lr = 0.001;
    } else if (t->verb == RT_VERB_DISTILL && c->arch && !rt_arch_normalises(c->arch)) {
        if (!rt_config_is_set(c, "clip-norm"))
            c->clip_norm = 1;
        if (!rt_config_is_set(c, "warmup"))
            c->warmup = fmin(1, (double)c->epochs / 4);
    }
}

/* What the best weights are: by loss where there is nothing else or the paper has it so. */
static void resolve_keep(rt_trainer *t, const rt_method *m) {
    const char *keep = t->config.keep;
    if (strcmp(keep, "best") == 0)
        keep = m->keep;
    t->aim.keep_by_loss = t->data.regression || strcmp(keep, "loss") == 0;
}

/* With a one-cycle schedule the temperature reaches 1 where the cycle of the learning rate ends. */
static rt_status resolve_anneal(rt_config *c, const rt_method *m) {
    rt_schedule s;
    if (c->anneal >= 0)
        return RT_OK;
    c->anneal = m->anneal;
    RT_TRY(rt_schedule_parse(&s, c->schedule, c->lr, c->warmup, (double)c->epochs));
    if (m->anneal > 0 && s.rises && c->epochs > 0)
        c->anneal = s.cycle / (double)c->epochs;
    return RT_OK;
}

rt_status rt_trainer_resolve(rt_trainer *t) {
    rt_config *c = &t->config;
    const rt_method *m = rt_method_plain();
    const rt_objective *o;
    if (t->verb == RT_VERB_DISTILL) {
        RT_TRY(resolve_method(t, &m));
        RT_TRY(rt_perturb_parse(&t->aim.perturb, c->perturb));
        o = rt_objective_find(c->objective);
        if (!o)
            return rt_objective_unknown(c->objective);
        RT_TRY(resolve_teacher(t, o));
        resolve_arch(t);
        RT_FAIL_IF(c->aux && (o->needs & RT_OBJ_OOD) == 0 && (o->needs & RT_OBJ_TEACHER) == 0, RT_E_USAGE,
                   "--aux: objective %s learns from labels, and these inputs have none", o->name);
        RT_FAIL_IF(c->aux && (o->needs & RT_OBJ_OOD) == 0 &&
                       (c->alpha < 1 || (o->needs & RT_OBJ_LABELS) != 0),
                   RT_E_USAGE, "--aux: these inputs have no labels, so --alpha must be 1");
        RT_FAIL_IF(strcmp(c->teacher_mean, "logits") == 0 && (o->needs & RT_OBJ_MEAN) == 0, RT_E_USAGE,
                   "--teacher-mean logits: objective %s has no mean of teachers; kd has", o->name);
    } else {
        o = rt_objective_find(objective_of(t, rt_method_last(m)));
        if (!c->student)
            c->student = rt_method_last(m)->student;
    }
    resolve_optimiser(t, o);
    resolve_keep(t, m);
    if (t->verb == RT_VERB_DISTILL)
        RT_TRY(resolve_anneal(c, m));
    t->aim.method = m->name;
    return make_phases(t, m, o);
}

/* ---- phases, and what is kept of them ---- */

int rt_aim_phase_at(const rt_aim *a, int64_t epoch) {
    return a->nphases > 1 && epoch >= a->phases[1].first ? 1 : 0;
}

const char *rt_aim_kept(const rt_aim *a) {
    return !a->keep_best ? "last" : a->keep_by_loss ? "loss" : "accuracy";
}

/* ---- for the builders ---- */

rt_status rt_trainer_student(const rt_trainer *t, rt_student_config *s) {
    const rt_phase *p = rt_aim_phase(&t->aim);
    const rt_config *c = &t->config;
    s->spec = p->student;
    s->regression = t->data.regression;
    s->head = c->head;
    s->split = c->split;
    s->member_bn = c->member_bn;
    s->full_bias_rate = rt_config_older(c);
    s->product_of_means = c->product_of_means;
    s->dirichlet_offset = p->objective->offset;
    return parse_fast_init(s, c->fast_init);
}

rt_distill_config rt_trainer_what(const rt_trainer *t) {
    const rt_phase *p = rt_aim_phase(&t->aim);
    const rt_config *c = &t->config;
    const rt_teacher *teacher = t->teach.teacher;
    /* a single head has no pair to compare */
    const bool alone =
        !rt_aim_last(&t->aim) && t->aim.perturb && (t->aim.perturb->needs & RT_NEEDS_STUDENT_PAIR) != 0;
    rt_distill_config w = {.student = rt_model_student(t->net.model),
                           .objective = p->objective,
                           .perturb = alone ? NULL : t->aim.perturb,
                           .regression = t->data.regression,
                           .ood = t->teach.aux.outside,
                           .perturb_size = c->perturb_size,
                           .options = {.alpha = t->verb == RT_VERB_DISTILL ? c->alpha : 1,
                                       .label_smoothing = c->label_smoothing,
                                       .teacher_logits = strcmp(c->teacher_mean, "logits") == 0,
                                       .class_weight = t->data.class_weight,
                                       .teacher_smoothing = c->teacher_smoothing,
                                       .temper_mean = strcmp(c->temperature_on, "logits") == 0,
                                       .ae_c = c->ae_c,
                                       .ae_per_sample = c->ae_per_sample,
                                       .prior_beta = c->prior_beta,
                                       .ood_weight = c->ood_weight}};
    if (teacher && ((p->objective->needs & RT_OBJ_TEACHER) != 0 || c->online_teacher)) {
        w.teachers = teacher->members;
        w.teacher_pull = rt_aim_last(&t->aim) ? c->teacher_pull : 0;
        if (c->online_teacher) {
            w.teacher_net = rt_model_net(teacher->model);
            w.teacher_params = rt_model_params(teacher->model);
        }
    }
    return w;
}

double rt_trainer_temperature(const rt_trainer *t, double epoch) {
    const rt_phase *p = rt_aim_phase(&t->aim);
    if (t->verb != RT_VERB_DISTILL)
        return 1;
    if (rt_config_older(&t->config))
        epoch = floor(epoch);
    return rt_method_temperature(t->config.temperature, t->config.anneal,
                                 (epoch - (double)p->first) / (double)RT_MAX(p->epochs, 1));
}

double rt_trainer_last_temperature(const rt_trainer *t, int64_t epoch) {
    return rt_trainer_temperature(t, rt_train_data_last_step(&t->data, epoch));
}
