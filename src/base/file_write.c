/*
 * file_write.c - durable writing: replacement of a file, an append-only log, the lock of a directory.
 *
 *     open DIR/.NAME.tmp-PID-COUNTER     same directory, hence same file system; never an existing file
 *     write ... write, fsync, close      data is on disk before it gets the name; a failed fsync is final:
 *                                        the kernel may have dropped the pages, a second fsync would lie
 *     open DIR                           before the rename, so that a failure here still leaves the old file
 *     rename                             the moment of replacement
 *     fsync DIR                          the name is on disk; if this fails the new file is in place but may
 *                                        be lost in a power cut, and the caller is told that the save failed
 *
 * After any failure the temporary file is removed. A killed process leaves one; rt_dir_sweep removes it at
 * the next start.
 */
#include "base/alloc.h"
#include "base/file.h"
#include "base/file_int.h"
#include "base/str.h"
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

enum { BUFFER = 1 << 16, NAME_TRIES = 100 };

struct rt_writer {
    char *path, *dir, *temp;
    int fd; /* -1: closed */
    bool temp_exists;
    rt_status st; /* first failure; the commit then fails too */
    size_t len;
    uint8_t buf[BUFFER];
};

static void writer_destroy(rt_writer *w) {
    if (w->fd >= 0)
        rt_io_close(w->fd);
    if (w->temp_exists)
        rt_io_unlink(w->temp);
    rt_free(w->path);
    rt_free(w->dir);
    rt_free(w->temp);
    rt_free(w);
}

/*
 * Settles what is replaced. A link is followed, else the rename would replace the link; a device or pipe is
 * refused, else a rename would delete it. *mode gets the permissions to keep, or stays.
 */
static rt_status resolve_target(rt_writer *w, const char *path, mode_t *mode) {
    struct stat info;
    char *real = NULL;
    if (lstat(path, &info) == 0 && S_ISLNK(info.st_mode))
        real = realpath(path, NULL); /* NULL for a dangling link, which is then replaced */
    rt_status st = rt_path_join(&w->path, NULL, real ? real : path);
    free(real);
    RT_TRY(st);
    RT_TRY(rt_path_dir(&w->dir, w->path));
    if (stat(w->path, &info) != 0)
        return RT_OK;
    RT_FAIL_IF(S_ISDIR(info.st_mode), RT_E_IO, "%s: is a directory, cannot be replaced by a file", path);
    RT_FAIL_IF(!S_ISREG(info.st_mode), RT_E_IO, "%s: is not a regular file, cannot be replaced", path);
    *mode = info.st_mode & 0777;
    return RT_OK;
}

static rt_status open_temp(rt_writer *w) {
    static atomic_uint counter;
    rt_str name;
    rt_str_init(&name);
    rt_status st = RT_OK;
    for (int tries = 0; w->fd < 0; tries++) {
        rt_str_clear(&name); /* 200 characters: the temporary name must not be longer than names may be */
        rt_str_appendf(&name, ".%.200s.tmp-%ld-%u", rt_path_base(w->path), (long)getpid(),
                       atomic_fetch_add(&counter, 1));
        RT_TRY_GOTO(rt_str_status(&name));
        rt_free(w->temp);
        w->temp = NULL;
        RT_TRY_GOTO(rt_path_join(&w->temp, w->dir, rt_str_text(&name)));
        w->fd = rt_io_open(w->temp, O_WRONLY | O_CREAT | O_EXCL, 0666);
        if (w->fd < 0 && (errno != EEXIST || tries == NAME_TRIES))
            RT_FAIL_GOTO(RT_E_IO, "%s: cannot create temporary file %s: %s", w->path, w->temp,
                         strerror(errno));
    }
    w->temp_exists = true;
done:
    rt_str_deinit(&name);
    return st;
}

rt_status rt_writer_open(rt_writer **out, const char *path) {
    *out = NULL;
    RT_FAIL_IF(!*rt_path_base(path), RT_E_USAGE, "\"%s\": not a file name", path);
    rt_writer *w;
    RT_TRY(rt_calloc(&w, 1, sizeof *w));
    w->fd = -1;
    const mode_t keep = (mode_t)-1;
    mode_t mode = keep;
    rt_status st;
    RT_TRY_GOTO(resolve_target(w, path, &mode));
    RT_TRY_GOTO(open_temp(w));
    if (mode != keep && fchmod(w->fd, mode) != 0)
        RT_FAIL_GOTO(RT_E_IO, "%s: cannot keep the file's mode %03o: %s", path, (unsigned)mode,
                     strerror(errno));
    *out = w;
    return RT_OK;
done:
    writer_destroy(w);
    return st;
}

