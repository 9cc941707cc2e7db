/*
 * onnx_run.c - the values of a graph, one node after the other; operators are in onnx_run_ops.c.
 */
#include "export/onnx/onnx_run_int.h"
#include "base/alloc.h"
#include "base/file.h"
#include "base/size.h"
#include <onnx.pb-c.h>
#include <math.h>
#include <string.h>

struct rt_onnx_run {
    Onnx__ModelProto *model;
    char *data_path;  /* of FILE.data */
    uint8_t *outside; /* what it holds, once wanted */
    size_t noutside;
    int n, cap;
    struct {
        const char *name;
        rt_onnx_array a;
        bool constant;
    } * slot;
};

int64_t rt_onnx_array_count(const rt_onnx_array *a) {
    int64_t n = 1;
    for (int i = 0; i < a->rank; i++)
        n *= a->d[i];
    return n;
}

rt_status rt_onnx_array_make(rt_onnx_array *a, int type, int rank, const int64_t *d) {
    RT_FAIL_IF(rank > RT_ONNX_RANK, RT_E_INPUT, "rank %d, at most %d are known", rank, (int)RT_ONNX_RANK);
    *a = (rt_onnx_array){.type = type, .rank = rank};
    int64_t n = 1;
    for (int i = 0; i < rank; i++) {
        RT_FAIL_IF(d[i] < 0 || (d[i] > 0 && n > INT32_MAX / d[i]), RT_E_INPUT, "axis %d has %lld elements", i,
                   (long long)d[i]);
        a->d[i] = d[i];
        n *= d[i];
    }
    return rt_calloc(&a->v, (size_t)RT_MAX(n, 1), sizeof *a->v);
}

/* ---- names ---- */

static rt_onnx_array *find(const rt_onnx_run *r, const char *name) {
    for (int i = 0; i < r->n; i++)
        if (strcmp(r->slot[i].name, name) == 0)
            return &r->slot[i].a;
    return NULL;
}

const rt_onnx_array *rt_onnx_run_get(const rt_onnx_run *r, const char *name) {
    return find(r, name);
}

const char *rt_onnx_run_meta(const rt_onnx_run *r, const char *key) {
    for (size_t i = 0; i < r->model->n_metadata_props; i++)
        if (strcmp(r->model->metadata_props[i]->key, key) == 0)
            return r->model->metadata_props[i]->value;
    return NULL;
}

/* Takes the array over, whatever happens. */
static rt_status keep(rt_onnx_run *r, const char *name, rt_onnx_array *a, bool constant) {
    rt_status st = RT_OK;
    if (find(r, name) != NULL)
        st = rt_error_set(RT_E_INPUT, __FILE__, __LINE__, "tensor %s is computed twice", name);
    if (st == RT_OK && r->n == r->cap) {
        const int cap = r->cap > 0 ? 2 * r->cap : 256;
        st = rt_realloc(&r->slot, (size_t)r->cap * sizeof *r->slot, (size_t)cap * sizeof *r->slot);
        r->cap = st == RT_OK ? cap : r->cap;
    }
    if (st != RT_OK) {
        rt_free(a->v);
        return st;
    }
    r->slot[r->n].name = name;
    r->slot[r->n].a = *a;
    r->slot[r->n++].constant = constant;
    return RT_OK;
}

static void forget_results(rt_onnx_run *r) {
    int n = 0;
    for (int i = 0; i < r->n; i++)
        if (r->slot[i].constant)
            r->slot[n++] = r->slot[i];
        else
            rt_free(r->slot[i].a.v);
    r->n = n;
}

/* ---- tensors of the file ---- */

static void decode(rt_onnx_array *a, const uint8_t *raw) {
    for (int64_t i = 0, n = rt_onnx_array_count(a); i < n; i++) {
        float f;
        int64_t k;
        if (a->type == RT_ONNX_TYPE_FLOAT) {
            memcpy(&f, raw + i * 4, sizeof f);
            a->v[i] = (double)f;
        } else if (a->type == RT_ONNX_TYPE_INT64) {
            memcpy(&k, raw + i * 8, sizeof k);
            a->v[i] = (double)k;
        } else {
            a->v[i] = raw[i] != 0;
        }
    }
}

static const char *entry(const Onnx__TensorProto *t, const char *key) {
    for (size_t i = 0; i < t->n_external_data; i++)
        if (strcmp(t->external_data[i]->key, key) == 0)
            return t->external_data[i]->value;
    return "0";
}

static rt_status read_outside(rt_onnx_run *r, const Onnx__TensorProto *t, rt_onnx_array *a, size_t want) {
    int64_t offset = 0, length = 0;
    const char *o = entry(t, "offset"), *l = entry(t, "length");
    RT_FAIL_IF(!rt_parse_i64(o, strlen(o), &offset) || !rt_parse_i64(l, strlen(l), &length) || offset < 0 ||
                   (size_t)length != want,
               RT_E_INPUT, "tensor %s: %s bytes outside, wanted %zu", t->name, l, want);
    if (r->outside == NULL)
        RT_TRY(rt_file_read(r->data_path, SIZE_MAX / 2, &r->outside, &r->noutside));
    RT_FAIL_IF((size_t)offset > r->noutside || want > r->noutside - (size_t)offset, RT_E_INPUT,
               "%s: %zu bytes at %lld are not there", r->data_path, want, (long long)offset);
    decode(a, r->outside + offset);
    return RT_OK;
}

