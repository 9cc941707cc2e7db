/*
 * cmd_bench.c - retort bench: how fast an architecture trains and predicts here, on random data of the given
 * shape.
 *
 * Training runs the very step that `train` runs (loss, gradients, update), inference the predictor behind
 * `eval` and `predict`. Times are the median over the rounds that fit into the budget, with the best beside
 * it. Samples are distinct inputs: each of M members trains on a batch of its own, so a step takes M x batch;
 * in inference all members see the same rows.
 *
 * With --perm training is a step of permAVG of all members on one batch: Sinkhorn, averaged weights, loss,
 * gradients, Adam. Its matrices are as hard as in the middle of training, so that Sinkhorn takes all its
 * iterations.
 *
 * With --layers the time of a training step is split by kind of work instead: bench_layers.c.
 *
 *     attainable fraction = (M x FLOP of a training step / median time) / (measured FMA peak of the threads)
 */
#include "average/perm.h"
#include "base/alloc.h"
#include "base/rng.h"
#include "base/size.h"
#include "base/timer.h"
#include "cli/cli.h"
#include "dist/dist.h"
#include "model/predictor.h"
#include "perturb/perturb.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS_MAX = 10000, ROUNDS_MIN = 3, WARM_UP = 2 };

typedef struct timing {
    double median, best;
    int rounds;
} timing;

typedef struct bench {
    rt_cli *c;
    int members;
    int64_t batch, row, rows; /* rows: of the inference set */
    rt_pool *pool;
    rt_params *params;
    rt_student *student, *ship; /* ship: what it collapses to, or NULL */
    rt_params *ship_params;
    float *ship_block;
    rt_net *teacher; /* runs inside the step */
    rt_params *teacher_params;
    float *teacher_weights;
    const float **teacher_blocks;
    float *teacher_rows; /* (members, teachers, batch, classes): stored outputs */
    int teachers;
    rt_step *step;
    rt_perm_step *perm;
    rt_symmetry sym;
    float *perm_x, *weights; /* all X; blocks of all members, and one of running statistics */
    double *share;
    rt_predictor *predictor;
    float *x; /* (members, batch, row), and (rows, row) for inference */
    int32_t *label;
    uint64_t *seeds;
    double *lr, *times;
    const float **blocks;
    int64_t t;
    rt_subset set;
    rt_part part;
    timing train, infer;
    double peak, step_flops, infer_flops;
    size_t bytes;
    uint64_t train_memory; /* peak resident set when training ended */
} bench;

/* ---- timing ---- */

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Another round? Ranks make the same number of them. */
static rt_status goes_on(int rounds, double end, int *more) {
    *more = rounds < ROUNDS_MAX && (rounds < ROUNDS_MIN || rt_time_now() < end);
    return rt_dist_lead(RT_OK, more);
}

static rt_status measure(bench *b, timing *out, rt_status (*once)(bench *)) {
    int n = 0, more;
    for (int i = 0; i < WARM_UP; i++)
        RT_TRY(once(b));
    const double end = rt_time_now() + b->c->config.budget;
    for (;; n++) {
        RT_TRY(goes_on(n, end, &more));
        if (!more)
            break;
        RT_FAIL_IF(*cli_stop(), RT_E_INTERRUPTED, "interrupted; nothing to save");
        double t = rt_time_now();
        RT_TRY(once(b));
        b->times[n] = rt_time_now() - t;
    }
    qsort(b->times, (size_t)n, sizeof *b->times, compare);
    double slowest[2] = {n % 2 ? b->times[n / 2] : (b->times[n / 2 - 1] + b->times[n / 2]) / 2, b->times[0]};
    RT_TRY(rt_dist_most(rt_dist_all(), slowest, 2));
    *out = (timing){.median = slowest[0], .best = slowest[1], .rounds = n};
    return RT_OK;
}

static rt_step_io step_io(const bench *b) {
    return (rt_step_io){.x = b->x,
                        .label = b->label,
                        .rows = b->batch,
                        .t = b->t,
                        .lr = b->lr,
                        .seeds = b->seeds,
                        .temperature = 4,
                        .pair = {0, 1},
                        .teacher = b->teacher_rows,
                        .teacher_blocks = b->teacher_blocks};
}

static rt_status train_once(bench *b) {
    const rt_step_io io = step_io(b);
    b->t++;
    return rt_step_run(b->step, &io);
}

