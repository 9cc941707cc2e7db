/*
 * run_dir.c - the directory of a run: which files it has, what they say about its state, and who may write
 * there.
 *
 *     config.yaml               resolved configuration; written first
 *     log.jsonl                 one JSON object per line: start, epoch, stopped, resumed, finished
 *     checkpoint.safetensors    while running
 *     model.safetensors         at the end; or member-000.safetensors, member-001.safetensors, ...
 *     members.safetensors       of a student that collapses: what it was before
 *     hyper.json                of a hyper ensemble: candidates and choice
 *     metrics.json              last; its presence without a checkpoint means: finished
 *
 * Other files in the directory are left alone: they are neither read nor removed.
 */
#include "base/alloc.h"
#include "base/timer.h"
#include "model/model_int.h"
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void rt_member_file(char name[48], int member, bool single) {
    if (single)
        strcpy(name, "model.safetensors");
    else
        snprintf(name, 48, "member-%03d.safetensors", member);
}

/* Does this name belong to a run? */
static bool is_run_file(const char *name) {
    static const char *const fixed[] = {"config.yaml",       "log.jsonl",           "checkpoint.safetensors",
                                        "model.safetensors", "members.safetensors", "metrics.json",
                                        "hyper.json"};
    for (int64_t i = 0; i < RT_COUNT(fixed); i++)
        if (strcmp(name, fixed[i]) == 0)
            return true;
    size_t n = strlen(name);
    int64_t number;
    const size_t prefix = rt_str_starts(name, "members-") ? 8 : 7;
    return n > prefix + 12 && (prefix == 8 || rt_str_starts(name, "member-")) &&
           rt_str_ends(name, ".safetensors") && rt_parse_i64(name + prefix, n - prefix - 12, &number);
}

static rt_status find(rt_status (*look)(const char *, bool *), const char *path, bool *found) {
    rt_status st = RT_OK;
    bool here = false;
    if (rt_dist_rank() == 0)
        st = look(path, &here);
    int answer = here;
    RT_TRY(rt_dist_lead(st, &answer));
    *found = answer != 0;
    return RT_OK;
}

rt_status rt_run_find_file(const char *path, bool *found) {
    return find(rt_file_find, path, found);
}

rt_status rt_run_find_dir(const char *path, bool *found) {
    return find(rt_dir_find, path, found);
}

static rt_status look_at(const char *path, int *out) {
    *out = RT_RUN_NONE;
    bool found;
    RT_TRY(rt_dir_find(path, &found));
    if (!found)
        return RT_OK;
    char **names;
    int64_t n;
    RT_TRY(rt_dir_list(path, &names, &n));
    bool any = false, metrics = false, checkpoint = false;
    for (int64_t i = 0; i < n; i++) {
        any = any || is_run_file(names[i]);
        metrics = metrics || strcmp(names[i], "metrics.json") == 0;
        checkpoint = checkpoint || strcmp(names[i], "checkpoint.safetensors") == 0;
    }
    rt_names_free(names, n);
    if (any)
        *out = metrics && !checkpoint ? RT_RUN_FINISHED : RT_RUN_UNFINISHED;
    return RT_OK;
}

rt_status rt_run_dir_state(const char *path, rt_run_state *out) {
    int state = RT_RUN_NONE;
    RT_TRY(rt_dist_lead(rt_dist_rank() == 0 ? look_at(path, &state) : RT_OK, &state));
    *out = (rt_run_state)state;
    return RT_OK;
}

rt_status rt_run_dir_begun(const char *path) {
    char *config;
    bool begun = false;
    RT_TRY(rt_path_join(&config, path, "config.yaml"));
    rt_status st = rt_run_find_file(config, &begun);
    rt_free(config);
    RT_FAIL_IF(st == RT_OK && !begun, RT_E_USAGE,
               "--resume: there is no run in %s; without --resume one begins", path);
    return st;
}

/* Is this file, if it is there, one that retort wrote? Others have files of these names, too. */
static rt_status check_ours(const char *dir, const char *name, const char *mark) {
    char *path;
    uint8_t *text = NULL;
    size_t n = 0;
    bool found;
    RT_TRY(rt_path_join(&path, dir, name));
    rt_status st;
    RT_TRY_GOTO(rt_file_find(path, &found));
    if (!found)
        goto done;
    RT_TRY_GOTO(rt_file_read(path, (size_t)64 << 20, &text, &n));
    if (!strstr((const char *)text, mark))
        st = rt_error_set(RT_E_USAGE, __FILE__, __LINE__,
                          "%s was not written by retort, so %s is no run; --force replaces runs only", path,
                          dir);
done:
    rt_free(text);
    rt_free(path);
    return st;
}

static rt_status check_force(const char *path) {
    RT_TRY(check_ours(path, "config.yaml", "retort --config"));
    return check_ours(path, "metrics.json", "\"retort\"");
}

