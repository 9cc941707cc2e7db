"""Writes a network of the PyTorch side, in evaluation mode and for a fixed batch, as an ONNX file."""
import argparse
import os

import torch

from peer_torch import build

OPSET = 13


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--arch", required=True)
    p.add_argument("--input", required=True)
    p.add_argument("--classes", type=int, required=True)
    p.add_argument("--batch", type=int, required=True)
    p.add_argument("--out", required=True)
    a = p.parse_args()
    shape = [int(d) for d in a.input.split("x")]
    torch.manual_seed(1)
    net = build(a.arch, shape, a.classes).eval()
    part = f"{a.out}.part"
    torch.onnx.export(net, torch.zeros(a.batch, *shape), part, opset_version=OPSET, input_names=["x"], output_names=["y"])
    os.replace(part, a.out)


if __name__ == "__main__":
    main()
