/*
 * assess_valid.c - the temperature of a run, from the rows that it held out itself.
 *
 * The temperature that minimises the likelihood loss of test rows would flatter the model, so there is no way
 * to ask for it: it is fitted to the rows of model/held_out.c, or there is none and metrics say why.
 */
#include "assess/assess_int.h"
#include "base/alloc.h"
#include <stdio.h>

static rt_status no_temperature(rt_subject *u, const char *why) {
    snprintf(u->temperature_reason, sizeof u->temperature_reason, "%s", why);
    return RT_OK;
}

rt_status rt_subject_check_unseen(const rt_subject *u) {
    const rt_dataset *d = u->s->data;
    const bool only_part = rt_dataset_test(d) == rt_dataset_train(d);
    const char *data = u->s->o->data;
    rt_spec_relation own;
    char *trained = NULL;
    bool same_rows = false;
    rt_status st;
    RT_TRY_GOTO(rt_run_compare_data(u->name, data, &own, &trained));
    if (only_part)
        RT_TRY_GOTO(rt_model_trained_on(u->model, rt_dataset_hash(d), &same_rows));
    if (same_rows || (only_part && own != RT_SPEC_OTHER))
        RT_FAIL_GOTO(
            RT_E_INPUT,
            "%s: %s has no test rows, and the run was trained on the others; evaluate it on rows that it "
            "has not seen (test=0.2 in the SPEC of training would have held some out)",
            u->name, data);
    if (own == RT_SPEC_DIVIDED)
        RT_FAIL_GOTO(
            RT_E_INPUT,
            "%s: %s has other test rows than %s, which the run was trained on: it has seen some of them; "
            "take that SPEC, if it holds any out, or another file",
            u->name, data, trained);
done:
    rt_free(trained);
    return st;
}

static rt_status fit(rt_subject *u) {
    const rt_held_out *h = &u->s->held_out;
    rt_answers y = {0};
    const char *reason = NULL;
    rt_status st;
    RT_TRY_GOTO(rt_subject_answer(u, &y, &h->rows, rt_dataset_row(h->data),
                                  &(rt_answer_how){.what = "validation rows"}));
    RT_TRY_GOTO(rt_eval_temperature(&y.in, &u->temperature, &reason));
    if (reason)
        st = no_temperature(u, reason);
done:
    rt_answers_free(&y);
    return st;
}

rt_status rt_subject_calibrate(rt_subject *u) {
    rt_held_out *h = &u->s->held_out;
    if (u->regression)
        return no_temperature(u, "regression");
    RT_TRY(rt_held_out_find(h, u->name, u->model, u->s->o->data));
    u->source_known = h->known;
    return h->reason ? no_temperature(u, h->reason) : fit(u);
}
