/*
 * params.c - the table of named parameters.
 *
 * A line is added once, gets the next slot and the next place in the block, and never moves. Every tensor
 * begins on a multiple of 16 floats (a cache line, a vector of any width), so loops over one tensor need no
 * unaligned head; the gaps are zero in every block and stay so, because a zero weight with a zero gradient
 * is left alone by every optimiser.
 *
 *     block  |weight 0 .......|0|bias 0 ...|0 0|weight 1 ........|
 *     offset[i+1] = round up(offset[i] + count[i], 16)
 */
#include "base/alloc.h"
#include "base/map.h"
#include "base/size.h"
#include "nn/nn_int.h"
#include <string.h>

enum { PARAM_ALIGN = 16 };

struct rt_params {
    rt_param *line;
    int64_t *offset; /* of each, for those who bind a block */
    int count, cap;
    int64_t floats;
    rt_map by_name;
    bool v3;
};

rt_status rt_params_create(rt_params **out) {
    *out = NULL;
    RT_TRY(rt_calloc(out, 1, sizeof **out));
    rt_map_init(&(*out)->by_name);
    return RT_OK;
}

void rt_params_destroy(rt_params **pp) {
    rt_params *p = *pp;
    if (!p)
        return;
    for (int i = 0; i < p->count; i++)
        rt_free((void *)(uintptr_t)p->line[i].name);
    rt_free(p->line);
    rt_free(p->offset);
    rt_map_deinit(&p->by_name);
    rt_free(p);
    *pp = NULL;
}

bool rt_params_v3(const rt_params *p) {
    return p->v3;
}

void rt_params_set_v3(rt_params *p, bool v3) {
    p->v3 = v3;
}

int rt_params_count(const rt_params *p) {
    return p->count;
}

const rt_param *rt_params_get(const rt_params *p, int slot) {
    RT_ASSERT(slot >= 0 && slot < p->count);
    return &p->line[slot];
}

const int64_t *rt_params_offsets(const rt_params *p) {
    return p->offset;
}

int rt_params_find(const rt_params *p, const char *name) {
    int64_t slot;
    return rt_map_get(&p->by_name, name, &slot) ? (int)slot : -1;
}

int64_t rt_params_floats(const rt_params *p) {
    return p->floats;
}

int64_t rt_params_trainable(const rt_params *p) {
    int64_t n = 0;
    for (int i = 0; i < p->count; i++)
        n += p->line[i].role == RT_ROLE_STATE ? 0 : p->line[i].count;
    return n;
}

static rt_status reserve(rt_params *p) {
    if (p->count < p->cap)
        return RT_OK;
    int cap = p->cap ? 2 * p->cap : 32;
    RT_TRY(rt_realloc(&p->line, (size_t)p->cap * sizeof *p->line, (size_t)cap * sizeof *p->line));
    RT_TRY(rt_realloc(&p->offset, (size_t)p->cap * sizeof *p->offset, (size_t)cap * sizeof *p->offset));
    p->cap = cap;
    return RT_OK;
}

rt_status rt_params_add(rt_params *p, rt_param spec, int *slot) {
    RT_FAIL_IF(rt_params_find(p, spec.name) >= 0, RT_E_USAGE, "parameter %s: declared twice", spec.name);
    RT_FAIL_IF(!rt_shape_count(&spec.shape, &spec.count) || spec.count < 1, RT_E_USAGE,
               "parameter %s: empty, or too large to address", spec.name);
    int64_t end, padded;
    RT_FAIL_IF(!rt_i64_add(p->floats, spec.count, &end) || !rt_i64_add(end, PARAM_ALIGN - 1, &padded) ||
                   padded > INT64_MAX / (int64_t)sizeof(float),
               RT_E_USAGE, "parameter %s: the parameters together are too large to address", spec.name);
    RT_TRY(reserve(p));
    char *name = rt_strdup(spec.name);
    if (!name)
        return rt_error_last()->code;
    rt_status st = rt_map_put(&p->by_name, name, p->count, NULL);
    if (st != RT_OK) {
        rt_free(name);
        return st;
    }
    spec.name = name;
    spec.offset = p->offset[p->count] = p->floats;
    p->floats = padded & ~(int64_t)(PARAM_ALIGN - 1);
    if (slot)
        *slot = p->count;
    p->line[p->count++] = spec;
    return RT_OK;
}
