#!/usr/bin/env python3
"""Which part of TDiv-SDiv moves an image: lengths of both gradients, on images of the training and of the test set.

    bench/perturb_parts.py DATA TEACHER STUDENT...     DATA: CIFAR-10's .bin or .bin.xz files; runs of `recipe run cifar10`

g = grad TDiv - grad SDiv (docs/methods/perturbations.md) is scaled to one length whatever it was, so that only the direction
counts: that of the longer part. Models are read by the loader that docs/formats/model.md shows, gradients are PyTorch's.
"""
import glob
import lzma
import pathlib
import re
import sys

import numpy as np
import torch
import torch.nn.functional as F

ROWS = 512
PAGE = pathlib.Path(__file__).resolve().parent.parent / "docs/formats/model.md"
loader = {}
exec(re.search(r"```python\n(.*?)```", PAGE.read_text(), re.S).group(1), loader)


def images(data, name):
    path = next(p for p in (pathlib.Path(data, name), pathlib.Path(data, name + ".xz")) if p.exists())
    with (lzma.open if path.suffix == ".xz" else open)(path, "rb") as f:
        rows = np.frombuffer(f.read(ROWS * 3073), np.uint8).reshape(-1, 3073)
    return torch.tensor(rows[:, 1:].reshape(-1, 3, 32, 32).astype(np.float32))


def part(zi, zj, x):
    """The gradient of H(p_j, p_i), p_j held fixed, a row per image."""
    h = -(F.softmax(zj.detach(), -1) * F.log_softmax(zi, -1)).sum()
    return torch.autograd.grad(h, x)[0].flatten(1)


def median(x):
    return x.median().item()


def main(data, teacher, students):
    torch.set_num_threads(1)
    teachers = [loader["load"](p) for p in sorted(glob.glob(f"{teacher}/member-*.safetensors"))]
    print("| student | images | teachers' confidence | median length: TDiv | SDiv | SDiv longer, of images | "
          "median cosine of the step: to TDiv | to -SDiv |\n|---|---|---:|---:|---:|---:|---:|---:|")
    for run in students:
        student = loader["load"](f"{run}/members.safetensors")
        for name, x in (("training", images(data, "data_batch_1.bin")), ("test", images(data, "test_batch.bin"))):
            x.requires_grad_(True)
            z = [t(x)[:, 0] for t in teachers]
            sure = torch.stack([F.softmax(t, -1) for t in z]).mean(0).max(-1).values.mean().item()
            t, s = part(z[0], z[1], x), part(*student(x).unbind(1)[:2], x)
            longer = (s.norm(dim=1) > t.norm(dim=1)).float().mean().item()
            near = [median(F.cosine_similarity(t - s, v, dim=1)) for v in (t, -s)]
            print(f"| {pathlib.Path(run).name} | {name} | {sure:.3f} | {median(t.norm(dim=1)):.1e} | "
                  f"{median(s.norm(dim=1)):.1e} | {longer:.2f} | {near[0]:.2f} | {near[1]:.2f} |")


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
