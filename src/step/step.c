/*
 * step.c - one training step of an ensemble: graph, plan, execs, gradients, update.
 *
 * The graph of a step is the loss (distill/step_graph.c), its gradients and the logits; it is compiled
 * once per batch size.
 * All members share the plan. What a member owns are its values and its optimiser state:
 *
 *     members:   values | state            one block each, for all members
 *     lanes:     exec (workspace) | gradient | logits
 *
 * Small members run one per worker: a job is a whole step of a member, the update included, and the worker's
 * lane stays in its cache from member to member. No worker waits for another before the end. Of
 * large members two lanes per worker run at a time, in waves, and all workers share them. So memory for
 * workspaces and gradients grows with the threads, not with the members, and 50 members need little more than
 * 50 blocks of weights. None of this changes the result, because members never meet.
 *
 * The update runs over fixed chunks of the block (cut where decay changes, at most CHUNK floats), so that one
 * large member keeps all workers busy. A clipped norm is the sum of the chunks' sums of squares, in order. A
 * member whose loss or gradient is not finite keeps its parameters.
 */
#include "base/alloc.h"
#include "base/size.h"
#include "base/timer.h"
#include "plan/optim.h"
#include "step/step.h"
#include <math.h>
#include <string.h>

enum { CHUNK = 32768, PLANS = 2 };

typedef struct chunk {
    int64_t lo, n;
    rt_rule rule; /* its decay is the number to use */
} chunk;

typedef struct lane {
    float *grad;   /* block */
    float *logits; /* (batch, outputs) */
    float loss;
    int member;     /* at present */
    double *square; /* per chunk: sums of squares of the gradient */
    double gscale;
} lane;

/* What a step of a member came to. */
typedef struct outcome {
    float loss;
    double norm; /* of the gradient if it is clipped, else 0 */
    double correct;
} outcome;

/* The step compiled for one number of rows. */
typedef struct compiled {
    int64_t rows;
    rt_step_graph what; /* its graph */
    rt_plan *plan;
    rt_exec **exec; /* per lane */
    int *bound;     /* per lane: member whose parameters are bound, or -1 */
    int out_loss, out_logits;
    int *out_grad; /* per slot; -1: none */
} compiled;

struct rt_step {
    rt_distill_config what;
    rt_params *params;
    rt_step_options o;
    rt_optim_rule rule;
    rt_pool *pool;
    rt_shape row;
    int64_t row_floats, outputs, floats;
    int slots; /* state floats per parameter */
    int nlanes;
    bool whole_batch;      /* small members: lanes are the workers' */
    bool intact;           /* a step that was interrupted changed nothing */
    float *values, *state; /* (members, floats), (members, slots * floats) */
    lane *lanes;
    chunk *chunks;
    int64_t nchunks;
    compiled plans[PLANS];
    rt_exec **wave_exec;
    rt_run *wave_run;
    outcome *outcomes; /* per member */
    int *todo;         /* members of this step */
    compiled *now;     /* and its plan */
    const rt_step_io *io;
    size_t bytes;
};

/* Small members run one per worker, on the whole batch; the rest is cut into slices that all workers share. A
 * property of configuration, never of the machine. */
bool rt_whole_batch(double flops, int members) {
    return members > 1 && flops < 20e6;
}

/* ---- the step, compiled ---- */

static void compiled_deinit(compiled *p, int nlanes) {
    for (int i = 0; p->exec && i < nlanes; i++)
        rt_exec_destroy(&p->exec[i]);
    rt_free(p->exec);
    rt_free(p->bound);
    rt_free(p->out_grad);
    rt_plan_destroy(&p->plan);
    rt_step_graph_deinit(&p->what);
    memset(p, 0, sizeof *p);
}

static int add_output(rt_graph *g, const char *name, rt_val v) {
    int i = rt_graph_outputs(g);
    rt_graph_output(g, name, v);
    return i;
}

