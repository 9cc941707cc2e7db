/*
 * onnx_file.c - an ONNX model as protobuf messages, built up and written.
 *
 * Names are unique: weights keep their own, a node's result is named after its scope, operator and a running
 * number ("layer1.0/Conv_17"). Everything hangs on one arena; tensors point at the floats of the model that is
 * exported and are not copied. When they pass 2 GB, the limit of a protobuf message, they go to FILE.data, one
 * after the other from multiples of 64 bytes, and the messages say where (ONNX's external data).
 */
#include "export/onnx/onnx.h"
#include "base/alloc.h"
#include "base/arena.h"
#include "base/file.h"
#include <onnx.pb-c.h>
#include <stdio.h>
#include <string.h>

/* A list of pointers that grows, as protobuf-c wants them. */
typedef struct list {
    void **at;
    size_t n, cap;
} list;

struct rt_onnx {
    rt_arena arena;
    rt_status st;
    rt_error error;
    int opset;
    const char *scope;
    list nodes, tensors, inputs, outputs, meta;
    int64_t bytes; /* of all tensors */
};

static const int64_t k_inline_max = (int64_t)1900 << 20;
enum { ALIGN_DATA = 64 };

rt_status rt_onnx_create(rt_onnx **out, int opset) {
    RT_TRY(rt_calloc(out, 1, sizeof **out));
    rt_arena_init(&(*out)->arena);
    (*out)->opset = opset;
    return RT_OK;
}

void rt_onnx_destroy(rt_onnx **op) {
    rt_onnx *o = *op;
    *op = NULL;
    if (!o)
        return;
    list *all[] = {&o->nodes, &o->tensors, &o->inputs, &o->outputs, &o->meta};
    for (size_t i = 0; i < RT_COUNT(all); i++)
        rt_free(all[i]->at);
    rt_arena_deinit(&o->arena);
    rt_free(o);
}

rt_status rt_onnx_status(const rt_onnx *o) {
    if (o->st != RT_OK)
        rt_error_restore(&o->error);
    return o->st;
}

void rt_onnx_fail(rt_onnx *o, rt_status st) {
    if (o->st != RT_OK || st == RT_OK)
        return;
    o->st = st;
    rt_error_save(&o->error);
}

int rt_onnx_opset(const rt_onnx *o) {
    return o->opset;
}

/* ---- memory ---- */

static void *take(rt_onnx *o, size_t bytes) {
    void *p = NULL;
    if (o->st == RT_OK)
        rt_onnx_fail(o, rt_arena_alloc(&o->arena, &p, RT_MAX(bytes, (size_t)1)));
    return p;
}

/* Texts of protobuf-c are char *, and never written to. */
static char *text(rt_onnx *o, const char *s) {
    const char *copy = NULL;
    if (o->st == RT_OK)
        rt_onnx_fail(o, rt_arena_strdup(&o->arena, &copy, s));
    return (char *)(uintptr_t)copy;
}

static void append(rt_onnx *o, list *l, void *item) {
    if (o->st != RT_OK || item == NULL)
        return;
    if (l->n == l->cap) {
        const size_t cap = l->cap > 0 ? 2 * l->cap : 64;
        rt_onnx_fail(o, rt_realloc(&l->at, l->cap * sizeof *l->at, cap * sizeof *l->at));
        if (o->st != RT_OK)
            return;
        l->cap = cap;
    }
    l->at[l->n++] = item;
}

float *rt_onnx_floats(rt_onnx *o, int64_t n) {
    return take(o, (size_t)n * sizeof(float));
}

void rt_onnx_scope(rt_onnx *o, const char *scope) {
    o->scope = scope != NULL ? text(o, scope) : NULL;
}

/* ---- nodes ---- */

static Onnx__AttributeProto *attribute(rt_onnx *o, const rt_onnx_attr *a) {
    Onnx__AttributeProto *p = take(o, sizeof *p);
    if (p == NULL)
        return NULL;
    onnx__attribute_proto__init(p);
    p->name = text(o, a->name);
    p->has_type = true;
    switch (a->kind) {
    case RT_ONNX_INT:
        p->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT;
        p->has_i = true;
        p->i = a->i;
        break;
    case RT_ONNX_FLOAT:
        p->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT;
        p->has_f = true;
        p->f = a->f;
        break;
    case RT_ONNX_INTS:
        p->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS;
        p->n_ints = (size_t)a->n;
        p->ints = take(o, (size_t)a->n * sizeof *p->ints);
        if (p->ints != NULL)
            memcpy(p->ints, a->ints, (size_t)a->n * sizeof *p->ints);
        break;
    }
    return p;
}

