"""How far the intakes of this console are, below the banner; not there while there is none."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rich.text import Text

from malbox_tui.tui.intake_run import IntakeRun
from malbox_tui.tui.intake_words import progress_line
from malbox_tui.tui.moment import Moment
from malbox_tui.tui.widgets.line_view import LineView

MOST_SHOWN = 3


class IntakeProgress(LineView, can_focus=False):
    """A line for each, the latest first; of many only some."""

    def __init__(self, runs: Sequence[IntakeRun], moment: Callable[[], Moment]) -> None:
        """`runs` are those under way, whatever they are at the moment of drawing."""
        super().__init__(id="intake-progress")
        self._runs = runs
        self._moment = moment
        self.display = False

    def changed(self) -> None:
        """See `LineView`: there are more or fewer lines now, too."""
        self.display = bool(self._runs)
        super().changed()

    def line_count(self) -> int:
        """See `LineView`."""
        return min(MOST_SHOWN, len(self._runs))

    def line(self, index: int, width: int) -> Text:
        """See `LineView`."""
        return progress_line(self._runs[-1 - index], self._moment(), width)
