/*
 * tell_parts.c - what a run tells before its first step: how many rows of which class it trains, validates and tests
 * on. A class that validation or testing never sees is easily overlooked, and costs a wrong choice of weights.
 *
 *     train   900 rows: cat 450, dog 450            few classes: each
 *     valid   100 rows: cat 50, dog 50
 *     test    10,000 rows of 100 classes, 100 each  many: the fewest and the most
 */
#include "base/alloc.h"
#include "base/log.h"
#include "train/train_int.h"

enum { NAMED = 8 /* classes that are printed one by one */ };

static void append_number(rt_str *s, int64_t v) {
    if (v >= 1000) {
        append_number(s, v / 1000);
        rt_str_appendf(s, ",%03d", (int)(v % 1000));
    } else {
        rt_str_appendf(s, "%d", (int)v);
    }
}

/* A name with a comma in it is quoted, so that it reads as one; a line stays one line. */
static void append_class(rt_str *s, const rt_dataset *d, int64_t k) {
    const size_t at = s->len;
    rt_str_append_csv(s, rt_dataset_class_name(d, k), false);
    if (s->st == RT_OK)
        rt_str_clean(s->p + at, "");
}

static void append_counts(rt_str *s, const rt_dataset *d, const int64_t *count) {
    const int64_t k = rt_dataset_classes(d);
    int64_t least = count[0], most = count[0];
    for (int64_t i = 0; i < k; i++) {
        least = RT_MIN(least, count[i]);
        most = RT_MAX(most, count[i]);
        if (k > NAMED)
            continue;
        rt_str_append(s, i ? ", " : ": ");
        append_class(s, d, i);
        rt_str_append_char(s, ' ');
        append_number(s, count[i]);
    }
    if (k <= NAMED)
        return;
    rt_str_appendf(s, " of %lld classes, ", (long long)k);
    append_number(s, least);
    if (most > least) {
        rt_str_append(s, " to ");
        append_number(s, most);
    }
    rt_str_append(s, " each");
}

/* Classes that have rows in `all` but none in `count`. */
static void warn_missing(const rt_dataset *d, const char *part, const int64_t *all, const int64_t *count) {
    int64_t missing = 0, first = -1;
    for (int64_t k = 0; k < rt_dataset_classes(d); k++)
        if (all[k] > 0 && count[k] == 0) {
            missing++;
            first = first < 0 ? k : first;
        }
    if (missing > 0)
        rt_log(RT_LOG_WARN, "no %s row is of class %s%s", part, rt_dataset_class_name(d, first),
               missing > 1 ? ", nor of others" : "");
}

static void warn_alone(const rt_dataset *d, const int64_t *count) {
    int64_t seen = 0, last = 0;
    for (int64_t k = 0; k < rt_dataset_classes(d); k++)
        if (count[k] > 0) {
            seen++;
            last = k;
        }
    if (seen == 1)
        rt_log(RT_LOG_WARN, "every training row is of class %s: there is nothing to tell apart",
               rt_dataset_class_name(d, last));
}

rt_status rt_train_tell_parts(const rt_train_hooks *hooks, int64_t epochs, const rt_dataset *d,
                              const rt_subset *train, const rt_subset *valid) {
    const char *const name[] = {"train", "valid", "test"};
    const rt_subset all = rt_subset_all(rt_dataset_test(d)), *const sets[] = {train, valid, &all};
    const int64_t classes = rt_dataset_classes(d);
    int64_t *count = NULL;
    rt_str text;
    rt_str_init(&text);
    rt_status st = rt_calloc(&count, 3 * (size_t)classes + 1, sizeof *count);
    for (int i = 0; i < 3 && st == RT_OK; i++) {
        const rt_subset *set = sets[i];
        const bool labelled = set->part->label && classes > 0;
        if (set->n == 0)
            continue;
        for (int64_t r = 0; labelled && r < set->n; r++)
            count[i * classes + rt_subset_label(set, r)]++;
        rt_str_clear(&text);
        rt_str_appendf(&text, "%-7s ", name[i]);
        append_number(&text, set->n);
        rt_str_append(&text, " rows");
        if (labelled)
            append_counts(&text, d, count + i * classes);
        if ((st = rt_str_status(&text)) == RT_OK)
            rt_train_tell(hooks, epochs, rt_str_text(&text));
        if (i == 0 && labelled)
            warn_alone(d, count);
        if (i > 0 && labelled)
            warn_missing(d, i == 1 ? "validation" : "test", count, count + i * classes);
    }
    rt_free(count);
    rt_str_deinit(&text);
    return st;
}
