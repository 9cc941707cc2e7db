/*
 * model_load.c - models from files: one file, or all members of a run directory.
 *
 * A file is checked in this order: its checksum (if it has one), its metadata, the network that metadata
 * describes, and only then its tensors, which must be exactly that network's. Nothing of the size of the
 * weights is allocated before. All members must agree in architecture, preprocessing and task, because one
 * network serves them all.
 */
#include "base/alloc.h"
#include "base/size.h"
#include "model/model_int.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MEMBERS_MAX = 10000, NORM_MAX = 1 << 20 };
static const char *const shared_keys[] = {"architecture", "student", "preprocessing", "task", "table"};

rt_status rt_tensors_verify(const rt_safetensors *s, const char *path) {
    const char *want = rt_safetensors_meta(s, "sha256");
    if (!want)
        return RT_OK;
    rt_st_tensor *t = NULL;
    rt_st_meta *meta = NULL;
    char have[65];
    int64_t n = rt_safetensors_count(s), nmeta = rt_safetensors_meta_count(s);
    rt_status st;
    RT_TRY_GOTO(rt_calloc(&t, (size_t)n + 1, sizeof *t));
    RT_TRY_GOTO(rt_calloc(&meta, (size_t)nmeta + 1, sizeof *meta));
    for (int64_t i = 0; i < n; i++)
        t[i] = *rt_safetensors_get(s, i);
    for (int64_t i = 0; i < nmeta; i++)
        meta[i] = *rt_safetensors_meta_get(s, i);
    rt_tensors_digest(t, n, meta, nmeta, have);
    if (strcmp(have, want) != 0)
        RT_FAIL_GOTO(RT_E_INPUT,
                     "%s: its contents do not have the SHA-256 it states: damaged, or changed by a program "
                     "that kept this line of metadata",
                     path);
done:
    rt_free(t);
    rt_free(meta);
    return st;
}

/* ---- metadata ---- */

static rt_status parse_meta(rt_jdoc **out, const rt_safetensors *s, const char *path, const char *key) {
    const char *text = rt_safetensors_meta(s, key);
    RT_FAIL_IF(!text, RT_E_INPUT, "%s: no '%s' in its metadata; it is not a model written by retort", path,
               key);
    rt_status st = rt_jdoc_parse(out, text, strlen(text), key);
    return st == RT_OK ? st : rt_error_prefix(st, "%s: metadata", path);
}

static rt_status read_architecture(rt_arch_config *a, const rt_jdoc *doc, const char *path) {
    rt_jval root = rt_jdoc_root(doc), input = rt_jval_get(root, "input");
    int64_t rank = rt_jval_len(input);
    bool ok = rt_jval_str(rt_jval_get(root, "spec"), &a->spec) &&
              rt_jval_i64(rt_jval_get(root, "outputs"), &a->outputs) &&
              rt_jval_str(rt_jval_get(root, "activation"), &a->activation) &&
              rt_jval_f64(rt_jval_get(root, "dropout"), &a->dropout) &&
              rt_jval_bool(rt_jval_get(root, "dropout_input"), &a->dropout_input);
    RT_FAIL_IF(!ok || (rank != 1 && rank != 3), RT_E_INPUT,
               "%s: 'architecture' must have spec, input (1 or 3 numbers), outputs, activation, dropout and "
               "dropout_input",
               path);
    RT_FAIL_IF(!(a->dropout >= 0 && a->dropout < 1), RT_E_INPUT, "%s: dropout %g is not in [0, 1)", path,
               a->dropout);
    RT_FAIL_IF(a->outputs < 1 || a->outputs > 1000000, RT_E_INPUT, "%s: %lld outputs; wanted 1 to 1000000",
               path, (long long)a->outputs);
    const char *isa;
    a->v3 = rt_jval_str(rt_jval_get(root, "isa"), &isa);
    RT_FAIL_IF(a->v3 && strcmp(isa, "v3") != 0, RT_E_INPUT, "%s: isa '%.20s' is unknown; wanted v3 or none",
               path, isa);
    a->input.rank = (int)rank;
    for (int i = 0; i < rank; i++)
        RT_FAIL_IF(!rt_jval_i64(rt_jval_at(input, i), &a->input.d[i]) || a->input.d[i] < 1 ||
                       a->input.d[i] > 1 << 24,
                   RT_E_INPUT, "%s: input dimension %d is not a number from 1 to %d", path, i, 1 << 24);
    return RT_OK;
}

