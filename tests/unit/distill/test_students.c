/*
 * test_students.c - what students are: counts and names, members against explicit weights, single members,
 * collapse, growth, refusals, and gradients against PyTorch (tests/golden/students.py).
 *
 * Kinds are rows of tables: "single" and "dirichlet" (student_single.c), "batch-ensemble" (student_be.c),
 * "latent-be" (student_latent_be.c), "hydra" (student_hydra.c). Mixtures of members: member_mix.c.
 */
#include "unit/distill/students_support.h"

static const rt_shape ROW6 = {1, {6}}, IMAGE = {3, {3, 8, 8}};

static rt_student_config config(const char *spec, const char *arch, rt_shape input, int64_t outputs) {
    return (rt_student_config){.spec = spec, .arch = {.spec = arch, .input = input, .outputs = outputs}};
}

/* ---- counts, names, rules ---- */

static void counts(void **state) {
    (void)state;
    static const struct {
        const char *spec, *arch, *head;
        rt_shape input;
        int64_t outputs, all, heads; /* numbers, running statistics included */
    } row[] = {
        {"single", "mlp:200,200", NULL, {3, {1, 28, 28}}, 10, 199210, 0},
        {"dirichlet", "mlp:200,200", NULL, {3, {1, 28, 28}}, 10, 199210, 0},
        /* Tran et al. 2020 */
        {"hydra:50", "mlp:200,200", "100,100", {3, {1, 28, 28}}, 10, 1757700, 50 * 31210},
        {"hydra:50", "resnet20", NULL, {3, {3, 32, 32}}, 10, 3950324, 50 * 75018},
        {"hydra:3", "mlp:50", "10", {1, {13}}, 2, 700 + 3 * (510 + 22), 3 * 532},
        /* kernels + M (in + out) factors + M biases */
        {"batch-ensemble:4", "mlp:8", NULL, {1, {6}}, 3, 48 + 24 + 4 * (14 + 11) + 4 * (8 + 3), 0},
        {"latent-be:4", "mlp:8", NULL, {1, {6}}, 3, 48 + 24 + 4 * (14 + 11) + 8 + 3, 0},
        {"batch-ensemble:1", "mlp:8", NULL, {1, {6}}, 3, 83, 0},
    };
    for (int64_t i = 0; i < RT_COUNT(row); i++) {
        rt_student_config c = config(row[i].spec, row[i].arch, row[i].input, row[i].outputs);
        c.head = row[i].head;
        learner l = learner_make(c);
        if (numbers_under(l.params, "") != row[i].all || numbers_under(l.params, "heads.") != row[i].heads)
            fail_msg("%s %s: %lld numbers, %lld in heads; wanted %lld, %lld", row[i].spec, row[i].arch,
                     (long long)numbers_under(l.params, ""), (long long)numbers_under(l.params, "heads."),
                     (long long)row[i].all, (long long)row[i].heads);
        assert_string_equal(rt_student_spec(l.student), row[i].spec);
        assert_true(rt_student_flops(l.student) > 0);
        learner_drop(&l);
    }
}

static void names_and_shapes(void **state) {
    (void)state;
    static const struct {
        const char *spec, *arch, *name;
        bool member_bn;
        rt_shape shape;
        rt_role role;
    } row[] = {
        {"batch-ensemble:3", "mlp:8", "layers.0.r", false, {2, {3, 192}}, RT_ROLE_FAST},
        {"batch-ensemble:3", "mlp:8", "layers.1.s", false, {2, {3, 4}}, RT_ROLE_FAST},
        {"batch-ensemble:3", "mlp:8", "layers.1.bias", false, {2, {3, 4}}, RT_ROLE_BIAS},
        {"latent-be:3", "mlp:8", "layers.1.bias", false, {1, {4}}, RT_ROLE_BIAS},
        {"batch-ensemble:3", "wrn:10,1", "layer2.0.shortcut.r", false, {2, {3, 16}}, RT_ROLE_FAST},
        {"batch-ensemble:3", "wrn:10,1", "layer2.0.bn1.weight", false, {1, {16}}, RT_ROLE_NORM},
        {"batch-ensemble:3", "wrn:10,1", "layer2.0.bn1.running_var", true, {2, {3, 16}}, RT_ROLE_STATE},
        {"hydra:2", "wrn:10,1", "heads.1.layer3.0.conv1.weight", false, {4, {64, 32, 3, 3}}, RT_ROLE_WEIGHT},
        {"hydra:2", "wrn:10,1", "heads.0.fc.bias", false, {1, {4}}, RT_ROLE_BIAS},
        {"hydra:2", "wrn:10,1", "layer2.0.conv1.weight", false, {4, {32, 16, 3, 3}}, RT_ROLE_WEIGHT},
    };
    for (int64_t i = 0; i < RT_COUNT(row); i++) {
        rt_student_config c = config(row[i].spec, row[i].arch, IMAGE, 4);
        c.member_bn = row[i].member_bn;
        learner l = learner_make(c);
        const int slot = rt_params_find(l.params, row[i].name);
        if (slot < 0)
            fail_msg("%s %s has no parameter %s", row[i].spec, row[i].arch, row[i].name);
        const rt_param *p = rt_params_get(l.params, slot);
        assert_true(rt_shape_equal(&p->shape, &row[i].shape));
        assert_int_equal(p->role, row[i].role);
        learner_drop(&l);
    }
}

