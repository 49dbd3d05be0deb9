"""How much memory processes have (proc(5)). PSS: memory with shared pages divided among those who share them, of smaps_rollup."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import psutil


def pss_mb(pid: int) -> float:
    """PSS of one process in MB (10⁶ bytes); 0 when it is gone."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024 / 1e6
    return 0.0


def tree_pss_mb(pid: int) -> float:
    """PSS of a process and all its descendants in MB."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return sum(pss_mb(process.pid) for process in [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)])
    return 0.0


def own_pss_mb() -> float:
    """PSS of this process in MB."""
    return pss_mb(os.getpid())


def own_peak_mb() -> float:
    """The most memory that this process ever had resident, in MB, shared pages in full."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024 / 1e6
    raise LookupError("this kernel doesn't tell the highest resident size")
