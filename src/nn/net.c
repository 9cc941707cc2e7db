/*
 * net.c - a network: a parsed specification, its stages, and the walk over them.
 *
 *     "wrn:28,1" --archs.def--> rt_arch.plan --> stages 0 .. S-1 --rt_net_range--> nodes of a graph
 *
 * Creation proves the network: all stages are built once, for a batch of one, in declare mode, which
 * validates every shape and fills the parameter table. What fails later can then only be a table or a batch
 * that does not belong to the network.
 */
#include "base/alloc.h"
#include "nn/nn_int.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

#define RT_ARCH(id, form, meaning) {#id, form, meaning},
static const rt_arch_info arch_infos[] = {
#include "nn/archs.def"
};
#undef RT_ARCH

#define RT_ARCH(id, form, meaning) &rt_arch_##id,
static const rt_arch *const archs[] = {
#include "nn/archs.def"
};
#undef RT_ARCH

int rt_arch_list(const rt_arch_info **out) {
    *out = arch_infos;
    return (int)RT_COUNT(arch_infos);
}

/* ---- what the architectures use ---- */

rt_status rt_net_add_stage(rt_net *n, rt_stage s) {
    if (n->stages == n->cap) {
        int cap = n->cap ? 2 * n->cap : 16;
        RT_TRY(rt_realloc(&n->stage, (size_t)n->cap * sizeof *n->stage, (size_t)cap * sizeof *n->stage));
        n->cap = cap;
    }
    n->stage[n->stages++] = s;
    return RT_OK;
}

rt_status rt_arch_ints(const rt_net *net, const char *args, int64_t most, int64_t *out, int cap, int *n) {
    const char *spec = net->config.spec;
    *n = 0;
    while (args) {
        const char *comma = strchr(args, ',');
        size_t len = comma ? (size_t)(comma - args) : strlen(args);
        int64_t v;
        RT_FAIL_IF(!rt_parse_i64(args, len, &v) || v < 1 || v > most, RT_E_USAGE,
                   "architecture %s: \"%.*s\" is not a whole number from 1 to %lld", spec,
                   (int)RT_MIN(len, (size_t)40), args, (long long)most);
        RT_FAIL_IF(*n == cap, RT_E_USAGE, "architecture %s: more than %d numbers", spec, cap);
        out[(*n)++] = v;
        args = comma ? comma + 1 : NULL;
    }
    RT_FAIL_IF(*n == 0, RT_E_USAGE, "architecture %s: wanted numbers after the name, for example %s:%s", spec,
               net->arch->name, cap > 2 ? "200,200" : "28,1");
    return RT_OK;
}

rt_status rt_arch_no_args(const rt_net *net, const char *args) {
    RT_FAIL_IF(args, RT_E_USAGE, "architecture %s: %s takes no numbers", net->config.spec, net->arch->name);
    return RT_OK;
}

rt_status rt_arch_need_image(const rt_net *net) {
    const rt_arch_config *c = &net->config;
    RT_FAIL_IF(c->input.rank != 3, RT_E_USAGE,
               "architecture %s: wants images (channels, height, width), the data has rows of %lld features; "
               "use mlp:H1,H2,...",
               c->spec, (long long)c->input.d[0]);
    RT_FAIL_IF(c->activation && strcmp(c->activation, "relu") != 0, RT_E_USAGE,
               "architecture %s: activation \"%s\", only mlp can change it", c->spec, c->activation);
    return RT_OK;
}

/* ---- creation ---- */

static rt_status check_norm(const rt_arch_config *c) {
    if (c->norm == 0)
        return RT_OK;
    RT_FAIL_IF(c->norm != c->input.d[0] || !c->mean || !c->std, RT_E_USAGE,
               "architecture %s: standardisation with %d means, the input has %lld %s", c->spec, c->norm,
               (long long)c->input.d[0], c->input.rank == 3 ? "channels" : "features");
    for (int i = 0; i < c->norm; i++)
        RT_FAIL_IF(!isfinite(c->mean[i]) || !isfinite(c->std[i]) || c->std[i] <= 0, RT_E_USAGE,
                   "architecture %s: standardisation entry %d has mean %g and deviation %g, wanted finite "
                   "numbers and a positive deviation",
                   c->spec, i, c->mean[i], c->std[i]);
    return RT_OK;
}

