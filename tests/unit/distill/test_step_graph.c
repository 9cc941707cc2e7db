/*
 * test_step_graph.c - the graph of a training step (distill/step_graph.c): what is refused and how, numbering of
 * inputs, feeds and copies of the teacher, stored outputs against teachers inside the step, the probe against each
 * network alone over pairs, the pull to teacher weights against its formula, and optimised, sliced plans against the
 * interpreter.
 */
#include "unit/distill/step_graph_support.h"

/* ---- numbering ---- */

static void check_leaves(const bench *b, const world *w) {
    const rt_step_graph *p = &b->p;
    const int own = rt_params_count(w->student.params), each = rt_params_count(w->c.teacher_params);
    const struct {
        const char *name;
        int slot;
    } want[] = {{"x", p->in_x},           {"label", p->in_label},
                {"target", p->in_target}, {"teacher", p->in_teacher},
                {"ood", p->in_ood},       {"temperature", p->feed_temperature},
                {"i", p->feed_i},         {"j", p->feed_j}};
    int seen[RT_COUNT(want)] = {0};
    for (rt_val v = 1; v < (rt_val)rt_graph_count(p->g); v++) {
        const rt_node *d = rt_graph_node(p->g, v);
        if (d->leaf == RT_LEAF_INPUT || d->leaf == RT_LEAF_FEED)
            for (int64_t k = 0; k < RT_COUNT(want); k++)
                if (strcmp(d->name, want[k].name) == 0) {
                    assert_int_equal(d->slot, want[k].slot);
                    seen[k]++;
                }
        if (d->leaf == RT_LEAF_PARAM && d->slot < own)
            assert_string_equal(d->name, rt_params_get(w->student.params, d->slot)->name);
        if (d->leaf == RT_LEAF_PARAM && d->slot >= own) {
            int owners = 0;
            for (int t = 0; t < p->nteacher; t++)
                if (d->slot >= p->teacher[t].first && d->slot < p->teacher[t].first + each) {
                    const rt_param *line = rt_params_get(w->c.teacher_params, d->slot - p->teacher[t].first);
                    assert_string_equal(d->name, line->name);
                    assert_true(rt_shape_equal(&d->type.shape, &line->shape));
                    owners++;
                }
            assert_int_equal(owners, 1);
        }
    }
    for (int64_t k = 0; k < RT_COUNT(want); k++)
        assert_int_equal(seen[k], want[k].slot >= 0 ? 1 : 0);
    for (int i = 0; i < b->nout; i++) /* teachers run in eval mode: their statistics stay */
        assert_true(rt_graph_get_output(p->g, i)->update_slot < own);
}

static void numbering(void **state) {
    (void)state;
    static const struct {
        const rt_perturb *perturb;
        bool stored;
        int copies, members[5], feeds; /* of the teacher, in order */
    } row[] = {
        {NULL, false, 3, {0, 1, 2}, 1},
        {NULL, true, 0, {0}, 1},
        {&DARKER, true, 0, {0}, 1},
        {&ONE, false, 4, {-1, 0, 1, 2}, 2},
        {&TEACHERS, false, 5, {-1, -2, 0, 1, 2}, 3},
        {&PAIR, false, 5, {-1, -2, 0, 1, 2}, 3},
    };
    world w = world_make("batch-ensemble:3", "mlp:9", "mlp:6,5", 3, false);
    const rt_net *net = w.c.teacher_net;
    w.c.objective = &PAIRED;
    for (int64_t i = 0; i < RT_COUNT(row); i++) {
        w.c.perturb = row[i].perturb;
        w.c.teacher_net = row[i].stored ? NULL : net;
        bench *b = bench_make(&w);
        check_leaves(b, &w);
        assert_int_equal(b->p.nteacher, row[i].copies);
        for (int t = 0; t < row[i].copies; t++) {
            assert_int_equal(b->p.teacher[t].member, row[i].members[t]);
            assert_int_equal(b->p.teacher[t].first,
                             rt_params_count(w.student.params) + t * rt_params_count(w.c.teacher_params));
        }
        assert_int_equal(b->p.in_x, 0);
        assert_int_equal(b->p.in_label, 1);
        assert_int_equal(b->p.in_teacher, row[i].stored ? 2 : -1);
        assert_int_equal(b->p.feed_i, row[i].feeds > 1 ? 1 : -1);
        assert_int_equal(b->p.feed_j, row[i].feeds > 2 ? 2 : -1);
        bench_drop(b);
    }
    world_drop(&w);
}

