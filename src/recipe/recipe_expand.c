/*
 * recipe_expand.c - from stages with loops to a list of commands.
 *
 *   {name: kd, verb: distill, each: {seed: 1..3, t: [1, 4]}, with: {teacher: "@teacher", temperature: "${t}", seed: "${seed}"}}
 *
 * becomes six commands, and {name: ae, like: kd, with: {method: ae-kd}} six more that differ in one flag. The run
 * of each is <dir>/runs/kd-1-1, kd-1-4, ... "@teacher" is the run of stage `teacher` that has the same values for the
 * loops both stages have; there must be exactly one.
 */
#include "base/alloc.h"
#include "base/sha256.h"
#include "recipe/recipe_int.h"
#include <stdio.h>
#include <string.h>

enum { JOBS_MAX = 20000, VALUES_MAX = 4096 };

const char *rt_jval_text(rt_jval object, const char *key) {
    const char *s = "";
    rt_jval_str(rt_jval_get(object, key), &s);
    return s;
}

bool rt_binding_agrees(const rt_binding *a, const rt_binding *b) {
    for (int i = 0; i < a->n; i++)
        for (int j = 0; j < b->n; j++)
            if (strcmp(a->name[i], b->name[j]) == 0 && strcmp(a->value[i], b->value[j]) != 0)
                return false;
    return true;
}

/* ---- variables ---- */

static const char *lookup(const rt_recipe *r, const rt_binding *at, const char *name) {
    for (int i = 0; i < at->n; i++)
        if (strcmp(at->name[i], name) == 0)
            return at->value[i];
    const char *s = NULL;
    if (rt_jval_str(rt_jval_get(rt_jval_get(r->scale, "vars"), name), &s) ||
        rt_jval_str(rt_jval_get(rt_jval_get(r->root, "vars"), name), &s))
        return s;
    return strcmp(name, "data") == 0    ? r->data_dir
           : strcmp(name, "scale") == 0 ? r->scale_name
           : strcmp(name, "dir") == 0   ? r->dir
                                        : NULL;
}

/* Replaces the first innermost "${name}" of the text, so that names can be made of values: "${epochs_${set}}". */
static rt_status fill_one(rt_recipe *r, const rt_binding *at, const rt_str *text, rt_str *out, bool *found) {
    const char *s = rt_str_text(text), *close = strchr(s, '}'), *open = NULL;
    for (const char *t = s; close && t < close; t++)
        if (t[0] == '$' && t[1] == '{')
            open = t;
    *found = open != NULL;
    RT_FAIL_IF(!open && strstr(s, "${"), RT_E_INPUT, "recipe %s: '%s' has '${' without a name and '}'",
               r->name, s);
    if (!open)
        return RT_OK;
    char name[64];
    RT_FAIL_IF(close - open - 2 >= (ptrdiff_t)sizeof name, RT_E_INPUT,
               "recipe %s: '%s': the name is too long", r->name, s);
    snprintf(name, sizeof name, "%.*s", (int)(close - open - 2), open + 2);
    const char *value = lookup(r, at, name);
    RT_FAIL_IF(!value, RT_E_INPUT, "recipe %s: '%s' uses the variable '%s', which has no value at scale %s",
               r->name, s, name, r->scale_name);
    rt_str_append_n(out, s, (size_t)(open - s));
    rt_str_append(out, value);
    rt_str_append(out, close + 1);
    return rt_str_status(out);
}

/* Values may hold variables; a circle ends after so many. */
rt_status rt_recipe_fill(rt_recipe *r, const rt_binding *at, const char *text, rt_str *out) {
    enum { REPLACEMENTS_MAX = 64 };
    rt_str now, next;
    bool found = true;
    rt_status st = RT_OK;
    rt_str_init(&now);
    rt_str_init(&next);
    rt_str_append(&now, text);
    for (int i = 0; found && st == RT_OK; i++) {
        rt_str_clear(&next);
        st =
            i < REPLACEMENTS_MAX
                ? fill_one(r, at, &now, &next, &found)
                : rt_error_set(RT_E_INPUT, __FILE__, __LINE__,
                               "recipe %s: variables in '%s' refer to each other in a circle", r->name, text);
        if (found && st == RT_OK) {
            rt_str swap = now;
            now = next;
            next = swap;
        }
    }
    rt_str_append(out, rt_str_text(&now));
    rt_str_deinit(&now);
    rt_str_deinit(&next);
    return st == RT_OK ? rt_str_status(out) : st;
}

