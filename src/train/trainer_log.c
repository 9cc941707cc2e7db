/*
 * trainer_log.c - what a run tells while it runs and at its end: log.jsonl, metrics.json, the progress
 * callback.
 *
 * Lines of the log carry the time of day and the speed; all other numbers in it are the same however often
 * the run was interrupted.
 */
#include "base/alloc.h"
#include "base/json.h"
#include "base/timer.h"
#include "train/train_int.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

static const double PROGRESS_EVERY = 0.1; /* seconds */

void rt_trainer_start_clocks(rt_trainer *t) {
    t->log.started = t->log.last_checkpoint = rt_time_now();
    t->log.seconds_before = t->at.seconds;
    t->log.first_step = t->at.step;
}

double rt_trainer_seconds(const rt_trainer *t) {
    return t->log.seconds_before + (rt_time_now() - t->log.started);
}

double rt_trainer_rate(const rt_trainer *t) {
    double seconds = rt_time_now() - t->log.started;
    return seconds > 0 ? (double)t->log.rows_done * t->members.all / seconds : 0;
}

/* Rows of the current epoch that were trained on. */
static int64_t rows_so_far(const rt_trainer *t) {
    return RT_MIN(t->at.index * t->data.batches.batch, t->data.epoch_rows);
}

static void put_number(rt_json *j, const char *key, double v) {
    if (isfinite(v))
        rt_json_f64(j, key, v);
}

static void begin_line(rt_trainer *t, rt_json *j, const char *event) {
    char now[32];
    rt_time_iso8601(now);
    rt_str_clear(&t->log.line);
    rt_json_init(j, &t->log.line, false);
    rt_json_object_begin(j, NULL);
    rt_json_str(j, "event", event);
    rt_json_str(j, "time", now);
    rt_json_i64(j, "step", t->at.step);
}

static rt_status end_line(rt_trainer *t, rt_json *j) {
    rt_json_object_end(j);
    rt_str_append_char(&t->log.line, '\n');
    RT_TRY(rt_str_status(&t->log.line));
    return rt_appender_write(t->dir.log, rt_str_text(&t->log.line), t->log.line.len);
}

/* How far teachers are from BatchEnsemble form: per kernel the relative error, and the deviation of their
 * ratios from rank one; renumbered teachers also before that. */
static void put_reconstruction(const rt_teaching *g, rt_json *j) {
    const rt_reconstruct_report *r = &g->reconstruction;
    if (r->layers == 0)
        return;
    rt_json_f64(j, "reconstruction_residual", r->residual);
    if (g->unmatched.layers > 0)
        rt_json_f64(j, "reconstruction_residual_unmatched", g->unmatched.residual);
    rt_json_array_begin(j, "reconstruction");
    for (int i = 0; i < r->layers; i++) {
        rt_json_object_begin(j, NULL);
        rt_json_str(j, "kernel", r->line[i].name);
        rt_json_f64(j, "residual", r->line[i].residual);
        rt_json_f64_or(j, "rank_one", r->line[i].rank_one, "a weight is zero where another is not");
        rt_json_object_end(j);
    }
    rt_json_array_end(j);
}

/* Which weights, and of which epochs. */
static void put_kept(const rt_trainer *t, rt_json *j) {
    const rt_members *of = &t->members;
    rt_json_str(j, "keep", rt_aim_kept(&t->aim));
    rt_json_array_begin(j, "kept");
    for (int m = 0; m < of->all; m++) {
        rt_json_object_begin(j, NULL);
        rt_json_i64(j, "epoch", (int64_t)rt_members_all(of, t->at.kept_epoch)[m]);
        put_number(j, "valid_loss", rt_members_all(of, t->at.kept_loss)[m]);
        put_number(j, "valid_accuracy", rt_members_all(of, t->at.kept_accuracy)[m]);
        rt_json_object_end(j);
    }
    rt_json_array_end(j);
}

rt_status rt_trainer_log_event(rt_trainer *t, const char *event) {
    rt_json j;
    begin_line(t, &j, event);
    rt_json_i64(&j, "epoch", t->at.epoch);
    rt_json_str(&j, "retort", RT_VERSION);
    if (strcmp(event, "start") == 0)
        put_reconstruction(&t->teach, &j);
    if (strcmp(event, "finished") == 0)
        put_kept(t, &j);
    if (t->log.doubt && *t->log.doubt)
        rt_json_str(&j, "doubt", t->log.doubt);
    return end_line(t, &j);
}

/* Accuracy needs the labels of all rows. */
static bool counts_right(const rt_train_data *d) {
    return !d->regression && d->train.n == d->labelled.n;
}

