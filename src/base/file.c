/*
 * file.c - the system call table, and reading: whole files, directories, paths. Writing is in file_write.c.
 *
 * A signal may interrupt any slow call; each is then repeated, but not for ever: a file system that answers
 * EINTR a hundred times is broken and is reported. close is never repeated, on Linux the descriptor is gone
 * even when close says EINTR.
 */
#include "base/file.h"
#include "base/alloc.h"
#include "base/file_int.h"
#include "base/size.h"
#include "base/stop.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RETRY_MAX = 100, READ_MAX = 16 << 20 };

static int posix_openat(int dir, const char *path, int flags, mode_t mode) {
    return openat(dir, path, flags, mode);
}
static int posix_renameat(int dir, const char *from, const char *to) {
    return renameat(dir, from, dir, to);
}
static int posix_unlinkat(int dir, const char *path) {
    return unlinkat(dir, path, 0);
}

const rt_io rt_io_posix = {
    .openat = posix_openat,
    .read = read,
    .write = write,
    .fsync = fsync,
    .close = close,
    .renameat = posix_renameat,
    .unlinkat = posix_unlinkat,
    .mkdirat = mkdirat,
    .fstat = fstat,
    .fstatat = fstatat,
};

static _Atomic(const rt_io *) current_io = &rt_io_posix;

const rt_io *rt_io_get(void) {
    return atomic_load_explicit(&current_io, memory_order_acquire);
}

void rt_io_set(const rt_io *io) {
    atomic_store_explicit(&current_io, io ? io : &rt_io_posix, memory_order_release);
}

#define RETRY(result, call)                                                                                  \
    do {                                                                                                     \
        int tries_ = 0;                                                                                      \
        do                                                                                                   \
            (result) = (call);                                                                               \
        while ((result) < 0 && errno == EINTR && ++tries_ < RETRY_MAX);                                      \
    } while (0)

int rt_io_open(int dir, const char *path, int flags, mode_t mode) {
    int fd;
    RETRY(fd, rt_io_get()->openat(dir, path, flags | O_CLOEXEC, mode));
    return fd;
}

ssize_t rt_io_read(int fd, void *buf, size_t n) {
    ssize_t k;
    RETRY(k, rt_io_get()->read(fd, buf, n));
    return k;
}

int rt_io_fsync(int fd) {
    int r;
    RETRY(r, rt_io_get()->fsync(fd));
    return r;
}

int rt_io_fstat(int fd, struct stat *info) {
    int r;
    RETRY(r, rt_io_get()->fstat(fd, info));
    return r;
}

int rt_io_stat(int dir, const char *path, struct stat *info, int flags) {
    int r;
    RETRY(r, rt_io_get()->fstatat(dir, path, info, flags));
    return r;
}

int rt_io_mkdir(int dir, const char *path) {
    int r;
    RETRY(r, rt_io_get()->mkdirat(dir, path, 0777));
    return r;
}

int rt_io_unlink(int dir, const char *path) {
    int r;
    RETRY(r, rt_io_get()->unlinkat(dir, path));
    return r;
}

int rt_io_rename(int dir, const char *from, const char *to) {
    int r;
    RETRY(r, rt_io_get()->renameat(dir, from, to));
    return r;
}

int rt_io_close(int fd) {
    int r = rt_io_get()->close(fd);
    return r < 0 && errno == EINTR ? 0 : r;
}

int rt_io_write_all(int fd, const void *buf, size_t n, size_t *done) {
    const unsigned char *p = buf;
    size_t at = 0;
    int r = 0;
    while (at < n && r == 0) {
        ssize_t k;
        RETRY(k, rt_io_get()->write(fd, p + at, n - at));
        if (k > 0)
            at += (size_t)k;
        else
            r = -1;
        if (k == 0)
            errno = EIO; /* a call that neither writes nor fails would loop for ever */
    }
    if (done)
        *done = at;
    return r;
}

int rt_io_sync_dir_fd(int fd) {
    int r = rt_io_fsync(fd);
    return r < 0 && (errno == EINVAL || errno == ENOTSUP) ? 0 : r;
}

/* A file that is not there or may not be read is the user's input; anything else is the machine's fault. */
static rt_status read_failure(int err) {
    switch (err) {
    case ENOENT:
    case ENOTDIR:
    case EISDIR:
    case ELOOP:
    case ENAMETOOLONG:
    case EACCES:
    case EPERM:
        return RT_E_INPUT;
    default:
        return RT_E_IO;
    }
}

