/*
 * api.c - what include/retort.h promises beyond the functions of the modules themselves: sessions, and
 * training from text settings.
 *
 * A session is one compiled evaluation plan, run on the calling thread by a pool of one, and for each network of
 * the model its weights as the plan's kernels want them (if that would be too much, for one at a time).
 * Uncertainty follows from the members:
 *
 *     p = mean_m p_m     H[p] = -sum p ln p     E[H] = mean_m H[p_m]     MI = H[p] - E[H]
 *
 * and for a Dirichlet output from its concentrations (eval/dirichlet.c).
 */
#include "base/alloc.h"
#include "eval/eval.h"
#include "train/train.h"
#include <math.h>
#include <string.h>

typedef struct rt_prediction {
    float *probs, *member_probs, *entropy, *expected_entropy, *mutual_information;
    float *mean, *variance, *data_variance, *knowledge_variance;
} rt_prediction;

typedef struct rt_session {
    const rt_model *m;
    rt_pool *pool;
    rt_graph *g;
    rt_plan *plan;
    rt_exec *exec;
    rt_kept **kept;
    int nkept; /* one per network, or one */
    int64_t rows, row;
    int bound;  /* network whose parameters are bound, -1: none */
    float *x;   /* (rows, row) */
    float *y;   /* (student members, rows, outputs): of one network */
    float *all; /* (rows, members, outputs) */
    float *p;   /* (members + 1, outputs): probabilities of one row, members first */
} rt_session;

const char *rt_version(void);
int64_t rt_model_row(const rt_model *m);
rt_status rt_session_create(rt_session **out, const rt_model *m, int64_t rows);
void rt_session_destroy(rt_session **sp);
rt_status rt_session_run(rt_session *s, const float *x, int64_t rows, const rt_prediction *out);
rt_status rt_train(const char *const *settings, int n, const volatile int *stop);
rt_status rt_distill(const char *const *settings, int n, const volatile int *stop);

const char *rt_version(void) {
    return RT_VERSION;
}

int64_t rt_model_row(const rt_model *m) {
    const rt_shape s = rt_model_input(m);
    return rt_shape_elems(&s);
}

static rt_status session_init(rt_session *s) {
    const rt_student *student = rt_model_student(s->m);
    const size_t members = (size_t)rt_student_members(student), k = (size_t)rt_model_outputs(s->m),
                 rows = (size_t)s->rows;
    RT_TRY(rt_pool_create(&s->pool, 1));
    RT_TRY(rt_graph_create(&s->g, s->rows, RT_DTYPE_F32));
    rt_build b = {.g = s->g, .params = (rt_params *)(uintptr_t)rt_model_params(s->m)};
    rt_graph_output(
        s->g, "y",
        rt_student_forward(student, &b, rt_graph_input(s->g, "x", RT_DTYPE_F32, rt_model_input(s->m), 1)));
    const int networks = rt_model_networks(s->m);
    const bool all = rt_keep_networks(rt_model_params(s->m), networks);
    RT_TRY(rt_plan_compile(&s->plan, s->g, (rt_plan_options){.whole_batch = !all, .frozen = all}));
    RT_TRY(rt_exec_create_sharing(&s->exec, s->plan, s->pool));
    s->nkept = all ? networks : 1;
    RT_TRY(rt_calloc(&s->kept, (size_t)s->nkept, sizeof(void *)));
    for (int i = 0; i < s->nkept; i++)
        RT_TRY(rt_kept_create(&s->kept[i], s->plan));
    RT_TRY(rt_calloc(&s->x, rows * (size_t)s->row, sizeof *s->x));
    RT_TRY(rt_calloc(&s->y, members * rows * k, sizeof *s->y));
    RT_TRY(rt_calloc(&s->all, rows * (size_t)rt_model_members(s->m) * k, sizeof *s->all));
    RT_TRY(rt_calloc(&s->p, ((size_t)rt_model_members(s->m) + 1) * k, sizeof *s->p));
    rt_exec_bind_input(s->exec, 0, s->x);
    rt_exec_bind_output(s->exec, 0, s->y);
    return RT_OK;
}

rt_status rt_session_create(rt_session **out, const rt_model *m, int64_t rows) {
    rt_session *s = NULL;
    *out = NULL;
    RT_FAIL_IF(m == NULL || rows < 1 || rows > 1 << 20, RT_E_USAGE,
               "session: %lld rows, wanted a model and 1 to %d", (long long)rows, 1 << 20);
    RT_TRY(rt_calloc(&s, 1, sizeof *s));
    s->m = m;
    s->rows = rows;
    s->row = rt_model_row(m);
    s->bound = -1;
    const rt_status st = session_init(s);
    if (st != RT_OK)
        rt_session_destroy(&s);
    *out = s;
    return st;
}

void rt_session_destroy(rt_session **sp) {
    rt_session *s = sp != NULL ? *sp : NULL;
    if (s == NULL)
        return;
    rt_exec_destroy(&s->exec);
    for (int i = 0; s->kept != NULL && i < s->nkept; i++)
        rt_kept_destroy(&s->kept[i]);
    rt_free(s->kept);
    rt_plan_destroy(&s->plan);
    rt_graph_destroy(&s->g);
    rt_pool_destroy(&s->pool);
    rt_free(s->x);
    rt_free(s->y);
    rt_free(s->all);
    rt_free(s->p);
    rt_free(s);
    *sp = NULL;
}

