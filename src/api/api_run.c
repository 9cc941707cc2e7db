/*
 * api_run.c - the verbs of include/retort.h: settings as text, data from memory, the result as JSON.
 *
 * A verb is a line of the table below: which parameters it knows, and a function that does it and writes the keys of
 * its result into an open object. The program does the same with its flags, and prints for people besides.
 */
#include "api/api_int.h"
#include "assess/assess.h"
#include "assess/calibrate.h"
#include "average/average.h"
#include "base/alloc.h"
#include "base/timer.h"
#include "export/export.h"
#include "model/gather.h"
#include "report/report.h"
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

typedef struct call {
    rt_config config;
    rt_job job;
    rt_memory *memory; /* (job.nmemory) */
    rt_pool *pool;
    double started;
    bool limited; /* by max-memory, and before by: */
    uint64_t limit_before;
} call;

_Static_assert(sizeof(sig_atomic_t) == sizeof(int), "the flag of a signal handler is an int");

static const volatile sig_atomic_t *stop_of(const call *c) {
    return (const volatile sig_atomic_t *)c->job.stop;
}

static rt_status need(const char *key, const char *value) {
    RT_FAIL_IF(value == NULL, RT_E_USAGE, "the setting %s is missing", key);
    return RT_OK;
}

static rt_status need_words(const call *c, int least, int most, const char *what) {
    RT_FAIL_IF(c->job.nwords < least || c->job.nwords > most, RT_E_USAGE, "%d words, wanted %d to %d %s",
               c->job.nwords, least, most, what);
    for (int i = 0; i < c->job.nwords; i++)
        RT_FAIL_IF(c->job.words == NULL || c->job.words[i] == NULL, RT_E_USAGE, "word %d is NULL", i);
    return RT_OK;
}

static rt_status no_words(const call *c) {
    return need_words(c, 0, 0, "(the verb takes settings only)");
}

/* Progress of work without epochs: what is done, and its share in thousandths. */
static void tell(const call *c, const char *what, double done, double seconds_left) {
    const rt_progress p = {.step = (int64_t)(1000 * done),
                           .steps = 1000,
                           .loss = NAN,
                           .accuracy = NAN,
                           .samples_per_s = NAN,
                           .seconds = rt_time_now() - c->started,
                           .seconds_left = seconds_left,
                           .valid_loss = NAN,
                           .valid_accuracy = NAN,
                           .note = what};
    if (c->job.progress != NULL)
        c->job.progress(c->job.user, &p);
}

/* ---- the verbs ---- */

typedef rt_status (*training)(const rt_config *c, const rt_train_hooks *hooks, rt_train_result *out);

static rt_status train_by(call *c, rt_json *j, training run) {
    rt_train_result r;
    const rt_train_hooks hooks = {.progress = c->job.progress, .user = c->job.user, .stop = stop_of(c)};
    RT_TRY(no_words(c));
    RT_TRY(run(&c->config, &hooks, &r));
    rt_train_result_write(&r, c->config.out, j);
    return RT_OK;
}

static rt_status do_train(call *c, rt_json *j) {
    return train_by(c, j, rt_train_run);
}

static rt_status do_distill(call *c, rt_json *j) {
    return train_by(c, j, rt_distill_run);
}

static void tell_average(void *user, const char *what, double done) {
    tell(user, what, done, NAN);
}

static rt_status do_average(call *c, rt_json *j) {
    rt_average_result r;
    RT_TRY(need_words(c, 1, 64, "runs"));
    RT_TRY(need("data", c->config.data));
    RT_TRY(need("out", c->config.out));
    RT_TRY(rt_average_run(&c->config, c->job.words, c->job.nwords, c->pool,
                          &(rt_average_hooks){.progress = tell_average, .user = c, .stop = stop_of(c)}, &r));
    rt_average_result_write(&r, c->config.out, j);
    return RT_OK;
}

static void tell_eval(void *user, const rt_assess_progress *p) {
    char what[192];
    snprintf(what, sizeof what, "run %d/%d %.100s: %s", p->run + 1, p->runs, p->name, p->what);
    tell(user, what, p->done, p->seconds_left);
}

