/*
 * tmpdir.h - a directory for one test, gone afterwards; and small files in it.
 */
#ifndef RT_TESTS_SUPPORT_TMPDIR_H
#define RT_TESTS_SUPPORT_TMPDIR_H

#include <ftw.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct tmpdir {
    char path[512];
    char names[8][1024]; /* ring of paths handed out by tmpdir_path */
    int next;
} tmpdir;

static inline bool tmpdir_make(tmpdir *t) {
    const char *base = getenv("TMPDIR");
    memset(t, 0, sizeof *t);
    snprintf(t->path, sizeof t->path, "%s/rt-test-XXXXXX", base && *base ? base : "/tmp");
    return mkdtemp(t->path) != NULL;
}

static inline int tmpdir_remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw) {
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

static inline void tmpdir_remove(tmpdir *t) {
    nftw(t->path, tmpdir_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* Path of a name in the directory; valid until eight more were asked for. */
static inline const char *tmpdir_path(tmpdir *t, const char *name) {
    char *p = t->names[t->next++ % 8];
    size_t nd = strlen(t->path), nn = strlen(name);
    if (nd + nn + 2 > sizeof t->names[0])
        return "name-too-long";
    memcpy(p, t->path, nd);
    p[nd] = '/';
    memcpy(p + nd + 1, name, nn + 1);
    return p;
}

static inline bool file_put(const char *path, const void *data, size_t n) {
    FILE *f = fopen(path, "wb");
    if (!f)
        return false;
    bool ok = fwrite(data, 1, n, f) == n;
    return fclose(f) == 0 && ok;
}

static inline bool file_holds(const char *path, const void *data, size_t n) {
    FILE *f = fopen(path, "rb");
    if (!f)
        return false;
    char *buf = malloc(n + 1);
    bool same = buf && fread(buf, 1, n + 1, f) == n && memcmp(buf, data, n) == 0;
    free(buf);
    fclose(f);
    return same;
}

#endif
