#!/usr/bin/python3
"""Metrics of small random predictions, by NumPy and SciPy in double.

    metrics.py > metrics.txt        writes the numbers that test_metrics_golden.c reads
    metrics.py --check metrics.txt  recomputes them and compares

Written from the definitions; nothing is shared with the C code. AUROC is scipy's Mann-Whitney statistic, the
temperature scipy's bounded minimum, densities and distribution functions scipy.stats. Inputs are multiples of 1/64:
exact in float32.
"""
import sys

import numpy as np
from scipy import integrate, optimize, special, stats


def exact(a):
    return np.round(np.asarray(a) * 64) / 64


def entropy(p):
    return special.entr(p).sum(-1)


def ece(p, y, bins=15):
    conf, right = p.max(1), p.argmax(1) == y
    edges = np.arange(bins + 1) / bins
    total = 0
    for lo, hi in zip(edges[:-1], edges[1:]):
        inside = (conf > lo) & (conf <= hi)
        total += abs((right[inside] * 1.0 - conf[inside]).sum())
    return total / len(y)


def tempered(p, tau):
    return special.softmax(np.log(p) / tau, -1)


def nll(p, y):
    return -np.log(p[np.arange(len(y)), y]).mean()


def auroc(score, positive):
    a, b = score[positive], score[~positive]
    return stats.mannwhitneyu(a, b).statistic / (len(a) * len(b))


def aupr(score, positive):
    recall, precision = [0.0], [1.0]
    for t in np.unique(score)[::-1]:
        chosen = score >= t
        recall.append((chosen & positive).sum() / positive.sum())
        precision.append((chosen & positive).sum() / chosen.sum())
    return integrate.trapezoid(precision, recall)


def members(z):
    """Ensemble of softmaxes: mean prediction, expected entropy, mutual information, pairwise KL (1/M^2)."""
    q = special.softmax(z, -1)
    p = q.mean(1)
    data = entropy(q).mean(1)
    kl = special.rel_entr(q[:, :, None], q[:, None]).sum(-1).mean((1, 2))
    return p, data, entropy(p) - data, kl


def dirichlets(z, offset):
    """Mixture of Dirichlets: E KL of two draws = sum_c E[p ln p] - E[p] E[ln p]."""
    a = np.exp(z) + offset
    a0 = a.sum(-1, keepdims=True)
    pi = a / a0
    p = pi.mean(1)
    p_ln_p = pi * (special.psi(a + 1) - special.psi(a0 + 1))
    ln_p = special.psi(a) - special.psi(a0)
    data = -p_ln_p.sum(-1).mean(1)
    return p, data, entropy(p) - data, (p_ln_p.mean(1) - p * ln_p.mean(1)).sum(-1)


def classification(rng, n, m, k, offset, spread):
    y = rng.integers(k, size=n)
    z = exact(spread * rng.normal(size=(n, 1, k)) + 0.5 * spread * rng.normal(size=(n, m, k)))
    z[np.arange(n), :, y] += 1
    p, data, knowledge, epkl = members(z) if offset is None else dirichlets(z, offset)
    best = optimize.minimize_scalar(
        lambda s: nll(tempered(p, np.exp(s)), y), bounds=(-4, 4), method="bounded", options={"xatol": 1e-10})
    tau = np.exp(best.x)
    q = tempered(p, tau)
    wrong = p.argmax(1) != y
    scores = {"confidence": 1 - p.max(1), "entropy": entropy(p), "expected_entropy": data}
    if m > 1 or offset is not None:
        scores |= {"mutual_information": knowledge, "epkl": epkl}
    if m == 1 and offset is not None:
        scores["differential_entropy"] = np.array([stats.dirichlet(np.exp(row) + offset).entropy() for row in z[:, 0]])
    out = {
        "shape": [n, m, k, -1 if offset is None else offset],
        "logits": z,
        "label": y,
        "accuracy": 1 - wrong.mean(),
        "nll": nll(p, y),
        "brier": ((p - np.eye(k)[y]) ** 2).sum(1).mean(),
        "ece": ece(p, y),
        "temperature": tau,
        "nll_calibrated": nll(q, y),
        "ece_calibrated": ece(q, y),
        "prr": 2 * auroc(scores["confidence"], wrong) - 1,
    }
    if offset:
        softmax = members(z)[0]
        out |= {"nll_softmax": nll(softmax, y), "ece_softmax": ece(softmax, y)}
    for name, s in scores.items():
        if name != "confidence":
            out[name] = s.mean()
        out["auroc:" + name] = auroc(s, wrong)
        out["aupr:" + name] = aupr(s, wrong)
    return out