static rt_status filled(rt_recipe *r, const rt_binding *at, const char *text, const char **out) {
    rt_str s;
    rt_str_init(&s);
    rt_status st = rt_recipe_fill(r, at, text, &s);
    if (st == RT_OK)
        st = rt_arena_strdup(&r->arena, out, rt_str_text(&s));
    rt_str_deinit(&s);
    return st;
}

/* ---- loops ---- */

typedef struct values {
    const char **v;
    int n;
} values;

static rt_status add_value(rt_recipe *r, values *out, const char *text, size_t n) {
    RT_FAIL_IF(out->n == VALUES_MAX, RT_E_INPUT, "recipe %s: a loop of more than %d values", r->name,
               VALUES_MAX);
    char *copy;
    while (n && *text == ' ')
        text++, n--;
    while (n && text[n - 1] == ' ')
        n--;
    RT_TRY(rt_arena_alloc(&r->arena, &copy, n + 1));
    memcpy(copy, text, n);
    out->v[out->n++] = copy;
    return RT_OK;
}

/* "1..3", "a, b, c", or a list. */
static rt_status loop_values(rt_recipe *r, const rt_binding *at, rt_jval v, values *out) {
    const char *text;
    RT_TRY(rt_arena_alloc(&r->arena, &out->v, VALUES_MAX * sizeof *out->v));
    if (!rt_jval_str(v, &text)) {
        for (int64_t i = 0; i < rt_jval_len(v); i++) {
            const char *item = "";
            RT_FAIL_IF(!rt_jval_str(rt_jval_at(v, i), &item), RT_E_INPUT, "recipe %s: a loop over lists",
                       r->name);
            RT_TRY(filled(r, at, item, &item));
            RT_TRY(add_value(r, out, item, strlen(item)));
        }
        return RT_OK;
    }
    RT_TRY(filled(r, at, text, &text));
    int64_t first, last;
    const char *dots = strstr(text, "..");
    if (dots && rt_parse_i64(text, (size_t)(dots - text), &first) &&
        rt_parse_i64(dots + 2, strlen(dots + 2), &last)) {
        for (int64_t i = first; i <= last; i++) {
            char number[32];
            int n = snprintf(number, sizeof number, "%lld", (long long)i);
            RT_TRY(add_value(r, out, number, (size_t)n));
            if (i == INT64_MAX)
                break;
        }
        return RT_OK;
    }
    for (const char *s = text; *s;) {
        size_t n = strcspn(s, ",");
        RT_TRY(add_value(r, out, s, n));
        s += n + (s[n] == ',');
    }
    return RT_OK;
}

/* ---- commands ---- */

/* A stage, and the one it is like, whose keys stand in for those it does not have; NULL: none. */
typedef struct stage {
    rt_jval own, base;
} stage;

static rt_jval stage_get(const stage *s, const char *key) {
    rt_jval v = rt_jval_get(s->own, key);
    return v ? v : rt_jval_get(s->base, key);
}

static const char *stage_text(const stage *s, const char *key) {
    return rt_jval_text(rt_jval_get(s->own, key) ? s->own : s->base, key);
}

static rt_status find_base(const rt_recipe *r, rt_jval stages, int64_t at, stage *out) {
    *out = (stage){.own = rt_jval_at(stages, at)};
    const char *like = rt_jval_text(out->own, "like");
    for (int64_t i = 0; *like && i < at && !out->base; i++)
        if (strcmp(rt_jval_text(rt_jval_at(stages, i), "name"), like) == 0)
            out->base = rt_jval_at(stages, i);
    RT_FAIL_IF(*like && (!out->base || *rt_jval_text(out->base, "like")), RT_E_INPUT,
               "recipe %s: stage '%s' is like '%s', which is %s", r->name, rt_jval_text(out->own, "name"),
               like, out->base ? "like another itself" : "no earlier stage");
    return RT_OK;
}

static rt_status new_node(rt_recipe *r, rt_recipe_node **out) {
    RT_FAIL_IF(r->count >= JOBS_MAX, RT_E_INPUT, "recipe %s: more than %d commands", r->name, JOBS_MAX);
    if (r->count == r->cap) {
        int cap = r->cap ? 2 * r->cap : 64;
        RT_TRY(rt_realloc(&r->nodes, (size_t)r->cap * sizeof *r->nodes, (size_t)cap * sizeof *r->nodes));
        r->cap = cap;
    }
    *out = &r->nodes[r->count];
    **out = (rt_recipe_node){.job = {.weight = 1}};
    return RT_OK;
}

