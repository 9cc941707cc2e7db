/*
 * dataset.c - a data set: its life, its checks and its fingerprint. The kinds of source are lines of
 * sources.def, one loader each.
 *
 * Whatever the source, a data set that was opened holds: at least one row; labels in [0, classes); finite
 * numbers. A source without a test part of its own (csv, npy, images) gives up a share of its rows for it,
 * drawn once and for all by the SPEC.
 *
 * The fingerprint is SHA-256 over, as little-endian 64-bit numbers, the task, the classes and the row shape,
 * then for each part its count, its rows (u8 or float bytes) and its labels or targets: equal data from
 * different files has equal fingerprints.
 */
#include "data/data_int.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/sha256.h"
#include "base/size.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const rt_source_info source_info[] = {
#define RT_SOURCE(name, load, like, place, form, meaning) {name, form, meaning, like},
#include "data/sources.def"
#undef RT_SOURCE
};
static const struct {
    rt_source_load load;
    const char *place;
} source[] = {
#define RT_SOURCE(name, load, like, place, form, meaning) {load, place},
#include "data/sources.def"
#undef RT_SOURCE
};
enum { SOURCE_COUNT = sizeof source_info / sizeof *source_info, PIECE = 1024 /* floats */ };

int rt_source_list(const rt_source_info **out) {
    *out = source_info;
    return SOURCE_COUNT;
}

bool rt_source_like(const char *spec) {
    for (int i = 0; i < SOURCE_COUNT; i++)
        if (rt_str_heads(spec, source_info[i].name))
            return source_info[i].like;
    return false;
}

/* What to do with a file that no source reads, by the ending of its name. */
static const char *advice_for(const char *file) {
    static const char *const pictures[] = {".gif", ".webp", ".bmp", ".tif", ".tiff", ".avif", ".heic"},
                             *const tables[] = {".xlsx",  ".xls",  ".ods", ".parquet", ".feather",
                                                ".jsonl", ".json", ".npz", ".h5"};
    for (int64_t i = 0; i < RT_COUNT(pictures); i++)
        if (rt_str_ends(file, pictures[i]))
            return "such pictures are not read; convert them to .png or .jpg";
    for (int64_t i = 0; i < RT_COUNT(tables); i++)
        if (rt_str_ends(file, tables[i]))
            return "such files are not read; write tables as .csv, arrays as .npy";
    return "its name does not say what it holds; put the kind before it, such as csv: for a table";
}

/* A file is there, or meant, and its kind was left out: "table.csv,target=y". */
static rt_status name_kind(const char *spec) {
    char *file;
    rt_status st = RT_OK;
    RT_TRY(rt_path_expand(&file, spec));
    file[strcspn(file, ",")] = 0;
    const char *kind = rt_file_kind(file);
    if (rt_dir_exists(file))
        st = rt_error_set(
            RT_E_USAGE, __FILE__, __LINE__,
            "data '%s': a directory of what? Say images:%s, or mnist:, idx:, cifar10: before it", spec, spec);
    else if (kind)
        st = rt_error_set(RT_E_USAGE, __FILE__, __LINE__,
                          "data '%s': the kind is missing; did you mean '%s:%s'?", spec, kind, spec);
    else if (rt_file_exists(file))
        st = rt_error_set(RT_E_USAGE, __FILE__, __LINE__, "data '%s': %s", spec, advice_for(file));
    rt_free(file);
    return st;
}

static rt_status source_find(int *out, const rt_spec *s) {
    const char *names[SOURCE_COUNT];
    for (int i = 0; i < SOURCE_COUNT; i++)
        names[i] = source_info[i].name;
    *out = (int)rt_str_find(s->kind, names, SOURCE_COUNT);
    if (*out < 0 && !strchr(s->whole, ':'))
        RT_TRY(name_kind(s->whole));
    if (*out < 0)
        RT_FAIL_UNKNOWN(RT_E_USAGE, s->kind, names, SOURCE_COUNT, "data '%s': unknown kind", s->whole);
    return RT_OK;
}

