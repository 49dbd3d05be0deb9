"""Asks what a machine is, to add one or to change it. The engine says whether that can be; until it does, everything typed stays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import msgspec
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.widgets import Input, Static

from malbox_tui.model.commands import CommandOutcome
from malbox_tui.model.machine import MachineSpec
from malbox_tui.tui.screens.dialogs import Dialog
from malbox_tui.tui.text import plain, sentence

Answered = Callable[[CommandOutcome], bool]
"""Told what the engine answered; says whether the operator was shown it."""
Send = Callable[[MachineSpec, Answered], None]


@dataclass(frozen=True, slots=True)
class Field:
    """One thing that is asked for: the attribute of the spec, the words before it, and what stands there while it is empty."""

    name: str
    label: str
    hint: str
    is_list: bool = False
    is_number: bool = False


MOST_DIGITS = 9

FIELDS: tuple[Field, ...] = (
    Field("name", "name", "what it is called here"),
    Field("platform", "platform", "windows or linux"),
    Field("arch", "arch", "x64, x86 or arm64"),
    Field("tags", "tags", "what tasks may ask for: office, slow", is_list=True),
    Field("provider", "provider", "libvirt"),
    Field("uri", "uri", "where its hypervisor is: qemu:///system"),
    Field("domain", "domain", "what its hypervisor calls it; empty: its name"),
    Field("snapshot", "snapshot", "what it is reverted to"),
    Field("channel", "channel", "the way to its guest: qga"),
    Field("address", "address", "its guest's in the analysis network"),
    Field("folder", "folder", "where samples are put; empty: its platform's own"),
    Field("disk_folder", "disk folder", "one on the disk that is reverted; empty: likewise"),
    Field("watch", "watched", "folders where dropped files are looked for", is_list=True),
    Field("max_failures", "failures", "so many reverts in a row may fail", is_number=True),
    Field("disk_kib_s", "disk limit", "KiB a second; empty: none", is_number=True),
    Field("network_kbps", "network", "kbit a second; 0: no network; empty: no limit", is_number=True),
)

NEW = MachineSpec(name="", provider="libvirt", platform="", uri="qemu:///system", channel="qga")
"""What a new machine begins with."""


class MachineForm(Dialog[None]):
    """Ends when the engine took what was given, or when it was left. `given` is what stands there at first; a machine that exists
    keeps its name. `note` is what the operator should know before."""

    AUTO_FOCUS = "Input"

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "back", show=False),
        Binding("up", "app.focus_previous", show=False),
        Binding("down", "app.focus_next", show=False),
    ]

    def __init__(self, title: Text, given: MachineSpec, send: Send, *, is_new: bool, note: str = "") -> None:
        super().__init__()
        self._title = title
        self._given = given
        self._send = send
        self._fields = FIELDS if is_new else FIELDS[1:]
        self._note = note
        self._is_sending = False
        self._inputs = {field.name: Input(_text_of(given, field), placeholder=field.hint, compact=True) for field in self._fields}
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
            machine = self._asked_for()
        except ValueError as problem:
            self._say(str(problem))
            return
        self._is_sending = True
        self._say("The engine is asked…")
        self._send(machine, self._answered)

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

    def _asked_for(self) -> MachineSpec:
        """Raises ValueError, with a sentence, when a number is none."""
        values = {field.name: _value_of(field, self._inputs[field.name].value.strip()) for field in self._fields}
        return msgspec.structs.replace(self._given, **values)


def _text_of(given: MachineSpec, field: Field) -> str:
    value = getattr(given, field.name)
    if field.is_list:
        return ", ".join(value)
    return "" if value is None else str(value)


def _value_of(field: Field, text: str) -> object:
    if field.is_list:
        return tuple(part.strip() for part in text.split(",") if part.strip())
    if not field.is_number:
        return text
    if not text:
        return getattr(NEW, field.name)
    if not (text.isascii() and text.isdigit() and len(text) <= MOST_DIGITS):
        raise ValueError(f"{field.label}: {text} is no whole number.")
    return int(text)
