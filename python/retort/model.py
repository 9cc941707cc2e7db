"""Models: predictions with their uncertainty."""
from __future__ import annotations

import ctypes as c
import json
import os
from typing import Any, Union

import numpy as np

from ._native import Prediction, UsageError, error_text, lib, raise_for
from .data import rows_of

# name -> (shape behind the rows, dtype); M members, K classes
_FIELDS = {
    "probs": ("K", np.float32), "member_probs": ("MK", np.float32), "logits": ("MK", np.float32), "label": ("", np.int64),
    "confidence": ("", np.float32), "entropy": ("", np.float32), "expected_entropy": ("", np.float32),
    "mutual_information": ("", np.float32), "epkl": ("", np.float32), "alpha": ("MK", np.float32), "reject": ("", np.uint8),
    "set": ("K", np.uint8), "mean": ("", np.float32), "variance": ("", np.float32), "data_variance": ("", np.float32),
    "knowledge_variance": ("", np.float32), "lower": ("", np.float32), "upper": ("", np.float32),
}


class Model:
    """A trained network, ensemble or student. Immutable; may be used by several threads."""

    def __init__(self, path: Union[str, os.PathLike]) -> None:
        self.path = os.fspath(path)
        self._handle = c.c_void_p()
        raise_for(lib.rt_model_load(c.byref(self._handle), self.path.encode()), error_text())
        self.task = "classification" if lib.rt_model_task(self._handle) == 0 else "regression"
        self.members: int = lib.rt_model_members(self._handle)
        self.outputs: int = lib.rt_model_outputs(self._handle)
        dims = (c.c_int64 * 3)()
        rank = lib.rt_model_dims(self._handle, dims)
        self.input_shape: tuple[int, ...] = tuple(dims[i] for i in range(rank))
        names = [lib.rt_model_class_name(self._handle, k) for k in range(self.outputs)]
        self.class_names: list[str] = [n.decode() for n in names] if self.task == "classification" else []

    @classmethod
    def load(cls, path: Union[str, os.PathLike]) -> "Model":
        """From a run directory or a .safetensors file."""
        return cls(path)

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            lib.rt_model_destroy(c.byref(self._handle))

    def meta(self, key: str) -> Any:
        """An entry of the file's metadata ("provenance", "decision", ...), as Python objects; None if absent."""
        text = lib.rt_model_meta(self._handle, key.encode())
        if text is None:
            return None
        try:
            return json.loads(text)
        except ValueError:
            return text.decode()

    def run(self, x: Any, *fields: str, threads: int = 0) -> dict[str, np.ndarray]:
        """Any of the fields of rt_prediction, for all rows of x."""
        x = rows_of(x)
        if x.shape[1:] != self.input_shape:
            raise UsageError(f"rows of shape {x.shape[1:]}, the model wants {self.input_shape}")
        out, where = {}, Prediction(size=c.sizeof(Prediction))
        sizes = {"": (), "K": (self.outputs,), "MK": (self.members, self.outputs)}
        for field in fields:
            if field not in _FIELDS:
                raise UsageError(f"{field!r} is not known, wanted of {', '.join(_FIELDS)}")
            shape, dtype = _FIELDS[field]
            out[field] = np.empty((len(x), *sizes[shape]), dtype)
            setattr(where, field, out[field].ctypes.data)
        if len(x):
            raise_for(lib.rt_model_run(self._handle, x.ctypes.data, len(x), c.byref(where), threads), error_text())
        return out

    def predict(self, x: Any, threads: int = 0) -> np.ndarray:
        """Classes as numbers, or means."""
        field = "label" if self.task == "classification" else "mean"
        return self.run(x, field, threads=threads)[field]

    def predict_proba(self, x: Any, threads: int = 0) -> np.ndarray:
        return self.run(x, "probs", threads=threads)["probs"]

    def uncertainty(self, x: Any, threads: int = 0) -> dict[str, np.ndarray]:
        """Total, data and, where the model has it, knowledge uncertainty of each row."""
        if self.task == "regression":
            return self.run(x, "variance", "data_variance", "knowledge_variance", threads=threads)
        fields = ["confidence", "entropy", "expected_entropy"]
        if self.members > 1 or (self.meta("student") or {}).get("spec", "").startswith("dirichlet"):
            fields += ["mutual_information", "epkl"]
        return self.run(x, *fields, threads=threads)

    def export(self, out: Union[str, os.PathLike], **keys: Any) -> dict[str, Any]:
        """`retort export` of this model."""
        from .verbs import export
        return export(self.path, out, **keys)
