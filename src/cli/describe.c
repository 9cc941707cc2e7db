/*
 * describe.c - what files hold, for people (a table) and for programs (--json).
 *
 * Metadata of a model is text that is JSON more often than not: with --json, what parses is handed on as
 * JSON, the rest as text.
 */
#include "base/alloc.h"
#include "base/file.h"
#include "cli/cli.h"
#include "io/io.h"
#include <string.h>
#include <sys/stat.h>

enum { NPY_MAX = 1 << 30, NPY_MAX_GIB = 16 };

/* ---- models ---- */

static void json_metadata(rt_json *j, const rt_safetensors *s) {
    rt_json_object_begin(j, "metadata");
    for (int64_t i = 0; i < rt_safetensors_meta_count(s); i++) {
        const rt_st_meta *m = rt_safetensors_meta_get(s, i);
        rt_jdoc *doc = NULL;
        const bool object = m->value[0] == '{';
        const rt_status st = object ? rt_jdoc_parse(&doc, m->value, strlen(m->value), m->key) : RT_OK;
        rt_str_fail(j->out, st == RT_E_INPUT ? RT_OK : st);
        if (object && st == RT_OK)
            rt_json_raw(j, m->key, m->value);
        else
            rt_json_str(j, m->key, m->value);
        rt_jdoc_destroy(&doc);
    }
    rt_json_object_end(j);
}

static void json_tensors(rt_json *j, const rt_safetensors *s) {
    rt_json_array_begin(j, "tensors");
    for (int64_t i = 0; i < rt_safetensors_count(s); i++) {
        const rt_st_tensor *t = rt_safetensors_get(s, i);
        rt_json_object_begin(j, NULL);
        rt_json_str(j, "name", t->name);
        rt_json_str(j, "dtype", t->dtype);
        cli_json_shape(j, "shape", &t->shape);
        rt_json_i64(j, "bytes", (int64_t)t->bytes);
        rt_json_object_end(j);
    }
    rt_json_array_end(j);
}

static void metadata_rows(cli_table *t, const rt_safetensors *s) {
    for (int64_t i = 0; i < rt_safetensors_meta_count(s); i++) {
        const rt_st_meta *m = rt_safetensors_meta_get(s, i);
        bool longer = strlen(m->value) > 200;
        cli_table_cell(t, "%s", m->key);
        cli_table_cell(t, "%.200s%s", m->value, longer ? "..." : "");
    }
}

static void text_tensors(const rt_safetensors *s, rt_str *out, bool colour) {
    cli_table t;
    char number[32], shape[32];
    int64_t total = 0;
    size_t bytes = 0;
    cli_table_init(&t, "llrr", "tensor|type|shape|elements");
    for (int64_t i = 0; i < rt_safetensors_count(s); i++) {
        const rt_st_tensor *x = rt_safetensors_get(s, i);
        cli_table_cell(&t, "%s", x->name);
        cli_table_cell(&t, "%s", x->dtype);
        cli_table_cell(&t, "%s", cli_shape(shape, &x->shape));
        cli_table_cell(&t, "%s", cli_count(number, rt_shape_elems(&x->shape)));
        total += rt_shape_elems(&x->shape);
        bytes += x->bytes;
    }
    cli_table_rule(&t);
    cli_table_cell(&t, "%lld tensors", (long long)rt_safetensors_count(s));
    cli_table_cell(&t, "%s", cli_bytes(shape, (double)bytes));
    cli_table_cell(&t, "%s", "");
    cli_table_cell(&t, "%s", cli_count(number, total));
    cli_table_print(&t, out, colour);
    cli_table_deinit(&t);
}

rt_status cli_describe_safetensors(rt_cli *c, const char *path) {
    rt_safetensors *s = NULL;
    rt_status st;
    RT_TRY_GOTO(rt_safetensors_read(&s, path));
    if (c->config.json) {
        rt_json j;
        cli_json_begin(c, &j);
        rt_json_str(&j, "kind", "safetensors");
        rt_json_str(&j, "path", path);
        json_metadata(&j, s);
        json_tensors(&j, s);
        st = cli_json_end(c, &j);
    } else {
        cli_table t;
        cli_table_init(&t, "ll", "metadata|");
        metadata_rows(&t, s);
        cli_table_print(&t, &c->out, c->term.colour_out);
        cli_table_deinit(&t);
        rt_str_append_char(&c->out, '\n');
        text_tensors(s, &c->out, c->term.colour_out);
        st = cli_print(&c->out);
    }
done:
    rt_safetensors_destroy(&s);
    return st;
}

/* ---- arrays ---- */

rt_status cli_describe_npy(rt_cli *c, const char *path) {
    rt_npy a = {0};
    char shape[32], number[32];
    rt_status st;
    RT_TRY_GOTO(rt_npy_read(&a, path, (size_t)NPY_MAX * NPY_MAX_GIB));
    int64_t n = rt_shape_elems(&a.shape);
    if (c->config.json) {
        rt_json j;
        cli_json_begin(c, &j);
        rt_json_str(&j, "kind", "npy");
        rt_json_str(&j, "path", path);
        rt_json_str(&j, "dtype", (char[]){a.kind, (char)('0' + a.itemsize), 0});
        cli_json_shape(&j, "shape", &a.shape);
        st = cli_json_end(c, &j);
    } else {
        rt_str_appendf(&c->out, "array of %s elements, shape %s, type %c%d, %s\n", cli_count(number, n),
                       cli_shape(shape, &a.shape), a.kind, a.itemsize,
                       cli_bytes((char[32]){0}, (double)n * a.itemsize));
        st = cli_print(&c->out);
    }
done:
    rt_npy_deinit(&a);
    return st;
}