/* ---- combinations: plans against the interpreter ---- */

static void by_plan(bench *b, int64_t slice, int workers, const float *const *keep, float **out) {
    rt_plan *plan = NULL;
    rt_pool *pool = NULL;
    rt_exec *e = NULL;
    OK(rt_plan_compile(&plan, b->p.g, (rt_plan_options){.slice = slice}));
    OK(rt_pool_create(&pool, workers));
    OK(rt_exec_create(&e, plan, pool));
    for (int i = 0; i < b->nparam; i++)
        rt_exec_bind_param(e, i, b->param[i]);
    for (int i = 0; i < 8 && b->input[i] != NULL; i++)
        rt_exec_bind_input(e, i, b->input[i]);
    for (int i = 0; i < 4 && b->feed[i] != NULL; i++)
        rt_exec_bind_feed(e, i, b->feed[i]);
    for (int i = 0; i < b->nout; i++)
        if (rt_graph_get_output(b->p.g, i)->update_slot < 0)
            rt_exec_bind_output(e, i, out[i]);
    rt_exec_run(&e, &RUN, 1, pool);
    for (int i = 0; i < b->nout; i++) {
        const int slot = rt_graph_get_output(b->p.g, i)->update_slot;
        if (slot < 0)
            continue;
        memcpy(out[i], b->param[slot], (size_t)b->count[i] * sizeof(float));
        memcpy(b->param[slot], keep[i], (size_t)b->count[i] * sizeof(float));
    }
    rt_exec_destroy(&e);
    rt_plan_destroy(&plan);
    rt_pool_destroy(&pool);
}

static void plan_as_interpreter(bench *b, const char *what) {
    float *got[MAX_OUT] = {0}, *keep[MAX_OUT] = {0};
    bench_interp(b);
    for (int i = 0; i < b->nout; i++) {
        const int slot = rt_graph_get_output(b->p.g, i)->update_slot;
        OK(rt_calloc(&got[i], (size_t)b->count[i], sizeof(float)));
        OK(rt_calloc(&keep[i], (size_t)b->count[i], sizeof(float)));
        if (slot >= 0)
            memcpy(keep[i], b->param[slot], (size_t)b->count[i] * sizeof(float));
    }
    for (int64_t slice = 1; slice <= BATCH; slice *= 2) {
        by_plan(b, slice, slice == 2 ? 3 : 1, (const float *const *)keep, got);
        for (int i = 0; i < b->nout; i++) {
            char text[256];
            snprintf(text, sizeof text, "%s, slices of %d, %s", what, (int)slice,
                     rt_graph_get_output(b->p.g, i)->name);
            assert_near(got[i], b->out[i], b->count[i], 2e-3, text);
        }
    }
    for (int i = 0; i < b->nout; i++) {
        rt_free(got[i]);
        rt_free(keep[i]);
    }
}

