"""scikit-learn estimators over retort: ensembles of networks, or networks distilled from a teacher's probabilities."""
from __future__ import annotations

import os
import tempfile
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, check_is_fitted, check_random_state, check_X_y

from .data import Data
from .model import Model
from .verbs import distill, train


class _Estimator(BaseEstimator):
    def __init__(self, arch: str = "mlp:100", members: int = 5, epochs: int = 100, method: str | None = None, valid: float = 0.1,
                 random_state: Any = None, threads: int = 0, settings: dict | None = None, out: str | None = None) -> None:
        self.arch = arch
        self.members = members
        self.epochs = epochs
        self.method = method
        self.valid = valid
        self.random_state = random_state
        self.threads = threads
        self.settings = settings
        self.out = out

    # The files of the run travel with the estimator, so that it can be pickled and copied.
    def _keep(self, run: str) -> None:
        names = [n for n in os.listdir(run) if n.endswith(".safetensors") and not n.startswith(("members", "checkpoint"))]
        self._files = {n: open(os.path.join(run, n), "rb").read() for n in names}
        self._model = Model.load(run)

    def __getstate__(self) -> dict:
        state = dict(super().__getstate__())
        state.pop("_model", None)
        return state

    @property
    def model_(self) -> Model:
        check_is_fitted(self, "_files")
        if not hasattr(self, "_model"):
            with tempfile.TemporaryDirectory() as d:
                for name, content in self._files.items():
                    with open(os.path.join(d, name), "wb") as f:
                        f.write(content)
                self._model = Model.load(d)
        return self._model

    def _fit(self, data: Data, teacher: np.ndarray | None) -> None:
        seed = int(check_random_state(self.random_state).randint(2**31 - 1)) if self.random_state is not None else 1
        # too few rows to hold any out
        valid = self.valid if len(data._parts[0][0]) >= 20 else 0
        keys = {"arch": self.arch, "epochs": self.epochs, "valid": valid, "seed": seed, "threads": self.threads, **(self.settings or {})}
        with tempfile.TemporaryDirectory() as d:
            run = self.out or os.path.join(d, "run")
            if teacher is None:
                train(data, members=self.members, out=run, force=True, **keys)
            else:
                stored = os.path.join(d, "teacher.npy")
                p = np.asarray(teacher, np.float64)
                p = p[:, None, :] if p.ndim == 2 else p
                np.save(stored, np.log(np.maximum(p, 1e-30)).astype(np.float32))
                distill(data, teacher=f"logits:{stored}", method=self.method or "kd", out=run, force=True, **keys)
            self._keep(run)

    def _rows(self, x: Any) -> np.ndarray:
        check_is_fitted(self, "_files")
        x = check_array(x, dtype=np.float32, estimator=self)
        if x.shape[1] != self.n_features_in_:
            raise ValueError(f"X has {x.shape[1]} features, but {type(self).__name__} is expecting {self.n_features_in_} features as input")
        return x

    def predict_uncertainty(self, X: Any) -> dict[str, np.ndarray]:
        """Total, data and, where the model has it, knowledge uncertainty of each row."""
        return self.model_.uncertainty(self._rows(X), threads=self.threads)


class RetortClassifier(ClassifierMixin, _Estimator):
    """An ensemble of networks; with teacher_proba, (rows, classes) or (rows, teachers, classes), a student of it."""

    def fit(self, X: Any, y: Any, teacher_proba: Any = None) -> "RetortClassifier":
        X, y = check_X_y(X, y, dtype=np.float32, estimator=self)
        check_classification_targets(y)
        self.classes_, labels = np.unique(y, return_inverse=True)
        self.n_features_in_ = X.shape[1]
        if len(self.classes_) < 2:
            raise ValueError(f"{type(self).__name__}: one class in y, wanted at least two")
        self._fit(Data(X, labels, classes=len(self.classes_), class_names=[str(k) for k in self.classes_], holdout=0), teacher_proba)
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        return self.model_.predict_proba(self._rows(X), threads=self.threads).astype(np.float64)

    def predict(self, X: Any) -> np.ndarray:
        return self.classes_[self.model_.predict(self._rows(X), threads=self.threads)]


class RetortRegressor(RegressorMixin, _Estimator):
    """An ensemble of networks that answer with mean and variance."""

    def fit(self, X: Any, y: Any) -> "RetortRegressor":
        X, y = check_X_y(X, y, dtype=np.float32, y_numeric=True, estimator=self)
        self.n_features_in_ = X.shape[1]
        self._fit(Data(X, y.astype(np.float32), task="regression", holdout=0), None)
        return self

    def predict(self, X: Any, return_std: bool = False) -> Any:
        x = self._rows(X)
        out = self.model_.run(x, "mean", "variance", threads=self.threads)
        mean = out["mean"].astype(np.float64)
        return (mean, np.sqrt(out["variance"].astype(np.float64))) if return_std else mean
