/*
 * test_labels.c - the loss of labels and targets against the formula, and its gradient against differences,
 * in double; and the table of methods.
 */
#include "base/alloc.h"
#include "base/rng.h"
#include "distill/distill.h"
#include "plan/plan.h"
#include "support/check.h"
#include <string.h>

enum { ROWS = 6, FEATURES = 3, OUT_MAX = 4, FLOATS_MAX = 512 };

/* A network with a linear body and both results of the method: loss, outputs, and the gradient of every
 * parameter. */
typedef struct problem {
    rt_params *params;
    rt_net *net;
    rt_graph *g;
    bool regression;
    double w[FLOATS_MAX], grad[FLOATS_MAX], x[ROWS * FEATURES], target[ROWS], out[ROWS * OUT_MAX], loss;
    int32_t label[ROWS];
    void *slot[8];
} problem;

static const double *class_weight; /* of the next problem */

static void problem_init(problem *p, bool regression, double smoothing, const double *mean,
                         const double *std) {
    memset(p, 0, sizeof *p);
    p->regression = regression;
    int64_t outputs = regression ? 2 : OUT_MAX;
    rt_arch_config c = {.spec = "mlp:5",
                        .input = rt_shape1(FEATURES),
                        .outputs = outputs,
                        .activation = "softplus",
                        .norm = mean ? FEATURES : 0,
                        .mean = mean,
                        .std = std};
    OK(rt_params_create(&p->params));
    OK(rt_net_create(&p->net, &c, p->params, NULL));
    OK(rt_graph_create(&p->g, ROWS, RT_DTYPE_F64));
    rt_build b = {.g = p->g, .params = p->params, .train = true};
    const rt_val x = rt_graph_input(p->g, "x", RT_DTYPE_F64, rt_shape1(FEATURES), 1);
    rt_objective_in in = {.g = p->g,
                          .student = rt_net_forward(p->net, &b, x),
                          .regression = regression,
                          .label_smoothing = smoothing,
                          .class_weight = class_weight};
    if (regression)
        in.target = rt_graph_input(p->g, "target", RT_DTYPE_F64, rt_shape0(), 1);
    else
        in.label = rt_graph_input(p->g, "label", RT_DTYPE_I32, rt_shape0(), 1);
    const rt_val loss = rt_objective_find("labels")->build(&in);
    rt_graph_output(p->g, "loss", loss);
    rt_graph_output(p->g, "out", in.student);
    rt_val wrt[8], grad[8];
    int n = rt_params_count(p->params);
    assert_in_range(n, 1, 8);
    assert_true(rt_params_floats(p->params) <= FLOATS_MAX);
    for (int i = 0; i < n; i++) {
        const rt_param *line = rt_params_get(p->params, i);
        wrt[i] = rt_graph_param(p->g, i, line->name, line->shape);
        p->slot[i] = p->w + line->offset;
    }
    OK(rt_graph_grad(p->g, loss, wrt, n, grad));
    for (int i = 0; i < n; i++)
        rt_graph_output(p->g, rt_params_get(p->params, i)->name, grad[i]);
    OK(rt_graph_status(p->g));
    rt_rng r = rt_rng_make(5, RT_RNG_TEST, 0, 0);
    uint64_t at = 0;
    for (int i = 0; i < FLOATS_MAX; i++)
        p->w[i] = rt_rng_normal(r, at++);
    for (int i = 0; i < ROWS * FEATURES; i++)
        p->x[i] = rt_rng_normal(r, at++);
    for (int i = 0; i < ROWS; i++) {
        p->target[i] = rt_rng_normal(r, at++);
        p->label[i] = (int32_t)rt_rng_below(r, at++, OUT_MAX);
    }
}

static void problem_deinit(problem *p) {
    rt_graph_destroy(&p->g);
    rt_net_destroy(&p->net);
    rt_params_destroy(&p->params);
}

static void evaluate(problem *p) {
    const void *in[] = {p->x, p->regression ? (const void *)p->target : (const void *)p->label};
    void *out[10] = {&p->loss, p->out};
    for (int i = 0; i < rt_params_count(p->params); i++)
        out[2 + i] = p->grad + rt_params_get(p->params, i)->offset;
    OK(rt_interp_run(p->g, (const void *const *)p->slot, in, NULL, out, (rt_run){0}));
}

static double cross_entropy(const double *z, int y, double smoothing) {
    double sum = 0, loss = 0;
    for (int c = 0; c < OUT_MAX; c++)
        sum += exp(z[c]);
    for (int c = 0; c < OUT_MAX; c++)
        loss -= ((1 - smoothing) * (c == y) + smoothing / OUT_MAX) * (z[c] - log(sum));
    return loss;
}

