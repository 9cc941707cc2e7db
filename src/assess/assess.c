/*
 * assess.c - runs, sets and sections in order.
 *
 * Everything that can be refused is refused before the first prediction: data, foreign sets, names of
 * corruptions and shifts, the teacher, and then every run in turn. Sections are written as JSON while they
 * are computed, into one text per part of the tree; the tree is then read back once, so that tables and
 * requirements ask for numbers by the same paths as scripts do.
 */
#include "assess/assess_int.h"
#include "base/alloc.h"
#include "base/timer.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- the session ---- */

static bool good_name(const char *s, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (!((s[i] >= 'a' && s[i] <= 'z') || (s[i] >= 'A' && s[i] <= 'Z') || (s[i] >= '0' && s[i] <= '9') ||
              s[i] == '-' || s[i] == '_'))
            return false;
    return n > 0 && n < RT_ASSESS_NAME_MAX;
}

/* Of "NAME=SPEC", a line break between two: cut in place, which the list then points into. */
static rt_status name_foreigns(rt_foreign *list, int *n, char *items) {
    *n = 0;
    for (char *item = items, *end; item; item = end) {
        if ((end = strchr(item, '\n')))
            *end++ = 0;
        char *equals = strchr(item, '=');
        RT_FAIL_IF(*n >= RT_ASSESS_OOD_MAX, RT_E_USAGE, "--ood: more than %d sets", RT_ASSESS_OOD_MAX);
        RT_FAIL_IF(!equals || !good_name(item, (size_t)(equals - item)) || !equals[1], RT_E_USAGE,
                   "--ood: '%s' is not of the form NAME=SPEC (letters, digits, '-' and '_' in the name)",
                   item);
        rt_foreign *f = &list[*n];
        *equals = 0;
        snprintf(f->name, sizeof f->name, "%s", item);
        snprintf(f->set, sizeof f->set, "ood:%s", item);
        f->spec = equals + 1;
        for (int i = 0; i < *n; i++)
            RT_FAIL_IF(strcmp(list[i].name, f->name) == 0, RT_E_USAGE, "--ood: two sets are named '%s'",
                       f->name);
        ++*n;
    }
    return RT_OK;
}

rt_status rt_foreigns_there(const char *ood) {
    rt_foreign list[RT_ASSESS_OOD_MAX];
    char *items = rt_strdup(ood);
    int n;
    if (!items)
        return RT_E_MEMORY;
    rt_status st = name_foreigns(list, &n, items);
    for (int i = 0; i < n && st == RT_OK; i++)
        if ((st = rt_source_there(list[i].spec)) != RT_OK)
            st = rt_error_prefix(st, "--ood %s", list[i].name);
    rt_free(items);
    return st;
}

static rt_status open_foreigns(rt_assess_call *s) {
    if (!s->o->ood)
        return RT_OK;
    s->specs = rt_strdup(s->o->ood);
    if (!s->specs)
        return RT_E_MEMORY;
    RT_TRY(name_foreigns(s->foreign, &s->nforeign, s->specs));
    const rt_data_like like = rt_dataset_like(s->data);
    for (int i = 0; i < s->nforeign; i++) {
        rt_foreign *f = &s->foreign[i];
        RT_TRY(rt_dataset_open(&f->data, f->spec,
                               (rt_data_options){.seed = s->o->seed,
                                                 .limit = s->o->limit,
                                                 .test_only = true,
                                                 .unlabelled = true,
                                                 .skip_broken = s->o->skip_broken,
                                                 .like = like.table ? &like : NULL}));
        RT_FAIL_IF(rt_dataset_test(f->data)->n < 1, RT_E_INPUT, "--ood: %s has no rows", f->spec);
    }
    return RT_OK;
}

/* Calls `add` for each of the names between commas. */
static rt_status each_name(rt_assess_call *s, const char *list,
                           rt_status (*add)(rt_assess_call *s, const char *name)) {
    for (const char *at = list;; at++) {
        const size_t n = strcspn(at, ",");
        char name[RT_ASSESS_NAME_MAX];
        RT_FAIL_IF(n == 0 || n >= sizeof name, RT_E_USAGE, "'%s' is not a list of names with commas between",
                   list);
        memcpy(name, at, n);
        name[n] = 0;
        RT_TRY(add(s, name));
        at += n;
        if (!*at)
            return RT_OK;
    }
}

