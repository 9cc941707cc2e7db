/*
 * trainer_setup.c - everything a run needs before its first step: data, moments, network, weights, compiled
 * step, buffers.
 *
 * Whatever can be refused is refused here, before a file is written: bad specs, impossible splits, too little
 * memory.
 */
#include "base/alloc.h"
#include "base/rng.h"
#include "base/sha256.h"
#include "base/size.h"
#include "base/timer.h"
#include "train/train_int.h"
#include <math.h>
#include <float.h>
#include <stdio.h>
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
    const char *transform = t->c->target_transform;
    const bool told = transform && strcmp(transform, "auto") != 0;
    if (!t->regression) {
        RT_FAIL_IF(told, RT_E_USAGE,
                   "--target-transform: %s is for classification, it has no numbers to transform",
                   t->c->data);
        return RT_OK;
    }
    if (t->teacher && t->teacher->first)
        return rt_target_follow(target, t->teacher->first, transform);
    RT_FAIL_IF(
        t->teacher && told && strcmp(transform, "none") != 0, RT_E_USAGE,
        "--target-transform %s: stored outputs of a teacher are means and variances of the target itself",
        transform);
    return rt_target_fit(target, &t->labelled, t->teacher ? "none" : transform);
}

static rt_status make_model(rt_trainer *t) {
    const rt_config *c = t->c;
    rt_shape row = rt_dataset_row(t->data);
    int64_t norm = row.d[0]; /* channels, or features */
    double *mean = NULL;
    rt_target target = {.std = 1};
    rt_arch_config a = {.spec = c->arch,
                        .input = row,
                        .outputs = t->regression ? 2 : rt_dataset_classes(t->data),
                        .activation = c->activation,
                        .dropout = c->dropout,
                        .dropout_input = c->dropout_input,
                        .v3 = rt_config_v3(c)};
    rt_status st;
    RT_TRY_GOTO(init_of(&a.init, c->init));
    RT_TRY_GOTO(rt_calloc(&mean, 2 * (size_t)norm, sizeof *mean));
    rt_subset_moments(&t->labelled, row, mean, mean + norm, t->regression ? &target.mean : NULL,
                      t->regression ? &target.std : NULL);
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
    RT_TRY_GOTO(rt_model_create(&t->model, &s, t->data, &target, t->members));
done:
    rt_free(mean);
    return st;
}

static rt_status make_step(rt_trainer *t) {
    const rt_config *c = t->c;
    rt_step_options o = {.batch = t->batches.batch,
                         .members = t->members,
                         .of = t->group ? (int)t->group->whole->members : t->all,
                         .first = (int)t->team.members.lo,
                         .team = t->team.ranks,
                         .idle = t->group || !t->tells || rt_dist_may_idle(), /* parts of a run may be smaller than the whole */
                         .optimiser = c->optimiser,
                         .momentum = c->momentum,
                         .beta1 = c->beta1,
                         .beta2 = c->beta2,
                         .eps = c->eps,
                         .nesterov = c->nesterov,
                         .weight_decay = c->weight_decay,
                         .decay_rule = c->decay_rule,
                         .group_decay = t->group_decay,
                         .clip_norm = c->clip_norm,
                         .slice = c->slice};
    const rt_distill_config what = rt_trainer_what(t);
    RT_TRY(rt_step_create(&t->step, &what, rt_model_own_params(t->model), o, t->pool));
    RT_TRY(rt_step_prepare(t->step, rt_batch_rows(&t->batches, t->nbatches - 1)));
    for (int m = 0; m < t->members; m++) {
        rt_params_init(rt_model_params(t->model), rt_step_values(t->step, m), t->seeds[m]);
        if (rt_trainer_reconstructs(t) && t->phase == t->nphases - 1)
            RT_TRY(rt_trainer_reconstruct(t, rt_step_values(t->step, m)));
    }
    return RT_OK;
}

