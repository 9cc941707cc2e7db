#!/usr/bin/python3
"""Losses and gradients of BatchEnsemble students, from PyTorch in double: writes students.txt for test_students.c.

Members are computed one by one with explicit weights W o s_m r_m^T, which is not how the library does it. Parameters, inputs
and test directions are a hash of (name, element), so that no arrays need to be stored; of every gradient its norm and two
projections are written.

    python3 students.py > students.txt
"""
import numpy as np
import torch
import torch.nn.functional as F

torch.set_default_dtype(torch.float64)


def uniform(name, n):
    h = 2166136261
    for c in name.encode():
        h = (h ^ c) * 16777619 & 0xFFFFFFFF
    x = (np.arange(1, n + 1, dtype=np.uint64) * 2654435761 & 0xFFFFFFFF) ^ h
    x ^= x >> 15
    x = x * 2246822519 & 0xFFFFFFFF
    x ^= x >> 13
    x = x * 3266489917 & 0xFFFFFFFF
    x ^= x >> 16
    return x.astype(np.float64) / 4294967296.0


class Student:
    """Parameters are made on first use, in the order the network asks for them."""

    def __init__(self, members, shared_bias, member_bn):
        self.members, self.shared_bias, self.member_bn = members, shared_bias, member_bn
        self.p, self.updates = {}, {}

    def param(self, name, shape, centre, width, train=True):
        if name not in self.p:
            v = centre + width * (uniform(name, int(np.prod(shape))) - 0.5)
            self.p[name] = torch.tensor(v.reshape(shape), requires_grad=train)
        return self.p[name]

    def layer(self, name, xs, out, op, window, bias):
        """xs: one batch per member."""
        ic = xs[0].shape[1]
        shape = (out, ic) + window
        w = self.param(name + ".weight", shape, 0, 3.4 / np.sqrt(np.prod(shape[1:])))
        m = self.members
        ones = (1,) * len(window)
        b = None
        if m == 1:
            r = s = None
        else:
            r = self.param(name + ".r", (m, ic), 1, 0.6)
            s = self.param(name + ".s", (m, out), 1, 0.6)
        if bias:
            b = self.param(name + ".bias", (out,) if m == 1 or self.shared_bias else (m, out), 0, 0.4)
        ys = []
        for i, x in enumerate(xs):
            wi = w if m == 1 else w * s[i].reshape((-1, 1) + ones) * r[i].reshape((1, -1) + ones)
            y = op(x, wi)
            if b is not None:
                bi = b if m == 1 else b * s[i] if self.shared_bias else b[i]
                y = y + bi.reshape((1, -1) + (1,) * (y.dim() - 2))
            ys.append(y)
        return ys

    def linear(self, name, xs, out):
        return self.layer(name, xs, out, lambda x, w: x @ w.T, (), True)

    def conv(self, name, xs, out, k, stride):
        return self.layer(name, xs, out, lambda x, w: F.conv2d(x, w, stride=stride, padding=k // 2), (k, k), False)

    def norm(self, name, xs):
        c = xs[0].shape[1]
        own = self.member_bn and self.members > 1
        shape = (self.members, c) if own else (c,)
        g = self.param(name + ".weight", shape, 1, 0.6)
        b = self.param(name + ".bias", shape, 0, 0.4)
        mean = self.param(name + ".running_mean", shape, 0, 0.2, False).clone()
        var = self.param(name + ".running_var", shape, 1, 0.5, False).clone()
        if own:
            ys = [F.batch_norm(x, mean[i], var[i], g[i], b[i], True, 0.1, 1e-5) for i, x in enumerate(xs)]
        else:
            y = F.batch_norm(torch.cat(xs), mean, var, g, b, True, 0.1, 1e-5)
            ys = list(torch.chunk(y, len(xs)))
        self.updates[name + ".running_mean"], self.updates[name + ".running_var"] = mean, var
        return ys


def relu(xs):
    return [F.relu(x) for x in xs]


def mlp(s, xs, widths, outputs):
    xs = [x.flatten(1) for x in xs]
    for i, w in enumerate(widths):
        xs = relu(s.linear(f"layers.{i}", xs, w))
    return s.linear(f"layers.{len(widths)}", xs, outputs)


def wrn10(s, xs, outputs):
    xs = s.conv("conv1", xs, 16, 3, 1)
    for i in range(3):
        width, stride, n = 16 << i, 2 if i else 1, f"layer{i + 1}.0"
        y = s.conv(n + ".conv1", relu(s.norm(n + ".bn1", xs)), width, 3, stride)
        y = s.conv(n + ".conv2", relu(s.norm(n + ".bn2", y)), width, 3, 1)
        short = xs if i == 0 else s.conv(n + ".shortcut", xs, width, 1, stride)
        xs = [a + b for a, b in zip(y, short)]
    xs = [x.mean((2, 3)) for x in relu(s.norm("bn", xs))]
    return s.linear("fc", xs, outputs)


def describe(kind, name, v):
    v = v.detach().numpy().ravel()
    dots = [float(v @ (uniform(f"{d}:{name}", v.size) - 0.5)) for d in "ab"]
    print(f"{kind} {name} {np.linalg.norm(v):.17g} {dots[0]:.17g} {dots[1]:.17g}")


CASES = [
    # name, members, LatentBE's bias, BN per member, rows, input, network
    ("mlp-be", 3, False, False, 5, (6,), lambda s, x: mlp(s, x, (8, 7), 4)),
    ("mlp-latent", 3, True, False, 5, (6,), lambda s, x: mlp(s, x, (8, 7), 4)),
    ("wrn-be", 2, False, False, 3, (3, 8, 8), lambda s, x: wrn10(s, x, 4)),
    ("wrn-be-bn", 2, False, True, 3, (3, 8, 8), lambda s, x: wrn10(s, x, 4)),
    ("wrn-latent", 2, True, False, 3, (3, 8, 8), lambda s, x: wrn10(s, x, 4)),
]

for case, members, shared, own_bn, rows, shape, net in CASES:
    x = torch.tensor(uniform("x", rows * int(np.prod(shape))).reshape((rows,) + shape))
    y = torch.tensor([i * 7 % 4 for i in range(rows)])
    s = Student(members, shared, own_bn)
    zs = net(s, [x] * members)
    loss = F.cross_entropy(torch.cat(zs), y.repeat(members))
    loss.backward()
    print(f"case {case}")
    print(f"loss loss {loss.item():.17g} 0 0")
    describe("logits", "logits", torch.cat(zs))
    for name, p in s.p.items():
        if p.requires_grad:
            describe("grad", name, p.grad)
    for name, v in s.updates.items():
        describe("update", name, v)
