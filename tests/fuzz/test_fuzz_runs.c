/*
 * test_fuzz_runs.c - damaged configurations, recipes, models, checkpoints and run directories, and names and
 * requirements typed badly.
 */
#include "assess/assess.h"
#include "fuzz/containers.h"
#include "recipe/recipe.h"
#include "report/report.h"
#include "train/train_int.h"

/* ---- what users type ---- */

static void add_all(const char *const *texts, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        fuzz_add_text(texts[i], NULL);
}

static void arch_open(void) {
    static const char *const texts[] = {"mlp:200,200", "mlp:4", "wrn:10,1", "wrn:16,2", "resnet20", "vgg16"};
    add_all(texts, RT_COUNT(texts));
}

static rt_status arch_read(int seed, const uint8_t *data, size_t n) {
    (void)n;
    rt_net *net = NULL;
    rt_params *params = NULL;
    rt_layer_info *layers = NULL;
    int count = 0;
    const rt_arch_config a = {
        .spec = (const char *)data, .input = seed < 2 ? rt_shape1(7) : rt_shape3(3, 32, 32), .outputs = 3};
    rt_status st;
    RT_TRY_GOTO(rt_params_create(&params));
    RT_TRY_GOTO(rt_net_create(&net, &a, params, NULL));
    assert_true(rt_params_floats(params) > 0 && rt_net_stages(net) > 0);
    st = rt_net_layers(net, &layers, &count);
done:
    rt_free(layers);
    rt_net_destroy(&net);
    rt_params_destroy(&params);
    return st;
}

static void student_open(void) {
    static const char *const texts[] = {"single", "batch-ensemble:4", "latent-be:3", "hydra:8", "dirichlet"};
    add_all(texts, RT_COUNT(texts));
}

static rt_status student_read(int seed, const uint8_t *data, size_t n) {
    (void)seed;
    (void)n;
    rt_student *s = NULL;
    rt_params *params = NULL;
    rt_student_config c = {.spec = (const char *)data,
                           .arch = {.spec = "mlp:5,4", .input = rt_shape1(2), .outputs = 3}};
    rt_status st;
    RT_TRY_GOTO(rt_params_create(&params));
    RT_TRY_GOTO(rt_student_create(&s, &c, params));
    assert_true(rt_student_members(s) > 0);
done:
    rt_student_destroy(&s);
    rt_params_destroy(&params);
    return st;
}

static void schedule_open(void) {
    static const char *const texts[] = {"constant", "cosine", "step:3,6,9:0.2", "one-cycle:8", "waves:2.5"};
    add_all(texts, RT_COUNT(texts));
}

static rt_status schedule_read(int seed, const uint8_t *data, size_t n) {
    (void)n;
    rt_schedule s;
    RT_TRY(rt_schedule_parse(&s, (const char *)data, 0.1, seed < 3 ? 1 : 0,
                             10)); /* the others warm up themselves */
    for (int i = 0; i <= 20; i++) {
        const double lr = rt_schedule_lr(&s, i / 2.0);
        assert_true(lr >= 0 && lr <= 1e300);
    }
    return RT_OK;
}

/* ---- files of YAML ---- */

static rt_status write_mutant(const char *name, const uint8_t *data, size_t n) {
    scratch_write(&fuzz.dir, name, data, n);
    return RT_OK;
}

static void config_open(void) {
    rt_config c;
    rt_str text;
    rt_str_init(&text);
    assert_ok(rt_config_init(&c));
    assert_ok(rt_config_set(&c, RT_VERB_TRAIN, "data", "spiral:n=10", "test", false));
    assert_ok(rt_config_set(&c, RT_VERB_TRAIN, "arch", "mlp:3,4", "test", false));
    rt_config_write(&c, RT_VERB_TRAIN, &text);
    assert_ok(rt_str_status(&text));
    fuzz_add(text.p, text.len, "mutant.yaml");
    rt_str_deinit(&text);
    rt_config_deinit(&c);
    fuzz_add_text("# a run\n{epochs: 3, nesterov: no, lr: 0.5, label_smoothing: ~}\n", "mutant.yaml");
    fuzz_add_text(
        "---\ndata: 'csv:a \"b\".csv,target=y'\naugment: \"flip,crop:4\"\nseed: 9007199254740991\n...\n",
        "mutant.yaml");
}

