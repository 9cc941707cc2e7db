/*
 * safetensors.c - named tensors in one file, as PyTorch, JAX and Hugging Face read and write them.
 *
 *     u64 little-endian N | N bytes of JSON | tensor bytes
 *     {"__metadata__": {"key": "text", ...},
 *      "name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ...}
 *
 * Offsets count from the end of the header. Every byte behind the header belongs to exactly one tensor:
 * holes, overlaps and trailing bytes are refused, because a file with hidden parts, or a small file that
 * claims huge tensors, is an attack. Tensors without elements may share an offset with a neighbour. Types of
 * less than a byte are refused, and so is a rank above RT_MAX_RANK. Products are checked: [4194305, 4194305,
 * 211106198978564] must not wrap to 4 elements.
 *
 * The file is read, not mapped: saving over a mapped file would destroy it, and a short file would fault
 * later.
 */
#include "io/io_int.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/json.h"
#include "base/map.h"
#include "base/reader.h"
#include "base/size.h"

#include <stdlib.h>
#include <string.h>

static const size_t st_file_max = (size_t)64 << 30;

struct rt_safetensors {
    char *name;
    const uint8_t *file;
    size_t mapped; /* bytes of the file that is memory; 0: it was read */
    rt_jdoc *doc;  /* owns all names */
    rt_st_tensor *tensor;
    rt_st_meta *meta;
    int64_t count, meta_count;
    rt_map index;
};

static const struct {
    const char *name;
    size_t size;
} st_types[] = {{"F64", 8}, {"F32", 4}, {"F16", 2},  {"BF16", 2},    {"I64", 8},
                {"I32", 4}, {"I16", 2}, {"I8", 1},   {"U64", 8},     {"U32", 4},
                {"U16", 2}, {"U8", 1},  {"BOOL", 1}, {"F8_E4M3", 1}, {"F8_E5M2", 1}};

static size_t st_type_size(const char *dtype) {
    for (int64_t i = 0; i < RT_COUNT(st_types); i++)
        if (strcmp(st_types[i].name, dtype) == 0)
            return st_types[i].size;
    return 0;
}

static rt_status st_shape(rt_shape *out, rt_jval list, const char *file, const char *name) {
    int64_t rank = rt_jval_len(list);
    RT_FAIL_IF(!rt_jval_is_array(list), RT_E_INPUT, "%s: tensor %.200s: shape is not a list", file, name);
    RT_FAIL_IF(rank > RT_MAX_RANK, RT_E_INPUT, "%s: tensor %.200s has %lld dimensions, wanted at most %d",
               file, name, (long long)rank, RT_MAX_RANK);
    *out = rt_shape0();
    out->rank = (int)rank;
    for (int64_t i = 0; i < rank; i++)
        RT_FAIL_IF(!rt_jval_i64(rt_jval_at(list, i), &out->d[i]) || out->d[i] < 0, RT_E_INPUT,
                   "%s: tensor %.200s: dimension %lld is not a whole number >= 0", file, name, (long long)i);
    return RT_OK;
}

static rt_status st_entry(rt_st_tensor *t, rt_jval v, const char *name, const uint8_t *data, size_t data_n,
                          const char *file) {
    rt_jval offsets = rt_jval_get(v, "data_offsets");
    *t = (rt_st_tensor){.name = name};
    RT_FAIL_IF(!rt_jval_str(rt_jval_get(v, "dtype"), &t->dtype) || rt_jval_get(v, "shape") == NULL ||
                   offsets == NULL || rt_jval_len(v) != 3,
               RT_E_INPUT, "%s: tensor %.200s: wanted exactly dtype, shape and data_offsets", file, name);
    size_t size = st_type_size(t->dtype), bytes = 0;
    RT_FAIL_IF(size == 0, RT_E_INPUT, "%s: tensor %.200s has unknown type %.40s", file, name, t->dtype);
    RT_TRY(st_shape(&t->shape, rt_jval_get(v, "shape"), file, name));
    int64_t elems = 0, begin = 0, end = 0;
    RT_FAIL_IF(!rt_shape_count(&t->shape, &elems) || !rt_size_mul((size_t)elems, size, &bytes), RT_E_INPUT,
               "%s: tensor %.200s: the size of its shape overflows", file, name);
    RT_FAIL_IF(!rt_jval_is_array(offsets) || rt_jval_len(offsets) != 2 ||
                   !rt_jval_i64(rt_jval_at(offsets, 0), &begin) || !rt_jval_i64(rt_jval_at(offsets, 1), &end),
               RT_E_INPUT, "%s: tensor %.200s: data_offsets is not a pair of whole numbers", file, name);
    RT_FAIL_IF(begin < 0 || end < begin || (uint64_t)end > data_n, RT_E_INPUT,
               "%s: tensor %.200s: offsets [%lld, %lld] outside the %zu bytes of data", file, name,
               (long long)begin, (long long)end, data_n);
    RT_FAIL_IF((size_t)(end - begin) != bytes, RT_E_INPUT,
               "%s: tensor %.200s has %lld bytes, its shape wants %zu", file, name, (long long)(end - begin),
               bytes);
    t->data = data + begin;
    t->bytes = bytes;
    return RT_OK;
}

