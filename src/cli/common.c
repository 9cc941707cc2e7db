/*
 * common.c - what several verbs need: worker threads.
 */
#include "cli/cli.h"
#include "kern/kern.h"

int cli_threads(const rt_cli *c) {
    return c->config.threads > 0 ? (int)c->config.threads : rt_cpu_count();
}

static void init_worker(void *ctx, int worker) {
    (void)ctx;
    (void)worker;
    rt_kern_thread_init();
}

rt_status cli_pool_create(const rt_cli *c, rt_pool **out) {
    RT_TRY(rt_pool_create(out, cli_threads(c)));
    rt_pool_each(*out, init_worker, NULL);
    return RT_OK;
}
