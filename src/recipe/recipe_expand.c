/*
 * recipe_expand.c - from stages with loops to a list of commands.
 *
 *   {name: kd, verb: distill, each: {seed: 1..3, t: [1, 4]}, with: {teacher: "@teacher", temperature: "${t}", seed: "${seed}"}}
 *
 * becomes six commands, and {name: ae, like: kd, with: {method: ae-kd}} six more that differ in one flag. The run of
 * each is <dir>/runs/kd-1-1, kd-1-4, ... "@teacher" is the run of stage `teacher` that has the same values for the
 * loops both stages have; there must be exactly one. A loop may depend on those before it, {seed: 1..4, t:
 * "${t_${seed}}"}. In `runs` a loop can be given another value, so that two runs of one stage meet: ["@labels",
 * "@labels seed=4"].
 *
 * Where data and results are is no part of a command's key: in the words that are hashed, both directories are
 * marks (one byte each), which are replaced in the words that are run.
 */
#include "base/alloc.h"
#include "base/sha256.h"
#include "recipe/recipe_int.h"
#include <stdio.h>
#include <string.h>

enum { JOBS_MAX = 20000, VALUES_MAX = 4096, LIKES_MAX = 4 };

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
    return strcmp(name, "data") == 0    ? RT_MARK_DATA
           : strcmp(name, "scale") == 0 ? r->scale_name
           : strcmp(name, "dir") == 0   ? RT_MARK_DIR
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
    st = rt_str_status(&now);
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

static rt_status make_room(rt_recipe *r, values *out, int64_t n) {
    RT_FAIL_IF(n > VALUES_MAX, RT_E_INPUT, "recipe %s: a loop of more than %d values", r->name, VALUES_MAX);
    out->n = 0;
    return rt_arena_alloc(&r->arena, &out->v, (size_t)(n + 1) * sizeof *out->v);
}

