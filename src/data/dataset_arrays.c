/*
 * dataset_arrays.c - data from arrays: X, the rows, and Y, one label or target per row, if there is one. They are two
 * NumPy files, or two tensors of a safetensors file.
 *
 * X is (n, f), (n, h, w) or (n, c, h, w) of any numbers that files store (io/numbers.c); u1 pictures stay bytes and
 * count as 0..255 like any image, other numbers are used as they are. Pictures whose colours stand last (n, h, w, 3)
 * are refused, unless a model was trained on that shape. Y is (n) or (n, 1): whole numbers are classes, floating point
 * is targets; task= overrides. NaN and infinity are refused wherever they stand. Test part: rt_holdout_mask; without Y
 * all rows are test rows.
 *
 * Tables above MAP_BYTES, embeddings mostly, stay in their file (rt_part.stored) and may be larger than memory.
 */
#include "data/data_int.h"

#include "base/alloc.h"
#include "base/log.h"
#include "base/size.h"
#include "base/stop.h"
#include "io/io.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MAP_BYTES = 16 << 20 };

typedef struct array {
    char name[300]; /* for messages */
    const uint8_t *data;
    char kind; /* see io/numbers.c */
    int itemsize;
    rt_shape shape;
} array;

static rt_status check_row(const float *x, int64_t n, const char *name, int64_t row) {
    for (int64_t k = 0; k < n; k++)
        RT_FAIL_IF(!isfinite(x[k]), RT_E_INPUT,
                   "%s: row %lld, value %lld is not a finite single-precision number", name, (long long)row,
                   (long long)k);
    return RT_OK;
}

/* All numbers as floats, checked. */
static rt_status array_floats(float **out, const array *a) {
    const int64_t n = a->shape.d[0], row = rt_shape_elems(&a->shape) / RT_MAX(n, 1);
    RT_TRY(rt_calloc(out, (size_t)(n * row) + 1, sizeof **out));
    for (int64_t i = 0; i < n; i++) {
        float *to = *out + i * row;
        RT_TRY(rt_stop_check("reading", a->name));
        rt_numbers_to_f32(to, a->data + i * row * a->itemsize, a->kind, a->itemsize, row);
        RT_TRY(check_row(to, row, a->name, i));
    }
    return RT_OK;
}

/* Looks at all numbers of a table that stays where it is. */
static rt_status check_stored(const array *a) {
    enum { PIECE = 1024 };
    const int64_t n = a->shape.d[0], row = a->shape.d[1];
    float piece[PIECE];
    for (int64_t i = 0; i < n; i++) {
        RT_TRY(rt_stop_check("reading", a->name));
        for (int64_t k = 0; k < row; k += PIECE) {
            const int64_t some = RT_MIN(row - k, (int64_t)PIECE);
            rt_numbers_to_f32(piece, a->data + (i * row + k) * a->itemsize, a->kind, a->itemsize, some);
            RT_TRY(check_row(piece, some, a->name, i));
        }
    }
    return RT_OK;
}

static rt_status array_labels(int32_t **out, int64_t *classes, const array *a) {
    int64_t n = a->shape.d[0], top = -1, limit = *classes > 0 ? *classes : RT_CLASSES_MAX;
    RT_TRY(rt_calloc(out, (size_t)n + 1, sizeof **out));
    for (int64_t i = 0; i < n; i++) {
        double v = rt_number_get(a->data + i * a->itemsize, a->kind, a->itemsize);
        RT_FAIL_IF(!(v >= 0 && v < (double)limit) || v != floor(v), RT_E_INPUT,
                   "%s: label %g of row %lld, wanted a whole number from 0 to %lld", a->name, v, (long long)i,
                   (long long)limit - 1);
        (*out)[i] = (int32_t)v;
        top = RT_MAX(top, (int64_t)v);
    }
    if (*classes == 0)
        *classes = top + 1;
    return RT_OK;
}

/* (n, h, w, 1) and (n, h, w, 3) are what other programs call pictures; here h would be taken for colours. */
static rt_status check_order(const rt_dataset *d, const array *x, const rt_data_like *like) {
    const int64_t *n = x->shape.d;
    const bool last = (n[3] == 1 || n[3] == 3) && n[1] > n[3] && n[2] > n[3];
    RT_FAIL_IF(last && !(like && rt_shape_equal(&like->row, &d->row)), RT_E_INPUT,
               "%s: shape (%lld,%lld,%lld,%lld) looks like pictures whose colours stand last, wanted "
               "(n,c,h,w): in NumPy "
               "X.transpose(0, 3, 1, 2)",
               x->name, (long long)n[0], (long long)n[1], (long long)n[2], (long long)n[3]);
    return RT_OK;
}

