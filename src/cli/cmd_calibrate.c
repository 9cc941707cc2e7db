/*
 * cmd_calibrate.c - retort calibrate: temperature, reject rule and conformal rule, fitted and stored in the model.
 */
#include "assess/calibrate.h"
#include "cli/cli.h"
#include <math.h>

static void say(rt_cli *c, const rt_calibration *k) {
    const rt_decision *d = &k->decision;
    cli_say(&c->term, "fitted on %lld %s", (long long)k->rows, k->rows_from);
    if (d->temperature > 0)
        cli_say(&c->term, "temperature of the %s %.4g (%lld rows): nll %.4f -> %.4f on %s",
                d->of_members ? "members" : "mean", d->temperature, (long long)k->fit_rows, k->nll_before,
                k->nll_after, k->rule_rows < k->rows ? "the others" : "the same rows");
    if (d->temperature > 0 && k->nll_after > k->nll_before)
        cli_warn(&c->term, "the temperature makes rows that it was not fitted to less likely; "
                           "--scale-by none leaves it out");
    if (d->measure >= 0) {
        const rt_measure_info *all;
        (void)rt_measure_list(&all);
        cli_say(&c->term, "reject where %s is %s %.6g (%s): %.2f %% of %lld rows are answered",
                all[d->measure].name, all[d->measure].certainty ? "below" : "above",
                rt_measure_shown(d->measure, d->threshold), c->config.reject, 100 * k->coverage,
                (long long)k->rule_rows);
        if (isfinite(k->risk))
            cli_say(&c->term, "of these %.2f %% are wrong, at most %.2f %% with certainty %g", 100 * k->risk,
                    100 * k->risk_bound, 1 - c->config.delta);
        if (isfinite(k->found))
            cli_say(&c->term, "%.2f %% of the foreign rows are rejected", 100 * k->found);
    }
    if (d->conformal == RT_CONFORMAL_INTERVAL)
        cli_say(
            &c->term,
            "intervals hold the truth in %g %% of rows: %.4g deviations to both sides, %.4g wide on average",
            100 * (1 - d->alpha), d->quantile, k->set_size);
    else if (d->conformal != RT_CONFORMAL_NONE)
        cli_say(&c->term, "sets (%s) hold the class in %g %% of rows: quantile %.4g, %.2f classes on average",
                rt_conformal_name(d->conformal), 100 * (1 - d->alpha), d->quantile, k->set_size);
    if (d->conformal != RT_CONFORMAL_NONE && !isfinite(d->quantile))
        cli_say(&c->term, "%lld rows are too few for alpha=%g, which takes %.0f: nothing is ever excluded",
                (long long)k->rule_rows, d->alpha, ceil(1 / d->alpha) - 1);
    if (d->measure >= 0 || d->conformal != RT_CONFORMAL_NONE)
        cli_say(&c->term,
                "these promises are for rows drawn like the ones they were fitted on; shift breaks them");
    if (!c->config.dry_run)
        cli_say(&c->term, "stored in %s; predict, eval, export and sessions use it; --raw leaves it out",
                c->args[0]);
}

rt_status cli_cmd_calibrate(rt_cli *c) {
    rt_pool *pool = NULL;
    rt_calibration k = {0};
    rt_json j;
    rt_status st;
    RT_TRY_GOTO(cli_pool_create(c, &pool));
    rt_calibrate_options o = rt_calibrate_options_of(&c->config);
    o.run = c->args[0];
    o.pool = pool;
    o.stop = cli_stop();
    RT_TRY_GOTO(rt_calibrate(&k, &o));
    say(c, &k);
    if (c->config.json) {
        cli_json_begin(c, &j);
        rt_calibration_write(&k, &j);
        st = cli_json_end(c, &j);
    }
done:
    rt_calibration_deinit(&k);
    rt_pool_destroy(&pool);
    return st;
}
