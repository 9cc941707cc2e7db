/*
 * hyper.c - hyper-deep ensembles (Wenzel et al. 2020): members that differ not only by seed.
 *
 *     search    R candidates on the training rows, each with the seed of its number. The first has the
 *               parameters as given; the others draw, log-uniformly,
 *                   the decay of each depth group     [2e-2 / N, 2e2 / N], N training rows
 *                   the label smoothing               [1e-5, 0.2]
 *
 *     choice    greedy, with replacement: again and again the candidate that lowers the validation NLL of the
 *               mean likelihood most, until as many different ones are chosen as members were asked for, or
 *               none lowers it
 *
 *     retrain   what was chosen, on all rows: nothing is held out any more, and whoever wants held-out rows of
 *               this run (a temperature, a soup) is told so (rt_run_rows)
 *
 * (Keras' l2(c) adds c w^2 to the loss, which is a decay of 2c: hence the twos. Blocks of equal width are one
 * depth group.) A candidate chosen twice counts twice: it is there as two members, so every mean over members
 * is the weighted mean. Candidates are runs of their own, in search/ and retrain/, so that an interrupted
 * search goes on with whatever is finished, and several ranks train several of them at the same time; hyper.json tells
 * all settings and the choice.
 */
#include "base/alloc.h"
#include "base/json.h"
#include "base/rng.h"
#include "base/timer.h"
#include "train/train_int.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { CHOICE_MAX = 1000 }; /* members, counted as often as they were chosen */

typedef struct candidate {
    double label_smoothing, valid_nll;
    rt_str group_decay; /* empty: as given */
    int count;          /* times chosen */
} candidate;

typedef struct hyper {
    rt_config config;
    const rt_config *c; /* of it */
    const rt_train_hooks *hooks;
    rt_run_dir dir;
    rt_dataset *data;
    rt_subset train, valid;
    rt_pool *pool;
    candidate *candidates;
    int n;
    double *nlls; /* (n, valid rows): of the truth */
    int choice[CHOICE_MAX], nchoice, unique;
    double nll[CHOICE_MAX]; /* of the ensemble after each choice */
    double steps, seconds, train_loss;
    int64_t parameters;
} hyper;

/* ---- drawing ---- */

static double log_uniform(rt_rng r, uint64_t i, double lo, double hi) {
    return exp(log(lo) + rt_rng_uniform(r, i) * (log(hi) - log(lo)));
}

/* Blocks of a group ("layer2.0", "layer2.1") share their draw. */
static size_t group_length(const char *stage) {
    return strcspn(stage, ".");
}

static void draw_decay(const hyper *h, candidate *k, rt_rng r, const rt_net *net, int groups) {
    const double n = (double)h->train.n;
    double v = 0;
    for (int g = 0; g < groups; g++) {
        const char *name = rt_net_stage_name(net, RT_MIN(g, rt_net_stages(net) - 1));
        const char *before = g > 0 ? rt_net_stage_name(net, RT_MIN(g - 1, rt_net_stages(net) - 1)) : "";
        const size_t len = group_length(name);
        if (g == 0 || len != group_length(before) || memcmp(name, before, len) != 0 ||
            strchr(name, '.') == NULL)
            v = log_uniform(r, 1 + (uint64_t)g, 2e-2 / n, 2e2 / n);
        char text[40];
        rt_format_f64(text, v);
        rt_str_appendf(&k->group_decay, "%s%s", g ? "," : "", text);
    }
}