static void starts_and_rules(void **state) {
    (void)state;
    learner be = learner_make(config("batch-ensemble:4", "mlp:64", ROW6, 3));
    learner latent = learner_make(config("latent-be:4", "mlp:64", ROW6, 3));
    rt_params_init(be.params, be.block, 1);
    rt_params_init(latent.params, latent.block, 1);
    const float *s = learner_at(&be, "layers.0.s");
    double mean = 0, var = 0;
    for (int i = 0; i < 256; i++)
        mean += (double)s[i] / 256;
    for (int i = 0; i < 256; i++)
        var += pow((double)s[i] - mean, 2) / 256;
    assert_true(fabs(mean - 1) < 0.1 && fabs(sqrt(var) - 0.5) < 0.06); /* N(1, 0.5) */
    for (int i = 0; i < 256; i++)
        assert_true(learner_at(&latent, "layers.0.s")[i] == 1);
    const rt_rule fast = rt_student_rule(be.student, RT_ROLE_FAST),
                  latent_fast = rt_student_rule(latent.student, RT_ROLE_FAST);
    assert_true(fast.grad_scale == 1 && fast.lr_scale == 0.5 && fast.decay == 0);
    assert_true(latent_fast.grad_scale == 4 && latent_fast.lr_scale == 1 && latent_fast.decay < 0 &&
                latent_fast.centre == 1);
    const rt_rule bias = rt_student_rule(be.student, RT_ROLE_BIAS),
                  latent_bias = rt_student_rule(latent.student, RT_ROLE_BIAS);
    assert_true(bias.lr_scale == 0.5 && bias.decay < 0 && bias.centre == 0); /* a fast weight, but decayed */
    assert_true(latent_bias.lr_scale == 1);
    rt_student_config mostly = config("batch-ensemble:4", "mlp:64", ROW6, 3); /* +1 in four of five places */
    mostly.fast_init = RT_INIT_RANDOM_SIGN;
    mostly.fast_scale = 0.8;
    learner signs = learner_make(mostly);
    rt_params_init(signs.params, signs.block, 1);
    int plus = 0;
    for (int i = 0; i < 256; i++) {
        const float v = learner_at(&signs, "layers.0.s")[i];
        assert_true(v == 1 || v == -1);
        plus += v == 1;
    }
    assert_true(plus > 256 * 0.7 && plus < 256 * 0.9);
    learner_drop(&signs);
    const rt_rule weight = rt_student_rule(latent.student, RT_ROLE_WEIGHT);
    assert_true(weight.grad_scale == 1 && weight.lr_scale == 1 && weight.decay < 0 && weight.centre == 0);
    learner_drop(&be);
    learner_drop(&latent);
}

/* ---- members ---- */

/* A single network whose weights are member m of a student: W o s r^T, and the member's bias and BN. */
static void fill_member(const learner *many, learner *one, int m) {
    const bool latent = strncmp(rt_student_spec(many->student), "latent", 6) == 0;
    for (int slot = 0; slot < rt_params_count(one->params); slot++) {
        const rt_param *p = rt_params_get(one->params, slot);
        char r[256], s[256];
        const int len = (int)(strrchr(p->name, '.') - p->name);
        snprintf(r, sizeof r, "%.*s.r", len, p->name);
        snprintf(s, sizeof s, "%.*s.s", len, p->name);
        const float *src = learner_at(many, p->name);
        float *dst = one->block + p->offset;
        const int64_t n = p->shape.d[0];
        if (p->role == RT_ROLE_WEIGHT) {
            const int64_t in = p->shape.d[1], window = p->count / (n * in);
            const float *rv = learner_at(many, r) + m * in, *sv = learner_at(many, s) + m * n;
            for (int64_t i = 0; i < p->count; i++)
                dst[i] = src[i] * sv[i / window / in] * rv[i / window % in];
        } else if (p->role == RT_ROLE_BIAS && latent) {
            for (int64_t i = 0; i < n; i++)
                dst[i] = src[i] * learner_at(many, s)[m * n + i];
        } else {
            const int64_t have = rt_params_get(many->params, rt_params_find(many->params, p->name))->count;
            memcpy(dst, src + (have > n ? m * n : 0), (size_t)n * sizeof *dst);
        }
    }
}

