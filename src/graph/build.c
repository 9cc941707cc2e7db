/*
 * build.c - a graph as an array of nodes in which no two are the same.
 *
 * Sharing: rt_graph_append hashes operation, attributes and inputs and returns an existing node if one is
 * equal. Gradient rules lean on it: they rebuild forward subexpressions (softmax(z), log q) without asking
 * whether somebody has built them before. It also holds for random operations, whose stream is an attribute:
 * the same stream on the same value is the same mask.
 *
 * Errors: the first one is kept with its message; from then on every builder returns 0, and accepts 0, so
 * that a network is written without a check per line.
 */
#include "base/alloc.h"
#include "graph/graph_int.h"
#include <string.h>

rt_status rt_graph_create(rt_graph **out, int64_t batch, rt_dtype dtype) {
    rt_graph *g = NULL;
    rt_status st = RT_OK;
    *out = NULL;
    RT_FAIL_IF(batch < 1, RT_E_USAGE, "graph: a batch of %lld, wanted at least 1", (long long)batch);
    RT_FAIL_IF(dtype != RT_DTYPE_F32 && dtype != RT_DTYPE_F64, RT_E_USAGE,
               "graph: the type must be f32 or f64");
    RT_TRY_GOTO(rt_calloc(&g, 1, sizeof *g));
    rt_arena_init(&g->arena);
    g->batch = batch;
    g->dtype = dtype;
    g->cap = 64;
    g->table_cap = 128;
    RT_TRY_GOTO(rt_calloc(&g->nodes, (size_t)g->cap, sizeof *g->nodes));
    RT_TRY_GOTO(rt_calloc(&g->table, (size_t)g->table_cap, sizeof *g->table));
    g->nodes[0].slot = -1;
    g->count = 1;
    *out = g;
    g = NULL;
done:
    rt_graph_destroy(&g);
    return st;
}

void rt_graph_destroy(rt_graph **gp) {
    rt_graph *g = *gp;
    if (g == NULL)
        return;
    rt_arena_deinit(&g->arena);
    rt_free(g->nodes);
    rt_free(g->table);
    rt_free(g->outs);
    rt_free(g);
    *gp = NULL;
}

rt_status rt_graph_status(const rt_graph *g) {
    if (g->st != RT_OK)
        rt_error_restore(&g->err);
    return g->st;
}

void rt_graph_set_error(rt_graph *g, rt_status st) {
    if (g->st != RT_OK || st == RT_OK)
        return;
    g->st = st;
    rt_error_save(&g->err);
}

rt_val rt_graph_refuse(rt_graph *g, rt_status st) {
    rt_graph_set_error(g, st);
    return 0;
}

int64_t rt_graph_batch(const rt_graph *g) {
    return g->batch;
}

rt_dtype rt_graph_dtype(const rt_graph *g) {
    return g->dtype;
}

int64_t rt_graph_count(const rt_graph *g) {
    return g->count;
}

const rt_node *rt_graph_node(const rt_graph *g, rt_val v) {
    RT_ASSERT((int64_t)v < g->count);
    return &g->nodes[v];
}

void rt_graph_scope(rt_graph *g, const char *scope) {
    if (g->st != RT_OK)
        return;
    if (scope == NULL) {
        g->scope = NULL;
        return;
    }
    if (g->scope == NULL || strcmp(g->scope, scope) != 0)
        rt_graph_set_error(g, rt_arena_strdup(&g->arena, &g->scope, scope));
}

/* ---- identity of nodes ---- */

static uint64_t mix(uint64_t h, uint64_t v) {
    h = (h ^ v) * 0x9e3779b97f4a7c15u;
    return h ^ (h >> 29);
}

static uint64_t mix_f64(uint64_t h, double v) {
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    return mix(h, bits);
}

static uint64_t mix_shape(uint64_t h, const rt_shape *s) {
    h = mix(h, (uint64_t)s->rank);
    for (int i = 0; i < s->rank; i++)
        h = mix(h, (uint64_t)s->d[i]);
    return h;
}

