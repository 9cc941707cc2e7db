/*
 * file_write.c - durable writing: replacement of a file, an append-only log, the lock of a directory.
 *
 *     open DIR                           and keep it: all that follows is done in this very directory
 *     open DIR/.NAME.tmp-PID-COUNTER     same directory, hence same file system; never an existing file. It is
 *                                        locked as long as its writer lives
 *     write ... write, fsync, close      data is on disk before it gets the name; a failed fsync is final:
 *                                        the kernel may have dropped the pages, a second fsync would lie
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
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

enum { BUFFER = 1 << 16, NAME_TRIES = 100 };

static bool only_read;

void rt_file_only_read(bool on) {
    only_read = on;
}

bool rt_file_reads_only(void) {
    return only_read;
}

struct rt_writer {
    char *path;
    rt_place at;    /* its directory, and its name there */
    char temp[256]; /* name of the temporary file, there, too */
    int fd;         /* -1: closed */
    bool temp_exists;
    rt_status st; /* first failure; the commit then fails too */
    size_t len;
    uint8_t buf[BUFFER];
};

static atomic_int writers_open;

int rt_writers_open(void) {
    return atomic_load(&writers_open);
}

static void writer_destroy(rt_writer *w) {
    atomic_fetch_sub(&writers_open, 1);
    if (w->temp_exists)
        rt_io_unlink(w->at.dir, w->temp);
    if (w->fd >= 0)
        rt_io_close(w->fd);
    rt_place_close(&w->at);
    rt_free(w->path);
    rt_free(w);
}

/*
 * Opens the place, and learns what stands there. A link that the user named is followed, else the rename would
 * replace the link; a dangling one is replaced.
 */
static rt_status find_target(rt_writer *w, struct stat *old) {
    RT_TRY(rt_place_open(&w->at, w->path));
    RT_TRY(rt_place_check(&w->at, w->path, !w->at.guarded, old));
    if (!S_ISLNK(old->st_mode))
        return RT_OK;
    old->st_mode = 0;
    char *real = realpath(w->path, NULL), *copy;
    if (!real)
        return RT_OK;
    rt_status st = rt_path_join(&copy, NULL, real);
    free(real);
    RT_TRY(st);
    rt_free(w->path);
    w->path = copy;
    rt_place_close(&w->at);
    RT_TRY(rt_place_open(&w->at, w->path));
    return rt_place_check(&w->at, w->path, false, old);
}

/* 200 bytes of the name: the temporary one must not be longer than names may be. */
static rt_status open_temp(rt_writer *w) {
    static atomic_uint counter;
    for (int tries = 0; w->fd < 0; tries++) {
        snprintf(w->temp, sizeof w->temp, ".%.200s.tmp-%ld-%u", w->at.name, (long)getpid(),
                 atomic_fetch_add(&counter, 1));
        w->fd = rt_io_open(w->at.dir, w->temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0666);
        RT_FAIL_IF(w->fd < 0 && (errno != EEXIST || tries == NAME_TRIES), RT_E_IO,
                   "%s: cannot create temporary file %s beside it: %s", w->path, w->temp, strerror(errno));
    }
    w->temp_exists = true;
    (void)flock(w->fd, LOCK_EX | LOCK_NB); /* tells rt_dir_sweep that the writer lives */
    return RT_OK;
}

rt_status rt_writer_open(rt_writer **out, const char *path) {
    *out = NULL;
    RT_FAIL_IF(!*rt_path_base(path), RT_E_USAGE, "\"%s\": not a file name", path);
    rt_writer *w;
    RT_TRY(rt_calloc(&w, 1, sizeof *w));
    atomic_fetch_add(&writers_open, 1);
    w->fd = w->at.dir = -1;
    struct stat old;
    rt_status st;
    RT_TRY_GOTO(rt_path_join(&w->path, NULL, path));
    if (only_read) {
        *out = w;
        return RT_OK;
    }
    RT_TRY_GOTO(find_target(w, &old));
    RT_TRY_GOTO(open_temp(w));
    if (old.st_mode && fchmod(w->fd, old.st_mode & 0777) != 0)
        RT_FAIL_GOTO(RT_E_IO, "%s: cannot keep the file's mode %03o: %s", path, (unsigned)old.st_mode & 0777,
                     strerror(errno));
    *out = w;
    return RT_OK;
done:
    writer_destroy(w);
    return st;
}