/* "1e-4,2e-4,...": one number for each stage of the network. */
static rt_status parse_group_decay(rt_trainer *t) {
    int64_t groups = 0, n = 0;
    if (!t->c->group_decay)
        return RT_OK;
    for (int i = 0; i < rt_params_count(rt_model_params(t->model)); i++)
        groups = RT_MAX(groups, (int64_t)rt_params_get(rt_model_params(t->model), i)->group + 1);
    rt_free(t->group_decay);
    RT_TRY(rt_calloc(&t->group_decay, (size_t)groups, sizeof *t->group_decay));
    for (const char *s = t->c->group_decay;; s++, n++) {
        const size_t len = strcspn(s, ",");
        double v = 0;
        RT_FAIL_IF(!rt_parse_f64(s, len, false, &v) || !(v >= 0 && v <= 1000), RT_E_USAGE,
                   "--group-decay: '%.*s' is not a number from 0 to 1000", (int)RT_MIN(len, (size_t)40), s);
        if (n < groups)
            t->group_decay[n] = v;
        s += len;
        if (*s != ',')
            break;
    }
    RT_FAIL_IF(n + 1 != groups, RT_E_USAGE, "--group-decay: %lld numbers for the %lld depth groups of %s",
               (long long)n + 1, (long long)groups, t->c->arch);
    return RT_OK;
}

static rt_status make_ship(rt_trainer *t) {
    t->ship = t->model;
    if (!rt_student_collapses(rt_model_student(t->model)))
        return RT_OK;
    const rt_student_config s = rt_student_plain_config(rt_model_student(t->model));
    t->ship = NULL;
    return rt_model_create(&t->ship, &s, t->data, rt_model_target(t->model), t->members);
}

/* ---- phases ---- */

int rt_trainer_phase_at(const rt_trainer *t, int64_t epoch) {
    return t->nphases > 1 && epoch >= t->phases[1].first ? 1 : 0;
}

static void leave_phase(rt_trainer *t) {
    rt_probe_destroy(&t->probe);
    rt_predictor_destroy(&t->predictor);
    rt_row_deinit(&t->valid_row);
    rt_free(t->valid_y);
    t->valid_y = NULL;
    rt_step_destroy(&t->step);
    if (t->ship != t->model)
        rt_model_destroy(&t->ship);
    t->ship = NULL;
    rt_model_destroy(&t->model);
}

static rt_status make_probe(rt_trainer *t) {
    const rt_subset *rows = t->valid.n > 0 ? &t->valid : &t->train;
    const rt_distill_config what = rt_trainer_what(t);
    if (t->regression || t->team.members.lo > 0)
        return RT_OK; /* it looks at the first member */
    return rt_probe_create(&t->probe, &what, rt_model_own_params(t->model), rows, t->batches.row, t->pool);
}

static rt_status make_validation(rt_trainer *t) {
    rt_reading one = rt_model_reading(t->ship);
    if (t->valid.n == 0)
        return RT_OK;
    one.m = rt_student_members(rt_model_student(t->ship));
    RT_TRY(rt_row_init(&t->valid_row, one));
    RT_TRY(rt_calloc(&t->valid_y, (size_t)(one.m * one.k), sizeof *t->valid_y));
    return rt_predictor_create_team(&t->predictor, rt_model_student(t->ship), rt_model_own_params(t->ship),
                                    RT_MIN((int64_t)VALID_BATCH, t->valid.n), t->all, t->pool, t->team.ranks);
}

rt_status rt_trainer_enter(rt_trainer *t, int phase) {
    const rt_config *c = t->c;
    leave_phase(t);
    t->phase = phase;
    RT_TRY(rt_schedule_parse(&t->schedule, c->schedule, c->lr, c->warmup, (double)t->phases[phase].epochs));
    rt_older_schedule(t);
    RT_TRY(make_model(t));
    RT_TRY(parse_group_decay(t));
    RT_TRY(make_step(t));
    RT_TRY(make_ship(t));
    RT_TRY(make_validation(t));
    RT_TRY(make_probe(t));
    t->checkpoint = (rt_checkpoint){.config_hash = t->config_hash,
                                    .data_hash = t->data_hash,
                                    .all = t->all,
                                    .first = (int)t->team.members.lo,
                                    .members = t->members,
                                    .floats = rt_model_floats(t->model),
                                    .step = t->step,
                                    .best = t->keep_best ? t->model : NULL,
                                    .at = &t->at};
    return RT_OK;
}