rt_onnx_val rt_onnx_node(rt_onnx *o, const char *op, const rt_onnx_val *in, int nin,
                         const rt_onnx_attr *attrs) {
    char name[256];
    Onnx__NodeProto *p = take(o, sizeof *p);
    if (p == NULL)
        return NULL;
    onnx__node_proto__init(p);
    snprintf(name, sizeof name, "%s%s%s_%zu", o->scope ? o->scope : "", o->scope ? "/" : "", op, o->nodes.n);
    p->name = text(o, name);
    p->op_type = text(o, op);
    p->input = take(o, (size_t)nin * sizeof *p->input);
    p->output = take(o, sizeof *p->output);
    if (o->st != RT_OK)
        return NULL;
    p->n_input = (size_t)nin;
    for (int i = 0; i < nin; i++)
        p->input[i] = in[i] != NULL ? (char *)(uintptr_t)in[i] : text(o, ""); /* "": left out */
    p->n_output = 1;
    p->output[0] = p->name;
    int n = 0;
    while (attrs != NULL && attrs[n].name != NULL)
        n++;
    p->attribute = take(o, (size_t)n * sizeof *p->attribute);
    for (int i = 0; i < n && o->st == RT_OK; i++)
        p->attribute[p->n_attribute++] = attribute(o, &attrs[i]);
    append(o, &o->nodes, p);
    return o->st == RT_OK ? p->name : NULL;
}

/* ---- tensors ---- */

static Onnx__TensorProto *find_tensor(const rt_onnx *o, const char *name) {
    for (size_t i = 0; i < o->tensors.n; i++) {
        Onnx__TensorProto *t = o->tensors.at[i];
        if (strcmp(t->name, name) == 0)
            return t;
    }
    return NULL;
}

static rt_onnx_val add_tensor(rt_onnx *o, const char *name, rt_onnx_type type, const rt_shape *s,
                              const void *data, size_t bytes) {
    char unique[300];
    Onnx__TensorProto *p = take(o, sizeof *p);
    if (p == NULL)
        return NULL;
    onnx__tensor_proto__init(p);
    snprintf(unique, sizeof unique, "%s", name);
    for (int i = 1; find_tensor(o, unique) != NULL; i++)
        snprintf(unique, sizeof unique, "%.280s.%d", name, i);
    p->name = text(o, unique);
    p->has_data_type = true;
    p->data_type = (int)type;
    p->dims = take(o, (size_t)s->rank * sizeof *p->dims);
    if (o->st != RT_OK)
        return NULL;
    p->n_dims = (size_t)s->rank;
    memcpy(p->dims, s->d, (size_t)s->rank * sizeof *p->dims);
    p->has_raw_data = true;
    p->raw_data = (ProtobufCBinaryData){bytes, (uint8_t *)(uintptr_t)data};
    o->bytes += (int64_t)bytes;
    append(o, &o->tensors, p);
    return o->st == RT_OK ? p->name : NULL;
}

rt_onnx_val rt_onnx_tensor(rt_onnx *o, const char *name, const rt_shape *s, const float *data) {
    if (data == NULL)
        return NULL;
    return add_tensor(o, name, RT_ONNX_F32, s, data, (size_t)rt_shape_elems(s) * sizeof *data);
}

/* A constant whose name says what it is: one of each. */
static rt_onnx_val constant(rt_onnx *o, const char *name, rt_onnx_type type, const rt_shape *s,
                            const void *data, size_t bytes) {
    const Onnx__TensorProto *known = find_tensor(o, name);
    if (known != NULL)
        return known->name;
    void *copy = take(o, bytes);
    if (copy == NULL)
        return NULL;
    memcpy(copy, data, bytes);
    return add_tensor(o, name, type, s, copy, bytes);
}

rt_onnx_val rt_onnx_ints(rt_onnx *o, const int64_t *v, int n) {
    char name[200] = "ints";
    size_t len = 4;
    for (int i = 0; i < n; i++)
        len += (size_t)snprintf(name + len, sizeof name - len, "_%lld", (long long)v[i]);
    const rt_shape s = rt_shape1(n);
    return constant(o, name, RT_ONNX_I64, &s, v, (size_t)n * sizeof *v);
}

