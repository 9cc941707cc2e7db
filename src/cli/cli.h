/*
 * cli.h - what the files of the program share.
 *
 * One call of the program is one rt_cli: the verb, its configuration, the words that are not flags, and the
 * terminal. Results (tables, CSV, JSON) go to standard output through cli_write, which notices full disks and
 * closed pipes; everything said to a person goes to standard error through the terminal.
 */
#ifndef RT_CLI_CLI_H
#define RT_CLI_CLI_H

#include "base/json.h"
#include "config/config.h"
#include "data/data.h"
#include "step/step.h"
#include "train/train.h"

/* ---- the terminal (term.c) ---- */
typedef enum cli_progress_mode { CLI_PROGRESS_NONE, CLI_PROGRESS_PLAIN, CLI_PROGRESS_BAR } cli_progress_mode;
typedef struct cli_term {
    bool quiet;
    bool colour_out, colour_err; /* standard output, standard error */
    bool utf8;
    cli_progress_mode progress;
    bool open;    /* an unfinished line is on the screen */
    double drawn; /* when it was drawn */
} cli_term;
typedef enum cli_style { CLI_PLAIN, CLI_BOLD, CLI_DIM, CLI_RED, CLI_GREEN, CLI_YELLOW, CLI_CYAN } cli_style;

void cli_term_init(cli_term *t, const rt_config *c);
int cli_term_width(void);
const char *cli_style_on(bool colour, cli_style s); /* escape sequence, or "" without colour */
const char *cli_style_off(bool colour);
void cli_say(cli_term *t, const char *fmt, ...) RT_PRINTF(2, 3); /* a line for a person, unless --quiet */
void cli_warn(cli_term *t, const char *text);
void cli_error(cli_term *t, const char *text);
void cli_term_draw(cli_term *t, const char *line); /* replaces the unfinished line; cut to the width */
void cli_term_close(cli_term *t);                  /* wipes it */

/* ---- one call ---- */
typedef struct cli_verb cli_verb;
typedef struct rt_cli {
    const cli_verb *verb;
    rt_config config;
    const char **args; /* words that are not flags */
    int nargs;
    int argc; /* as they were given, from the verb on */
    char **argv;
    cli_term term;
    rt_str out; /* what the command prints; cli_print empties it */
    double started;
} rt_cli;
struct cli_verb {
    const char *name;
    unsigned bit;
    const char *args; /* "RUN..." */
    int min_args, max_args;
    bool stops; /* looks at the stop flag: signals end it in good order */
    bool ranks; /* several can share its work */
    rt_status (*run)(rt_cli *c);
    const char *summary, *example; /* one line each */
    const char *about;             /* paragraphs */
    const char *examples;          /* "comment\tcommand\n" lines */
};
int cli_verb_list(const cli_verb **out);
const cli_verb *cli_verb_find(const char *name); /* NULL if unknown */

#define RT_CLI_VERB(name, ...) rt_status cli_cmd_##name(rt_cli *c) RT_MUST_CHECK;
#include "cli/verbs.def"
#undef RT_CLI_VERB

/* ---- arguments (args.c) ---- */
rt_status cli_parse(rt_cli *c, int argc, char **argv, bool *help) RT_MUST_CHECK; /* argv[0] is the verb */
rt_status cli_require(const rt_cli *c, const char *key, const char *value) RT_MUST_CHECK;
rt_status cli_parse_shape(rt_shape *out, const char *text,
                          const char *origin) RT_MUST_CHECK; /* "3x32x32", "20" */
void cli_append_quoted(rt_str *out, const char *word);       /* for a shell */

/* ---- help (help.c, manual.c) ---- */
void cli_help_program(rt_str *out, bool colour);
void cli_help_verb(const cli_verb *v, rt_str *out, bool colour);
void cli_help_version(rt_str *out);
void cli_man_program(rt_str *out);
void cli_man_verb(const cli_verb *v, rt_str *out);
void cli_markdown(rt_str *out);
void cli_markdown_ops(rt_str *out);
/* Parameters of a verb in groups: calls back for every group heading (info NULL) and every parameter. */
typedef void (*cli_param_fn)(void *user, const char *group, const rt_param_info *info);
void cli_params_each(unsigned verb, cli_param_fn fn, void *user);
void cli_param_range(const rt_param_info *p, rt_str *out); /* "1 to 10000", "sgd|adam", "" */
/* Does its help name other defaults for some cases? */
bool cli_param_has_exceptions(const rt_param_info *p);
/* Forms of values that deserve a list: architectures, data sets. */
typedef void (*cli_form_fn)(void *user, const char *group, const char *form, const char *meaning);
void cli_verb_forms(const cli_verb *v, cli_form_fn fn, void *user);
void cli_examples_each(const cli_verb *v, void (*fn)(void *user, const char *what, const char *command),
                       void *user);

/* ---- signals (signals.c) ---- */
void cli_signals_init(void);  /* SIGPIPE and SIGXFSZ become errors of write */
void cli_signals_catch(void); /* SIGINT, SIGTERM, SIGHUP set the stop flag once; the second one kills */
const volatile sig_atomic_t *cli_stop(void);
void cli_signals_stop(void); /* as if there had been a signal */

