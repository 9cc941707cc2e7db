/*
 * term.c - talking to a person: standard error, colours, and one line that is drawn again and again.
 *
 * Colours appear only on a terminal that is not "dumb", without NO_COLOR and with --color. The unfinished
 * line is erased before anything else is written, so messages never run into a progress bar. Each message is
 * one write: lines of several processes do not mix. Of several ranks only the first speaks.
 */
#include "base/log.h"
#include "base/timer.h"
#include "cli/cli.h"
#include "dist/dist.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static bool env_set(const char *name) {
    const char *v = getenv(name);
    return v && *v;
}

static bool capable(int fd) {
    const char *term = getenv("TERM");
    return isatty(fd) && term && *term && strcmp(term, "dumb") != 0;
}

static bool locale_is_utf8(void) {
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    for (int64_t i = 0; i < RT_COUNT(names); i++) {
        const char *v = getenv(names[i]);
        if (v && *v)
            return strstr(v, "UTF-8") || strstr(v, "utf8") || strstr(v, "UTF8") || strstr(v, "utf-8");
    }
    return false;
}

static void on_log(void *user, rt_log_level level, const char *text) {
    cli_term *t = user;
    if (level == RT_LOG_WARN)
        cli_warn(t, text);
    else if (level == RT_LOG_INFO)
        cli_say(t, "%s", text);
}

void cli_term_init(cli_term *t, const rt_config *c) {
    bool colour = c->color && !env_set("NO_COLOR");
    t->quiet = c->quiet;
    t->colour_out = colour && capable(STDOUT_FILENO);
    t->colour_err = colour && capable(STDERR_FILENO);
    t->utf8 = locale_is_utf8();
    if (c->quiet || strcmp(c->progress, "none") == 0)
        t->progress = CLI_PROGRESS_NONE;
    else if (strcmp(c->progress, "auto") == 0)
        t->progress = capable(STDERR_FILENO) ? CLI_PROGRESS_BAR : CLI_PROGRESS_PLAIN;
    else
        t->progress = strcmp(c->progress, "bar") == 0 ? CLI_PROGRESS_BAR : CLI_PROGRESS_PLAIN;
    rt_log_set(on_log, t);
}

int cli_term_width(void) {
    struct winsize size;
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        return size.ws_col;
    const char *columns = getenv("COLUMNS");
    int64_t n;
    if (columns && rt_parse_i64(columns, strlen(columns), &n) && n > 0 && n < 1000)
        return (int)n;
    return 80;
}

const char *cli_style_on(bool colour, cli_style s) {
    static const char *const codes[] = {"",         "\033[1m",  "\033[2m", "\033[31m",
                                        "\033[32m", "\033[33m", "\033[36m"};
    return colour ? codes[s] : "";
}

const char *cli_style_off(bool colour) {
    return colour ? "\033[0m" : "";
}

/* What is written at once. It lives on the stack: there may be no memory left, and that must be said, too. */
typedef struct piece {
    char text[4096];
    size_t n;
} piece;

/* What does not fit is cut; the last place is kept for the end of the line. */
static void add(piece *p, const char *text) {
    size_t n = RT_MIN(strlen(text), sizeof p->text - 1 - p->n);
    memcpy(p->text + p->n, text, n);
    p->n += n;
}

/* Nothing can be done when even standard error cannot be written. */
static void put(const piece *s) {
    const char *p = s->text;
    if (!rt_dist_speaks())
        return;
    for (size_t n = s->n; n > 0;) {
        ssize_t w = write(STDERR_FILENO, p, n);
        if (w < 0 && errno == EINTR)
            continue;
        if (w <= 0)
            return;
        p += w;
        n -= (size_t)w;
    }
}

static void wipe(cli_term *t, piece *p) {
    if (t->open)
        add(p, "\r\033[K");
    t->open = false;
}

static void message(cli_term *t, cli_style style, const char *label, const char *text) {
    piece p = {.n = 0};
    wipe(t, &p);
    add(&p, cli_style_on(t->colour_err, style));
    add(&p, label);
    add(&p, *label ? cli_style_off(t->colour_err) : "");
    char *shown = p.text + p.n;
    add(&p, text);
    p.text[p.n] = 0;
    cli_clean(shown);
    p.text[p.n++] = '\n';
    put(&p);
}

void cli_say(cli_term *t, const char *fmt, ...) {
    if (t->quiet)
        return;
    char text[2048];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    message(t, CLI_PLAIN, "", text);
}

void cli_warn(cli_term *t, const char *text) {
    if (!t->quiet)
        message(t, CLI_YELLOW, "retort: warning: ", text);
}

void cli_error(cli_term *t, const char *text) {
    message(t, CLI_RED, "retort: ", text);
}

void cli_term_draw(cli_term *t, const char *line) {
    piece p = {.n = 0};
    wipe(t, &p);
    add(&p, line);
    put(&p);
    t->open = true;
    t->drawn = rt_time_now();
}

void cli_term_close(cli_term *t) {
    piece p = {.n = 0};
    wipe(t, &p);
    put(&p);
}
