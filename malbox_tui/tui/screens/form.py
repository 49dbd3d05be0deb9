"""A dialog that asks for a thing, a row for each of its values. The engine says whether that can be; until it does, everything typed
stays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import ClassVar, Generic, TypeVar

import msgspec
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.widgets import Input, Static

from malbox_tui.model.commands import CommandOutcome
from malbox_tui.tui.screens.dialogs import Dialog
from malbox_tui.tui.text import plain, sentence

S = TypeVar("S", bound=msgspec.Struct)

Answered = Callable[[CommandOutcome], bool]
"""Told what the engine answered; says whether the operator was shown it."""

MOST_DIGITS = 9


class Kind(Enum):
    """How a value is written: as it is, as it is where empty means None, with commas, in digits (with a sign), in seconds, by "yes"."""

    TEXT = auto()
    OPTIONAL = auto()
    LIST = auto()
    COUNT = auto()
    WHOLE = auto()
    SECONDS = auto()
    YES = auto()


@dataclass(frozen=True, slots=True)
class Field:
    """One thing that is asked for: the attribute of the spec, the words before it, and what stands there while it is empty."""

    name: str
    label: str
    hint: str
    kind: Kind = Kind.TEXT


class Form(Dialog[None], Generic[S]):
    """Ends when the engine took what was given, or when it was left. `given` is what stands there at first, `empty` has the values of
    numbers that are left out. `note` is what the operator should know before."""

    AUTO_FOCUS = "Input"

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "back", show=False),
        Binding("up", "app.focus_previous", show=False),
        Binding("down", "app.focus_next", show=False),
    ]

    def __init__(
        self, title: Text, fields: Sequence[Field], given: S, empty: S, send: Callable[[S, Answered], None], note: str = ""
    ) -> None:
        super().__init__()
        self._title = title
        self._given = given
        self._empty = empty
        self._send = send
        self._fields = fields
        self._note = note
        self._is_sending = False
        self._inputs = {field.name: Input(_text_of(given, field), placeholder=field.hint, compact=True) for field in fields}
        self._problem = Static(classes="dialog-problem")

    def compose(self) -> ComposeResult:
        """See `Screen`."""
        with Vertical(classes="dialog form"):
            yield Static(self._title, classes="dialog-title")
            with VerticalScroll(classes="dialog-body", can_focus=False):
                for field in self._fields:
                    with Horizontal(classes="form-row"):
                        yield Static(plain(field.label), classes="form-label")
                        yield self._inputs[field.name]
            yield self._problem
            hint = "Tab and arrows move, Enter sends it, Escape changes nothing."
            yield Static(plain(hint), classes="dialog-hint")

    def on_mount(self) -> None:
        """What there is to know before."""
        self._say(self._note)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Send it."""
        event.stop()
        if self._is_sending:
            return
        try:
            asked_for = self._asked_for()
        except ValueError as problem:
            self._say(str(problem))
            return
        self._is_sending = True
        self._say("The engine is asked…")
        self._send(asked_for, self._answered)

    def action_leave(self) -> None:
        """Change nothing."""
        self.dismiss(None)

    def _answered(self, outcome: CommandOutcome) -> bool:
        self._is_sending = False
        if outcome.done:
            self.dismiss(None)
        elif self.is_active:
            self._say(outcome.message)
            return True
        return False

    def _say(self, words: str) -> None:
        text = sentence(words)
        text.no_wrap = False
        self._problem.update(text)
        self._problem.display = bool(words)

    def _asked_for(self) -> S:
        """Raises ValueError, with a sentence, when something can't be read."""
        values = {
            field.name: _value_of(field, self._inputs[field.name].value.strip(), getattr(self._empty, field.name))
            for field in self._fields
        }
        return msgspec.structs.replace(self._given, **values)


def _text_of(given: msgspec.Struct, field: Field) -> str:
    value = getattr(given, field.name)
    if field.kind is Kind.LIST:
        return ", ".join(value)
    if field.kind is Kind.YES:
        return "yes" if value else ""
    if field.kind is Kind.SECONDS and value is not None:
        return f"{value:g}"
    return "" if value is None else str(value)


def _value_of(field: Field, text: str, empty: object) -> object:
    match field.kind:
        case Kind.LIST:
            return tuple(part.strip() for part in text.split(",") if part.strip())
        case Kind.YES:
            return _yes(field, text)
        case Kind.OPTIONAL:
            return text or None
        case Kind.COUNT | Kind.WHOLE | Kind.SECONDS:
            return _number(field, text) if text else empty
    return text


def _yes(field: Field, text: str) -> bool:
    if text.lower() not in ("", "yes", "no"):
        raise ValueError(f"{field.label}: {text} is neither yes nor no.")
    return text.lower() == "yes"


def _number(field: Field, text: str) -> int | float:
    whole = text.removeprefix("-") if field.kind is Kind.WHOLE else text
    if field.kind is Kind.SECONDS:
        before, _, after = text.partition(".")
        if _has_digits(before) and (not after or _has_digits(after)):
            return float(text)
        raise ValueError(f"{field.label}: {text} is no number of seconds.")
    if not _has_digits(whole):
        raise ValueError(f"{field.label}: {text} is no whole number.")
    return int(text)


def _has_digits(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= MOST_DIGITS