rt_status rt_trainer_grow(rt_trainer *t) {
    for (int m = 0; m < t->members; m++)
        if (!t->keep_best || t->at.kept_epoch[m] == 0)
            memcpy(rt_model_weights(t->model, m), rt_step_values(t->step, m),
                   (size_t)rt_model_floats(t->model) * sizeof(float));
    if (t->ship != t->model)
        rt_model_destroy(&t->ship);
    rt_model *from = t->model;
    t->model = t->ship = NULL;
    rt_status st = rt_trainer_enter(t, t->phase + 1);
    for (int m = 0; st == RT_OK && m < t->members; m++) {
        st = rt_student_grow(rt_model_student(t->model), rt_model_params(from), rt_model_block(from, m),
                             rt_model_params(t->model), rt_step_values(t->step, m));
        t->at.kept_loss[m] = t->at.kept_accuracy[m] = NAN;
        t->at.kept_epoch[m] = 0;
    }
    rt_model_destroy(&from);
    return st;
}

/* ---- data and teacher ---- */

/* A perturbation keeps inputs in [0, 1]: for pictures, and for tables that are like them. */
static rt_status check_range(const rt_trainer *t) {
    const rt_part *p = t->train.part;
    const int64_t floats = rt_shape_elems(&t->batches.row);
    for (int64_t i = 0; t->perturb && !p->u8 && i < p->n * floats; i++) {
        float value;
        rt_part_values(p, floats, i / floats, i % floats, 1, &value);
        RT_FAIL_IF(!(value >= 0 && value <= 1), RT_E_USAGE,
                   "perturbation %s keeps inputs in [0, 1], as pictures are; row %lld of the data has %g",
                   t->perturb->name, (long long)(i / floats), (double)value);
    }
    return RT_OK;
}

static void hash_inputs(rt_trainer *t) {
    rt_sha256 sha;
    uint8_t digest[32];
    const char *const parts[] = {rt_dataset_hash(t->data),
                                 t->aux.source ? rt_dataset_hash(t->aux.source) : NULL,
                                 t->teacher ? t->teacher->digest : NULL};
    snprintf(t->data_hash, sizeof t->data_hash, "%s", parts[0]);
    if (!parts[1] && !parts[2])
        return;
    rt_sha256_init(&sha);
    for (int64_t i = 0; i < RT_COUNT(parts); i++)
        rt_sha256_update(&sha, parts[i] ? parts[i] : "none", parts[i] ? 64 : 4);
    rt_sha256_final(&sha, digest);
    rt_sha256_hex(digest, t->data_hash);
}

static rt_status open_teaching(rt_trainer *t) {
    const rt_config *c = t->c;
    const bool outside = (t->phases[t->nphases - 1].objective->needs & RT_OBJ_OOD) != 0;
    if (c->aux)
        RT_TRY(rt_aux_open(&t->aux, t->data, c, outside, RT_MIN(c->batch, t->train.n)));
    if (c->aux && !outside)
        RT_TRY(rt_aux_extend(&t->aux, &t->train));
    if (t->teacher)
        RT_TRY(rt_teacher_check(t->teacher, t->data, t->train.part->n));
    hash_inputs(t);
    return RT_OK;
}

