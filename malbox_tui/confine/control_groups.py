"""Control groups of one engine: in each hierarchy one parent of its own, in it one for each bench, in that one for each process.

1. A parent's name says which process made it: `remove_leftovers` finds those of killed engines, and leaves those of living ones alone.
2. Removing a group kills what is in it first. Only groups that have such a name, or are below one that has, are ever removed.
3. Everything here blocks for a moment; adapters call it in a thread.
"""

from __future__ import annotations

import logging
import os
import secrets
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from malbox_tui.confine.hierarchies import NAME_PREFIX, Controller, Hierarchy, entering

REMOVAL_S = 5.0
"""How long what was killed in a group may take to leave it."""

_PROCESSES = "cgroup.procs"
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Strikes:
    """How often limits of one process tree hit, since it was started."""

    memory: int = 0
    processes: int = 0

    def __add__(self, more: Strikes) -> Strikes:
        return Strikes(self.memory + more.memory, self.processes + more.processes)

    def since(self, earlier: Strikes) -> Strikes:
        """Those that came after `earlier`."""
        return Strikes(self.memory - earlier.memory, self.processes - earlier.processes)


class ProcessGroups:
    """The groups of one process and all that it starts, one in each hierarchy."""

    def __init__(self, groups: Sequence[tuple[Hierarchy, Path]]) -> None:
        self._groups = tuple(groups)

    @property
    def entering(self) -> tuple[str, ...]:
        """What to put before the command of the process."""
        return entering([path for _hierarchy, path in self._groups])

    def strikes(self) -> Strikes:
        """So far. Two small reads: may be called on the loop."""
        memory = processes = 0
        for hierarchy, path in self._groups:
            if Controller.MEMORY in hierarchy.controllers:
                memory = hierarchy.memory_kills(path)
            if Controller.PIDS in hierarchy.controllers:
                processes = hierarchy.refused_forks(path)
        return Strikes(memory, processes)

    def remove(self) -> None:
        """Kill what is in them, and remove them. What can't be removed is logged; a second call does nothing."""
        for _hierarchy, path in self._groups:
            _remove(path)


class BenchGroups:
    """The groups of one bench, which bound what its processes may use together. None is there before `make`."""

    def __init__(self, groups: Sequence[tuple[Hierarchy, Path]], cores: float | None) -> None:
        self._groups = tuple(groups)
        self._cores = cores

    def make(self) -> None:
        """Raises OSError, with nothing left."""
        try:
            for hierarchy, path in self._groups:
                path.parent.mkdir(mode=0o700, exist_ok=True)
                hierarchy.hand_down(path.parent)
                path.mkdir(mode=0o700)
                hierarchy.hand_down(path)
                if self._cores is not None and Controller.CPU in hierarchy.controllers:
                    hierarchy.limit_cores(path, self._cores)
        except BaseException:
            self.remove()
            raise

    def for_process(self, name: str, memory_mb: int, processes: int) -> ProcessGroups:
        """Groups for a new process, limited. Raises OSError, with nothing left."""
        unique = f"{name}-{secrets.token_hex(4)}"
        made = ProcessGroups([(hierarchy, path / unique) for hierarchy, path in self._groups])
        try:
            for hierarchy, path in made._groups:
                path.mkdir(mode=0o700)
                if Controller.MEMORY in hierarchy.controllers:
                    hierarchy.limit_memory(path, memory_mb)
                if Controller.PIDS in hierarchy.controllers:
                    hierarchy.limit_processes(path, processes)
        except BaseException:
            made.remove()
            raise
        return made

    def remove(self) -> None:
        """With all groups of processes that are left in them. A second call does nothing."""
        for _hierarchy, path in self._groups:
            _remove(path)


class ControlGroups:
    """The parents of one engine. Without hierarchies it makes nothing, and everything it gives does nothing."""

    def __init__(self, hierarchies: Sequence[Hierarchy] = ()) -> None:
        name = _parent_name()
        ordered = sorted(hierarchies, key=lambda hierarchy: Controller.PIDS not in hierarchy.controllers)
        """Where processes are counted comes first: nothing can be started any more in what is being removed."""
        self._parents = tuple((hierarchy, hierarchy.base / name) for hierarchy in ordered)

    @property
    def controllers(self) -> frozenset[Controller]:
        """What can be limited."""
        return frozenset(controller for hierarchy, _path in self._parents for controller in hierarchy.controllers)

    @property
    def bases(self) -> tuple[Path, ...]:
        """Where the parents lie."""
        return tuple(hierarchy.base for hierarchy, _path in self._parents)

    def for_bench(self, name: str, cores: float | None) -> BenchGroups:
        """Groups for a new bench. `cores`: how many it may keep busy; None: any number."""
        return BenchGroups([(hierarchy, parent / name) for hierarchy, parent in self._parents], cores)

    def remove(self) -> None:
        """With everything in them. A second call does nothing."""
        for _hierarchy, parent in self._parents:
            _remove(parent)


def remove_leftovers(hierarchies: Sequence[Hierarchy]) -> None:
    """Remove the groups of engines that are no more, wherever in these hierarchies they are, and kill what is in them."""
    for hierarchy in hierarchies:
        for folder, names, _files in os.walk(hierarchy.mount):
            ours = [name for name in names if name.startswith(NAME_PREFIX)]
            for name in ours:
                names.remove(name)
                if _is_left(name):
                    _remove(Path(folder, name))


def _parent_name() -> str:
    """Says whose the group is, so that no other process is ever taken for its engine: a process id means something in its namespace
    only, and is used again."""
    pid = os.getpid()
    return f"{NAME_PREFIX}{pid}-{_start_of(pid)}-{_pid_namespace()}-{secrets.token_hex(4)}"


def _is_left(name: str) -> bool:
    """Whether the engine that made it ended; no when that can't be told."""
    words = name.removeprefix(NAME_PREFIX).split("-")
    if len(words) != 4 or words[2] != _pid_namespace() or not words[0].isdecimal():
        return False
    return _start_of(int(words[0])) != words[1]


def _start_of(pid: int) -> str:
    """When a process started, in ticks since boot; empty when there is none. Field 22 of proc_pid_stat(5)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except OSError:
        return ""


def _pid_namespace() -> str:
    return str(Path("/proc/self/ns/pid").stat().st_ino)


def _remove(group: Path) -> None:
    if not (group / _PROCESSES).exists():
        return
    deadline = time.monotonic() + REMOVAL_S
    for path in (*_inside(group), group):
        while True:
            _kill(path)
            try:
                path.rmdir()
            except FileNotFoundError:
                break
            except OSError as error:
                if time.monotonic() > deadline:
                    _log.warning("the control group %s can't be removed: %s", path, error.strerror)
                    return
                time.sleep(0.002)
            else:
                break


def _inside(group: Path) -> Iterator[Path]:
    """Groups below this one, the deepest first."""
    for folder, names, _files in os.walk(group, topdown=False):
        for name in names:
            yield Path(folder, name)


def _kill(group: Path) -> None:
    """Everything in this very group. Where processes are counted, it gets no new one from now on."""
    with suppress(OSError):
        if (group / "pids.max").exists():
            (group / "pids.max").write_text("0")
        if (group / "cgroup.kill").exists():
            (group / "cgroup.kill").write_text("1")
            return
        for pid in map(int, (group / _PROCESSES).read_text().split()):
            # 0 is a process that this one can't name; to kill it would mean to kill all of this process's own group.
            if pid > 0:
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
