"""A copy of a run whose last layer is multiplied: outputs of any size, to see what exports make of them.

    scale_outputs.py RUN COPY FACTOR
"""
import hashlib
import json
import os
import struct
import sys

import numpy as np


def scale(run, copy, factor):
    with open(os.path.join(run, "model.safetensors"), "rb") as f:
        size, = struct.unpack("<Q", f.read(8))
        text = f.read(size)
        data = bytearray(f.read())
    head = json.loads(text)
    meta = head.pop("__metadata__")
    last = [n for n in head if n.endswith("weight")][-1].rsplit(".", 1)[0]
    for name, t in head.items():
        if name.startswith(last + "."):
            a, b = t["data_offsets"]
            data[a:b] = (np.frombuffer(bytes(data[a:b]), "<f4") * np.float32(factor)).tobytes()
    sha = hashlib.sha256()
    for key, value in meta.items():
        if key != "sha256":
            sha.update(key.encode() + b"\0" + value.encode() + b"\0")
    for name, t in head.items():
        sha.update(name.encode() + b"\0" + bytes(data[t["data_offsets"][0]:t["data_offsets"][1]]))
    # in its place: the header must keep its length
    old = meta["sha256"].encode()
    text = text.replace(old, sha.hexdigest().encode())
    os.makedirs(copy, exist_ok=True)
    with open(os.path.join(copy, "model.safetensors"), "wb") as f:
        f.write(struct.pack("<Q", size) + text + data)


if __name__ == "__main__":
    scale(sys.argv[1], sys.argv[2], float(sys.argv[3]))