static rt_status perm_once(bench *b) {
    double loss;
    return rt_perm_step_run(b->perm, b->x, b->label, 1e-3, b->t++, &loss);
}

static void drop(void *user, int network, int64_t row, int64_t n, const float *y, int64_t stride) {
    (void)user;
    (void)network;
    (void)stride;
    (void)row;
    (void)n;
    (void)y;
}

static rt_status infer_once(bench *b) {
    return rt_predictor_run(b->predictor, &b->set, b->blocks, b->members, drop, NULL, cli_stop());
}

/* ---- setting up ---- */

static rt_status bench_pool(bench *b) {
    rt_config *k = &b->c->config;
    if (k->layers) {
        RT_FAIL_IF(k->perm, RT_E_USAGE, "--layers looks at training, --perm measures something else");
        RT_FAIL_IF(k->threads > 1, RT_E_USAGE, "--layers times one thread; got --threads %lld",
                   (long long)k->threads);
        k->threads = 1;
    }
    return cli_pool_create(b->c, &b->pool);
}

static rt_status bench_net(bench *b) {
    const rt_config *k = &b->c->config;
    rt_arch_config a = {.spec = k->arch, .outputs = k->classes};
    RT_TRY(cli_require(b->c, "arch", k->arch));
    RT_TRY(cli_require(b->c, "input", k->input));
    RT_TRY(cli_parse_shape(&a.input, k->input, "--input"));
    RT_TRY(rt_params_create(&b->params));
    rt_student_config s = {.spec = k->student, .arch = a, .head = k->head, .split = k->split};
    RT_TRY(rt_student_create(&b->student, &s, b->params));
    b->row = rt_shape_elems(&a.input);
    b->batch = k->batch;
    b->members = (int)k->members;
    /* one worker: a step is a batch; several meet when all are done, which shall not be too often */
    const int64_t workers = rt_pool_workers(b->pool);
    b->rows = b->batch * (workers > 1 ? 2 * workers : 1);
    return RT_OK;
}

static rt_status bench_data(bench *b) {
    int64_t rows = RT_MAX(b->batch * b->members, b->rows), floats;
    RT_FAIL_IF(!rt_i64_mul(rows, b->row, &floats), RT_E_MEMORY, "the random data would be too large");
    RT_TRY(rt_calloc(&b->x, (size_t)floats, sizeof *b->x));
    RT_TRY(rt_calloc(&b->label, (size_t)rows, sizeof *b->label));
    RT_TRY(rt_calloc(&b->seeds, (size_t)b->members, sizeof *b->seeds));
    RT_TRY(rt_calloc(&b->lr, (size_t)b->members, sizeof *b->lr));
    RT_TRY(rt_calloc(&b->blocks, (size_t)b->members, sizeof *b->blocks));
    RT_TRY(rt_calloc(&b->times, ROUNDS_MAX, sizeof *b->times));
    rt_rng x = rt_rng_make((uint64_t)b->c->config.seed, RT_RNG_DATA, 0, 0),
           y = rt_rng_make((uint64_t)b->c->config.seed, RT_RNG_DATA, 1, 0);
    for (int64_t i = 0; i < floats; i++)
        b->x[i] = rt_rng_uniform_f32(x, (uint64_t)i) - 0.5f;
    for (int64_t i = 0; i < rows; i++)
        b->label[i] = (int32_t)rt_rng_below(y, (uint64_t)i, (uint64_t)b->c->config.classes);
    b->part = (rt_part){.n = b->rows, .f32 = b->x, .label = b->label};
    b->set = rt_subset_all(&b->part);
    return RT_OK;
}

/* Networks of the same architecture and random weights, that run inside the step. */
static rt_status bench_teacher_nets(bench *b, rt_distill_config *what) {
    RT_TRY(rt_params_create(&b->teacher_params));
    RT_TRY(rt_net_create(&b->teacher, &rt_student_get_config(b->student)->arch, b->teacher_params, NULL));
    const int64_t floats = rt_params_floats(b->teacher_params);
    RT_TRY(rt_calloc(&b->teacher_weights, (size_t)b->teachers, (size_t)floats * sizeof(float)));
    RT_TRY(rt_calloc(&b->teacher_blocks, (size_t)b->teachers, sizeof *b->teacher_blocks));
    for (int i = 0; i < b->teachers; i++) {
        b->teacher_blocks[i] = b->teacher_weights + i * floats;
        rt_params_init(b->teacher_params, b->teacher_weights + i * floats, (uint64_t)i + 1000);
    }
    what->teacher_net = b->teacher;
    what->teacher_params = b->teacher_params;
    return RT_OK;
}

