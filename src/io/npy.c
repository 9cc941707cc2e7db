/*
 * npy.c - NumPy's array file.
 *
 *     "\x93NUMPY" major minor | length (u16 in version 1, u32 later) | header | data
 *     {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
 *
 * The header is a Python literal; we read only the dictionary that NumPy writes: its three keys in any order,
 * plain strings, True or False, a tuple of whole numbers. Types: NPY_TYPES, in either byte order;
 * everything else, above all 'O' (pickled objects), is refused. The data must be exactly as long as the shape
 * says, and this is known before a byte is allocated.
 */
#include "io/io_int.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/reader.h"
#include "base/size.h"

#include <string.h>

#define NPY_TYPES "f2 f4 f8 u1 u2 u4 u8 i1 i2 i4 i8 b1 (bool)"

typedef struct npy_header {
    const char *name;
    const uint8_t *p;
    size_t n, at;
    bool has_descr, has_order, has_shape;
    char order, kind; /* '<' or '>' or '|' */
    int itemsize;
    bool fortran;
    rt_shape shape;
} npy_header;

static void npy_space(npy_header *h) {
    while (h->at < h->n &&
           (h->p[h->at] == ' ' || h->p[h->at] == '\t' || h->p[h->at] == '\n' || h->p[h->at] == '\r'))
        h->at++;
}

static bool npy_eat(npy_header *h, const char *token) {
    npy_space(h);
    size_t len = strlen(token);
    if (h->n - h->at < len || memcmp(h->p + h->at, token, len) != 0)
        return false;
    h->at += len;
    return true;
}

static rt_status npy_bad(const npy_header *h, const char *what) {
    RT_FAIL(RT_E_INPUT, "%s: npy header, character %zu: %s", h->name, h->at, what);
}

static rt_status npy_text(npy_header *h, char *out, size_t cap) {
    npy_space(h);
    char quote = h->at < h->n ? (char)h->p[h->at] : 0;
    if (quote != '\'' && quote != '"')
        return npy_bad(h, "expected a text in quotes");
    size_t len = 0;
    for (h->at++; h->at < h->n && h->p[h->at] != (uint8_t)quote; h->at++) {
        if (len + 1 >= cap || h->p[h->at] == '\\')
            return npy_bad(h, "text is too long or has an escape");
        out[len++] = (char)h->p[h->at];
    }
    if (h->at >= h->n)
        return npy_bad(h, "text does not end");
    h->at++;
    out[len] = 0;
    return RT_OK;
}

static rt_status npy_descr(npy_header *h) {
    char text[16];
    if (npy_eat(h, "["))
        return npy_bad(h, "structured types are refused, wanted " NPY_TYPES);
    RT_TRY(npy_text(h, text, sizeof text));
    const char *p = text;
    h->order = '<';
    if (*p && strchr("<>|=", *p))
        h->order = *p++;
    if (h->order == '=')
        h->order = '<'; /* native; this library runs on little-endian machines */
    static const char *const known[] = {"f2", "f4", "f8", "u1", "u2", "u4",
                                        "u8", "i1", "i2", "i4", "i8", "b1"};
    for (int64_t i = 0; i < RT_COUNT(known); i++)
        if (strcmp(p, known[i]) == 0) {
            h->kind = known[i][0];
            h->itemsize = known[i][1] - '0';
        }
    if (h->kind == 0 || (h->order == '|' && h->itemsize != 1))
        RT_FAIL(RT_E_INPUT, "%s: npy type '%s', wanted " NPY_TYPES, h->name, text);
    return RT_OK;
}

static rt_status npy_shape(npy_header *h) {
    if (!npy_eat(h, "("))
        return npy_bad(h, "expected a tuple");
    h->shape = rt_shape0();
    bool comma = true;
    while (!npy_eat(h, ")")) {
        npy_space(h);
        size_t digits = 0;
        while (h->at + digits < h->n && h->p[h->at + digits] >= '0' && h->p[h->at + digits] <= '9')
            digits++;
        if (!comma || digits == 0)
            return npy_bad(h, "expected a whole number >= 0 in the shape");
        if (h->shape.rank == RT_MAX_RANK)
            return npy_bad(h, "more than 5 dimensions");
        if (!rt_parse_i64((const char *)h->p + h->at, digits, &h->shape.d[h->shape.rank]))
            return npy_bad(h, "dimension is too large");
        h->shape.rank++;
        h->at += digits;
        if (h->at < h->n && h->p[h->at] == 'L') /* Python 2 wrote 3L */
            h->at++;
        comma = npy_eat(h, ",");
        if (h->shape.rank == 1 && !comma)
            return npy_bad(h, "expected ',' (a tuple of one is written (n,))");
    }
    return RT_OK;
}

