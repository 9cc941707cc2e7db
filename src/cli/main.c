/*
 * main.c - the program: finds the verb, reads its arguments, runs it, and turns a status into a message and
 * an exit code.
 *
 * Exit codes are part of the interface: 0 ok, 1 failed, 2 usage, 3 bad input data, 4 interrupted (train,
 * distill and recipe have saved their state, others left nothing behind), 5 a required metric was not met.
 */
#include "base/alloc.h"
#include "base/timer.h"
#include "cli/cli.h"
#include "dist/dist.h"
#include "kern/kern.h"
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const cli_verb verbs[] = {
#define RT_CLI_VERB(name, bit, args, fewest, most, stops, ranks, summary, example, about, examples)          \
    {#name, bit, args, fewest, most, stops, ranks, cli_cmd_##name, summary, example, about, examples},
#include "cli/verbs.def"
#undef RT_CLI_VERB
};

int cli_verb_list(const cli_verb **out) {
    *out = verbs;
    return (int)RT_COUNT(verbs);
}

const cli_verb *cli_verb_find(const char *name) {
    for (int64_t i = 0; i < RT_COUNT(verbs); i++)
        if (strcmp(verbs[i].name, name) == 0)
            return &verbs[i];
    return NULL;
}

/* A file opened while descriptor 1 or 2 is closed would take its number and receive our messages: fill the
 * gaps with something that refuses to be used. */
static void keep_descriptors(void) {
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0)
            (void)!open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY);
}

static rt_status fail_verb(const char *word) {
    const char *names[RT_COUNT(verbs) + 1];
    int64_t n = 0;
    for (; n < RT_COUNT(verbs); n++)
        names[n] = verbs[n].name;
    names[n++] = "help";
    RT_FAIL_IF(*word == '-', RT_E_USAGE, "'%s' comes before the command; flags follow it: retort COMMAND %s",
               word, word);
    RT_FAIL_UNKNOWN(RT_E_USAGE, word, names, n, "unknown command");
}

static rt_status find_verb(const cli_verb **out, const char *word) {
    *out = cli_verb_find(word);
    return *out ? RT_OK : fail_verb(word);
}

/* retort help [VERB] [--man | --markdown | --ops]: the last three write the manual pages, docs/params.md
 * and docs/ops.md. */
static rt_status run_help(rt_cli *c, int argc, char **argv) {
    bool man = false, markdown = false, ops = false;
    const cli_verb *v = NULL;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--man") == 0)
            man = true;
        else if (strcmp(argv[i], "--markdown") == 0)
            markdown = true;
        else if (strcmp(argv[i], "--ops") == 0)
            ops = true;
        else
            RT_TRY(find_verb(&v, argv[i]));
    }
    if (markdown)
        cli_markdown(&c->out);
    else if (ops)
        cli_markdown_ops(&c->out);
    else if (man && v)
        cli_man_verb(v, &c->out);
    else if (man)
        cli_man_program(&c->out);
    else if (v)
        cli_help_verb(v, &c->out, c->term.colour_out);
    else
        cli_help_program(&c->out, c->term.colour_out);
    return cli_print(&c->out);
}

static rt_status run_version(rt_cli *c) {
    cli_help_version(&c->out);
    return cli_print(&c->out);
}

static bool is_one_of(const char *word, const char *a, const char *b, const char *c) {
    return strcmp(word, a) == 0 || strcmp(word, b) == 0 || strcmp(word, c) == 0;
}

/* A file from a stranger may ask for anything: it must not take the machine down. */
static void limit_memory(const rt_config *c) {
    rt_alloc_set_limit(c->max_memory > 0 ? (uint64_t)(c->max_memory * 0x1p30) : rt_memory_total() / 10 * 9);
}

static void say_alarm(const char *line) {
    (void)!write(STDERR_FILENO, line, strlen(line));
}

/* One of several that a launcher started: all of one version, on processors that compute alike. */
static rt_status join_ranks(rt_cli *c) {
    RT_TRY(rt_dist_start(c->config.rank_timeout, say_alarm, cli_signals_stop));
    if (rt_dist_size() < 2)
        return RT_OK;
    RT_TRY(rt_dist_same(RT_VERSION, RT_E_USAGE, "retort", "all ranks must run the same version"));
    RT_TRY(rt_dist_same(rt_isa_name(rt_cpu_isa()), RT_E_USAGE, "the instruction set",
                        "ranks of different processors round differently; lower the others with RETORT_ISA"));
    RT_FAIL_IF(!c->verb->ranks, RT_E_USAGE, "retort %s works on one rank; a launcher started %d",
               c->verb->name, rt_dist_size());
    return RT_OK;
}

static rt_status run(rt_cli *c, int argc, char **argv) {
    if (is_one_of(argv[0], "help", "--help", "-h"))
        return run_help(c, argc, argv);
    if (is_one_of(argv[0], "version", "--version", "-V"))
        return run_version(c);
    RT_TRY(find_verb(&c->verb, argv[0]));
    RT_TRY(rt_cpu_check());
    bool help;
    rt_status st = cli_parse(c, argc, argv, &help);
    cli_term_init(&c->term, &c->config);
    RT_TRY(st);
    if (help) {
        char *words[] = {"help", argv[0]};
        return run_help(c, 2, words);
    }
    limit_memory(&c->config);
    RT_TRY(join_ranks(c));
    if (c->verb->stops)
        cli_signals_catch();
    return c->verb->run(c);
}

static void report(void *cli, rt_status st) {
    rt_cli *c = cli;
    if (st == RT_OK)
        return;
    cli_error(&c->term, rt_error_text());
    if (st != RT_E_USAGE || c->term.quiet)
        return;
    if (c->verb)
        cli_say(&c->term, "See 'retort %s --help'.", c->verb->name);
    else
        cli_say(&c->term, "See 'retort --help'.");
}

/* Without a command: what there is. */
static rt_status show_usage(rt_cli *c) {
    cli_help_program(&c->out, c->term.colour_err);
    (void)!write(STDERR_FILENO, rt_str_text(&c->out), c->out.len);
    return rt_str_status(&c->out);
}

int main(int argc, char **argv) {
    rt_cli c = {.started = rt_time_now()};
    keep_descriptors();
    cli_signals_init();
    rt_status st = rt_config_init(&c.config);
    if (st == RT_OK) {
        cli_term_init(&c.term, &c.config);
        st = argc < 2 ? show_usage(&c) : run(&c, argc - 1, argv + 1);
        cli_term_close(&c.term);
    }
    st = rt_dist_end(st, report, &c);
    rt_free(c.args);
    rt_str_deinit(&c.out);
    rt_config_deinit(&c.config);
    return st == RT_OK && argc < 2 ? rt_status_exit_code(RT_E_USAGE) : rt_status_exit_code(st);
}
