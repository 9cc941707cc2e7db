/*
 * dataset_memory.c - memory:NAME, arrays that the caller of the library lends for the time of one call.
 *
 * They are found by name through a thread-local list, so that every key that takes a SPEC can name them and two
 * threads never see each other's. They are read where they are: given a test part, or told that none is wanted
 * (test=0), nothing is copied; rows drawn for testing, as from an npy file, are.
 */
#include "base/alloc.h"
#include "base/size.h"
#include "data/data_int.h"
#include <string.h>

static _Thread_local const rt_memory *lent;
static _Thread_local int nlent;

void rt_memory_lend(const rt_memory *m, int n) {
    lent = m;
    nlent = n;
}

static const rt_memory *find(const char *name) {
    for (int i = 0; i < nlent; i++)
        if (lent[i].name && strcmp(lent[i].name, name) == 0)
            return &lent[i];
    return NULL;
}

static rt_status check(const rt_memory *m, const rt_spec *s) {
    RT_FAIL_IF(m == NULL, RT_E_INPUT, "data '%s': the caller lends no arrays of that name", s->whole);
    RT_FAIL_IF(m->rank != 1 && m->rank != 3, RT_E_USAGE, "data '%s': rank %d, wanted 1 or 3", s->whole,
               m->rank);
    RT_FAIL_IF(m->train.rows < 0 || m->test.rows < 0 || m->train.rows + m->test.rows < 1, RT_E_USAGE,
               "data '%s': no rows", s->whole);
    RT_FAIL_IF((m->train.rows > 0 && !m->train.x) || (m->test.rows > 0 && !m->test.x), RT_E_USAGE,
               "data '%s': rows without numbers", s->whole);
    RT_FAIL_IF(m->task == RT_TASK_CLASSIFICATION && (m->classes < 1 || m->classes > RT_CLASSES_MAX),
               RT_E_USAGE, "data '%s': %lld classes, wanted 1 to %d", s->whole, (long long)m->classes,
               RT_CLASSES_MAX);
    RT_FAIL_IF(m->task != RT_TASK_CLASSIFICATION && m->task != RT_TASK_REGRESSION, RT_E_USAGE,
               "data '%s': task %d, wanted RT_TASK_CLASSIFICATION or RT_TASK_REGRESSION", s->whole,
               (int)m->task);
    for (int64_t k = 0; m->task == RT_TASK_CLASSIFICATION && m->class_names && k < m->classes; k++)
        RT_FAIL_IF(!m->class_names[k], RT_E_USAGE, "data '%s': the name of class %lld is NULL", s->whole,
                   (long long)k);
    return RT_OK;
}

static rt_part part_of(const rt_memory *m, const rt_arrays *a) {
    const bool classes = m->task == RT_TASK_CLASSIFICATION;
    return (rt_part){
        .n = a->rows, .f32 = a->x, .label = classes ? a->label : NULL, .target = classes ? NULL : a->target};
}

rt_status rt_load_memory(rt_dataset *d, const rt_spec *s, rt_data_options o) {
    static const char *const keys[] = {"test", "seed"};
    RT_TRY(rt_spec_check(s, 1, 1, keys, RT_COUNT(keys)));
    const rt_memory *m = find(s->path[0]);
    uint8_t *is_test = NULL;
    rt_status st;
    RT_TRY(check(m, s));
    d->task = m->task;
    d->row = m->rank == 1 ? rt_shape1(m->dims[0]) : rt_shape3(m->dims[0], m->dims[1], m->dims[2]);
    d->classes = m->task == RT_TASK_CLASSIFICATION ? m->classes : 0;
    int64_t elems;
    RT_FAIL_IF(!rt_shape_count(&d->row, &elems) || elems < 1, RT_E_USAGE, "data '%s': rows of no shape",
               s->whole);
    const rt_part train = part_of(m, &m->train), test = part_of(m, &m->test);
    RT_TRY(rt_part_check(&train, "train", m->task, elems, m->classes));
    RT_TRY(rt_part_check(&test, "test", m->task, elems, m->classes));
    if (m->task == RT_TASK_CLASSIFICATION)
        RT_TRY(rt_dataset_name_classes(d, m->class_names));
    if (m->test.rows > 0 && m->train.rows > 0) {
        d->train = o.test_only ? (rt_part){0} : train;
        d->test = test;
        return RT_OK;
    }
    const rt_part all = m->train.rows > 0 ? train : test;
    o.whole = o.whole || (!all.label && !all.target) || m->test.rows > 0;
    RT_TRY_GOTO(rt_holdout_mask(d, &is_test, s, &o, all.n, all.label));
    if (memchr(is_test, 1, (size_t)all.n) == NULL)
        d->train = all;
    else if (memchr(is_test, 0, (size_t)all.n) == NULL)
        d->test = all;
    else
        st = rt_dataset_divide(d, &all, is_test, o.test_only);
done:
    rt_free(is_test);
    return st;
}