static rt_status npy_entry(npy_header *h) {
    char key[32];
    RT_TRY(npy_text(h, key, sizeof key));
    if (!npy_eat(h, ":"))
        return npy_bad(h, "expected ':'");
    bool *has = strcmp(key, "descr") == 0           ? &h->has_descr
                : strcmp(key, "fortran_order") == 0 ? &h->has_order
                : strcmp(key, "shape") == 0         ? &h->has_shape
                                                    : NULL;
    if (has == NULL)
        RT_FAIL(RT_E_INPUT, "%s: npy header has unknown key '%s'", h->name, key);
    if (*has)
        RT_FAIL(RT_E_INPUT, "%s: npy header has key '%s' twice", h->name, key);
    *has = true;
    if (has == &h->has_descr)
        return npy_descr(h);
    if (has == &h->has_shape)
        return npy_shape(h);
    h->fortran = npy_eat(h, "True");
    if (!h->fortran && !npy_eat(h, "False"))
        return npy_bad(h, "fortran_order is neither True nor False");
    return RT_OK;
}

static rt_status npy_dictionary(npy_header *h) {
    if (!npy_eat(h, "{"))
        return npy_bad(h, "expected '{'");
    bool comma = true;
    while (!npy_eat(h, "}")) {
        if (!comma)
            return npy_bad(h, "expected ',' or '}'");
        RT_TRY(npy_entry(h));
        comma = npy_eat(h, ",");
    }
    npy_space(h);
    if (h->at != h->n)
        return npy_bad(h, "text behind the dictionary");
    if (!h->has_descr || !h->has_order || !h->has_shape)
        return npy_bad(h, "descr, fortran_order or shape is missing");
    return RT_OK;
}

/* Copies element by element: byte order reversed if big-endian, first index slowest whatever the source. */
static void npy_copy(uint8_t *dst, const uint8_t *src, const npy_header *h, int64_t elems) {
    size_t size = (size_t)h->itemsize;
    bool swap = h->order == '>' && size > 1, fortran = h->fortran && h->shape.rank > 1;
    if (!swap && !fortran) {
        memcpy(dst, src, (size_t)elems * size);
        return;
    }
    int64_t at[RT_MAX_RANK] = {0}, stride[RT_MAX_RANK] = {0}, step = 1;
    for (int k = 0; k < h->shape.rank; k++) {
        stride[k] = step;
        step *= h->shape.d[k];
    }
    for (int64_t i = 0; i < elems; i++) {
        int64_t from = i;
        if (fortran) {
            from = 0;
            for (int k = 0; k < h->shape.rank; k++)
                from += at[k] * stride[k];
            for (int k = h->shape.rank - 1; k >= 0 && ++at[k] == h->shape.d[k]; k--)
                at[k] = 0;
        }
        const uint8_t *s = src + (size_t)from * size;
        for (size_t b = 0; b < size; b++)
            dst[(size_t)i * size + b] = s[swap ? size - 1 - b : b];
    }
}

/* The header, where the data begins, and how many elements and bytes it has to have. */
static rt_status npy_parse(npy_header *h, size_t *start, int64_t *elems, size_t *bytes, const uint8_t *src,
                           size_t n, const char *name) {
    rt_reader r;
    rt_reader_init(&r, src, n, name);
    const uint8_t *magic = NULL;
    uint8_t major = 0, minor = 0;
    RT_TRY(rt_reader_bytes(&r, &magic, 6));
    RT_FAIL_IF(memcmp(magic, "\x93NUMPY", 6) != 0, RT_E_INPUT, "%s: not an npy file", name);
    RT_TRY(rt_reader_u8(&r, &major));
    RT_TRY(rt_reader_u8(&r, &minor));
    RT_FAIL_IF(major < 1 || major > 3 || minor != 0, RT_E_INPUT,
               "%s: npy version %d.%d, wanted 1.0, 2.0 or 3.0", name, major, minor);
    uint32_t length = 0;
    if (major == 1) {
        uint16_t short_length = 0;
        RT_TRY(rt_reader_u16le(&r, &short_length));
        length = short_length;
    } else {
        RT_TRY(rt_reader_u32le(&r, &length));
    }
    RT_FAIL_IF(length > RT_NPY_HEADER_MAX, RT_E_INPUT, "%s: npy header of %u bytes, wanted at most %d", name,
               length, RT_NPY_HEADER_MAX);
    *h = (npy_header){.name = name, .n = length};
    RT_TRY(rt_reader_bytes(&r, &h->p, length));
    RT_TRY(npy_dictionary(h));
    *start = r.at;
    RT_FAIL_IF(!rt_shape_count(&h->shape, elems) || !rt_size_mul((size_t)*elems, (size_t)h->itemsize, bytes),
               RT_E_INPUT, "%s: the size of the npy shape overflows", name);
    return RT_OK;
}

/* The same, of a file that is all there. */
static rt_status npy_whole(npy_header *h, size_t *start, size_t *bytes, const uint8_t *src, size_t n,
                           const char *name) {
    int64_t elems = 0;
    RT_TRY(npy_parse(h, start, &elems, bytes, src, n, name));
    RT_FAIL_IF(*bytes != n - *start, RT_E_INPUT, "%s: %zu bytes of data, the npy shape wants %zu", name,
               n - *start, *bytes);
    return RT_OK;
}