static rt_status load_tensor(rt_onnx_run *r, const Onnx__TensorProto *t) {
    rt_onnx_array a;
    const size_t size = t->data_type == RT_ONNX_TYPE_FLOAT ? 4 : t->data_type == RT_ONNX_TYPE_INT64 ? 8 : 1;
    RT_FAIL_IF(t->name == NULL, RT_E_INPUT, "a tensor has no name");
    RT_FAIL_IF(t->data_type != RT_ONNX_TYPE_FLOAT && t->data_type != RT_ONNX_TYPE_INT64 &&
                   t->data_type != RT_ONNX_TYPE_BOOL,
               RT_E_INPUT, "tensor %s: element type %d is not known here", t->name, t->data_type);
    RT_TRY(rt_onnx_array_make(&a, t->data_type, (int)t->n_dims, t->dims));
    const size_t want = (size_t)rt_onnx_array_count(&a) * size;
    rt_status st = RT_OK;
    if (t->data_location == ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL)
        st = read_outside(r, t, &a, want);
    else if (t->raw_data.len != want)
        st = rt_error_set(RT_E_INPUT, __FILE__, __LINE__, "tensor %s: %zu bytes, wanted %zu", t->name,
                          t->raw_data.len, want);
    else
        decode(&a, t->raw_data.data);
    if (st != RT_OK) {
        rt_free(a.v);
        return st;
    }
    return keep(r, t->name, &a, true);
}

/* ---- opening ---- */

static rt_status open_model(rt_onnx_run *r, const char *path, const uint8_t *bytes, size_t n) {
    rt_str data;
    r->model = onnx__model_proto__unpack(NULL, n, bytes);
    RT_FAIL_IF(r->model == NULL || r->model->graph == NULL, RT_E_INPUT, "%s: not an ONNX model", path);
    rt_str_init(&data);
    rt_str_appendf(&data, "%s.data", path);
    r->data_path = rt_strdup(rt_str_text(&data));
    rt_str_deinit(&data);
    RT_FAIL_IF(r->data_path == NULL, RT_E_MEMORY, "not enough memory to open %s", path);
    for (size_t i = 0; i < r->model->graph->n_initializer; i++)
        RT_TRY(load_tensor(r, r->model->graph->initializer[i]));
    return RT_OK;
}

rt_status rt_onnx_run_open(rt_onnx_run **out, const char *path, const uint8_t *bytes, size_t n) {
    *out = NULL;
    rt_onnx_run *r = NULL;
    RT_TRY(rt_calloc(&r, 1, sizeof *r));
    const rt_status st = open_model(r, path, bytes, n);
    if (st != RT_OK)
        rt_onnx_run_close(&r);
    *out = r;
    return st;
}

void rt_onnx_run_close(rt_onnx_run **rp) {
    rt_onnx_run *r = *rp;
    *rp = NULL;
    if (r == NULL)
        return;
    for (int i = 0; i < r->n; i++)
        rt_free(r->slot[i].a.v);
    rt_free(r->slot);
    rt_free(r->data_path);
    rt_free(r->outside);
    if (r->model != NULL)
        onnx__model_proto__free_unpacked(r->model, NULL);
    rt_free(r);
}

/* ---- a run ---- */

/* The input without a default, filled with rows. */
static rt_status feed(rt_onnx_run *r, const float *x, int64_t rows) {
    const Onnx__GraphProto *g = r->model->graph;
    for (size_t i = 0; i < g->n_input; i++) {
        const Onnx__ValueInfoProto *v = g->input[i];
        if (find(r, v->name) != NULL)
            continue;
        RT_FAIL_IF(v->type == NULL || v->type->tensor_type == NULL || v->type->tensor_type->shape == NULL ||
                       v->type->tensor_type->shape->n_dim > RT_ONNX_RANK,
                   RT_E_INPUT, "input %s has no shape", v->name);
        const Onnx__TensorShapeProto *s = v->type->tensor_type->shape;
        int64_t d[RT_ONNX_RANK] = {rows};
        for (size_t k = 1; k < s->n_dim; k++)
            d[k] = s->dim[k]->dim_value;
        rt_onnx_array a;
        RT_TRY(rt_onnx_array_make(&a, RT_ONNX_TYPE_FLOAT, (int)s->n_dim, d));
        for (int64_t k = 0, n = rt_onnx_array_count(&a); k < n; k++)
            a.v[k] = (double)x[k];
        RT_TRY(keep(r, v->name, &a, false));
    }
    return RT_OK;
}

static rt_status run_node(rt_onnx_run *r, const Onnx__NodeProto *n, bool exact) {
    const rt_onnx_array *in[RT_ONNX_IN] = {0};
    rt_onnx_array out = {0};
    RT_FAIL_IF(n->n_input > RT_ONNX_IN || n->n_output != 1, RT_E_INPUT, "node %s: %zu inputs, %zu outputs",
               n->name, n->n_input, n->n_output);
    for (size_t i = 0; i < n->n_input; i++) {
        in[i] = *n->input[i] != '\0' ? find(r, n->input[i]) : NULL;
        RT_FAIL_IF(*n->input[i] != '\0' && in[i] == NULL, RT_E_INPUT, "node %s: tensor %s is not there yet",
                   n->name, n->input[i]);
    }
    rt_status st = rt_onnx_operator(n, in, &out);
    if (st != RT_OK) {
        rt_free(out.v);
        return rt_error_prefix(st, "node %s (%s)", n->name, n->op_type);
    }
    const bool rounds = out.type == RT_ONNX_TYPE_FLOAT && !exact;
    for (int64_t i = 0, count = rt_onnx_array_count(&out); rounds && i < count; i++)
        out.v[i] = (double)(float)out.v[i];
    return keep(r, n->output[0], &out, false);
}

rt_status rt_onnx_run_rows(rt_onnx_run *r, const float *x, int64_t rows, bool exact) {
    forget_results(r);
    RT_TRY(feed(r, x, rows));
    for (size_t i = 0; i < r->model->graph->n_node; i++)
        RT_TRY(run_node(r, r->model->graph->node[i], exact));
    return RT_OK;
}
