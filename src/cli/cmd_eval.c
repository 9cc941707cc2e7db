/*
 * cmd_eval.c - retort eval: flags of an assessment, its tables, JSON and requirements.
 *
 * All runs are measured before anything is stored or printed: one that fails leaves the others as they were.
 * Requirements are checked last, so that a failed one still has its table above it. A result that could not be
 * stored is printed, too, and then the command fails.
 */
#include "assess/assess.h"
#include "base/alloc.h"
#include "base/file.h"
#include "cli/cli.h"
#include <stdio.h>
#include <string.h>

enum { REQUIREMENTS_MAX = 64 };

typedef struct eval_call {
    rt_cli *c;
    rt_assessment **run;
    int n;
    rt_requirement require[REQUIREMENTS_MAX];
    int nrequire;
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

static rt_status parse_requirements(eval_call *e) {
    for (const char *s = e->c->config.require; s;) {
        const size_t n = strcspn(s, "\n");
        char text[256];
        RT_FAIL_IF(n >= sizeof text, RT_E_USAGE, "--require: longer than %d characters",
                   (int)sizeof text - 1);
        RT_FAIL_IF(e->nrequire >= REQUIREMENTS_MAX, RT_E_USAGE, "--require: more than %d", REQUIREMENTS_MAX);
        memcpy(text, s, n);
        text[n] = 0;
        RT_TRY(rt_requirement_parse(&e->require[e->nrequire++], text));
        s = s[n] ? s + n + 1 : NULL;
    }
    return RT_OK;
}

/* ---- results ---- */

static rt_status tables(const eval_call *e, rt_table_format format, bool terminal, rt_str *out) {
    const bool colour = terminal && e->c->term.colour_out;
    rt_table_options o = {.format = format,
                          .per_class = e->c->config.per_class,
                          .metrics = e->c->config.metrics,
                          .width = terminal ? RT_MAX(cli_term_width(), 100) : 0};
    if (colour) {
        o.head_on = cli_style_on(true, CLI_BOLD);
        o.best_on = cli_style_on(true, CLI_GREEN);
        o.head_off = o.best_off = cli_style_off(true);
    }
    return rt_assess_tables(e->run, e->n, &o, out);
}

/* --out FILE: the format is that of its name. */
static rt_status find_file_format(const char *path, rt_table_format *format, bool *json) {
    static const struct {
        const char *end;
        rt_table_format format;
    } ends[] = {{".csv", RT_TABLE_CSV},
                {".md", RT_TABLE_MARKDOWN},
                {".tex", RT_TABLE_LATEX},
                {".txt", RT_TABLE_TEXT}};
    *json = rt_str_ends(path, ".json");
    for (int i = 0; i < RT_COUNT(ends); i++) {
        if (rt_str_ends(path, ends[i].end)) {
            *format = ends[i].format;
            return RT_OK;
        }
    }
    RT_FAIL_IF(!*json, RT_E_USAGE, "--out %s: the name must end in .csv, .md, .tex, .txt or .json", path);
    return RT_OK;
}

static rt_status write_file(const eval_call *e, const char *path) {
    rt_table_format format = RT_TABLE_TEXT;
    bool json;
    rt_str *out = &e->c->out;
    rt_json j;
    RT_TRY(find_file_format(path, &format, &json));
    if (json) {
        cli_json_begin(e->c, &j);
        rt_assess_write(e->run, e->n, e->c->config.data, &j);
        rt_json_object_end(&j);
        rt_str_append_char(out, '\n');
    } else {
        RT_TRY(tables(e, format, false, out));
    }
    rt_status st = rt_file_write_text(path, out);
    rt_str_clear(out);
    return st;
}

static rt_status print(const eval_call *e) {
    if (e->c->config.json) {
        rt_json j;
        cli_json_begin(e->c, &j);
        rt_assess_write(e->run, e->n, e->c->config.data, &j);
        return cli_json_end(e->c, &j);
    }
    RT_TRY(tables(e, e->format, e->format == RT_TABLE_TEXT, &e->c->out));
    return cli_print(&e->c->out);
}

/* Tries all runs, even if saving one fails: evaluating them took long. The first failure is the command's. */
static rt_status save(const eval_call *e) {
    rt_error first = {.code = RT_OK};
    const char *run = NULL;
    int lost = 0;
    for (int i = 0; i < e->n; i++) {
        if (rt_assessment_save(e->run[i]) == RT_OK)
            continue;
        if (lost++ == 0) {
            rt_error_save(&first);
            run = rt_assessment_info(e->run[i])->run;
        }
    }
    if (lost == 0)
        return RT_OK;
    rt_error_restore(&first);
    const rt_status code = first.code == RT_E_INPUT ? RT_E_FAILED : first.code;
    if (lost > 1)
        return rt_error_prefix(
            code, "the evaluation of %.200s, and of %d more, is not stored (--no-save: not wanted)", run,
            lost - 1);
    return rt_error_prefix(code, "the evaluation of %.200s is not stored (--no-save: not wanted)", run);
}

static rt_status check_requirements(const eval_call *e) {
    rt_str failures;
    int failed = 0;
    rt_status st = RT_OK;
    rt_str_init(&failures);
    for (int r = 0; r < e->nrequire && st == RT_OK; r++)
        for (int i = 0; i < e->n && st == RT_OK; i++)
            st = rt_requirement_check(&e->require[r], e->run[i], &failures, &failed);
    if (st == RT_OK && failed > 0)
        st = rt_error_set(RT_E_GATE, __FILE__, __LINE__, "not met: %s", rt_str_text(&failures));
    rt_str_deinit(&failures);
    return st;
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
    rt_table_format ignored;
    bool json;
    rt_status st;
    RT_TRY_GOTO(cli_require(c, "data", c->config.data));
    RT_TRY_GOTO(find_format(c->config.format, &e.format));
    RT_TRY_GOTO(parse_requirements(&e));
    RT_TRY_GOTO(rt_metrics_check(c->config.metrics));
    if (c->config.out)
        RT_TRY_GOTO(find_file_format(c->config.out, &ignored, &json));
    if (c->config.out)
        RT_TRY_GOTO(rt_file_may_write(c->config.out));
    RT_TRY_GOTO(rt_calloc(&e.run, (size_t)e.n, sizeof(void *)));
    RT_TRY_GOTO(cli_pool_create(c, &pool));
    st = assess(&e, pool);
    cli_term_close(&c->term);
    if (st == RT_E_INTERRUPTED)
        RT_FAIL_GOTO(st, "interrupted; nothing was saved, the same command starts anew");
    if (st != RT_OK)
        goto done;
    rt_error lost = {.code = RT_OK};
    if (c->config.save && save(&e) != RT_OK)
        rt_error_save(&lost);
    if (c->config.out)
        RT_TRY_GOTO(write_file(&e, c->config.out));
    RT_TRY_GOTO(print(&e));
    if (lost.code != RT_OK)
        rt_error_restore(&lost);
    st = lost.code != RT_OK ? lost.code : check_requirements(&e);
done:
    for (int i = 0; e.run && i < e.n; i++)
        rt_assessment_destroy(&e.run[i]);
    rt_free(e.run);
    rt_pool_destroy(&pool);
    return st;
}
