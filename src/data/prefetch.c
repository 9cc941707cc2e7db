/*
 * prefetch.c - one background thread prepares the next batches while the network works on this one.
 *
 *     ring of 3:   [ in use ] [ ready ] [ being filled ]
 *     taken <= made, made - taken <= 2 while one is in use
 *
 * The content of a batch does not depend on when it was made, so the thread changes nothing but the time. All
 * memory is allocated at creation. Each member has its own order of the epoch; the thread makes the orders
 * anew when it enters an epoch.
 */
#include "data/data_int.h"

#include "base/alloc.h"
#include "base/size.h"

#include <pthread.h>
#include <string.h>

enum { RING = 3 };

struct rt_prefetch {
    rt_batch_spec spec;
    uint64_t *seed;
    int64_t *order; /* (members, set->n) */
    int64_t members, count, elems;
    int64_t epoch, index, order_epoch; /* of the next batch to make */
    rt_batch slot[RING];
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int64_t made, taken; /* batches finished by the thread, handed out to the caller */
    bool stop, started;
    pthread_t thread;
};

static void prefetch_fill(rt_prefetch *p, rt_batch *b) {
    if (p->order_epoch != p->epoch) {
        for (int64_t m = 0; m < p->members; m++)
            rt_batch_order(&p->spec, p->seed[m], p->epoch, p->order + m * p->spec.set->n);
        p->order_epoch = p->epoch;
    }
    b->epoch = p->epoch;
    b->index = p->index;
    b->rows = rt_batch_rows(&p->spec, p->index);
    for (int64_t m = 0; m < p->members; m++)
        rt_batch_fill(&p->spec, p->seed[m], p->epoch, p->index, p->order + m * p->spec.set->n,
                      b->x + m * b->rows * p->elems, b->label ? b->label + m * b->rows : NULL,
                      b->target ? b->target + m * b->rows : NULL, b->source + m * b->rows);
    if (++p->index == p->count) {
        p->index = 0;
        p->epoch++;
    }
}

static void *prefetch_main(void *arg) {
    rt_prefetch *p = arg;
    pthread_mutex_lock(&p->lock);
    while (!p->stop) {
        /* the slot of batch taken - 1 is in the caller's hands */
        if (p->made - p->taken >= RING - (p->taken > 0)) {
            pthread_cond_wait(&p->changed, &p->lock);
            continue;
        }
        rt_batch *b = &p->slot[p->made % RING];
        pthread_mutex_unlock(&p->lock);
        prefetch_fill(p, b);
        pthread_mutex_lock(&p->lock);
        p->made++;
        pthread_cond_broadcast(&p->changed);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

static rt_status prefetch_slots(rt_prefetch *p) {
    size_t rows = 0, values = 0, orders = 0;
    const rt_part *part = p->spec.set->part;
    RT_FAIL_IF(!rt_size_mul((size_t)p->members, (size_t)RT_MIN(p->spec.batch, p->spec.set->n), &rows) ||
                   !rt_size_mul(rows, (size_t)p->elems * sizeof(float), &values) ||
                   !rt_size_mul((size_t)p->members, (size_t)p->spec.set->n, &orders),
               RT_E_USAGE, "batches of %lld rows for %lld members are too large", (long long)p->spec.batch,
               (long long)p->members);
    RT_TRY(rt_calloc(&p->order, orders, sizeof *p->order));
    for (int i = 0; i < RING; i++) {
        rt_batch *b = &p->slot[i];
        RT_TRY(rt_alloc(&b->x, values));
        RT_TRY(rt_calloc(&b->source, rows, sizeof *b->source));
        if (part->label)
            RT_TRY(rt_calloc(&b->label, rows, sizeof *b->label));
        if (part->target)
            RT_TRY(rt_calloc(&b->target, rows, sizeof *b->target));
    }
    return RT_OK;
}

rt_status rt_batch_check(const rt_batch_spec *s) {
    RT_FAIL_IF(rt_batch_count(s) < 1, RT_E_USAGE, "no batch of %lld rows can be made of %lld rows%s",
               (long long)s->batch, (long long)s->set->n,
               s->drop_last ? " (the last, incomplete one is left out)" : "");
    RT_FAIL_IF(rt_augment_any(&s->augment) && s->row.rank != 3, RT_E_USAGE,
               "--augment is for images, these rows are a table");
    return RT_OK;
}

rt_status rt_prefetch_create(rt_prefetch **out, const rt_batch_spec *s, const uint64_t *seeds, int members,
                             int64_t epoch, int64_t index) {
    *out = NULL;
    const int64_t count = rt_batch_count(s);
    RT_TRY(rt_batch_check(s));
    RT_FAIL_IF(members < 1 || epoch < 0 || index < 0 || index > count, RT_E_USAGE,
               "cannot begin %d members at epoch %lld, batch %lld of %lld", members, (long long)epoch,
               (long long)index, (long long)count);
    rt_prefetch *p = NULL;
    rt_status st = RT_OK;
    RT_TRY(rt_calloc(&p, 1, sizeof *p));
    p->spec = *s;
    p->members = members;
    p->count = count;
    p->elems = rt_shape_elems(&s->row);
    p->epoch = index == count ? epoch + 1 : epoch;
    p->index = index == count ? 0 : index;
    p->order_epoch = -1;
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->changed, NULL);
    RT_TRY_GOTO(rt_calloc(&p->seed, (size_t)members, sizeof *p->seed));
    memcpy(p->seed, seeds, (size_t)members * sizeof *seeds);
    RT_TRY_GOTO(prefetch_slots(p));
    if (pthread_create(&p->thread, NULL, prefetch_main, p) != 0)
        RT_FAIL_GOTO(RT_E_FAILED, "cannot start the thread that prepares batches");
    p->started = true;
done:
    if (st != RT_OK)
        rt_prefetch_destroy(&p);
    *out = p;
    return st;
}

rt_status rt_prefetch_next(rt_prefetch *p, const rt_batch **out) {
    pthread_mutex_lock(&p->lock);
    while (p->made == p->taken)
        pthread_cond_wait(&p->changed, &p->lock);
    *out = &p->slot[p->taken % RING];
    p->taken++;
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->lock);
    return RT_OK;
}

void rt_prefetch_destroy(rt_prefetch **pp) {
    if (pp == NULL || *pp == NULL)
        return;
    rt_prefetch *p = *pp;
    if (p->started) {
        pthread_mutex_lock(&p->lock);
        p->stop = true;
        pthread_cond_broadcast(&p->changed);
        pthread_mutex_unlock(&p->lock);
        pthread_join(p->thread, NULL);
    }
    pthread_mutex_destroy(&p->lock);
    pthread_cond_destroy(&p->changed);
    for (int i = 0; i < RING; i++) {
        rt_free(p->slot[i].x);
        rt_free(p->slot[i].label);
        rt_free(p->slot[i].target);
        rt_free(p->slot[i].source);
    }
    rt_free(p->order);
    rt_free(p->seed);
    rt_free(p);
    *pp = NULL;
}