/* As the program does it: what could not be stored in a run goes to the file all the same; requirements come last. */
static rt_status give_eval(const call *c, const rt_requirements *require, rt_assessment *const *runs, int n,
                           rt_json *j) {
    rt_error lost = {.code = RT_OK};
    if (c->config.save && rt_assess_save(runs, n) != RT_OK)
        rt_error_save(&lost);
    if (c->config.out != NULL)
        RT_TRY(rt_assess_file_write(c->config.out, runs, n, &c->config));
    rt_assess_write(runs, n, c->config.data, j);
    if (lost.code != RT_OK)
        rt_error_restore(&lost);
    return lost.code != RT_OK ? lost.code : rt_requirements_check(require, runs, n);
}

static rt_status do_eval(call *c, rt_json *j) {
    rt_assessment **runs = NULL;
    rt_requirements require;
    const int n = c->job.nwords;
    rt_status st;
    RT_TRY(need_words(c, 1, 64, "runs"));
    RT_TRY(need("data", c->config.data));
    RT_TRY(rt_requirements_parse(&require, c->config.require));
    RT_TRY(rt_metrics_check(c->config.metrics));
    RT_TRY(rt_assess_file_check(c->config.out));
    RT_TRY(rt_calloc(&runs, (size_t)n, sizeof *runs));
    rt_assess_options o = rt_assess_options_of(&c->config);
    o.stop = stop_of(c);
    o.progress = tell_eval;
    o.user = c;
    o.command = "rt_job_run(\"eval\")";
    RT_TRY_GOTO(rt_assess_run(&o, c->job.words, n, c->pool, runs));
    RT_TRY_GOTO(give_eval(c, &require, runs, n, j));
done:
    for (int i = 0; i < n; i++)
        rt_assessment_destroy(&runs[i]);
    rt_free(runs);
    return st;
}

static rt_status do_calibrate(call *c, rt_json *j) {
    rt_calibration k;
    RT_TRY(need_words(c, 1, 1, "run"));
    rt_calibrate_options o = rt_calibrate_options_of(&c->config);
    o.run = c->job.words[0];
    o.pool = c->pool;
    o.stop = stop_of(c);
    const rt_status st = rt_calibrate(&k, &o);
    if (st == RT_OK)
        rt_calibration_write(&k, j);
    rt_calibration_deinit(&k);
    return st;
}

static rt_status do_report(call *c, rt_json *j) {
    rt_report_result r;
    const char *out = c->config.out ? c->config.out : "report.html";
    RT_TRY(need_words(c, 1, 64, "runs"));
    const rt_status st =
        rt_report_write(out, &r, c->job.words, c->job.nwords, (rt_report_options){.title = c->config.title});
    if (st == RT_OK)
        rt_report_result_write(&r, out, j);
    rt_report_result_deinit(&r);
    return st;
}

static rt_status do_export(call *c, rt_json *j) {
    rt_model *m = NULL;
    rt_export_result r = {0};
    rt_status st;
    RT_TRY(need_words(c, 1, 1, "run"));
    RT_TRY(need("out", c->config.out));
    RT_TRY_GOTO(rt_model_load(&m, c->job.words[0]));
    rt_export_options o = rt_export_options_of(&c->config);
    o.pool = c->pool;
    RT_TRY_GOTO(rt_export_run(m, c->job.words[0], &o, &r));
    rt_export_result_write(&r, c->config.out, j);
done:
    rt_export_result_deinit(&r);
    rt_model_destroy(&m);
    return st;
}

static rt_status do_gather(call *c, rt_json *j) {
    int members;
    RT_TRY(need_words(c, 1, 10000, "runs"));
    RT_TRY(need("out", c->config.out));
    RT_TRY(rt_gather_run(c->job.words, c->job.nwords, c->config.out, c->config.force, &members));
    rt_json_str(j, "run", c->config.out);
    rt_json_i64(j, "members", members);
    return RT_OK;
}

