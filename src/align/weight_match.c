/*
 * weight_match.c - renumbering by weights alone (Ainsworth et al. 2023, "Git Re-Basin").
 *
 * The permutations P of network B that bring it nearest to A in weight space maximise <A, P(B)>. Coordinate
 * descent: with all bundles but one held, the sum is linear in that bundle's permutation,
 *
 *     <A, P(B)> = const + sum_i G[i][p(i)],     G = sum over parameters touching the bundle of A' B'^T,
 *
 * where A' (n, m) has the bundle's places as rows and everything else, already permuted on its other axes, as
 * columns. The parameters are laid side by side into one (n, M) matrix, so G is one product; an assignment
 * (assign.c) gives the best p. Bundles are visited in random order until a sweep brings nothing, at most 100
 * times. A step is kept only if <A, P(B)> rose, computed in double: a parameter with one bundle on two axes
 * makes G an approximation.
 *
 * Many networks: each in turn is matched to the mean of the others until nothing moves (MergeMany), starting
 * from each matched to the mean of those before it. Running statistics have no say: their scale is not that
 * of weights.
 */
#include "align/align.h"
#include "base/alloc.h"
#include "base/stop.h"
#include "plan/plan.h"
#include <math.h>
#include <string.h>

enum { SWEEPS_MAX = 100, GROUPS_MAX = 1024, MODELS_MAX = 4096 };
static const double GAIN_MIN = 1e-12; /* of the scalar product: less is rounding */

typedef struct product { /* of one bundle */
    int64_t n, m;
    rt_graph *g;
    rt_plan *plan;
    rt_exec *exec;
} product;

struct rt_matcher {
    const rt_symmetry *s;
    const rt_params *params;
    rt_pool *pool;
    product *product;     /* (bundles) */
    float *side[2], *out; /* (n, M) twice, (n, n): the largest bundle's */
    double *gain;
    float *now, *next;           /* permuted source */
    int64_t *trial, *step, *tmp; /* sets of permutations */
};

static bool counts(const rt_param *p) {
    return p->role != RT_ROLE_STATE;
}

static rt_status prepare(rt_matcher *t, int bundle) {
    product *p = &t->product[bundle];
    p->n = t->s->bundle[bundle].n;
    for (int k = 0; k < t->s->slots * RT_MAX_RANK; k++) {
        const rt_param *line = rt_params_get(t->params, k / RT_MAX_RANK);
        if (t->s->axis[k].bundle == bundle && counts(line))
            p->m += line->count / p->n;
    }
    if (p->m == 0)
        return RT_OK;
    RT_TRY(rt_graph_create(&p->g, 1, RT_DTYPE_F32));
    rt_val a = rt_graph_feed(p->g, "a", RT_DTYPE_F32, rt_shape2(p->n, p->m));
    rt_val b = rt_graph_feed(p->g, "b", RT_DTYPE_F32, rt_shape2(p->n, p->m));
    rt_graph_output(p->g, "gain", rt_matmul(p->g, a, b, false, true));
    RT_TRY(rt_plan_compile(&p->plan, p->g, (rt_plan_options){.v3 = rt_params_v3(t->params)}));
    return rt_exec_create(&p->exec, p->plan, t->pool);
}

static rt_status matcher_init(rt_matcher *t) {
    const rt_symmetry *s = t->s;
    size_t side = 1, square = 1;
    const size_t floats = (size_t)rt_params_floats(t->params), total = (size_t)s->total + 1;
    RT_TRY(rt_calloc(&t->product, (size_t)s->bundles + 1, sizeof *t->product));
    for (int g = 0; g < s->bundles; g++) {
        RT_TRY(prepare(t, g));
        side = RT_MAX(side, (size_t)(t->product[g].n * t->product[g].m));
        square = RT_MAX(square, (size_t)(t->product[g].n * t->product[g].n));
    }
    RT_TRY(rt_calloc(&t->side[0], side, sizeof(float)));
    RT_TRY(rt_calloc(&t->side[1], side, sizeof(float)));
    RT_TRY(rt_calloc(&t->out, square, sizeof(float)));
    RT_TRY(rt_calloc(&t->gain, square, sizeof(double)));
    RT_TRY(rt_calloc(&t->now, floats, sizeof(float)));
    RT_TRY(rt_calloc(&t->next, floats, sizeof(float)));
    RT_TRY(rt_calloc(&t->trial, total, sizeof *t->trial));
    RT_TRY(rt_calloc(&t->step, total, sizeof *t->step));
    return rt_calloc(&t->tmp, total, sizeof *t->tmp);
}

rt_status rt_matcher_create(rt_matcher **out, const rt_symmetry *s, const rt_params *params, rt_pool *pool) {
    rt_matcher *t;
    *out = NULL;
    RT_TRY(rt_calloc(&t, 1, sizeof *t));
    t->s = s;
    t->params = params;
    t->pool = pool;
    rt_status st = matcher_init(t);
    if (st != RT_OK)
        rt_matcher_destroy(&t);
    *out = t;
    return st;
}