static rt_status add_corruption(rt_assess_call *s, const char *name) {
    const rt_corruption *c;
    const bool all = strcmp(name, "all") == 0, benchmark = strcmp(name, "benchmark") == 0;
    for (int64_t i = 0; i < rt_corruption_count() && (all || benchmark); i++) {
        c = rt_corruption_get(i);
        if ((all || c->benchmark) && s->ncorruptions < RT_ASSESS_DISTORT_MAX)
            s->corruption[s->ncorruptions++] = c;
    }
    if (all || benchmark)
        return RT_OK;
    RT_TRY(rt_corruption_find(&c, name));
    for (int i = 0; i < s->ncorruptions; i++)
        RT_FAIL_IF(s->corruption[i] == c, RT_E_USAGE, "--corrupt: '%s' is listed twice", name);
    RT_FAIL_IF(s->ncorruptions >= RT_ASSESS_DISTORT_MAX, RT_E_USAGE, "--corrupt: too many types");
    s->corruption[s->ncorruptions++] = c;
    return RT_OK;
}

static rt_status add_shift(rt_assess_call *s, const char *name) {
    const rt_shift *shift;
    RT_TRY(rt_shift_find(&shift, name));
    for (int i = 0; i < s->nshifts; i++)
        RT_FAIL_IF(s->shift[i] == shift, RT_E_USAGE, "--shift: '%s' is listed twice", name);
    RT_FAIL_IF(s->nshifts >= RT_ASSESS_DISTORT_MAX, RT_E_USAGE, "--shift: too many");
    s->shift[s->nshifts++] = shift;
    return RT_OK;
}

/* Images that distortions take; found out before anything is predicted. */
static rt_status check_images(const rt_assess_call *s) {
    rt_distortion *d = NULL;
    rt_status st = RT_OK;
    if (s->ncorruptions > 0)
        st = rt_distortion_corrupt(&d, s->corruption[0], 1, s->row, s->o->seed);
    else if (s->nshifts > 0)
        st = rt_distortion_shift(&d, s->shift[0], 1, s->row);
    rt_distortion_destroy(&d);
    return st == RT_OK ? RT_OK : rt_error_prefix(st, "%s", s->o->data);
}

static rt_status answer_foreign(rt_subject *u, int i, rt_scores *out) {
    const rt_foreign *f = &u->s->foreign[i];
    rt_answers y;
    rt_status st = rt_subject_answer(u, &y, rt_dataset_test(f->data), rt_dataset_row(f->data),
                                     &(rt_answer_how){.what = f->set, .unlabelled = true});
    if (st != RT_OK)
        return st == RT_E_INPUT ? rt_error_prefix(st, "--ood %s", f->name) : st;
    st = rt_scores_of(out, &y.in);
    rt_answers_free(&y);
    return st;
}

static rt_status answer_teacher(rt_assess_call *s) {
    rt_subject u;
    rt_status st;
    RT_TRY(rt_calloc(&s->teacher_shift, (size_t)s->nshifts * RT_SHIFT_AMOUNTS + 1, sizeof *s->teacher_shift));
    RT_TRY_GOTO(rt_subject_open(&u, s, s->o->against));
    RT_TRY_GOTO(rt_subject_answer(&u, &s->teacher, s->test, s->row, &(rt_answer_how){.what = "test"}));
    for (int i = 0; i < s->nforeign; i++)
        RT_TRY_GOTO(answer_foreign(&u, i, &s->teacher_foreign[i]));
    for (int i = 0; i < s->nshifts; i++)
        RT_TRY_GOTO(rt_shift_scores(&u, s->shift[i], s->teacher_shift + (ptrdiff_t)i * RT_SHIFT_AMOUNTS));
done:
    rt_subject_close(&u);
    s->teacher.in.temperature = NAN;
    s->teacher.in.temperature_reason = NULL; /* it was the subject's */
    return st;
}