static void combinations(void **state) {
    (void)state;
    static const struct {
        const char *student, *arch, *teacher;
        const char *objective;
        const rt_objective *own;
        const rt_perturb *perturb;
        bool stored, regression, ood;
        double pull;
        int teachers;
    } row[] = {
        {"single", "mlp:9", "mlp:6", "labels", NULL, NULL, false, false, false, 0, 1},
        {"single", "mlp:9", "mlp:6", "labels", NULL, &DARKER, false, true, false, 0, 1},
        {"single", "wrn:10,1", "wrn:10,1", NULL, &MEAN, &TEACHERS, false, false, false, 0, 3},
        {"batch-ensemble:3", "mlp:9,8", "mlp:9,8", NULL, &PAIRED, &PAIR, false, false, false, 0.5, 3},
        {"batch-ensemble:2", "wrn:10,1", "wrn:10,1", NULL, &PAIRED, NULL, false, false, false, 2, 2},
        {"batch-ensemble:4", "wrn:10,1", "mlp:9", NULL, &MEAN, &ONE, false, false, false, 0, 2},
        {"latent-be:2", "wrn:10,1", "wrn:10,1", NULL, &PAIRED, &PAIR, false, false, false, 0, 2},
        {"latent-be:3", "mlp:9", "mlp:9", NULL, &PAIRED, NULL, true, false, false, 0, 3},
        {"hydra:3", "wrn:10,1", "mlp:9", NULL, &PAIRED, &PAIR, false, false, false, 0, 3},
        {"hydra:2", "mlp:9,8", "mlp:9", NULL, &NUMBERS, NULL, false, true, false, 0, 2},
        {"single", "wrn:10,1", "mlp:9", "ae-kd", NULL, NULL, false, false, false, 0, 3},
        {"dirichlet", "mlp:9", "mlp:9", "end2", NULL, NULL, true, false, false, 0, 3},
        {"dirichlet", "mlp:9", "mlp:9", "proxy-end2", NULL, NULL, false, false, false, 0, 3},
        {"dirichlet", "wrn:10,1", "mlp:9", "prior-net", NULL, NULL, false, false, true, 0, 1},
        {"batch-ensemble:3", "wrn:10,1", "mlp:9", "one-to-one", NULL, &PAIR, false, false, false, 0, 3},
        {"hydra:3", "mlp:9", "mlp:9", "gaussian-one-to-one", NULL, NULL, false, true, false, 0, 3},
        {"dirichlet", "wrn:10,1", "mlp:9", NULL, &OUTSIDE, &DARKER, false, false, true, 0, 1},
    };
    for (int64_t i = 0; i < RT_COUNT(row); i++) {
        world w = world_make(row[i].student, row[i].arch, row[i].teacher, row[i].teachers, row[i].regression);
        char what[128];
        snprintf(what, sizeof what, "row %d: %s %s", (int)i, row[i].student, row[i].arch);
        w.c.objective = row[i].own != NULL ? row[i].own : rt_objective_find(row[i].objective);
        w.c.perturb = row[i].perturb;
        w.c.ood = row[i].ood;
        w.c.teacher_pull = row[i].pull;
        if (row[i].stored)
            w.c.teacher_net = NULL;
        w.i %= row[i].teachers;
        w.j = (w.i + 1) % row[i].teachers;
        bench *b = bench_make(&w);
        if (!row[i].stored)
            check_leaves(b, &w);
        plan_as_interpreter(b, what);
        bench_drop(b);
        world_drop(&w);
    }
}

/* Every perturbation there is, on a student that all of them take. */
static void perturbations(void **state) {
    (void)state;
    const rt_perturb *const *list = NULL;
    const int n = rt_perturb_list(&list);
    world w = world_make("latent-be:3", "wrn:10,1", "mlp:9", 3, false);
    w.c.objective = rt_objective_find("one-to-one");
    assert_true(n > 0);
    for (int i = 0; i < n; i++) {
        w.c.perturb = list[i];
        bench *b = bench_make(&w);
        check_leaves(b, &w);
        plan_as_interpreter(b, list[i]->name);
        bench_drop(b);
    }
    world_drop(&w);
}

static void stored_is_teachers_inside(void **state) {
    (void)state;
    static const struct {
        const char *student, *arch, *teacher;
        const rt_objective *objective;
        bool regression;
    } row[] = {{"batch-ensemble:3", "mlp:9", "wrn:10,1", &PAIRED, false},
               {"single", "wrn:10,1", "mlp:6,5", &MEAN, false},
               {"hydra:3", "mlp:9,8", "mlp:6", &PAIRED, false},
               {"hydra:3", "mlp:9,8", "mlp:6", &NUMBERS, true}};
    for (int64_t i = 0; i < RT_COUNT(row); i++) {
        world w = world_make(row[i].student, row[i].arch, row[i].teacher, 3, row[i].regression);
        w.c.objective = row[i].objective;
        bench *inside = bench_make(&w);
        w.c.teacher_net = NULL;
        bench *stored = bench_make(&w);
        bench_interp(inside);
        bench_interp(stored);
        assert_int_equal(inside->nout, stored->nout);
        assert_same_outputs(inside, stored, 1e-6, row[i].student);
        bench_drop(inside);
        bench_drop(stored);
        world_drop(&w);
    }
}

