/*
 * cmd_distill.c - retort distill: as train, with a teacher. The architecture is the teacher's unless another
 * one is given.
 */
#include "cli/cli.h"

rt_status cli_cmd_distill(rt_cli *c) {
    RT_TRY(cli_require(c, "out", c->config.out));
    RT_TRY(cli_load_saved(c));
    RT_TRY(cli_require(c, "data", c->config.data));
    return cli_train(c, rt_distill_run);
}
