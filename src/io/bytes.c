/*
 * bytes.c - a whole file in memory, unpacked when its first bytes say gzip or xz.
 *
 * A compressed file states its size only at its end, and may lie. So the output grows by doubling and stops
 * at the smaller of two limits: the caller's, and a ratio. Deflate cannot exceed 1032:1; honest data stays
 * far below 1000:1, and a bomb of a few kilobytes can then never become more than a few megabytes.
 *
 * A stream must end where the file ends: several members (gzip) or streams (xz) one behind the other are
 * fine, anything else behind the last one is refused, and so is a stream that stops early. Both libraries
 * check their checksums; both take memory from our allocator.
 */
#include "io/io_int.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/size.h"

#include <lzma.h>
#include <string.h>
#include <zlib.h>

enum { BYTES_RATIO_MAX = 1000, BYTES_SLACK = 1 << 20, BYTES_FIRST = 1 << 16 };
static const uint64_t bytes_lzma_memory = (uint64_t)192 << 20; /* xz -9 needs 65 MiB */

/* The growing output: `cap` bytes and one more for the NUL. */
typedef struct bytes_out {
    uint8_t *p;
    size_t n, cap, limit;
    const char *name;
} bytes_out;

static rt_status bytes_out_init(bytes_out *o, size_t src_n, size_t max_bytes, const char *name) {
    size_t ratio = SIZE_MAX;
    if (rt_size_mul(src_n, BYTES_RATIO_MAX, &ratio) && !rt_size_add(ratio, BYTES_SLACK, &ratio))
        ratio = SIZE_MAX;
    *o = (bytes_out){.limit = RT_MIN(max_bytes, ratio), .name = name};
    o->limit = RT_MIN(o->limit, SIZE_MAX / 4);
    o->cap = RT_MIN(o->limit, RT_MAX((size_t)BYTES_FIRST, RT_MIN(src_n, SIZE_MAX / 16) * 4));
    return rt_alloc(&o->p, o->cap + 1);
}

static rt_status bytes_out_grow(bytes_out *o) {
    RT_FAIL_IF(o->cap >= o->limit, RT_E_INPUT, "%s: unpacks to more than %zu bytes, the limit for this file",
               o->name, o->limit);
    size_t cap = o->cap > o->limit / 2 ? o->limit : o->cap * 2;
    RT_TRY(rt_realloc(&o->p, o->cap + 1, cap + 1));
    o->cap = cap;
    return RT_OK;
}

static voidpf bytes_z_alloc(voidpf opaque, uInt items, uInt size) {
    (void)opaque;
    void *p = NULL;
    return rt_calloc(&p, items, size) == RT_OK ? p : NULL;
}
static void bytes_z_free(voidpf opaque, voidpf p) {
    (void)opaque;
    rt_free(p);
}

static rt_status bytes_gunzip(bytes_out *o, const uint8_t *src, size_t n) {
    z_stream z = {.zalloc = bytes_z_alloc, .zfree = bytes_z_free};
    RT_FAIL_IF(inflateInit2(&z, 16 + MAX_WBITS) != Z_OK, RT_E_MEMORY, "%s: no memory to unpack", o->name);
    const size_t piece = (size_t)1 << 30; /* zlib counts in unsigned int */
    size_t at = 0;
    rt_status st = RT_OK;
    for (;;) {
        if (o->n == o->cap)
            RT_TRY_GOTO(bytes_out_grow(o));
        uInt in = (uInt)RT_MIN(n - at, piece), room = (uInt)RT_MIN(o->cap - o->n, piece);
        z.next_in = (z_const Bytef *)(uintptr_t)(src + at);
        z.avail_in = in;
        z.next_out = o->p + o->n;
        z.avail_out = room;
        int rc = inflate(&z, Z_NO_FLUSH);
        at += in - z.avail_in;
        o->n += room - z.avail_out;
        if (rc == Z_STREAM_END) {
            if (at == n)
                break;
            if (n - at < 2 || src[at] != 0x1f || src[at + 1] != 0x8b)
                RT_FAIL_GOTO(RT_E_INPUT, "%s: %zu bytes of garbage behind the gzip stream at byte %zu",
                             o->name, n - at, at);
            if (inflateReset(&z) != Z_OK)
                RT_FAIL_GOTO(RT_E_INPUT, "%s: cannot restart the gzip stream at byte %zu", o->name, at);
        } else if (rc == Z_MEM_ERROR) {
            RT_FAIL_GOTO(RT_E_MEMORY, "%s: no memory to unpack", o->name);
        } else if (rc != Z_OK && rc != Z_BUF_ERROR) {
            RT_FAIL_GOTO(RT_E_INPUT, "%s: damaged gzip stream near byte %zu: %s", o->name, at,
                         z.msg ? z.msg : "bad data");
        } else if (at == n && z.avail_out > 0) {
            RT_FAIL_GOTO(RT_E_INPUT, "%s: gzip stream is truncated at byte %zu", o->name, n);
        }
    }
done:
    inflateEnd(&z);
    return st;
}

