/*
 * cmd_report.c - retort report: runs compared on one HTML page.
 */
#include "base/file.h"
#include "cli/cli.h"
#include "report/report.h"
#include <string.h>

static rt_status print_json(rt_cli *c, const char *out, const rt_report_result *r) {
    rt_json j;
    cli_json_begin(c, &j);
    rt_report_result_write(r, out, &j);
    return cli_json_end(c, &j);
}

/* A name without .html is most likely a mistake, and an existing file would be replaced. */
static rt_status check_name(const char *out) {
    RT_FAIL_IF(!rt_str_ends(out, ".html") && !rt_str_ends(out, ".htm"), RT_E_USAGE,
               "--out: '%s' does not end in .html", out);
    return RT_OK;
}

rt_status cli_cmd_report(rt_cli *c) {
    const char *out = c->config.out ? c->config.out : "report.html";
    char size[32];
    rt_report_result r;
    RT_TRY(check_name(out));
    RT_TRY(rt_file_may_write(out));
    rt_status st = rt_report_write(out, &r, c->args, c->nargs, (rt_report_options){.title = c->config.title});
    if (st == RT_OK) {
        if (r.pictures_left_out > 0)
            cli_warn(&c->term, "some pictures are left out, to keep the page small");
        cli_say(&c->term, "%s: %d run%s, %s", out, r.runs, r.runs == 1 ? "" : "s",
                cli_bytes(size, (double)r.bytes));
        if (r.hint.len)
            cli_say(&c->term, "%d of %d runs are not evaluated; next: %s", r.runs - r.evaluated, r.runs,
                    rt_str_text(&r.hint));
        if (c->config.json)
            st = print_json(c, out, &r);
    }
    rt_report_result_deinit(&r);
    return st;
}
