/*
 * trainer.c - the verbs `train` and `distill`: steps, epochs, validation, checkpoints, and the files of a
 * run.
 *
 *     for each epoch:  steps (the stop flag is looked at before each) -> validation -> keep the best -> log
 *                      -> the next phase, if this was the last epoch of one -> checkpoint, if it is time
 *     at the end:      models, metrics.json, and the checkpoint goes
 *
 * A stop in any phase saves first and returns RT_E_INTERRUPTED. The position is (epoch, index): index counts
 * batches done; index == batches means that validation comes next. Everything random is a function of
 * position and seed, so a run continued from a checkpoint does what the uninterrupted run would have done, to
 * the bit, with any number of threads.
 */
#include "base/alloc.h"
#include "base/rng.h"
#include "base/timer.h"
#include "train/train_int.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

static rt_status must_stop(rt_trainer *t, bool *stop) {
    RT_TRY(rt_trainer_agree(t, stop));
    *stop = *stop || (t->c->stop_after > 0 && t->at.step >= t->c->stop_after);
    return RT_OK;
}

static rt_status save_checkpoint(rt_trainer *t) {
    char *path;
    t->at.log_position = rt_appender_position(t->dir.log);
    t->at.seconds = rt_trainer_seconds(t);
    RT_TRY(rt_trainer_gather(t));
    RT_TRY(rt_run_dir_file(&t->dir, "checkpoint.safetensors", &path));
    rt_status st = rt_checkpoint_write(&t->checkpoint, path);
    rt_free(path);
    t->last_checkpoint = rt_time_now();
    return st;
}

static rt_status stop_here(rt_trainer *t) {
    RT_TRY(rt_trainer_log_event(t, "stopped"));
    RT_TRY(save_checkpoint(t));
    RT_FAIL(RT_E_INTERRUPTED,
            "stopped in epoch %lld of %lld, after step %lld; the state is saved, --resume continues it",
            (long long)RT_MIN(t->at.epoch + 1, t->c->epochs), (long long)t->c->epochs, (long long)t->at.step);
}

/* ---- steps ---- */

/* i != j, the same for teachers and student; of a single teacher both are it. */
void rt_trainer_pair(const rt_trainer *t, int64_t step, uint64_t purpose, int32_t pair[2]) {
    const uint64_t n = t->teacher ? (uint64_t)t->teacher->members : 1;
    const rt_rng r = rt_rng_make((uint64_t)t->c->seed, RT_RNG_PAIR, (uint64_t)step, purpose);
    pair[0] = pair[1] = (int32_t)rt_rng_below(r, 0, n);
    if (n > 1) {
        pair[1] = (int32_t)rt_rng_below(r, 1, n - 1);
        pair[1] += pair[1] >= pair[0];
    }
}

/* What a teacher and --aux add to a batch. */
static rt_status add_teaching(rt_trainer *t, const rt_batch *b, rt_step_io *io) {
    io->temperature =
        (float)rt_trainer_temperature(t, (double)t->at.epoch + (double)t->at.index / (double)t->nbatches);
    rt_trainer_pair(t, t->at.step, 0, io->pair);
    if (t->teacher) {
        io->teacher_blocks = t->teacher->blocks;
        for (int m = 0; t->teacher_rows && m < t->members; m++)
            rt_teacher_gather(t->teacher, b->source + m * b->rows, b->rows,
                              t->teacher_rows + m * b->rows * t->teacher->members * t->teacher->outputs);
        io->teacher = t->teacher_rows;
    }
    if (t->aux.outside)
        RT_TRY(rt_aux_next(&t->aux, t->members, b->rows, &io->ood));
    return RT_OK;
}