static rt_status config_read(int seed, const uint8_t *data, size_t n) {
    (void)seed;
    rt_config c;
    rt_str text;
    char hash[65];
    rt_str_init(&text);
    RT_TRY(write_mutant("mutant.yaml", data, n));
    RT_TRY(rt_config_init(&c));
    rt_status st = rt_config_load(&c, RT_VERB_TRAIN, scratch_path(&fuzz.dir, "mutant.yaml"));
    if (st == RT_OK) { /* what was taken can be written, and is taken again */
        rt_config_hash(&c, RT_VERB_TRAIN, true, hash);
        rt_config_write(&c, RT_VERB_TRAIN, &text);
        rt_config_deinit(&c);
        RT_TRY(rt_config_init(&c));
        RT_TRY(write_mutant("again.yaml", (const uint8_t *)rt_str_text(&text), text.len));
        assert_ok(rt_config_load(&c, RT_VERB_TRAIN, scratch_path(&fuzz.dir, "again.yaml")));
        char again[65];
        rt_config_hash(&c, RT_VERB_TRAIN, true, again);
        assert_string_equal(hash, again);
    }
    rt_str_deinit(&text);
    rt_config_deinit(&c);
    return st;
}

static void recipe_open(void) {
    fuzz_add_file(RT_SOURCE_DIR "/tests/cli/recipe.yaml", "mutant");
    int n;
    const rt_embedded *list = rt_embedded_recipes(&n);
    for (int i = 0; i < n; i++)
        if (list[i].bytes < 12000 && fuzz.nseeds < 4)
            fuzz_add(list[i].data, list[i].bytes, "mutant");
}

static rt_status recipe_read(int seed, const uint8_t *data, size_t n) {
    (void)seed;
    rt_recipe *r = NULL;
    rt_str json, markdown;
    rt_status st;
    rt_str_init(&json);
    rt_str_init(&markdown);
    RT_TRY(write_mutant("mutant.yaml", data, n));
    char path[512];
    snprintf(path, sizeof path, "%s", scratch_path(&fuzz.dir, "mutant.yaml"));
    RT_TRY_GOTO(rt_recipe_open(&r, path, (rt_recipe_options){.out = fuzz.dir.dir}));
    rt_recipe_destroy(&r);
    RT_TRY_GOTO(rt_recipe_open(&r, path, (rt_recipe_options){.out = fuzz.dir.dir, .scale = "quick"}));
    for (int i = 0; i < rt_recipe_jobs(r); i++)
        for (int k = 0; k < rt_recipe_job_get(r, i)->argc; k++)
            assert_non_null(rt_recipe_job_get(r, i)->argv[k]);
    for (int i = 0; i < rt_recipe_scales(r); i++)
        assert_non_null(rt_recipe_scale_name(r, i));
    assert_non_null(rt_recipe_text(r, "title"));
    assert_non_null(rt_recipe_text(r, "scale.minutes"));
    st = rt_recipe_results(r, &json, &markdown);
done:
    rt_str_deinit(&json);
    rt_str_deinit(&markdown);
    rt_recipe_destroy(&r);
    return st;
}

/* ---- files with a SHA-256 of themselves ---- */

/* States the hash the mutant has, where a hash is stated, so that what stands behind it is looked at. */
static void restate_sha256(fuzz_bytes *b) {
    static const char key[] = "\"sha256\":\"";
    rt_safetensors *s = NULL;
    rt_st_tensor t[64];
    rt_st_meta meta[32];
    char hex[65];
    uint8_t *file = NULL, *at = memmem(b->p, b->n, key, sizeof key - 1);
    if (!at || (size_t)(b->p + b->n - at) < sizeof key - 1 + 64)
        return;
    assert_ok(rt_alloc(&file, b->n + 1));
    memcpy(file, b->p, b->n);
    if (rt_safetensors_decode_take(&s, file, b->n, "mutant") != RT_OK)
        return;
    const int64_t n = rt_safetensors_count(s), nmeta = rt_safetensors_meta_count(s);
    if (n <= RT_COUNT(t) && nmeta <= RT_COUNT(meta)) {
        for (int64_t i = 0; i < n; i++)
            t[i] = *rt_safetensors_get(s, i);
        for (int64_t i = 0; i < nmeta; i++)
            meta[i] = *rt_safetensors_meta_get(s, i);
        rt_tensors_digest(t, n, meta, nmeta, hex);
        memcpy(at + sizeof key - 1, hex, 64);
    }
    rt_safetensors_destroy(&s);
}

static void hashed_mutate(fuzz_bytes *b, int seed, const fuzz_bytes *other, fuzz_dice *d) {
    fuzz_mutate_safetensors(b, seed, other, d);
    if (!fuzz_chance(d, 4))
        restate_sha256(b);
}