static uint64_t mix_attr(uint64_t h, const rt_attr *a) {
    h = mix_f64(mix_f64(h, a->alpha), a->beta);
    h = mix(h, (uint64_t)a->ta * 2 + (uint64_t)a->tb);
    h = mix(mix(h, (uint64_t)a->members), (uint64_t)a->index);
    h = mix(mix(mix(h, (uint64_t)a->start), (uint64_t)a->count), (uint64_t)a->n);
    h = mix(mix(h, (uint64_t)a->kh), (uint64_t)a->kw);
    h = mix(mix(h, (uint64_t)a->stride), (uint64_t)a->pad);
    h = mix(mix(mix(h, (uint64_t)a->h), (uint64_t)a->w), a->stream);
    return mix_shape(h, &a->shape);
}

/* Inputs and feeds are told apart by their running number, parameters by slot, constants by value. */
static uint64_t hash_node(const rt_node *nd) {
    uint64_t h = mix(mix(1, (uint64_t)nd->op), (uint64_t)nd->leaf);
    if (nd->leaf == RT_LEAF_CONST) {
        int64_t n = rt_shape_elems(&nd->type.shape);
        h = mix_shape(h, &nd->type.shape);
        for (int64_t i = 0; i < n; i++)
            h = mix_f64(h, nd->data[i]);
        return h;
    }
    if (nd->leaf != RT_LEAF_NONE)
        return mix(h, (uint64_t)nd->slot);
    h = mix_attr(h, &nd->attr);
    for (int i = 0; i < nd->nin; i++)
        h = mix(h, nd->in[i]);
    return h;
}

static bool same_node(const rt_node *a, const rt_node *b) {
    if (a->op != b->op || a->leaf != b->leaf || a->chain != NULL)
        return false;
    if (a->leaf == RT_LEAF_CONST)
        return rt_shape_equal(&a->type.shape, &b->type.shape) &&
               memcmp(a->data, b->data, (size_t)rt_shape_elems(&a->type.shape) * sizeof(double)) == 0;
    if (a->leaf != RT_LEAF_NONE)
        return a->slot == b->slot;
    return a->nin == b->nin && memcmp(a->in, b->in, (size_t)a->nin * sizeof *a->in) == 0 &&
           rt_attr_equal(&a->attr, &b->attr);
}

/* The place of a node in the table: of its equal, or a free one. */
static rt_val *find_place(const rt_graph *g, const rt_node *nd) {
    uint64_t mask = (uint64_t)g->table_cap - 1, i = hash_node(nd) & mask;
    while (g->table[i] != 0 && !same_node(&g->nodes[g->table[i]], nd))
        i = (i + 1) & mask;
    return &g->table[i];
}

/* Makes room for one more node, keeping the table at most half full. */
static rt_status grow(rt_graph *g) {
    RT_FAIL_IF(g->count >= INT32_MAX, RT_E_MEMORY, "graph: too many values");
    if (g->count == g->cap) {
        size_t old = (size_t)g->cap * sizeof *g->nodes;
        RT_TRY(rt_realloc(&g->nodes, old, 2 * old));
        g->cap *= 2;
    }
    if (g->count * 2 < g->table_cap)
        return RT_OK;
    rt_val *table = NULL;
    RT_TRY(rt_calloc(&table, (size_t)g->table_cap * 2, sizeof *table));
    rt_free(g->table);
    g->table = table;
    g->table_cap *= 2;
    for (int64_t v = 1; v < g->count; v++)
        *find_place(g, &g->nodes[v]) = (rt_val)v;
    return RT_OK;
}

/* Copies what the node points to into the arena. The scope is there already. */
static rt_status own(rt_graph *g, rt_node *nd) {
    if (nd->nin > 0) {
        rt_val *in = NULL;
        RT_TRY(rt_arena_alloc(&g->arena, &in, (size_t)nd->nin * sizeof *in));
        memcpy(in, nd->in, (size_t)nd->nin * sizeof *in);
        nd->in = in;
    }
    if (nd->leaf != RT_LEAF_NONE && nd->name != NULL)
        RT_TRY(rt_arena_strdup(&g->arena, &nd->name, nd->name));
    if (nd->data != NULL) {
        size_t bytes = (size_t)rt_shape_elems(&nd->type.shape) * sizeof(double);
        double *data = NULL;
        RT_TRY(rt_arena_alloc(&g->arena, &data, bytes));
        memcpy(data, nd->data, bytes);
        nd->data = data;
    }
    if (nd->chain != NULL) {
        rt_chain *chain = NULL;
        RT_TRY(rt_arena_alloc(&g->arena, &chain, sizeof *chain));
        *chain = *nd->chain;
        nd->chain = chain;
    }
    return RT_OK;
}

