/*
 * map.h - hash map from text to int64. Keys are copied. Lookup is O(1); hostile key sets stay O(1) because
 * the hash is keyed (SipHash-like mixing with a per-map key).
 */
#ifndef RT_BASE_MAP_H
#define RT_BASE_MAP_H

#include "base/status.h"

typedef struct rt_map {
    struct rt_map_slot *slots;
    int64_t count, cap;
} rt_map;

void rt_map_init(rt_map *m);
void rt_map_deinit(rt_map *m);
/* Adds or replaces. *existed may be NULL. */
rt_status rt_map_put(rt_map *m, const char *key, int64_t value, bool *existed) RT_MUST_CHECK;
bool rt_map_get(const rt_map *m, const char *key, int64_t *out);

#endif