static rt_status check_config(const rt_arch_config *c) {
    RT_FAIL_IF(c->input.rank != 1 && c->input.rank != 3, RT_E_USAGE,
               "architecture %s: input of rank %d, wanted (features) or "
               "(channels, height, width)",
               c->spec, c->input.rank);
    int64_t count;
    RT_FAIL_IF(!rt_shape_count(&c->input, &count) || count < 1, RT_E_USAGE,
               "architecture %s: the input has no elements, or too many", c->spec);
    RT_FAIL_IF(c->outputs < 1, RT_E_USAGE, "architecture %s: %lld outputs, wanted at least 1", c->spec,
               (long long)c->outputs);
    RT_FAIL_IF(!(c->dropout >= 0 && c->dropout < 1), RT_E_USAGE,
               "architecture %s: dropout %g, wanted 0 <= p < 1", c->spec, c->dropout);
    return check_norm(c);
}

static rt_status copy_doubles(const double **dst, const double *src, int n) {
    double *p = NULL;
    *dst = NULL;
    if (n == 0)
        return RT_OK;
    RT_TRY(rt_alloc(&p, (size_t)n * sizeof *p));
    memcpy(p, src, (size_t)n * sizeof *p);
    *dst = p;
    return RT_OK;
}

static rt_status copy_text(const char **dst, const char *src) {
    *dst = NULL;
    if (!src)
        return RT_OK;
    *dst = rt_strdup(src);
    return *dst ? RT_OK : rt_error_last()->code;
}

static rt_status copy_config(rt_net *n, const rt_arch_config *c, const char *prefix) {
    n->config = *c;
    n->config.spec = n->config.activation = NULL;
    n->config.mean = n->config.std = NULL;
    const char *p;
    RT_TRY(copy_text(&n->config.spec, c->spec));
    RT_TRY(copy_text(&n->config.activation, c->activation));
    RT_TRY(copy_doubles(&n->config.mean, c->mean, c->norm));
    RT_TRY(copy_doubles(&n->config.std, c->std, c->norm));
    RT_TRY(copy_text(&p, prefix));
    n->prefix = (char *)(uintptr_t)p;
    return RT_OK;
}

static const rt_arch *arch_of(const char *spec) {
    for (int64_t i = 0; i < RT_COUNT(archs); i++)
        if (rt_str_heads(spec, archs[i]->name))
            return archs[i];
    return NULL;
}

bool rt_arch_normalises(const char *spec) {
    const rt_arch *a = arch_of(spec);
    return a && !a->no_norm;
}

static rt_status find_arch(const rt_arch **out, const char *spec, const char **args) {
    const char *colon = strchr(spec, ':'), *names[RT_COUNT(archs)];
    char name[64];
    for (int64_t i = 0; i < RT_COUNT(archs); i++)
        names[i] = archs[i]->name;
    *args = colon ? colon + 1 : NULL;
    *out = arch_of(spec);
    snprintf(name, sizeof name, "%.*s", (int)RT_MIN(strcspn(spec, ":"), sizeof name - 1), spec);
    if (!*out)
        RT_FAIL_UNKNOWN(RT_E_USAGE, name, names, RT_COUNT(names), "architecture %.100s: unknown", spec);
    return RT_OK;
}

/* Builds everything once; params takes the declarations. */
static rt_status declare(rt_net *n, rt_params *params) {
    rt_graph *g = NULL;
    RT_TRY(rt_graph_create(&g, 1, RT_DTYPE_F32));
    rt_build b = {.g = g, .params = params, .declare = true};
    rt_net_forward(n, &b, rt_graph_input(g, "x", RT_DTYPE_F32, n->config.input, 1));
    rt_status st = rt_graph_status(g);
    rt_graph_destroy(&g);
    return st == RT_OK ? st : rt_error_prefix(st, "architecture %s", n->config.spec);
}

