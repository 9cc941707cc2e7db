/*
 * test_file_faults.c - every system call and every allocation of the file layer fails, one at a time and
 * from then on.
 *
 * Whatever fails: the old file is byte-identical or the new one is complete, a reported success is a
 * success, a failure names the path and the reason, no temporary file stays behind as long as unlink works,
 * and no memory is lost.
 */
#include "base/alloc.h"
#include "fault/fake_io.h"
#include "support/tmpdir.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum {
    OLD_SIZE = 1000,
    NEW_SIZE = 200000
}; /* new: more than the writer's buffer, so that it writes several times */

static tmpdir dir;
static char old_data[OLD_SIZE], new_data[NEW_SIZE];
static const int errors[] = {ENOSPC, EIO, EDQUOT, EROFS, EINTR};

static int setup(void **state) {
    (void)state;
    memset(old_data, 'o', sizeof old_data);
    for (int i = 0; i < NEW_SIZE; i++)
        new_data[i] = (char)(i * 7 + i / 300);
    return tmpdir_make(&dir) ? 0 : -1;
}

static int teardown(void **state) {
    (void)state;
    rt_io_set(NULL);
    rt_alloc_set_hook(NULL, NULL);
    tmpdir_remove(&dir);
    return 0;
}

static int64_t entries(void) {
    char **names;
    int64_t n;
    assert_int_equal(rt_dir_list(dir.path, &names, &n), RT_OK);
    rt_names_free(names, n);
    return n;
}

static uint64_t live_blocks(void) {
    rt_alloc_stats s;
    rt_alloc_get_stats(&s);
    return s.live_blocks;
}

static rt_status save_at_once(const char *path) {
    return rt_file_write_atomic(path, new_data, NEW_SIZE);
}

/* In pieces, going on after a failed write as a careless caller would: the commit must still refuse. */
static rt_status save_in_pieces(const char *path) {
    rt_writer *w;
    RT_TRY(rt_writer_open(&w, path));
    rt_status first = RT_OK;
    for (size_t at = 0; at < NEW_SIZE; at += 997) {
        rt_status st = rt_writer_write(w, new_data + at, RT_MIN((size_t)997, NEW_SIZE - at));
        first = first == RT_OK ? st : first;
    }
    rt_status st = rt_writer_commit(&w);
    assert_null(w);
    assert_false(first != RT_OK && st == RT_OK);
    return st;
}

typedef rt_status (*save_fn)(const char *path);
static const save_fn savers[] = {save_at_once, save_in_pieces};

/* One save with one fault. Returns whether the fault was reached. */
static bool save_with_fault(save_fn save, fake_state fault) {
    const char *path = tmpdir_path(&dir, "model.bin");
    assert_true(file_put(path, old_data, OLD_SIZE));
    uint64_t blocks = live_blocks();
    rt_error_clear();
    fake_begin(fault);
    rt_status st = save(path);
    fake_end();
    bool good_new = file_holds(path, new_data, NEW_SIZE), good_old = file_holds(path, old_data, OLD_SIZE);
    assert_true(good_old || good_new);
    assert_true(good_new == fake.renamed);
    assert_int_equal(live_blocks(), blocks);
    if (st == RT_OK) {
        assert_true(good_new);
    } else {
        assert_true(fake.hit);
        assert_int_equal(st, RT_E_IO);
        assert_non_null(strstr(rt_error_text(), path));
        /* A new file under a reported failure is possible only when the directory could not be synced. */
        assert_true(good_old || fake.hit_call == CALL_FSYNC || fake.persistent);
    }
    /* No failure may pass unnoticed, but for the close of the directory, behind which nothing can be lost. */
    bool harmless = fault.err == EINTR || (fake.hit_call == CALL_CLOSE && fake.hit_late);
    if (fake.hit && fault.kind == FAULT_ERRNO && !harmless)
        assert_int_equal(st, RT_E_IO);
    bool unlink_works = !fault.persistent || fault.spare_cleanup;
    if (!unlink_works)
        assert_int_equal(rt_dir_sweep(dir.path), RT_OK);
    if (fault.kind == FAULT_ERRNO && fault.err == EINTR && !fault.persistent)
        assert_int_equal(st, RT_OK);
    if (fault.kind == FAULT_SHORT)
        assert_int_equal(st, RT_OK);
    assert_int_equal(entries(), 1);
    return fake.hit;
}

static void test_save(void **state) {
    (void)state;
    for (int64_t s = 0; s < RT_COUNT(savers); s++)
        for (int64_t e = 0; e < RT_COUNT(errors); e++)
            for (int mode = 0; mode < 3; mode++) {
                int64_t n = 1;
                while (save_with_fault(savers[s], (fake_state){.kind = FAULT_ERRNO,
                                                               .err = errors[e],
                                                               .at = n,
                                                               .persistent = mode > 0,
                                                               .spare_cleanup = mode == 1}))
                    n++;
                assert_true(n > 8); /* open, stat, open, write, fsync, close, rename, fsync, close */
            }
}