static rt_status read_preprocessing(rt_arch_config *a, rt_arena *arena, const rt_jdoc *doc,
                                    const char *path) {
    rt_jval mean = rt_jval_get(rt_jdoc_root(doc), "mean"), std = rt_jval_get(rt_jdoc_root(doc), "std");
    int64_t n = rt_jval_len(mean), want = a->input.d[0];
    RT_FAIL_IF(n < 0 || n != rt_jval_len(std) || (n != 0 && n != want) || n > NORM_MAX, RT_E_INPUT,
               "%s: 'preprocessing' must have mean and std of %lld numbers each, or none", path,
               (long long)want);
    double *values;
    RT_TRY(rt_arena_alloc(arena, &values, (size_t)(2 * n + 1) * sizeof *values));
    for (int64_t i = 0; i < n; i++)
        RT_FAIL_IF(!rt_jval_f64(rt_jval_at(mean, i), &values[i]) ||
                       !rt_jval_f64(rt_jval_at(std, i), &values[n + i]) || !isfinite(values[i]) ||
                       !isfinite(values[n + i]) || values[n + i] <= 0,
                   RT_E_INPUT, "%s: entry %lld of mean and std must be two finite numbers, std above 0", path,
                   (long long)i);
    a->norm = (int)n;
    a->mean = values;
    a->std = values + n;
    return RT_OK;
}

/* How bytes and pictures became inputs, if they were such. */
static rt_status read_pictures(rt_model *m, const rt_jdoc *doc, const char *path) {
    rt_jval scale = rt_jval_get(rt_jdoc_root(doc), "pixel_scale"),
            resize = rt_jval_get(rt_jdoc_root(doc), "resize");
    double value;
    const char *text;
    m->bytes = scale != NULL;
    RT_FAIL_IF(scale && (!rt_jval_f64(scale, &value) || value != 1.0 / 255), RT_E_INPUT,
               "%s: 'pixel_scale' is not 1/255", path);
    if (!resize)
        return RT_OK;
    RT_FAIL_IF(!rt_jval_str(resize, &text) || (strcmp(text, "crop") != 0 && strcmp(text, "stretch") != 0),
               RT_E_INPUT, "%s: 'resize' is neither crop nor stretch", path);
    return rt_arena_strdup(&m->arena, &m->resize, text);
}

/* How the target is transformed, if it is. */
static rt_status read_warp(rt_warp *w, rt_jval root, const char *path) {
    rt_jval transform = rt_jval_get(root, "transform"), y = rt_jval_get(root, "knots_y"),
            u = rt_jval_get(root, "knots_u");
    const int64_t n = rt_jval_len(y);
    const char *name;
    if (!transform)
        return RT_OK;
    bool ok = rt_jval_str(transform, &name) && rt_warp_find(name, &w->kind) && n == rt_jval_len(u) && n > 0 &&
              n <= RT_WARP_KNOTS;
    for (int64_t i = 0; ok && i < n; i++)
        ok = rt_jval_f64(rt_jval_at(y, i), &w->y[i]) && rt_jval_f64(rt_jval_at(u, i), &w->u[i]);
    w->knots = ok ? (int)n : 0;
    RT_FAIL_IF(
        !ok || !rt_warp_valid(w), RT_E_INPUT,
        "%s: 'task' must have a transform log or quantile, with knots_y and knots_u that rise, 2 to %d each",
        path, RT_WARP_KNOTS);
    return RT_OK;
}

