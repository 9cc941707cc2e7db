#!/usr/bin/python3
"""Losses and gradients of the distillation objectives and directions of the perturbations, by PyTorch in double.

    objectives.py > objectives.txt        writes the numbers that test_objectives.c and test_perturbs.c read
    objectives.py --check objectives.txt  recomputes them and compares

Everything is written from the formulas of the papers, with autograd, torch.distributions and an exact solver for the
weights of AE-KD; nothing is shared with the C code. Inputs are multiples of 1/1024: exact in float32.
"""
import itertools
import sys

import numpy as np
import torch
from mpmath import mp
from torch.distributions import Dirichlet, Normal, kl_divergence

torch.set_default_dtype(torch.float64)
mp.dps = 40
FLT_EPSILON = float(np.finfo(np.float32).eps)


def exact(a):
    return torch.tensor(np.round(np.asarray(a) * 1024) / 1024)


def softmax(z, temperature):
    return torch.softmax(z / temperature, -1)


def cross_entropy(target, z):
    return -(target * torch.log_softmax(z, -1)).sum(-1)


# ---- objectives; student (Ms, n, K), teacher (Mt, n, K), label (n) -------------------------------------------------


def labels(c, student):
    if c["regression"]:
        mu, v = student[..., 0], student[..., 1].clamp(-10, 10)
        return -Normal(mu, torch.exp(v / 2)).log_prob(c["target"]).mean()
    k = student.shape[-1]
    onehot = torch.nn.functional.one_hot(c["label"], k).to(student.dtype)
    target = (1 - c["smoothing"]) * onehot + c["smoothing"] / k
    return cross_entropy(target, student).mean()


def kd(c, student):
    t = c["T"]
    return t**2 * cross_entropy(softmax(c["teacher"], t).mean(0), student / t).mean()


def one_to_one(c, student):
    t = c["T"]
    return t**2 * cross_entropy(softmax(c["teacher"], t), student / t).mean()


def capped_simplex(v, cap):
    """argmin |w' v|^2, sum w = 1, 0 <= w <= cap: every choice of weights at 0 and at cap, the others by their linear
    system. Returns the best one, and whether it is the only one."""
    m = len(v)
    cap = min(max(cap, 1 / m), 1)
    gram = v @ v.T
    found = []
    for kinds in itertools.product((0, 1, 2), repeat=m):  # at 0, at cap, free
        free = [i for i in range(m) if kinds[i] == 2]
        w = np.array([cap if k == 1 else 0.0 for k in kinds])
        left = 1 - w.sum()
        if free:
            a = np.zeros((len(free) + 1, len(free) + 1))
            a[:-1, :-1] = gram[np.ix_(free, free)]
            a[:-1, -1] = a[-1, :-1] = 1
            b = np.append(-(gram @ w)[free], left)
            if np.linalg.cond(a) > 1e11:
                continue
            w[free] = np.linalg.solve(a, b)[:-1]
        elif abs(left) > 1e-12:
            continue
        if (w >= -1e-12).all() and (w <= cap + 1e-12).all():
            found.append((w @ gram @ w, w))
    best = min(found, key=lambda f: f[0])
    near = [w for value, w in found if value <= best[0] + 1e-9 * abs(best[0]) + 1e-18]
    return best[1], all(np.abs(w - best[1]).max() < 1e-6 for w in near)


def ae_kd(c, student):
    t = c["T"]
    ps, pt = softmax(student[0], t), softmax(c["teacher"], t)
    v = (ps - pt).detach().numpy()  # (M, n, K)
    if c["per_sample"]:
        w = np.stack([weights(c, v[:, i]) for i in range(v.shape[1])], 1)
    else:
        w = weights(c, v.mean(1))[:, None]
    target = (torch.tensor(w)[..., None] * pt).sum(0)
    return t**2 * cross_entropy(target, student[0] / t).mean()


def weights(c, v):
    same = (v == v[0]).all()
    w, unique = capped_simplex(v, c["ae_c"])
    assert unique or same, f"weights of {c['name']} are not unique: choose other inputs"
    return np.full(len(v), 1 / len(v)) if same else w


def concentration(c, z):
    return torch.exp(z.clamp(-30, 30)) + c["offset"]


def beyond(z):
    """What the way beyond the cut costs a row: 1 for each unit of a logit, which leads back."""
    return torch.where(z.abs() > 30, z.abs() - 30, torch.zeros_like(z)).sum(-1)