/* A drawn pair (i, j) decides which teachers and members the perturbation follows. */
static void drawn_pair(void **state) {
    (void)state;
    world w = world_make("batch-ensemble:3", "mlp:9", "mlp:6", 3, false);
    w.c.objective = &PAIRED;
    w.c.perturb = &PAIR;
    w.c.perturb_size = 0.3;
    float loss[3];
    for (int k = 0; k < 3; k++) {
        w.i = k;
        w.j = (k + 1) % 3;
        bench *b = bench_make(&w);
        bench_interp(b);
        loss[k] = *bench_get(b, "loss");
        bench_drop(b);
    }
    assert_true(fabsf(loss[0] - loss[1]) > 1e-5f && fabsf(loss[1] - loss[2]) > 1e-5f);
    world_drop(&w);
}

/* Inside and outside rows go through the student together: its BN has one set of statistics over both. */
static void outside_inputs(void **state) {
    (void)state;
    world w = world_make("dirichlet", "wrn:10,1", "mlp:6", 1, false);
    w.c.objective = &OUTSIDE;
    w.c.ood = true;
    bench *b = bench_make(&w);
    assert_int_equal(b->p.in_ood, 2);
    int updates = 0, states = 0;
    for (int i = 0; i < b->nout; i++)
        updates += rt_graph_get_output(b->p.g, i)->update_slot >= 0;
    for (int i = 0; i < rt_params_count(w.student.params); i++)
        states += rt_params_get(w.student.params, i)->role == RT_ROLE_STATE;
    assert_int_equal(updates, states);
    /* With the halves exchanged the statistics are the same, and the outputs shown are those of the outside
     * rows. */
    bench_interp(b);
    const double loss = (double)*bench_get(b, "loss");
    float z[BATCH * K];
    memcpy(z, bench_get(b, "logits"), sizeof z);
    b->input[b->p.in_x] = w.ood;
    b->input[b->p.in_ood] = w.x;
    bench_interp(b);
    const float *far = bench_get(b, "logits");
    double want = 0; /* by hand, with the student's offset of 0.5 */
    for (int n = 0; n < BATCH; n++) {
        double sum = 0;
        for (int k = 0; k < K; k++) {
            sum += exp((double)z[n * K + k]);
            want += pow(log(exp((double)far[n * K + k]) + 0.5), 2) / BATCH;
        }
        want += (log(sum) - (double)z[n * K + w.label[n]]) / BATCH;
    }
    assert_true(fabs(loss - want) < 1e-5 * fabs(want));
    bench_drop(b);
    w.c.objective = rt_objective_find("labels"); /* does not read them: no input, no second forward */
    assert_refused(rt_distill_check(&w.c), "Dirichlet");
    world_drop(&w);
    w = world_make("single", "mlp:5", "mlp:6", 1, false);
    w.c.objective = rt_objective_find("labels");
    w.c.ood = true;
    b = bench_make(&w);
    assert_int_equal(b->p.in_ood, -1);
    bench_drop(b);
    world_drop(&w);
}

/* ---- probe ---- */

static void probe_gives_logits_of_all(void **state) {
    (void)state;
    world w = world_make("batch-ensemble:3", "wrn:10,1", "mlp:6", 3, false);
    w.c.objective = &PAIRED;
    w.c.perturb = &DARKER;
    bench b = {0};
    OK(rt_probe_build(&b.p, &w.c, w.student.params, BATCH));
    bench_bind(&b, &w);
    bench_outputs(&b);
    assert_int_equal(b.nout, 4);
    bench_interp(&b);
    float *dark = NULL;
    OK(rt_alloc(&dark, BATCH * 192 * sizeof *dark));
    for (int i = 0; i < BATCH * 192; i++)
        dark[i] = 0.75f * w.x[i] + 0.1f;
    float *x[2] = {w.x, dark};
    static const char *const name[2][2] = {{"student_diversity", "teacher_diversity"},
                                           {"student_diversity_perturbed", "teacher_diversity_perturbed"}};
    for (int k = 0; k < 2; k++) {
        float *zs = student_eval(&w.student, x[k], BATCH, -1), zt[3 * BATCH * K];
        for (int m = 0; m < 3; m++) {
            float *z = student_eval(&w.teacher[m], x[k], BATCH, -1);
            memcpy(zt + m * BATCH * K, z, BATCH * K * sizeof *z);
            rt_free(z);
        }
        assert_near(bench_get(&b, name[k][0]), zs, 3 * BATCH * K, 1e-5, name[k][0]);
        assert_near(bench_get(&b, name[k][1]), zt, 3 * BATCH * K, 1e-5, name[k][1]);
        rt_free(zs);
    }
    plan_as_interpreter(&b, "probe");
    rt_free(dark);
    for (int i = 0; i < b.nout; i++)
        rt_free(b.out[i]);
    rt_step_graph_deinit(&b.p);
    world_drop(&w);
}