/* ---- results (output.c) ---- */
rt_status cli_write(const char *text, size_t n) RT_MUST_CHECK; /* standard output */
void cli_mute(bool on);                          /* results of commands inside a recipe are held back */
rt_status cli_print(rt_str *text) RT_MUST_CHECK; /* writes and empties it */
void cli_json_begin(rt_cli *c, rt_json *j);      /* an object with "retort", in c->out */
rt_status cli_json_end(rt_cli *c, rt_json *j) RT_MUST_CHECK; /* adds "seconds", ends and prints it */
void cli_json_shape(rt_json *j, const char *key, const rt_shape *s);
void cli_json_cpu(rt_json *j); /* "cpu": beside figures of speed */

enum { CLI_TABLE_COLUMNS = 16 };
typedef struct cli_table {
    int columns, at;
    char align[CLI_TABLE_COLUMNS + 1]; /* 'l' or 'r' */
    int width[CLI_TABLE_COLUMNS];
    rt_str cells; /* NUL-ended texts, row by row; the first row is the heading */
} cli_table;
void cli_table_init(cli_table *t, const char *align, const char *headings); /* "run|members|accuracy" */
void cli_table_deinit(cli_table *t);
void cli_table_cell(cli_table *t, const char *fmt, ...) RT_PRINTF(2, 3);
void cli_table_rule(cli_table *t); /* a line across */
void cli_table_print(const cli_table *t, rt_str *out, bool colour);

/* Numbers for people; buf >= 32 bytes, returned. */
const char *cli_count(char *buf, int64_t n);         /* 1,234,567 */
const char *cli_si(char *buf, double v);             /* 1.23M */
const char *cli_bytes(char *buf, double bytes);      /* 12.3 MiB */
const char *cli_duration(char *buf, double sec);     /* 1:02:03, 0:42 */
const char *cli_shape(char *buf, const rt_shape *s); /* 3x32x32 */
int cli_columns(const char *text);                   /* characters of UTF-8 text */
void cli_clean(char *text); /* control characters become '?': names in files must not steer the terminal */

/* ---- shared by verbs (common.c) ---- */
int cli_threads(const rt_cli *c);
rt_status cli_pool_create(const rt_cli *c, rt_pool **out) RT_MUST_CHECK;

/* ---- the rows that predict reads, and their names (predict_input.c) ---- */
typedef struct cli_input {
    rt_dataset *data;
    const rt_part *part;
    rt_subset train, valid; /* of --part valid */
    rt_part copy;           /* the rows of valid */
} cli_input;
rt_status cli_input_open(cli_input *in, rt_cli *c, const rt_model *m) RT_MUST_CHECK;
void cli_input_close(cli_input *in);
/* Training rows stand for test rows that are not there: with a warning, or not at all where --part test asks. */
rt_status cli_no_test_rows(rt_cli *c, const rt_dataset *d) RT_MUST_CHECK;
int64_t cli_input_row(const cli_input *in, int64_t i); /* its number in the data */
bool cli_input_named(const cli_input *in);
const char *cli_input_name(const cli_input *in, int64_t i); /* the file it was read from */
bool cli_input_labelled(const cli_input *in);

/* ---- describing things (describe.c) ---- */
/* The columns of a table and what they become; moments of the features. */
void cli_columns_print(const rt_dataset *d, const double *mean, const double *std, rt_str *out, bool colour);
void cli_columns_json(const rt_dataset *d, rt_json *j);
rt_status cli_describe_data(rt_cli *c, const char *spec) RT_MUST_CHECK;
rt_status cli_describe_safetensors(rt_cli *c, const char *path) RT_MUST_CHECK;
rt_status cli_describe_npy(rt_cli *c, const char *path) RT_MUST_CHECK;
rt_status cli_describe_run(rt_cli *c, const char *path) RT_MUST_CHECK;
rt_status cli_compare_runs(rt_cli *c) RT_MUST_CHECK; /* its two words (compare.c) */

/* ---- progress of training (progress.c) ---- */
typedef struct cli_progress {
    cli_term *term;
    double shown;                      /* when a line was last shown */
    double valid_loss, valid_accuracy; /* of the last epoch that had them */
    bool have_valid;
    bool apart; /* the loss is of another kind than that of validation */
} cli_progress;
void cli_show_progress(void *cli_progress, const rt_progress *p); /* an rt_train_hooks.progress */
/* Other work: one line, with what is being done, its share and the time left. */
void cli_show_work(cli_progress *p, const char *what, double done, double seconds_left);

/* ---- what train and distill share (cmd_train.c) ---- */
typedef rt_status (*cli_train_run)(const rt_config *c, const rt_train_hooks *hooks, rt_train_result *out);
rt_status cli_load_saved(rt_cli *c) RT_MUST_CHECK; /* with --resume: the parameters of the run */
rt_status cli_train(rt_cli *c, cli_train_run run) RT_MUST_CHECK;

/* Most multiplications and additions per second that the workers of a pool can do together, measured
 * (peak.c). */
double cli_peak_flops(rt_pool *pool, double seconds);
/* Most bytes per second they read and write together, from and to memory. */
rt_status cli_peak_bandwidth(double *out, rt_pool *pool, double seconds) RT_MUST_CHECK;

/* ---- bench --layers (bench_layers.c) ---- */
typedef struct cli_bench_step {
    rt_step *step;
    rt_step_io io;
    const rt_params *params;
    int members;
} cli_bench_step;
/* Of a pool of one worker; peak as of cli_peak_flops. */
rt_status cli_bench_layers(rt_cli *c, const cli_bench_step *what, rt_pool *pool, double peak) RT_MUST_CHECK;

#endif