/* ---- models ---- */

static void add_warped(const char *student, const char *arch, const char *data, const rt_target *target) {
    rt_dataset *d = NULL;
    rt_model *m = NULL;
    static const double mean[2] = {0.5, -1}, std[2] = {1, 2};
    const rt_provenance from = {.method = "train", .data_hash = "0", .config_hash = "1", .epochs = 2};
    assert_ok(rt_dataset_open(&d, data, (rt_data_options){.seed = 1}));
    const bool regression = rt_dataset_task(d) == RT_TASK_REGRESSION;
    rt_student_config c = {.spec = student,
                           .regression = regression,
                           .arch = {.spec = arch,
                                    .input = rt_dataset_row(d),
                                    .outputs = regression ? 2 : rt_dataset_classes(d),
                                    .norm = 2,
                                    .mean = mean,
                                    .std = std}};
    assert_ok(rt_model_create(&m, &c, d, target, 1));
    rt_params_init(rt_model_params(m), rt_model_weights(m, 0), 1);
    assert_ok(rt_model_save(m, 0, scratch_path(&fuzz.dir, "seed.safetensors"), &from));
    fuzz_add_file(scratch_path(&fuzz.dir, "seed.safetensors"), "mutant.safetensors");
    rt_model_destroy(&m);
    rt_dataset_destroy(&d);
}

static void add_model(const char *student, const char *arch, const char *data, double target_std) {
    add_warped(student, arch, data, &(rt_target){.std = target_std});
}

static void model_open(void) {
    char csv[600];
    scratch_text(&fuzz.dir, "t.csv", "a,b,y\n1,2,3\n4,5,6\n7,8,9\n");
    snprintf(csv, sizeof csv, "csv:%s", scratch_path(&fuzz.dir, "t.csv"));
    add_model("single", "mlp:4", "spiral:n=2", 1);
    add_model("batch-ensemble:2", "mlp:3,3", "spiral:n=2", 1);
    add_model("hydra:2", "mlp:3,3", "spiral:n=2", 1);
    add_model("single", "mlp:2", csv, 2);
    rt_target by = {.mean = 1, .std = 2};
    assert_ok(rt_warp_fit(&by.warp, RT_WARP_QUANTILE, (double[]){1, 2, 4, 8, 16}, 5));
    add_warped("single", "mlp:2", csv, &by);
}

static void use_model(const rt_model *m) {
    assert_true(rt_model_networks(m) > 0 && rt_model_members(m) > 0 && rt_model_outputs(m) > 0);
    assert_true(rt_net_flops(rt_model_net(m)) > 0);
    for (int64_t k = 0; rt_model_task(m) == RT_TASK_CLASSIFICATION && k < rt_model_outputs(m); k++)
        assert_non_null(rt_model_class_name(m, k));
    for (int i = 0; i < rt_model_networks(m); i++)
        assert_non_null(rt_model_block(m, i));
    const char *method = rt_model_meta(m, "method");
    assert_true(!method || strlen(method) < FUZZ_BYTES_MAX);
}

static rt_status model_read(int seed, const uint8_t *data, size_t n) {
    (void)seed;
    rt_model *m = NULL;
    RT_TRY(write_mutant("mutant.safetensors", data, n));
    RT_TRY(rt_model_load(&m, scratch_path(&fuzz.dir, "mutant.safetensors")));
    use_model(m);
    rt_model_destroy(&m);
    return RT_OK;
}

/* ---- checkpoints: read into a step that is there all the time ---- */

enum { MEMBERS = 2 };
static struct {
    rt_pool *pool;
    rt_params *params;
    rt_student *student;
    rt_distill_config what;
    rt_step *step;
    double numbers[6][MEMBERS];
    rt_progress_state at;
    rt_checkpoint c;
} run;

