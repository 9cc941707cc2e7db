#!/usr/bin/python3
"""Promises of `calibrate` over twenty draws of the rows they are fitted on, each judged on new rows; prints TAP.

Sets and intervals fitted on n rows hold the truth of a new row with probability 1 - a, over both draws; given the n rows their
coverage is Beta distributed, so the share seen on t new rows has variance about a (1 - a) (1 / (n + 2) + 1 / t). The mean of
twenty draws and each of them must lie within bounds that chance breaks once in some ten thousand tests. The risk of what is
answered may pass its bound in a share delta of draws.
"""
import os
import tempfile

import numpy as np

import retort
from retort import Data, Model
from tap import finish, ok

SPLITS, FIT, NEW, ALPHA = 20, 400, 3000, 0.1

def classes(n, g):
    y = g.integers(0, 3, n).astype(np.int32)
    return (np.c_[np.cos(y * 2.1), np.sin(y * 2.1)] * 1.5 + g.normal(size=(n, 2))).astype(np.float32), y


def numbers(n, g):
    x = g.uniform(-3, 3, (n, 1)).astype(np.float32)
    return x, (np.sin(2 * x[:, 0]) + g.normal(size=n) * (0.1 + 0.2 * np.abs(x[:, 0]))).astype(np.float32)


def judge(shares, wanted, fit, what):
    """Is each share, and their mean, where a promise of `wanted` puts it?"""
    sd = np.sqrt(wanted * (1 - wanted) * (1 / (fit + 2) + 1 / NEW))
    mean = np.mean(shares)
    # a quantile is a row: the promise is kept from above by at most one row
    low, high = wanted - 4 * sd / np.sqrt(SPLITS), wanted + 1 / (fit + 1) + 4 * sd / np.sqrt(SPLITS)
    ok(low <= mean <= high and np.all(np.abs(shares - wanted) < 5 * sd + 1 / fit),
       f"{what}: {100 * wanted:.0f} % promised, {100 * mean:.2f} % of new rows, from {100 * min(shares):.1f} to {100 * max(shares):.1f}")


def draws(make, run, use, **rules):
    """use(model, x, y) for each draw of rows to fit on and new rows."""
    out = []
    for i in range(SPLITS):
        g = np.random.default_rng(100 + i)
        x, y = make(FIT, g)
        retort.calibrate(run, Data(x, y, holdout=1, classes=3 if y.dtype.kind == "i" else None), scale_by="none", **rules)
        out.append(use(Model.load(run), *make(NEW, g)))
    return np.array(out)


def main():
    g = np.random.default_rng(1)
    x, y = classes(1500, g)
    retort.train(Data(x, y, holdout=0), arch="mlp:32", members=3, epochs=40, out="c")
    for kind in ("lac", "aps"):
        held = draws(classes, "c", lambda m, x, y: m.run(x, "set")["set"][np.arange(len(y)), y].mean(), conformal=f"alpha={ALPHA},{kind}")
        if kind == "lac":
            judge(held, 1 - ALPHA, FIT, "sets (lac)")
        else:  # the top class is always in: more may be held, never less
            ok(held.mean() >= 1 - ALPHA - 4 * np.sqrt(ALPHA / FIT / SPLITS), f"sets (aps): at least 90 % promised, {100 * held.mean():.2f} %")
    for measure in ("entropy", "mutual_information", "confidence"):
        judge(draws(classes, "c", lambda m, x, y: 1 - m.run(x, "reject")["reject"].mean(), reject="coverage=0.8", measure=measure), 0.8, FIT,
              f"coverage by {measure}")

    def risk(m, x, y):
        a = m.run(x, "label", "reject")
        kept = ~a["reject"]
        return np.mean(a["label"][kept] != y[kept]), kept.mean()
    risks = draws(classes, "c", risk, reject="risk=0.1", delta=0.05)
    over = int(np.sum(risks[:, 0] - 3 * np.sqrt(0.1 * 0.9 / NEW) > 0.1))
    ok(over <= 4 and risks[:, 1].min() > 0.05, f"risk of 10 %: passed in {over} of {SPLITS} draws (one is allowed on average), "
       f"mean risk {100 * risks[:, 0].mean():.1f} %, {100 * risks[:, 1].mean():.0f} % answered")
    x, y = numbers(1500, g)
    retort.train(Data(x, y, holdout=0), arch="mlp:32", members=3, epochs=60, out="r")

    def inside(m, x, y):
        a = m.run(x, "lower", "upper")
        return np.mean((a["lower"] <= y) & (y <= a["upper"]))
    judge(draws(numbers, "r", inside, conformal=f"alpha={ALPHA}"), 1 - ALPHA, FIT, "intervals of a regression")
    # what breaks the promise: rows from elsewhere
    g = np.random.default_rng(9)
    x, y = numbers(NEW, g)
    ok(inside(Model.load("r"), x, y + 1.5) < 0.8, "targets that have moved are outside: shift breaks the promise")


with tempfile.TemporaryDirectory() as d:
    os.chdir(d)
    main()
    os.chdir("/")
finish()
