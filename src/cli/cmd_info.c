/*
 * cmd_info.c - retort info: an architecture as a table of layers, its compiled training step and the memory
 * that takes, what a file holds, or what differs between two runs.
 */
#include "base/alloc.h"
#include "base/file.h"
#include "cli/cli.h"
#include <string.h>

typedef struct arch_report {
    rt_params *params;
    rt_net *net;
    rt_layer_info *layers;
    int nlayers;
    rt_pool *pool;
    rt_student *student; /* with --plan */
    rt_params *step_params;
    rt_step *step;
} arch_report;

static void json_arch(rt_cli *c, const arch_report *a, rt_json *j) {
    const rt_arch_config *config = rt_net_config(a->net);
    rt_json_str(j, "kind", "architecture");
    rt_json_str(j, "arch", c->config.arch);
    cli_json_shape(j, "input", &config->input);
    rt_json_i64(j, "outputs", config->outputs);
    rt_json_i64(j, "parameters", rt_params_trainable(a->params));
    rt_json_f64(j, "flops", rt_net_flops(a->net));
    rt_json_array_begin(j, "layers");
    for (int i = 0; i < a->nlayers; i++) {
        const rt_layer_info *l = &a->layers[i];
        rt_json_object_begin(j, NULL);
        rt_json_str(j, "name", l->name);
        rt_json_str(j, "kind", l->kind);
        cli_json_shape(j, "output", &l->out);
        rt_json_i64(j, "parameters", l->params);
        rt_json_f64(j, "flops", l->flops);
        rt_json_object_end(j);
    }
    rt_json_array_end(j);
    if (a->step) {
        rt_str plan;
        rt_str_init(&plan);
        rt_plan_print(rt_step_plan(a->step), &plan);
        rt_json_i64(j, "train_bytes", (int64_t)rt_step_bytes(a->step));
        rt_json_str(j, "plan", rt_str_text(&plan));
        rt_str_fail(j->out, plan.st);
        rt_str_deinit(&plan);
    }
}

static void text_plan(const rt_cli *c, const arch_report *a, rt_str *out) {
    char bytes[32];
    cli_table t;
    cli_table_init(&t, "ll", "pass|what it does");
    for (int i = 0; i < RT_PASS_COUNT; i++) {
        cli_table_cell(&t, "%s", rt_pass_name((rt_pass)i));
        cli_table_cell(&t, "%s", rt_pass_meaning((rt_pass)i));
    }
    rt_str_append_char(out, '\n');
    cli_table_print(&t, out, c->term.colour_out);
    cli_table_deinit(&t);
    rt_str_append_char(out, '\n');
    rt_plan_print(rt_step_plan(a->step), out);
    rt_str_appendf(out, "\ntraining %lld member%s at batch %lld with %d threads takes %s beside the data\n",
                   (long long)c->config.members, c->config.members == 1 ? "" : "s",
                   (long long)c->config.batch, rt_pool_workers(a->pool),
                   cli_bytes(bytes, (double)rt_step_bytes(a->step)));
}

static void text_arch(rt_cli *c, const arch_report *a, rt_str *out) {
    cli_table t;
    char number[32], flops[32], shape[32];
    cli_table_init(&t, "llrrr", "layer|kind|output|parameters|FLOP");
    for (int i = 0; i < a->nlayers; i++) {
        const rt_layer_info *l = &a->layers[i];
        cli_table_cell(&t, "%s", l->name);
        cli_table_cell(&t, "%s", l->kind);
        cli_table_cell(&t, "%s", cli_shape(shape, &l->out));
        cli_table_cell(&t, "%s", l->params ? cli_count(number, l->params) : "");
        cli_table_cell(&t, "%s", l->flops > 0 ? cli_si(flops, l->flops) : "");
    }
    cli_table_rule(&t);
    cli_table_cell(&t, "%d layers", a->nlayers);
    cli_table_cell(&t, "%s", "");
    cli_table_cell(&t, "%s", "");
    cli_table_cell(&t, "%s", cli_count(number, rt_params_trainable(a->params)));
    cli_table_cell(&t, "%s", cli_si(flops, rt_net_flops(a->net)));
    cli_table_print(&t, out, c->term.colour_out);
    cli_table_deinit(&t);
    rt_str_appendf(out,
                   "\nFLOP: multiplications and additions of one forward pass of one input, one each.\n");
}

