"""The log of actions: who did what, when, from where, to what, and what came of it."""

from __future__ import annotations

import msgspec

from malbox_tui.model.commands import Action


class Submitted(msgspec.Struct, frozen=True, tag_field="command", tag=True, kw_only=True):
    """Samples were handed in: how many became tasks, how many had one, how many were not taken. No command: it came as a submission."""

    accepted: int
    duplicates: int = 0
    refused: int = 0


LoggedAction = Action | Submitted
"""What somebody can have done."""


class ActionRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One command that was carried out or refused, or one submission.

    `number` is that of its event in the store, so it grows with each; `origin` is where it came from, empty for the console with the
    pool inside. `done` and `message` are of its outcome; `done_to` are the tasks that it was done to, of a submission the first of
    those that it made.
    """

    number: int
    at: float
    actor: str
    action: LoggedAction
    done: bool
    message: str
    origin: str = ""
    done_to: tuple[int, ...] = ()
