/*
 * cmd_eval.c - retort eval: flags of an assessment, its tables, JSON and requirements.
 *
 * All runs are measured before anything is stored or printed: one that fails leaves the others as they were.
 * Requirements are checked last, so that a failed one still has its table above it. A result that could not be
 * stored is printed, too, and then the command fails.
 */
#include "assess/assess.h"
#include "base/alloc.h"
#include "cli/cli.h"
#include <stdio.h>

typedef struct eval_call {
    rt_cli *c;
    rt_assessment **run;
    int n;
    rt_requirements require;
    rt_table_format format; /* of what is printed */
    cli_progress progress;
} eval_call;

static void show(void *user, const rt_assess_progress *p) {
    eval_call *e = user;
    char what[192];
    if (p->runs > 1)
        snprintf(what, sizeof what, "run %d/%d %.100s: %s", p->run + 1, p->runs, p->name, p->what);
    else
        snprintf(what, sizeof what, "%.120s: %s", p->name, p->what);
    cli_clean(what);
    cli_show_work(&e->progress, what, p->done, p->seconds_left);
}

/* ---- results ---- */

static rt_status print_tables(const eval_call *e) {
    const bool text = e->format == RT_TABLE_TEXT, colour = text && e->c->term.colour_out;
    rt_table_options o = {.format = e->format,
                          .per_class = e->c->config.per_class,
                          .metrics = e->c->config.metrics,
                          .width = text ? RT_MAX(cli_term_width(), 100) : 0};
    if (colour) {
        o.head_on = cli_style_on(true, CLI_BOLD);
        o.best_on = cli_style_on(true, CLI_GREEN);
        o.head_off = o.best_off = cli_style_off(true);
    }
    RT_TRY(rt_assess_tables(e->run, e->n, &o, &e->c->out));
    return cli_print(&e->c->out);
}

static rt_status print(const eval_call *e) {
    rt_json j;
    if (!e->c->config.json)
        return print_tables(e);
    cli_json_begin(e->c, &j);
    rt_assess_write(e->run, e->n, e->c->config.data, &j);
    return cli_json_end(e->c, &j);
}

/* ---- the verb ---- */

static rt_status find_format(const char *name, rt_table_format *out) {
    static const char *const names[] = {"table", "csv", "markdown", "latex"};
    static const rt_table_format formats[] = {RT_TABLE_TEXT, RT_TABLE_CSV, RT_TABLE_MARKDOWN, RT_TABLE_LATEX};
    const int64_t i = name ? rt_str_find(name, names, RT_COUNT(names)) : 0;
    if (i < 0)
        RT_FAIL_UNKNOWN(RT_E_USAGE, name, names, RT_COUNT(names), "--format: unknown");
    *out = formats[i];
    return RT_OK;
}

static rt_status assess(eval_call *e, rt_pool *pool) {
    const rt_config *c = &e->c->config;
    rt_str command;
    rt_str_init(&command);
    rt_str_append(&command, "retort");
    for (int i = 0; i < e->c->argc; i++)
        cli_append_quoted(&command, e->c->argv[i]);
    rt_status st = rt_str_status(&command);
    if (st == RT_OK) {
        rt_assess_options o = rt_assess_options_of(c);
        o.command = rt_str_text(&command);
        o.stop = cli_stop();
        o.progress = show;
        o.user = e;
        st = rt_assess_run(&o, e->c->args, e->n, pool, e->run);
    }
    rt_str_deinit(&command);
    return st;
}

rt_status cli_cmd_eval(rt_cli *c) {
    eval_call e = {.c = c, .n = c->nargs, .progress = {.term = &c->term}};
    rt_pool *pool = NULL;
    rt_status st;
    RT_TRY_GOTO(cli_require(c, "data", c->config.data));
    RT_TRY_GOTO(find_format(c->config.format, &e.format));
    RT_TRY_GOTO(rt_requirements_parse(&e.require, c->config.require));
    RT_TRY_GOTO(rt_metrics_check(c->config.metrics));
    RT_TRY_GOTO(rt_assess_file_check(c->config.out));
    RT_TRY_GOTO(rt_calloc(&e.run, (size_t)e.n, sizeof(void *)));
    RT_TRY_GOTO(cli_pool_create(c, &pool));
    st = assess(&e, pool);
    cli_term_close(&c->term);
    if (st == RT_E_INTERRUPTED)
        RT_FAIL_GOTO(st, "interrupted; nothing was saved, the same command starts anew");
    if (st != RT_OK)
        goto done;
    rt_error lost = {.code = RT_OK};
    if (c->config.save && rt_assess_save(e.run, e.n) != RT_OK)
        rt_error_save(&lost);
    if (c->config.out)
        RT_TRY_GOTO(rt_assess_file_write(c->config.out, e.run, e.n, &c->config));
    RT_TRY_GOTO(print(&e));
    if (lost.code != RT_OK)
        rt_error_restore(&lost);
    st = lost.code != RT_OK ? lost.code : rt_requirements_check(&e.require, e.run, e.n);
done:
    for (int i = 0; e.run && i < e.n; i++)
        rt_assessment_destroy(&e.run[i]);
    rt_free(e.run);
    rt_pool_destroy(&pool);
    return st;
}
