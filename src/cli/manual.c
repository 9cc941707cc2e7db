/*
 * manual.c - the same facts as help.c, as manual pages (docs/man) and as Markdown (docs/params.md). Both are
 * written by tools/docs and kept in the repository; a test compares them with what the program would write
 * now.
 */
#include "cli/cli.h"
#include <ctype.h>
#include <string.h>

/* ---- roff ---- */

/* Backslashes and dashes need care anywhere, dots and quotes at the beginning of a line. */
static void roff(rt_str *out, const char *text) {
    bool start = out->len == 0 || out->p[out->len - 1] == '\n';
    for (; *text; text++) {
        if (start && (*text == '.' || *text == '\''))
            rt_str_append(out, "\\&");
        start = *text == '\n';
        if (*text == '-')
            rt_str_append(out, "\\-");
        else if (*text == '\\')
            rt_str_append(out, "\\e");
        else
            rt_str_append_char(out, *text);
    }
}

static void roff_line(rt_str *out, const char *macro, const char *text) {
    rt_str_append(out, macro);
    roff(out, text);
    rt_str_append_char(out, '\n');
}

static void upper(rt_str *out, const char *text) {
    for (; *text; text++)
        rt_str_append_char(out, (char)toupper((unsigned char)*text));
}

static void title(rt_str *out, const char *verb, const char *summary) {
    rt_str_append(out, ".\\\" Written by 'retort help --man'; do not edit.\n.TH RETORT");
    if (verb) {
        rt_str_append(out, "\\-");
        upper(out, verb);
    }
    rt_str_append(out, " 1 \"\" \"retort " RT_VERSION "\" \"User Commands\"\n.ad l\n.SH NAME\nretort");
    if (verb)
        rt_str_appendf(out, "\\-%s", verb);
    rt_str_append(out, " \\- ");
    roff(out, summary);
    rt_str_append(out, "\n.SH SYNOPSIS\n");
}

static void man_flag(void *user, const char *group, const rt_param_info *p) {
    rt_str *out = user;
    if (!p) {
        roff_line(out, ".SS ", group);
        return;
    }
    bool no = p->kind == RT_KIND_BOOL && strcmp(p->def, "true") == 0;
    rt_str_append(out, ".TP\n");
    if (p->alias)
        rt_str_appendf(out, "\\fB%s%s\\fR, ", strlen(p->alias) == 1 ? "\\-" : "\\-\\-", p->alias);
    rt_str_append(out, "\\fB\\-\\-");
    rt_str_append(out, no ? "[no\\-]" : "");
    roff(out, p->key);
    rt_str_append(out, "\\fR");
    if (p->meta || p->choices) {
        rt_str_append(out, " \\fI");
        roff(out, p->meta ? p->meta : p->choices);
        rt_str_append(out, "\\fR");
    }
    rt_str_append_char(out, '\n');
    roff(out, p->help);
    rt_str range;
    rt_str_init(&range);
    cli_param_range(p, &range);
    rt_str_append(out, ".");
    if (range.len && (p->meta || !p->choices)) {
        rt_str_append(out, p->kind == RT_KIND_ENUM ? " One of " : " Range: ");
        roff(out, range.p);
        rt_str_append(out, ".");
    }
    if (p->kind == RT_KIND_BOOL)
        rt_str_append(out, no ? " Default: on." : "");
    else if (p->def) {
        rt_str_append(out, cli_param_has_exceptions(p) ? " Otherwise: " : " Default: ");
        roff(out, p->def);
        rt_str_append(out, ".");
    }
    rt_str_append_char(out, '\n');
    rt_str_fail(out, range.st);
    rt_str_deinit(&range);
}

typedef struct form_state {
    rt_str *out;
    const char *told;
} form_state;

static void man_form(void *user, const char *group, const char *form, const char *meaning) {
    form_state *f = user;
    if (group != f->told) {
        rt_str_append(f->out, ".SH ");
        upper(f->out, group);
        rt_str_append_char(f->out, '\n');
    }
    f->told = group;
    rt_str_append(f->out, ".TP\n\\fB");
    roff(f->out, form);
    rt_str_append(f->out, "\\fR\n");
    roff(f->out, meaning);
    rt_str_append_char(f->out, '\n');
}

