/*
 * file_place.c - where a file that is written stands: its directory, held open, and its name in it.
 *
 * A run may come from a stranger, and a link in it may lead anywhere. So while a directory is locked, everything
 * that is made, replaced, appended to or removed under it is reached from the lock's own descriptor, name by name,
 * and a link on the way is refused. The directory itself is the user's word and may be a link. A path under no lock
 * is also the user's word: it is followed as far as it leads.
 *
 *     RUN / pictures / entropy.png
 *     lock  O_NOFOLLOW  never a link, never anything but a regular file with one name
 *
 * Holding the directory open also means that what was checked is what is written to, even if names are moved meanwhile.
 */
#include "base/alloc.h"
#include "base/file_int.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>

static pthread_mutex_t guards_mutex = PTHREAD_MUTEX_INITIALIZER;
static rt_guard *guards;

void rt_guard_add(rt_guard *g) {
    pthread_mutex_lock(&guards_mutex);
    g->next = guards;
    guards = g;
    pthread_mutex_unlock(&guards_mutex);
}

void rt_guard_remove(const rt_guard *g) {
    pthread_mutex_lock(&guards_mutex);
    rt_guard **at = &guards;
    while (*at && *at != g)
        at = &(*at)->next;
    if (*at)
        *at = g->next;
    pthread_mutex_unlock(&guards_mutex);
}

/* What follows `dir` in the path, without slashes before it; NULL if the path is not under it. */
static const char *below(const char *dir, const char *path) {
    size_t n = strlen(dir);
    while (n > 1 && dir[n - 1] == '/')
        n--;
    if (strncmp(dir, path, n) != 0 || path[n] != '/')
        return NULL;
    path += n;
    return path + strspn(path, "/");
}

/* The outermost guard over the path, as a descriptor of its own; -1 and errno 0: none. */
static int guard_over(const char *path, const char **rest) {
    const rt_guard *found = NULL;
    pthread_mutex_lock(&guards_mutex);
    for (const rt_guard *g = guards; g; g = g->next)
        if (below(g->path, path) && (!found || strlen(g->path) < strlen(found->path)))
            found = g;
    errno = 0;
    int fd = -1;
    if (found) {
        *rest = below(found->path, path);
        fd = fcntl(found->dir, F_DUPFD_CLOEXEC, 0);
    }
    pthread_mutex_unlock(&guards_mutex);
    return fd;
}

static const char *kind_of(mode_t mode) {
    return S_ISDIR(mode)    ? "a directory"
           : S_ISLNK(mode)  ? "a symbolic link"
           : S_ISFIFO(mode) ? "a pipe"
           : S_ISSOCK(mode) ? "a socket"
           : S_ISREG(mode)  ? "a file"
                            : "a device";
}