static rt_status add_word(rt_recipe *r, rt_recipe_job *j, const char *text) {
    enum { WORDS_MAX = 256 };
    RT_FAIL_IF(j->argc == WORDS_MAX, RT_E_INPUT, "recipe %s: %s has more than %d words", r->name, j->name,
               WORDS_MAX);
    if (!j->argv)
        RT_TRY(rt_arena_alloc(&r->arena, &j->argv, WORDS_MAX * sizeof *j->argv));
    return rt_arena_strdup(&r->arena, &j->argv[j->argc++], text);
}

/* Room for 4, 8, 16, ...: most commands need one or two, and there may be thousands of them. */
static rt_status add_need(rt_recipe *r, rt_recipe_node *n, int need) {
    for (int i = 0; i < n->nneeds; i++)
        if (n->needs[i] == need)
            return RT_OK;
    if (n->nneeds == 0 || (n->nneeds >= 4 && (n->nneeds & (n->nneeds - 1)) == 0)) {
        const int *old = n->needs;
        const size_t room = n->nneeds ? 2 * (size_t)n->nneeds : 4;
        RT_TRY(rt_arena_alloc(&r->arena, &n->needs, room * sizeof *n->needs));
        if (old)
            memcpy(n->needs, old, (size_t)n->nneeds * sizeof *n->needs);
    }
    n->needs[n->nneeds++] = need;
    return RT_OK;
}

static size_t name_length(const char *s) {
    size_t n = 0;
    while ((s[n] >= 'a' && s[n] <= 'z') || (s[n] >= '0' && s[n] <= '9') || s[n] == '-' || s[n] == '_')
        n++;
    return n;
}

/* The next command after `from` that makes a run of the stage named s[0..n) and agrees with `at`; -1: none. */
static int find_run(const rt_recipe *r, const char *s, size_t n, const rt_binding *at, int from) {
    for (int i = from; i < r->count; i++) {
        const rt_recipe_job *j = &r->nodes[i].job;
        if (j->dir && strlen(j->stage) == n && memcmp(j->stage, s, n) == 0 &&
            rt_binding_agrees(at, &r->nodes[i].at))
            return i;
    }
    return -1;
}

/* "@stage" replaced by directories. */
static rt_status resolve(rt_recipe *r, rt_recipe_node *node, const char *text, rt_str *out) {
    for (const char *s = text; *s;) {
        size_t plain = strcspn(s, "@");
        rt_str_append_n(out, s, plain);
        s += plain;
        if (!*s)
            break;
        size_t n = name_length(s + 1);
        int i = find_run(r, s + 1, n, &node->at, 0);
        RT_FAIL_IF(i < 0, RT_E_INPUT, "recipe %s: %s: '%s' names no run of an earlier stage", r->name,
                   node->job.name, text);
        RT_FAIL_IF(find_run(r, s + 1, n, &node->at, i + 1) >= 0, RT_E_INPUT,
                   "recipe %s: %s: '%s' could be several runs; the stage needs their loops, too", r->name,
                   node->job.name, text);
        RT_TRY(add_need(r, node, i));
        rt_str_append(out, r->nodes[i].job.dir);
        s += 1 + n;
    }
    return rt_str_status(out);
}

static rt_status add_flag(rt_recipe *r, rt_recipe_node *node, const char *key, const char *value) {
    const char *text;
    rt_str word;
    rt_str_init(&word);
    rt_status st;
    RT_TRY_GOTO(filled(r, &node->at, value, &text));
    rt_str_appendf(&word, "--%s=", key);
    RT_TRY_GOTO(resolve(r, node, text, &word));
    for (char *s = word.p + 2; *s != '='; s++)
        if (*s == '_')
            *s = '-';
    st = add_word(r, &node->job, rt_str_text(&word));
done:
    rt_str_deinit(&word);
    return st;
}

/* A flag, or one for each text of a list. */
static rt_status add_values(rt_recipe *r, rt_recipe_node *node, const char *key, rt_jval v) {
    const char *text;
    if (rt_jval_str(v, &text))
        return add_flag(r, node, key, text);
    for (int64_t k = 0; k < rt_jval_len(v); k++) {
        RT_FAIL_IF(!rt_jval_str(rt_jval_at(v, k), &text), RT_E_INPUT,
                   "recipe %s: %s: '%s' must be a text or a list of texts", r->name, node->job.name, key);
        RT_TRY(add_flag(r, node, key, text));
    }
    return RT_OK;
}