static void members_are_explicit_networks(void **state) {
    (void)state;
    static const struct {
        const char *spec, *arch;
        bool member_bn;
    } row[] = {
        {"batch-ensemble:3", "mlp:8,7", false},
        {"latent-be:3", "mlp:8,7", false},
        {"batch-ensemble:2", "wrn:10,1", false},
        {"batch-ensemble:2", "wrn:10,1", true},
        {"latent-be:2", "wrn:10,1", true},
        {"latent-be:2", "resnet20", false}, /* convolutions with biases */
        {"batch-ensemble:2", "resnet20", true},
    };
    enum { N = 3, K = 4 };
    float *x = inputs_make("x", N * 192);
    for (int64_t i = 0; i < RT_COUNT(row); i++) {
        rt_student_config c = config(row[i].spec, row[i].arch, IMAGE, K);
        c.member_bn = row[i].member_bn;
        learner many = learner_make(c), one = learner_make(config("single", row[i].arch, IMAGE, K));
        float *all = student_eval(&many, x, N, -1);
        for (int m = 0; m < rt_student_members(many.student); m++) {
            fill_member(&many, &one, m);
            float *want = student_eval(&one, x, N, -1), *alone = student_eval(&many, x, N, m);
            assert_near(all + m * N * K, want, N * K, 1e-5, row[i].spec);
            assert_near(alone, all + m * N * K, N * K, 1e-6, row[i].spec);
            rt_free(want);
            rt_free(alone);
        }
        rt_free(all);
        learner_drop(&many);
        learner_drop(&one);
    }
    rt_free(x);
}

/* One member is always in eval mode: no statistics move, whatever the builder's mode. */
static void single_member_is_eval(void **state) {
    (void)state;
    static const char *const spec[] = {"batch-ensemble:2", "latent-be:2", "hydra:2", "single"};
    for (int64_t i = 0; i < RT_COUNT(spec); i++) {
        learner l = learner_make(config(spec[i], "wrn:10,1", IMAGE, 4));
        rt_graph *g = NULL;
        OK(rt_graph_create(&g, 2, RT_DTYPE_F32));
        rt_build b = {.g = g, .params = l.params, .train = true};
        const rt_val x = rt_graph_input(g, "x", RT_DTYPE_F32, IMAGE, 1);
        rt_student_member(l.student, &b, x, rt_graph_feed(g, "i", RT_DTYPE_I32, rt_shape0()));
        OK(rt_graph_status(g));
        assert_int_equal(rt_graph_outputs(g), 0);
        rt_student_forward(l.student, &b, x);
        assert_true(rt_graph_outputs(g) > 0);
        rt_graph_destroy(&g);
        learner_drop(&l);
    }
}

static void hydra_members(void **state) {
    (void)state;
    static const struct {
        const char *arch, *head, *split;
    } row[] = {{"mlp:8,7", NULL, NULL},
               {"mlp:8,7", "5", "layers.1"},
               {"wrn:10,1", NULL, NULL},
               {"wrn:10,1", "6,5", "layer2.0"}};
    enum { N = 3, K = 4 };
    float *x = inputs_make("x", N * 192);
    for (int64_t i = 0; i < RT_COUNT(row); i++) {
        rt_student_config c = config("hydra:3", row[i].arch, IMAGE, K);
        c.head = row[i].head;
        c.split = row[i].split;
        learner l = learner_make(c);
        float *all = student_eval(&l, x, N, -1);
        for (int m = 0; m < 3; m++) {
            float *alone = student_eval(&l, x, N, m);
            assert_near(alone, all + m * N * K, N * K, 1e-6, row[i].arch);
            rt_free(alone);
        }
        assert_true(fabsf(all[0] - all[N * K]) > 1e-4f); /* heads differ by name */
        rt_free(all);
        learner_drop(&l);
    }
    rt_free(x);
}

