"""Arrays as data sets: borrowed by the library for the time of a call."""
from __future__ import annotations

import ctypes as c
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple, Union

import numpy as np
import numpy.typing as npt

from ._native import Arrays, Memory, UsageError, texts

Floats = npt.NDArray[np.float32]


def rows_of(x: Any) -> Floats:
    """Rows as contiguous float32; of an array that is so already, the array itself."""
    rows: Floats = np.ascontiguousarray(x, dtype=np.float32)
    if rows.ndim not in (2, 4):
        raise UsageError(f"rows have {rows.ndim} axes, wanted (rows, features) or (rows, channels, height, width)")
    return rows


def _answers_of(y: Any, rows: int, task: str) -> Optional[npt.NDArray[Any]]:
    if y is None:
        return None
    given: npt.NDArray[Any] = np.asarray(y)
    if task == "classification" and given.dtype.kind not in "iub":
        raise UsageError(f"labels of type {given.dtype}, wanted integers 0, 1, ...; numbers are targets of task='regression'")
    answers: npt.NDArray[Any] = np.ascontiguousarray(given, np.int32 if task == "classification" else np.float32).reshape(-1)
    if len(answers) != rows:
        raise UsageError(f"{rows} rows and {len(answers)} labels")
    return answers


class Data:
    """Rows with labels (integers) or targets (numbers), and perhaps test rows.

    x: (rows, features), or pixels in [0, 1] as (rows, channels, height, width). y: integers are classes 0, 1, ...; numbers are
    targets of a regression. Without test rows a tenth of the rows is held out for testing, or the share `holdout` (0: none).
    Arrays of contiguous float32 (and int32 labels) are not copied.
    """

    def __init__(self, x: Any, y: Any = None, *, test: Optional[Tuple[Any, Any]] = None, task: Optional[str] = None,
                 classes: Optional[int] = None, class_names: Optional[Sequence[str]] = None, name: str = "data",
                 holdout: Optional[float] = None) -> None:
        if "," in name or ":" in name or "=" in name or not name:
            raise UsageError(f"name {name!r}: wanted a word without commas, colons and equals signs, which separate the parts of a SPEC")
        if task is None:
            task = "regression" if y is not None and np.asarray(y).dtype.kind == "f" else "classification"
        if task not in ("classification", "regression"):
            raise UsageError(f"task {task!r}, wanted classification or regression")
        self.name, self.holdout, self.task = name, holdout, task
        self.parts: List[Tuple[Floats, Optional[npt.NDArray[Any]]]] = []
        for px, py in [(x, y)] + ([test] if test is not None else []):
            rows = rows_of(px)
            self.parts.append((rows, _answers_of(py, len(rows), task)))
        if any(p[0].shape[1:] != self.parts[0][0].shape[1:] for p in self.parts):
            raise UsageError("test rows have another shape than training rows")
        self.class_names = list(class_names) if class_names is not None else None
        self.classes = classes or (len(self.class_names) if self.class_names else self._count())

    def _count(self) -> int:
        if self.task == "regression":
            return 0
        return max((int(y.max()) + 1 for _, y in self.parts if y is not None and len(y)), default=1)

    @property
    def spec(self) -> str:
        return f"memory:{self.name}" + (f",test={self.holdout:g}" if self.holdout is not None else "")

    def memory(self) -> Memory:
        """As the library wants it; the arrays belong to this object."""
        m = Memory(size=c.sizeof(Memory), name=self.name.encode(), task=0 if self.task == "classification" else 1, classes=self.classes)
        shape = self.parts[0][0].shape[1:]
        m.rank = len(shape)
        for i, d in enumerate(shape):
            m.dims[i] = d
        if self.class_names is not None:
            self._names = texts(self.class_names)
            m.class_names = c.cast(self._names, c.POINTER(c.c_char_p))
        for field, (x, y) in zip(("train", "test"), self.parts):
            a = Arrays(rows=len(x), x=x.ctypes.data)
            if y is not None:
                setattr(a, "label" if self.task == "classification" else "target", y.ctypes.data)
            setattr(m, field, a)
        return m


DataLike = Union[str, Data, Tuple[Any, Any]]


class Lending:
    """The data sets of one call: arrays become SPECs, and stay alive as long as this object."""

    def __init__(self) -> None:
        self.lent: Dict[str, Data] = {}

    def spec(self, data: DataLike) -> str:
        if isinstance(data, str):
            return data
        if not isinstance(data, Data):
            data = Data(*data)
        if self.lent.setdefault(data.name, data) is not data:
            raise UsageError(f"two data sets are called {data.name!r}: give one another name, Data(..., name=...)")
        return data.spec

    def value(self, value: Any) -> Any:
        """A setting that may hold data: SPEC, Data, or {name: either} for those that take NAME=SPEC."""
        if isinstance(value, Data):
            return self.spec(value)
        if isinstance(value, Mapping):
            return [f"{name}={self.spec(data)}" for name, data in value.items()]
        return value

    def memory(self) -> List[Memory]:
        return [d.memory() for d in self.lent.values()]
