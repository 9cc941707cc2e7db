/*
 * map.c - open addressing with linear probing, at most two thirds full, never shrinking.
 *
 * Keys come from files (tensor names, class names), so a file could be made to collide under a fixed hash
 * and cost quadratic time. The hash is SipHash-1-3 (Aumasson, Bernstein 2012, with the reduced rounds that
 * hash tables use) under a random key per table. The order of slots is never shown, hence results do not
 * depend on the key. It is kept in one extra slot behind the last.
 */
#include "base/map.h"
#include "base/alloc.h"
#include "base/size.h"
#include "base/str.h"
#include "base/timer.h"
#include <string.h>
#include <sys/random.h>

typedef struct rt_map_slot {
    char *key; /* NULL: free */
    uint64_t hash;
    int64_t value;
} rt_map_slot;

static uint64_t rotate(uint64_t x, int n) {
    return x << n | x >> (64 - n);
}

static void sip_round(uint64_t v[4]) {
    v[0] += v[1];
    v[1] = rotate(v[1], 13) ^ v[0];
    v[0] = rotate(v[0], 32);
    v[2] += v[3];
    v[3] = rotate(v[3], 16) ^ v[2];
    v[0] += v[3];
    v[3] = rotate(v[3], 21) ^ v[0];
    v[2] += v[1];
    v[1] = rotate(v[1], 17) ^ v[2];
    v[2] = rotate(v[2], 32);
}

static uint64_t hash_text(const rt_map *m, const char *key) {
    const rt_map_slot *secret = &m->slots[m->cap];
    uint64_t k0 = secret->hash, k1 = (uint64_t)secret->value;
    uint64_t v[4] = {k0 ^ UINT64_C(0x736f6d6570736575), k1 ^ UINT64_C(0x646f72616e646f6d),
                     k0 ^ UINT64_C(0x6c7967656e657261), k1 ^ UINT64_C(0x7465646279746573)};
    size_t n = strlen(key), left = n;
    for (; left >= 8; left -= 8, key += 8) {
        uint64_t word;
        memcpy(&word, key, 8);
        v[3] ^= word;
        sip_round(v);
        v[0] ^= word;
    }
    uint64_t last = (uint64_t)n << 56;
    for (size_t i = 0; i < left; i++)
        last |= (uint64_t)(unsigned char)key[i] << (8 * i);
    v[3] ^= last;
    sip_round(v);
    v[0] ^= last;
    v[2] ^= 0xff;
    for (int i = 0; i < 3; i++)
        sip_round(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

/* The slot that holds the key, or the free one where it belongs. */
static rt_map_slot *find_slot(const rt_map *m, const char *key, uint64_t hash) {
    uint64_t mask = (uint64_t)m->cap - 1;
    for (uint64_t i = hash & mask;; i = (i + 1) & mask) {
        rt_map_slot *s = &m->slots[i];
        if (!s->key || (s->hash == hash && strcmp(s->key, key) == 0))
            return s;
    }
}

static void choose_secret(rt_map_slot *secret) {
    uint64_t key[2];
    if (getrandom(key, sizeof key, GRND_NONBLOCK) != (ssize_t)sizeof key) {
        double now = rt_time_now(); /* early boot: clock and address are hard enough to guess */
        memcpy(&key[0], &now, sizeof now);
        key[1] = (uint64_t)(uintptr_t)secret;
    }
    secret->hash = key[0];
    secret->value = (int64_t)key[1];
}

static rt_status grow(rt_map *m) {
    rt_map bigger = {.count = m->count, .cap = m->cap ? m->cap * 2 : 16};
    size_t slots;
    RT_FAIL_IF(!rt_size_add((size_t)bigger.cap, 1, &slots), RT_E_MEMORY, "map of %lld names is too large",
               (long long)m->count);
    RT_TRY(rt_calloc(&bigger.slots, slots, sizeof *bigger.slots));
    choose_secret(&bigger.slots[bigger.cap]);
    for (int64_t i = 0; i < m->cap; i++) {
        rt_map_slot *s = &m->slots[i];
        if (s->key) {
            uint64_t hash = hash_text(&bigger, s->key);
            *find_slot(&bigger, s->key, hash) = (rt_map_slot){.key = s->key, .hash = hash, .value = s->value};
        }
    }
    rt_free(m->slots);
    *m = bigger;
    return RT_OK;
}

void rt_map_init(rt_map *m) {
    memset(m, 0, sizeof *m);
}

void rt_map_deinit(rt_map *m) {
    for (int64_t i = 0; i < m->cap; i++)
        rt_free(m->slots[i].key);
    rt_free(m->slots);
    rt_map_init(m);
}

rt_status rt_map_put(rt_map *m, const char *key, int64_t value, bool *existed) {
    if ((m->count + 1) * 3 > m->cap * 2)
        RT_TRY(grow(m));
    uint64_t hash = hash_text(m, key);
    rt_map_slot *s = find_slot(m, key, hash);
    bool found = s->key != NULL;
    if (!found) {
        char *copy = rt_strdup(key);
        if (!copy)
            return RT_E_MEMORY;
        s->key = copy;
        s->hash = hash;
        m->count++;
    }
    s->value = value;
    if (existed)
        *existed = found;
    return RT_OK;
}

bool rt_map_get(const rt_map *m, const char *key, int64_t *out) {
    if (m->count == 0)
        return false;
    const rt_map_slot *s = find_slot(m, key, hash_text(m, key));
    if (!s->key)
        return false;
    *out = s->value;
    return true;
}