/* r = s = 1 everywhere. */
static void unit_factors(learner *l) {
    for (int slot = 0; slot < rt_params_count(l->params); slot++) {
        const rt_param *p = rt_params_get(l->params, slot);
        for (int64_t i = 0; p->role == RT_ROLE_FAST && i < p->count; i++)
            l->block[p->offset + i] = 1;
    }
}

static void unit_factors_are_single(void **state) {
    (void)state;
    static const char *const arch[] = {"mlp:8,7", "wrn:10,1", "resnet20"};
    enum { N = 3, K = 4 };
    float *x = inputs_make("x", N * 192);
    for (int64_t i = 0; i < RT_COUNT(arch); i++) {
        learner many = learner_make(config("latent-be:3", arch[i], IMAGE, K)),
                one = learner_make(config("single", arch[i], IMAGE, K));
        unit_factors(&many);
        float *all = student_eval(&many, x, N, -1), *want = student_eval(&one, x, N, -1);
        for (int m = 0; m < 3; m++)
            assert_memory_equal(all + m * N * K, want, N * K * sizeof *want);
        rt_free(all);
        rt_free(want);
        learner_drop(&many);
        learner_drop(&one);
    }
    rt_free(x);
}

/* ---- collapse ---- */

static void collapse_is_mean_of_members(void **state) {
    (void)state;
    static const char *const arch[] = {"mlp:8,7", "wrn:10,1", "resnet20"};
    for (int64_t a = 0; a < RT_COUNT(arch); a++)
        for (int own_bn = 0; own_bn < 2; own_bn++) {
            rt_student_config c = config("latent-be:4", arch[a], IMAGE, 4);
            c.member_bn = own_bn != 0;
            learner many = learner_make(c), one = learner_make(config("single", arch[a], IMAGE, 4)),
                    got = {0};
            double *mean = NULL;
            const int64_t n = rt_params_floats(one.params);
            OK(rt_calloc(&mean, (size_t)n, sizeof *mean));
            for (int m = 0; m < 4; m++) {
                fill_member(&many, &one, m);
                for (int64_t i = 0; i < n; i++)
                    mean[i] += (double)one.block[i] / 4;
            }
            OK(rt_student_collapse(many.student, many.params, many.block, &got.student, &got.params,
                                   &got.block));
            assert_string_equal(rt_student_spec(got.student), "single");
            assert_int_equal(rt_params_floats(got.params), n);
            for (int64_t i = 0; i < n; i++)
                if (fabs((double)got.block[i] - mean[i]) > 1e-6 * fmax(1, fabs(mean[i])))
                    fail_msg("%s: number %lld is %g, wanted %g", arch[a], (long long)i, (double)got.block[i],
                             mean[i]);
            rt_free(mean);
            learner_drop(&got);
            learner_drop(&many);
            learner_drop(&one);
        }
}

/* One member as a plain network, and points between two, by weights that need not add up to 1: the numbers of explicit
 * weights, and what the student itself answers for that member. */
static void mixtures_of_members(void **state) {
    (void)state;
    enum { M = 3, N = 2, K = 4 };
    static const char *const spec[] = {"batch-ensemble:3", "latent-be:3"}, *const arch[] = {"mlp:8,7",
                                                                                            "wrn:10,1"};
    static const double weight[][M] = {{1, 0, 0}, {0, 0, 1}, {0.75, 0, 0.25}, {1, 2, 5}};
    float *x = inputs_make("x", N * 192);
    for (int a = 0; a < 8; a++) {
        rt_student_config c = config(spec[a % 2], arch[a / 2 % 2], IMAGE, K);
        c.member_bn = a >= 4;
        c.product_of_means =
            strcmp(spec[a % 2], "latent-be:3") == 0; /* of the collapse alone: not of mixtures */
        learner many = learner_make(c), one = learner_make(config("single", c.arch.spec, IMAGE, K)),
                got = learner_make(config("single", c.arch.spec, IMAGE, K));
        const int64_t n = rt_params_floats(one.params);
        assert_true(rt_student_mixes(many.student));
        assert_false(rt_student_mixes(one.student));
        for (int64_t w = 0; w < RT_COUNT(weight); w++) {
            const double all = weight[w][0] + weight[w][1] + weight[w][2];
            double *mean = NULL;
            OK(rt_calloc(&mean, (size_t)n, sizeof *mean));
            for (int m = 0; m < M; m++) {
                fill_member(&many, &one, m);
                for (int64_t i = 0; i < n; i++)
                    mean[i] += weight[w][m] / all * (double)one.block[i];
            }
            OK(rt_student_mix(many.student, many.params, many.block, weight[w], got.params, got.block));
            for (int64_t i = 0; i < n; i++)
                if (fabs((double)got.block[i] - mean[i]) > 1e-6 * fmax(1, fabs(mean[i])))
                    fail_msg("%s %s, weights %lld: number %lld is %g, wanted %g", c.spec, c.arch.spec,
                             (long long)w, (long long)i, (double)got.block[i], mean[i]);
            rt_free(mean);
        }
        OK(rt_student_mix(many.student, many.params, many.block, weight[1], got.params, got.block));
        float *member = student_eval(&many, x, N, 2), *alone = student_eval(&got, x, N, -1);
        assert_near(alone, member, N * K, 1e-5, "a member alone");
        rt_free(member);
        rt_free(alone);
        learner_drop(&got);
        learner_drop(&many);
        learner_drop(&one);
    }
    rt_free(x);
}