static rt_status add_gradients(const rt_step *s, compiled *p, rt_val loss) {
    int n = rt_params_count(s->params);
    rt_val *wrt = NULL, *grad = NULL;
    int *slot = NULL, nwrt = 0;
    rt_status st;
    RT_TRY_GOTO(rt_calloc(&wrt, (size_t)n + 1, sizeof *wrt));
    RT_TRY_GOTO(rt_calloc(&grad, (size_t)n + 1, sizeof *grad));
    RT_TRY_GOTO(rt_calloc(&slot, (size_t)n + 1, sizeof *slot));
    for (int i = 0; i < n; i++) {
        const rt_param *q = rt_params_get(s->params, i);
        p->out_grad[i] = -1;
        if (q->role == RT_ROLE_STATE)
            continue;
        slot[nwrt] = i;
        wrt[nwrt++] = rt_graph_param(p->what.g, i, q->name, q->shape);
    }
    RT_TRY_GOTO(rt_graph_grad(p->what.g, loss, wrt, nwrt, grad));
    for (int k = 0; k < nwrt; k++) {
        if (grad[k])
            p->out_grad[slot[k]] = add_output(p->what.g, rt_params_get(s->params, slot[k])->name, grad[k]);
    }
done:
    rt_free(wrt);
    rt_free(grad);
    rt_free(slot);
    return st;
}

static rt_status compile(const rt_step *s, compiled *p, int64_t rows) {
    RT_TRY(rt_step_graph_build(&p->what, &s->what, s->params, rows));
    for (int i = 0; i < rt_graph_outputs(p->what.g); i++)
        if (strcmp(rt_graph_get_output(p->what.g, i)->name, "loss") == 0)
            p->out_loss = i;
    p->out_logits = add_output(p->what.g, "logits", p->what.logits);
    RT_TRY(rt_calloc(&p->out_grad, (size_t)rt_params_count(s->params) + 1, sizeof *p->out_grad));
    RT_TRY(add_gradients(s, p, p->what.loss));
    return rt_plan_compile(
        &p->plan, p->what.g,
        (rt_plan_options){.slice = s->o.slice, .whole_batch = s->whole_batch, .v3 = rt_params_v3(s->params)});
}

static rt_status compiled_create(rt_step *s, compiled *p, int64_t rows) {
    p->rows = rows;
    RT_TRY(compile(s, p, rows));
    size_t workspaces;
    RT_FAIL_IF(!rt_size_mul(rt_plan_bytes(p->plan), (size_t)s->nlanes, &workspaces), RT_E_MEMORY,
               "workspace too large");
    RT_TRY(rt_memory_check(workspaces, "the workspace of a training step"));
    RT_TRY(rt_calloc(&p->exec, (size_t)s->nlanes, sizeof *p->exec));
    RT_TRY(rt_calloc(&p->bound, (size_t)s->nlanes, sizeof *p->bound));
    for (int i = 0; i < s->nlanes; i++) {
        lane *l = &s->lanes[i];
        p->bound[i] = -1;
        RT_TRY(rt_exec_create_team(&p->exec[i], p->plan, s->pool, s->o.team));
        rt_exec_bind_output(p->exec[i], p->out_loss, &l->loss);
        rt_exec_bind_output(p->exec[i], p->out_logits, s->what.regression ? NULL : l->logits);
        for (int k = 0; k < rt_params_count(s->params); k++)
            if (p->out_grad[k] >= 0)
                rt_exec_bind_output(p->exec[i], p->out_grad[k],
                                    l->grad + rt_params_get(s->params, k)->offset);
    }
    s->bytes += workspaces;
    return RT_OK;
}

static rt_status check_ranks(const rt_step *s) {
    const int64_t slices = rt_plan_slices(s->plans[0].plan);
    RT_FAIL_IF(s->o.team.n > slices && !s->o.idle, RT_E_USAGE,
               "too many ranks for the work: %d for a network whose batch of %lld rows is cut into %lld "
               "slice%s; start at "
               "most %lld for each network, or cut the batch smaller with --slice",
               s->o.team.n, (long long)s->plans[0].rows, (long long)slices, slices == 1 ? "" : "s",
               (long long)slices);
    return RT_OK;
}

rt_status rt_step_prepare(rt_step *s, int64_t rows) {
    RT_FAIL_IF(rows < 1 || rows > s->o.batch, RT_E_USAGE, "a batch of %lld rows; wanted 1 to %lld",
               (long long)rows, (long long)s->o.batch);
    int i = 0;
    while (i < PLANS && s->plans[i].plan && s->plans[i].rows != rows)
        i++;
    if (i < PLANS && s->plans[i].plan)
        return RT_OK;
    if (i == PLANS)
        compiled_deinit(&s->plans[--i], s->nlanes); /* the first is the full batch, and stays */
    rt_status st = compiled_create(s, &s->plans[i], rows);
    if (st == RT_OK && i == 0)
        st = check_ranks(s);
    if (st != RT_OK)
        compiled_deinit(&s->plans[i], s->nlanes);
    return st;
}