static int st_by_place(const void *a, const void *b) {
    const rt_st_tensor *x = *(const rt_st_tensor *const *)a, *y = *(const rt_st_tensor *const *)b;
    uintptr_t xa = (uintptr_t)x->data, ya = (uintptr_t)y->data;
    if (xa != ya)
        return xa < ya ? -1 : 1;
    return (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

/* Every byte of the data belongs to exactly one tensor. */
static rt_status st_check_cover(const rt_safetensors *s, const uint8_t *data, size_t data_n) {
    const rt_st_tensor **order = NULL;
    RT_TRY(rt_calloc(&order, (size_t)s->count + 1, sizeof *order));
    for (int64_t i = 0; i < s->count; i++)
        order[i] = &s->tensor[i];
    qsort(order, (size_t)s->count, sizeof *order, st_by_place);
    rt_status st = RT_OK;
    size_t at = 0;
    for (int64_t i = 0; i < s->count; i++) {
        size_t begin = (size_t)((const uint8_t *)order[i]->data - data);
        if (begin != at)
            RT_FAIL_GOTO(RT_E_INPUT, "%s: tensor %.200s begins at byte %zu of the data, wanted %zu (%s)",
                         s->name, order[i]->name, begin, at,
                         begin < at ? "tensors overlap" : "there is a hole");
        at += order[i]->bytes;
    }
    if (at != data_n)
        RT_FAIL_GOTO(RT_E_INPUT, "%s: %zu bytes of data, but the tensors end at byte %zu", s->name, data_n,
                     at);
done:
    rt_free(order);
    return st;
}

static rt_status st_metadata(rt_safetensors *s, rt_jval v) {
    int64_t n = rt_jval_len(v);
    RT_FAIL_IF(!rt_jval_is_object(v), RT_E_INPUT, "%s: __metadata__ is not an object", s->name);
    RT_TRY(rt_calloc(&s->meta, (size_t)n + 1, sizeof *s->meta));
    for (int64_t i = 0; i < n; i++) {
        s->meta[i].key = rt_jval_key(v, i);
        RT_FAIL_IF(!rt_jval_str(rt_jval_at(v, i), &s->meta[i].value), RT_E_INPUT,
                   "%s: __metadata__ value of %.200s is not a text", s->name, s->meta[i].key);
    }
    s->meta_count = n;
    return RT_OK;
}

static rt_status st_parse(rt_safetensors *s, size_t n) {
    rt_reader r;
    rt_reader_init(&r, s->file, n, s->name);
    uint64_t header_n = 0;
    const uint8_t *header = NULL;
    RT_FAIL_IF(n < 8, RT_E_INPUT,
               "%s: not a safetensors file: %zu bytes, wanted 8 for the length of its header", s->name, n);
    RT_TRY(rt_reader_u64le(&r, &header_n));
    RT_FAIL_IF(
        header_n > RT_ST_HEADER_MAX || header_n > rt_reader_left(&r), RT_E_INPUT,
        "%s: cut short, or not a safetensors file: header of %llu bytes, but %zu are left and %d allowed",
        s->name, (unsigned long long)header_n, rt_reader_left(&r), RT_ST_HEADER_MAX);
    RT_TRY(rt_reader_bytes(&r, &header, (size_t)header_n));
    RT_FAIL_IF(header_n < 2 || header[0] != '{', RT_E_INPUT,
               "%s: not a safetensors file: its header does not begin with '{'", s->name);
    RT_TRY(rt_jdoc_parse(&s->doc, (const char *)header, (size_t)header_n, s->name));
    rt_jval root = rt_jdoc_root(s->doc);
    int64_t members = rt_jval_len(root);
    const uint8_t *data = s->file + r.at;
    size_t data_n = rt_reader_left(&r);
    RT_TRY(rt_calloc(&s->tensor, (size_t)members + 1, sizeof *s->tensor));
    for (int64_t i = 0; i < members; i++) {
        const char *name = rt_jval_key(root, i);
        if (strcmp(name, "__metadata__") == 0) {
            RT_TRY(st_metadata(s, rt_jval_at(root, i)));
            continue;
        }
        RT_TRY(st_entry(&s->tensor[s->count], rt_jval_at(root, i), name, data, data_n, s->name));
        RT_TRY(rt_map_put(&s->index, name, s->count, NULL));
        s->count++;
    }
    return st_check_cover(s, data, data_n);
}

/* mapped: file is not memory of ours. */
static rt_status st_take(rt_safetensors **out, const uint8_t *file, size_t n, bool mapped, const char *name) {
    *out = NULL;
    rt_safetensors *s = NULL;
    rt_status st = rt_calloc(&s, 1, sizeof *s);
    if (st != RT_OK) {
        if (mapped)
            rt_file_unmap(file, n);
        else
            rt_free((void *)(uintptr_t)file);
        return st;
    }
    s->file = file;
    s->mapped = mapped ? n : 0;
    rt_map_init(&s->index);
    s->name = rt_strdup(name);
    st = s->name ? st_parse(s, n) : RT_E_MEMORY;
    if (st != RT_OK)
        rt_safetensors_destroy(&s);
    *out = s;
    return st;
}

rt_status rt_safetensors_decode_take(rt_safetensors **out, uint8_t *file, size_t n, const char *name) {
    return st_take(out, file, n, false, name);
}

rt_status rt_safetensors_map(rt_safetensors **out, const char *path) {
    const uint8_t *file = NULL;
    size_t n = 0;
    *out = NULL;
    RT_TRY(rt_file_map(path, &file, &n));
    return st_take(out, file, n, true, path);
}

rt_status rt_safetensors_read(rt_safetensors **out, const char *path) {
    *out = NULL;
    uint8_t *file = NULL;
    size_t n = 0;
    RT_TRY(rt_file_read(path, st_file_max, &file, &n));
    return rt_safetensors_decode_take(out, file, n, path);
}

void rt_safetensors_destroy(rt_safetensors **sp) {
    if (sp == NULL || *sp == NULL)
        return;
    rt_safetensors *s = *sp;
    rt_map_deinit(&s->index);
    rt_jdoc_destroy(&s->doc);
    rt_free(s->tensor);
    rt_free(s->meta);
    if (s->mapped)
        rt_file_unmap(s->file, s->mapped);
    else
        rt_free((void *)(uintptr_t)s->file);
    rt_free(s->name);
    rt_free(s);
    *sp = NULL;
}

int64_t rt_safetensors_count(const rt_safetensors *s) {
    return s->count;
}

const rt_st_tensor *rt_safetensors_get(const rt_safetensors *s, int64_t i) {
    return i >= 0 && i < s->count ? &s->tensor[i] : NULL;
}

const rt_st_tensor *rt_safetensors_find(const rt_safetensors *s, const char *name) {
    int64_t i = 0;
    return rt_map_get(&s->index, name, &i) ? &s->tensor[i] : NULL;
}

int64_t rt_safetensors_meta_count(const rt_safetensors *s) {
    return s->meta_count;
}

const rt_st_meta *rt_safetensors_meta_get(const rt_safetensors *s, int64_t i) {
    return i >= 0 && i < s->meta_count ? &s->meta[i] : NULL;
}

const char *rt_safetensors_meta(const rt_safetensors *s, const char *key) {
    const char *text = NULL;
    return rt_jval_str(rt_jval_get(rt_jval_get(rt_jdoc_root(s->doc), "__metadata__"), key), &text) ? text
                                                                                                   : NULL;
}

rt_status rt_safetensors_to_f32(const rt_safetensors *s, const rt_st_tensor *t, float *dst, int64_t count) {
    size_t size = st_type_size(t->dtype);
    RT_FAIL_IF(size == 0 || t->bytes / size != (size_t)count, RT_E_INPUT,
               "%s: tensor %.200s has %zu elements, wanted %lld", s->name, t->name,
               size ? t->bytes / size : 0, (long long)count);
    const bool brain = strcmp(t->dtype, "BF16") == 0;
    RT_FAIL_IF(!brain && strcmp(t->dtype, "F32") != 0 && strcmp(t->dtype, "F64") != 0 &&
                   strcmp(t->dtype, "F16") != 0,
               RT_E_INPUT, "%s: tensor %.200s has type %s, wanted F32, F64, F16 or BF16", s->name, t->name,
               t->dtype);
    rt_numbers_to_f32(dst, t->data, brain ? 'b' : 'f', (int)size, count);
    return RT_OK;
}

/* ---- writing ---- */

static rt_status st_check_tensor(const char *path, const rt_st_tensor *t, rt_map *seen) {
    size_t size = st_type_size(t->dtype), bytes = 0;
    int64_t elems = 0;
    RT_FAIL_IF(size == 0, RT_E_USAGE, "%s: tensor %s has unknown type %s", path, t->name, t->dtype);
    RT_FAIL_IF(
        !rt_shape_count(&t->shape, &elems) || !rt_size_mul((size_t)elems, size, &bytes) || bytes != t->bytes,
        RT_E_USAGE, "%s: tensor %s has %zu bytes, its shape wants %zu", path, t->name, t->bytes, bytes);
    bool existed = false;
    RT_TRY(rt_map_put(seen, t->name, 0, &existed));
    RT_FAIL_IF(existed || strcmp(t->name, "__metadata__") == 0, RT_E_USAGE, "%s: tensor name %s is taken",
               path, t->name);
    return RT_OK;
}

static void st_write_header(rt_str *h, const rt_st_tensor *t, int64_t n, const rt_st_meta *meta,
                            int64_t nmeta) {
    rt_json j;
    rt_json_init(&j, h, false);
    rt_json_object_begin(&j, NULL);
    if (nmeta > 0) {
        rt_json_object_begin(&j, "__metadata__");
        for (int64_t i = 0; i < nmeta; i++)
            rt_json_str(&j, meta[i].key, meta[i].value);
        rt_json_object_end(&j);
    }
    int64_t at = 0;
    for (int64_t i = 0; i < n; i++) {
        rt_json_object_begin(&j, t[i].name);
        rt_json_str(&j, "dtype", t[i].dtype);
        rt_json_array_begin(&j, "shape");
        for (int k = 0; k < t[i].shape.rank; k++)
            rt_json_i64(&j, NULL, t[i].shape.d[k]);
        rt_json_array_end(&j);
        rt_json_array_begin(&j, "data_offsets");
        rt_json_i64(&j, NULL, at);
        at += (int64_t)t[i].bytes;
        rt_json_i64(&j, NULL, at);
        rt_json_array_end(&j);
        rt_json_object_end(&j);
    }
    rt_json_object_end(&j);
    while (h->len % 8 != 0 && h->st == RT_OK)
        rt_str_append_char(h, ' ');
}

rt_status rt_safetensors_write(const char *path, const rt_st_tensor *t, int64_t n, const rt_st_meta *meta,
                               int64_t nmeta) {
    rt_str h;
    rt_map seen;
    rt_writer *w = NULL;
    rt_status st = RT_OK;
    rt_str_init(&h);
    rt_map_init(&seen);
    for (int64_t i = 0; i < n; i++)
        RT_TRY_GOTO(st_check_tensor(path, &t[i], &seen));
    st_write_header(&h, t, n, meta, nmeta);
    RT_TRY_GOTO(rt_str_status(&h));
    if (h.len > RT_ST_HEADER_MAX)
        RT_FAIL_GOTO(RT_E_USAGE, "%s: header of %zu bytes, the format allows %d", path, h.len,
                     RT_ST_HEADER_MAX);
    uint8_t length[8];
    for (size_t i = 0; i < 8; i++)
        length[i] = (uint8_t)((uint64_t)h.len >> (8 * i));
    RT_TRY_GOTO(rt_writer_open(&w, path));
    RT_TRY_GOTO(rt_writer_write(w, length, sizeof length));
    RT_TRY_GOTO(rt_writer_write(w, h.p, h.len));
    for (int64_t i = 0; i < n; i++)
        if (t[i].bytes > 0)
            RT_TRY_GOTO(rt_writer_write(w, t[i].data, t[i].bytes));
    st = rt_writer_commit(&w);
done:
    rt_writer_abandon(&w);
    rt_map_deinit(&seen);
    rt_str_deinit(&h);
    return st;
}
