/* test_file.c - reading, directories, paths, replacement of files, the log, the lock, the sweep. */
#include "base/alloc.h"
#include "base/file.h"
#include "support/tmpdir.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static tmpdir dir;

static int setup(void **state) {
    (void)state;
    return tmpdir_make(&dir) ? 0 : -1;
}

static int teardown(void **state) {
    (void)state;
    tmpdir_remove(&dir);
    return chdir("/"); /* some tests go into the directory */
}

static int64_t entries(void) {
    char **names;
    int64_t n;
    assert_int_equal(rt_dir_list(dir.path, &names, &n), RT_OK);
    rt_names_free(names, n);
    return n;
}

static unsigned mode_of(const char *path) {
    struct stat info;
    assert_int_equal(lstat(path, &info), 0);
    return (unsigned)info.st_mode & 07777u;
}

static void test_read(void **state) {
    (void)state;
    const char *path = tmpdir_path(&dir, "a.bin");
    uint8_t *data;
    size_t n;
    assert_true(file_put(path, "x\0yz", 4));
    assert_int_equal(rt_file_read(path, 4, &data, &n), RT_OK);
    assert_int_equal(n, 4);
    assert_memory_equal(data, "x\0yz", 5); /* with terminator */
    rt_free(data);
    assert_int_equal(rt_file_read(path, 3, &data, &n), RT_E_INPUT);
    assert_null(data);
    assert_non_null(strstr(rt_error_text(), path));
    assert_true(file_put(path, "", 0));
    assert_int_equal(rt_file_read(path, 0, &data, &n), RT_OK);
    assert_int_equal(n, 0);
    assert_int_equal(data[0], 0);
    rt_free(data);
    /* The size under /proc is said to be 0. */
    assert_int_equal(rt_file_read("/proc/self/status", 1 << 20, &data, &n), RT_OK);
    assert_true(n > 100);
    rt_free(data);
    assert_int_equal(rt_file_read("/proc/self/status", 10, &data, &n), RT_E_INPUT);
}

static void test_read_refuses(void **state) {
    (void)state;
    const char *fifo = tmpdir_path(&dir, "fifo");
    assert_int_equal(mkfifo(fifo, 0600), 0);
    const struct {
        const char *path, *word;
    } table[] = {
        {tmpdir_path(&dir, "absent"), "No such file"},
        {dir.path, "directory"},
        {fifo, "regular"},
        {"/dev/null", "regular"},
        {"", "No such file"},
    };
    for (int64_t i = 0; i < RT_COUNT(table); i++) {
        uint8_t *data;
        size_t n;
        assert_int_equal(rt_file_read(table[i].path, 100, &data, &n), RT_E_INPUT);
        assert_non_null(strstr(rt_error_text(), table[i].word));
        assert_non_null(strstr(rt_error_text(), table[i].path));
    }
}

static void test_existence(void **state) {
    (void)state;
    const char *file = tmpdir_path(&dir, "f");
    assert_true(file_put(file, "1", 1));
    assert_true(rt_file_exists(file));
    assert_false(rt_dir_exists(file));
    assert_true(rt_dir_exists(dir.path));
    assert_false(rt_file_exists(dir.path));
    assert_false(rt_file_exists(tmpdir_path(&dir, "absent")));
}

static void test_make_directories(void **state) {
    (void)state;
    const char *deep = tmpdir_path(&dir, "a//b/c/");
    assert_int_equal(rt_dir_make(deep), RT_OK);
    assert_true(rt_dir_exists(tmpdir_path(&dir, "a/b/c")));
    assert_int_equal(rt_dir_make(deep), RT_OK);
    assert_true(file_put(tmpdir_path(&dir, "file"), "1", 1));
    assert_int_equal(rt_dir_make(tmpdir_path(&dir, "file")), RT_E_IO);
    assert_int_equal(rt_dir_make(tmpdir_path(&dir, "file/below")), RT_E_IO);
    assert_non_null(strstr(rt_error_text(), "file"));
    assert_int_equal(rt_dir_make(""), RT_E_USAGE);
    assert_int_equal(rt_dir_make("/"), RT_OK);
    assert_int_equal(chdir(dir.path), 0);
    assert_int_equal(rt_dir_make("relative"), RT_OK);
    assert_true(rt_dir_exists(tmpdir_path(&dir, "relative")));
}

