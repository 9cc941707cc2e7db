/*
 * gather.c - members trained apart, by the tasks of a job array, become one run: an ensemble like any other, for
 * distill --teacher, eval and predict.
 *
 * Files are copied as they are. config.yaml is the first run's with the members of all, so that data and splits are
 * known; metrics.json says what the run is made of. Before anything is written all networks are read and must be of
 * one kind; the result is read again at the end.
 */
#include "model/gather.h"
#include "base/alloc.h"
#include "base/json.h"
#include "base/stop.h"
#include "model/run.h"
#include <stdio.h>
#include <string.h>

enum { MODEL_MAX_BYTES = INT32_MAX };

typedef struct gather {
    rt_run_dir dir;
    rt_model *all;
} gather;

static rt_status check_run(gather *g, const char *run) {
    rt_model *m = NULL;
    rt_run_state state;
    RT_TRY(rt_run_dir_state(run, &state));
    bool there = state != RT_RUN_NONE;
    if (!there)
        RT_TRY(rt_dir_find(run, &there));
    RT_FAIL_IF(!there, RT_E_INPUT, "%s: no such directory", run);
    RT_FAIL_IF(state == RT_RUN_NONE, RT_E_INPUT, "%s: no run is in it", run);
    RT_FAIL_IF(state != RT_RUN_FINISHED, RT_E_INPUT, "%s: its run is not finished; --resume continues it",
               run);
    RT_TRY(rt_model_load(g->all ? &m : &g->all, run));
    if (m == NULL)
        return RT_OK;
    rt_status st = rt_model_add(g->all, m, run);
    rt_model_destroy(&m);
    return st;
}

static rt_status copy(gather *g, const char *run, const char *name, int number) {
    char *from = NULL, *to = NULL, target[48];
    uint8_t *data = NULL;
    size_t n;
    rt_status st;
    rt_member_file(target, number, false);
    RT_TRY_GOTO(rt_path_join(&from, run, name));
    RT_TRY_GOTO(rt_run_dir_file(&g->dir, target, &to));
    RT_TRY_GOTO(rt_file_read(from, MODEL_MAX_BYTES, &data, &n));
    RT_TRY_GOTO(rt_file_write_atomic(to, data, n));
done:
    rt_free(data);
    rt_free(from);
    rt_free(to);
    return st;
}

/* Its model, or its members in order; *at counts those of all runs. */
static rt_status copy_run(gather *g, const char *run, int *at) {
    bool single = false;
    char *path;
    RT_TRY(rt_path_join(&path, run, "model.safetensors"));
    rt_status st = rt_file_find(path, &single);
    rt_free(path);
    for (int m = 0; st == RT_OK; m++) {
        char name[48];
        bool there = single && m == 0;
        rt_member_file(name, m, single);
        if (!single) {
            RT_TRY(rt_path_join(&path, run, name));
            st = rt_file_find(path, &there);
            rt_free(path);
        }
        if (st != RT_OK || !there)
            break;
        st = rt_stop_check("copying", run);
        if (st == RT_OK)
            st = copy(g, run, name, (*at)++);
    }
    return st;
}

static rt_status write_config(const gather *g, const char *run) {
    rt_config c;
    char *path = NULL;
    rt_status st;
    RT_TRY(rt_config_init(&c));
    RT_TRY_GOTO(rt_path_join(&path, run, "config.yaml"));
    RT_TRY_GOTO(rt_config_load(&c, RT_VERB_TRAIN | RT_VERB_DISTILL, path));
    c.members = rt_model_networks(g->all);
    st = rt_run_dir_write_config(&g->dir, &c, RT_VERB_TRAIN);
done:
    rt_free(path);
    rt_config_deinit(&c);
    return st;
}

static rt_status write_metrics(const gather *g, const char *const *runs, int64_t n) {
    rt_str text;
    rt_json j;
    rt_str_init(&text);
    rt_run_json_begin(&j, &text);
    rt_json_i64(&j, "members", rt_model_networks(g->all));
    rt_json_strs(&j, "gathered", runs, n);
    const rt_status st = rt_run_json_end(&j, &g->dir, "metrics.json");
    rt_str_deinit(&text);
    return st;
}

rt_status rt_gather_run(const char *const *runs, int64_t n, const char *out, bool force, int *members) {
    gather g = {.all = NULL};
    rt_model *again = NULL;
    bool begun = false;
    int at = 0;
    rt_status st;
    for (int64_t i = 0; i < n; i++) {
        if (strcmp(runs[i], out) == 0)
            RT_FAIL_GOTO(RT_E_USAGE, "%s is one of the runs to gather; choose another --out", out);
        RT_TRY_GOTO(rt_stop_check("reading", runs[i]));
        RT_TRY_GOTO(check_run(&g, runs[i]));
    }
    RT_TRY_GOTO(rt_run_dir_check(out, false, force));
    RT_TRY_GOTO(rt_run_dir_open(&g.dir, out, false, force));
    RT_TRY_GOTO(rt_run_dir_clear(&g.dir));
    begun = true;
    RT_TRY_GOTO(write_config(&g, runs[0]));
    for (int64_t i = 0; i < n; i++)
        RT_TRY_GOTO(copy_run(&g, runs[i], &at));
    RT_TRY_GOTO(rt_model_load(&again, out));
    if (rt_model_networks(again) != rt_model_networks(g.all))
        RT_FAIL_GOTO(RT_E_FAILED, "%s: %d networks arrived, %d were to be gathered", out,
                     rt_model_networks(again), rt_model_networks(g.all));
    RT_TRY_GOTO(write_metrics(&g, runs, n));
    *members = rt_model_networks(g.all);
done:
    if (st == RT_E_INTERRUPTED && begun && rt_run_dir_clear(&g.dir) != RT_OK)
        st = RT_E_IO; /* with its own message; there is no --resume, so the next one would be refused */
    rt_model_destroy(&again);
    rt_model_destroy(&g.all);
    rt_run_dir_close(&g.dir);
    return st;
}
