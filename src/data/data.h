/*
 * data.h - data sets and batches.
 *
 * A data set is described by a SPEC, has up to two parts (train, test) and is immutable once loaded. Pixels
 * stay u8 in memory and leave as float in [0, 1], planes (c, h, w); table rows are float as they are.
 * Standardisation is the network's business (it travels in the model). A batch is a pure function of (seed,
 * epoch, index): nothing needs to be saved to resume, members with different seeds see different orders,
 * and any thread may prepare it.
 */
#ifndef RT_DATA_DATA_H
#define RT_DATA_DATA_H

#include "base/pool.h"
#include "base/str.h"
#include "tensor/tensor.h"

/* Arrays that the caller of the library lends, for "memory:NAME" on this thread. */
void rt_memory_lend(const rt_memory *m, int n);

/* A table that stays in its file: rows of numbers as io/numbers.c names them. */
typedef struct rt_stored {
    const uint8_t *data;
    char kind;
    int itemsize;
} rt_stored;

/* Rows are in one of three forms; rt_part_values reads any of them. */
typedef struct rt_part {
    int64_t n;
    const uint8_t *u8;       /* images (n, c, h, w), or NULL */
    const float *f32;        /* anything else (n, row...), or NULL */
    const rt_stored *stored; /* or row i is row at[i] of this, or NULL */
    const int64_t *at;
    const int32_t *label; /* classification (n) */
    const float *target;  /* regression (n) */
} rt_part;

/* Which rows are held out (split.c). */
typedef enum rt_split { RT_SPLIT_STRATIFIED, RT_SPLIT_RANDOM, RT_SPLIT_LAST, RT_SPLITS } rt_split;
const char *rt_split_name(rt_split s);
rt_split rt_split_find(const char *name); /* RT_SPLITS if there is none of that name */

/* Values [first, first + n) of row i, of rows of `elems` values, as floats; bytes become [0, 1]. */
void rt_part_values(const rt_part *p, int64_t elems, int64_t i, int64_t first, int64_t n, float *dst);

typedef struct rt_dataset rt_dataset;
/* What a model was trained on. A source that knows names (images, csv) looks up the model's own classes and columns,
 * pictures are brought to its size, and rows without labels take over its task. */
typedef struct rt_data_like {
    rt_task task;
    rt_shape row;
    int64_t classes;
    const char *const *class_name;
    const char *resize; /* how pictures were brought to one size; NULL: not known */
    const char *table;  /* rt_dataset_table of its data; NULL: it was no table */
} rt_data_like;
typedef struct rt_data_options {
    uint64_t seed;    /* of generators */
    int64_t limit;    /* keep only the first rows of each part; 0: all */
    bool test_only;   /* for evaluation: do not read the training part where the source has two */
    rt_split split;   /* how sources without a test part draw one */
    bool whole;       /* they draw none: all rows are in the test part */
    bool unlabelled;  /* labels are not checked, and perhaps not read; whole, too */
    bool older;       /* as version 0.1 did: columns that count the rows are features, val/ is not read */
    bool skip_broken; /* pictures that cannot be decoded are left out, and a warning counts them */
    const rt_data_like *like; /* for a model, or NULL; used while opening only */
} rt_data_options;
rt_status rt_dataset_open(rt_dataset **out, const char *spec, rt_data_options o) RT_MUST_CHECK;
/* Refuses a SPEC of no known kind, and one whose files are not there; what is in them is not looked at, nor are patterns. */
rt_status rt_source_there(const char *spec) RT_MUST_CHECK;
/* How two SPECs are related, by name: the same rows are divided alike, or otherwise; or nothing is known. */
typedef enum rt_spec_relation { RT_SPEC_OTHER, RT_SPEC_SAME, RT_SPEC_DIVIDED } rt_spec_relation;
rt_status rt_spec_compare(rt_spec_relation *out, const char *a, const char *b) RT_MUST_CHECK;
/* Files as a user names them, all rows: pictures and folders of them, or one table (.csv) or array (.npy, .safetensors,
 * IDX), or a SPEC. */
rt_status rt_dataset_open_files(rt_dataset **out, const char *const *files, int64_t n,
                                rt_data_options o) RT_MUST_CHECK;
/* From arrays the caller owns (tests, C API); borrowed. test may be NULL. */
rt_status rt_dataset_from_arrays(rt_dataset **out, rt_task task, rt_shape row, int64_t classes,
                                 const rt_part *train, const rt_part *test) RT_MUST_CHECK;
