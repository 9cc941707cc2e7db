"""The report of a run of the benchmarks, as Markdown that also reads well as plain text; and latest.md, the newest figures of all runs.

    python3 bench/tables.py FOLDER      writes FOLDER/latest.md anew
"""
import json
import pathlib
import sys
import textwrap

import machine

ROUNDS_MIN = 5  # for a verdict on a floor


def lower_is_better(job):
    return job["measure"] == "memory"


def best_of(job, values):
    return min(values) if lower_is_better(job) else max(values)


def amount(job, value):
    if lower_is_better(job):
        return f"{value / 1e6:.0f} MB"
    return f"{value:,.0f}/s" if value >= 100 else f"{value:.1f}/s"


def table(head, rows):
    cells = [head, *rows]
    width = [max(len(row[i]) for row in cells) for i in range(len(head))]
    lines = ["| " + " | ".join(c.ljust(w) for c, w in zip(row, width)) + " |" for row in cells]
    lines.insert(1, "|" + "|".join("-" * (w + 2) for w in width) + "|")
    return "\n".join(lines)


# ---- jobs ----

def is_judged(r):
    """Enough rounds, and most of their samples undisturbed?"""
    rounds = [s for s in r["samples"] if s["when"].startswith("round")]
    return r["retort"]["samples"] >= ROUNDS_MIN and 2 * r["disturbed"] <= len(rounds)


def floor_cell(r, floor, ratio):
    if floor is None:
        return "-"
    if not is_judged(r):
        return f"{floor:g}x (not judged)"
    less = lower_is_better(r["job"])
    met = ratio <= floor if less else ratio >= floor
    return f"{'<= ' if less else ''}{floor:g}x {'met' if met else 'MISSED'}"


def rates(r, side):
    return f"{amount(r['job'], side['median'])} ({amount(r['job'], side['best'])})"


def main_row(r):
    job, fraction = r["job"], r["attainable_fraction"]
    return [job["title"], r["torch"]["setting"], rates(r, r["retort"]), rates(r, r["torch"]),
            f"{r['ratio_median']:.2f}x", f"{r['ratio_best']:.2f}x", floor_cell(r, job["floor"], r["ratio_median"]),
            f"{r['ratio_tuned']:.2f}x: {r['torch_tuned']['setting']}" if r["ratio_tuned"] else "-",
            "-" if fraction is None or lower_is_better(job) else f"{fraction:.2f}"]


def ort_row(r):
    if not r.get("ort"):
        return [r["job"]["title"], f"left out: {r.get('ort_missing', 'not asked for')}", rates(r, r["retort"]), "-", "-", "-", "-"]
    return [r["job"]["title"], r["ort"]["setting"], rates(r, r["retort"]), rates(r, r["ort"]), f"{r['ratio_ort']:.2f}x",
            f"{r['ratio_ort_best']:.2f}x", floor_cell(r, r["job"]["floor_ort"], r["ratio_ort"])]


def cost_row(r):
    ceiling = r["job"].get("ceiling")
    verdict = "(not judged)" if not is_judged(r) else "met" if ceiling is None or r["cost"] <= ceiling else "MISSED"
    return [r["job"]["title"], r["reference"]["setting"], amount(r["job"], r["retort"]["median"]),
            amount(r["job"], r["reference"]["median"]), f"{r['cost']:.2f}x", f"{r['cost_of_bests']:.2f}x",
            "-" if ceiling is None else f"<= {ceiling:g}x {verdict}"]


def setting_rows(r):
    calibration, rounds = r["torch_calibration"] + r["ort_calibration"], r["torch_in_rounds"] + ([r["ort"]] if r["ort"] else [])
    for phase, rows in (("calibration", calibration), ("rounds", rounds)):
        for t in rows:
            yield [r["job"]["name"], phase, t["setting"], amount(r["job"], t["median"]), amount(r["job"], t["best"])]


# ---- rooflines ----

def layer_row(r):
    return [r["kind"], r["kernel"], str(r["count"]), f"{1e3 * r['seconds']:.3f}", f"{r['share']:.1%}", f"{r['gflop_per_s']:.1f}",
            f"{r['bytes'] / 1e6:.2f}", f"{r['gb_per_s']:.1f}", f"{r['limit_fraction']:.0%}"]


def layer_lines(one):
    if "error" in one:
        return [f"profile of {one['what']['arch']}: failed: {one['error']}", ""]
    p = one["profile"]
    busy = max(one["load_before"], one["used"]["others"]) > machine.QUIET
    return [f"A training step of {p['arch']} at batch {p['batch']}, one thread: {1e3 * p['step_seconds']:.2f} ms. FMA peak "
            f"{p['peak_gflops']:.0f} GFLOP/s, memory {p['bandwidth_gb_per_s']:.1f} GB/s{' (disturbed)' if busy else ''}.", "",
            table(["kind of work", "kernel", "count", "ms", "share", "GFLOP/s", "MB", "GB/s", "of limit"],
                  [layer_row(r) for r in p["kinds"]]), ""]