static void checkpoint_open(void) {
    const rt_arch_config a = {.spec = "mlp:3", .input = rt_shape1(2), .outputs = 3};
    const rt_step_options o = {
        .batch = 8, .members = MEMBERS, .optimiser = "sgd", .momentum = 0.9, .decay_rule = "all"};
    memset(&run, 0, sizeof run);
    assert_ok(rt_pool_create(&run.pool, 1));
    assert_ok(rt_params_create(&run.params));
    assert_ok(rt_student_create(&run.student, &(rt_student_config){.arch = a}, run.params));
    run.what = (rt_distill_config){
        .student = run.student, .objective = rt_objective_find("labels"), .options = {.alpha = 1}};
    assert_ok(rt_step_create(&run.step, &run.what, run.params, o, run.pool));
    run.at = (rt_progress_state){.epoch = 3,
                                 .index = 1,
                                 .step = 7,
                                 .log_position = 100,
                                 .seconds = 1.5,
                                 .loss_sum = run.numbers[0],
                                 .correct = run.numbers[1],
                                 .kept_loss = run.numbers[2],
                                 .kept_accuracy = run.numbers[3],
                                 .kept_epoch = run.numbers[4],
                                 .lowest = run.numbers[5]};
    run.c = (rt_checkpoint){.config_hash = "c0ffee",
                            .data_hash = "da7a",
                            .members = MEMBERS,
                            .floats = rt_params_floats(run.params),
                            .step = run.step,
                            .at = &run.at};
    assert_ok(rt_checkpoint_write(&run.c, scratch_path(&fuzz.dir, "seed")));
    fuzz_add_file(scratch_path(&fuzz.dir, "seed"), "mutant.safetensors");
    run.at.epoch = 0;
    assert_ok(rt_checkpoint_write(&run.c, scratch_path(&fuzz.dir, "seed")));
    fuzz_add_file(scratch_path(&fuzz.dir, "seed"), "mutant.safetensors");
}

static void checkpoint_close(void) {
    rt_step_destroy(&run.step);
    rt_student_destroy(&run.student);
    rt_params_destroy(&run.params);
    rt_pool_destroy(&run.pool);
}

static rt_status checkpoint_read(int seed, const uint8_t *data, size_t n) {
    (void)seed;
    int64_t epoch = -1;
    RT_TRY(write_mutant("mutant.safetensors", data, n));
    RT_TRY(rt_checkpoint_epoch(scratch_path(&fuzz.dir, "mutant.safetensors"), &epoch));
    RT_TRY(rt_checkpoint_read(&run.c, scratch_path(&fuzz.dir, "mutant.safetensors")));
    assert_int_equal(run.at.epoch, epoch);
    assert_true(run.at.epoch >= 0 && run.at.index >= 0 && run.at.step >= 0 && run.at.log_position >= 0);
    return RT_OK;
}

/* ---- run directories, trained and measured for this ---- */

static const char *const run_files[] = {"config.yaml", "metrics.json", "log.jsonl", "member-001.safetensors",
                                        "metrics.json"};

static void make_run(const char *dir) {
    static const char *const settings[][2] = {{"data", "spiral:n=20"}, {"arch", "mlp:4"}, {"epochs", "2"},
                                              {"members", "2"},        {"batch", "16"},   {"threads", "1"},
                                              {"valid", "10"}};
    rt_config c;
    rt_train_result r;
    rt_pool *pool = NULL;
    rt_assessment *a = NULL;
    assert_ok(rt_config_init(&c));
    assert_ok(rt_config_set(&c, RT_VERB_TRAIN, "out", dir, "test", false));
    for (int64_t i = 0; i < RT_COUNT(settings); i++)
        assert_ok(rt_config_set(&c, RT_VERB_TRAIN, settings[i][0], settings[i][1], "test", false));
    assert_ok(rt_train_run(&c, NULL, &r));
    rt_config_deinit(&c);
    assert_ok(rt_pool_create(&pool, 1));
    const rt_assess_options o = {
        .data = "spiral:n=10", .seed = 1, .ood = "ring=ring:n=10", .bootstrap = 5, .curves = true};
    assert_ok(rt_assess_run(&o, &dir, 1, pool, &a));
    assert_ok(rt_assessment_save(a));
    rt_assessment_destroy(&a);
    rt_pool_destroy(&pool);
}

static void run_open(void) {
    char name[64];
    make_run(scratch_path(&fuzz.dir, "run"));
    for (int64_t i = 0; i < RT_COUNT(run_files); i++) {
        snprintf(name, sizeof name, "run/%s", run_files[i]);
        fuzz_add_file(scratch_path(&fuzz.dir, name), "/run");
    }
}

static void run_mutate(fuzz_bytes *b, int seed, const fuzz_bytes *other, fuzz_dice *d) {
    if (seed == 3)
        hashed_mutate(b, seed, b, d);
    else
        fuzz_mutate(b, other, d, true);
}

