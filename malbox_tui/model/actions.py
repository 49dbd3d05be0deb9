"""The log of actions: who did what, when, from where, to what, and what came of it."""

from __future__ import annotations

import msgspec

from malbox_tui.model.commands import Action


class ActionRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One command that was carried out or refused. `number` grows with each; `origin` is where it came from, empty for the console with
    the pool inside. `done` and `message` are of its outcome; `done_to` are the tasks that it was done to."""

    number: int
    at: float
    actor: str
    action: Action
    done: bool
    message: str
    origin: str = ""
    done_to: tuple[int, ...] = ()
