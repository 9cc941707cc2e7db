/*
 * report_commands.c - how the numbers came about: the command of the evaluation, the configuration of the run, and a
 * command that repeats it; and the command that evaluates what was not evaluated yet.
 */
#include "report/report_int.h"
#include <string.h>

static bool is_evaluated(const rt_report_run *r) {
    return rt_report_find(r->root, "evaluation") != NULL;
}

static const char *data_of(const rt_report_run *r) {
    return r->data && !rt_str_holds_nothing_out(r->data) ? r->data : "SPEC";
}

/* One command for the runs of one data set: the first that is missing says which. */
rt_status rt_report_hint(const rt_report *p, rt_str *out) {
    const char *data = NULL;
    for (int i = 0; i < p->n; i++) {
        const rt_report_run *r = &p->runs[i];
        if (is_evaluated(r) || (data && strcmp(data, data_of(r)) != 0))
            continue;
        if (!data)
            rt_str_append(out, "retort eval");
        data = data_of(r);
        rt_str_append_char(out, ' ');
        rt_str_append_shell(out, r->path);
    }
    if (data) {
        rt_str_append(out, " --data ");
        rt_str_append_shell(out, data);
    }
    return rt_str_status(out);
}

static void put_command(const char *label, const char *command, rt_str *out) {
    rt_str_append(out, "<p class=\"label\">");
    rt_str_append(out, label);
    rt_str_append(out, "</p><pre>");
    rt_report_escape(out, command);
    rt_str_append(out, "</pre>");
}

static void put_repeat(const rt_report_run *r, rt_str *out) {
    rt_str words, config;
    rt_str_init(&words);
    rt_str_init(&config);
    rt_str_appendf(&config, "%s/config.yaml", r->path);
    rt_str_appendf(&words, "retort %s --config ", r->teacher ? "distill" : "train");
    rt_str_append_shell(&words, rt_str_text(&config));
    rt_str_append(&words, " --out ");
    rt_str_clear(&config);
    rt_str_appendf(&config, "%s-again", r->path);
    rt_str_append_shell(&words, rt_str_text(&config));
    put_command("the same training again", rt_str_text(&words), out);
    rt_str_fail(out, config.st);
    rt_str_fail(out, words.st);
    rt_str_deinit(&words);
    rt_str_deinit(&config);
}

static void put_facts(const rt_report_run *r, rt_str *out) {
    const char *data = rt_report_text(r->root, "evaluation/data"),
               *hash = rt_report_text(r->root, "evaluation/data_hash");
    rt_str_append(out, "<p class=\"label\">");
    rt_report_escape(out, r->path);
    if (r->log.started[0]) {
        rt_str_append(out, "; started ");
        rt_report_escape(out, r->log.started);
    }
    if (r->log.ended[0]) {
        rt_str_append(out, r->log.finished ? ", finished " : ", last heard of ");
        rt_report_escape(out, r->log.ended);
    }
    if (data) {
        rt_str_append(out, "; evaluated on ");
        rt_report_escape(out, data);
    }
    if (hash) {
        rt_str_append(out, ", fingerprint ");
        rt_report_escape(out, hash);
    }
    rt_str_append(out, "</p>");
}

rt_status rt_report_body_commands(rt_report *p, rt_str *out) {
    for (int i = 0; i < p->n; i++) {
        const rt_report_run *r = &p->runs[i];
        const char *command = rt_report_text(r->root, "evaluation/command");
        rt_str_append(out, "<details><summary>");
        rt_report_run_tag(p, i, out);
        rt_str_append(out, "</summary>");
        put_facts(r, out);
        if (command)
            put_command("evaluation", command, out);
        if (r->config && !rt_report_find(r->root, "average"))
            put_repeat(r, out);
        if (r->config)
            put_command("config.yaml", r->config, out);
        rt_str_append(out, "</details>\n");
    }
    return rt_str_status(out);
}