static void *bytes_x_alloc(void *opaque, size_t items, size_t size) {
    (void)opaque;
    void *p = NULL;
    return rt_calloc(&p, items, size) == RT_OK ? p : NULL;
}
static void bytes_x_free(void *opaque, void *p) {
    (void)opaque;
    rt_free(p);
}

static rt_status bytes_unxz(bytes_out *o, const uint8_t *src, size_t n) {
    static const lzma_allocator allocator = {.alloc = bytes_x_alloc, .free = bytes_x_free};
    lzma_stream x = LZMA_STREAM_INIT;
    x.allocator = &allocator;
    rt_status st = RT_OK;
    if (lzma_stream_decoder(&x, bytes_lzma_memory, LZMA_CONCATENATED | LZMA_TELL_UNSUPPORTED_CHECK) !=
        LZMA_OK)
        RT_FAIL_GOTO(RT_E_MEMORY, "%s: no memory to unpack", o->name);
    x.next_in = src;
    x.avail_in = n;
    for (;;) {
        if (o->n == o->cap)
            RT_TRY_GOTO(bytes_out_grow(o));
        x.next_out = o->p + o->n;
        x.avail_out = o->cap - o->n;
        lzma_ret rc = lzma_code(&x, LZMA_FINISH);
        o->n = o->cap - x.avail_out;
        if (rc == LZMA_STREAM_END)
            break;
        if (rc == LZMA_OK)
            continue;
        size_t at = n - x.avail_in;
        switch (rc) {
        case LZMA_MEM_ERROR:
            RT_FAIL_GOTO(RT_E_MEMORY, "%s: no memory to unpack", o->name);
        case LZMA_MEMLIMIT_ERROR:
            RT_FAIL_GOTO(RT_E_INPUT, "%s: xz dictionary needs more than %llu MiB of memory", o->name,
                         (unsigned long long)(bytes_lzma_memory >> 20));
        case LZMA_BUF_ERROR:
            if (x.avail_out == 0)
                continue;
            RT_FAIL_GOTO(RT_E_INPUT, "%s: xz stream is truncated at byte %zu", o->name, n);
        case LZMA_UNSUPPORTED_CHECK:
            RT_FAIL_GOTO(RT_E_INPUT, "%s: xz stream with a checksum this library cannot verify", o->name);
        default:
            RT_FAIL_GOTO(RT_E_INPUT, "%s: damaged xz stream, or garbage behind it, near byte %zu", o->name,
                         at);
        }
    }
done:
    lzma_end(&x);
    return st;
}

rt_status rt_bytes_decode(const uint8_t *src, size_t n, const char *name, size_t max_bytes, uint8_t **data,
                          size_t *out_n) {
    static const uint8_t xz_magic[6] = {0xfd, '7', 'z', 'X', 'Z', 0};
    *data = NULL;
    *out_n = 0;
    bool gz = n >= 2 && src[0] == 0x1f && src[1] == 0x8b;
    bool xz = n >= 6 && memcmp(src, xz_magic, 6) == 0;
    if (!gz && !xz)
        return RT_OK;
    bytes_out o;
    RT_TRY(bytes_out_init(&o, n, max_bytes, name));
    rt_status st = gz ? bytes_gunzip(&o, src, n) : bytes_unxz(&o, src, n);
    if (st != RT_OK) {
        rt_free(o.p);
        return st;
    }
    o.p[o.n] = 0;
    *data = o.p;
    *out_n = o.n;
    return RT_OK;
}

rt_status rt_bytes_read(const char *path, size_t max_bytes, uint8_t **data, size_t *n) {
    *data = NULL;
    *n = 0;
    uint8_t *raw = NULL, *unpacked = NULL;
    size_t raw_n = 0, unpacked_n = 0, raw_max = max_bytes;
    /* data that does not compress is a little larger packed than plain */
    if (!rt_size_add(max_bytes, max_bytes / 1000 + 4096, &raw_max))
        raw_max = SIZE_MAX;
    RT_TRY(rt_file_read(path, raw_max, &raw, &raw_n));
    rt_status st = rt_bytes_decode(raw, raw_n, path, max_bytes, &unpacked, &unpacked_n);
    if (st == RT_OK && unpacked == NULL && raw_n > max_bytes)
        st = rt_error_set(RT_E_INPUT, __FILE__, __LINE__, "%s: %zu bytes, wanted at most %zu", path, raw_n,
                          max_bytes);
    if (st == RT_OK && unpacked == NULL) {
        *data = raw;
        *n = raw_n;
        return RT_OK;
    }
    rt_free(raw);
    *data = unpacked;
    *n = unpacked_n;
    return st;
}
