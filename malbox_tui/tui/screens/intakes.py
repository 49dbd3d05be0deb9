"""What came in: the intakes, and of each its account, a line for each thing that was handed in."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.screen import Screen

from malbox_tui.model.errors import EngineStopped, MalboxError
from malbox_tui.model.intake import Fate, IntakeLine, IntakeView, LineQuery
from malbox_tui.ports import Client
from malbox_tui.tui import keys
from malbox_tui.tui.account_lines import account_line, account_title, intake_line, intakes_header
from malbox_tui.tui.moment import Moment
from malbox_tui.tui.notices import say
from malbox_tui.tui.screens.sample import SampleScreen
from malbox_tui.tui.text import plain
from malbox_tui.tui.widgets.key_bar import KeyBar
from malbox_tui.tui.widgets.rows import Rows

SHOWN_INTAKES = 500
PAGE = 500
AHEAD = 100
"""So near to the last line that is known, more are asked for."""
VIEWS: tuple[tuple[str, frozenset[Fate] | None], ...] = (
    ("all", None),
    ("accepted", frozenset({Fate.ACCEPTED})),
    ("duplicates", frozenset({Fate.DUPLICATE})),
    ("opened", frozenset({Fate.OPENED})),
    ("refused", frozenset({Fate.REFUSED})),
)


class IntakesScreen(Screen[None]):
    """The latest intakes, the latest first, live."""

    AUTO_FOCUS = "#intakes"
    BINDINGS: ClassVar[list[BindingType]] = keys.bindings(keys.INTAKES_SCREEN)

    def __init__(self, client: Client, moment: Callable[[], Moment], time_of_day: Callable[[float], str]) -> None:
        super().__init__()
        self._client = client
        self._moment = moment
        self._time_of_day = time_of_day
        self.rows: Rows[IntakeView] = Rows(
            lambda view, width: intake_line(view, self._moment(), self._time_of_day, width),
            title=lambda width: intakes_header(self._moment(), width),
            id="intakes",
        )

    def compose(self) -> ComposeResult:
        """See `Screen`."""
        yield self.rows
        yield KeyBar()

    async def on_mount(self) -> None:
        """Read them."""
        self.rows.border_title = "Intakes"
        self.rows.nothing = "Nothing came in yet."
        await self.reread()

    async def reread(self) -> None:
        """Ask for them again; what was seen last stays when they can't be read."""
        try:
            found = await self._client.intakes(None, SHOWN_INTAKES)
        except EngineStopped:
            raise
        except MalboxError as error:
            say(self.app, str(error), bad=True)
            return
        current = self.rows.current
        self.rows.show(tuple(found))
        if current is not None:
            self.rows.keep_on(lambda view: view.number == current.number)

    def tick(self) -> None:
        """Nothing moves with time alone."""

    async def action_open(self) -> None:
        """Show one's account."""
        if (view := self.rows.current) is not None:
            await self.app.push_screen(AccountScreen(view, self._client, self._moment, self._time_of_day))


class AccountScreen(Screen[None]):
    """One intake's account; more of it is asked for as the cursor goes down."""

    AUTO_FOCUS = "#account"
    BINDINGS: ClassVar[list[BindingType]] = keys.bindings(keys.ACCOUNT_SCREEN)

    def __init__(
        self, intake: IntakeView, client: Client, moment: Callable[[], Moment], time_of_day: Callable[[float], str]
    ) -> None:
        super().__init__()
        self._intake = intake
        self._client = client
        self._moment = moment
        self._time_of_day = time_of_day
        self._view = 0
        self._lines: list[IntakeLine] = []
        self._more = True
        self.rows: Rows[IntakeLine] = Rows(lambda line, width: account_line(line, self._moment(), width), id="account")

    def compose(self) -> ComposeResult:
        """See `Screen`."""
        yield self.rows
        yield KeyBar()

    async def on_mount(self) -> None:
        """Read its beginning."""
        self.rows.border_title = account_title(self._intake, self._time_of_day)
        await self._read()

    async def reread(self) -> None:
        """Go on to read, where its end was shown."""
        if not self._more or not self._lines:
            self._more = True
            await self._read()

    def tick(self) -> None:
        """Nothing moves with time alone."""

    async def on_rows_moved(self) -> None:
        """The cursor may have come near the end of what is known."""
        if self._more and self.rows.place >= len(self._lines) - AHEAD:
            await self._read()

    async def action_next_view(self) -> None:
        """Show the next of the views."""
        self._view = (self._view + 1) % len(VIEWS)
        self._lines, self._more = [], True
        self.rows.show((), first=True)
        await self._read()

    async def action_open(self) -> None:
        """Show the content under the cursor."""
        line = self.rows.current
        if line is not None and line.task_id is not None:
            await self.app.push_screen(SampleScreen(line.sha256, self._client, self._moment))
        elif line is not None:
            say(self.app, "Of this no content is kept." if line.reason == "" else line.reason)

    async def _read(self) -> None:
        name, fates = VIEWS[self._view]
        after = self._lines[-1].number if self._lines else 0
        try:
            page = await self._client.intake_lines(LineQuery(intake=self._intake.number, after=after, limit=PAGE, fates=fates))
        except EngineStopped:
            raise
        except MalboxError as error:
            say(self.app, str(error), bad=True)
            return
        self._intake = page.intake or self._intake
        self._lines += page.lines
        self._more = page.more
        self.rows.nothing = "There is no line of it." if fates is None else f"Nothing of it is {name}."
        self.rows.show(self._lines)
        view = self._intake
        said = f"{name} · {view.accepted:,} accepted, {view.duplicates:,} known, {view.opened:,} opened, {view.refused:,} refused"
        self.rows.border_subtitle = plain(said)