static void test_list(void **state) {
    (void)state;
    static const char *const made[] = {"b", "a", "\xc3\xa9", "B", ".hidden", "a.b"};
    static const char *const sorted[] = {".hidden", "B", "a", "a.b", "b", "\xc3\xa9"};
    for (int64_t i = 0; i < RT_COUNT(made); i++)
        assert_true(file_put(tmpdir_path(&dir, made[i]), "", 0));
    char **names;
    int64_t n;
    assert_int_equal(rt_dir_list(dir.path, &names, &n), RT_OK);
    assert_int_equal(n, RT_COUNT(sorted));
    for (int64_t i = 0; i < n; i++)
        assert_string_equal(names[i], sorted[i]);
    rt_names_free(names, n);
    assert_int_equal(rt_dir_list(tmpdir_path(&dir, "absent"), &names, &n), RT_E_INPUT);
    assert_int_equal(rt_dir_list(tmpdir_path(&dir, "a"), &names, &n), RT_E_INPUT);
    assert_null(names);
}

static void test_paths(void **state) {
    (void)state;
    static const struct {
        const char *dir, *name, *want;
    } table[] = {{"a", "b", "a/b"}, {"a/", "b", "a/b"}, {"", "b", "b"},     {NULL, "b", "b"},
                 {"a", "/b", "/b"}, {"/", "b", "/b"},   {"a/b", "", "a/b/"}};
    char *p;
    for (int64_t i = 0; i < RT_COUNT(table); i++) {
        assert_int_equal(rt_path_join(&p, table[i].dir, table[i].name), RT_OK);
        assert_string_equal(p, table[i].want);
        rt_free(p);
    }
    setenv("HOME", "/home/me", 1);
    static const struct {
        const char *path, *want;
    } homes[] = {{"~/x", "/home/me/x"}, {"~", "~"}, {"~you/x", "~you/x"}, {"a/~/x", "a/~/x"}, {"", ""}};
    for (int64_t i = 0; i < RT_COUNT(homes); i++) {
        assert_int_equal(rt_path_expand(&p, homes[i].path), RT_OK);
        assert_string_equal(p, homes[i].want);
        rt_free(p);
    }
    unsetenv("HOME");
    assert_int_equal(rt_path_expand(&p, "~/x"), RT_E_USAGE);
    assert_null(p);
}

static void test_replace(void **state) {
    (void)state;
    const char *path = tmpdir_path(&dir, "model.bin");
    mode_t old = umask(027);
    assert_int_equal(rt_file_write_atomic(path, "one", 3), RT_OK);
    assert_int_equal(mode_of(path), 0640);
    assert_true(file_holds(path, "one", 3));
    assert_int_equal(chmod(path, 0604), 0);
    assert_int_equal(rt_file_write_atomic(path, "", 0), RT_OK);
    assert_true(file_holds(path, "", 0));
    assert_int_equal(mode_of(path), 0604); /* permissions of an existing file are kept */
    umask(old);
    assert_int_equal(entries(), 1);
    assert_int_equal(chdir(dir.path), 0);
    assert_int_equal(rt_file_write_atomic("plain", "p", 1), RT_OK);
    assert_true(file_holds(tmpdir_path(&dir, "plain"), "p", 1));
}