static rt_status draw_all(hyper *h) {
    const rt_config *c = h->c;
    const bool regression = rt_dataset_task(h->data) == RT_TASK_REGRESSION;
    rt_params *params = NULL;
    rt_student *student = NULL;
    int groups = 0;
    rt_status st;
    rt_student_config s = {.spec = c->student,
                           .arch = {.spec = c->arch,
                                    .input = rt_dataset_row(h->data),
                                    .outputs = regression ? 2 : rt_dataset_classes(h->data)},
                           .regression = regression,
                           .head = c->head,
                           .split = c->split};
    RT_TRY_GOTO(rt_params_create(&params));
    RT_TRY_GOTO(rt_student_create(&student, &s, params));
    for (int i = 0; i < rt_params_count(params); i++)
        groups = RT_MAX(groups, (int)rt_params_get(params, i)->group + 1);
    for (int i = 0; i < h->n; i++) {
        candidate *k = &h->candidates[i];
        k->label_smoothing = c->label_smoothing;
        if (i == 0)
            continue;
        const rt_rng r = rt_rng_make((uint64_t)c->seed, RT_RNG_SEARCH, (uint64_t)i, 0);
        if (!regression)
            k->label_smoothing = log_uniform(r, 0, 1e-5, 0.2);
        draw_decay(h, k, r, rt_student_net(student), groups);
        RT_TRY_GOTO(rt_str_status(&k->group_decay));
    }
done:
    rt_student_destroy(&student);
    rt_params_destroy(&params);
    return st;
}

/* ---- training ---- */

static rt_status run_path(const hyper *h, const char *kind, int i, char **out) {
    char name[32];
    snprintf(name, sizeof name, "%s/%03d", kind, i);
    return rt_run_dir_file(&h->dir, name, out);
}

static void tell(const hyper *h, const char *what, int i, int n) {
    char note[64];
    snprintf(note, sizeof note, "%s %d of %d", what, i + 1, n);
    rt_train_tell(h->hooks, h->c->epochs, note);
}

/* Networks that are trained for one reason, each a run of its own. */
typedef struct batch {
    const hyper *h;
    const char *kind, *what; /* directory, and name for people */
    bool all_rows;
    const int *list; /* candidates */
    int n;
    int *todo; /* places in the list of those that are not finished */
} batch;

static rt_status train_one(const batch *b, int at) {
    const hyper *h = b->h;
    const int i = b->list[at];
    const candidate *k = &h->candidates[i];
    rt_config c = *h->c;
    rt_train_result r;
    char *path;
    tell(h, b->what, at, b->n);
    RT_TRY(run_path(h, b->kind, i, &path));
    c.hyper = false;
    c.members = 1;
    c.first_member = h->c->first_member + i;
    c.label_smoothing = k->label_smoothing;
    if (k->group_decay.len > 0)
        c.group_decay = rt_str_text(&k->group_decay);
    if (b->all_rows) {
        c.valid = 0;
        c.patience = 0;
        c.keep = "last";
    }
    c.out = path;
    c.force = !c.resume;
    rt_status st = rt_trainer_run(&c, RT_VERB_TRAIN, h->hooks, &r);
    rt_free(path);
    return st;
}

static rt_status train_todo(void *user, int64_t piece) {
    const batch *b = user;
    return train_one(b, b->todo[piece]);
}

/* Finished runs are looked at by all ranks; the others are shared out. */
static rt_status train_unfinished(batch *b) {
    int todo = 0;
    for (int at = 0; at < b->n; at++) {
        rt_run_state state;
        char *path;
        RT_TRY(run_path(b->h, b->kind, b->list[at], &path));
        rt_status st = rt_run_dir_state(path, &state);
        rt_free(path);
        RT_TRY(st);
        if (b->h->c->resume && state == RT_RUN_FINISHED)
            RT_TRY(train_one(b, at));
        else
            b->todo[todo++] = at;
    }
    return rt_dist_spread(todo, train_todo, b);
}

