/*
 * picture_files.c - which pictures a SPEC or a list of names means, and the class of each.
 *
 *     DIR with folders          one folder per class, classes in the order of their names; perhaps under train/, test/
 *                               and val/ (or valid/, validation/), of which the last two may lack classes but have none
 *                               of their own; or under test/ alone
 *     DIR of pictures           no classes: rows to be predicted
 *     FILE, PATTERN             the same (* ? [...] in any part of a path)
 *
 * For a model, classes are the model's: a folder is looked up by name. Hidden files are passed over without a word,
 * what is neither .png nor .jpg/.jpeg is counted. Pictures of val/ are the last of the training part. Without test/ it
 * is not read, and a warning says so: by what is called val/ then, many mean the test part.
 */
#include "data/data_int.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/log.h"

#include <fnmatch.h>
#include <string.h>
#include <strings.h>

static const char WILD[] = "*?[";

void rt_picture_files_deinit(rt_picture_files *f) {
    rt_names_free(f->path, f->n);
    rt_names_free(f->classes, f->nclasses);
    rt_free(f->label);
    rt_free(f->first_passed);
    *f = (rt_picture_files){.n = 0};
}

static bool ends(const char *name, const char *ending) {
    const size_t n = strlen(name), e = strlen(ending);
    return n > e && strcasecmp(name + n - e, ending) == 0;
}

bool rt_picture_is_png(const char *name) {
    return ends(name, ".png");
}

rt_status rt_picture_read(rt_picture *out, const char *path) {
    uint8_t *file = NULL;
    size_t n = 0;
    *out = (rt_picture){.data = NULL};
    RT_TRY(rt_file_read(path, rt_picture_file_max, &file, &n));
    const rt_status st =
        rt_picture_is_png(path) ? rt_png_decode(out, file, n, path) : rt_jpeg_decode(out, file, n, path);
    rt_free(file);
    return st;
}

bool rt_picture_is_file(const char *name) {
    return rt_picture_is_png(name) || ends(name, ".jpg") || ends(name, ".jpeg");
}

static rt_status add(rt_picture_files *f, const char *path, int32_t label) {
    if (f->n == f->cap) {
        const size_t old = (size_t)f->cap, cap = old ? old * 2 : 256;
        RT_TRY(rt_realloc(&f->path, old * sizeof *f->path, cap * sizeof *f->path));
        RT_TRY(rt_realloc(&f->label, old * sizeof *f->label, cap * sizeof *f->label));
        f->cap = (int64_t)cap;
    }
    f->path[f->n] = rt_strdup(path);
    if (f->path[f->n] == NULL)
        return RT_E_MEMORY;
    f->label[f->n++] = label;
    return RT_OK;
}

/* A picture by its name joins the list; anything else is counted. */
static rt_status add_or_pass(rt_picture_files *f, const char *path, int32_t label) {
    if (rt_picture_is_file(path))
        return add(f, path, label);
    if (f->passed++ == 0)
        f->first_passed = rt_strdup(path);
    return f->first_passed ? RT_OK : RT_E_MEMORY;
}

void rt_picture_files_tell(const rt_picture_files *f) {
    const bool folder = f->passed > 0 && rt_dir_exists(f->first_passed);
    const char *why = folder ? "a folder where pictures are wanted" : "neither .png nor .jpg";
    if (f->passed == 1)
        rt_log(RT_LOG_WARN, "%s is passed over: %s", f->first_passed, why);
    else if (f->passed > 1)
        rt_log(RT_LOG_WARN, "%lld names are passed over, the first: %s (%s)", (long long)f->passed,
               f->first_passed, why);
}

/* What a path with wildcards in `rest`, its parts below dir, means. */
static rt_status add_matches(rt_picture_files *f, const char *dir, const char *rest) {
    char **names = NULL, *path = NULL, *part = rt_strdup(rest);
    int64_t n = 0;
    rt_status st = part ? RT_OK : RT_E_MEMORY;
    const size_t length = strcspn(rest, "/");
    const char *below = rest + length + strspn(rest + length, "/");
    RT_TRY_GOTO(st);
    part[length] = 0;
    RT_TRY_GOTO(rt_dir_list(dir, &names, &n));
    for (int64_t i = 0; i < n; i++) {
        if (fnmatch(part, names[i], FNM_PERIOD) != 0)
            continue;
        RT_TRY_GOTO(rt_path_join(&path, dir, names[i]));
        if (*below == 0)
            RT_TRY_GOTO(add_or_pass(f, path, 0));
        else if (rt_dir_exists(path))
            RT_TRY_GOTO(add_matches(f, path, below));
        rt_free(path);
        path = NULL;
    }
done:
    rt_free(path);
    rt_free(part);
    rt_names_free(names, n);
    return st;
}

