/*
 * teacher.c - what a student learns from: the members of runs, or outputs that somebody stored.
 *
 * Several runs are one ensemble, in the order given: the one that `gather` would make of them (rt_model_add). Where
 * they are not of one kind they are parts, which answer one after another for the rows as they are:
 *
 *     equal of all parts    task (classes and their order; target and its scaling), columns of a table, outputs
 *     may differ            architecture, kind of student, standardisation; stored outputs beside runs
 *     then impossible       what needs their weights or runs them in each step
 *
 * Outputs of all training rows are computed once, on the rows as they are, and kept in a file whose name is
 * made from everything they depend on:
 *
 *     DIR/teacher-KEY.npy        (N, M, K) float32; KEY is a SHA-256 of teacher and data
 *     DIR/teacher-KEY.sha256     of the numbers: a damaged file is computed again, not believed
 *
 * In memory they are what the student's loss reads: logits; or, of a regression, mean and log-variance in the
 * student's scaling of the target. The file has the teacher's own form (rt_model_predict), the same as
 * `predict --logits` writes and `--teacher logits:FILE.npy` reads, unless the target is transformed: the file is
 * then of the transformed one, what is written and read by those of the target itself.
 */
#include "base/alloc.h"
#include "base/sha256.h"
#include "base/size.h"
#include "base/timer.h"
#include "train/train_int.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

static const char STORED[] = "logits:";
enum { MEMBERS_MAX = 10000 };

/* ---- opening ---- */

static void digest_floats(const float *v, size_t n, char hex[65]) {
    rt_sha256 sha;
    uint8_t digest[32];
    rt_sha256_init(&sha);
    rt_sha256_update(&sha, v, n * sizeof *v);
    rt_sha256_final(&sha, digest);
    rt_sha256_hex(digest, hex);
}

static void digest_model(const rt_model *m, char hex[65]) {
    static const char *const keys[] = {"architecture", "student", "preprocessing", "task"};
    rt_sha256 sha;
    uint8_t digest[32];
    rt_sha256_init(&sha);
    for (int64_t i = 0; i < RT_COUNT(keys); i++) {
        const char *text = rt_model_meta(m, keys[i]);
        rt_sha256_update(&sha, text ? text : "", (text ? strlen(text) : 0) + 1);
    }
    for (int i = 0; i < rt_model_networks(m); i++)
        rt_sha256_update(&sha, rt_model_block(m, i), (size_t)rt_model_floats(m) * sizeof(float));
    if (rt_params_v3(rt_model_params(m)))
        rt_sha256_update(&sha, "v3", 2);
    rt_sha256_final(&sha, digest);
    rt_sha256_hex(digest, hex);
}

/* Bytes this process may still take. */
static size_t room(void) {
    rt_alloc_stats now;
    rt_alloc_get_stats(&now);
    const uint64_t total = rt_memory_total();
    return total == 0 ? SIZE_MAX / 2 : total > now.live_bytes ? (size_t)(total - now.live_bytes) : 0;
}

static rt_status alloc_outputs(float **out, int64_t rows, int members, int64_t outputs) {
    size_t floats, bytes;
    RT_FAIL_IF(!rt_size_mul((size_t)rows, (size_t)members, &floats) ||
                   !rt_size_mul(floats, (size_t)outputs, &floats) ||
                   !rt_size_mul(floats, sizeof(float), &bytes) || bytes > room(),
               RT_E_MEMORY,
               "outputs of %d teachers for %lld rows do not fit in memory (%.1f GiB); --online-teacher runs "
               "them in each step "
               "instead",
               members, (long long)rows, (double)rows * members * (double)outputs * 4 / 1073741824.0);
    return rt_alloc(out, RT_MAX(bytes, (size_t)1));
}

/* Every number is finite, and variances are above zero; else the place of the first that is not. */
static rt_status check_outputs(const rt_teacher_part *t, const char *name) {
    const float *v = t->logits;
    for (int64_t r = 0; r < t->rows; r++)
        for (int m = 0; m < t->members; m++)
            for (int64_t k = 0; k < t->outputs; k++, v++)
                RT_FAIL_IF(!isfinite(*v), RT_E_INPUT,
                           "%s: the number of row %lld, member %d, output %lld is not finite (%g)", name,
                           (long long)r, m, (long long)k, (double)*v);
    return RT_OK;
}

