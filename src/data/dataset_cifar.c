/*
 * dataset_cifar.c - CIFAR-10 and CIFAR-100 in their binary version.
 *
 *     CIFAR-10   records of 3073 bytes: label | 1024 red | 1024 green | 1024 blue
 *                data_batch_1..5.bin, test_batch.bin
 *     CIFAR-100  records of 3074 bytes: coarse label | fine label | pixels
 *                train.bin, test.bin
 *
 * Files may be packed (.xz, .gz); unpacking is the slow part, so files are read by several threads. A path to
 * one file, or a directory with one *.bin file of other name, is a set with one part (SVHN and other 32 x 32
 * sets in this layout). Class names come from batches.meta.txt (fine_label_names.txt) when it is there.
 */
#include "data/data_int.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/pool.h"
#include "base/size.h"
#include "io/io.h"

#include <stdio.h>
#include <string.h>

enum { CIFAR_PIXELS = 3072, CIFAR_FILES = 5 };

typedef struct cifar_kind {
    int64_t classes;
    size_t labels; /* label bytes in front of the pixels; the last one counts */
    const char *train[CIFAR_FILES];
    const char *test, *names;
} cifar_kind;

static const cifar_kind cifar10 = {.classes = 10,
                                   .labels = 1,
                                   .train = {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin",
                                             "data_batch_4.bin", "data_batch_5.bin"},
                                   .test = "test_batch.bin",
                                   .names = "batches.meta.txt"};
static const cifar_kind cifar100 = {
    .classes = 100, .labels = 2, .train = {"train.bin"}, .test = "test.bin", .names = "fine_label_names.txt"};

/* The largest file that is published, train.bin, has 50,000 records; nothing inside tells how many there are. */
static const size_t cifar_file_max = (size_t)100000 * (2 + CIFAR_PIXELS);

/* The files of one part; read in parallel, each job only touches its own slot. */
typedef struct cifar_part {
    char *path[CIFAR_FILES];
    uint8_t *file[CIFAR_FILES];
    size_t size[CIFAR_FILES];
    rt_status st[CIFAR_FILES];
    rt_error error[CIFAR_FILES];
    int files;
} cifar_part;

static void cifar_part_destroy(cifar_part **p) {
    if (*p == NULL)
        return;
    for (int i = 0; i < CIFAR_FILES; i++) {
        rt_free((*p)->path[i]);
        rt_free((*p)->file[i]);
    }
    rt_free(*p);
    *p = NULL;
}

/* Files of two parts, those of the second behind those of the first. */
typedef struct cifar_reading {
    cifar_part *part[2];
    int count[2]; /* so many of each, from its first on */
} cifar_reading;

static cifar_part *cifar_slot(const cifar_reading *r, int64_t *job) {
    const bool second = *job >= r->count[0];
    *job -= second ? r->count[0] : 0;
    return r->part[second];
}

static void cifar_read_job(void *ctx, int64_t job, int worker) {
    (void)worker;
    cifar_part *p = cifar_slot(ctx, &job);
    p->st[job] = rt_bytes_read(p->path[job], cifar_file_max, &p->file[job], &p->size[job]);
    if (p->st[job] != RT_OK)
        rt_error_save(&p->error[job]);
}

static rt_status cifar_read(cifar_reading *r) {
    const int files = r->count[0] + r->count[1];
    rt_pool *pool = NULL;
    RT_TRY(rt_pool_create(&pool, RT_MIN(files, rt_cpu_count())));
    rt_pool_run(pool, cifar_read_job, r, files);
    rt_pool_destroy(&pool);
    for (int64_t i = 0; i < files; i++) {
        int64_t at = i;
        const cifar_part *p = cifar_slot(r, &at);
        if (p->st[at] != RT_OK) {
            rt_error_restore(&p->error[at]);
            return p->st[at];
        }
    }
    return RT_OK;
}

