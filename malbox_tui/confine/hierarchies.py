"""Which control groups this engine may make, found out by trying: a group below its own one, with a process in it.

Source: Documentation/admin-guide/cgroup-v1/cgroups.rst and cgroup-v2.rst of the kernel.

1. Groups are made below the engine's own group (version 2: or below one of its ancestors that already hands controllers down), so that
   limits of the engine's surroundings go on to hold for plugins.
2. Nothing is written to a group that this program didn't make. In version 2 the controllers of a foreign group are therefore used only
   where its `cgroup.subtree_control` has them.
"""

from __future__ import annotations

import os
import re
import secrets
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

NAME_PREFIX = "malbox-tui-"
"""What the names of this program's topmost groups begin with, in every hierarchy."""

_ENTER = 'n=$1; shift; while [ "$n" -gt 0 ]; do echo 0 >"$1/cgroup.procs" || exit 125; shift; n=$((n-1)); done; exec "$@"'
"""Moves the shell into groups and becomes another command; 0 means the process that writes."""
_PERIOD_US = 100_000
_MIB = 1024 * 1024


class Controller(StrEnum):
    """A kind of limit that a group can have."""

    MEMORY = "memory"
    CPU = "cpu"
    PIDS = "pids"


@dataclass(frozen=True, slots=True)
class Hierarchy:
    """Controllers of a hierarchy that is mounted at `mount`, and the folder in it below which groups may be made."""

    version: int
    controllers: frozenset[Controller]
    mount: Path
    base: Path

    def limit_memory(self, group: Path, memory_mb: int) -> None:
        """Bound the memory of all processes of a group together, swap included. Raises OSError."""
        if self.version == 1:
            _write(group / "memory.limit_in_bytes", memory_mb * _MIB)
            _write_if_there(group / "memory.memsw.limit_in_bytes", memory_mb * _MIB)
        else:
            _write(group / "memory.max", memory_mb * _MIB)
            _write_if_there(group / "memory.swap.max", 0)

    def limit_processes(self, group: Path, processes: int) -> None:
        """Bound processes and threads of a group together. Raises OSError."""
        _write(group / "pids.max", processes)

    def limit_cores(self, group: Path, cores: float) -> None:
        """Bound the processor time of a group, in cores that it may use all the time. Raises OSError."""
        quota_us = round(cores * _PERIOD_US)
        if self.version == 1:
            _write(group / "cpu.cfs_period_us", _PERIOD_US)
            _write(group / "cpu.cfs_quota_us", quota_us)
        else:
            _write(group / "cpu.max", f"{quota_us} {_PERIOD_US}")

    def hand_down(self, group: Path) -> None:
        """Give the controllers to the groups that are made in `group`, one of ours. Raises OSError."""
        if self.version == 2:
            _write(group / "cgroup.subtree_control", " ".join(f"+{controller.value}" for controller in sorted(self.controllers)))

    def memory_kills(self, group: Path) -> int:
        """How many processes of the group were killed at its memory limit so far; 0 when that can't be told."""
        return _counter(group, "memory.oom_control" if self.version == 1 else "memory.events", "oom_kill")

    def refused_forks(self, group: Path) -> int:
        """How many processes and threads the group could not have at its limit so far; 0 when that can't be told."""
        return _counter(group, "pids.events", "max")


def entering(groups: Sequence[Path]) -> tuple[str, ...]:
    """What to put before a command for it to run in these groups, with all that it starts. It exits with 125 where that fails."""
    return ("/bin/sh", "-c", _ENTER, "malbox", str(len(groups)), *map(str, groups)) if groups else ()


def find_hierarchies(proc: Path = Path("/proc/self")) -> tuple[Hierarchy, ...]:
    """The hierarchies that work, each controller in one of them at most. Blocking; it starts a process for each candidate."""
    found: list[Hierarchy] = []
    for candidate in _candidates((proc / "mountinfo").read_text(), (proc / "cgroup").read_text()):
        missing = candidate.controllers.difference(*(hierarchy.controllers for hierarchy in found))
        if missing and (usable := _tried(replace(candidate, controllers=missing))) is not None:
            found.append(usable)
    return tuple(found)