/* (n, m, k), or (n, k) of one teacher, as float. */
static rt_status take_array(rt_teacher_part *t, const rt_npy *a, const char *path) {
    const rt_shape *s = &a->shape;
    RT_FAIL_IF(a->kind != 'f', RT_E_INPUT,
               "%s: holds numbers of type %c%d, wanted float16, float32 or float64", path, a->kind,
               a->itemsize);
    RT_FAIL_IF((s->rank != 3 && s->rank != 2) || rt_shape_elems(s) < 1, RT_E_INPUT,
               "%s: has %d axes, wanted rows x members x outputs, or rows x outputs of one teacher, none of "
               "them empty",
               path, s->rank);
    const int64_t members = s->rank == 3 ? s->d[1] : 1;
    RT_FAIL_IF(members > MEMBERS_MAX, RT_E_INPUT, "%s: %lld members; at most %d are supported", path,
               (long long)members, MEMBERS_MAX);
    t->members = (int)members;
    t->outputs = s->d[s->rank - 1];
    t->rows = s->d[0];
    RT_TRY(alloc_outputs(&t->logits, t->rows, t->members, t->outputs));
    rt_numbers_to_f32(t->logits, a->data, a->kind, a->itemsize, rt_shape_elems(s));
    return check_outputs(t, path);
}

static rt_status open_stored(rt_teacher_part *t, const char *path) {
    rt_npy a = {0};
    char *full = NULL;
    rt_status st;
    RT_TRY_GOTO(rt_path_expand(&full, path));
    RT_TRY_GOTO(rt_npy_read(&a, full, room()));
    RT_TRY_GOTO(take_array(t, &a, path));
    digest_floats(t->logits, (size_t)(t->rows * t->members * t->outputs), t->digest);
done:
    rt_npy_deinit(&a);
    rt_free(full);
    return st;
}

/* One more of the list: more members of the last part, if it is a run of the same kind, or a part of its own. */
static rt_status open_one(rt_teacher *t, const char *spec) {
    rt_teacher_part *last = t->nparts > 0 ? &t->part[t->nparts - 1] : NULL, *p = &t->part[t->nparts];
    RT_FAIL_IF(!rt_str_starts(spec, STORED) && rt_str_ends(spec, ".npy"), RT_E_USAGE,
               "'%s' is an array; stored outputs are said as %s%s", spec, STORED, spec);
    p->name = spec;
    if (rt_str_starts(spec, STORED)) {
        t->nparts++;
        return open_stored(p, spec + strlen(STORED));
    }
    rt_model *m;
    RT_TRY(rt_model_load(&m, spec));
    if (last && last->model && rt_model_differs(last->model, m) == NULL) {
        const rt_status st = rt_model_add(last->model, m, spec);
        rt_model_destroy(&m);
        return st;
    }
    p->model = m;
    for (int i = 0; i < t->nparts; i++)
        if (t->part[i].model)
            RT_TRY(rt_model_check_new(t->part[i].model, m, spec));
    t->nparts++;
    return RT_OK;
}

/* Parts answer the same question in the same form. */
static rt_status check_parts(const rt_teacher *t) {
    static const char *const keys[] = {"task", "table"};
    bool stored = false;
    for (int i = 0; i < t->nparts; i++) {
        const rt_teacher_part *p = &t->part[i];
        stored = stored || !p->model;
        RT_FAIL_IF(p->outputs != t->part[0].outputs, RT_E_INPUT, "%s has %lld outputs, %s has %lld", p->name,
                   (long long)p->outputs, t->part[0].name, (long long)t->part[0].outputs);
        for (int64_t k = 0; p->model && k < RT_COUNT(keys); k++) {
            const char *have = rt_model_meta(p->model, keys[k]), *want = rt_model_meta(t->first, keys[k]);
            RT_FAIL_IF(
                (have == NULL) != (want == NULL) || (have && strcmp(have, want) != 0), RT_E_INPUT,
                "%s: its %s differs from that of the first run; teachers answer the same question for the "
                "same classes or target",
                p->name, keys[k]);
        }
    }
    RT_FAIL_IF(stored && t->first && rt_model_task(t->first) == RT_TASK_REGRESSION &&
                   rt_model_target(t->first)->warp.kind != RT_WARP_NONE,
               RT_E_USAGE, "the runs transform their target, and stored outputs are of the target itself");
    return RT_OK;
}

