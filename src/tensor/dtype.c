/* dtype.c - element types. One table. */
#include "tensor/tensor.h"

static const struct {
    size_t size;
    const char *name;
} dtypes[RT_DTYPE_COUNT] = {
    [RT_DTYPE_F32] = {4, "f32"},
    [RT_DTYPE_F64] = {8, "f64"},
    [RT_DTYPE_I32] = {4, "i32"},
    [RT_DTYPE_U8] = {1, "u8"},
};

static bool known(rt_dtype t) {
    return (unsigned)t < (unsigned)RT_DTYPE_COUNT;
}

size_t rt_dtype_size(rt_dtype t) {
    return known(t) ? dtypes[t].size : 0;
}

const char *rt_dtype_name(rt_dtype t) {
    return known(t) ? dtypes[t].name : "?";
}
