"""What the program does, with its keys as arguments. Results are the objects that --json prints."""
from __future__ import annotations

import ctypes as c
import json
import os
from typing import Any, Callable, Sequence, Union

from ._native import Setting, lib, raise_for, error_text, run
from .data import DataLike, data_of

Runs = Union[str, os.PathLike, Sequence[Union[str, os.PathLike]]]
Progress = Callable[[dict], None]


def _words(runs: Runs) -> list[str]:
    if isinstance(runs, (str, os.PathLike)):
        return [os.fspath(runs)]
    return [os.fspath(r) for r in runs]


def _verb(verb: str, words: Sequence[str], data: DataLike | None, progress: Progress | None, keys: dict) -> dict[str, Any]:
    spec, memory, keep = data_of(data) if data is not None else (None, [], None)
    text = run(verb, words, {"data": spec, **keys}, memory, progress)
    del keep
    return json.loads(text)


def train(data: DataLike, *, progress: Progress | None = None, **keys: Any) -> dict[str, Any]:
    """`retort train`: train(data, arch="mlp:50", members=5, out="runs/teacher")."""
    return _verb("train", [], data, progress, keys)


def distill(data: DataLike, *, progress: Progress | None = None, **keys: Any) -> dict[str, Any]:
    """`retort distill`: distill(data, teacher="runs/teacher", method="hydra", out="runs/student")."""
    return _verb("distill", [], data, progress, keys)


def average(runs: Runs, data: DataLike, **keys: Any) -> dict[str, Any]:
    """`retort average`: average("runs/teacher", data, out="runs/average")."""
    return _verb("average", _words(runs), data, None, keys)


def evaluate(runs: Runs, data: DataLike, **keys: Any) -> dict[str, Any]:
    """`retort eval`: evaluate(["runs/a", "runs/b"], data)["runs"][0]["sets"]["test"]["nll"]."""
    return _verb("eval", _words(runs), data, None, keys)


def calibrate(run_dir: Union[str, os.PathLike], data: DataLike | None = None, **keys: Any) -> dict[str, Any]:
    """`retort calibrate`: calibrate("runs/student", reject="coverage=0.95", conformal="alpha=0.1")."""
    return _verb("calibrate", _words(run_dir), data, None, keys)


def report(runs: Runs, **keys: Any) -> dict[str, Any]:
    """`retort report`: report(["runs/a", "runs/b"], out="report.html")."""
    return _verb("report", _words(runs), None, None, keys)


def export(run_dir: Union[str, os.PathLike], out: Union[str, os.PathLike], **keys: Any) -> dict[str, Any]:
    """`retort export`: export("runs/student", "student.onnx")."""
    return _verb("export", _words(run_dir), None, None, {"out": os.fspath(out), **keys})


def settings(verb: str) -> dict[str, dict[str, Any]]:
    """The keys that a verb takes, each with its kind, default, range and help."""
    n = lib.rt_setting_count(verb.encode())
    if n < 0:
        raise_for(20, error_text())
    out: dict[str, dict[str, Any]] = {}
    for i in range(n):
        s = Setting()
        raise_for(lib.rt_setting_get(verb.encode(), i, c.byref(s)), error_text())
        text = lambda v: v.decode() if v is not None else None  # noqa: E731
        out[s.key.decode().replace("-", "_")] = {"kind": s.kind.decode(), "default": text(s.value), "lowest": s.lowest,
                                                 "highest": s.highest, "choices": text(s.choices), "help": text(s.help)}
    return out
