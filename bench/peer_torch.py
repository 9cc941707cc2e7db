"""One process of the PyTorch side of a benchmark: the same job as `retort bench`, in PyTorch's efficient idioms.

A training step is forward, cross-entropy, backward and SGD (Nesterov momentum 0.9, weight decay 5e-4 on everything) of
every member, each on a batch of its own that is already in memory. Three ways to write it:

    eager     one network
    loop      networks one after the other, one optimiser step for all of them
    stacked   an mlp only: weights (members, in, out), every layer one torch.baddbmm for all members

A step of permAVG (Norris Mitchell 2021) of an mlp: Sinkhorn unrolled, all matrices of one width in one batch; averaged
weights by batched products, which is cheaper than averaging activations; forward, cross-entropy, backward, Adam on X.

Students of a distillation are in peer_students.py. Inference: `eager` in inference mode, or `frozen`: TorchScript with batch norm folded and oneDNN's blocked layouts.

    peer_torch.py --measure train|infer|perm --arch SPEC --input CxHxW|F ...

Protocol, so that several processes measure at the same time: print "ready" after the warm-up, wait for a line on standard
input, measure, print one JSON object. Times are the median and the best over the steps, as in `retort bench`.
"""
import argparse
import json
import math
import pathlib
import resource
import statistics
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests" / "golden"))
import torch_nets  # noqa: E402  (beside the parity tests, so both compare with the same networks)

from peer_students import train_student  # noqa: E402

WARM_UP, STEPS_MIN = 3, 3
LARGE_IMAGE = 64  # from here on, ResNets begin with the 7x7 stem


def peak_rss():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def spec_ints(spec):
    _, _, args = spec.partition(":")
    return [int(a) for a in args.split(",")] if args else []


def build(arch, shape, classes):
    name = arch.partition(":")[0]
    if name == "mlp":
        return torch_nets.mlp(spec_ints(arch), math.prod(shape), classes)
    if len(shape) != 3:
        raise SystemExit(f"{arch} wants images, not input {shape}")
    if name == "wrn":
        return torch_nets.wrn(*spec_ints(arch), shape[0], classes)
    if name in ("resnet18", "resnet50"):
        return getattr(torch_nets, name)(shape[0], classes, large=min(shape[1:]) >= LARGE_IMAGE)
    return getattr(torch_nets, name)(shape[0], classes)


class StackedMlp(nn.Module):
    """All members of an mlp as one network of batched products: (m, n, in) -> (m, n, out)."""

    def __init__(self, members, sizes):
        super().__init__()
        bounds = [1 / math.sqrt(a) for a in sizes[:-1]]
        self.weight = nn.ParameterList(nn.Parameter(torch.empty(members, a, b).uniform_(-r, r))
                                       for a, b, r in zip(sizes, sizes[1:], bounds))
        self.bias = nn.ParameterList(nn.Parameter(torch.empty(members, 1, b).uniform_(-r, r))
                                     for b, r in zip(sizes[1:], bounds))

    def forward(self, x):
        last = len(self.weight) - 1
        for i, (w, b) in enumerate(zip(self.weight, self.bias)):
            x = torch.baddbmm(b, x, w)
            x = F.relu(x, inplace=True) if i < last else x
        return x


def optimiser(params):
    """lr is small, so that thousands of steps on random labels stay finite; the cost of a step does not depend on it."""
    return torch.optim.SGD(params, lr=1e-3, momentum=0.9, nesterov=True, weight_decay=5e-4, foreach=True)


def train_loop(a):
    """Returns a function that makes one step of all members."""
    memory = torch.channels_last if a.format == "channels_last" else torch.contiguous_format
    nets, batches = [], []
    for _ in range(a.members):
        net = build(a.arch, a.shape, a.classes).train()
        x = torch.rand(a.batch, *a.shape) - 0.5
        if x.dim() == 4:
            net, x = net.to(memory_format=memory), x.contiguous(memory_format=memory)
        nets.append(net)
        batches.append((x, torch.randint(a.classes, (a.batch,))))
    opt = optimiser([p for net in nets for p in net.parameters()])

    def step():
        opt.zero_grad(set_to_none=True)
        for net, (x, y) in zip(nets, batches):
            F.cross_entropy(net(x), y).backward()
        opt.step()
    return step


def train_stacked(a):
    sizes = [math.prod(a.shape), *spec_ints(a.arch), a.classes]
    net = StackedMlp(a.members, sizes).train()
    x = torch.rand(a.members, a.batch, sizes[0]) - 0.5
    y = torch.randint(a.classes, (a.members * a.batch,))
    opt = optimiser(net.parameters())

    def step():
        opt.zero_grad(set_to_none=True)
        loss = F.cross_entropy(net(x).view(-1, a.classes), y, reduction="sum") / a.batch  # each member's own mean, summed
        loss.backward()
        opt.step()
    return step


