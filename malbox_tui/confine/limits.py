"""Walls where there is no bubblewrap: resource limits, a session of its own, and an end together with the engine.

Weaker: the process runs as the engine's user and sees its files and network. What it starts is found again by its process group, and
by a mark in its environment if it left that.
"""

from __future__ import annotations

import json
import os
import signal
from dataclasses import dataclass
from pathlib import Path

from malbox_tui.confine.work import SDK_FOLDER, Launch, Places, Work, environment, python_command

MARK_VARIABLE = "MALBOX_CONFINED"


@dataclass(frozen=True, slots=True)
class LimitsOnly:
    """Confines by limits alone."""

    @property
    def has_namespace(self) -> bool:
        """It has none."""
        return False

    def launch(self, work: Work, wire_fd: int, info_fd: int) -> Launch:
        """The command for `work`. RLIMIT_NPROC is left alone: it would count all of the user's processes."""
        places = Places(
            sdk=str(SDK_FOLDER),
            code=str(work.code),
            inbox=str(work.inbox),
            scratch=str(work.scratch),
            readable={name: str(path) for name, path in work.readable.items()},
        )
        settings = json.dumps({"limits": work.limits.rlimits(), "nice": work.limits.nice, "parent": os.getpid()})
        variables = {**environment(work, places, wire_fd), MARK_VARIABLE: mark_of(work)}
        return Launch(python_command(settings, places, work.entry), variables, places)


def mark_of(work: Work) -> str:
    """What marks all processes of this work; no other work has the same."""
    return f"{os.getpid()}:{work.scratch}"


def kill_marked(mark: str) -> None:
    """Kill every process that carries the mark, until there is none. Blocking: it reads `/proc`."""
    wanted = f"{MARK_VARIABLE}={mark}".encode()
    for _round in range(100):
        found = [pid for pid in _processes() if wanted in _variables_of(pid)]
        if not found:
            return
        for pid in found:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue


def _processes() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def _variables_of(pid: int) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return []
