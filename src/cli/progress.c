/*
 * progress.c - how far training, or other work, is. On a terminal one line, drawn again ten times a second:
 *
 *     epoch 3/10 [=========>               ] 27%  loss 0.3521  acc 88.1%  valid 87.2%  91.2k/s  0:42 left
 *
 * A loss of another kind than the validation's (of a distillation, of targets that are scaled) is never shown beside
 * it: the two would be compared. Fields that do not fit are left out, the least important first. Elsewhere (log files,
 * pipes) one line per epoch, of more than a hundred every fiftieth part, and within long epochs one every half minute;
 * log.jsonl has all.
 */
#include "base/timer.h"
#include "cli/cli.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { FIELDS = 5, FIELD_MAX = 48, BAR_MIN = 8, BAR_MAX = 40 };
static const double REDRAW_SECONDS = 0.1, PLAIN_SECONDS = 30;

static double fraction_done(const rt_progress *p) {
    double inside = p->steps > 0 ? (double)p->step / (double)p->steps : 0;
    double done = p->epochs > 0 ? ((double)(p->epoch - 1) + inside) / (double)p->epochs : 1;
    return done < 0 ? 0 : done > 1 ? 1 : done;
}

static void append_bar(rt_str *s, double done, int width, bool utf8, bool colour) {
    int full = (int)(done * width);
    rt_str_append(s, cli_style_on(colour, CLI_GREEN));
    for (int i = 0; i < full; i++)
        rt_str_append(s, utf8 ? "\xe2\x94\x81" : "=");
    if (full < width)
        rt_str_append(s, utf8 ? "\xe2\x95\xb8" : ">");
    rt_str_append(s, cli_style_off(colour));
    for (int i = full + 1; i < width; i++)
        rt_str_append_char(s, utf8 ? ' ' : '.');
}

/* Is the loss of training the one that validation has, on other rows? That of a regression is of scaled targets. */
static bool is_comparable(const cli_progress *c, const rt_progress *p) {
    return !c->apart && (isfinite(p->accuracy) || isfinite(p->valid_accuracy));
}

/* Fields by importance; an empty one is not known. */
static void fill_fields(char field[FIELDS][FIELD_MAX], const cli_progress *c, const rt_progress *p) {
    char text[32];
    if (isfinite(p->loss) && (is_comparable(c, p) || !c->have_valid || isfinite(c->valid_accuracy)))
        snprintf(field[0], FIELD_MAX, "  loss %.4f", p->loss);
    if (*cli_stop())
        snprintf(field[1], FIELD_MAX, "  stopping");
    else
        snprintf(field[1], FIELD_MAX, "  %s left", cli_duration(text, p->seconds_left));
    if (isfinite(p->accuracy))
        snprintf(field[2], FIELD_MAX, "  acc %.4f", p->accuracy);
    if (c->have_valid && isfinite(c->valid_accuracy))
        snprintf(field[3], FIELD_MAX, "  valid acc %.4f", c->valid_accuracy);
    else if (c->have_valid)
        snprintf(field[3], FIELD_MAX, "  valid nll %.4f", c->valid_loss);
    if (isfinite(p->samples_per_s))
        snprintf(field[4], FIELD_MAX, "  %s/s", cli_si(text, p->samples_per_s));
}

static void draw(cli_progress *c, const rt_progress *p) {
    static const int order[FIELDS] = {0, 2, 3, 4, 1}; /* on the screen */
    char field[FIELDS][FIELD_MAX] = {{0}}, head[48];
    double done = fraction_done(p);
    fill_fields(field, c, p);
    snprintf(head, sizeof head, "epoch %lld/%lld ", (long long)p->epoch, (long long)p->epochs);
    int spare = cli_term_width() - 1 - (int)strlen(head) - 5 - BAR_MIN;
    for (int i = 0; i < FIELDS; i++) {
        spare -= (int)strlen(field[i]);
        if (spare < 0) {
            spare += (int)strlen(field[i]);
            field[i][0] = 0;
        }
    }
    rt_str s;
    rt_str_init(&s);
    rt_str_append(&s, head);
    if (spare >= 0)
        append_bar(&s, done, RT_MIN(BAR_MAX, BAR_MIN + spare), c->term->utf8, c->term->colour_err);
    rt_str_appendf(&s, " %3.0f%%", 100 * done);
    for (int i = 0; i < FIELDS; i++)
        rt_str_append(&s, field[order[i]]);
    cli_term_draw(c->term, rt_str_text(&s));
    rt_str_deinit(&s);
}