rt_val rt_graph_append(rt_graph *g, const rt_node *node) {
    rt_node nd = *node;
    rt_status st = grow(g);
    if (st != RT_OK)
        return rt_graph_refuse(g, st);
    rt_val *place = find_place(g, &nd);
    if (*place != 0)
        return *place;
    st = own(g, &nd);
    if (st != RT_OK)
        return rt_graph_refuse(g, st);
    rt_val v = (rt_val)g->count;
    g->nodes[g->count++] = nd;
    *place = v;
    return v;
}

/* ---- leaves ---- */

static rt_status check_leaf(const rt_graph *g, const char *what, const char *name, rt_dtype t,
                            const rt_shape *s) {
    int64_t count = 0;
    RT_FAIL_IF(t != g->dtype && t != RT_DTYPE_I32, RT_E_USAGE,
               "%s '%s': its type must be %s, as the graph's, or i32", what, name, rt_dtype_name(g->dtype));
    RT_FAIL_IF(s->rank < 0 || s->rank > RT_MAX_RANK, RT_E_USAGE, "%s '%s': rank %d, at most %d is possible",
               what, name, s->rank, (int)RT_MAX_RANK);
    for (int i = 0; i < s->rank; i++)
        RT_FAIL_IF(s->d[i] < 1, RT_E_USAGE, "%s '%s': %lld elements on axis %d, wanted at least 1", what,
                   name, (long long)s->d[i], i);
    RT_FAIL_IF(!rt_shape_count(s, &count) || count > INT64_MAX / 16, RT_E_USAGE, "%s '%s' is too large", what,
               name);
    return RT_OK;
}

rt_val rt_graph_input(rt_graph *g, const char *name, rt_dtype t, rt_shape row, int groups) {
    if (g->st != RT_OK)
        return 0;
    rt_type type = {.dtype = t, .kind = RT_KIND_ROWS, .groups = groups, .shape = {.rank = row.rank + 1}};
    if (groups < 1 || row.rank < 0 || row.rank >= RT_MAX_RANK || g->batch > INT64_MAX / groups)
        return rt_graph_refuse(g, rt_error_set(RT_E_USAGE, __FILE__, __LINE__,
                                               "input '%s': %d groups of rows of rank %d are not possible",
                                               name, groups, row.rank));
    type.shape.d[0] = groups * g->batch;
    for (int i = 0; i < row.rank; i++)
        type.shape.d[i + 1] = row.d[i];
    rt_status st = check_leaf(g, "input", name, t, &type.shape);
    if (st != RT_OK)
        return rt_graph_refuse(g, st);
    rt_val v =
        rt_graph_append(g, &(rt_node){.leaf = RT_LEAF_INPUT, .type = type, .slot = g->inputs, .name = name});
    g->inputs += v != 0;
    return v;
}

rt_val rt_graph_feed(rt_graph *g, const char *name, rt_dtype t, rt_shape s) {
    if (g->st != RT_OK)
        return 0;
    rt_status st = check_leaf(g, "feed", name, t, &s);
    if (st != RT_OK)
        return rt_graph_refuse(g, st);
    rt_type type = {.dtype = t, .kind = RT_KIND_GLOBAL, .shape = s};
    rt_val v =
        rt_graph_append(g, &(rt_node){.leaf = RT_LEAF_FEED, .type = type, .slot = g->feeds, .name = name});
    g->feeds += v != 0;
    return v;
}