class PermAverage(nn.Module):
    """The mean of an mlp's members with soft permutations P = Sinkhorn(X) of the units of all but the first."""
    ITERATIONS = 100
    SPREAD = 8.0  # of X: rows of P then have 0.2 ln n of entropy, as in the middle of training

    def __init__(self, members, sizes):
        super().__init__()
        self.members, self.widths = members, sizes[1:-1]
        for i, (a, b) in enumerate(zip(sizes, sizes[1:])):
            r = 1 / math.sqrt(a)
            self.register_buffer(f"weight{i}", torch.empty(members, b, a).uniform_(-r, r))
            self.register_buffer(f"bias{i}", torch.empty(members, b, 1).uniform_(-r, r))
        self.x = nn.ParameterDict({str(n): nn.Parameter(self.SPREAD * torch.randn(self.widths.count(n) * (members - 1), n, n))
                                   for n in set(self.widths)})

    def matrices(self):
        p = {}
        for n, x in self.x.items():
            a = torch.exp(x - x.amax(-1, keepdim=True))
            for _ in range(self.ITERATIONS):
                a = a / a.sum(-1, keepdim=True)
                a = a / a.sum(-2, keepdim=True)
            p[n] = list(a.split(self.members - 1))
        return [p[str(n)].pop(0) for n in self.widths]

    def forward(self, x):
        p = self.matrices()
        for i in range(len(p) + 1):
            w, b = getattr(self, f"weight{i}"), getattr(self, f"bias{i}")
            moved, shift = w[1:], b[1:]
            if i > 0:
                moved = torch.bmm(moved, p[i - 1].transpose(1, 2))
            if i < len(p):
                moved, shift = torch.bmm(p[i], moved), torch.bmm(p[i], shift)
            x = F.linear(x, (w[0] + moved.sum(0)) / self.members, (b[0] + shift.sum(0)).view(-1) / self.members)
            x = F.relu(x) if i < len(p) else x
        return x


def train_perm(a):
    sizes = [math.prod(a.shape), *spec_ints(a.arch), a.classes]
    net = PermAverage(a.members, sizes)
    x, y = torch.rand(a.batch, sizes[0]) - 0.5, torch.randint(a.classes, (a.batch,))
    opt = torch.optim.Adam(net.parameters(), lr=1e-3, foreach=True)

    def step():
        opt.zero_grad(set_to_none=True)
        F.cross_entropy(net(x), y).backward()
        opt.step()
    return step


def infer(a):
    net = build(a.arch, a.shape, a.classes).eval()
    x = torch.rand(a.batch, *a.shape) - 0.5
    if a.format == "channels_last" and x.dim() == 4:
        net, x = net.to(memory_format=torch.channels_last), x.contiguous(memory_format=torch.channels_last)
    if a.form == "frozen":
        net = torch.jit.optimize_for_inference(torch.jit.trace(net, x))

    def step():
        with torch.inference_mode():
            net(x)
    return step


def measure(step, seconds):
    times = []
    end = time.perf_counter() + seconds
    while len(times) < STEPS_MIN or time.perf_counter() < end:
        t = time.perf_counter()
        step()
        times.append(time.perf_counter() - t)
    return times


def parse():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--measure", choices=["train", "infer", "perm"], required=True)
    p.add_argument("--arch", required=True)
    p.add_argument("--input", required=True)
    p.add_argument("--classes", type=int, required=True)
    p.add_argument("--batch", type=int, required=True)
    p.add_argument("--members", type=int, default=1)
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--format", choices=["nchw", "channels_last"], default="nchw")
    p.add_argument("--form", choices=["eager", "loop", "stacked", "frozen"], default="eager")
    p.add_argument("--seconds", type=float, default=1.0)
    p.add_argument("--student", default="single")
    p.add_argument("--objective", default="labels", choices=["labels", "kd", "one-to-one"])
    p.add_argument("--perturb", default="none", choices=["none", "tdiv-sdiv"])
    p.add_argument("--online", action="store_true", help="teachers run in the step")
    a = p.parse_args()
    a.shape = [int(d) for d in a.input.split("x")]
    return a


def main():
    a = parse()
    at_import = peak_rss()
    torch.manual_seed(1)
    torch.set_num_threads(a.threads)
    torch.set_flush_denormal(True)  # in PyTorch's favour: vanishing gradients cost no more than others
    if a.measure == "infer":
        step, samples = infer(a), a.batch
    elif a.measure == "perm":
        step, samples = train_perm(a), a.batch
    elif a.student != "single" or a.objective != "labels":
        step, samples = train_student(a, build, optimiser), a.batch
    else:
        step, samples = (train_stacked if a.form == "stacked" else train_loop)(a), a.members * a.batch
    for _ in range(WARM_UP):
        step()
    print("ready", flush=True)
    sys.stdin.readline()
    times = measure(step, a.seconds)
    print(json.dumps({
        "samples_per_s": samples / statistics.median(times),
        "samples_per_s_best": samples / min(times),
        "steps": len(times),
        "peak_rss_bytes": peak_rss(),
        "rss_after_import_bytes": at_import,
        "torch": torch.__version__,
    }), flush=True)


if __name__ == "__main__":
    main()