static void plain(cli_progress *c, const rt_progress *p) {
    char left[32], rate[32], text[256];
    int n = snprintf(text, sizeof text, "epoch %lld/%lld", (long long)p->epoch, (long long)p->epochs);
    if (!p->epoch_end)
        n += snprintf(text + n, sizeof text - (size_t)n, " step %lld/%lld", (long long)p->step,
                      (long long)p->steps);
    const bool valid = p->epoch_end && isfinite(p->valid_loss);
    if (isfinite(p->loss) && (is_comparable(c, p) || !valid))
        n += snprintf(text + n, sizeof text - (size_t)n, "  loss %.4f", p->loss);
    if (isfinite(p->accuracy))
        n += snprintf(text + n, sizeof text - (size_t)n, "  accuracy %.4f", p->accuracy);
    if (valid)
        n += snprintf(text + n, sizeof text - (size_t)n, "  valid nll %.4f", p->valid_loss);
    if (p->epoch_end && isfinite(p->valid_accuracy))
        n += snprintf(text + n, sizeof text - (size_t)n, "  valid accuracy %.4f", p->valid_accuracy);
    cli_say(c->term, "%s  %s/s  %s left", text, cli_si(rate, p->samples_per_s),
            cli_duration(left, p->seconds_left));
}

/* Does the end of this epoch get a line of its own? */
static bool is_told(const rt_progress *p) {
    enum { MANY = 100, LINES = 50 };
    return p->epoch_end && (p->epochs <= MANY || p->epoch == 1 || p->epoch == p->epochs ||
                            p->epoch % (p->epochs / LINES) == 0);
}

void cli_show_progress(void *user, const rt_progress *p) {
    cli_progress *c = user;
    double now = rt_time_now();
    if (c->shown == 0 && !p->epoch_end)
        c->shown = now;
    if (p->note)
        cli_say(c->term, "%s", p->note);
    if (p->epoch_end && (isfinite(p->valid_loss) || isfinite(p->valid_accuracy))) {
        c->valid_loss = p->valid_loss;
        c->valid_accuracy = p->valid_accuracy;
        c->have_valid = true;
        c->apart = !is_comparable(c, p);
    }
    if (c->term->progress == CLI_PROGRESS_BAR && (now - c->shown >= REDRAW_SECONDS || p->epoch_end))
        draw(c, p);
    else if (c->term->progress == CLI_PROGRESS_PLAIN && (is_told(p) || now - c->shown >= PLAIN_SECONDS))
        plain(c, p);
    else
        return;
    c->shown = now;
}

void cli_show_work(cli_progress *c, const char *what, double done, double seconds_left) {
    const double now = rt_time_now();
    char left[32], tail[160];
    if (c->shown == 0)
        c->shown = now;
    const double wait = c->term->progress == CLI_PROGRESS_BAR ? REDRAW_SECONDS : PLAIN_SECONDS;
    if (c->term->progress == CLI_PROGRESS_NONE || now - c->shown < wait)
        return;
    c->shown = now;
    snprintf(tail, sizeof tail, " %3.0f%%  %.100s  %s left", 100 * done, what,
             cli_duration(left, seconds_left));
    if (c->term->progress == CLI_PROGRESS_PLAIN) {
        cli_say(c->term, "%s", tail + 1);
        return;
    }
    const int spare = cli_term_width() - 1 - cli_columns(tail);
    rt_str s;
    rt_str_init(&s);
    if (spare >= BAR_MIN)
        append_bar(&s, done, RT_MIN(BAR_MAX, spare), c->term->utf8, c->term->colour_err);
    rt_str_append(&s, tail);
    cli_term_draw(c->term, rt_str_text(&s));
    rt_str_deinit(&s);
}