static rt_status one_step(rt_trainer *t) {
    const rt_batch *b;
    const rt_phase *phase = &t->phases[t->phase];
    RT_TRY(rt_prefetch_next(t->prefetch, &b));
    RT_ASSERT(b->epoch == t->at.epoch && b->index == t->at.index);
    const double at = (double)(t->at.epoch - phase->first) + (double)t->at.index / (double)t->nbatches;
    const double lr = rt_schedule_lr(&t->schedule, at);
    for (int m = 0; m < t->members; m++)
        t->lr[m] = lr;
    for (int64_t i = 0; t->regression && i < t->members * b->rows; i++)
        t->target[i] = rt_target_scale(rt_model_target(t->model), b->target[i]);
    rt_step_io io = {.x = b->x,
                     .label = b->label,
                     .target = t->target,
                     .rows = b->rows,
                     .t = t->at.step - phase->first * t->nbatches, /* each phase has a fresh optimiser */
                     .lr = t->lr,
                     .seeds = t->seeds,
                     .losses = t->losses,
                     .correct = t->correct,
                     .stop = t->hooks ? t->hooks->stop : NULL};
    RT_TRY(add_teaching(t, b, &io));
    RT_TRY(rt_step_run(t->step, &io));
    for (int m = 0; m < t->members; m++) {
        t->at.loss_sum[m] += t->losses[m] * (double)b->rows;
        t->at.correct[m] += (double)t->correct[m];
    }
    t->at.step++;
    t->at.index++;
    t->rows_done += b->rows;
    return RT_OK;
}

/* Some members have done the step and others have not: what can be gone on from is the checkpoint before. */
static rt_status leave_step(const rt_trainer *t) {
    RT_FAIL(RT_E_INTERRUPTED, "stopped within step %lld; --resume continues from the last checkpoint",
            (long long)t->at.step + 1);
}

static rt_status run_steps(rt_trainer *t) {
    if (t->at.index == 0)
        for (int m = 0; m < t->members; m++)
            t->at.loss_sum[m] = t->at.correct[m] = 0;
    while (t->at.index < t->nbatches) {
        bool stop;
        RT_TRY(must_stop(t, &stop));
        if (stop)
            return stop_here(t);
        rt_status st = one_step(t);
        if (st == RT_E_INTERRUPTED)
            return rt_step_intact(t->step) ? stop_here(t) : leave_step(t);
        RT_TRY(st);
        rt_trainer_progress(t, false, NULL);
    }
    return RT_OK;
}

/* ---- the end of an epoch ---- */

/* --patience: has member m, after so many epochs, not been better than what is kept of it for too long? Each member is
 * asked on its own, and keeps what it has from then on: it does not matter beside whom it is trained. */
static bool out_of_patience(const rt_trainer *t, int m, int64_t epochs) {
    const rt_phase *phase = &t->phases[t->phase];
    const double since = RT_MAX(t->at.kept_epoch[m], (double)phase->first);
    return t->c->patience > 0 && t->phase == t->nphases - 1 &&
           (double)epochs - since >= (double)t->c->patience;
}

static bool all_out_of_patience(const rt_trainer *t) {
    int out = 0;
    for (int m = 0; m < t->all; m++)
        out += out_of_patience(t, m - (int)t->team.members.lo, t->at.epoch);
    return out == t->all && t->at.index == 0;
}

/* Weights of a higher temperature are not comparable: the spread of a Dirichlet is that of its temperature.
 * So while it falls the newest are kept. */
static void keep_weights(rt_trainer *t) {
    rt_progress_state *at = &t->at;
    const double now = rt_trainer_temperature(t, rt_trainer_last_step(t, at->epoch));
    for (int m = 0; m < t->members; m++) {
        double loss = t->valid_loss[m], accuracy = t->valid_accuracy[m];
        const bool level = t->keep_by_loss || accuracy == at->kept_accuracy[m];
        bool better = at->kept_epoch[m] == 0 || (!t->keep_by_loss && accuracy > at->kept_accuracy[m]) ||
                      (level && loss < at->kept_loss[m]);
        better = better ||
                 rt_trainer_temperature(t, rt_trainer_last_step(t, (int64_t)at->kept_epoch[m] - 1)) > now;
        if (t->keep_best && (!better || out_of_patience(t, m, at->epoch)))
            continue;
        if (t->keep_best)
            memcpy(rt_model_weights(t->model, m), rt_step_values(t->step, m),
                   (size_t)rt_model_floats(t->model) * sizeof(float));
        at->kept_loss[m] = loss;
        at->kept_accuracy[m] = accuracy;
        at->kept_epoch[m] = (double)at->epoch + 1;
    }
}