rt_status rt_trainer_teach(rt_trainer *t) {
    char *dir = NULL;
    char hash[65];
    rt_status st = RT_OK;
    if (!t->teacher || t->c->online_teacher)
        return RT_OK;
    if (strcmp(t->c->cache, "auto") == 0)
        RT_TRY_GOTO(rt_run_dir_file(&t->dir, "predictions", &dir));
    else
        RT_TRY_GOTO(rt_path_expand(&dir, t->c->cache));
    snprintf(hash, sizeof hash, "%s", t->data_hash);
    t->started = rt_time_now();
    rt_trainer_progress(t, false, "asking the teacher");
    RT_TRY_GOTO(
        rt_teacher_compute(t->teacher, t->train.part, hash, dir, t->pool, t->hooks ? t->hooks->stop : NULL));
    const rt_subset *rows = t->valid.n > 0 ? &t->valid : &t->train;
    if (t->regression)
        rt_teacher_standardise(t->teacher, rt_model_target(t->model));
    else
        st = rt_teacher_diversity(t->teacher, rows, VALID_BATCH, &t->teacher_diversity);
done:
    rt_free(dir);
    return st;
}

static rt_status make_buffers(rt_trainer *t) {
    size_t m = (size_t)t->members, targets;
    const size_t all = (size_t)t->all, first = (size_t)t->team.members.lo;
    RT_TRY(rt_calloc(&t->numbers, RT_TRAINER_ROWS * all, sizeof *t->numbers));
    RT_TRY(rt_calloc(&t->packed, RT_TRAINER_ROWS * all, sizeof *t->packed));
    RT_TRY(rt_calloc(&t->offset, (size_t)rt_dist_size() + 1, sizeof *t->offset));
    double **const rows[] = {&t->at.loss_sum,   &t->at.correct,    &t->at.kept_loss, &t->at.kept_accuracy,
                             &t->at.kept_epoch, &t->at.lowest,     &t->lr,           &t->losses,
                             &t->valid_loss,    &t->valid_accuracy};
    for (int64_t i = 0; i < RT_COUNT(rows); i++)
        *rows[i] = t->numbers + (size_t)i * all + first;
    for (int i = 0; i < t->members; i++)
        t->at.kept_loss[i] = t->at.kept_accuracy[i] = t->valid_loss[i] = t->valid_accuracy[i] = NAN;
    RT_TRY(rt_calloc(&t->correct, m, sizeof *t->correct));
    RT_TRY(rt_calloc(&t->blocks, m, sizeof *t->blocks));
    RT_TRY(rt_calloc(&t->seeds, m, sizeof *t->seeds));
    for (int i = 0; i < t->members; i++)
        t->seeds[i] = rt_rng_member_seed((uint64_t)t->c->seed, t->c->first_member + t->team.members.lo + i);
    RT_FAIL_IF(!rt_size_mul(m, (size_t)t->batches.batch, &targets), RT_E_MEMORY, "the batch is too large");
    if (t->regression)
        RT_TRY(rt_calloc(&t->target, targets, sizeof *t->target));
    if (t->teacher && !t->c->online_teacher) {
        size_t floats;
        RT_FAIL_IF(!rt_size_mul(targets, (size_t)t->teacher->members * (size_t)t->teacher->outputs, &floats),
                   RT_E_MEMORY, "the batch is too large");
        RT_TRY(rt_calloc(&t->teacher_rows, floats, sizeof *t->teacher_rows));
    }
    return RT_OK;
}

rt_config rt_trainer_whole(const rt_trainer *t) {
    rt_config c = *t->c;
    if (t->group) {
        c.members = t->group->whole->members;
        c.first_member = t->group->whole->first_member;
        c.at_once = t->group->whole->at_once;
        c.out = t->group->whole->out;
    }
    return c;
}

/* A student that begins now is tested on rows that its teacher did not see either. */
static rt_status follow_teacher(rt_trainer *t) {
    char *teacher;
    RT_TRY(rt_teacher_first_run(t->config.teacher, &teacher));
    const bool begins = t->config.test_split && strcmp(t->config.test_split, "auto") == 0;
    rt_status st = begins && teacher ? rt_config_follow_run(&t->config, teacher) : RT_OK;
    rt_free(teacher);
    return st;
}

