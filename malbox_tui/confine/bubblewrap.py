"""Walls of bubblewrap: a read-only system, no home, no `/etc`, private `/tmp`, own PID, network, IPC and UTS namespaces.

1. The process sees the system's libraries, this interpreter and its environment, the SDK, its own code and its inbox; nothing else of
   the host's files, so no store, no quarantine, no path-name socket.
2. All it starts ends with the spawning thread, whatever it does with sessions, and at whatever moment of its own start that ends.
   Bubblewrap's `--die-with-parent` alone leaves a stub behind when it fires while bubblewrap still sets up. So bubblewrap is
   itself the first process of a PID namespace, made by `unshare`, which the kernel empties when its first process dies.
3. It has no capabilities. As a plain user it lives in a user namespace of its own and can make no further one. As root there is no
   user namespace (one would keep root's rights over root's files); `setpriv` gives up everything before the interpreter starts.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from malbox_tui.confine.marks import MARK_VARIABLE, mark_of
from malbox_tui.confine.work import (
    SDK_FOLDER,
    Interpreter,
    Launch,
    Limits,
    Places,
    Work,
    environment,
    packages_elsewhere,
    python_command,
)

UNPRIVILEGED_ID = 65534
"""User and group that root's sandboxes run as: Debian's nobody."""

PROCESSES_OF_ALL_SANDBOXES = 1024
"""RLIMIT_NPROC as root: the kernel counts it over all processes of the unprivileged user."""

SHARED_MEMORY_BYTES = 16 * 1024 * 1024

_SYSTEM_FOLDERS = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_ETC = ("/etc/ld.so.cache", "/etc/alternatives")
"""What the dynamic loader needs of `/etc`."""

_PLACES = Places(sdk="/malbox/sdk", code="/malbox/code", inbox="/inbox", scratch="/tmp", readable={})


@dataclass(frozen=True, slots=True)
class Bubblewrap:
    """Confines with these programs, which are where these paths say."""

    program: str
    setpriv: str
    unshare: str
    as_root: bool

    @property
    def has_namespace(self) -> bool:
        """It has one."""
        return True

    def launch(self, work: Work, wire_fd: int) -> Launch:
        """The command for `work`. The namespace's first process is the only child of the process that runs the command."""
        readable = {name: f"/malbox/readable/{name}" for name in work.readable}
        places = Places(_PLACES.sdk, _PLACES.code, _PLACES.inbox, _PLACES.scratch, readable)
        settings = work.limits.settings(RLIMIT_NPROC=self.processes_allowed(work.limits))
        binds = [(SDK_FOLDER, places.sdk), (work.code, places.code), (work.inbox, places.inbox)]
        binds += [(work.readable[name], inside) for name, inside in readable.items()]
        command = [
            *self._dying_with_the_spawner(),
            *(self.program, *self._namespaces()),
            *_system(work.limits.scratch_mb * 1024 * 1024),
            *_bound_interpreter(work.interpreter),
            *(word for source, inside in binds for word in _bind(source, inside)),
            *("--remount-ro", "/", "--chdir", "/tmp", "--"),
            *self._without_rights(),
            *python_command(json.dumps(settings), places, work),
        ]
        return Launch(tuple(command), {**environment(work, places, wire_fd), **mark_of(work)}, places)

    def processes_allowed(self, limits: Limits) -> int:
        """As a plain user those of one sandbox, as root those of all sandboxes together."""
        return PROCESSES_OF_ALL_SANDBOXES if self.as_root else limits.processes

    def _dying_with_the_spawner(self) -> Iterable[str]:
        yield from (self.setpriv, "--pdeathsig", "KILL", "--", self.unshare)
        if not self.as_root:
            yield from ("--user", "--map-current-user")
        yield from ("--pid", "--fork", "--kill-child", "--")

    def _namespaces(self) -> Iterable[str]:
        yield from ("--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try")
        if not self.as_root:
            yield from ("--unshare-user", "--disable-userns")
        yield from ("--die-with-parent", "--new-session", "--hostname", "malbox", "--unsetenv", MARK_VARIABLE)

    def _without_rights(self) -> Iterable[str]:
        if self.as_root:
            yield from (self.setpriv, f"--reuid={UNPRIVILEGED_ID}", f"--regid={UNPRIVILEGED_ID}", "--clear-groups")
            yield from ("--bounding-set=-all", "--inh-caps=-all", "--no-new-privs")


def find() -> Bubblewrap:
    """Bubblewrap as this user has to call it. Raises LookupError, with the missing program, where that can't be."""
    programs = {name: shutil.which(name) for name in ("bwrap", "setpriv", "unshare")}
    if programs["bwrap"] is None:
        raise LookupError("bubblewrap (bwrap) is not installed")
    if programs["setpriv"] is None or programs["unshare"] is None:
        raise LookupError("setpriv and unshare (util-linux), which sandboxes are started with, are not installed")
    return Bubblewrap(programs["bwrap"], programs["setpriv"], programs["unshare"], os.geteuid() == 0)


def _system(scratch_bytes: int) -> Iterable[str]:
    yield from ("--ro-bind", "/usr", "/usr")
    for folder in map(Path, _SYSTEM_FOLDERS):
        if folder.is_symlink():
            yield from ("--symlink", str(folder.readlink()), str(folder))
        elif folder.is_dir():
            yield from ("--ro-bind", str(folder), str(folder))
    for path in _ETC:
        yield from ("--perms", "0755", "--dir", "/etc", "--ro-bind-try", path, path)
    yield from ("--proc", "/proc", "--dev", "/dev")
    yield from ("--size", str(SHARED_MEMORY_BYTES), "--perms", "1777", "--tmpfs", "/dev/shm", "--remount-ro", "/dev")
    yield from ("--size", str(scratch_bytes), "--perms", "1777", "--tmpfs", "/tmp")


def _bound_interpreter(interpreter: Interpreter) -> Iterable[str]:
    """Binds what the interpreter needs; they come after the private `/tmp`, for an environment may lie below it."""
    wanted = {interpreter.base_prefix, interpreter.prefix, Path(interpreter.program).resolve().parent.parent}
    wanted |= set(packages_elsewhere() if interpreter.is_own else ())
    bound: list[Path] = [Path("/usr")]
    for path in sorted(wanted, key=lambda p: len(p.parts)):
        if path.is_dir() and not any(path.is_relative_to(outer) for outer in bound):
            yield from _bind(path, str(path))
            bound.append(path)


def _bind(source: Path, inside: str) -> Iterable[str]:
    for parent in reversed(Path(inside).parents[:-1]):
        yield from ("--perms", "0755", "--dir", str(parent))
    yield from ("--ro-bind", str(source), inside)