void rt_matcher_destroy(rt_matcher **matcher) {
    rt_matcher *t = *matcher;
    *matcher = NULL;
    if (!t)
        return;
    for (int g = 0; t->product && g < t->s->bundles; g++) {
        rt_exec_destroy(&t->product[g].exec);
        rt_plan_destroy(&t->product[g].plan);
        rt_graph_destroy(&t->product[g].g);
    }
    rt_free(t->product);
    rt_free(t->side[0]);
    rt_free(t->side[1]);
    rt_free(t->out);
    rt_free(t->gain);
    rt_free(t->now);
    rt_free(t->next);
    rt_free(t->trial);
    rt_free(t->step);
    rt_free(t->tmp);
    rt_free(t);
}

/* ---- one bundle ---- */

/* Places of axis `axis` as rows from column `at` of dst (n, m) on; returns the next column. */
static int64_t unfold(float *dst, int64_t m, int64_t at, const rt_param *p, int axis, int64_t n,
                      const float *src) {
    int64_t outer = 1;
    for (int i = 0; i < axis; i++)
        outer *= p->shape.d[i];
    const int64_t inner = p->count / outer / n;
    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 0; i < n; i++)
            memcpy(dst + i * m + at + o * inner, src + (o * n + i) * inner, (size_t)inner * sizeof *dst);
    return at + outer * inner;
}

static void gather(const rt_matcher *t, int bundle, float *dst, const float *block) {
    const product *p = &t->product[bundle];
    int64_t at = 0;
    for (int k = 0; k < t->s->slots * RT_MAX_RANK; k++) {
        const rt_param *line = rt_params_get(t->params, k / RT_MAX_RANK);
        if (t->s->axis[k].bundle == bundle && counts(line))
            at = unfold(dst, p->m, at, line, k % RT_MAX_RANK, p->n, block + line->offset);
    }
}

static double dot(const rt_matcher *t, const float *a, const float *b) {
    double sum = 0;
    for (int i = 0; i < rt_params_count(t->params); i++) {
        const rt_param *p = rt_params_get(t->params, i);
        double part = 0;
        for (int64_t k = p->offset; k < p->offset + p->count && counts(p); k++)
            part += (double)a[k] * (double)b[k];
        sum += part;
    }
    return sum;
}

/* Best permutation of one bundle as t->step, the others standing still; false when it is the identity. */
static rt_status propose(rt_matcher *t, int bundle, const float *target, bool *moves) {
    product *p = &t->product[bundle];
    int64_t *perm = t->step + t->s->bundle[bundle].offset;
    *moves = false;
    if (p->m == 0)
        return RT_OK;
    gather(t, bundle, t->side[0], target);
    gather(t, bundle, t->side[1], t->now);
    rt_exec_bind_feed(p->exec, 0, t->side[0]);
    rt_exec_bind_feed(p->exec, 1, t->side[1]);
    rt_exec_bind_output(p->exec, 0, t->out);
    rt_exec_run(&p->exec, &(rt_run){0}, 1, t->pool);
    for (int64_t k = 0; k < p->n * p->n; k++)
        t->gain[k] = (double)t->out[k];
    rt_perm_identity(t->s, t->step);
    RT_TRY(rt_assign(perm, t->gain, p->n));
    for (int64_t i = 0; i < p->n; i++)
        *moves = *moves || perm[i] != i;
    return RT_OK;
}

/* Takes the best permutation of one bundle if *value, the scalar product, rises. */
static rt_status improve(rt_matcher *t, int bundle, const float *target, const float *source, int64_t *perm,
                         double *value, double least, bool *better) {
    const rt_symmetry *s = t->s;
    bool moves;
    RT_TRY(propose(t, bundle, target, &moves));
    if (!moves)
        return RT_OK;
    rt_perm_compose(s, t->trial, perm, t->step, t->tmp);
    rt_perm_apply(s, t->params, t->next, source, t->trial);
    const double now = dot(t, target, t->next);
    *better = now > *value + least;
    if (!*better)
        return RT_OK;
    *value = now;
    memcpy(perm, t->trial, (size_t)s->total * sizeof *perm);
    float *swap = t->now;
    t->now = t->next;
    t->next = swap;
    return RT_OK;
}