static void man_example(void *user, const char *what, const char *command) {
    rt_str *out = user;
    rt_str_append(out, ".PP\n");
    roff(out, what);
    rt_str_append(out, ":\n.PP\n.nf\n.RS\n");
    roff(out, command);
    rt_str_append(out, "\n.RE\n.fi\n");
}

static void paragraphs(rt_str *out, const char *text) {
    while (*text) {
        size_t n = strcspn(text, "\n");
        char part[1024];
        size_t take = RT_MIN(n, sizeof part - 1);
        memcpy(part, text, take);
        part[take] = 0;
        rt_str_append(out, ".PP\n");
        roff(out, part);
        rt_str_append_char(out, '\n');
        text += n;
        text += strspn(text, "\n");
    }
}

static const char EXIT_STATUS[] =
    ".SH EXIT STATUS\n.TP\n0\nsuccess\n.TP\n1\nfailure while running\n.TP\n2\nwrong usage\n.TP\n3\n"
    "bad, missing or mismatching input data\n.TP\n4\ninterrupted; train, distill and recipe "
    "continue where they were, other commands start anew\n.TP\n5\na metric did not meet what "
    "\\fB\\-\\-require\\fR asks\n";

void cli_man_verb(const cli_verb *v, rt_str *out) {
    title(out, v->name, v->summary);
    rt_str_appendf(out, ".B retort %s\n", v->name);
    if (*v->args)
        roff_line(out, ".I ", v->args);
    rt_str_append(out, "[\\fIflags\\fR]\n.SH DESCRIPTION\n");
    paragraphs(out, v->about);
    rt_str_append(out, ".SH FLAGS\n");
    cli_params_each(v->bit, man_flag, out);
    form_state forms = {.out = out};
    cli_verb_forms(v, man_form, &forms);
    rt_str_append(out, ".SH EXAMPLES\n");
    cli_examples_each(v, man_example, out);
    rt_str_append(out, EXIT_STATUS);
    rt_str_append(out, ".SH SEE ALSO\n\\fBretort\\fR(1)\n");
}

void cli_man_program(rt_str *out) {
    const cli_verb *list;
    int n = cli_verb_list(&list);
    title(out, NULL, "train ensembles, distil them into one network, measure what it does not know");
    rt_str_append(out, ".B retort\n.I COMMAND\n[\\fIarguments\\fR] [\\fIflags\\fR]\n.SH DESCRIPTION\nTrains "
                       "ensembles of neural networks, distils or averages them into one, measures accuracy, "
                       "calibration and uncertainty, and predicts. Results go to standard output, "
                       "everything else to standard error.\n.SH COMMANDS\n");
    for (int i = 0; i < n; i++) {
        rt_str_appendf(out, ".TP\n\\fBretort\\-%s\\fR(1)\n", list[i].name);
        roff(out, list[i].summary);
        rt_str_append_char(out, '\n');
    }
    rt_str_append(
        out,
        ".SH CONFIGURATION\nEvery flag is also a key of a YAML file given by "
        "\\fB\\-\\-config\\fR; flags win. Unknown "
        "flags and keys are errors.\n.SH ENVIRONMENT\n.TP\n\\fBNO_COLOR\\fR\nno colours when "
        "set\n.TP\n\\fBRETORT_ISA\\fR\n"
        "plain, avx2 or avx512: no better instruction set than this is used, by oneDNN neither; none: no "
        "vector kernels but oneDNN's. "
        "For tests: results of two instruction sets differ by rounding\n"
        ".TP\n\\fBHOME\\fR\nwhat ~/ at the beginning of a path stands for\n"
        ".TP\n\\fBTERM\\fR, \\fBCOLUMNS\\fR, \\fBLC_ALL\\fR, \\fBLC_CTYPE\\fR, \\fBLANG\\fR\n"
        "colours and a progress bar unless TERM is dumb; width; UTF\\-8 in the bar\n");
    rt_str_append(out, EXIT_STATUS);
    rt_str_append(out, ".SH EXAMPLES\n");
    for (int i = 0; i < n; i++)
        man_example(out, list[i].summary, list[i].example);
}