/* What all of them took, and the last one came to. */
static rt_status train_all(hyper *h, const char *kind, const char *what, const int *list, int n,
                           bool all_rows) {
    rt_train_result r = {.steps = 0};
    batch b = {.h = h, .kind = kind, .what = what, .all_rows = all_rows, .list = list, .n = n};
    char *path = NULL;
    RT_TRY(rt_calloc(&b.todo, (size_t)n, sizeof *b.todo));
    rt_status st;
    RT_TRY_GOTO(train_unfinished(&b));
    for (int at = 0; at < n; at++) {
        RT_TRY_GOTO(run_path(h, kind, list[at], &path));
        RT_TRY_GOTO(rt_trainer_read_metrics(path, &r));
        rt_free(path);
        path = NULL;
        h->steps += (double)r.steps;
        h->seconds += r.seconds;
    }
    h->train_loss = r.train_loss;
    h->parameters = r.parameters;
done:
    rt_free(path);
    rt_free(b.todo);
    return st;
}

/* ---- choosing ---- */

static rt_status measure_one(hyper *h, int i, const rt_part *rows) {
    rt_model *m = NULL;
    float *y = NULL;
    char *path = NULL;
    double *out = h->nlls + i * h->valid.n, sum = 0;
    rt_row row = {0};
    rt_status st;
    RT_TRY_GOTO(run_path(h, "search", i, &path));
    RT_TRY_GOTO(rt_model_load(&m, path));
    RT_TRY_GOTO(rt_row_init(&row, rt_model_reading(m)));
    const int64_t width = row.how.m * row.how.k;
    RT_TRY_GOTO(rt_calloc(&y, (size_t)rows->n, (size_t)width * sizeof *y));
    RT_TRY_GOTO(rt_model_predict(m, rows, h->pool, y, h->hooks ? h->hooks->stop : NULL));
    for (int64_t r = 0; r < rows->n; r++) {
        const bool good = rt_row_read(&row, y + r * width);
        out[r] = good ? rt_row_nll(&row, rt_subset_truth(&h->valid, r, h->valid.part->label == NULL)) : NAN;
        sum += out[r];
    }
    h->candidates[i].valid_nll = sum / (double)rows->n;
done:
    rt_row_deinit(&row);
    rt_model_destroy(&m);
    rt_free(y);
    rt_free(path);
    return st;
}

static rt_status choose(hyper *h) {
    double *sum;
    RT_TRY(rt_calloc(&sum, (size_t)h->valid.n, sizeof *sum));
    for (int64_t r = 0; r < h->valid.n; r++)
        sum[r] = INFINITY; /* nothing yet */
    while (h->nchoice < CHOICE_MAX && h->unique < h->c->members) {
        int best = -1;
        double lowest = h->nchoice > 0 ? h->nll[h->nchoice - 1] : INFINITY;
        for (int i = 0; i < h->n; i++) {
            const double nll = rt_mixture_nll(sum, h->nchoice, h->nlls + i * h->valid.n, h->valid.n);
            if (nll < lowest) {
                lowest = nll;
                best = i;
            }
        }
        if (best < 0)
            break;
        for (int64_t r = 0; r < h->valid.n; r++)
            sum[r] = rt_mixture_add(sum[r], h->nlls[best * h->valid.n + r]);
        h->unique += h->candidates[best].count++ == 0;
        h->nll[h->nchoice] = lowest;
        h->choice[h->nchoice++] = best;
    }
    rt_free(sum);
    RT_FAIL_IF(h->nchoice == 0, RT_E_NUMERIC, "no candidate has a finite validation loss");
    return RT_OK;
}

/* ---- files ---- */

static void json_decay(rt_json *j, const candidate *k, double given) {
    if (k->group_decay.len == 0) {
        rt_json_f64(j, "weight_decay", given);
        return;
    }
    rt_str list;
    rt_str_init(&list);
    rt_str_appendf(&list, "[%s]", rt_str_text(&k->group_decay));
    rt_json_raw(j, "group_decay", rt_str_text(&list));
    rt_str_deinit(&list);
}