static void test_writer_pieces(void **state) {
    (void)state;
    enum { N = 700000 };
    char *want = malloc(N);
    assert_non_null(want);
    for (int i = 0; i < N; i++)
        want[i] = (char)(i * 31 + i / 1000);
    const char *path = tmpdir_path(&dir, "big");
    rt_writer *w;
    assert_int_equal(rt_writer_open(&w, path), RT_OK);
    size_t at = 0;
    for (size_t piece = 1; at < N; piece = piece * 3 + 1) {
        size_t n = RT_MIN(piece, N - at);
        assert_int_equal(rt_writer_write(w, want + at, n), RT_OK);
        at += n;
    }
    assert_int_equal(rt_writer_write(w, NULL, 0), RT_OK);
    assert_false(rt_file_exists(path)); /* nothing to see before the commit */
    assert_int_equal(rt_writer_commit(&w), RT_OK);
    assert_null(w);
    assert_true(file_holds(path, want, N));
    assert_int_equal(rt_writer_open(&w, path), RT_OK);
    assert_int_equal(rt_writer_write(w, "other", 5), RT_OK);
    assert_int_equal(entries(), 2);
    rt_writer_abandon(&w);
    rt_writer_abandon(&w);
    assert_int_equal(entries(), 1);
    assert_true(file_holds(path, want, N));
    free(want);
}

static void test_links_and_odd_targets(void **state) {
    (void)state;
    const char *target = tmpdir_path(&dir, "target"), *link = tmpdir_path(&dir, "link");
    assert_true(file_put(target, "old", 3));
    assert_int_equal(symlink("target", link), 0);
    assert_int_equal(rt_file_write_atomic(link, "new", 3), RT_OK);
    struct stat info;
    assert_int_equal(lstat(link, &info), 0);
    assert_true(S_ISLNK(info.st_mode));
    assert_true(file_holds(target, "new", 3));

    const char *fifo = tmpdir_path(&dir, "fifo"), *sub = tmpdir_path(&dir, "sub");
    assert_int_equal(mkfifo(fifo, 0600), 0);
    assert_int_equal(mkdir(sub, 0700), 0);
    assert_int_equal(rt_file_write_atomic(fifo, "x", 1), RT_E_IO);
    assert_int_equal(rt_file_write_atomic(sub, "x", 1), RT_E_IO);
    assert_int_equal(rt_file_write_atomic("/dev/null", "x", 1), RT_E_IO);
    assert_int_equal(rt_file_write_atomic(tmpdir_path(&dir, "no/such/dir"), "x", 1), RT_E_IO);
    assert_non_null(strstr(rt_error_text(), "No such file"));
    assert_int_equal(rt_file_write_atomic(tmpdir_path(&dir, ""), "x", 1), RT_E_USAGE);
    assert_int_equal(entries(), 4);

    char name[256];
    memset(name, 'n', 255);
    name[255] = 0; /* the longest name a file may have */
    const char *longest = tmpdir_path(&dir, name);
    assert_int_equal(rt_file_write_atomic(longest, "x", 1), RT_OK);
    assert_true(file_holds(longest, "x", 1));
}

static void test_appender(void **state) {
    (void)state;
    const char *path = tmpdir_path(&dir, "log.jsonl");
    rt_appender *a;
    assert_int_equal(rt_appender_open(&a, path, -1), RT_OK);
    assert_int_equal(rt_appender_position(a), 0);
    assert_int_equal(rt_appender_write(a, "one\n", 4), RT_OK);
    assert_int_equal(rt_appender_write(a, "two\n", 4), RT_OK);
    assert_int_equal(rt_appender_position(a), 8);
    assert_true(file_holds(path, "one\ntwo\n", 8)); /* at once, not at close */
    assert_int_equal(rt_appender_close(&a), RT_OK);
    assert_null(a);
    assert_int_equal(rt_appender_close(&a), RT_OK);
    assert_int_equal(rt_appender_open(&a, path, 4), RT_OK);
    assert_int_equal(rt_appender_position(a), 4);
    assert_int_equal(rt_appender_write(a, "2\n", 2), RT_OK);
    assert_int_equal(rt_appender_close(&a), RT_OK);
    assert_true(file_holds(path, "one\n2\n", 6));
    assert_int_equal(rt_appender_open(&a, path, 1000), RT_OK); /* never made longer */
    assert_int_equal(rt_appender_position(a), 6);
    assert_int_equal(rt_appender_close(&a), RT_OK);
    assert_int_equal(rt_appender_open(&a, dir.path, -1), RT_E_IO);
    assert_null(a);
}

