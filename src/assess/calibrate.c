/*
 * calibrate.c - a decision is fitted and stored.
 *
 *     rows ->  half A: temperature, least NLL           half B: threshold, conformal quantile, at that temperature
 *
 * The rows are those that the run held out (model/held_out.c), or the test part of --data; never rows it was
 * trained on. Where a temperature and a rule are both wanted, the rows are dealt into halves at random (by class, so
 * that both have all of them): the promise of a quantile or a threshold holds for rows the probabilities were not
 * fitted to. Without a temperature all rows serve the rules, and the other way round.
 *
 * A temperature is the one `eval` fits (eval/temperature.c). One `of members` divides the logits of each before the
 * mean, and all uncertainties follow; one of the `mean` changes the probabilities that are answered, softmax(ln p / T),
 * and leaves uncertainties as they are.
 */
#include "assess/calibrate.h"
#include "base/alloc.h"
#include "base/json.h"
#include "base/rng.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct fitting {
    const rt_calibrate_options *o;
    rt_calibration *out;
    rt_model *model;
    rt_held_out held_out;
    rt_dataset *given; /* --data */
    rt_part rows;      /* borrowed from one of them */
    float *y;          /* (rows, m, k) */
    rt_reading how;
    bool regression;
    int64_t *fit, *rule; /* row numbers: of the temperature, of the rules */
    int64_t nfit, nrule;
    double *score;
    uint8_t *wrong;
    int64_t *order;
    double share; /* of the reject rule */
    char rule_name[16];
} fitting;

/* ---- texts of rules ---- */

/* "name=number" */
static rt_status parse_rule(const char *flag, const char *text, char name[16], double *number) {
    const char *eq = strchr(text, '=');
    const size_t n = eq != NULL ? strcspn(eq + 1, ",") : 0;
    RT_FAIL_IF(eq == NULL || eq - text > 15 || !rt_parse_f64(eq + 1, n, false, number) ||
                   !(*number > 0 && *number < 1),
               RT_E_USAGE, "%s: \"%.60s\", wanted a name, '=' and a number between 0 and 1", flag, text);
    memcpy(name, text, (size_t)(eq - text));
    name[eq - text] = '\0';
    return RT_OK;
}

static rt_status parse_reject(fitting *f) {
    static const char *const names[] = {"coverage", "risk", "ood"};
    rt_decision *d = &f->out->decision;
    const char *measure = f->o->measure != NULL ? f->o->measure
                          : f->regression       ? "total_variance"
                                                : "entropy";
    if (f->o->reject == NULL)
        return RT_OK;
    RT_TRY(parse_rule("--reject", f->o->reject, f->rule_name, &f->share));
    bool known = false;
    for (size_t i = 0; i < RT_COUNT(names); i++)
        known = known || strcmp(f->rule_name, names[i]) == 0;
    RT_FAIL_IF(!known, RT_E_USAGE, "--reject: \"%s\", wanted coverage=X, risk=X or ood=X", f->rule_name);
    RT_FAIL_IF(f->regression && strcmp(f->rule_name, "risk") == 0, RT_E_UNSUPPORTED,
               "--reject risk: the share of wrong answers is of classes; this model is a regression");
    RT_FAIL_IF(strcmp(f->rule_name, "ood") == 0 && f->o->ood == NULL, RT_E_USAGE,
               "--reject ood=X wants foreign rows: --ood NAME=SPEC");
    const rt_measure_info *all;
    (void)rt_measure_list(&all);
    d->measure = rt_measure_find(measure, f->regression);
    RT_FAIL_IF(d->measure < 0, RT_E_USAGE, "--measure: a %s has no %s",
               f->regression ? "regression" : "classifier", measure);
    const char *lacks = rt_needs_why_not(all[d->measure].needs, &f->how);
    RT_FAIL_IF(lacks != NULL, RT_E_UNSUPPORTED, "--measure %s: %s", measure, lacks);
    return RT_OK;
}