def end2(c, student):
    t, k = c["T"], student.shape[-1]
    pi = (1 - c["gamma"]) * softmax(c["teacher"], t) + c["gamma"] / k
    a = concentration(c, student / t)
    per = torch.lgamma(a).sum(-1) - torch.lgamma(a.sum(-1)) - ((a - 1) * torch.log(pi).mean(0)).sum(-1)
    return t**2 * (per + beyond(student / t)).mean()


def proxy_end2(c, student):
    logp = torch.log_softmax(c["teacher"], -1)
    q = logp.exp().mean(0)
    spread = (torch.special.xlogy(q, q) - q * logp.mean(0)).sum(-1).clamp(min=0)
    b = q * ((q.shape[-1] - 1) / (2 * spread + FLT_EPSILON))[:, None] + c["offset"]
    kl = kl_divergence(Dirichlet(concentration(c, student)), Dirichlet(b.expand_as(student)))
    return ((kl + beyond(student)) / b.sum(-1)).mean()


def proxy_end2_exact(c):
    """The same in 40 digits, gradient by differences: large concentrations cost the formula in double ten digits."""

    def proxy(teacher):  # (M, K)
        logp = [[x - mp.log(sum(map(mp.exp, z))) for x in z] for z in teacher]
        q = [sum(mp.exp(row[i]) for row in logp) / len(logp) for i in range(k)]
        spread = sum(q[i] * (mp.log(q[i]) - sum(row[i] for row in logp) / len(logp)) for i in range(k))
        return [x * (k - 1) / (2 * spread + mp.mpf(FLT_EPSILON)) + c["offset"] for x in q]

    def loss(b, *z):
        a = [mp.exp(min(max(x, -30), 30)) + c["offset"] for x in z]
        a0, b0 = sum(a), sum(b)
        kl = mp.loggamma(a0) - mp.loggamma(b0) + sum(max(abs(x) - 30, 0) for x in z)
        for x, y in zip(a, b):
            kl += mp.loggamma(y) - mp.loggamma(x) + (x - y) * (mp.psi(0, x) - mp.psi(0, a0))
        return kl / b0

    n, k = c["student"].shape[1:]
    total, grad = mp.mpf(0), torch.zeros_like(c["student"])
    for r in range(n):
        z = [mp.mpf(x) for x in c["student"][0, r].tolist()]
        b = proxy([[mp.mpf(x) for x in row] for row in c["teacher"][:, r].tolist()])
        total += loss(b, *z) / n
        for i in range(k):
            grad[0, r, i] = float(mp.diff(lambda x: loss(b, *z[:i], x, *z[i + 1 :]), z[i]) / n)
    return torch.tensor(float(total)), grad


def prior_net(c, student):
    k = student.shape[-1]
    sharp = 1 + c["prior"] * torch.nn.functional.one_hot(c["label"], k).to(student.dtype)
    known = kl_divergence(Dirichlet(concentration(c, student)), Dirichlet(sharp.expand_as(student)))
    foreign = kl_divergence(Dirichlet(concentration(c, c["ood"])), Dirichlet(torch.ones_like(c["ood"])))
    known, foreign = (known + beyond(student)).mean(), (foreign + beyond(c["ood"])).mean()
    return (known + c["ood_weight"] * foreign) / c["prior"]


def gaussian(mean, var, student):
    mu, v = student[..., 0], student[..., 1].clamp(-10, 10)
    target = Normal(mean, torch.sqrt(var))
    return target.entropy() + kl_divergence(target, Normal(mu, torch.exp(v / 2)))


def gaussian_one_to_one(c, student):
    t = c["teacher"]
    return gaussian(t[..., 0], t[..., 1].clamp(-10, 10).exp(), student).mean()


def gaussian_kd(c, student):
    t = c["teacher"]
    pairs = [gaussian(t[m, :, 0], t[m, :, 1].clamp(-10, 10).exp(), s) for m in range(len(t)) for s in student]
    return torch.stack(pairs).mean()


OBJECTIVES = {
    "labels": labels,
    "kd": kd,
    "one-to-one": one_to_one,
    "ae-kd": ae_kd,
    "end2": end2,
    "proxy-end2": proxy_end2,
    "prior-net": prior_net,
    "gaussian-kd": gaussian_kd,
    "gaussian-one-to-one": gaussian_one_to_one,
}