static void test_full_device(void **state) {
    (void)state;
    rt_appender *a;
    if (access("/dev/full", W_OK) != 0)
        skip();
    assert_int_equal(rt_appender_open(&a, "/dev/full", -1), RT_OK);
    assert_int_equal(rt_appender_write(a, "x", 1), RT_E_IO);
    assert_string_equal(rt_error_text(), "/dev/full: cannot append: No space left on device");
    assert_int_equal(rt_appender_close(&a), RT_OK);
}

static void test_lock(void **state) {
    (void)state;
    rt_lock *first, *second;
    assert_int_equal(rt_lock_take(&first, dir.path), RT_OK);
    assert_int_equal(rt_lock_take(&second, dir.path), RT_E_LOCKED);
    char want[700];
    snprintf(want, sizeof want, "%s: directory is in use by process %ld", dir.path, (long)getpid());
    assert_string_equal(rt_error_text(), want);
    assert_null(second);
    rt_lock_release(&first);
    rt_lock_release(&first);
    assert_int_equal(rt_lock_take(&second, dir.path), RT_OK);
    rt_lock_release(&second);
    assert_int_equal(rt_lock_take(&second, tmpdir_path(&dir, "absent")), RT_E_IO);
}

/* The holder is killed: its lock goes with it. */
static void test_lock_of_a_killed_process(void **state) {
    (void)state;
    int ready[2];
    assert_int_equal(pipe(ready), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        rt_lock *mine;
        char ok = rt_lock_take(&mine, dir.path) == RT_OK;
        if (write(ready[1], &ok, 1) == 1)
            pause();
        _exit(1);
    }
    char ok = 0;
    assert_int_equal(read(ready[0], &ok, 1), 1);
    assert_true(ok);
    rt_lock *l;
    assert_int_equal(rt_lock_take(&l, dir.path), RT_E_LOCKED);
    char pid[32];
    snprintf(pid, sizeof pid, "process %ld", (long)child);
    assert_non_null(strstr(rt_error_text(), pid));
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_int_equal(rt_lock_take(&l, dir.path), RT_OK);
    rt_lock_release(&l);
    close(ready[0]);
    close(ready[1]);
}

static void test_sweep(void **state) {
    (void)state;
    static const struct {
        const char *name;
        bool kept;
    } table[] = {{".model.bin.tmp-123-0", false},
                 {".a.tmp-1-2.tmp-99-7", false},
                 {"model.bin", true},
                 {"model.bin.tmp-123-0", true},
                 {".model.bin.tmp-123", true},
                 {".model.bin.tmp-123-", true},
                 {".model.bin.tmp-12x-1", true},
                 {".model.bin.tmp-12-1.bak", true},
                 {".tmp-1-2", true},
                 {".lock", true}};
    for (int64_t i = 0; i < RT_COUNT(table); i++)
        assert_true(file_put(tmpdir_path(&dir, table[i].name), "x", 1));
    assert_int_equal(rt_dir_sweep(dir.path), RT_OK);
    for (int64_t i = 0; i < RT_COUNT(table); i++)
        assert_int_equal(rt_file_exists(tmpdir_path(&dir, table[i].name)), table[i].kept);
    assert_int_equal(rt_dir_sweep(tmpdir_path(&dir, "absent")), RT_E_IO);
}