static void measure_diversity(rt_trainer *t) {
    int32_t pair[2];
    if (!t->probe)
        return;
    rt_trainer_pair(t, t->at.epoch, 1, pair);
    rt_probe_run(t->probe, rt_step_values(t->step, 0), t->teacher ? t->teacher->blocks : NULL,
                 rt_trainer_temperature(t, rt_trainer_last_step(t, t->at.epoch)), pair, t->seeds[0],
                 t->at.epoch);
}

static rt_status run_epoch(rt_trainer *t) {
    bool stop;
    RT_TRY(run_steps(t));
    RT_TRY(must_stop(t, &stop));
    if (stop)
        return stop_here(t);
    rt_status st = rt_trainer_together(rt_trainer_validate(t));
    if (st == RT_E_INTERRUPTED)
        return stop_here(t);
    RT_TRY(st);
    keep_weights(t);
    rt_trainer_lowest(t);
    measure_diversity(t);
    RT_TRY(rt_trainer_gather(t));
    RT_TRY(rt_trainer_log_epoch(t));
    rt_trainer_progress(t, true, NULL);
    t->at.epoch++;
    t->at.index = 0;
    if (rt_trainer_phase_at(t, t->at.epoch) != t->phase)
        RT_TRY(rt_trainer_grow(t));
    int due = rt_time_now() - t->last_checkpoint >= t->c->checkpoint_every;
    RT_TRY(rt_dist_lead(RT_OK, &due));
    return due && t->at.epoch < t->c->epochs ? save_checkpoint(t) : RT_OK;
}

/* ---- the end ---- */

/* Network `m` of the model as member `member` of the run. */
static rt_status save_one(rt_trainer *t, const rt_model *model, int m, int member, const char *name) {
    char *path;
    rt_provenance from = {.method = t->method,
                          .data_hash = rt_dataset_hash(t->data),
                          .config_hash = t->settings_hash,
                          .objective = t->verb == RT_VERB_DISTILL ? t->c->objective : NULL,
                          .perturb = t->perturb ? t->perturb->name : NULL,
                          .teacher_hash = t->teacher ? t->teacher->digest : NULL,
                          .seed = t->c->seed,
                          .epochs = t->c->epochs,
                          .kept_epoch = (int64_t)rt_trainer_all(t, t->at.kept_epoch)[member],
                          .first = (t->group ? t->group->first : 0) + member - m,
                          .of = t->group ? (int)t->group->whole->members : t->all};
    RT_TRY(rt_run_dir_file(t->group ? t->group->dir : &t->dir, name, &path));
    rt_status st = rt_model_save(model, m, path, &from);
    rt_free(path);
    return st;
}

/* The weights to keep of member `member`, and what they collapse to, as networks `m` of the two models; on rank 0 also
 * those of other ranks. */
static rt_status take_member(rt_trainer *t, int member, int *m) {
    const bool mine = member >= t->team.members.lo && member < t->team.members.hi;
    *m = mine ? member - (int)t->team.members.lo : 0;
    if (mine && (!t->keep_best || t->at.kept_epoch[*m] == 0))
        memcpy(rt_model_weights(t->model, *m), rt_step_values(t->step, *m),
               (size_t)rt_model_floats(t->model) * sizeof(float));
    float *w = mine || rt_dist_rank() == 0 ? rt_model_weights(t->model, *m) : NULL;
    RT_TRY(rt_member_to_first(w, w, rt_model_floats(t->model), t->all, member));
    if (w == NULL || t->ship == t->model)
        return RT_OK;
    return rt_student_merge(rt_model_student(t->model), rt_model_params(t->model), rt_model_block(t->model, *m),
                            rt_model_params(t->ship), rt_model_weights(t->ship, *m));
}

/* What a student collapses to is the model; what it was before stays beside it, for those who want to look.
 */
