"""What is asked of samples, a row each in a dialog."""

from __future__ import annotations

from dataclasses import astuple

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.widgets import Input, Static

from malbox_tui.model.submission import SubmissionOptions
from malbox_tui.tui.asking import Asked, asked_by, options_of
from malbox_tui.tui.text import plain

FIELDS = (
    ("in a machine", "linux, windows or any; empty: on this host alone"),
    ("arguments", "the sample's, quoted as in a shell"),
    ("memory", "yes: keep its machine's"),
    ("profile", "its name; empty: the one for its kind"),
    ("priority", "higher goes first; empty: 1"),
    ("again", "yes: analyse what was analysed before once more"),
)
"""The words before each row, and what stands there while it is empty, in the order of `Asked`."""


class OptionRows(Vertical):
    """The rows; `given` is what is asked at first, and whatever has no row stays as it says."""

    def __init__(self, given: SubmissionOptions) -> None:
        super().__init__(classes="option-rows")
        self._given = given
        self._inputs = [
            Input(value, placeholder=hint, compact=True)
            for value, (_label, hint) in zip(astuple(asked_by(given)), FIELDS, strict=True)
        ]

    def compose(self) -> ComposeResult:
        """See `Widget`."""
        for asked, (label, _hint) in zip(self._inputs, FIELDS, strict=True):
            with Horizontal(classes="form-row"):
                yield Static(plain(label), classes="form-label")
                yield asked

    def options(self) -> SubmissionOptions:
        """What is asked now. Raises ValueError, with a sentence."""
        return options_of(Asked(*(asked.value for asked in self._inputs)), self._given)