static rt_status write_out(rt_writer *w, const void *data, size_t n) {
    if (rt_io_write_all(w->fd, data, n, NULL) != 0)
        w->st = rt_error_set(RT_E_IO, __FILE__, __LINE__, "%s: cannot write: %s", w->path, strerror(errno));
    return w->st;
}

rt_status rt_writer_write(rt_writer *w, const void *data, size_t n) {
    RT_FAIL_IF(w->st != RT_OK, w->st, "%s: an earlier write failed", w->path);
    if (n <= BUFFER - w->len) {
        if (n)
            memcpy(w->buf + w->len, data, n);
        w->len += n;
        return RT_OK;
    }
    RT_TRY(write_out(w, w->buf, w->len));
    w->len = 0;
    if (n >= BUFFER)
        return write_out(w, data, n);
    memcpy(w->buf, data, n);
    w->len = n;
    return RT_OK;
}

static rt_status finish_temp(rt_writer *w) {
    RT_FAIL_IF(w->st != RT_OK, w->st, "%s: an earlier write failed", w->path);
    RT_TRY(write_out(w, w->buf, w->len));
    RT_FAIL_IF(rt_io_fsync(w->fd) != 0, RT_E_IO, "%s: cannot sync: %s", w->path, strerror(errno));
    int closed = rt_io_close(w->fd);
    w->fd = -1;
    RT_FAIL_IF(closed != 0, RT_E_IO, "%s: cannot close: %s", w->path, strerror(errno));
    return RT_OK;
}

rt_status rt_writer_commit(rt_writer **writer) {
    rt_writer *w = *writer;
    *writer = NULL;
    int dir = -1;
    rt_status st;
    RT_TRY_GOTO(finish_temp(w));
    dir = rt_io_open(w->dir, O_RDONLY | O_DIRECTORY, 0);
    if (dir < 0)
        RT_FAIL_GOTO(RT_E_IO, "%s: cannot open its directory %s: %s", w->path, w->dir, strerror(errno));
    if (rt_io_rename(w->temp, w->path) != 0)
        RT_FAIL_GOTO(RT_E_IO, "%s: cannot rename %s to it: %s", w->path, w->temp, strerror(errno));
    w->temp_exists = false;
    if (rt_io_sync_dir_fd(dir) != 0)
        RT_FAIL_GOTO(RT_E_IO, "%s: cannot sync its directory %s: %s", w->path, w->dir, strerror(errno));
done:
    if (dir >= 0)
        rt_io_close(dir);
    writer_destroy(w);
    return st;
}

void rt_writer_abandon(rt_writer **w) {
    if (*w)
        writer_destroy(*w);
    *w = NULL;
}

rt_status rt_file_write_atomic(const char *path, const void *data, size_t n) {
    rt_writer *w;
    RT_TRY(rt_writer_open(&w, path));
    rt_status st = rt_writer_write(w, data, n);
    if (st == RT_OK)
        return rt_writer_commit(&w);
    rt_writer_abandon(&w);
    return st;
}

/* ---- appender ------------------------------------------------------------------------------------------ */

struct rt_appender {
    char *path;
    int fd;
    int64_t position;
};

rt_status rt_appender_open(rt_appender **out, const char *path, int64_t truncate_to) {
    *out = NULL;
    rt_appender *a;
    RT_TRY(rt_calloc(&a, 1, sizeof *a));
    a->fd = -1;
    rt_status st;
    struct stat info;
    RT_TRY_GOTO(rt_path_join(&a->path, NULL, path));
    a->fd = rt_io_open(path, O_WRONLY | O_CREAT | O_APPEND, 0666);
    if (a->fd < 0)
        RT_FAIL_GOTO(RT_E_IO, "%s: cannot open for appending: %s", path, strerror(errno));
    if (rt_io_fstat(a->fd, &info) != 0)
        RT_FAIL_GOTO(RT_E_IO, "%s: cannot stat: %s", path, strerror(errno));
    a->position = info.st_size;
    if (truncate_to >= 0 && truncate_to < a->position) {
        if (ftruncate(a->fd, truncate_to) != 0)
            RT_FAIL_GOTO(RT_E_IO, "%s: cannot truncate to %lld bytes: %s", path, (long long)truncate_to,
                         strerror(errno));
        a->position = truncate_to;
    }
    *out = a;
    return RT_OK;
done:
    if (a->fd >= 0)
        rt_io_close(a->fd);
    rt_free(a->path);
    rt_free(a);
    return st;
}

