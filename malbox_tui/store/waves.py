"""How the changes of one batch become rows to write: several moves of one task are one row, and all rows of a wave one statement.

A wave holds each task once, so its rows can be written in any order; the waves of a batch are written one after the other.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from malbox_tui.model.task import Task
from malbox_tui.ports import Change


class Span(NamedTuple):
    """From what a task is to be in the store (`before`) to what it is there afterwards."""

    before: Task
    after: Task


Wave = dict[int, Span]
"""By task id."""


def waves(changes: Iterable[Change]) -> list[Wave]:
    """`changes`, in the order of the calls, as waves that come to the same if none is lost.

    A chain of moves that hold together is one span. What doesn't hold together begins a new wave, where the store finds it lost. So
    does a change that takes a token: whether another task still has it depends on the order.
    """
    found: list[Wave] = [{}]
    for change in changes:
        before, after = change.before, change.after
        if after.token is not None and after.token != before.token:
            found += [{before.id: Span(before, after)}, {}]
            continue
        span = found[-1].get(before.id)
        if span is None:
            found[-1][before.id] = Span(before, after)
        elif _goes_on(span, change):
            found[-1][before.id] = Span(span.before, after)
        else:
            found.append({before.id: Span(before, after)})
    return [wave for wave in found if wave]


def _goes_on(span: Span, change: Change) -> bool:
    """The change starts where the span ends, still under the span's first token, and keeps its lease or lets it go."""
    reached, until = span.after, change.after.lease_until
    return (
        change.before.state is reached.state
        and change.before.token == reached.token == span.before.token
        and (until is None or until == reached.lease_until)
    )
