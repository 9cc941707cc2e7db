/*
 * cmd_recipe.c - retort recipe: lists, shows and runs whole experiments, and collects their tables.
 *
 * A command of a recipe is run as if it had been typed, in this process: the same flags, the same checks. Its
 * results on standard output are held back, its progress is not. What a killed run left is continued with
 * --resume; a run whose recipe changed is replaced.
 *
 * On several ranks, commands that do not need each other go on at the same time, each on ranks of its own; the first of
 * these writes its run and its mark in done/, rank 0 of all the results.
 */
#include "assess/assess.h"
#include "base/alloc.h"
#include "base/file.h"
#include "base/timer.h"
#include "cli/cli.h"
#include "data/data.h"
#include "dist/dist.h"
#include "kern/kern.h"
#include "model/run.h"
#include "recipe/recipe.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

static rt_status open_recipe(rt_cli *c, rt_recipe **out) {
    RT_FAIL_IF(c->nargs < 2, RT_E_USAGE,
               "recipe %s needs the NAME of a recipe; 'retort recipe list' shows them", c->args[0]);
    return rt_recipe_open(
        out, c->args[1],
        (rt_recipe_options){.scale = c->config.scale, .data_dir = c->config.data_dir, .out = c->config.out});
}

/* ---- list, show ---- */

static rt_status list(rt_cli *c) {
    int n;
    const rt_embedded *files = rt_embedded_recipes(&n);
    cli_table t;
    rt_json j;
    rt_status st = RT_OK;
    cli_table_init(&t, "lll", "recipe|scales|what");
    if (c->config.json) {
        cli_json_begin(c, &j);
        rt_json_array_begin(&j, "recipes");
    }
    for (int i = 0; i < n; i++) {
        rt_recipe *r = NULL;
        char name[64], scales[128] = "";
        snprintf(name, sizeof name, "%.*s", (int)strcspn(files[i].name, "."), files[i].name);
        RT_TRY_GOTO(rt_recipe_open(&r, name, (rt_recipe_options){.out = c->config.out}));
        for (int k = 0, at = 0; k < rt_recipe_scales(r) && at < (int)sizeof scales; k++)
            at += snprintf(scales + at, sizeof scales - (size_t)at, "%s%s", k ? ", " : "",
                           rt_recipe_scale_name(r, k));
        if (c->config.json) {
            rt_json_object_begin(&j, NULL);
            rt_json_str(&j, "name", name);
            rt_json_str(&j, "title", rt_recipe_text(r, "title"));
            rt_json_str(&j, "source", rt_recipe_text(r, "source"));
            rt_json_str(&j, "scales", scales);
            rt_json_object_end(&j);
        } else {
            cli_table_cell(&t, "%s", name);
            cli_table_cell(&t, "%s", scales);
            cli_table_cell(&t, "%s", rt_recipe_text(r, "title"));
        }
        rt_recipe_destroy(&r);
    }
    if (c->config.json) {
        rt_json_array_end(&j);
        st = cli_json_end(c, &j);
    } else {
        cli_table_print(&t, &c->out, c->term.colour_out);
        st = cli_print(&c->out);
    }
done:
    cli_table_deinit(&t);
    return st;
}

static void append_command(rt_str *out, const rt_recipe_job *job) {
    rt_str_append(out, "retort");
    for (int i = 0; i < job->argc; i++)
        cli_append_quoted(out, job->argv[i]);
}

static void count(const rt_recipe *r, int *done, int *again) {
    *done = *again = 0;
    for (int i = 0; i < rt_recipe_jobs(r); i++) {
        const rt_recipe_job *job = rt_recipe_job_get(r, i);
        *done += job->done;
        *again += job->done && job->wanted;
    }
}

static const char *scale_of(const rt_recipe *r) {
    return strrchr(rt_recipe_dir(r), '/') + 1;
}