/* ---- Markdown ---- */

/* Text of a table cell: bars would end it. */
static void cell(rt_str *out, const char *text) {
    for (; text && *text; text++)
        rt_str_appendf(out, *text == '|' ? "\\%c" : "%c", *text);
}

static void code_cell(rt_str *out, const char *text) {
    rt_str_append(out, "`");
    cell(out, text);
    rt_str_append(out, "`");
}

static void markdown_param(void *user, const char *group, const rt_param_info *p) {
    rt_str *out = user;
    if (!p) {
        rt_str_appendf(
            out,
            "\n## %s\n\n| flag and key | default | values | commands | meaning |\n|---|---|---|---|---|\n",
            group);
        return;
    }
    const cli_verb *list;
    int n = cli_verb_list(&list), told = 0;
    rt_str_append(out, "| ");
    code_cell(out, p->key);
    if (p->alias) {
        rt_str_append(out, ", ");
        code_cell(out, p->alias);
    }
    rt_str_append(out, " | ");
    if (p->def)
        code_cell(out, p->def);
    rt_str_append(out, " | ");
    rt_str range;
    rt_str_init(&range);
    cli_param_range(p, &range);
    cell(out, p->kind == RT_KIND_BOOL ? "true, false" : range.len ? range.p : p->meta);
    rt_str_fail(out, range.st);
    rt_str_deinit(&range);
    rt_str_append(out, " | ");
    for (int i = 0; i < n; i++)
        if (p->verbs & list[i].bit)
            rt_str_appendf(out, "%s%s", told++ ? ", " : "", list[i].name);
    rt_str_append(out, " | ");
    cell(out, p->help);
    rt_str_append(out, " |\n");
}

static void markdown_form(void *user, const char *group, const char *form, const char *meaning) {
    form_state *f = user;
    if (group != f->told)
        rt_str_appendf(f->out, "\n## %s\n\n| form | meaning |\n|---|---|\n", group);
    f->told = group;
    rt_str_append(f->out, "| ");
    code_cell(f->out, form);
    rt_str_append(f->out, " | ");
    cell(f->out, meaning);
    rt_str_append(f->out, " |\n");
}

void cli_markdown(rt_str *out) {
    const cli_verb *list;
    int n = cli_verb_list(&list);
    unsigned all = 0;
    for (int i = 0; i < n; i++)
        all |= list[i].bit;
    rt_str_append(out, "<!-- Written by 'retort help --markdown'; do not edit. -->\n# Parameters\n\n"
                       "Every parameter is a flag (`--key value`, switches `--key` and `--no-key`) and a key "
                       "of the YAML file that\n"
                       "`--config` reads; flags win. Second names are flags, too: `-d` of one letter, else "
                       "`--wd`. A default is for all\n"
                       "cases but those that the meaning names.\n");
    cli_params_each(all, markdown_param, out);
    form_state forms = {.out = out};
    cli_verb_forms(&(cli_verb){.bit = all}, markdown_form, &forms);
}

/* The table of operations, from op.def. */
void cli_markdown_ops(rt_str *out) {
    rt_str_append(
        out,
        "<!-- Written by 'retort help --ops'; do not edit. -->\n# Operations\n\n\"Rows\" are axis 0 of a "
        "batched value: groups x batch of them, member-major. \"Channel\" is axis 1.\n\n"
        "| operation | inputs | element-wise | meaning |\n|---|---|---|---|\n");
    for (int op = RT_OP_NONE + 1; op < RT_OP_COUNT; op++) {
        const rt_op_info *info = rt_op_get((rt_op)op);
        rt_str_append(out, "| ");
        code_cell(out, info->name);
        if (info->arity == RT_VARIADIC)
            rt_str_append(out, " | any | ");
        else
            rt_str_appendf(out, " | %d | ", info->arity);
        rt_str_append(out, (info->flags & RT_OP_ELTWISE) != 0 ? "yes | " : " | ");
        cell(out, info->meaning);
        rt_str_append(out, " |\n");
    }
}
