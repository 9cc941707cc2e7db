"""retort: ensembles of neural networks, distilled into one that keeps their uncertainty.

    import retort
    retort.train((X, y), arch="mlp:100,100", members=5, out="runs/teacher")
    retort.distill((X, y), teacher="runs/teacher", method="hydra", out="runs/student")
    model = retort.Model.load("runs/student")
    p = model.predict_proba(X_new)
    knows = model.uncertainty(X_new)["mutual_information"]

Verbs take the keys of the program's flags as arguments (`retort train --help`), with underscores for dashes. Data is a SPEC
as the program takes it ("fashion-mnist", "csv:houses.csv,target=price"), or arrays: (X, y), or a Data object. Remarks of the
library go to the logger "retort". Estimators for scikit-learn are in retort.sklearn.
"""
from ._native import FileError, InputError, Interrupted, OutOfMemory, RetortError, UsageError, lib as _lib
from .data import Data
from .model import Model
from .verbs import average, calibrate, distill, evaluate, export, gather, report, settings, train

__version__: str = _lib.rt_version().decode()
__all__ = ["Data", "FileError", "InputError", "Interrupted", "Model", "OutOfMemory", "RetortError", "UsageError", "average",
           "calibrate", "distill", "evaluate", "export", "gather", "report", "settings", "train", "__version__"]
