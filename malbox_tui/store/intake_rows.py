"""Accounts of intakes as rows of SQLite and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from malbox_tui.model.intake import Fate, IntakeEntry, IntakeHead, IntakeLine, IntakePage, IntakeView, Way
from malbox_tui.model.sample import SampleName
from malbox_tui.store.rows import Row

LINE_WIDTH = 11
"""How many columns a line has, without its number."""
MOST_REASON_CHARACTERS = 2000

_FATES = tuple(Fate)
_head = msgspec.json.Decoder(tuple[str, float, float, str, str, str, str, int, int, int, int]).decode


def row_of_intake(entries: Sequence[IntakeEntry]) -> tuple[Any, ...]:
    """The values of `enter_intake` for entries of one intake."""
    head, fates = entries[0].head, [entry.line.fate for entry in entries]
    counts = [fates.count(fate) for fate in _FATES]
    who = map(storable, (head.actor, head.origin, head.way.value, head.title))
    return storable(head.key), head.began_at, entries[-1].line.at, *who, *counts


def row_of_line(intake: int, line: IntakeLine) -> tuple[Any, ...]:
    """The values of a row of `add_lines`."""
    name, reason = line.name, storable(line.reason[:MOST_REASON_CHARACTERS])
    named = (name.name, name.origin, storable(name.archive))
    return intake, line.at, line.fate.value, *named, line.sha256, line.size_bytes, line.task_id, storable(line.code), reason


def intake_of(row: Row) -> IntakeView:
    """The intake in a row of `intakes`."""
    number, key, began_at, latest_at, actor, origin, way, title, accepted, duplicates, opened, refused = row
    return IntakeView(
        number=number,
        head=IntakeHead(key=key, began_at=began_at, actor=actor, origin=origin, way=Way(way), title=title),
        latest_at=latest_at,
        accepted=accepted,
        duplicates=duplicates,
        opened=opened,
        refused=refused,
    )


def page_of_lines(intake: int, rows: list[Row], limit: int) -> IntakePage:
    """What the rows of `intake_lines` say, which were asked for one line more than `limit`."""
    if not rows or rows[0][0] != 0:
        return IntakePage(intake=None)
    lines = tuple(map(_line_of, rows[1 : limit + 1]))
    return IntakePage(intake=intake_of((intake, *_head(rows[0][1]))), lines=lines, more=len(rows) - 1 > limit)


def _line_of(row: Row) -> IntakeLine:
    number, fate, at, name, origin, archive, sha256, size_bytes, task_id, code, reason = row
    return IntakeLine(
        fate=Fate(fate),
        name=SampleName(name, origin, archive),
        at=at,
        number=number,
        sha256=sha256,
        size_bytes=size_bytes,
        task_id=task_id,
        code=code,
        reason=reason,
    )


def storable(text: str) -> str:
    """Text that SQLite takes: a lone surrogate, which no UTF-8 has, becomes a question mark."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
