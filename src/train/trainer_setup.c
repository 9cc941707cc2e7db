/*
 * trainer_setup.c - a run is opened, part by part, up to its first step, and closed.
 *
 * Whatever can be refused is refused here, before a file is written: bad specs, impossible splits, too little
 * memory.
 */
#include "base/alloc.h"
#include "base/sha256.h"
#include "train/train_int.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

static void hash_inputs(rt_trainer *t) {
    rt_sha256 sha;
    uint8_t digest[32];
    const char *const parts[] = {rt_dataset_hash(t->data.set),
                                 t->teach.aux.source ? rt_dataset_hash(t->teach.aux.source) : NULL,
                                 t->teach.teacher ? t->teach.teacher->digest : NULL};
    snprintf(t->data.hash, sizeof t->data.hash, "%s", parts[0]);
    if (!parts[1] && !parts[2])
        return;
    rt_sha256_init(&sha);
    for (int64_t i = 0; i < RT_COUNT(parts); i++)
        rt_sha256_update(&sha, parts[i] ? parts[i] : "none", parts[i] ? 64 : 4);
    rt_sha256_final(&sha, digest);
    rt_sha256_hex(digest, t->data.hash);
}

rt_config rt_trainer_whole(const rt_trainer *t) {
    rt_config c = *t->c;
    if (t->portion) {
        c.members = t->portion->whole->members;
        c.first_member = t->portion->whole->first_member;
        c.at_once = t->portion->whole->at_once;
        c.out = t->portion->whole->out;
    }
    return c;
}

/* A student that begins now is tested on rows that its teacher did not see either. */
static rt_status follow_teacher(rt_trainer *t) {
    char *teacher;
    RT_TRY(rt_teacher_first_run(t->config.teacher, &teacher));
    const bool begins = t->config.test_split && strcmp(t->config.test_split, "auto") == 0;
    rt_status st = begins && teacher ? rt_config_follow_run(&t->config, teacher) : RT_OK;
    rt_free(teacher);
    return st;
}

rt_status rt_trainer_open(rt_trainer *t) {
    const rt_config *c = t->c;
    RT_FAIL_IF(!c->data, RT_E_USAGE, "what to train on? Give --data SPEC");
    RT_FAIL_IF(!c->out, RT_E_USAGE, "where should the run go? Give --out DIR");
    RT_TRY(rt_schedule_parse(&t->net.schedule, c->schedule, c->lr, c->warmup, (double)c->epochs));
    RT_TRY(rt_pool_create(&t->pool, c->threads > 0 ? (int)c->threads : rt_cpu_count()));
    RT_TRY(follow_teacher(t));
    RT_TRY(rt_train_data_open(&t->data, &t->config));
    RT_TRY(rt_trainer_resolve(t));
    RT_TRY(rt_older_settings(t));
    RT_FAIL_IF(!c->arch, RT_E_USAGE, "what to train? Give --arch SPEC, for example mlp:200,200");
    const rt_config whole = rt_trainer_whole(t);
    rt_config_hash(&whole, t->verb, true, t->config_hash);
    rt_config_hash(&whole, t->verb, false, t->settings_hash);
    RT_TRY(rt_train_data_split(&t->data, c, t->teach.teacher ? t->teach.teacher->first : NULL));
    RT_TRY(rt_class_weights(t));
    RT_TRY(rt_teaching_open(t));
    hash_inputs(t);
    RT_TRY(rt_trainer_check_ranks(t));
    t->aim.keep_best = t->data.valid.n > 0 && strcmp(c->keep, "last") != 0;
    RT_FAIL_IF(c->patience > 0 && !t->aim.keep_best, RT_E_USAGE, "--patience waits for better weights: %s",
               t->data.valid.n > 0 ? "--keep loss or accuracy" : "--valid must leave rows to judge by");
    RT_TRY(rt_members_open(&t->members, &t->at, c));
    RT_TRY(rt_train_data_batches(&t->data, c, t->aim.perturb, t->members.own));
    if (!c->online_teacher)
        RT_TRY(rt_teaching_make_room(&t->teach, t->members.own, t->data.batches.batch));
    for (int phase = t->aim.nphases - 1; phase >= 0;
         phase--) /* a later phase that cannot be is refused before the first step */
        RT_TRY(rt_trainer_enter(t, phase));
    return RT_OK;
}

void rt_trainer_close(rt_trainer *t) {
    rt_networks_close(&t->net);
    rt_train_data_close(&t->data);
    rt_teaching_close(&t->teach);
    rt_members_close(&t->members);
    rt_str_deinit(&t->log.line);
    rt_run_dir_close(&t->dir);
    rt_pool_destroy(&t->pool);
}
