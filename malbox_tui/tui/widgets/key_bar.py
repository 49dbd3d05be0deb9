"""The line at the bottom: the keys of the moment, as many as there is room for."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.events import Resize
from textual.widgets import Footer
from textual.widgets._footer import FooterKey

from malbox_tui.tui.keys import YIELDING
from malbox_tui.tui.text import plain


class KeyBar(Footer):
    """Textual's footer, which would cut its last keys on a narrow screen: here those go that one can best do without.

    It is asked to be made anew at each move of the focus, several times when a screen comes, and mostly it would look the same.
    """

    def __init__(self) -> None:
        super().__init__(compact=True, show_command_palette=False)
        self._standing: list[tuple[str, str, str, bool]] | None = None
        """What each key that stands there is made from."""

    def compose(self) -> ComposeResult:
        """See `Footer`."""
        shown = self._shown()
        self._standing = [_made_from(key) for key in shown]
        yield from shown

    async def recompose(self) -> None:
        """See `Widget`; does nothing when it would look the same, or its screen is gone."""
        if self.is_attached and self._standing != [_made_from(key) for key in self._shown()]:
            await super().recompose()

    def _shown(self) -> list[FooterKey]:
        shown = [widget for widget in super().compose() if isinstance(widget, FooterKey)]
        for action in YIELDING:
            if sum(map(_cells, shown)) <= self.app.size.width:
                break
            shown = [key for key in shown if key.action != action]
        return shown

    def on_resize(self, event: Resize) -> None:
        """There may be room for more, or for fewer."""
        self.call_after_refresh(self.recompose)


def _cells(key: FooterKey) -> int:
    """What it takes on the line, with the gap behind it."""
    return plain(f"{key.key_display} {key.description} ").cell_len


def _made_from(key: FooterKey) -> tuple[str, str, str, bool]:
    return key.key_display, key.description, key.action, key.has_class("-disabled")