static rt_status parse_conformal(fitting *f) {
    char name[16];
    rt_decision *d = &f->out->decision;
    const char *text = f->o->conformal, *kind = text != NULL ? strchr(text, ',') : NULL;
    if (text == NULL)
        return RT_OK;
    RT_TRY(parse_rule("--conformal", text, name, &d->alpha));
    RT_FAIL_IF(strcmp(name, "alpha") != 0, RT_E_USAGE, "--conformal: \"%s\", wanted alpha=X[,lac|aps]", name);
    d->conformal = f->regression ? RT_CONFORMAL_INTERVAL : RT_CONFORMAL_LAC;
    if (kind == NULL)
        return RT_OK;
    d->conformal = rt_conformal_find(kind + 1);
    RT_FAIL_IF(d->conformal == RT_CONFORMAL_NONE || (d->conformal == RT_CONFORMAL_INTERVAL) != f->regression,
               RT_E_USAGE, "--conformal: \"%s\", wanted %s", kind + 1,
               f->regression ? "interval" : "lac or aps");
    return RT_OK;
}

/* ---- rows ---- */

static rt_status find_rows(fitting *f) {
    if (f->o->data != NULL) {
        rt_config c;
        RT_TRY(rt_config_init(&c));
        rt_config_new_splits(&c);
        rt_status st = rt_config_follow_run(&c, f->o->run);
        rt_data_options how = rt_config_data(&c);
        how.test_only = true;
        rt_config_deinit(&c);
        RT_TRY(st);
        RT_TRY(rt_dataset_open(&f->given, f->o->data, how));
        RT_TRY(rt_model_check_data(f->model, f->given));
        bool same;
        RT_TRY(rt_model_trained_on(f->model, rt_dataset_hash(f->given), &same));
        RT_FAIL_IF(rt_dataset_test(f->given) == rt_dataset_train(f->given) && same, RT_E_INPUT,
                   "--data %s: the run was trained on these rows", f->o->data);
        f->rows = *rt_dataset_test(f->given);
        f->out->rows_from = "rows of --data";
    } else {
        RT_TRY(rt_held_out_find(&f->held_out, f->o->run, f->model, NULL));
        RT_FAIL_IF(f->held_out.reason != NULL, RT_E_INPUT, "%s: %s; give rows that it has not seen by --data",
                   f->o->run, f->held_out.reason);
        f->rows = f->held_out.rows;
        f->out->rows_from = "held-out rows";
    }
    RT_FAIL_IF(f->rows.n < 2, RT_E_INPUT, "%s: %lld rows are too few to fit to", f->o->run,
               (long long)f->rows.n);
    f->out->rows = f->rows.n;
    return RT_OK;
}

static double truth(const fitting *f, int64_t row) {
    return f->regression ? (double)f->rows.target[row] : (double)f->rows.label[row];
}

/* In random order every second row of each class goes to either half; inside a half rows keep their order. */
static rt_status deal(fitting *f, bool halves) {
    const int64_t n = f->rows.n, classes = f->regression ? 1 : f->how.k;
    int64_t *order = f->order;
    uint8_t *second = NULL; /* (n) is a row of the second half? then (classes) whose turn it is */
    const rt_rng g = rt_rng_make(f->o->seed, RT_RNG_SPLIT, 1, 0);
    RT_TRY(rt_calloc(&second, (size_t)(n + classes), 1));
    for (int64_t i = 0; i < n; i++) {
        const int64_t j = (int64_t)rt_rng_below(g, (uint64_t)i, (uint64_t)i + 1);
        order[i] = order[j];
        order[j] = i;
    }
    for (int64_t i = 0; i < n; i++)
        second[order[i]] = second[n + (f->regression ? 0 : f->rows.label[order[i]])]++ % 2;
    for (int64_t i = 0; i < n; i++) {
        if (!halves || !second[i])
            f->fit[f->nfit++] = i;
        if (!halves || second[i])
            f->rule[f->nrule++] = i;
    }
    rt_free(second);
    RT_FAIL_IF(f->nrule < 1 || f->nfit < 1, RT_E_INPUT, "%lld rows are too few for two halves", (long long)n);
    return RT_OK;
}

