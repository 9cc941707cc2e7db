/*
 * cmd_export.c - retort export: a model for other runtimes.
 */
#include "cli/cli.h"
#include "export/export.h"
#include "model/model.h"

static rt_status print_json(rt_cli *c, const rt_export_result *r) {
    rt_json j;
    cli_json_begin(c, &j);
    rt_export_result_write(r, c->config.out, &j);
    return cli_json_end(c, &j);
}

static rt_status say(rt_cli *c, const rt_export_result *r) {
    char size[32];
    cli_say(&c->term, "%s: %s, opset %d; outputs %s", c->config.out, cli_bytes(size, (double)r->bytes),
            r->opset, rt_str_text(&r->outputs));
    cli_say(&c->term, "checked on %lld rows (%s): the largest difference from the model is %.2g",
            (long long)r->rows_checked, r->rows_from, r->max_abs_difference);
    if (r->rounding > 1e-5)
        cli_say(&c->term,
                "rounding of floats alone moves this model's answers by %.2g: no two runtimes agree better",
                r->rounding);
    return c->config.json ? print_json(c, r) : RT_OK;
}

rt_status cli_cmd_export(rt_cli *c) {
    rt_model *m = NULL;
    rt_pool *pool = NULL;
    rt_export_result r = {0};
    rt_status st;
    RT_TRY(cli_require(c, "out", c->config.out));
    RT_TRY_GOTO(rt_model_load(&m, c->args[0]));
    RT_TRY_GOTO(cli_pool_create(c, &pool));
    rt_export_options o = rt_export_options_of(&c->config);
    o.pool = pool;
    RT_TRY_GOTO(rt_export_run(m, c->args[0], &o, &r));
    st = say(c, &r);
done:
    rt_export_result_deinit(&r);
    rt_pool_destroy(&pool);
    rt_model_destroy(&m);
    return st;
}
