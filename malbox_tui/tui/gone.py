"""Widgets that were removed and still stand on the screen, such as a notice that the first of two clicks closed."""

from __future__ import annotations

from textual.errors import NoWidget
from textual.events import MouseDown
from textual.screen import Screen


def hits_what_is_gone(screen: Screen[object], event: MouseDown) -> bool:
    """Whether a press of the mouse is on such a widget. Textual begins a selection in the widget's parent, and breaks down when there
    is none."""
    try:
        widget, _ = screen.get_widget_at(event.x, event.y)
    except NoWidget:
        return False
    return not widget.is_attached
