/*
 * cmd_average.c - retort average: one network of several, by aligning and averaging their weights.
 */
#include "average/average.h"
#include "base/timer.h"
#include "cli/cli.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Work comes in stages; the time left is that of the stage. */
typedef struct show {
    cli_progress progress;
    char stage[48];
    double began;
} show;

static void progress(void *user, const char *what, double done) {
    show *s = user;
    const double now = rt_time_now();
    if (strcmp(s->stage, what) != 0) {
        snprintf(s->stage, sizeof s->stage, "%s", what);
        s->began = now;
        if (s->progress.term->progress == CLI_PROGRESS_PLAIN)
            cli_say(s->progress.term, "%s", what);
    }
    cli_show_work(&s->progress, what, done, done > 0 ? (now - s->began) * (1 - done) / done : NAN);
}

static void row(cli_table *t, const char *name, const rt_average_board *b, const rt_average_score *s) {
    cli_table_cell(t, "%s", name);
    for (int i = 0; i < 2; i++) {
        if (b[i].rows == 0)
            continue;
        if (isfinite(s[i].accuracy))
            cli_table_cell(t, "%.4f", s[i].accuracy);
        cli_table_cell(t, "%.4f", s[i].loss);
    }
}

static void print_table(const rt_average_result *r, rt_str *out, bool colour) {
    const rt_average_board b[2] = {r->valid, r->test};
    char align[8] = "l", models[48];
    cli_table t;
    rt_str heads;
    rt_str_init(&heads);
    rt_str_append(&heads, "network");
    for (int i = 0; i < 2; i++) {
        if (b[i].rows == 0)
            continue;
        if (!r->regression) {
            rt_str_appendf(&heads, "|%s acc", i ? "test" : "valid");
            strcat(align, "r");
        }
        rt_str_appendf(&heads, "|%s loss", i ? "test" : "valid");
        strcat(align, "r");
    }
    cli_table_init(&t, align, rt_str_text(&heads));
    snprintf(models, sizeof models, "%d models, mean", r->models);
    row(&t, models, b, (rt_average_score[]){b[0].mean, b[1].mean});
    row(&t, "  best of them", b, (rt_average_score[]){b[0].best, b[1].best});
    row(&t, "  their ensemble", b, (rt_average_score[]){b[0].ensemble, b[1].ensemble});
    snprintf(models, sizeof models, "average of %d%s", r->used,
             r->distilled ? " (permAVG + distillation)" : "");
    row(&t, models, b, (rt_average_score[]){b[0].average, b[1].average});
    cli_table_print(&t, out, colour);
    cli_table_deinit(&t);
    rt_str_deinit(&heads);
}

static rt_status print_result(rt_cli *c, const rt_average_result *r) {
    if (c->config.json) {
        rt_json j;
        cli_json_begin(c, &j);
        rt_average_result_write(r, c->config.out, &j);
        return cli_json_end(c, &j);
    }
    print_table(r, &c->out, c->term.colour_out);
    rt_status st = cli_print(&c->out);
    if (r->warning[0])
        cli_warn(&c->term, r->warning);
    cli_say(&c->term, "saved in %s", c->config.out);
    return st;
}

rt_status cli_cmd_average(rt_cli *c) {
    rt_pool *pool = NULL;
    rt_average_result r;
    show s = {.progress = {.term = &c->term}};
    rt_status st;
    RT_TRY(cli_require(c, "data", c->config.data));
    RT_TRY(cli_require(c, "out", c->config.out));
    RT_TRY(cli_pool_create(c, &pool));
    st = rt_average_run(&c->config, c->args, c->nargs, pool,
                        &(rt_average_hooks){.progress = progress, .user = &s, .stop = cli_stop()}, &r);
    cli_term_close(&c->term);
    rt_pool_destroy(&pool);
    if (st == RT_E_INTERRUPTED)
        RT_FAIL(st, "interrupted; no run was written, the same command starts anew");
    return st == RT_OK ? print_result(c, &r) : st;
}
