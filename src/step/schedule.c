/*
 * schedule.c - the learning rate as a pure function of progress: nothing to save, nothing to restore.
 *
 * With e the fractional epoch, E all epochs, W the warm-up and b the base rate:
 *
 *     warm-up      e < W:  b (s + (1 - s) e / W), s = 0.01;   the rules below apply from W on
 *     constant     b
 *     step         b g^k, k the number of milestones <= e; step:80:0.1 reads: after epoch 80 a tenth
 *     cosine       b (1 + cos(pi (e - W) / (E - W))) / 2
 *     one-cycle:L  b -> 10 b over the first half of L epochs, back to b over the second, then down to b / 1000 at E
 *                  (Malinin et al. 2020, Table 6, where b is the initial rate); L: 2/3 E, the paper's share, by default
 *     waves:L      b (1 + cos(2 pi (e - W) / L)) / 2, down to zero and up again every L epochs
 *
 * The one-cycle rule contains its own warm-up; giving both is an error.
 */
#include "base/special.h"
#include "step/step.h"
#include <math.h>
#include <string.h>

static const double PI = 3.14159265358979323846;
static const double CYCLE_TOP = 10, CYCLE_END = 0.001, CYCLE_SHARE = 2.0 / 3;

static rt_status parse_step(rt_schedule *out, const char *text, const char *args) {
    const char *colon = strchr(args, ':');
    RT_FAIL_IF(!colon, RT_E_USAGE, "schedule '%s': wanted step:E1,E2,...:FACTOR, such as step:60,80:0.1",
               text);
    RT_FAIL_IF(
        !rt_parse_f64(colon + 1, strlen(colon + 1), false, &out->gamma) || out->gamma <= 0 || out->gamma > 1,
        RT_E_USAGE, "schedule '%s': the factor '%s' is not a number above 0 and at most 1", text, colon + 1);
    for (const char *s = args; s <= colon; s++) {
        size_t n = strcspn(s, ",:");
        RT_FAIL_IF(out->nmilestones == (int)RT_COUNT(out->milestones), RT_E_USAGE,
                   "schedule '%s': more than %d epochs", text, (int)RT_COUNT(out->milestones));
        double e, last = out->nmilestones ? out->milestones[out->nmilestones - 1] : 0;
        RT_FAIL_IF(!rt_parse_f64(s, n, false, &e) || e <= last, RT_E_USAGE,
                   "schedule '%s': '%.*s' is not an epoch above %g; epochs must rise", text, (int)n, s, last);
        out->milestones[out->nmilestones++] = e;
        s += n;
        if (*s == ':')
            break;
    }
    return RT_OK;
}

static rt_status parse_cycle(rt_schedule *out, const char *text, const char *args) {
    RT_FAIL_IF(!rt_parse_f64(args, strlen(args), false, &out->cycle) || out->cycle <= 0, RT_E_USAGE,
               "schedule '%s': '%s' is not a number of epochs above 0", text, args);
    return RT_OK;
}

static double one_cycle(const rt_schedule *s, double e) {
    if (e < s->cycle) {
        const double half = s->cycle / 2, t = e < half ? e / half : (s->cycle - e) / half;
        return s->lr * (s->low + (s->high - s->low) * t);
    }
    const double rest = s->epochs - s->cycle, t = rest > 0 ? RT_MIN((e - s->cycle) / rest, 1.0) : 1.0;
    return s->lr * (s->low + (CYCLE_END - s->low) * t);
}

static double cosine(const rt_schedule *s, double e) {
    double span = s->epochs - s->warmup, t = span > 0 ? RT_MIN((e - s->warmup) / span, 1.0) : 0;
    return s->lr * 0.5 * (1 + cos(PI * t));
}

static double waves(const rt_schedule *s, double e) {
    return s->lr * 0.5 * (1 + cos(2 * PI * (e - s->warmup) / s->cycle));
}

static double steps(const rt_schedule *s, double e) {
    double lr = s->lr;
    for (int i = 0; i < s->nmilestones && s->milestones[i] <= e; i++)
        lr *= s->gamma;
    return lr;
}

static double constant(const rt_schedule *s, double e) {
    (void)e;
    return s->lr;
}

typedef enum args { NO_ARGS, MAY_HAVE_ARGS, HAS_ARGS } args;
typedef struct rule {
    const char *name, *form;
    args args;
    rt_status (*parse)(rt_schedule *out, const char *text, const char *args);
    double (*lr)(const rt_schedule *s, double e);
    bool rises; /* warms up by itself */
} rule;
static const rule rules[] = {
    {"constant", "constant", NO_ARGS, NULL, constant, false},
    {"step", "step:E1,E2,...:FACTOR", HAS_ARGS, parse_step, steps, false},
    {"cosine", "cosine", NO_ARGS, NULL, cosine, false},
    {"one-cycle", "one-cycle[:EPOCHS]", MAY_HAVE_ARGS, parse_cycle, one_cycle, true},
    {"waves", "waves:EPOCHS", HAS_ARGS, parse_cycle, waves, false},
};

double rt_schedule_lr(const rt_schedule *s, double epoch) {
    if (epoch < s->warmup)
        return s->lr * (s->warmup_start + (1 - s->warmup_start) * epoch / s->warmup);
    for (int64_t i = 0; i < RT_COUNT(rules); i++)
        if (s->name == rules[i].name)
            return rules[i].lr(s, epoch);
    return s->lr;
}

static rt_status find_rule(const rule **out, const char *text) {
    const char *forms[RT_COUNT(rules)];
    for (int64_t i = 0; i < RT_COUNT(rules); i++) {
        *out = &rules[i];
        forms[i] = rules[i].form;
        if (rt_str_heads(text, rules[i].name))
            return RT_OK;
    }
    RT_FAIL_UNKNOWN(RT_E_USAGE, text, forms, RT_COUNT(forms), "schedule: unknown");
}

rt_status rt_schedule_parse(rt_schedule *out, const char *text, double lr, double warmup, double epochs) {
    memset(out, 0, sizeof *out);
    out->lr = lr;
    out->warmup = warmup;
    out->warmup_start = 0.01;
    out->low = 1;
    out->high = CYCLE_TOP;
    out->epochs = epochs;
    const char *colon = strchr(text, ':'), *words = colon ? colon + 1 : NULL;
    const rule *r;
    RT_TRY(find_rule(&r, text));
    out->name = r->name;
    out->rises = r->rises;
    RT_FAIL_IF(words ? r->args == NO_ARGS : r->args == HAS_ARGS, RT_E_USAGE, "schedule '%s': wanted %s", text,
               r->form);
    if (words)
        RT_TRY(r->parse(out, text, words));
    if (r->rises) {
        if (!words)
            out->cycle = CYCLE_SHARE * epochs;
        RT_FAIL_IF(epochs > 0 && out->cycle > epochs, RT_E_USAGE,
                   "schedule '%s': the cycle is longer than the run of %g epochs", text, epochs);
        RT_FAIL_IF(warmup > 0, RT_E_USAGE, "schedule '%s' warms up by itself; leave out --warmup", text);
    }
    return RT_OK;
}
