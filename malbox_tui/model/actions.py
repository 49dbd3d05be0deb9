"""The log of actions: who did what, when, from where, to what, and what came of it."""

from __future__ import annotations

import msgspec

from malbox_tui.model.commands import Action
from malbox_tui.model.upkeep import SampleForm


class Submitted(msgspec.Struct, frozen=True, tag_field="command", tag=True, kw_only=True):
    """Samples were handed in: how many became tasks, how many had one, how many were not taken. No command: it came as a submission."""

    accepted: int
    duplicates: int = 0
    refused: int = 0


class SampleTaken(msgspec.Struct, frozen=True, tag_field="command", tag=True, kw_only=True):
    """A sample was given out, in this form. No command: its content was the answer."""

    sha256: str
    form: SampleForm


class Retained(msgspec.Struct, frozen=True, tag_field="command", tag=True, kw_only=True):
    """What was kept for long enough, or was too much, was removed: so many samples, the results of so many tasks, so many bytes. No
    command: the configuration asks for it."""

    samples: int
    results: int
    size_bytes: int


LoggedAction = Action | Submitted | SampleTaken | Retained
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