static void put_diversity(const rt_trainer *t, rt_json *j) {
    for (int i = 0; t->net.probe && i < rt_probe_count(t->net.probe); i++) {
        double value;
        const char *name = rt_probe_get(t->net.probe, i, &value);
        put_number(j, name, value);
    }
    put_number(j, "teacher_diversity", t->teach.diversity);
}

/* Called at the end of an epoch, before the counters move on. */
rt_status rt_trainer_log_epoch(rt_trainer *t) {
    const rt_members *of = &t->members;
    rt_json j;
    double rows = (double)t->data.epoch_rows;
    begin_line(t, &j, "epoch");
    rt_json_i64(&j, "epoch", t->at.epoch + 1);
    const double last = rt_train_data_last_step(&t->data, t->at.epoch);
    rt_json_f64(&j, "lr", rt_schedule_lr(&t->net.schedule, last - (double)rt_aim_phase(&t->aim)->first));
    if (t->aim.nphases > 1)
        rt_json_i64(&j, "phase", t->aim.phase + 1);
    if (t->verb == RT_VERB_DISTILL)
        rt_json_f64(&j, "temperature", rt_trainer_temperature(t, last));
    rt_json_f64(&j, "train_loss", rt_members_mean(of, t->at.loss_sum) / rows);
    if (counts_right(&t->data))
        rt_json_f64(&j, "train_accuracy", rt_members_mean(of, t->at.correct) / rows);
    put_number(&j, "valid_loss", rt_members_mean(of, of->valid_loss));
    put_number(&j, "valid_accuracy", rt_members_mean(of, of->valid_accuracy));
    put_diversity(t, &j);
    rt_json_f64(&j, "samples_per_s", rt_trainer_rate(t));
    rt_json_f64(&j, "seconds", rt_trainer_seconds(t));
    rt_json_array_begin(&j, "members");
    for (int m = 0; m < of->all; m++) {
        rt_json_object_begin(&j, NULL);
        rt_json_f64(&j, "train_loss", rt_members_all(of, t->at.loss_sum)[m] / rows);
        if (counts_right(&t->data))
            rt_json_f64(&j, "train_accuracy", rt_members_all(of, t->at.correct)[m] / rows);
        put_number(&j, "valid_loss", rt_members_all(of, of->valid_loss)[m]);
        put_number(&j, "valid_accuracy", rt_members_all(of, of->valid_accuracy)[m]);
        rt_json_object_end(&j);
    }
    rt_json_array_end(&j);
    return end_line(t, &j);
}

static void put_result(rt_json *j, const rt_train_result *r, const char *no_accuracy) {
    rt_json_i64(j, "members", r->members);
    rt_json_i64(j, "epochs", r->epochs);
    rt_json_i64(j, "steps", r->steps);
    rt_json_i64(j, "parameters", r->parameters);
    rt_json_f64(j, "seconds", r->seconds);
    rt_json_f64(j, "samples_per_s", r->samples_per_s);
    rt_json_f64_or(j, "train_loss", r->train_loss, "no epoch was trained");
    rt_json_f64_or(j, "valid_loss", r->valid_loss, "no validation");
    rt_json_f64_or(j, "valid_accuracy", r->valid_accuracy, no_accuracy);
    if (*r->doubt)
        rt_json_str(j, "doubt", r->doubt);
}

rt_status rt_train_write_result(const rt_run_dir *dir, const rt_train_result *r, const char *extra,
                                int64_t count, const char *no_accuracy) {
    rt_str text;
    rt_json j;
    rt_str_init(&text);
    rt_run_json_begin(&j, &text);
    rt_json_i64(&j, extra, count);
    put_result(&j, r, no_accuracy);
    if (r->keep)
        rt_json_str(&j, "keep", r->keep);
    const rt_status st = rt_run_json_end(&j, dir, "metrics.json");
    rt_str_deinit(&text);
    return st;
}

void rt_train_tell(const rt_train_hooks *hooks, int64_t epochs, const char *note) {
    if (hooks && hooks->progress)
        hooks->progress(hooks->user, &(rt_progress){.epochs = epochs,
                                                    .loss = NAN,
                                                    .accuracy = NAN,
                                                    .seconds_left = NAN,
                                                    .valid_loss = NAN,
                                                    .valid_accuracy = NAN,
                                                    .note = note});
}

rt_status rt_trainer_write_metrics(rt_trainer *t, const rt_train_result *r) {
    rt_json j;
    rt_run_json_begin(&j, &t->log.line);
    rt_json_str(&j, "task", t->data.regression ? "regression" : "classification");
    if (t->data.regression)
        rt_json_str(&j, "target_transform", rt_warp_name(rt_model_target(t->net.model)->warp.kind));
    rt_json_i64(&j, "train_rows", t->data.train.n);
    rt_json_i64(&j, "valid_rows", t->data.valid.n);
    put_result(&j, r, t->data.regression ? "regression" : "no validation");
    put_kept(t, &j);
    return rt_run_json_end(&j, &t->dir, "metrics.json");
}

