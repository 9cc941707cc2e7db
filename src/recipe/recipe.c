/*
 * recipe.c - finding, opening and running recipes.
 */
#include "base/alloc.h"
#include "base/file.h"
#include "base/timer.h"
#include "recipe/recipe_int.h"
#include <math.h>
#include <string.h>

enum { RECIPE_MAX_BYTES = 1 << 20 };

/* "recipes/fashion.yaml" -> "fashion" */
static rt_status set_name(rt_recipe *r, const char *path) {
    char *copy;
    const char *base = strrchr(path, '/');
    base = base ? base + 1 : path;
    size_t n = strcspn(base, ".");
    RT_TRY(rt_arena_alloc(&r->arena, &copy, n + 1));
    memcpy(copy, base, n);
    r->name = copy;
    return RT_OK;
}

static rt_status read_file(rt_recipe *r, const char *path) {
    uint8_t *data;
    size_t bytes;
    RT_TRY(set_name(r, path));
    RT_TRY(rt_file_read(path, RECIPE_MAX_BYTES, &data, &bytes));
    rt_status st = rt_recipe_yaml(&r->doc, (const char *)data, bytes, path);
    rt_free(data);
    return st;
}

static rt_status read_text(rt_recipe *r, const char *name) {
    if (rt_str_ends(name, ".yaml") || rt_str_ends(name, ".yml"))
        return read_file(r, name);
    const char *names[64];
    int n;
    const rt_embedded *list = rt_embedded_recipes(&n);
    RT_ASSERT(n <= (int)RT_COUNT(names));
    for (int i = 0; i < n; i++) {
        RT_TRY(set_name(r, list[i].name));
        names[i] = r->name;
        if (strcmp(r->name, name) == 0)
            return rt_recipe_yaml(&r->doc, list[i].data, list[i].bytes, list[i].name);
    }
    RT_FAIL_UNKNOWN(RT_E_USAGE, name, names, n, "neither a .yaml file nor a recipe:");
}

static rt_status choose_scale(rt_recipe *r, const char *scale) {
    rt_jval scales = rt_jval_get(r->root, "scales");
    rt_str names;
    RT_FAIL_IF(rt_jval_len(scales) < 1, RT_E_INPUT, "recipe %s: no scales", r->name);
    for (int64_t i = 0; i < rt_jval_len(scales); i++)
        if (!scale || strcmp(rt_jval_key(scales, i), scale) == 0) {
            r->scale_name = rt_jval_key(scales, i);
            r->scale = rt_jval_get(scales, r->scale_name);
            const char *compare = rt_jval_text(r->scale, "compare");
            RT_FAIL_IF(*compare && strcmp(compare, "orderings") != 0, RT_E_INPUT,
                       "recipe %s: scale '%s' compares '%s'; wanted orderings, or nothing for every number",
                       r->name, r->scale_name, compare);
            return RT_OK;
        }
    rt_str_init(&names);
    for (int64_t i = 0; i < rt_jval_len(scales); i++)
        rt_str_appendf(&names, "%s%s", i ? ", " : "", rt_jval_key(scales, i));
    rt_status st = rt_error_set(RT_E_USAGE, __FILE__, __LINE__, "recipe %s has no scale '%s', but %s",
                                r->name, scale, rt_str_text(&names));
    rt_str_deinit(&names);
    return st;
}

rt_status rt_recipe_open(rt_recipe **out, const char *name, rt_recipe_options o) {
    rt_recipe *r;
    rt_str dir;
    *out = NULL;
    RT_TRY(rt_calloc(&r, 1, sizeof *r));
    rt_arena_init(&r->arena);
    rt_str_init(&dir);
    rt_status st;
    RT_TRY_GOTO(read_text(r, name));
    r->root = rt_jdoc_root(r->doc);
    RT_TRY_GOTO(rt_recipe_check(r));
    RT_TRY_GOTO(choose_scale(r, o.scale));
    RT_TRY_GOTO(rt_arena_strdup(&r->arena, &r->data_dir, o.data_dir ? o.data_dir : "data"));
    rt_str_appendf(&dir, "%s/%s/%s", o.out ? o.out : "results", r->name, r->scale_name);
    RT_TRY_GOTO(rt_str_status(&dir));
    RT_TRY_GOTO(rt_arena_strdup(&r->arena, &r->dir, rt_str_text(&dir)));
    RT_TRY_GOTO(rt_recipe_expand(r));
    RT_TRY_GOTO(rt_measured_load(r));
    st = rt_recipe_plan(r);
done:
    rt_str_deinit(&dir);
    if (st != RT_OK)
        rt_recipe_destroy(&r);
    *out = r;
    return st;
}

