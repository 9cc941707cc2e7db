/*
 * model.c - a model: weights of one or more members, and everything needed to use them on raw inputs.
 *
 * On disk a member is one safetensors file with PyTorch's tensor names and this metadata (all values are
 * text, most of it JSON):
 *
 *     format         pt
 *     retort         version of the program
 *     architecture   {"spec":"mlp:200,200","input":[784],"outputs":10,"activation":"relu","dropout":0,...}
 *     student        {"spec":"single","head":null,"split":null,"member_bn":false,"dirichlet_offset":0}
 *     network        every operation in order: model_network.c
 *     preprocessing  {"pixel_scale":0.0039...,"resize":"crop","mean":[...],"std":[...]}: pictures brought to size, bytes
 *                    times the scale, then (x - mean) / std per channel or feature; what is not there is not done
 *     task           {"kind":"classification","classes":[...]}
 *                    or {"kind":"regression","target_mean":0,"target_std":1}, and of a transformed target
 *                    (eval/warp.c) "transform":"log","knots_y":[...],"knots_u":[...]
 *     table          for a model of a table, its columns: data/encoder_json.c
 *     method         what trained it
 *     provenance     {"data_sha256":...,"config_sha256":...,"seed":1,"member":0,"members":8,...}
 *     sha256         of all of the above and the tensors
 *
 * Nothing here depends on time, threads or where the run, its data and its teacher lie, so equal training gives equal
 * files.
 */
#include "base/alloc.h"
#include "base/json.h"
#include "base/sha256.h"
#include "base/size.h"
#include "model/model_int.h"
#include <math.h>
#include <string.h>

/* ---- making and destroying ---- */

rt_status rt_model_set_student(rt_model *m, const rt_student_config *student, int networks) {
    RT_TRY(rt_params_create(&m->params));
    RT_TRY(rt_student_create(&m->student, student, m->params));
    m->networks = networks;
    m->floats = rt_params_floats(m->params);
    return RT_OK;
}

static rt_status alloc_blocks(rt_model *m) {
    size_t bytes;
    RT_FAIL_IF(!rt_size_mul((size_t)m->floats * sizeof(float), (size_t)m->networks, &bytes), RT_E_MEMORY,
               "%d members are too many", m->networks);
    RT_TRY(rt_memory_check(bytes, "the weights"));
    RT_TRY(rt_calloc(&m->blocks, (size_t)m->networks * (size_t)m->floats, sizeof(float)));
    return rt_model_list_blocks(m);
}

rt_status rt_model_list_blocks(rt_model *m) {
    RT_TRY(rt_arena_alloc(&m->arena, &m->list, (size_t)m->networks * sizeof *m->list));
    for (int i = 0; i < m->networks; i++)
        m->list[i] = rt_model_block(m, i);
    return RT_OK;
}

static rt_status copy_classes(rt_model *m, const rt_dataset *d) {
    m->nclasses = rt_dataset_classes(d);
    RT_TRY(rt_arena_alloc(&m->arena, &m->classes, ((size_t)m->nclasses + 1) * sizeof *m->classes));
    for (int64_t k = 0; k < m->nclasses; k++)
        RT_TRY(rt_arena_strdup(&m->arena, &m->classes[k], rt_dataset_class_name(d, k)));
    return RT_OK;
}

static rt_status model_init(rt_model *m, const rt_student_config *student, const rt_dataset *d,
                            int networks) {
    if (m->task == RT_TASK_CLASSIFICATION)
        RT_TRY(copy_classes(m, d));
    if (rt_dataset_resize(d))
        RT_TRY(rt_arena_strdup(&m->arena, &m->resize, rt_dataset_resize(d)));
    m->bytes = rt_dataset_train(d)->u8 || rt_dataset_test(d)->u8;
    if (rt_dataset_table(d))
        RT_TRY(rt_arena_strdup(&m->arena, &m->table, rt_dataset_table(d)));
    RT_TRY(rt_model_set_student(m, student, networks));
    return alloc_blocks(m);
}

rt_status rt_model_set_unit(rt_model *m, const char *unit) {
    m->target.unit = NULL;
    return unit ? rt_arena_strdup(&m->arena, &m->target.unit, unit) : RT_OK;
}

rt_status rt_model_create(rt_model **out, const rt_student_config *student, const rt_dataset *d,
                          const rt_target *target, int networks) {
    *out = NULL;
    rt_model *m;
    RT_TRY(rt_calloc(&m, 1, sizeof *m));
    rt_arena_init(&m->arena);
    m->task = rt_dataset_task(d);
    m->decision.measure = -1;
    m->target = target ? *target : (rt_target){.std = 1};
    rt_status st = rt_model_set_unit(m, m->target.unit);
    if (st == RT_OK)
        st = model_init(m, student, d, networks);
    if (st != RT_OK)
        rt_model_destroy(&m);
    *out = m;
    return st;
}

