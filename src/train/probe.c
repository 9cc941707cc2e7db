/*
 * probe.c - how far members are from each other on a few fixed rows, once per epoch: the diversity of student and
 * teachers, before and after the perturbation (Nam et al. Eq. 16, 17: the mean over rows of sum_{i != j} KL(p_i || p_j)
 * / (M (M - 1))). Logits come from the graph of rt_probe_build on one exec, and are read as all predictions are
 * (eval/row.c); stored teachers are measured by their stored outputs.
 */
#include "base/alloc.h"
#include "train/train_int.h"
#include <math.h>
#include <string.h>

enum { PROBE_ROWS = 128 };

typedef struct measured {
    rt_row row;
    float *z;     /* (m, rows, k) what the graph gives */
    float *y;     /* (m, k) of one row */
    double value; /* mean over the rows */
} measured;

struct rt_probe {
    rt_distill_config what;
    const rt_params *params;
    rt_pool *pool;
    rt_step_graph graph;
    rt_plan *plan;
    rt_exec *exec;
    float *x;
    int64_t rows;
    measured of[RT_PROBE_MAX];
    float temperature;
    int32_t pair[2];
};

static rt_status measured_init(rt_probe *p, int i) {
    measured *o = &p->of[i];
    const rt_shape *all = &rt_graph_node(p->graph.g, rt_graph_get_output(p->graph.g, i)->v)->type.shape;
    const int64_t k = all->d[1], m = all->d[0] / p->rows;
    RT_TRY(rt_row_init(&o->row, (rt_reading){.m = m, .k = k}));
    RT_TRY(rt_calloc(&o->z, (size_t)(m * p->rows * k), sizeof *o->z));
    RT_TRY(rt_calloc(&o->y, (size_t)(m * k), sizeof *o->y));
    rt_exec_bind_output(p->exec, i, o->z);
    return RT_OK;
}

static void measured_deinit(measured *o) {
    rt_row_deinit(&o->row);
    rt_free(o->z);
    rt_free(o->y);
}

static void measure(measured *o, int64_t rows) {
    const int64_t m = o->row.how.m, k = o->row.how.k;
    double sum = 0;
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t j = 0; j < m; j++)
            memcpy(o->y + j * k, o->z + (j * rows + r) * k, (size_t)k * sizeof *o->y);
        sum += rt_row_read(&o->row, o->y) ? o->row.diversity : NAN;
    }
    o->value = sum / (double)rows;
}

static rt_status probe_init(rt_probe *p, rt_params *params, const rt_subset *set, rt_shape row) {
    const rt_batch_spec spec = {.set = set, .row = row, .batch = RT_MIN(set->n, (int64_t)PROBE_ROWS)};
    RT_TRY(rt_probe_build(&p->graph, &p->what, params, spec.batch));
    RT_ASSERT(rt_graph_outputs(p->graph.g) <= RT_PROBE_MAX);
    p->rows = spec.batch;
    if (rt_graph_outputs(p->graph.g) == 0)
        return RT_OK;
    RT_TRY(rt_plan_compile(&p->plan, p->graph.g, (rt_plan_options){.v3 = rt_params_v3(params)}));
    RT_TRY(rt_memory_check(rt_plan_bytes(p->plan), "the measure of diversity"));
    RT_TRY(rt_exec_create(&p->exec, p->plan, p->pool));
    RT_TRY(rt_calloc(&p->x, (size_t)(spec.batch * rt_shape_elems(&row)), sizeof *p->x));
    rt_batch_fill(&spec, 0, 0, 0, NULL, p->x, NULL, NULL, NULL);
    rt_exec_bind_input(p->exec, p->graph.in_x, p->x);
    rt_exec_bind_feed(p->exec, p->graph.feed_temperature, &p->temperature);
    if (p->graph.feed_i >= 0)
        rt_exec_bind_feed(p->exec, p->graph.feed_i, &p->pair[0]);
    if (p->graph.feed_j >= 0)
        rt_exec_bind_feed(p->exec, p->graph.feed_j, &p->pair[1]);
    for (int i = 0; i < rt_graph_outputs(p->graph.g); i++)
        RT_TRY(measured_init(p, i));
    return RT_OK;
}

rt_status rt_probe_create(rt_probe **out, const rt_distill_config *what, rt_params *params,
                          const rt_subset *set, rt_shape row, rt_pool *pool) {
    *out = NULL;
    rt_probe *p;
    RT_TRY(rt_calloc(&p, 1, sizeof *p));
    p->what = *what;
    p->params = params;
    p->pool = pool;
    rt_status st = probe_init(p, params, set, row);
    if (st != RT_OK)
        rt_probe_destroy(&p);
    *out = p;
    return st;
}

void rt_probe_destroy(rt_probe **probe) {
    rt_probe *p = *probe;
    *probe = NULL;
    if (!p)
        return;
    for (int i = 0; i < RT_PROBE_MAX; i++)
        measured_deinit(&p->of[i]);
    rt_exec_destroy(&p->exec);
    rt_plan_destroy(&p->plan);
    rt_step_graph_deinit(&p->graph);
    rt_free(p->x);
    rt_free(p);
}

static void bind_block(const rt_probe *p, const rt_params *table, int first, const float *block) {
    rt_exec_bind_block(p->exec, first, block, rt_params_offsets(table), rt_params_count(table));
}

void rt_probe_run(rt_probe *p, const float *block, const float *const *teachers, double temperature,
                  const int32_t pair[2], uint64_t seed, int64_t step) {
    if (!p->exec)
        return;
    p->temperature = (float)temperature;
    memcpy(p->pair, pair, sizeof p->pair);
    bind_block(p, p->params, 0, block);
    for (int c = 0; c < p->graph.nteacher; c++) {
        const int who = p->graph.teacher[c].member;
        bind_block(p, p->what.teacher_params, p->graph.teacher[c].first,
                   teachers[who >= 0    ? who
                            : who == -1 ? pair[0]
                                        : pair[1]]);
    }
    rt_exec_run(&p->exec, &(rt_run){.seed = seed, .step = (uint64_t)step}, 1, p->pool);
    for (int i = 0; i < rt_probe_count(p); i++)
        measure(&p->of[i], p->rows);
}

int rt_probe_count(const rt_probe *p) {
    return p->exec ? rt_graph_outputs(p->graph.g) : 0;
}

const char *rt_probe_get(const rt_probe *p, int i, double *value) {
    *value = p->of[i].value;
    return rt_graph_get_output(p->graph.g, i)->name;
}
