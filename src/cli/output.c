/*
 * output.c - results on standard output: text, JSON objects, tables, and numbers as people read them.
 *
 * Standard output is written with write(2) and every failure is one of the program: a result that was not
 * delivered (disk full, closed pipe) must not end with exit code 0.
 */
#include "base/timer.h"
#include "cli/cli.h"
#include "dist/dist.h"
#include "kern/kern.h"
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static bool muted;

void cli_mute(bool on) {
    muted = on;
}

static rt_status put_all(const char *text, size_t n) {
    while (n > 0) {
        ssize_t w = write(STDOUT_FILENO, text, n);
        if (w < 0 && errno == EINTR)
            continue;
        RT_FAIL_IF(w <= 0, RT_E_IO, "standard output: %s", w < 0 ? strerror(errno) : "cannot be written");
        text += w;
        n -= (size_t)w;
    }
    return RT_OK;
}

/* Length of what may go to a terminal as it is: a character that is no control character, or one of our own colours.
 * 0: it may not. */
static size_t harmless(const char *s, size_t n) {
    const unsigned char c = (unsigned char)*s;
    if (c == 0x1b && n > 2 && s[1] == '[') {
        size_t k = 2;
        while (k < n && ((s[k] >= '0' && s[k] <= '9') || s[k] == ';'))
            k++;
        return k < n && s[k] == 'm' ? k + 1 : 0;
    }
    if (c == 0xc2 && n > 1 && (unsigned char)s[1] < 0xa0)
        return 0; /* U+0080 to U+009F: control characters of eight bits */
    return c == '\n' || c == '\t' || (c >= 0x20 && c != 0x7f) ? 1 : 0;
}

/* Names in files must not steer the terminal; a file or a pipe gets every byte as it is. */
static rt_status put_on_terminal(const char *text, size_t n) {
    char line[4096];
    size_t len = 0;
    for (size_t i = 0; i < n;) {
        const size_t k = harmless(text + i, n - i);
        if (len + RT_MAX(k, (size_t)1) > sizeof line) {
            RT_TRY(put_all(line, len));
            len = 0;
        }
        if (k > sizeof line) { /* digits without end */
            i += k;
            continue;
        }
        if (k > 0)
            memcpy(line + len, text + i, k);
        else
            line[len] = '?';
        len += RT_MAX(k, (size_t)1);
        i += k > 0 ? k : (unsigned char)text[i] == 0xc2 ? 2 : 1;
    }
    return put_all(line, len);
}

rt_status cli_write(const char *text, size_t n) {
    if (muted || !rt_dist_speaks())
        return RT_OK;
    return isatty(STDOUT_FILENO) ? put_on_terminal(text, n) : put_all(text, n);
}

rt_status cli_print(rt_str *text) {
    RT_TRY(rt_str_status(text));
    rt_status st = cli_write(rt_str_text(text), text->len);
    rt_str_clear(text);
    return st;
}

/* ---- JSON ---- */

void cli_json_begin(rt_cli *c, rt_json *j) {
    rt_str_clear(&c->out);
    rt_json_init(j, &c->out, false);
    rt_json_object_begin(j, NULL);
    rt_json_str(j, "retort", RT_VERSION);
}

rt_status cli_json_end(rt_cli *c, rt_json *j) {
    rt_json_f64(j, "seconds", rt_time_now() - c->started);
    rt_json_object_end(j);
    rt_str_append_char(&c->out, '\n');
    return cli_print(&c->out);
}

void cli_json_cpu(rt_json *j) {
    char name[RT_CPU_NAME];
    rt_cpu_name(name, sizeof name);
    rt_json_str(j, "cpu", name);
}

void cli_json_shape(rt_json *j, const char *key, const rt_shape *s) {
    rt_json_i64s(j, key, s->d, s->rank);
}

/* ---- tables ---- */

void cli_clean(char *text) {
    rt_str_clean(text, "\n");
}

static const char RULE[] = "\001";

int cli_columns(const char *text) {
    return rt_str_columns(text);
}

static void add_cell(cli_table *t, const char *text, size_t n) {
    size_t at = t->cells.len;
    rt_str_append_n(&t->cells, text, n);
    rt_str_append_n(&t->cells, "", 1);
    if (t->cells.st != RT_OK)
        return;
    t->width[t->at] = RT_MAX(t->width[t->at], cli_columns(t->cells.p + at));
    t->at = (t->at + 1) % t->columns;
}