/* ---- temperature ---- */

/* Mean NLL of some rows, read at a temperature. */
static rt_status nll_of(const fitting *f, const int64_t *rows, int64_t n, double tau, bool of_members,
                        double *out) {
    rt_reading how = f->how;
    rt_row r;
    double sum = 0;
    *(of_members ? &how.member_temperature : &how.temperature) = tau;
    RT_TRY(rt_row_init(&r, how));
    for (int64_t i = 0; i < n; i++) {
        const bool good = rt_row_read(&r, f->y + rows[i] * how.m * how.k);
        sum += good ? rt_row_nll(&r, truth(f, rows[i])) : INFINITY;
    }
    rt_row_deinit(&r);
    *out = sum / (double)n;
    return RT_OK;
}

static rt_status fit_temperature(fitting *f, bool of_members) {
    const int64_t width = f->how.m * f->how.k;
    rt_decision *d = &f->out->decision;
    const char *reason;
    float *y = NULL;
    int32_t *label = NULL;
    rt_status st;
    RT_TRY_GOTO(rt_calloc(&y, (size_t)(f->nfit * width), sizeof *y));
    RT_TRY_GOTO(rt_calloc(&label, (size_t)f->nfit, sizeof *label));
    for (int64_t i = 0; i < f->nfit; i++) {
        memcpy(y + i * width, f->y + f->fit[i] * width, (size_t)width * sizeof *y);
        label[i] = f->rows.label[f->fit[i]];
    }
    const rt_eval_input in = {.how = f->how, .n = f->nfit, .y = y, .label = label};
    RT_TRY_GOTO(
        (of_members ? rt_eval_member_temperature : rt_eval_temperature)(&in, &d->temperature, &reason));
    d->of_members = of_members;
    if (reason)
        RT_FAIL_GOTO(RT_E_NUMERIC, "%s: fitting a temperature: %s", f->o->run, reason);
done:
    rt_free(y);
    rt_free(label);
    return st;
}

/* ---- rules ---- */

static rt_reading answering(const fitting *f) {
    rt_reading how = f->how;
    *(f->out->decision.of_members ? &how.member_temperature : &how.temperature) =
        f->out->decision.temperature;
    return how;
}

/* Scores of the rule rows: conformal, or the measure of the reject rule; and which rows are answered wrongly. */
static rt_status score_rows(fitting *f, bool conformal) {
    const rt_decision *d = &f->out->decision;
    rt_row r;
    bool good = true;
    RT_TRY(rt_row_init(&r, answering(f)));
    for (int64_t i = 0; i < f->nrule && good; i++) {
        good = rt_row_read(&r, f->y + f->rule[i] * r.how.m * r.how.k);
        f->score[i] = !good       ? NAN
                      : conformal ? rt_conformal_score(d->conformal, &r, truth(f, f->rule[i]))
                                  : rt_measure_of(d->measure, &r);
        f->wrong[i] = !f->regression && r.top != (int64_t)truth(f, f->rule[i]);
    }
    rt_row_deinit(&r);
    RT_FAIL_IF(!good, RT_E_NUMERIC, "%s: an answer is not finite", f->o->run);
    return RT_OK;
}

