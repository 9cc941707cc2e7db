/*
 * file_int.h - what the files behind file.h share: calls through the table that survive interruption, and places
 * to write to (file_place.c).
 */
#ifndef RT_BASE_FILE_INT_H
#define RT_BASE_FILE_INT_H

#include "base/file.h"

/* Each retries a bounded number of times after EINTR, and leaves errno set when negative. `dir` is AT_FDCWD or the
 * descriptor that a relative path starts from. */
int rt_io_open(int dir, const char *path, int flags, mode_t mode);
ssize_t rt_io_read(int fd, void *buf, size_t n);
int rt_io_fsync(int fd);
int rt_io_close(int fd);
int rt_io_fstat(int fd, struct stat *info);
int rt_io_stat(int dir, const char *path, struct stat *info, int flags);
int rt_io_mkdir(int dir, const char *path);
int rt_io_unlink(int dir, const char *path);
int rt_io_rename(int dir, const char *from, const char *to);
/* Writes all n bytes, in as many calls as it takes; *done (may be NULL) counts them even on failure. */
int rt_io_write_all(int fd, const void *buf, size_t n, size_t *done);
/* Syncs an open directory. File systems that cannot sync directories are forgiven. */
int rt_io_sync_dir_fd(int fd);
/* Directory part of a path: "a/b" -> "a", "b" -> ".", "/b" -> "/". */
rt_status rt_path_dir(char **out, const char *path) RT_MUST_CHECK;
const char *rt_path_base(const char *path);

/* A directory under which nothing is written through links; a lock has one. */
typedef struct rt_guard {
    struct rt_guard *next;
    char *path;
    int dir;
} rt_guard;
void rt_guard_add(rt_guard *g);
void rt_guard_remove(const rt_guard *g); /* one that was not added is fine */

/* Where a file stands. `name` points into the path it was opened with. */
typedef struct rt_place {
    int dir; /* -1: closed */
    const char *name;
    bool guarded;
} rt_place;
/* On failure as on success rt_place_close must follow. */
rt_status rt_place_open(rt_place *p, const char *path) RT_MUST_CHECK;
void rt_place_close(rt_place *p);
/* Refuses anything but a regular file, or a link where it may be one; what is absent has st_mode 0. */
rt_status rt_place_check(const rt_place *p, const char *path, bool link_too, struct stat *info) RT_MUST_CHECK;
/* Opens, or creates, a regular file that has no other name. */
rt_status rt_place_open_file(const rt_place *p, const char *path, int flags, int *fd) RT_MUST_CHECK;
/* Makes a directory with its parents if it is under a guard; else does nothing. */
rt_status rt_place_make_dir(const char *path, bool *guarded) RT_MUST_CHECK;

#endif