static const struct verb {
    const char *name;
    unsigned bit;
    rt_status (*run)(call *c, rt_json *j);
} k_verbs[] = {{"train", RT_VERB_TRAIN, do_train},
               {"distill", RT_VERB_DISTILL, do_distill},
               {"average", RT_VERB_AVERAGE, do_average},
               {"eval", RT_VERB_EVAL, do_eval},
               {"calibrate", RT_VERB_CALIBRATE, do_calibrate},
               {"report", RT_VERB_REPORT, do_report},
               {"export", RT_VERB_EXPORT, do_export},
               {"gather", RT_VERB_GATHER, do_gather}};

rt_status rt_api_verb(const char *name, unsigned *bit, int *at) {
    const char *names[RT_COUNT(k_verbs)];
    for (int i = 0; i < RT_COUNT(k_verbs); i++)
        names[i] = k_verbs[i].name;
    RT_FAIL_IF(name == NULL, RT_E_USAGE, "verb: NULL, wanted one such as train");
    const int64_t i = rt_str_find(name, names, RT_COUNT(names));
    if (i < 0)
        RT_FAIL_UNKNOWN(RT_E_USAGE, name, names, RT_COUNT(names), "unknown verb");
    *bit = k_verbs[i].bit;
    *at = (int)i;
    return RT_OK;
}

/* ---- a call ---- */

/* Applies it if it is one of the kind wanted: a file of settings, or a setting. */
static rt_status apply_setting(rt_config *c, unsigned verb, const char *text, bool file) {
    char key[64];
    RT_FAIL_IF(text == NULL, RT_E_USAGE, "a setting is NULL: wanted key=value");
    const char *eq = strchr(text, '=');
    RT_FAIL_IF(eq == NULL || (size_t)(eq - text) >= sizeof key, RT_E_USAGE,
               "setting \"%.80s\": wanted key=value", text);
    memcpy(key, text, (size_t)(eq - text));
    key[eq - text] = '\0';
    if ((strcmp(key, "config") == 0) != file)
        return RT_OK;
    return file ? rt_config_load(c, verb, eq + 1) : rt_config_set(c, verb, key, eq + 1, key, false);
}

rt_status rt_api_settings(rt_config *c, unsigned verb, const char *const *settings, int n) {
    RT_FAIL_IF(n < 0 || (n > 0 && settings == NULL), RT_E_USAGE, "%d settings, and no list of them", n);
    for (int files = 1; files >= 0; files--) /* first config=FILE, as the program reads it: the others win */
        for (int i = 0; i < n; i++)
            RT_TRY(apply_setting(c, verb, settings[i], files));
    const rt_param_info *all;
    const int known = rt_config_list(&all);
    for (int i = 0; i < known; i++)
        RT_FAIL_IF((all[i].verbs & verb) != 0 && !rt_api_takes(&all[i], verb) &&
                       rt_config_is_set(c, all[i].key),
                   RT_E_USAGE, "%s: for the program only, the library has no use for it", all[i].key);
    return RT_OK;
}

static atomic_flag g_limited = ATOMIC_FLAG_INIT;

/* What is taken is counted for the whole process: one call at a time can limit it. */
static rt_status limit_memory(call *c) {
    if (!(c->config.max_memory > 0))
        return RT_OK;
    RT_FAIL_IF(atomic_flag_test_and_set(&g_limited), RT_E_UNSUPPORTED,
               "max-memory: it is of the whole process, and another call has set it");
    c->limited = true;
    c->limit_before = rt_alloc_limit();
    rt_alloc_set_limit((uint64_t)(c->config.max_memory * 0x1p30));
    return RT_OK;
}

static void unlimit_memory(const call *c) {
    if (!c->limited)
        return;
    rt_alloc_set_limit(c->limit_before);
    atomic_flag_clear(&g_limited);
}

