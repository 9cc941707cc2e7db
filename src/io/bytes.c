/*
 * bytes.c - a whole file in memory, unpacked when its first bytes say gzip or xz.
 *
 * A small file must not take much memory before it is refused. What it will unpack to is known in three ways, from
 * the cheapest on: the size that stands at its end (of the last member or stream; it may lie, but never makes the
 * whole smaller), the header of the format inside, as soon as the first piece is unpacked (rt_bytes_header), and the
 * growing output itself. The limit is the smallest of the caller's, of what that header promises, and of a ratio:
 * deflate reaches 1032:1, data worth learning from stays far below 200:1.
 *
 * A stream must end where the file ends: several members (gzip) or streams (xz) one behind the other are
 * fine, anything else behind the last one is refused, and so is a stream that stops early. Both libraries
 * check their checksums; both take memory from our allocator.
 */
#include "io/io_int.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/size.h"
#include "base/stop.h"

#include <lzma.h>
#include <string.h>
#include <zlib.h>

enum { BYTES_RATIO_MAX = 200, BYTES_SLACK = 16 << 20, BYTES_FIRST = 1 << 16, BYTES_PIECE = 1 << 20 };
static const uint64_t bytes_lzma_memory = (uint64_t)192 << 20; /* xz -9 needs 65 MiB */

/* The growing output: `cap` bytes and one more for the NUL. */
typedef struct bytes_out {
    uint8_t *p;
    size_t n, cap, limit;
    const char *name;
    rt_bytes_header header; /* NULL: the format inside has none, or it was asked */
    bool promised;          /* the limit is what the header says */
} bytes_out;

static rt_status bytes_too_large(const bytes_out *o) {
    RT_FAIL_IF(o->promised, RT_E_INPUT, "%s: unpacks to more than the %zu bytes that its header promises",
               o->name, o->limit);
    RT_FAIL(RT_E_INPUT,
            "%s: unpacks to more than %zu bytes, the limit for this file (memory, and %d times its size: if "
            "that is "
            "meant, unpack it first)",
            o->name, o->limit, BYTES_RATIO_MAX);
}

/* `stated`: what the end of the file says, 0 if nothing. */
static rt_status bytes_out_init(bytes_out *o, size_t src_n, size_t stated, size_t max_bytes) {
    size_t ratio = SIZE_MAX;
    if (rt_size_mul(src_n, BYTES_RATIO_MAX, &ratio) && !rt_size_add(ratio, BYTES_SLACK, &ratio))
        ratio = SIZE_MAX;
    o->limit = RT_MIN(RT_MIN(max_bytes, ratio), SIZE_MAX / 4);
    if (stated > o->limit)
        return bytes_too_large(o);
    o->cap = RT_MIN(o->limit, (size_t)BYTES_FIRST);
    return rt_alloc(&o->p, o->cap + 1);
}

/* The first piece is there: does the header fit? Then exactly what it promises is taken, and no byte more. */
static rt_status bytes_ask_header(bytes_out *o, size_t *cap) {
    size_t total = 0;
    rt_bytes_header header = o->header;
    o->header = NULL;
    RT_TRY(header(o->p, o->n, o->name, &total));
    if (total > o->limit)
        return bytes_too_large(o);
    o->limit = total;
    o->promised = true;
    *cap = RT_MAX(total, o->n);
    return RT_OK;
}

static rt_status bytes_out_grow(bytes_out *o) {
    size_t cap = o->cap > o->limit / 2 ? o->limit : o->cap * 2;
    if (o->header)
        RT_TRY(bytes_ask_header(o, &cap));
    if (o->n >= o->limit || o->cap >= cap)
        return bytes_too_large(o);
    RT_TRY(rt_realloc(&o->p, o->n, cap + 1));
    o->cap = cap;
    return RT_OK;
}