static compiled *find_compiled(rt_step *s, int64_t rows) {
    for (int i = 0; i < PLANS; i++)
        if (s->plans[i].plan && s->plans[i].rows == rows)
            return &s->plans[i];
    return NULL;
}

/* ---- set-up ---- */

static rt_rule rule_of(const rt_step *s, const rt_param *p) {
    const rt_step_options *o = &s->o;
    rt_rule r = rt_student_rule(s->what.student, p->role);
    if (r.decay < 0) /* the run's */
        r.decay = o->group_decay && p->role != RT_ROLE_NORM ? o->group_decay[p->group] : o->weight_decay;
    if (o->decay_rule && strcmp(o->decay_rule, "weights") == 0 && p->role != RT_ROLE_WEIGHT && r.centre == 0)
        r.decay = 0;
    return r;
}

static bool same_rule(rt_rule a, rt_rule b) {
    return a.decay == b.decay && a.centre == b.centre && a.lr_scale == b.lr_scale &&
           a.grad_scale == b.grad_scale;
}

/* Appends the parameters as chunks; adjacent ones of equal rule are one range. Counts only when out is NULL.
 */
static int64_t cut_chunks(const rt_step *s, chunk *out) {
    int64_t n = 0, lo = 0, hi = 0;
    rt_rule rule = {0};
    int count = rt_params_count(s->params);
    for (int i = 0; i <= count; i++) {
        const rt_param *p = i < count ? rt_params_get(s->params, i) : NULL;
        if (p && p->role == RT_ROLE_STATE)
            continue;
        if (p && p->offset == hi && hi > lo && same_rule(rule_of(s, p), rule)) {
            hi += p->count;
            continue;
        }
        for (int64_t at = lo; at < hi; at += CHUNK, n++)
            if (out)
                out[n] = (chunk){at, RT_MIN(CHUNK, hi - at), rule};
        if (p) {
            lo = p->offset;
            hi = lo + p->count;
            rule = rule_of(s, p);
        }
    }
    return n;
}

static rt_status alloc_floats(rt_step *s, float **out, int64_t a, int64_t b) {
    int64_t n;
    RT_FAIL_IF(!rt_i64_mul(a, b, &n), RT_E_MEMORY, "%lld x %lld floats are too many", (long long)a,
               (long long)b);
    RT_TRY(rt_calloc(out, (size_t)n, sizeof(float)));
    s->bytes += (size_t)n * sizeof(float);
    return RT_OK;
}