void cli_table_init(cli_table *t, const char *align, const char *headings) {
    memset(t, 0, sizeof *t);
    t->columns = (int)strlen(align);
    RT_ASSERT(t->columns <= CLI_TABLE_COLUMNS);
    memcpy(t->align, align, strlen(align) + 1);
    rt_str_init(&t->cells);
    for (const char *s = headings; s; s = *s ? s + 1 : NULL) {
        size_t n = strcspn(s, "|");
        add_cell(t, s, n);
        s += n;
        if (!*s)
            break;
    }
    RT_ASSERT(t->at == 0 || t->cells.st != RT_OK);
}

void cli_table_deinit(cli_table *t) {
    rt_str_deinit(&t->cells);
}

void cli_table_cell(cli_table *t, const char *fmt, ...) {
    char text[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    rt_str_clean(text, ""); /* a cell is one line */
    add_cell(t, text, strlen(text));
}

void cli_table_rule(cli_table *t) {
    RT_ASSERT(t->at == 0 || t->cells.st != RT_OK);
    for (int i = 0; i < t->columns; i++)
        add_cell(t, RULE, 1);
}

static void pad(rt_str *out, int n, char c) {
    for (int i = 0; i < n; i++)
        rt_str_append_char(out, c);
}

static const char *print_row(const cli_table *t, const char *cell, rt_str *out) {
    int due = 0; /* spaces owed: none are left at the end of a line */
    for (int i = 0; i < t->columns; i++, cell += strlen(cell) + 1) {
        bool rule = strcmp(cell, RULE) == 0;
        int fill = t->width[i] - (rule ? t->width[i] : cli_columns(cell));
        int before = t->align[i] == 'r' ? fill : 0;
        if (rule || *cell) {
            pad(out, due + before, ' ');
            due = 0;
            if (rule)
                pad(out, t->width[i], '-');
            else
                rt_str_append(out, cell);
            due = fill - before;
        } else {
            due += fill;
        }
        due += 2;
    }
    return cell;
}

void cli_table_print(const cli_table *t, rt_str *out, bool colour) {
    rt_str_fail(out, t->cells.st);
    if (out->st != RT_OK)
        return; /* cells are missing: the rows would run past the end */
    const char *cell = rt_str_text(&t->cells), *end = cell + t->cells.len;
    for (bool heading = true; cell < end; heading = false) {
        rt_str_append(out, cli_style_on(colour, heading ? CLI_BOLD : CLI_PLAIN));
        cell = print_row(t, cell, out);
        if (heading)
            rt_str_append(out, cli_style_off(colour));
        rt_str_append_char(out, '\n');
    }
}

/* ---- numbers ---- */

const char *cli_count(char *buf, int64_t n) {
    char digits[24];
    int len = snprintf(digits, sizeof digits, "%lld", (long long)n), at = 0;
    for (int i = 0; i < len; i++) {
        if (i > 0 && digits[i - 1] != '-' && (len - i) % 3 == 0)
            buf[at++] = ',';
        buf[at++] = digits[i];
    }
    buf[at] = 0;
    return buf;
}

static const char *scaled(char *buf, double v, double base, const char *const *units, int n) {
    int u = 0;
    while (u + 1 < n && fabs(v) >= base * 0.9995) {
        v /= base;
        u++;
    }
    int decimals = u == 0 && v == floor(v) ? 0 : fabs(v) < 9.995 ? 2 : fabs(v) < 99.95 ? 1 : 0;
    snprintf(buf, 32, "%.*f%s", decimals, v, units[u]);
    return buf;
}

const char *cli_si(char *buf, double v) {
    static const char *const units[] = {"", "k", "M", "G", "T"};
    return scaled(buf, v, 1000, units, 5);
}

const char *cli_bytes(char *buf, double bytes) {
    static const char *const units[] = {" B", " KiB", " MiB", " GiB", " TiB"};
    return scaled(buf, bytes, 1024, units, 5);
}

const char *cli_duration(char *buf, double sec) {
    if (!(sec >= 0 && sec < 1e9)) {
        snprintf(buf, 32, "?");
        return buf;
    }
    long long s = (long long)(sec + 0.5);
    if (s >= 3600)
        snprintf(buf, 32, "%lld:%02lld:%02lld", s / 3600, s / 60 % 60, s % 60);
    else
        snprintf(buf, 32, "%lld:%02lld", s / 60, s % 60);
    return buf;
}

const char *cli_shape(char *buf, const rt_shape *s) {
    enum { ROOM = 32 };
    snprintf(buf, ROOM, "%s", s->rank == 0 ? "scalar" : "");
    for (int i = 0; i < s->rank; i++) {
        const size_t at = strlen(buf);
        snprintf(buf + at, ROOM - at, i ? "x%lld" : "%lld", (long long)s->d[i]);
    }
    return buf;
}
