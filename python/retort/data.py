"""Arrays as data sets: borrowed by the library for the time of a call."""
from __future__ import annotations

import ctypes as c
from typing import Any, Sequence, Tuple, Union

import numpy as np

from ._native import Arrays, Memory, UsageError, texts


def rows_of(x: Any) -> np.ndarray:
    """Rows as contiguous float32; of an array that is so already, the array itself."""
    x = np.ascontiguousarray(x, dtype=np.float32)
    if x.ndim not in (2, 4):
        raise UsageError(f"rows have {x.ndim} axes, wanted (rows, features) or (rows, channels, height, width)")
    return x


class Data:
    """Rows with labels (integers) or targets (numbers), and perhaps test rows.

    x: (rows, features), or pixels in [0, 1] as (rows, channels, height, width). y: integers are classes 0, 1, ...; numbers are
    targets of a regression. Without test rows, and unless test=0, a tenth of the rows is held out for testing.
    """

    def __init__(self, x: Any, y: Any = None, *, test: Any = None, task: str | None = None, classes: int | None = None,
                 class_names: Sequence[str] | None = None, name: str = "data", holdout: float | None = None) -> None:
        if "," in name or ":" in name:
            raise UsageError(f"name {name!r}: commas and colons separate the parts of a SPEC")
        self.name, self.holdout = name, holdout
        self._parts: list[tuple[Any, Any]] = []
        if task is None:
            task = "regression" if y is not None and np.asarray(y).dtype.kind == "f" else "classification"
        self.task = task
        for part in [(x, y)] + ([test] if test is not None else []):
            px, py = part
            px = rows_of(px)
            if py is not None:
                py = np.ascontiguousarray(py, dtype=np.int32 if task == "classification" else np.float32).reshape(-1)
                if len(py) != len(px):
                    raise UsageError(f"{len(px)} rows and {len(py)} labels")
            self._parts.append((px, py))
        if any(p[0].shape[1:] != self._parts[0][0].shape[1:] for p in self._parts):
            raise UsageError("test rows have another shape than training rows")
        self.class_names = list(class_names) if class_names is not None else None
        top = max((int(p[1].max()) + 1 for p in self._parts if p[1] is not None and len(p[1])), default=1) if task == "classification" else 0
        self.classes = classes or (len(self.class_names) if self.class_names else top)

    @property
    def spec(self) -> str:
        return f"memory:{self.name}" + (f",test={self.holdout:g}" if self.holdout is not None else "")

    def memory(self) -> Memory:
        """As the library wants it; the arrays belong to this object."""
        m = Memory(size=c.sizeof(Memory), name=self.name.encode(), task=0 if self.task == "classification" else 1, classes=self.classes)
        shape = self._parts[0][0].shape[1:]
        m.rank = len(shape)
        for i, d in enumerate(shape):
            m.dims[i] = d
        if self.class_names is not None:
            self._names = texts(self.class_names)
            m.class_names = c.cast(self._names, c.POINTER(c.c_char_p))
        for field, (x, y) in zip(("train", "test"), self._parts):
            a = Arrays(rows=len(x), x=x.ctypes.data)
            if y is not None:
                setattr(a, "label" if self.task == "classification" else "target", y.ctypes.data)
            setattr(m, field, a)
        return m


DataLike = Union[str, Data, Tuple[Any, Any]]


def data_of(data: DataLike) -> tuple[str, list[Memory], Any]:
    """The SPEC of what was given, the arrays to lend with it, and an object that keeps them alive."""
    if isinstance(data, str):
        return data, [], None
    if not isinstance(data, Data):
        data = Data(*data)
    return data.spec, [data.memory()], data
