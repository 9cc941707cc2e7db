/*
 * assess_require.c - requirements on metrics, for scripts that must not go on with a bad model.
 *
 *     PATH OP NUMBER     PATH: ece, test.nll_calibrated, ood:digits.auroc.entropy; OP: < <= > >=
 *
 * A number that is not defined meets no requirement.
 */
#include "assess/assess_int.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const op_text[] = {"<", "<=", ">", ">="};

/* A path may lead to any number of an assessment, but a name that is almost a metric's is an error, which is
 * better known before minutes of evaluation than behind them. */
static rt_status check_name(const char *path, const char *flag) {
    const rt_metric_info *list;
    const char *names[RT_METRICS_MAX];
    const int n = rt_metric_list(&list);
    int known = 0;
    for (int i = 0; i < n; i++)
        if (rt_str_find(list[i].name, names, known) < 0)
            names[known++] = list[i].name;
    if (rt_str_find(path, names, known) < 0 && rt_str_nearest(path, names, known) >= 0 &&
        !strpbrk(path, "./"))
        RT_FAIL_UNKNOWN(RT_E_USAGE, path, names, known, "--%s: no metric is called", flag);
    return RT_OK;
}

rt_status rt_metric_path(char path[RT_METRIC_PATH], const char *word, size_t n, const char *flag) {
    const rt_metric_info *list;
    const int metrics = rt_metric_list(&list);
    RT_FAIL_IF(n == 0, RT_E_USAGE, "--%s: '%s' names no metric", flag, word);
    RT_FAIL_IF(n >= RT_METRIC_PATH, RT_E_USAGE, "--%s: the name in '%.100s' is too long", flag, word);
    memcpy(path, word, n);
    path[n] = 0;
    for (int i = 0; i < metrics; i++)
        if (strcmp(list[i].title, path) == 0) {
            snprintf(path, RT_METRIC_PATH, "%s", list[i].name);
            break;
        }
    return check_name(path, flag);
}

rt_status rt_metrics_check(const char *list) {
    char path[RT_METRIC_PATH];
    for (const char *s = list; s;) {
        const size_t n = strcspn(s, ",");
        RT_TRY(rt_metric_path(path, s, n, "metrics"));
        s = s[n] ? s + n + 1 : NULL;
    }
    return RT_OK;
}

rt_status rt_requirement_parse(rt_requirement *out, const char *text) {
    const size_t at = strcspn(text, "<>=");
    const char *s = text + at;
    size_t name = at, start = strspn(text, " ");
    while (name > start && text[name - 1] == ' ')
        name--;
    RT_FAIL_IF(*s != '<' && *s != '>', RT_E_USAGE,
               "--require: '%s' has no comparison; wanted METRIC<NUMBER, or one of <= > >=", text);
    const bool less = *s++ == '<', equal = *s == '=';
    out->op = less ? (equal ? RT_REQUIRE_LE : RT_REQUIRE_LT) : (equal ? RT_REQUIRE_GE : RT_REQUIRE_GT);
    s += equal;
    s += strspn(s, " ");
    size_t n = strlen(s);
    while (n > 0 && s[n - 1] == ' ')
        n--;
    RT_FAIL_IF(!rt_parse_f64(s, n, false, &out->bound), RT_E_USAGE,
               "--require: '%.*s' in '%s' is not a number", (int)n, s, text);
    return rt_metric_path(out->path, text + start, name - start, "require");
}

static bool holds(rt_require_op op, double v, double bound) {
    switch (op) {
    case RT_REQUIRE_LT:
        return v < bound;
    case RT_REQUIRE_LE:
        return v <= bound;
    case RT_REQUIRE_GT:
        return v > bound;
    case RT_REQUIRE_GE:
        return v >= bound;
    }
    return false;
}

rt_status rt_requirement_check(const rt_requirement *r, const rt_assessment *a, rt_str *failures,
                               int *failed) {
    double v;
    const char *reason;
    char bound[40], value[40];
    if (!rt_assessment_value(a, r->path, &v, &reason))
        RT_FAIL(RT_E_USAGE, "--require: %s has no number '%s'; 'retort eval --json' shows which there are",
                a->info.run, r->path);
    if (holds(r->op, v, r->bound))
        return RT_OK;
    rt_format_f64(bound, r->bound);
    rt_format_f64(value, v);
    rt_str_appendf(failures, "%s%s: %s is %s, required %s %s", failures->len ? "; " : "", a->info.run,
                   r->path, isnan(v) ? (reason ? reason : "not defined") : value, op_text[r->op], bound);
    ++*failed;
    return rt_str_status(failures);
}

rt_status rt_requirements_parse(rt_requirements *out, const char *list) {
    out->n = 0;
    for (const char *s = list; s;) {
        const size_t n = strcspn(s, "\n");
        char text[256];
        RT_FAIL_IF(n >= sizeof text, RT_E_USAGE, "--require: longer than %d characters",
                   (int)sizeof text - 1);
        RT_FAIL_IF(out->n >= RT_REQUIREMENTS_MAX, RT_E_USAGE, "--require: more than %d", RT_REQUIREMENTS_MAX);
        memcpy(text, s, n);
        text[n] = 0;
        RT_TRY(rt_requirement_parse(&out->at[out->n++], text));
        s = s[n] ? s + n + 1 : NULL;
    }
    return RT_OK;
}

rt_status rt_requirements_check(const rt_requirements *r, rt_assessment *const *a, int n) {
    rt_str failures;
    int failed = 0;
    rt_status st = RT_OK;
    rt_str_init(&failures);
    for (int k = 0; k < r->n && st == RT_OK; k++)
        for (int i = 0; i < n && st == RT_OK; i++)
            st = rt_requirement_check(&r->at[k], a[i], &failures, &failed);
    if (st == RT_OK && failed > 0)
        st = rt_error_set(RT_E_GATE, __FILE__, __LINE__, "not met: %s", rt_str_text(&failures));
    rt_str_deinit(&failures);
    return st;
}
