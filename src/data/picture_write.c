/*
 * picture_write.c - a data set on its way out as folders of PNG files, which dataset_images.c reads back.
 *
 *     one part:   DIR/CLASS/000000.png
 *     two:        DIR/{train,test}/CLASS/000000.png
 *
 * The loader numbers classes by the sorted names of folders, so names that would be sorted differently get their
 * number in front.
 *
 * Thousands of files take a while to write, and as long to take back. So the folder is marked while it is written:
 *
 *     DIR/.unfinished   some pictures are missing; nobody reads them, and the next one who writes here removes them
 *
 * Whoever is stopped or killed leaves the mark; any other failure takes its pictures back.
 */
#include "data/data_int.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/stop.h"

#include <string.h>

/* The folder of a class: its name, without what a folder cannot have; numbered when the names are not sorted.
 */
static void folder_name(rt_str *out, const rt_dataset *d, int64_t k, bool numbered) {
    rt_str_clear(out);
    if (numbered)
        rt_str_appendf(out, "%0*lld-", d->classes > 10000 ? 5 : d->classes > 100 ? 4 : 2, (long long)k);
    for (const char *s = d->class_name[k]; *s; s++)
        rt_str_append_char(out, *s == '/' || (unsigned char)*s < ' ' ? '_' : *s);
}

static bool folders_numbered(const rt_dataset *d) {
    bool numbered = false;
    for (int64_t k = 0; k < d->classes; k++) {
        const char *name = d->class_name[k];
        numbered = numbered || name[0] == 0 || name[0] == '.' || strlen(name) > 200 || strchr(name, '/');
        numbered = numbered || (k > 0 && strcmp(d->class_name[k - 1], name) >= 0);
    }
    return numbered;
}

/* The folder of class k in dir, and picture i in it unless i is -1. */
static rt_status picture_path(rt_str *out, const rt_dataset *d, const char *dir, int64_t k, int64_t i) {
    rt_str folder;
    rt_str_init(&folder);
    folder_name(&folder, d, k, folders_numbered(d));
    rt_str_clear(out);
    rt_str_appendf(out, "%s/%s", dir, rt_str_text(&folder));
    if (i >= 0)
        rt_str_appendf(out, "/%06lld.png", (long long)i);
    rt_str_fail(out, folder.st);
    rt_str_deinit(&folder);
    return rt_str_status(out);
}

static rt_status write_folders(const rt_dataset *d, const rt_part *p, const char *dir) {
    const int64_t c = d->row.d[0], plane = d->row.d[1] * d->row.d[2], elems = c * plane;
    uint8_t *row = NULL, *pixels = NULL;
    rt_str path;
    rt_status st = RT_OK;
    rt_str_init(&path);
    RT_TRY_GOTO(rt_alloc(&row, (size_t)elems));
    RT_TRY_GOTO(rt_alloc(&pixels, (size_t)elems));
    for (int64_t k = 0; k < d->classes; k++) {
        RT_TRY_GOTO(picture_path(&path, d, dir, k, -1));
        RT_TRY_GOTO(rt_dir_make(rt_str_text(&path)));
    }
    for (int64_t i = 0; i < p->n; i++) {
        RT_TRY_GOTO(rt_stop_check("writing", dir));
        rt_part_row_bytes(row, p, i, elems);
        for (int64_t e = 0; e < elems; e++)
            pixels[e % plane * c + e / plane] = row[e];
        RT_TRY_GOTO(picture_path(&path, d, dir, p->label[i], i));
        RT_TRY_GOTO(rt_image_write_png(rt_str_text(&path), pixels, d->row.d[1], d->row.d[2], (int)c));
    }
done:
    rt_free(row);
    rt_free(pixels);
    rt_str_deinit(&path);
    return st;
}

/* The names of folders are the classes: one without a picture would be refused when they are read. */
static rt_status check_every_class(const rt_dataset *d, const rt_part *p, const char *to) {
    uint8_t *seen;
    RT_TRY(rt_calloc(&seen, (size_t)d->classes + 1, 1));
    for (int64_t i = 0; i < p->n; i++)
        seen[p->label[i]] = 1;
    int64_t k = 0;
    while (k < d->classes && seen[k])
        k++;
    rt_free(seen);
    RT_FAIL_IF(k < d->classes, RT_E_USAGE,
               "%s: class %lld (%.60s) has none of the %lld rows, and a folder of pictures cannot be empty; "
               "more rows, or "
               "another form (npy:, csv:)",
               to, (long long)k, d->class_name && d->class_name[k] ? d->class_name[k] : "", (long long)p->n);
    return RT_OK;
}

static rt_status write_parts(const rt_dataset *d, const rt_part *train, const rt_part *test,
                             const char *dir) {
    const rt_part *part[] = {train, test};
    static const char *const name[] = {"train", "test"};
    if (!train || !test)
        return write_folders(d, train ? train : test, dir);
    for (int i = 0; i < 2; i++) {
        char *path = NULL;
        RT_TRY(rt_path_join(&path, dir, name[i]));
        const rt_status st = write_folders(d, part[i], path);
        rt_free(path);
        RT_TRY(st);
    }
    return RT_OK;
}