def _candidates(mountinfo: str, own_groups: str) -> Iterator[Hierarchy]:
    """In the order in which they are to be tried: version 1 names its controllers, version 2 tells them of a group."""
    own = [line.split(":", 2) for line in own_groups.splitlines() if line.count(":") >= 2]
    for line in mountinfo.splitlines():
        fields, _, more = line.partition(" - ")
        kind, _source, options = [*more.split(), "", "", ""][:3]
        root, mount = (Path(_unescaped(field)) for field in fields.split()[3:5])
        for _number, names, path in own:
            if kind == "cgroup" and names and set(names.split(",")) <= set(options.split(",")):
                controllers = frozenset(controller for controller in Controller if controller.value in names.split(","))
                if controllers:
                    yield Hierarchy(1, controllers, mount, _below(mount, root, path))
            if kind == "cgroup2" and not names:
                base = _below(mount, root, path)
                for group in (base, *base.parents):
                    if group.is_relative_to(mount):
                        yield Hierarchy(2, frozenset(Controller), mount, group)


def _below(mount: Path, root: Path, path: str) -> Path:
    """Where the group `path` lies when the group `root` is what is mounted; the mount itself when it lies elsewhere."""
    return mount / Path(path).relative_to(root) if Path(path).is_relative_to(root) else mount


def _tried(candidate: Hierarchy) -> Hierarchy | None:
    """The candidate with the controllers that really work in it; None when there is none."""
    outer = candidate.base / f"{NAME_PREFIX}try-{secrets.token_hex(6)}"
    inner = outer / "inner"
    try:
        outer.mkdir()
        working = candidate
        if candidate.version == 2:
            offered = (outer / "cgroup.controllers").read_text().split()
            working = replace(candidate, controllers=frozenset(name for name in candidate.controllers if name.value in offered))
        if not working.controllers:
            return None
        working.hand_down(outer)
        inner.mkdir()
        _limit_everything(working, inner)
        return working if _takes_a_process(inner) else None
    except (OSError, subprocess.SubprocessError):
        return None
    finally:
        for group in (inner, outer):
            with suppress(OSError):
                group.rmdir()


def _limit_everything(hierarchy: Hierarchy, group: Path) -> None:
    if Controller.MEMORY in hierarchy.controllers:
        hierarchy.limit_memory(group, 64)
    if Controller.PIDS in hierarchy.controllers:
        hierarchy.limit_processes(group, 8)
    if Controller.CPU in hierarchy.controllers:
        hierarchy.limit_cores(group, 1)


def _takes_a_process(group: Path) -> bool:
    command = (*entering([group]), "/bin/cat", "/proc/self/cgroup")
    environment = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}
    seen = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=10, check=True)
    return any(line.endswith(f"/{group.parent.name}/{group.name}".encode()) for line in seen.stdout.splitlines())


def _unescaped(field: str) -> str:
    r"""proc(5): blanks and backslashes in paths are written as \ooo."""
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), field)


def _write(path: Path, value: int | str) -> None:
    """At once and without making the file: a file that isn't there is an error."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(descriptor, str(value).encode())
    finally:
        os.close(descriptor)


def _write_if_there(path: Path, value: int | str) -> None:
    """A limit that not every kernel has."""
    if path.exists():
        _write(path, value)


def _counter(group: Path, file: str, name: str) -> int:
    """Read at each run of a plugin, on the loop: without what `Path` and text files do besides."""
    try:
        descriptor = os.open(f"{group}/{file}", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return 0
    try:
        content = os.read(descriptor, 4096)
    except OSError:
        return 0
    finally:
        os.close(descriptor)
    for line in content.decode("ascii", "replace").splitlines():
        key, _, value = line.partition(" ")
        if key == name and value.isdecimal():
            return int(value)
    return 0