/* In the directories inside, too, but not through links; and never the file of a writer that lives. */
static void test_sweep_inside(void **state) {
    (void)state;
    assert_int_equal(rt_dir_make(tmpdir_path(&dir, "run/pictures/deep")), RT_OK);
    assert_int_equal(rt_dir_make(tmpdir_path(&dir, "elsewhere")), RT_OK);
    assert_int_equal(symlink("../elsewhere", tmpdir_path(&dir, "run/link")), 0);
    static const struct {
        const char *name;
        bool kept;
    } table[] = {{"run/.a.tmp-1-1", false},
                 {"run/pictures/.a.tmp-1-1", false},
                 {"run/pictures/deep/.a.tmp-1-1", true},
                 {"elsewhere/.a.tmp-1-1", true}};
    for (int64_t i = 0; i < RT_COUNT(table); i++)
        assert_true(file_put(tmpdir_path(&dir, table[i].name), "x", 1));
    rt_writer *w;
    assert_int_equal(rt_writer_open(&w, tmpdir_path(&dir, "run/pictures/alive.png")), RT_OK);
    assert_int_equal(rt_dir_sweep(tmpdir_path(&dir, "run")), RT_OK);
    for (int64_t i = 0; i < RT_COUNT(table); i++)
        assert_int_equal(rt_file_exists(tmpdir_path(&dir, table[i].name)), table[i].kept);
    assert_int_equal(rt_writer_commit(&w), RT_OK);
    assert_true(rt_file_exists(tmpdir_path(&dir, "run/pictures/alive.png")));
}

/* Under a lock no link is written through, made a directory of, or removed behind. */
static void test_locked_links(void **state) {
    (void)state;
    rt_lock *l, *inner;
    rt_appender *a;
    rt_writer *w;
    assert_int_equal(rt_dir_make(tmpdir_path(&dir, "run/sub")), RT_OK);
    assert_int_equal(rt_dir_make(tmpdir_path(&dir, "elsewhere")), RT_OK);
    assert_true(file_put(tmpdir_path(&dir, "elsewhere/file"), "precious", 8));
    assert_int_equal(symlink("../elsewhere", tmpdir_path(&dir, "run/dirlink")), 0);
    assert_int_equal(symlink("../elsewhere/file", tmpdir_path(&dir, "run/filelink")), 0);
    assert_int_equal(link(tmpdir_path(&dir, "elsewhere/file"), tmpdir_path(&dir, "run/hardlink")), 0);
    assert_int_equal(mkfifo(tmpdir_path(&dir, "run/pipe"), 0600), 0);
    assert_int_equal(rt_lock_take(&l, tmpdir_path(&dir, "run")), RT_OK);
    static const char *const refused[] = {"run/filelink", "run/dirlink/new", "run/dirlink", "run/pipe",
                                          "run/sub"};
    for (int64_t i = 0; i < RT_COUNT(refused); i++) {
        const char *path = tmpdir_path(&dir, refused[i]);
        assert_int_equal(rt_file_write_atomic(path, "x", 1), RT_E_IO);
        assert_non_null(strstr(rt_error_text(), refused[i]));
        assert_int_equal(rt_appender_open(&a, path, 0), RT_E_IO);
        assert_int_equal(rt_writer_open(&w, path), RT_E_IO);
    }
    assert_int_equal(rt_appender_open(&a, tmpdir_path(&dir, "run/hardlink"), 0), RT_E_IO);
    assert_int_equal(rt_dir_make(tmpdir_path(&dir, "run/dirlink/deep")), RT_E_IO);
    assert_int_equal(rt_file_remove(tmpdir_path(&dir, "run/dirlink/file")), RT_E_IO);
    assert_int_equal(rt_lock_take(&inner, tmpdir_path(&dir, "run/dirlink")), RT_E_IO);
    assert_int_equal(rt_file_write_atomic(tmpdir_path(&dir, "run/hardlink"), "x", 1),
                     RT_OK); /* the name alone */
    assert_int_equal(rt_dir_make(tmpdir_path(&dir, "run/a/b")), RT_OK);
    assert_int_equal(rt_file_write_atomic(tmpdir_path(&dir, "run/a/b/c"), "x", 1), RT_OK);
    assert_int_equal(rt_file_remove(tmpdir_path(&dir, "run/filelink")), RT_OK); /* the link, not its target */
    assert_true(file_holds(tmpdir_path(&dir, "elsewhere/file"), "precious", 8));
    char **names;
    int64_t n;
    assert_int_equal(rt_dir_list(tmpdir_path(&dir, "elsewhere"), &names, &n), RT_OK);
    assert_int_equal(n, 1);
    rt_names_free(names, n);
    rt_lock_release(&l);
    assert_int_equal(rt_file_write_atomic(tmpdir_path(&dir, "run/dirlink/new"), "x", 1),
                     RT_OK); /* the user's word */
}