static rt_status fit_reject(fitting *f) {
    rt_decision *d = &f->out->decision;
    const double delta = f->o->delta > 0 ? f->o->delta : 0.05;
    if (d->measure < 0)
        return RT_OK;
    RT_TRY(score_rows(f, false));
    if (strcmp(f->rule_name, "risk") == 0) {
        RT_FAIL_IF(!rt_reject_by_risk(f->score, f->wrong, f->nrule, f->share, delta, f->order, &d->threshold),
                   RT_E_INPUT,
                   "--reject risk=%g: no threshold keeps the risk that low with certainty %g on %lld rows; "
                   "more rows or "
                   "a larger risk are needed",
                   f->share, 1 - delta, (long long)f->nrule);
    } else {
        const double share = strcmp(f->rule_name, "ood") == 0 ? 1 - f->share : f->share;
        double *sorted = NULL;
        RT_TRY(rt_calloc(&sorted, (size_t)f->nrule, sizeof *sorted));
        memcpy(sorted, f->score, (size_t)f->nrule * sizeof *sorted);
        d->threshold = rt_reject_by_coverage(sorted, f->nrule, share);
        rt_free(sorted);
        RT_FAIL_IF(!isfinite(d->threshold), RT_E_INPUT, "--reject %s: %lld rows are too few for that",
                   f->o->reject, (long long)f->nrule);
    }
    int64_t answered = 0, errors = 0;
    for (int64_t i = 0; i < f->nrule; i++)
        if (f->score[i] <= d->threshold) {
            answered++;
            errors += f->wrong[i];
        }
    f->out->coverage = (double)answered / (double)f->nrule;
    f->out->risk = f->regression ? NAN : (double)errors / (double)RT_MAX(answered, (int64_t)1);
    f->out->risk_bound = f->regression ? NAN : rt_binomial_upper(errors, answered, delta);
    return RT_OK;
}

static rt_status fit_conformal(fitting *f) {
    rt_decision *d = &f->out->decision;
    rt_row r;
    double size = 0;
    if (d->conformal == RT_CONFORMAL_NONE)
        return RT_OK;
    RT_TRY(score_rows(f, true));
    d->quantile = rt_conformal_quantile(f->score, f->nrule, d->alpha);
    RT_FAIL_IF(f->regression && !isfinite(d->quantile), RT_E_INPUT,
               "--conformal alpha=%g: %lld rows are too few, at least %lld are needed", d->alpha,
               (long long)f->nrule, (long long)ceil(1 / d->alpha - 1));
    RT_TRY(rt_row_init(&r, answering(f)));
    for (int64_t i = 0; i < f->nrule; i++) {
        (void)rt_row_read(&r, f->y + f->rule[i] * r.how.m * r.how.k);
        for (int64_t c = 0; !f->regression && c < r.how.k; c++)
            size += rt_decision_contains(d, &r, c);
        double lower = 0, upper = 0;
        if (f->regression)
            rt_decision_interval(d, &r, &lower, &upper);
        size += upper - lower;
    }
    rt_row_deinit(&r);
    f->out->set_size = size / (double)f->nrule;
    return RT_OK;
}

/* The share of foreign rows that the reject rule finds. */
static rt_status find_foreign(fitting *f) {
    const char *eq = f->o->ood != NULL ? strchr(f->o->ood, '=') : NULL;
    rt_dataset *d = NULL;
    float *x = NULL, *y = NULL;
    rt_row r = {0};
    int64_t found = 0;
    rt_status st;
    if (f->o->ood == NULL || f->out->decision.measure < 0)
        return RT_OK;
    RT_FAIL_IF(eq == NULL, RT_E_USAGE, "--ood: \"%.60s\", wanted NAME=SPEC", f->o->ood);
    RT_TRY_GOTO(rt_dataset_open(&d, eq + 1, (rt_data_options){.test_only = true}));
    const rt_part *p = rt_dataset_test(d);
    RT_TRY_GOTO(rt_part_convert(&x, p, rt_dataset_row(d), rt_model_input(f->model)));
    RT_TRY_GOTO(rt_calloc(&y, (size_t)(p->n * f->how.m * f->how.k), sizeof *y));
    RT_TRY_GOTO(rt_model_predict(f->model, &(rt_part){.n = p->n, .f32 = x}, f->o->pool, y, f->o->stop));
    RT_TRY_GOTO(rt_row_init(&r, answering(f)));
    for (int64_t i = 0; i < p->n; i++)
        found += !rt_row_read(&r, y + i * r.how.m * r.how.k) || rt_decision_rejects(&f->out->decision, &r);
    f->out->found = (double)found / (double)RT_MAX(p->n, (int64_t)1);
done:
    rt_row_deinit(&r);
    rt_free(x);
    rt_free(y);
    rt_dataset_destroy(&d);
    return st;
}