/* From directory `*dir` into its entry `name`, never through a link; *dir is closed. */
static rt_status step_into(int *dir, const char *path, const char *name, bool make) {
    struct stat info;
    int next = -1, err = 0;
    bool other = false;
    if (make && rt_io_mkdir(*dir, name) == 0)
        err = rt_io_sync_dir_fd(*dir) < 0 ? errno : 0;
    else if (make && errno != EEXIST)
        err = errno;
    if (!err) {
        next = rt_io_open(*dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
        err = next < 0 ? errno : 0;
        other = next < 0 && rt_io_stat(*dir, name, &info, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISDIR(info.st_mode);
    }
    rt_io_close(*dir);
    *dir = next;
    RT_FAIL_IF(other && S_ISLNK(info.st_mode), RT_E_IO,
               "%s: '%s' in it is a symbolic link; a run is not written through links", path, name);
    RT_FAIL_IF(other, RT_E_IO, "%s: '%s' in it is %s, not a directory", path, name, kind_of(info.st_mode));
    RT_FAIL_IF(err, RT_E_IO, "%s: cannot %s directory '%s': %s", path, make ? "make" : "open", name,
               strerror(err));
    return RT_OK;
}

/* Walks `rest` of the path from *dir, as far as its last name, or through it. */
static rt_status walk(int *dir, const char *path, const char *rest, bool through, bool make) {
    char name[256];
    for (size_t n; *rest; rest += n + strspn(rest + n, "/")) {
        n = strcspn(rest, "/");
        if (!through && !rest[n])
            break;
        RT_FAIL_IF(n >= sizeof name, RT_E_IO, "%s: a name in it is too long", path);
        memcpy(name, rest, n);
        name[n] = 0;
        RT_TRY(step_into(dir, path, name, make));
    }
    return RT_OK;
}

rt_status rt_place_open(rt_place *p, const char *path) {
    const char *rest = NULL;
    *p = (rt_place){.dir = guard_over(path, &rest), .name = rt_path_base(path)};
    p->guarded = rest != NULL;
    if (rest) {
        RT_FAIL_IF(p->dir < 0, RT_E_IO, "%s: cannot open its directory: %s", path, strerror(errno));
        return walk(&p->dir, path, rest, false, false);
    }
    char *parent;
    RT_TRY(rt_path_dir(&parent, path));
    p->dir = rt_io_open(AT_FDCWD, parent, O_RDONLY | O_DIRECTORY, 0);
    int err = errno;
    rt_free(parent);
    RT_FAIL_IF(p->dir < 0, RT_E_IO, "%s: cannot open its directory: %s", path, strerror(err));
    return RT_OK;
}

void rt_place_close(rt_place *p) {
    if (p->dir >= 0)
        rt_io_close(p->dir);
    p->dir = -1;
}

rt_status rt_place_make_dir(const char *path, bool *guarded) {
    const char *rest = NULL;
    int dir = guard_over(path, &rest);
    *guarded = rest != NULL;
    if (!rest)
        return RT_OK;
    RT_FAIL_IF(dir < 0, RT_E_IO, "%s: cannot open its directory: %s", path, strerror(errno));
    rt_status st = walk(&dir, path, rest, true, true);
    if (dir >= 0)
        rt_io_close(dir);
    return st;
}

rt_status rt_place_check(const rt_place *p, const char *path, bool link_too, struct stat *info) {
    int r = rt_io_stat(p->dir, p->name, info, AT_SYMLINK_NOFOLLOW);
    if (r != 0 && errno == ENOENT) {
        info->st_mode = 0;
        return RT_OK;
    }
    RT_FAIL_IF(r != 0, RT_E_IO, "%s: cannot stat: %s", path, strerror(errno));
    if (link_too && S_ISLNK(info->st_mode))
        return RT_OK;
    RT_FAIL_IF(!S_ISREG(info->st_mode), RT_E_IO, "%s: is %s, not a regular file; it is not written to", path,
               kind_of(info->st_mode));
    return RT_OK;
}

rt_status rt_place_open_file(const rt_place *p, const char *path, int flags, int *fd) {
    struct stat info;
    *fd = -1;
    RT_TRY(rt_place_check(p, path, false, &info));
    /* What stands there may have changed since: no link is followed, no pipe waited for, and it is looked at again. */
    *fd = rt_io_open(p->dir, p->name, flags | O_NOFOLLOW | O_NONBLOCK, 0666);
    RT_FAIL_IF(*fd < 0, RT_E_IO, "%s: cannot open for writing: %s", path, strerror(errno));
    int r = rt_io_fstat(*fd, &info), err = errno;
    if (r == 0 && S_ISREG(info.st_mode) && info.st_nlink <= 1)
        return RT_OK;
    rt_io_close(*fd);
    *fd = -1;
    RT_FAIL_IF(r != 0, RT_E_IO, "%s: cannot stat: %s", path, strerror(err));
    RT_FAIL_IF(!S_ISREG(info.st_mode), RT_E_IO, "%s: is %s, not a regular file; it is not written to", path,
               kind_of(info.st_mode));
    RT_FAIL(RT_E_IO,
            "%s: is the same file as another name (%ld hard links); writing here would change that, too",
            path, (long)info.st_nlink);
}
