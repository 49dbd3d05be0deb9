"""The command palette: what the keys do, found by words."""

from __future__ import annotations

from textual.await_complete import AwaitComplete
from textual.command import CommandPalette


class Palette(CommandPalette):
    """Textual's own, but dismissed once: see `Dialog`."""

    def dismiss(self, result: None = None) -> AwaitComplete:
        """See `Screen`; does nothing when it was dismissed."""
        return super().dismiss(result) if self.is_active else AwaitComplete()
