/*
 * embed.h - a file that the program carries inside (rt_embed in CMakeLists.txt).
 */
#ifndef RT_BASE_EMBED_H
#define RT_BASE_EMBED_H

#include <stddef.h>

typedef struct rt_embedded {
    const char *name; /* without its directory */
    const char *data; /* a NUL follows */
    size_t bytes;
} rt_embedded;

#endif
