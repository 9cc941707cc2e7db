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
    RT_TRY(rt_members_gather(&t->members));
    RT_TRY(rt_run_dir_file(&t->dir, "checkpoint.safetensors", &path));
    rt_status st = rt_checkpoint_write(&t->checkpoint, path);
    rt_free(path);
    t->log.last_checkpoint = rt_time_now();
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

static rt_status one_step(rt_trainer *t) {
    const rt_batch *b;
    rt_members *own = &t->members;
    const rt_phase *phase = rt_aim_phase(&t->aim);
    RT_TRY(rt_train_data_next(&t->data, rt_model_target(t->net.model), own->own, &b));
    RT_ASSERT(b->epoch == t->at.epoch && b->index == t->at.index);
    const double part = (double)t->at.index / (double)t->data.nbatches;
    const double lr = rt_schedule_lr(&t->net.schedule, (double)(t->at.epoch - phase->first) + part);
    for (int m = 0; m < own->own; m++)
        own->lr[m] = lr;
    rt_step_io io = {.x = b->x,
                     .label = b->label,
                     .target = t->data.target,
                     .rows = b->rows,
                     .t = t->at.step - phase->first * t->data.nbatches, /* each phase has a fresh optimiser */
                     .lr = own->lr,
                     .seeds = own->seeds,
                     .losses = own->losses,
                     .correct = own->correct,
                     .temperature = (float)rt_trainer_temperature(t, (double)t->at.epoch + part),
                     .stop = rt_trainer_stop(t)};
    rt_teaching_pair(&t->teach, t->c->seed, t->at.step, 0, io.pair);
    RT_TRY(rt_teaching_next(&t->teach, b, own->own, &io));
    RT_TRY(rt_step_run(t->net.step, &io));
    for (int m = 0; m < own->own; m++) {
        t->at.loss_sum[m] += own->losses[m] * (double)b->rows;
        t->at.correct[m] += (double)own->correct[m];
    }
    t->at.step++;
    t->at.index++;
    t->log.rows_done += b->rows;
    return RT_OK;
}

/* Some members have done the step and others have not: what can be gone on from is the checkpoint before. */
static rt_status leave_step(const rt_trainer *t) {
    RT_FAIL(RT_E_INTERRUPTED, "stopped within step %lld; --resume continues from the last checkpoint",
            (long long)t->at.step + 1);
}

static rt_status run_steps(rt_trainer *t) {
    if (t->at.index == 0)
        for (int m = 0; m < t->members.own; m++)
            t->at.loss_sum[m] = t->at.correct[m] = 0;
    while (t->at.index < t->data.nbatches) {
        bool stop;
        RT_TRY(must_stop(t, &stop));
        if (stop)
            return stop_here(t);
        rt_status st = one_step(t);
        if (st == RT_E_INTERRUPTED)
            return rt_step_intact(t->net.step) ? stop_here(t) : leave_step(t);
        RT_TRY(st);
        rt_trainer_progress(t, false, NULL);
    }
    return RT_OK;
}

/* ---- the end of an epoch ---- */

/* --patience: has member m, after so many epochs, not been better than what is kept of it for too long? Each member is
 * asked on its own, and keeps what it has from then on: it does not matter beside whom it is trained. */
static bool out_of_patience(const rt_trainer *t, int m, int64_t epochs) {
    const rt_phase *phase = rt_aim_phase(&t->aim);
    const double since = RT_MAX(t->at.kept_epoch[m], (double)phase->first);
    return t->c->patience > 0 && rt_aim_last(&t->aim) && (double)epochs - since >= (double)t->c->patience;
}

static bool all_out_of_patience(const rt_trainer *t) {
    int out = 0;
    for (int m = 0; m < t->members.all; m++)
        out += out_of_patience(t, m - (int)t->members.team.members.lo, t->at.epoch);
    return out == t->members.all && t->at.index == 0;
}

/* Weights of a higher temperature are not comparable: the spread of a Dirichlet is that of its temperature.
 * So while it falls the newest are kept. */
static void keep_weights(rt_trainer *t) {
    rt_progress_state *at = &t->at;
    const double now = rt_trainer_last_temperature(t, at->epoch);
    for (int m = 0; m < t->members.own; m++) {
        double loss = t->members.valid_loss[m], accuracy = t->members.valid_accuracy[m];
        const bool level = t->aim.keep_by_loss || accuracy == at->kept_accuracy[m];
        bool better = at->kept_epoch[m] == 0 || (!t->aim.keep_by_loss && accuracy > at->kept_accuracy[m]) ||
                      (level && loss < at->kept_loss[m]);
        better = better || rt_trainer_last_temperature(t, (int64_t)at->kept_epoch[m] - 1) > now;
        if (t->aim.keep_best && (!better || out_of_patience(t, m, at->epoch)))
            continue;
        if (t->aim.keep_best)
            rt_networks_keep(&t->net, m);
        at->kept_loss[m] = loss;
        at->kept_accuracy[m] = accuracy;
        at->kept_epoch[m] = (double)at->epoch + 1;
    }
}