/* A SPEC without a path means the place of its source. Borrows from s. */
static rt_status at_place(rt_spec *out, int kind, const rt_spec *s) {
    const char *place = source[kind].place;
    *out = *s;
    if (!place || s->paths > 0)
        return RT_OK;
    RT_FAIL_IF(!rt_dir_exists(place), RT_E_INPUT, "data '%s': %s is not there; wanted %s (%s)", s->whole,
               place, source_info[kind].form, source_info[kind].meaning);
    out->path[0] = (char *)place;
    out->paths = 1;
    return RT_OK;
}

rt_status rt_source_there(const char *spec) {
    rt_spec s, placed;
    int kind = 0;
    RT_TRY(rt_spec_parse(&s, spec));
    rt_status st = source_find(&kind, &s);
    if (st == RT_OK)
        st = at_place(&placed, kind, &s);
    for (int i = 0; i < s.paths && st == RT_OK; i++)
        if (!rt_file_exists(s.path[i]) && !rt_dir_exists(s.path[i]) && !rt_is_pattern(s.path[i]))
            st = rt_error_set(RT_E_INPUT, __FILE__, __LINE__, "data '%s': %s is not there", spec, s.path[i]);
    rt_spec_deinit(&s);
    return st;
}

static rt_status dataset_new(rt_dataset **out, const char *spec) {
    rt_dataset *d = NULL;
    *out = NULL;
    RT_TRY(rt_calloc(&d, 1, sizeof *d));
    rt_arena_init(&d->arena);
    pthread_mutex_init(&d->lock, NULL);
    d->spec = rt_strdup(spec);
    if (d->spec == NULL) {
        rt_dataset_destroy(&d);
        return RT_E_MEMORY;
    }
    *out = d;
    return RT_OK;
}

/* Rows without labels are whatever a model says. */
static rt_status take_over(rt_dataset *d, const rt_data_like *like) {
    d->class_name = NULL;
    d->classes = like ? like->classes : 0;
    if (like)
        d->task = like->task;
    return like && like->task == RT_TASK_CLASSIFICATION ? rt_dataset_name_classes(d, like->class_name)
                                                        : RT_OK;
}

bool rt_dataset_labelled(const rt_dataset *d) {
    const rt_part *p = d->train.n > 0 ? &d->train : &d->test;
    return p->label || p->target;
}

rt_status rt_dataset_need_labels(const rt_dataset *d, const char *what) {
    RT_FAIL_IF(!rt_dataset_labelled(d), RT_E_INPUT,
               "%s: these rows have no labels, and %s needs them; 'retort predict' does without. Labels are "
               "a folder per "
               "class (images), a second array (npy), a target column (csv) or a labels file (idx)",
               d->spec, what);
    return RT_OK;
}

const char *rt_dataset_row_name(const rt_dataset *d, const rt_part *p, int64_t i) {
    const char **names = p == &d->train ? d->row_name[0] : p == &d->test ? d->row_name[1] : NULL;
    return names ? names[i] : NULL;
}

const char *rt_dataset_resize(const rt_dataset *d) {
    return d->resize;
}

rt_status rt_dataset_open_spec(rt_dataset **out, const rt_spec *s, rt_data_options o) {
    *out = NULL;
    rt_dataset *d = NULL;
    rt_spec placed;
    int kind = 0;
    rt_status st = RT_OK;
    RT_FAIL_IF(o.limit < 0, RT_E_USAGE, "data '%s': limit %lld, wanted 0 or more", s->whole,
               (long long)o.limit);
    RT_TRY_GOTO(source_find(&kind, s));
    RT_TRY_GOTO(dataset_new(&d, s->whole));
    RT_TRY_GOTO(at_place(&placed, kind, s));
    RT_TRY_GOTO(source[kind].load(d, &placed, o));
    if (o.limit > 0) {
        d->valid_rows = RT_MAX(d->valid_rows - RT_MAX(d->train.n - o.limit, 0), 0);
        d->train.n = RT_MIN(d->train.n, o.limit);
        d->test.n = RT_MIN(d->test.n, o.limit);
    }
    if (d->train.n == 0 && d->test.n == 0)
        RT_FAIL_GOTO(RT_E_INPUT, "data '%s': no rows", s->whole);
    if (!rt_dataset_labelled(d))
        RT_TRY_GOTO(take_over(d, o.like));
    if (d->task == RT_TASK_CLASSIFICATION && d->class_name == NULL)
        st = rt_dataset_name_classes(d, NULL);
done:
    if (st != RT_OK)
        rt_dataset_destroy(&d);
    *out = d;
    return st;
}