void rt_dataset_destroy(rt_dataset **d);
const char *rt_dataset_spec(const rt_dataset *d);
enum { RT_TASKS = 2 };
extern const char *const rt_task_names[RT_TASKS]; /* by rt_task */
rt_task rt_dataset_task(const rt_dataset *d);
rt_shape rt_dataset_row(const rt_dataset *d);    /* (c, h, w) or (f) */
int64_t rt_dataset_classes(const rt_dataset *d); /* 0 for regression */
const char *rt_dataset_class_name(const rt_dataset *d, int64_t k);
const rt_part *rt_dataset_train(const rt_dataset *d); /* n == 0 if the source has no training part */
const rt_part *rt_dataset_test(const rt_dataset *d);  /* the only part when there is one */
/* Rows without labels can be predicted, and nothing else. */
bool rt_dataset_labelled(const rt_dataset *d);
rt_status rt_dataset_need_labels(const rt_dataset *d, const char *what) RT_MUST_CHECK; /* what: "training" */
/* The file that row i of a part (of d) was read from, or NULL. */
const char *rt_dataset_row_name(const rt_dataset *d, const rt_part *p, int64_t i);
const char *rt_dataset_resize(const rt_dataset *d); /* of pictures: "crop" or "stretch"; else NULL */
bool rt_dataset_drawn(const rt_dataset *d); /* the test part was drawn from the rows, as o.split says */
/* The seed= of the SPEC. Rows are held out by it rather than by the seed of a run, so that runs with different seeds,
 * teachers and students hold out the same ones. */
uint64_t rt_dataset_split_seed(const rt_dataset *d);
/* So many rows at the end of the training part are for validation by the source's own word (val/ of pictures). */
int64_t rt_dataset_valid_rows(const rt_dataset *d);
/* Its rows stand in a published order, which those who compare results keep: validation rows are the last. */
bool rt_dataset_ordered(const rt_dataset *d);
const char *
rt_dataset_hash(const rt_dataset *d); /* SHA-256 of rows and labels, hex; computed on first call */

/* Rows of a part. */
typedef struct rt_subset rt_subset;
/*
 * A table (csv) of more than numbers is turned into floats by an encoder: medians for gaps, categories, dates.
 * Opening fits it to the training part; this fits it to rows of that part, those that are trained on, and encodes
 * both parts anew: shape, rows and hash may change. Does nothing for other data, and for data opened for a model,
 * which is encoded as that model wants it.
 */
rt_status rt_dataset_fit(rt_dataset *d, const rt_subset *rows) RT_MUST_CHECK;
/* Encodes both parts as another model wants them (NULL or not a table: as they are); nothing is fitted any more. */
rt_status rt_dataset_encode_as(rt_dataset *d, const char *table) RT_MUST_CHECK;
/* The encoder as JSON (encoder_json.c), for rt_data_like; NULL: not a table. Until the next fit. */
const char *rt_dataset_table(const rt_dataset *d);
/* Whether such a text can be used, for rows of `width` features; `name` says whose it is. */
rt_status rt_dataset_table_check(const char *table, int64_t width, const char *name) RT_MUST_CHECK;
rt_data_like rt_dataset_like(const rt_dataset *d); /* borrowed from d */
/* Columns of a table, without the target: 0 for other data. */
int64_t rt_dataset_columns(const rt_dataset *d);
/* Name and features of column c, and in words what it becomes ("one-hot: Bern, Oslo, other"). */
typedef struct rt_column_info {
    const char *name;
    int64_t first, width;
} rt_column_info;
rt_column_info rt_dataset_column(const rt_dataset *d, int64_t c, rt_str *becomes);
/* Appends the name of feature k of column c: "city=Bern". */
void rt_dataset_feature(const rt_dataset *d, int64_t c, int64_t k, rt_str *out);

/* A list of rows that the subset owns, or, without one, the first rows of the part as they stand. */
struct rt_subset {
    const rt_part *part;
    int64_t n;
    int64_t *index; /* rt_alloc'ed, or NULL; read by rt_subset_row */
};
RT_INLINE rt_subset rt_subset_all(const rt_part *p) {
    return (rt_subset){.part = p, .n = p->n};
}
RT_INLINE int64_t rt_subset_row(const rt_subset *s, int64_t i) { /* of the part */
    return s->index ? s->index[i] : i;
}
RT_INLINE int32_t rt_subset_label(const rt_subset *s, int64_t i) {
    return s->part->label[rt_subset_row(s, i)];
}
RT_INLINE double rt_subset_target(const rt_subset *s, int64_t i) {
    return (double)s->part->target[rt_subset_row(s, i)];
}
RT_INLINE double rt_subset_truth(const rt_subset *s, int64_t i, bool regression) {
    return regression ? rt_subset_target(s, i) : (double)rt_subset_label(s, i);
}
rt_status rt_subset_rows(rt_subset *out, const rt_part *p, const int64_t *rows, int64_t n) RT_MUST_CHECK;
/* At most `most` rows of another, spread evenly; 0: all. */
rt_status rt_subset_some(rt_subset *out, const rt_subset *of, int64_t most) RT_MUST_CHECK;
bool rt_subset_equal(const rt_subset *x, const rt_subset *y); /* the same rows in the same order */
/* valid_n rows for validation, the others for training; both in the order of the part. */
rt_status rt_subset_split(rt_subset *train, rt_subset *valid, const rt_part *p, int64_t valid_n, rt_split how,
                          uint64_t seed) RT_MUST_CHECK;
