/*
 * open_files.c - data by the names of its files, for those who have files rather than a SPEC: `retort predict RUN
 * FILE...`.
 *
 *     *.png *.jpg *.jpeg, a directory, a pattern    images: as many as there are
 *     *.csv  *.tsv  *.npy  *.safetensors  *-ubyte, also .gz and .xz of all but arrays: a table or an array: one
 *     anything else                                 a SPEC
 */
#include "data/data_int.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"

#include <string.h>

static const struct {
    const char *ending, *kind;
} kinds[] = {{".csv", "csv"},    {".npy", "npy"},      {".safetensors", "safetensors"},
             {"-ubyte", "idx"},  {"-ubyte.gz", "idx"}, {"-ubyte.xz", "idx"},
             {".csv.gz", "csv"}, {".csv.xz", "csv"},   {".tsv", "csv"},
             {".tsv.gz", "csv"}, {".tsv.xz", "csv"}};

const char *rt_file_kind(const char *name) {
    if (rt_dir_exists(name) || rt_picture_is_file(name))
        return "images";
    for (int64_t i = 0; i < RT_COUNT(kinds); i++)
        if (rt_str_ends(name, kinds[i].ending) && (rt_file_exists(name) || !strchr(name, ':')))
            return kinds[i].kind;
    return NULL;
}

static rt_status open_one(rt_dataset **out, const char *file, const char *kind, rt_data_options o) {
    rt_spec s = {.whole = file, .kind = kind, .paths = 1};
    RT_TRY(rt_path_expand(&s.path[0], file));
    rt_status st = rt_dataset_open_spec(out, &s, o);
    rt_spec_deinit(&s);
    return st;
}

static rt_status open_pictures(rt_dataset **out, const char *const *files, int64_t n, rt_data_options o) {
    rt_str name;
    rt_str_init(&name);
    rt_str_append(&name, files[0]);
    if (n > 1)
        rt_str_appendf(&name, " and %lld more", (long long)n - 1);
    rt_spec s = {.whole = rt_str_text(&name), .kind = "images", .file = files, .files = n};
    rt_status st = rt_str_status(&name);
    if (st == RT_OK)
        st = rt_dataset_open_spec(out, &s, o);
    rt_str_deinit(&name);
    return st;
}

rt_status rt_dataset_open_files(rt_dataset **out, const char *const *files, int64_t n, rt_data_options o) {
    *out = NULL;
    o.whole = true;
    for (int64_t i = 0; i < n; i++) {
        const char *kind = rt_file_kind(files[i]);
        const bool picture = kind && strcmp(kind, "images") == 0;
        RT_FAIL_IF(n > 1 && !picture, RT_E_USAGE,
                   "%s: pictures can be many, but there is room for one table or array only", files[i]);
        if (!kind)
            return rt_dataset_open(out, files[0], o);
        if (!picture)
            return open_one(out, files[0], kind, o);
    }
    return open_pictures(out, files, n, o);
}