/* Their outputs, as a transfer set would hold them. */
static rt_status bench_teacher_rows(bench *b) {
    const int64_t n = b->members * b->teachers * b->batch * b->c->config.classes;
    RT_TRY(rt_calloc(&b->teacher_rows, (size_t)n, sizeof *b->teacher_rows));
    rt_rng r = rt_rng_make((uint64_t)b->c->config.seed, RT_RNG_DATA, 2, 0);
    for (int64_t i = 0; i < n; i++)
        b->teacher_rows[i] = (float)rt_rng_normal(r, (uint64_t)i);
    return RT_OK;
}

/* The first of objectives.def that learns classes from teachers: each member from its own, or all alike. */
static const rt_objective *teacher_objective(bool paired) {
    const unsigned wanted = RT_OBJ_TEACHER | RT_OBJ_CLASSIFICATION | (paired ? RT_OBJ_PAIRED : 0);
    const rt_objective *const *all;
    int i = 0;
    (void)rt_objective_list(&all);
    while ((all[i]->needs & (wanted | RT_OBJ_PAIRED)) != wanted)
        i++;
    return all[i];
}

/* With --perturb, --online-teacher or an --objective that wants them: as many teachers as the student has
 * members, at least four. */
static rt_status bench_teachers(bench *b, rt_distill_config *what) {
    const rt_config *k = &b->c->config;
    const int members = rt_student_members(b->student);
    const bool perturbs = k->perturb && strcmp(k->perturb, "none") != 0,
               online = perturbs || k->online_teacher;
    what->objective = k->objective ? rt_objective_find(k->objective)
                      : online     ? teacher_objective(members > 1)
                                   : rt_objective_plain();
    if (!what->objective)
        return rt_objective_unknown(k->objective);
    if (what->objective == rt_objective_plain())
        return RT_OK;
    if (perturbs)
        RT_TRY(rt_perturb_parse(&what->perturb, k->perturb));
    what->teachers = b->teachers = members > 1 ? members : 4;
    return online ? bench_teacher_nets(b, what) : bench_teacher_rows(b);
}

/* A small learning rate: thousands of steps on random labels must stay finite, and cost no less for it. */
static rt_status bench_step(bench *b) {
    const rt_team team = rt_team_of(rt_dist_all(), b->members, rt_dist_rank());
    const int own = (int)(team.members.hi - team.members.lo);
    rt_step_options o = {.batch = b->batch,
                         .members = own,
                         .of = b->members,
                         .team = team.ranks,
                         .optimiser = "sgd",
                         .momentum = 0.9,
                         .nesterov = true,
                         .weight_decay = 5e-4,
                         .decay_rule = "all",
                         .slice = b->c->config.slice};
    rt_distill_config what = {.student = b->student, .options = {.alpha = 1}};
    RT_TRY(bench_teachers(b, &what));
    RT_TRY(rt_step_create(&b->step, &what, b->params, o, b->pool));
    for (int m = 0; m < b->members; m++) {
        b->seeds[m] = rt_rng_member_seed((uint64_t)b->c->config.seed, m);
        b->lr[m] = 1e-3;
        b->blocks[m] = rt_step_values(b->step, m % own); /* those of other ranks are as good for predicting */
        if (m < own)
            rt_params_init(b->params, rt_step_values(b->step, m), b->seeds[m]);
    }
    b->step_flops = rt_step_flops(b->step);
    b->bytes = rt_step_bytes(b->step);
    return RT_OK;
}

static rt_status bench_train(bench *b) {
    RT_TRY(bench_step(b));
    return measure(b, &b->train, train_once);
}

static rt_status bench_layers(bench *b) {
    RT_TRY(bench_step(b));
    const cli_bench_step what = {
        .step = b->step, .io = step_io(b), .params = b->params, .members = b->members};
    return cli_bench_layers(b->c, &what, b->pool, b->peak);
}

