"""Small questions over the screen. What does no harm has the focus, and Escape always chooses it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import ClassVar, TypeVar

from rich.console import Group
from rich.table import Table
from rich.text import Text
from textual.app import ComposeResult
from textual.await_complete import AwaitComplete
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.suggester import SuggestFromList
from textual.widgets import Button, Input, Static

from malbox_tui.tui import keys
from malbox_tui.tui.legend import SIGNS
from malbox_tui.tui.text import plain

T = TypeVar("T")

MAX_OFFERED = 10
"""So many answers are shown below a prompt."""


@dataclass(frozen=True, slots=True)
class Choice:
    """One answer: its button's words, and the value that the dialog ends with."""

    label: str
    value: object
    harmful: bool = False


class Dialog(ModalScreen[T]):
    """A screen over the others that is answered once.

    Two keys, or the clicks of a double click, may both have reached it before the first of them is acted upon; the second answer would
    take away the screen below.
    """

    VERTICAL_BREAKPOINTS = [(0, "-low"), (16, "-short"), (30, "-high")]  # noqa: RUF012 - as the base declares it

    def dismiss(self, result: T | None = None) -> AwaitComplete:
        """See `Screen`; does nothing when it has been answered."""
        return super().dismiss(result) if self.is_active else AwaitComplete()


class Box(VerticalScroll, inherit_bindings=False, can_focus=False):
    """Keeps what has the focus in sight, whatever is laid out anew, and leaves the arrow keys to whoever moves that."""

    def on_resize(self) -> None:
        """It, or what is in it, has another size."""
        self.call_after_refresh(self._show_focused)

    def on_descendant_focus(self) -> None:
        """Another answer has the focus; it may not have its place yet."""
        self.call_after_refresh(self._show_focused)

    def _show_focused(self) -> None:
        if self.is_attached and (focused := self.screen.focused) is not None:
            self.scroll_to_widget(focused, animate=False, immediate=True)


class Question(Dialog[object]):
    """A question with buttons. The first choice is the harmless one: it has the focus, and Escape means it."""

    AUTO_FOCUS = "#choice-0"

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "harmless", "back", show=False),
        Binding("up,left", "app.focus_previous", show=False),
        Binding("down,right", "app.focus_next", show=False),
    ]

    def __init__(self, title: str, lines: Sequence[Text], choices: Sequence[Choice]) -> None:
        super().__init__()
        self._title = title
        self._lines = lines
        self._choices = choices

    def compose(self) -> ComposeResult:
        """See `Screen`."""
        with Box(classes="dialog"):
            yield Static(plain(self._title, "bold"), classes="dialog-title")
            for line in self._lines:
                yield Static(line)
            with Vertical(classes="dialog-buttons"):
                for number, choice in enumerate(self._choices):
                    yield Button(
                        plain(choice.label).plain,
                        id=f"choice-{number}",
                        variant="error" if choice.harmful else "default",
                        compact=True,
                    )

    def on_button_pressed(self, event: Button.Pressed) -> None:
        """Answer."""
        event.stop()
        self.dismiss(self._choices[int((event.button.id or "choice-0").removeprefix("choice-"))].value)

    def action_harmless(self) -> None:
        """Answer with the first choice."""
        self.dismiss(self._choices[0].value)


class Prompt(Dialog[str | None]):
    """One line of input; None when it was left with Escape."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", "back", show=False)]

    def __init__(self, title: str, hint: str, value: str = "", offered: Mapping[str, Text] | None = None) -> None:
        """`offered`: what may be written, and how each is shown below the line; the first that begins as what is written is
        suggested."""
        super().__init__()
        self._title = title
        self._hint = hint
        self._value = value
        self._offered = offered or {}

    def compose(self) -> ComposeResult:
        """See `Screen`."""
        with Vertical(classes="dialog"):
            yield Static(plain(self._title, "bold"), classes="dialog-title")
            suggester = SuggestFromList(self._offered, case_sensitive=False) if self._offered else None
            yield Input(self._value, id="prompt", compact=True, suggester=suggester)
            if self._offered:
                yield Static(Text("\n").join(self._lines()), classes="dialog-hint")
            yield Static(plain(self._hint), classes="dialog-hint")

    def _lines(self) -> Iterator[Text]:
        yield from islice(self._offered.values(), MAX_OFFERED)
        if (more := len(self._offered) - MAX_OFFERED) > 0:
            yield plain(f"and {more} more")

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Answer."""
        event.stop()
        self.dismiss(event.value)

    def action_leave(self) -> None:
        """Answer with nothing."""
        self.dismiss(None)


class Help(Dialog[None]):
    """All keys, from the one table of them. Arrows scroll."""

    AUTO_FOCUS = "VerticalScroll"

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,question_mark,f1,enter", "leave", "back", show=False)]

    def compose(self) -> ComposeResult:
        """See `Screen`."""
        with Vertical(classes="dialog help"):
            yield Static(plain("Keys", "bold"), classes="dialog-title")
            with VerticalScroll(classes="dialog-body"):
                yield Static(_all_keys())
            yield Static(plain("Escape closes this."), classes="dialog-hint")

    def action_leave(self) -> None:
        """Close."""
        self.dismiss(None)


def _all_keys() -> Group:
    pressed, signs = (Table.grid(padding=(0, 2, 0, 0)) for _ in range(2))
    for title, group in keys.GROUPS:
        pressed.add_row(plain(title, "bold"), plain(""))
        for key in group:
            pressed.add_row(plain(f"  {key.shown}", "bold"), Text(key.help))
        pressed.add_row(plain(""), plain(""))
    signs.add_row(plain("Signs", "bold"), plain(""))
    for sign, meaning in SIGNS:
        signs.add_row(plain(f"  {sign}", "bold"), Text(meaning))
    return Group(pressed, signs)