void rt_recipe_destroy(rt_recipe **r) {
    if (!*r)
        return;
    for (int i = 0; i < (*r)->count; i++)
        rt_jdoc_destroy(&(*r)->nodes[i].metrics);
    rt_jdoc_destroy(&(*r)->kept);
    rt_jdoc_destroy(&(*r)->doc);
    rt_arena_deinit(&(*r)->arena);
    rt_free((*r)->nodes);
    rt_free(*r);
    *r = NULL;
}

const char *rt_recipe_text(const rt_recipe *r, const char *key) {
    return rt_str_starts(key, "scale.") ? rt_jval_text(r->scale, key + 6) : rt_jval_text(r->root, key);
}

const char *rt_recipe_dir(const rt_recipe *r) {
    return r->dir;
}

int rt_recipe_scales(const rt_recipe *r) {
    return (int)rt_jval_len(rt_jval_get(r->root, "scales"));
}

const char *rt_recipe_scale_name(const rt_recipe *r, int i) {
    return rt_jval_key(rt_jval_get(r->root, "scales"), i);
}

int rt_recipe_jobs(const rt_recipe *r) {
    return r->count;
}

const rt_recipe_job *rt_recipe_job_get(const rt_recipe *r, int i) {
    return &r->nodes[r->order[i]].job;
}

/* Key and words of a command. Words may differ under one key: where data and results are is not in it. */
static rt_status marker_of(const rt_recipe_job *j, rt_str *text) {
    rt_str_append(text, j->key);
    for (int i = 0; i < j->argc; i++)
        rt_str_appendf(text, "\n%s", j->argv[i]);
    return rt_str_status(text);
}

/* Unfinished, and begun by these very words: the marker of that beginning says so. */
static rt_status begun(rt_recipe *r, const rt_recipe_job *j, bool *same) {
    char *path = NULL, *dir = NULL;
    uint8_t *was = NULL;
    size_t n = 0;
    rt_str name, text;
    rt_str_init(&name);
    rt_str_init(&text);
    rt_str_appendf(&name, "done/%s.begun", j->name);
    rt_status st;
    *same = false;
    RT_TRY_GOTO(marker_of(j, &text));
    RT_TRY_GOTO(rt_path_join(&dir, r->dir, "done"));
    RT_TRY_GOTO(rt_dir_make(dir));
    RT_TRY_GOTO(rt_str_status(&name));
    RT_TRY_GOTO(rt_path_join(&path, r->dir, rt_str_text(&name)));
    if (rt_file_exists(path)) {
        RT_TRY_GOTO(rt_file_read(path, RECIPE_MAX_BYTES, &was, &n));
        *same = n == text.len && memcmp(was, rt_str_text(&text), n) == 0;
    }
    st = *same ? RT_OK : rt_file_write_text(path, &text);
done:
    rt_str_deinit(&text);
    rt_str_deinit(&name);
    rt_free(was);
    rt_free(path);
    rt_free(dir);
    return st;
}

/* ---- time ---- */

/* Seconds that are left: the work that is left, at the pace so far. Before there is one, at the pace of what such a
 * processor did earlier, or else of the scale's `minutes`, which counts as a hundredth of the work. */
typedef struct pace {
    double all, left, worked, per_work, start; /* work by weight; per_work: NaN if nothing says */
} pace;

static pace begin_pace(const rt_recipe *r, const char *cpu) {
    pace p = {.per_work = NAN, .start = rt_time_now()};
    const char *minutes = rt_jval_text(r->scale, "minutes");
    double m, seconds = 0, work = 0;
    for (int i = 0; i < r->count; i++) {
        const rt_recipe_node *n = &r->nodes[i];
        p.all += n->job.weight;
        p.left += n->job.wanted ? n->job.weight : 0;
        if (n->job.done && n->cpu && cpu && strcmp(n->cpu, cpu) == 0) {
            seconds += n->seconds;
            work += n->job.weight;
        }
    }
    if (seconds > 0 && work > 0)
        p.per_work = seconds / work;
    else if (*minutes && rt_parse_f64(minutes, strlen(minutes), false, &m) && p.all > 0)
        p.per_work = 60 * m / p.all;
    return p;
}

