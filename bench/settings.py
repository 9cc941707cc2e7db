"""The ways to run a job in PyTorch. A comparison is with the best of them, so every sensible one is listed here.

    place    one process with 1, half or all threads; where the work is independent (members, or requests of inference)
             also one process per core with one thread each, all measuring at the same time
    form     how the step is written: see peer_torch.py
    format   memory format of images: nchw or channels_last
    heap     kept: glibc keeps freed memory instead of giving it back and faulting it in again at every step;
             default: as an ordinary user runs it

A setting is *usual* when it only chooses threads, processes and memory format; stacked members, frozen programs and a kept
heap are *tuned*: what an expert could get out of PyTorch. Floors are ratios to the best usual setting; the best tuned one is
measured in the same rounds and printed beside it.
"""
import itertools
from dataclasses import dataclass

HEAP_KEPT = {"MALLOC_MMAP_THRESHOLD_": str(32 << 20), "MALLOC_TRIM_THRESHOLD_": str(1 << 40), "MALLOC_TOP_PAD_": str(64 << 20)}


def place_label(processes, threads):
    place = f"{threads} thread{'s' if threads > 1 else ''}"
    return f"{processes} processes of {place}" if processes > 1 else place


@dataclass(frozen=True)
class Setting:
    processes: int
    threads: int
    form: str
    format: str
    heap: str

    def label(self):
        words = [place_label(self.processes, self.threads)]
        words += [self.form] if self.form != "eager" else []
        words += [self.format] if self.format else []
        words += ["heap kept"] if self.heap == "kept" else []
        return ", ".join(words)

    def usual(self):
        return self.heap == "default" and self.form in ("eager", "loop")

    def env(self):
        n = str(self.threads)
        env = {"OMP_NUM_THREADS": n, "OPENBLAS_NUM_THREADS": n, "MKL_NUM_THREADS": n}
        return {**env, **HEAP_KEPT} if self.heap == "kept" else env

    def commands(self, python, script, job, seconds):
        """One command per process; members are spread evenly."""
        out = []
        for i in range(self.processes):
            share = (job["members"] + i) // self.processes if job["measure"] != "infer" else 1
            out.append([python, script, "--measure", "train" if job["measure"] == "memory" else job["measure"],
                        "--arch", job["arch"], "--input", job["input"], "--classes", str(job["classes"]),
                        "--batch", str(job["batch"]), "--members", str(share), "--threads", str(self.threads),
                        "--form", self.form, "--format", self.format or "nchw", "--seconds", str(seconds),
                        "--student", job["student"], "--objective", job["objective"], "--perturb", job["perturb"],
                        *(["--online"] if job["online"] else [])])
        return out


def places(job, cores):
    """(processes, threads) pairs."""
    cores = min(cores, job["threads"] or cores)
    out = {(1, t) for t in (1, max(1, cores // 2), cores)}
    if job["measure"] == "infer":
        out.add((cores, 1))
    elif job["measure"] == "train" and job["members"] > 1:
        out.add((min(cores, job["members"]), 1))
    return sorted(out)


def _programs(job):
    """(form, format) pairs."""
    images = "x" in job["input"] and not job["arch"].startswith("mlp")
    formats = ["nchw", "channels_last"] if images else [""]
    if job["measure"] == "infer":
        return [("eager", f) for f in formats] + [("frozen", formats[0])]
    if job["members"] == 1 or job["measure"] == "perm":
        return [("eager", f) for f in formats]
    return [("loop", f) for f in formats] + ([] if images else [("stacked", "")])


def settings_of(job, cores):
    out = []
    for (processes, threads), (form, fmt) in itertools.product(places(job, cores), _programs(job)):
        # where cores stay idle the heap will not make the best setting
        both = processes * threads > 1 or job["measure"] == "memory"
        for heap in ("kept", "default") if both else ("default",):
            out.append(Setting(processes, threads, form, fmt, heap))
    return out
