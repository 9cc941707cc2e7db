/*
 * data_int.h - what the files of data share: a parsed SPEC, the data set under construction, its loaders,
 * images.
 *
 * A loader fills row, task, classes and the two parts, and hands every block it allocates to the data set
 * (rt_dataset_keep).
 */
#ifndef RT_DATA_DATA_INT_H
#define RT_DATA_DATA_INT_H

#include "base/arena.h"
#include "base/rng.h"
#include "data/data.h"
#include "data/picture.h"
#include "io/io.h"

#include <pthread.h>

enum { RT_SPEC_OPTIONS = 16, RT_SPEC_PATHS = 2, RT_DATASET_BLOCKS = 16, RT_CLASSES_MAX = 65536 };
static const size_t rt_data_file_max = (size_t)16 << 30;

/* "kind:path,path,key=value,..." */
typedef struct rt_spec {
    const char *whole; /* for messages */
    char *text;        /* a copy, cut into pieces */
    const char *kind;
    char *path[RT_SPEC_PATHS]; /* "~/" expanded */
    int paths;
    struct {
        const char *key, *value;
    } option[RT_SPEC_OPTIONS];
    int options;
    const char *const *file; /* in place of paths: files as they were named; borrowed */
    int64_t files;
} rt_spec;
/* Refuses too few or many paths, and options other than `keys`, with the nearest known one. */
rt_status rt_spec_check(const rt_spec *s, int min_paths, int max_paths, const char *const *keys,
                        int64_t n) RT_MUST_CHECK;
const char *rt_spec_get(const rt_spec *s, const char *key); /* NULL if absent */
/* Leave *out when the option is absent. */
rt_status rt_spec_get_i64(const rt_spec *s, const char *key, int64_t min, int64_t max,
                          int64_t *out) RT_MUST_CHECK;
rt_status rt_spec_get_u64(const rt_spec *s, const char *key, uint64_t *out) RT_MUST_CHECK;
rt_status rt_spec_get_f64(const rt_spec *s, const char *key, double min, double max,
                          double *out) RT_MUST_CHECK;
/* task=regression|classification; *given tells whether it was there. */
rt_status rt_spec_get_task(const rt_spec *s, rt_task *out, bool *given) RT_MUST_CHECK;
rt_status rt_spec_parse(rt_spec *out, const char *text) RT_MUST_CHECK;
void rt_spec_deinit(rt_spec *s);

typedef struct rt_columns rt_columns; /* of a table: dataset_csv.c */
void rt_columns_destroy(rt_columns **k);

struct rt_dataset {
    char *spec;
    rt_task task;
    rt_shape row;
    int64_t classes;
    const char **class_name;
    rt_part train, test;
    bool drawn, ordered; /* see rt_dataset_drawn, rt_dataset_ordered */
    int64_t valid_rows;
    uint64_t split_seed;
    const char **row_name[2]; /* of train and test, or NULL */
    const char *resize;
    rt_columns *columns; /* NULL: not a table */
    rt_stored stored;    /* and the file it is in */
    rt_npy npy;
    rt_safetensors *tensors;
    rt_arena arena; /* names */
    void *block[RT_DATASET_BLOCKS];
    int blocks;
    pthread_mutex_t lock; /* of the hash */
    char hash[65];
};
void rt_dataset_keep(rt_dataset *d, void *block); /* takes ownership; NULL is fine */
/* Room for n points of the plane and their labels, zero; they belong to the data set. */
rt_status rt_dataset_points(rt_dataset *d, int64_t n, float **x, int32_t **label) RT_MUST_CHECK;
/* names: `classes` texts, or NULL for "0", "1", ... */
rt_status rt_dataset_name_classes(rt_dataset *d, const char *const *names) RT_MUST_CHECK;
/* Finite numbers, labels in [0, classes), as many rows as fit. */
rt_status rt_part_check(const rt_part *p, const char *name, rt_task task, int64_t elems,
                        int64_t classes) RT_MUST_CHECK;
