"""The C interface of include/retort.h, by ctypes. Nothing here but declarations, calls and errors."""
from __future__ import annotations

import ctypes as c
import os
import threading
from typing import Any, Callable, Iterable, Mapping, Sequence

_HERE = os.path.dirname(os.path.abspath(__file__))


def _find_library() -> str:
    """The library of the wheel, of $RETORT_LIBRARY, or the system's."""
    own = os.path.join(_HERE, "lib", "libretort.so")
    return os.environ.get("RETORT_LIBRARY") or (own if os.path.exists(own) else "libretort.so.0.2")


class Prediction(c.Structure):
    _fields_ = [("size", c.c_size_t)] + [
        (name, c.c_void_p)
        for name in (
            "probs", "member_probs", "logits", "label", "confidence", "entropy", "expected_entropy", "mutual_information", "epkl",
            "alpha", "reject", "set", "mean", "variance", "data_variance", "knowledge_variance", "lower", "upper",
        )
    ]


class Arrays(c.Structure):
    _fields_ = [("rows", c.c_int64), ("x", c.c_void_p), ("label", c.c_void_p), ("target", c.c_void_p)]


class Memory(c.Structure):
    _fields_ = [
        ("size", c.c_size_t), ("name", c.c_char_p), ("task", c.c_int), ("rank", c.c_int), ("dims", c.c_int64 * 3),
        ("classes", c.c_int64), ("class_names", c.POINTER(c.c_char_p)), ("train", Arrays), ("test", Arrays),
    ]


class Progress(c.Structure):
    _fields_ = [
        ("epoch", c.c_int64), ("epochs", c.c_int64), ("step", c.c_int64), ("steps", c.c_int64), ("loss", c.c_double),
        ("accuracy", c.c_double), ("samples_per_s", c.c_double), ("seconds", c.c_double), ("seconds_left", c.c_double),
        ("epoch_end", c.c_int), ("valid_loss", c.c_double), ("valid_accuracy", c.c_double), ("note", c.c_char_p),
    ]


ProgressFn = c.CFUNCTYPE(None, c.c_void_p, c.POINTER(Progress))


class Job(c.Structure):
    _fields_ = [
        ("size", c.c_size_t), ("settings", c.POINTER(c.c_char_p)), ("nsettings", c.c_int), ("words", c.POINTER(c.c_char_p)),
        ("nwords", c.c_int), ("memory", c.POINTER(Memory)), ("nmemory", c.c_int), ("stop", c.POINTER(c.c_int)),
        ("progress", ProgressFn), ("user", c.c_void_p), ("json", c.POINTER(c.c_void_p)),
    ]


class Setting(c.Structure):
    _fields_ = [
        ("key", c.c_char_p), ("kind", c.c_char_p), ("value", c.c_char_p), ("lowest", c.c_double), ("highest", c.c_double),
        ("choices", c.c_char_p), ("help", c.c_char_p),
    ]


lib = c.CDLL(_find_library())


def _declare(name: str, result: Any, *arguments: Any) -> None:
    f = getattr(lib, name)
    f.restype, f.argtypes = result, list(arguments)


_declare("rt_version", c.c_char_p)
_declare("rt_version_number", c.c_int)
_declare("rt_error_text", c.c_char_p)
_declare("rt_free", None, c.c_void_p)
_declare("rt_model_load", c.c_int, c.POINTER(c.c_void_p), c.c_char_p)
_declare("rt_model_destroy", None, c.POINTER(c.c_void_p))
_declare("rt_model_task", c.c_int, c.c_void_p)
_declare("rt_model_members", c.c_int, c.c_void_p)
_declare("rt_model_outputs", c.c_int64, c.c_void_p)
_declare("rt_model_row", c.c_int64, c.c_void_p)
_declare("rt_model_dims", c.c_int, c.c_void_p, c.POINTER(c.c_int64))
_declare("rt_model_class_name", c.c_char_p, c.c_void_p, c.c_int64)
_declare("rt_model_meta", c.c_char_p, c.c_void_p, c.c_char_p)
_declare("rt_model_run", c.c_int, c.c_void_p, c.c_void_p, c.c_int64, c.POINTER(Prediction), c.c_int)
_declare("rt_job_run", c.c_int, c.c_char_p, c.POINTER(Job))
_declare("rt_setting_count", c.c_int, c.c_char_p)
_declare("rt_setting_get", c.c_int, c.c_char_p, c.c_int, c.POINTER(Setting))
_declare("rt_settings_check", c.c_int, c.c_char_p, c.POINTER(c.c_char_p), c.c_int)


# ---- errors ----

class RetortError(Exception):
    """A call of the library failed; the text says what was found and what was wanted."""

    status = 10


class UsageError(RetortError, ValueError):
    """A setting or an argument that makes no sense."""


class InputError(RetortError, ValueError):
    """Data that is bad, missing or does not fit."""


class Interrupted(RetortError):
    """Stopped; what was being trained is saved and can be resumed."""


_KINDS = {15: UsageError, 20: UsageError, 30: InputError, 40: Interrupted, 11: RetortError}


def raise_for(status: int, text: str) -> None:
    if status:
        error = _KINDS.get(status, RetortError)(text)
        error.status = status
        raise error


def error_text() -> str:
    return lib.rt_error_text().decode("utf-8", "replace")


# ---- calls ----

def texts(items: Sequence[str]) -> Any:
    array = (c.c_char_p * max(len(items), 1))()
    for i, item in enumerate(items):
        array[i] = item.encode("utf-8")
    return array


def settings_of(settings: Mapping[str, Any]) -> list[str]:
    """Keyword arguments as "key=value": underscores are dashes, a list repeats its key, None is left out."""
    out: list[str] = []
    for key, value in settings.items():
        if value is None:
            continue
        values: Iterable[Any] = value if isinstance(value, (list, tuple)) else [value]
        for v in values:
            if isinstance(v, bool):
                v = "true" if v else "false"
            elif isinstance(v, float):
                v = repr(v)
            out.append(f"{key.replace('_', '-')}={v}")
    return out


def run(verb: str, words: Sequence[str], settings: Mapping[str, Any], memory: Sequence[Memory] = (),
        progress: Callable[[dict[str, Any]], None] | None = None) -> str:
    """rt_job_run in a thread of its own, so that Ctrl-C reaches Python: it sets the stop flag, the library saves what it
    has, and KeyboardInterrupt goes on."""
    lines = settings_of(settings)
    stop, result = c.c_int(0), c.c_void_p()
    sets = (Memory * max(len(memory), 1))(*memory)

    def show(_user: Any, p: Any) -> None:
        if progress is not None:
            q = p.contents
            progress({name: getattr(q, name) for name, _ in Progress._fields_ if name != "note"}
                     | {"note": q.note.decode() if q.note else None})

    callback = ProgressFn(show)
    job = Job(size=c.sizeof(Job), settings=texts(lines), nsettings=len(lines), words=texts(words), nwords=len(words), memory=sets,
              nmemory=len(memory), stop=c.pointer(stop), progress=callback if progress else ProgressFn(), json=c.pointer(result))
    answer: list[Any] = []

    def work() -> None:
        status = lib.rt_job_run(verb.encode(), c.byref(job))
        answer.append((status, error_text() if status else ""))

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    interrupted = False
    while thread.is_alive():
        try:
            thread.join(0.05)
        except KeyboardInterrupt:
            interrupted = True
            stop.value = 1
    status, text = answer[0]
    if interrupted:
        raise KeyboardInterrupt(text)
    raise_for(status, text)
    json_text = c.string_at(result).decode("utf-8") if result else "{}"
    lib.rt_free(result)
    return json_text