static rt_status add_value(rt_recipe *r, values *out, const char *text, size_t n) {
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

static rt_status list_values(rt_recipe *r, const rt_binding *at, rt_jval v, values *out) {
    const int64_t n = RT_MAX(rt_jval_len(v), 0);
    RT_TRY(make_room(r, out, n));
    for (int64_t i = 0; i < n; i++) {
        const char *item = "";
        RT_FAIL_IF(!rt_jval_str(rt_jval_at(v, i), &item), RT_E_INPUT, "recipe %s: a loop over lists",
                   r->name);
        RT_TRY(filled(r, at, item, &item));
        RT_TRY(add_value(r, out, item, strlen(item)));
    }
    return RT_OK;
}

static rt_status range_values(rt_recipe *r, const char *text, int64_t first, int64_t last, values *out) {
    RT_FAIL_IF(last < first, RT_E_INPUT,
               "recipe %s: the loop '%s' has no value; wanted the smaller number first", r->name, text);
    const uint64_t more = (uint64_t)last - (uint64_t)first;
    RT_TRY(make_room(r, out, more < VALUES_MAX ? (int64_t)more + 1 : VALUES_MAX + 1));
    for (uint64_t i = 0; i <= more; i++) {
        char number[32];
        const int n = snprintf(number, sizeof number, "%lld", (long long)(first + (int64_t)i));
        RT_TRY(add_value(r, out, number, (size_t)n));
    }
    return RT_OK;
}

/* "1..3", "a, b, c", or a list. */
static rt_status loop_values(rt_recipe *r, const rt_binding *at, rt_jval v, values *out) {
    const char *text;
    if (!rt_jval_str(v, &text))
        return list_values(r, at, v, out);
    RT_TRY(filled(r, at, text, &text));
    int64_t first, last, commas = 0;
    const char *dots = strstr(text, "..");
    if (dots && rt_parse_i64(text, (size_t)(dots - text), &first) &&
        rt_parse_i64(dots + 2, strlen(dots + 2), &last))
        return range_values(r, text, first, last, out);
    for (const char *s = text; *s; s++)
        commas += *s == ',';
    RT_TRY(make_room(r, out, commas + 1));
    for (const char *s = text; *s;) {
        size_t n = strcspn(s, ",");
        RT_TRY(add_value(r, out, s, n));
        s += n + (s[n] == ',');
    }
    return RT_OK;
}

/* ---- commands ---- */

/* A stage, the one it is like, the one that is like, and so on: keys of the first that has them count. */
typedef struct stage {
    rt_jval part[LIKES_MAX];
    int n;
} stage;

static rt_jval stage_get(const stage *s, const char *key) {
    rt_jval v = rt_jval_get(s->part[0], key);
    for (int i = 1; i < s->n && !v; i++)
        v = rt_jval_get(s->part[i], key);
    return v;
}

static const char *stage_text(const stage *s, const char *key) {
    const char *text = "";
    rt_jval_str(stage_get(s, key), &text);
    return text;
}

static const char *stage_name(const stage *s) {
    return rt_jval_text(s->part[0], "name");
}

/* Stages are like earlier ones only, so that this ends. */
static rt_status find_stage(const rt_recipe *r, rt_jval stages, int64_t at, stage *out) {
    const char *like;
    *out = (stage){.part = {rt_jval_at(stages, at)}, .n = 1};
    while (*(like = rt_jval_text(out->part[out->n - 1], "like"))) {
        int64_t i = 0;
        while (i < at && strcmp(rt_jval_text(rt_jval_at(stages, i), "name"), like) != 0)
            i++;
        RT_FAIL_IF(i == at, RT_E_INPUT, "recipe %s: stage '%s' is like '%s', which is no earlier stage",
                   r->name, stage_name(out), like);
        RT_FAIL_IF(out->n == LIKES_MAX, RT_E_INPUT,
                   "recipe %s: stage '%s' is like one that is like one, and so on, more than %d in all",
                   r->name, stage_name(out), LIKES_MAX);
        out->part[out->n++] = rt_jval_at(stages, i);
        at = i;
    }
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
    **out = (rt_recipe_node){.job = {.weight = 1}, .measures = -1};
    return RT_OK;
}

/* A word with marks, and as it is run. */
static rt_status add_word(rt_recipe *r, rt_recipe_node *node, const char *text) {
    enum { WORDS_MAX = 256 };
    rt_recipe_job *j = &node->job;
    RT_FAIL_IF(j->argc == WORDS_MAX, RT_E_INPUT, "recipe %s: %s has more than %d words", r->name, j->name,
               WORDS_MAX);
    if (!j->argv) {
        RT_TRY(rt_arena_alloc(&r->arena, &j->argv, WORDS_MAX * sizeof *j->argv));
        RT_TRY(rt_arena_alloc(&r->arena, &node->words, WORDS_MAX * sizeof *node->words));
    }
    RT_TRY(rt_arena_strdup(&r->arena, &node->words[j->argc], text));
    RT_TRY(rt_recipe_unmark(r, text, &j->argv[j->argc]));
    j->argc++;
    return RT_OK;
}

/* The text with the directories that its marks stand for. */
rt_status rt_recipe_unmark(rt_recipe *r, const char *text, const char **out) {
    static const char marks[] = RT_MARK_DATA RT_MARK_DIR;
    rt_str s;
    rt_str_init(&s);
    while (*text) {
        const size_t n = strcspn(text, marks);
        rt_str_append_n(&s, text, n);
        text += n;
        if (*text)
            rt_str_append(&s, *text++ == RT_MARK_DATA[0] ? r->data_dir : r->dir);
    }
    rt_status st = rt_str_status(&s);
    if (st == RT_OK)
        st = rt_arena_strdup(&r->arena, out, rt_str_text(&s));
    rt_str_deinit(&s);
    return st;
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
        rt_str_append(out, r->nodes[i].marked_dir);
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
    st = add_word(r, node, rt_str_text(&word));
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

/* A flag's value, and the farthest part that has it. */
static rt_jval stage_flag(const stage *s, const char *key, int *farthest) {
    rt_jval first = NULL;
    for (int i = 0; i < s->n; i++) {
        rt_jval v = rt_jval_get(rt_jval_get(s->part[i], "with"), key);
        first = first ? first : v;
        *farthest = v ? i : *farthest;
    }
    return first;
}

/* Flags of the stages it is like, with the stage's own values, then those that the stage adds. */
static rt_status add_flags(rt_recipe *r, rt_recipe_node *node, const stage *s) {
    for (int k = s->n - 1; k >= 0; k--) {
        rt_jval with = rt_jval_get(s->part[k], "with");
        for (int64_t i = 0; i < rt_jval_len(with); i++) {
            int farthest = k;
            rt_jval v = stage_flag(s, rt_jval_key(with, i), &farthest);
            if (farthest == k)
                RT_TRY(add_values(r, node, rt_jval_key(with, i), v));
        }
    }
    return RT_OK;
}

static void set_loop(rt_binding *at, const char *name, const char *value) {
    int i = 0;
    while (i < at->n && strcmp(at->name[i], name) != 0)
        i++;
    at->name[i] = name;
    at->value[i] = value;
    at->n = RT_MAX(at->n, i + 1);
}

/* The loops of "@stage name=value name=value": those of the command, and these instead. */
static rt_status read_loops(rt_recipe *r, const char *text, rt_binding *at) {
    for (const char *s = text + strcspn(text, " "); *s;) {
        char *name, *value;
        s += strspn(s, " ");
        const size_t n = strcspn(s, "= "), m = s[n] == '=' ? strcspn(s + n + 1, " ") : 0;
        if (!*s)
            break;
        RT_FAIL_IF(
            n == 0 || m == 0 || at->n == RT_RECIPE_LOOPS, RT_E_INPUT,
            "recipe %s: '%s': wanted \"@stage\", or with values of at most %d loops: \"@stage loop=value\"",
            r->name, text, RT_RECIPE_LOOPS);
        RT_TRY(rt_arena_alloc(&r->arena, &name, n + m + 2));
        memcpy(name, s, n + 1 + m);
        name[n] = name[n + 1 + m] = 0;
        value = name + n + 1;
        set_loop(at, name, value);
        s += n + 1 + m;
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
        rt_binding at = node->at;
        RT_TRY(filled(r, &node->at, text, &text));
        RT_TRY(read_loops(r, text, &at));
        const int before = *n;
        for (int k = -1; (k = find_run(r, text + 1, strcspn(text + 1, " "), &at, k + 1)) >= 0;)
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
        rt_sha256_update(&h, node->words[i], strlen(node->words[i]) + 1);
    for (int i = 0; i < node->nneeds; i++)
        rt_sha256_update(&h, r->nodes[node->needs[i]].job.key, 64);
    rt_sha256_final(&h, digest);
    rt_sha256_hex(digest, node->job.key);
}

static bool makes_run(const char *verb) {
    static const char *const verbs[] = {"train", "distill", "average", "gather"};
    for (size_t i = 0; i < RT_COUNT(verbs); i++)
        if (strcmp(verb, verbs[i]) == 0)
            return true;
    return false;
}

static rt_status stage_number(const rt_recipe *r, const stage *s, const char *key, double otherwise,
                              double *out) {
    const char *text = stage_text(s, key);
    *out = otherwise;
    RT_FAIL_IF(*text && (!rt_parse_f64(text, strlen(text), false, out) || *out < 0), RT_E_INPUT,
               "recipe %s: %s: %s is '%s', wanted a number from 0 on", r->name, stage_name(s), key, text);
    return RT_OK;
}

/* One command: of the stage with these loops, and for an evaluation of this run. */
static rt_status add_job(rt_recipe *r, const stage *s, const rt_binding *at, const int *runs, int nruns) {
    rt_recipe_node *node = NULL;
    RT_TRY(new_node(r, &node));
    rt_recipe_job *j = &node->job;
    node->at = *at;
    j->stage = stage_name(s);
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
        node->measures = runs[0];
    }
    for (char *c = name.p; c && *c; c++)
        if (strchr("/,: \"\\", *c) || (unsigned char)*c < ' ')
            *c = '_';
    RT_TRY_GOTO(rt_str_status(&name));
    RT_TRY_GOTO(rt_arena_strdup(&r->arena, &j->name, rt_str_text(&name)));
    RT_TRY_GOTO(stage_number(r, s, "weight", 1, &j->weight));
    RT_TRY_GOTO(stage_number(r, s, "turn", 0, &node->turn));
    RT_TRY_GOTO(add_word(r, node, j->verb));
    for (int i = 0; i < nruns; i++) {
        RT_TRY_GOTO(add_word(r, node, r->nodes[runs[i]].marked_dir));
        RT_TRY_GOTO(add_need(r, node, runs[i]));
    }
    RT_TRY_GOTO(add_flags(r, node, s));
    if (makes_run(j->verb)) {
        rt_str_clear(&name);
        rt_str_appendf(&name, "--out=" RT_MARK_DIR "/runs/%s", j->name);
        RT_TRY_GOTO(rt_str_status(&name));
        RT_TRY_GOTO(add_word(r, node, rt_str_text(&name)));
        j->dir = strchr(j->argv[j->argc - 1], '=') + 1;
        node->marked_dir = strchr(node->words[j->argc - 1], '=') + 1;
    }
    make_key(r, node);
    r->count++;
done:
    rt_str_deinit(&name);
    return st;
}

typedef struct expansion {
    rt_recipe *r;
    const stage *s;
    rt_jval each, runs;
    rt_binding at; /* loops that have a value by now */
    int *list;     /* room for the runs a command is given */
} expansion;

static rt_status add_commands(expansion *x) {
    const char *name = stage_name(x->s);
    rt_recipe_node probe = {.at = x->at, .job = {.stage = name}};
    int n = 0;
    RT_TRY(list_runs(x->r, &probe, x->runs, x->list, &n));
    if (strcmp(stage_text(x->s, "verb"), "eval") != 0)
        return add_job(x->r, x->s, &x->at, x->list, n);
    RT_FAIL_IF(n == 0, RT_E_INPUT, "recipe %s: %s: an evaluation needs 'runs'", x->r->name, name);
    for (int i = 0; i < n; i++)
        RT_TRY(add_job(x->r, x->s, &x->at, &x->list[i], 1));
    return RT_OK;
}

/* Commands for all values of the loops that have none yet. */
static rt_status expand_loops(expansion *x) {
    values v;
    const int k = x->at.n;
    if (k == RT_MAX(rt_jval_len(x->each), 0))
        return add_commands(x);
    const char *name = rt_jval_key(x->each, k);
    RT_TRY(loop_values(x->r, &x->at, rt_jval_get(x->each, name), &v));
    for (int i = 0; i < v.n; i++) {
        x->at.name[k] = name;
        x->at.value[k] = v.v[i];
        x->at.place[k] = i;
        x->at.n = k + 1;
        RT_TRY(expand_loops(x));
        x->at.n = k;
    }
    return RT_OK;
}

static rt_status expand_stage(rt_recipe *r, const stage *s) {
    expansion x = {.r = r, .s = s, .each = stage_get(s, "each"), .runs = stage_get(s, "runs")};
    const char *name = stage_name(s), *verb = stage_text(s, "verb");
    RT_FAIL_IF(!*name || name_length(name) != strlen(name) || !*verb, RT_E_INPUT,
               "recipe %s: stage '%s' needs a name of a-z, 0-9, '-' and a verb", r->name, name);
    bool on;
    RT_TRY(rt_recipe_is_on(r, s->part[0], &on));
    if (!on)
        return RT_OK;
    for (int i = 0; i < r->count; i++) /* what is found by a stage's name are commands of earlier ones only */
        RT_FAIL_IF(strcmp(r->nodes[i].job.stage, name) == 0, RT_E_INPUT,
                   "recipe %s: two stages are called '%s'", r->name, name);
    RT_FAIL_IF(rt_jval_len(x.each) > RT_RECIPE_LOOPS, RT_E_INPUT, "recipe %s: %s: more than %d loops",
               r->name, name, RT_RECIPE_LOOPS);
    const size_t names = rt_jval_len(x.runs) > 0 ? (size_t)rt_jval_len(x.runs) : 1;
    RT_TRY(rt_arena_alloc(&r->arena, &x.list, names * (size_t)(r->count + 1) * sizeof *x.list));
    return expand_loops(&x);
}

rt_status rt_recipe_expand(rt_recipe *r) {
    rt_jval stages = rt_jval_get(r->root, "stages");
    RT_FAIL_IF(rt_jval_len(stages) < 1, RT_E_INPUT, "recipe %s: no stages", r->name);
    for (int64_t i = 0; i < rt_jval_len(stages); i++) {
        stage s;
        RT_TRY(find_stage(r, stages, i, &s));
        RT_TRY(expand_stage(r, &s));
    }
    return RT_OK;
}