void rt_subset_deinit(rt_subset *s);
/* Mean and deviation per channel (images, in [0,1] units) or per feature, and of the target (may be
 * NULL). Constant columns get deviation 1. */
void rt_subset_moments(const rt_subset *s, rt_shape row, double *mean, double *std, double *target_mean,
                       double *target_std);

typedef struct rt_augment {
    bool flip;        /* horizontal, probability 1/2 */
    int64_t crop_pad; /* pad by this and crop at random; 0: none */
    bool reflect;     /* pad by reflection instead of zeros */
    int64_t shift;    /* random translation up to this many pixels, zeros shifted in */
    double rotate;    /* random rotation up to +- degrees, bicubic */
} rt_augment;
rt_status rt_augment_parse(rt_augment *out, const char *text)
    RT_MUST_CHECK; /* "flip,crop:4,reflect,shift:2,rotate:15", "none" */

typedef struct rt_batch_spec {
    const rt_subset *set;
    rt_shape row;
    int64_t batch; /* rows per batch */
    bool shuffle, drop_last;
    rt_augment augment; /* all-zero: none */
} rt_batch_spec;
int64_t rt_batch_count(const rt_batch_spec *s); /* batches per epoch */
int64_t rt_batch_rows(const rt_batch_spec *s,
                      int64_t i); /* rows of batch i: fewer in a last one that is kept */
rt_status rt_batch_check(const rt_batch_spec *s) RT_MUST_CHECK; /* whether there is one, as it is asked for */
/* Order of an epoch: places in the set, all of them once; as they stand when not shuffled. */
void rt_batch_order(const rt_batch_spec *s, uint64_t seed, int64_t epoch, int64_t *order);
/* Writes batch i of an epoch whose order is given: x (rows, row...); label, target, source (row numbers
 * in the part) may be NULL. order NULL: as the rows stand. */
void rt_batch_fill(const rt_batch_spec *s, uint64_t seed, int64_t epoch, int64_t i, const int64_t *order,
                   float *x, int32_t *label, float *target, int64_t *source);

/* Batches of several members (seeds), prepared by one background thread a few batches ahead. */
typedef struct rt_prefetch rt_prefetch;
typedef struct rt_batch {
    int64_t epoch, index, rows;
    float *x;        /* (members, rows, row...) */
    int32_t *label;  /* (members, rows), NULL for regression */
    float *target;   /* (members, rows), NULL for classification */
    int64_t *source; /* (members, rows) */
} rt_batch;
rt_status rt_prefetch_create(rt_prefetch **out, const rt_batch_spec *s, const uint64_t *seeds, int members,
                             int64_t epoch, int64_t index) RT_MUST_CHECK;
/* Valid until the next call; goes on through epochs without end. Never allocates. */
rt_status rt_prefetch_next(rt_prefetch *p, const rt_batch **out) RT_MUST_CHECK;
void rt_prefetch_destroy(rt_prefetch **p);

/* The rows of a part as float in another input shape: grey <-> colour, bilinear resize of images.
 * rt_alloc'ed. */
rt_status rt_part_convert(float **out, const rt_part *p, rt_shape from, rt_shape to) RT_MUST_CHECK;
rt_status rt_dataset_write_csv(const rt_dataset *d, const rt_part *p, const char *path) RT_MUST_CHECK;

/*
 * Rows with the shape, task and classes of d, written as the form of `to` says, so that the same text is
 * (part of) a SPEC that reads them back:
 *
 *     FILE.csv               a table
 *     [npy:]X.npy,Y.npy      two arrays
 *     idx:DIR                files as of MNIST: bytes, 256 classes
 *     images:DIR             PNG files, a folder per class
 *
 * The first two take one part; a directory takes two, or one of them (the other NULL).
 */
rt_status rt_dataset_write(const rt_dataset *d, const rt_part *train, const rt_part *test,
                           const char *to) RT_MUST_CHECK;
bool rt_dataset_write_takes_two(const char *to);
/* The rows of a subset as a part of its own, all rt_alloc'ed: free with rt_part_free_copy. */
rt_status rt_subset_copy(rt_part *out, const rt_subset *s, rt_shape row) RT_MUST_CHECK;

/* A PNG file, 8 bits: pixels (h, w, channels), channels 1 (grey) or 3 (RGB). Atomic. */
rt_status rt_image_write_png(const char *path, const uint8_t *pixels, int64_t h, int64_t w,
                             int channels) RT_MUST_CHECK;

void rt_part_free(rt_part *p);      /* of a part that owns its rows */
void rt_part_free_copy(rt_part *p); /* and its labels and targets */

typedef struct rt_source_info {
    const char *name, *form, *meaning;
    bool like; /* rt_source_like */
} rt_source_info;
int rt_source_list(const rt_source_info **out); /* one line per kind of SPEC (sources.def) */
/* Does what a model says decide how rows are read for it? Then rt_data_options.like is wanted. */
bool rt_source_like(const char *spec);

#endif
