/*
 * cmd_gather.c - retort gather: members trained apart, as one run.
 */
#include "cli/cli.h"
#include "model/gather.h"

rt_status cli_cmd_gather(rt_cli *c) {
    int members;
    RT_TRY(cli_require(c, "out", c->config.out));
    RT_TRY(rt_gather_run((const char *const *)c->args, c->nargs, c->config.out, c->config.force, &members));
    cli_say(&c->term, "%d networks of %d run%s in %s", members, c->nargs, c->nargs == 1 ? "" : "s",
            c->config.out);
    if (!c->config.json)
        return RT_OK;
    rt_json j;
    cli_json_begin(c, &j);
    rt_json_str(&j, "run", c->config.out);
    rt_json_i64(&j, "members", members);
    return cli_json_end(c, &j);
}