static void collapse_by_product_of_means(void **state) {
    (void)state;
    rt_student_config c = config("latent-be:3", "mlp:8", ROW6, 4);
    c.product_of_means = true;
    learner many = learner_make(c), got = {0};
    OK(rt_student_collapse(many.student, many.params, many.block, &got.student, &got.params, &got.block));
    const float *w = learner_at(&many, "layers.0.weight"), *r = learner_at(&many, "layers.0.r"),
                *s = learner_at(&many, "layers.0.s");
    for (int o = 0; o < 8; o++) {
        double ms = 0;
        for (int m = 0; m < 3; m++)
            ms += (double)s[m * 8 + o] / 3;
        for (int i = 0; i < 6; i++) {
            double mr = 0;
            for (int m = 0; m < 3; m++)
                mr += (double)r[m * 6 + i] / 3;
            assert_true(fabs((double)learner_at(&got, "layers.0.weight")[o * 6 + i] -
                             (double)w[o * 6 + i] * ms * mr) < 1e-6);
        }
        assert_true(fabs((double)learner_at(&got, "layers.0.bias")[o] -
                         (double)learner_at(&many, "layers.0.bias")[o] * ms) < 1e-6);
    }
    learner_drop(&got);
    learner_drop(&many);
}

static void collapse_of_equal_members(void **state) {
    (void)state;
    enum { N = 3, K = 4 };
    float *x = inputs_make("x", N * 192);
    learner many = learner_make(config("latent-be:3", "wrn:10,1", IMAGE, K)), got = {0};
    for (int slot = 0; slot < rt_params_count(many.params); slot++) {
        const rt_param *p = rt_params_get(many.params, slot);
        for (int m = 1; p->role == RT_ROLE_FAST && m < 3; m++)
            memcpy(many.block + p->offset + m * p->shape.d[1], many.block + p->offset,
                   (size_t)p->shape.d[1] * sizeof(float));
    }
    OK(rt_student_collapse(many.student, many.params, many.block, &got.student, &got.params, &got.block));
    float *all = student_eval(&many, x, N, -1), *one = student_eval(&got, x, N, -1);
    for (int m = 0; m < 3; m++)
        assert_near(one, all + m * N * K, N * K, 1e-5, "collapsed");
    rt_free(all);
    rt_free(one);
    rt_free(x);
    learner_drop(&got);
    learner be = learner_make(config("batch-ensemble:3", "mlp:8", ROW6, K)); /* ships as it is */
    OK(rt_student_collapse(be.student, be.params, be.block, &got.student, &got.params, &got.block));
    assert_null(got.student);
    learner_drop(&be);
    learner_drop(&many);
}

/* ---- hydra ---- */

