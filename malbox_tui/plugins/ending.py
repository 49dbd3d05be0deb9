"""How one plugin's run ended, before it becomes a `PluginRun`."""

from __future__ import annotations

from dataclasses import dataclass

from malbox_tui.model.report import PluginStatus
from malbox_tui.plugins.replies import shortened


@dataclass(frozen=True, slots=True)
class Ending:
    """`reason` is a sentence without a capital, empty when there is nothing to say; `traceback` goes to the plugin's log.

    `hit` is the limit that ended it, as far as the plugin itself could tell.
    """

    status: PluginStatus
    reason: str = ""
    traceback: bytes = b""
    hit: str | None = None


class NotBegun(Exception):
    """The process ended before it took the task up."""


def status_of(stop_reason: str) -> PluginStatus:
    """The status of a run that a stop ended, or prevented."""
    return PluginStatus.TIMED_OUT if stop_reason == "timeout" else PluginStatus.CANCELED


def stopped(stop_reason: str) -> Ending:
    """The ending of a run that a stop ended."""
    in_words = "the time limit of the task ended it" if stop_reason == "timeout" else f"stopped: {shortened(stop_reason, 200)}"
    return Ending(status_of(stop_reason), in_words)


def last_line(traceback: bytes) -> str:
    """Its last line, which names the error; empty when there is none."""
    lines = traceback.decode("utf-8", "replace").strip().splitlines()
    return lines[-1] if lines else ""