rt_status rt_trainer_read_metrics(const char *dir, rt_train_result *r) {
    char *path = NULL;
    rt_jdoc *doc = NULL;
    rt_status st;
    RT_TRY_GOTO(rt_path_join(&path, dir, "metrics.json"));
    RT_TRY_GOTO(rt_jdoc_read(&doc, path));
    rt_jval root = rt_jdoc_root(doc);
    int64_t members = 0;
    bool ok = rt_jval_i64(rt_jval_get(root, "members"), &members) &&
              rt_jval_i64(rt_jval_get(root, "epochs"), &r->epochs) &&
              rt_jval_i64(rt_jval_get(root, "steps"), &r->steps) &&
              rt_jval_i64(rt_jval_get(root, "parameters"), &r->parameters) &&
              rt_jval_f64(rt_jval_get(root, "seconds"), &r->seconds) &&
              rt_jval_f64(rt_jval_get(root, "samples_per_s"), &r->samples_per_s);
    if (!ok)
        RT_FAIL_GOTO(RT_E_INPUT, "%s: not the metrics of a finished run", path);
    r->members = (int)members;
    const char *doubt = "";
    (void)rt_jval_str(rt_jval_get(root, "doubt"), &doubt);
    snprintf(r->doubt, sizeof r->doubt, "%s", doubt);
    r->keep = NULL;
    r->kept_first = r->kept_last = 0;
    const char *keep;
    static const char *const keeps[] = {"loss", "accuracy", "last"};
    for (int i = 0; i < 3 && rt_jval_str(rt_jval_get(root, "keep"), &keep); i++)
        if (strcmp(keep, keeps[i]) == 0)
            r->keep = keeps[i];
    double *const optional[] = {&r->train_loss, &r->valid_loss, &r->valid_accuracy};
    static const char *const keys[] = {"train_loss", "valid_loss", "valid_accuracy"};
    for (int i = 0; i < 3; i++)
        if (!rt_jval_f64(rt_jval_get(root, keys[i]), optional[i]))
            *optional[i] = NAN;
done:
    rt_jdoc_destroy(&doc);
    rt_free(path);
    return st;
}

void rt_trainer_progress(rt_trainer *t, bool epoch_end, const char *note) {
    const rt_members *of = &t->members;
    double now = rt_time_now();
    if (!t->hooks || !t->hooks->progress ||
        (!epoch_end && !note && now - t->log.last_progress < PROGRESS_EVERY))
        return;
    t->log.last_progress = now;
    double rows = epoch_end ? (double)t->data.epoch_rows : (double)rows_so_far(t);
    int64_t all = t->c->epochs * t->data.nbatches, done = t->at.step - t->log.first_step;
    rt_progress p = {
        .epoch = t->at.epoch + 1,
        .epochs = t->c->epochs,
        .step = t->at.index,
        .steps = t->data.nbatches,
        .loss = rows > 0 ? rt_members_mean(of, t->at.loss_sum) / rows : NAN,
        .accuracy = rows > 0 && counts_right(&t->data) ? rt_members_mean(of, t->at.correct) / rows : NAN,
        .samples_per_s = rt_trainer_rate(t),
        .seconds = rt_trainer_seconds(t),
        .seconds_left = done > 0 ? (now - t->log.started) * (double)(all - t->at.step) / (double)done : NAN,
        .epoch_end = epoch_end,
        .valid_loss = epoch_end ? rt_members_mean(of, of->valid_loss) : NAN,
        .valid_accuracy = epoch_end ? rt_members_mean(of, of->valid_accuracy) : NAN,
        .note = note};
    t->hooks->progress(t->hooks->user, &p);
}

void rt_train_result_write(const rt_train_result *r, const char *run, rt_json *j) {
    rt_json_str(j, "run", run);
    rt_json_i64(j, "members", r->members);
    rt_json_i64(j, "parameters", r->parameters);
    rt_json_i64(j, "epochs", r->epochs);
    rt_json_i64(j, "steps", r->steps);
    rt_json_f64(j, "train_seconds", r->seconds);
    rt_json_f64_or(j, "samples_per_s", r->samples_per_s, "no step was made");
    rt_json_f64_or(j, "train_loss", r->train_loss, "no step was made");
    rt_json_f64_or(j, "valid_loss", r->valid_loss, "no validation rows");
    rt_json_f64_or(j, "valid_accuracy", r->valid_accuracy, "no validation rows, or regression");
    if (*r->doubt)
        rt_json_str(j, "doubt", r->doubt);
}