rt_val rt_graph_param(rt_graph *g, int slot, const char *name, rt_shape s) {
    if (g->st != RT_OK)
        return 0;
    rt_status st = check_leaf(g, "parameter", name, g->dtype, &s);
    if (st == RT_OK && slot < 0)
        st = rt_error_set(RT_E_USAGE, __FILE__, __LINE__, "parameter '%s': slot %d, wanted at least 0", name,
                          slot);
    if (st != RT_OK)
        return rt_graph_refuse(g, st);
    rt_type type = {.dtype = g->dtype, .kind = RT_KIND_GLOBAL, .shape = s};
    rt_val v =
        rt_graph_append(g, &(rt_node){.leaf = RT_LEAF_PARAM, .type = type, .slot = slot, .name = name});
    if (v == 0 || rt_shape_equal(&g->nodes[v].type.shape, &s))
        return v;
    rt_str have, want;
    rt_str_init(&have);
    rt_str_init(&want);
    rt_shape_print(&g->nodes[v].type.shape, &have);
    rt_shape_print(&s, &want);
    st = rt_error_set(RT_E_USAGE, __FILE__, __LINE__,
                      "parameter '%s' of slot %d is %s, and '%s', %s, asks for it too", g->nodes[v].name,
                      slot, rt_str_text(&have), name, rt_str_text(&want));
    rt_str_deinit(&have);
    rt_str_deinit(&want);
    return rt_graph_refuse(g, st);
}

rt_val rt_graph_const(rt_graph *g, rt_shape s, const double *data) {
    if (g->st != RT_OK)
        return 0;
    rt_status st = check_leaf(g, "constant", "", g->dtype, &s);
    if (st != RT_OK)
        return rt_graph_refuse(g, st);
    rt_type type = {.dtype = g->dtype, .kind = RT_KIND_GLOBAL, .shape = s};
    return rt_graph_append(g, &(rt_node){.leaf = RT_LEAF_CONST, .type = type, .slot = -1, .data = data});
}

rt_val rt_graph_scalar(rt_graph *g, double v) {
    return rt_graph_const(g, rt_shape0(), &v);
}

/* ---- operations ---- */

void rt_graph_in_types(const rt_graph *g, const rt_val *in, int nin, rt_type *types) {
    for (int i = 0; i < nin; i++)
        types[i] = g->nodes[in[i]].type;
}

/* False when an input is the invalid value (nothing to say) or no value of this graph (an error). */
static bool inputs_valid(rt_graph *g, rt_op op, const rt_val *in, int nin) {
    rt_status st = RT_OK;
    if (nin < 0 || nin > RT_OP_MAX_IN)
        st = rt_error_set(RT_E_USAGE, __FILE__, __LINE__, "%s: %d inputs, at most %d are possible",
                          rt_op_get(op)->name, nin, (int)RT_OP_MAX_IN);
    for (int i = 0; st == RT_OK && i < nin; i++) {
        if (in[i] == 0)
            return false;
        if ((int64_t)in[i] >= g->count)
            st = rt_error_set(RT_E_USAGE, __FILE__, __LINE__, "%s: input %d is value %u, the graph has %lld",
                              rt_op_get(op)->name, i, (unsigned)in[i], (long long)g->count - 1);
    }
    rt_graph_set_error(g, st);
    return st == RT_OK;
}

rt_val rt_graph_op(rt_graph *g, rt_op op, rt_attr attr, const rt_val *in, int nin) {
    rt_type types[RT_OP_MAX_IN], type;
    if (g->st != RT_OK || !inputs_valid(g, op, in, nin))
        return 0;
    rt_graph_in_types(g, in, nin, types);
    rt_status st = rt_op_infer(&type, op, &attr, types, nin, g->batch);
    if (st != RT_OK)
        return rt_graph_refuse(g, g->scope != NULL ? rt_error_prefix(st, "%s", g->scope) : st);
    return rt_graph_append(
        g,
        &(rt_node){.op = op, .attr = attr, .type = type, .in = in, .nin = nin, .slot = -1, .name = g->scope});
}

static bool is_conv(rt_op op) {
    return op == RT_OP_CONV2D || op == RT_OP_CONV2D_BWD_DATA || op == RT_OP_CONV2D_BWD_WEIGHTS;
}