static rt_status bench_perm(bench *b) {
    const rt_net *net = rt_student_net(b->student);
    const int64_t floats = rt_params_floats(b->params);
    const double spread = 8; /* rows of P then have 0.2 ln n of entropy */
    RT_FAIL_IF(b->members < 2, RT_E_USAGE, "--perm averages networks: --members must be at least 2");
    RT_TRY(rt_symmetry_find(&b->sym, net, b->params));
    const int64_t n = rt_perm_floats(&b->sym, b->members);
    RT_TRY(rt_calloc(&b->weights, (size_t)(b->members + 1), (size_t)floats * sizeof *b->weights));
    RT_TRY(rt_calloc(&b->share, (size_t)b->members, sizeof *b->share));
    RT_TRY(rt_calloc(&b->perm_x, (size_t)n, sizeof *b->perm_x));
    for (int m = 0; m <= b->members; m++)
        rt_params_init(b->params, b->weights + m * floats, (uint64_t)m);
    for (int m = 0; m < b->members; m++) {
        b->blocks[m] = b->weights + m * floats;
        b->share[m] = 1.0 / b->members;
    }
    const rt_rng r = rt_rng_make((uint64_t)b->c->config.seed, RT_RNG_DATA, 2, 0);
    for (int64_t i = 0; i < n; i++)
        b->perm_x[i] = (float)(spread * rt_rng_normal(r, (uint64_t)i));
    const rt_perm_models m = {.net = net,
                              .params = b->params,
                              .sym = &b->sym,
                              .n = b->members,
                              .blocks = b->blocks,
                              .weight = b->share};
    RT_TRY(rt_perm_step_create(&b->perm, &m, (rt_perm_options){.tau = 1, .iterations = 100}, b->batch,
                               b->perm_x, b->weights + b->members * floats, b->pool));
    b->step_flops = rt_perm_step_flops(b->perm) / b->members;
    b->bytes = rt_perm_step_bytes(b->perm);
    return measure(b, &b->train, perm_once);
}

static rt_status bench_infer(bench *b) {
    RT_TRY(
        rt_student_collapse(b->student, b->params, b->blocks[0], &b->ship, &b->ship_params, &b->ship_block));
    for (int m = 0; b->ship && m < b->members; m++)
        b->blocks[m] = b->ship_block;
    const rt_student *what = b->ship ? b->ship : b->student;
    b->infer_flops = rt_student_flops(what);
    RT_TRY(rt_predictor_create(&b->predictor, what, b->ship ? b->ship_params : b->params, b->batch,
                               b->members, b->pool));
    rt_predictor_keep_blocks(b->predictor);
    return measure(b, &b->infer, infer_once);
}

static void bench_deinit(bench *b) {
    rt_predictor_destroy(&b->predictor);
    rt_step_destroy(&b->step);
    rt_perm_step_destroy(&b->perm);
    rt_symmetry_deinit(&b->sym);
    rt_free(b->perm_x);
    rt_free(b->weights);
    rt_free(b->share);
    rt_student_destroy(&b->student);
    rt_student_destroy(&b->ship);
    rt_params_destroy(&b->ship_params);
    rt_free(b->ship_block);
    rt_net_destroy(&b->teacher);
    rt_params_destroy(&b->teacher_params);
    rt_free(b->teacher_weights);
    rt_free(b->teacher_blocks);
    rt_free(b->teacher_rows);
    rt_params_destroy(&b->params);
    rt_pool_destroy(&b->pool);
    rt_free(b->x);
    rt_free(b->label);
    rt_free(b->seeds);
    rt_free(b->lr);
    rt_free(b->blocks);
    rt_free(b->times);
}

/* ---- reporting ---- */

static double train_rate(const bench *b, double seconds) {
    return (double)(b->perm ? b->batch : b->members * b->batch) / seconds;
}

static double train_gflops(const bench *b) {
    return b->members * b->step_flops / b->train.median * 1e-9;
}

static double infer_gflops(const bench *b) {
    return (double)(b->members * b->rows) * b->infer_flops / b->infer.median * 1e-9;
}

