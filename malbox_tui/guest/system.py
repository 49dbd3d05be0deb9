"""What is particular to a kind of guest: the commands that are run in it, and how to read what they leave."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from malbox_tui.ports import GuestFile, GuestProcess

Argv = Sequence[str]
"""A program and its arguments."""

PENDING = b"pending"
"""What stands where the exit status of a program will, as long as it runs."""

PATH_BYTES = 32 * 1024
"""No path of a guest is longer; what is, was made up."""

_NUMBER = re.compile(rb"-?[0-9]{1,18}")


@dataclass(frozen=True, slots=True)
class Birth:
    """A process and when it began, in its guest's own measure: the same number may be given to another one later."""

    pid: int
    at: int


@dataclass(frozen=True, slots=True)
class ProcessFacts:
    """A process as its guest tells of it. `session` None: there is no such thing."""

    process: GuestProcess
    birth: Birth
    session: int | None = None


class GuestSystem(Protocol):
    """A kind of guest. A command that has something to tell leaves it in the file `told`; `base` is the beginning of the names of all
    that is kept in the guest for one conversation, and nothing else is named so."""

    folder: str
    disk_folder: str
    boot_file: str | None
    """A file whose content is another one after each start of the guest; None: `boot` tells."""

    def boot(self, told: str) -> Argv:
        """Tell what is another thing after each start of the guest."""
        ...

    def join(self, folder: str, name: str) -> str:
        """The path of `name` in `folder`."""
        ...

    def run(self, base: str, folder: str, to_be_executable: Sequence[str], argv: Argv) -> Argv:
        """Make files executable, run `argv` in `folder` and wait for its end: its process is left in `base`.pid, its output in the
        files `outputs` gives, its exit status in `base`.code; and the command's own exit status is that one. Once for each `base`: a
        second one does nothing."""
        ...

    def outputs(self, base: str) -> Sequence[str]:
        """The files into which a program prints."""
        ...

    def born(self, left: bytes) -> Birth | None:
        """What `base`.pid says; None: nothing yet."""
        ...

    def signal_of(self, code: int) -> int | None:
        """The signal that killed a program of which `code` is left; None: it exited with it."""
        ...

    def kill(self, pids: Iterable[int]) -> Argv:
        """End processes."""
        ...

    def list(self, told: str, folder: str, base: str, limit: int) -> Argv:
        """Tell of the files in a folder, but for those of `base`."""
        ...

    def files(self, left: bytes, base: str, limit: int) -> Sequence[GuestFile]:
        """What `list` told, at most `limit`."""
        ...

    def processes(self, told: str, base: str, limit: int) -> Argv:
        """Tell of all processes."""
        ...

    def facts(self, left: bytes, base: str, limit: int) -> Sequence[ProcessFacts]:
        """What `processes` told, at most `limit`, but for those that are there because of `base`."""
        ...

    def look(self, told: str, folders: Sequence[str], base: str, limit: int, most_processes: int) -> Argv:
        """Tell what `processes` does, and in the file `told`.files of the files in each of `folders`."""
        ...

    def listed(self, left: bytes, base: str, folders: int, limit: int) -> Sequence[Sequence[GuestFile]]:
        """What `look` left in `told`.files: the files of each folder, at most `limit`."""
        ...

    def set_clock(self, told: str, at: float) -> Argv:
        """Set the clock."""
        ...

    def link(self, told: str, path: str) -> Argv | None:
        """Make `told` lead to the file at `path`, whose name is no UTF-8; None: there are no such names."""
        ...

    def mark(self, file: str, word: str) -> Argv:
        """Write `word` into `file`, safe on the disk, and run on with `word` in the command line."""
        ...

    def look_for(self, told: str, file: str) -> Argv:
        """Tell whether there is a file, and the command lines of all processes."""
        ...

    def found(self, left: bytes, word: str) -> tuple[bool, bool]:
        """What `look_for` told: whether the file is there, and whether a process has `word` in its command line."""
        ...


def number(word: bytes) -> int | None:
    """What a guest says in decimal digits; None: that is no number, or one of more than 18 digits, as nothing there has."""
    return int(word) if _NUMBER.fullmatch(word) else None


def process_facts(birth: Birth, parent: int, name: str, command: str, session: int | None = None) -> ProcessFacts | None:
    """None: there is no process of such numbers."""
    if birth.pid < 1 or parent < 0:
        return None
    return ProcessFacts(GuestProcess(birth.pid, parent or None, name, command), birth, session)