/* With a limit, files behind it are left alone: how many there are is known when those before them are read. */
static rt_status cifar_read_limit(cifar_part *p, size_t record, size_t limit) {
    size_t rows = 0;
    const int all = p->files;
    for (p->files = 0; p->files < all && rows < limit; p->files++) {
        const int i = p->files;
        if (p->file[i] == NULL)
            RT_TRY(rt_bytes_read(p->path[i], cifar_file_max, &p->file[i], &p->size[i]));
        rows += p->size[i] / record;
    }
    return RT_OK;
}

/* Both parts at once, so that no thread waits for a part to end; either may be without files. */
static rt_status cifar_read_all(cifar_part *train, cifar_part *test, const cifar_kind *k, int64_t limit) {
    cifar_reading r = {.part = {train, test}, .count = {train->files, test->files}};
    for (int i = 0; i < 2 && limit > 0; i++)
        r.count[i] = RT_MIN(r.count[i], 1);
    RT_TRY(cifar_read(&r));
    for (int i = 0; i < 2 && limit > 0; i++)
        RT_TRY(cifar_read_limit(r.part[i], k->labels + CIFAR_PIXELS, (size_t)limit));
    return RT_OK;
}

static rt_status cifar_take(rt_dataset *d, rt_part *out, const cifar_part *p, const cifar_kind *k,
                            bool unlabelled) {
    size_t record = k->labels + CIFAR_PIXELS, rows = 0, at = 0;
    for (int i = 0; i < p->files; i++) {
        RT_FAIL_IF(p->size[i] == 0 || p->size[i] % record != 0, RT_E_INPUT,
                   "%s: %zu bytes, wanted a multiple of %zu (one record)", p->path[i], p->size[i], record);
        rows += p->size[i] / record;
    }
    uint8_t *pixels = NULL;
    int32_t *label = NULL;
    RT_TRY(rt_alloc(&pixels, rows * CIFAR_PIXELS));
    rt_dataset_keep(d, pixels);
    RT_TRY(rt_calloc(&label, rows, sizeof *label));
    rt_dataset_keep(d, label);
    for (int i = 0; i < p->files; i++)
        for (size_t r = 0; r < p->size[i] / record; r++, at++) {
            const uint8_t *from = p->file[i] + r * record;
            label[at] = from[k->labels - 1];
            RT_FAIL_IF(!unlabelled && label[at] >= k->classes, RT_E_INPUT,
                       "%s: label %d of record %zu, wanted 0 to %lld", p->path[i], label[at], r,
                       (long long)k->classes - 1);
            memcpy(pixels + at * CIFAR_PIXELS, from + k->labels, CIFAR_PIXELS);
        }
    *out = (rt_part){.n = (int64_t)rows, .u8 = pixels, .label = label};
    return RT_OK;
}

/* One name per line; exactly as many as classes. */
static rt_status cifar_names(rt_dataset *d, const char *dir, const cifar_kind *k) {
    char *path = NULL;
    uint8_t *text = NULL;
    size_t n = 0;
    const char *names[256];
    int64_t count = 0;
    rt_status st = RT_OK;
    RT_TRY_GOTO(rt_path_join(&path, dir, k->names));
    if (!rt_file_exists(path))
        goto done;
    RT_TRY_GOTO(rt_file_read(path, 65536, &text, &n));
    char *save = NULL;
    for (char *line = strtok_r((char *)text, "\r\n", &save); line; line = strtok_r(NULL, "\r\n", &save))
        if (count++ < RT_COUNT(names))
            names[count - 1] = line;
    if (count != k->classes)
        RT_FAIL_GOTO(RT_E_INPUT, "%s: %lld names, wanted %lld", path, (long long)count,
                     (long long)k->classes);
    st = rt_dataset_name_classes(d, names);
done:
    rt_free(text);
    rt_free(path);
    return st;
}