static rt_status read_task(rt_model *m, const rt_arch_config *a, const rt_jdoc *doc, const char *path) {
    rt_jval root = rt_jdoc_root(doc), classes = rt_jval_get(root, "classes");
    const char *kind;
    RT_FAIL_IF(!rt_jval_str(rt_jval_get(root, "kind"), &kind), RT_E_INPUT, "%s: 'task' has no kind", path);
    const int64_t task = rt_str_find(kind, rt_task_names, RT_TASKS);
    if (task < 0)
        RT_FAIL_UNKNOWN(RT_E_INPUT, kind, rt_task_names, RT_TASKS, "%s: unknown task", path);
    m->task = (rt_task)task;
    if (m->task == RT_TASK_REGRESSION) {
        const char *unit;
        rt_target *t = &m->target;
        bool ok = rt_jval_f64(rt_jval_get(root, "target_mean"), &t->mean) &&
                  rt_jval_f64(rt_jval_get(root, "target_std"), &t->std);
        RT_FAIL_IF(!ok || !isfinite(t->mean) || !isfinite(t->std) || t->std <= 0, RT_E_INPUT,
                   "%s: 'task' must have target_mean and target_std above 0", path);
        RT_TRY(read_warp(&t->warp, root, path));
        if (rt_jval_str(rt_jval_get(root, "unit"), &unit))
            RT_TRY(rt_model_set_unit(m, unit));
        RT_FAIL_IF(a->outputs != 2, RT_E_INPUT, "%s: %lld outputs; regression has 2", path,
                   (long long)a->outputs);
        return RT_OK;
    }
    m->nclasses = rt_jval_len(classes);
    RT_FAIL_IF(m->nclasses != a->outputs, RT_E_INPUT, "%s: %lld class names for %lld outputs", path,
               (long long)m->nclasses, (long long)a->outputs);
    RT_TRY(rt_arena_alloc(&m->arena, &m->classes, (size_t)(m->nclasses + 1) * sizeof *m->classes));
    for (int64_t k = 0; k < m->nclasses; k++) {
        const char *name;
        RT_FAIL_IF(!rt_jval_str(rt_jval_at(classes, k), &name), RT_E_INPUT, "%s: class name %lld is not text",
                   path, (long long)k);
        RT_TRY(rt_arena_strdup(&m->arena, &m->classes[k], name));
    }
    return RT_OK;
}

/* Texts are borrowed from the document. */
static rt_status read_student(rt_student_config *c, const rt_jdoc *doc, const char *path) {
    rt_jval root = rt_jdoc_root(doc);
    bool ok = rt_jval_str(rt_jval_get(root, "spec"), &c->spec) &&
              rt_jval_bool(rt_jval_get(root, "member_bn"), &c->member_bn) &&
              rt_jval_f64(rt_jval_get(root, "dirichlet_offset"), &c->dirichlet_offset);
    RT_FAIL_IF(!ok, RT_E_INPUT, "%s: 'student' must have spec, member_bn and dirichlet_offset", path);
    if (!rt_jval_str(rt_jval_get(root, "head"), &c->head))
        c->head = NULL;
    if (!rt_jval_str(rt_jval_get(root, "split"), &c->split))
        c->split = NULL;
    return RT_OK;
}

static rt_status copy_meta(rt_model *m, const rt_safetensors *s) {
    rt_st_meta *meta;
    m->nmeta = rt_safetensors_meta_count(s);
    RT_TRY(rt_arena_alloc(&m->arena, &meta, (size_t)(m->nmeta + 1) * sizeof *meta));
    for (int64_t i = 0; i < m->nmeta; i++) {
        RT_TRY(rt_arena_strdup(&m->arena, &meta[i].key, rt_safetensors_meta_get(s, i)->key));
        RT_TRY(rt_arena_strdup(&m->arena, &meta[i].value, rt_safetensors_meta_get(s, i)->value));
    }
    m->meta = meta;
    return RT_OK;
}

/* Columns of a table, if it was one. */
static rt_status read_table(rt_model *m, const rt_arch_config *a, const rt_safetensors *s, const char *path) {
    const char *text = rt_safetensors_meta(s, "table");
    if (!text)
        return RT_OK;
    RT_FAIL_IF(a->input.rank != 1, RT_E_INPUT, "%s: 'table' of a model of images", path);
    const rt_status st = rt_dataset_table_check(text, a->input.d[0], "table");
    return st == RT_OK ? rt_arena_strdup(&m->arena, &m->table, text)
                       : rt_error_prefix(st, "%s: metadata", path);
}