/* The size of the last gzip member, modulo 2^32. */
static size_t gzip_stated(const uint8_t *src, size_t n) {
    const uint8_t *end = src + n - 4;
    return n < 18 ? 0 : (size_t)end[0] | (size_t)end[1] << 8 | (size_t)end[2] << 16 | (size_t)end[3] << 24;
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
    const size_t piece = BYTES_PIECE;
    size_t at = 0;
    rt_status st = RT_OK;
    for (;;) {
        RT_TRY_GOTO(rt_stop_check("unpacking", o->name));
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
        RT_TRY_GOTO(rt_stop_check("unpacking", o->name));
        if (o->n == o->cap)
            RT_TRY_GOTO(bytes_out_grow(o));
        const size_t room = RT_MIN(o->cap - o->n, (size_t)BYTES_PIECE);
        x.next_out = o->p + o->n;
        x.avail_out = room;
        lzma_ret rc = lzma_code(&x, LZMA_FINISH);
        o->n += room - x.avail_out;
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

/* The size of the last xz stream by its index; 0 if that cannot be read. */
static rt_status xz_stated(const uint8_t *src, size_t n, const char *name, size_t *stated) {
    static const lzma_allocator allocator = {.alloc = bytes_x_alloc, .free = bytes_x_free};
    enum { FOOTER = LZMA_STREAM_HEADER_SIZE };
    lzma_stream_flags flags;
    lzma_index *index = NULL;
    uint64_t memory = 16 << 20;
    size_t at = 0;
    *stated = 0;
    if (n < 2 * FOOTER || lzma_stream_footer_decode(&flags, src + n - FOOTER) != LZMA_OK ||
        flags.backward_size > n - 2 * FOOTER)
        return RT_OK;
    const uint8_t *p = src + n - FOOTER - flags.backward_size;
    const lzma_ret got =
        lzma_index_buffer_decode(&index, &memory, &allocator, p, &at, (size_t)flags.backward_size);
    if (got == LZMA_OK)
        *stated = (size_t)lzma_index_uncompressed_size(index);
    lzma_index_end(index, &allocator);
    RT_FAIL_IF(got == LZMA_MEM_ERROR, RT_E_MEMORY, "%s: no memory to read its xz index", name);
    return RT_OK;
}

rt_status rt_bytes_decode_as(const uint8_t *src, size_t n, const char *name, size_t max_bytes,
                             rt_bytes_header header, uint8_t **data, size_t *out_n) {
    static const uint8_t xz_magic[6] = {0xfd, '7', 'z', 'X', 'Z', 0};
    *data = NULL;
    *out_n = 0;
    bool gz = n >= 2 && src[0] == 0x1f && src[1] == 0x8b;
    bool xz = n >= 6 && memcmp(src, xz_magic, 6) == 0;
    if (!gz && !xz)
        return RT_OK;
    bytes_out o = {.name = name, .header = header};
    size_t stated = gz ? gzip_stated(src, n) : 0;
    if (xz)
        RT_TRY(xz_stated(src, n, name, &stated));
    rt_status st = bytes_out_init(&o, n, stated, max_bytes);
    if (st == RT_OK)
        st = gz ? bytes_gunzip(&o, src, n) : bytes_unxz(&o, src, n);
    if (st != RT_OK) {
        rt_free(o.p);
        return st;
    }
    o.p[o.n] = 0;
    *data = o.p;
    *out_n = o.n;
    return RT_OK;
}

rt_status rt_bytes_decode(const uint8_t *src, size_t n, const char *name, size_t max_bytes, uint8_t **data,
                          size_t *out_n) {
    return rt_bytes_decode_as(src, n, name, max_bytes, NULL, data, out_n);
}

rt_status rt_bytes_read(const char *path, size_t max_bytes, uint8_t **data, size_t *n) {
    return rt_bytes_read_as(path, max_bytes, NULL, data, n);
}

rt_status rt_bytes_read_as(const char *path, size_t max_bytes, rt_bytes_header header, uint8_t **data,
                           size_t *n) {
    *data = NULL;
    *n = 0;
    uint8_t *raw = NULL, *unpacked = NULL;
    size_t raw_n = 0, unpacked_n = 0, raw_max = max_bytes;
    /* data that does not compress is a little larger packed than plain */
    if (!rt_size_add(max_bytes, max_bytes / 1000 + 4096, &raw_max))
        raw_max = SIZE_MAX;
    RT_TRY(rt_file_read(path, raw_max, &raw, &raw_n));
    rt_status st = rt_bytes_decode_as(raw, raw_n, path, max_bytes, header, &unpacked, &unpacked_n);
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