/* Where names and sizes matter, they are those of the first run. */
static rt_status open_for(rt_assess_call *s, const char *run, rt_split split) {
    const rt_assess_options *o = s->o;
    rt_data_options how = {
        .seed = o->seed, .limit = o->limit, .test_only = true, .split = split, .skip_broken = o->skip_broken};
    rt_model *model = NULL;
    rt_data_like like;
    if (rt_source_like(o->data)) {
        RT_TRY(rt_model_load(&model, run));
        like = rt_model_like(model);
        how.like = &like;
    }
    rt_status st = rt_dataset_open(&s->data, o->data, how);
    rt_model_destroy(&model);
    return st;
}

/* The test rows are those that the runs were not trained on; where two runs held out different ones, each has seen
 * some of the other's. */
static rt_status open_tested(rt_assess_call *s, const char *const *runs, int n) {
    const rt_assess_options *o = s->o;
    rt_split first = o->split, other;
    bool known = o->split_told;
    const char *by = NULL;
    for (int i = 0; i < n && !known; i++) {
        RT_TRY(rt_run_test_split(runs[i], &first, &known));
        by = runs[i];
    }
    RT_TRY(open_for(s, runs[0], known ? first : RT_SPLIT_STRATIFIED));
    for (int i = 0; i < n && by && rt_dataset_drawn(s->data); i++) {
        RT_TRY(rt_run_test_split(runs[i], &other, &known));
        RT_FAIL_IF(known && other != first, RT_E_USAGE,
                   "%s: %s held out test rows by '%s', %s by '%s': each was trained on test rows of the "
                   "other; evaluate "
                   "them one at a time, or say --test-split",
                   o->data, by, rt_split_name(first), runs[i], rt_split_name(other));
    }
    return RT_OK;
}

static rt_status session_open(rt_assess_call *s, const char *const *runs, int n) {
    const rt_assess_options *o = s->o;
    RT_TRY(open_tested(s, runs, n));
    s->test = rt_dataset_test(s->data);
    s->row = rt_dataset_row(s->data);
    RT_FAIL_IF(s->test->n < 1, RT_E_INPUT, "%s has no rows to evaluate on", o->data);
    RT_TRY(rt_dataset_need_labels(s->data, "eval"));
    if (o->corrupt)
        RT_TRY(each_name(s, o->corrupt, add_corruption));
    if (o->shift)
        RT_TRY(each_name(s, o->shift, add_shift));
    RT_TRY(check_images(s));
    RT_TRY(open_foreigns(s));
    return o->against ? answer_teacher(s) : RT_OK;
}

static void session_close(rt_assess_call *s) {
    rt_answers_free(&s->teacher);
    for (int i = 0; s->teacher_shift && i < s->nshifts * RT_SHIFT_AMOUNTS; i++)
        rt_scores_free(&s->teacher_shift[i]);
    rt_free(s->teacher_shift);
    for (int i = 0; i < s->nforeign; i++) {
        rt_scores_free(&s->teacher_foreign[i]);
        rt_dataset_destroy(&s->foreign[i].data);
    }
    rt_free(s->specs);
    rt_held_out_deinit(&s->held_out);
    rt_dataset_destroy(&s->data);
}

/* Rows that a run will be asked, for the progress. */
static double rows_to_answer(const rt_assess_call *s) {
    double sets = 1.1 + RT_SEVERITIES * s->ncorruptions, rows = 0, amount[RT_SHIFT_AMOUNTS];
    for (int i = 0; i < s->nshifts; i++)
        sets += (double)rt_shift_amounts(s->shift[i], s->row, amount);
    for (int i = 0; i < s->nforeign; i++)
        rows += (double)rt_dataset_test(s->foreign[i].data)->n;
    return rows + sets * (double)s->test->n;
}

/* ---- one run ---- */