static rt_status read_run(const char *dir) {
    rt_config c;
    rt_model *m = NULL;
    rt_assessment *a = NULL;
    rt_str page, failures;
    rt_report_result result = {.bytes = 0};
    rt_train_result r;
    rt_requirement need;
    int failed = 0;
    char config[512];
    rt_status st;
    rt_str_init(&page);
    rt_str_init(&failures);
    rt_str_init(&result.hint);
    RT_TRY(rt_config_init(&c));
    snprintf(config, sizeof config, "%s/config.yaml", dir);
    RT_TRY_GOTO(rt_config_load(&c, RT_VERB_TRAIN, config));
    RT_TRY_GOTO(rt_trainer_read_metrics(dir, &r));
    RT_TRY_GOTO(rt_model_load(&m, dir));
    use_model(m);
    RT_TRY_GOTO(rt_assessment_read(&a, dir));
    if (a) {
        const rt_table_options o = {.format = RT_TABLE_TEXT, .width = 80};
        RT_TRY_GOTO(rt_assess_tables(&a, 1, &o, &page));
        rt_str_clear(&page);
        RT_TRY_GOTO(rt_requirement_parse(&need, "nll<0.1"));
        st = rt_requirement_check(&need, a, &failures, &failed);
        if (st != RT_OK)
            RT_TRY_GOTO(rt_error_prefix(st, "%s", dir));
    }
    RT_TRY_GOTO(rt_report_render(&page, &result, &dir, 1, (rt_report_options){.title = NULL}));
done:
    rt_report_result_deinit(&result);
    rt_str_deinit(&page);
    rt_str_deinit(&failures);
    rt_assessment_destroy(&a);
    rt_model_destroy(&m);
    rt_config_deinit(&c);
    return st;
}

static rt_status run_read(int seed, const uint8_t *data, size_t n) {
    char name[64], dir[512];
    snprintf(name, sizeof name, "run/%s", run_files[seed]);
    RT_TRY(write_mutant(name, data, n));
    snprintf(dir, sizeof dir, "%s", scratch_path(&fuzz.dir, "run"));
    const rt_status st = read_run(dir);
    RT_TRY(write_mutant(name, fuzz.seeds[seed].p, fuzz.seeds[seed].n)); /* the next round is another file's */
    return st;
}

/* ---- metrics.json alone, and what is asked of it ---- */

static void metrics_open(void) {
    make_run(scratch_path(&fuzz.dir, "run"));
    fuzz_add_file(scratch_path(&fuzz.dir, "run/metrics.json"), "mutant");
    fuzz_add_text("{}", "mutant");
    fuzz_add_text("{\"evaluation\": {\"sets\": {\"ood:a\": {}}}}", "mutant");
    fuzz_add_text(
        "{\"evaluation\":{\"run\":\"r\",\"task\":\"classification\",\"members\":2,\"parameters\":9,\"sets\":"
        "{\"test\":{\"nll\":1,\"interval\":{\"nll\":[0,2]}},\"ood:a\":{\"rows\":3,\"auroc\":{\"entropy\":0.5}"
        "},"
        "\"shift:rotate\":{\"severity\":[0,15],\"accuracy\":[1,0.5],\"nll\":[1,null]},\"corrupt\":{\"types\":"
        "{\"fog\":{\"accuracy\":[1]}},\"nll_corrupted\":2},\"against\":{\"teacher\":\"t\",\"kl\":1}}}}",
        "mutant");
    fuzz_add_text("{\"a\": [1, {\"b\": \"}\"}], \"evaluation\": {}, \"c\": \"\\\"{\"}\n", "mutant");
}

static rt_status metrics_read(int seed, const uint8_t *data, size_t n) {
    (void)seed;
    rt_str once, twice;
    rt_assessment *a = NULL;
    rt_status st;
    rt_str_init(&once);
    rt_str_init(&twice);
    RT_TRY_GOTO(rt_metrics_merge((const char *)data, n, "mutant", "evaluation", "{\"new\": 1}", &once));
    /* what came out is JSON, and putting the same into it again changes nothing */
    assert_ok(rt_metrics_merge(once.p, once.len, "again", "evaluation", "{\"new\": 1}", &twice));
    assert_int_equal(once.len, twice.len);
    assert_memory_equal(once.p, twice.p, once.len);
    if (n > 0)
        RT_TRY_GOTO(rt_assessment_decode(&a, (const char *)data, n, "mutant"));
    for (int i = 0; a && i < 2; i++) {
        const rt_table_options o = {.format = i ? RT_TABLE_CSV : RT_TABLE_TEXT, .width = 80};
        rt_str_clear(&once);
        RT_TRY_GOTO(rt_assess_tables(&a, 1, &o, &once));
    }
done:
    rt_assessment_destroy(&a);
    rt_str_deinit(&once);
    rt_str_deinit(&twice);
    return st;
}

