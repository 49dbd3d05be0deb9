"""A mark in the environment of each confined process, by which it is found when nothing else leads to it."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path

from malbox_tui.confine.work import Work

MARK_VARIABLE = "MALBOX_CONFINED"


def mark_of(work: Work) -> dict[str, str]:
    """The variable that marks this work: its scratch folder, which no other work has at the same time."""
    return {MARK_VARIABLE: str(work.scratch)}


_ROUNDS = 100
_UNDECIDED_ROUNDS = 10
"""A process has no environment to be read while it executes another program, which takes less than so many looks at all of `/proc`."""


def kill_marked(folder: Path) -> None:
    """Kill every process of work whose scratch folder is `folder` or lies in it, until there is none. Blocking: it reads `/proc`."""
    undecided_rounds = 0
    for _round in range(_ROUNDS):
        marks = {pid: _mark_of_process(pid) for pid in _processes()}
        found = [pid for pid, mark in marks.items() if mark and Path(mark).is_relative_to(folder)]
        for pid in found:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if not found:
            undecided_rounds += 1
            if undecided_rounds > _UNDECIDED_ROUNDS or None not in marks.values():
                return


def _processes() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def _mark_of_process(pid: int) -> str | None:
    """Empty when it has none, None when that can't be told at the moment."""
    try:
        environment = Path(f"/proc/{pid}/environ").read_bytes()
        if not environment:
            Path(f"/proc/{pid}/exe").readlink()
            return None
    except OSError:
        # Gone, another user's, or a thread of the kernel, which runs no program.
        return ""
    for variable in environment.split(b"\0"):
        name, _, value = variable.partition(b"=")
        if name == MARK_VARIABLE.encode():
            return os.fsdecode(value)
    return ""
