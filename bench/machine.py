"""The machine under the benchmark: what it is, how busy others keep it, and processes measured on it.

A sample counts only if the machine was free: wait_until_quiet looks before it starts, and run reports which share of the
CPUs others took while it ran (all busy time minus that of the processes themselves).
"""
import os
import platform
import signal
import subprocess
import time

WINDOW = 0.2     # seconds over which the load is read
QUIET = 0.10     # others may use this share of all CPUs
PATIENCE = 20.0  # seconds to wait for that
TICK = os.sysconf("SC_CLK_TCK")


def cores():
    return len(os.sched_getaffinity(0))


def cpu_info():
    model, flags = platform.processor() or platform.machine(), []
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as f:
        for line in f:
            key, _, value = line.partition(":")
            if key.strip() == "model name":
                model = value.strip()
            elif key.strip() == "flags":
                flags = value.split()
    wanted = ("avx", "avx2", "fma", "avx512f", "avx512_bf16", "avx512_vnni", "amx_tile")
    return {"model": model, "cores": cores(), "isa": [f for f in wanted if f in flags]}


def _busy_seconds():
    """CPU seconds since boot in which any CPU did something, or another guest had it (steal)."""
    with open("/proc/stat", encoding="ascii") as f:
        user, nice, system, _idle, _iowait, irq, softirq, steal = map(int, f.readline().split()[1:9])
    return (user + nice + system + irq + softirq + steal) / TICK


def load():
    """Share of all CPUs in use now; nothing of ours runs meanwhile."""
    busy, t = _busy_seconds(), time.monotonic()
    time.sleep(WINDOW)
    return max(0.0, (_busy_seconds() - busy) / ((time.monotonic() - t) * os.cpu_count()))


def wait_until_quiet():
    """Waits for others to leave, not for ever; returns the load seen last."""
    end = time.monotonic() + PATIENCE
    seen = load()
    while seen > QUIET and time.monotonic() < end:
        time.sleep(0.5)
        seen = load()
    return seen


class Failed(Exception):
    def __init__(self, process, what):
        super().__init__(f"{' '.join(os.path.basename(a) for a in process.args)}: {what}")


def _reap(process):
    """Waits, with the resources it used."""
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return usage


def run(commands, env=None, synchronise=False):
    """Runs the commands at the same time and returns their standard outputs, with what they used: (outputs, usage).

    With synchronise, each prints the line "ready" when it is set up and starts to measure at the line it then gets."""
    busy, t = _busy_seconds(), time.monotonic()
    processes, outputs, usages = [], [], []
    try:
        for command in commands:
            processes.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                              env={**os.environ, **(env or {})}))
        if synchronise:
            for p in processes:
                if p.stdout.readline() != "ready\n":
                    raise Failed(p, "ended before it was ready")
            for p in processes:
                p.stdin.write("go\n")
                p.stdin.flush()
        for p in processes:
            outputs.append(p.stdout.read())
            usages.append(_reap(p))
            if p.returncode:
                raise Failed(p, f"exit status {p.returncode}")
    finally:
        for p in processes:
            if p.returncode is None:
                os.kill(p.pid, signal.SIGKILL)  # Popen.kill may reap it, and lose what it used
                _reap(p)
            p.stdin.close()
            p.stdout.close()
    elapsed = time.monotonic() - t
    own = sum(u.ru_utime + u.ru_stime for u in usages)
    return outputs, {
        "elapsed_s": elapsed,
        "cpu_s": own,
        "others": max(0.0, (_busy_seconds() - busy - own) / (elapsed * os.cpu_count())),
        "peak_rss_bytes": max(u.ru_maxrss for u in usages) * 1024,
    }
