/*
 * help.c - what the program says about itself on a terminal. Nothing is written twice: verbs come from
 * verbs.def, flags with defaults and ranges from params.def; architectures, methods, data sets and whatever
 * else has names from their own lists.
 */
#include "average/average.h"
#include "cli/cli.h"
#include "distill/distill.h"
#include "distort/distort.h"
#include "export/export.h"
#include "kern/kern.h"
#include "perturb/perturb.h"
#include <stdio.h>
#include <string.h>

enum { HELP_WIDTH = 100, FLAG_COLUMN = 30 };

/* ---- parameters in groups ---- */

/* A group begins at the parameter named and goes on to the next of these, in the order of params.def. */
static const struct {
    const char *first, *title;
} groups[] = {
    {"data", "Data"},           {"arch", "Network"},  {"method", "Method"},  {"members", "Ensemble"},
    {"epochs", "Optimisation"}, {"seed", "This run"}, {"ood", "Evaluation"}, {"config", "Everywhere"},
};

void cli_params_each(unsigned verb, cli_param_fn fn, void *user) {
    const rt_param_info *list;
    int n = rt_config_list(&list);
    const char *group = "Flags", *told = NULL;
    for (int i = 0; i < n; i++) {
        for (int64_t g = 0; g < RT_COUNT(groups); g++)
            if (strcmp(groups[g].first, list[i].key) == 0)
                group = groups[g].title;
        if (!(list[i].verbs & verb))
            continue;
        if (group != told)
            fn(user, group, NULL);
        told = group;
        fn(user, group, &list[i]);
    }
}

void cli_param_range(const rt_param_info *p, rt_str *out) {
    char lo[40], hi[40];
    rt_format_f64(lo, p->lo);
    rt_format_f64(hi, p->hi);
    if (p->kind == RT_KIND_ENUM)
        rt_str_append(out, p->choices);
    else if ((p->kind == RT_KIND_I64 || p->kind == RT_KIND_F64) && p->hi >= 1e9)
        rt_str_appendf(out, "at least %s", lo);
    else if (p->kind == RT_KIND_I64 || p->kind == RT_KIND_F64)
        rt_str_appendf(out, "%s to %s", lo, hi);
}

/* Help that names a default itself says where it differs from the one in the table. */
bool cli_param_has_exceptions(const rt_param_info *p) {
    return strstr(p->help, "default: ") != NULL;
}

/* ---- text ---- */

/* Appends words, breaking lines at the width; the cursor is at column `at`, later lines begin at `indent`. */
static void wrap(rt_str *out, const char *text, int at, int indent) {
    bool first = true;
    while (*text) {
        size_t n = strcspn(text, " \n");
        if (!first && at + 1 + (int)n > HELP_WIDTH) {
            rt_str_appendf(out, "\n%*s", indent, "");
            at = indent;
        } else if (!first) {
            rt_str_append_char(out, ' ');
            at++;
        }
        rt_str_append_n(out, text, n);
        at += (int)n;
        first = false;
        text += n;
        if (text[0] == '\n' && text[1] != 0) {
            rt_str_appendf(out, "\n\n%*s", indent, "");
            at = indent;
            first = true;
        }
        text += strspn(text, " \n");
    }
    rt_str_append_char(out, '\n');
}

static void heading(rt_str *out, const char *text, bool colour) {
    rt_str_appendf(out, "\n%s%s%s\n", cli_style_on(colour, CLI_BOLD), text, cli_style_off(colour));
}

typedef struct writer {
    rt_str *out;
    bool colour;
} writer;

static void flag_help(rt_str *text, const rt_param_info *p) {
    rt_str range;
    rt_str_init(&range);
    cli_param_range(p, &range);
    rt_str_append(text, p->help);
    const char *otherwise = cli_param_has_exceptions(p) ? "else " : "";
    bool numeric = p->kind == RT_KIND_I64 || p->kind == RT_KIND_F64;
    const bool listed = p->kind == RT_KIND_ENUM && p->meta; /* else choices stand beside the flag */
    for (const char *s = listed ? p->choices : ""; *s;) {
        size_t n = strcspn(s, "|");
        rt_str_appendf(text, "%s%.*s", s == p->choices ? ": " : " | ", (int)n, s);
        s += n + (s[n] == '|');
    }
    if (p->kind == RT_KIND_BOOL)
        rt_str_append(text, strcmp(p->def, "true") == 0 ? " [on]" : "");
    else if (p->def && numeric)
        rt_str_appendf(text, " [%s%s; %s]", otherwise, p->def, rt_str_text(&range));
    else if (p->def)
        rt_str_appendf(text, " [%s%s]", otherwise, p->def);
    if (p->kind == RT_KIND_LIST)
        rt_str_append(text, "; may be repeated");
    rt_str_fail(text, range.st);
    rt_str_deinit(&range);
}

