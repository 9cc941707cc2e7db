"""scikit-learn estimators over retort: ensembles of networks, or networks distilled from a teacher."""
from __future__ import annotations

import os
import tempfile
from typing import Any, Dict, Mapping, Optional, Sequence, Tuple, Union

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, check_random_state

from ._native import PathLike
from .data import Data, Floats
from .model import Model
from .verbs import Runs, distill, train

Array = npt.NDArray[Any]
try:
    from sklearn.utils.validation import validate_data
except ImportError:  # before 1.6
    def validate_data(estimator: Any, *arguments: Any, **options: Any) -> Any:
        return estimator._validate_data(*arguments, **options)

_ROWS_TO_HOLD_OUT = 20  # with fewer, all are trained on


class _Estimator(BaseEstimator):
    """
    arch, members, epochs, method, valid, threads: keys of `retort train` and `distill`; settings: any others, as a dictionary.
    teacher: run directory to distil from, or several as one ensemble; their outputs are computed.
    (fit's teacher_proba: outputs that are known.)
    random_state: None is the program's own seed, 1; an integer is the program's --seed.
    input_shape: (channels, height, width), where rows are flattened pixels in [0, 1] and the architecture convolves.
    progress: function of a dictionary, called in each step. out: directory for the run; None: it is not kept.
    """

    def __init__(self, arch: str = "mlp:100", members: int = 5, epochs: int = 100, method: Optional[str] = None,
                 teacher: Optional[Runs] = None, valid: float = 0.1, random_state: Any = None, threads: int = 0,
                 input_shape: Optional[Sequence[int]] = None, settings: Optional[Mapping[str, Any]] = None,
                 progress: Any = None, out: Optional[PathLike] = None) -> None:
        self.arch = arch
        self.members = members
        self.epochs = epochs
        self.method = method
        self.teacher = teacher
        self.valid = valid
        self.random_state = random_state
        self.threads = threads
        self.input_shape = input_shape
        self.settings = settings
        self.progress = progress
        self.out = out

    # The files of the run travel with the estimator, so that it can be pickled and copied.
    def _keep(self, run: str) -> None:
        self._files: Dict[str, bytes] = {}
        for name in sorted(os.listdir(run)):
            if name.endswith(".safetensors") and not name.startswith(("members", "checkpoint")):
                with open(os.path.join(run, name), "rb") as f:
                    self._files[name] = f.read()
        self._model = Model.load(run)

    def __getstate__(self) -> Dict[str, Any]:
        state = dict(super().__getstate__())
        state.pop("_model", None)
        return state

    def save(self, directory: PathLike) -> None:
        """The model's files, for `retort predict`, Model.load and others."""
        check_is_fitted(self, "_files")
        os.makedirs(directory, exist_ok=True)
        for name, content in self._files.items():
            with open(os.path.join(directory, name), "wb") as f:
                f.write(content)

    @property
    def model_(self) -> Model:
        check_is_fitted(self, "_files")
        if not hasattr(self, "_model"):
            with tempfile.TemporaryDirectory() as d:
                self.save(d)
                self._model = Model.load(d)
        return self._model

    def _seed(self) -> int:
        if self.random_state is None:
            return 1
        if isinstance(self.random_state, (int, np.integer)):
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _fit(self, data: Data, teacher: Optional[Array]) -> None:
        rows = len(data.parts[0][0])
        keys: Dict[str, Any] = {"arch": self.arch, "epochs": self.epochs, "valid": self.valid if rows >= _ROWS_TO_HOLD_OUT else 0,
                                "seed": self._seed(), "threads": self.threads, "force": True, **(self.settings or {})}
        with tempfile.TemporaryDirectory() as d:
            run = os.fspath(self.out) if self.out is not None else os.path.join(d, "run")
            known: Optional[Runs] = self.teacher
            if teacher is not None:
                known = "logits:" + os.path.join(d, "teacher.npy")
                np.save(os.path.join(d, "teacher.npy"), teacher.astype(np.float32))
            if known is None:
                train(data, members=self.members, out=run, progress=self.progress, **keys)
            else:
                distill(data, teacher=known, method=self.method or "kd", out=run, progress=self.progress, **keys)
            self._keep(run)

    def _shaped(self, X: Any) -> Floats:
        x: Floats = X
        return x if self.input_shape is None else x.reshape(len(x), *self.input_shape)

    def _rows(self, X: Any) -> Floats:
        check_is_fitted(self, "_files")
        return self._shaped(validate_data(self, X, dtype=np.float32, reset=False))

    def predict_uncertainty(self, X: Any) -> Dict[str, Floats]:
        """Total, data and, where the model has it, knowledge uncertainty of each row."""
        return self.model_.uncertainty(self._rows(X), threads=self.threads)