/* "Is it there?" has three answers. */
static int broken_stat(int from, const char *path, struct stat *st, int flags) {
    (void)from, (void)path, (void)st, (void)flags;
    errno = EIO;
    return -1;
}

/* Somebody exchanges a file for a link or a pipe after it was looked at and before it is opened. */
static const char *exchanged;
static bool by_pipe;
static int exchanging_stat(int at, const char *path, struct stat *info, int flags) {
    const int r = rt_io_posix.fstatat(at, path, info, flags);
    if (strcmp(path, "log") == 0 && exchanged) {
        unlink(exchanged);
        assert_int_equal(by_pipe ? mkfifo(exchanged, 0600) : symlink("../elsewhere/file", exchanged), 0);
    }
    return r;
}

static void test_exchanged(void **state) {
    (void)state;
    rt_lock *l;
    rt_appender *a;
    rt_io io = rt_io_posix;
    io.fstatat = exchanging_stat;
    assert_int_equal(rt_dir_make(tmpdir_path(&dir, "run")), RT_OK);
    assert_int_equal(rt_dir_make(tmpdir_path(&dir, "elsewhere")), RT_OK);
    assert_true(file_put(tmpdir_path(&dir, "elsewhere/file"), "precious", 8));
    assert_int_equal(rt_lock_take(&l, tmpdir_path(&dir, "run")), RT_OK);
    char name[512];
    snprintf(name, sizeof name, "%s", tmpdir_path(&dir, "run/log"));
    for (int pipe = 0; pipe < 2; pipe++) {
        unlink(name);
        assert_true(file_put(name, "old\n", 4));
        exchanged = name;
        by_pipe = pipe;
        rt_io_set(&io);
        const rt_status st = rt_appender_open(&a, name, 0);
        rt_io_set(NULL);
        assert_int_equal(st, RT_E_IO);
        assert_true(file_holds(tmpdir_path(&dir, "elsewhere/file"), "precious", 8));
    }
    exchanged = NULL;
    rt_lock_release(&l);
}

static void test_find(void **state) {
    (void)state;
    bool found = true;
    assert_int_equal(rt_file_find(tmpdir_path(&dir, "absent"), &found), RT_OK);
    assert_false(found);
    assert_int_equal(rt_dir_find(dir.path, &found), RT_OK);
    assert_true(found);
    assert_int_equal(rt_file_find(dir.path, &found), RT_OK);
    assert_false(found);
    rt_io io = rt_io_posix;
    io.fstatat = broken_stat;
    rt_io_set(&io);
    assert_int_equal(rt_dir_find(dir.path, &found), RT_E_IO);
    assert_int_equal(rt_file_write_atomic(tmpdir_path(&dir, "new"), "x", 1), RT_E_IO);
    rt_io_set(NULL);
}

#define FILE_TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        FILE_TEST(test_read),
        FILE_TEST(test_read_refuses),
        FILE_TEST(test_existence),
        FILE_TEST(test_make_directories),
        FILE_TEST(test_list),
        FILE_TEST(test_paths),
        FILE_TEST(test_replace),
        FILE_TEST(test_writer_pieces),
        FILE_TEST(test_links_and_odd_targets),
        FILE_TEST(test_appender),
        FILE_TEST(test_full_device),
        FILE_TEST(test_lock),
        FILE_TEST(test_lock_of_a_killed_process),
        FILE_TEST(test_sweep),
        FILE_TEST(test_sweep_inside),
        FILE_TEST(test_locked_links),
        FILE_TEST(test_exchanged),
        FILE_TEST(test_find),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