static rt_status load_head(rt_model *m, const rt_safetensors *s, const char *path, int members) {
    enum { ARCHITECTURE, STUDENT, PREPROCESSING, TASK, DOCS };
    rt_jdoc *doc[DOCS] = {NULL};
    rt_student_config c = {0};
    rt_arch_config a = {0};
    rt_status st;
    for (int i = 0; i < DOCS; i++)
        if (i != STUDENT || rt_safetensors_meta(s, shared_keys[i]) != NULL) /* without: a single network */
            RT_TRY_GOTO(parse_meta(&doc[i], s, path, shared_keys[i]));
    RT_TRY_GOTO(read_architecture(&a, doc[ARCHITECTURE], path));
    RT_TRY_GOTO(read_preprocessing(&a, &m->arena, doc[PREPROCESSING], path));
    RT_TRY_GOTO(read_pictures(m, doc[PREPROCESSING], path));
    RT_TRY_GOTO(read_task(m, &a, doc[TASK], path));
    RT_TRY_GOTO(read_table(m, &a, s, path));
    RT_TRY_GOTO(copy_meta(m, s));
    if (doc[STUDENT] != NULL)
        RT_TRY_GOTO(read_student(&c, doc[STUDENT], path));
    c.arch = a;
    c.regression = m->task == RT_TASK_REGRESSION;
    st = rt_model_set_student(m, &c, members);
    if (st != RT_OK)
        st = rt_error_prefix(st == RT_E_MEMORY ? st : RT_E_INPUT, "%s: network", path);
done:
    for (int i = 0; i < DOCS; i++)
        rt_jdoc_destroy(&doc[i]);
    return st;
}

/* ---- tensors ---- */

static bool is_known(const rt_model *m, const char *name) {
    /* PyTorch counts the batches a BN layer has seen; nothing here needs it. */
    return rt_params_find(m->params, name) >= 0 || rt_str_ends(name, ".num_batches_tracked");
}

static void append_shape(rt_str *out, const rt_shape *s) {
    rt_str_append_char(out, ' ');
    rt_shape_print(s, out);
}

/* The file's tensors are the network's, in name and shape. */
static rt_status check_tensors(const rt_model *m, const rt_safetensors *s, const char *path) {
    rt_str problems;
    rt_str_init(&problems);
    int count = 0;
    for (int i = 0; i < rt_params_count(m->params) && count < 8; i++) {
        const rt_param *p = rt_params_get(m->params, i);
        const rt_st_tensor *t = rt_safetensors_find(s, p->name);
        if (t && rt_shape_equal(&t->shape, &p->shape))
            continue;
        rt_str_appendf(&problems, "%s%s is", count++ ? "; " : "", p->name);
        if (t)
            append_shape(&problems, &t->shape);
        else
            rt_str_append(&problems, " missing");
        rt_str_append(&problems, ", wanted");
        append_shape(&problems, &p->shape);
    }
    for (int64_t i = 0; i < rt_safetensors_count(s) && count < 8; i++)
        if (!is_known(m, rt_safetensors_get(s, i)->name))
            rt_str_appendf(&problems, "%s%s is not part of the network", count++ ? "; " : "",
                           rt_safetensors_get(s, i)->name);
    rt_status st = RT_OK;
    if (count > 0)
        st = rt_error_set(RT_E_INPUT, __FILE__, __LINE__, "%s: tensors do not fit %s: %s", path,
                          rt_net_config(rt_student_net(m->student))->spec, rt_str_text(&problems));
    rt_str_deinit(&problems);
    return st;
}

static rt_status load_tensors(rt_model *m, const rt_safetensors *s, const char *path, int member) {
    float *block = rt_model_weights(m, member);
    for (int i = 0; i < rt_params_count(m->params); i++) {
        const rt_param *p = rt_params_get(m->params, i);
        RT_TRY(rt_safetensors_to_f32(s, rt_safetensors_find(s, p->name), block + p->offset, p->count));
        for (int64_t k = 0; k < p->count; k++)
            RT_FAIL_IF(!isfinite(block[p->offset + k]), RT_E_INPUT, "%s: element %lld of '%s' is not finite",
                       path, (long long)k, p->name);
    }
    return RT_OK;
}

