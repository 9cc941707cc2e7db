/*
 * file_int.h - what the files behind file.h share: calls through the table that survive interruption.
 */
#ifndef RT_BASE_FILE_INT_H
#define RT_BASE_FILE_INT_H

#include "base/file.h"

/* Each retries a bounded number of times after EINTR, and leaves errno set when negative. */
int rt_io_open(const char *path, int flags, mode_t mode);
ssize_t rt_io_read(int fd, void *buf, size_t n);
int rt_io_fsync(int fd);
int rt_io_close(int fd);
int rt_io_fstat(int fd, struct stat *info);
int rt_io_unlink(const char *path);
int rt_io_rename(const char *from, const char *to);
/* Writes all n bytes, in as many calls as it takes; *done (may be NULL) counts them even on failure. */
int rt_io_write_all(int fd, const void *buf, size_t n, size_t *done);
/* Syncs an open directory. File systems that cannot sync directories are forgiven. */
int rt_io_sync_dir_fd(int fd);
/* Directory part of a path: "a/b" -> "a", "b" -> ".", "/b" -> "/". */
rt_status rt_path_dir(char **out, const char *path) RT_MUST_CHECK;
const char *rt_path_base(const char *path);

#endif