static void hydra_splits(void **state) {
    (void)state;
    static const struct {
        const char *arch, *split, *head, *in_head, *in_body;
    } row[] = {
        {"resnet20", NULL, NULL, "layer3.2.conv1.weight", "layer3.1.conv2.weight"}, /* the last block */
        {"resnet20", "layer3.0", NULL, "layer3.0.conv1.weight", "layer2.2.conv2.weight"},
        {"resnet20", "1", NULL, "layer1.0.conv1.weight", "conv1.weight"},
        {"resnet20", "fc", NULL, "fc.weight", "layer3.2.conv2.weight"},
        {"resnet20", NULL, "20", "layers.1.weight",
         "layer3.2.conv2.weight"}, /* own heads: all but the classifier is body */
        {"mlp:8,7", NULL, NULL, "layers.2.weight", "layers.1.weight"},
        {"mlp:8,7", "layers.1", NULL, "layers.1.weight", "layers.0.weight"},
        {"vgg16", NULL, NULL, "classifier.6.weight", "classifier.3.weight"},
    };
    for (int64_t i = 0; i < RT_COUNT(row); i++) {
        rt_student_config c = config("hydra:2", row[i].arch, (rt_shape){3, {3, 32, 32}}, 4);
        c.split = row[i].split;
        c.head = row[i].head;
        learner l = learner_make(c);
        char name[128];
        for (int m = 0; m < 2; m++) {
            snprintf(name, sizeof name, "heads.%d.%s", m, row[i].in_head);
            if (rt_params_find(l.params, name) < 0)
                fail_msg("%s: no %s", row[i].arch, name);
        }
        if (rt_params_find(l.params, row[i].in_body) < 0)
            fail_msg("%s: no %s", row[i].arch, row[i].in_body);
        snprintf(name, sizeof name, "heads.0.%s", row[i].in_body);
        assert_int_equal(rt_params_find(l.params, name), -1);
        assert_int_equal(rt_params_find(l.params, row[i].in_head), -1);
        learner_drop(&l);
    }
}

static void hydra_growth(void **state) {
    (void)state;
    enum { N = 2, K = 4 };
    float *x = inputs_make("x", N * 192);
    learner from = learner_make(config("hydra:1", "wrn:10,1", IMAGE, K)),
            to = learner_make(config("hydra:5", "wrn:10,1", IMAGE, K));
    OK(rt_student_grow(to.student, from.params, from.block, to.params, to.block));
    float *one = student_eval(&from, x, N, -1), *all = student_eval(&to, x, N, -1);
    for (int m = 0; m < 5; m++)
        assert_memory_equal(all + m * N * K, one, N * K * sizeof *one);
    rt_free(one);
    rt_free(all);
    rt_free(x);
    learner other = learner_make(config("hydra:5", "wrn:10,2", IMAGE, K)),
            plain = learner_make(config("single", "wrn:10,1", IMAGE, K));
    assert_refused(rt_student_grow(to.student, from.params, from.block, other.params, other.block),
                   "layer1.0.conv1.weight|2304|4608");
    assert_refused(rt_student_grow(to.student, plain.params, plain.block, to.params, to.block),
                   "heads.0.|does not have");
    learner_drop(&other);
    learner_drop(&plain);
    learner_drop(&from);
    learner_drop(&to);
}

/* More heads than an operation has operands. */
static void many_heads(void **state) {
    (void)state;
    learner l = learner_make(config("hydra:300", "mlp:4", ROW6, 2));
    float *x = inputs_make("x", 6), *all = student_eval(&l, x, 1, -1), *last = student_eval(&l, x, 1, 299);
    assert_near(last, all + 598, 2, 1e-6, "head 299");
    rt_free(x);
    rt_free(all);
    rt_free(last);
    learner_drop(&l);
}

/* ---- refusals ---- */

static void refusals(void **state) {
    (void)state;
    static const struct {
        rt_student_config c;
        const char *words;
    } row[] = {
        {{.spec = "batch-ensmble:4"}, "batch-ensmble:4|did you mean 'batch-ensemble:M'|hydra:M"},
        {{.spec = "forest"}, "unknown 'forest'|wanted one of single"},
        {{.spec = "hydra"}, "student hydra|wanted hydra:M|1 to 10000"},
        {{.spec = "hydra:0"}, "hydra:0|1 to 10000"},
        {{.spec = "latent-be:4x"}, "latent-be:4x|wanted latent-be:M"},
        {{.spec = "batch-ensemble:"}, "wanted batch-ensemble:M"},
        {{.spec = "single:3"}, "single:3|takes no number"},
        {{.spec = "hydra:3", .head = "100,x"}, "\"100,x\"|widths such as 100,100"},
        {{.spec = "hydra:3", .head = "100,"}, "\"100,\"|widths"},
        {{.spec = "hydra:3", .head = "0"}, "\"0\"|widths"},
        {{.spec = "hydra:3", .split = "0"}, "\"0\"|1 to 2|layers.1, layers.2"},
        {{.spec = "hydra:3", .split = "3"}, "\"3\"|1 to 2"},
        {{.spec = "hydra:3", .split = "layer9"}, "\"layer9\"|layers.1, layers.2"},
        {{.spec = "single", .head = "10"}, "student single|hydra:M"},
        {{.spec = "batch-ensemble:2", .split = "1"}, "batch-ensemble:2|hydra:M"},
        {{.spec = "hydra:2", .member_bn = true}, "hydra:2|batch-ensemble:M"},
        {{.spec = "dirichlet", .regression = true}, "dirichlet|regression"},
        {{.spec = "single", .regression = true}, "4 outputs|2 (mean, log-variance)"},
    };
    for (int64_t i = 0; i < RT_COUNT(row); i++) {
        rt_student_config c = row[i].c;
        rt_params *params = NULL;
        rt_student *s = NULL;
        c.arch = (rt_arch_config){.spec = "mlp:8,7", .input = ROW6, .outputs = 4};
        OK(rt_params_create(&params));
        assert_refused(rt_student_create(&s, &c, params), row[i].words);
        assert_null(s);
        rt_params_destroy(&params);
    }
}