static double sum_flops(const rt_layer_info *layer, int n) {
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += layer[i].flops;
    return sum;
}

rt_status rt_net_create(rt_net **out, const rt_arch_config *c, rt_params *params, const char *prefix) {
    rt_net *n = NULL;
    rt_layer_info *layer = NULL;
    int layers = 0;
    rt_status st = RT_OK;
    const char *args;
    *out = NULL;
    RT_FAIL_IF(!c->spec, RT_E_USAGE, "no architecture given");
    RT_TRY(check_config(c));
    RT_TRY(rt_calloc(&n, 1, sizeof *n));
    RT_TRY_GOTO(copy_config(n, c, prefix));
    RT_TRY_GOTO(find_arch(&n->arch, n->config.spec, &args));
    RT_TRY_GOTO(n->arch->plan(n, args));
    RT_TRY_GOTO(rt_net_layers(n, &layer, &layers));
    n->flops = sum_flops(layer, layers);
    if (params)
        RT_TRY_GOTO(declare(n, params));
    *out = n;
    n = NULL;
done:
    rt_free(layer);
    rt_net_destroy(&n);
    return st;
}

void rt_net_destroy(rt_net **np) {
    rt_net *n = *np;
    if (!n)
        return;
    rt_free((void *)(uintptr_t)n->config.spec);
    rt_free((void *)(uintptr_t)n->config.activation);
    rt_free((void *)(uintptr_t)n->config.mean);
    rt_free((void *)(uintptr_t)n->config.std);
    rt_free(n->prefix);
    rt_free(n->stage);
    rt_free(n);
    *np = NULL;
}

/* ---- use ---- */

const rt_arch_config *rt_net_config(const rt_net *n) {
    return &n->config;
}

int rt_net_stages(const rt_net *n) {
    return n->stages;
}

const char *rt_net_stage_name(const rt_net *n, int i) {
    RT_ASSERT(i >= 0 && i < n->stages);
    return n->stage[i].name;
}

double rt_net_flops(const rt_net *net) {
    return net->flops;
}

/* (x - mean) / std as x a + c per channel or feature: one pass that fuses with what follows. */
static rt_val standardise(const rt_net *n, rt_build *b, rt_val x) {
    const rt_arch_config *c = &n->config;
    if (c->norm == 0)
        return x;
    double *coef = NULL;
    rt_status st = rt_alloc(&coef, 2 * (size_t)c->norm * sizeof *coef);
    if (st != RT_OK) {
        rt_graph_set_error(b->g, st);
        return 0;
    }
    for (int i = 0; i < c->norm; i++) {
        coef[i] = 1 / c->std[i];
        coef[c->norm + i] = -c->mean[i] / c->std[i];
    }
    x = rt_mul_chan(b->g, x, rt_graph_const(b->g, rt_shape1(c->norm), coef));
    x = rt_add_chan(b->g, x, rt_graph_const(b->g, rt_shape1(c->norm), coef + c->norm));
    rt_free(coef);
    return x;
}

rt_val rt_net_range(const rt_net *n, rt_build *b, rt_val x, int from, int to) {
    RT_ASSERT(from >= 0 && from <= to && to <= n->stages);
    const char *prefix = b->prefix;
    int32_t group = b->group;
    if (!prefix)
        b->prefix = n->prefix;
    if (from == 0 && to > 0)
        x = standardise(n, b, x);
    for (int i = from; i < to && x; i++) {
        b->group = i;
        rt_graph_scope(b->g, n->stage[i].name);
        x = n->stage[i].build(n, b, &n->stage[i], x);
    }
    rt_graph_scope(b->g, NULL);
    b->prefix = prefix;
    b->group = group;
    return x;
}

rt_val rt_net_forward(const rt_net *n, rt_build *b, rt_val x) {
    return rt_net_range(n, b, x, 0, n->stages);
}
