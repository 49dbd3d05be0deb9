"""Archives that come in: what one may give, and the account of each."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from malbox_tui.model.submission import Refusal

COMMON_PASSWORDS = ("infected", "malware", "virus", "password")
"""What samples are exchanged with."""


class UnpackLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What may come out of one archive, with all archives in it.

    `depth`: how many archives deep (1: the archive itself alone). `entries`: of all kinds. `total_bytes` is bounded also by `ratio`
    times the archive's size, which never forbids `ratio_floor_bytes`. `time_s`: how long unpacking may take; waiting for a reader does
    not count.
    """

    depth: int = 8
    entries: int = 10_000
    total_bytes: int = 4 * 1024**3
    member_bytes: int = 512 * 1024**2
    ratio: int = 1000
    ratio_floor_bytes: int = 32 * 1024**2
    time_s: float = 300.0

    def total_for(self, archive_bytes: int) -> int:
        """How many bytes may come out of an archive of this size."""
        return min(self.total_bytes, max(self.ratio_floor_bytes, self.ratio * archive_bytes))


DEFAULT_LIMITS = UnpackLimits()


class ArchiveEnd(StrEnum):
    """What became of an archive.

    - `opened`: all its members are accounted for.
    - `sample`: it is a sample itself, a document or a program, or no archive at all.
    - `whole`: it can't be unpacked, and is taken as one file.
    - `cut`: what came before it broke, or before a limit, is accounted for; and it is taken as one file too.
    - `locked`: it needs a password that is not known; it is refused.
    - `empty`: there is nothing in it; it is refused.
    """

    OPENED = "opened"
    SAMPLE = "sample"
    WHOLE = "whole"
    CUT = "cut"
    LOCKED = "locked"
    EMPTY = "empty"


class ArchiveAccount(msgspec.Struct, frozen=True, kw_only=True):
    """One archive, after all its members. `path`: names from the outermost archive's member down to this one; empty: the outermost.

    `title` says what it is ("zip archive"; empty: nothing known), `refusal` why it isn't opened or not to the end, with a stable code.
    `taken` and `refused` count its own members, archives among them as taken.
    """

    path: tuple[bytes, ...]
    end: ArchiveEnd
    title: str = ""
    refusal: Refusal | None = None
    taken: int = 0
    refused: int = 0


class ArchiveChoice(msgspec.Struct, frozen=True):
    """What is asked of the archives of a submission: whether their members are the samples, or each archive is one; `passwords` are
    tried before those that are usual."""

    opens: bool = True
    passwords: tuple[str, ...] = ()


OPEN_ALL = ArchiveChoice()