/* Flags of the stage it is like, with the stage's own values, then those the stage adds. */
static rt_status add_flags(rt_recipe *r, rt_recipe_node *node, const stage *s) {
    rt_jval base = rt_jval_get(s->base, "with"), own = rt_jval_get(s->own, "with");
    for (int64_t i = 0; i < rt_jval_len(base); i++) {
        const char *key = rt_jval_key(base, i);
        rt_jval v = rt_jval_get(own, key);
        RT_TRY(add_values(r, node, key, v ? v : rt_jval_get(base, key)));
    }
    for (int64_t i = 0; i < rt_jval_len(own); i++) {
        const char *key = rt_jval_key(own, i);
        if (!rt_jval_get(base, key))
            RT_TRY(add_values(r, node, key, rt_jval_get(own, key)));
    }
    return RT_OK;
}

/* All runs that `runs` of a stage names and that agree with the loops. */
static rt_status list_runs(rt_recipe *r, rt_recipe_node *node, rt_jval runs, int *out, int *n) {
    *n = 0;
    for (int64_t i = 0; i < rt_jval_len(runs); i++) {
        const char *text = "";
        RT_FAIL_IF(!rt_jval_str(rt_jval_at(runs, i), &text) || text[0] != '@', RT_E_INPUT,
                   "recipe %s: %s: 'runs' is a list of \"@stage\"", r->name, node->job.stage);
        const int before = *n;
        for (int k = -1; (k = find_run(r, text + 1, strlen(text + 1), &node->at, k + 1)) >= 0;)
            out[(*n)++] = k;
        RT_FAIL_IF(*n == before, RT_E_INPUT, "recipe %s: %s: '%s' names no run of an earlier stage", r->name,
                   node->job.stage, text);
    }
    return RT_OK;
}

rt_status rt_recipe_is_on(rt_recipe *r, rt_jval object, bool *on) {
    rt_str text;
    rt_str_init(&text);
    rt_status st = rt_recipe_fill(r, &(rt_binding){.n = 0}, rt_jval_text(object, "when"), &text);
    *on = !rt_jval_get(object, "when") || text.len > 0;
    rt_str_deinit(&text);
    return st;
}

static void make_key(const rt_recipe *r, rt_recipe_node *node) {
    rt_sha256 h;
    uint8_t digest[32];
    rt_sha256_init(&h);
    for (int i = 0; i < node->job.argc; i++)
        rt_sha256_update(&h, node->job.argv[i], strlen(node->job.argv[i]) + 1);
    for (int i = 0; i < node->nneeds; i++)
        rt_sha256_update(&h, r->nodes[node->needs[i]].job.key, 64);
    rt_sha256_final(&h, digest);
    rt_sha256_hex(digest, node->job.key);
}

static bool makes_run(const char *verb) {
    return strcmp(verb, "train") == 0 || strcmp(verb, "distill") == 0 || strcmp(verb, "average") == 0;
}

/* One command: of the stage with these loops, and for an evaluation of this run. */
static rt_status add_job(rt_recipe *r, const stage *s, const rt_binding *at, const int *runs, int nruns) {
    rt_recipe_node *node = NULL;
    RT_TRY(new_node(r, &node));
    rt_recipe_job *j = &node->job;
    node->at = *at;
    j->stage = rt_jval_text(s->own, "name");
    j->verb = stage_text(s, "verb");
    rt_str name;
    rt_str_init(&name);
    rt_status st;
    rt_str_append(&name, j->stage);
    for (int i = 0; i < at->n; i++)
        rt_str_appendf(&name, "-%s", at->value[i]);
    if (strcmp(j->verb, "eval") == 0) {
        rt_str_appendf(&name, ".%s", r->nodes[runs[0]].job.name);
        node->at = r->nodes[runs[0]].at;
    }
    for (char *c = name.p; c && *c; c++)
        if (*c == '/' || *c == ',' || *c == ':' || *c == ' ')
            *c = '_';
    RT_TRY_GOTO(rt_arena_strdup(&r->arena, &j->name, rt_str_text(&name)));
    const char *weight = stage_text(s, "weight");
    if (*weight && (!rt_parse_f64(weight, strlen(weight), false, &j->weight) || j->weight < 0))
        RT_FAIL_GOTO(RT_E_INPUT, "recipe %s: %s: weight is '%s', wanted a number", r->name, j->stage, weight);
    RT_TRY_GOTO(add_word(r, j, j->verb));
    for (int i = 0; i < nruns; i++) {
        RT_TRY_GOTO(add_word(r, j, r->nodes[runs[i]].job.dir));
        RT_TRY_GOTO(add_need(r, node, runs[i]));
    }
    RT_TRY_GOTO(add_flags(r, node, s));
    if (makes_run(j->verb)) {
        rt_str_clear(&name);
        rt_str_appendf(&name, "%s/runs/%s", r->dir, j->name);
        RT_TRY_GOTO(rt_arena_strdup(&r->arena, &j->dir, rt_str_text(&name)));
        rt_str_clear(&name);
        rt_str_appendf(&name, "--out=%s", j->dir);
        RT_TRY_GOTO(add_word(r, j, rt_str_text(&name)));
    }
    make_key(r, node);
    r->count++;
done:
    rt_str_deinit(&name);
    return st;
}

