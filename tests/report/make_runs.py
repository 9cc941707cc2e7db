#!/usr/bin/env python3
"""Writes the runs of tests/report/runs: small, deterministic, with something for every section of the page.

    tests/report/make_runs.py [DIR]        DIR: tests/report/runs

The curves are made up (closed formulas and a fixed generator), in the format of `retort eval` and `retort average`. The result is
committed, so that tests need no Python.
"""
import json
import math
import os
import struct
import sys
import zlib

HERE = os.path.dirname(os.path.abspath(__file__))
OUT = sys.argv[1] if len(sys.argv) > 1 else os.path.join(HERE, "runs")
MEASURES = ["confidence", "entropy", "mutual_information", "expected_entropy", "epkl"]
CLASSES = ["T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"]
TYPES = ["gaussian_noise", "shot_noise", "impulse_noise", "defocus_blur", "motion_blur", "fog", "brightness", "contrast", "pixelate",
         "jpeg_compression"]


class Random:
    def __init__(self, seed):
        self.s = seed

    def __call__(self):
        self.s = (self.s * 6364136223846793005 + 1442695040888963407) % 2**64
        return (self.s >> 33) / 2**31

    def around(self, x, rel):
        return x * (1 + rel * (2 * self() - 1))


def sig(x, n=4):
    return None if x is None else float(f"{x:.{n}g}")


def sigs(xs, n=4):
    return [sig(x, n) for x in xs]


def png(path, w, h, pixel, channels=1):
    rows = b"".join(b"\0" + bytes(c for x in range(w) for c in pixel(x, y)) for y in range(h))

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", w, h, 8, 0 if channels == 1 else 2, 0, 0, 0)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as f:
        f.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows, 9)) + chunk(b"IEND", b""))


def roc(auroc):
    """tpr = fpr^a has the area 1 / (1 + a)."""
    a = 1 / auroc - 1
    fpr = [i / 20 for i in range(21)]
    return {"fpr": fpr, "tpr": sigs([f**a if f else 0.0 for f in fpr])}


def histogram(rng, edges, rows, centre, width):
    mids = [(a + b) / 2 for a, b in zip(edges, edges[1:])]
    mass = [math.exp(-(((m - centre) / width) ** 2)) * rng.around(1, 0.1) for m in mids]
    return [round(rows * m / sum(mass)) for m in mass]


