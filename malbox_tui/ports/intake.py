"""Samples on their way in, alone or in archives."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from malbox_tui.model.archive import ArchiveAccount
from malbox_tui.model.report import Identification
from malbox_tui.model.submission import Offer, Refusal
from malbox_tui.model.survey import Survey
from malbox_tui.model.watching import WatchSpec


@dataclass(frozen=True, slots=True)
class ArchiveMember:
    """Something in an archive: its content in chunks, or why it has none.

    `path` has the names from the outermost archive's member down to this one, any bytes, never to be used as a path of this host. An
    archive that is taken as one file comes as a member under its own path, the outermost one under the empty path.
    """

    path: tuple[bytes, ...]
    size_bytes: int = 0
    content: AsyncIterator[bytes] | None = None
    refusal: Refusal | None = None


class Unpacker(Protocol):
    """Unpacks archives, and those in them, where no hostile byte can do harm."""

    def unpack(
        self, content: AsyncIterator[bytes], name: bytes = b"", passwords: Sequence[str] = ()
    ) -> AsyncGenerator[ArchiveMember | ArchiveAccount, None]:
        """All that is in an archive, as it comes: each member once, and after the members of each archive its account; the outermost
        one's is the last. `name` is only for members that have none; `passwords` are tried before those that are usual.

        Whatever the archive does, this ends so. A member's content stays readable until it was read, closed or forgotten, and nothing
        more is unpacked before the next item is asked for. Raises what `content` raises, before the first item. Cancelled or closed:
        nothing is left.
        """
        ...


@dataclass(frozen=True, slots=True)
class Dropped:
    """What a text that was dropped or pasted on a terminal names: paths that exist here, or why there are none, in a sentence.

    `missing` are others that it names beside them and that are not here, which `problem` is about; `sums` SHA-256 sums, if it names
    no path but these.
    """

    paths: tuple[bytes, ...]
    problem: str = ""
    missing: tuple[bytes, ...] = ()
    sums: tuple[str, ...] = ()


class Identifier(Protocol):
    """Says what contents are before they are handed in, by a plugin that is confined."""

    async def identify(self, content: AsyncIterator[bytes]) -> Identification | None:
        """What it is; None: it can't be read, is empty or too large, or nobody can say. It is read to its end, and nothing of it is
        kept. Cancelled: nothing is left."""
        ...


class Intake(Protocol):
    """Finds samples on the client's side."""

    def dropped(self, text: str) -> Dropped:
        """Read a drop or paste as paths, however the terminal spelt them. Undecodable bytes come as surrogates (`surrogateescape`)."""
        ...

    def completions(self, text: str, limit: int) -> list[str]:
        """Paths that begin with `text`, folders with a slash at the end; at most `limit`. Unreadable folders give none."""
        ...

    def survey(self, paths: Sequence[bytes], *, counts_only: bool = False) -> AsyncIterator[Survey]:
        """Look at what `offers` would offer: how far that has come, some times a second, the last one done. With `counts_only` nothing
        is opened, and things are counted alone."""
        ...

    def files(self, paths: Sequence[bytes]) -> AsyncIterator[Offer]:
        """As `offers`, to look at them alone: archives as the files that they are, and none left out that another choice would take."""
        ...

    def offers(self, paths: Sequence[bytes]) -> AsyncIterator[Offer]:
        """An offer for each file under `paths` (folders recursively, in byte order of names), and one for each thing that can't be
        a sample, with the reason. Nothing is opened before its offer is asked for; links are not followed."""
        ...


class WatchKeeper(Protocol):
    """Adds and removes watched folders while the engine runs. Each method says what follows, in sentences for a person, and raises
    `RefusedCommand` with nothing changed."""

    async def add(self, watch: WatchSpec) -> str:
        """Watch this folder too, if the configuration could say so."""
        ...

    async def remove(self, path: str) -> str:
        """Watch the folder no more that is watched under this path."""
        ...
