/*
 * recipe_int.h - what the files of this module share.
 */
#ifndef RT_RECIPE_RECIPE_INT_H
#define RT_RECIPE_RECIPE_INT_H

#include "base/arena.h"
#include "io/io.h"
#include "recipe/recipe.h"

enum { RT_RECIPE_LOOPS = 6 };

/* Values of the loop variables of a command. */
typedef struct rt_binding {
    const char *name[RT_RECIPE_LOOPS], *value[RT_RECIPE_LOOPS];
    int n;
} rt_binding;

typedef struct rt_recipe_node {
    rt_recipe_job job;
    rt_binding at;
    int *needs; /* commands whose results it reads */
    int nneeds;
} rt_recipe_node;

struct rt_recipe {
    rt_arena arena;
    rt_jdoc *doc;
    rt_jval root, scale;
    const char *name, *scale_name, *data_dir, *dir;
    rt_recipe_node *nodes;
    int count, cap;
};

/* A YAML text as a document; all scalars are texts. */
rt_status rt_recipe_yaml(rt_jdoc **out, const char *text, size_t n, const char *name) RT_MUST_CHECK;
/* Refuses a recipe with a list where a mapping is meant, and the like. */
rt_status rt_recipe_check(const rt_recipe *r) RT_MUST_CHECK;
/* Fills in r->nodes. */
rt_status rt_recipe_expand(rt_recipe *r) RT_MUST_CHECK;
/* "${name}" replaced by values of loops and variables. */
rt_status rt_recipe_fill(rt_recipe *r, const rt_binding *at, const char *text, rt_str *out) RT_MUST_CHECK;
/* Is a stage, column or claim part of this scale? Not if its `when` is there, and empty. */
rt_status rt_recipe_is_on(rt_recipe *r, rt_jval object, bool *on) RT_MUST_CHECK;
/* Do the two agree on every loop that both have? */
bool rt_binding_agrees(const rt_binding *a, const rt_binding *b);
const char *rt_jval_text(rt_jval object, const char *key); /* "" if absent */
rt_status rt_recipe_done_path(const rt_recipe *r, const char *job, char **out) RT_MUST_CHECK;

#endif