static rt_status write_out(rt_writer *w, const void *data, size_t n) {
    if (!only_read && rt_io_write_all(w->fd, data, n, NULL) != 0)
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
    rt_status st = RT_OK;
    if (only_read)
        goto done;
    RT_TRY_GOTO(finish_temp(w));
    if (rt_io_rename(w->at.dir, w->temp, w->at.name) != 0)
        RT_FAIL_GOTO(RT_E_IO, "%s: cannot rename %s to it: %s", w->path, w->temp, strerror(errno));
    w->temp_exists = false;
    if (rt_io_sync_dir_fd(w->at.dir) != 0)
        RT_FAIL_GOTO(RT_E_IO, "%s: cannot sync its directory: %s", w->path, strerror(errno));
done:
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

rt_status rt_file_write_text(const char *path, const rt_str *text) {
    const char *p;
    RT_TRY(rt_str_get(text, &p));
    return rt_file_write_atomic(path, p, text->len);
}

/* ---- before the work ----------------------------------------------------------------------------------- */

static void sweep_of(int dir, const char *name);

/* Asked, it also removes what killed writers of this very file left. */
rt_status rt_file_may_write(const char *path) {
    rt_place p;
    struct stat old;
    RT_FAIL_IF(!*rt_path_base(path), RT_E_USAGE, "\"%s\": not a file name", path);
    if (only_read)
        return RT_OK;
    rt_status st = rt_place_open(&p, path);
    if (st == RT_OK)
        st = rt_place_check(&p, path, !p.guarded, &old);
    if (st == RT_OK && faccessat(p.dir, ".", W_OK | X_OK, AT_EACCESS) != 0)
        st = rt_error_set(RT_E_IO, __FILE__, __LINE__, "%s: its directory cannot be written to: %s", path,
                          strerror(errno));
    if (st == RT_OK)
        sweep_of(p.dir, p.name);
    rt_place_close(&p);
    return st;
}

/* What is there of the path, from its end upwards, must be a directory that can be written to. */
rt_status rt_dir_may_make(const char *path) {
    char *at;
    bool found = false;
    if (only_read)
        return RT_OK;
    RT_TRY(rt_path_join(&at, NULL, path));
    rt_status st = rt_dir_find(at, &found);
    while (st == RT_OK && !found) {
        char *up = NULL;
        if (rt_file_exists(at))
            RT_FAIL_GOTO(RT_E_IO, "%s: cannot make directory: %s is a file", path, at);
        RT_TRY_GOTO(rt_path_dir(&up, at));
        rt_free(at);
        at = up;
        st = rt_dir_find(at, &found);
    }
    if (st == RT_OK && faccessat(AT_FDCWD, at, W_OK | X_OK, AT_EACCESS) != 0)
        st = rt_error_set(RT_E_IO, __FILE__, __LINE__, "%s: %s cannot be written to: %s", path, at,
                          strerror(errno));
done:
    rt_free(at);
    return st;
}

/* ---- appender ------------------------------------------------------------------------------------------ */

struct rt_appender {
    char *path;
    int fd;
    int64_t position;
};

/* Under no lock the file is the user's word: a device or a pipe may be meant. */
static rt_status open_log(const char *path, int *fd) {
    const int flags = O_WRONLY | O_CREAT | O_APPEND;
    rt_place p;
    *fd = -1;
    rt_status st = rt_place_open(&p, path);
    if (st == RT_OK && p.guarded) {
        st = rt_place_open_file(&p, path, flags, fd);
    } else if (st == RT_OK) {
        *fd = rt_io_open(p.dir, p.name, flags, 0666);
        if (*fd < 0)
            st = rt_error_set(RT_E_IO, __FILE__, __LINE__, "%s: cannot open for appending: %s", path,
                              strerror(errno));
    }
    rt_place_close(&p);
    return st;
}

rt_status rt_appender_open(rt_appender **out, const char *path, int64_t truncate_to) {
    *out = NULL;
    rt_appender *a;
    RT_TRY(rt_calloc(&a, 1, sizeof *a));
    a->fd = -1;
    rt_status st;
    struct stat info;
    RT_TRY_GOTO(rt_path_join(&a->path, NULL, path));
    if (only_read) {
        *out = a;
        return RT_OK;
    }
    RT_TRY_GOTO(open_log(path, &a->fd));
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
    if (!only_read && rt_io_write_all(a->fd, text, n, &done) != 0) {
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
    int synced = a->fd < 0 ? 0 : rt_io_fsync(a->fd), err = errno;
    if (synced != 0 && err != EINVAL && err != ENOTSUP) /* a device or pipe cannot be synced */
        st = rt_error_set(RT_E_IO, __FILE__, __LINE__, "%s: cannot sync: %s", a->path, strerror(err));
    if (a->fd >= 0 && rt_io_close(a->fd) != 0 && st == RT_OK)
        st = rt_error_set(RT_E_IO, __FILE__, __LINE__, "%s: cannot close: %s", a->path, strerror(errno));
    rt_free(a->path);
    rt_free(a);
    return st;
}

/* ---- lock and sweep ------------------------------------------------------------------------------------ */

struct rt_lock {
    rt_guard guard;
    int fd;
};

static rt_status take(int fd, const char *path, const char *dir) {
    char text[32];
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        RT_FAIL_IF(errno != EWOULDBLOCK, RT_E_IO, "%s: cannot lock: %s", path, strerror(errno));
        ssize_t n = rt_io_read(fd, text, sizeof text - 1);
        text[n > 0 ? n : 0] = 0;
        long pid = strtol(text, NULL, 10);
        RT_FAIL_IF(pid > 0, RT_E_LOCKED, "%s: directory is in use by process %ld", dir, pid);
        RT_FAIL(RT_E_LOCKED, "%s: directory is in use by another process", dir);
    }
    int len = snprintf(text, sizeof text, "%ld\n", (long)getpid());
    RT_FAIL_IF(ftruncate(fd, 0) != 0 || rt_io_write_all(fd, text, (size_t)len, NULL) != 0, RT_E_IO,
               "%s: cannot write: %s", path, strerror(errno));
    return RT_OK;
}

/* The file stays when the lock goes: removing it would let two processes lock two files of the same name. */
rt_status rt_lock_take(rt_lock **out, const char *dir) {
    *out = NULL;
    rt_lock *l;
    char *path = NULL;
    RT_TRY(rt_calloc(&l, 1, sizeof *l));
    l->fd = l->guard.dir = -1;
    rt_place p = {.dir = -1};
    rt_status st;
    RT_TRY_GOTO(rt_path_join(&l->guard.path, NULL, dir));
    if (only_read) {
        *out = l;
        return RT_OK;
    }
    RT_TRY_GOTO(rt_path_join(&path, dir, ".lock"));
    RT_TRY_GOTO(rt_place_open(&p, path));
    RT_TRY_GOTO(rt_place_open_file(&p, path, O_RDWR | O_CREAT, &l->fd));
    RT_TRY_GOTO(take(l->fd, path, dir));
    l->guard.dir = p.dir;
    p.dir = -1;
    rt_guard_add(&l->guard);
    *out = l;
    l = NULL;
done:
    rt_place_close(&p);
    rt_lock_release(&l);
    rt_free(path);
    return st;
}

void rt_lock_release(rt_lock **lock) {
    rt_lock *l = *lock;
    if (!l)
        return;
    rt_guard_remove(&l->guard);
    if (l->guard.dir >= 0)
        rt_io_close(l->guard.dir);
    if (l->fd >= 0)
        rt_io_close(l->fd);
    rt_free(l->guard.path);
    rt_free(l);
    *lock = NULL;
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

/* A writer that lives holds a lock on its temporary file. */
static bool is_abandoned(int dir, const char *name) {
    int fd = rt_io_open(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
    if (fd < 0)
        return errno != ENOENT; /* a link, or a file that may not be read: no writer of ours */
    const bool alive = flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    rt_io_close(fd);
    return !alive;
}

/* Temporary files of one name, in a directory that is the user's and may hold anything else. */
static void sweep_of(int fd, const char *name) {
    char mine[256];
    const int copy = rt_io_open(fd, ".", O_RDONLY | O_DIRECTORY, 0);
    DIR *dir = copy < 0 ? NULL : fdopendir(copy);
    snprintf(mine, sizeof mine, ".%.200s.tmp-", name);
    for (struct dirent *e; dir && (e = readdir(dir)) != NULL;)
        if (rt_str_starts(e->d_name, mine) && is_temp_name(e->d_name) && is_abandoned(fd, e->d_name))
            (void)rt_io_unlink(fd, e->d_name);
    if (dir)
        closedir(dir);
    else if (copy >= 0)
        rt_io_close(copy);
}

/* Takes over `fd`. */
static rt_status sweep(int fd, const char *path, int depth) {
    DIR *dir = fdopendir(fd);
    if (!dir)
        rt_io_close(fd);
    RT_FAIL_IF(!dir, RT_E_IO, "%s: cannot read directory: %s", path, strerror(errno));
    rt_status st = RT_OK;
    for (struct dirent *e; st == RT_OK && (e = readdir(dir)) != NULL;) {
        if (is_temp_name(e->d_name) && is_abandoned(fd, e->d_name)) {
            if (rt_io_unlink(fd, e->d_name) != 0 && errno != ENOENT && errno != EISDIR)
                st = rt_error_set(RT_E_IO, __FILE__, __LINE__, "%s: cannot remove %s: %s", path, e->d_name,
                                  strerror(errno));
        } else if (depth > 0 && e->d_name[0] != '.' && (e->d_type == DT_DIR || e->d_type == DT_UNKNOWN)) {
            int inner = rt_io_open(fd, e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
            if (inner >= 0) /* one that may not be read is not ours */
                st = sweep(inner, path, depth - 1);
        }
    }
    closedir(dir);
    return st;
}

rt_status rt_dir_sweep(const char *dir) {
    char *inside;
    rt_place p;
    if (only_read)
        return RT_OK;
    RT_TRY(rt_path_join(&inside, dir, "."));
    rt_status st = rt_place_open(&p, inside); /* the directory that "." is in */
    if (st == RT_OK) {
        st = sweep(p.dir, dir, 1);
        p.dir = -1;
    }
    rt_place_close(&p);
    rt_free(inside);
    return st;
}
