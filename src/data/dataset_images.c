/*
 * dataset_images.c - pictures in files (picture_files.c says which), brought to one size and one set of colours.
 *
 * Size: size=HxW; else the model's, when there is one; else that of all pictures, if they agree; else a square whose
 * side is the median of their shorter sides, at most 64: what a network on a CPU can take. Pictures of another size are
 * brought to it
 *
 *     resize=crop      so that they just cover it, their middle: nothing is distorted (the rule unless size= is given)
 *     resize=stretch   whatever becomes of their proportions (with size=)
 *
 * Colours: the model's; else RGB if any picture has colours. Grey becomes RGB by repeating its plane, RGB grey by luma;
 * what becomes of transparency, palettes and 16 bits (image_png.c) is told once. How a camera was held (EXIF) is not
 * looked at. A broken file is an error that names it, or with skip_broken left out and counted. Without train/ and
 * test/ a share of the pictures is held out for testing (rt_holdout_mask).
 */
#include "data/data_int.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/log.h"
#include "base/size.h"
#include "base/stop.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIDE_MAX = 64 };

typedef struct image_set {
    rt_picture_files files;
    rt_picture to; /* size and colours wanted */
    bool crop, skip_broken;
    int64_t broken;
    uint8_t *block; /* (n, c, h, w) */
} image_set;

static void image_set_deinit(image_set *s) {
    rt_picture_files_deinit(&s->files);
    rt_free(s->block);
}

rt_status rt_picture_from_pixels(rt_picture *out, const uint8_t *pixels, int64_t c, int64_t h, int64_t w) {
    *out = (rt_picture){.c = c, .h = h, .w = w};
    RT_TRY(rt_alloc(&out->data, (size_t)(c * h * w)));
    for (int64_t k = 0; k < c; k++)
        for (int64_t i = 0; i < h * w; i++)
            out->data[k * h * w + i] = pixels[i * c + k];
    return RT_OK;
}

/* ---- the size ---- */

