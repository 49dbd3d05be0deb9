"""Asks for a path to add, which Tab completes, and for what is asked of the samples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.suggester import Suggester
from textual.widgets import Input, Static

from malbox_tui.model.submission import SubmissionOptions
from malbox_tui.ports import Dropped, Intake
from malbox_tui.tui.console import OptionsLine
from malbox_tui.tui.screens.dialogs import Box, Dialog
from malbox_tui.tui.screens.option_rows import OptionRows
from malbox_tui.tui.text import plain, sentence, shown

SHOWN_COMPLETIONS = 5


@dataclass(frozen=True, slots=True)
class Addition:
    """Paths, what is asked of the samples there, and what finds them (None: what the console has anyway). `is_drop`: they were dropped
    on the dialog, and not typed; `written` is what stood in its row of other options then."""

    paths: Sequence[bytes]
    options: SubmissionOptions
    intake: Intake | None = None
    is_drop: bool = False
    written: str | None = None


class AddSamples(Dialog[Addition | None]):
    """Ends with what is to be added; None when it was left. `given` is what is asked of samples at first, `line` reads what else is."""

    AUTO_FOCUS = "#prompt"

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "back", show=False),
        Binding("tab", "complete", "complete", show=False, priority=True),
        Binding("up", "app.focus_previous", show=False),
        Binding("down", "app.focus_next", show=False),
    ]

    def __init__(self, intake: Intake, given: SubmissionOptions, line: OptionsLine | None = None) -> None:
        super().__init__()
        self._intake = intake
        self._rows = OptionRows(given, line)

    def compose(self) -> ComposeResult:
        """See `Screen`."""
        with Vertical(classes="dialog preview"):
            yield Static(plain("Add a file or a folder", "bold"), classes="dialog-title")
            with Horizontal(classes="form-row"):
                yield Static(plain("path"), classes="form-label")
                yield Input(id="prompt", compact=True, suggester=_Paths(self._intake), select_on_focus=False)
            with Box(classes="dialog-body"):
                yield self._rows
            yield Static(id="completions", classes="dialog-hint")
            hint = "Tab completes, arrows move, Enter adds (folders with all that is in them), Escape leaves."
            yield Static(plain(hint), classes="dialog-hint")

    def on_input_changed(self, event: Input.Changed) -> None:
        """Show what the path may become."""
        if event.input.id != "prompt":
            return
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
        dropped = self._intake.dropped(self.query_one("#prompt", Input).value)
        if dropped.paths:
            self._end_with((*dropped.paths, *dropped.missing), is_drop=False)
        else:
            self._say(dropped.problem)

    def take(self, dropped: Dropped) -> None:
        """End with what was dropped and what is asked, or say what is wrong with that."""
        self._end_with((*dropped.paths, *dropped.missing), is_drop=True)

    def _end_with(self, paths: Sequence[bytes], *, is_drop: bool) -> None:
        try:
            options, intake = self._rows.asked()
        except ValueError as problem:
            self._say(str(problem))
        else:
            self.dismiss(Addition(paths, options, intake, is_drop, self._rows.written))

    def action_complete(self) -> None:
        """Complete the path as far as there is one way to go on; where it is not typed, go on."""
        prompt = self.query_one("#prompt", Input)
        if self.focused is not prompt:
            self.focus_next()
            return
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
        self.dismiss(None)

    def _say(self, words: str) -> None:
        self.query_one("#completions", Static).update(sentence(words))


class _Paths(Suggester):
    def __init__(self, intake: Intake) -> None:
        super().__init__(use_cache=False, case_sensitive=True)
        self._intake = intake

    async def get_suggestion(self, value: str) -> str | None:
        """The first path that goes on from here."""
        found = self._intake.completions(value, 1) if value else []
        return found[0] if found else None