/* A step that changes the type of the running value. */
static bool is_product(rt_op op) {
    return is_conv(op) || op == RT_OP_MATMUL;
}

static rt_op chain_op(const rt_chain *chain) {
    if (chain->n > 0 && chain->step[0].op == RT_OP_MATMUL)
        return RT_OP_FUSED_MATMUL;
    for (int i = 0; i < chain->n && i < RT_CHAIN_MAX; i++)
        if (is_conv(chain->step[i].op))
            return RT_OP_FUSED_CONV;
    return RT_OP_CHAIN;
}

/* Step i applied to a value of type *acc, which becomes the type of the result; statistics leave it. */
static rt_status infer_step(rt_type *acc, const rt_chain *chain, int i, const rt_type *second,
                            const rt_type *in, int nin, int64_t n) {
    const rt_chain_step *s = &chain->step[i];
    const rt_op_info *info = rt_op_get(s->op);
    const bool product = is_product(s->op), stats = s->op == RT_OP_BN_STATS || s->op == RT_OP_BN_GSTATS;
    rt_type arg[3] = {*acc}, r;
    RT_FAIL_IF(!(info->flags & RT_OP_ELTWISE) && !product &&
                   !(stats && i == chain->n - 1 && chain_op(chain) == RT_OP_FUSED_CONV),
               RT_E_USAGE, "chain: step %d, %s, is not element-wise", i, info->name);
    for (int k = 1; k < info->arity; k++) {
        int a = s->arg[k - 1];
        RT_FAIL_IF(a < 0 || a >= nin, RT_E_USAGE, "chain: step %d, %s, reads input %d of %d", i, info->name,
                   a, nin);
        arg[k] = product ? *second : in[a];
    }
    if (s->swap && info->arity >= 2) {
        arg[0] = arg[1];
        arg[1] = *acc;
    }
    RT_TRY(rt_op_infer(&r, s->op, &s->attr, arg, info->arity, n));
    RT_FAIL_IF(!product && !stats && !rt_type_equal(&r, acc, true), RT_E_USAGE,
               "chain: step %d, %s, changes the shape", i, info->name);
    if (product)
        *acc = r;
    return RT_OK;
}

rt_status rt_chain_infer(rt_type *out, const rt_chain *chain, const rt_type *in, int nin, int64_t n) {
    const rt_attr attr = {.count = chain->n};
    RT_FAIL_IF(chain->n < 1 || chain->n > RT_CHAIN_MAX, RT_E_USAGE, "chain: %d steps, wanted 1 to %d",
               chain->n, (int)RT_CHAIN_MAX);
    RT_TRY(rt_op_infer(out, chain_op(chain), &attr, in, nin, n));
    rt_type second = in[0];
    int products = 0;
    for (int i = 0; i < chain->n; i++)
        if (is_product(chain->step[i].op)) {
            const int a = chain->step[i].arg[0];
            RT_FAIL_IF(a < 0 || a >= nin || ++products > 1, RT_E_USAGE,
                       "chain: a convolution or product with input %d of %d", a, nin);
            RT_FAIL_IF(i > 0 && chain->step[i].op == RT_OP_MATMUL, RT_E_USAGE, "chain: matmul as step %d", i);
            second = in[a];
        }
    for (int i = 0; i < chain->n; i++)
        RT_TRY(infer_step(chain->step[i].second ? &second : out, chain, i, &second, in, nin, n));
    return RT_OK;
}

rt_val rt_graph_chain(rt_graph *g, const rt_chain *chain, const rt_val *in, int nin) {
    rt_type types[RT_OP_MAX_IN], type;
    const rt_op op = chain_op(chain);
    if (g->st != RT_OK || !inputs_valid(g, op, in, nin))
        return 0;
    rt_graph_in_types(g, in, nin, types);
    rt_status st = rt_chain_infer(&type, chain, types, nin, g->batch);
    if (st != RT_OK)
        return rt_graph_refuse(g, st);
    return rt_graph_append(g, &(rt_node){.op = op,
                                         .attr = {.count = chain->n},
                                         .type = type,
                                         .in = in,
                                         .nin = nin,
                                         .slot = -1,
                                         .name = g->scope,
                                         .chain = chain});
}