static void test_save_message(void **state) {
    (void)state;
    save_with_fault(save_at_once,
                    (fake_state){.kind = FAULT_ERRNO, .err = ENOSPC, .at = 2, .persistent = true});
    assert_non_null(strstr(rt_error_text(), "No space left on device"));
}

static void test_short_writes(void **state) {
    (void)state;
    for (int64_t s = 0; s < RT_COUNT(savers); s++) {
        for (int64_t n = 1; save_with_fault(savers[s], (fake_state){.kind = FAULT_SHORT, .at = n}); n++)
            ;
        save_with_fault(savers[s], (fake_state){.kind = FAULT_SHORT, .at = 1, .persistent = true});
    }
}

/* The unlink of the clean-up fails once: the file stays, the sweep of the next start removes it. */
static void test_sweep_after_failed_cleanup(void **state) {
    (void)state;
    const char *path = tmpdir_path(&dir, "model.bin");
    assert_true(file_put(path, old_data, OLD_SIZE));
    fake_begin(
        (fake_state){.kind = FAULT_ERRNO, .err = EIO, .at = 4, .persistent = true}); /* from write on */
    assert_int_equal(save_at_once(path), RT_E_IO);
    assert_int_equal(rt_dir_sweep(dir.path), RT_E_IO);
    fake_end();
    assert_int_equal(entries(), 2);
    assert_int_equal(rt_dir_sweep(dir.path), RT_OK);
    assert_int_equal(entries(), 1);
    assert_true(file_holds(path, old_data, OLD_SIZE));
}

static void test_read(void **state) {
    (void)state;
    const char *path = tmpdir_path(&dir, "data.bin");
    assert_true(file_put(path, new_data, NEW_SIZE));
    for (int64_t e = 0; e <= RT_COUNT(errors); e++)
        for (int persistent = 0; persistent < 2; persistent++) {
            bool shortened = e == RT_COUNT(errors);
            int64_t n = 1;
            do {
                uint8_t *data;
                size_t size;
                uint64_t blocks = live_blocks();
                fake_begin((fake_state){.kind = shortened ? FAULT_SHORT : FAULT_ERRNO,
                                        .err = shortened ? 0 : errors[e],
                                        .at = n,
                                        .persistent = persistent});
                rt_status st = rt_file_read(path, NEW_SIZE, &data, &size);
                fake_end();
                if (st == RT_OK) {
                    assert_int_equal(size, NEW_SIZE);
                    assert_memory_equal(data, new_data, NEW_SIZE);
                    rt_free(data);
                } else {
                    assert_null(data);
                    assert_false(shortened || (errors[e] == EINTR && !persistent));
                    assert_non_null(strstr(rt_error_text(), path));
                }
                assert_int_equal(live_blocks(), blocks);
                n++;
            } while (fake.hit);
            assert_true(n > 4);
        }
}

static void test_appender(void **state) {
    (void)state;
    const char *path = tmpdir_path(&dir, "log.jsonl");
    for (int64_t e = 0; e <= RT_COUNT(errors); e++)
        for (int persistent = 0; persistent < 2; persistent++) {
            bool shortened = e == RT_COUNT(errors);
            int64_t n = 1;
            do {
                unlink(path);
                char want[100] = "";
                uint64_t blocks = live_blocks();
                fake_begin((fake_state){.kind = shortened ? FAULT_SHORT : FAULT_ERRNO,
                                        .err = shortened ? 0 : errors[e],
                                        .at = n,
                                        .persistent = persistent});
                rt_appender *a;
                if (rt_appender_open(&a, path, -1) == RT_OK) {
                    static const char *const lines[] = {"line one\n", "2\n", "the third line\n"};
                    for (int64_t i = 0; i < RT_COUNT(lines); i++) {
                        if (rt_appender_write(a, lines[i], strlen(lines[i])) == RT_OK)
                            strcat(want, lines[i]);
                        else
                            assert_false(shortened);
                        assert_int_equal(rt_appender_position(a), strlen(want));
                    }
                    if (rt_appender_close(&a) != RT_OK)
                        assert_true(fake.hit);
                    assert_true(file_holds(path, want, strlen(want)));
                }
                fake_end();
                assert_int_equal(live_blocks(), blocks);
                n++;
            } while (fake.hit);
            assert_true(n > 6);
        }
}

/* A line is begun, then the disk is full: the half line is taken back. */
static ssize_t half_then_full(int fd, const void *buf, size_t n) {
    static bool full;
    full = !full;
    if (full)
        return rt_io_posix.write(fd, buf, n / 2);
    errno = ENOSPC;
    return -1;
}