rt_status rt_dataset_open(rt_dataset **out, const char *spec, rt_data_options o) {
    rt_spec s;
    *out = NULL;
    RT_TRY(rt_spec_parse(&s, spec));
    rt_status st = rt_dataset_open_spec(out, &s, o);
    rt_spec_deinit(&s);
    return st;
}

rt_status rt_part_check(const rt_part *p, const char *name, rt_task task, int64_t elems, int64_t classes) {
    RT_FAIL_IF(p->n < 0 || (p->n > 0 && (p->u8 == NULL) == (p->f32 == NULL)), RT_E_USAGE,
               "%s part: %lld rows, wanted 0 or more, in u8 or in f32", name, (long long)p->n);
    int64_t total = 0;
    RT_FAIL_IF(!rt_i64_mul(p->n, elems, &total), RT_E_USAGE, "%s part: %lld rows are too many", name,
               (long long)p->n);
    for (int64_t i = 0; p->f32 && i < total; i++)
        RT_FAIL_IF(!isfinite(p->f32[i]), RT_E_INPUT, "%s part, row %lld, value %lld is not finite", name,
                   (long long)(i / elems), (long long)(i % elems));
    for (int64_t i = 0; task == RT_TASK_CLASSIFICATION && p->label && i < p->n; i++)
        RT_FAIL_IF(p->label[i] < 0 || p->label[i] >= classes, RT_E_INPUT,
                   "%s part, row %lld: label %d, wanted 0 to %lld", name, (long long)i, p->label[i],
                   (long long)classes - 1);
    for (int64_t i = 0; task == RT_TASK_REGRESSION && p->target && i < p->n; i++)
        RT_FAIL_IF(!isfinite(p->target[i]), RT_E_INPUT, "%s part, row %lld: target is not finite", name,
                   (long long)i);
    return RT_OK;
}

rt_status rt_dataset_from_arrays(rt_dataset **out, rt_task task, rt_shape row, int64_t classes,
                                 const rt_part *train, const rt_part *test) {
    *out = NULL;
    int64_t elems = 0;
    RT_FAIL_IF((row.rank != 1 && row.rank != 3) || !rt_shape_count(&row, &elems) || elems < 1, RT_E_USAGE,
               "rows must have shape (f) or (c, h, w)");
    RT_FAIL_IF(task == RT_TASK_CLASSIFICATION && (classes < 1 || classes > RT_CLASSES_MAX), RT_E_USAGE,
               "%lld classes, wanted 1 to %d", (long long)classes, RT_CLASSES_MAX);
    rt_dataset *d = NULL;
    rt_status st = RT_OK;
    RT_TRY(dataset_new(&d, "arrays"));
    d->task = task;
    d->ordered = true;
    d->row = row;
    d->classes = task == RT_TASK_CLASSIFICATION ? classes : 0;
    if (train)
        d->train = *train;
    if (test)
        d->test = *test;
    RT_TRY_GOTO(rt_part_check(&d->train, "train", task, elems, classes));
    RT_TRY_GOTO(rt_part_check(&d->test, "test", task, elems, classes));
    if (task == RT_TASK_CLASSIFICATION)
        st = rt_dataset_name_classes(d, NULL);
done:
    if (st != RT_OK)
        rt_dataset_destroy(&d);
    *out = d;
    return st;
}

void rt_dataset_destroy(rt_dataset **dp) {
    if (dp == NULL || *dp == NULL)
        return;
    rt_dataset *d = *dp;
    for (int i = 0; i < d->blocks; i++)
        rt_free(d->block[i]);
    rt_columns_destroy(&d->columns);
    rt_npy_deinit(&d->npy);
    rt_safetensors_destroy(&d->tensors);
    rt_arena_deinit(&d->arena);
    pthread_mutex_destroy(&d->lock);
    rt_free(d->spec);
    rt_free(d);
    *dp = NULL;
}

void rt_dataset_keep(rt_dataset *d, void *block) {
    RT_ASSERT(d->blocks < RT_DATASET_BLOCKS);
    if (block)
        d->block[d->blocks++] = block;
}