static rt_status save_member(rt_trainer *t, int member) {
    const int number = (t->group ? t->group->first : 0) + member;
    const bool single = t->all == 1 && !t->group;
    char name[48];
    int m;
    RT_TRY(take_member(t, member, &m));
    if (rt_dist_rank() > 0)
        return RT_OK;
    if (t->ship != t->model) {
        if (single)
            strcpy(name, "members.safetensors");
        else
            snprintf(name, sizeof name, "members-%03d.safetensors", number);
        RT_TRY(save_one(t, t->model, m, member, name));
    }
    rt_member_file(name, number, single);
    return save_one(t, t->ship, m, member, name);
}

/* Members of other ranks pass through the place of rank 0's first one, which comes back. */
static rt_status save_models(rt_trainer *t) {
    rt_model *const models[] = {t->model, t->ship};
    float *first[2] = {NULL, NULL};
    rt_status st = RT_OK;
    for (int i = 0; i < 2 && st == RT_OK; i++)
        st = rt_alloc(&first[i], (size_t)rt_model_floats(models[i]) * sizeof(float));
    for (int member = 0; member < t->all && st == RT_OK; member++) {
        for (int i = 0; i < 2 && member == t->team.members.hi; i++)
            memcpy(first[i], rt_model_weights(models[i], 0), (size_t)rt_model_floats(models[i]) * sizeof(float));
        st = save_member(t, member);
    }
    for (int i = 0; i < 2 && st == RT_OK && t->team.members.hi < t->all; i++)
        memcpy(rt_model_weights(models[i], 0), first[i], (size_t)rt_model_floats(models[i]) * sizeof(float));
    rt_free(first[0]);
    rt_free(first[1]);
    return st;
}

static rt_status finish(rt_trainer *t, rt_train_result *r) {
    RT_TRY(rt_trainer_gather(t));
    RT_TRY(save_models(t));
    *r = (rt_train_result){
        .members = t->all,
        .epochs = t->at.epoch,
        .steps = t->at.step,
        .parameters = rt_params_trainable(rt_model_params(t->ship)),
        .seconds = rt_trainer_seconds(t),
        .samples_per_s = rt_trainer_rate(t),
        .train_loss = t->at.step > 0 ? rt_mean(rt_trainer_all(t, t->at.loss_sum), t->all) / (double)t->epoch_rows : NAN,
        .valid_loss = rt_mean(rt_trainer_all(t, t->at.kept_loss), t->all),
        .valid_accuracy = rt_mean(rt_trainer_all(t, t->at.kept_accuracy), t->all)};
    r->keep = rt_trainer_kept(t);
    RT_TRY(rt_trainer_doubt(t, r->doubt));
    t->doubt = r->doubt;
    RT_TRY(rt_trainer_log_event(t, "finished"));
    RT_TRY(rt_trainer_write_metrics(t, r));
    return rt_run_dir_remove(&t->dir, "checkpoint.safetensors");
}

/* ---- the beginning ---- */

/* The configuration to continue with: that of the run, and what the caller says about how. Asking for
 * something else is an error. */
static rt_status resume_config(rt_config *merged, const rt_config *c, unsigned verb, const char *path) {
    rt_config old;
    rt_str diff;
    rt_status st;
    rt_str_init(&diff);
    RT_TRY(rt_config_init(&old));
    RT_TRY_GOTO(rt_config_load(&old, verb, path));
    RT_TRY_GOTO(rt_config_load(merged, verb, path));
    RT_TRY_GOTO(rt_config_overlay(merged, c, verb));
    rt_config_mark_saved(merged);
    merged->at_once = old.at_once; /* groups that were begun keep their size */
    rt_config_diff(&old, merged, verb, &diff);
    RT_TRY_GOTO(rt_str_status(&diff));
    if (diff.len > 0)
        RT_FAIL_GOTO(RT_E_USAGE,
                     "--resume: this run was started with other parameters: %s; leave them out, or choose "
                     "another --out",
                     rt_str_text(&diff));
done:
    rt_config_deinit(&old);
    rt_str_deinit(&diff);
    return st;
}

