"""Which of the files that are found come in, and what is done with archives among them. Pure."""

from __future__ import annotations

from fnmatch import fnmatchcase

import msgspec

from malbox_tui.model.archive import OPEN_ALL, ArchiveChoice


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """`recursive`: whether folders in a given folder are gone into. `patterns`: as of a shell, for names of samples; a name has to
    match one of them, whatever the case of its letters; empty: all do. `limit`: how many samples are taken at most; None: all."""

    recursive: bool = True
    patterns: tuple[str, ...] = ()
    limit: int | None = None

    def takes(self, name: bytes) -> bool:
        """Whether a sample of this name is taken, if there is room."""
        lowered = name.lower()
        return not self.patterns or any(fnmatchcase(lowered, _bytes(pattern)) for pattern in self.patterns)

    @property
    def takes_all(self) -> bool:
        """Whether nothing that is offered is left out."""
        return not self.patterns and self.limit is None

    @property
    def which(self) -> str:
        """The patterns, for a person."""
        return " or ".join(self.patterns)


def _bytes(pattern: str) -> bytes:
    return pattern.encode("utf-8", "surrogateescape").lower()


class IntakeChoice(msgspec.Struct, frozen=True):
    """What is asked of the way in: of archives, and which files."""

    archives: ArchiveChoice = OPEN_ALL
    selection: Selection = Selection()


ALL_OF_IT = IntakeChoice()