/* What it will take: said before anything is started. */
static void append_needs(rt_str *out, const rt_recipe *r) {
    int done, again;
    count(r, &done, &again);
    rt_str_appendf(out, "scale %s: %d commands, %d finished", scale_of(r), rt_recipe_jobs(r), done);
    if (again > 0)
        rt_str_appendf(out, " (%d of them are run again, because others need their runs)", again);
    rt_str_appendf(out, "; about %s min, %s of memory, %s on disk (on two cores with AVX2)",
                   rt_recipe_text(r, "scale.minutes"), rt_recipe_text(r, "scale.memory"),
                   rt_recipe_text(r, "scale.disk"));
}

static void show_json(rt_json *j, const rt_recipe *r) {
    static const char *const texts[][2] = {{"title", "title"},           {"source", "source"},
                                           {"about", "about"},           {"scale_about", "scale.about"},
                                           {"minutes", "scale.minutes"}, {"memory", "scale.memory"},
                                           {"disk", "scale.disk"}};
    for (int i = 0; i < RT_COUNT(texts); i++)
        rt_json_str(j, texts[i][0], rt_recipe_text(r, texts[i][1]));
    rt_json_str(j, "scale", scale_of(r));
    rt_json_str(j, "dir", rt_recipe_dir(r));
    rt_json_array_begin(j, "commands");
    for (int i = 0; i < rt_recipe_jobs(r); i++) {
        const rt_recipe_job *job = rt_recipe_job_get(r, i);
        rt_json_object_begin(j, NULL);
        rt_json_str(j, "name", job->name);
        rt_json_str(j, "stage", job->stage);
        rt_json_bool(j, "finished", job->done);
        rt_json_bool(j, "wanted", job->wanted);
        rt_json_f64(j, "weight", job->weight);
        rt_json_strs(j, "words", job->argv, job->argc);
        rt_json_object_end(j);
    }
    rt_json_array_end(j);
}

static void show_text(rt_str *out, const rt_recipe *r) {
    rt_str_appendf(out, "%s\n%s\n\n%s\n\n", rt_recipe_text(r, "title"), rt_recipe_text(r, "source"),
                   rt_recipe_text(r, "about"));
    append_needs(out, r);
    rt_str_appendf(out, "\n%s\n\n", rt_recipe_text(r, "scale.about"));
    for (int i = 0; i < rt_recipe_jobs(r); i++) {
        const rt_recipe_job *job = rt_recipe_job_get(r, i);
        if (job->done)
            rt_str_append(out, job->wanted ? "# finished, but its run is not here and is needed\n"
                                           : "# finished\n");
        append_command(out, job);
        rt_str_append_char(out, '\n');
    }
}

static rt_status show(rt_cli *c) {
    rt_recipe *r;
    rt_json j;
    rt_status st;
    RT_TRY(open_recipe(c, &r));
    if (c->config.json) {
        cli_json_begin(c, &j);
        show_json(&j, r);
        st = cli_json_end(c, &j);
    } else {
        show_text(&c->out, r);
        st = cli_print(&c->out);
    }
    rt_recipe_destroy(&r);
    return st;
}

/* ---- run ---- */

typedef struct runner {
    rt_cli *cli;
    const rt_recipe *recipe;
} runner;

static void show_place(void *user, int at, double seconds, double left) {
    const runner *w = user;
    char spent[32], rest[32];
    if (w->cli->term.progress == CLI_PROGRESS_NONE)
        return;
    cli_say(&w->cli->term, "[%d/%d] %s  (%s so far, %s left)", at + 1, rt_recipe_jobs(w->recipe),
            rt_recipe_job_get(w->recipe, at)->name, cli_duration(spent, seconds),
            isfinite(left) ? cli_duration(rest, left) : "unknown");
}

/* A run that was begun under this key goes on; anything else in its place is replaced. */
static rt_status how_to_start(const rt_recipe_job *job, bool resume, const char **word) {
    rt_run_state state;
    *word = NULL;
    if (!job->dir)
        return RT_OK;
    RT_TRY(rt_run_dir_state(job->dir, &state));
    const bool resumes = strcmp(job->verb, "train") == 0 || strcmp(job->verb, "distill") == 0;
    if (state != RT_RUN_NONE)
        *word = resume && resumes ? "--resume" : "--force";
    return RT_OK;
}

/* A command as the program reads it. */
typedef struct command {
    rt_cli cli;
    char **words, threads[32];
} command;