/* ---- the text ---- */

void rt_calibration_write(const rt_calibration *c, rt_json *j) {
    const rt_decision *d = &c->decision;
    const bool regression = d->conformal == RT_CONFORMAL_INTERVAL;
    const rt_measure_info *all;
    (void)rt_measure_list(&all);
    rt_json_i64(j, "members", c->members);
    rt_json_str(j, "rows_from", c->rows_from);
    rt_json_i64(j, "rows", c->rows);
    if (d->temperature > 0) {
        rt_json_f64(j, "temperature", d->temperature);
        rt_json_str(j, "temperature_of", d->of_members ? "members" : "mean");
        rt_json_i64(j, "temperature_rows", c->fit_rows);
    }
    if (d->measure >= 0) {
        rt_json_object_begin(j, "reject");
        rt_json_str(j, "measure", all[d->measure].name);
        rt_json_f64(j, "threshold", rt_measure_shown(d->measure, d->threshold));
        rt_json_str(j, "rule", c->rule);
        rt_json_f64(j, "coverage", c->coverage);
        rt_json_f64_or(j, "risk", c->risk, "regression");
        rt_json_f64_or(j, "risk_bound", c->risk_bound, "regression");
        if (isfinite(c->found))
            rt_json_f64(j, "foreign_found", c->found);
        rt_json_i64(j, "rows", c->rule_rows);
        rt_json_object_end(j);
    }
    if (d->conformal != RT_CONFORMAL_NONE) {
        rt_json_object_begin(j, "conformal");
        rt_json_str(j, "kind", rt_conformal_name(d->conformal));
        rt_json_f64(j, "alpha", d->alpha);
        rt_json_f64_or(j, "quantile", d->quantile, "too few rows: every class is in the set");
        rt_json_f64(j, regression ? "width" : "set_size", c->set_size);
        rt_json_i64(j, "rows", c->rule_rows);
        rt_json_object_end(j);
    }
}

/* ---- all of it ---- */

static rt_status check_wishes(fitting *f, bool *temperature) {
    const char *of = f->o->temperature != NULL ? f->o->temperature : f->regression ? "none" : "mean";
    *temperature = strcmp(of, "none") != 0;
    RT_FAIL_IF(f->regression && *temperature, RT_E_UNSUPPORTED,
               "--scale-by %s: a regression has no temperature", of);
    RT_FAIL_IF(strcmp(of, "members") == 0 && f->how.kind == RT_OUTPUT_DIRICHLET, RT_E_UNSUPPORTED,
               "--scale-by members: the outputs are concentrations, not logits; use mean");
    RT_TRY(parse_reject(f));
    RT_TRY(parse_conformal(f));
    RT_FAIL_IF(!*temperature && f->out->decision.measure < 0 &&
                   f->out->decision.conformal == RT_CONFORMAL_NONE,
               RT_E_USAGE, "nothing to fit: give --reject or --conformal");
    return RT_OK;
}

static rt_status allocate(fitting *f) {
    const size_t n = (size_t)f->rows.n;
    RT_TRY(rt_calloc(&f->y, n * (size_t)(f->how.m * f->how.k), sizeof *f->y));
    RT_TRY(rt_calloc(&f->fit, n, sizeof *f->fit));
    RT_TRY(rt_calloc(&f->rule, n, sizeof *f->rule));
    RT_TRY(rt_calloc(&f->order, n, sizeof *f->order));
    RT_TRY(rt_calloc(&f->score, n, sizeof *f->score));
    return rt_calloc(&f->wrong, n, 1);
}

