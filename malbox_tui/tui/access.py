"""Which keys work on an engine elsewhere at this moment, and why another doesn't."""

from __future__ import annotations

from collections.abc import Callable

from malbox_tui.ports import Attachment, Away
from malbox_tui.tui import keys
from malbox_tui.tui.banner import Notice, away_notice


class Access:
    """Of a console with the pool inside (`attachment` is None), nothing is ever out of reach."""

    def __init__(self, attachment: Attachment | None, time_of_day: Callable[[float], str]) -> None:
        self._attachment = attachment
        self._time_of_day = time_of_day

    @property
    def away(self) -> Away | None:
        """The engine that can't be reached; None while it can."""
        return None if self._attachment is None else self._attachment.away

    @property
    def notice(self) -> Notice | None:
        """What there is to say while the engine can't be reached."""
        return None if self.away is None else away_notice(self.away, self._time_of_day)

    @property
    def is_attached(self) -> bool:
        """Whether the engine runs elsewhere."""
        return self._attachment is not None

    @property
    def is_away(self) -> bool:
        """Whether the engine can't be reached."""
        return self.away is not None

    @property
    def is_read_only(self) -> bool:
        """Whether this console may only look."""
        return self._attachment is not None and self._attachment.read_only

    def hurry(self) -> None:
        """Somebody waits for the engine: try to reach it now."""
        if self._attachment is not None:
            self._attachment.hurry()

    def refusal(self, action: str) -> str | None:
        """Why an action (`cancel_task`) can't be done now, in a sentence; None when it can."""
        if self.is_read_only and action in keys.CHANGING_ACTIONS:
            return "This console may only look: it was opened with --read-only."
        away = self.away
        if away is not None and action in keys.ASKING_ACTIONS:
            return f"Not connected since {self._time_of_day(away.since)}: this key needs the engine."
        return None
