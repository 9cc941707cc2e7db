/*
 * recipe_int.h - what the files of this module share.
 */
#ifndef RT_RECIPE_RECIPE_INT_H
#define RT_RECIPE_RECIPE_INT_H

#include "base/arena.h"
#include "io/io.h"
#include "recipe/recipe.h"

enum { RT_RECIPE_LOOPS = 6 };

/* In words that are hashed: where data are, and where results are. */
#define RT_MARK_DATA "\x01"
#define RT_MARK_DIR "\x02"

/* Values of the loop variables of a command. */
typedef struct rt_binding {
    const char *name[RT_RECIPE_LOOPS], *value[RT_RECIPE_LOOPS];
    int place[RT_RECIPE_LOOPS]; /* of the value in its loop */
    int n;
} rt_binding;

typedef struct rt_recipe_node {
    rt_recipe_job job;
    rt_binding at;
    const char **words;     /* argv with marks */
    const char *marked_dir; /* job.dir with marks */
    int *needs;             /* commands whose results it reads */
    int nneeds;
    int measures;     /* the command whose run it evaluates; -1: none */
    double turn;      /* those of lower ones are run first, where the recipe says `order` */
    bool here;        /* its run, or whatever it makes, is in this directory */
    double seconds;   /* it took, */
    const char *cpu;  /* on this processor; NULL: not noted */
    rt_jdoc *metrics; /* what it measured; NULL: nothing yet */
} rt_recipe_node;

struct rt_recipe {
    rt_arena arena;
    rt_jdoc *doc;
    rt_jval root, scale;
    const char *name, *scale_name, *data_dir, *dir;
    rt_recipe_node *nodes;
    int count, cap;
    int *order;    /* nodes as they are run */
    rt_jdoc *kept; /* results.json of a time when commands were not kept; NULL: not needed */
};

/* A YAML text as a document; all scalars are texts. */
rt_status rt_recipe_yaml(rt_jdoc **out, const char *text, size_t n, const char *name) RT_MUST_CHECK;
/* Refuses a recipe with a list where a mapping is meant, and the like. */
rt_status rt_recipe_check(const rt_recipe *r) RT_MUST_CHECK;
/* Fills in r->nodes. */
rt_status rt_recipe_expand(rt_recipe *r) RT_MUST_CHECK;
/* "${name}" replaced by values of loops and variables. */
rt_status rt_recipe_fill(rt_recipe *r, const rt_binding *at, const char *text, rt_str *out) RT_MUST_CHECK;
/* Is a stage, table, column or claim part of this scale? Not if its `when` is there, and empty. */
rt_status rt_recipe_is_on(rt_recipe *r, rt_jval object, bool *on) RT_MUST_CHECK;
/* Do the two agree on every loop that both have? */
bool rt_binding_agrees(const rt_binding *a, const rt_binding *b);
const char *rt_jval_text(rt_jval object, const char *key); /* "" if absent */
/* A text with the directories that its marks stand for. */
rt_status rt_recipe_unmark(rt_recipe *r, const char *text, const char **out) RT_MUST_CHECK;
/* Fills in r->order, and which commands are wanted. */
rt_status rt_recipe_plan(rt_recipe *r) RT_MUST_CHECK;
/* Every file or directory under ${data} that a wanted command names is there. */
rt_status rt_recipe_find_data(rt_recipe *r) RT_MUST_CHECK;

/* recipe_measured.c: what commands measured, from measured.json and from runs that are here. */
rt_status rt_measured_load(rt_recipe *r) RT_MUST_CHECK;
/* A command has just finished: a mark in done/, by the process that ran it; then, by all, what it measured. */
rt_status rt_measured_mark(rt_recipe *r, int command, double seconds, const char *cpu) RT_MUST_CHECK;
rt_status rt_measured_add(rt_recipe *r, int command) RT_MUST_CHECK;
rt_status rt_measured_write(const rt_recipe *r) RT_MUST_CHECK;
/* What is at `path` in what the run of a command came to; false: not measured yet. The value may be null. */
bool rt_measured_find(const rt_recipe *r, int command, const char *path, rt_jval *out);
bool rt_measured_interval(const rt_recipe *r, int command, const char *path, double *lo,
                          double *hi); /* of it */

#endif
