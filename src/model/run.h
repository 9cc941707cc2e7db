/*
 * run.h - a run on disk: its directory, its lock, and which rows of its data it was trained, validated and tested on.
 */
#ifndef RT_MODEL_RUN_H
#define RT_MODEL_RUN_H

#include "base/file.h"
#include "base/json.h"
#include "config/config.h"
#include "data/data.h"
#include "dist/dist.h"
#include "model/model.h"

/* ---- run directories ---- */
typedef enum rt_run_state { RT_RUN_NONE, RT_RUN_UNFINISHED, RT_RUN_FINISHED } rt_run_state;
typedef struct rt_run_dir {
    char *path;
    rt_lock *lock;
    rt_appender *log;
} rt_run_dir;
/* Is there a file, or a directory, as rank 0 sees it? All ranks ask. */
rt_status rt_run_find_file(const char *path, bool *found) RT_MUST_CHECK;
rt_status rt_run_find_dir(const char *path, bool *found) RT_MUST_CHECK;
/* Do all ranks see what rank 0 writes in that directory, which it makes? Returns when all have come. */
rt_status rt_run_check_shared(const char *path) RT_MUST_CHECK;
rt_status rt_run_dir_state(const char *path, rt_run_state *out) RT_MUST_CHECK;
/* Refuses to continue what was not begun: a name that was mistyped must not begin another run. */
rt_status rt_run_dir_begun(const char *path) RT_MUST_CHECK;
/* Refuses to touch an existing run unless asked to (--resume, --force). */
rt_status rt_run_dir_check(const char *path, bool resume, bool force) RT_MUST_CHECK;
/* Makes and locks the directory, and sweeps away what a killed process left. */
rt_status rt_run_dir_open(rt_run_dir *d, const char *path, bool resume, bool force) RT_MUST_CHECK;
void rt_run_dir_close(rt_run_dir *d);
rt_status rt_run_dir_clear(const rt_run_dir *d) RT_MUST_CHECK; /* removes the files of a run, and no others */
rt_status rt_run_dir_file(const rt_run_dir *d, const char *name,
                          char **out) RT_MUST_CHECK; /* rt_alloc'ed path */
rt_status rt_run_dir_write(const rt_run_dir *d, const char *name, const rt_str *text) RT_MUST_CHECK;
/* The same of a JSON object, such as metrics.json: all begin alike. What is between the two is the writer's. */
void rt_run_json_begin(rt_json *j, rt_str *text);
rt_status rt_run_json_end(rt_json *j, const rt_run_dir *d, const char *name) RT_MUST_CHECK;
rt_status rt_run_dir_write_config(const rt_run_dir *d, const rt_config *c,
                                  unsigned verb) RT_MUST_CHECK; /* config.yaml, what the verb knows */
rt_status rt_run_dir_remove(const rt_run_dir *d, const char *name) RT_MUST_CHECK; /* absent is fine */

/* ---- which rows are for testing and validation (splits.c) ---- */
void rt_config_new_splits(rt_config *c); /* of a run that begins now: what is not set is "auto" */
/* For data that a run was trained on: its way to hold out test rows, unless another is set. */
rt_status rt_config_follow_run(rt_config *c, const char *run) RT_MUST_CHECK;
/* How the data of a run, or of the run that a model file lies in, is related to data of that name; *own is the run's
 * SPEC, rt_alloc'ed, or NULL. */
rt_status rt_run_compare_data(const char *run, const char *data, rt_spec_relation *out,
                              char **own) RT_MUST_CHECK;
rt_status rt_run_test_split(const char *run, rt_split *out,
                            bool *known) RT_MUST_CHECK; /* known: it is a run */
rt_data_options rt_config_data(const rt_config *c);     /* how it reads its data */
void rt_config_name_splits(rt_config *c,
                           const rt_dataset *d); /* "auto" becomes what it means for these data */
/* Training and validation rows. */
rt_status rt_split_rows(const rt_config *c, const rt_dataset *d, rt_subset *train,
                        rt_subset *valid) RT_MUST_CHECK;
/* The same for the networks that a finished run left behind: a hyper ensemble is retrained on all rows. */
rt_status rt_run_rows(const rt_config *c, const rt_dataset *d, rt_subset *train,
                      rt_subset *valid) RT_MUST_CHECK;
/* The data of a run (or `data`, if not NULL) and the rows that it held out. */
rt_status rt_run_open_valid(rt_dataset **d, rt_subset *train, rt_subset *valid, const char *run,
                            const char *data, const rt_data_like *like) RT_MUST_CHECK;

/* The rows that a run held out itself (held_out.c): what is fitted to a run's predictions is fitted to these or
 * not at all. All-zero before the first use; serves one run after another, and keeps the data between them. */
typedef struct rt_held_out {
    rt_part rows;       /* owned */
    const char *reason; /* why there are none; NULL: there are */
    bool known;         /* data is what the run was trained on */
    rt_dataset *data;
    char *spec;
    rt_data_options options;
} rt_held_out;
/* other: another name of the run's data, or NULL. */
rt_status rt_held_out_find(rt_held_out *h, const char *run, const rt_model *m,
                           const char *other) RT_MUST_CHECK;
void rt_held_out_deinit(rt_held_out *h);

#endif
