"""What is asked of samples as one line of a dialog: the options of the command line, by their own names, read by the same reader."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields
from enum import Enum

from cyclopts import App, CycloptsError, UnusedCliTokensError

from malbox_tui.cli.wishes import Wishes
from malbox_tui.model.errors import MalboxError
from malbox_tui.model.selection import IntakeChoice
from malbox_tui.model.submission import SubmissionOptions
from malbox_tui.ports import Intake

ELSEWHERE = ("platform", "argument", "memory", "profile")
"""The options for which the dialog has fields of their own."""


class WishesLine:
    """Implements `OptionsLine`. `wishes` are those that the console was started with, `open_intake` makes what finds samples."""

    def __init__(self, wishes: Wishes, open_intake: Callable[[IntakeChoice], Intake]) -> None:
        self._open_intake = open_intake
        self.text = shlex.join(_words(wishes))

    def read(self, text: str) -> tuple[SubmissionOptions, Intake]:
        """As `OptionsLine.read`."""
        try:
            words = shlex.split(text)
        except ValueError:
            raise ValueError("Options: a quote is not closed, or a backslash has nothing behind it.") from None
        for word in words:
            if (name := word.partition("=")[0].removeprefix("--")) in ELSEWHERE and word.startswith("--"):
                raise ValueError(f"--{name} has a field of its own.")
        try:
            wishes = _parsed(words)
            return wishes.submission(), self._open_intake(wishes.choice())
        except MalboxError as error:
            raise ValueError(str(error)) from None


def _parsed(words: Sequence[str]) -> Wishes:
    """Raises ValueError for what is no option, or has a value that makes no sense."""
    app = App(help_flags=(), version_flags=())

    @app.default
    def asked(*, wishes: Wishes | None = None) -> Wishes:
        return wishes or Wishes()

    try:
        command, bound, _ = app.parse_args(list(words), exit_on_error=False, print_error=False)
    except UnusedCliTokensError as error:
        raise ValueError(f"Options: {' '.join(error.unused_tokens or ())} is no option.") from error
    except CycloptsError as error:
        raise ValueError(f"Options: {' '.join(str(error).split())}") from error
    found = command(*bound.args, **bound.kwargs)
    assert isinstance(found, Wishes)
    return found


def _words(wishes: Wishes) -> Iterator[str]:
    """The words that ask for these wishes, without those that stand elsewhere."""
    for field in fields(Wishes):
        value, name = getattr(wishes, field.name), field.name.replace("_", "-")
        if field.name in ELSEWHERE or value == field.default:
            continue
        if isinstance(value, bool):
            yield f"--{name}" if value else f"--no-{name}"
            continue
        for item in value if isinstance(value, tuple) else (value,):
            yield f"--{name}={item.value if isinstance(item, Enum) else item}"
