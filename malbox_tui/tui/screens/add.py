"""Asks for a path to add, and completes it with Tab."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.suggester import Suggester
from textual.widgets import Input, Static

from malbox_tui.ports import Intake
from malbox_tui.tui.screens.dialogs import Dialog
from malbox_tui.tui.text import plain, sentence, shown

SHOWN_COMPLETIONS = 8


class AddSamples(Dialog[Sequence[bytes]]):
    """Ends with paths that exist; empty when it was left."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "back", show=False),
        Binding("tab", "complete", "complete", show=False, priority=True),
    ]

    def __init__(self, intake: Intake, text: str = "") -> None:
        super().__init__()
        self._intake = intake
        self._text = text

    def compose(self) -> ComposeResult:
        """See `Screen`."""
        with Vertical(classes="dialog"):
            yield Static(plain("Add a file or a folder", "bold"), classes="dialog-title")
            yield Input(self._text, id="prompt", compact=True, suggester=_Paths(self._intake), select_on_focus=False)
            yield Static(id="completions", classes="dialog-hint")
            yield Static(
                plain("Tab completes, Enter adds (folders with all that is in them), Escape leaves."), classes="dialog-hint"
            )

    def on_input_changed(self, event: Input.Changed) -> None:
        """Show what it may become."""
        found = self._intake.completions(event.value, SHOWN_COMPLETIONS + 1) if event.value else []
        text = plain("")
        for number, path in enumerate(found[:SHOWN_COMPLETIONS]):
            text.append("\n" if number else "")
            text.append_text(shown(path))
        if len(found) > SHOWN_COMPLETIONS:
            text.append("\n…")
        self.query_one("#completions", Static).update(text)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """End with it, or say what is wrong with it."""
        event.stop()
        dropped = self._intake.dropped(event.value)
        if dropped.paths:
            self.dismiss(dropped.paths)
        else:
            self.query_one("#completions", Static).update(sentence(dropped.problem))

    def action_complete(self) -> None:
        """Complete as far as there is one way to go on."""
        prompt = self.query_one("#prompt", Input)
        found = self._intake.completions(prompt.value, 1000)
        if not found:
            return
        common = found[0]
        for path in found[1:]:
            while not path.startswith(common):
                common = common[:-1]
        if len(common) > len(prompt.value):
            prompt.value = common
            prompt.cursor_position = len(common)

    def action_leave(self) -> None:
        """Add nothing."""
        self.dismiss(())


class _Paths(Suggester):
    def __init__(self, intake: Intake) -> None:
        super().__init__(use_cache=False, case_sensitive=True)
        self._intake = intake

    async def get_suggestion(self, value: str) -> str | None:
        """The first path that goes on from here."""
        found = self._intake.completions(value, 1) if value else []
        return found[0] if found else None