def regression(rng, n, m):
    mu, var = exact(rng.normal(size=(n, m))), exact(0.25 + rng.random(size=(n, m)))
    y = exact(1.3 * rng.normal(size=n))
    normal = stats.norm(mu, np.sqrt(var))
    levels = np.append(np.arange(1, 10) / 10, 0.95)
    far = 2 * abs(normal.cdf(y[:, None]).mean(1) - 0.5)
    coverage = (far[:, None] <= levels).mean(0)
    return {
        "shape": [n, m, 0, 0],
        "mu": mu,
        "var": var,
        "target": y,
        "nll": -np.log(normal.pdf(y[:, None]).mean(1)).mean(),
        "rmse": np.sqrt(((mu.mean(1) - y) ** 2).mean()),
        "total_variance": (var.mean(1) + mu.var(1)).mean(),
        "data_variance": var.mean(),
        "knowledge_variance": mu.var(1).mean(),
        "interval_error": abs(coverage - levels).mean(),
        "coverage": coverage,
    }


def ties(rng):
    positive = rng.random(80) < 0.4
    score = rng.integers(6, size=80) + 1.0 * positive
    return {"score": score, "positive": positive, "auroc": auroc(score, positive), "aupr": aupr(score, positive)}


def lines():
    rng = np.random.default_rng(2022)
    yield "# Written by metrics.py. A line is a name, a count and that many numbers; logits are (n, m, k)."
    cases = [
        ("classification", classification(rng, 60, 4, 5, None, 1.5)),
        ("classification", classification(rng, 60, 1, 3, None, 3)),
        ("classification", classification(rng, 50, 1, 4, 0, 1.5)),
        ("classification", classification(rng, 40, 3, 4, 1, 1.5)),
        ("classification", classification(rng, 60, 3, 2, None, 1)),
        ("regression", regression(rng, 60, 5)),
        ("regression", regression(rng, 60, 2)),
        ("ties", ties(rng)),
    ]
    for name, case in cases:
        yield f"case {name}"
        for key, a in case.items():
            a = np.asarray(a, dtype=float).ravel()
            yield f"{key} {a.size} {' '.join(repr(float(v)) for v in a)}"
        yield "end"


def check(path):
    want, got = open(path).read().splitlines(), list(lines())
    if len(want) != len(got):
        sys.exit(f"{path}: {len(want)} lines, wanted {len(got)}")
    for number, (a, b) in enumerate(zip(want, got), 1):
        x, y = a.split(), b.split()
        if x[:2] != y[:2] or len(x) != len(y):
            sys.exit(f"{path}:{number}: '{a[:60]}', wanted '{b[:60]}'")
        if b.startswith(("#", "case", "end")):
            continue
        u, v = np.array(x[2:], dtype=float), np.array(y[2:], dtype=float)
        if np.abs(u - v).max() > 1e-7 * max(1, np.abs(v).max()):
            sys.exit(f"{path}:{number}: {x[0]} differs by {np.abs(u - v).max():.3g}")
    print(f"{path}: {len(got)} lines agree")


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[1] == "--check":
        check(sys.argv[2])
    else:
        print("\n".join(lines()))