rt_status rt_dataset_points(rt_dataset *d, int64_t n, float **x, int32_t **label) {
    *x = NULL;
    *label = NULL;
    RT_TRY(rt_calloc(x, (size_t)n, 2 * sizeof **x));
    rt_dataset_keep(d, *x);
    RT_TRY(rt_calloc(label, (size_t)n, sizeof **label));
    rt_dataset_keep(d, *label);
    return RT_OK;
}

rt_status rt_dataset_name_classes(rt_dataset *d, const char *const *names) {
    RT_TRY(rt_arena_alloc(&d->arena, &d->class_name, (size_t)d->classes * sizeof(char *)));
    for (int64_t k = 0; k < d->classes; k++) {
        char number[24];
        snprintf(number, sizeof number, "%lld", (long long)k);
        RT_TRY(rt_arena_strdup(&d->arena, &d->class_name[k], names ? names[k] : number));
    }
    return RT_OK;
}

void rt_part_values(const rt_part *p, int64_t elems, int64_t i, int64_t first, int64_t n, float *dst) {
    if (p->stored)
        rt_numbers_to_f32(dst, p->stored->data + (p->at[i] * elems + first) * p->stored->itemsize,
                          p->stored->kind, p->stored->itemsize, n);
    else if (p->u8)
        rt_pixels_to_f32(dst, p->u8 + i * elems + first, n);
    else
        memcpy(dst, p->f32 + i * elems + first, (size_t)n * sizeof *dst);
}

const char *rt_dataset_spec(const rt_dataset *d) {
    return d->spec;
}
bool rt_dataset_drawn(const rt_dataset *d) {
    return d->drawn;
}
int64_t rt_dataset_valid_rows(const rt_dataset *d) {
    return d->valid_rows;
}
uint64_t rt_dataset_split_seed(const rt_dataset *d) {
    return d->split_seed;
}
bool rt_dataset_ordered(const rt_dataset *d) {
    return d->ordered;
}
rt_task rt_dataset_task(const rt_dataset *d) {
    return d->task;
}
rt_shape rt_dataset_row(const rt_dataset *d) {
    return d->row;
}
int64_t rt_dataset_classes(const rt_dataset *d) {
    return d->classes;
}
const char *rt_dataset_class_name(const rt_dataset *d, int64_t k) {
    return k >= 0 && k < d->classes ? d->class_name[k] : NULL;
}
const rt_part *rt_dataset_train(const rt_dataset *d) {
    return &d->train;
}
const rt_part *rt_dataset_test(const rt_dataset *d) {
    return d->test.n > 0 ? &d->test : &d->train;
}

/* ---- train and test out of one table ---- */

/* A copy of the rows of src whose mask is `wanted`, `size` bytes each. */
static rt_status rows_copy(rt_dataset *d, const void **out, const void *src, size_t size, const rt_part *all,
                           const uint8_t *is_test, uint8_t wanted, int64_t count) {
    *out = NULL;
    size_t bytes = 0;
    if (src == NULL || count == 0)
        return RT_OK;
    RT_FAIL_IF(!rt_size_mul((size_t)count, size, &bytes), RT_E_INPUT, "%s: too many rows", d->spec);
    uint8_t *to = NULL;
    RT_TRY(rt_alloc(&to, bytes));
    rt_dataset_keep(d, to);
    *out = to;
    for (int64_t i = 0; i < all->n; i++)
        if (is_test[i] == wanted) {
            memcpy(to, (const uint8_t *)src + (size_t)i * size, size);
            to += size;
        }
    return RT_OK;
}

/* Where the rows of one part are, of those that stay in their file. */
static rt_status rows_find(rt_dataset *d, int64_t **out, const rt_part *all, const uint8_t *is_test,
                           uint8_t wanted, int64_t count) {
    int64_t k = 0;
    RT_TRY(rt_calloc(out, (size_t)count + 1, sizeof **out));
    rt_dataset_keep(d, *out);
    for (int64_t i = 0; i < all->n; i++)
        if (is_test[i] == wanted)
            (*out)[k++] = i;
    return RT_OK;
}