static rt_status expand_stage(rt_recipe *r, const stage *s) {
    rt_jval each = stage_get(s, "each");
    rt_binding at = {.n = 0};
    values loops[RT_RECIPE_LOOPS];
    int64_t nloops = rt_jval_len(each) < 0 ? 0 : rt_jval_len(each), turn[RT_RECIPE_LOOPS] = {0};
    const char *name = rt_jval_text(s->own, "name"), *verb = stage_text(s, "verb");
    RT_FAIL_IF(!*name || name_length(name) != strlen(name) || !*verb, RT_E_INPUT,
               "recipe %s: stage '%s' needs a name of a-z, 0-9, '-' and a verb", r->name, name);
    bool on;
    RT_TRY(rt_recipe_is_on(r, s->own, &on));
    if (!on)
        return RT_OK;
    for (int i = 0; i < r->count; i++) /* what is found by a stage's name are commands of earlier ones only */
        RT_FAIL_IF(strcmp(r->nodes[i].job.stage, name) == 0, RT_E_INPUT,
                   "recipe %s: two stages are called '%s'", r->name, name);
    RT_FAIL_IF(nloops > RT_RECIPE_LOOPS, RT_E_INPUT, "recipe %s: %s: more than %d loops", r->name, name,
               RT_RECIPE_LOOPS);
    at.n = (int)nloops;
    for (int i = 0; i < at.n; i++) {
        at.name[i] = rt_jval_key(each, i);
        loops[i] = (values){.n = 0};
        RT_TRY(loop_values(r, &(rt_binding){.n = 0}, rt_jval_get(each, at.name[i]), &loops[i]));
        if (loops[i].n == 0)
            return RT_OK;
    }
    rt_jval runs = stage_get(s, "runs");
    int *list = NULL, nlist = 0;
    const size_t names = rt_jval_len(runs) > 0 ? (size_t)rt_jval_len(runs) : 1;
    RT_TRY(rt_arena_alloc(&r->arena, &list, names * (size_t)(r->count + 1) * sizeof *list));
    for (;;) {
        for (int i = 0; i < at.n; i++)
            at.value[i] = loops[i].v[turn[i]];
        rt_recipe_node probe = {.at = at, .job = {.stage = name}};
        RT_TRY(list_runs(r, &probe, runs, list, &nlist));
        if (strcmp(verb, "eval") == 0) {
            RT_FAIL_IF(nlist == 0, RT_E_INPUT, "recipe %s: %s: an evaluation needs 'runs'", r->name, name);
            for (int i = 0; i < nlist; i++)
                RT_TRY(add_job(r, s, &at, &list[i], 1));
        } else {
            RT_TRY(add_job(r, s, &at, list, nlist));
        }
        int i = at.n - 1;
        while (i >= 0 && ++turn[i] == loops[i].n)
            turn[i--] = 0;
        if (i < 0)
            return RT_OK;
    }
}

rt_status rt_recipe_expand(rt_recipe *r) {
    rt_jval stages = rt_jval_get(r->root, "stages");
    RT_FAIL_IF(rt_jval_len(stages) < 1, RT_E_INPUT, "recipe %s: no stages", r->name);
    for (int64_t i = 0; i < rt_jval_len(stages); i++) {
        stage s;
        RT_TRY(find_base(r, stages, i, &s));
        RT_TRY(expand_stage(r, &s));
    }
    return RT_OK;
}
