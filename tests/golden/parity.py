#!/usr/bin/python3
"""Numbers that test_parity.c must reproduce: losses of a few SGD steps in PyTorch and the logits afterwards.

Weights, images and labels come from an integer hash that both sides compute exactly, so that nothing but the results
needs to be stored. All is computed in double. Learning rates are small because a ReLU or a max-pool whose operands are
equal to float precision may go either way, which changes a gradient by a finite amount: with resnet20 at a rate of 0.005
PyTorch's own float losses leave its double losses by 3% within 20 steps, at 2e-5 by 1e-6.

    mix(x)      x ^= x >> 16; x *= 0x7feb352d; x ^= x >> 15; x *= 0x846ca68b; x ^= x >> 16      (32 bits)
    u(key, i)   (mix(i * 0x9e3779b1 + key) >> 8) / 2^24 - 1/2                                    in [-1/2, 1/2), exact in float
    weight      4 u(fnv1a(name), i) / 2^k, k the least with 4^k >= fan_in; norm weight 1 + u / 4; bias u / 8
    image       2 u(fnv1a("x<b>"), i); label mix(i * 0x9e3779b1 + fnv1a("y<b>")) mod classes; batch b = step mod 4
    logits      of batch 0 after the last step, with the running statistics
    step        SGD, Nesterov momentum 0.9, weight decay 5e-4 on every parameter; training-mode batch norm

Usage: parity.py            writes parity_<arch>.txt beside this file
       parity.py --check    computes again and compares with the stored files; fails beyond 1e-5
"""
import argparse
import os
import sys

import numpy as np
import torch

import torch_nets

HERE = os.path.dirname(os.path.abspath(__file__))
CLASSES = 10
BATCHES = 4
CASES = {  # name: (spec, input, batch, steps, learning rate, build)
    "mlp": ("mlp:20,20", (1, 8, 8), 16, 20, 0.2, lambda: torch_nets.mlp([20, 20], 64, CLASSES)),
    "resnet20": ("resnet20", (3, 8, 8), 8, 20, 2e-5, lambda: torch_nets.resnet20(3, CLASSES)),
    "wrn": ("wrn:10,1", (3, 12, 12), 8, 20, 0.002, lambda: torch_nets.wrn(10, 1, 3, CLASSES)),
    "vgg16": ("vgg16", (3, 32, 32), 8, 20, 5e-6, lambda: torch_nets.vgg16(3, CLASSES)),
}


def fnv1a(text):
    h = 0x811C9DC5
    for byte in text.encode():
        h = ((h ^ byte) * 0x01000193) & 0xFFFFFFFF
    return h


def mix(x):
    x = x ^ (x >> np.uint32(16))
    x = x * np.uint32(0x7FEB352D)
    x = x ^ (x >> np.uint32(15))
    x = x * np.uint32(0x846CA68B)
    return x ^ (x >> np.uint32(16))


def bits(key, count):
    with np.errstate(over="ignore"):
        return mix(np.arange(count, dtype=np.uint32) * np.uint32(0x9E3779B1) + np.uint32(key))


def uniform(key, count):
    return (bits(key, count) >> np.uint32(8)).astype(np.float64) / 2.0**24 - 0.5


def fill(net):
    with torch.no_grad():
        for name, p in net.named_parameters():
            u = uniform(fnv1a(name), p.numel())
            if p.dim() > 1:
                k, fan_in = 0, p[0].numel()
                while 4**k < fan_in:
                    k += 1
                u *= 4.0 / 2.0**k
            elif name.endswith("weight"):
                u = 1 + u / 4
            else:
                u /= 8
            p.copy_(torch.from_numpy(u.astype(np.float32).astype(np.float64)).reshape(p.shape))


def batch(shape, n, index):
    count = n * int(np.prod(shape))
    x = torch.from_numpy(2 * uniform(fnv1a(f"x{index}"), count)).reshape(n, *shape)
    y = torch.from_numpy((bits(fnv1a(f"y{index}"), n) % np.uint32(CLASSES)).astype(np.int64))
    return x, y


def run(name):
    spec, shape, n, steps, rate, build = CASES[name]
    net = build().double()
    fill(net)
    optimiser = torch.optim.SGD(net.parameters(), lr=rate, momentum=0.9, weight_decay=5e-4, nesterov=True)
    losses = []
    net.train()
    for step in range(steps):
        x, y = batch(shape, n, step % BATCHES)
        loss = torch.nn.functional.cross_entropy(net(x), y)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    net.eval()
    with torch.no_grad():
        logits = net(batch(shape, n, 0)[0]).flatten().tolist()
    return losses, logits


def text(name, losses, logits):
    spec, shape, n, steps, rate, _ = CASES[name]
    lines = [f"{spec} {shape[0]} {shape[1]} {shape[2]} {CLASSES} {n} {steps} {rate:g}"]
    return "\n".join(lines + [f"{v:.12e}" for v in losses + logits]) + "\n"


def check(name, losses, logits):
    """Largest difference to the stored file, relative to the largest number of its kind."""
    with open(os.path.join(HERE, f"parity_{name}.txt")) as f:
        stored = [float(line) for line in f.read().split("\n")[1:] if line]
    worst = 0.0
    for ours, theirs in ((losses, stored[: len(losses)]), (logits, stored[len(losses):])):
        if len(ours) != len(theirs):
            return float("inf")
        scale = max(map(abs, theirs))
        worst = max(worst, max(abs(a - b) for a, b in zip(ours, theirs)) / scale)
    return worst


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare with the stored files instead of writing them")
    parser.add_argument("names", nargs="*", default=list(CASES), help="cases; default: all")
    options = parser.parse_args()
    bad = False
    for name in options.names:
        losses, logits = run(name)
        if options.check:
            worst = check(name, losses, logits)
            print(f"{name}: largest difference {worst:.1e}")
            bad = bad or not worst <= 1e-5
        else:
            with open(os.path.join(HERE, f"parity_{name}.txt"), "w") as f:
                f.write(text(name, losses, logits))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
