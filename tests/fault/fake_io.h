/*
 * fake_io.h - the system call table with faults. Calls are numbered from 1; the chosen ones fail, write
 * short, or kill the process.
 */
#ifndef RT_TESTS_FAULT_FAKE_IO_H
#define RT_TESTS_FAULT_FAKE_IO_H

#include "base/file.h"
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

typedef enum fault_kind {
    FAULT_NONE,
    FAULT_ERRNO,       /* the call fails with `err` and does nothing */
    FAULT_SHORT,       /* reads and writes move one byte less than a half of what was asked, at least one */
    FAULT_KILL_BEFORE, /* SIGKILL instead of the call */
    FAULT_KILL_AFTER,  /* SIGKILL once the call is done */
} fault_kind;

typedef enum call_kind {
    CALL_OPEN,
    CALL_READ,
    CALL_WRITE,
    CALL_FSYNC,
    CALL_CLOSE,
    CALL_RENAME,
    CALL_UNLINK,
    CALL_MKDIR,
    CALL_FSTAT,
    CALL_STAT
} call_kind;

typedef struct fake_state {
    fault_kind kind;
    int err;
    int64_t at;         /* number of the first faulty call */
    bool persistent;    /* all later calls are faulty too */
    bool spare_cleanup; /* close and unlink always work */
    int64_t calls;      /* calls so far */
    bool hit, renamed;  /* a fault was injected; a rename was done */
    call_kind hit_call; /* the first faulty call ... */
    bool hit_late;      /* ... came after the rename */
} fake_state;

static fake_state fake;

static bool fake_hits(call_kind c) {
    fake.calls++;
    if (fake.kind == FAULT_NONE || (fake.spare_cleanup && (c == CALL_CLOSE || c == CALL_UNLINK)))
        return false;
    bool now = fake.persistent ? fake.calls >= fake.at : fake.calls == fake.at;
    if (now && !fake.hit) {
        fake.hit_call = c;
        fake.hit_late = fake.renamed;
    }
    fake.hit = fake.hit || now;
    return now;
}

static size_t fake_short(size_t n) {
    return n <= 2 ? n : n / 2 - 1 + (n < 4);
}

/* Body of a faulty call: `real` is done unless the fault forbids it. */
#define FAKE_CALL(c, real)                                                                                   \
    do {                                                                                                     \
        bool hit_ = fake_hits(c);                                                                            \
        if (hit_ && fake.kind == FAULT_ERRNO) {                                                              \
            errno = fake.err;                                                                                \
            return -1;                                                                                       \
        }                                                                                                    \
        if (hit_ && fake.kind == FAULT_KILL_BEFORE)                                                          \
            raise(SIGKILL);                                                                                  \
        bool less_ RT_UNUSED = hit_ && fake.kind == FAULT_SHORT;                                             \
        __typeof__(real) result_ = (real);                                                                   \
        if (hit_ && fake.kind == FAULT_KILL_AFTER)                                                           \
            raise(SIGKILL);                                                                                  \
        return result_;                                                                                      \
    } while (0)

static int fake_open(int dir, const char *path, int flags, mode_t mode) {
    FAKE_CALL(CALL_OPEN, rt_io_posix.openat(dir, path, flags, mode));
}
static ssize_t fake_read(int fd, void *buf, size_t n) {
    FAKE_CALL(CALL_READ, rt_io_posix.read(fd, buf, less_ ? fake_short(n) : n));
}
static ssize_t fake_write(int fd, const void *buf, size_t n) {
    FAKE_CALL(CALL_WRITE, rt_io_posix.write(fd, buf, less_ ? fake_short(n) : n));
}
/* Nothing is really synced: what a sync protects from is modelled in test_file_crash.c, and disks are slow.
 */
static int fake_fsync(int fd) {
    FAKE_CALL(CALL_FSYNC, fd < 0 ? -1 : 0);
}
static int fake_mkdir(int dir, const char *path, mode_t mode) {
    FAKE_CALL(CALL_MKDIR, rt_io_posix.mkdirat(dir, path, mode));
}
static int fake_fstat(int fd, struct stat *st) {
    FAKE_CALL(CALL_FSTAT, rt_io_posix.fstat(fd, st));
}
static int fake_stat(int dir, const char *path, struct stat *st, int flags) {
    FAKE_CALL(CALL_STAT, rt_io_posix.fstatat(dir, path, st, flags));
}
static int fake_unlink(int dir, const char *path) {
    FAKE_CALL(CALL_UNLINK, rt_io_posix.unlinkat(dir, path));
}

/* As in Linux: the descriptor is gone whatever close says. */
static int fake_close(int fd) {
    bool hit = fake_hits(CALL_CLOSE);
    if (hit && fake.kind == FAULT_KILL_BEFORE)
        raise(SIGKILL);
    int r = rt_io_posix.close(fd);
    if (hit && fake.kind == FAULT_KILL_AFTER)
        raise(SIGKILL);
    if (hit && fake.kind == FAULT_ERRNO) {
        errno = fake.err;
        return -1;
    }
    return r;
}

static int fake_really_rename(int dir, const char *from, const char *to) {
    int r = rt_io_posix.renameat(dir, from, to);
    fake.renamed = fake.renamed || r == 0;
    return r;
}
static int fake_rename(int dir, const char *from, const char *to) {
    FAKE_CALL(CALL_RENAME, fake_really_rename(dir, from, to));
}

static const rt_io fake_io = {
    .openat = fake_open,
    .read = fake_read,
    .write = fake_write,
    .fsync = fake_fsync,
    .close = fake_close,
    .renameat = fake_rename,
    .unlinkat = fake_unlink,
    .mkdirat = fake_mkdir,
    .fstat = fake_fstat,
    .fstatat = fake_stat,
};

static inline void fake_begin(fake_state s) {
    fake = s;
    rt_io_set(&fake_io);
}
static inline void fake_end(void) {
    rt_io_set(NULL);
}

#endif
