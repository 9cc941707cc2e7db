/*
 * describe_columns.c - retort data: the columns of a table, by name, and what each becomes.
 */
#include "cli/cli.h"

enum { COLUMNS_SHOWN = 64 };

static void features_cell(cli_table *t, const rt_column_info *c) {
    if (c->width == 0)
        cli_table_cell(t, "-");
    else if (c->width == 1)
        cli_table_cell(t, "%lld", (long long)c->first);
    else
        cli_table_cell(t, "%lld-%lld", (long long)c->first, (long long)(c->first + c->width - 1));
}

void cli_columns_print(const rt_dataset *d, const double *mean, const double *std, rt_str *out, bool colour) {
    cli_table t;
    const int64_t n = rt_dataset_columns(d), shown = RT_MIN(n, (int64_t)COLUMNS_SHOWN);
    rt_str becomes;
    rt_str_init(&becomes);
    cli_table_init(&t, "lrrrl", "column|features|mean|deviation|becomes");
    for (int64_t i = 0; i < shown; i++) {
        rt_str_clear(&becomes);
        const rt_column_info c = rt_dataset_column(d, i, &becomes);
        const bool number = c.width == 1 || c.width == 2; /* with a mark of gaps */
        cli_table_cell(&t, "%s", c.name);
        features_cell(&t, &c);
        for (int k = 0; k < 2; k++)
            if (number)
                cli_table_cell(&t, "%.5g", (k ? std : mean)[c.first]);
            else
                cli_table_cell(&t, " ");
        cli_table_cell(&t, "%s", rt_str_text(&becomes));
    }
    rt_str_append_char(out, '\n');
    cli_table_print(&t, out, colour);
    cli_table_deinit(&t);
    if (shown < n)
        rt_str_appendf(out, "... and %lld more\n", (long long)(n - shown));
    rt_str_fail(out, becomes.st);
    rt_str_deinit(&becomes);
}

void cli_columns_json(const rt_dataset *d, rt_json *j) {
    rt_str text;
    rt_str_init(&text);
    rt_json_array_begin(j, "columns");
    for (int64_t i = 0; i < rt_dataset_columns(d); i++) {
        rt_str_clear(&text);
        const rt_column_info c = rt_dataset_column(d, i, &text);
        rt_json_object_begin(j, NULL);
        rt_json_str(j, "name", c.name);
        rt_json_str(j, "becomes", rt_str_text(&text));
        rt_json_array_begin(j, "features");
        for (int64_t k = 0; k < c.width; k++) {
            rt_str_clear(&text);
            rt_dataset_feature(d, i, k, &text);
            rt_json_str(j, NULL, rt_str_text(&text));
        }
        rt_json_array_end(j);
        rt_json_object_end(j);
    }
    rt_json_array_end(j);
    rt_str_fail(j->out, text.st);
    rt_str_deinit(&text);
}
