/*
 * recipe_plan.c - which commands are run, and in which order.
 *
 * A command is wanted if it is not finished, or if a wanted command reads its run and that run is not here: in a
 * fresh clone numbers are known but runs are not, and a teacher is trained again only for a student that is missing.
 *
 * Without `order`, commands are run as they stand. With `order: seed` they are run by turn,
 *
 *     turn of its stage + place of its seed in the loop,
 *
 * but no later than the first command that reads from it, and an evaluation right behind the run it measures: rows
 * that tell most come first, the first seed of others before the last seed of all, and a teacher when it is needed.
 * What is run a second time, for its run alone, comes right before the first command that wants it, whatever its turn.
 */
#include "base/file.h"
#include "base/alloc.h"
#include "recipe/recipe_int.h"
#include <stdlib.h>
#include <string.h>

/* ---- order ---- */

static double turn_of(const rt_recipe_node *n, const char *loop) {
    double turn = n->turn;
    for (int i = 0; i < n->at.n; i++)
        if (strcmp(n->at.name[i], loop) == 0)
            turn += n->at.place[i];
    return turn;
}

typedef struct rank {
    double turn;
    int at, node; /* an evaluation is at the run it measures */
} rank;

static void set_turns(const rt_recipe *r, const char *loop, rank *ranks) {
    for (int i = 0; i < r->count; i++)
        ranks[i].turn = turn_of(&r->nodes[i], loop);
    for (int i = r->count - 1; i >= 0; i--) /* what reads from a command stands behind it */
        for (int k = 0; r->nodes[i].measures < 0 && k < r->nodes[i].nneeds; k++) {
            rank *needed = &ranks[r->nodes[i].needs[k]];
            needed->turn = ranks[i].turn < needed->turn ? ranks[i].turn : needed->turn;
        }
    for (int i = 0; i < r->count; i++)
        if (r->nodes[i].measures >= 0) {
            ranks[i].at = r->nodes[i].measures;
            ranks[i].turn = ranks[ranks[i].at].turn;
        }
}

static int compare_ranks(const void *a, const void *b) {
    const rank *x = a, *y = b;
    if (x->turn != y->turn)
        return x->turn < y->turn ? -1 : 1;
    return x->at != y->at ? (x->at < y->at ? -1 : 1) : (x->node > y->node) - (x->node < y->node);
}

static bool is_run_again(const rt_recipe *r, int node) {
    return r->nodes[node].job.done && r->nodes[node].job.wanted;
}

/* What it reads comes first; that is never deeper than there are stages. What is finished does not wait for a run that
 * is made again, and evaluations of that stand behind it. */
static void append(rt_recipe *r, int *n, bool *placed, int node) {
    if (placed[node])
        return;
    placed[node] = true;
    for (int i = 0; i < r->nodes[node].nneeds; i++)
        if (r->nodes[node].job.wanted || !is_run_again(r, r->nodes[node].needs[i]))
            append(r, n, placed, r->nodes[node].needs[i]);
    r->order[(*n)++] = node;
    for (int i = 0; i < r->count && is_run_again(r, node); i++)
        if (r->nodes[i].measures == node)
            append(r, n, placed, i);
}

static rt_status find_order(rt_recipe *r) {
    const char *loop = rt_jval_text(r->root, "order");
    rank *ranks;
    bool *placed;
    int n = 0;
    RT_TRY(rt_arena_alloc(&r->arena, &r->order, (size_t)(r->count + 1) * sizeof *r->order));
    RT_TRY(rt_arena_alloc(&r->arena, &ranks, (size_t)(r->count + 1) * sizeof *ranks));
    RT_TRY(rt_arena_alloc(&r->arena, &placed, (size_t)(r->count + 1) * sizeof *placed));
    for (int i = 0; i < r->count; i++)
        ranks[i] = (rank){.node = i, .at = i};
    if (*loop)
        set_turns(r, loop, ranks);
    qsort(ranks, (size_t)r->count, sizeof *ranks, compare_ranks);
    for (int i = 0; i < r->count;
         i++) { /* what is made again is brought along by another, its evaluations by it */
        const rt_recipe_node *node = &r->nodes[ranks[i].node];
        if (!is_run_again(r, ranks[i].node) &&
            (node->job.wanted || node->measures < 0 || !is_run_again(r, node->measures)))
            append(r, &n, placed, ranks[i].node);
    }
    return RT_OK;
}

rt_status rt_recipe_plan(rt_recipe *r) {
    for (int i = r->count - 1; i >= 0; i--) { /* a command reads from earlier ones only */
        rt_recipe_node *n = &r->nodes[i];
        n->job.wanted = n->job.wanted || !n->job.done;
        for (int k = 0; n->job.wanted && k < n->nneeds; k++)
            if (!r->nodes[n->needs[k]].here)
                r->nodes[n->needs[k]].job.wanted = true;
    }
    return find_order(r);
}

/* ---- data ---- */

/* The path that begins at a mark in s: up to a comma, as in "csv:^/a.csv,splits=^/a.splits". */
static rt_status look_for(rt_recipe *r, const char *s, rt_str *missing, int *n) {
    char *marked;
    const char *path;
    const size_t len = strcspn(s, ",");
    RT_TRY(rt_arena_alloc(&r->arena, &marked, len + 1));
    memcpy(marked, s, len);
    RT_TRY(rt_recipe_unmark(r, marked, &path));
    const size_t m = strlen(path);
    const char *known = strstr(rt_str_text(missing), path);
    const bool said = known && (known[m] == ',' || known[m] == 0);
    if (rt_file_exists(path) || rt_dir_exists(path) || said)
        return RT_OK;
    rt_str_appendf(missing, "%s%s", (*n)++ ? ", " : "", path);
    return rt_str_status(missing);
}

rt_status rt_recipe_find_data(rt_recipe *r) {
    rt_str missing;
    int n = 0;
    rt_status st = RT_OK;
    rt_str_init(&missing);
    for (int i = 0; i < r->count; i++)
        for (int k = 0; r->nodes[i].job.wanted && k < r->nodes[i].job.argc; k++)
            for (const char *s = strstr(r->nodes[i].words[k], RT_MARK_DATA); s;
                 s = strstr(s + 1, RT_MARK_DATA))
                RT_TRY_GOTO(look_for(r, s, &missing, &n));
    if (n > 0)
        RT_FAIL_GOTO(RT_E_INPUT,
                     "recipe %s needs data that are not there: %s; --data-dir says where data are (now '%s')",
                     r->name, rt_str_text(&missing), r->data_dir);
done:
    rt_str_deinit(&missing);
    return st;
}
