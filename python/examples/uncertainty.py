"""An ensemble, its student, and what both know: a walk in five cells, with pictures where matplotlib is installed.

    python3 uncertainty.py [DIRECTORY]

Cells begin with "# %%", so that editors can run them one after the other.
"""
from __future__ import annotations

import os
import sys

import numpy as np
import numpy.typing as npt

import retort

out = sys.argv[1] if len(sys.argv) > 1 else "uncertainty"
os.makedirs(out, exist_ok=True)


def path(name: str) -> str:
    return os.path.join(out, name)


# %% Data: three arms of a spiral, which touch in the middle (there a row is ambiguous) and end somewhere (beyond, nothing is known).
g = np.random.default_rng(0)
n = 1500
y = g.integers(0, 3, n).astype(np.int32)
r = g.random(n) ** 0.5
angle = 2.1 * y + 3 * r + g.normal(size=n) * 0.5
x = np.c_[r * np.cos(angle), r * np.sin(angle)].astype(np.float32)
data = retort.Data(x, y, class_names=["north", "south", "west"], name="arms")

# %% A teacher of ten networks, and a student that costs one and keeps what they say of themselves.
retort.train(data, arch="mlp:64,64", members=10, epochs=100, optimiser="adam", lr=0.003, weight_decay=0, keep="last",
             out=path("teacher"), force=True)
retort.distill(data, teacher=path("teacher"), arch="mlp:64,64", method="hydra", epochs=300, optimiser="adam", lr=0.003,
               out=path("student"), force=True)

# %% A decision: answer nineteen rows of twenty, and name sets of classes that miss the truth in one of ten.
decision = retort.calibrate(path("student"), reject="coverage=0.95", measure="mutual_information", conformal="alpha=0.1", trained_on=data)
print(f"temperature {decision['temperature']:.3f}, rejects by {decision['reject']['measure']} above {decision['reject']['threshold']:.4f}")

# %% What they say, on a map that is twice as wide as the data.
side = 160
axis = np.linspace(-2, 2, side, dtype=np.float32)
grid = np.stack(np.meshgrid(axis, axis), -1).reshape(-1, 2)
models = {name: retort.Model.load(path(name)) for name in ("teacher", "student")}
maps: dict[str, npt.NDArray[np.float32]] = {}
for name, model in models.items():
    u = model.uncertainty(grid)
    maps[f"{name}: data uncertainty"] = u["expected_entropy"]
    maps[f"{name}: knowledge uncertainty"] = u["mutual_information"]
    inside = np.hypot(grid[:, 0], grid[:, 1]) < 0.9
    print(f"{name}: knowledge uncertainty {u['mutual_information'][inside].mean():.4f} nats where there is data, "
          f"{u['mutual_information'][~inside].mean():.4f} beyond")
far = models["student"].decide(grid[np.hypot(grid[:, 0], grid[:, 1]) > 1.5])
print(f"the student leaves {100 * far['reject'].mean():.0f} % of what lies far away to a person")

# %% Pictures, and a file for other runtimes.
told = models["student"].export(path("student.onnx"), trained_on=data)
print(f"{path('student.onnx')}: {told['bytes']} bytes, outputs {', '.join(told['outputs'])}")
try:
    import matplotlib
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
except ImportError:
    print("no matplotlib: no pictures")
    sys.exit()
figure, panels = plt.subplots(2, 2, figsize=(9, 8.4), constrained_layout=True)
for panel, (title, values) in zip(panels.flat, maps.items()):
    picture = panel.imshow(values.reshape(side, side), origin="lower", extent=(-2, 2, -2, 2), cmap="magma")
    panel.scatter(x[:400, 0], x[:400, 1], c=y[:400], s=3, cmap="Set2")
    panel.set_title(title)
    figure.colorbar(picture, ax=panel, label="nats", shrink=0.8)
figure.savefig(path("uncertainty.png"), dpi=110)
print(path("uncertainty.png"))