static double seconds_left(const pace *p, double now) {
    const double trust = isfinite(p->per_work) ? p->all / 100 : 0;
    return p->left * (now - p->start + (trust > 0 ? trust * p->per_work : 0)) / (p->worked + trust);
}

/* ---- running ---- */

/* Commands that do not need each other, and are begun together. */
typedef struct wave {
    rt_recipe *r;
    const rt_recipe_hooks *hooks;
    int *at, n; /* places in the order */
} wave;

static rt_status run_command(void *user, int64_t piece) {
    const wave *w = user;
    const int i = w->r->order[w->at[piece]];
    const rt_recipe_job *j = &w->r->nodes[i].job;
    const double now = rt_time_now();
    bool resume;
    RT_FAIL_IF(w->hooks->stop && *w->hooks->stop, RT_E_INTERRUPTED, "interrupted before %s", j->name);
    RT_TRY(begun(w->r, j, &resume));
    RT_TRY(w->hooks->run(w->hooks->user, j, resume));
    return rt_measured_mark(w->r, i, rt_time_now() - now, w->hooks->cpu);
}

/* Is all that it reads there? */
static bool is_ready(const rt_recipe *r, const rt_recipe_node *n) {
    for (int k = 0; k < n->nneeds; k++)
        if (r->nodes[n->needs[k]].job.wanted)
            return false;
    return true;
}

/* May it go on beside the others? Two evaluations of one run would write one file; and those who wait for one that takes
 * much longer had better share it. */
static bool fits(const wave *w, const rt_recipe_node *n) {
    const double weight = w->r->nodes[w->r->order[w->at[0]]].job.weight;
    for (int k = 0; k < w->n; k++)
        if (n->measures >= 0 && w->r->nodes[w->r->order[w->at[k]]].measures == n->measures)
            return false;
    return n->job.weight >= weight / 2 && n->job.weight <= weight * 2;
}

/* The first that is ready, and what may go on beside it, in their order; none: all is done. */
static void fill(wave *w) {
    const int most = RT_MAX(w->hooks->at_once, 1);
    w->n = 0;
    for (int at = 0; at < w->r->count && w->n < most; at++) {
        const rt_recipe_node *n = &w->r->nodes[w->r->order[at]];
        if (n->job.wanted && is_ready(w->r, n) && (w->n == 0 || fits(w, n)))
            w->at[w->n++] = at;
    }
}

static rt_status run_wave(wave *w, pace *p) {
    const rt_recipe_hooks *h = w->hooks;
    const double now = rt_time_now();
    for (int k = 0; k < w->n && h->progress; k++)
        h->progress(h->user, w->at[k], now - p->start, seconds_left(p, now));
    if (h->spread)
        RT_TRY(h->spread(w->n, run_command, w));
    for (int k = 0; k < w->n; k++) {
        const int i = w->r->order[w->at[k]];
        if (!h->spread)
            RT_TRY(run_command(w, k));
        RT_TRY(rt_measured_add(w->r, i));
        p->worked += w->r->nodes[i].job.weight;
        p->left -= w->r->nodes[i].job.weight;
    }
    return rt_recipe_write_results(w->r);
}

rt_status rt_recipe_run(rt_recipe *r, const rt_recipe_hooks *hooks) {
    rt_lock *lock = NULL;
    rt_status st;
    pace p = begin_pace(r, hooks->cpu);
    wave w = {.r = r, .hooks = hooks};
    RT_TRY(rt_recipe_find_data(r));
    for (int i = 0; i < r->count && hooks->check; i++)
        if (r->nodes[r->order[i]].job.wanted)
            RT_TRY(hooks->check(hooks->user, &r->nodes[r->order[i]].job));
    RT_TRY(rt_dir_make(r->dir));
    RT_TRY(rt_lock_take(&lock, r->dir)); /* two that write one measured.json would lose lines */
    RT_TRY_GOTO(rt_calloc(&w.at, (size_t)RT_MAX(hooks->at_once, 1), sizeof *w.at));
    for (fill(&w); w.n > 0; fill(&w))
        RT_TRY_GOTO(run_wave(&w, &p));
    st = rt_recipe_write_results(r);
done:
    rt_free(w.at);
    rt_lock_release(&lock);
    return st;
}
