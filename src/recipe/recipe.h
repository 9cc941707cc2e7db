/*
 * recipe.h - whole experiments: a YAML file becomes a list of commands, and what they measured becomes
 * tables beside a paper's.
 *
 *   title, source, about     texts
 *   vars                     names for "${name}" in all other texts
 *   scales                   quick, paper, ...: how large the experiment is
 *   stages                   commands, one for every combination of the loops in `each`
 *   tables                   cells are means over the runs of a stage
 *
 * docs/formats/recipe.md has every key; recipe_check.c refuses others.
 *
 * `with` holds the flags of the verb. "@stage" in a value is the directory of the run of that stage whose
 * loops have the same values; in `runs` (words after the verb) it is all of them. A stage whose verb is eval
 * is one command per run, so that little is repeated after an interruption.
 *
 * A command is finished when measured.json, or a mark in done/ beside its run, holds its key: the hash of its words
 * and of the keys of the commands whose results it reads. What changed, and all that depends on it, runs again; what
 * did not is never repeated, unless a command that is missing reads a run that is not here (recipe_plan.c). This
 * module runs nothing itself: commands go to a callback.
 */
#ifndef RT_RECIPE_RECIPE_H
#define RT_RECIPE_RECIPE_H

#include "base/embed.h"
#include "base/str.h"
#include <signal.h>

/* The recipes that come with the program: YAML files named <recipe>.yaml. */
const rt_embedded *rt_embedded_recipes(int *count);

typedef struct rt_recipe_options {
    const char *scale;    /* NULL: the first one of the recipe */
    const char *data_dir; /* NULL: "data" */
    const char *out;      /* directory of results; NULL: "results" */
} rt_recipe_options;

typedef struct rt_recipe rt_recipe;
/* A recipe of the list, or a path of a .yaml file. */
rt_status rt_recipe_open(rt_recipe **out, const char *name, rt_recipe_options o) RT_MUST_CHECK;
void rt_recipe_destroy(rt_recipe **r);
/* A text at the top ("title", "source", "about") or of the scale ("scale.minutes"); "" if absent. */
const char *rt_recipe_text(const rt_recipe *r, const char *key);
const char *rt_recipe_dir(const rt_recipe *r); /* results/<name>/<scale> */
int rt_recipe_scales(const rt_recipe *r);
const char *rt_recipe_scale_name(const rt_recipe *r, int i);

typedef struct rt_recipe_job {
    const char *stage, *name, *verb;
    const char *dir;   /* of the run it makes; NULL: it makes none */
    const char **argv; /* words after the program's name; argv[0] is the verb */
    int argc;
    double weight; /* share of the work */
    char key[65];
    bool done;   /* what it measures is known */
    bool wanted; /* is to be run: not done, or its run is read by one that is wanted, and not here */
} rt_recipe_job;
/* In the order they are run in. */
int rt_recipe_jobs(const rt_recipe *r);
const rt_recipe_job *rt_recipe_job_get(const rt_recipe *r, int i);

typedef struct rt_recipe_hooks {
    /* Refuses a command whose flags are wrong or whose data are not there: asked of all that will be run, before the
     * first is. NULL: nothing is refused. */
    rt_status (*check)(void *user, const rt_recipe_job *job);
    /* Runs a command. resume: continue what an earlier call began. */
    rt_status (*run)(void *user, const rt_recipe_job *job, bool resume);
    /* Calls `work` for pieces 0 to n - 1, which do not need each other, in any order or by several processes, which all
     * know at the end what it came to; NULL: one after another. */
    rt_status (*spread)(int64_t n, rt_status (*work)(void *user, int64_t piece), void *user);
    int at_once; /* most commands to spread; 0: one */
    /* Of each command, before it begins; left is NaN if the recipe does not say how long it takes. */
    void (*progress)(void *user, int job, double seconds, double seconds_left);
    void *user;
    const volatile sig_atomic_t *stop;
    const char *cpu; /* noted beside what this process measures; NULL: nothing */
} rt_recipe_hooks;
/* Refused before anything is run if data are missing. Results are written after every command. */
rt_status rt_recipe_run(rt_recipe *r, const rt_recipe_hooks *hooks) RT_MUST_CHECK;
/* Cells, claims and seconds as JSON, and tables as Markdown, from what is finished. */
rt_status rt_recipe_results(const rt_recipe *r, rt_str *json, rt_str *markdown) RT_MUST_CHECK;
/* Is there anything to show? */
bool rt_recipe_has_results(const rt_recipe *r);
/* The tables of several recipes as one HTML page. */
rt_status rt_recipe_page(rt_recipe *const *list, int n, rt_str *html) RT_MUST_CHECK;
/* Both written to <dir>/results.json and <dir>/tables.md. */
rt_status rt_recipe_write_results(const rt_recipe *r) RT_MUST_CHECK;

#endif