/* Reads to the end of file. The size is a hint: files under /proc say 0, others grow or shrink meanwhile. */
static rt_status read_to_end(int fd, const char *path, size_t hint, size_t max_bytes, uint8_t **data,
                             size_t *n) {
    size_t cap, len = 0;
    uint8_t *buf = NULL;
    rt_status st = RT_OK;
    /* One byte to notice the end without growing, one for the terminator. */
    if (!rt_size_add(hint, 2, &cap))
        RT_FAIL(RT_E_MEMORY, "%s: %zu bytes do not fit into memory", path, hint);
    RT_TRY_GOTO(rt_alloc(&buf, cap));
    for (;;) {
        if (len + 1 == cap) {
            size_t bigger;
            if (!rt_size_mul(cap, 2, &bigger))
                RT_FAIL_GOTO(RT_E_MEMORY, "%s: does not fit into memory", path);
            RT_TRY_GOTO(rt_realloc(&buf, len, bigger));
            cap = bigger;
        }
        if (len >= READ_MAX) /* a small file is read faster than it is refused */
            RT_TRY_GOTO(rt_stop_check("reading", path));
        ssize_t k = rt_io_read(fd, buf + len, RT_MIN(cap - 1 - len, (size_t)READ_MAX));
        if (k < 0)
            RT_FAIL_GOTO(read_failure(errno), "%s: cannot read at offset %zu: %s", path, len,
                         strerror(errno));
        if (k == 0)
            break;
        len += (size_t)k;
        if (len > max_bytes)
            RT_FAIL_GOTO(RT_E_INPUT, "%s: more than %zu bytes, wanted at most that many", path, max_bytes);
    }
    buf[len] = 0;
    *data = buf;
    *n = len;
    buf = NULL;
done:
    rt_free(buf);
    return st;
}

rt_status rt_file_read(const char *path, size_t max_bytes, uint8_t **data, size_t *n) {
    *data = NULL;
    *n = 0;
    /* Not blocking: opening a pipe without a writer would hang before it can be refused. */
    int fd = rt_io_open(AT_FDCWD, path, O_RDONLY | O_NONBLOCK, 0);
    RT_FAIL_IF(fd < 0, read_failure(errno), "%s: cannot open: %s", path, strerror(errno));
    rt_status st;
    struct stat info;
    if (rt_io_fstat(fd, &info) != 0)
        RT_FAIL_GOTO(RT_E_IO, "%s: cannot stat: %s", path, strerror(errno));
    if (S_ISDIR(info.st_mode))
        RT_FAIL_GOTO(RT_E_INPUT, "%s: is a directory, wanted a file", path);
    if (!S_ISREG(info.st_mode))
        RT_FAIL_GOTO(RT_E_INPUT, "%s: is not a regular file (pipes and devices are not read)", path);
    if (info.st_size < 0 || (uint64_t)info.st_size > max_bytes)
        RT_FAIL_GOTO(RT_E_INPUT, "%s: %lld bytes, wanted at most %zu", path, (long long)info.st_size,
                     max_bytes);
    RT_TRY_GOTO(read_to_end(fd, path, (size_t)info.st_size, max_bytes, data, n));
done:
    rt_io_close(fd); /* opened for reading only: nothing can be lost */
    return st;
}

static rt_status find(const char *path, bool dir, bool *found) {
    struct stat info;
    int r = rt_io_stat(AT_FDCWD, path, &info, 0), err = r == 0 ? 0 : errno;
    *found = r == 0 && !!S_ISDIR(info.st_mode) == dir;
    RT_FAIL_IF(err && err != ENOENT && err != ENOTDIR, read_failure(err),
               "%s: cannot tell whether it is there: %s", path, strerror(err));
    return RT_OK;
}

rt_status rt_file_find(const char *path, bool *found) {
    return find(path, false, found);
}

rt_status rt_dir_find(const char *path, bool *found) {
    return find(path, true, found);
}

bool rt_file_exists(const char *path) {
    struct stat info;
    return rt_io_stat(AT_FDCWD, path, &info, 0) == 0 && !S_ISDIR(info.st_mode);
}

bool rt_dir_exists(const char *path) {
    struct stat info;
    return rt_io_stat(AT_FDCWD, path, &info, 0) == 0 && S_ISDIR(info.st_mode);
}

rt_status rt_file_remove(const char *path) {
    rt_place p;
    if (rt_file_reads_only())
        return RT_OK;
    rt_status st = rt_place_open(&p, path);
    if (st == RT_OK && rt_io_unlink(p.dir, p.name) != 0 && errno != ENOENT)
        st = rt_error_set(RT_E_IO, __FILE__, __LINE__, "%s: cannot be removed: %s", path, strerror(errno));
    rt_place_close(&p);
    return st;
}

