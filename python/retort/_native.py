"""The C interface of include/retort.h, by ctypes. Nothing here but declarations, calls and errors."""
from __future__ import annotations

import ctypes as c
import logging
import os
import threading
from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Sequence, Union

_HERE = os.path.dirname(os.path.abspath(__file__))
_SERIES = 2  # the structures below are those of 0.2.x

PathLike = Union[str, "os.PathLike[str]"]
ProgressCallback = Callable[[Dict[str, Any]], None]


def _load_library() -> c.CDLL:
    """The library of $RETORT_LIBRARY, of the wheel, or the system's."""
    own = os.path.join(_HERE, "lib", "libretort.so")
    path = os.environ.get("RETORT_LIBRARY") or (own if os.path.exists(own) else f"libretort.so.0.{_SERIES}")
    try:
        library = c.CDLL(path)
        number = library.rt_version_number()
    except (OSError, AttributeError) as e:
        raise ImportError(f"retort: {e}; install the wheel or the library, or name it by RETORT_LIBRARY") from None
    if number // 100 != _SERIES:
        raise ImportError(f"retort: {path} is version {number // 10000}.{number // 100 % 100}, wanted 0.{_SERIES}")
    return library


class Prediction(c.Structure):
    _fields_ = [("size", c.c_size_t)] + [
        (name, c.c_void_p)
        for name in (
            "probs", "member_probs", "logits", "label", "confidence", "entropy", "expected_entropy", "mutual_information", "epkl",
            "alpha", "reject", "set", "mean", "variance", "data_variance", "knowledge_variance", "lower", "upper",
        )
    ]


class Arrays(c.Structure):
    _fields_ = [("rows", c.c_int64), ("x", c.c_void_p), ("label", c.c_void_p), ("target", c.c_void_p),
                ("reserved", c.c_void_p * 4)]


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


LogFn = c.CFUNCTYPE(None, c.c_void_p, c.c_int, c.c_char_p)
ProgressFn = c.CFUNCTYPE(None, c.c_void_p, c.POINTER(Progress))


class Job(c.Structure):
    _fields_ = [
        ("size", c.c_size_t), ("settings", c.POINTER(c.c_char_p)), ("nsettings", c.c_int), ("words", c.POINTER(c.c_char_p)),
        ("nwords", c.c_int), ("memory", c.POINTER(Memory)), ("nmemory", c.c_int), ("stop", c.POINTER(c.c_int)),
        ("progress", ProgressFn), ("user", c.c_void_p), ("json", c.POINTER(c.c_void_p)),
    ]


class Setting(c.Structure):
    _fields_ = [
        ("size", c.c_size_t), ("key", c.c_char_p), ("kind", c.c_char_p), ("value", c.c_char_p), ("lowest", c.c_double),
        ("highest", c.c_double), ("choices", c.c_char_p), ("help", c.c_char_p),
    ]


lib = _load_library()


def _declare(name: str, result: Any, *arguments: Any) -> None:
    f = getattr(lib, name)
    f.restype, f.argtypes = result, list(arguments)


_declare("rt_version", c.c_char_p)
_declare("rt_version_number", c.c_int)
_declare("rt_error_text", c.c_char_p)
_declare("rt_status_name", c.c_char_p, c.c_int)
_declare("rt_log_set", None, LogFn, c.c_void_p)
_declare("rt_free", None, c.c_void_p)
_declare("rt_model_load", c.c_int, c.POINTER(c.c_void_p), c.c_char_p)
_declare("rt_model_destroy", None, c.POINTER(c.c_void_p))
_declare("rt_model_task", c.c_int, c.c_void_p)
_declare("rt_model_members", c.c_int, c.c_void_p)
_declare("rt_model_outputs", c.c_int64, c.c_void_p)
_declare("rt_model_row", c.c_int64, c.c_void_p)
_declare("rt_model_dims", c.c_int, c.c_void_p, c.POINTER(c.c_int64))
_declare("rt_model_class_name", c.c_char_p, c.c_void_p, c.c_int64)
_declare("rt_model_unit", c.c_char_p, c.c_void_p)
_declare("rt_model_meta", c.c_char_p, c.c_void_p, c.c_char_p)
_declare("rt_model_run", c.c_int, c.c_void_p, c.c_void_p, c.c_int64, c.POINTER(Prediction), c.c_int)
_declare("rt_job_run", c.c_int, c.c_char_p, c.POINTER(Job))
_declare("rt_setting_count", c.c_int, c.c_char_p)
_declare("rt_setting_get", c.c_int, c.c_char_p, c.c_int, c.POINTER(Setting))
_declare("rt_settings_check", c.c_int, c.c_char_p, c.POINTER(c.c_char_p), c.c_int)


# ---- remarks ----

def _log(_user: Any, level: int, text: bytes) -> None:
    logging.getLogger("retort").log((logging.DEBUG, logging.INFO, logging.WARNING)[level], "%s", text.decode("utf-8", "replace"))