def evaluation(name, q, rng):
    """q: quality and character of a run."""
    acc, ece, mi, members = q["accuracy"], q["ece"], q["mi"], q["members"]
    err = 1 - acc
    nll = 2.6 * err + 3 * ece
    test = {"rows": 10000, "accuracy": acc, "nll": nll, "brier": 1.4 * err + ece, "ece": ece, "temperature": 1 + 8 * ece,
            "nll_calibrated": nll - 4 * ece**1.5, "ece_calibrated": ece * 0.4 + 0.002, "entropy": 2.2 * err,
            "expected_entropy": 2.2 * err - mi, "mutual_information": mi, "epkl": 2.1 * mi, "diversity": 2.3 * mi,
            "disagreement": 1.1 * mi, "prr": q["prr"]}
    test = {k: (v if k == "rows" else sig(v)) for k, v in test.items()}
    if members == 1:
        for k in ["mutual_information", "epkl", "diversity", "disagreement"]:
            test[k] = None
            test[k + "_reason"] = "needs at least two members"
    test["interval"] = {k: [sig(v * (1 - 0.02 * (k != "accuracy") - 0.006)), sig(v * (1 + 0.02 * (k != "accuracy") + 0.006))]
                        for k, v in test.items() if isinstance(v, float) and k not in ("temperature",)}
    known = [m for m in MEASURES if members > 1 or m in ("confidence", "entropy", "expected_entropy")]
    au = {m: sig((1 + q["prr"]) / 2 - 0.012 * i) for i, m in enumerate(known)}
    test["misclassification"] = {"auroc": au, "aupr": {m: sig(0.48 - 0.03 * i) for i, m in enumerate(known)},
                                 "prr": {m: sig(2 * a - 1) for m, a in au.items()}}
    for table in test["misclassification"].values() if members == 1 else []:
        for k in ["mutual_information", "epkl"]:
            table.update({k: None, k + "_reason": "needs at least two members"})
    if members > 1:
        test["single"] = {"accuracy": sig(acc - 0.012), "nll": sig(nll + 0.05), "ece": sig(ece + 0.01)}
        test["single_min"] = {"accuracy": sig(acc - 0.016), "nll": sig(nll + 0.03), "ece": sig(ece + 0.006)}
        test["single_max"] = {"accuracy": sig(acc - 0.008), "nll": sig(nll + 0.07), "ece": sig(ece + 0.014)}
    wrong = [round(1000 * err * (0.4 + 1.2 * c / 9)) for c in range(10)]
    test["per_class"] = {"rows": [1000] * 10, "recall": sigs([1 - w / 1000 for w in wrong]), "precision": sigs([1 - wrong[c - 1] / (1000 + wrong[c - 1] - wrong[c]) for c in range(10)]),
                         "confidence": sigs([acc + ece] * 10), "ece": sigs([ece * (1 + c / 10) for c in range(10)])}
    test["confusion"] = [[1000 - wrong[c] if p == c else wrong[c] if p == (c + 1) % 10 else 0 for p in range(10)] for c in range(10)]
    sets = {"test": test}
    curves = {}
    curves["roc"] = {"misclassification": {m: roc(au[m]) for m in known}}
    edges = sigs([2.3026 * i / 25 for i in range(26)])
    mi_edges = sigs([1.2 * i / 25 for i in range(26)])
    hist = {"entropy": {"edges": edges, "test": histogram(rng, edges, 10000, 0.0, 0.35 + err), "test_wrong": histogram(rng, edges, err * 10000, 0.8, 0.5)}}
    if members > 1:
        hist["mutual_information"] = {"edges": mi_edges, "test": histogram(rng, mi_edges, 10000, 0.0, 0.08 + mi),
                                      "test_wrong": histogram(rng, mi_edges, err * 10000, 0.15, 0.15)}
    for k, (ood, spec, base) in enumerate([("digits", "mnist:data/mnist", q["ood"]), ("noise", "npy:noise.npy", q["ood"] + 0.03)]):
        a = {m: sig(base + (0.02 if m in ("mutual_information", "epkl") else 0) - 0.004 * i) for i, m in enumerate(known)}
        sets["ood:" + ood] = {"rows": 10000, "spec": spec, "entropy": sig(1.0 + q["ood"] * 0.3 + 0.1 * k), "mutual_information": sig(mi * 6) if members > 1 else None,
                              "expected_entropy": sig(0.9), "confidence": sig(0.62 - 0.05 * k), "auroc": a, "aupr": {m: sig(v - 0.015) for m, v in a.items()},
                              "interval": {"auroc_" + m: [sig(v - 0.004), sig(v + 0.004)] for m, v in a.items()}}
        curves["roc"]["ood:" + ood] = {m: roc(v) for m, v in a.items()}
        hist["entropy"]["ood:" + ood] = histogram(rng, edges, 10000, 0.9 + q["ood"] * 0.3 + 0.25 * k, 0.5)
        if members > 1:
            hist["mutual_information"]["ood:" + ood] = histogram(rng, mi_edges, 10000, 0.25 + 0.1 * k + mi, 0.2)
    curves["histogram"] = hist
    for kind, unit, severities in [("rotate", "degrees", [15, 30, 45, 60, 75, 90]), ("roll", "pixels", [2, 4, 6, 8, 10, 12, 14])]:
        t = [s / severities[-1] for s in severities]
        sets["shift:" + kind] = {"unit": unit, "severity": severities, "accuracy": sigs([acc - (acc - 0.18) * x**0.8 * q["fragile"] for x in t]),
                                 "nll": sigs([nll + 3.2 * x * q["fragile"] for x in t]), "brier": sigs([1.4 * err + 0.7 * x for x in t]),
                                 "ece": sigs([ece + 0.4 * x * q["fragile"] ** 2 for x in t]), "entropy": sigs([2.2 * err + 0.8 * x / q["fragile"] for x in t]),
                                 "nll_calibrated": sigs([0.9 * nll + 2.6 * x * q["fragile"] for x in t]), "ece_calibrated": sigs([0.4 * ece + 0.3 * x * q["fragile"] ** 2 for x in t]),
                                 "mutual_information": sigs([mi + 0.3 * x / q["fragile"] for x in t]) if members > 1 else [None for _ in t]}
        sets["shift:" + kind]["mean"] = {m: sigs([sum(v) / len(v)])[0] for m, v in sets["shift:" + kind].items() if m not in ("unit", "severity") and None not in v}
    types = {}
    for i, kind in enumerate(TYPES):
        hard = 0.35 + 0.5 * rng()
        types[kind] = {"severity": [1, 2, 3, 4, 5], "accuracy": sigs([acc - hard * q["fragile"] * 0.12 * s for s in range(1, 6)]),
                       "nll": sigs([nll + hard * q["fragile"] * 0.5 * s for s in range(1, 6)]), "brier": sigs([1.4 * err + hard * 0.12 * s for s in range(1, 6)]),
                       "ece": sigs([ece + hard * q["fragile"] * 0.05 * s for s in range(1, 6)])}
    keys = ["accuracy", "nll", "brier", "ece"]
    severity = {k: sigs([sum(t[k][s] for t in types.values()) / len(types) for s in range(5)]) for k in keys}
    sets["corrupt"] = {**{k + "_corrupted": sig(sum(severity[k]) / 5) for k in keys}, "nll_calibrated_corrupted": sig(sum(severity["nll"]) / 5 - 0.1),
                       "ece_calibrated_corrupted": sig(sum(severity["ece"]) / 8), "severity": {"severity": [1, 2, 3, 4, 5], **severity}, "types": types}
    if q.get("student"):
        sets["against"] = {"teacher": "runs/teacher", "kl": sig(0.03 + ece), "mutual_information_difference": sig(0.02) if members > 1 else None,
                           "entropy_difference": sig(0.06), "agreement": sig(0.953)}
    conf = [(i + 0.5) / 15 for i in range(15)]
    curves["reliability"] = {"confidence": [None if i == 0 else sig(c) for i, c in enumerate(conf)],
                             "accuracy": [None if i == 0 else sig(max(0.0, min(1.0, c - 2.2 * ece * math.sin(math.pi * c) + 0.01 * (rng() - 0.5)))) for i, c in enumerate(conf)],
                             "count": [0 if i == 0 else round(20 + 6500 * c**12 + 250 * c) for i, c in enumerate(conf)]}
    x = [i / 50 for i in range(51)]
    rejection = {"fraction": x, "random": sigs([err * (1 - f) for f in x]), "oracle": sigs([max(err - f, 0) for f in x])}
    for i, m in enumerate(MEASURES):
        if m in known:
            rejection[m] = sigs([err * (1 - f) ** (6.5 - 0.8 * i) for f in x])
    curves["rejection"] = rejection
    if members > 1:
        alpha = [i / 20 for i in range(21)]
        bump = q["bump"]
        curves["line"] = {"first": 0, "second": 1, "alpha": alpha, "loss": sigs([nll + bump * math.sin(math.pi * a) ** 2 for a in alpha]),
                          "accuracy": sigs([acc - 0.012 - bump * 0.25 * math.sin(math.pi * a) ** 2 for a in alpha])}
    items = [{"row": int(rng() * 10000), "label": int(rng() * 10), "class": int(rng() * 10), "entropy": sig(1.9 - 0.02 * i), "mutual_information": sig(0.5 - 0.01 * i) if members > 1 else None,
              "confidence": sig(0.2 + 0.01 * i)} for i in range(24)]

    def tile(px, py):
        i, x, y = (px // 14) + 8 * (py // 14), px % 14 - 6.5, py % 14 - 6.5
        r = math.hypot(x * (1 + 0.3 * math.sin(i)), y * (1 + 0.3 * math.cos(i)))
        return (max(0, min(255, int(255 * math.exp(-(((r - 3.5 - 1.5 * math.sin(2 * i + math.atan2(y, x) * (1 + i % 4))) / 1.6) ** 2))))),)

    png(os.path.join(OUT, name, "pictures/least-certain.png"), 8 * 14, 3 * 14, tile)
    return {"run": "runs/" + name, "arch": q["arch"], "student": q["kind"], "method": q["method"], "task": "classification", "members": members,
            "parameters": q["parameters"], "flops": q["flops"], "training_seconds": q["seconds"], "infer_seconds": sig(q["flops"] / 1e7 + 0.05),
            "data": "fashion-mnist", "data_hash": "3f1c", "classes": CLASSES,
            "command": "retort eval runs/teacher runs/latent-be runs/hydra --data fashion-mnist --ood digits=mnist:data/mnist --shift rotate,roll --corrupt",
            "sets": sets, "curves": curves, "pictures": {"least_certain": {"file": "pictures/least-certain.png", "columns": 8, "items": items}}}


def write(name, metrics=None, log=None, config=None):
    d = os.path.join(OUT, name)
    os.makedirs(d, exist_ok=True)
    if metrics is not None:
        with open(os.path.join(d, "metrics.json"), "w") as f:
            json.dump(metrics, f, separators=(",", ":"))
            f.write("\n")
    if log is not None:
        with open(os.path.join(d, "log.jsonl"), "w") as f:
            f.writelines(json.dumps(line, separators=(",", ":")) + "\n" for line in log)
    if config is not None:
        with open(os.path.join(d, "config.yaml"), "w") as f:
            f.write("# Every parameter of this run, for retort --config.\n")
            f.writelines(f"{k}: {json.dumps(v)}\n" for k, v in config.items())


def log(rng, epochs, last, accuracy, distil=False, perturbed=False, finished=True):
    lines = [{"event": "start", "time": "2026-11-16T01:57:49Z", "step": 0, "epoch": 0, "retort": "0.1.0"}]
    for e in range(1, epochs + 1):
        t = e / epochs
        line = {"event": "epoch", "time": "2026-11-16T01:57:49Z", "step": 422 * e, "epoch": e, "lr": sig(0.05 * (1 + math.cos(math.pi * t)) + 1e-4)}
        if distil:
            line["temperature"] = 4
        line.update({"train_loss": sig(rng.around(last * 0.8 + 1.2 * math.exp(-4 * t), 0.02)), "train_accuracy": sig(accuracy + 0.03 - 0.3 * math.exp(-5 * t)),
                     "valid_loss": sig(rng.around(last + 1.0 * math.exp(-4 * t), 0.03)), "valid_accuracy": sig(rng.around(accuracy - 0.3 * math.exp(-5 * t), 0.005))})
        if distil:
            line["student_diversity"] = sig(0.01 + 0.05 * t)
        if perturbed:
            line.update({"student_diversity_perturbed": sig(0.012 + 0.08 * t), "teacher_diversity_perturbed": sig(0.18)})
        if distil:
            line["teacher_diversity"] = sig(0.09)
        line.update({"samples_per_s": 51234.5, "seconds": sig(1.8 * e)})
        lines.append(line)
    if finished:
        lines.append({"event": "finished", "time": "2026-11-16T01:59:12Z", "step": 422 * epochs, "epoch": epochs, "retort": "0.1.0"})
    return lines


def trained(q, epochs):
    return {"retort": "0.1.0", "task": "classification", "members": q["members"], "epochs": epochs, "steps": 422 * epochs, "parameters": q["parameters"],
            "seconds": q["seconds"], "samples_per_s": 51234.5, "train_rows": 54000, "valid_rows": 6000, "train_loss": 0.31, "valid_loss": 0.33, "valid_accuracy": q["accuracy"]}


def average():
    layers = []
    for i, (layer, n) in enumerate([("fc1", 200), ("fc2", 200), ("fc3", 10)]):
        def cell(x, y, i=i):
            return (255 if (x * (7 + 2 * i) + 3) % 48 == y else 40 if (x * 5 + y * 11) % 37 == 0 else 0,)

        files = []
        if n > 10:
            files = [f"pictures/P-{layer}-{m}.png" for m in (1, 2)]
            for f in files:
                png(os.path.join(OUT, "merged", f), 48, 48, cell)
        layers.append({"name": layer, "n": n, "row_entropy": [0.21 - 0.05 * i, 0.24 - 0.05 * i], "distance_before": [18.1 - 4 * i, 18.4 - 4 * i],
                       "distance_after": [10.2 - 3 * i, 10.9 - 3 * i], "std_before": 0.051, "std_after": 0.028, "correlation_before": [0.03, 0.02],
                       "correlation_after": [0.62, 0.58], "pictures": files})
    alpha = [i / 10 for i in range(11)]
    bump = [math.sin(math.pi * a) ** 2 for a in alpha]
    scores = {part: {"rows": rows, **{who: {"accuracy": sig(0.88 + d), "loss": sig(0.35 - d)} for who, d in [("models_mean", 0.0), ("models_best", 0.004), ("average", -0.01), ("ensemble", 0.01)]}}
              for part, rows in [("valid", 6000), ("test", 10000)]}
    return {"method": "perm", "scores": scores, "models": ["runs/a", "runs/b", "runs/c"], "layers": layers,
            "interpolation": {"alpha": alpha, "naive": {"accuracy": sigs([0.88 - 0.5 * b for b in bump]), "loss": sigs([0.35 + 1.4 * b for b in bump])},
                              "permuted": {"accuracy": sigs([0.88 - 0.08 * b for b in bump]), "loss": sigs([0.35 + 0.2 * b for b in bump])}}}


def spiral():
    def arms(x, y):
        r, phi = math.hypot(x - 31.5, y - 31.5) / 31.5, math.atan2(y - 31.5, x - 31.5)
        return r, abs(math.sin(1.5 * (phi - 5 * r)))

    def total(x, y):
        r, a = arms(x, y)
        return tuple(int(255 * min(1, max(0, v))) for v in (0.2 + 0.8 * max(1 - 2 * a, r - 0.6), 0.1 + 0.7 * max(1 - 3 * a, 0), 0.35 * (1 - a) + 0.1))

    def data(x, y):
        r, a = arms(x, y)
        return tuple(int(255 * min(1, max(0, v))) for v in (0.2 + 0.8 * max(1 - 2 * a, 0) * (r < 0.75), 0.1 + 0.7 * max(1 - 3 * a, 0) * (r < 0.75), 0.15))

    def knowledge(x, y):
        r, _ = arms(x, y)
        return tuple(int(255 * min(1, max(0, v))) for v in (0.2 + max(0, r - 0.7), 0.1 + max(0, r - 0.8), 0.15))

    pictures = {"extent": [-12.0, 12.0, -12.0, 12.0], "max": [1.0986, 0.98, 0.41]}
    for kind, pixel in [("total", total), ("data", data), ("knowledge", knowledge)]:
        pictures[kind] = f"pictures/map-{kind}.png"
        png(os.path.join(OUT, "spiral", pictures[kind]), 64, 64, pixel, 3)
    return pictures


def regression(rng):
    level = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95]
    edges = sigs([0.02 * i for i in range(21)])
    return {"run": "runs/houses", "arch": "mlp:50", "student": "single", "method": "train", "task": "regression", "members": 5, "parameters": 13010, "flops": 25500,
            "training_seconds": 12.5, "infer_seconds": 0.01, "data": "csv:houses.csv", "data_hash": "77aa", "command": "retort eval runs/houses --data csv:houses.csv",
            "sets": {"test": {"rows": 51, "nll": 2.41, "rmse": 2.93, "total_variance": 9.1, "data_variance": 7.7, "knowledge_variance": 1.4, "interval": {"nll": [2.2, 2.7], "rmse": [2.3, 3.6]}}},
            "curves": {"intervals": {"level": level, "coverage": sigs([min(1, x + 0.05 * math.sin(math.pi * x)) for x in level])},
                       "histogram": {"total_variance": {"edges": edges, "test": histogram(rng, edges, 51, 0.1, 0.1)}}}}