void rt_file_discard(const char *path) {
    if (!rt_file_reads_only() && rt_io_unlink(AT_FDCWD, path) != 0)
        (void)unlinkat(AT_FDCWD, path, AT_REMOVEDIR);
}

/* Makes the last directory of the path, and its name in the parent durable. */
static rt_status make_one(const char *path) {
    if (rt_io_mkdir(AT_FDCWD, path) != 0) {
        int err = errno;
        if (err == EEXIST && rt_dir_exists(path))
            return RT_OK; /* somebody else was faster */
        RT_FAIL(RT_E_IO, "%s: cannot make directory: %s", path, strerror(err));
    }
    char *parent;
    RT_TRY(rt_path_dir(&parent, path));
    int fd = rt_io_open(AT_FDCWD, parent, O_RDONLY | O_DIRECTORY, 0);
    int err = 0;
    if (fd >= 0) { /* a parent that may be written but not read cannot be synced; that is no reason to fail */
        err = rt_io_sync_dir_fd(fd) < 0 ? errno : 0;
        rt_io_close(fd);
    }
    rt_free(parent);
    RT_FAIL_IF(err, RT_E_IO, "%s: cannot sync the directory it is in: %s", path, strerror(err));
    return RT_OK;
}

rt_status rt_dir_make(const char *path) {
    RT_FAIL_IF(!*path, RT_E_USAGE, "directory name is empty");
    if (rt_file_reads_only())
        return RT_OK;
    bool made;
    RT_TRY(rt_place_make_dir(path, &made));
    if (made)
        return RT_OK;
    char *copy = NULL;
    RT_TRY(rt_path_join(&copy, NULL, path));
    rt_status st = RT_OK;
    for (char *p = copy + 1; st == RT_OK && p[-1]; p++) {
        char c = *p;
        if (c && c != '/')
            continue;
        *p = 0;
        if (!rt_dir_exists(copy))
            st = make_one(copy);
        *p = c;
    }
    rt_free(copy);
    return st;
}

static int compare_names(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

rt_status rt_dir_list(const char *path, char ***names, int64_t *n) {
    *names = NULL;
    *n = 0;
    DIR *dir = opendir(path);
    RT_FAIL_IF(!dir, read_failure(errno), "%s: cannot open directory: %s", path, strerror(errno));
    rt_status st = RT_OK;
    char **list = NULL;
    int64_t count = 0, cap = 0;
    for (;;) {
        errno = 0;
        struct dirent *e = readdir(dir);
        if (!e) {
            if (errno)
                RT_FAIL_GOTO(RT_E_IO, "%s: cannot read directory: %s", path, strerror(errno));
            break;
        }
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        if (count == cap) {
            int64_t bigger = cap ? cap * 2 : 16;
            RT_TRY_GOTO(rt_realloc(&list, (size_t)cap * sizeof *list, (size_t)bigger * sizeof *list));
            cap = bigger;
        }
        RT_TRY_GOTO(rt_path_join(&list[count], NULL, e->d_name));
        count++;
    }
    if (count > 0)
        qsort(list, (size_t)count, sizeof *list, compare_names);
    *names = list;
    *n = count;
    list = NULL;
done:
    closedir(dir);
    if (list)
        rt_names_free(list, count);
    return st;
}

void rt_names_free(char **names, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        rt_free(names[i]);
    rt_free(names);
}

rt_status rt_path_join(char **out, const char *dir, const char *name) {
    *out = NULL;
    size_t nd = dir && name[0] != '/' ? strlen(dir) : 0, nn = strlen(name);
    size_t slash = nd > 0 && dir[nd - 1] != '/';
    char *p;
    RT_TRY(rt_alloc(&p, nd + slash + nn + 1));
    if (nd)
        memcpy(p, dir, nd);
    if (slash)
        p[nd] = '/';
    memcpy(p + nd + slash, name, nn + 1);
    *out = p;
    return RT_OK;
}

rt_status rt_path_expand(char **out, const char *path) {
    *out = NULL;
    if (path[0] != '~' || path[1] != '/')
        return rt_path_join(out, NULL, path);
    const char *home = getenv("HOME");
    RT_FAIL_IF(!home || !*home, RT_E_USAGE, "%s: HOME is not set", path);
    return rt_path_join(out, home, path + 2);
}

rt_status rt_path_dir(char **out, const char *path) {
    const char *slash = strrchr(path, '/');
    RT_TRY(rt_path_join(out, NULL, slash ? path : "."));
    if (slash)
        (*out)[slash == path ? 1 : slash - path] = 0;
    return RT_OK;
}

const char *rt_path_base(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}
