/*
 * distort.h - images made harder on purpose. A corruption (corruptions.def) has severities 1 to 5 and
 * gives pixels of 8 bits, as the benchmark's files do; a shift (shifts.def) has an amount in its own unit
 * (degrees, pixels) and gives floats, which may overshoot [0, 1] a little.
 *
 * A distortion is prepared for one kind, severity, seed and shape of image, and immutable then: kernels and
 * tables are made once. Running it is a pure function of it, the row number and the image, so any thread may
 * do any row; it allocates nothing but what libjpeg takes for itself.
 *
 *     const rt_corruption *fog = NULL;
 *     rt_corruption_find(&fog, "fog");
 *     rt_distortion_corrupt(&d, fog, 3, row, seed);
 *     rt_distortion_part(d, test, pool, &foggy);     rows in foggy.u8, labels borrowed from test
 */
#ifndef RT_DISTORT_DISTORT_H
#define RT_DISTORT_DISTORT_H

#include "base/pool.h"
#include "data/data.h"

enum { RT_SEVERITIES = 5, RT_IMAGE_MIN = 8 /* the smallest height and width */ };
typedef struct rt_corruption {
    const char *name, *meaning;
    bool benchmark; /* one of the 15 types of CIFAR-10-C; the others are extra */
} rt_corruption;
int64_t rt_corruption_count(void);
const rt_corruption *rt_corruption_get(int64_t i); /* in the order of the table: the benchmark first */
rt_status rt_corruption_find(const rt_corruption **out, const char *name) RT_MUST_CHECK;

enum { RT_SHIFT_AMOUNTS = 16 };
typedef struct rt_shift {
    const char *name, *unit, *meaning;
} rt_shift;
int64_t rt_shift_count(void);
const rt_shift *rt_shift_get(int64_t i);
rt_status rt_shift_find(const rt_shift **out, const char *name) RT_MUST_CHECK;
/* The amounts the literature uses for images (c, h, w): how many, at most RT_SHIFT_AMOUNTS. */
int64_t rt_shift_amounts(const rt_shift *s, rt_shape row, double *out);

typedef struct rt_distortion rt_distortion;
/* row: (c, h, w), 1 or 3 channels, h and w at least RT_IMAGE_MIN; anything else is refused. */
rt_status rt_distortion_corrupt(rt_distortion **out, const rt_corruption *c, int severity, rt_shape row,
                                uint64_t seed) RT_MUST_CHECK;
/* Ice of frost from the photographs in a directory instead of drawn; other distortions are left as they are. */
rt_status rt_distortion_photographs(rt_distortion *d, const char *dir) RT_MUST_CHECK;
rt_status rt_distortion_shift(rt_distortion **out, const rt_shift *s, double amount,
                              rt_shape row) RT_MUST_CHECK;
void rt_distortion_destroy(rt_distortion **d);
size_t rt_distortion_scratch(const rt_distortion *d); /* bytes that each thread needs, 64-byte aligned */
/* One image (c, h, w), as u8 or, if that is NULL, as floats in [0, 1], into dst_u8 and dst_f32 (c, h, w),
 * either of which may be NULL. dst_f32 of a corruption is dst_u8 / 255. */
rt_status rt_distortion_run(const rt_distortion *d, int64_t row_number, void *scratch, const uint8_t *u8,
                            const float *f32, uint8_t *dst_u8, float *dst_f32) RT_MUST_CHECK;
/* All rows of a part. A corruption fills out->u8, a shift out->f32: rt_alloc'ed, freed by rt_part_free;
 * labels and targets are borrowed from p. pool may be NULL. */
rt_status rt_distortion_part(const rt_distortion *d, const rt_part *p, rt_pool *pool,
                             rt_part *out) RT_MUST_CHECK;

#endif
