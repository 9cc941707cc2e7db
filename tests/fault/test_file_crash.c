/*
 * test_file_crash.c - the process is killed at any system call of a save; the power fails at any moment.
 *
 * Kill: a child is killed before or after its n-th call, for every n. The file is the old or the new one,
 * and the next start's sweep removes what is left.
 *
 * Power: the calls of one save are written down, then every state that a disk may be in after a power cut is
 * derived. Data that was not synced may be missing or torn at any multiple of 512 bytes; a rename that was
 * not followed by a sync of the directory may be undone, and it may be kept although the data behind the
 * name is not. In each state the name must lead to all of the old or all of the new bytes; once the save was
 * reported as done, to the new ones.
 */
#include "fault/fake_io.h"
#include "support/tmpdir.h"
#include <fcntl.h>
#include <sys/wait.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { OLD_SIZE = 3000, NEW_SIZE = 150000, OPS_MAX = 2000, SECTOR = 512 };

static tmpdir dir;
static char old_data[OLD_SIZE], new_data[NEW_SIZE];

static int setup(void **state) {
    (void)state;
    memset(old_data, 'o', sizeof old_data);
    for (int i = 0; i < NEW_SIZE; i++)
        new_data[i] = (char)(i * 11 + i / 500);
    return tmpdir_make(&dir) ? 0 : -1;
}

static int teardown(void **state) {
    (void)state;
    rt_io_set(NULL);
    tmpdir_remove(&dir);
    return 0;
}

static rt_status save(const char *path) {
    rt_writer *w;
    RT_TRY(rt_writer_open(&w, path));
    rt_status st = RT_OK;
    for (size_t at = 0; at < NEW_SIZE && st == RT_OK; at += 10000)
        st = rt_writer_write(w, new_data + at, RT_MIN((size_t)10000, NEW_SIZE - at));
    if (st != RT_OK) {
        rt_writer_abandon(&w);
        return st;
    }
    return rt_writer_commit(&w);
}

/* Whether the child was killed; false when it got through. */
static bool save_and_die(const char *path, fault_kind kind, int64_t n) {
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        fake_begin((fake_state){.kind = kind, .at = n});
        _exit(save(path) == RT_OK ? 0 : 1);
    }
    int how;
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFSIGNALED(how) || WEXITSTATUS(how) == 0);
    return WIFSIGNALED(how);
}

static void test_kill_at_every_call(void **state) {
    (void)state;
    const char *path = tmpdir_path(&dir, "model.bin");
    for (int kind = FAULT_KILL_BEFORE; kind <= FAULT_KILL_AFTER; kind++) {
        bool killed = true, was_new = false;
        for (int64_t n = 1; killed; n++) {
            assert_true(file_put(path, old_data, OLD_SIZE));
            killed = save_and_die(path, (fault_kind)kind, n);
            bool is_new = file_holds(path, new_data, NEW_SIZE);
            assert_true(is_new || (killed && file_holds(path, old_data, OLD_SIZE)));
            assert_false(was_new && !is_new); /* one moment of replacement */
            was_new = is_new;
            assert_int_equal(rt_dir_sweep(dir.path), RT_OK);
            char **names;
            int64_t count;
            assert_int_equal(rt_dir_list(dir.path, &names, &count), RT_OK);
            assert_int_equal(count, 1);
            rt_names_free(names, count);
        }
    }
}

/* ---- power ------------------------------------------------------------------------------------------------
 */

typedef enum op_kind { OP_CREATE, OP_WRITE, OP_SYNC_FILE, OP_RENAME, OP_SYNC_DIR } op_kind;

static struct {
    op_kind kind;
    size_t bytes;
} ops[OPS_MAX];
static int64_t nops;
static int temp_fd, dir_fd;

static void note(op_kind kind, size_t bytes) {
    assert_true(nops < OPS_MAX);
    ops[nops].kind = kind;
    ops[nops++].bytes = bytes;
}

static int log_open(int from, const char *path, int flags, mode_t mode) {
    int fd = rt_io_posix.openat(from, path, flags, mode);
    if (flags & O_DIRECTORY) {
        dir_fd = fd;
    } else {
        assert_true(flags & O_EXCL);
        temp_fd = fd;
        note(OP_CREATE, 0);
    }
    return fd;
}

static ssize_t log_write(int fd, const void *buf, size_t n) {
    assert_int_equal(fd, temp_fd);
    n = RT_MIN(n, (size_t)20000); /* short writes: more states */
    note(OP_WRITE, n);
    return rt_io_posix.write(fd, buf, n);
}

static int log_fsync(int fd) {
    assert_true(fd == temp_fd || fd == dir_fd);
    note(fd == temp_fd ? OP_SYNC_FILE : OP_SYNC_DIR, 0);
    return 0;
}

static int log_close(int fd) {
    if (fd == temp_fd)
        temp_fd = -1;
    if (fd == dir_fd)
        dir_fd = -1;
    return rt_io_posix.close(fd);
}

static int log_rename(int in, const char *from, const char *to) {
    note(OP_RENAME, 0);
    return rt_io_posix.renameat(in, from, to);
}

/* Checks all disks that may result when the power fails after the first n operations. Returns their number.
 */
static int64_t check_states(int64_t n, bool reported) {
    size_t written = 0, synced = 0;
    bool renamed = false, rename_synced = false;
    for (int64_t i = 0; i < n; i++) {
        switch (ops[i].kind) {
        case OP_CREATE:
            break;
        case OP_WRITE:
            written += ops[i].bytes;
            break;
        case OP_SYNC_FILE:
            synced = written;
            break;
        case OP_RENAME:
            renamed = true;
            break;
        case OP_SYNC_DIR:
            rename_synced = renamed;
            break;
        }
    }
    int64_t states = 0;
    /* Any length between the synced bytes and all of them; the name old or new as far as the sync leaves it
     * open. */
    for (size_t length = synced; length <= written;
         length = length == written ? written + 1 : RT_MIN(length + SECTOR, written))
        for (int name_is_new = rename_synced; name_is_new <= renamed; name_is_new++) {
            states++;
            if (name_is_new)
                assert_int_equal(length,
                                 NEW_SIZE); /* a shorter one would be a torn file under the good name */
            assert_true(name_is_new || !reported);
        }
    return states;
}

static void test_power_loss(void **state) {
    (void)state;
    const char *path = tmpdir_path(&dir, "model.bin");
    assert_true(file_put(path, old_data, OLD_SIZE));
    rt_io io = rt_io_posix;
    io.openat = log_open;
    io.write = log_write;
    io.fsync = log_fsync;
    io.close = log_close;
    io.renameat = log_rename;
    nops = 0;
    temp_fd = dir_fd = -1;
    rt_io_set(&io);
    assert_int_equal(save(path), RT_OK);
    rt_io_set(NULL);
    assert_true(file_holds(path, new_data, NEW_SIZE));
    int64_t states = 0;
    for (int64_t n = 0; n <= nops; n++)
        states += check_states(n, n == nops);
    assert_true(states > 1000);
}

#define CRASH_TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {CRASH_TEST(test_kill_at_every_call), CRASH_TEST(test_power_loss)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