static int by_value(const void *a, const void *b) {
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* How many pictures are not decoded as they are. */
typedef struct colour_count {
    int64_t grey, alpha, palette, deep;
} colour_count;

static void tell_colours(const colour_count *k, int64_t n, int64_t channels) {
    const struct {
        int64_t count;
        const char *becomes;
    } lines[] = {{channels == 3 ? k->grey : 0, "grey become RGB"},
                 {k->palette, "with a palette become RGB"},
                 {k->alpha, "lose their transparency"},
                 {k->deep, "of 16 bits become 8"}};
    char text[256] = "";
    size_t at = 0;
    for (int64_t i = 0; i < RT_COUNT(lines); i++)
        if (lines[i].count > 0)
            at += (size_t)snprintf(text + at, sizeof text - at, "%s%lld %s", at ? ", " : "",
                                   (long long)lines[i].count, lines[i].becomes);
    if (at > 0)
        rt_log(RT_LOG_INFO, "colours of %lld pictures: %s", (long long)n, text);
}

/* Looks at all headers: the common size, or the square; colours if any has them. */
static rt_status size_by_headers(image_set *s) {
    colour_count colours = {.grey = 0};
    const rt_picture_files *f = &s->files;
    int64_t *side = NULL, n = 0;
    rt_picture first = {.c = 0}, least = {.c = 0}, most = {.c = 0};
    bool same = true;
    rt_status st = RT_OK;
    RT_TRY(rt_calloc(&side, (size_t)f->n + 1, sizeof *side));
    for (int64_t i = 0; i < f->n; i++) {
        uint8_t *file = NULL;
        size_t bytes = 0;
        rt_picture p;
        RT_TRY_GOTO(rt_stop_check("reading", f->path[i]));
        RT_TRY_GOTO(rt_file_read(f->path[i], rt_picture_file_max, &file, &bytes));
        const bool known = rt_picture_size(&p, file, bytes);
        rt_free(file);
        if (!known)
            continue;
        if (n == 0)
            first = least = most = p;
        side[n++] = RT_MIN(p.h, p.w);
        same = same && p.h == first.h && p.w == first.w;
        s->to.c = RT_MAX(s->to.c, p.c);
        colours.grey += p.c == 1;
        colours.palette += p.palette;
        colours.alpha += p.alpha;
        colours.deep += p.deep;
        least = p.h * p.w < least.h * least.w ? p : least;
        most = p.h * p.w > most.h * most.w ? p : most;
    }
    tell_colours(&colours, n, s->to.c);
    qsort(side, (size_t)n, sizeof *side, by_value);
    if (s->to.h == 0 && n > 0) {
        s->to.h = same ? first.h : RT_MIN(side[n / 2], SIDE_MAX);
        s->to.w = same ? first.w : s->to.h;
        if (!same)
            rt_log(RT_LOG_INFO,
                   "pictures from %lld x %lld to %lld x %lld: the middle of each, at %lld x %lld (size=HxW "
                   "decides otherwise)",
                   (long long)least.h, (long long)least.w, (long long)most.h, (long long)most.w,
                   (long long)s->to.h, (long long)s->to.w);
    }
done:
    rt_free(side);
    return st;
}

static rt_status choose_size(image_set *s, const rt_spec *spec, const rt_data_like *like) {
    const char *text = rt_spec_get(spec, "size"), *x = text ? strchr(text, 'x') : NULL,
               *resize = rt_spec_get(spec, "resize");
    RT_FAIL_IF(text && (x == NULL || !rt_parse_i64(text, (size_t)(x - text), &s->to.h) ||
                        !rt_parse_i64(x + 1, strlen(x + 1), &s->to.w) || s->to.h < 1 || s->to.w < 1 ||
                        s->to.h > 4096 || s->to.w > 4096),
               RT_E_USAGE, "data '%s': size=%s, wanted HxW, each from 1 to 4096", spec->whole, text);
    static const char *const ways[] = {"crop", "stretch"};
    if (resize && rt_str_find(resize, ways, RT_COUNT(ways)) < 0)
        RT_FAIL_UNKNOWN(RT_E_USAGE, resize, ways, RT_COUNT(ways), "data '%s': unknown resize", spec->whole);
    if (like && like->row.rank == 3) {
        s->to.c = like->row.d[0] == 1 ? 1 : 3;
        s->to.h = text ? s->to.h : like->row.d[1];
        s->to.w = text ? s->to.w : like->row.d[2];
    }
    if (resize == NULL)
        resize = text ? "stretch" : like && like->resize ? like->resize : "crop";
    s->crop = strcmp(resize, "crop") == 0;
    return s->to.c == 0 || s->to.h == 0 ? size_by_headers(s) : RT_OK;
}

/* ---- pictures of another size or colour ---- */

/* The part of a picture that becomes all of the wanted one. */
static rt_picture cut(const rt_picture *p, const rt_picture *to, bool crop, int64_t *top, int64_t *left) {
    rt_picture part = *p;
    *top = *left = 0;
    if (crop && p->h * to->w > p->w * to->h)
        part.h = RT_MAX((p->w * to->h + to->w / 2) / to->w, 1);
    else if (crop)
        part.w = RT_MAX((p->h * to->w + to->h / 2) / to->h, 1);
    part.h = RT_MIN(part.h, p->h);
    part.w = RT_MIN(part.w, p->w);
    *top = (p->h - part.h) / 2;
    *left = (p->w - part.w) / 2;
    return part;
}

/* Plane c of p; c = -1: luma. */
static void copy_plane(float *to, const rt_picture *p, int64_t c, int64_t top, int64_t left,
                       const rt_picture *part) {
    const int64_t plane = p->h * p->w;
    for (int64_t y = 0; y < part->h; y++)
        for (int64_t x = 0; x < part->w; x++) {
            const uint8_t *at = p->data + (top + y) * p->w + left + x;
            to[y * part->w + x] =
                c >= 0 ? (float)at[c * plane]
                       : 0.299f * (float)at[0] + 0.587f * (float)at[plane] + 0.114f * (float)at[2 * plane];
        }
}

static rt_status place(uint8_t *dst, const rt_picture *p, const image_set *s) {
    const rt_picture *to = &s->to;
    const int64_t plane = to->h * to->w;
    int64_t top, left;
    const rt_picture part = cut(p, to, s->crop, &top, &left);
    float *from = NULL, *sized = NULL;
    rt_status st = RT_OK;
    RT_TRY_GOTO(rt_calloc(&from, (size_t)(part.h * part.w), sizeof *from));
    RT_TRY_GOTO(rt_calloc(&sized, (size_t)plane, sizeof *sized));
    for (int64_t c = 0; c < to->c; c++) {
        if (c > 0 && p->c == 1) {
            memcpy(dst + c * plane, dst, (size_t)plane);
            continue;
        }
        copy_plane(from, p, p->c > to->c ? -1 : c, top, left, &part);
        rt_plane_resize(sized, to->h, to->w, from, part.h, part.w);
        for (int64_t i = 0; i < plane; i++)
            dst[c * plane + i] = (uint8_t)(sized[i] + 0.5f);
    }
done:
    rt_free(from);
    rt_free(sized);
    return st;
}

/* ---- reading ---- */

/* Reads all pictures; those that are broken leave the list, if they may. */
static rt_status read_all(image_set *s) {
    rt_picture_files *f = &s->files;
    size_t row = (size_t)(s->to.c * s->to.h * s->to.w), bytes = 0;
    int64_t kept = 0, train = f->train, valid = f->valid;
    char first[256] = "";
    rt_status st = RT_OK;
    RT_FAIL_IF(!rt_size_mul((size_t)f->n, row, &bytes), RT_E_INPUT, "the pictures are too large together");
    RT_TRY(rt_alloc(&s->block, bytes + 1));
    for (int64_t i = 0; i < f->n; i++) {
        rt_picture p;
        RT_TRY(rt_stop_check("reading", f->path[i]));
        st = rt_picture_read(&p, f->path[i]);
        if (st == RT_OK)
            st = place(s->block + (size_t)kept * row, &p, s);
        rt_free(p.data);
        if (st == RT_E_INPUT && s->skip_broken) {
            if (s->broken++ == 0)
                snprintf(first, sizeof first, "%s", rt_error_text());
            train -= i < f->train;
            valid -= i < f->train && i >= f->train - f->valid;
            continue;
        }
        if (st == RT_E_INPUT)
            snprintf(first, sizeof first, "%s", rt_error_text());
        RT_FAIL_IF(st == RT_E_INPUT, RT_E_INPUT, "%s (--skip-broken leaves such files out)", first);
        RT_TRY(st);
        char *swap = f->path[kept];
        f->path[kept] = f->path[i];
        f->path[i] = swap;
        f->label[kept++] = f->label[i];
    }
    for (int64_t i = kept; i < f->n; i++)
        rt_free(f->path[i]);
    f->n = kept;
    f->train = train;
    f->valid = valid;
    if (s->broken > 0)
        rt_log(RT_LOG_WARN, "%lld broken %s left out, the first: %s", (long long)s->broken,
               s->broken == 1 ? "picture is" : "pictures are", first);
    return RT_OK;
}

/* ---- all together ---- */

static rt_status find_all(image_set *s, const rt_spec *spec, const rt_data_options *o) {
    for (int64_t i = 0; i < spec->files; i++)
        RT_TRY(rt_picture_files_find(&s->files, spec->file[i], o));
    RT_FAIL_IF(spec->files > 1 && s->files.labelled, RT_E_USAGE,
               "%s: folders of classes, one directory at a time", spec->whole);
    return spec->files > 0 ? RT_OK : rt_picture_files_find(&s->files, spec->path[0], o);
}

/* File names, for those who want to know which row is which. */
static rt_status name_rows(rt_dataset *d, const rt_picture_files *f, const uint8_t *is_test) {
    int64_t at[2] = {0, 0};
    for (int k = 0; k < 2; k++)
        RT_TRY(rt_arena_alloc(&d->arena, &d->row_name[k], ((size_t)f->n + 1) * sizeof(char *)));
    for (int64_t i = 0; i < f->n; i++)
        RT_TRY(rt_arena_strdup(&d->arena, &d->row_name[is_test[i]][at[is_test[i]]++], f->path[i]));
    return RT_OK;
}

static rt_status make_mask(rt_dataset *d, uint8_t **is_test, const image_set *s, const rt_spec *spec,
                           const rt_data_options *o) {
    const rt_picture_files *f = &s->files;
    if (f->labelled && !f->two)
        return rt_holdout_mask(d, is_test, spec, o, f->n, f->label);
    RT_TRY(rt_calloc(is_test, (size_t)f->n + 1, 1));
    memset(*is_test + f->train, 1, (size_t)(f->n - f->train));
    return RT_OK;
}

rt_status rt_load_images(rt_dataset *d, const rt_spec *spec, rt_data_options o) {
    static const char *const keys[] = {"size", "resize", "test", "seed"};
    image_set s = {.skip_broken = o.skip_broken};
    uint8_t *is_test = NULL;
    rt_status st = RT_OK;
    RT_TRY(rt_spec_check(spec, spec->files == 0, 1, keys, RT_COUNT(keys)));
    RT_TRY_GOTO(rt_spec_get_u64(spec, "seed", &d->split_seed));
    RT_TRY_GOTO(find_all(&s, spec, &o));
    rt_picture_files_tell(&s.files);
    RT_TRY_GOTO(choose_size(&s, spec, o.like));
    RT_TRY_GOTO(read_all(&s));
    if (s.files.n == 0)
        RT_FAIL_GOTO(RT_E_INPUT, "data '%s': no pictures%s", spec->whole,
                     s.broken > 0 ? " that are whole" : "");
    s.files.labelled = s.files.labelled && !o.unlabelled;
    if (s.files.labelled) {
        d->classes = s.files.nclasses;
        RT_TRY_GOTO(rt_dataset_name_classes(d, (const char *const *)s.files.classes));
    }
    d->row = rt_shape3(s.to.c, s.to.h, s.to.w);
    d->resize = s.crop ? "crop" : "stretch";
    RT_TRY_GOTO(make_mask(d, &is_test, &s, spec, &o));
    RT_TRY_GOTO(name_rows(d, &s.files, is_test));
    rt_part all = {.n = s.files.n, .u8 = s.block, .label = s.files.labelled ? s.files.label : NULL};
    d->valid_rows = s.files.valid;
    st = rt_dataset_divide(d, &all, is_test, o.test_only);
done:
    rt_free(is_test);
    image_set_deinit(&s);
    return st;
}
