/*
 * metrics.c - all metrics at once, by the table.
 */
#include "base/alloc.h"
#include "base/size.h"
#include "eval/eval_int.h"
#include <math.h>

#define RT_METRIC(id, name, higher, regression, meaning) {name, meaning, higher, regression},
static const rt_metric_info infos[] = {
#include "eval/metrics.def"
};
#undef RT_METRIC

#define RT_METRIC(id, name, higher, regression, meaning) rt_metric_##id,
static double (*const metric[])(const rt_metric_ctx *c, const char **reason) = {
#include "eval/metrics.def"
};
#undef RT_METRIC

int rt_metric_list(const rt_metric_info **out) {
    *out = infos;
    return (int)RT_COUNT(infos);
}

static rt_status check(const rt_eval_input *in) {
    RT_FAIL_IF(in->n < 1 || in->m < 1, RT_E_INPUT,
               "evaluation of %lld rows by %lld members, wanted at least one of each", (long long)in->n,
               (long long)in->m);
    if (in->regression)
        return RT_OK;
    RT_FAIL_IF(in->k < 1, RT_E_INPUT, "evaluation with %lld classes, wanted at least 1", (long long)in->k);
    for (int64_t i = 0; i < in->n; i++)
        RT_FAIL_IF(in->label[i] < 0 || in->label[i] >= in->k, RT_E_INPUT,
                   "evaluation: row %lld has label %d, the model has %lld classes", (long long)i,
                   (int)in->label[i], (long long)in->k);
    return RT_OK;
}

static void run_all(const rt_metric_ctx *c, double *values, const char **reasons) {
    for (int64_t i = 0; i < RT_COUNT(infos); i++) {
        const char *reason = NULL;
        if (infos[i].regression == c->in->regression) {
            values[i] = metric[i](c, &reason);
        } else {
            values[i] = NAN;
            reason = infos[i].regression ? "for regression only" : "for classification only";
        }
        if (isnan(values[i]) && !reason)
            reason = "a prediction is not a number";
        if (reasons)
            reasons[i] = reason;
    }
}

rt_status rt_eval_all(const rt_eval_input *in, double *values, const char **reasons) {
    RT_TRY(check(in));
    rt_metric_ctx c = {.in = in};
    float *p = NULL, *member_p = NULL;
    rt_status st = RT_OK;
    if (!in->regression) {
        size_t rows, all, bytes;
        RT_FAIL_IF(!rt_size_mul((size_t)in->n, (size_t)in->k, &rows) ||
                       !rt_size_mul(rows, (size_t)in->m, &all) || !rt_size_mul(all, sizeof(float), &bytes),
                   RT_E_MEMORY, "evaluation: too many predictions to address");
        RT_TRY_GOTO(rt_alloc(&p, rows * sizeof *p));
        RT_TRY_GOTO(rt_alloc(&member_p, bytes));
        if (in->dirichlet)
            c.knowledge =
                rt_eval_dirichlet_mean(in->logits, p, member_p, in->n, in->m, in->k, in->dirichlet_offset);
        else
            rt_eval_softmax_mean(in->logits, p, member_p, in->n, in->m, in->k);
        c.p = p;
        c.member_p = member_p;
    }
    run_all(&c, values, reasons);
done:
    rt_free(p);
    rt_free(member_p);
    return st;
}