/* Only what is defined: pairs of members, classes, and a perturbation that changes something. */
static void probe_outputs(void **state) {
    (void)state;
    static const struct {
        const char *student;
        const rt_objective *objective;
        const rt_perturb *perturb;
        bool stored, regression;
        const char *names;
    } row[] = {
        {"single", &MEAN, NULL, true, false, ""},
        {"single", &MEAN, NULL, false, false, "teacher_diversity "},
        {"batch-ensemble:3", &PAIRED, NULL, true, false, "student_diversity "},
        {"batch-ensemble:3", &PAIRED, &DARKER, true, false, "student_diversity student_diversity_perturbed "},
        {"batch-ensemble:3", &NUMBERS, &DARKER, false, true, ""},
    };
    for (int64_t i = 0; i < RT_COUNT(row); i++) {
        world w = world_make(row[i].student, "mlp:5", "mlp:6", 3, row[i].regression);
        w.c.objective = row[i].objective;
        w.c.perturb = row[i].perturb;
        if (row[i].stored)
            w.c.teacher_net = NULL;
        rt_step_graph p;
        OK(rt_probe_build(&p, &w.c, w.student.params, BATCH));
        char names[256] = "";
        for (int k = 0; k < rt_graph_outputs(p.g); k++) {
            strcat(names, rt_graph_get_output(p.g, k)->name);
            strcat(names, " ");
        }
        assert_string_equal(names, row[i].names);
        rt_step_graph_deinit(&p);
        world_drop(&w);
    }
}

/* ---- pull to teacher weights ---- */

typedef struct pulls {
    double loss, *grad; /* grad: like the student's block */
} pulls;

/* (1 / (M N)) sum (W0 s r - W)^2 and its derivatives, by loops. */
static pulls pull_by_hand(const world *w, int members) {
    pulls out = {0};
    OK(rt_calloc(&out.grad, (size_t)rt_params_floats(w->student.params), sizeof *out.grad));
    double n = 0;
    for (int slot = 0; slot < rt_params_count(w->student.params); slot++)
        n += rt_params_get(w->student.params, slot)->role == RT_ROLE_WEIGHT
                 ? (double)rt_params_get(w->student.params, slot)->count
                 : 0;
    for (int slot = 0; slot < rt_params_count(w->student.params); slot++) {
        const rt_param *p = rt_params_get(w->student.params, slot);
        if (p->role != RT_ROLE_WEIGHT)
            continue;
        char name[160];
        const int len = (int)(strrchr(p->name, '.') - p->name);
        const int64_t out_n = p->shape.d[0], in = p->shape.d[1], window = p->count / (out_n * in);
        snprintf(name, sizeof name, "%.*s.r", len, p->name);
        const int64_t r0 = learner_at(&w->student, name) - w->student.block;
        snprintf(name, sizeof name, "%.*s.s", len, p->name);
        const int64_t s0 = learner_at(&w->student, name) - w->student.block;
        for (int m = 0; m < members; m++)
            for (int64_t i = 0; i < p->count; i++) {
                const int64_t ri = r0 + m * in + i / window % in, si = s0 + m * out_n + i / window / in;
                const double w0 = (double)w->student.block[p->offset + i], r = (double)w->student.block[ri],
                             s = (double)w->student.block[si];
                const double d = w0 * r * s - (double)learner_at(&w->teacher[m], p->name)[i],
                             c = 1 / (members * n);
                out.loss += c * d * d;
                out.grad[p->offset + i] += 2 * c * d * r * s;
                out.grad[ri] += 2 * c * d * w0 * s;
                out.grad[si] += 2 * c * d * w0 * r;
            }
    }
    return out;
}