static rt_status write_sets(rt_subject *u, const rt_answers *y, rt_json *j) {
    const rt_assess_call *s = u->s;
    rt_json_object_begin(j, NULL);
    RT_TRY(rt_assess_test(u, y, j));
    for (int i = 0; i < s->nforeign; i++)
        RT_TRY(rt_assess_foreign(u, i, j));
    if (s->o->against)
        RT_TRY(rt_assess_against(u, y, j));
    for (int i = 0; i < s->nshifts; i++)
        RT_TRY(rt_assess_shift(u, i, j));
    if (s->ncorruptions > 0)
        RT_TRY(rt_assess_corrupt(u, j));
    rt_json_object_end(j);
    return rt_str_status(j->out);
}

static rt_status assess(rt_subject *u, rt_assessment *a) {
    rt_answers y = {0};
    rt_json j;
    rt_status st;
    RT_TRY_GOTO(rt_subject_calibrate(u));
    const double before = rt_time_now();
    RT_TRY_GOTO(rt_subject_answer(u, &y, u->s->test, u->s->row, &(rt_answer_how){.what = "test"}));
    a->info.infer_seconds = rt_time_now() - before;
    RT_TRY_GOTO(rt_scores_of(&u->scores, &y.in));
    for (int i = 0; i < u->s->nforeign; i++)
        RT_TRY_GOTO(answer_foreign(u, i, &u->foreign[i]));
    rt_json_init(&j, &a->sets, false);
    RT_TRY_GOTO(write_sets(u, &y, &j));
    if (u->s->o->curves) {
        rt_json_init(&j, &a->curves, false);
        RT_TRY_GOTO(rt_assess_curves(u, &y, &j));
    }
    if (u->s->o->pictures) {
        rt_json_init(&j, &a->pictures, false);
        RT_TRY_GOTO(rt_assess_pictures(u, &y, a, &j));
    }
done:
    rt_answers_free(&y);
    return st;
}

static rt_status run_one(rt_assess_call *s, const char *name, rt_assessment **out) {
    rt_subject u;
    rt_assessment *a = NULL;
    rt_status st;
    s->rows = 0;
    RT_TRY_GOTO(rt_subject_open(&u, s, name));
    RT_TRY_GOTO(rt_assessment_create(&a, &u));
    RT_TRY_GOTO(assess(&u, a));
    RT_TRY_GOTO(rt_assessment_finish(a));
    *out = a;
    a = NULL;
done:
    rt_assessment_destroy(&a);
    rt_subject_close(&u);
    if (st != RT_OK && st != RT_E_MEMORY && !strstr(rt_error_text(), name))
        st = rt_error_prefix(st, "%s", name);
    return st;
}

rt_status rt_assess_run(const rt_assess_options *o, const char *const *runs, int n, rt_pool *pool,
                        rt_assessment **out) {
    rt_assess_call s = {.o = o, .pool = pool, .runs = n, .started = rt_time_now()};
    for (int i = 0; i < n; i++)
        out[i] = NULL;
    rt_status st = session_open(&s, runs, n);
    if (st == RT_OK)
        s.rows_all = rows_to_answer(&s);
    for (; st == RT_OK && s.run < n; s.run++)
        st = run_one(&s, runs[s.run], &out[s.run]);
    session_close(&s);
    for (int i = 0; st != RT_OK && i < n; i++)
        rt_assessment_destroy(&out[i]);
    return st;
}

rt_assess_options rt_assess_options_of(const rt_config *c) {
    return (rt_assess_options){.data = c->data,
                               .seed = (uint64_t)c->seed,
                               .limit = c->limit,
                               .split_told = c->test_split,
                               .split = rt_config_data(c).split,
                               .skip_broken = c->skip_broken,
                               .batch = c->batch,
                               .raw = c->raw,
                               .ood = c->ood,
                               .corrupt = c->corrupt,
                               .frost = c->frost,
                               .shift = c->shift,
                               .bootstrap = c->bootstrap,
                               .against = c->against,
                               .curves = c->save,
                               .pictures = c->save};
}

void rt_assess_write(rt_assessment *const *runs, int n, const char *data, rt_json *j) {
    rt_json_str(j, "data", data);
    rt_json_array_begin(j, "runs");
    for (int i = 0; i < n; i++)
        rt_assessment_write(runs[i], j, NULL, false);
    rt_json_array_end(j);
}