static rt_status write_hyper(const hyper *h) {
    rt_str text;
    rt_json j;
    rt_str_init(&text);
    rt_run_json_begin(&j, &text);
    rt_json_array_begin(&j, "candidates");
    for (int i = 0; i < h->n; i++) {
        const candidate *k = &h->candidates[i];
        rt_json_object_begin(&j, NULL);
        rt_json_i64(&j, "first_member", h->c->first_member + i);
        rt_json_f64(&j, "label_smoothing", k->label_smoothing);
        json_decay(&j, k, h->c->weight_decay);
        rt_json_f64(&j, "valid_nll", k->valid_nll);
        rt_json_i64(&j, "chosen", k->count);
        rt_json_object_end(&j);
    }
    rt_json_array_end(&j);
    rt_json_array_begin(&j, "choice");
    for (int i = 0; i < h->nchoice; i++) {
        rt_json_object_begin(&j, NULL);
        rt_json_i64(&j, "candidate", h->choice[i]);
        rt_json_f64(&j, "ensemble_valid_nll", h->nll[i]);
        rt_json_object_end(&j);
    }
    rt_json_array_end(&j);
    rt_json_bool(&j, "complete", h->unique == h->c->members);
    const rt_status st = rt_run_json_end(&j, &h->dir, "hyper.json");
    rt_str_deinit(&text);
    return st;
}

/* The chosen networks as the members of one run, as often as they were chosen. */
static rt_status assemble(hyper *h) {
    rt_model *one = NULL;
    char *from_path = NULL, *path = NULL, hash[65], name[48];
    rt_status st = RT_OK;
    rt_config_hash(h->c, RT_VERB_TRAIN, false, hash);
    rt_provenance from = {.method = "hyper",
                          .data_hash = rt_dataset_hash(h->data),
                          .config_hash = hash,
                          .seed = h->c->seed,
                          .epochs = h->c->epochs,
                          .kept_epoch = h->c->epochs,
                          .of = h->nchoice};
    for (int i = 0; i < h->nchoice; i++) {
        from.first = i;
        rt_member_file(name, i, h->nchoice == 1);
        RT_TRY_GOTO(run_path(h, "retrain", h->choice[i], &from_path));
        RT_TRY_GOTO(rt_model_load(&one, from_path));
        RT_TRY_GOTO(rt_run_dir_file(&h->dir, name, &path));
        RT_TRY_GOTO(rt_model_save(one, 0, path, &from));
        rt_model_destroy(&one);
        rt_free(from_path);
        rt_free(path);
        from_path = path = NULL;
    }
done:
    rt_free(from_path);
    rt_free(path);
    rt_model_destroy(&one);
    return st;
}

/* ---- all of it ---- */

static rt_status hyper_open(hyper *h) {
    const rt_config *c = h->c;
    RT_FAIL_IF(!c->data || !c->arch, RT_E_USAGE, "--hyper needs --data SPEC and --arch SPEC");
    RT_FAIL_IF(c->hyper_runs < c->members, RT_E_USAGE,
               "--hyper-runs: %lld candidates cannot give %lld different members", (long long)c->hyper_runs,
               (long long)c->members);
    RT_TRY(rt_pool_create(&h->pool, c->threads > 0 ? (int)c->threads : rt_cpu_count()));
    RT_TRY(rt_dataset_open(&h->data, c->data, rt_config_data(c)));
    RT_TRY(rt_dataset_need_labels(h->data, "training"));
    rt_config_name_splits(&h->config, h->data);
    RT_TRY(rt_split_rows(c, h->data, &h->train, &h->valid));
    RT_TRY(rt_dataset_fit(h->data, &h->train));
    RT_TRY(rt_train_tell_parts(h->hooks, c->epochs, h->data, &h->train, &h->valid));
    RT_FAIL_IF(h->valid.n < 1, RT_E_USAGE,
               "--hyper chooses members by validation: --valid must leave some rows for it");
    h->n = (int)c->hyper_runs;
    RT_TRY(rt_calloc(&h->candidates, (size_t)h->n, sizeof *h->candidates));
    for (int i = 0; i < h->n; i++)
        rt_str_init(&h->candidates[i].group_decay);
    RT_TRY(rt_calloc(&h->nlls, (size_t)h->n * (size_t)h->valid.n, sizeof *h->nlls));
    return draw_all(h);
}