/* ---- outputs of teachers ---- */

static void teacher_open(void) {
    static const float z[12] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
    static const double wide[4] = {1, 2, 3, 4};
    const rt_shape three = rt_shape3(2, 2, 3), two = rt_shape2(2, 2);
    assert_ok(rt_npy_write(scratch_path(&fuzz.dir, "seed"), RT_DTYPE_F32, &three, z));
    fuzz_add_file(scratch_path(&fuzz.dir, "seed"), "mutant.npy");
    assert_ok(rt_npy_write(scratch_path(&fuzz.dir, "seed"), RT_DTYPE_F64, &two, wide));
    fuzz_add_file(scratch_path(&fuzz.dir, "seed"), "mutant.npy");
}

static rt_status teacher_read(int seed, const uint8_t *data, size_t n) {
    (void)seed;
    rt_teacher *t = NULL;
    char spec[600];
    RT_TRY(write_mutant("mutant.npy", data, n));
    snprintf(spec, sizeof spec, "logits:%s", scratch_path(&fuzz.dir, "mutant.npy"));
    RT_TRY(rt_teacher_open(&t, spec, false));
    assert_true(t->rows > 0 && t->members > 0 && t->outputs > 0);
    rt_teacher_destroy(&t);
    return RT_OK;
}

/* ---- requirements ---- */

static rt_assessment *measured;

static void require_open(void) {
    make_run(scratch_path(&fuzz.dir, "run"));
    assert_ok(rt_assessment_read(&measured, scratch_path(&fuzz.dir, "run")));
    assert_non_null(measured);
    static const char *const texts[] = {
        "ece<0.03",           "test.nll <= 1e3",      "ood:ring.auroc.entropy >= 0.1",
        "accuracy>0.25",      "nll_calibrated < 100", "parameters<1000000",
        "test.mean_entropy>0"};
    for (int64_t i = 0; i < RT_COUNT(texts); i++) {
        rt_requirement r;
        double v;
        const char *reason;
        assert_ok(rt_requirement_parse(&r, texts[i]));
        if (rt_assessment_value(measured, r.path, &v, &reason))
            fuzz_add_text(texts[i], "--require");
    }
    assert_true(fuzz.nseeds >= 4);
}

static void require_close(void) {
    rt_assessment_destroy(&measured);
}

static rt_status require_read(int seed, const uint8_t *data, size_t n) {
    (void)seed;
    (void)n;
    rt_requirement r;
    rt_str failures;
    int failed = 0;
    RT_TRY(rt_requirement_parse(&r, (const char *)data));
    rt_str_init(&failures);
    const rt_status st = rt_requirement_check(&r, measured, &failures, &failed);
    assert_true((failed > 0) == (failures.len > 0));
    rt_str_deinit(&failures);
    return st;
}

static const fuzz_family families[] = {
    {.name = "arch", .rounds = 250, .text = true, .user = true, .open = arch_open, .read = arch_read},
    {.name = "student",
     .rounds = 1500,
     .text = true,
     .user = true,
     .open = student_open,
     .read = student_read},
    {.name = "schedule", .rounds = 2000, .text = true, .open = schedule_open, .read = schedule_read},
    {.name = "config", .rounds = 500, .text = true, .open = config_open, .read = config_read},
    {.name = "recipe", .rounds = 200, .text = true, .mib = 64, .open = recipe_open, .read = recipe_read},
    {.name = "model", .rounds = 800, .open = model_open, .mutate = hashed_mutate, .read = model_read},
    {.name = "checkpoint",
     .rounds = 600,
     .open = checkpoint_open,
     .close = checkpoint_close,
     .mutate = hashed_mutate,
     .read = checkpoint_read},
    {.name = "run", .rounds = 120, .open = run_open, .mutate = run_mutate, .read = run_read},
    {.name = "metrics", .rounds = 1000, .text = true, .open = metrics_open, .read = metrics_read},
    {.name = "teacher", .rounds = 600, .open = teacher_open, .mutate = fuzz_mutate_npy, .read = teacher_read},
    {.name = "require",
     .rounds = 2000,
     .text = true,
     .open = require_open,
     .close = require_close,
     .read = require_read},
};

int main(void) {
    return fuzz_main(families, RT_COUNT(families), "fuzz_runs");
}