static rt_status row_shape(rt_dataset *d, const array *x, const rt_data_like *like) {
    const int64_t *n = x->shape.d;
    switch (x->shape.rank) {
    case 2:
        d->row = rt_shape1(n[1]);
        break;
    case 3:
        d->row = rt_shape3(1, n[1], n[2]);
        break;
    case 4:
        d->row = rt_shape3(n[1], n[2], n[3]);
        break;
    default:
        RT_FAIL(RT_E_INPUT, "%s: array of %d dimensions, wanted (n,f), (n,h,w) or (n,c,h,w)", x->name,
                x->shape.rank);
    }
    RT_FAIL_IF(rt_shape_elems(&x->shape) == 0, RT_E_INPUT, "%s: the array is empty", x->name);
    return x->shape.rank == 4 ? check_order(d, x, like) : RT_OK;
}

/* One label or target per row. */
static rt_status read_truth(rt_dataset *d, const array *y, const array *x, const rt_spec *s,
                            const rt_data_options *o, int32_t **label, float **target) {
    bool given = false;
    RT_FAIL_IF(y->shape.rank < 1 || y->shape.rank > 2 || (y->shape.rank == 2 && y->shape.d[1] != 1),
               RT_E_INPUT, "%s: wanted one value per row, shape (n) or (n,1)", y->name);
    RT_FAIL_IF(x->shape.d[0] != y->shape.d[0], RT_E_INPUT, "%s has %lld rows, but %s has %lld", x->name,
               (long long)x->shape.d[0], y->name, (long long)y->shape.d[0]);
    d->task = o->like                                                  ? o->like->task
              : y->kind == 'f' || (y->kind == 'b' && y->itemsize == 2) ? RT_TASK_REGRESSION
                                                                       : RT_TASK_CLASSIFICATION;
    RT_TRY(rt_spec_get_task(s, &d->task, &given));
    if (d->task == RT_TASK_CLASSIFICATION) {
        if (d->classes == 0 && o->like && o->like->task == d->task)
            d->classes = o->like->classes;
        return array_labels(label, &d->classes, y);
    }
    d->classes = 0;
    return array_floats(target, y);
}

/* The data set of X and Y (NULL: no labels). *kept: X is still in use. */
static rt_status take_arrays(rt_dataset *d, const array *x, const array *y, const rt_spec *s,
                             rt_data_options o, bool *kept) {
    float *features = NULL, *target = NULL;
    int32_t *label = NULL;
    uint8_t *is_test = NULL;
    const int64_t n = x->shape.d[0];
    rt_part all = {.n = n};
    rt_status st = RT_OK;
    RT_TRY_GOTO(rt_spec_get_i64(s, "classes", 1, RT_CLASSES_MAX, &d->classes));
    RT_TRY_GOTO(row_shape(d, x, o.like));
    if (y)
        RT_TRY_GOTO(read_truth(d, y, x, s, &o, &label, &target));
    if (x->kind == 'u' && x->itemsize == 1 && d->row.rank == 3) {
        all.u8 = x->data;
    } else if (d->row.rank == 1 && rt_shape_elems(&x->shape) * x->itemsize > MAP_BYTES) {
        rt_log(RT_LOG_INFO, "%s: %lld rows of %lld numbers stay in the file", x->name, (long long)n,
               (long long)d->row.d[0]);
        RT_TRY_GOTO(check_stored(x));
        d->stored = (rt_stored){.data = x->data, .kind = x->kind, .itemsize = x->itemsize};
        all.stored = &d->stored;
        *kept = true;
    } else {
        RT_TRY_GOTO(array_floats(&features, x));
        all.f32 = features;
    }
    all.label = label;
    all.target = target;
    o.whole = o.whole || !y;
    RT_TRY_GOTO(rt_holdout_mask(d, &is_test, s, &o, n, label));
    st = rt_dataset_divide(d, &all, is_test, o.test_only);
done:
    rt_free(is_test);
    rt_free(features);
    rt_free(target);
    rt_free(label);
    return st;
}

/* ---- NumPy ---- */

static array of_npy(const rt_npy *a, const char *path) {
    array out = {.data = a->data, .kind = a->kind, .itemsize = a->itemsize, .shape = a->shape};
    snprintf(out.name, sizeof out.name, "%s", path);
    return out;
}

