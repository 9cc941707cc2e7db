/*
 * trainer_phase.c - the networks of a phase: model, weights, compiled step, validation, the measure of diversity. A
 * method has one phase or two; the networks of the second grow from those of the first.
 */
#include "base/alloc.h"
#include "train/train_int.h"
#include <float.h>
#include <math.h>
#include <string.h>

enum { VALID_BATCH = 128 };

static rt_status init_of(rt_init *out, const char *name) {
    static const struct {
        const char *name;
        rt_init init;
    } table[] = {{"default", RT_INIT_DEFAULT},     {"torch", RT_INIT_TORCH},
                 {"he-fan-in", RT_INIT_HE_FAN_IN}, {"he-fan-out", RT_INIT_HE_FAN_OUT},
                 {"glorot", RT_INIT_GLOROT},       {"kaiming", RT_INIT_KAIMING_GAIN1}};
    const char *names[RT_COUNT(table)];
    for (int64_t i = 0; i < RT_COUNT(table); i++)
        names[i] = table[i].name;
    const int64_t at = rt_str_find(name, names, RT_COUNT(names));
    if (at < 0)
        RT_FAIL_UNKNOWN(RT_E_USAGE, name, names, RT_COUNT(names), "--init: unknown");
    *out = table[at].init;
    return RT_OK;
}

/* One scaling for teacher and student, so that teachers can run in the step. */
static rt_status scale_target(const rt_trainer *t, rt_target *target) {
    const rt_teacher *teacher = t->teach.teacher;
    const char *transform = t->c->target_transform;
    const bool told = transform && strcmp(transform, "auto") != 0;
    if (!t->data.regression) {
        RT_FAIL_IF(told, RT_E_USAGE,
                   "--target-transform: %s is for classification, it has no numbers to transform",
                   t->c->data);
        RT_FAIL_IF(t->c->unit, RT_E_USAGE, "--unit: %s is for classification, and classes have none",
                   t->c->data);
        return RT_OK;
    }
    if (teacher && teacher->first) {
        RT_TRY(rt_target_follow(target, teacher->first, transform));
        return rt_target_name_unit(target, t->c->unit);
    }
    RT_FAIL_IF(
        teacher && told && strcmp(transform, "none") != 0, RT_E_USAGE,
        "--target-transform %s: stored outputs of a teacher are means and variances of the target itself",
        transform);
    RT_TRY(rt_target_name_unit(target, t->c->unit));
    return rt_target_fit(target, &t->data.labelled, teacher ? "none" : transform);
}

static rt_status make_model(rt_trainer *t) {
    const rt_config *c = t->c;
    rt_shape row = rt_dataset_row(t->data.set);
    int64_t norm = row.d[0]; /* channels, or features */
    double *mean = NULL;
    rt_target target = {.std = 1};
    rt_arch_config a = {.spec = c->arch,
                        .input = row,
                        .outputs = t->data.regression ? 2 : rt_dataset_classes(t->data.set),
                        .activation = c->activation,
                        .dropout = c->dropout,
                        .dropout_input = c->dropout_input,
                        .v3 = rt_config_v3(c)};
    rt_status st;
    RT_TRY_GOTO(init_of(&a.init, c->init));
    RT_TRY_GOTO(rt_calloc(&mean, 2 * (size_t)norm, sizeof *mean));
    rt_subset_moments(&t->data.labelled, row, mean, mean + norm, t->data.regression ? &target.mean : NULL,
                      t->data.regression ? &target.std : NULL);
    for (int64_t i = 0; c->standardise && i < norm; i++)
        if (!(mean[norm + i] >= (double)FLT_MIN && mean[norm + i] <= (double)FLT_MAX))
            RT_FAIL_GOTO(
                RT_E_INPUT,
                "feature %lld of the data has a deviation of %g, which 32-bit numbers cannot be divided by; "
                "scale it, or --no-standardise",
                (long long)i + 1, mean[norm + i]);
    if (c->standardise) {
        a.norm = (int)norm;
        a.mean = mean;
        a.std = mean + norm;
    }
    RT_TRY_GOTO(scale_target(t, &target));
    rt_student_config s = {.arch = a};
    RT_TRY_GOTO(rt_trainer_student(t, &s));
    RT_TRY_GOTO(rt_model_create(&t->net.model, &s, t->data.set, &target, t->members.own));
done:
    rt_free(mean);
    return st;
}