static rt_status npy_take(rt_npy *out, const npy_header *h, const uint8_t *src, size_t bytes) {
    uint8_t *data = NULL;
    RT_TRY(rt_alloc(&data, bytes ? bytes : 1));
    npy_copy(data, src, h, rt_shape_elems(&h->shape));
    *out = (rt_npy){.kind = h->kind, .itemsize = h->itemsize, .shape = h->shape, .data = data};
    return RT_OK;
}

rt_status rt_npy_decode(rt_npy *out, const uint8_t *src, size_t n, const char *name) {
    npy_header h;
    size_t start = 0, bytes = 0;
    *out = (rt_npy){.kind = 0};
    RT_TRY(npy_whole(&h, &start, &bytes, src, n, name));
    return npy_take(out, &h, src + start, bytes);
}

/* A header of 64 KiB may end behind the first piece; then nothing is promised. */
static rt_status npy_promise(const uint8_t *head, size_t n, const char *name, size_t *total) {
    npy_header h;
    int64_t elems = 0;
    size_t start = 0, bytes = 0;
    *total = SIZE_MAX / 4;
    if (npy_parse(&h, &start, &elems, &bytes, head, n, name) == RT_OK && !rt_size_add(start, bytes, total))
        *total = SIZE_MAX;
    return RT_OK;
}

rt_status rt_npy_read(rt_npy *out, const char *path, size_t max_bytes) {
    *out = (rt_npy){.kind = 0};
    uint8_t *file = NULL;
    size_t n = 0;
    RT_TRY(rt_bytes_read_as(path, max_bytes, npy_promise, &file, &n));
    rt_status st = rt_npy_decode(out, file, n, path);
    rt_free(file);
    return st;
}

rt_status rt_npy_map(rt_npy *out, const char *path, size_t max_bytes) {
    npy_header h;
    size_t n = 0, start = 0, bytes = 0;
    const uint8_t *file = NULL;
    *out = (rt_npy){.kind = 0};
    RT_TRY(rt_file_map(path, &file, &n));
    if (n < 6 || memcmp(file, "\x93NUMPY", 6) != 0) { /* packed, or nothing of ours */
        rt_file_unmap(file, n);
        return rt_npy_read(out, path, max_bytes);
    }
    rt_status st = npy_whole(&h, &start, &bytes, file, n, path);
    const bool plain = st == RT_OK && !(h.order == '>' && h.itemsize > 1) && !(h.fortran && h.shape.rank > 1);
    if (plain) {
        *out = (rt_npy){.kind = h.kind,
                        .itemsize = h.itemsize,
                        .shape = h.shape,
                        .data = file + start,
                        .map = file,
                        .map_bytes = n};
        return RT_OK;
    }
    if (st == RT_OK)
        st = npy_take(out, &h, file + start, bytes);
    rt_file_unmap(file, n);
    return st;
}

void rt_npy_deinit(rt_npy *a) {
    if (a->map)
        rt_file_unmap(a->map, a->map_bytes);
    else
        rt_free((void *)(uintptr_t)a->data);
    *a = (rt_npy){.kind = 0};
}

rt_status rt_npy_write(const char *path, rt_dtype t, const rt_shape *s, const void *data) {
    static const char *const descr[RT_DTYPE_COUNT] = {
        [RT_DTYPE_F32] = "<f4", [RT_DTYPE_F64] = "<f8", [RT_DTYPE_I32] = "<i4", [RT_DTYPE_U8] = "|u1"};
    int64_t elems = 0;
    size_t bytes = 0;
    RT_FAIL_IF(!rt_shape_count(s, &elems) || !rt_size_mul((size_t)elems, rt_dtype_size(t), &bytes),
               RT_E_USAGE, "%s: the size of the shape overflows", path);
    rt_str h;
    rt_writer *w = NULL;
    rt_status st = RT_OK;
    rt_str_init(&h);
    rt_str_append_n(&h, "\x93NUMPY\x01\x00\x00\x00", 10);
    rt_str_appendf(&h, "{'descr': '%s', 'fortran_order': False, 'shape': (", descr[t]);
    for (int k = 0; k < s->rank; k++)
        rt_str_appendf(&h, k + 1 < s->rank ? "%lld, " : s->rank == 1 ? "%lld," : "%lld", (long long)s->d[k]);
    rt_str_append(&h, "), }");
    while (h.len % 64 != 63 && h.st == RT_OK) /* the data begins at a multiple of 64 */
        rt_str_append_char(&h, ' ');
    rt_str_append_char(&h, '\n');
    RT_TRY_GOTO(rt_str_status(&h));
    h.p[8] = (char)((h.len - 10) & 0xff);
    h.p[9] = (char)((h.len - 10) >> 8);
    RT_TRY_GOTO(rt_writer_open(&w, path));
    RT_TRY_GOTO(rt_writer_write(w, h.p, h.len));
    if (bytes > 0)
        RT_TRY_GOTO(rt_writer_write(w, data, bytes));
    st = rt_writer_commit(&w);
done:
    rt_writer_abandon(&w);
    rt_str_deinit(&h);
    return st;
}