static void run_network(rt_session *s, int network, int64_t rows) {
    const rt_params *p = rt_model_params(s->m);
    const int members = rt_student_members(rt_model_student(s->m));
    const int64_t k = rt_model_outputs(s->m);
    /* models are immutable: what is kept of a network stays right */
    const rt_run run = {.params_unchanged = s->bound == network || s->nkept > 1};
    rt_exec_bind_kept(s->exec, s->kept[s->nkept > 1 ? network : 0]);
    if (s->bound != network)
        for (int i = 0; i < rt_params_count(p); i++) /* only read: evaluation mode */
            rt_exec_bind_param(
                s->exec, i, (void *)(uintptr_t)(rt_model_block(s->m, network) + rt_params_get(p, i)->offset));
    s->bound = network;
    rt_exec_run(&s->exec, &run, 1, s->pool);
    for (int m = 0; m < members; m++)
        for (int64_t r = 0; r < rows; r++)
            memcpy(s->all + ((r * rt_model_members(s->m)) + network * members + m) * k,
                   s->y + (m * s->rows + r) * k, (size_t)k * sizeof *s->y);
}

static void put(float *dst, int64_t i, double v) {
    if (dst != NULL)
        dst[i] = (float)v;
}

static void copy_to(float *dst, int64_t row, const float *src, int64_t n) {
    if (dst != NULL)
        memcpy(dst + row * n, src, (size_t)n * sizeof *dst);
}

static void classify(rt_session *s, int64_t r, const rt_prediction *out) {
    const int64_t m = rt_model_members(s->m), k = rt_model_outputs(s->m);
    float *mean = s->p + m * k;
    const float *z = s->all + r * m * k;
    double offset, own = 0; /* own: knowledge uncertainty within members, which a Dirichlet has */
    if (rt_model_output_kind(s->m, &offset) == RT_OUTPUT_DIRICHLET)
        own = rt_eval_dirichlet_mean(z, mean, s->p, 1, m, k, offset);
    else
        rt_eval_softmax_mean(z, mean, s->p, 1, m, k);
    const double total = rt_eval_entropy(mean, 1, k), data = rt_eval_entropy(s->p, m, k);
    copy_to(out->probs, r, mean, k);
    copy_to(out->member_probs, r, s->p, m * k);
    put(out->entropy, r, total);
    put(out->expected_entropy, r, data - own);
    put(out->mutual_information, r, own + (m > 1 ? fmax(total - data, 0) : 0));
}

/* Mixture of members: mean of means; variance = mean of variances + variance of means. */
static void regress(rt_session *s, int64_t r, const rt_prediction *out) {
    const int m = rt_model_members(s->m);
    float *y = s->all + r * m * 2;
    double mean = 0, data = 0, square = 0;
    for (int i = 0; i < m; i++) {
        rt_model_unscale(s->m, y + 2 * i);
        mean += (double)y[2 * i] / m;
        data += (double)y[2 * i + 1] / m;
    }
    for (int i = 0; i < m; i++)
        square += ((double)y[2 * i] - mean) * ((double)y[2 * i] - mean) / m;
    put(out->mean, r, mean);
    put(out->variance, r, data + square);
    put(out->data_variance, r, data);
    put(out->knowledge_variance, r, square);
}

rt_status rt_session_run(rt_session *s, const float *x, int64_t rows, const rt_prediction *out) {
    RT_FAIL_IF(s == NULL || x == NULL || out == NULL, RT_E_USAGE,
               "session: no session, inputs or place for results");
    RT_FAIL_IF(rows < 1 || rows > s->rows, RT_E_USAGE, "session: %lld rows, it was made for 1 to %lld",
               (long long)rows, (long long)s->rows);
    for (int64_t i = 0; i < rows * s->row; i++)
        RT_FAIL_IF(!isfinite(x[i]), RT_E_INPUT, "session: row %lld, value %lld is not finite",
                   (long long)(i / s->row), (long long)(i % s->row));
    memcpy(s->x, x, (size_t)(rows * s->row) * sizeof *x);
    memset(s->x + rows * s->row, 0, (size_t)((s->rows - rows) * s->row) * sizeof *x);
    for (int n = 0; n < rt_model_networks(s->m); n++)
        run_network(s, n, rows);
    for (int64_t r = 0; r < rows; r++) {
        if (rt_model_task(s->m) == RT_TASK_REGRESSION)
            regress(s, r, out);
        else
            classify(s, r, out);
    }
    return RT_OK;
}

typedef rt_status (*verb_run)(const rt_config *c, const rt_train_hooks *hooks, rt_train_result *out);

static rt_status run_verb(unsigned verb, verb_run run, const char *const *settings, int n,
                          const volatile int *stop) {
    rt_config c;
    rt_train_result r;
    rt_status st = RT_OK;
    RT_TRY(rt_config_init(&c));
    for (int i = 0; i < n; i++) {
        char key[64];
        const char *eq = strchr(settings[i], '=');
        if (eq == NULL || (size_t)(eq - settings[i]) >= sizeof key)
            RT_FAIL_GOTO(RT_E_USAGE, "setting \"%.80s\": wanted key=value", settings[i]);
        memcpy(key, settings[i], (size_t)(eq - settings[i]));
        key[eq - settings[i]] = '\0';
        RT_TRY_GOTO(rt_config_set(&c, verb, key, eq + 1, key, false));
    }
    _Static_assert(sizeof(sig_atomic_t) == sizeof(int), "the flag of a signal handler is an int");
    st = run(&c, &(rt_train_hooks){.stop = (const volatile sig_atomic_t *)stop}, &r);
done:
    rt_config_deinit(&c);
    return st;
}

rt_status rt_train(const char *const *settings, int n, const volatile int *stop) {
    return run_verb(RT_VERB_TRAIN, rt_train_run, settings, n, stop);
}

rt_status rt_distill(const char *const *settings, int n, const volatile int *stop) {
    return run_verb(RT_VERB_DISTILL, rt_distill_run, settings, n, stop);
}
