/*
 * export_names.c - the names of the classes, a line each.
 */
#include "base/file.h"
#include "export/export_int.h"

rt_status rt_export_names(const rt_model *m, const char *run, const rt_export_options *o,
                          rt_export_result *r) {
    (void)run;
    rt_str text;
    rt_str_init(&text);
    for (int64_t k = 0; k < rt_model_outputs(m); k++)
        rt_str_appendf(&text, "%s\n", rt_model_class_name(m, k));
    r->bytes = (int64_t)text.len;
    r->rows_from = "no rows";
    rt_str_append(&r->outputs, "names");
    rt_status st = rt_file_write_text(o->out, &text);
    rt_str_deinit(&text);
    return st;
}