/* Of the whole: that of its only part, or of all of them in order. */
static void digest_parts(rt_teacher *t) {
    rt_sha256 sha;
    uint8_t digest[32];
    rt_sha256_init(&sha);
    for (int i = 0; i < t->nparts; i++)
        rt_sha256_update(&sha, t->part[i].digest, 64);
    rt_sha256_final(&sha, digest);
    rt_sha256_hex(digest, t->digest);
    if (t->nparts == 1)
        memcpy(t->digest, t->part[0].digest, sizeof t->digest);
}

/* Answers of v3 kernels are others, and kept apart. */
static rt_status open_all(rt_teacher *t, const char *list, bool v3) {
    RT_TRY(rt_config_items(list, &t->names, &t->nnames));
    RT_TRY(rt_calloc(&t->part, (size_t)t->nnames, sizeof *t->part));
    for (int64_t i = 0; i < t->nnames; i++)
        RT_TRY(open_one(t, t->names[i]));
    for (int i = 0; i < t->nparts; i++) {
        rt_teacher_part *p = &t->part[i];
        if (p->model) {
            if (v3)
                rt_model_set_v3(p->model, true);
            p->members = rt_model_members(p->model);
            p->outputs = rt_model_outputs(p->model);
            digest_model(p->model, p->digest);
            t->first = t->first ? t->first : p->model;
        }
        RT_FAIL_IF(p->members > MEMBERS_MAX - t->members, RT_E_INPUT, "%s: more than %d members together",
                   p->name, MEMBERS_MAX);
        t->members += p->members;
    }
    t->outputs = t->part[0].outputs;
    t->rows = t->part[0].rows;
    digest_parts(t);
    RT_TRY(check_parts(t));
    t->model = t->nparts == 1 ? t->first : NULL;
    if (!t->model)
        return RT_OK;
    const int n = rt_model_networks(t->model);
    RT_TRY(rt_calloc(&t->blocks, (size_t)n, sizeof *t->blocks));
    for (int i = 0; i < n; i++)
        t->blocks[i] = rt_model_block(t->model, i);
    return RT_OK;
}

rt_status rt_teacher_open(rt_teacher **out, const char *list, bool v3) {
    rt_teacher *t;
    *out = NULL;
    RT_TRY(rt_calloc(&t, 1, sizeof *t));
    rt_status st = open_all(t, list, v3);
    if (st != RT_OK) {
        rt_teacher_destroy(&t);
        return rt_error_prefix(st, "--teacher");
    }
    *out = t;
    return st;
}

rt_status rt_teacher_first_run(const char *list, char **out) {
    char **names;
    int64_t n;
    *out = NULL;
    RT_TRY(rt_config_items(list, &names, &n));
    for (int64_t i = 0; i < n && !*out; i++)
        if (!rt_str_starts(names[i], STORED)) {
            *out = names[i];
            names[i] = NULL;
        }
    rt_names_free(names, n);
    return RT_OK;
}

void rt_teacher_destroy(rt_teacher **teacher) {
    rt_teacher *t = *teacher;
    *teacher = NULL;
    if (!t)
        return;
    for (int64_t i = 0; t->part && i < t->nnames; i++) {
        rt_model_destroy(&t->part[i].model);
        rt_free(t->part[i].logits);
    }
    rt_names_free(t->names, t->nnames);
    rt_free(t->part);
    rt_free(t->blocks);
    rt_free(t->logits);
    rt_free(t);
}

/* ---- does it fit? ---- */