void rt_model_destroy(rt_model **model) {
    rt_model *m = model ? *model : NULL;
    if (!m)
        return;
    *model = NULL;
    rt_student_destroy(&m->student);
    rt_params_destroy(&m->params);
    rt_arena_deinit(&m->arena);
    rt_free(m->blocks);
    rt_free(m);
}

/* Those of retort.h answer 0 or NULL when there is no model, and leave a message. */
bool rt_model_given(const rt_model *m, const char *function) {
    if (!m)
        (void)rt_error_set(RT_E_USAGE, __FILE__, __LINE__, "%s: no model", function);
    return m != NULL;
}

int rt_model_networks(const rt_model *m) {
    return m->networks;
}

int rt_model_members(const rt_model *m) {
    if (!rt_model_given(m, __func__))
        return 0;
    return m->networks * rt_student_members(m->student);
}

const rt_student *rt_model_student(const rt_model *m) {
    return m->student;
}

const rt_target *rt_model_target(const rt_model *m) {
    return &m->target;
}

rt_reading rt_model_reading(const rt_model *m) {
    return (rt_reading){.kind = rt_student_output(m->student),
                        .m = rt_model_members(m),
                        .k = rt_model_outputs(m),
                        .offset = rt_student_get_config(m->student)->dirichlet_offset,
                        .warp = m->target.warp.kind == RT_WARP_NONE ? NULL : &m->target.warp};
}

rt_task rt_model_task(const rt_model *m) {
    return m ? m->task : RT_TASK_CLASSIFICATION;
}

int64_t rt_model_outputs(const rt_model *m) {
    if (!rt_model_given(m, __func__))
        return 0;
    return rt_net_config(rt_model_net(m))->outputs;
}

rt_shape rt_model_input(const rt_model *m) {
    return rt_net_config(rt_model_net(m))->input;
}

const rt_net *rt_model_net(const rt_model *m) {
    return rt_student_net(m->student);
}

void rt_model_set_v3(rt_model *m, bool v3) {
    rt_params_set_v3(m->params, v3);
}

rt_params *rt_model_own_params(rt_model *m) {
    return m->params;
}

int64_t rt_model_floats(const rt_model *m) {
    return m->floats;
}

const rt_params *rt_model_params(const rt_model *m) {
    return m->params;
}

float *rt_model_weights(rt_model *m, int network) {
    return m->blocks + network * m->floats;
}

const float *rt_model_block(const rt_model *m, int network) {
    return m->blocks + network * m->floats;
}

const char *rt_model_class_name(const rt_model *m, int64_t k) {
    if (!rt_model_given(m, __func__))
        return NULL;
    return k >= 0 && k < m->nclasses ? m->classes[k] : NULL;
}

rt_data_like rt_model_like(const rt_model *m) {
    return (rt_data_like){.task = m->task,
                          .row = rt_model_input(m),
                          .classes = m->nclasses,
                          .class_name = m->classes,
                          .resize = m->resize,
                          .table = m->table};
}

const char *rt_model_unit(const rt_model *m) {
    return rt_model_given(m, __func__) ? m->target.unit : NULL;
}

const char *rt_model_meta(const rt_model *m, const char *key) {
    for (int64_t i = 0; m && key && i < m->nmeta; i++)
        if (strcmp(m->meta[i].key, key) == 0)
            return m->meta[i].value;
    return NULL;
}

rt_status rt_model_meta_text(const rt_model *m, const char *meta, const char *key, rt_arena *arena,
                             const char **out) {
    const char *text = rt_model_meta(m, meta), *value;
    rt_jdoc *doc = NULL;
    rt_status st = RT_OK;
    *out = NULL;
    if (text)
        st = rt_jdoc_parse(&doc, text, strlen(text), meta);
    if (doc && rt_jval_str(rt_jval_get(rt_jdoc_root(doc), key), &value))
        st = rt_arena_strdup(arena, out, value);
    rt_jdoc_destroy(&doc);
    return st == RT_E_INPUT ? RT_OK : st; /* what is no JSON says nothing */
}

/* Does its provenance have this value under this key? */
static rt_status comes_from(const rt_model *m, const char *key, const char *value, bool *out) {
    rt_arena arena;
    const char *known;
    rt_arena_init(&arena);
    const rt_status st = rt_model_meta_text(m, "provenance", key, &arena, &known);
    *out = known && strcmp(known, value) == 0;
    rt_arena_deinit(&arena);
    return st;
}

rt_status rt_model_trained_on(const rt_model *m, const char *hash, bool *out) {
    return comes_from(m, "data_sha256", hash, out);
}

/* ---- does it fit the data? ---- */

