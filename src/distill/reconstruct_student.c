/*
 * reconstruct_student.c - a BatchEnsemble student that starts as its teachers (Mariet et al. 2021, "BE +
 * INIT").
 *
 *     kernels   W0, r, s by alternating least squares (reconstruct.c); with one member the teacher's own
 *     bias      of each member: the teacher's; one shared, added before s (LatentBE): min_b sum_m (s_m b - b_m)^2
 *     BN        of each member: the teacher's; one shared: the mean over teachers, running statistics as well
 */
#include "base/alloc.h"
#include "distill/distill_int.h"
#include <math.h>
#include <string.h>

typedef struct job {
    const rt_params *params, *teacher_params;
    float *block;
    const float *const *teacher;
    const float **w; /* the current parameter of every teacher */
    int members;
    rt_reconstruct_report report;
    double error, norm; /* squared, over kernels */
} job;

static void mean_of(const job *j, float *dst, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        double sum = 0;
        for (int m = 0; m < j->members; m++)
            sum += (double)j->w[m][i];
        dst[i] = (float)(sum / j->members);
    }
}

static void shared_bias(const job *j, float *dst, const float *s, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        double num = 0, den = 0;
        for (int m = 0; m < j->members; m++) {
            const double f = (double)s[m * n + i];
            num += f * (double)j->w[m][i];
            den += f * f;
        }
        dst[i] = den > 0 ? (float)(num / den) : 0;
    }
}

static rt_status kernel(job *j, const rt_param *w) {
    const rt_param *r = rt_params_beside(j->params, w->name, "r"),
                   *s = rt_params_beside(j->params, w->name, "s");
    const int64_t out = w->shape.d[0], in = w->shape.d[1], window = w->count / (out * in);
    rt_reconstruct_line *line = &j->report.line[j->report.layers++];
    double norm = 0;
    *line = (rt_reconstruct_line){.name = w->name};
    if (r == NULL || s == NULL) {
        mean_of(j, j->block + w->offset, w->count);
        return RT_OK;
    }
    RT_TRY(rt_reconstruct_layer(j->block + w->offset, j->block + r->offset, j->block + s->offset,
                                &line->residual, j->w, j->members, out, in, window, 0, 0));
    RT_TRY(rt_reconstruct_rank_one(&line->rank_one, j->w, j->members, out, in, window));
    for (int m = 0; m < j->members; m++)
        for (int64_t i = 0; i < w->count; i++)
            norm += (double)j->w[m][i] * (double)j->w[m][i];
    j->error += line->residual * line->residual * norm;
    j->norm += norm;
    return RT_OK;
}

/* Biases, BN and running statistics. */
static rt_status vector(const job *j, const rt_param *to, const rt_param *from) {
    float *dst = j->block + to->offset;
    RT_FAIL_IF(to->count != from->count && to->count != j->members * from->count, RT_E_INPUT,
               "parameter %s: has %lld numbers in the student and %lld in each of %d teachers", to->name,
               (long long)to->count, (long long)from->count, j->members);
    const rt_param *s = to->role == RT_ROLE_BIAS ? rt_params_beside(j->params, to->name, "s") : NULL;
    if (to->count != from->count)
        for (int m = 0; m < j->members; m++)
            memcpy(dst + m * from->count, j->w[m], (size_t)from->count * sizeof *dst);
    else if (s != NULL)
        shared_bias(j, dst, j->block + s->offset, to->count);
    else
        mean_of(j, dst, to->count);
    return RT_OK;
}

/* Kernels first: a shared bias needs the s of its layer. */
static rt_status fill(job *j, bool kernels) {
    for (int slot = 0; slot < rt_params_count(j->params); slot++) {
        const rt_param *to = rt_params_get(j->params, slot), *from = NULL;
        if (to->role == RT_ROLE_FAST || (to->role == RT_ROLE_WEIGHT) != kernels)
            continue;
        RT_TRY(rt_teacher_param(&from, to, j->teacher_params));
        for (int m = 0; m < j->members; m++)
            j->w[m] = j->teacher[m] + from->offset;
        if (kernels)
            RT_TRY(kernel(j, to));
        else
            RT_TRY(vector(j, to, from));
    }
    return RT_OK;
}

rt_status rt_reconstruct_student(const rt_student *be, const rt_params *params, float *block,
                                 const rt_params *teacher_params, const float *const *teacher_blocks,
                                 int members, rt_reconstruct_report *report) {
    job j = {.params = params,
             .teacher_params = teacher_params,
             .block = block,
             .teacher = teacher_blocks,
             .members = members};
    rt_status st = RT_OK;
    if (report != NULL)
        *report = (rt_reconstruct_report){0};
    RT_FAIL_IF(members != rt_student_members(be), RT_E_USAGE,
               "reconstruction: student %s has %d members, there are %d teachers", rt_student_spec(be),
               rt_student_members(be), members);
    RT_TRY_GOTO(rt_calloc(&j.w, (size_t)members, sizeof *j.w));
    RT_TRY_GOTO(rt_calloc(&j.report.line, (size_t)rt_params_count(params), sizeof *j.report.line));
    RT_TRY_GOTO(fill(&j, true));
    RT_TRY_GOTO(fill(&j, false));
    j.report.residual = j.norm > 0 ? sqrt(j.error / j.norm) : 0;
    if (report != NULL) {
        *report = j.report;
        j.report.line = NULL;
    }
done:
    rt_free(j.w);
    rt_reconstruct_report_deinit(&j.report);
    return st;
}

void rt_reconstruct_report_deinit(rt_reconstruct_report *r) {
    rt_free(r->line);
    *r = (rt_reconstruct_report){0};
}
