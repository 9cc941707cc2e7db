/*
 * dataset_images.c - pictures in folders, one folder per class, perhaps under train/ and test/.
 *
 * Class numbers follow the sorted folder names; test/ must have no class that train/ lacks. Hidden files and
 * files that are neither .png nor .jpg/.jpeg are passed over. All pictures must have one size, or size=HxW
 * brings them to it. The set is grey if all pictures are grey, else RGB. Without train/ and test/ a share of
 * the pictures is held out for testing (rt_holdout_mask).
 */
#include "data/data_int.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/log.h"
#include "base/size.h"

#include <string.h>
#include <strings.h>

typedef struct image_set {
    rt_picture *picture;
    int32_t *label;
    int64_t n, cap;
    int64_t h, w, c;        /* size wanted (0: that of the first), most channels */
    char first[256];        /* the picture that set the size */
    int64_t size_h, size_w; /* size=HxW or 0 */
} image_set;

static void image_set_deinit(image_set *s) {
    for (int64_t i = 0; i < s->n; i++)
        rt_free(s->picture[i].data);
    rt_free(s->picture);
    rt_free(s->label);
}

rt_status rt_picture_from_pixels(rt_picture *out, const uint8_t *pixels, int64_t c, int64_t h, int64_t w) {
    *out = (rt_picture){.c = c, .h = h, .w = w};
    RT_TRY(rt_alloc(&out->data, (size_t)(c * h * w)));
    for (int64_t k = 0; k < c; k++)
        for (int64_t i = 0; i < h * w; i++)
            out->data[k * h * w + i] = pixels[i * c + k];
    return RT_OK;
}

static rt_status image_resize(rt_picture *p, int64_t h, int64_t w) {
    if (p->h == h && p->w == w)
        return RT_OK;
    float *from = NULL, *to = NULL;
    uint8_t *data = NULL;
    rt_status st = RT_OK;
    RT_TRY_GOTO(rt_calloc(&from, (size_t)(p->h * p->w), sizeof *from));
    RT_TRY_GOTO(rt_calloc(&to, (size_t)(h * w), sizeof *to));
    RT_TRY_GOTO(rt_alloc(&data, (size_t)(p->c * h * w)));
    for (int64_t c = 0; c < p->c; c++) {
        for (int64_t i = 0; i < p->h * p->w; i++)
            from[i] = p->data[c * p->h * p->w + i];
        rt_plane_resize(to, h, w, from, p->h, p->w);
        for (int64_t i = 0; i < h * w; i++)
            data[c * h * w + i] = (uint8_t)(to[i] + 0.5f);
    }
    rt_free(p->data);
    *p = (rt_picture){.c = p->c, .h = h, .w = w, .data = data};
done:
    rt_free(from);
    rt_free(to);
    return st;
}

static bool image_is_png(const char *name) {
    size_t n = strlen(name);
    return n > 4 && strcasecmp(name + n - 4, ".png") == 0;
}
static bool image_is_jpeg(const char *name) {
    size_t n = strlen(name);
    return (n > 4 && strcasecmp(name + n - 4, ".jpg") == 0) ||
           (n > 5 && strcasecmp(name + n - 5, ".jpeg") == 0);
}

static rt_status image_read(rt_picture *out, const char *path) {
    uint8_t *file = NULL;
    size_t n = 0;
    *out = (rt_picture){.data = NULL};
    RT_TRY(rt_file_read(path, (size_t)1 << 28, &file, &n));
    rt_status st =
        image_is_png(path) ? rt_png_decode(out, file, n, path) : rt_jpeg_decode(out, file, n, path);
    rt_free(file);
    return st;
}

static rt_status image_grow(image_set *s) {
    if (s->n < s->cap)
        return RT_OK;
    size_t old = (size_t)s->cap, cap = old ? old * 2 : 256;
    RT_TRY(rt_realloc(&s->picture, old * sizeof *s->picture, cap * sizeof *s->picture));
    RT_TRY(rt_realloc(&s->label, old * sizeof *s->label, cap * sizeof *s->label));
    s->cap = (int64_t)cap;
    return RT_OK;
}