static rt_status make_step(rt_trainer *t) {
    const rt_config *c = t->c;
    rt_step_options o = {.batch = t->data.batches.batch,
                         .members = t->members.own,
                         .of = t->portion ? (int)t->portion->whole->members : t->members.all,
                         .first = (int)t->members.team.members.lo,
                         .team = t->members.team.ranks,
                         .idle = t->portion || !t->tells ||
                                 rt_dist_may_idle(), /* parts of a run may be smaller than the whole */
                         .optimiser = c->optimiser,
                         .momentum = c->momentum,
                         .beta1 = c->beta1,
                         .beta2 = c->beta2,
                         .eps = c->eps,
                         .nesterov = c->nesterov,
                         .weight_decay = c->weight_decay,
                         .decay_rule = c->decay_rule,
                         .group_decay = t->net.group_decay,
                         .clip_norm = c->clip_norm,
                         .slice = c->slice};
    const rt_distill_config what = rt_trainer_what(t);
    rt_networks *n = &t->net;
    RT_TRY(rt_step_create(&n->step, &what, rt_model_own_params(n->model), o, t->pool));
    RT_TRY(rt_step_prepare(n->step, rt_batch_rows(&t->data.batches, t->data.nbatches - 1)));
    for (int m = 0; m < t->members.own; m++) {
        rt_params_init(rt_model_params(n->model), rt_step_values(n->step, m), t->members.seeds[m]);
        if (rt_trainer_reconstructs(t) && rt_aim_last(&t->aim))
            RT_TRY(rt_trainer_reconstruct(t, rt_step_values(n->step, m)));
    }
    return RT_OK;
}

/* "1e-4,2e-4,...": one number for each stage of the network. */
static rt_status parse_group_decay(rt_networks *n, const rt_config *c) {
    const rt_params *params = rt_model_params(n->model);
    int64_t groups = 0, given = 0;
    if (!c->group_decay)
        return RT_OK;
    for (int i = 0; i < rt_params_count(params); i++)
        groups = RT_MAX(groups, (int64_t)rt_params_get(params, i)->group + 1);
    RT_TRY(rt_calloc(&n->group_decay, (size_t)groups, sizeof *n->group_decay));
    for (const char *s = c->group_decay;; s++, given++) {
        const size_t len = strcspn(s, ",");
        double v = 0;
        RT_FAIL_IF(!rt_parse_f64(s, len, false, &v) || !(v >= 0 && v <= 1000), RT_E_USAGE,
                   "--group-decay: '%.*s' is not a number from 0 to 1000", (int)RT_MIN(len, (size_t)40), s);
        if (given < groups)
            n->group_decay[given] = v;
        s += len;
        if (*s != ',')
            break;
    }
    RT_FAIL_IF(given + 1 != groups, RT_E_USAGE, "--group-decay: %lld numbers for the %lld depth groups of %s",
               (long long)given + 1, (long long)groups, c->arch);
    return RT_OK;
}

static rt_status make_ship(rt_networks *n, const rt_dataset *d, int members) {
    const rt_student *student = rt_model_student(n->model);
    n->ship = n->model;
    if (!rt_student_collapses(student))
        return RT_OK;
    const rt_student_config s = rt_student_plain_config(student);
    n->ship = NULL;
    return rt_model_create(&n->ship, &s, d, rt_model_target(n->model), members);
}