rt_status rt_model_check_data(const rt_model *m, const rt_dataset *d) {
    const char *spec = rt_dataset_spec(d);
    const bool labelled = rt_dataset_labelled(d);
    RT_FAIL_IF(labelled && m->task != rt_dataset_task(d), RT_E_INPUT, "%s is for %s, the model for %s", spec,
               rt_task_names[rt_dataset_task(d)], rt_task_names[m->task]);
    rt_shape want = rt_model_input(m), have = rt_dataset_row(d);
    if (!rt_shape_equal(&want, &have)) {
        rt_str w, h;
        rt_str_init(&w);
        rt_str_init(&h);
        rt_shape_print(&want, &w);
        rt_shape_print(&have, &h);
        rt_status st =
            rt_error_set(RT_E_INPUT, __FILE__, __LINE__, "%s has inputs of shape %s, the model wants %s",
                         spec, rt_str_text(&h), rt_str_text(&w));
        rt_str_deinit(&w);
        rt_str_deinit(&h);
        return st;
    }
    if (m->task == RT_TASK_REGRESSION || !labelled)
        return RT_OK;
    RT_FAIL_IF(rt_dataset_classes(d) != m->nclasses, RT_E_INPUT, "%s has %lld classes, the model %lld", spec,
               (long long)rt_dataset_classes(d), (long long)m->nclasses);
    for (int64_t k = 0; k < m->nclasses; k++)
        RT_FAIL_IF(strcmp(m->classes[k], rt_dataset_class_name(d, k)) != 0, RT_E_INPUT,
                   "class %lld is '%s' in %s and '%s' in the model", (long long)k,
                   rt_dataset_class_name(d, k), spec, m->classes[k]);
    return RT_OK;
}

/* ---- saving ---- */

void rt_tensors_digest(const rt_st_tensor *t, int64_t n, const rt_st_meta *meta, int64_t nmeta,
                       char hex[65]) {
    rt_sha256 sha;
    uint8_t digest[32];
    rt_sha256_init(&sha);
    for (int64_t i = 0; i < nmeta; i++) {
        if (strcmp(meta[i].key, "sha256") == 0)
            continue;
        rt_sha256_update(&sha, meta[i].key, strlen(meta[i].key) + 1);
        rt_sha256_update(&sha, meta[i].value, strlen(meta[i].value) + 1);
    }
    for (int64_t i = 0; i < n; i++) {
        rt_sha256_update(&sha, t[i].name, strlen(t[i].name) + 1);
        rt_sha256_update(&sha, t[i].data, t[i].bytes);
    }
    rt_sha256_final(&sha, digest);
    rt_sha256_hex(digest, hex);
}

static void write_architecture(const rt_arch_config *a, rt_str *out) {
    rt_json j;
    rt_json_init(&j, out, false);
    rt_json_object_begin(&j, NULL);
    rt_json_str(&j, "spec", a->spec);
    rt_json_i64s(&j, "input", a->input.d, a->input.rank);
    rt_json_i64(&j, "outputs", a->outputs);
    rt_json_str(&j, "activation", a->activation ? a->activation : "relu");
    rt_json_f64(&j, "dropout", a->dropout);
    rt_json_bool(&j, "dropout_input", a->dropout_input);
    if (a->v3)
        rt_json_str(&j, "isa", "v3");
    rt_json_object_end(&j);
}

static void write_preprocessing(const rt_model *m, rt_str *out) {
    const rt_arch_config *a = rt_net_config(rt_model_net(m));
    rt_json j;
    rt_json_init(&j, out, false);
    rt_json_object_begin(&j, NULL);
    if (m->bytes)
        rt_json_f64(&j, "pixel_scale", 1.0 / 255);
    if (m->resize)
        rt_json_str(&j, "resize", m->resize);
    rt_json_f64s(&j, "mean", a->mean, a->norm);
    rt_json_f64s(&j, "std", a->std, a->norm);
    rt_json_object_end(&j);
}

static void write_student(const rt_student *s, rt_str *out) {
    const rt_student_config *c = rt_student_get_config(s);
    rt_json j;
    rt_json_init(&j, out, false);
    rt_json_object_begin(&j, NULL);
    rt_json_str(&j, "spec", rt_student_spec(s));
    rt_json_str(&j, "head", c->head);
    rt_json_str(&j, "split", c->split);
    rt_json_bool(&j, "member_bn", c->member_bn);
    rt_json_f64(&j, "dirichlet_offset", c->dirichlet_offset);
    rt_json_object_end(&j);
}

static void write_warp(rt_json *j, const rt_warp *w) {
    rt_json_str(j, "transform", rt_warp_name(w->kind));
    rt_json_f64s(j, "knots_y", w->y, w->knots);
    rt_json_f64s(j, "knots_u", w->u, w->knots);
}