/* ---- what an attempt that was cut off left ---- */

static const char MARK[] = ".unfinished", LOCK[] = ".lock";

rt_status rt_picture_folders_check(const char *dir) {
    char *mark = NULL;
    bool cut_off = false;
    RT_TRY(rt_path_join(&mark, dir, MARK));
    const rt_status st = rt_file_find(mark, &cut_off);
    rt_free(mark);
    RT_TRY(st);
    RT_FAIL_IF(cut_off, RT_E_INPUT,
               "%s: some of its pictures are missing, because writing them was cut off; write "
               "them again",
               dir);
    return RT_OK;
}

/* A name that write_folders gives to a picture. */
static bool is_ours(const char *name) {
    const size_t digits = strspn(name, "0123456789");
    return digits >= 6 && strcmp(name + digits, ".png") == 0;
}

/* Pictures of ours in dir and in folders down to `depth` below it, and the folders that are empty then. Links are not
 * followed: the directory is locked (base/file_place.c). */
static rt_status remove_pictures(const char *dir, int depth) {
    char **names = NULL, *path = NULL;
    int64_t n = 0;
    rt_status st = RT_OK;
    RT_TRY_GOTO(rt_dir_sweep(dir));
    RT_TRY_GOTO(rt_dir_list(dir, &names, &n));
    for (int64_t i = 0; i < n; i++) {
        RT_TRY_GOTO(rt_stop_check("removing pictures from", dir));
        RT_TRY_GOTO(rt_path_join(&path, dir, names[i]));
        if (depth > 0 && rt_dir_exists(path)) {
            RT_TRY_GOTO(remove_pictures(path, depth - 1));
            rt_file_discard(path);
        } else if (is_ours(names[i]))
            RT_TRY_GOTO(rt_file_remove(path));
        rt_free(path);
        path = NULL;
    }
done:
    rt_free(path);
    rt_names_free(names, n);
    return st;
}

/* ---- the whole ---- */

/* Refuses a directory with anything in it, unless an attempt was cut off there. */
static rt_status check_empty(const char *dir, bool *cut_off) {
    char **names = NULL;
    int64_t n = 0, others = 0;
    *cut_off = false;
    RT_TRY(rt_dir_list(dir, &names, &n));
    for (int64_t i = 0; i < n; i++) {
        const bool mark = strcmp(names[i], MARK) == 0;
        *cut_off = *cut_off || mark;
        others += !mark && strcmp(names[i], LOCK) != 0;
    }
    rt_names_free(names, n);
    RT_FAIL_IF(others > 0 && !*cut_off, RT_E_USAGE, "%s is not empty: pictures would be mixed", dir);
    return RT_OK;
}

static rt_status take_back(const char *dir, const char *mark) {
    RT_TRY(remove_pictures(dir, 2));
    return rt_file_remove(mark);
}

/* Between the mark's coming and going. */
static rt_status write_marked(const rt_dataset *d, const rt_part *train, const rt_part *test, const char *dir,
                              const char *mark) {
    RT_TRY(rt_file_write_atomic(mark, "", 0));
    const rt_status st = write_parts(d, train, test, dir);
    if (st == RT_OK)
        return rt_file_remove(mark);
    if (st != RT_E_INTERRUPTED) {
        rt_error why;
        rt_error_save(&why);
        (void)!take_back(dir, mark); /* the mark says what stays */
        rt_error_restore(&why);
    }
    return st;
}

rt_status rt_picture_folders_write(const rt_dataset *d, const rt_part *train, const rt_part *test,
                                   const char *to) {
    const char *dir = to + strlen("images:");
    char *mark = NULL, *lock_file = NULL;
    bool cut_off;
    rt_lock *lock = NULL;
    rt_status st = RT_OK;
    RT_TRY(rt_write_check_images(d, to));
    RT_FAIL_IF(d->row.d[0] != 1 && d->row.d[0] != 3, RT_E_USAGE, "%s: %lld channels, a picture has 1 or 3",
               to, (long long)d->row.d[0]);
    if (train)
        RT_TRY(check_every_class(d, train, to));
    if (test)
        RT_TRY(check_every_class(d, test, to));
    RT_TRY(rt_dir_make(dir));
    RT_TRY(check_empty(dir, &cut_off));
    RT_TRY_GOTO(rt_path_join(&mark, dir, MARK));
    RT_TRY_GOTO(rt_path_join(&lock_file, dir, LOCK));
    RT_TRY_GOTO(rt_lock_take(&lock, dir));
    if (cut_off)
        RT_TRY_GOTO(take_back(dir, mark));
    RT_TRY_GOTO(check_empty(dir, &cut_off));
    st = write_marked(d, train, test, dir, mark);
done:
    if (lock && !rt_file_exists(mark))
        rt_file_discard(lock_file); /* whoever opened it meanwhile finds the directory filled */
    rt_lock_release(&lock);
    rt_free(mark);
    rt_free(lock_file);
    return st;
}