static rt_status make_and_collapse(void *user) {
    rt_student_config c = config(user, "mlp:5", ROW6, 3);
    learner l = {0}, one = {0};
    rt_status st = RT_OK;
    if (rt_str_starts(user, "hydra"))
        c.head = "4";
    RT_TRY_GOTO(rt_params_create(&l.params));
    RT_TRY_GOTO(rt_student_create(&l.student, &c, l.params));
    RT_TRY_GOTO(rt_calloc(&l.block, (size_t)rt_params_floats(l.params), sizeof *l.block));
    RT_TRY_GOTO(rt_student_collapse(l.student, l.params, l.block, &one.student, &one.params, &one.block));
done:
    learner_drop(&one);
    learner_drop(&l);
    return st;
}

static void allocation_failures(void **state) {
    (void)state;
    static char spec[][24] = {"single", "batch-ensemble:2", "latent-be:2", "hydra:2"};
    for (int64_t i = 0; i < RT_COUNT(spec); i++)
        each_allocation_fails(make_and_collapse, spec[i], 10);
}

/* ---- gradients against PyTorch ---- */

typedef struct trial {
    learner l;
    rt_graph *g;
    rt_val loss, logits, leaf[64], grad[64];
    double *param[64];
    void **values;
    double *x;
    int32_t y[8];
} trial;

static void trial_run(trial *t, rt_student_config c, int64_t batch) {
    *t = (trial){.l = learner_make(c)};
    const int n = rt_params_count(t->l.params);
    assert_true(n <= 64);
    OK(rt_graph_create(&t->g, batch, RT_DTYPE_F64));
    rt_build b = {.g = t->g, .params = t->l.params, .train = true};
    const rt_val x = rt_graph_input(t->g, "x", RT_DTYPE_F64, c.arch.input, 1),
                 y = rt_graph_input(t->g, "y", RT_DTYPE_I32, rt_shape0(), 1);
    t->logits = rt_student_forward(t->l.student, &b, x);
    const rt_objective_in in = {.g = t->g, .student = t->logits, .label = y, .alpha = 1};
    t->loss = rt_objective_find("labels")->build(&in);
    for (int i = 0; i < n; i++) {
        const rt_param *p = rt_params_get(t->l.params, i);
        t->leaf[i] = rt_graph_param(t->g, i, p->name, p->shape);
        OK(rt_alloc(&t->param[i], (size_t)p->count * sizeof(double)));
        for (int64_t k = 0; k < p->count; k++)
            t->param[i][k] = param_value(p, k);
    }
    OK(rt_graph_grad(t->g, t->loss, t->leaf, n, t->grad));
    const int64_t count = batch * rt_shape_elems(&c.arch.input);
    OK(rt_alloc(&t->x, (size_t)count * sizeof(double)));
    for (int64_t i = 0; i < count; i++)
        t->x[i] = hash_uniform("x", i);
    for (int i = 0; i < 8; i++)
        t->y[i] = i * 7 % 4;
    const void *inputs[] = {t->x, t->y};
    OK(rt_interp_values(t->g, (const void *const *)t->param, inputs, NULL, &t->values, (rt_run){0}));
}

static void trial_drop(trial *t) {
    for (int i = 0; i < rt_params_count(t->l.params); i++)
        rt_free(t->param[i]);
    rt_interp_free(t->g, t->values);
    rt_graph_destroy(&t->g);
    rt_free(t->x);
    learner_drop(&t->l);
}

static rt_val trial_find(const trial *t, const char *kind, const char *name) {
    char text[160];
    if (strcmp(kind, "loss") == 0)
        return t->loss;
    if (strcmp(kind, "logits") == 0)
        return t->logits;
    snprintf(text, sizeof text, "update:%s", name);
    const int slot = rt_params_find(t->l.params, name);
    return strcmp(kind, "update") == 0 ? rt_graph_find_output(t->g, text) : slot >= 0 ? t->grad[slot] : 0;
}