static void write_task(const rt_model *m, rt_str *out) {
    rt_json j;
    rt_json_init(&j, out, false);
    rt_json_object_begin(&j, NULL);
    rt_json_str(&j, "kind", rt_task_names[m->task]);
    if (m->task == RT_TASK_REGRESSION) {
        rt_json_f64(&j, "target_mean", m->target.mean);
        rt_json_f64(&j, "target_std", m->target.std);
        if (m->target.warp.kind != RT_WARP_NONE)
            write_warp(&j, &m->target.warp);
        if (m->target.unit)
            rt_json_str(&j, "unit", m->target.unit);
    } else {
        rt_json_strs(&j, "classes", m->classes, m->nclasses);
    }
    rt_json_object_end(&j);
}

static void write_provenance(const rt_model *m, int member, const rt_provenance *from, rt_str *out) {
    rt_json j;
    rt_json_init(&j, out, false);
    rt_json_object_begin(&j, NULL);
    rt_json_str(&j, "data_sha256", from->data_hash);
    rt_json_str(&j, "config_sha256", from->config_hash);
    rt_json_i64(&j, "seed", from->seed);
    rt_json_i64(&j, "member", from->first + member);
    rt_json_i64(&j, "members", from->of > 0 ? from->of : m->networks);
    rt_json_i64(&j, "epochs", from->epochs);
    rt_json_i64(&j, "kept_epoch", from->kept_epoch);
    if (from->objective)
        rt_json_str(&j, "objective", from->objective);
    if (from->perturb)
        rt_json_str(&j, "perturb", from->perturb);
    if (from->teacher_hash)
        rt_json_str(&j, "teacher_sha256", from->teacher_hash);
    rt_json_object_end(&j);
}

static rt_status check_finite(const rt_model *m, int member) {
    const float *block = rt_model_block(m, member);
    for (int i = 0; i < rt_params_count(m->params); i++) {
        const rt_param *p = rt_params_get(m->params, i);
        for (int64_t k = 0; k < p->count; k++)
            RT_FAIL_IF(!isfinite(block[p->offset + k]), RT_E_NUMERIC,
                       "member %d: weight %lld of '%s' is not finite", member, (long long)k, p->name);
    }
    return RT_OK;
}

rt_status rt_model_save(const rt_model *m, int member, const char *path, const rt_provenance *from) {
    enum { ARCHITECTURE, STUDENT, PREPROCESSING, TASK, PROVENANCE, NETWORK, TEXTS };
    rt_str text[TEXTS];
    rt_st_tensor *t = NULL;
    char hex[65];
    int n = rt_params_count(m->params);
    rt_status st = RT_OK;
    for (int i = 0; i < TEXTS; i++)
        rt_str_init(&text[i]);
    RT_TRY_GOTO(check_finite(m, member));
    write_architecture(rt_net_config(rt_model_net(m)), &text[ARCHITECTURE]);
    write_student(m->student, &text[STUDENT]);
    write_preprocessing(m, &text[PREPROCESSING]);
    write_task(m, &text[TASK]);
    write_provenance(m, member, from, &text[PROVENANCE]);
    RT_TRY_GOTO(rt_model_write_network(m, &text[NETWORK]));
    for (int i = 0; i < TEXTS; i++)
        RT_TRY_GOTO(rt_str_status(&text[i]));
    RT_TRY_GOTO(rt_calloc(&t, (size_t)n + 1, sizeof *t));
    for (int i = 0; i < n; i++) {
        const rt_param *p = rt_params_get(m->params, i);
        t[i] = (rt_st_tensor){.name = p->name,
                              .dtype = "F32",
                              .shape = p->shape,
                              .data = rt_model_block(m, member) + p->offset,
                              .bytes = (size_t)p->count * sizeof(float)};
    }
    rt_st_meta meta[] = {
        {"format", "pt"},
        {"retort", RT_VERSION},
        {"architecture", rt_str_text(&text[ARCHITECTURE])},
        {"student", rt_str_text(&text[STUDENT])},
        {"network", rt_str_text(&text[NETWORK])},
        {"preprocessing", rt_str_text(&text[PREPROCESSING])},
        {"task", rt_str_text(&text[TASK])},
        {"method", from->method},
        {"provenance", rt_str_text(&text[PROVENANCE])},
        {"sha256", hex},
        {"table", m->table},
    };
    const int64_t nmeta = RT_COUNT(meta) - (m->table == NULL);
    rt_tensors_digest(t, n, meta, nmeta, hex);
    RT_TRY_GOTO(rt_safetensors_write(path, t, n, meta, nmeta));
done:
    for (int i = 0; i < TEXTS; i++)
        rt_str_deinit(&text[i]);
    rt_free(t);
    return st;
}