static void print_flag(void *user, const char *group, const rt_param_info *p) {
    writer *w = user;
    if (!p) {
        heading(w->out, group, w->colour);
        return;
    }
    char flag[160], letter[8] = "    ";
    if (p->alias && strlen(p->alias) == 1)
        snprintf(letter, sizeof letter, "-%s, ", p->alias);
    bool no = p->kind == RT_KIND_BOOL && strcmp(p->def, "true") == 0;
    const char *meta = p->meta ? p->meta : p->choices;
    int n = snprintf(flag, sizeof flag, "  %s--%s%s%s%s", letter, no ? "[no-]" : "", p->key, meta ? " " : "",
                     meta ? meta : "");
    rt_str_appendf(w->out, "%s%s%s", cli_style_on(w->colour, CLI_CYAN), flag, cli_style_off(w->colour));
    if (n + 2 > FLAG_COLUMN)
        rt_str_appendf(w->out, "\n%*s", FLAG_COLUMN, "");
    else
        rt_str_appendf(w->out, "%*s", FLAG_COLUMN - n, "");
    rt_str text;
    rt_str_init(&text);
    flag_help(&text, p);
    wrap(w->out, rt_str_text(&text), FLAG_COLUMN, FLAG_COLUMN);
    rt_str_fail(w->out, text.st);
    rt_str_deinit(&text);
}

static void print_form(rt_str *out, const char *form, const char *meaning) {
    int n = (int)strlen(form) + 2;
    rt_str_appendf(out, "  %s", form);
    if (n + 2 > FLAG_COLUMN)
        rt_str_appendf(out, "\n%*s", FLAG_COLUMN, "");
    else
        rt_str_appendf(out, "%*s", FLAG_COLUMN - n, "");
    wrap(out, meaning, FLAG_COLUMN, FLAG_COLUMN);
}

static bool knows(const cli_verb *v, const char *key) {
    const rt_param_info *list;
    int n = rt_config_list(&list);
    for (int i = 0; i < n; i++)
        if (strcmp(list[i].key, key) == 0)
            return (list[i].verbs & v->bit) != 0;
    return false;
}

/* What distillations are made of. */
static void distill_forms(const cli_verb *v, cli_form_fn fn, void *user) {
    if (v->bit & RT_VERB_DISTILL) {
        char text[160];
        for (int i = 0; i < rt_method_count(); i++) {
            const rt_method *m = rt_method_get(i);
            const bool paper = strcmp(m->paper, "-") != 0;
            snprintf(text, sizeof text, "%s%s%s%s", m->meaning, paper ? " (" : "", paper ? m->paper : "",
                     paper ? ")" : "");
            fn(user, "Methods of distill", m->name, text);
        }
    }
    if (knows(v, "student"))
        for (int i = 0; i < rt_student_count(); i++)
            fn(user, "Students", rt_student_get(i).form, rt_student_get(i).meaning);
    if (knows(v, "objective")) {
        const rt_objective *const *list;
        int n = rt_objective_list(&list);
        for (int i = 0; i < n; i++)
            fn(user, "Objectives", list[i]->name, list[i]->meaning);
    }
    if (knows(v, "perturb")) {
        const rt_perturb *const *list;
        int n = rt_perturb_list(&list);
        for (int i = 0; i < n; i++)
            fn(user, "Perturbations", list[i]->name, list[i]->meaning);
    }
}

