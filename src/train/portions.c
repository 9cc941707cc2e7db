/*
 * portions.c - an ensemble trained a few members at a time, where all of them at once would not fit in memory.
 *
 *     --at-once N     members 0 to N - 1, then N to 2N - 1, ...; memory for values, optimiser state and the
 *                     weights to keep is that of N
 *
 * A portion is a run of its own in groups/000, groups/001, ..., with its log and checkpoint, so that an interrupted
 * ensemble goes on where it was. Its networks are saved as members of the whole, under the whole's configuration:
 * members never meet, so these files are the same bytes as if all had been trained at once.
 */
#include "base/alloc.h"
#include "train/train_int.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

bool rt_portions_wanted(const rt_config *c, unsigned verb) {
    return verb == RT_VERB_TRAIN && !c->hyper && c->at_once > 0 && c->at_once < c->members;
}

static void tell(const rt_config *c, const rt_train_hooks *hooks, int64_t from, int64_t n) {
    char note[80];
    snprintf(note, sizeof note, "members %lld to %lld of %lld", (long long)from + 1, (long long)(from + n),
             (long long)c->members);
    rt_train_tell(hooks, c->epochs, note);
}

/* Members from `from` on, and what they came to. */
static rt_status train_portion(const rt_config *whole, rt_run_dir *dir, int64_t from,
                               const rt_train_hooks *hooks, rt_train_result *out) {
    rt_config c = *whole;
    rt_portion portion = {.whole = whole, .dir = dir, .first = (int)from};
    char name[32], *path;
    snprintf(name, sizeof name, "groups/%03lld", (long long)(from / whole->at_once));
    RT_TRY(rt_run_dir_file(dir, name, &path));
    c.members = RT_MIN(whole->at_once, whole->members - from);
    c.first_member = whole->first_member + from;
    c.at_once = 0;
    c.out = path;
    c.force = !c.resume;
    tell(whole, hooks, from, c.members);
    rt_status st = rt_trainer_run_portion(&c, &portion, hooks, out);
    rt_free(path);
    return st;
}

/* Means over members, and sums of what was spent. */
static void add_result(rt_train_result *all, const rt_train_result *r) {
    const double a = all->members, b = r->members, samples = all->samples_per_s * all->seconds;
    all->train_loss = (all->train_loss * a + r->train_loss * b) / (a + b);
    all->valid_loss = (all->valid_loss * a + r->valid_loss * b) / (a + b);
    all->valid_accuracy = (all->valid_accuracy * a + r->valid_accuracy * b) / (a + b);
    all->seconds += r->seconds;
    all->samples_per_s = all->seconds > 0 ? (samples + r->samples_per_s * r->seconds) / all->seconds : 0;
    all->members += r->members;
    all->epochs = r->epochs;
    all->steps = r->steps;
    all->parameters = r->parameters;
    if (*r->doubt)
        memcpy(all->doubt, r->doubt, sizeof all->doubt); /* of the last portion that has one */
    all->keep = r->keep;
    all->kept_first = a > 0 ? RT_MIN(all->kept_first, r->kept_first) : r->kept_first;
    all->kept_last = RT_MAX(all->kept_last, r->kept_last);
}

rt_status rt_portions_run(const rt_config *c, const rt_train_hooks *hooks, rt_train_result *out) {
    rt_run_dir dir = {.path = NULL};
    rt_train_result r;
    int64_t portions = 0;
    rt_status st;
    *out = (rt_train_result){.members = 0};
    RT_TRY_GOTO(rt_run_dir_open(&dir, c->out, c->resume, c->force));
    if (!c->resume)
        RT_TRY_GOTO(rt_run_dir_clear(&dir));
    for (int64_t from = 0; from < c->members; from += c->at_once, portions++) {
        RT_TRY_GOTO(train_portion(c, &dir, from, hooks, &r));
        add_result(out, &r);
    }
    RT_TRY_GOTO(rt_train_write_result(&dir, out, "groups", portions, "no validation, or regression"));
done:
    rt_run_dir_close(&dir);
    return st;
}