def _teacher(given: Any, rows: int, outputs: int, what: str) -> Array:
    """(rows, outputs) or (rows, teachers, outputs) -> (rows, teachers, outputs), finite."""
    t = np.asarray(given, np.float64)
    t = t[:, None, :] if t.ndim == 2 else t
    if t.ndim != 3 or t.shape[0] != rows or t.shape[2] != outputs:
        raise ValueError(f"teacher_proba of shape {np.shape(given)}, wanted ({rows}, {outputs}) or ({rows}, teachers, {outputs}): {what}")
    if not np.isfinite(t).all():
        raise ValueError("teacher_proba has numbers that are not finite")
    return t


class RetortClassifier(ClassifierMixin, _Estimator):
    """An ensemble of networks; with a teacher, or its probabilities in fit, a student of it."""

    __doc__ += _Estimator.__doc__ or ""

    def fit(self, X: Any, y: Any, teacher_proba: Any = None) -> "RetortClassifier":
        """teacher_proba: (rows, classes) or (rows, teachers, classes), of these rows, in the order of np.unique(y)."""
        X, y = validate_data(self, X, y, dtype=np.float32)
        check_classification_targets(y)
        self.classes_, labels = np.unique(y, return_inverse=True)
        k = len(self.classes_)
        if k < 2:
            raise ValueError(f"{type(self).__name__}: one class in y, wanted at least two")
        teacher = None
        if teacher_proba is not None:
            p = _teacher(teacher_proba, len(X), k, "probabilities")
            if p.min() < 0 or np.abs(p.sum(-1) - 1).max() > 1e-3:
                raise ValueError("teacher_proba: rows must be non-negative and sum to 1 (are these logits?)")
            teacher = np.log(np.maximum(p, 1e-30))
        self._fit(Data(self._shaped(X), labels, classes=k, class_names=[str(c) for c in self.classes_], holdout=0), teacher)
        return self

    def predict_proba(self, X: Any) -> npt.NDArray[np.float64]:
        return self.model_.predict_proba(self._rows(X), threads=self.threads).astype(np.float64)

    def predict(self, X: Any) -> Array:
        labels = self.model_.predict(self._rows(X), threads=self.threads)
        answers: Array = self.classes_[labels]
        return answers


class RetortRegressor(RegressorMixin, _Estimator):
    """An ensemble of networks that answer with mean and variance; with a teacher, or its answers in fit, a student of it."""

    __doc__ += _Estimator.__doc__ or ""

    def fit(self, X: Any, y: Any, teacher_proba: Any = None) -> "RetortRegressor":
        """teacher_proba: (rows, 2) or (rows, teachers, 2), mean and variance of y by each teacher for these rows."""
        X, y = validate_data(self, X, y, dtype=np.float32, y_numeric=True)
        teacher = None
        if teacher_proba is not None:
            teacher = _teacher(teacher_proba, len(X), 2, "means and variances")
            if teacher[..., 1].min() <= 0:
                raise ValueError("teacher_proba: variances must be above zero")
        self._fit(Data(self._shaped(X), y.astype(np.float32), task="regression", holdout=0), teacher)
        return self

    def predict(self, X: Any, return_std: bool = False) -> Union[Array, Tuple[Array, Array]]:
        out = self.model_.run(self._rows(X), "mean", "variance", threads=self.threads)
        mean: Array = out["mean"].astype(np.float64)
        return (mean, np.sqrt(out["variance"].astype(np.float64))) if return_std else mean