/* Copies the rows of `all` into train and test by the mask; with o.test_only the training rows are left out.
 */
rt_status rt_dataset_divide(rt_dataset *d, const rt_part *all, const uint8_t *is_test,
                            bool test_only) RT_MUST_CHECK;
/* The mask of sources without a test part: a share `test=` (0.1) of the rows drawn with `seed=` (0). Neither
 * depends on the seed of the run, so training and evaluating with different seeds can never mix the parts.
 * label may be NULL. rt_alloc'ed. */
rt_status rt_holdout_mask(rt_dataset *d, uint8_t **is_test, const rt_spec *s, const rt_data_options *o,
                          int64_t n, const int32_t *label) RT_MUST_CHECK;
/* Room for n rows of a part. */
rt_status rt_subset_new(rt_subset *out, const rt_part *p, int64_t n) RT_MUST_CHECK;
/* mask (n, zero at first): 1 for `take` of n rows, drawn by r. */
rt_status rt_split_mask(uint8_t *mask, int64_t n, int64_t take, rt_split how, const int32_t *label,
                        rt_rng r) RT_MUST_CHECK;

/* The kind of source that a file of this name is; NULL: it does not say. */
const char *rt_file_kind(const char *name);
rt_status rt_dataset_open_spec(rt_dataset **out, const rt_spec *s, rt_data_options o) RT_MUST_CHECK;

typedef rt_status (*rt_source_load)(rt_dataset *d, const rt_spec *s, rt_data_options o);
#define RT_SOURCE(name, load, like, place, form, meaning)                                                    \
    rt_status load(rt_dataset *d, const rt_spec *s, rt_data_options o) RT_MUST_CHECK;
#include "data/sources.def"
#undef RT_SOURCE

/* DIR/stem, DIR/stem.gz or DIR/stem.xz, whichever exists; *out NULL if none does. rt_alloc'ed. */
rt_status rt_find_packed(char **out, const char *dir, const char *stem) RT_MUST_CHECK;

/* Pictures to be read, those of the training part first. */
typedef struct rt_picture_files {
    char **path;
    int32_t *label;
    int64_t n, cap, train, valid; /* so many are for training; at the end of those, for validation */
    bool labelled, two;           /* there are classes; parts are told by folders */
    int64_t passed;               /* files and folders that are no pictures, and the first of them */
    char *first_passed;
    char **classes;
    int64_t nclasses;
} rt_picture_files;
bool rt_is_pattern(const char *path); /* has wildcards */
/* Adds what a path means: a file, a pattern, a directory. */
rt_status rt_picture_files_find(rt_picture_files *f, const char *path,
                                const rt_data_options *o) RT_MUST_CHECK;
void rt_picture_files_tell(const rt_picture_files *f); /* warns of what was passed over */
void rt_picture_files_deinit(rt_picture_files *f);

/* A data set as folders of pictures, and whether those of a directory are all there. */
rt_status rt_picture_folders_write(const rt_dataset *d, const rt_part *train, const rt_part *test,
                                   const char *to) RT_MUST_CHECK;
rt_status rt_picture_folders_check(const char *dir) RT_MUST_CHECK;
/* For forms of images: rows must have classes and be (c, h, w); row i of a part as bytes. */
rt_status rt_write_check_images(const rt_dataset *d, const char *to) RT_MUST_CHECK;
void rt_part_row_bytes(uint8_t *dst, const rt_part *p, int64_t i, int64_t elems);

bool rt_augment_any(const rt_augment *a);
/* One image (c, h, w), u8 or f32, to floats: the augmentation of row number `source` in this epoch. */
void rt_augment_image(const rt_augment *a, uint64_t seed, int64_t epoch, int64_t source, rt_shape row,
                      const uint8_t *u8, const float *f32, float *dst);

#endif