static rt_status check_part(const rt_teacher_part *t, const rt_dataset *d, int64_t rows) {
    if (t->model)
        return rt_model_check_data(t->model, d);
    const bool regression = rt_dataset_task(d) == RT_TASK_REGRESSION;
    const int64_t want = regression ? 2 : rt_dataset_classes(d);
    RT_FAIL_IF(t->outputs != want, RT_E_INPUT,
               "the stored outputs are %lld per row and member, %s wants %lld%s", (long long)t->outputs,
               rt_dataset_spec(d), (long long)want, regression ? " (mean and variance)" : " classes");
    RT_FAIL_IF(t->rows != rows, RT_E_INPUT, "outputs of %lld rows are stored, the training part has %lld",
               (long long)t->rows, (long long)rows);
    for (int64_t i = 0; regression && i < t->rows * t->members; i++)
        RT_FAIL_IF(t->logits[2 * i + 1] <= 0, RT_E_INPUT, "the variance of row %lld, member %lld is %g",
                   (long long)(i / t->members), (long long)(i % t->members), (double)t->logits[2 * i + 1]);
    return RT_OK;
}

rt_status rt_teacher_check(const rt_teacher *t, const rt_dataset *d, int64_t rows) {
    for (int i = 0; i < t->nparts; i++) {
        const rt_status st = check_part(&t->part[i], d, rows);
        if (st != RT_OK)
            return t->nnames > 1 ? rt_error_prefix(st, "--teacher: %s", t->part[i].name)
                                 : rt_error_prefix(st, "--teacher");
    }
    return RT_OK;
}

rt_status rt_teacher_check_online(const rt_teacher *t, const char *why) {
    for (int i = 1; i < t->nparts; i++) {
        const char *key = t->part[i].model && t->first ? rt_model_differs(t->first, t->part[i].model) : NULL;
        RT_FAIL_IF(
            key, RT_E_USAGE,
            "%s: teachers must run in each step, which needs networks of one kind; %s differs from the first "
            "in its %s",
            why, t->part[i].name, key);
    }
    RT_FAIL_IF(!t->model, RT_E_USAGE,
               "%s: teachers must run in each step, and stored logits cannot; give the run of the teacher",
               why);
    RT_FAIL_IF(!rt_student_is_plain(rt_model_student(t->model)), RT_E_USAGE,
               "%s: teachers must run in each step, which needs plain networks; this teacher is a %s", why,
               rt_student_spec(rt_model_student(t->model)));
    return RT_OK;
}

/* ---- computing, or finding them computed ---- */

static rt_status cache_paths(char **npy, char **sum, const rt_teacher_part *t, const char *dir,
                             const char *data_hash) {
    char key[65], name[96];
    rt_sha256 sha;
    uint8_t digest[32];
    rt_sha256_init(&sha);
    rt_sha256_update(&sha, "teacher 1", 10);
    rt_sha256_update(&sha, t->digest, 64);
    rt_sha256_update(&sha, data_hash, 64);
    rt_sha256_final(&sha, digest);
    rt_sha256_hex(digest, key);
    snprintf(name, sizeof name, "teacher-%.32s.npy", key);
    RT_TRY(rt_path_join(npy, dir, name));
    snprintf(name, sizeof name, "teacher-%.32s.sha256", key);
    return rt_path_join(sum, dir, name);
}

/* Is there a file, and is it what it says? Whatever is wrong with it, the outputs are computed again. */
static bool read_cache(rt_teacher_part *t, const char *npy, const char *sum) {
    rt_npy a = {0};
    uint8_t *text = NULL;
    size_t n = 0;
    char have[65];
    bool ok = rt_file_exists(npy) && rt_file_exists(sum) && rt_file_read(sum, 256, &text, &n) == RT_OK &&
              n >= 64 && rt_npy_read(&a, npy, room()) == RT_OK;
    const rt_shape want = rt_shape3(t->rows, t->members, t->outputs);
    ok = ok && a.kind == 'f' && a.itemsize == 4 && rt_shape_equal(&a.shape, &want);
    if (ok) {
        memcpy(t->logits, a.data, (size_t)rt_shape_elems(&want) * sizeof(float));
        digest_floats(t->logits, (size_t)rt_shape_elems(&want), have);
        ok = memcmp(have, text, 64) == 0;
    }
    rt_npy_deinit(&a);
    rt_free(text);
    return ok;
}

