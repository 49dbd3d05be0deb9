"""Which limit ended a plugin's run, told from what the kernel counted and from what the plugin could still say."""

from __future__ import annotations

import re

from malbox_tui.confine.bubblewrap import SHARED_MEMORY_BYTES
from malbox_tui.confine.control_groups import Strikes
from malbox_tui.confine.work import Limits

_MIB = 1024 * 1024
_FORKING = re.compile(r"fork|_start_new_thread|start_new_thread|Popen")
_MEMORY_MARKS = ("bad_alloc", "memory allocation of", "Cannot allocate memory", "out of memory", "MemoryError")


def counted_hits(strikes: Strikes, limits: Limits) -> tuple[str, ...]:
    """Limits that the kernel says were reached."""
    memory = (f"memory limit {limits.memory_mb} MiB",) if strikes.memory else ()
    processes = (f"process limit {limits.processes}",) if strikes.processes else ()
    return memory + processes


def hit_by_traceback(traceback: str, limits: Limits, processes_allowed: int | None) -> str | None:
    """The limit that a Python error is about; None when it is about something else.

    `processes_allowed`: by RLIMIT_NPROC, None: none of ours.
    """
    last = traceback.rstrip().rpartition("\n")[2]
    if re.match(r"MemoryError\b", last) or "[Errno 12]" in last:
        return _address_space(limits)
    if "[Errno 28]" in last:
        return f"shared memory limit {SHARED_MEMORY_BYTES // _MIB} MiB" if "/dev/shm" in last else disk_limit(limits)
    if "[Errno 27]" in last:
        return disk_limit(limits)
    if "can't start new thread" in last or ("[Errno 11]" in last and _FORKING.search(traceback)):
        return "process limit of this host" if processes_allowed is None else f"process limit {processes_allowed}"
    return None


def hit_by_end(how: str, output: str, limits: Limits) -> str | None:
    """The limit that probably made a process end as it did: `how` in words, `output` what it printed."""
    if "SIGXFSZ" in how:
        return disk_limit(limits)
    if any(mark in output for mark in _MEMORY_MARKS):
        return _address_space(limits)
    return None


def disk_limit(limits: Limits) -> str:
    """The limit of private files, by name."""
    return f"disk limit {limits.scratch_mb} MiB"


def _address_space(limits: Limits) -> str:
    name = "memory limit" if limits.address_space_mb == limits.memory_mb else "address space limit"
    return f"{name} {limits.address_space_mb} MiB"