static void measure_diversity(rt_trainer *t) {
    int32_t pair[2];
    if (!t->net.probe)
        return;
    rt_teaching_pair(&t->teach, t->c->seed, t->at.epoch, 1, pair);
    rt_probe_run(t->net.probe, rt_step_values(t->net.step, 0),
                 t->teach.teacher ? t->teach.teacher->blocks : NULL,
                 rt_trainer_last_temperature(t, t->at.epoch), pair, t->members.seeds[0], t->at.epoch);
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
    RT_TRY(rt_members_gather(&t->members));
    RT_TRY(rt_trainer_log_epoch(t));
    rt_trainer_progress(t, true, NULL);
    t->at.epoch++;
    t->at.index = 0;
    if (rt_aim_phase_at(&t->aim, t->at.epoch) != t->aim.phase)
        RT_TRY(rt_trainer_grow(t));
    int due = rt_time_now() - t->log.last_checkpoint >= t->c->checkpoint_every;
    RT_TRY(rt_dist_lead(RT_OK, &due));
    return due && t->at.epoch < t->c->epochs ? save_checkpoint(t) : RT_OK;
}

/* ---- the end ---- */

/* Network `m` of the model as member `member` of the run. */
static rt_status save_one(rt_trainer *t, const rt_model *model, int m, int member, const char *name) {
    char *path;
    rt_provenance from = {.method = t->aim.method,
                          .data_hash = rt_dataset_hash(t->data.set),
                          .config_hash = t->settings_hash,
                          .objective = t->verb == RT_VERB_DISTILL ? t->c->objective : NULL,
                          .perturb = t->aim.perturb ? t->aim.perturb->name : NULL,
                          .teacher_hash = t->teach.teacher ? t->teach.teacher->digest : NULL,
                          .seed = t->c->seed,
                          .epochs = t->c->epochs,
                          .kept_epoch = (int64_t)rt_members_all(&t->members, t->at.kept_epoch)[member],
                          .first = (t->portion ? t->portion->first : 0) + member - m,
                          .of = t->portion ? (int)t->portion->whole->members : t->members.all};
    RT_TRY(rt_run_dir_file(t->portion ? t->portion->dir : &t->dir, name, &path));
    rt_status st = rt_model_save(model, m, path, &from);
    rt_free(path);
    return st;
}

/* The weights to keep of member `member`, and what they collapse to, as networks `m` of the two models; on rank 0 also
 * those of other ranks. */
static rt_status take_member(rt_trainer *t, int member, int *m) {
    const rt_share own = t->members.team.members;
    const bool mine = member >= own.lo && member < own.hi;
    *m = mine ? member - (int)own.lo : 0;
    if (mine && (!t->aim.keep_best || t->at.kept_epoch[*m] == 0))
        rt_networks_keep(&t->net, *m);
    float *w = mine || rt_dist_rank() == 0 ? rt_model_weights(t->net.model, *m) : NULL;
    RT_TRY(rt_member_to_first(w, w, rt_model_floats(t->net.model), t->members.all, member));
    return w == NULL || t->net.ship == t->net.model ? RT_OK : rt_networks_merge(&t->net, w, *m);
}

/* What a student collapses to is the model; what it was before stays beside it, for those who want to look.
 */
static rt_status save_member(rt_trainer *t, int member) {
    const int number = (t->portion ? t->portion->first : 0) + member;
    const bool single = t->members.all == 1 && !t->portion;
    char name[48];
    int m;
    RT_TRY(take_member(t, member, &m));
    if (rt_dist_rank() > 0)
        return RT_OK;
    if (t->net.ship != t->net.model) {
        if (single)
            strcpy(name, "members.safetensors");
        else
            snprintf(name, sizeof name, "members-%03d.safetensors", number);
        RT_TRY(save_one(t, t->net.model, m, member, name));
    }
    rt_member_file(name, number, single);
    return save_one(t, t->net.ship, m, member, name);
}

static bool wants_stop(const rt_trainer *t) {
    const volatile sig_atomic_t *flag = rt_trainer_stop(t);
    return flag && *flag;
}

/* Members of other ranks pass through the place of rank 0's first one, which comes back. Many members take long to
 * save; ranks, which pass them on together, see it through. */
static rt_status save_models(rt_trainer *t) {
    rt_model *const models[] = {t->net.model, t->net.ship};
    float *first[2] = {NULL, NULL};
    rt_status st = RT_OK;
    for (int i = 0; i < 2 && st == RT_OK; i++)
        st = rt_alloc(&first[i], (size_t)rt_model_floats(models[i]) * sizeof(float));
    for (int member = 0; member < t->members.all && st == RT_OK; member++) {
        if (member > 0 && rt_dist_size() < 2 && wants_stop(t)) {
            st = stop_here(t);
            break;
        }
        for (int i = 0; i < 2 && member == t->members.team.members.hi; i++)
            memcpy(first[i], rt_model_weights(models[i], 0),
                   (size_t)rt_model_floats(models[i]) * sizeof(float));
        st = save_member(t, member);
    }
    for (int i = 0; i < 2 && st == RT_OK && t->members.team.members.hi < t->members.all; i++)
        memcpy(rt_model_weights(models[i], 0), first[i], (size_t)rt_model_floats(models[i]) * sizeof(float));
    rt_free(first[0]);
    rt_free(first[1]);
    return st;
}

