/*
 * cmd_greet.c - retort greet: a friendly word.
 */
#include "cli/cli.h"

rt_status cli_cmd_greet(rt_cli *c) {
    rt_json j;
    if (c->config.json) {
        cli_json_begin(c, &j);
        rt_json_str(&j, "greets", c->config.whom);
        return cli_json_end(c, &j);
    }
    rt_str_appendf(&c->out, "hello, %s\n", c->config.whom);
    return cli_print(&c->out);
}
