"""What is to run confined, and how it sees its surroundings."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from malbox_tui.confine.control_groups import BenchGroups

SDK_FOLDER = Path(__file__).resolve().parent.parent / "sdk"
"""The folder that holds `malbox_plugin_sdk`; it goes on PYTHONPATH of every confined process."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What one confined process may use, with all that it starts."""

    memory_mb: int = 1024
    """Memory of all of them together, their files in a sandbox's scratch included; where control groups can count it."""
    address_space_mb: int = 1024
    """Address space of each of them."""
    scratch_mb: int = 256
    """Private files: each one, and in a sandbox all together."""
    open_files: int = 256
    processes: int = 64
    """Processes and threads, where they are counted for this sandbox alone."""
    processors: tuple[int, ...] = ()
    """Numbers of the processors that they run on; empty: all."""
    nice: int = 5
    """Added to the niceness, so that the engine and the console go first on a busy host."""

    def rlimits(self) -> dict[str, int]:
        """Limits that hold for every process, by the names of the `resource` module."""
        return {
            "RLIMIT_AS": self.address_space_mb * 1024 * 1024,
            "RLIMIT_FSIZE": self.scratch_mb * 1024 * 1024,
            "RLIMIT_NOFILE": self.open_files,
            "RLIMIT_CORE": 0,
        }

    def settings(self, **more: int) -> dict[str, Any]:
        """What the bootstrap is told: limits of the process by name, `more` of them over its own."""
        return {"limits": {**self.rlimits(), **more}, "nice": self.nice, "processors": self.processors}


@dataclass(frozen=True, slots=True)
class Interpreter:
    """A Python: the program, and the folders of its environment and of its standard library."""

    program: str = sys.executable
    prefix: Path = Path(sys.prefix)
    base_prefix: Path = Path(sys.base_prefix)

    @property
    def is_own(self) -> bool:
        """It is the engine's."""
        return self.prefix == Path(sys.prefix)


@dataclass(frozen=True, slots=True)
class Work:
    """A Python script to run confined.

    `code` is its folder and `entry` a file in it; `inbox` a folder that it can read and never write; `readable` more such folders or
    files by a short name; `scratch` a folder of its own, used where there is no sandbox to hide it; `variables` are added to its
    environment. Its control groups are made in those of `bench`. `interpreter` runs it.
    """

    name: str
    code: Path
    entry: str
    inbox: Path
    scratch: Path
    limits: Limits = Limits()
    readable: Mapping[str, Path] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)
    bench: BenchGroups | None = None
    interpreter: Interpreter = Interpreter()


@dataclass(frozen=True, slots=True)
class Places:
    """Where a confined process finds things, as paths that are valid inside."""

    sdk: str
    code: str
    inbox: str
    scratch: str
    readable: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Launch:
    """A command line, with the environment and the places that belong to it."""

    command: tuple[str, ...]
    environment: Mapping[str, str]
    places: Places


class Walls(Protocol):
    """A way to confine."""

    @property
    def has_namespace(self) -> bool:
        """Whether everything that the process starts ends with it, in a namespace whose first process is the command's only child."""
        ...

    def launch(self, work: Work, wire_fd: int) -> Launch:
        """The command that runs `work`, its wire on the inherited descriptor `wire_fd`."""
        ...

    def processes_allowed(self, limits: Limits) -> int | None:
        """How many processes and threads there may be without control groups; None: no limit of ours."""
        ...


def environment(work: Work, places: Places, wire_fd: int) -> dict[str, str]:
    """The whole environment of a confined process: nothing of the engine's own is in it."""
    return {
        "PATH": "/usr/bin:/bin",
        "LANG": "C.UTF-8",
        "HOME": places.scratch,
        "TMPDIR": places.scratch,
        "PYTHONPATH": ":".join((places.sdk, *map(str, packages_elsewhere() if work.interpreter.is_own else ()))),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONNOUSERSITE": "1",
        "MALLOC_ARENA_MAX": "2",
        "OMP_NUM_THREADS": "1",
        "RAYON_NUM_THREADS": "1",
        "MALBOX_WIRE_FD": str(wire_fd),
        **work.variables,
    }


def packages_elsewhere() -> list[Path]:
    """Folders of packages that this process uses and that lie outside its interpreter's and its environment's own folders."""
    own = (Path(sys.prefix), Path(sys.base_prefix))
    folders = (Path(entry) for entry in sys.path if Path(entry).name in ("site-packages", "dist-packages"))
    return [folder for folder in folders if folder.is_dir() and not any(folder.is_relative_to(prefix) for prefix in own)]


def python_command(settings_json: str, places: Places, work: Work) -> tuple[str, ...]:
    """Its interpreter, running the bootstrap and then the entry script."""
    return (
        work.interpreter.program,
        *("-s", "-P", "-u", "-X", "faulthandler", "-m", "malbox_plugin_sdk.bootstrap"),
        settings_json,
        f"{places.code}/{work.entry}",
    )