# ---- the page ----

def title(record):
    v = record["versions"]
    return (f"{v['retort'][0]} and PyTorch {v['torch']}{', ONNX Runtime ' + v['onnxruntime'] if v['onnxruntime'] else ''}, "
            f"{record['date']}, {record['cpu']['model']}, {record['cpu']['cores']} cores, {record['rounds']} rounds of "
            f"{record['seconds']:g} s. Samples per second: median of the rounds (best step); memory: peak resident set.")


def result_tables(fine, extra=(), extra_cell=lambda r: []):
    """extra: columns in front of the others."""
    done, costs = [r for r in fine if "cost" not in r], [r for r in fine if "cost" in r]
    infer = [r for r in done if r["job"]["measure"] == "infer"]
    lines = []
    if done:
        lines += [table([*extra, "job", "peer setting", "retort", "PyTorch", "ratio", "ratio of bests", "floor", "against tuned PyTorch",
                         "of FMA peak"], [extra_cell(r) + main_row(r) for r in done]), ""]
    if infer:
        lines += ["Inference against ONNX Runtime:", "",
                  table([*extra, "job", "peer setting", "retort", "ONNX Runtime", "ratio", "ratio of bests", "floor"],
                        [extra_cell(r) + ort_row(r) for r in infer]), ""]
    if costs:
        lines += ["Time of a step as a multiple of another's, both by retort:", "",
                  table([*extra, "step", "relative to", "rate", "rate of the other", "cost", "cost by bests", "ceiling"],
                        [extra_cell(r) + cost_row(r) for r in costs]), ""]
    return lines


def report(record):
    fine = [r for r in record["results"] if "error" not in r]
    done = [r for r in fine if "cost" not in r]
    lines = [title(record), "", *result_tables(fine)]
    for one in record["layers"]:
        lines += layer_lines(one)
    lines += [f"{r['job']['name']}: failed: {r['error']}" for r in record["results"] if "error" in r]
    disturbed, all_samples = sum(r["disturbed"] for r in fine), sum(len(r["samples"]) for r in fine)
    if disturbed:
        lines += [f"{disturbed} samples of the rounds ({all_samples} samples in all) were taken while others used more "
                  f"than {machine.QUIET:.0%} of the CPUs.", ""]
    if done:
        lines += ["Every setting of the peers:", "",
                  table(["job", "phase", "setting", "median", "best"], [row for r in done for row in setting_rows(r)])]
    return "\n".join(lines).rstrip() + "\n"


# ---- the newest figures ----

def current_floor(r, jobs):
    """Floors are what is wanted now, not what was when the job ran."""
    return {**r, "job": {**r["job"], **{k: v for k, v in jobs.get(r["job"]["name"], {}).items() if k.startswith("floor") or k == "ceiling"}}}


def latest(folder):
    """The newest judged result of every job, the newest profile of every network, over all runs in a folder."""
    jobs = {j["name"]: j for j in json.loads((pathlib.Path(__file__).resolve().parent / "jobs.json").read_text())["jobs"]}
    newest, profiles, record = {}, {}, None
    for path in sorted(folder.glob("*.json")):
        one = json.loads(path.read_text())
        if "results" not in one or "rounds" not in one:
            continue
        record = one
        for r in one["results"]:
            if "error" not in r and r["job"]["name"] in jobs and is_judged(r):
                newest[r["job"]["name"]] = (one["date"], current_floor(r, jobs))
        for p in one.get("layers", []):
            if "error" not in p:
                profiles[p["what"]["arch"]] = (one["date"], p)
    if record is None:
        return ""
    dates = {id(r): date for date, r in newest.values()}
    v = record["versions"]
    about = (f"The newest figure of every job that was measured in {ROUNDS_MIN} rounds or more: retort, PyTorch {v['torch']}, "
             f"{record['cpu']['model']}, {record['cpu']['cores']} cores. Samples per second: median of the rounds (best step); memory: peak "
             "resident set. The JSON file of that date and time has every sample and every setting of the peers.")
    lines = [textwrap.fill(about, 120), ""]
    lines += result_tables([newest[n][1] for n in jobs if n in newest], ["measured"], lambda r: [dates[id(r)]])
    missing = [j["title"] for n, j in jobs.items() if n not in newest]
    if missing:
        lines += ["Not measured in so many rounds yet: " + "; ".join(missing) + ".", ""]
    for date, p in profiles.values():
        lines += [f"Measured {date}:", "", *layer_lines(p)]
    return "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    target = pathlib.Path(sys.argv[1])
    (target / "latest.md").write_text(latest(target))