/* The pictures of one folder. */
static rt_status add_folder(rt_picture_files *f, const char *dir, int32_t label) {
    char **names = NULL, *path = NULL;
    int64_t n = 0;
    const int64_t before = f->n;
    const char *other = NULL;
    rt_status st = RT_OK;
    RT_TRY(rt_dir_list(dir, &names, &n));
    for (int64_t i = 0; i < n; i++) {
        if (names[i][0] == '.')
            continue;
        other = names[i];
        RT_TRY_GOTO(rt_path_join(&path, dir, names[i]));
        RT_TRY_GOTO(add_or_pass(f, path, label));
        rt_free(path);
        path = NULL;
    }
    if (f->n == before)
        RT_FAIL_GOTO(RT_E_INPUT, "%s: no .png and no .jpg file%s%s", dir, other ? ", but " : "",
                     other ? other : "");
done:
    rt_free(path);
    rt_names_free(names, n);
    return st;
}

/* Folders in a directory: sorted names, without hidden ones. */
static rt_status folders(const char *dir, char ***names, int64_t *n) {
    int64_t all = 0, kept = 0;
    rt_status st = RT_OK;
    RT_TRY(rt_dir_list(dir, names, &all));
    for (int64_t i = 0; i < all; i++) {
        char *path = NULL, *name = (*names)[i];
        bool folder = false;
        if (st == RT_OK && name[0] != '.' && (st = rt_path_join(&path, dir, name)) == RT_OK)
            folder = rt_dir_exists(path);
        rt_free(path);
        (*names)[i] = NULL;
        if (folder && kept < RT_CLASSES_MAX)
            (*names)[kept++] = name;
        else
            rt_free(name);
    }
    *n = kept;
    if (st != RT_OK) {
        rt_names_free(*names, kept);
        *names = NULL;
        *n = 0;
    }
    return st;
}

static int64_t find_class(const rt_picture_files *f, const char *name) {
    for (int64_t k = 0; k < f->nclasses; k++)
        if (strcmp(f->classes[k], name) == 0)
            return k;
    return -1;
}

/* All pictures under the class folders of dir. */
static rt_status add_classes(rt_picture_files *f, const char *dir, const rt_data_options *o) {
    char **here = NULL, *path = NULL;
    int64_t n = 0;
    rt_status st = RT_OK;
    RT_TRY(folders(dir, &here, &n));
    if (n == 0)
        RT_FAIL_GOTO(RT_E_INPUT, "%s: no class folders", dir);
    for (int64_t i = 0; i < n; i++) {
        const int64_t k = find_class(f, here[i]);
        if (k < 0 && o->whole)
            f->labelled = false; /* folders of another kind */
        else if (k < 0)
            RT_FAIL_GOTO(RT_E_INPUT, "%s: class '%s' is not among the %s classes", dir, here[i],
                         o->like ? "model's" : "training");
        RT_TRY_GOTO(rt_path_join(&path, dir, here[i]));
        RT_TRY_GOTO(add_folder(f, path, (int32_t)RT_MAX(k, 0)));
        rt_free(path);
        path = NULL;
    }
done:
    rt_free(path);
    rt_names_free(here, n);
    return st;
}

/* The names of the classes: the model's, or of the folders. */
static rt_status name_classes(rt_picture_files *f, const char *dir, const rt_data_like *like) {
    if (like == NULL || like->task != RT_TASK_CLASSIFICATION)
        return folders(dir, &f->classes, &f->nclasses);
    RT_TRY(rt_calloc(&f->classes, (size_t)like->classes + 1, sizeof *f->classes));
    for (; f->nclasses < like->classes; f->nclasses++)
        if ((f->classes[f->nclasses] = rt_strdup(like->class_name[f->nclasses])) == NULL)
            return RT_E_MEMORY;
    return RT_OK;
}

