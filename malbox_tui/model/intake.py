"""The accounts of intakes: for each thing that was handed in, a line that says what became of it. They are kept."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

import msgspec

from malbox_tui.model.sample import SampleName, escape

KEPT_LINES = 500_000
KEPT_INTAKES = 10_000
"""More than these, and the oldest are forgotten."""


SHOWN_TITLE_CHARACTERS = 200


def title_of(paths: Sequence[bytes]) -> str:
    """What an intake of these is called: the first of them, and how many more there are."""
    if not paths:
        return ""
    first = escape(paths[0])
    first = first if len(first) <= SHOWN_TITLE_CHARACTERS else f"…{first[-SHOWN_TITLE_CHARACTERS:]}"
    return first if len(paths) == 1 else f"{first} and {len(paths) - 1:,} more"


class Way(StrEnum):
    """How things came in. `api`: by somebody else's program."""

    DROP = "drop"
    DIALOG = "dialog"
    START = "start"
    SUBMIT = "submit"
    ANALYZE = "analyze"
    WATCH = "watch"
    API = "api"


class IntakeLabel(msgspec.Struct, frozen=True):
    """What a submission says of the intake that it is a part of: how it came in, what it is called (text of foreign origin), and a
    `key` that its parts share (empty: it is a whole one)."""

    way: Way = Way.API
    title: str = ""
    key: str = ""


class IntakeHead(msgspec.Struct, frozen=True, kw_only=True):
    """One intake as its lines name it: its `key`, when it began, and who handed in from where."""

    key: str
    began_at: float
    actor: str
    origin: str = ""
    way: Way = Way.API
    title: str = ""


class Fate(StrEnum):
    """What became of one thing.

    - `accepted`: it is a task of its own.
    - `duplicate`: its content has that task already.
    - `opened`: it is an archive; what is in it has lines of its own.
    - `refused`: it was not taken.
    """

    ACCEPTED = "accepted"
    DUPLICATE = "duplicate"
    OPENED = "opened"
    REFUSED = "refused"


class IntakeLine(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that was handed in, and what became of it. `name.archive` is the archive that it was in.

    `number` grows with each line of a store. `task_id` is its own task, or the one that it is a duplicate of. `code` and `reason` are
    those of a refusal; of an archive `reason` says what is in it.
    """

    fate: Fate
    name: SampleName
    at: float
    number: int = 0
    sha256: str = ""
    size_bytes: int | None = None
    task_id: int | None = None
    code: str = ""
    reason: str = ""


class IntakeEntry(msgspec.Struct, frozen=True):
    """A line on its way into the account of an intake."""

    head: IntakeHead
    line: IntakeLine


class IntakeView(msgspec.Struct, frozen=True, kw_only=True):
    """One intake: its number, whose it is, when its latest line came, and how many lines of each fate it had."""

    number: int
    head: IntakeHead
    latest_at: float
    accepted: int = 0
    duplicates: int = 0
    opened: int = 0
    refused: int = 0

    @property
    def total(self) -> int:
        """How many things were handed in."""
        return self.accepted + self.duplicates + self.opened + self.refused


class LineQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Lines of one intake: those with a number above `after`, of these fates (None: of all), in order."""

    intake: int
    after: int = 0
    limit: int = 100
    fates: frozenset[Fate] | None = None


class IntakePage(msgspec.Struct, frozen=True, kw_only=True):
    """An intake (None: there is none of this number) and a window of its lines; `more`: there are later ones."""

    intake: IntakeView | None
    lines: tuple[IntakeLine, ...] = ()
    more: bool = False
