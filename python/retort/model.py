"""Models: predictions with their uncertainty."""
from __future__ import annotations

import ctypes as c
import json
import os
from typing import Any, Dict, List, Mapping, Optional, Tuple

import numpy as np
import numpy.typing as npt

from ._native import PathLike, Prediction, UsageError, call, lib
from .data import DataLike, Floats, rows_of

# name -> (shape behind the rows, dtype); M members, K classes
_FIELDS: Dict[str, Tuple[str, Any]] = {
    "probs": ("K", np.float32), "member_probs": ("MK", np.float32), "logits": ("MK", np.float32), "label": ("", np.int64),
    "confidence": ("", np.float32), "entropy": ("", np.float32), "expected_entropy": ("", np.float32),
    "mutual_information": ("", np.float32), "epkl": ("", np.float32), "alpha": ("MK", np.float32), "reject": ("", np.bool_),
    "set": ("K", np.bool_), "mean": ("", np.float32), "variance": ("", np.float32), "data_variance": ("", np.float32),
    "knowledge_variance": ("", np.float32), "lower": ("", np.float32), "upper": ("", np.float32),
}
_CLASSES = ("confidence", "entropy", "expected_entropy", "mutual_information", "epkl")
_NUMBERS = ("variance", "data_variance", "knowledge_variance")


class Model:
    """A trained network, ensemble or student, with the decision that `calibrate` stored. Immutable; may be used by several
    threads at once, none of which holds Python's lock while it computes."""

    def __init__(self, path: PathLike) -> None:
        self.path = os.fspath(path)
        self._handle = c.c_void_p()
        call(lib.rt_model_load, c.byref(self._handle), os.fsencode(self.path))
        self.task = "classification" if lib.rt_model_task(self._handle) == 0 else "regression"
        self.members: int = lib.rt_model_members(self._handle)
        self.outputs: int = lib.rt_model_outputs(self._handle)
        dims = (c.c_int64 * 3)()
        rank = lib.rt_model_dims(self._handle, dims)
        self.input_shape: Tuple[int, ...] = tuple(dims[i] for i in range(rank))
        names = [lib.rt_model_class_name(self._handle, k) for k in range(self.outputs)]
        self.class_names: List[str] = [n.decode() for n in names] if self.task == "classification" else []
        unit = lib.rt_model_unit(self._handle)
        self.unit: Optional[str] = unit.decode() if unit is not None else None  # of a regression's mean

    @classmethod
    def load(cls, path: PathLike) -> "Model":
        """From a run directory or a .safetensors file."""
        return cls(path)

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            lib.rt_model_destroy(c.byref(self._handle))

    def __repr__(self) -> str:
        shape = "x".join(str(d) for d in self.input_shape)
        return f"<retort.Model {self.path!r}: {self.task}, input {shape}, members {self.members}, outputs {self.outputs}>"

    def meta(self, key: str) -> Any:
        """An entry of the file's metadata ("provenance", "decision", ...), as Python objects; None if absent."""
        text: Optional[bytes] = lib.rt_model_meta(self._handle, key.encode())
        if text is None:
            return None
        try:
            return json.loads(text)
        except ValueError:
            return text.decode()

    @property
    def knows(self) -> bool:
        """Does it tell knowledge uncertainty: members that can disagree, or concentrations of a Dirichlet?"""
        student: Dict[str, Any] = self.meta("student") or {}
        return self.members > 1 or self.task == "regression" or str(student.get("spec", "")).startswith("dirichlet")

    def run(self, x: Any, *fields: str, threads: int = 0, out: Optional[Mapping[str, npt.NDArray[Any]]] = None) -> Dict[str, npt.NDArray[Any]]:
        """Any of the fields of rt_prediction, for all rows of x; in arrays of `out` where it has them. Rows of contiguous
        float32 are read where they are, answers are written where they stay."""
        x = rows_of(x)
        if x.shape[1:] != self.input_shape:
            raise UsageError(f"rows of shape {x.shape[1:]}, the model wants {self.input_shape}")
        answers: Dict[str, npt.NDArray[Any]] = {}
        where = Prediction(size=c.sizeof(Prediction))
        sizes: Dict[str, Tuple[int, ...]] = {"": (), "K": (self.outputs,), "MK": (self.members, self.outputs)}
        for field in dict.fromkeys(fields + tuple(out or ())):
            if field not in _FIELDS:
                raise UsageError(f"{field!r} is not known, wanted of {', '.join(_FIELDS)}")
            kind, dtype = _FIELDS[field]
            shape = (len(x), *sizes[kind])
            if out is not None and field in out:
                a = out[field]
                if a.shape != shape or a.dtype != dtype or not a.flags.c_contiguous or not a.flags.writeable:
                    raise UsageError(f"out[{field!r}]: {a.dtype} of shape {a.shape}, wanted writable, contiguous {np.dtype(dtype)} of {shape}")
                answers[field] = a
            else:
                answers[field] = np.empty(shape, dtype)
            setattr(where, field, answers[field].ctypes.data)
        if len(x):
            call(lib.rt_model_run, self._handle, x.ctypes.data, len(x), c.byref(where), threads)
        return answers

    def predict(self, x: Any, threads: int = 0) -> npt.NDArray[Any]:
        """Classes as numbers, or means."""
        field = "label" if self.task == "classification" else "mean"
        return self.run(x, field, threads=threads)[field]

    def predict_proba(self, x: Any, threads: int = 0) -> Floats:
        return self.run(x, "probs", threads=threads)["probs"]

    def uncertainty(self, x: Any, threads: int = 0) -> Dict[str, Floats]:
        """Total, data and, where the model has it, knowledge uncertainty of each row: entropies in nats, or variances."""
        fields = _NUMBERS if self.task == "regression" else _CLASSES if self.knows else _CLASSES[:3]
        return self.run(x, *fields, threads=threads)

    def decide(self, x: Any, threads: int = 0) -> Dict[str, npt.NDArray[Any]]:
        """What `calibrate` stored, applied: reject; set, or lower and upper. Empty if there is nothing."""
        stored = self.meta("decision") or {}
        fields = ["reject"] if "reject" in stored else []
        if "conformal" in stored:
            fields += ["set"] if self.task == "classification" else ["lower", "upper"]
        return self.run(x, *fields, threads=threads) if fields else {}

    def evaluate(self, data: DataLike, **keys: Any) -> Dict[str, Any]:
        """`retort eval` of this model: its metrics, by set."""
        from .verbs import evaluate
        sets: Dict[str, Any] = evaluate(self.path, data, **keys)["runs"][0]["sets"]
        return sets

    def export(self, out: PathLike, **keys: Any) -> Dict[str, Any]:
        """`retort export` of this model."""
        from .verbs import export
        return export(self.path, out, **keys)