/* The folder of validation pictures in dir; *out NULL: there is none. */
static rt_status find_validation(char **out, const char *dir) {
    static const char *const names[] = {"val", "valid", "validation"};
    *out = NULL;
    for (int64_t i = 0; i < RT_COUNT(names); i++) {
        char *path = NULL;
        RT_TRY(rt_path_join(&path, dir, names[i]));
        if (*out == NULL && rt_dir_exists(path)) {
            *out = path;
            continue;
        }
        if (rt_dir_exists(path))
            rt_log(RT_LOG_WARN, "%s is not read: the validation rows are those of %s", path, *out);
        rt_free(path);
    }
    return RT_OK;
}

static rt_status add_parts(rt_picture_files *f, const char *train, const char *valid, const char *test,
                           const rt_data_options *o) {
    f->labelled = f->two = true;
    RT_TRY(name_classes(f, train, o->like));
    if (!o->test_only || o->whole) {
        RT_TRY(add_classes(f, train, o));
        f->valid = f->n;
        if (valid && !o->older)
            RT_TRY(add_classes(f, valid, o));
        f->valid = o->whole ? 0 : f->n - f->valid;
    }
    f->train = o->whole ? 0 : f->n;
    return add_classes(f, test, o);
}

static rt_status add_directory(rt_picture_files *f, const char *dir, const rt_data_options *o) {
    char *train = NULL, *valid = NULL, *test = NULL, **names = NULL;
    int64_t n = 0;
    rt_status st = RT_OK;
    RT_TRY(rt_picture_folders_check(dir));
    RT_TRY_GOTO(rt_path_join(&train, dir, "train"));
    RT_TRY_GOTO(rt_path_join(&test, dir, "test"));
    const bool to_train = rt_dir_exists(train);
    if (to_train)
        RT_TRY_GOTO(find_validation(&valid, dir));
    if (to_train && rt_dir_exists(test)) {
        st = add_parts(f, train, valid, test, o);
        goto done;
    }
    if (valid)
        rt_log(RT_LOG_WARN,
               "%s is not read, because there is no test/ beside it: validation and test rows are drawn from "
               "train/; "
               "called test/, it would be the test part",
               valid);
    RT_TRY_GOTO(folders(dir, &names, &n));
    f->two = n == 1 && strcmp(names[0], "test") == 0; /* the test part alone */
    const char *at = to_train ? train : f->two ? test : dir;
    rt_names_free(names, n);
    names = NULL;
    n = 0;
    RT_TRY_GOTO(folders(at, &names, &n));
    if (n == 0) {
        st = add_folder(f, at, 0);
        goto done;
    }
    f->labelled = true;
    RT_TRY_GOTO(name_classes(f, at, o->like));
    st = add_classes(f, at, o);
done:
    rt_names_free(names, n);
    rt_free(train);
    rt_free(valid);
    rt_free(test);
    return st;
}

static rt_status add_pattern(rt_picture_files *f, const char *path) {
    size_t plain = strcspn(path, WILD); /* where the first part with a wildcard begins */
    const int64_t before = f->n;
    while (plain > 0 && path[plain - 1] != '/')
        plain--;
    char *dir = rt_strdup(plain > 0 ? path : "."); /* "album/": its slash stays, "/" is one, too */
    if (dir == NULL)
        return RT_E_MEMORY;
    dir[RT_MAX(plain, (size_t)2) - 1] = 0;
    rt_status st = add_matches(f, dir, path + plain);
    rt_free(dir);
    RT_TRY(st);
    RT_FAIL_IF(f->n == before, RT_E_INPUT, "no .png and no .jpg file is called %s", path);
    return RT_OK;
}

bool rt_is_pattern(const char *path) {
    return strpbrk(path, WILD) != NULL;
}

rt_status rt_picture_files_find(rt_picture_files *f, const char *path, const rt_data_options *o) {
    if (rt_dir_exists(path))
        return add_directory(f, path, o);
    if (!rt_file_exists(path) && rt_is_pattern(path))
        return add_pattern(f, path);
    RT_FAIL_IF(!rt_picture_is_file(path), RT_E_INPUT, "%s: neither a directory nor a .png or .jpg file%s",
               path, rt_file_exists(path) ? "" : "; it is not there");
    return add(f, path, 0);
}
