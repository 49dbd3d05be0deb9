"""What would come in, before it does: a first look at what a drop names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from malbox_tui.model.submission import Refused

NAMED_REFUSALS = 100
"""So many of the things that would be refused are named; of the others it is known how many they are."""


@dataclass(frozen=True, slots=True)
class Survey:
    """How far a first look has come. Nothing was read but beginnings, and the contents that `sums` are of.

    `files` could be taken, of `size_bytes` together; `kinds` says how many seem to be what (empty: not known), `archives` how many of
    them could be opened, and `opens_archives` whether they would be. `sums` are the SHA-256 of those contents that were small and
    early enough to be read, each once; `twins` of the files had one that came before. `refused` would not be taken, the first of them
    with their reasons. `done`: that is all.
    """

    files: int = 0
    size_bytes: int = 0
    kinds: Mapping[str, int] = field(default_factory=dict)
    archives: int = 0
    opens_archives: bool = False
    sums: tuple[str, ...] = ()
    twins: int = 0
    refused: int = 0
    refusals: tuple[Refused, ...] = ()
    done: bool = False

    @property
    def things(self) -> int:
        """How many there are, whatever would become of them."""
        return self.files + self.refused

    @property
    def unread(self) -> int:
        """How many files may be known already, and it is not known whether they are."""
        return self.files - self.archives - self.twins - len(self.sums)