static void pull_is_its_formula(void **state) {
    (void)state;
    static const char *const arch[] = {"mlp:9,8", "wrn:10,1"};
    static const double strength = 300; /* so that the difference of two losses has digits */
    for (int64_t a = 0; a < RT_COUNT(arch); a++) {
        world w = world_make("batch-ensemble:3", arch[a], arch[a], 3, false);
        w.c.objective = &PAIRED;
        bench *plain = bench_make(&w);
        w.c.teacher_pull = strength;
        bench *pulled = bench_make(&w);
        check_leaves(pulled, &w);
        bench_interp(plain);
        bench_interp(pulled);
        pulls want = pull_by_hand(&w, 3);
        const double got =
            ((double)*bench_get(pulled, "loss") - (double)*bench_get(plain, "loss")) / strength;
        if (fabs(got - want.loss) > 1e-5 * want.loss)
            fail_msg("%s: pull %.9g, wanted %.9g", arch[a], got, want.loss);
        for (int slot = 0; slot < rt_params_count(w.student.params); slot++) {
            const rt_param *p = rt_params_get(w.student.params, slot);
            char name[160];
            snprintf(name, sizeof name, "grad:%s", p->name);
            if (p->role == RT_ROLE_STATE)
                continue;
            const float *g1 = bench_get(pulled, name), *g0 = bench_get(plain, name);
            double top = 1e-6;
            for (int64_t i = 0; i < p->count; i++)
                top = fmax(top, fmax(strength * fabs(want.grad[p->offset + i]), fabs((double)g0[i])));
            for (int64_t i = 0; i < p->count; i++)
                if (fabs((double)g1[i] - (double)g0[i] - strength * want.grad[p->offset + i]) > 1e-5 * top)
                    fail_msg("%s %lld: %g, wanted %g", name, (long long)i, (double)g1[i] - (double)g0[i],
                             strength * want.grad[p->offset + i]);
        }
        rt_free(want.grad);
        bench_drop(plain);
        bench_drop(pulled);
        world_drop(&w);
    }
}

static void pull_refusals(void **state) {
    (void)state;
    static const struct {
        const char *student, *arch, *teacher;
        double strength;
        bool stored;
        const char *words;
    } row[] = {
        {"batch-ensemble:3", "mlp:9", "mlp:6", 1, false, "layers.0.weight|9x192|6x192"},
        {"batch-ensemble:3", "mlp:9,8", "mlp:9", 1, false, "layers.1.weight|8x9|4x9"},
        {"batch-ensemble:3", "mlp:9", "wrn:10,1", 1, false, "layers.0.weight|same"},
        {"hydra:3", "mlp:9", "mlp:9", 1, false, "heads.0.layers.1.weight|same"},
        {"batch-ensemble:2", "mlp:9", "mlp:9", 1, false, "batch-ensemble:2 has 2, the teacher 3"},
        {"batch-ensemble:3", "mlp:9", "mlp:9", 1, true, "not stored logits"},
        {"batch-ensemble:3", "mlp:9", "mlp:9", -1, false, "strength -1"},
        {"batch-ensemble:3", "mlp:9", "mlp:9", NAN, false, "positive"},
    };
    for (int64_t i = 0; i < RT_COUNT(row); i++) {
        world w = world_make(row[i].student, row[i].arch, row[i].teacher, 3, false);
        w.c.objective = &MEAN;
        w.c.teacher_pull = row[i].strength;
        if (row[i].stored)
            w.c.teacher_net = NULL;
        rt_step_graph p;
        assert_refused(rt_step_graph_build(&p, &w.c, w.student.params, BATCH), row[i].words);
        assert_null(p.g);
        world_drop(&w);
    }
}

/* ---- refusals ---- */