static double gaussian(const double *out, double y) {
    double v = fmin(fmax(out[1], -10), 10), d = y - out[0];
    return 0.5 * (v + d * d * exp(-v)) + 0.5 * log(2 * 3.14159265358979323846);
}

static void gradient_check(problem *p) {
    evaluate(p);
    static double want[FLOATS_MAX];
    memcpy(want, p->grad, sizeof want);
    for (int i = 0; i < rt_params_count(p->params); i++) {
        const rt_param *line = rt_params_get(p->params, i);
        for (int64_t j = line->offset; j < line->offset + line->count; j++) {
            double keep = p->w[j], h = 1e-6, up;
            p->w[j] = keep + h;
            evaluate(p);
            up = p->loss;
            p->w[j] = keep - h;
            evaluate(p);
            p->w[j] = keep;
            near(want[j], (up - p->loss) / (2 * h), 1e-6 * (1 + fabs((up - p->loss) / (2 * h))));
        }
    }
}

static void classification(void **state) {
    (void)state;
    static const double smoothing[] = {0, 0.1};
    static const double mean[] = {1, -2, 0.5}, std[] = {2, 0.5, 1};
    for (int64_t i = 0; i < RT_COUNT(smoothing); i++) {
        static problem p;
        problem_init(&p, false, smoothing[i], mean, std);
        evaluate(&p);
        double want = 0;
        for (int r = 0; r < ROWS; r++)
            want += cross_entropy(p.out + r * OUT_MAX, p.label[r], smoothing[i]) / ROWS;
        near(p.loss, want, 1e-12 * (1 + fabs(want)));
        gradient_check(&p);
        problem_deinit(&p);
    }
}

static void class_weights(void **state) {
    (void)state;
    static const double w[OUT_MAX] = {0.25, 3, 1, 0.5};
    static problem p;
    class_weight = w;
    problem_init(&p, false, 0.1, NULL, NULL);
    class_weight = NULL;
    evaluate(&p);
    double want = 0;
    for (int r = 0; r < ROWS; r++)
        want += w[p.label[r]] * cross_entropy(p.out + r * OUT_MAX, p.label[r], 0.1) / ROWS;
    near(p.loss, want, 1e-12 * (1 + fabs(want)));
    gradient_check(&p);
    problem_deinit(&p);
}

static void regression(void **state) {
    (void)state;
    static problem p;
    problem_init(&p, true, 0, NULL, NULL);
    for (double scale = 1; scale <= 30; scale *= 30) { /* at 30 the log-variance leaves [-10, 10] */
        for (int i = 0; i < FLOATS_MAX; i++)
            p.w[i] *= scale;
        evaluate(&p);
        double want = 0;
        for (int r = 0; r < ROWS; r++)
            want += gaussian(p.out + 2 * r, p.target[r]) / ROWS;
        near(p.loss, want, 1e-12 * (1 + fabs(want)));
        if (scale < 2)
            gradient_check(&p);
    }
    problem_deinit(&p);
}

/* (x - mean) / std inside the network equals a network without it on standardised data. */
static void standardisation(void **state) {
    (void)state;
    static const double mean[] = {1, -2, 0.5}, std[] = {2, 0.5, 1};
    static problem a, b;
    problem_init(&a, false, 0, mean, std);
    problem_init(&b, false, 0, NULL, NULL);
    for (int i = 0; i < ROWS * FEATURES; i++)
        b.x[i] = (a.x[i] - mean[i % FEATURES]) / std[i % FEATURES];
    evaluate(&a);
    evaluate(&b);
    near(a.loss, b.loss, 1e-12 * (1 + fabs(b.loss)));
    problem_deinit(&a);
    problem_deinit(&b);
}

static void method_table(void **state) {
    (void)state;
    assert_true(rt_method_count() >= 10);
    for (int i = 0; i < rt_method_count(); i++) {
        const rt_method *m = rt_method_get(i);
        assert_ptr_equal(rt_method_find(m->name), m);
        assert_true(m->meaning != NULL && rt_method_phases(m) > 0);
        for (int p = 0; p < rt_method_phases(m); p++) {
            const rt_method_phase *f = &m->phase[p];
            assert_non_null(rt_objective_find(f->objective));
            assert_true(f->regression == NULL || rt_objective_find(f->regression) != NULL);
        }
    }
    assert_null(rt_method_find("no such method"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(classification),  cmocka_unit_test(class_weights), cmocka_unit_test(regression),
        cmocka_unit_test(standardisation), cmocka_unit_test(method_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