static rt_status hyper_files(hyper *h) {
    rt_str text;
    char *path = NULL;
    bool begun;
    rt_status st = RT_OK;
    rt_str_init(&text);
    RT_TRY_GOTO(rt_run_dir_open(&h->dir, h->c->out, h->c->resume, h->c->force));
    RT_TRY_GOTO(rt_run_dir_file(&h->dir, "config.yaml", &path));
    RT_TRY_GOTO(rt_run_find_file(path, &begun));
    if (!h->c->resume || !begun) {
        RT_TRY_GOTO(rt_run_dir_clear(&h->dir));
        rt_config_write(h->c, RT_VERB_TRAIN, &text);
        RT_TRY_GOTO(rt_run_dir_write(&h->dir, "config.yaml", &text));
    }
done:
    rt_free(path);
    rt_str_deinit(&text);
    return st;
}

static rt_status hyper_train(hyper *h) {
    rt_part rows = {.n = 0};
    int *list, chosen = 0;
    rt_status st;
    RT_TRY(rt_calloc(&list, (size_t)h->n, sizeof *list));
    for (int i = 0; i < h->n; i++)
        list[i] = i;
    RT_TRY_GOTO(train_all(h, "search", "candidate", list, h->n, false));
    RT_TRY_GOTO(rt_subset_copy(&rows, &h->valid, rt_dataset_row(h->data)));
    for (int i = 0; i < h->n; i++)
        RT_TRY_GOTO(measure_one(h, i, &rows));
    RT_TRY_GOTO(choose(h));
    for (int i = 0; i < h->n; i++)
        if (h->candidates[i].count > 0)
            list[chosen++] = i;
    RT_TRY_GOTO(train_all(h, "retrain", "retraining on all rows: member", list, chosen, true));
done:
    rt_free(list);
    rt_part_free_copy(&rows);
    return st;
}

rt_status rt_hyper_run(const rt_config *c, const rt_train_hooks *hooks, rt_train_result *out) {
    hyper h = {.config = *c, .hooks = hooks};
    h.c = &h.config;
    rt_config_mark_new(&h.config); /* candidates have begun or have not, whatever the search has */
    rt_status st;
    RT_TRY_GOTO(hyper_open(&h));
    RT_TRY_GOTO(hyper_files(&h));
    RT_TRY_GOTO(hyper_train(&h));
    RT_TRY_GOTO(write_hyper(&h));
    RT_TRY_GOTO(assemble(&h));
    *out = (rt_train_result){
        .members = h.nchoice,
        .epochs = c->epochs,
        .steps = (int64_t)h.steps,
        .parameters = h.parameters,
        .seconds = h.seconds,
        .samples_per_s = h.seconds > 0 ? h.steps * (double)RT_MIN(c->batch, h.train.n) / h.seconds : 0,
        .train_loss = h.train_loss,
        .valid_loss = h.nll[h.nchoice - 1],
        .valid_accuracy = NAN,
        .keep = "last"};
    RT_TRY_GOTO(
        rt_train_write_result(&h.dir, out, "unique_members", h.unique, "members are chosen by likelihood"));
done:
    for (int i = 0; h.candidates && i < h.n; i++)
        rt_str_deinit(&h.candidates[i].group_decay);
    rt_free(h.candidates);
    rt_free(h.nlls);
    rt_subset_deinit(&h.train);
    rt_subset_deinit(&h.valid);
    rt_dataset_destroy(&h.data);
    rt_pool_destroy(&h.pool);
    rt_run_dir_close(&h.dir);
    return st;
}