static rt_status step_init(rt_step *s) {
    const char *rule = s->o.optimiser ? s->o.optimiser : "sgd";
    RT_FAIL_IF(!rt_optim_find(&s->rule, rule), RT_E_USAGE,
               "optimiser '%s' is unknown; wanted sgd, adam or adamw", rule);
    RT_FAIL_IF(s->o.batch < 1 || s->o.members < 1, RT_E_USAGE,
               "a batch of %lld rows for %d members; wanted at least 1 and 1", (long long)s->o.batch,
               s->o.members);
    const rt_arch_config *a = rt_net_config(rt_student_net(s->what.student));
    s->row = a->input;
    s->row_floats = rt_shape_elems(&a->input);
    s->outputs = a->outputs;
    s->floats = rt_params_floats(s->params);
    s->slots = rt_optim_slots(s->rule);
    s->whole_batch = s->o.slice == 0 && rt_whole_batch(3 * rt_student_flops(s->what.student),
                                                       s->o.of > 0 ? s->o.of : s->o.members);
    const int workers = rt_pool_workers(s->pool);
    s->nlanes = s->whole_batch ? workers : RT_MIN(s->o.members, 2 * workers);

    double blocks = (double)s->o.members * (1 + s->slots) + s->nlanes;
    RT_TRY(rt_memory_check((size_t)RT_MIN(blocks * (double)s->floats * 4, 9e18),
                           "weights, gradients and optimiser state"));
    RT_TRY(alloc_floats(s, &s->values, s->o.members, s->floats));
    RT_TRY(alloc_floats(s, &s->state, (int64_t)s->o.members * s->slots, s->floats));
    s->nchunks = cut_chunks(s, NULL);
    RT_TRY(rt_calloc(&s->chunks, (size_t)s->nchunks + 1, sizeof *s->chunks));
    cut_chunks(s, s->chunks);
    RT_TRY(rt_calloc(&s->wave_exec, (size_t)s->nlanes, sizeof(void *)));
    RT_TRY(rt_calloc(&s->wave_run, (size_t)s->nlanes, sizeof *s->wave_run));
    RT_TRY(rt_calloc(&s->outcomes, (size_t)s->o.members, sizeof *s->outcomes));
    RT_TRY(rt_calloc(&s->todo, (size_t)s->o.members, sizeof *s->todo));
    RT_TRY(rt_calloc(&s->lanes, (size_t)s->nlanes, sizeof *s->lanes));
    for (int i = 0; i < s->nlanes; i++) {
        RT_TRY(alloc_floats(s, &s->lanes[i].grad, 1, s->floats));
        RT_TRY(alloc_floats(s, &s->lanes[i].logits, s->o.batch * rt_student_members(s->what.student),
                            s->outputs));
        RT_TRY(rt_calloc(&s->lanes[i].square, (size_t)s->nchunks + 1, sizeof(double)));
    }
    return rt_step_prepare(s, s->o.batch);
}

rt_status rt_step_create(rt_step **out, const rt_distill_config *what, rt_params *params, rt_step_options o,
                         rt_pool *pool) {
    *out = NULL;
    rt_step *s;
    RT_TRY(rt_calloc(&s, 1, sizeof *s));
    s->what = *what;
    s->params = params;
    s->o = o;
    if (s->o.team.n < 1)
        s->o.team = rt_dist_alone();
    s->pool = pool;
    rt_status st = step_init(s);
    if (st != RT_OK)
        rt_step_destroy(&s);
    *out = s;
    return st;
}

void rt_step_destroy(rt_step **step) {
    rt_step *s = *step;
    *step = NULL;
    if (!s)
        return;
    for (int i = 0; i < PLANS; i++)
        compiled_deinit(&s->plans[i], s->nlanes);
    for (int i = 0; s->lanes && i < s->nlanes; i++) {
        rt_free(s->lanes[i].grad);
        rt_free(s->lanes[i].logits);
        rt_free(s->lanes[i].square);
    }
    rt_free(s->lanes);
    rt_free(s->wave_exec);
    rt_free(s->wave_run);
    rt_free(s->outcomes);
    rt_free(s->todo);
    rt_free(s->chunks);
    rt_free(s->values);
    rt_free(s->state);
    rt_free(s);
}

float *rt_step_values(rt_step *s, int member) {
    return s->values + member * s->floats;
}

float *rt_step_state(rt_step *s, int member, int64_t *floats) {
    *floats = s->floats * s->slots;
    return s->state + member * s->slots * s->floats;
}

size_t rt_step_bytes(const rt_step *s) {
    return s->bytes;
}

const rt_plan *rt_step_plan(const rt_step *s) {
    return s->plans[0].plan;
}

bool rt_step_intact(const rt_step *s) {
    return s->intact;
}

double rt_step_flops(const rt_step *s) {
    return rt_plan_flops(s->plans[0].plan);
}

/* ---- the step ---- */

static void square_chunk(const rt_step *s, lane *l, int64_t k) {
    const chunk *c = &s->chunks[k];
    l->square[k] = c->rule.grad_scale * c->rule.grad_scale *
                   rt_optim_sum_squares(l->grad + c->lo, c->n, rt_params_v3(s->params));
}

static void square_job(void *ctx, int64_t job, int worker) {
    (void)worker;
    rt_step *s = ctx;
    square_chunk(s, &s->lanes[job / s->nchunks], job % s->nchunks);
}