static rt_status part_copy(rt_dataset *d, rt_part *out, const rt_part *all, const uint8_t *is_test,
                           uint8_t wanted) {
    size_t elems = (size_t)rt_shape_elems(&d->row);
    const void *u8 = NULL, *f32 = NULL, *label = NULL, *target = NULL;
    int64_t count = 0, *out_at = NULL;
    for (int64_t i = 0; i < all->n; i++)
        count += is_test[i] == wanted;
    if (all->stored)
        RT_TRY(rows_find(d, &out_at, all, is_test, wanted, count));
    RT_TRY(rows_copy(d, &u8, all->u8, elems, all, is_test, wanted, count));
    RT_TRY(rows_copy(d, &f32, all->f32, elems * sizeof(float), all, is_test, wanted, count));
    RT_TRY(rows_copy(d, &label, all->label, sizeof(int32_t), all, is_test, wanted, count));
    RT_TRY(rows_copy(d, &target, all->target, sizeof(float), all, is_test, wanted, count));
    *out = (rt_part){.n = count,
                     .u8 = u8,
                     .f32 = f32,
                     .stored = all->stored,
                     .at = out_at,
                     .label = label,
                     .target = target};
    return RT_OK;
}

rt_status rt_dataset_divide(rt_dataset *d, const rt_part *all, const uint8_t *is_test, bool test_only) {
    RT_TRY(part_copy(d, &d->test, all, is_test, 1));
    if (!test_only || d->test.n == 0)
        RT_TRY(part_copy(d, &d->train, all, is_test, 0));
    return RT_OK;
}

rt_status rt_find_packed(char **out, const char *dir, const char *stem) {
    static const char *const endings[] = {"", ".gz", ".xz"};
    *out = NULL;
    for (int64_t i = 0; i < RT_COUNT(endings); i++) {
        char name[256], *path = NULL;
        snprintf(name, sizeof name, "%s%s", stem, endings[i]);
        RT_TRY(rt_path_join(&path, dir, name));
        if (rt_file_exists(path)) {
            *out = path;
            return RT_OK;
        }
        rt_free(path);
    }
    return RT_OK;
}

/* ---- fingerprint ---- */

static void hash_i64(rt_sha256 *h, int64_t v) {
    uint8_t bytes[8];
    for (int i = 0; i < 8; i++)
        bytes[i] = (uint8_t)((uint64_t)v >> (8 * i));
    rt_sha256_update(h, bytes, sizeof bytes);
}

static void hash_stored(rt_sha256 *h, const rt_part *p, int64_t elems, int64_t i) {
    float piece[PIECE];
    for (int64_t k = 0; k < elems; k += PIECE) {
        const int64_t some = RT_MIN(elems - k, (int64_t)PIECE);
        rt_part_values(p, elems, i, k, some, piece);
        rt_sha256_update(h, piece, (size_t)some * sizeof *piece);
    }
}

static void hash_part(rt_sha256 *h, const rt_part *p, size_t elems) {
    size_t n = (size_t)p->n;
    hash_i64(h, p->n);
    if (n == 0)
        return;
    if (p->u8)
        rt_sha256_update(h, p->u8, n * elems);
    if (p->f32)
        rt_sha256_update(h, p->f32, n * elems * sizeof(float));
    for (size_t i = 0; p->stored && i < n; i++)
        hash_stored(h, p, (int64_t)elems, (int64_t)i);
    if (p->label)
        rt_sha256_update(h, p->label, n * sizeof(int32_t));
    if (p->target)
        rt_sha256_update(h, p->target, n * sizeof(float));
}

const char *rt_dataset_hash(const rt_dataset *cd) {
    rt_dataset *d = (rt_dataset *)(uintptr_t)cd; /* the memo is not part of the value */
    pthread_mutex_lock(&d->lock);
    if (d->hash[0] == 0) {
        rt_sha256 h;
        uint8_t digest[32];
        size_t elems = (size_t)rt_shape_elems(&d->row);
        rt_sha256_init(&h);
        hash_i64(&h, d->task);
        hash_i64(&h, d->classes);
        hash_i64(&h, d->row.rank);
        for (int k = 0; k < d->row.rank; k++)
            hash_i64(&h, d->row.d[k]);
        hash_part(&h, &d->train, elems);
        hash_part(&h, &d->test, elems);
        rt_sha256_final(&h, digest);
        rt_sha256_hex(digest, d->hash);
    }
    pthread_mutex_unlock(&d->lock);
    return d->hash;
}