static rt_status check_position(const rt_trainer *t, const char *path) {
    const rt_progress_state *at = &t->at;
    RT_FAIL_IF(at->epoch > t->c->epochs || at->index > t->nbatches ||
                   (at->epoch == t->c->epochs && at->index > 0) ||
                   at->step != at->epoch * t->nbatches + at->index,
               RT_E_INPUT, "%s: epoch %lld, batch %lld, step %lld is no place in this run", path,
               (long long)at->epoch, (long long)at->index, (long long)at->step);
    return RT_OK;
}

static rt_status load_checkpoint(rt_trainer *t, bool *resumed) {
    char *path;
    RT_TRY(rt_run_dir_file(&t->dir, "checkpoint.safetensors", &path));
    *resumed = false;
    rt_status st = t->c->resume ? rt_run_find_file(path, resumed) : RT_OK;
    if (*resumed) {
        int64_t epoch = 0;
        st = rt_checkpoint_epoch(path, &epoch);
        const int phase = rt_trainer_phase_at(t, epoch);
        if (st == RT_OK && phase != t->phase)
            st = rt_trainer_enter(t, phase);
        if (st == RT_OK)
            st = rt_checkpoint_read(&t->checkpoint, path);
        if (st == RT_OK)
            st = check_position(t, path);
        if (st == RT_OK)
            rt_older_kept(t);
    }
    rt_free(path);
    return st;
}

static rt_status open_files(rt_trainer *t, bool resumed) {
    rt_str text;
    char *path = NULL;
    rt_status st;
    rt_str_init(&text);
    if (!resumed) {
        RT_TRY_GOTO(rt_run_dir_clear(&t->dir));
        rt_config_write(t->c, t->verb, &text);
        RT_TRY_GOTO(rt_run_dir_write(&t->dir, "config.yaml", &text));
    }
    if (t->group && t->group->first == 0) {
        const rt_config whole = rt_trainer_whole(t);
        rt_str_clear(&text);
        rt_config_write(&whole, t->verb, &text);
        RT_TRY_GOTO(rt_run_dir_write(t->group->dir, "config.yaml", &text));
    }
    RT_TRY_GOTO(rt_run_dir_file(&t->dir, "log.jsonl", &path));
    RT_TRY_GOTO(rt_appender_open(&t->dir.log, path, resumed ? t->at.log_position : 0));
    RT_TRY_GOTO(rt_trainer_log_event(t, resumed ? "resumed" : "start"));
done:
    rt_free(path);
    rt_str_deinit(&text);
    return st;
}

static void start_clocks(rt_trainer *t) {
    t->started = t->last_checkpoint = rt_time_now();
    t->seconds_before = t->at.seconds;
    t->first_step = t->at.step;
}

static rt_status run(rt_trainer *t, rt_train_result *r) {
    bool resumed, have_dir;
    char note[96] = "";
    RT_TRY(rt_run_find_dir(t->c->out, &have_dir));
    if (have_dir) /* a run in use is refused before its data is read */
        RT_TRY(rt_run_dir_open(&t->dir, t->c->out, t->c->resume, t->c->force));
    RT_TRY(rt_trainer_open(t));
    if (!have_dir)
        RT_TRY(rt_run_dir_open(&t->dir, t->c->out, t->c->resume, t->c->force));
    if (t->tells) {
        RT_TRY(rt_train_tell_parts(t->hooks, t->c->epochs, t->data, &t->labelled, &t->valid));
        rt_train_tell_target(t->hooks, t->c->epochs, rt_model_target(t->model));
    }
    RT_TRY(rt_trainer_teach(t));
    RT_TRY(load_checkpoint(t, &resumed));
    start_clocks(t);
    RT_TRY(open_files(t, resumed));
    if (t->at.epoch < t->c->epochs)
        RT_TRY(rt_prefetch_create(&t->prefetch, &t->batches, t->seeds, t->members,
                                  t->at.epoch + (t->at.index == t->nbatches), t->at.index % t->nbatches));
    if (t->aux.outside)
        RT_TRY(rt_aux_start(&t->aux, &t->batches, t->seeds, t->members, t->at.step));
    if (resumed)
        snprintf(note, sizeof note, "resumed at epoch %lld, step %lld", (long long)t->at.epoch + 1,
                 (long long)t->at.step);
    else if (t->c->resume)
        strcpy(note, "nothing to resume; starting");
    if (*note)
        rt_trainer_progress(t, false, note);
    while (t->at.epoch < t->c->epochs && !all_out_of_patience(t))
        RT_TRY(run_epoch(t));
    if (t->at.epoch < t->c->epochs) {
        snprintf(note, sizeof note, "no better for %lld epochs: ended after epoch %lld",
                 (long long)t->c->patience, (long long)t->at.epoch);
        rt_trainer_progress(t, false, note);
    }
    RT_TRY(finish(t, r));
    return rt_dist_barrier(rt_dist_all()); /* now it can be read by all */
}