static bool same_text(const char *a, const char *b) {
    return a != NULL && b != NULL ? strcmp(a, b) == 0 : a == b;
}

static rt_status check_same(const rt_model *m, const rt_safetensors *s, const char *path, const char *first) {
    for (int64_t i = 0; i < RT_COUNT(shared_keys); i++)
        RT_FAIL_IF(!same_text(rt_safetensors_meta(s, shared_keys[i]), rt_model_meta(m, shared_keys[i])),
                   RT_E_INPUT, "%s: its %s differs from that of %s", path, shared_keys[i], first);
    return RT_OK;
}

static rt_status load_member(rt_model *m, const char *path, const char *first, int member, int members) {
    rt_safetensors *s = NULL;
    rt_status st;
    RT_TRY_GOTO(rt_safetensors_read(&s, path));
    RT_TRY_GOTO(rt_tensors_verify(s, path));
    if (member == 0)
        RT_TRY_GOTO(load_head(m, s, path, members));
    else
        RT_TRY_GOTO(check_same(m, s, path, first));
    RT_TRY_GOTO(check_tensors(m, s, path));
    if (member == 0) {
        size_t bytes;
        if (!rt_size_mul((size_t)m->floats * sizeof(float), (size_t)members, &bytes))
            RT_FAIL_GOTO(RT_E_MEMORY, "%s: %d members are too many", path, members);
        RT_TRY_GOTO(rt_memory_check(bytes, "the weights"));
        RT_TRY_GOTO(rt_calloc(&m->blocks, (size_t)members * (size_t)m->floats, sizeof(float)));
        RT_TRY_GOTO(rt_model_list_blocks(m));
    }
    RT_TRY_GOTO(load_tensors(m, s, path, member));
done:
    rt_safetensors_destroy(&s);
    return st;
}

/* ---- several models as one ---- */

const char *rt_model_differs(const rt_model *a, const rt_model *b) {
    for (int64_t i = 0; i < RT_COUNT(shared_keys); i++)
        if (!same_text(rt_model_meta(a, shared_keys[i]), rt_model_meta(b, shared_keys[i])))
            return shared_keys[i];
    return NULL;
}

rt_status rt_model_check_new(const rt_model *all, const rt_model *m, const char *name) {
    const size_t bytes = (size_t)m->floats * sizeof(float);
    for (int i = 0; i < m->networks && all->floats == m->floats; i++)
        for (int k = 0; k < all->networks; k++)
            RT_FAIL_IF(memcmp(rt_model_block(all, k), rt_model_block(m, i), bytes) == 0, RT_E_INPUT,
                       "%s: network %d is the same as network %d of those before it; members differ by seed: "
                       "train each "
                       "part with a --first-member of its own",
                       name, i, k);
    return RT_OK;
}

rt_status rt_model_add(rt_model *m, const rt_model *more, const char *name) {
    RT_TRY(rt_model_check_new(m, more, name));
    const char *key = rt_model_differs(m, more);
    RT_FAIL_IF(key, RT_E_INPUT,
               "%s: its %s differs from that of the first run; members are of one kind: %s, %s", name, key,
               rt_net_config(rt_model_net(m))->spec, rt_net_config(rt_model_net(more))->spec);
    RT_FAIL_IF(m->networks + more->networks > MEMBERS_MAX, RT_E_INPUT, "%s: more than %d members together",
               name, MEMBERS_MAX);
    const size_t each = (size_t)m->floats * sizeof(float), have = each * (size_t)m->networks;
    size_t all;
    RT_FAIL_IF(!rt_size_mul(each, (size_t)(m->networks + more->networks), &all), RT_E_MEMORY,
               "%s: the members are too many", name);
    RT_TRY(rt_memory_check(all - have, "the weights"));
    RT_TRY(rt_realloc(&m->blocks, have, all));
    memcpy(rt_model_weights(m, m->networks), more->blocks, all - have);
    m->networks += more->networks;
    return rt_model_list_blocks(m);
}

/* ---- run directories ---- */