/* start: --resume, --force or NULL. end_command follows, whatever comes of it. */
static rt_status begin_command(command *c, const runner *w, const rt_recipe_job *job, const char *start) {
    bool help;
    int n = 0;
    *c = (command){.cli = {.started = rt_time_now(), .verb = cli_verb_find(job->verb)}};
    RT_FAIL_IF(!c->cli.verb, RT_E_INPUT, "no verb '%s'", job->verb);
    RT_TRY(rt_config_init(&c->cli.config));
    RT_TRY(rt_calloc(&c->words, (size_t)job->argc + 4, sizeof *c->words));
    for (; n < job->argc; n++)
        c->words[n] = (char *)job->argv[n];
    snprintf(c->threads, sizeof c->threads, "--threads=%lld", (long long)w->cli->config.threads);
    c->words[n++] = c->threads;
    c->words[n++] = "--quiet";
    if (start)
        c->words[n++] = (char *)start;
    return cli_parse(&c->cli, n, c->words, &help);
}

static void end_command(command *c) {
    rt_free(c->words);
    rt_free(c->cli.args);
    rt_str_deinit(&c->cli.out);
    rt_config_deinit(&c->cli.config);
}

/* Commands that make no run and measure none, such as `predict`, may write files that others read. */
static bool makes_files(const rt_recipe *r) {
    for (int i = 0; i < rt_recipe_jobs(r); i++)
        if (!rt_recipe_job_get(r, i)->dir && strcmp(rt_recipe_job_get(r, i)->verb, "eval") != 0)
            return true;
    return false;
}

static rt_status check_job(void *user, const rt_recipe_job *job) {
    const runner *w = user;
    command c;
    const rt_config *o = &c.cli.config;
    rt_status st = begin_command(&c, w, job, NULL);
    const bool there = !makes_files(w->recipe);
    if (st == RT_OK && there && o->data)
        st = rt_source_there(o->data);
    if (st == RT_OK && there && o->aux)
        st = rt_source_there(o->aux);
    if (st == RT_OK && there && o->ood)
        st = rt_foreigns_there(o->ood);
    end_command(&c);
    return st == RT_OK ? st : rt_error_prefix(st, "%s", job->name);
}

static rt_status run_job(void *user, const rt_recipe_job *job, bool resume) {
    runner *w = user;
    command c;
    const char *start;
    int as_first = resume; /* others may have seen the mark that rank 0 has just made */
    RT_TRY(rt_dist_lead(RT_OK, &as_first));
    RT_TRY(how_to_start(job, as_first != 0, &start));
    rt_status st;
    RT_TRY_GOTO(begin_command(&c, w, job, start));
    cli_term_init(&c.cli.term, &c.cli.config);
    c.cli.term.progress = w->cli->term.progress;
    cli_mute(true);
    RT_TRY_GOTO(rt_dist_barrier(rt_dist_all())); /* no rank still reads what is there */
    st = c.cli.verb->run(&c.cli);
    if (st == RT_OK)
        st = rt_dist_barrier(rt_dist_all()); /* what was written can be read */
    cli_mute(false);
    cli_term_close(&c.cli.term);
done:
    cli_term_init(&w->cli->term, &w->cli->config); /* messages of the library come here again */
    end_command(&c);
    return st == RT_OK || st == RT_E_INTERRUPTED ? st : rt_error_prefix(st, "%s", job->name);
}

static rt_status print_results(rt_cli *c, const rt_recipe *r) {
    rt_str json, out;
    rt_str_init(&json);
    rt_str_init(&out);
    rt_status st = rt_recipe_results(r, &json, &out);
    if (st == RT_OK)
        st = cli_print(c->config.json ? &json : &out);
    rt_str_deinit(&json);
    rt_str_deinit(&out);
    return st;
}

static rt_status say_needs(rt_cli *c, const rt_recipe *r) {
    rt_str out;
    rt_str_init(&out);
    append_needs(&out, r);
    rt_status st = rt_str_status(&out);
    if (st == RT_OK)
        cli_say(&c->term, "%s: %s", c->args[1], rt_str_text(&out));
    rt_str_deinit(&out);
    return st;
}

