/*
 * file.h - the only door to the file system.
 *
 * Every system call goes through one table (rt_io), so that tests can make the n-th call fail, tear or
 * crash. Saving is: temporary file in the same directory, write, fsync, rename, fsync of the directory. A
 * failed fsync abandons the temporary file; the old file is never touched. New files get mode 0666 &
 * ~umask. Under a directory that is locked nothing is written through a link (file_place.c).
 */
#ifndef RT_BASE_FILE_H
#define RT_BASE_FILE_H

#include "base/str.h"
#include <sys/types.h>
#include <sys/stat.h>

typedef struct rt_io {
    int (*openat)(int dir, const char *path, int flags, mode_t mode);
    ssize_t (*read)(int fd, void *buf, size_t n);
    ssize_t (*write)(int fd, const void *buf, size_t n);
    int (*fsync)(int fd);
    int (*close)(int fd);
    int (*renameat)(int dir, const char *from, const char *to); /* both in dir */
    int (*unlinkat)(int dir, const char *path);
    int (*mkdirat)(int dir, const char *path, mode_t mode);
    int (*fstat)(int fd, struct stat *st);
    int (*fstatat)(int dir, const char *path, struct stat *st, int flags);
} rt_io;
extern const rt_io rt_io_posix;
const rt_io *rt_io_get(void);
void rt_io_set(const rt_io *io); /* NULL restores the real one; tests only, not while threads run */

/* From now on nothing is written, made, removed or locked by this process; all that would be succeeds. For one of
 * several processes that do the same work, of which another one writes. */
void rt_file_only_read(bool on);
bool rt_file_reads_only(void);

/* Reads a whole regular file; refuses more than max_bytes before allocating. *data is rt_alloc'ed,
 * NUL-terminated. */
rt_status rt_file_read(const char *path, size_t max_bytes, uint8_t **data, size_t *n) RT_MUST_CHECK;
/* A whole regular file as memory that is read when it is touched. */
rt_status rt_file_map(const char *path, const uint8_t **data, size_t *n) RT_MUST_CHECK;
void rt_file_unmap(const uint8_t *data, size_t n); /* NULL is fine */
/* Is there a file (anything but a directory), a directory? If that cannot be found out (EACCES, EIO) they fail rather
 * than answer no: the caller may create what is not there. */
rt_status rt_file_find(const char *path, bool *found) RT_MUST_CHECK;
rt_status rt_dir_find(const char *path, bool *found) RT_MUST_CHECK;
/* The same for callers whose next step would fail then: false, too, if it cannot be found out. */
bool rt_file_exists(const char *path);
bool rt_dir_exists(const char *path);
rt_status rt_dir_make(const char *path) RT_MUST_CHECK; /* with parents; existing is fine */
/* Names in a directory, sorted bytewise, without "." and ".."; free with rt_names_free. */
rt_status rt_dir_list(const char *path, char ***names, int64_t *n) RT_MUST_CHECK;
void rt_names_free(char **names, int64_t n);
rt_status rt_file_remove(const char *path) RT_MUST_CHECK; /* absent is fine; of a link the link goes */
/* A file or an empty directory goes, if it can; no failure is reported, and none of an earlier one is forgotten. */
void rt_file_discard(const char *path);
rt_status rt_path_join(char **out, const char *dir, const char *name) RT_MUST_CHECK; /* rt_alloc'ed */
rt_status rt_path_expand(char **out, const char *path) RT_MUST_CHECK;                /* leading "~/" only */

/* Durable replacement of one file, all at once or in pieces. */
rt_status rt_file_write_atomic(const char *path, const void *data, size_t n) RT_MUST_CHECK;
rt_status rt_file_write_text(const char *path, const rt_str *text) RT_MUST_CHECK; /* or the text's failure */
typedef struct rt_writer rt_writer;
rt_status rt_writer_open(rt_writer **out, const char *path) RT_MUST_CHECK;
rt_status rt_writer_write(rt_writer *w, const void *data, size_t n) RT_MUST_CHECK; /* buffered */
rt_status
rt_writer_commit(rt_writer **w) RT_MUST_CHECK; /* fsync, rename, fsync dir; frees *w whatever happens */
void rt_writer_abandon(rt_writer **w);         /* removes the temporary file; *w may be NULL */
int rt_writers_open(void);                     /* how many there are; may be asked in a signal handler */

/* Whether a file could be written there, or a directory made: to be asked before the work whose result goes there. */
rt_status rt_file_may_write(const char *path) RT_MUST_CHECK;
rt_status rt_dir_may_make(const char *path) RT_MUST_CHECK;

/* Append-only text file (log.jsonl): each call is one write(2). */
typedef struct rt_appender rt_appender;
rt_status rt_appender_open(rt_appender **out, const char *path,
                           int64_t truncate_to) RT_MUST_CHECK; /* -1 keeps all */
rt_status rt_appender_write(rt_appender *a, const char *text, size_t n) RT_MUST_CHECK;
int64_t rt_appender_position(const rt_appender *a);
rt_status rt_appender_close(rt_appender **a) RT_MUST_CHECK;

/* Exclusive lock on DIR/.lock by flock; the loser gets RT_E_LOCKED naming the holder's pid. Released on
 * exit or crash. While it is held, nothing under DIR is written through links. */
typedef struct rt_lock rt_lock;
rt_status rt_lock_take(rt_lock **out, const char *dir) RT_MUST_CHECK;
void rt_lock_release(rt_lock **l);
/* Removes temporary files that killed writers left in dir and in the directories in it; those of a writer that
 * lives stay. */
rt_status rt_dir_sweep(const char *dir) RT_MUST_CHECK;

#endif