/* A line that does not fit on the disk is taken back, so that the log never holds half a line. */
rt_status rt_appender_write(rt_appender *a, const char *text, size_t n) {
    size_t done;
    if (rt_io_write_all(a->fd, text, n, &done) != 0) {
        int err = errno;
        if (done > 0 && ftruncate(a->fd, a->position) != 0)
            a->position += (int64_t)done;
        RT_FAIL(RT_E_IO, "%s: cannot append: %s", a->path, strerror(err));
    }
    a->position += (int64_t)n;
    return RT_OK;
}

int64_t rt_appender_position(const rt_appender *a) {
    return a->position;
}

rt_status rt_appender_close(rt_appender **appender) {
    rt_appender *a = *appender;
    if (!a)
        return RT_OK;
    *appender = NULL;
    rt_status st = RT_OK;
    int synced = rt_io_fsync(a->fd), err = errno;
    if (synced != 0 && err != EINVAL && err != ENOTSUP) /* a device or pipe cannot be synced */
        st = rt_error_set(RT_E_IO, __FILE__, __LINE__, "%s: cannot sync: %s", a->path, strerror(err));
    if (rt_io_close(a->fd) != 0 && st == RT_OK)
        st = rt_error_set(RT_E_IO, __FILE__, __LINE__, "%s: cannot close: %s", a->path, strerror(errno));
    rt_free(a->path);
    rt_free(a);
    return st;
}

/* ---- lock and sweep ------------------------------------------------------------------------------------ */

struct rt_lock {
    int fd;
};

/* The file stays when the lock goes: removing it would let two processes lock two files of the same name. */
rt_status rt_lock_take(rt_lock **out, const char *dir) {
    *out = NULL;
    rt_lock *l = NULL;
    char *path = NULL, text[32];
    int fd = -1;
    rt_status st;
    RT_TRY_GOTO(rt_path_join(&path, dir, ".lock"));
    RT_TRY_GOTO(rt_alloc(&l, sizeof *l));
    fd = rt_io_open(path, O_RDWR | O_CREAT, 0666);
    if (fd < 0)
        RT_FAIL_GOTO(RT_E_IO, "%s: cannot open lock file: %s", path, strerror(errno));
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        if (errno != EWOULDBLOCK)
            RT_FAIL_GOTO(RT_E_IO, "%s: cannot lock: %s", path, strerror(errno));
        ssize_t n = rt_io_read(fd, text, sizeof text - 1);
        text[n > 0 ? n : 0] = 0;
        long pid = strtol(text, NULL, 10);
        if (pid > 0)
            RT_FAIL_GOTO(RT_E_LOCKED, "%s: directory is in use by process %ld", dir, pid);
        RT_FAIL_GOTO(RT_E_LOCKED, "%s: directory is in use by another process", dir);
    }
    int len = snprintf(text, sizeof text, "%ld\n", (long)getpid());
    if (ftruncate(fd, 0) != 0 || rt_io_write_all(fd, text, (size_t)len, NULL) != 0)
        RT_FAIL_GOTO(RT_E_IO, "%s: cannot write: %s", path, strerror(errno));
    l->fd = fd;
    *out = l;
    l = NULL;
    fd = -1;
done:
    if (fd >= 0)
        rt_io_close(fd);
    rt_free(l);
    rt_free(path);
    return st;
}

void rt_lock_release(rt_lock **l) {
    if (!*l)
        return;
    rt_io_close((*l)->fd);
    rt_free(*l);
    *l = NULL;
}

/* ".NAME.tmp-DIGITS-DIGITS" and nothing else. */
static bool is_temp_name(const char *name) {
    const char *mark = NULL;
    for (const char *p = strstr(name, ".tmp-"); p; p = strstr(p + 1, ".tmp-"))
        mark = p;
    if (name[0] != '.' || !mark || mark < name + 2)
        return false;
    const char *pid = mark + strlen(".tmp-");
    size_t n = strspn(pid, "0123456789");
    if (n == 0 || pid[n] != '-')
        return false;
    const char *count = pid + n + 1;
    size_t m = strspn(count, "0123456789");
    return m > 0 && count[m] == 0;
}

rt_status rt_dir_sweep(const char *dir) {
    char **names;
    int64_t n;
    RT_TRY(rt_dir_list(dir, &names, &n));
    rt_status st = RT_OK;
    for (int64_t i = 0; i < n && st == RT_OK; i++) {
        if (!is_temp_name(names[i]))
            continue;
        char *path;
        st = rt_path_join(&path, dir, names[i]);
        if (st != RT_OK)
            break;
        if (rt_io_unlink(path) != 0 && errno != ENOENT)
            st = rt_error_set(RT_E_IO, __FILE__, __LINE__, "%s: cannot remove: %s", path, strerror(errno));
        rt_free(path);
    }
    rt_names_free(names, n);
    return st;
}