static void golden_line(const trial *t, const char *kind, const char *name, const double *want) {
    const rt_val v = trial_find(t, kind, name);
    if (v == 0)
        fail_msg("%s %s is missing", kind, name);
    const int64_t n = rt_shape_elems(&rt_graph_node(t->g, v)->type.shape);
    const double *got = t->values[v];
    double norm = 0, a = 0, b = 0;
    char na[160], nb[160];
    snprintf(na, sizeof na, "a:%s", name);
    snprintf(nb, sizeof nb, "b:%s", name);
    for (int64_t i = 0; i < n; i++) {
        norm += got[i] * got[i];
        a += got[i] * (hash_uniform(na, i) - 0.5);
        b += got[i] * (hash_uniform(nb, i) - 0.5);
    }
    const bool scalar = strcmp(kind, "loss") == 0;
    const double have[3] = {sqrt(norm), scalar ? 0 : a, scalar ? 0 : b};
    for (int i = 0; i < 3; i++)
        if (fabs(have[i] - want[i]) > 1e-9 * fmax(want[0], 1e-3))
            fail_msg("%s %s: number %d is %.15g, PyTorch says %.15g", kind, name, i, have[i], want[i]);
}

static void gradients_as_pytorch(void **state) {
    (void)state;
    static const struct {
        const char *name, *spec, *arch;
        bool member_bn;
        int64_t rows;
        rt_shape input;
    } cases[] = {
        {"mlp-be", "batch-ensemble:3", "mlp:8,7", false, 5, {1, {6}}},
        {"mlp-latent", "latent-be:3", "mlp:8,7", false, 5, {1, {6}}},
        {"wrn-be", "batch-ensemble:2", "wrn:10,1", false, 3, {3, {3, 8, 8}}},
        {"wrn-be-bn", "batch-ensemble:2", "wrn:10,1", true, 3, {3, {3, 8, 8}}},
        {"wrn-latent", "latent-be:2", "wrn:10,1", false, 3, {3, {3, 8, 8}}},
    };
    FILE *f = fopen(RT_SOURCE_DIR "/tests/golden/students.txt", "r");
    assert_non_null(f);
    char line[512], kind[32], name[128];
    trial t = {0};
    int seen = 0, done = 0, grads = 0;
    while (fgets(line, sizeof line, f) != NULL) {
        double want[3];
        if (sscanf(line, "case %127s", name) == 1) {
            if (seen++ > 0)
                trial_drop(&t);
            for (int64_t i = 0; i < RT_COUNT(cases); i++)
                if (strcmp(cases[i].name, name) == 0) {
                    rt_student_config c = config(cases[i].spec, cases[i].arch, cases[i].input, 4);
                    c.member_bn = cases[i].member_bn;
                    trial_run(&t, c, cases[i].rows);
                    done++;
                    for (int k = 0; k < rt_params_count(t.l.params); k++)
                        grads += rt_params_get(t.l.params, k)->role != RT_ROLE_STATE;
                }
        } else {
            assert_int_equal(sscanf(line, "%31s %127s %lf %lf %lf", kind, name, &want[0], &want[1], &want[2]),
                             5);
            golden_line(&t, kind, name, want);
            grads -= strcmp(kind, "grad") == 0;
        }
    }
    fclose(f);
    trial_drop(&t);
    assert_int_equal(seen, RT_COUNT(cases));
    assert_int_equal(done, RT_COUNT(cases));
    assert_int_equal(grads, 0); /* every trained parameter was compared */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts),
        cmocka_unit_test(names_and_shapes),
        cmocka_unit_test(starts_and_rules),
        cmocka_unit_test(members_are_explicit_networks),
        cmocka_unit_test(single_member_is_eval),
        cmocka_unit_test(hydra_members),
        cmocka_unit_test(unit_factors_are_single),
        cmocka_unit_test(collapse_is_mean_of_members),
        cmocka_unit_test(mixtures_of_members),
        cmocka_unit_test(collapse_by_product_of_means),
        cmocka_unit_test(collapse_of_equal_members),
        cmocka_unit_test(hydra_splits),
        cmocka_unit_test(hydra_growth),
        cmocka_unit_test(many_heads),
        cmocka_unit_test(refusals),
        cmocka_unit_test(allocation_failures),
        cmocka_unit_test(gradients_as_pytorch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