static rt_status make_probe(rt_trainer *t) {
    const rt_distill_config what = rt_trainer_what(t);
    if (t->data.regression || t->members.team.members.lo > 0)
        return RT_OK; /* it looks at the first member */
    return rt_probe_create(&t->net.probe, &what, rt_model_own_params(t->net.model),
                           rt_train_data_judges(&t->data), t->data.batches.row, t->pool);
}

static rt_status make_validation(rt_networks *n, const rt_members *m, int64_t rows, rt_pool *pool) {
    const rt_student *student = rt_model_student(n->ship);
    rt_reading one = rt_model_reading(n->ship);
    if (rows == 0)
        return RT_OK;
    one.m = rt_student_members(student);
    RT_TRY(rt_row_init(&n->row, one));
    RT_TRY(rt_calloc(&n->y, (size_t)(one.m * one.k), sizeof *n->y));
    RT_TRY(rt_calloc(&n->blocks, (size_t)m->own, sizeof *n->blocks));
    return rt_predictor_create_team(&n->predictor, student, rt_model_own_params(n->ship),
                                    RT_MIN((int64_t)VALID_BATCH, rows), m->all, pool, m->team.ranks);
}

void rt_networks_close(rt_networks *n) {
    rt_probe_destroy(&n->probe);
    rt_predictor_destroy(&n->predictor);
    rt_row_deinit(&n->row);
    rt_free(n->y);
    rt_free(n->blocks);
    rt_free(n->group_decay);
    rt_step_destroy(&n->step);
    if (n->ship != n->model)
        rt_model_destroy(&n->ship);
    rt_model_destroy(&n->model);
    *n = (rt_networks){.model = NULL};
}

void rt_networks_keep(const rt_networks *n, int member) {
    memcpy(rt_model_weights(n->model, member), rt_step_values(n->step, member),
           (size_t)rt_model_floats(n->model) * sizeof(float));
}

rt_status rt_trainer_enter(rt_trainer *t, int phase) {
    const rt_config *c = t->c;
    rt_networks *n = &t->net;
    rt_networks_close(n);
    t->aim.phase = phase;
    RT_TRY(
        rt_schedule_parse(&n->schedule, c->schedule, c->lr, c->warmup, (double)t->aim.phases[phase].epochs));
    rt_older_schedule(t);
    RT_TRY(make_model(t));
    RT_TRY(parse_group_decay(n, c));
    RT_TRY(make_step(t));
    RT_TRY(make_ship(n, t->data.set, t->members.own));
    RT_TRY(make_validation(n, &t->members, t->data.valid.n, t->pool));
    RT_TRY(make_probe(t));
    t->checkpoint = (rt_checkpoint){.config_hash = t->config_hash,
                                    .data_hash = t->data.hash,
                                    .all = t->members.all,
                                    .first = (int)t->members.team.members.lo,
                                    .members = t->members.own,
                                    .floats = rt_model_floats(n->model),
                                    .step = n->step,
                                    .best = t->aim.keep_best ? n->model : NULL,
                                    .at = &t->at};
    return RT_OK;
}

rt_status rt_trainer_grow(rt_trainer *t) {
    rt_networks *n = &t->net;
    for (int m = 0; m < t->members.own; m++)
        if (!t->aim.keep_best || t->at.kept_epoch[m] == 0)
            rt_networks_keep(n, m);
    if (n->ship != n->model)
        rt_model_destroy(&n->ship);
    rt_model *from = n->model;
    n->model = n->ship = NULL;
    rt_status st = rt_trainer_enter(t, t->aim.phase + 1);
    for (int m = 0; st == RT_OK && m < t->members.own; m++) {
        st = rt_student_grow(rt_model_student(n->model), rt_model_params(from), rt_model_block(from, m),
                             rt_model_params(n->model), rt_step_values(n->step, m));
        t->at.kept_loss[m] = t->at.kept_accuracy[m] = NAN;
        t->at.kept_epoch[m] = 0;
    }
    rt_model_destroy(&from);
    return st;
}