static rt_status plan_step(arch_report *a, const rt_cli *c) {
    rt_step_options o = {.batch = c->config.batch,
                         .members = (int)c->config.members,
                         .optimiser = "sgd",
                         .momentum = 0.9,
                         .nesterov = true,
                         .decay_rule = "all",
                         .slice = c->config.slice};
    RT_TRY(cli_pool_create(c, &a->pool));
    rt_student_config config = {.spec = c->config.student, .arch = *rt_net_config(a->net)};
    RT_TRY(rt_params_create(&a->step_params));
    RT_TRY(rt_student_create(&a->student, &config, a->step_params));
    rt_distill_config what = {
        .student = a->student, .objective = rt_objective_plain(), .options = {.alpha = 1}};
    return rt_step_create(&a->step, &what, a->step_params, o, a->pool);
}

static rt_status arch_report_init(arch_report *a, const rt_cli *c) {
    rt_shape input;
    RT_TRY(cli_require(c, "input", c->config.input));
    RT_TRY(cli_parse_shape(&input, c->config.input, "--input"));
    RT_TRY(rt_params_create(&a->params));
    rt_arch_config config = {.spec = c->config.arch, .input = input, .outputs = c->config.classes};
    RT_TRY(rt_net_create(&a->net, &config, a->params, NULL));
    RT_TRY(rt_net_layers(a->net, &a->layers, &a->nlayers));
    return c->config.plan ? plan_step(a, c) : RT_OK;
}

static rt_status describe_arch(rt_cli *c) {
    arch_report a = {0};
    rt_json j;
    rt_status st;
    RT_TRY_GOTO(arch_report_init(&a, c));
    if (c->config.json) {
        cli_json_begin(c, &j);
        json_arch(c, &a, &j);
        st = cli_json_end(c, &j);
    } else {
        text_arch(c, &a, &c->out);
        if (a.step)
            text_plan(c, &a, &c->out);
        st = cli_print(&c->out);
    }
done:
    rt_step_destroy(&a.step);
    rt_student_destroy(&a.student);
    rt_params_destroy(&a.step_params);
    rt_pool_destroy(&a.pool);
    rt_free(a.layers);
    rt_net_destroy(&a.net);
    rt_params_destroy(&a.params);
    return st;
}

rt_status cli_cmd_info(rt_cli *c) {
    if (c->config.compare) {
        RT_FAIL_IF(c->nargs != 2 || c->config.arch, RT_E_USAGE, "info --compare needs two runs");
        return cli_compare_runs(c);
    }
    RT_FAIL_IF(c->nargs > 1, RT_E_USAGE,
               "info describes one thing at a time, or compares two runs with --compare");
    RT_FAIL_IF(c->config.arch && c->nargs, RT_E_USAGE, "info describes either --arch %s or '%s', not both",
               c->config.arch, c->args[0]);
    if (c->config.arch)
        return describe_arch(c);
    RT_FAIL_IF(!c->nargs, RT_E_USAGE,
               "info needs something to describe: --arch SPEC, or a run, a file or a data set");
    char *path;
    RT_TRY(rt_path_expand(&path, c->args[0]));
    rt_status st;
    if (rt_str_ends(path, ".safetensors"))
        st = cli_describe_safetensors(c, path);
    else if (rt_str_ends(path, ".npy"))
        st = cli_describe_npy(c, path);
    else if (rt_dir_exists(path))
        st = cli_describe_run(c, path);
    else
        st = cli_describe_data(c, c->args[0]);
    if (st == RT_E_USAGE && !strchr(path, ':')) /* a name, rather than a mistake in SPEC */
        st = rt_error_prefix(st, "%s is no run, model (.safetensors) or array (.npy)", path);
    rt_free(path);
    return st;
}
