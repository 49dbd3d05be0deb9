"""A mark in the environment of each confined process, by which it is found when nothing else leads to it."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from malbox_tui.confine.work import Work

MARK_VARIABLE = "MALBOX_CONFINED"


def mark_of(work: Work) -> dict[str, str]:
    """The variable that marks this work: its scratch folder, which no other work has at the same time."""
    return {MARK_VARIABLE: str(work.scratch)}


def kill_marked(folder: Path) -> None:
    """Kill every process of work whose scratch folder is `folder` or lies in it, until there is none. Blocking: it reads `/proc`."""
    for _round in range(100):
        found = [pid for pid in _processes() if _is_marked(pid, folder)]
        if not found:
            return
        for pid in found:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue


def _processes() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def _is_marked(pid: int, folder: Path) -> bool:
    try:
        variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return False
    marks = [
        os.fsdecode(variable.partition(b"=")[2]) for variable in variables if variable.startswith(MARK_VARIABLE.encode() + b"=")
    ]
    return any(Path(mark).is_relative_to(folder) for mark in marks)