static rt_status image_add(image_set *s, const char *path, int32_t label) {
    RT_TRY(image_grow(s));
    rt_picture *p = &s->picture[s->n];
    RT_TRY(image_read(p, path));
    s->label[s->n++] = label;
    if (s->size_h > 0)
        RT_TRY(image_resize(p, s->size_h, s->size_w));
    if (s->h == 0) {
        s->h = p->h;
        s->w = p->w;
        strncpy(s->first, path, sizeof s->first - 1);
    }
    RT_FAIL_IF(p->h != s->h || p->w != s->w, RT_E_INPUT,
               "%s is %lld x %lld, but %s is %lld x %lld (size=HxW brings all to one size)", path,
               (long long)p->h, (long long)p->w, s->first, (long long)s->h, (long long)s->w);
    s->c = RT_MAX(s->c, p->c);
    return RT_OK;
}

static rt_status image_folder(image_set *s, const char *dir, int32_t label) {
    char **names = NULL, *path = NULL;
    int64_t n = 0, before = s->n;
    rt_status st = RT_OK;
    RT_TRY(rt_dir_list(dir, &names, &n));
    for (int64_t i = 0; i < n; i++) {
        if (names[i][0] == '.')
            continue;
        if (!image_is_png(names[i]) && !image_is_jpeg(names[i])) {
            rt_log(RT_LOG_WARN, "%s/%s is passed over: neither .png nor .jpg", dir, names[i]);
            continue;
        }
        RT_TRY_GOTO(rt_path_join(&path, dir, names[i]));
        RT_TRY_GOTO(image_add(s, path, label));
        rt_free(path);
        path = NULL;
    }
    if (s->n == before)
        RT_FAIL_GOTO(RT_E_INPUT, "%s: no .png and no .jpg file", dir);
done:
    rt_free(path);
    rt_names_free(names, n);
    return st;
}

/* Class folders of a directory: sorted names, hidden ones and plain files left out. */
static rt_status image_classes(const char *dir, char ***names, int64_t *n) {
    int64_t all = 0, kept = 0;
    rt_status st = RT_OK;
    RT_TRY(rt_dir_list(dir, names, &all));
    for (int64_t i = 0; i < all; i++) {
        char *path = NULL;
        bool folder = false;
        if (st == RT_OK && (*names)[i][0] != '.' && (st = rt_path_join(&path, dir, (*names)[i])) == RT_OK)
            folder = rt_dir_exists(path);
        rt_free(path);
        if (folder && kept < RT_CLASSES_MAX) {
            char *keep = (*names)[i];
            (*names)[i] = (*names)[kept];
            (*names)[kept++] = keep;
        }
    }
    /* the names are kept in order in front; the rest is behind, to be freed with them */
    *n = kept;
    if (st == RT_OK && kept == 0)
        st = rt_error_set(RT_E_INPUT, __FILE__, __LINE__, "%s: no class folders", dir);
    for (int64_t i = kept; i < all; i++) {
        rt_free((*names)[i]);
        (*names)[i] = NULL;
    }
    if (st != RT_OK) {
        rt_names_free(*names, kept);
        *names = NULL;
        *n = 0;
    }
    return st;
}

/* All pictures under dir/NAME for the given classes; a class without a folder is allowed in a test part. */
static rt_status image_part(image_set *s, const char *dir, char **classes, int64_t n) {
    char **here = NULL, *path = NULL;
    int64_t count = 0;
    rt_status st = RT_OK;
    RT_TRY(image_classes(dir, &here, &count));
    for (int64_t i = 0, k = 0; i < count; i++) {
        while (k < n && strcmp(classes[k], here[i]) < 0)
            k++;
        if (k == n || strcmp(classes[k], here[i]) != 0)
            RT_FAIL_GOTO(RT_E_INPUT, "%s: class '%s' is not among the training classes", dir, here[i]);
        RT_TRY_GOTO(rt_path_join(&path, dir, here[i]));
        RT_TRY_GOTO(image_folder(s, path, (int32_t)k));
        rt_free(path);
        path = NULL;
    }
done:
    rt_free(path);
    rt_names_free(here, count);
    return st;
}