static rt_status print_json(const bench *b) {
    const rt_config *k = &b->c->config;
    rt_json j;
    cli_json_begin(b->c, &j);
    rt_json_str(&j, "arch", k->arch);
    rt_json_str(&j, "input", k->input);
    rt_json_i64(&j, "classes", k->classes);
    rt_json_i64(&j, "batch", b->batch);
    rt_json_i64(&j, "members", b->members);
    rt_json_str(&j, "student", rt_student_spec(b->student));
    rt_json_str(&j, "objective", k->objective);
    rt_json_str(&j, "perturb", k->perturb ? k->perturb : "none");
    cli_json_cpu(&j);
    rt_json_i64(&j, "threads", rt_pool_workers(b->pool));
    rt_json_i64(&j, "ranks", rt_dist_size());
    rt_json_i64(&j, "parameters", rt_params_trainable(b->params));
    rt_json_f64(&j, "train_samples_per_s", train_rate(b, b->train.median));
    rt_json_f64(&j, "train_samples_per_s_best", train_rate(b, b->train.best));
    rt_json_f64(&j, "train_step_seconds", b->train.median);
    rt_json_f64(&j, "train_step_seconds_best", b->train.best);
    rt_json_i64(&j, "train_rounds", b->train.rounds);
    rt_json_f64(&j, "train_gflops", train_gflops(b));
    rt_json_f64(&j, "infer_samples_per_s", (double)b->rows / b->infer.median);
    rt_json_f64(&j, "infer_samples_per_s_best", (double)b->rows / b->infer.best);
    rt_json_i64(&j, "infer_rounds", b->infer.rounds);
    rt_json_f64(&j, "infer_gflops", infer_gflops(b));
    rt_json_i64(&j, "peak_rss_bytes", (int64_t)b->train_memory);
    rt_json_f64(&j, "peak_gflops", b->peak * 1e-9);
    rt_json_f64(&j, "attainable_fraction", train_gflops(b) * 1e9 / b->peak);
    rt_json_f64(&j, "infer_attainable_fraction", infer_gflops(b) * 1e9 / b->peak);
    return cli_json_end(b->c, &j);
}

static rt_status print_text(const bench *b) {
    rt_str *out = &b->c->out;
    const rt_config *k = &b->c->config;
    char rate[32], best[32], number[32], ranks[32] = "";
    if (rt_dist_size() > 1)
        snprintf(ranks, sizeof ranks, "%d ranks of ", rt_dist_size());
    cli_table t;
    cli_table_init(&t, "lrrrrr", "|samples/s|best|ms/step|GFLOP/s|of peak");
    cli_table_cell(&t, "training");
    cli_table_cell(&t, "%s", cli_si(rate, train_rate(b, b->train.median)));
    cli_table_cell(&t, "%s", cli_si(best, train_rate(b, b->train.best)));
    cli_table_cell(&t, "%.3f", 1e3 * b->train.median);
    cli_table_cell(&t, "%.1f", train_gflops(b));
    cli_table_cell(&t, "%.0f %%", train_gflops(b) * 1e11 / b->peak);
    cli_table_cell(&t, "inference");
    cli_table_cell(&t, "%s", cli_si(rate, (double)b->rows / b->infer.median));
    cli_table_cell(&t, "%s", cli_si(best, (double)b->rows / b->infer.best));
    cli_table_cell(&t, "%.3f", 1e3 * b->infer.median * (double)b->batch / (double)b->rows);
    cli_table_cell(&t, "%.1f", infer_gflops(b));
    cli_table_cell(&t, "%.0f %%", infer_gflops(b) * 1e11 / b->peak);
    rt_str_appendf(out,
                   "%s, input %s, batch %lld, %d member%s, %s%d thread%s; %s parameters, peak of the threads "
                   "%.0f GFLOP/s\n",
                   k->arch, k->input, (long long)b->batch, b->members, b->members == 1 ? "" : "s", ranks,
                   rt_pool_workers(b->pool), rt_pool_workers(b->pool) == 1 ? "" : "s",
                   cli_count(number, rt_params_trainable(b->params)), b->peak * 1e-9);
    cli_table_print(&t, out, b->c->term.colour_out);
    cli_table_deinit(&t);
    rt_str_appendf(out, "memory: %s for training, %s at most in this process\n",
                   cli_bytes(rate, (double)b->bytes), cli_bytes(best, (double)b->train_memory));
    return cli_print(out);
}

rt_status cli_cmd_bench(rt_cli *c) {
    bench b = {.c = c};
    rt_status st;
    RT_TRY_GOTO(bench_pool(&b));
    RT_TRY_GOTO(bench_net(&b));
    RT_TRY_GOTO(bench_data(&b));
    b.peak = cli_peak_flops(b.pool, 0.2) * rt_dist_size();
    if (c->config.layers) {
        st = bench_layers(&b);
        goto done;
    }
    RT_TRY_GOTO(c->config.perm ? bench_perm(&b) : bench_train(&b));
    b.train_memory = rt_memory_peak();
    RT_TRY_GOTO(bench_infer(&b));
    st = c->config.json ? print_json(&b) : print_text(&b);
done:
    bench_deinit(&b);
    return st;
}
