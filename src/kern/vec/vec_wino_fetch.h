/*
 * vec_wino_fetch.h - data on their way into the second-level cache while products are computed.
 *
 * The transforms of a group of lines wait for memory, the products behind them do not use it. So between tiles of
 * the products a few lines of the cache are asked for: what the products' result will be stored over and combined
 * with, then what the next group will load. Each of these arrays is a stream of pieces: the rows of the group in
 * one block of channels, or all of the group where it consists of whole images.
 */
#ifndef RT_KERN_VEC_WINO_FETCH_H
#define RT_KERN_VEC_WINO_FETCH_H

#include "base/compiler.h"
#include <stdint.h>

enum { WINO_LINE = 64, WINO_STREAMS = 16 };

typedef struct wino_stream {
    const char *at;
    int64_t bytes, distance, pieces; /* of a piece, from one to the next, how many */
} wino_stream;

typedef struct wino_fetch {
    wino_stream stream[WINO_STREAMS];
    int streams, now;
    int64_t piece, offset; /* in the stream of now */
    int64_t quota;         /* lines per call */
} wino_fetch;

/* What is there already is not added again. */
static inline void wino_fetch_add(wino_fetch *f, wino_stream s) {
    for (int i = 0; i < f->streams; i++)
        if (f->stream[i].at == s.at)
            return;
    if (f->streams < WINO_STREAMS && s.bytes > 0)
        f->stream[f->streams++] = s;
}

/* Everything in `calls` calls. */
static inline void wino_fetch_begin(wino_fetch *f, int64_t calls) {
    int64_t lines = 0;
    for (int i = 0; i < f->streams; i++)
        lines += (f->stream[i].bytes + WINO_LINE - 1) / WINO_LINE * f->stream[i].pieces;
    f->quota = (lines + calls - 1) / calls;
    f->now = 0;
    f->piece = f->offset = 0;
}

RT_INLINE void wino_fetch_some(wino_fetch *f) {
    for (int64_t k = 0; k < f->quota && f->now < f->streams; k++) {
        const wino_stream *s = &f->stream[f->now];
        __builtin_prefetch(s->at + f->piece * s->distance + f->offset, 0, 2);
        f->offset += WINO_LINE;
        if (f->offset < s->bytes)
            continue;
        f->offset = 0;
        if (++f->piece == s->pieces) {
            f->piece = 0;
            f->now++;
        }
    }
}

#endif
