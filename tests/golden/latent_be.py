"""Ten steps of LatentBE with TDiv-SDiv in PyTorch, in double: the numbers that test_latent_be.c follows.

    latent_be.py            writes latent_be.txt
    latent_be.py --check    computes them again and compares

Student and teachers are perceptrons 36-12-5. The student's member m computes ((x o r_m) W' + b) o s_m in both layers. A step draws a
pair (i, j), moves the images along the gradient of TDiv - SDiv (cross-entropies at temperature 1, targets without gradient, student
in its present state), of length sqrt(36) / 255, clipped to [0, 1]; the loss is T^2 times the mean cross-entropy of member m to
teacher m at T = 4. SGD with Nesterov momentum; decay 5e-4 to zero, for r and s to one, and their gradient is multiplied by M.
"""
import os
import sys

import numpy as np
import torch
import torch.nn.functional as F

from parity import fnv1a, bits

HERE = os.path.dirname(os.path.abspath(__file__))
FILE = os.path.join(HERE, "latent_be.txt")
M, ROWS, D, H, K, STEPS, T, RATE, DECAY = 3, 8, 36, 12, 5, 10, 4.0, 0.02, 5e-4
PAIRS = [(0, 1), (2, 0), (1, 2), (1, 0), (0, 2), (2, 1), (0, 1), (1, 2), (2, 0), (0, 2)]


def uniform(name, count):
    """In [-0.5, 0.5), the same numbers as the test computes."""
    return torch.tensor((bits(fnv1a(name), count) >> np.uint32(8)).astype(np.float64) / 2.0**24 - 0.5)


def tensor(name, shape, scale, around=0.0):
    return (around + scale * uniform(name, int(np.prod(shape))).reshape(shape)).float().double()


def teacher(m):
    shapes = {"layers.0.weight": (H, D), "layers.0.bias": (H,), "layers.1.weight": (K, H), "layers.1.bias": (K,)}
    p = {n: tensor(f"t{m}.{n}", s, 1.5) for n, s in shapes.items()}
    return lambda x: F.linear(F.relu(F.linear(x, p["layers.0.weight"], p["layers.0.bias"])), p["layers.1.weight"], p["layers.1.bias"])


def student():
    p = {}
    for layer, (o, i) in (("layers.0", (H, D)), ("layers.1", (K, H))):
        p[f"{layer}.weight"] = tensor(f"{layer}.weight", (o, i), 1.0)
        p[f"{layer}.bias"] = tensor(f"{layer}.bias", (o,), 0.2)
        p[f"{layer}.r"] = tensor(f"{layer}.r", (M, i), 0.2, 1.0)
        p[f"{layer}.s"] = tensor(f"{layer}.s", (M, o), 0.2, 1.0)
    return {n: v.requires_grad_() for n, v in p.items()}


def member(p, m, x):
    for layer in ("layers.0", "layers.1"):
        x = (F.linear(x * p[f"{layer}.r"][m], p[f"{layer}.weight"]) + p[f"{layer}.bias"]) * p[f"{layer}.s"][m]
        x = F.relu(x) if layer == "layers.0" else x
    return x


def cross_entropy(target_logits, logits, temperature):
    return -(F.softmax(target_logits / temperature, 1) * F.log_softmax(logits / temperature, 1)).sum(1)


def perturb(p, teachers, x, i, j):
    x = x.clone().requires_grad_()
    tdiv = cross_entropy(teachers[j](x).detach(), teachers[i](x), 1.0)
    sdiv = cross_entropy(member(p, j, x).detach(), member(p, i, x), 1.0)
    (g,) = torch.autograd.grad((tdiv - sdiv).sum(), x)
    step = g / g.norm(dim=1, keepdim=True) * (D**0.5 / 255)
    return (x + step).clamp(0, 1).detach()


def numbers():
    teachers, p = [teacher(m) for m in range(M)], student()
    momentum = {n: torch.zeros_like(v) for n, v in p.items()}
    out = []
    for step in range(STEPS):
        x = tensor(f"x{step % 4}", (ROWS, D), 1.0, 0.5)
        x = perturb(p, teachers, x, *PAIRS[step])
        loss = T * T * torch.stack([cross_entropy(teachers[m](x), member(p, m, x), T).mean() for m in range(M)]).mean()
        grads = torch.autograd.grad(loss, list(p.values()))
        out.append(loss.item())
        with torch.no_grad():
            for (n, v), g in zip(p.items(), grads):
                fast = n.endswith((".r", ".s"))
                d = (M * g if fast else g) + DECAY * (v - 1 if fast else v)
                momentum[n] = 0.9 * momentum[n] + d
                v -= RATE * (d + 0.9 * momentum[n])
    with torch.no_grad():
        weight = p["layers.0.weight"] * torch.einsum("mo,mi->oi", p["layers.0.s"], p["layers.0.r"]) / M
        bias = p["layers.1.bias"] * p["layers.1.s"].mean(0)
    return out + weight.flatten()[:20].tolist() + bias.tolist()


def main():
    values = numbers()
    if "--check" in sys.argv:
        stored = [float(line) for line in open(FILE)]
        worst = max(abs(a - b) / (1 + abs(b)) for a, b in zip(values, stored))
        print(f"latent_be: {len(stored)} numbers, largest difference {worst:.2g}")
        return 0 if len(stored) == len(values) and worst < 1e-9 else 1
    with open(FILE, "w") as f:
        f.writelines(f"{v:.15e}\n" for v in values)
    return 0


if __name__ == "__main__":
    sys.exit(main())
