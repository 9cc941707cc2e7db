/*
 * report.c - the page: runs are read and checked, sections that have something to show are written in the order of
 * sections.def, and everything is put into page.html.
 *
 * page.html has places {{NAME}}. Tables, pictures and words are written here and need no script; page.js sorts tables
 * and draws plots from one block of JSON. The page stays below 5 MB: 0.2 for Chart.js, at most about 1.2 for numbers
 * and 3.1 for pictures.
 */
#include "report/report.h"
#include "base/alloc.h"
#include "base/file.h"
#include "report/report_int.h"
#include <string.h>

typedef struct section {
    const char *id, *heading, *reading, *regression, *places;
    rt_report_body body;
} section;

static const section sections[] = {
#define RT_SECTION(id, heading, reading, regression, places, body)                                           \
    {#id, heading, reading, regression, places, rt_report_body_##body},
#include "report/sections.def"
#undef RT_SECTION
};

rt_status rt_report_body_none(rt_report *p, rt_str *out) {
    (void)p;
    (void)out;
    return RT_OK;
}

/* ---- runs ---- */

/* The last part of a path, without slashes behind it; length in *n. */
static const char *last_part(const char *path, size_t *n) {
    size_t end = strlen(path);
    while (end > 1 && path[end - 1] == '/')
        end--;
    size_t start = end;
    while (start > 0 && path[start - 1] != '/')
        start--;
    *n = end - start;
    return path + start;
}

static bool same_last(const char *a, const char *b) {
    size_t na, nb;
    const char *pa = last_part(a, &na), *pb = last_part(b, &nb);
    return na == nb && memcmp(pa, pb, na) == 0;
}

/* Runs are known by the last part of their paths, or by the whole path where that is not enough. */
static rt_status name_runs(rt_report *p) {
    for (int i = 0; i < p->n; i++) {
        bool alone = true;
        size_t n;
        char *copy;
        const char *last = last_part(p->runs[i].path, &n);
        for (int k = 0; k < p->n; k++) {
            RT_FAIL_IF(k < i && strcmp(p->runs[i].path, p->runs[k].path) == 0, RT_E_USAGE,
                       "%s is given twice", p->runs[i].path);
            alone = alone && (k == i || !same_last(p->runs[i].path, p->runs[k].path));
        }
        if (!alone || strcmp(last, ".") == 0 || strcmp(last, "..") == 0) {
            p->runs[i].name = p->runs[i].path;
            continue;
        }
        RT_TRY(rt_arena_alloc(&p->arena, &copy, n + 1));
        memcpy(copy, last, n);
        p->runs[i].name = copy;
    }
    return RT_OK;
}

/* Are all evaluations of the same rows? */
static bool same_data(const rt_report *p) {
    const char *first = NULL;
    double first_rows = 0;
    for (int i = 0; i < p->n; i++) {
        const char *hash = rt_report_text(p->runs[i].root, "evaluation/data_hash");
        double rows = 0;
        if (!hash)
            continue;
        (void)rt_report_number(p->runs[i].root, "evaluation/sets/test/rows", &rows);
        if (first && (strcmp(first, hash) != 0 || rows != first_rows))
            return false;
        first = hash;
        first_rows = rows;
    }
    return true;
}

static rt_status read_runs(rt_report *p, const char *const *paths, int n) {
    RT_FAIL_IF(n < 1 || n > RT_REPORT_RUNS_MAX, RT_E_USAGE,
               "a report of %d runs; from 1 to %d can be compared", n, RT_REPORT_RUNS_MAX);
    RT_TRY(rt_calloc(&p->runs, (size_t)n, sizeof *p->runs));
    for (p->n = 0; p->n < n; p->n++) {
        rt_status st = rt_report_run_read(&p->runs[p->n], &p->arena, paths[p->n]);
        if (st != RT_OK) {
            p->n++;
            return st;
        }
    }
    p->comparable = same_data(p);
    return name_runs(p);
}

/* ---- sections ---- */

static bool is_wanted(const rt_report *p, const section *s) {
    char place[128];
    if (!*s->places)
        return true;
    for (const char *at = s->places; *at; at += strspn(at, " ")) {
        size_t n = strcspn(at, " ");
        RT_ASSERT(n < sizeof place);
        memcpy(place, at, n);
        place[n] = 0;
        if (rt_report_any(p, place))
            return true;
        at += n;
    }
    return false;
}

/* Of which tasks are there runs? */
static void find_tasks(const rt_report *p, bool *classes, bool *regression) {
    *classes = *regression = false;
    for (int i = 0; i < p->n; i++) {
        const char *task = rt_report_text(p->runs[i].root, "evaluation/task");
        *(task && strcmp(task, "regression") == 0 ? regression : classes) = true;
    }
}

static void put_reading(const section *s, bool classes, bool regression, rt_str *out) {
    const bool own = regression && s->regression;
    rt_str_appendf(out, "<p class=\"reading\">%s", own && !classes ? s->regression : s->reading);
    if (own && classes)
        rt_str_appendf(out, "<br>Regressions: %s", s->regression);
    rt_str_append(out, "</p>\n");
}

static rt_status put_sections(rt_report *p, rt_str *nav, rt_str *out) {
    bool classes, regression;
    find_tasks(p, &classes, &regression);
    for (int64_t i = 0; i < RT_COUNT(sections); i++) {
        const section *s = &sections[i];
        if (!is_wanted(p, s))
            continue;
        rt_str_appendf(nav, "<a href=\"#%s\">%s</a>", s->id, s->heading);
        rt_str_appendf(out, "<section id=\"%s\"><h2>%s</h2>", s->id, s->heading);
        put_reading(s, classes, regression, out);
        rt_str_append(out, "<div class=\"plots\"></div>\n");
        RT_TRY(s->body(p, out));
        rt_str_append(out, "</section>\n");
    }
    return RT_OK;
}

static void put_title(const rt_report *p, rt_str *out) {
    if (p->options.title) {
        rt_report_escape(out, p->options.title);
        return;
    }
    if (p->n > 3) {
        rt_str_appendf(out, "Comparison of %d runs", p->n);
        return;
    }
    for (int i = 0; i < p->n; i++) {
        rt_str_append(out, i == 0 ? "" : i + 1 < p->n ? ", " : " and ");
        rt_report_escape(out, p->runs[i].name);
    }
}

static rt_status put_notices(const rt_report *p, rt_str *hint, rt_str *out) {
    bool first = true;
    RT_TRY(rt_report_hint(p, hint));
    if (hint->len) {
        rt_str_append(out, "<div class=\"notice\"><p>Not evaluated yet: ");
        for (int i = 0; i < p->n; i++) {
            if (rt_report_find(p->runs[i].root, "evaluation"))
                continue;
            rt_str_append(out, first ? "" : ", ");
            rt_report_run_tag(p, i, out);
            first = false;
        }
        rt_str_append(out, ". The page shows what is known of them; the rest comes with</p><pre>");
        rt_report_escape(out, rt_str_text(hint));
        rt_str_append(out, "</pre></div>\n");
    }
    for (int i = 0; i < p->n; i++) {
        const char *doubt = rt_report_text(p->runs[i].root, "doubt");
        if (!doubt)
            continue;
        rt_str_append(out, "<div class=\"notice\"><p>Training of ");
        rt_report_run_tag(p, i, out);
        rt_str_append(out, " is doubtful: ");
        rt_report_escape(out, doubt);
        rt_str_append(out, ".</p></div>\n");
    }
    if (!p->comparable)
        rt_str_append(out,
                      "<div class=\"notice\"><p>These runs were evaluated on different data. Their numbers "
                      "stand side by side but cannot be compared, so nothing is marked as best.</p></div>\n");
    return RT_OK;
}

static void put_thousands(rt_str *out, long long n) {
    if (n >= 1000) {
        put_thousands(out, n / 1000);
        rt_str_appendf(out, ",%03lld", n % 1000);
    } else {
        rt_str_appendf(out, "%lld", n);
    }
}

static void put_summary(const rt_report *p, rt_str *out) {
    const char *data = NULL;
    double rows;
    int evaluated = 0;
    for (int i = 0; i < p->n; i++) {
        const char *d = rt_report_text(p->runs[i].root, "evaluation/data");
        evaluated += d != NULL;
        data = data ? data : d;
    }
    rt_str_appendf(out, "%d run%s", p->n, p->n == 1 ? "" : "s");
    if (data && p->comparable) {
        if (evaluated < p->n)
            rt_str_appendf(out, ", %d of them evaluated", evaluated);
        rt_str_append(out, " on ");
        rt_report_escape(out, data);
        for (int i = 0; i < p->n; i++)
            if (rt_report_number(p->runs[i].root, "evaluation/sets/test/rows", &rows)) {
                rt_str_append(out, ", ");
                put_thousands(out, (long long)rows);
                rt_str_append(out, " test rows");
                break;
            }
    }
}

static void put_legend(const rt_report *p, rt_str *out) {
    for (int i = 0; i < p->n; i++) {
        rt_str_appendf(out,
                       "<button type=\"button\" class=\"chip\" data-run=\"%d\" aria-pressed=\"true\" "
                       "title=\"show or hide in all plots\">",
                       i);
        rt_report_run_tag(p, i, out);
        rt_str_append(out, "</button>");
    }
}

/* ---- the frame ---- */

typedef struct part {
    const char *name;
    const void *text;
    size_t n;
} part;

const rt_embedded *rt_report_asset(const char *name) {
    int n;
    const rt_embedded *files = rt_embedded_page(&n);
    for (int i = 0; i < n; i++)
        if (strcmp(files[i].name, name) == 0)
            return &files[i];
    return NULL; /* Chart.js, in a build without it */
}

static void fill(rt_str *page, const part *parts, int nparts) {
    const rt_embedded *html = rt_report_asset("page.html");
    const char *at = html->data, *end = at + html->bytes, *open;
    while ((open = memmem(at, (size_t)(end - at), "{{", 2)) != NULL) {
        const char *close = memmem(open, (size_t)(end - open), "}}", 2);
        RT_ASSERT(close != NULL);
        rt_str_append_n(page, at, (size_t)(open - at));
        for (int i = 0; i < nparts; i++)
            if (strlen(parts[i].name) == (size_t)(close - open - 2) &&
                memcmp(parts[i].name, open + 2, (size_t)(close - open - 2)) == 0)
                rt_str_append_n(page, parts[i].text, parts[i].n);
        at = close + 2;
    }
    rt_str_append_n(page, at, (size_t)(end - at));
}

enum { TITLE, SUMMARY, HEADLINE, NOTICES, NAV, LEGEND, SECTIONS, UNITS, DATA, TEXTS };

static void put_units(const rt_report *p, rt_str *out) {
    bool classes, regression;
    find_tasks(p, &classes, &regression);
    rt_str_append(out, classes ? "Uncertainties are in nats"
                               : "Uncertainties are variances in squared units of the target");
    rt_str_append(out,
                  classes && regression ? ", of regressions variances in squared units of the target." : ".");
}

static rt_status render(rt_report *p, rt_str text[TEXTS], rt_report_result *result, rt_str *page) {
    put_title(p, &text[TITLE]);
    put_summary(p, &text[SUMMARY]);
    RT_TRY(rt_report_headline(p, &text[HEADLINE]));
    RT_TRY(put_notices(p, &result->hint, &text[NOTICES]));
    put_legend(p, &text[LEGEND]);
    RT_TRY(put_sections(p, &text[NAV], &text[SECTIONS]));
    put_units(p, &text[UNITS]);
    RT_TRY(rt_report_data(p, &text[DATA]));
    for (int i = 0; i < TEXTS; i++)
        RT_TRY(rt_str_status(&text[i]));
    const rt_embedded *css = rt_report_asset("page.css"), *script = rt_report_asset("page.js"),
                      *chart = rt_report_asset("chart.min.js");
    RT_FAIL_IF(!chart, RT_E_UNSUPPORTED,
               "this program was built without Chart.js, which reports need; install it (Debian: "
               "libjs-chart.js) and build again");
#define TEXT(i) rt_str_text(&text[i]), text[i].len
    const part parts[] = {{"TITLE", TEXT(TITLE)},
                          {"SUMMARY", TEXT(SUMMARY)},
                          {"HEADLINE", TEXT(HEADLINE)},
                          {"NOTICES", TEXT(NOTICES)},
                          {"NAV", TEXT(NAV)},
                          {"LEGEND", TEXT(LEGEND)},
                          {"SECTIONS", TEXT(SECTIONS)},
                          {"UNITS", TEXT(UNITS)},
                          {"DATA", TEXT(DATA)},
                          {"VERSION", RT_VERSION, sizeof RT_VERSION - 1},
                          {"STYLE", css->data, css->bytes},
                          {"CHART", chart->data, chart->bytes},
                          {"SCRIPT", script->data, script->bytes}};
#undef TEXT
    fill(page, parts, (int)RT_COUNT(parts));
    RT_TRY(rt_str_status(page));
    result->bytes = page->len;
    result->runs = p->n;
    result->pictures_left_out = p->pictures_left_out;
    for (int i = 0; i < p->n; i++)
        result->evaluated += rt_report_find(p->runs[i].root, "evaluation") != NULL;
    return RT_OK;
}

void rt_report_result_deinit(rt_report_result *r) {
    rt_str_deinit(&r->hint);
}

rt_status rt_report_render(rt_str *page, rt_report_result *result, const char *const *runs, int n,
                           rt_report_options o) {
    rt_report p = {.options = o};
    rt_str text[TEXTS];
    memset(result, 0, sizeof *result);
    rt_str_init(&result->hint);
    rt_arena_init(&p.arena);
    for (int i = 0; i < TEXTS; i++)
        rt_str_init(&text[i]);
    rt_status st = read_runs(&p, runs, n);
    if (st == RT_OK)
        st = render(&p, text, result, page);
    for (int i = 0; i < TEXTS; i++)
        rt_str_deinit(&text[i]);
    for (int i = 0; i < p.n; i++)
        rt_report_run_deinit(&p.runs[i]);
    rt_free(p.runs);
    rt_arena_deinit(&p.arena);
    return st;
}

rt_status rt_report_write(const char *path, rt_report_result *result, const char *const *runs, int n,
                          rt_report_options o) {
    rt_str page;
    rt_str_init(&page);
    rt_status st = rt_report_render(&page, result, runs, n, o);
    if (st == RT_OK)
        st = rt_file_write_text(path, &page);
    rt_str_deinit(&page);
    return st;
}

void rt_report_result_write(const rt_report_result *r, const char *out, rt_json *j) {
    rt_json_str(j, "out", out);
    rt_json_i64(j, "bytes", (int64_t)r->bytes);
    rt_json_i64(j, "runs", r->runs);
    rt_json_i64(j, "evaluated", r->evaluated);
    rt_json_i64(j, "pictures_left_out", r->pictures_left_out);
}
