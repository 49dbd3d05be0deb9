"""What a drop would bring in, before it does: how much of what, what is known or can't be taken, and what is asked of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import Input, Static

from malbox_tui.model.errors import EngineStopped, MalboxError
from malbox_tui.model.intake import title_of
from malbox_tui.model.queries import MAX_ROWS, TaskFilter, TaskQuery
from malbox_tui.model.submission import SubmissionOptions
from malbox_tui.model.survey import Survey
from malbox_tui.model.task import TaskState
from malbox_tui.ports import Dropped
from malbox_tui.tui.console import Surroundings
from malbox_tui.tui.identified import suggested
from malbox_tui.tui.identifying import Identifying
from malbox_tui.tui.intake_words import preview_lines, preview_title
from malbox_tui.tui.moment import Moment
from malbox_tui.tui.screens.add import Addition
from malbox_tui.tui.screens.dialogs import Box, Dialog
from malbox_tui.tui.screens.option_rows import OptionRows
from malbox_tui.tui.text import plain, sentence

ASKED_AT_ONCE = 500
MARGIN_CELLS = 8
"""What the dialog's border, its padding and a scroll bar take."""
STANDING = frozenset(TaskState) - {TaskState.FAILED, TaskState.TIMED_OUT, TaskState.CANCELED}
"""Content with a task in one of these states gets no other one."""
HINT = "Enter adds, Escape leaves; ^z takes it back until it starts."
LOW = 30
"""On a screen of fewer lines it is a brief account."""


class Preview(Dialog[tuple[Addition, Survey] | None]):
    """Ends with what is to be added, and what was seen of it; None when it was left. More may be dropped on it."""

    AUTO_FOCUS = "Input"

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "back", show=False),
        Binding("enter", "add", "add", show=False),
        Binding("ctrl+s", "take_over", "take the suggested profile", show=False),
        Binding("up", "app.focus_previous", show=False),
        Binding("down", "app.focus_next", show=False),
    ]

    def __init__(
        self,
        dropped: Dropped,
        given: SubmissionOptions,
        around: Surroundings,
        moment: Callable[[], Moment],
        written: str | None = None,
    ) -> None:
        """`written` is what stands in the row of other options; None: what the console was started with."""
        super().__init__()
        self._paths: dict[bytes, None] = {}
        self._usual = around.intake
        self._client = around.client
        self._moment = moment
        self._survey = Survey()
        self._looks = 0
        self._known: set[str] | None = set()
        self._asked: set[str] = set()
        self._rows = OptionRows(given, around.line, written)
        self._options = self._rows.written
        self._intake = (None if written is None else self._rows.intake(around.intake)) or around.intake
        self._identifying = (
            None if around.open_identifier is None else Identifying(around.open_identifier, self._client, self._draw)
        )
        self._title = Static(preview_title(self._survey), classes="dialog-title")
        self._body = Static(classes="preview-body")
        self._problem = Static(classes="dialog-problem")
        self._keep(dropped)

    def compose(self) -> ComposeResult:
        """See `Screen`."""
        with Vertical(classes="dialog preview"):
            yield self._title
            with Box(classes="dialog-body"):
                yield self._body
                yield self._rows
            yield self._problem
            yield Static(plain(HINT), classes="dialog-hint")

    def on_mount(self) -> None:
        """Look at it."""
        if self._identifying is not None:
            self.run_worker(self._identifying.run(), name="identify", group="identify")
        self._look()

    def on_resize(self) -> None:
        """Its lines have another width."""
        self.call_after_refresh(self._draw)

    def take(self, dropped: Dropped) -> None:
        """More was dropped: some terminals send each file by itself."""
        self._keep(dropped)
        self._look()

    def _keep(self, dropped: Dropped) -> None:
        self._paths |= dict.fromkeys((*dropped.paths, *dropped.missing))
        self._say(dropped.problem)

    def _say(self, problem: str) -> None:
        """What is wrong, in the place of the keys where there is no room for both; an empty one is nothing."""
        self._problem.display = bool(problem)
        self.set_class(bool(problem), "-wrong")
        self._problem.update(sentence(problem))

    def _look(self) -> None:
        paths = tuple(self._paths)
        self._looks += 1
        self.run_worker(self._look_at(paths, self._looks), name="survey", group="survey")
        if self._identifying is not None:
            self._identifying.look(self._intake, paths)

    async def _look_at(self, paths: Sequence[bytes], look: int) -> None:
        """Until another look is under way, at more that was dropped or as other options ask."""
        async for survey in self._intake.survey(paths):
            if look < self._looks:
                return
            self._survey = survey
            self._draw()
            await self._ask(survey.sums)
        self._draw()

    async def _ask(self, sums: Sequence[str]) -> None:
        """Which of these contents have a task already."""
        fresh = [sha256 for sha256 in sums if sha256 not in self._asked]
        for start in range(0, len(fresh), ASKED_AT_ONCE):
            some = tuple(fresh[start : start + ASKED_AT_ONCE])
            try:
                page = await self._client.query(TaskQuery(where=TaskFilter(sha256s=some, states=STANDING), limit=MAX_ROWS))
            except EngineStopped:
                return
            except MalboxError:
                self._asked.update(fresh)
                self._known = None
                return
            self._asked.update(some)
            if self._known is not None:
                self._known |= {row.sample.sha256 for row in page.rows}

    def _draw(self) -> None:
        if not self.is_attached:
            return
        width = max(20, self._body.size.width or self.size.width - MARGIN_CELLS)
        self._title.update(preview_title(self._survey))
        title = title_of(tuple(self._paths))
        known = None if self._known is None else self._known.intersection(self._survey.sums)
        identified = None if self._identifying is None else self._identifying.state
        is_low = self.size.height < LOW
        lines = preview_lines(self._survey, title, known, self._moment(), width, identified, brief=is_low)
        self._body.update(Text("\n").join(lines))
        self._rows.suggest(self._suggested())

    @property
    def has_identified(self) -> bool:
        """Whether all is said of what the first files are."""
        return self._identifying is None or self._identifying.state.done

    def _suggested(self) -> str:
        """The profile that is suggested; empty: none."""
        if self._identifying is None:
            return ""
        best = suggested(self._identifying.state, opens_archives=self._survey.opens_archives)
        return "" if best is None else best.profile

    def action_take_over(self) -> None:
        """Ask for the profile that is suggested."""
        if profile := self._suggested():
            self._rows.take_over(profile)

    def on_input_changed(self, event: Input.Changed) -> None:
        """Other options may find other files, or leave archives closed."""
        if event.input.id == "options" and event.value != self._options:
            intake = self._rows.intake(self._usual)
            if intake is not None:
                self._options, self._intake = event.value, intake
                self._look()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Add them."""
        event.stop()
        self.action_add()

    def action_add(self) -> None:
        """End with all of it, or say what is wrong with what is asked."""
        try:
            options, intake = self._rows.asked()
        except ValueError as problem:
            self._say(str(problem))
        else:
            self.dismiss((Addition(tuple(self._paths), options, intake, is_drop=True), self._survey))

    def action_leave(self) -> None:
        """Add nothing."""
        self.dismiss(None)