logging.getLogger("retort").addHandler(logging.NullHandler())
_log_callback = LogFn(_log)
lib.rt_log_set(_log_callback, None)


# ---- errors ----

class RetortError(Exception):
    """A call of the library failed; the text says what was found and what was wanted.

    status is the number of rt_status in retort.h, code its name ("RT_E_INPUT")."""

    status = 10

    @property
    def code(self) -> str:
        return status_name(self.status)


class UsageError(RetortError, ValueError):
    """A setting or an argument that makes no sense."""

    status = 20


class InputError(RetortError, ValueError):
    """Data that is bad, missing or does not fit."""

    status = 30


class Interrupted(RetortError):
    """Stopped; what was being trained is saved and can be resumed."""

    status = 40


class OutOfMemory(RetortError, MemoryError):
    """Memory that is not there, or above what a limit allows."""

    status = 11


class FileError(RetortError, OSError):
    """The operating system refused: disk full, no permission, I/O error."""

    status = 12


_KINDS = {11: OutOfMemory, 12: FileError, 15: UsageError, 20: UsageError, 30: InputError, 40: Interrupted}


def status_name(status: int) -> str:
    name: bytes = lib.rt_status_name(status)
    return name.decode()


def raise_for(status: int, text: str) -> None:
    if status:
        error = _KINDS.get(status, RetortError)(text)
        error.status = status
        raise error


def error_text() -> str:
    text: bytes = lib.rt_error_text()
    return text.decode("utf-8", "replace")


def call(function: Any, *arguments: Any) -> None:
    """A function that returns an rt_status."""
    status: int = function(*arguments)
    raise_for(status, error_text() if status else "")


# ---- calls ----

def texts(items: Sequence[str]) -> Any:
    array = (c.c_char_p * max(len(items), 1))()
    for i, item in enumerate(items):
        array[i] = item.encode("utf-8")
    return array


def _text_of(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, os.PathLike):
        return str(os.fspath(value))
    return repr(float(value)) if isinstance(value, float) else str(value)  # a numpy float is one of both


def settings_of(settings: Mapping[str, Any]) -> List[str]:
    """Keyword arguments as "key=value": underscores are dashes, a list repeats its key, None is left out."""
    out: List[str] = []
    for key, value in settings.items():
        if value is None:
            continue
        values: Iterable[Any] = value if isinstance(value, (list, tuple)) else [value]
        out += [f"{key.replace('_', '-')}={_text_of(v)}" for v in values]
    return out


class _Call:
    """A job in a thread of its own, so that Ctrl-C reaches Python while it runs."""

    def __init__(self, verb: str, words: Sequence[str], settings: Mapping[str, Any], memory: Sequence[Memory],
                 progress: Optional[ProgressCallback]) -> None:
        lines = settings_of(settings)
        self.verb, self.progress = verb.encode(), progress
        self.stop, self.result = c.c_int(0), c.c_void_p()
        self.status, self.text = 0, ""
        self.failure: Optional[BaseException] = None  # of the callback
        self.callback = ProgressFn(self.show) if progress is not None else ProgressFn(0)
        self.job = Job(size=c.sizeof(Job), settings=texts(lines), nsettings=len(lines), words=texts(words), nwords=len(words),
                       memory=(Memory * max(len(memory), 1))(*memory), nmemory=len(memory), stop=c.pointer(self.stop),
                       progress=self.callback, json=c.pointer(self.result))
        self.done = threading.Event()  # join may take a thread for dead when Ctrl-C meets it (Python 3.11)

    def show(self, _user: Any, p: Any) -> None:
        if self.failure is not None or self.progress is None:
            return
        values = {name: getattr(p.contents, name) for name, _ in Progress._fields_}
        values["note"] = values["note"].decode("utf-8", "replace") if values["note"] else None
        try:
            self.progress(values)
        except BaseException as e:  # noqa: B902: it is raised again where the job was started
            self.failure = e
            self.stop.value = 1

    def work(self) -> None:
        self.status = lib.rt_job_run(self.verb, c.byref(self.job))
        self.text = error_text() if self.status else ""
        self.done.set()

    def wait(self) -> bool:
        """Was it interrupted?"""
        interrupted = False
        threading.Thread(target=self.work, daemon=True).start()
        while not self.done.is_set():
            try:
                self.done.wait(0.05)
            except KeyboardInterrupt:
                interrupted = True
                self.stop.value = 1
        return interrupted


def run(verb: str, words: Sequence[str], settings: Mapping[str, Any], memory: Sequence[Memory] = (),
        progress: Optional[ProgressCallback] = None) -> str:
    """rt_job_run. Ctrl-C sets the stop flag, the library saves what it has, and KeyboardInterrupt goes on; so does an
    exception of the callback."""
    job = _Call(verb, words, settings, memory, progress)
    interrupted = job.wait()
    text = c.string_at(job.result).decode("utf-8") if job.result else "{}"
    lib.rt_free(job.result)
    if job.failure is not None:
        raise job.failure
    if interrupted:
        raise KeyboardInterrupt(job.text)
    raise_for(job.status, job.text)
    return text