static rt_status write_cache(const rt_teacher_part *t, const char *dir, const char *npy, const char *sum) {
    const rt_shape s = rt_shape3(t->rows, t->members, t->outputs);
    char hex[66];
    digest_floats(t->logits, (size_t)rt_shape_elems(&s), hex);
    hex[64] = '\n';
    RT_TRY(rt_dir_make(dir));
    RT_TRY(rt_npy_write(npy, RT_DTYPE_F32, &s, t->logits));
    return rt_file_write_atomic(sum, hex, 65);
}

/* Outputs of a part, in its own logits. */
static rt_status compute_part(rt_teacher_part *t, const rt_part *p, const char *data_hash, const char *dir,
                              rt_pool *pool, const volatile sig_atomic_t *stop) {
    char *npy = NULL, *sum = NULL;
    rt_status st = RT_OK;
    if (!t->model)
        return RT_OK;
    t->rows = p->n;
    RT_TRY_GOTO(alloc_outputs(&t->logits, t->rows, t->members, t->outputs));
    RT_TRY_GOTO(cache_paths(&npy, &sum, t, dir, data_hash));
    double lacking = !read_cache(t, npy, sum);
    RT_TRY_GOTO(rt_dist_most(rt_dist_all(), &lacking, 1));
    if (lacking > 0) {
        RT_TRY_GOTO(rt_model_predict(t->model, p, pool, t->logits, stop));
        RT_TRY_GOTO(check_outputs(t, "the teacher"));
        RT_TRY_GOTO(write_cache(t, dir, npy, sum));
    }
    const rt_reading how = rt_model_reading(t->model);
    for (int64_t i = 0; how.kind == RT_OUTPUT_DIRICHLET && i < t->rows * how.m * how.k; i++)
        t->logits[i] = rt_dirichlet_logit(t->logits[i], how.offset);
done:
    rt_free(npy);
    rt_free(sum);
    return st;
}

/* Members of a part behind those of the parts before it, row by row. */
static void put_part(rt_teacher *t, const rt_teacher_part *p, int before) {
    const int64_t k = t->outputs;
    for (int64_t r = 0; r < t->rows; r++)
        memcpy(t->logits + (r * t->members + before) * k, p->logits + r * p->members * k,
               (size_t)(p->members * k) * sizeof(float));
}

rt_status rt_teacher_compute(rt_teacher *t, const rt_part *p, const char *data_hash, const char *dir,
                             rt_pool *pool, const volatile sig_atomic_t *stop) {
    t->rows = p->n;
    if (t->nparts > 1)
        RT_TRY(alloc_outputs(&t->logits, t->rows, t->members, t->outputs));
    for (int i = 0, before = 0; i < t->nparts; i++) {
        rt_teacher_part *part = &t->part[i];
        RT_TRY(compute_part(part, p, data_hash, dir, pool, stop));
        if (t->nparts > 1) {
            put_part(t, part, before);
            rt_free(part->logits);
        } else {
            t->logits = part->logits;
        }
        part->logits = NULL;
        before += part->members;
    }
    return RT_OK;
}

void rt_teacher_standardise(rt_teacher *t, const rt_target *by) {
    for (int64_t i = 0; t->logits && i < t->rows * t->members; i++)
        rt_target_rescale(by, t->logits + 2 * i);
}

/* ---- using them ---- */

void rt_teacher_gather(const rt_teacher *t, const int64_t *source, int64_t rows, float *out) {
    const int64_t k = t->outputs;
    for (int m = 0; m < t->members; m++)
        for (int64_t r = 0; r < rows; r++, out += k)
            memcpy(out, t->logits + (source[r] * t->members + m) * k, (size_t)k * sizeof(float));
}

rt_status rt_teacher_diversity(const rt_teacher *t, const rt_subset *rows, int64_t most, double *out) {
    const int64_t n = RT_MIN(rows->n, most);
    rt_row r;
    double sum = 0;
    *out = NAN;
    if (t->members < 2 || n < 1)
        return RT_OK;
    RT_TRY(rt_row_init(&r, (rt_reading){.m = t->members, .k = t->outputs}));
    for (int64_t i = 0; i < n; i++) {
        (void)rt_row_read(&r, t->logits + rt_subset_row(rows, i) * t->members *
                                              t->outputs); /* check_outputs was here */
        sum += r.diversity;
    }
    rt_row_deinit(&r);
    *out = sum / (double)n;
    return RT_OK;
}