void cli_verb_forms(const cli_verb *v, cli_form_fn fn, void *user) {
    distill_forms(v, fn, user);
    if (v->bit & RT_VERB_AVERAGE) {
        const rt_average_method *list;
        int n = rt_average_method_list(&list);
        for (int i = 0; i < n; i++)
            fn(user, "Methods of average", list[i].name, list[i].meaning);
    }
    if (v->bit & RT_VERB_EXPORT) {
        const rt_export_format *list;
        int n = rt_export_list(&list);
        for (int i = 0; i < n; i++)
            fn(user, "Formats of export", list[i].name, list[i].meaning);
    }
    if (knows(v, "arch")) {
        const rt_arch_info *archs;
        int n = rt_arch_list(&archs);
        for (int i = 0; i < n; i++)
            fn(user, "Architectures", archs[i].form, archs[i].meaning);
    }
    if (knows(v, "data") || (v->bit & RT_VERB_DATA)) {
        const rt_source_info *sources;
        int n = rt_source_list(&sources);
        for (int i = 0; i < n; i++)
            fn(user, "Data sets", sources[i].form, sources[i].meaning);
    }
    if (knows(v, "corrupt"))
        for (int64_t i = 0; i < rt_corruption_count(); i++)
            fn(user, "Corruptions", rt_corruption_get(i)->name, rt_corruption_get(i)->meaning);
    if (knows(v, "shift"))
        for (int64_t i = 0; i < rt_shift_count(); i++)
            fn(user, "Shifts", rt_shift_get(i)->name, rt_shift_get(i)->meaning);
}

typedef struct form_writer {
    writer w;
    const char *told;
} form_writer;

static void on_form(void *user, const char *group, const char *form, const char *meaning) {
    form_writer *f = user;
    if (group != f->told)
        heading(f->w.out, group, f->w.colour);
    f->told = group;
    print_form(f->w.out, form, meaning);
}

void cli_examples_each(const cli_verb *v, void (*fn)(void *user, const char *what, const char *command),
                       void *user) {
    char what[160], command[320];
    for (const char *s = v->examples; *s;) {
        size_t a = strcspn(s, "\t"), b = strcspn(s, "\n");
        snprintf(what, sizeof what, "%.*s", (int)a, s);
        snprintf(command, sizeof command, "%.*s", (int)(b - a - 1), s + a + 1);
        fn(user, what, command);
        s += b + 1;
    }
}

static void print_example(void *user, const char *what, const char *command) {
    writer *w = user;
    rt_str_appendf(w->out, "  %s# %s%s\n  %s\n", cli_style_on(w->colour, CLI_DIM), what,
                   cli_style_off(w->colour), command);
}

void cli_help_verb(const cli_verb *v, rt_str *out, bool colour) {
    writer w = {out, colour};
    rt_str_appendf(out, "retort %s - %s\n", v->name, v->summary);
    rt_str_appendf(out, "\n%susage:%s retort %s%s%s [flags]\n\n", cli_style_on(colour, CLI_BOLD),
                   cli_style_off(colour), v->name, *v->args ? " " : "", v->args);
    wrap(out, v->about, 0, 0);
    cli_params_each(v->bit, print_flag, &w);
    form_writer forms = {.w = w};
    cli_verb_forms(v, on_form, &forms);
    heading(out, "Examples", colour);
    cli_examples_each(v, print_example, &w);
}

void cli_help_program(rt_str *out, bool colour) {
    const cli_verb *list;
    int n = cli_verb_list(&list);
    rt_str_append(out, "retort " RT_VERSION
                       " - train ensembles, distil them into one network, measure what it does not know\n");
    rt_str_appendf(out, "\n%susage:%s retort COMMAND [arguments] [flags]\n", cli_style_on(colour, CLI_BOLD),
                   cli_style_off(colour));
    heading(out, "Commands", colour);
    for (int i = 0; i < n; i++)
        rt_str_appendf(out, "  %s%-11s%s%s\n             %s%s%s\n", cli_style_on(colour, CLI_CYAN),
                       list[i].name, cli_style_off(colour), list[i].summary, cli_style_on(colour, CLI_DIM),
                       list[i].example, cli_style_off(colour));
    rt_str_append(
        out, "\n'retort COMMAND --help' explains a command, 'retort --version' tells what is built in.\n"
             "Exit codes: 0 ok, 1 failed, 2 usage, 3 bad input data, 4 interrupted (train, distill and\n"
             "            recipe continue where they were, others start anew), 5 a metric did not meet\n"
             "            what --require asks.\n"
             "Environment: NO_COLOR (no colours), RETORT_ISA=none|plain|avx2|avx512 (no better instructions "
             "than these).\n");
}

void cli_help_version(rt_str *out) {
    static const char *const isa[] = {"none of the vector kernels", "plain C", "AVX2 + FMA", "AVX-512"};
    rt_str_append(out, "retort " RT_VERSION "\n");
    rt_str_appendf(out, "instruction set  %s\n", isa[rt_cpu_isa()]);
    rt_str_appendf(out, "kernels          reference, vector%s\n", RT_WITH_ONEDNN ? ", oneDNN" : "");
    rt_str_appendf(out, "processors       %d\n", rt_cpu_count());
}