rt_onnx_val rt_onnx_scalar(rt_onnx *o, double v) {
    char number[40], name[48];
    const float f = (float)v;
    const rt_shape s = rt_shape0();
    rt_format_f32(number, f);
    snprintf(name, sizeof name, "number_%s", number);
    return constant(o, name, RT_ONNX_F32, &s, &f, sizeof f);
}

/* ---- the interface ---- */

static Onnx__TensorShapeProto__Dimension *dimension(rt_onnx *o, int64_t d) {
    Onnx__TensorShapeProto__Dimension *p = take(o, sizeof *p);
    if (p == NULL)
        return NULL;
    onnx__tensor_shape_proto__dimension__init(p);
    if (d < 0) {
        p->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM;
        p->dim_param = text(o, "N");
    } else {
        p->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
        p->dim_value = d;
    }
    return p;
}

static void interface_line(rt_onnx *o, list *to, const char *name, rt_onnx_type type, const rt_shape *full) {
    Onnx__ValueInfoProto *v = take(o, sizeof *v);
    Onnx__TypeProto *t = take(o, sizeof *t);
    Onnx__TypeProto__Tensor *tensor = take(o, sizeof *tensor);
    Onnx__TensorShapeProto *s = take(o, sizeof *s);
    if (o->st != RT_OK)
        return;
    onnx__value_info_proto__init(v);
    onnx__type_proto__init(t);
    onnx__type_proto__tensor__init(tensor);
    onnx__tensor_shape_proto__init(s);
    v->name = text(o, name);
    v->type = t;
    t->value_case = ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE;
    t->tensor_type = tensor;
    tensor->has_elem_type = true;
    tensor->elem_type = (int)type;
    tensor->shape = s;
    s->dim = take(o, RT_MAX_RANK * sizeof(void *));
    for (int i = 0; i < full->rank && o->st == RT_OK; i++)
        s->dim[s->n_dim++] = dimension(o, full->d[i]);
    append(o, to, v);
}

static rt_shape with_rows(const rt_shape *row) {
    rt_shape s = {.rank = row->rank + 1, .d = {-1}};
    memcpy(s.d + 1, row->d, (size_t)row->rank * sizeof s.d[0]);
    return s;
}

rt_onnx_val rt_onnx_input(rt_onnx *o, const char *name, const rt_shape *row) {
    const rt_shape s = with_rows(row);
    interface_line(o, &o->inputs, name, RT_ONNX_F32, &s);
    return text(o, name);
}

rt_onnx_val rt_onnx_input_scalar(rt_onnx *o, const char *name, double with_default) {
    const rt_shape s = rt_shape0();
    float *v = rt_onnx_floats(o, 1);
    if (v == NULL)
        return NULL;
    *v = (float)with_default;
    interface_line(o, &o->inputs, name, RT_ONNX_F32, &s);
    return rt_onnx_tensor(o, name, &s, v);
}

void rt_onnx_output(rt_onnx *o, const char *name, rt_onnx_val v, rt_onnx_type type, const rt_shape *row) {
    const rt_shape s = with_rows(row);
    char *own = text(o, name);
    rt_onnx_node(o, "Identity", &v, 1, NULL);
    if (o->st != RT_OK)
        return;
    ((Onnx__NodeProto *)o->nodes.at[o->nodes.n - 1])->output[0] = own;
    interface_line(o, &o->outputs, name, type, &s);
}

void rt_onnx_meta(rt_onnx *o, const char *key, const char *value) {
    Onnx__StringStringEntryProto *p = take(o, sizeof *p);
    if (p == NULL || value == NULL)
        return;
    onnx__string_string_entry_proto__init(p);
    p->key = text(o, key);
    p->value = text(o, value);
    append(o, &o->meta, p);
}

/* ---- writing ---- */

static Onnx__StringStringEntryProto *where(rt_onnx *o, const char *key, const char *value) {
    Onnx__StringStringEntryProto *p = take(o, sizeof *p);
    if (p == NULL)
        return NULL;
    onnx__string_string_entry_proto__init(p);
    p->key = text(o, key);
    p->value = text(o, value);
    return p;
}

