"""That the engine can't be reached, above a page: what it shows is of then."""

from __future__ import annotations

from typing import Any

from rich.text import Text
from textual.app import App
from textual.screen import ModalScreen, Screen
from textual.widgets import Static

from malbox_tui.tui.banner import Notice, banner_lines
from malbox_tui.tui.moment import Moment


class AwayBar(Static, can_focus=False):
    """Stands at the top of a page as long as the engine can't be reached."""

    DEFAULT_CSS = "AwayBar { dock: top; height: auto; }"


def show_on_pages(app: App[Any], own: Screen[Any], notice: Notice | None, moment: Moment) -> None:
    """Put what there is to say on every page that is open over the screen `own`, which says it itself, and take it away when there is
    nothing. Dialogs lie over one of them."""
    stack = app.screen_stack
    for screen in stack[stack.index(own) + 1 :] if own in stack else ():
        if isinstance(screen, ModalScreen):
            continue
        bar = next(iter(screen.query(AwayBar)), None)
        if notice is None:
            if bar is not None:
                bar.remove()
            continue
        lines = Text("\n").join(banner_lines([notice], moment, app.size.width))
        if bar is None:
            screen.mount(AwayBar(lines))
        else:
            bar.update(lines)