RUNS = {
    "teacher": {"accuracy": 0.8967, "ece": 0.0121, "mi": 0.058, "members": 4, "prr": 0.774, "ood": 0.921, "fragile": 1.0, "bump": 1.6, "arch": "mlp:200,200", "kind": "single",
                "method": "train", "parameters": 796840, "flops": 1591200, "seconds": 21.84},
    "latent-be": {"accuracy": 0.8921, "ece": 0.0193, "mi": 0.041, "members": 1, "prr": 0.752, "ood": 0.894, "fragile": 1.08, "bump": 0.1, "arch": "mlp:200,200",
                  "kind": "latent-be:4", "method": "latent-be", "parameters": 199210, "flops": 397800, "seconds": 64.02, "student": True},
    "hydra": {"accuracy": 0.8893, "ece": 0.0274, "mi": 0.044, "members": 4, "prr": 0.741, "ood": 0.903, "fragile": 1.15, "bump": 0.4, "arch": "mlp:200,200", "kind": "hydra:4",
              "method": "hydra", "parameters": 322840, "flops": 645200, "seconds": 33.4, "student": True},
}


def main():
    rng = Random(1)
    for name, q in RUNS.items():
        e = evaluation(name, q, rng)
        distil = "student" in q
        config = {"data": "fashion-mnist", "arch": q["arch"], "student": q["kind"], "epochs": 6, "lr": 0.05, "seed": 1}
        if distil:
            config.update({"teacher": "runs/teacher", "method": q["method"]})
        write(name, {**trained(q, 12), "evaluation": e}, log(rng, 12, 0.33, q["accuracy"], distil, name == "latent-be"), config)
    write("unfinished", None, log(rng, 5, 0.4, 0.86, finished=False), {"data": "fashion-mnist", "arch": "mlp:100", "epochs": 40})
    write("merged", {"retort": "0.1.0", "average": average()}, None, {"data": "fashion-mnist", "arch": "mlp:200,200"})
    q = {"members": 8, "parameters": 87224, "seconds": 4.2, "accuracy": 0.93}
    write("spiral", {**trained(q, 30), "evaluation": {"run": "runs/spiral", "arch": "mlp:100", "student": "single", "method": "train", "task": "classification", "members": 8,
          "parameters": 87224, "flops": 170000, "training_seconds": 4.2, "infer_seconds": 0.02, "data": "spiral", "data_hash": "99ab", "classes": ["0", "1", "2"],
          "command": "retort eval runs/spiral --data spiral", "sets": {"test": {"rows": 1000, "accuracy": 0.934, "nll": 0.181, "interval": {"accuracy": [0.918, 0.949]}}},
          "curves": {}, "pictures": {"map": spiral()}}}, log(rng, 30, 0.2, 0.93), {"data": "spiral", "arch": "mlp:100", "members": 8})
    write("houses", {"retort": "0.1.0", "task": "regression", "members": 5, "epochs": 40, "seconds": 12.5, "evaluation": regression(rng)}, None, {"data": "csv:houses.csv"})


main()