rt_status rt_trainer_open(rt_trainer *t) {
    const rt_config *c = t->c;
    RT_FAIL_IF(!c->data, RT_E_USAGE, "what to train on? Give --data SPEC");
    RT_FAIL_IF(!c->out, RT_E_USAGE, "where should the run go? Give --out DIR");
    t->teacher_diversity = NAN;
    RT_TRY(rt_schedule_parse(&t->schedule, c->schedule, c->lr, c->warmup, (double)c->epochs));
    RT_TRY(rt_augment_parse(&t->batches.augment, c->augment));
    RT_TRY(rt_pool_create(&t->pool, c->threads > 0 ? (int)c->threads : rt_cpu_count()));
    RT_TRY(follow_teacher(t));
    RT_TRY(rt_dataset_open(&t->data, c->data, rt_config_data(c)));
    RT_TRY(rt_dataset_need_labels(t->data, "training"));
    rt_config_name_splits(&t->config, t->data);
    t->all = (int)c->members;
    t->team = rt_team_of(rt_dist_all(), t->all, rt_dist_rank());
    t->members = (int)(t->team.members.hi - t->team.members.lo);
    t->regression = rt_dataset_task(t->data) == RT_TASK_REGRESSION;
    RT_TRY(rt_trainer_resolve(t));
    RT_TRY(rt_older_settings(t));
    RT_FAIL_IF(!c->arch, RT_E_USAGE, "what to train? Give --arch SPEC, for example mlp:200,200");
    const rt_config whole = rt_trainer_whole(t);
    rt_config_hash(&whole, t->verb, true, t->config_hash);
    rt_config_hash(&whole, t->verb, false, t->settings_hash);
    RT_TRY(rt_split_rows(c, t->data, &t->train, &t->valid));
    if (t->teacher && t->teacher->first) /* one encoding for both */
        RT_TRY(rt_dataset_encode_as(t->data, rt_model_like(t->teacher->first).table));
    RT_TRY(rt_dataset_fit(t->data, &t->train));
    RT_TRY(rt_subset_some(&t->labelled, &t->train, 0));
    RT_TRY(rt_class_weights(t));
    RT_TRY(open_teaching(t));
    RT_TRY(rt_trainer_check_ranks(t));
    t->keep_best = t->valid.n > 0 && strcmp(c->keep, "last") != 0;
    RT_FAIL_IF(c->patience > 0 && !t->keep_best, RT_E_USAGE, "--patience waits for better weights: %s",
               t->valid.n > 0 ? "--keep loss or accuracy" : "--valid must leave rows to judge by");
    t->batches.set = &t->train;
    t->batches.row = rt_dataset_row(t->data);
    t->batches.batch = RT_MIN(c->batch, t->train.n);
    t->batches.shuffle = true;
    t->batches.drop_last = c->drop_last;
    RT_TRY(rt_batch_check(&t->batches));
    t->nbatches = rt_batch_count(&t->batches);
    for (int64_t i = 0; i < t->nbatches; i++)
        t->epoch_rows += rt_batch_rows(&t->batches, i);
    RT_TRY(check_range(t));
    RT_TRY(make_buffers(t));
    for (int phase = t->nphases - 1; phase >= 0;
         phase--) /* a later phase that cannot be is refused before the first step */
        RT_TRY(rt_trainer_enter(t, phase));
    return RT_OK;
}

void rt_trainer_close(rt_trainer *t) {
    rt_prefetch_destroy(&t->prefetch);
    leave_phase(t);
    rt_reconstruct_report_deinit(&t->reconstruction);
    rt_reconstruct_report_deinit(&t->unmatched);
    rt_aux_close(&t->aux);
    rt_teacher_destroy(&t->teacher);
    rt_subset_deinit(&t->train);
    rt_subset_deinit(&t->valid);
    rt_subset_deinit(&t->labelled);
    rt_free(t->class_weight);
    rt_dataset_destroy(&t->data);
    rt_free(t->seeds);
    rt_free(t->numbers);
    rt_free(t->packed);
    rt_free(t->offset);
    rt_free(t->correct);
    rt_free(t->blocks);
    rt_free(t->target);
    rt_free(t->teacher_rows);
    rt_free(t->group_decay);
    rt_str_deinit(&t->line);
    rt_run_dir_close(&t->dir);
    rt_pool_destroy(&t->pool);
}
