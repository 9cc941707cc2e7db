/*
 * test_latent_be.c - ten steps of LatentBE with TDiv-SDiv through the trainer's own step, against PyTorch
 * (latent_be.py), and the collapsed network at the end against the mean of member weights.
 */
#include "base/alloc.h"
#include "base/str.h"
#include "golden/golden.h"
#include "perturb/perturb.h"
#include "step/step.h"
#include "support/check.h"
#include <stdio.h>
#include <string.h>

enum { M = 3, ROWS = 8, D = 36, H = 12, K = 5, STEPS = 10, WEIGHTS = 20, NUMBERS = STEPS + WEIGHTS + K };
static const double TOLERANCE = 1e-4;

/* ---- the numbers that latent_be.py computes, too ---- */

static void fill(float *dst, const char *name, int64_t n, double scale, double around) {
    for (int64_t i = 0; i < n; i++)
        dst[i] = (float)(around + scale * uniform(fnv1a(name), i));
}

static void fill_student(const rt_params *p, float *block) {
    for (int s = 0; s < rt_params_count(p); s++) {
        const rt_param *q = rt_params_get(p, s);
        const bool fast = q->role == RT_ROLE_FAST, bias = q->role == RT_ROLE_BIAS;
        fill(block + q->offset, q->name, q->count, fast || bias ? 0.2 : 1.0, fast ? 1.0 : 0.0);
    }
}

static void fill_teacher(const rt_params *p, float *block, int m) {
    for (int s = 0; s < rt_params_count(p); s++) {
        const rt_param *q = rt_params_get(p, s);
        char name[64];
        snprintf(name, sizeof name, "t%d.%s", m, q->name);
        fill(block + q->offset, name, q->count, 1.5, 0.0);
    }
}

static void read_golden(double *v) {
    char path[512], line[64];
    snprintf(path, sizeof path, "%s/tests/golden/latent_be.txt", RT_SOURCE_DIR);
    FILE *f = fopen(path, "r");
    if (f == NULL)
        fail_msg("%s: cannot open", path);
    for (int i = 0; i < NUMBERS; i++) {
        assert_non_null(fgets(line, sizeof line, f));
        assert_true(rt_parse_f64(line, strcspn(line, "\n"), false, &v[i]));
    }
    fclose(f);
}

static void agrees(const char *what, int at, double got, double want) {
    if (!(fabs(got - want) <= TOLERANCE * fmax(1, fabs(want))))
        fail_msg("%s %d: got %.9g, PyTorch %.9g", what, at, got, want);
}

static void ten_steps(int threads) {
    static const int32_t PAIRS[STEPS][2] = {{0, 1}, {2, 0}, {1, 2}, {1, 0}, {0, 2},
                                            {2, 1}, {0, 1}, {1, 2}, {2, 0}, {0, 2}};
    const rt_arch_config arch = {.spec = "mlp:12", .input = rt_shape1(D), .outputs = K};
    rt_pool *pool = NULL;
    rt_params *params = NULL, *teacher_params = NULL, *flat_params = NULL;
    rt_student *student = NULL, *flat = NULL;
    rt_net *teacher = NULL;
    rt_step *step = NULL;
    float *blocks[M], *flat_block = NULL;
    double gold[NUMBERS];
    read_golden(gold);
    OK(rt_pool_create(&pool, threads));
    OK(rt_params_create(&params));
    OK(rt_params_create(&teacher_params));
    OK(rt_student_create(&student, &(rt_student_config){.spec = "latent-be:3", .arch = arch}, params));
    OK(rt_net_create(&teacher, &arch, teacher_params, NULL));
    for (int m = 0; m < M; m++) {
        OK(rt_calloc(&blocks[m], (size_t)rt_params_floats(teacher_params), sizeof(float)));
        fill_teacher(teacher_params, blocks[m], m);
    }
    const rt_distill_config what = {.student = student,
                                    .objective = rt_objective_find("one-to-one"),
                                    .perturb = rt_perturb_find("tdiv-sdiv"),
                                    .teachers = M,
                                    .teacher_net = teacher,
                                    .teacher_params = teacher_params,
                                    .options = {.alpha = 1}};
    const rt_step_options o = {.batch = ROWS,
                               .members = 1,
                               .optimiser = "sgd",
                               .momentum = 0.9,
                               .nesterov = true,
                               .weight_decay = 5e-4,
                               .decay_rule = "all",
                               .slice = 2};
    OK(rt_step_create(&step, &what, params, o, pool));
    fill_student(params, rt_step_values(step, 0));
    for (int t = 0; t < STEPS; t++) {
        float x[ROWS * D];
        const int32_t label[ROWS] = {0};
        const double lr = 0.02;
        double loss = 0;
        char name[8];
        snprintf(name, sizeof name, "x%d", t % 4);
        fill(x, name, ROWS * D, 1.0, 0.5);
        const rt_step_io io = {.x = x,
                               .label = label,
                               .rows = ROWS,
                               .t = t,
                               .lr = &lr,
                               .losses = &loss,
                               .temperature = 4,
                               .pair = {PAIRS[t][0], PAIRS[t][1]},
                               .teacher_blocks = (const float *const *)blocks};
        OK(rt_step_run(step, &io));
        agrees("loss", t, loss, gold[t]);
    }
    OK(rt_student_collapse(student, params, rt_step_values(step, 0), &flat, &flat_params, &flat_block));
    const float *w =
        flat_block + rt_params_get(flat_params, rt_params_find(flat_params, "layers.0.weight"))->offset;
    const float *b =
        flat_block + rt_params_get(flat_params, rt_params_find(flat_params, "layers.1.bias"))->offset;
    for (int i = 0; i < WEIGHTS; i++)
        agrees("weight", i, (double)w[i], gold[STEPS + i]);
    for (int i = 0; i < K; i++)
        agrees("bias", i, (double)b[i], gold[STEPS + WEIGHTS + i]);
    for (int m = 0; m < M; m++)
        rt_free(blocks[m]);
    rt_free(flat_block);
    rt_student_destroy(&flat);
    rt_params_destroy(&flat_params);
    rt_step_destroy(&step);
    rt_student_destroy(&student);
    rt_net_destroy(&teacher);
    rt_params_destroy(&params);
    rt_params_destroy(&teacher_params);
    rt_pool_destroy(&pool);
}

static void test_ten_steps(void **state) {
    (void)state;
    ten_steps(1);
    ten_steps(2);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_ten_steps)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