static rt_status run(rt_cli *c) {
    rt_recipe *r;
    RT_TRY(open_recipe(c, &r));
    runner w = {.cli = c, .recipe = r};
    rt_dist_let_idle(true); /* students are often smaller than their teachers are many */
    char cpu[RT_CPU_NAME];
    rt_cpu_name(cpu, sizeof cpu);
    rt_recipe_hooks hooks = {.check = check_job,
                             .run = run_job,
                             .spread = rt_dist_spread,
                             .at_once = rt_dist_size(),
                             .progress = show_place,
                             .user = &w,
                             .stop = cli_stop(),
                             .cpu = cpu};
    int done, again;
    count(r, &done, &again);
    const bool all = done == rt_recipe_jobs(r) && again == 0;
    rt_status st = say_needs(c, r);
    if (st == RT_OK)
        st = rt_run_check_shared(rt_recipe_dir(r)); /* also: all have seen what is finished before more is */
    if (st == RT_OK)
        st = rt_recipe_run(r, &hooks);
    if (st == RT_E_INTERRUPTED)
        st = rt_error_set(RT_E_INTERRUPTED, __FILE__, __LINE__,
                          "interrupted; the same command continues where it was");
    if (st == RT_OK)
        st = print_results(c, r);
    if (st == RT_OK)
        cli_say(&c->term,
                all ? "nothing was left to run: these are the results in %s; another --out runs it anew"
                    : "results in %s",
                rt_recipe_dir(r));
    rt_recipe_destroy(&r);
    return st;
}

/* The tables of what is finished, without running anything. */
static rt_status tables(rt_cli *c) {
    rt_recipe *r;
    int done, again;
    RT_TRY(open_recipe(c, &r));
    count(r, &done, &again);
    if (done < rt_recipe_jobs(r))
        cli_say(&c->term, "%d of %d commands are finished in %s; 'retort recipe run' does the rest", done,
                rt_recipe_jobs(r), rt_recipe_dir(r));
    rt_status st = print_results(c, r);
    rt_recipe_destroy(&r);
    return st;
}

/* One page of all recipes and scales that were run. */
static rt_status page(rt_cli *c) {
    rt_recipe *list[64];
    int n, found = 0;
    const rt_embedded *files = rt_embedded_recipes(&n);
    rt_str out;
    rt_status st = RT_OK;
    rt_str_init(&out);
    for (int i = 0; i < n; i++) {
        char name[64], scale[64];
        int scales = 1;
        snprintf(name, sizeof name, "%.*s", (int)strcspn(files[i].name, "."), files[i].name);
        for (int k = 0; k < scales && found < RT_COUNT(list); k++) {
            RT_TRY_GOTO(rt_recipe_open(&list[found], name,
                                       (rt_recipe_options){.scale = k ? scale : NULL, .out = c->config.out}));
            scales = rt_recipe_scales(list[found]);
            if (k + 1 < scales)
                snprintf(scale, sizeof scale, "%s", rt_recipe_scale_name(list[found], k + 1));
            if (rt_recipe_has_results(list[found]))
                found++;
            else
                rt_recipe_destroy(&list[found]);
        }
    }
    RT_TRY_GOTO(rt_recipe_page(list, found, &out));
    st = cli_print(&out);
done:
    while (found > 0)
        rt_recipe_destroy(&list[--found]);
    rt_str_deinit(&out);
    return st;
}

rt_status cli_cmd_recipe(rt_cli *c) {
    static const struct {
        const char *name;
        rt_status (*run)(rt_cli *c);
    } actions[] = {{"list", list}, {"show", show}, {"run", run}, {"tables", tables}, {"page", page}};
    const char *names[RT_COUNT(actions)];
    for (int64_t i = 0; i < RT_COUNT(actions); i++) {
        names[i] = actions[i].name;
        if (strcmp(c->args[0], names[i]) == 0)
            return actions[i].run(c);
    }
    RT_FAIL_UNKNOWN(RT_E_USAGE, c->args[0], names, RT_COUNT(names), "recipe: unknown action");
}