static void test_no_half_lines(void **state) {
    (void)state;
    const char *path = tmpdir_path(&dir, "log.jsonl");
    rt_appender *a;
    assert_int_equal(rt_appender_open(&a, path, -1), RT_OK);
    assert_int_equal(rt_appender_write(a, "whole\n", 6), RT_OK);
    rt_io io = rt_io_posix;
    io.write = half_then_full;
    rt_io_set(&io);
    assert_int_equal(rt_appender_write(a, "another one\n", 12), RT_E_IO);
    rt_io_set(NULL);
    assert_int_equal(rt_appender_position(a), 6);
    assert_int_equal(rt_appender_write(a, "last\n", 5), RT_OK);
    assert_int_equal(rt_appender_close(&a), RT_OK);
    assert_true(file_holds(path, "whole\nlast\n", 11));
}

static void test_lock_and_directories(void **state) {
    (void)state;
    for (int64_t e = 0; e < RT_COUNT(errors); e++)
        for (int persistent = 0; persistent < 2; persistent++) {
            int64_t n = 1;
            do {
                uint64_t blocks = live_blocks();
                const char *sub = tmpdir_path(&dir, "x/y");
                fake_begin(
                    (fake_state){.kind = FAULT_ERRNO, .err = errors[e], .at = n, .persistent = persistent});
                rt_lock *l;
                rt_status lock = rt_lock_take(&l, dir.path), made = rt_dir_make(sub);
                assert_true(lock == RT_OK || (fake.hit && lock == RT_E_IO && !l));
                assert_true(made == RT_OK || (fake.hit && made == RT_E_IO));
                rt_lock_release(&l);
                fake_end();
                assert_true(made != RT_OK || rt_dir_exists(sub));
                assert_int_equal(rt_lock_take(&l, dir.path), RT_OK); /* nothing holds it any more */
                rt_lock_release(&l);
                assert_int_equal(rt_dir_make(sub), RT_OK);
                assert_int_equal(rmdir(sub), 0);
                assert_int_equal(rmdir(tmpdir_path(&dir, "x")), 0);
                assert_int_equal(live_blocks(), blocks);
                n++;
            } while (fake.hit);
            assert_true(n > 5);
        }
}

typedef struct countdown {
    int64_t left;
    bool persistent, hit;
} countdown;

static bool fail_nth(void *user, uint64_t call, size_t bytes) {
    (void)call;
    (void)bytes;
    countdown *c = user;
    c->left--;
    bool now = c->persistent ? c->left <= 0 : c->left == 0;
    c->hit = c->hit || now;
    return !now;
}

static rt_status everything(const char *path) {
    uint8_t *data = NULL;
    size_t size;
    char *name = NULL;
    rt_appender *a = NULL;
    rt_lock *l = NULL;
    rt_status st;
    RT_TRY_GOTO(rt_lock_take(&l, dir.path));
    RT_TRY_GOTO(rt_dir_sweep(dir.path));
    RT_TRY_GOTO(rt_path_join(&name, dir.path, "log/a"));
    RT_TRY_GOTO(rt_dir_make(name));
    rt_free(name);
    RT_TRY_GOTO(rt_path_join(&name, dir.path, "log/l"));
    RT_TRY_GOTO(rt_appender_open(&a, name, -1));
    RT_TRY_GOTO(save_in_pieces(path));
    RT_TRY_GOTO(rt_file_read(path, NEW_SIZE, &data, &size));
    rt_free(data);
    RT_TRY_GOTO(rt_file_read("/proc/self/status", 1 << 20, &data, &size)); /* grows while it is read */
done:
    rt_free(name);
    rt_free(data);
    rt_lock_release(&l);
    if (a && rt_appender_close(&a) != RT_OK)
        st = RT_E_IO;
    return st;
}

static void test_allocations(void **state) {
    (void)state;
    const char *path = tmpdir_path(&dir, "model.bin");
    for (int persistent = 0; persistent < 2; persistent++) {
        countdown c;
        int64_t n = 1;
        do {
            assert_true(file_put(path, old_data, OLD_SIZE));
            c = (countdown){.left = n++, .persistent = persistent};
            uint64_t blocks = live_blocks();
            rt_alloc_set_hook(fail_nth, &c);
            rt_status st = everything(path);
            rt_alloc_set_hook(NULL, NULL);
            assert_int_equal(st, c.hit ? RT_E_MEMORY : RT_OK);
            assert_int_equal(live_blocks(), blocks);
            assert_true(file_holds(path, old_data, OLD_SIZE) || file_holds(path, new_data, NEW_SIZE));
        } while (c.hit);
        assert_true(n > 12);
    }
}

#define FAULT_TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        FAULT_TEST(test_save),          FAULT_TEST(test_save_message),
        FAULT_TEST(test_short_writes),  FAULT_TEST(test_sweep_after_failed_cleanup),
        FAULT_TEST(test_read),          FAULT_TEST(test_appender),
        FAULT_TEST(test_no_half_lines), FAULT_TEST(test_lock_and_directories),
        FAULT_TEST(test_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
