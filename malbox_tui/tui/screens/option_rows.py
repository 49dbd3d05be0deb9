"""What is asked of samples, a row each in a dialog."""

from __future__ import annotations

from dataclasses import astuple

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.widgets import Input, Static

from malbox_tui.model.submission import SubmissionOptions
from malbox_tui.ports import Intake
from malbox_tui.tui.asking import Asked, asked_by, options_of
from malbox_tui.tui.console import OptionsLine
from malbox_tui.tui.text import plain, sentence

FIELDS = (
    ("in a machine", "linux, windows or any; empty: on this host alone"),
    ("arguments", "the sample's, quoted as in a shell"),
    ("memory", "yes: keep its machine's"),
    ("profile", "its name; empty: the one for its kind"),
    ("priority", "higher goes first; empty: 1"),
    ("again", "yes: analyse what was analysed before once more"),
)
"""The words before each row, and what stands there while it is empty, in the order of `Asked`."""


PROFILE = next(place for place, (label, _hint) in enumerate(FIELDS) if label == "profile")
MORE_HINT = "as on the command line: --owner ana --plugins strings"


class OptionRows(Vertical):
    """The rows; `given` is what is asked at first, and whatever has no row stays as it says. `line` reads what else is asked, in a row
    of its own, where `written` stands (None: what the console was started with); None: there is no such row."""

    def __init__(self, given: SubmissionOptions, line: OptionsLine | None, written: str | None = None) -> None:
        super().__init__(classes="option-rows")
        self._given = given
        self._line = line
        text = "" if line is None else line.text if written is None else written
        self._more = Input(text, placeholder=MORE_HINT, compact=True, id="options")
        self._inputs = [
            Input(value, placeholder=hint, compact=True)
            for value, (_label, hint) in zip(astuple(asked_by(given)), FIELDS, strict=True)
        ]

    def compose(self) -> ComposeResult:
        """See `Widget`."""
        rows = [(asked, label) for asked, (label, _hint) in zip(self._inputs, FIELDS, strict=True)]
        for asked, label in (*rows, *([] if self._line is None else [(self._more, "options")])):
            with Horizontal(classes="form-row"):
                yield Static(plain(label), classes="form-label")
                yield asked

    @property
    def written(self) -> str:
        """What stands in the row of other options."""
        return self._more.value

    def suggest(self, profile: str) -> None:
        """Say in the empty row that this profile is suggested, and how it is taken over; an empty name: none is."""
        hint = FIELDS[PROFILE][1]
        self._inputs[PROFILE].placeholder = f"^s writes {sentence(profile).plain}; empty: by kind" if profile else hint

    def take_over(self, profile: str) -> None:
        """Ask for this profile, in place of what was written."""
        self._inputs[PROFILE].value = profile
        self._inputs[PROFILE].focus()

    def intake(self, usual: Intake) -> Intake | None:
        """What finds samples as it is asked now, `usual` without a row for that; None: what is written there can't be read."""
        try:
            return usual if self._line is None else self._line.read(self._more.value)[1]
        except ValueError:
            return None

    def asked(self) -> tuple[SubmissionOptions, Intake | None]:
        """What is asked now, and what finds samples (None: what the console has anyway). Raises ValueError, with a sentence."""
        given, intake = (self._given, None) if self._line is None else self._line.read(self._more.value)
        return options_of(Asked(*(asked.value for asked in self._inputs)), given), intake