static rt_status finish(rt_trainer *t, rt_train_result *r) {
    RT_TRY(rt_members_gather(&t->members));
    RT_TRY(save_models(t));
    *r = (rt_train_result){.members = t->members.all,
                           .epochs = t->at.epoch,
                           .steps = t->at.step,
                           .parameters = rt_params_trainable(rt_model_params(t->net.ship)),
                           .seconds = rt_trainer_seconds(t),
                           .samples_per_s = rt_trainer_rate(t),
                           .train_loss = t->at.step > 0 ? rt_members_mean(&t->members, t->at.loss_sum) /
                                                              (double)t->data.epoch_rows
                                                        : NAN,
                           .valid_loss = rt_members_mean(&t->members, t->at.kept_loss),
                           .valid_accuracy = rt_members_mean(&t->members, t->at.kept_accuracy)};
    r->keep = rt_aim_kept(&t->aim);
    const double *kept = rt_members_all(&t->members, t->at.kept_epoch);
    r->kept_first = r->kept_last = (int64_t)kept[0];
    for (int m = 1; m < t->members.all; m++) {
        r->kept_first = RT_MIN(r->kept_first, (int64_t)kept[m]);
        r->kept_last = RT_MAX(r->kept_last, (int64_t)kept[m]);
    }
    RT_TRY(rt_trainer_doubt(t, r->doubt));
    t->log.doubt = r->doubt;
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
    merged->at_once = old.at_once; /* portions that were begun keep their size */
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
    RT_FAIL_IF(at->epoch > t->c->epochs || at->index > t->data.nbatches ||
                   (at->epoch == t->c->epochs && at->index > 0) ||
                   at->step != at->epoch * t->data.nbatches + at->index,
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
        const int phase = rt_aim_phase_at(&t->aim, epoch);
        if (st == RT_OK && phase != t->aim.phase)
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
    if (t->portion && t->portion->first == 0) {
        const rt_config whole = rt_trainer_whole(t);
        rt_str_clear(&text);
        rt_config_write(&whole, t->verb, &text);
        RT_TRY_GOTO(rt_run_dir_write(t->portion->dir, "config.yaml", &text));
    }
    RT_TRY_GOTO(rt_run_dir_file(&t->dir, "log.jsonl", &path));
    RT_TRY_GOTO(rt_appender_open(&t->dir.log, path, resumed ? t->at.log_position : 0));
    RT_TRY_GOTO(rt_trainer_log_event(t, resumed ? "resumed" : "start"));
done:
    rt_free(path);
    rt_str_deinit(&text);
    return st;
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
        RT_TRY(rt_train_tell_parts(t->hooks, t->c->epochs, t->data.set, &t->data.labelled, &t->data.valid));
        rt_train_tell_target(t->hooks, t->c->epochs, rt_model_target(t->net.model));
    }
    RT_TRY(rt_teaching_ask(t));
    RT_TRY(load_checkpoint(t, &resumed));
    rt_trainer_start_clocks(t);
    RT_TRY(open_files(t, resumed));
    if (t->at.epoch < t->c->epochs)
        RT_TRY(rt_train_data_start(&t->data, &t->members, &t->at));
    if (t->teach.aux.outside)
        RT_TRY(rt_aux_start(&t->teach.aux, &t->data.batches, t->members.seeds, t->members.own, t->at.step));
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

/* The verb with these parameters; portion: part of an ensemble, or NULL. */
static rt_status run_verb(const rt_config *c, unsigned verb, const rt_portion *portion, bool tells,
                          const rt_train_hooks *hooks, rt_train_result *out) {
    rt_config merged;
    char *config_path = NULL;
    rt_trainer t = {.verb = verb, .config = *c, .portion = portion, .tells = tells, .hooks = hooks};
    t.c = &t.config;
    rt_status st;
    RT_TRY(rt_run_dir_check(c->out, c->resume, c->force));
    RT_TRY(rt_config_init(&merged));
    rt_str_init(&t.log.line);
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
    else if (rt_portions_wanted(&t.config, verb))
        RT_TRY_GOTO(rt_portions_run(&t.config, hooks, out));
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

rt_status rt_trainer_run_portion(const rt_config *c, const rt_portion *portion, const rt_train_hooks *hooks,
                                 rt_train_result *out) {
    return run_verb(c, RT_VERB_TRAIN, portion, portion->first == 0, hooks, out);
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