/* The result is also there when a requirement is not met. */
static rt_status run_verb(call *c, int at, rt_str *json) {
    const rt_job *job = &c->job;
    rt_json j;
    RT_TRY(rt_api_settings(&c->config, k_verbs[at].bit, job->settings, job->nsettings));
    RT_TRY(limit_memory(c));
    RT_TRY(rt_pool_create(&c->pool, c->config.threads > 0 ? (int)c->config.threads : rt_cpu_count()));
    rt_json_init(&j, json, false);
    rt_json_object_begin(&j, NULL);
    rt_json_str(&j, "retort", RT_VERSION);
    const rt_status st = k_verbs[at].run(c, &j);
    if (st != RT_OK && st != RT_E_GATE)
        return st;
    rt_json_f64(&j, "seconds", rt_time_now() - c->started);
    rt_json_object_end(&j);
    RT_TRY(rt_str_status(json));
    if (job->json != NULL && (*job->json = rt_strdup(rt_str_text(json))) == NULL)
        return RT_E_MEMORY;
    return st;
}

/* Data sets of another header, in which each ends earlier or later: the first one's size is the step between them. */
static rt_status widen_memory(call *c) {
    const rt_job *job = &c->job;
    const size_t least = offsetof(rt_memory, test) + sizeof(rt_arrays);
    RT_FAIL_IF(job->nmemory < 0 || (job->nmemory > 0 && job->memory == NULL), RT_E_USAGE,
               "job: %d data sets that are not there", job->nmemory);
    if (job->nmemory == 0)
        return RT_OK;
    const size_t step = job->memory[0].size;
    RT_FAIL_IF(step < least || step > 4096 || step % _Alignof(rt_memory) != 0, RT_E_USAGE,
               "data set 0: size %zu; initialise it with RT_MEMORY_INIT", step);
    RT_TRY(rt_calloc(&c->memory, (size_t)job->nmemory, sizeof *c->memory));
    for (int i = 0; i < job->nmemory; i++) {
        const char *from = (const char *)job->memory + (size_t)i * step;
        rt_memory *m = &c->memory[i];
        memcpy(m, from, RT_MIN(step, sizeof *m));
        RT_FAIL_IF(m->size != step, RT_E_USAGE,
                   "data set %d: size %zu, the first has %zu; initialise all with RT_MEMORY_INIT", i, m->size,
                   step);
        for (int k = 0; k < RT_COUNT(m->train.reserved); k++)
            RT_FAIL_IF(m->train.reserved[k] != NULL || m->test.reserved[k] != NULL, RT_E_USAGE,
                       "data set %d: what is reserved is not NULL", i);
    }
    return RT_OK;
}

/* A job of an older header, which ends earlier. */
static rt_status widen(rt_job *to, const rt_job *from) {
    RT_FAIL_IF(from == NULL, RT_E_USAGE, "no job");
    RT_FAIL_IF(from->size < offsetof(rt_job, words) || from->size > 4096, RT_E_USAGE,
               "job: size %zu; initialise it with RT_JOB_INIT", from->size);
    memcpy(to, from, RT_MIN(from->size, sizeof *to));
    return RT_OK;
}

rt_status rt_job_run(const char *verb, const rt_job *job) {
    unsigned bit;
    int at = 0;
    rt_str json;
    call c = {.started = rt_time_now()};
    RT_TRY(rt_api_verb(verb, &bit, &at));
    RT_TRY(widen(&c.job, job));
    RT_TRY(rt_config_init(&c.config));
    rt_str_init(&json);
    rt_status st = widen_memory(&c);
    if (st == RT_OK) {
        rt_memory_lend(c.memory, c.job.nmemory);
        st = run_verb(&c, at, &json);
        rt_memory_lend(NULL, 0);
    }
    rt_pool_destroy(&c.pool);
    rt_str_deinit(&json);
    rt_free(c.memory);
    rt_config_deinit(&c.config);
    unlimit_memory(&c);
    return st;
}

rt_status rt_train(const char *const *settings, int n, const volatile int *stop) {
    return rt_job_run("train",
                      &(rt_job){.size = sizeof(rt_job), .settings = settings, .nsettings = n, .stop = stop});
}

rt_status rt_distill(const char *const *settings, int n, const volatile int *stop) {
    return rt_job_run("distill",
                      &(rt_job){.size = sizeof(rt_job), .settings = settings, .nsettings = n, .stop = stop});
}
