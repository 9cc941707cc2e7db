/*
 * dataset_npy.c - data from two NumPy arrays: X, the rows, and Y, one label or target per row.
 *
 * X is (n, f), (n, h, w) or (n, c, h, w) in u1, f4 or f8; u1 pictures stay bytes and count as 0..255 like any
 * image, other numbers are used as they are. Y is (n) or (n, 1): whole numbers are classes, f4 and f8 are
 * targets; task= overrides. NaN and infinity are refused wherever they stand. Test part: rt_holdout_mask.
 */
#include "data/data_int.h"

#include "base/alloc.h"
#include "base/size.h"
#include "io/io.h"

#include <math.h>
#include <string.h>

/* Element i of an array as double. */
static double npy_value(const rt_npy *a, int64_t i) {
    const uint8_t *p = a->data + (size_t)i * (size_t)a->itemsize;
    if (a->kind == 'u')
        return *p;
    if (a->itemsize == 4) {
        float f;
        int32_t v;
        memcpy(&f, p, 4);
        memcpy(&v, p, 4);
        return a->kind == 'f' ? (double)f : (double)v;
    }
    double f;
    int64_t v;
    memcpy(&f, p, 8);
    memcpy(&v, p, 8);
    return a->kind == 'f' ? f : (double)v;
}

static rt_status npy_floats(float **out, const rt_npy *a, const char *name) {
    int64_t n = rt_shape_elems(&a->shape);
    RT_TRY(rt_calloc(out, (size_t)n, sizeof(float)));
    for (int64_t i = 0; i < n; i++) {
        (*out)[i] = (float)npy_value(a, i);
        RT_FAIL_IF(!isfinite((*out)[i]), RT_E_INPUT,
                   "%s: row %lld, value %lld is not a finite single-precision number", name,
                   (long long)(i / (n / a->shape.d[0])), (long long)(i % (n / a->shape.d[0])));
    }
    return RT_OK;
}

static rt_status npy_labels(int32_t **out, int64_t *classes, const rt_npy *a, const char *name) {
    int64_t n = a->shape.d[0], top = -1, limit = *classes > 0 ? *classes : RT_CLASSES_MAX;
    RT_TRY(rt_calloc(out, (size_t)n, sizeof **out));
    for (int64_t i = 0; i < n; i++) {
        double v = npy_value(a, i);
        RT_FAIL_IF(!(v >= 0 && v < (double)limit) || v != floor(v), RT_E_INPUT,
                   "%s: label %g of row %lld, wanted a whole number from 0 to %lld", name, v, (long long)i,
                   (long long)limit - 1);
        (*out)[i] = (int32_t)v;
        top = RT_MAX(top, (int64_t)v);
    }
    if (*classes == 0)
        *classes = top + 1;
    return RT_OK;
}

static rt_status npy_row_shape(rt_dataset *d, const rt_npy *x, const char *name) {
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
        RT_FAIL(RT_E_INPUT, "%s: array of %d dimensions, wanted (n,f), (n,h,w) or (n,c,h,w)", name,
                x->shape.rank);
    }
    RT_FAIL_IF(rt_shape_elems(&x->shape) == 0, RT_E_INPUT, "%s: the array is empty", name);
    RT_FAIL_IF(x->kind == 'i', RT_E_INPUT, "%s: type i%d, wanted u1, f4 or f8", name, x->itemsize);
    return RT_OK;
}

rt_status rt_load_npy(rt_dataset *d, const rt_spec *s, rt_data_options o) {
    static const char *const keys[] = {"task", "classes", "test", "seed"};
    RT_TRY(rt_spec_check(s, 2, 2, keys, RT_COUNT(keys)));
    rt_npy x = {.kind = 0}, y = {.kind = 0};
    float *features = NULL, *target = NULL;
    int32_t *label = NULL;
    uint8_t *is_test = NULL;
    bool given = false;
    rt_status st = RT_OK;
    RT_TRY(rt_spec_get_i64(s, "classes", 1, RT_CLASSES_MAX, &d->classes));
    RT_TRY_GOTO(rt_npy_read(&x, s->path[0], rt_data_file_max));
    RT_TRY_GOTO(rt_npy_read(&y, s->path[1], rt_data_file_max));
    RT_TRY_GOTO(npy_row_shape(d, &x, s->path[0]));
    if (y.shape.rank < 1 || y.shape.rank > 2 || (y.shape.rank == 2 && y.shape.d[1] != 1))
        RT_FAIL_GOTO(RT_E_INPUT, "%s: wanted one value per row, shape (n) or (n,1)", s->path[1]);
    if (x.shape.d[0] != y.shape.d[0])
        RT_FAIL_GOTO(RT_E_INPUT, "%s has %lld rows, but %s has %lld", s->path[0], (long long)x.shape.d[0],
                     s->path[1], (long long)y.shape.d[0]);
    d->task = y.kind == 'f' ? RT_TASK_REGRESSION : RT_TASK_CLASSIFICATION;
    RT_TRY_GOTO(rt_spec_get_task(s, &d->task, &given));
    if (d->task == RT_TASK_CLASSIFICATION)
        RT_TRY_GOTO(npy_labels(&label, &d->classes, &y, s->path[1]));
    else
        RT_TRY_GOTO(npy_floats(&target, &y, s->path[1]));
    if (d->task == RT_TASK_REGRESSION)
        d->classes = 0;
    bool image = x.kind == 'u' && d->row.rank == 3;
    if (!image)
        RT_TRY_GOTO(npy_floats(&features, &x, s->path[0]));
    RT_TRY_GOTO(rt_holdout_mask(&is_test, s, x.shape.d[0]));
    rt_part all = {
        .n = x.shape.d[0], .u8 = image ? x.data : NULL, .f32 = features, .label = label, .target = target};
    st = rt_dataset_divide(d, &all, is_test, o.test_only);
done:
    rt_free(is_test);
    rt_free(features);
    rt_free(target);
    rt_free(label);
    rt_npy_deinit(&x);
    rt_npy_deinit(&y);
    return st;
}