/* Member files of a run: *members = 0 for one model.safetensors. Numbers must run from 0 without gaps. */
static rt_status count_members(const char *dir, int *members) {
    char **names = NULL;
    int64_t n = 0, found = 0, highest = -1;
    bool single = false, checkpoint = false;
    RT_TRY(rt_dir_list(dir, &names, &n));
    for (int64_t i = 0; i < n; i++) {
        size_t len = strlen(names[i]);
        int64_t number;
        single = single || strcmp(names[i], "model.safetensors") == 0;
        checkpoint = checkpoint || strcmp(names[i], "checkpoint.safetensors") == 0;
        if (len > 19 && rt_str_starts(names[i], "member-") && rt_str_ends(names[i], ".safetensors") &&
            rt_parse_i64(names[i] + 7, len - 19, &number) && number >= 0) {
            found++;
            highest = RT_MAX(highest, number);
        }
    }
    rt_names_free(names, n);
    RT_FAIL_IF(single && found, RT_E_INPUT,
               "%s: holds model.safetensors and member files; name the file that is meant", dir);
    RT_FAIL_IF(!single && !found && checkpoint, RT_E_INPUT,
               "%s: this run is not finished; continue it with retort train --resume", dir);
    RT_FAIL_IF(!single && !found, RT_E_INPUT, "%s: no model.safetensors and no member-*.safetensors there",
               dir);
    RT_FAIL_IF(highest >= MEMBERS_MAX, RT_E_INPUT, "%s: member %lld; at most %d are supported", dir,
               (long long)highest, MEMBERS_MAX);
    RT_FAIL_IF(found && highest + 1 != found, RT_E_INPUT, "%s: %lld of %lld member files are there", dir,
               (long long)found, (long long)highest + 1);
    *members = (int)found;
    return RT_OK;
}

/* The files of a run say how many there should be at least: of one that was gathered, those of a part. */
static rt_status check_count(const rt_model *m, const char *dir) {
    const char *text = rt_model_meta(m, "provenance");
    rt_jdoc *doc = NULL;
    int64_t members;
    if (!text)
        return RT_OK;
    rt_status st = rt_jdoc_parse(&doc, text, strlen(text), "provenance");
    if (st != RT_OK)
        return rt_error_prefix(st, "%s: metadata", dir);
    if (rt_jval_i64(rt_jval_get(rt_jdoc_root(doc), "members"), &members) && members > m->networks)
        st = rt_error_set(RT_E_INPUT, __FILE__, __LINE__, "%s: %d of %lld member files are there", dir,
                          m->networks, (long long)members);
    rt_jdoc_destroy(&doc);
    return st;
}

static rt_status load_dir(rt_model *m, const char *dir) {
    int members = 0;
    RT_TRY(count_members(dir, &members));
    char *first = NULL;
    rt_status st = RT_OK;
    for (int i = 0; i < RT_MAX(members, 1) && st == RT_OK; i++) {
        char name[48];
        char *path = NULL;
        rt_member_file(name, i, members == 0);
        st = rt_path_join(&path, dir, name);
        if (st == RT_OK)
            st = load_member(m, path, first, i, RT_MAX(members, 1));
        if (i == 0)
            first = path;
        else
            rt_free(path);
    }
    rt_free(first);
    return st == RT_OK ? check_count(m, dir) : st;
}

rt_status rt_model_load(rt_model **out, const char *path) {
    RT_FAIL_IF(!out, RT_E_USAGE, "rt_model_load: no place for the model");
    *out = NULL;
    RT_FAIL_IF(!path, RT_E_USAGE, "rt_model_load: no path");
    rt_model *m;
    char *full = NULL;
    RT_TRY(rt_path_expand(&full, path));
    rt_status st = rt_calloc(&m, 1, sizeof *m);
    if (st == RT_OK) {
        bool dir;
        rt_arena_init(&m->arena);
        st = rt_dir_find(full, &dir);
        if (st == RT_OK)
            st = dir ? load_dir(m, full) : load_member(m, full, NULL, 0, 1);
        if (st == RT_OK)
            st = rt_model_read_decision(m);
        if (st != RT_OK)
            rt_model_destroy(&m);
    }
    rt_free(full);
    *out = m;
    return st;
}