/* ---- runs ---- */

typedef struct run_files {
    char **names;
    int64_t n, members;
    bool checkpoint, finished, distilled;
    char *model; /* path of the first model file */
} run_files;

static bool is_model(const char *name) {
    return strcmp(name, "model.safetensors") == 0 ||
           (rt_str_starts(name, "member-") && rt_str_ends(name, ".safetensors"));
}

/* What --resume needs to be told. */
static rt_status find_verb(run_files *f, const char *path) {
    rt_config c;
    char *config = NULL;
    rt_status st;
    RT_TRY(rt_config_init(&c));
    RT_TRY_GOTO(rt_path_join(&config, path, "config.yaml"));
    RT_TRY_GOTO(rt_config_load(&c, RT_VERB_ALL, config));
    f->distilled = c.teacher != NULL;
done:
    rt_free(config);
    rt_config_deinit(&c);
    return st;
}

static rt_status list_run(run_files *f, const char *path) {
    RT_TRY(rt_dir_list(path, &f->names, &f->n));
    bool config = false;
    for (int64_t i = 0; i < f->n; i++) {
        const char *name = f->names[i];
        config |= strcmp(name, "config.yaml") == 0;
        f->checkpoint |= strcmp(name, "checkpoint.safetensors") == 0;
        if (!is_model(name))
            continue;
        if (f->members++ == 0)
            RT_TRY(rt_path_join(&f->model, path, name));
    }
    RT_FAIL_IF(!config && f->members == 0, RT_E_INPUT,
               "%s: a directory, but no run: neither config.yaml nor a model is in it", path);
    f->finished = f->members > 0 && !f->checkpoint;
    return config && f->checkpoint ? find_verb(f, path) : RT_OK;
}

static rt_status file_bytes(const char *dir, const char *name, int64_t *out) {
    char *path;
    struct stat info;
    RT_TRY(rt_path_join(&path, dir, name));
    *out = stat(path, &info) == 0 && S_ISREG(info.st_mode) ? (int64_t)info.st_size : -1;
    rt_free(path);
    return RT_OK;
}

static rt_status json_run(rt_cli *c, const char *path, const run_files *f, const rt_safetensors *s) {
    rt_json j;
    cli_json_begin(c, &j);
    rt_json_str(&j, "kind", "run");
    rt_json_str(&j, "path", path);
    rt_json_str(&j, "state", f->finished ? "finished" : "unfinished");
    rt_json_i64(&j, "members", f->members);
    if (s)
        json_metadata(&j, s);
    rt_json_array_begin(&j, "files");
    for (int64_t i = 0; i < f->n; i++) {
        int64_t bytes;
        RT_TRY(file_bytes(path, f->names[i], &bytes));
        if (bytes < 0)
            continue;
        rt_json_object_begin(&j, NULL);
        rt_json_str(&j, "name", f->names[i]);
        rt_json_i64(&j, "bytes", bytes);
        rt_json_object_end(&j);
    }
    rt_json_array_end(&j);
    return cli_json_end(c, &j);
}

static rt_status text_run(rt_cli *c, const char *path, const run_files *f, const rt_safetensors *s) {
    cli_table t;
    char number[32];
    rt_status st = RT_OK;
    cli_table_init(&t, "ll", "run|");
    cli_table_cell(&t, "path");
    cli_table_cell(&t, "%s", path);
    cli_table_cell(&t, "state");
    if (f->checkpoint)
        cli_table_cell(&t, "unfinished; 'retort %s --out %s --resume' goes on",
                       f->distilled ? "distill" : "train", path);
    else
        cli_table_cell(&t, f->finished ? "finished" : "unfinished");
    cli_table_cell(&t, "members");
    if (f->members > 0)
        cli_table_cell(&t, "%lld", (long long)f->members);
    else
        cli_table_cell(&t, "none yet");
    if (s)
        metadata_rows(&t, s);
    cli_table_print(&t, &c->out, c->term.colour_out);
    cli_table_deinit(&t);
    rt_str_append_char(&c->out, '\n');
    cli_table_init(&t, "lr", "file|size");
    for (int64_t i = 0; i < f->n; i++) {
        int64_t bytes;
        RT_TRY_GOTO(file_bytes(path, f->names[i], &bytes));
        if (bytes < 0)
            continue;
        cli_table_cell(&t, "%s", f->names[i]);
        cli_table_cell(&t, "%s", cli_bytes(number, (double)bytes));
    }
    cli_table_print(&t, &c->out, c->term.colour_out);
    st = cli_print(&c->out);
done:
    cli_table_deinit(&t);
    return st;
}

rt_status cli_describe_run(rt_cli *c, const char *path) {
    run_files f = {0};
    rt_safetensors *s = NULL;
    rt_status st;
    RT_TRY_GOTO(list_run(&f, path));
    if (f.model)
        RT_TRY_GOTO(rt_safetensors_read(&s, f.model));
    st = c->config.json ? json_run(c, path, &f, s) : text_run(c, path, &f, s);
done:
    rt_names_free(f.names, f.n);
    rt_free(f.model);
    rt_safetensors_destroy(&s);
    return st;
}