rt_status rt_load_npy(rt_dataset *d, const rt_spec *s, rt_data_options o) {
    static const char *const keys[] = {"task", "classes", "test", "seed"};
    const bool alone = s->paths == 1 || o.unlabelled;
    rt_npy x = {.kind = 0}, y = {.kind = 0};
    array ax, ay;
    bool kept = false;
    rt_status st = RT_OK;
    RT_TRY(rt_spec_check(s, 1, 2, keys, RT_COUNT(keys)));
    RT_TRY_GOTO(rt_npy_map(&x, s->path[0], rt_data_file_max));
    ax = of_npy(&x, s->path[0]);
    if (!alone)
        RT_TRY_GOTO(rt_npy_map(&y, s->path[1], rt_data_file_max));
    ay = of_npy(&y, alone ? "" : s->path[1]);
    st = take_arrays(d, &ax, alone ? NULL : &ay, s, o, &kept);
done:
    if (kept)
        d->npy = x;
    else
        rt_npy_deinit(&x);
    rt_npy_deinit(&y);
    return st;
}

/* ---- safetensors ---- */

static rt_status of_tensor(array *out, const rt_st_tensor *t, const char *path) {
    static const struct {
        const char *dtype;
        char kind;
        int size;
    } types[] = {{"F32", 'f', 4}, {"F16", 'f', 2}, {"BF16", 'b', 2}, {"F64", 'f', 8}, {"U8", 'u', 1},
                 {"U16", 'u', 2}, {"U32", 'u', 4}, {"U64", 'u', 8},  {"I8", 'i', 1},  {"I16", 'i', 2},
                 {"I32", 'i', 4}, {"I64", 'i', 8}, {"BOOL", 'b', 1}};
    *out = (array){.data = t->data, .shape = t->shape};
    snprintf(out->name, sizeof out->name, "%.200s, tensor %.80s", path, t->name);
    for (int64_t i = 0; i < RT_COUNT(types); i++)
        if (strcmp(types[i].dtype, t->dtype) == 0) {
            out->kind = types[i].kind;
            out->itemsize = types[i].size;
        }
    RT_FAIL_IF(out->kind == 0, RT_E_INPUT,
               "%s: type %s, wanted F16, BF16, F32, F64, U8 to U64, I8 to I64 or BOOL", out->name, t->dtype);
    return RT_OK;
}

/* The tensor named by an option, else the first of the usual names; NULL if there is none of these. */
static rt_status find_tensor(const rt_st_tensor **out, const rt_safetensors *f, const rt_spec *s,
                             const char *key, const char *const *usual) {
    const char *name = rt_spec_get(s, key);
    *out = name ? rt_safetensors_find(f, name) : NULL;
    RT_FAIL_IF(name && !*out, RT_E_USAGE, "data '%s': %s=%s, but the file has no such tensor", s->whole, key,
               name);
    for (; !name && *usual && !*out; usual++)
        *out = rt_safetensors_find(f, *usual);
    return RT_OK;
}

rt_status rt_load_safetensors(rt_dataset *d, const rt_spec *s, rt_data_options o) {
    static const char *const keys[] = {"x", "y", "task", "classes", "test", "seed"};
    static const char *const xs[] = {"x", "X", "embeddings", "features", NULL};
    static const char *const ys[] = {"y", "Y", "labels", "label", "targets", "target", NULL};
    rt_safetensors *f = NULL;
    const rt_st_tensor *x = NULL, *y = NULL;
    array ax, ay;
    bool kept = false;
    rt_status st = RT_OK;
    RT_TRY(rt_spec_check(s, 1, 1, keys, RT_COUNT(keys)));
    RT_TRY_GOTO(rt_safetensors_map(&f, s->path[0]));
    RT_TRY_GOTO(find_tensor(&x, f, s, "x", xs));
    if (!x && rt_safetensors_count(f) == 1)
        x = rt_safetensors_get(f, 0);
    if (!x)
        RT_FAIL_GOTO(RT_E_USAGE,
                     "data '%s': which tensor has the rows? Say x=NAME (none is called x, embeddings or "
                     "features)",
                     s->whole);
    if (!o.unlabelled)
        RT_TRY_GOTO(find_tensor(&y, f, s, "y", ys));
    RT_TRY_GOTO(of_tensor(&ax, x, s->path[0]));
    if (y)
        RT_TRY_GOTO(of_tensor(&ay, y, s->path[0]));
    st = take_arrays(d, &ax, y ? &ay : NULL, s, o, &kept);
done:
    if (kept)
        d->tensors = f;
    else
        rt_safetensors_destroy(&f);
    return st;
}
