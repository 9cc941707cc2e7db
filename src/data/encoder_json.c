/*
 * encoder_json.c - an encoder as text, in the metadata of a model ("table"):
 *
 *     {"target":"kind","columns":[{"name":"age","as":"number","gaps":true,"median":33.5},
 *      {"name":"city","as":"one-hot","gaps":false,"other":true,"categories":["Bern","Oslo"]},
 *      {"name":"shop","as":"hashed","gaps":false},
 *      {"name":"since","as":"date","gaps":false,"clock":false,"median":1577836800},
 *      {"name":"id","as":"nothing","why":"dropped"}]}
 *
 * Files are not trusted: every field is checked, so that an encoder that was read can be run.
 */
#include "data/frame.h"

#include "io/io.h"

#include <math.h>
#include <string.h>

static const char *const as_name[] = {[RT_AS_NUMBER] = "number",
                                      [RT_AS_ONE_HOT] = "one-hot",
                                      [RT_AS_HASHED] = "hashed",
                                      [RT_AS_DATE] = "date",
                                      [RT_AS_NOTHING] = "nothing"};

static void write_column(rt_json *j, const rt_encoded *c) {
    rt_json_object_begin(j, NULL);
    rt_json_str(j, "name", c->name);
    rt_json_str(j, "as", as_name[c->as]);
    if (c->as == RT_AS_NOTHING)
        rt_json_str(j, "why", c->why);
    else
        rt_json_bool(j, "gaps", c->gaps);
    if (c->as == RT_AS_DATE)
        rt_json_bool(j, "clock", c->clock);
    if (c->as == RT_AS_NUMBER || c->as == RT_AS_DATE)
        rt_json_f64(j, "median", c->median);
    if (c->as == RT_AS_ONE_HOT) {
        rt_json_bool(j, "other", c->other);
        rt_json_strs(j, "categories", c->category, c->categories);
    }
    rt_json_object_end(j);
}

void rt_encoder_write(const rt_encoder *e, rt_str *out) {
    rt_json j;
    rt_json_init(&j, out, false);
    rt_json_object_begin(&j, NULL);
    rt_json_str(&j, "target", e->target);
    rt_json_array_begin(&j, "columns");
    for (int64_t c = 0; c < e->columns; c++)
        write_column(&j, &e->column[c]);
    rt_json_array_end(&j);
    rt_json_object_end(&j);
}

static rt_status read_categories(rt_encoder *e, rt_encoded *c, rt_jval list, const char *name) {
    c->categories = rt_jval_len(list);
    RT_FAIL_IF(!rt_jval_is_array(list) || c->categories > RT_ONE_HOT_MAX, RT_E_INPUT,
               "%s: column %.60s wants a list of up to %d categories", name, c->name, RT_ONE_HOT_MAX);
    RT_TRY(rt_arena_alloc(&e->arena, &c->category, (size_t)(c->categories + 1) * sizeof *c->category));
    for (int64_t k = 0; k < c->categories; k++) {
        const char *text;
        RT_FAIL_IF(!rt_jval_str(rt_jval_at(list, k), &text), RT_E_INPUT,
                   "%s: column %.60s: category %lld is not text", name, c->name, (long long)k);
        RT_TRY(rt_arena_strdup(&e->arena, &c->category[k], text));
        RT_FAIL_IF(k > 0 && strcmp(c->category[k - 1], c->category[k]) >= 0, RT_E_INPUT,
                   "%s: column %.60s: categories are not in byte order", name, c->name);
    }
    return RT_OK;
}

static rt_status read_column(rt_encoder *e, rt_encoded *c, rt_jval v, const char *name) {
    const char *text, *as, *why = "";
    int kind = 0;
    RT_FAIL_IF(!rt_jval_str(rt_jval_get(v, "name"), &text) || !rt_jval_str(rt_jval_get(v, "as"), &as),
               RT_E_INPUT, "%s: column %lld has no name or nothing it becomes", name,
               (long long)(c - e->column));
    RT_TRY(rt_arena_strdup(&e->arena, &c->name, text));
    while (kind < RT_COUNT(as_name) && strcmp(as, as_name[kind]) != 0)
        kind++;
    RT_FAIL_IF(kind == RT_COUNT(as_name), RT_E_INPUT, "%s: column %.60s becomes '%.40s', which is unknown",
               name, text, as);
    c->as = (rt_column_as)kind;
    bool ok = c->as == RT_AS_NOTHING ? rt_jval_str(rt_jval_get(v, "why"), &why)
                                     : rt_jval_bool(rt_jval_get(v, "gaps"), &c->gaps);
    if (c->as == RT_AS_DATE)
        ok = ok && rt_jval_bool(rt_jval_get(v, "clock"), &c->clock);
    if (c->as == RT_AS_NUMBER || c->as == RT_AS_DATE)
        ok = ok && rt_jval_f64(rt_jval_get(v, "median"), &c->median) && isfinite((float)c->median);
    if (c->as == RT_AS_ONE_HOT)
        ok = ok && rt_jval_bool(rt_jval_get(v, "other"), &c->other);
    RT_FAIL_IF(!ok, RT_E_INPUT, "%s: column %.60s (%s) lacks what it needs", name, text, as);
    RT_TRY(rt_arena_strdup(&e->arena, &c->why, why));
    return c->as == RT_AS_ONE_HOT ? read_categories(e, c, rt_jval_get(v, "categories"), name) : RT_OK;
}

static rt_status read_columns(rt_encoder *e, rt_jval list, const char *name) {
    rt_map seen;
    rt_status st = RT_OK;
    const int64_t n = rt_jval_len(list);
    RT_FAIL_IF(!rt_jval_is_array(list) || n < 1 || n > RT_TABLE_WIDTH_MAX, RT_E_INPUT,
               "%s: wanted a list of columns", name);
    RT_TRY(rt_arena_alloc(&e->arena, &e->column, (size_t)n * sizeof *e->column));
    rt_map_init(&seen);
    for (int64_t c = 0; c < n; c++) {
        bool twice = false;
        RT_TRY_GOTO(read_column(e, &e->column[c], rt_jval_at(list, c), name));
        RT_TRY_GOTO(rt_map_put(&seen, e->column[c].name, c, &twice));
        if (twice)
            RT_FAIL_GOTO(RT_E_INPUT, "%s: 2 columns are called %.60s", name, e->column[c].name);
        e->columns = c + 1;
    }
done:
    rt_map_deinit(&seen);
    return st;
}

rt_status rt_encoder_read(rt_encoder *e, const char *json, const char *name) {
    rt_jdoc *doc = NULL;
    const char *target;
    *e = (rt_encoder){.width = 0};
    rt_arena_init(&e->arena);
    rt_status st = rt_jdoc_parse(&doc, json, strlen(json), name);
    if (st == RT_OK && rt_jval_str(rt_jval_get(rt_jdoc_root(doc), "target"), &target))
        st = rt_arena_strdup(&e->arena, &e->target, target);
    if (st == RT_OK)
        st = read_columns(e, rt_jval_get(rt_jdoc_root(doc), "columns"), name);
    if (st == RT_OK)
        st = rt_encoder_layout(e, name);
    rt_jdoc_destroy(&doc);
    return st;
}