rt_status rt_run_dir_check(const char *path, bool resume, bool force) {
    rt_run_state state;
    int ignored = 0;
    RT_TRY(rt_run_dir_state(path, &state));
    RT_TRY(rt_dist_lead(rt_dist_rank() == 0 && !resume ? rt_dir_may_make(path) : RT_OK, &ignored));
    if (force && !resume && state != RT_RUN_NONE)
        return rt_file_reads_only() ? RT_OK : check_force(path);
    if (resume || force)
        return RT_OK;
    RT_FAIL_IF(state == RT_RUN_FINISHED, RT_E_USAGE,
               "%s holds a finished run; choose another --out, or replace it with --force", path);
    RT_FAIL_IF(state == RT_RUN_UNFINISHED, RT_E_USAGE,
               "%s holds an unfinished run; continue it with --resume, or replace it with --force", path);
    return RT_OK;
}

/* The last name to go is config.yaml, so that a run that is partly removed still looks like one. */
rt_status rt_run_dir_clear(const rt_run_dir *d) {
    char **names;
    int64_t n;
    if (rt_file_reads_only())
        return RT_OK;
    RT_TRY(rt_dir_list(d->path, &names, &n));
    rt_status st = RT_OK;
    for (int64_t i = 0; i < n && st == RT_OK; i++)
        if (is_run_file(names[i]) && strcmp(names[i], "config.yaml") != 0)
            st = rt_run_dir_remove(d, names[i]);
    rt_names_free(names, n);
    return st == RT_OK ? rt_run_dir_remove(d, "config.yaml") : st;
}

static rt_status open_locked(rt_run_dir *d, bool resume, bool force) {
    RT_TRY(rt_lock_take(&d->lock, d->path));
    RT_TRY(rt_run_dir_check(d->path, resume, force)); /* again: somebody may have been faster */
    return rt_dir_sweep(d->path);
}

/* Rank 0 leaves a word, and the others must find it. A network's file system may take a moment to show it. */
rt_status rt_run_check_shared(const char *dir) {
    enum { WORD = 64, TRIES = 50 };
    char word[WORD] = "", *path;
    uint8_t *text = NULL;
    size_t n;
    bool same = rt_dist_rank() == 0;
    if (rt_dist_size() < 2)
        return RT_OK;
    RT_TRY(rt_dir_make(dir));
    RT_TRY(rt_path_join(&path, dir, ".ranks"));
    rt_status st;
    snprintf(word, sizeof word, "%lld %.17g\n", (long long)getpid(), rt_time_now());
    RT_TRY_GOTO(rt_file_write_atomic(path, word, strlen(word)));
    RT_TRY_GOTO(rt_dist_broadcast(rt_dist_all(), word, sizeof word));
    for (int i = 0; i < TRIES && !same; i++) {
        if (i > 0)
            usleep(100000);
        same = rt_file_exists(path) && rt_file_read(path, WORD, &text, &n) == RT_OK &&
               strcmp((const char *)text, word) == 0;
        rt_free(text);
        text = NULL;
    }
    if (!same)
        RT_FAIL_GOTO(
            RT_E_USAGE,
            "does not see what rank 0 writes in %s: ranks need a file system that all of them share, and one "
            "name for the run",
            dir);
    RT_TRY_GOTO(rt_dist_barrier(rt_dist_all()));
    st = rt_file_remove(path);
done:
    rt_free(path);
    return st;
}

rt_status rt_run_dir_open(rt_run_dir *d, const char *path, bool resume, bool force) {
    memset(d, 0, sizeof *d);
    RT_TRY(rt_dir_make(path));
    d->path = rt_strdup(path);
    if (!d->path)
        return RT_E_MEMORY;
    rt_status st = open_locked(d, resume, force);
    if (st == RT_OK)
        st = rt_run_check_shared(d->path);
    if (st != RT_OK)
        rt_run_dir_close(d);
    return st;
}

void rt_run_dir_close(rt_run_dir *d) {
    if (d->log && rt_appender_close(&d->log) != RT_OK)
        d->log = NULL; /* every line was written by its own write(2); closing has nothing left to lose */
    rt_lock_release(&d->lock);
    rt_free(d->path);
    memset(d, 0, sizeof *d);
}

rt_status rt_run_dir_file(const rt_run_dir *d, const char *name, char **out) {
    return rt_path_join(out, d->path, name);
}

rt_status rt_run_dir_write(const rt_run_dir *d, const char *name, const rt_str *text) {
    char *path;
    RT_TRY(rt_run_dir_file(d, name, &path));
    rt_status st = rt_file_write_text(path, text);
    rt_free(path);
    return st;
}

void rt_run_json_begin(rt_json *j, rt_str *text) {
    rt_str_clear(text);
    rt_json_init(j, text, true);
    rt_json_object_begin(j, NULL);
    rt_json_str(j, "retort", RT_VERSION);
}

rt_status rt_run_json_end(rt_json *j, const rt_run_dir *d, const char *name) {
    rt_json_object_end(j);
    rt_str_append_char(j->out, '\n');
    return rt_run_dir_write(d, name, j->out);
}

rt_status rt_run_dir_write_config(const rt_run_dir *d, const rt_config *c, unsigned verb) {
    rt_str text;
    rt_str_init(&text);
    rt_config_write(c, verb, &text);
    rt_status st = rt_run_dir_write(d, "config.yaml", &text);
    rt_str_deinit(&text);
    return st;
}

rt_status rt_run_dir_remove(const rt_run_dir *d, const char *name) {
    char *path;
    RT_TRY(rt_run_dir_file(d, name, &path));
    rt_status st = rt_file_remove(path);
    rt_free(path);
    return st;
}
