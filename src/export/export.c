/*
 * export.c - the list of formats.
 */
#include "base/file.h"
#include "export/export_int.h"
#include <stdio.h>
#include <string.h>

#define RT_EXPORT(name, meaning)                                                                             \
    rt_status rt_export_##name(const rt_model *m, const char *run, const rt_export_options *o,               \
                               rt_export_result *r);
#include "export/exports.def"
#undef RT_EXPORT

static const rt_export_format k_formats[] = {
#define RT_EXPORT(name, meaning) {#name, meaning, rt_export_##name},
#include "export/exports.def"
#undef RT_EXPORT
};

int rt_export_list(const rt_export_format **out) {
    *out = k_formats;
    return (int)RT_COUNT(k_formats);
}

/* A name without the format's ending is most likely a mistake, and would replace a file of another kind. */
static rt_status check_place(const char *out, const char *format) {
    const size_t n = strlen(out), ending = strlen(format);
    RT_FAIL_IF(n <= ending + 1 || out[n - ending - 1] != '.' || strcmp(out + n - ending, format) != 0,
               RT_E_USAGE, "--out: '%s' does not end in .%s", out, format);
    return rt_file_may_write(out);
}

rt_status rt_export_run(const rt_model *m, const char *run, const rt_export_options *o, rt_export_result *r) {
    *r = (rt_export_result){0};
    rt_str_init(&r->outputs);
    for (size_t i = 0; i < RT_COUNT(k_formats); i++)
        if (o->format == NULL || strcmp(o->format, k_formats[i].name) == 0) {
            RT_TRY(check_place(o->out, k_formats[i].name));
            return k_formats[i].write(m, run, o, r);
        }
    const char *names[RT_COUNT(k_formats)];
    for (size_t i = 0; i < RT_COUNT(k_formats); i++)
        names[i] = k_formats[i].name;
    RT_FAIL_UNKNOWN(RT_E_USAGE, o->format, names, (int64_t)RT_COUNT(names), "--format: unknown");
}

rt_export_options rt_export_options_of(const rt_config *c) {
    return (rt_export_options){.format = c->format,
                               .out = c->out,
                               .outputs = c->outputs,
                               .opset = (int)c->opset,
                               .no_fold = !c->fold,
                               .raw = c->raw,
                               .data = c->data};
}

void rt_export_result_write(const rt_export_result *r, const char *out, rt_json *j) {
    rt_json_str(j, "file", out);
    rt_json_i64(j, "bytes", r->bytes);
    rt_json_i64(j, "opset", r->opset);
    rt_json_array_begin(j, "outputs");
    for (const char *p = rt_str_text(&r->outputs); *p != '\0';) {
        char name[64];
        const size_t n = strcspn(p, ",");
        snprintf(name, sizeof name, "%.*s", (int)n, p);
        rt_json_str(j, NULL, name);
        p += n + (p[n] == ',');
    }
    rt_json_array_end(j);
    rt_json_f64(j, "max_abs_difference", r->max_abs_difference);
    rt_json_f64(j, "rounding", r->rounding);
    rt_json_i64(j, "rows_checked", r->rows_checked);
    rt_json_str(j, "rows_from", r->rows_from);
}

void rt_export_result_deinit(rt_export_result *r) {
    rt_str_deinit(&r->outputs);
}

#if !RT_WITH_ONNX
rt_status rt_export_onnx(const rt_model *m, const char *run, const rt_export_options *o,
                         rt_export_result *r) {
    (void)m, (void)run, (void)o, (void)r;
    RT_FAIL(RT_E_UNSUPPORTED, "this program was built without ONNX (packages libprotobuf-c-dev, "
                              "protobuf-c-compiler and libonnx-dev)");
}
#endif