def case(name, k, n=4, ms=1, mt=1, spread=1.5, same=False, tilt=0.0, seed=0, **options):
    """tilt: how far the student's first logit lies above those of the teachers, which makes AE-KD's weights unique."""
    rng = np.random.default_rng([seed, len(name), k, ms, mt, int(spread * 10)])
    c = {"name": name, "regression": name.startswith("gaussian"), "T": 1.0, "alpha": 1.0, "smoothing": 0.0, "gamma": 1e-4}
    c.update(ae_c=0.6, per_sample=False, prior=100.0, ood_weight=1.0, offset=1.0 if name == "proxy-end2" else 0.0)
    c.update(options)
    if c["regression"]:
        k = 2
    base = rng.normal(size=(1, n, k)) * spread
    c["teacher"] = exact(base + (0 if same else 1) * rng.normal(size=(mt, n, k)) * spread / 2)
    c["student"] = exact(rng.normal(size=(ms, n, k)) * spread + tilt * (np.arange(k) == 0))
    c["ood"] = exact(rng.normal(size=(1, n, k)) * spread)
    c["label"] = torch.tensor(rng.integers(0, max(k, 2), size=n))
    c["target"] = exact(rng.normal(size=n))
    return c


def cases():
    for k in (2, 3, 10):
        for t in (1.0, 4.0):
            for alpha in (1.0, 0.3):
                yield case("kd", k, ms=2, mt=4, T=t, alpha=alpha, seed=1)
                yield case("one-to-one", k, ms=2, mt=2, T=t, alpha=alpha, seed=2)
                yield case("ae-kd", k, mt=2, T=t, alpha=alpha, tilt=3, seed=3)
                yield case("end2", k, mt=4, T=t, alpha=alpha, seed=4)
                yield case("kd", k, mt=1, T=t, alpha=alpha, smoothing=0.1, seed=5)
        yield case("labels", k, ms=2, mt=1, smoothing=0.1)
        yield case("proxy-end2", k, mt=4, seed=6)
        yield case("proxy-end2", k, mt=2, alpha=0.3, seed=6)
        yield case("proxy-end2", k, mt=4, same=True, seed=6)
        yield case("prior-net", k, seed=7)
        yield case("prior-net", k, alpha=0.3, prior=10.0, ood_weight=0.5, offset=1.0, seed=7)
        yield case("one-to-one", k, ms=4, mt=4, T=4.0, same=True)
        yield case("one-to-one", k, ms=1, mt=1, spread=40.0)
        yield case("kd", k, ms=1, mt=2, spread=40.0)
        yield case("kd", k, ms=1, mt=2, T=50.0)
        yield case("end2", k, mt=1, T=10.0)
        yield case("end2", k, mt=4, spread=20.0)
        yield case("end2", k, mt=2, spread=5.0, offset=1.0)
        yield case("end2", k, mt=2, T=2.0, gamma=0.0, same=True)
        yield case("proxy-end2", k, mt=2, spread=3.0)
        yield case("proxy-end2", k, mt=2, spread=20.0, seed=19)
        yield case("prior-net", k, spread=4.0)
    yield case("ae-kd", 3, mt=4, T=4.0, tilt=6, seed=8)
    yield case("ae-kd", 10, mt=4, T=4.0, tilt=6, seed=9)
    yield case("ae-kd", 10, mt=4, T=1.0, tilt=6, ae_c=1.0, seed=10)
    yield case("ae-kd", 10, mt=4, T=1.0, tilt=6, ae_c=0.25, seed=10)
    yield case("ae-kd", 10, mt=4, T=2.0, tilt=6, per_sample=True, seed=11)
    yield case("ae-kd", 3, mt=2, T=2.0, tilt=6, per_sample=True, alpha=0.3, seed=12)
    yield case("ae-kd", 3, mt=4, T=2.0, same=True, seed=13)
    for ms, mt in ((1, 1), (1, 4), (4, 4), (4, 2)):
        for alpha in (1.0, 0.3):
            yield case("gaussian-kd", 2, ms=ms, mt=mt, alpha=alpha, seed=14)
            if ms == mt:
                yield case("gaussian-one-to-one", 2, ms=ms, mt=mt, alpha=alpha, seed=15)
    yield case("gaussian-kd", 2, ms=2, mt=3, same=True, seed=16)
    yield case("gaussian-kd", 2, ms=2, mt=3, spread=8.0, seed=17)
    yield case("labels", 2, ms=3, regression=True, seed=18)


# ---- perturbations, on a net of one hidden layer -------------------------------------------------------------------


# The uniform weights of ODS as the library draws them for seed 5, stream 1, step 2 (test_perturbs.c compares them).
ODS_WEIGHTS = (
    -0.2445743084241967, -0.10692508078140639, -0.8382847477913662,
    0.5240817681828833, -0.788278039406654, -0.8790984096942607,
    0.8689239221945195, -0.2931532092860205, 0.5962900987995787,
    -0.39771261427092375, 0.14353819342734386, 0.6486873513904461,
)