rt_status rt_matcher_run(rt_matcher *t, const float *target, const float *source, int64_t *perm,
                         uint64_t seed, double *gain) {
    const rt_symmetry *s = t->s;
    int64_t order[GROUPS_MAX];
    rt_perm_apply(s, t->params, t->now, source, perm);
    double value = dot(t, target, t->now);
    const double first = value, least = GAIN_MIN * fmax(dot(t, target, target), fabs(value));
    RT_FAIL_IF(s->bundles > RT_COUNT(order), RT_E_UNSUPPORTED,
               "%d bundles of units; at most %lld can be matched", s->bundles, (long long)RT_COUNT(order));
    int64_t moves = 0, solved[GROUPS_MAX]; /* moves there had been when a bundle was last solved */
    for (int g = 0; g < s->bundles; g++)
        solved[g] = -1;
    bool moved = true;
    for (int sweep = 0; sweep < SWEEPS_MAX && moved; sweep++) {
        moved = false;
        rt_rng_permutation(rt_rng_make(seed, RT_RNG_MATCH, (uint64_t)sweep, 0), order, s->bundles);
        for (int k = 0; k < s->bundles; k++) {
            const int g = (int)order[k];
            bool better = false;
            if (solved[g] == moves)
                continue;
            RT_TRY(rt_stop_check("matching", s->bundle[g].name));
            RT_TRY(improve(t, g, target, source, perm, &value, least, &better));
            moves += better;
            moved = moved || better;
            solved[g] = moves;
        }
    }
    if (gain)
        *gain = value - first;
    return RT_OK;
}

/* ---- many networks ---- */

/* Mean over the other models, or those before m, of the permuted blocks. */
static void mean_of_others(const rt_matcher *t, float *dst, float *const *aligned, int models, int m,
                           bool before) {
    const int last = before ? m : models, n = before ? m : models - 1;
    for (int64_t i = 0; i < rt_params_floats(t->params); i++) {
        double sum = 0;
        for (int k = 0; k < last; k++)
            sum += k == m ? 0 : (double)aligned[k][i];
        dst[i] = (float)(sum / n);
    }
}

typedef struct crowd {
    rt_matcher *t;
    const float *const *blocks;
    int models;
    int64_t *perms;
    uint64_t seed;
    float *target, **aligned;
    rt_status (*progress)(void *user, int round, int model);
    void *user;
} crowd;

static rt_status match_one(crowd *c, int round, int m, double *gain) {
    rt_matcher *t = c->t;
    int64_t *perm = c->perms + m * t->s->total;
    if (c->progress)
        RT_TRY(c->progress(c->user, round, m));
    mean_of_others(t, c->target, c->aligned, c->models, m, round == 0);
    const uint64_t seed = c->seed + (uint64_t)(round * c->models + m);
    RT_TRY(rt_matcher_run(t, c->target, c->blocks[m], perm, seed, gain));
    rt_perm_apply(t->s, t->params, c->aligned[m], c->blocks[m], perm);
    return RT_OK;
}

/* Renumbers everything so that model 0 has its own numbers again. */
static void keep_first(crowd *c) {
    const rt_symmetry *s = c->t->s;
    rt_perm_invert(s, c->t->step, c->perms);
    for (int m = 0; m < c->models; m++)
        rt_perm_compose(s, c->perms + m * s->total, c->perms + m * s->total, c->t->step, c->t->tmp);
}

static rt_status match_crowd(crowd *c, bool running) {
    int64_t order[MODELS_MAX], seen[MODELS_MAX], moves = 0;
    double gain = 0;
    RT_FAIL_IF(c->models > MODELS_MAX, RT_E_UNSUPPORTED, "%d models; at most %d can be matched", c->models,
               MODELS_MAX);
    for (int m = 0; m < c->models; m++) {
        rt_perm_apply(c->t->s, c->t->params, c->aligned[m], c->blocks[m], c->perms + m * c->t->s->total);
        seen[m] = -1;
    }
    for (int m = 1; m < c->models; m++)
        RT_TRY(match_one(c, 0, m, &gain));
    bool moved = !running && c->models > 2;
    for (int round = 1; round <= SWEEPS_MAX && moved; round++) {
        moved = false;
        rt_rng_permutation(rt_rng_make(c->seed, RT_RNG_MATCH, (uint64_t)round, 1), order, c->models);
        for (int k = 0; k < c->models; k++) {
            const int m = (int)order[k];
            if (seen[m] == moves) /* no other has moved since */
                continue;
            RT_TRY(match_one(c, round, m, &gain));
            moves += gain > 0;
            moved = moved || gain > 0;
            seen[m] = moves;
        }
    }
    keep_first(c);
    return RT_OK;
}

rt_status rt_matcher_many(rt_matcher *t, const float *const *blocks, int models, bool running, int64_t *perms,
                          uint64_t seed, rt_status (*progress)(void *user, int round, int model),
                          void *user) {
    crowd c = {.t = t,
               .blocks = blocks,
               .models = models,
               .perms = perms,
               .seed = seed,
               .progress = progress,
               .user = user};
    const size_t floats = (size_t)rt_params_floats(t->params);
    rt_status st;
    RT_TRY_GOTO(rt_calloc(&c.target, floats, sizeof *c.target));
    RT_TRY_GOTO(rt_calloc(&c.aligned, (size_t)models, sizeof *c.aligned));
    for (int m = 0; m < models; m++)
        RT_TRY_GOTO(rt_calloc(&c.aligned[m], floats, sizeof(float)));
    st = match_crowd(&c, running);
done:
    for (int m = 0; c.aligned && m < models; m++)
        rt_free(c.aligned[m]);
    rt_free(c.aligned);
    rt_free(c.target);
    return st;
}