/* The verb with these parameters; group: part of an ensemble, or NULL. */
static rt_status run_verb(const rt_config *c, unsigned verb, const rt_group *group, bool tells,
                          const rt_train_hooks *hooks, rt_train_result *out) {
    rt_config merged;
    char *config_path = NULL;
    rt_trainer t = {.verb = verb, .config = *c, .group = group, .tells = tells, .hooks = hooks};
    t.c = &t.config;
    rt_status st;
    RT_TRY(rt_run_dir_check(c->out, c->resume, c->force));
    RT_TRY(rt_config_init(&merged));
    rt_str_init(&t.line);
    RT_TRY_GOTO(rt_path_join(&config_path, c->out, "config.yaml"));
    bool saved;
    RT_TRY_GOTO(rt_run_find_file(config_path, &saved));
    if (c->resume && saved) {
        rt_run_state state;
        RT_TRY_GOTO(resume_config(&merged, c, verb, config_path));
        t.config = merged;
        RT_TRY_GOTO(rt_run_dir_state(c->out, &state));
        if (state == RT_RUN_FINISHED) {
            RT_TRY_GOTO(rt_trainer_read_metrics(c->out, out));
            if (hooks && hooks->progress)
                hooks->progress(hooks->user, &(rt_progress){.epoch = out->epochs,
                                                            .epochs = out->epochs,
                                                            .loss = out->train_loss,
                                                            .accuracy = NAN,
                                                            .seconds = out->seconds,
                                                            .valid_loss = out->valid_loss,
                                                            .valid_accuracy = out->valid_accuracy,
                                                            .note = "this run is already finished"});
            goto done;
        }
    }
    if (verb == RT_VERB_TRAIN && t.config.hyper)
        RT_TRY_GOTO(rt_hyper_run(&t.config, hooks, out));
    else if (rt_groups_wanted(&t.config, verb))
        RT_TRY_GOTO(rt_groups_run(&t.config, hooks, out));
    else
        RT_TRY_GOTO(run(&t, out));
done:
    rt_trainer_close(&t);
    rt_config_deinit(&merged);
    rt_free(config_path);
    return st;
}

rt_status rt_trainer_run(const rt_config *c, unsigned verb, const rt_train_hooks *hooks,
                         rt_train_result *out) {
    return run_verb(c, verb, NULL, false, hooks, out);
}

rt_status rt_trainer_run_group(const rt_config *c, const rt_group *group, const rt_train_hooks *hooks,
                               rt_train_result *out) {
    return run_verb(c, RT_VERB_TRAIN, group, group->first == 0, hooks, out);
}

/* A run that begins now, or one to be continued as it was begun. */
static rt_status run_asked(const rt_config *c, unsigned verb, const rt_train_hooks *hooks,
                           rt_train_result *out) {
    rt_config mine = *c;
    RT_FAIL_IF(!c->out, RT_E_USAGE, "where should the run go? Give --out DIR");
    if (c->resume)
        RT_TRY(rt_run_dir_begun(c->out));
    else
        rt_config_new_splits(&mine);
    return run_verb(&mine, verb, NULL, true, hooks, out);
}

rt_status rt_train_run(const rt_config *c, const rt_train_hooks *hooks, rt_train_result *out) {
    return run_asked(c, RT_VERB_TRAIN, hooks, out);
}

rt_status rt_distill_run(const rt_config *c, const rt_train_hooks *hooks, rt_train_result *out) {
    return run_asked(c, RT_VERB_DISTILL, hooks, out);
}