static void place_outside(rt_onnx *o, Onnx__TensorProto *t, const char *file, int64_t offset) {
    char number[24];
    t->external_data = take(o, 3 * sizeof *t->external_data);
    if (o->st != RT_OK)
        return;
    t->n_external_data = 3;
    t->external_data[0] = where(o, "location", file);
    snprintf(number, sizeof number, "%lld", (long long)offset);
    t->external_data[1] = where(o, "offset", number);
    snprintf(number, sizeof number, "%zu", t->raw_data.len);
    t->external_data[2] = where(o, "length", number);
    t->has_data_location = true;
    t->data_location = ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
    t->has_raw_data = false;
}

/* Large tensors, to a file beside the model; small constants stay, readers look at them early. */
static rt_status write_data(rt_onnx *o, const char *path) {
    static const uint8_t zeros[ALIGN_DATA];
    rt_writer *w = NULL;
    int64_t at = 0;
    const char *base = strrchr(path, '/') != NULL ? strrchr(path, '/') + 1 : path;
    rt_status st = rt_writer_open(&w, path);
    for (size_t i = 0; st == RT_OK && i < o->tensors.n; i++) {
        Onnx__TensorProto *t = o->tensors.at[i];
        if (t->raw_data.len < 1024)
            continue;
        const size_t pad = (ALIGN_DATA - (size_t)(at % ALIGN_DATA)) % ALIGN_DATA;
        st = rt_writer_write(w, zeros, pad);
        if (st == RT_OK)
            st = rt_writer_write(w, t->raw_data.data, t->raw_data.len);
        at += (int64_t)pad;
        place_outside(o, t, base, at);
        at += (int64_t)t->raw_data.len;
    }
    if (st == RT_OK)
        st = rt_onnx_status(o);
    if (st == RT_OK)
        return rt_writer_commit(&w);
    rt_writer_abandon(&w);
    return st;
}

/* Opset 13 came with IR 7, opset 15 to 17 with IR 8. */
static void frame(const rt_onnx *o, Onnx__ModelProto *model, Onnx__GraphProto *graph,
                  Onnx__OperatorSetIdProto **opset) {
    onnx__model_proto__init(model);
    onnx__graph_proto__init(graph);
    onnx__operator_set_id_proto__init(*opset);
    model->has_ir_version = true;
    model->ir_version = o->opset >= 15 ? 8 : 7;
    model->producer_name = (char *)(uintptr_t) "retort";
    model->producer_version = (char *)(uintptr_t)RT_VERSION;
    (*opset)->domain = (char *)(uintptr_t) "";
    (*opset)->has_version = true;
    (*opset)->version = o->opset;
    model->n_opset_import = 1;
    model->opset_import = opset;
    model->n_metadata_props = o->meta.n;
    model->metadata_props = (Onnx__StringStringEntryProto **)o->meta.at;
    model->graph = graph;
    graph->name = (char *)(uintptr_t) "retort";
    graph->n_node = o->nodes.n;
    graph->node = (Onnx__NodeProto **)o->nodes.at;
    graph->n_initializer = o->tensors.n;
    graph->initializer = (Onnx__TensorProto **)o->tensors.at;
    graph->n_input = o->inputs.n;
    graph->input = (Onnx__ValueInfoProto **)o->inputs.at;
    graph->n_output = o->outputs.n;
    graph->output = (Onnx__ValueInfoProto **)o->outputs.at;
}

rt_status rt_onnx_pack(rt_onnx *o, const char *path, uint8_t **bytes, size_t *n, int64_t *outside) {
    Onnx__ModelProto model;
    Onnx__GraphProto graph;
    Onnx__OperatorSetIdProto opset, *popset = &opset;
    RT_TRY(rt_onnx_status(o));
    if (path != NULL)
        *outside = 0;
    if (o->bytes > k_inline_max && path != NULL) {
        rt_str data;
        rt_str_init(&data);
        rt_str_appendf(&data, "%s.data", path);
        rt_status st = rt_str_status(&data);
        if (st == RT_OK)
            st = write_data(o, rt_str_text(&data));
        rt_str_deinit(&data);
        RT_TRY(st);
        *outside = o->bytes;
    }
    frame(o, &model, &graph, &popset);
    *n = onnx__model_proto__get_packed_size(&model);
    RT_TRY(rt_alloc(bytes, *n));
    onnx__model_proto__pack(&model, *bytes);
    return RT_OK;
}
