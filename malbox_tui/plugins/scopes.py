"""How long the processes of scoped plugins live: for one scope, and those that share it no longer than each other.

A scope is a batch of tasks, or one task that runs alone. With `task_types` it is all tasks of these types that follow one another on a
bench, until one of another type comes. Plugins that name each other begin it with fresh processes together.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from malbox_tui.plugins.manifest import State
from malbox_tui.plugins.seat import Seat

LASTING = "of its task types"


async def enter_scopes(seats: Sequence[Seat], task_types: frozenset[str]) -> None:
    """Before tasks of these types. Cancelled: some processes have ended."""
    scoped = _scoped(seats)
    beginning: set[Seat] = set()
    for seat in scoped:
        former, seat.scope = seat.scope, LASTING if _lasts(seat, task_types) else None
        if seat.scope is None or former is None or seat.has_lost_process:
            beginning.add(seat)
    for sharing in _sharing(scoped):
        if not beginning.isdisjoint(sharing):
            for seat in sharing:
                await seat.retire()


async def leave_scopes(seats: Sequence[Seat]) -> None:
    """After them."""
    for seat in _scoped(seats):
        if seat.scope is None:
            await seat.retire()


def _scoped(seats: Iterable[Seat]) -> list[Seat]:
    return [seat for seat in seats if seat.plugin.manifest.runtime.state is State.SCOPED]


def _lasts(seat: Seat, task_types: frozenset[str]) -> bool:
    scope = seat.plugin.manifest.scope
    return scope is not None and bool(scope.task_types) and task_types <= frozenset(scope.task_types)


def _sharing(scoped: Sequence[Seat]) -> list[list[Seat]]:
    """Those that share a scope, each in one list: whoever names one of the others, at whatever remove."""
    groups = [[seat] for seat in scoped]
    for seat in scoped:
        named = {seat.plugin.name, *(seat.plugin.manifest.scope.plugins if seat.plugin.manifest.scope is not None else ())}
        touched = [group for group in groups if any(member.plugin.name in named for member in group)]
        groups = [group for group in groups if group not in touched] + [[member for group in touched for member in group]]
    return groups