static void update_chunk(rt_step *s, const lane *l, int64_t k) {
    const chunk *c = &s->chunks[k];
    float *m = s->state + l->member * s->slots * s->floats;
    rt_optim o = {.rule = s->rule,
                  .lr = s->io->lr[l->member] * c->rule.lr_scale,
                  .momentum = s->o.momentum,
                  .nesterov = s->o.nesterov,
                  .beta1 = s->o.beta1,
                  .beta2 = s->o.beta2,
                  .eps = s->o.eps,
                  .t = s->io->t,
                  .decay = c->rule.decay,
                  .centre = c->rule.centre,
                  .gscale = l->gscale * c->rule.grad_scale};
    rt_optim_step(&o, rt_step_values(s, l->member) + c->lo, l->grad + c->lo, m + c->lo,
                  s->slots > 1 ? m + s->floats + c->lo : NULL, c->n);
}

static void update_job(void *ctx, int64_t job, int worker) {
    (void)worker;
    rt_step *s = ctx;
    update_chunk(s, &s->lanes[job / s->nchunks], job % s->nchunks);
}

/* The factor of a clipped gradient, from the chunks' squares. */
static void clip(const rt_step *s, lane *l) {
    double sum = 0;
    for (int64_t k = 0; k < s->nchunks; k++)
        sum += l->square[k];
    const double norm = sqrt(sum);
    s->outcomes[l->member].norm = norm;
    if (norm > s->o.clip_norm)
        l->gscale = s->o.clip_norm / norm;
}

/* Right answers of all student members (member-major rows), as a number of samples. */
static double count_correct(const float *logits, const int32_t *label, int64_t rows, int members, int64_t k) {
    int64_t right = 0;
    for (int64_t r = 0; r < rows * members; r++) {
        const float *z = logits + r * k;
        int64_t best = 0;
        for (int64_t j = 1; j < k; j++)
            if (z[j] > z[best])
                best = j;
        right += best == label[r % rows];
    }
    return (double)right / members;
}

/* The copies of the teacher inside the step: fixed ones, and those of the pair drawn for this step. */
static void bind_teachers(rt_step *s, compiled *p, rt_exec *e) {
    const rt_params *t = s->what.teacher_params;
    for (int c = 0; c < p->what.nteacher; c++) {
        const int who = p->what.teacher[c].member;
        const float *block = s->io->teacher_blocks[who >= 0    ? who
                                                   : who == -1 ? s->io->pair[0]
                                                               : s->io->pair[1]];
        rt_exec_bind_block(e, p->what.teacher[c].first, block, rt_params_offsets(t), rt_params_count(t));
    }
}

static void bind(rt_step *s, compiled *p, int i, int member) {
    const rt_step_io *io = s->io;
    rt_exec *e = p->exec[i];
    if (p->bound[i] != member) {
        rt_exec_bind_own_block(e, 0, rt_step_values(s, member), rt_params_offsets(s->params),
                               rt_params_count(s->params));
        p->bound[i] = member;
    }
    bind_teachers(s, p, e);
    rt_exec_bind_input(e, p->what.in_x, io->x + member * io->rows * s->row_floats);
    if (p->what.in_target >= 0)
        rt_exec_bind_input(e, p->what.in_target, io->target + member * io->rows);
    if (p->what.in_label >= 0)
        rt_exec_bind_input(e, p->what.in_label, io->label + member * io->rows);
    if (p->what.in_teacher >= 0)
        rt_exec_bind_input(e, p->what.in_teacher,
                           io->teacher + member * io->rows * s->what.teachers * s->outputs);
    if (p->what.in_ood >= 0)
        rt_exec_bind_input(e, p->what.in_ood, io->ood + member * io->rows * s->row_floats);
    rt_exec_bind_feed(e, p->what.feed_temperature, &io->temperature);
    if (p->what.feed_i >= 0)
        rt_exec_bind_feed(e, p->what.feed_i, &io->pair[0]);
    if (p->what.feed_j >= 0)
        rt_exec_bind_feed(e, p->what.feed_j, &io->pair[1]);
    s->lanes[i].member = member;
    s->lanes[i].gscale = 1;
}

static rt_run run_of(const rt_step *s, int member) {
    const rt_step_io *io = s->io;
    return (rt_run){.seed = io->seeds ? io->seeds[member] : 0,
                    .step = (uint64_t)io->t,
                    .profile = io->profile,
                    /* small members are through in no time, and ranks stop together */
                    .stop = s->whole_batch || rt_dist_size() > 1 ? NULL : io->stop};
}

