/*
 * students_support.h - what the tests of students, step graphs and reconstruction share: a student with a block
 * of parameters, graphs run by the interpreter, numbers from a hash of (name, element).
 */
#ifndef RT_TESTS_STUDENTS_SUPPORT_H
#define RT_TESTS_STUDENTS_SUPPORT_H

#include "base/alloc.h"
#include "distill/distill.h"
#include "plan/plan.h"
#include "support/check.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

/* The same numbers as uniform() of tests/golden/students.py. */
static inline double hash_uniform(const char *name, int64_t i) {
    uint32_t h = 2166136261u;
    for (; *name != '\0'; name++)
        h = (h ^ (uint8_t)*name) * 16777619u;
    uint32_t x = ((uint32_t)(i + 1) * 2654435761u) ^ h;
    x ^= x >> 15;
    x *= 2246822519u;
    x ^= x >> 13;
    x *= 3266489917u;
    x ^= x >> 16;
    return (double)x / 4294967296.0;
}

static inline double param_value(const rt_param *p, int64_t i) {
    const double u = hash_uniform(p->name, i) - 0.5;
    int64_t fan = 1;
    for (int k = 1; k < p->shape.rank; k++)
        fan *= p->shape.d[k];
    switch (p->role) {
    case RT_ROLE_WEIGHT:
        return 3.4 / sqrt((double)fan) * u;
    case RT_ROLE_BIAS:
        return 0.4 * u;
    case RT_ROLE_FAST:
        return 1 + 0.6 * u;
    case RT_ROLE_NORM:
        return rt_str_ends(p->name, ".weight") ? 1 + 0.6 * u : 0.4 * u;
    case RT_ROLE_STATE:
        return rt_str_ends(p->name, ".running_var") ? 1 + 0.5 * u : 0.2 * u;
    }
    return 0;
}

typedef struct learner {
    rt_params *params;
    rt_student *student;
    float *block;
} learner;

static inline learner learner_make(rt_student_config c) {
    learner l = {0};
    OK(rt_params_create(&l.params));
    OK(rt_student_create(&l.student, &c, l.params));
    OK(rt_calloc(&l.block, (size_t)rt_params_floats(l.params), sizeof *l.block));
    for (int slot = 0; slot < rt_params_count(l.params); slot++) {
        const rt_param *p = rt_params_get(l.params, slot);
        for (int64_t i = 0; i < p->count; i++)
            l.block[p->offset + i] = (float)param_value(p, i);
    }
    return l;
}

static inline void learner_drop(learner *l) {
    rt_student_destroy(&l->student);
    rt_params_destroy(&l->params);
    rt_free(l->block);
    l->block = NULL;
}

static inline float *learner_at(const learner *l, const char *name) {
    const int slot = rt_params_find(l->params, name);
    if (slot < 0)
        fail_msg("no parameter %s", name);
    return l->block + rt_params_get(l->params, slot)->offset;
}

static inline int64_t numbers_under(const rt_params *p, const char *prefix) {
    int64_t n = 0;
    for (int i = 0; i < rt_params_count(p); i++)
        n += rt_str_starts(rt_params_get(p, i)->name, prefix) ? rt_params_get(p, i)->count : 0;
    return n;
}

/* A batch of inputs in [0, 1). */
static inline float *inputs_make(const char *name, int64_t n) {
    float *x = NULL;
    OK(rt_alloc(&x, (size_t)n * sizeof *x));
    for (int64_t i = 0; i < n; i++)
        x[i] = (float)hash_uniform(name, i);
    return x;
}

/* Outputs of a student in eval mode: all members, or member `pick` alone (pick >= 0). Caller frees. */
static inline float *student_eval(const learner *l, const float *x, int64_t batch, int pick) {
    const rt_arch_config *arch = rt_net_config(rt_student_net(l->student));
    rt_graph *g = NULL;
    OK(rt_graph_create(&g, batch, RT_DTYPE_F32));
    rt_build b = {.g = g, .params = l->params};
    const rt_val in = rt_graph_input(g, "x", RT_DTYPE_F32, arch->input, 1);
    const rt_val index = rt_graph_feed(g, "i", RT_DTYPE_I32, rt_shape0());
    const rt_val z =
        pick >= 0 ? rt_student_member(l->student, &b, in, index) : rt_student_forward(l->student, &b, in);
    rt_graph_output(g, "z", z);
    OK(rt_graph_status(g));
    assert_int_equal(rt_graph_node(g, z)->type.groups, pick >= 0 ? 1 : rt_student_members(l->student));
    const int n = rt_params_count(l->params);
    const void **params = NULL;
    OK(rt_calloc(&params, (size_t)n, sizeof *params));
    for (int i = 0; i < n; i++)
        params[i] = l->block + rt_params_get(l->params, i)->offset;
    float *out = NULL;
    OK(rt_calloc(&out, (size_t)rt_shape_elems(&rt_graph_node(g, z)->type.shape), sizeof *out));
    const int32_t member = pick;
    const void *inputs[] = {x}, *feeds[] = {&member};
    void *outputs[] = {out};
    OK(rt_interp_run(g, params, inputs, feeds, outputs, (rt_run){0}));
    rt_free(params);
    rt_graph_destroy(&g);
    return out;
}

static inline void assert_near(const float *a, const float *b, int64_t n, double tolerance,
                               const char *what) {
    double top = 1e-6;
    for (int64_t i = 0; i < n; i++)
        top = fmax(top, fabs((double)b[i]));
    for (int64_t i = 0; i < n; i++)
        if (!(fabs((double)a[i] - (double)b[i]) <= tolerance * top))
            fail_msg("%s: element %lld is %.9g, wanted %.9g", what, (long long)i, (double)a[i], (double)b[i]);
}

/* The call fails and its message has all of the given words (separated by |). */
static inline void assert_refused(rt_status st, const char *words) {
    char text[256];
    if (st == RT_OK)
        fail_msg("not refused; wanted a message with: %s", words);
    snprintf(text, sizeof text, "%s", words);
    for (char *w = strtok(text, "|"); w != NULL; w = strtok(NULL, "|"))
        if (strstr(rt_error_text(), w) == NULL)
            fail_msg("message \"%s\" does not say \"%s\"", rt_error_text(), w);
}

/* Runs a piece of work again and again, each time with another allocation failing: it must say so, and keep
 * nothing. The work frees all it made when it succeeds. */
typedef struct nth_failure {
    uint64_t at, calls;
} nth_failure;
static inline bool fail_nth(void *user, uint64_t call, size_t bytes) {
    nth_failure *f = user;
    (void)call, (void)bytes;
    return ++f->calls != f->at;
}
static inline void each_allocation_fails(rt_status (*work)(void *), void *user, int at_least) {
    for (uint64_t n = 1;; n++) {
        nth_failure f = {.at = n};
        rt_alloc_stats before, after;
        rt_alloc_get_stats(&before);
        rt_alloc_set_hook(fail_nth, &f);
        const rt_status st = work(user);
        rt_alloc_set_hook(NULL, NULL);
        rt_alloc_get_stats(&after);
        if (before.live_blocks != after.live_blocks)
            fail_msg("failing allocation %d leaves %d blocks", (int)n,
                     (int)(after.live_blocks - before.live_blocks));
        if (st == RT_OK && f.calls < n) {
            assert_true((int)n > at_least);
            return;
        }
        if (st != RT_E_MEMORY)
            fail_msg("failing allocation %d gives status %d: %s", (int)n, (int)st, rt_error_text());
    }
}

#endif