/* The only *.bin, *.bin.gz or *.bin.xz in a directory. */
static rt_status cifar_only_file(char **out, const char *dir, const cifar_kind *k) {
    char **names = NULL;
    int64_t n = 0, found = 0;
    rt_status st = RT_OK;
    RT_TRY(rt_dir_list(dir, &names, &n));
    for (int64_t i = 0; i < n; i++)
        if (rt_str_ends(names[i], ".bin") || rt_str_ends(names[i], ".bin.gz") ||
            rt_str_ends(names[i], ".bin.xz")) {
            if (found++ == 0)
                RT_TRY_GOTO(rt_path_join(out, dir, names[i]));
        }
    if (found != 1)
        st = rt_error_set(RT_E_INPUT, __FILE__, __LINE__,
                          "%s: no %s and no %s, and %lld other .bin files, wanted one", dir, k->train[0],
                          k->test, (long long)found);
done:
    rt_names_free(names, n);
    return st;
}

/* The training files: all of them, or none. */
static rt_status cifar_find_train(cifar_part *p, const char *dir, const cifar_kind *k) {
    int wanted = 0;
    const char *missing = NULL;
    for (; wanted < CIFAR_FILES && k->train[wanted]; wanted++) {
        RT_TRY(rt_find_packed(&p->path[wanted], dir, k->train[wanted]));
        if (p->path[wanted])
            p->files++;
        else
            missing = k->train[wanted];
    }
    RT_FAIL_IF(p->files > 0 && missing, RT_E_INPUT, "%s: %s is missing", dir, missing);
    return RT_OK;
}

static rt_status cifar_load_dir(rt_dataset *d, const char *dir, const cifar_kind *k, rt_data_options o) {
    cifar_part *train = NULL, *test = NULL;
    rt_status st = RT_OK;
    RT_TRY_GOTO(rt_calloc(&train, 1, sizeof *train));
    RT_TRY_GOTO(rt_calloc(&test, 1, sizeof *test));
    RT_TRY_GOTO(cifar_find_train(train, dir, k));
    RT_TRY_GOTO(rt_find_packed(&test->path[0], dir, k->test));
    if (test->path[0] == NULL && train->files == 0)
        RT_TRY_GOTO(cifar_only_file(&test->path[0], dir, k));
    test->files = test->path[0] != NULL;
    if (o.test_only && test->files > 0)
        train->files = 0;
    RT_TRY_GOTO(cifar_read_all(train, test, k, o.limit));
    if (train->files > 0)
        RT_TRY_GOTO(cifar_take(d, &d->train, train, k, o.unlabelled));
    if (test->files > 0)
        RT_TRY_GOTO(cifar_take(d, &d->test, test, k, o.unlabelled));
    st = cifar_names(d, dir, k);
done:
    cifar_part_destroy(&train);
    cifar_part_destroy(&test);
    return st;
}

static rt_status cifar_load(rt_dataset *d, const rt_spec *s, const cifar_kind *k, rt_data_options o) {
    RT_TRY(rt_spec_check(s, 1, 1, NULL, 0));
    d->ordered = true;
    d->row = rt_shape3(3, 32, 32);
    d->classes = k->classes;
    if (rt_dir_exists(s->path[0]))
        return cifar_load_dir(d, s->path[0], k, o);
    cifar_part *p = NULL;
    rt_status st = RT_E_MEMORY;
    RT_TRY(rt_calloc(&p, 1, sizeof *p));
    p->path[0] = rt_strdup(s->path[0]);
    if (p->path[0])
        st = rt_bytes_read(p->path[0], cifar_file_max, &p->file[0], &p->size[0]);
    p->files = 1;
    if (st == RT_OK)
        st = cifar_take(d, &d->test, p, k, o.unlabelled);
    cifar_part_destroy(&p);
    return st;
}

rt_status rt_load_cifar10(rt_dataset *d, const rt_spec *s, rt_data_options o) {
    return cifar_load(d, s, &cifar10, o);
}

rt_status rt_load_cifar100(rt_dataset *d, const rt_spec *s, rt_data_options o) {
    return cifar_load(d, s, &cifar100, o);
}