static rt_status fit(fitting *f) {
    bool temperature;
    RT_TRY(rt_model_load(&f->model, f->o->run));
    f->how = rt_model_reading(f->model);
    f->regression = f->how.kind == RT_OUTPUT_GAUSSIAN;
    f->out->members = (int)f->how.m;
    f->out->rule = f->o->reject;
    RT_TRY(check_wishes(f, &temperature));
    RT_TRY(find_rows(f));
    RT_TRY(allocate(f));
    RT_TRY(rt_model_predict(f->model, &f->rows, f->o->pool, f->y, f->o->stop));
    const rt_decision *d = &f->out->decision;
    RT_TRY(deal(f, temperature && (d->measure >= 0 || d->conformal != RT_CONFORMAL_NONE)));
    f->out->fit_rows = temperature ? f->nfit : 0;
    f->out->rule_rows = f->nrule;
    if (temperature) {
        const bool of_members = f->o->temperature != NULL && strcmp(f->o->temperature, "members") == 0;
        RT_TRY(fit_temperature(f, of_members));
        RT_TRY(nll_of(f, f->rule, f->nrule, 0, false, &f->out->nll_before));
        RT_TRY(nll_of(f, f->rule, f->nrule, d->temperature, of_members, &f->out->nll_after));
    }
    RT_TRY(fit_reject(f));
    RT_TRY(fit_conformal(f));
    RT_TRY(find_foreign(f));
    rt_json j;
    rt_json_init(&j, &f->out->text, false);
    rt_json_object_begin(&j, NULL);
    rt_calibration_write(f->out, &j);
    rt_json_object_end(&j);
    return rt_str_status(&f->out->text);
}

static rt_status store(const fitting *f) {
    rt_lock *lock = NULL;
    char *full = NULL;
    bool dir;
    rt_status st;
    RT_TRY_GOTO(rt_path_expand(&full, f->o->run));
    RT_TRY_GOTO(rt_dir_find(full, &dir));
    if (dir)
        RT_TRY_GOTO(rt_lock_take(&lock, full));
    st = rt_model_store_decision(full, rt_str_text(&f->out->text));
done:
    rt_lock_release(&lock);
    rt_free(full);
    return st;
}

rt_status rt_calibrate(rt_calibration *out, const rt_calibrate_options *o) {
    fitting f = {.o = o, .out = out};
    *out = (rt_calibration){.decision.measure = -1,
                            .nll_before = NAN,
                            .nll_after = NAN,
                            .coverage = NAN,
                            .risk = NAN,
                            .risk_bound = NAN,
                            .found = NAN,
                            .set_size = NAN};
    rt_str_init(&out->text);
    rt_status st = fit(&f);
    if (st == RT_OK && !o->dry)
        st = store(&f);
    rt_free(f.y);
    rt_free(f.fit);
    rt_free(f.rule);
    rt_free(f.order);
    rt_free(f.score);
    rt_free(f.wrong);
    rt_held_out_deinit(&f.held_out);
    rt_dataset_destroy(&f.given);
    rt_model_destroy(&f.model);
    return st;
}

void rt_calibration_deinit(rt_calibration *c) {
    rt_str_deinit(&c->text);
}

rt_calibrate_options rt_calibrate_options_of(const rt_config *c) {
    return (rt_calibrate_options){.data = c->data,
                                  .temperature = c->scale_by,
                                  .reject = c->reject,
                                  .measure = rt_config_is_set(c, "measure") ? c->measure : NULL,
                                  .conformal = c->conformal,
                                  .ood = c->ood,
                                  .delta = c->delta,
                                  .seed = (uint64_t)c->seed,
                                  .dry = c->dry_run};
}