def net(p, x):
    return torch.tanh(x @ p[0].T) @ p[1].T


def step(g, size):
    norm = g.norm(dim=1, keepdim=True).clamp(min=1e-12)
    return g / norm * size * np.sqrt(g.shape[1])


def perturbations():
    rng = np.random.default_rng(77)
    n, d, h, k = 4, 12, 6, 3
    x = exact(0.1 + 0.8 * rng.random((n, d)))
    nets = [(exact(rng.normal(size=(h, d))), exact(rng.normal(size=(k, h)))) for _ in range(4)]  # teacher i, j, student i, j
    w = torch.tensor(ODS_WEIGHTS).reshape(n, k)
    out = {"x": x, "w": w}
    for i, p in enumerate(nets):
        out[f"first{i}"], out[f"second{i}"] = p
    size, t = 1 / 255, 2.0

    def gradient(f):
        v = x.clone().requires_grad_(True)
        (g,) = torch.autograd.grad(f(v), v)
        return g

    def div(v, a, b):
        return cross_entropy(torch.softmax(net(nets[b], v), -1).detach(), net(nets[a], v)).mean()

    out["ods"] = step(gradient(lambda v: (w * softmax(net(nets[0], v), t)).sum()), size)
    out["conf-ods"] = out["ods"] * softmax(net(nets[0], x), t).max(1, keepdim=True).values
    out["tdiv"] = step(gradient(lambda v: div(v, 0, 1)), size)
    out["tdiv-sdiv"] = step(gradient(lambda v: div(v, 0, 1) - div(v, 2, 3)), size)
    return out


# ---- output --------------------------------------------------------------------------------------------------------


def numbers(a):
    return " ".join(repr(float(v)) for v in torch.as_tensor(a, dtype=torch.float64).reshape(-1))


def emit(key, a):
    return f"{key} {torch.as_tensor(a).numel()} {numbers(a)}"


def lines():
    yield "# Written by objectives.py. Rows are member-major. A line is a name, a count and that many numbers."
    for c in cases():
        student = c["student"].clone().requires_grad_(True)
        ood = c["ood"].clone().requires_grad_(True)
        c["ood"] = ood
        loss = OBJECTIVES[c["name"]](c, student)
        if c["alpha"] != 1:
            loss = c["alpha"] * loss + (1 - c["alpha"]) * labels(c, student)
        grad, dood = torch.autograd.grad(loss, (student, ood), allow_unused=True)
        if c["name"] == "proxy-end2" and c["student"].abs().max() > 15:
            loss, grad = proxy_end2_exact(c)
        yield f"case {c['name']}"
        shape = [student.shape[1], student.shape[2], student.shape[0], c["teacher"].shape[0]]
        yield emit("shape", shape)
        keys = ("T", "alpha", "smoothing", "gamma", "ae_c", "per_sample", "prior", "ood_weight", "offset", "regression")
        yield emit("options", [float(c[key]) for key in keys])
        yield emit("student", c["student"])
        yield emit("teacher", c["teacher"])
        yield emit("label", c["target"] if c["regression"] else c["label"])
        if dood is not None:
            yield emit("ood", ood.detach())
            yield emit("ood_grad", dood)
        yield emit("loss", loss.detach())
        yield emit("grad", grad)
        yield "end"
    yield "case perturbations"
    for key, a in perturbations().items():
        yield emit(key, a)
    yield "end"


def check(path):
    want = open(path).read().splitlines()
    got = list(lines())
    if len(want) != len(got):
        sys.exit(f"{path}: {len(want)} lines, wanted {len(got)}")
    for number, (a, b) in enumerate(zip(want, got), 1):
        x, y = a.split(), b.split()
        if x[:2] != y[:2] or len(x) != len(y):
            sys.exit(f"{path}:{number}: '{a[:60]}', wanted '{b[:60]}'")
        if b.startswith(("#", "case")):
            continue
        u, v = np.array(x[2:], dtype=float), np.array(y[2:], dtype=float)
        if len(u) and np.abs(u - v).max() > 1e-10 * max(1, np.abs(v).max()):
            sys.exit(f"{path}:{number}: {x[0]} differs by {np.abs(u - v).max():.3g}")
    print(f"{path}: {len(got)} lines agree")


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[1] == "--check":
        check(sys.argv[2])
    else:
        print("\n".join(lines()))
