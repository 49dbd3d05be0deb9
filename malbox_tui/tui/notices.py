"""What the console tells an operator for a moment, over whatever is shown. None of it is ever read as markup."""

from __future__ import annotations

from typing import Any

from rich.text import Text
from textual.app import App

from malbox_tui.tui.text import sentence

SHOWN_S = 6


def say(app: App[Any], message: str, *, bad: bool = False) -> None:
    """A sentence of ours, which may hold foreign words."""
    say_text(app, sentence(message), bad=bad)


def say_text(app: App[Any], message: Text, *, bad: bool = False) -> None:
    """As `say`, with text that is safe already."""
    app.notify(message.plain, severity="error" if bad else "information", markup=False, timeout=SHOWN_S)
