/*
 * io.h - files that carry tensors: compressed bytes, JSON text, safetensors, npy.
 *
 * Readers validate everything before they allocate anything: lengths are compared with the bytes that are
 * there, products are checked, and a stated limit bounds memory. A refused file costs one error message
 * (RT_E_INPUT) that names file, place, found and wanted.
 */
#ifndef RT_IO_IO_H
#define RT_IO_IO_H

#include "tensor/tensor.h"

/* ---- a whole file, unpacked if it is gzip or xz (by its magic bytes); rt_alloc'ed, at most max_bytes
 * ---- */
rt_status rt_bytes_read(const char *path, size_t max_bytes, uint8_t **data, size_t *n) RT_MUST_CHECK;
/* How many bytes a file must have that begins with these (64 KiB, or all of it): what its header promises. A packed
 * file is refused as soon as it wants more. */
typedef rt_status (*rt_bytes_header)(const uint8_t *head, size_t n, const char *name, size_t *total);
rt_status rt_bytes_read_as(const char *path, size_t max_bytes, rt_bytes_header header, uint8_t **data,
                           size_t *n) RT_MUST_CHECK;

/* ---- JSON reading (strict: duplicate keys, NaN, trailing text are refused) ---- */
typedef struct rt_jdoc rt_jdoc;
typedef const void *rt_jval; /* borrowed from its document; NULL when absent */
rt_status rt_jdoc_parse(rt_jdoc **out, const char *text, size_t n, const char *name) RT_MUST_CHECK;
rt_status rt_jdoc_read(rt_jdoc **out, const char *path) RT_MUST_CHECK; /* a file of at most 64 MiB */
void rt_jdoc_destroy(rt_jdoc **d);
rt_jval rt_jdoc_root(const rt_jdoc *d);
rt_jval rt_jval_get(rt_jval object, const char *key); /* NULL if not an object or absent */
rt_jval rt_jval_at(rt_jval array, int64_t i);
int64_t rt_jval_len(rt_jval v); /* of an array or object, else -1 */
const char *rt_jval_key(rt_jval object, int64_t i);
bool rt_jval_is_array(rt_jval v);
bool rt_jval_is_object(rt_jval v);
bool rt_jval_str(rt_jval v, const char **out);
bool rt_jval_i64(rt_jval v, int64_t *out);
bool rt_jval_f64(rt_jval v, double *out); /* integers too */
bool rt_jval_bool(rt_jval v, bool *out);
bool rt_jval_is_null(rt_jval v); /* or absent */
/* The first place of a path (json_path.c) that is not null, or else the first null; NULL if there is none. */
rt_jval rt_jval_find(rt_jval v, const char *path);
/* Every place of a path, until a visit returns true, which is then the result. star: the key that the last '*' stood
 * for, or NULL. */
typedef bool (*rt_jval_visit)(void *user, rt_jval v, const char *star);
bool rt_jval_walk(rt_jval v, const char *path, rt_jval_visit visit, void *user);
/* What a user means by a path in metrics.json (docs/formats/metrics.md): from `evaluation` on, where "sets" and "test"
 * may be left out, or with a leading '/' from the top. Either may be NULL. */
rt_jval rt_metrics_find(rt_jval top, rt_jval evaluation, const char *path);
/* The interval of the number there: set/interval/nll, or set/interval/auroc_entropy of set/auroc/entropy. */
bool rt_metrics_interval(rt_jval top, rt_jval evaluation, const char *path, double *lo, double *hi);

/* ---- safetensors ---- */
typedef struct rt_st_tensor {
    const char *name;
    const char *dtype; /* "F32", "F64", "F16", "BF16", "I64", "I32", "U8", ... */
    rt_shape shape;
    const void *data; /* little-endian bytes as stored */
    size_t bytes;
} rt_st_tensor;
typedef struct rt_st_meta {
    const char *key, *value;
} rt_st_meta;
typedef struct rt_safetensors rt_safetensors;
rt_status rt_safetensors_read(rt_safetensors **out, const char *path) RT_MUST_CHECK;
rt_status rt_safetensors_map(rt_safetensors **out,
                             const char *path) RT_MUST_CHECK; /* tensors stay in the file */
void rt_safetensors_destroy(rt_safetensors **s);
int64_t rt_safetensors_count(const rt_safetensors *s);
const rt_st_tensor *rt_safetensors_get(const rt_safetensors *s, int64_t i);
const rt_st_tensor *rt_safetensors_find(const rt_safetensors *s, const char *name); /* NULL if absent */
int64_t rt_safetensors_meta_count(const rt_safetensors *s);
const rt_st_meta *rt_safetensors_meta_get(const rt_safetensors *s, int64_t i);
const char *rt_safetensors_meta(const rt_safetensors *s, const char *key); /* NULL if absent */
/* Copies a floating tensor (F64, F32, F16, BF16) as f32; fails naming file and tensor on another type or
 * count. */
rt_status rt_safetensors_to_f32(const rt_safetensors *s, const rt_st_tensor *t, float *dst,
                                int64_t count) RT_MUST_CHECK;
/* Atomic and durable; tensors in the given order; header padded with spaces to a multiple of 8. */
rt_status rt_safetensors_write(const char *path, const rt_st_tensor *t, int64_t n, const rt_st_meta *meta,
                               int64_t nmeta) RT_MUST_CHECK;

/* ---- numbers as stored (numbers.c): kind 'f' of 2, 4, 8 bytes, 'b' bfloat16 or of 1 byte bool, 'u', 'i' of 1 to 8 ---- */
double rt_number_get(const uint8_t *p, char kind, int size);
void rt_numbers_to_f32(float *dst, const uint8_t *src, char kind, int size, int64_t n);

/* ---- npy (versions 1 to 3; f2 f4 f8 u1 u2 u4 u8 i1 i2 i4 i8 b1, either byte order; Fortran order is converted to C order)
 * ---- */
typedef struct rt_npy {
    char kind;    /* 'f', 'u', 'i'; 'b': bool */
    int itemsize; /* bytes */
    rt_shape shape;
    const uint8_t *data; /* C order, little-endian */
    const uint8_t *map;  /* the file, if data is in it */
    size_t map_bytes;
} rt_npy;
rt_status rt_npy_read(rt_npy *out, const char *path, size_t max_bytes) RT_MUST_CHECK;
/* The same, but the numbers stay in the file where they can: it is not packed, little-endian and in C order. */
rt_status rt_npy_map(rt_npy *out, const char *path, size_t max_bytes) RT_MUST_CHECK;
void rt_npy_deinit(rt_npy *a);
rt_status rt_npy_write(const char *path, rt_dtype t, const rt_shape *s,
                       const void *data) RT_MUST_CHECK; /* atomic */

#endif
