"""ONNX Runtime, the second peer of inference: its package, its models, the ways to run it.

The package is onnxruntime-node of npm, installed on demand into .cache/ beside this file; its scripts are not run, because
they only fetch what GPUs need. Models are the networks of the PyTorch side, exported by peer_torch.py's Python. Where any
of this is impossible the peer is left out, and the report says why.
"""
import pathlib
import shutil
import subprocess
from dataclasses import dataclass

from settings import place_label, places

HERE = pathlib.Path(__file__).resolve().parent
CACHE = HERE / ".cache"
SCRIPT = HERE / "peer_ort.js"
VERSIONS = ("1.23.2", "1.17.3")  # the first that runs here
PATIENCE = 300                   # seconds for npm


class Unavailable(Exception):
    """Why there is no ONNX Runtime."""


def _reason(stderr, status):
    """npm's error code, or the last line that was said; without the place of the cache."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    codes = [line for line in lines if line.lower().startswith("npm err") and " code " in line.lower()]
    return (codes or lines[-1:] or [f"exit status {status}"])[0].replace(str(CACHE), CACHE.name)


def _output(command, timeout=PATIENCE):
    """Standard output, or Unavailable with what the command said."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)
    except subprocess.TimeoutExpired:
        raise Unavailable(f"{pathlib.Path(command[0]).name}: nothing after {timeout} s") from None
    except OSError as e:
        raise Unavailable(f"{pathlib.Path(command[0]).name}: {e.strerror}") from None
    if done.returncode:
        raise Unavailable(f"{pathlib.Path(command[0]).name}: {_reason(done.stderr, done.returncode)}")
    return done.stdout.strip()


def _package(node, npm, version):
    """The folder with that version, installed if it is not there, after a look whether it loads."""
    folder = CACHE / f"onnxruntime-node-{version}"
    if not (folder / "node_modules" / "onnxruntime-node").is_dir():
        if not npm:
            raise Unavailable("npm is not installed")
        folder.mkdir(parents=True, exist_ok=True)
        _output([npm, "install", "--prefix", str(folder), "--ignore-scripts", "--no-audit", "--no-fund", "--fetch-retries=1",
                 f"onnxruntime-node@{version}"])
    if _output([node, str(SCRIPT), "--package", str(folder), "--version"], 60) != version:
        raise Unavailable(f"{folder.name} holds another version")
    return folder


@dataclass(frozen=True)
class Runtime:
    node: str
    python: str
    folder: pathlib.Path
    version: str

    def model(self, job):
        """The exported network of the job, made again when the networks have changed."""
        name = "-".join([job["arch"].replace(":", "_").replace(",", "_"), job["input"], str(job["classes"]), f"b{job['batch']}"])
        path, source = CACHE / f"{name}.onnx", HERE.parent / "tests" / "golden" / "torch_nets.py"
        if not path.exists() or path.stat().st_mtime < source.stat().st_mtime:
            _output([self.python, str(HERE / "export_onnx.py"), "--arch", job["arch"], "--input", job["input"], "--classes",
                     str(job["classes"]), "--batch", str(job["batch"]), "--out", str(path)])
        return path


def find(python):
    """ONNX Runtime on this machine, or Unavailable."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if not node:
        raise Unavailable("node is not installed")
    _output([python, "-c", "import onnx"])
    reasons = []
    for version in VERSIONS:
        try:
            return Runtime(node, python, _package(node, npm, version), version)
        except Unavailable as e:
            reasons.append(f"{version}: {e}")
    raise Unavailable("; ".join(reasons))


@dataclass(frozen=True)
class Setting:
    processes: int
    threads: int

    def label(self):
        return f"ONNX Runtime, {place_label(self.processes, self.threads)}"

    def commands(self, runtime, job, seconds):
        command = [runtime.node, str(SCRIPT), "--package", str(runtime.folder), "--model", str(runtime.model(job)),
                   "--input", job["input"], "--batch", str(job["batch"]), "--threads", str(self.threads),
                   "--seconds", str(seconds)]
        return [command] * self.processes


def settings_of(job, cores):
    return [Setting(*place) for place in places(job, cores)] if job["measure"] == "infer" else []