static void note_outcome(rt_step *s, const lane *l) {
    const rt_step_io *io = s->io;
    outcome *o = &s->outcomes[l->member];
    *o = (outcome){.loss = l->loss};
    if (io->correct && !s->what.regression)
        o->correct = count_correct(l->logits, io->label + l->member * io->rows, io->rows,
                                   rt_student_members(s->what.student), s->outputs);
}

static rt_status report_outcome(const rt_step *s, int member) {
    const rt_step_io *io = s->io;
    const outcome *o = &s->outcomes[member];
    RT_FAIL_IF(!isfinite(o->loss), RT_E_NUMERIC,
               "member %d, step %lld: the loss is not finite (%g); a smaller --lr, --warmup or --clip-norm "
               "may help",
               s->o.first + member, (long long)io->t + 1, (double)o->loss);
    RT_FAIL_IF(!isfinite(o->norm), RT_E_NUMERIC, "member %d, step %lld: the gradient is not finite",
               s->o.first + member, (long long)io->t + 1);
    if (io->losses)
        io->losses[member] = o->loss;
    if (io->correct && !s->what.regression)
        io->correct[member] = o->correct;
    return RT_OK;
}

/* The whole step of a small member. */
static void member_job(void *ctx, int64_t job, int worker) {
    rt_step *s = ctx;
    const int member = s->todo[job];
    lane *l = &s->lanes[worker];
    bind(s, s->now, worker, member);
    rt_run run = run_of(s, member);
    run.soon = s->state + member * s->slots * s->floats; /* for the update */
    run.soon_floats = s->slots * s->floats;
    rt_exec_run_here(s->now->exec[worker], &run, worker);
    note_outcome(s, l);
    if (s->o.clip_norm > 0) {
        for (int64_t k = 0; k < s->nchunks; k++)
            square_chunk(s, l, k);
        clip(s, l);
    }
    if (!isfinite(s->outcomes[member].loss) || !isfinite(s->outcomes[member].norm))
        return;
    for (int64_t k = 0; k < s->nchunks; k++)
        update_chunk(s, l, k);
}

/* Members todo[lo .. lo + n), one per lane. */
static rt_status run_wave(rt_step *s, int lo, int n) {
    for (int i = 0; i < n; i++) {
        bind(s, s->now, i, s->todo[lo + i]);
        s->wave_exec[i] = s->now->exec[i];
        s->wave_run[i] = run_of(s, s->todo[lo + i]);
    }
    rt_exec_run(s->wave_exec, s->wave_run, n, s->pool);
    RT_TRY(rt_dist_status());
    int cut = 0;
    for (int i = 0; i < n; i++)
        cut += rt_exec_is_cut(s->wave_exec[i]);
    s->intact = lo == 0 && cut == n;
    RT_FAIL_IF(cut > 0, RT_E_INTERRUPTED, "stopped within step %lld", (long long)s->io->t + 1);
    if (s->o.clip_norm > 0)
        rt_pool_run(s->pool, square_job, s, n * s->nchunks);
    for (int i = 0; i < n; i++) {
        note_outcome(s, &s->lanes[i]);
        if (s->o.clip_norm > 0)
            clip(s, &s->lanes[i]);
        RT_TRY(report_outcome(s, s->lanes[i].member));
    }
    rt_pool_run(s->pool, update_job, s, n * s->nchunks);
    return RT_OK;
}

rt_status rt_step_run(rt_step *s, const rt_step_io *io) {
    rt_status st = RT_OK;
    s->now = find_compiled(s, io->rows);
    if (!s->now) {
        RT_TRY(rt_step_prepare(s, io->rows));
        s->now = find_compiled(s, io->rows);
    }
    s->io = io;
    int n = 0;
    for (int m = 0; m < s->o.members; m++)
        if (!io->active || io->active[m])
            s->todo[n++] = m;
    if (s->whole_batch) {
        rt_pool_run(s->pool, member_job, s, n);
        for (int i = 0; i < n && st == RT_OK; i++)
            st = report_outcome(s, s->todo[i]);
    } else {
        for (int lo = 0; lo < n && st == RT_OK; lo += s->nlanes)
            st = run_wave(s, lo, RT_MIN(s->nlanes, n - lo));
    }
    s->io = NULL;
    return st;
}