static void refusals(void **state) {
    (void)state;
    static const struct {
        const char *student;
        const rt_objective *objective; /* NULL: labels */
        const rt_perturb *perturb;
        int teachers;
        bool stored, regression;
        const char *words;
    } row[] = {
        {"single", &MEAN, NULL, 0, false, false, "mean needs a teacher"},
        {"single", &MEAN, NULL, 2, false, true, "mean is for classification|regression"},
        {"single", &NUMBERS, NULL, 2, false, false, "numbers is for regression|classification"},
        {"batch-ensemble:2", &PAIRED, NULL, 3, false, false, "batch-ensemble:2 has 2, the teacher 3"},
        {"batch-ensemble:2", &LONE, NULL, 3, false, false, "lone is for one network|2 members"},
        {"single", &OUTSIDE, NULL, 3, false, false, "Dirichlet|single|use student dirichlet"},
        {"dirichlet", &MEAN, NULL, 3, false, false, "student dirichlet|not mean"},
        {"dirichlet", NULL, NULL, 3, false, false, "student dirichlet|not labels"},
        {"dirichlet", &OUTSIDE, NULL, 3, false, false, "out-of-distribution|--aux"},
        {"single", &MEAN, &ONE, 3, true, false, "one|teacher run, not stored logits"},
        {"single", NULL, &ONE, 0, false, false, "teacher run"},
        {"single", &MEAN, &TEACHERS, 1, false, false, "compares two teachers, the teacher has 1"},
        {"single", &MEAN, &PAIR, 2, false, false, "two student members|single has one"},
        {"batch-ensemble:2", &MEAN, &PAIR, 3, false, false, "teacher has 3 members|batch-ensemble:2 2"},
        {"hydra:2", &NUMBERS, &TEACHERS, 2, false, true, "teachers is for classification"},
    };
    for (int64_t i = 0; i < RT_COUNT(row); i++) {
        world w = world_make(row[i].student, "mlp:5", "mlp:6", RT_MAX(row[i].teachers, 1), row[i].regression);
        w.c.objective = row[i].objective != NULL ? row[i].objective : rt_objective_find("labels");
        w.c.perturb = row[i].perturb;
        w.c.teachers = row[i].teachers;
        if (row[i].stored)
            w.c.teacher_net = NULL;
        assert_refused(rt_distill_check(&w.c), row[i].words);
        rt_step_graph p;
        assert_refused(rt_step_graph_build(&p, &w.c, w.student.params, BATCH), row[i].words);
        assert_null(p.g);
        assert_refused(rt_probe_build(&p, &w.c, w.student.params, BATCH), row[i].words);
        assert_null(p.g);
        world_drop(&w);
    }
}

static void teachers_of_another_kind(void **state) {
    (void)state;
    world w = world_make("single", "mlp:5", "mlp:6", 2, false);
    learner flat = learner_make(
        (rt_student_config){.spec = "single", .arch = {.spec = "mlp:5", .input = {1, {7}}, .outputs = K}});
    learner wide = learner_make(
        (rt_student_config){.spec = "single", .arch = {.spec = "mlp:5", .input = IMAGE, .outputs = K + 1}});
    w.c.objective = &MEAN;
    w.c.teacher_net = rt_student_net(flat.student);
    w.c.teacher_params = flat.params;
    assert_refused(rt_distill_check(&w.c), "inputs of 7|3x8x8");
    w.c.teacher_net = rt_student_net(wide.student);
    w.c.teacher_params = wide.params;
    assert_refused(rt_distill_check(&w.c), "5 outputs|student 4");
    w.c.teacher_net = rt_student_net(w.teacher[0].student);
    w.c.teacher_params = w.teacher[0].params;
    w.c.regression = true;
    assert_refused(rt_distill_check(&w.c), "made for classification|a regression");
    w.c.regression = false;
    w.c.teachers = RT_STEP_TEACHERS_MAX + 1;
    rt_step_graph p;
    assert_refused(rt_step_graph_build(&p, &w.c, w.student.params, BATCH), "more than 126 teachers|logits");
    learner_drop(&flat);
    learner_drop(&wide);
    world_drop(&w);
}

static rt_status build_both(void *user) {
    world *w = user;
    rt_step_graph p = {0};
    rt_status st = rt_step_graph_build(&p, &w->c, w->student.params, BATCH);
    rt_step_graph_deinit(&p);
    if (st == RT_OK) {
        st = rt_probe_build(&p, &w->c, w->student.params, BATCH);
        rt_step_graph_deinit(&p);
    }
    return st;
}

static void allocation_failures(void **state) {
    (void)state;
    world w = world_make("batch-ensemble:2", "mlp:5", "mlp:5", 2, false);
    w.c.objective = &PAIRED;
    w.c.perturb = &PAIR;
    w.c.teacher_pull = 1;
    each_allocation_fails(build_both, &w, 10);
    world_drop(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbering),
        cmocka_unit_test(stored_is_teachers_inside),
        cmocka_unit_test(drawn_pair),
        cmocka_unit_test(outside_inputs),
        cmocka_unit_test(probe_gives_logits_of_all),
        cmocka_unit_test(probe_outputs),
        cmocka_unit_test(pull_is_its_formula),
        cmocka_unit_test(pull_refusals),
        cmocka_unit_test(refusals),
        cmocka_unit_test(teachers_of_another_kind),
        cmocka_unit_test(allocation_failures),
        cmocka_unit_test(combinations),
        cmocka_unit_test(perturbations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