/* One block (n, c, h, w) for all pictures; a grey picture in a colour set repeats its plane. */
static rt_status image_block(uint8_t **out, const image_set *s) {
    size_t plane = (size_t)(s->h * s->w), bytes = 0;
    RT_FAIL_IF(!rt_size_mul((size_t)s->n, (size_t)s->c * plane, &bytes), RT_E_INPUT,
               "the pictures are too large together");
    RT_TRY(rt_alloc(out, bytes));
    for (int64_t i = 0; i < s->n; i++)
        for (int64_t c = 0; c < s->c; c++)
            memcpy(*out + (size_t)(i * s->c + c) * plane,
                   s->picture[i].data + (size_t)(s->picture[i].c == 1 ? 0 : c) * plane, plane);
    return RT_OK;
}

static rt_status image_size_option(image_set *s, const rt_spec *spec) {
    const char *text = rt_spec_get(spec, "size"), *x = text ? strchr(text, 'x') : NULL;
    if (text == NULL)
        return RT_OK;
    RT_FAIL_IF(x == NULL || !rt_parse_i64(text, (size_t)(x - text), &s->size_h) ||
                   !rt_parse_i64(x + 1, strlen(x + 1), &s->size_w) || s->size_h < 1 || s->size_w < 1 ||
                   s->size_h > 4096 || s->size_w > 4096,
               RT_E_USAGE, "data '%s': size=%s, wanted HxW, each from 1 to 4096", spec->whole, text);
    return RT_OK;
}

/* DIR/train and DIR/test; is_test follows from where a picture was found. */
static rt_status image_two_parts(rt_dataset *d, image_set *s, uint8_t **is_test, const char *train,
                                 const char *test, bool test_only) {
    char **classes = NULL;
    int64_t n = 0, train_n = 0;
    rt_status st = RT_OK;
    RT_TRY(image_classes(train, &classes, &n));
    d->classes = n;
    RT_TRY_GOTO(rt_dataset_name_classes(d, (const char *const *)classes));
    if (!test_only)
        RT_TRY_GOTO(image_part(s, train, classes, n));
    train_n = s->n;
    RT_TRY_GOTO(image_part(s, test, classes, n));
    RT_TRY_GOTO(rt_calloc(is_test, (size_t)s->n, 1));
    memset(*is_test + train_n, 1, (size_t)(s->n - train_n));
done:
    rt_names_free(classes, n);
    return st;
}

static rt_status image_one_part(rt_dataset *d, image_set *s, uint8_t **is_test, const char *dir,
                                const rt_spec *spec) {
    char **classes = NULL;
    int64_t n = 0;
    rt_status st = RT_OK;
    RT_TRY(image_classes(dir, &classes, &n));
    d->classes = n;
    RT_TRY_GOTO(rt_dataset_name_classes(d, (const char *const *)classes));
    RT_TRY_GOTO(image_part(s, dir, classes, n));
    st = rt_holdout_mask(is_test, spec, s->n);
done:
    rt_names_free(classes, n);
    return st;
}

rt_status rt_load_images(rt_dataset *d, const rt_spec *spec, rt_data_options o) {
    static const char *const keys[] = {"size", "test", "seed"};
    image_set s = {.n = 0};
    char *train = NULL, *test = NULL;
    uint8_t *is_test = NULL, *block = NULL;
    rt_status st = RT_OK;
    RT_TRY(rt_spec_check(spec, 1, 1, keys, RT_COUNT(keys)));
    RT_TRY_GOTO(image_size_option(&s, spec));
    RT_TRY_GOTO(rt_path_join(&train, spec->path[0], "train"));
    RT_TRY_GOTO(rt_path_join(&test, spec->path[0], "test"));
    if (rt_dir_exists(train) && rt_dir_exists(test))
        RT_TRY_GOTO(image_two_parts(d, &s, &is_test, train, test, o.test_only));
    else
        RT_TRY_GOTO(image_one_part(d, &s, &is_test, rt_dir_exists(train) ? train : spec->path[0], spec));
    d->row = rt_shape3(s.c, s.h, s.w);
    RT_TRY_GOTO(image_block(&block, &s));
    rt_part all = {.n = s.n, .u8 = block, .label = s.label};
    st = rt_dataset_divide(d, &all, is_test, o.test_only);
done:
    rt_free(block);
    rt_free(is_test);
    rt_free(train);
    rt_free(test);
    image_set_deinit(&s);
    return st;
}
