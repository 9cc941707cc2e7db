/*
 * cmd_train.c - retort train, and what it shares with distill: the library does the work; this file shows how
 * it goes, sums up, and says how to go on after an interruption. With --resume the parameters of the run are
 * read from its own directory, so that `retort train --out DIR --resume` is enough.
 */
#include "base/alloc.h"
#include "base/file.h"
#include "cli/cli.h"
#include "model/run.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

rt_status cli_load_saved(rt_cli *c) {
    rt_config *k = &c->config;
    if (!k->resume || k->config || !k->out)
        return RT_OK;
    char *dir, *path = NULL;
    RT_TRY(rt_path_expand(&dir, k->out));
    rt_status st;
    RT_TRY_GOTO(rt_run_dir_begun(dir));
    RT_TRY_GOTO(rt_path_join(&path, dir, "config.yaml"));
    st = rt_config_load(k, c->verb->bit, path);
done:
    rt_free(path);
    rt_free(dir);
    return st;
}

/* As the lines of epochs have it. */
static void say_number(rt_cli *c, const char *name, double v) {
    if (isfinite(v))
        cli_say(&c->term, "  %-16s %.4f", name, v);
}

static void say_distilled(rt_cli *c, const rt_train_result *r) {
    const char *list = c->config.teacher ? c->config.teacher : c->config.data;
    rt_str from;
    rt_str_init(&from);
    for (const char *s = list; *s; s++)
        rt_str_append(&from, *s == '\n' ? ", " : (char[2]){*s, 0});
    cli_say(&c->term, "distilled %s into %d %s by %s", rt_str_text(&from), r->members,
            r->members == 1 ? "network" : "networks", c->config.method);
    rt_str_deinit(&from);
}

static void say_kept(rt_cli *c, const rt_train_result *r) {
    char epochs[64] = "";
    if (!r->keep || strcmp(r->keep, "last") == 0)
        return;
    if (r->kept_first > 0 && r->kept_last > r->kept_first)
        snprintf(epochs, sizeof epochs, ": %lld to %lld", (long long)r->kept_first, (long long)r->kept_last);
    else if (r->kept_first > 0)
        snprintf(epochs, sizeof epochs, ": %lld", (long long)r->kept_first);
    cli_say(&c->term, "  %-16s weights of the epoch of the best valid %s%s", "kept",
            strcmp(r->keep, "loss") == 0 ? "nll" : "accuracy", epochs);
}

static void say_next(rt_cli *c) {
    const bool none = rt_str_holds_nothing_out(c->config.data);
    rt_str next;
    rt_str_init(&next);
    rt_str_append(&next, "next: retort eval");
    cli_append_quoted(&next, c->config.out);
    cli_append_quoted(&next, "--data");
    cli_append_quoted(&next, none ? "SPEC" : c->config.data);
    cli_say(&c->term, "%s%s", rt_str_text(&next), none ? ", of rows that it was not trained on" : "");
    rt_str_deinit(&next);
}

static void say_summary(rt_cli *c, const rt_train_result *r, bool apart) {
    char steps[32], rate[32], params[32];
    if (c->verb->bit == RT_VERB_DISTILL)
        say_distilled(c, r);
    else
        cli_say(&c->term, "trained %d %s of %s on %s", r->members, r->members == 1 ? "network" : "networks",
                c->config.arch, c->config.data);
    cli_say(&c->term, "  %-16s %lld %s, %s steps in %.1f s, %s samples/s", "work", (long long)r->epochs,
            r->epochs == 1 ? "epoch" : "epochs", cli_count(steps, r->steps), r->seconds,
            cli_si(rate, r->samples_per_s));
    cli_say(&c->term, "  %-16s %s%s", "parameters", cli_count(params, r->parameters),
            r->members == 1 ? "" : " each");
    if (!apart || !isfinite(r->valid_loss))
        say_number(c, "loss", r->train_loss);
    say_number(c, "valid nll", r->valid_loss);
    say_number(c, "valid accuracy", r->valid_accuracy);
    say_kept(c, r);
    cli_say(&c->term, "  %-16s %s", "saved in", c->config.out);
    if (*r->doubt)
        cli_say(&c->term, "warning: %s", r->doubt);
    say_next(c);
}

static rt_status print_json(rt_cli *c, const rt_train_result *r) {
    rt_json j;
    cli_json_begin(c, &j);
    rt_train_result_write(r, c->config.out, &j);
    return cli_json_end(c, &j);
}

/* The message of the library, and the command that goes on if there is something to go on from. */
static rt_status say_how_to_continue(rt_cli *c) {
    char what[RT_ERROR_TEXT_MAX / 2];
    rt_run_state state;
    rt_str command;
    snprintf(what, sizeof what, "%s", rt_error_text());
    what[strcspn(what, ";")] = 0; /* what follows is said better below */
    RT_TRY(rt_run_dir_state(c->config.out, &state));
    RT_FAIL_IF(state != RT_RUN_UNFINISHED, RT_E_INTERRUPTED,
               "%s; the run has not begun, there is nothing to continue", what);
    rt_str_init(&command);
    cli_append_quoted(&command, c->config.out);
    rt_status st = rt_error_set(RT_E_INTERRUPTED, __FILE__, __LINE__,
                                "%s; state saved; continue with: retort %s --out %s --resume", what,
                                c->verb->name, rt_str_text(&command));
    rt_str_deinit(&command);
    return st;
}

/* Validation has the likelihood of labels, all alike. */
static bool has_other_loss(const rt_cli *c) {
    return (c->verb->bit == RT_VERB_DISTILL && strcmp(c->config.method, rt_method_plain()->name) != 0) ||
           c->config.label_smoothing > 0 || strcmp(c->config.class_weights, "none") != 0;
}

rt_status cli_train(rt_cli *c, cli_train_run run) {
    cli_progress progress = {.term = &c->term, .apart = has_other_loss(c)};
    rt_train_hooks hooks = {.progress = cli_show_progress, .user = &progress, .stop = cli_stop()};
    rt_train_result result;
    rt_status st = run(&c->config, &hooks, &result);
    cli_term_close(&c->term);
    if (st == RT_E_INTERRUPTED)
        return say_how_to_continue(c);
    RT_TRY(st);
    if (c->config.json)
        RT_TRY(print_json(c, &result));
    say_summary(c, &result, progress.apart);
    return RT_OK;
}

rt_status cli_cmd_train(rt_cli *c) {
    RT_TRY(cli_require(c, "out", c->config.out));
    RT_TRY(cli_load_saved(c));
    RT_TRY(cli_require(c, "data", c->config.data));
    RT_TRY(cli_require(c, "arch", c->config.arch));
    return cli_train(c, rt_train_run);
}
