"""The command palette: what the keys do, found by words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from textual.app import App
from textual.await_complete import AwaitComplete
from textual.command import CommandList, CommandPalette
from textual.screen import Screen
from textual.worker import Worker

from malbox_tui.tui.keys import Key


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


def offered(app: App[Any], screen: Screen[Any], *groups: Sequence[Key]) -> Iterator[Key]:
    """Those keys that do something on `screen` at this moment; ways back to where one came from are none."""
    for key in (key for group in groups for key in group):
        namespace, _, action = key.action.partition("(")[0].partition(".")
        target = app if namespace == "app" else screen
        if key.shown != "esc" and hasattr(target, f"action_{action}") and target.check_action(action, ()):
            yield key
