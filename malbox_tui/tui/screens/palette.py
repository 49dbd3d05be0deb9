"""The command palette: what the keys do, found by words."""

from __future__ import annotations

from typing import Any

from textual.await_complete import AwaitComplete
from textual.command import CommandList, CommandPalette
from textual.worker import Worker


class Palette(CommandPalette):
    """Textual's own, without three ways to break the console down.

    It is dismissed once (see `Dialog`); keys for its list do nothing while that has no room on the screen; and its search, which may
    still be at work when its screen is gone, fails for itself alone.
    """

    def dismiss(self, result: None = None) -> AwaitComplete:
        """See `Screen`; does nothing when it was dismissed."""
        return super().dismiss(result) if self.is_active else AwaitComplete()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """See `DOMNode`."""
        if action == "command_list" and not self.query_one(CommandList).scrollable_content_region:
            return False
        return super().check_action(action, parameters)

    def run_worker(self, work: Any, *arguments: Any, **options: Any) -> Worker[Any]:
        """See `DOMNode`."""
        return super().run_worker(work, *arguments, **{**options, "exit_on_error": False})
