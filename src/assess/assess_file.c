/*
 * assess_file.c - the file of --out: tables of assessments, or the object that --json prints. Its name says which.
 */
#include "assess/assess.h"
#include "base/file.h"

static const struct {
    const char *end;
    bool json;
    rt_table_format format;
} kinds[] = {{".csv", false, RT_TABLE_CSV},
             {".md", false, RT_TABLE_MARKDOWN},
             {".tex", false, RT_TABLE_LATEX},
             {".txt", false, RT_TABLE_TEXT},
             {".json", true, RT_TABLE_TEXT}};

/* Its line above; as many as there are: none. */
static int find_kind(const char *path) {
    int i = 0;
    while (i < RT_COUNT(kinds) && !rt_str_ends(path, kinds[i].end))
        i++;
    return i;
}

rt_status rt_assess_file_check(const char *path) {
    if (path == NULL)
        return RT_OK;
    RT_FAIL_IF(find_kind(path) == RT_COUNT(kinds), RT_E_USAGE,
               "--out %s: the name must end in .csv, .md, .tex, .txt or .json", path);
    return rt_file_may_write(path);
}

static rt_status render(rt_str *out, int kind, rt_assessment *const *a, int n, const rt_config *c) {
    rt_json j;
    if (!kinds[kind].json)
        return rt_assess_tables(a, n,
                                &(rt_table_options){.format = kinds[kind].format,
                                                    .per_class = c->per_class,
                                                    .metrics = c->metrics},
                                out);
    rt_json_init(&j, out, false);
    rt_json_object_begin(&j, NULL);
    rt_json_str(&j, "retort", RT_VERSION);
    rt_assess_write(a, n, c->data, &j);
    rt_json_object_end(&j);
    rt_str_append_char(out, '\n');
    return RT_OK;
}

rt_status rt_assess_file_write(const char *path, rt_assessment *const *a, int n, const rt_config *c) {
    rt_str text;
    rt_str_init(&text);
    rt_status st = render(&text, find_kind(path), a, n, c);
    if (st == RT_OK)
        st = rt_file_write_text(path, &text);
    rt_str_deinit(&text);
    return st;
}
