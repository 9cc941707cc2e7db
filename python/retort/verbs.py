"""What the program does, with its keys as arguments. Results are the objects that --json prints."""
from __future__ import annotations

import ctypes as c
import json
import os
from typing import Any, Dict, List, Optional, Sequence, Union

from ._native import PathLike, ProgressCallback, Setting, call, error_text, lib, raise_for, run
from .data import DataLike, Lending

Runs = Union[PathLike, Sequence[PathLike]]


def _words(runs: Runs) -> List[str]:
    if isinstance(runs, (str, os.PathLike)):
        return [os.fspath(runs)]
    return [os.fspath(r) for r in runs]


def _verb(verb: str, words: Sequence[str], keys: Dict[str, Any], *, data: Optional[DataLike] = None,
          trained_on: Optional[DataLike] = None, progress: Optional[ProgressCallback] = None) -> Dict[str, Any]:
    lending = Lending()
    values = {"data": lending.spec(data) if data is not None else None, **{k: lending.value(v) for k, v in keys.items()}}
    if trained_on is not None:
        lending.spec(trained_on)
    result: Dict[str, Any] = json.loads(run(verb, words, values, lending.memory(), progress))
    return result


def train(data: DataLike, *, progress: Optional[ProgressCallback] = None, **keys: Any) -> Dict[str, Any]:
    """`retort train`: train(data, arch="mlp:50", members=5, out="runs/teacher")."""
    return _verb("train", [], keys, data=data, progress=progress)


def distill(data: DataLike, *, progress: Optional[ProgressCallback] = None, **keys: Any) -> Dict[str, Any]:
    """`retort distill`: distill(data, teacher="runs/teacher", method="hydra", out="runs/student")."""
    return _verb("distill", [], keys, data=data, progress=progress)


def average(runs: Runs, data: DataLike, *, progress: Optional[ProgressCallback] = None, **keys: Any) -> Dict[str, Any]:
    """`retort average`: average("runs/teacher", data, out="runs/average")."""
    return _verb("average", _words(runs), keys, data=data, progress=progress)


def evaluate(runs: Runs, data: DataLike, *, progress: Optional[ProgressCallback] = None, **keys: Any) -> Dict[str, Any]:
    """`retort eval`: evaluate(["runs/a", "runs/b"], data, ood={"far": other})["runs"][0]["sets"]["test"]["nll"]."""
    return _verb("eval", _words(runs), keys, data=data, progress=progress)


def calibrate(run_dir: PathLike, data: Optional[DataLike] = None, *, trained_on: Optional[DataLike] = None,
              **keys: Any) -> Dict[str, Any]:
    """`retort calibrate`: calibrate("runs/student", reject="coverage=0.95", conformal="alpha=0.1").

    Fits on the rows that the run held out. A run that was trained on arrays finds them in the same arrays, given as
    trained_on; data: other rows, which the run has not seen."""
    return _verb("calibrate", _words(run_dir), keys, data=data, trained_on=trained_on)


def report(runs: Runs, **keys: Any) -> Dict[str, Any]:
    """`retort report`: report(["runs/a", "runs/b"], out="report.html")."""
    return _verb("report", _words(runs), keys)


def export(run_dir: PathLike, out: PathLike, *, trained_on: Optional[DataLike] = None, **keys: Any) -> Dict[str, Any]:
    """`retort export`: export("runs/student", "student.onnx"). trained_on: as for calibrate, for the check of the file."""
    return _verb("export", _words(run_dir), {"out": os.fspath(out), **keys}, trained_on=trained_on)


def gather(runs: Runs, out: PathLike, **keys: Any) -> Dict[str, Any]:
    """`retort gather`: gather(["runs/part-0", "runs/part-1"], "runs/teacher")."""
    return _verb("gather", _words(runs), {"out": os.fspath(out), **keys})


def _text(v: Optional[bytes]) -> Optional[str]:
    return v.decode() if v is not None else None


def settings(verb: str) -> Dict[str, Dict[str, Any]]:
    """The keys that a verb takes, each with its kind, default, range and help."""
    n = lib.rt_setting_count(verb.encode())
    if n < 0:
        raise_for(20, error_text())
    out: Dict[str, Dict[str, Any]] = {}
    for i in range(n):
        s = Setting(size=c.sizeof(Setting))
        call(lib.rt_setting_get, verb.encode(), i, c.byref(s))
        out[s.key.decode().replace("-", "_")] = {"kind": s.kind.decode(), "default": _text(s.value), "lowest": s.lowest,
                                                 "highest": s.highest, "choices": _text(s.choices), "help": _text(s.help)}
    return out