rt_val rt_graph_reorder(rt_graph *g, rt_val v, rt_layout layout) {
    rt_val r = rt_graph_op(g, RT_OP_REORDER, (rt_attr){.index = (int32_t)layout}, &v, 1);
    rt_graph_set_layout(g, r, layout);
    return r;
}

void rt_graph_set_layout(rt_graph *g, rt_val v, rt_layout layout) {
    if (v != 0 && (int64_t)v < g->count)
        g->nodes[v].layout = layout;
}

/* ---- outputs ---- */

static rt_status append_output(rt_graph *g, const char *name, rt_val v, int32_t slot) {
    RT_FAIL_IF(v == 0 || (int64_t)v >= g->count, RT_E_USAGE, "output '%s' has no value", name);
    for (int i = 0; i < g->nouts; i++) {
        bool same = slot >= 0 ? g->outs[i].update_slot == slot : strcmp(g->outs[i].name, name) == 0;
        RT_FAIL_IF(same, RT_E_USAGE, "output '%s' is already there", name);
    }
    if (g->nouts == g->outs_cap) {
        int cap = g->outs_cap > 0 ? 2 * g->outs_cap : 16;
        RT_TRY(rt_realloc(&g->outs, (size_t)g->outs_cap * sizeof *g->outs, (size_t)cap * sizeof *g->outs));
        g->outs_cap = cap;
    }
    rt_graph_out o = {.v = v, .update_slot = slot};
    RT_TRY(rt_arena_strdup(&g->arena, &o.name, name));
    g->outs[g->nouts++] = o;
    return RT_OK;
}

void rt_graph_output(rt_graph *g, const char *name, rt_val v) {
    if (g->st == RT_OK)
        rt_graph_set_error(g, append_output(g, name, v, -1));
}

static rt_status append_update(rt_graph *g, rt_val param, rt_val v) {
    RT_FAIL_IF((int64_t)param >= g->count || (int64_t)v >= g->count, RT_E_USAGE,
               "update: the graph has no values %u and %u", (unsigned)param, (unsigned)v);
    const rt_node *p = rt_graph_node(g, param);
    RT_FAIL_IF(p->leaf != RT_LEAF_PARAM, RT_E_USAGE, "update: value %u is not a parameter", (unsigned)param);
    RT_FAIL_IF(!rt_type_equal(&p->type, &g->nodes[v].type, false), RT_E_USAGE,
               "update of '%s': the new value has another shape", p->name);
    rt_str name;
    rt_str_init(&name);
    rt_str_appendf(&name, "update:%s", p->name);
    rt_status st = rt_str_status(&name);
    if (st == RT_OK)
        st = append_output(g, rt_str_text(&name), v, p->slot);
    rt_str_deinit(&name);
    return st;
}

void rt_graph_update(rt_graph *g, rt_val param, rt_val v) {
    if (g->st == RT_OK && param != 0 && v != 0)
        rt_graph_set_error(g, append_update(g, param, v));
}

int rt_graph_outputs(const rt_graph *g) {
    return g->nouts;
}

const rt_graph_out *rt_graph_get_output(const rt_graph *g, int i) {
    RT_ASSERT(i >= 0 && i < g->nouts);
    return &g->outs[i];
}

rt_val rt_graph_find_output(const rt_graph *g, const char *name) {
    for (int i = 0; i < g->nouts; i++)
        if (strcmp(g->outs[i].name, name) == 0)
            return g->outs[i].v;
    return 0;
}

/* ---- types ---- */

rt_shape rt_shape_tail(const rt_shape *s) {
    rt_shape r = {0};
    for (int i = 1; i < s->rank; i++)
        r.d[r.rank++] = s->d[i];
    return r;
}

rt_shape rt_type_row(const rt_type *t) {
    return t->groups > 0 ? rt_shape_tail(&t->shape) : t->shape;
}

bool rt_type_equal(const rt_type *a, const rt_type *b, bool with_kind) {
    return a->dtype == b->dtype && a->groups == b->groups && rt_shape_equal(&a->shape, &b->shape) &&
           (!with_kind || a->kind == b->kind);
}
