"""What the console tells in notices, and what of it stays in the log."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest
from textual import events
from textual.pilot import Pilot
from textual.widgets._toast import Toast

from malbox_tui.model.commands import Command, CommandOutcome, ShutdownMode
from malbox_tui.model.errors import StoreFull
from malbox_tui.model.sample import SampleName
from malbox_tui.model.submission import Offer, Refusal
from malbox_tui.tui.app import MalboxApp
from malbox_tui.tui.live import NAMED_REFUSALS
from tests.tui.playing import until
from tests.tui.scripted import ScriptedClient, ScriptedIntake, record, surroundings


@asynccontextmanager
async def _with_notices(
    client: ScriptedClient, size: tuple[int, int] = (120, 40)
) -> AsyncIterator[tuple[MalboxApp, Pilot[ShutdownMode]]]:
    app = MalboxApp(surroundings(client))
    async with app.run_test(size=size, notifications=True) as pilot:
        await until(pilot, lambda: app.picture.overview is not None)
        yield app, pilot


def _notice(app: MalboxApp) -> Toast | None:
    return next((toast for toast in app.screen.query(Toast) if toast.region.area > 0), None)


async def test_what_is_refused_is_named_with_its_reason_in_the_notice_and_in_the_log() -> None:
    class Refusing(ScriptedIntake):
        async def offers(self, paths: Sequence[bytes]) -> AsyncIterator[Offer]:
            for path in paths:
                yield Offer(SampleName(path), refusal=Refusal("missing", "There is no such file."))

    names = [b"first\x1b[31m[/]", *(b"n%d" % number for number in range(NAMED_REFUSALS + 6))]
    app = MalboxApp(surroundings(ScriptedClient(), Refusing(), paths=names))
    async with app.run_test(size=(160, 60), notifications=True) as pilot:
        await until(pilot, lambda: _notice(app) is not None)
        lines = [f"{line.subject} {line.detail}".strip() for line in reversed(app.picture.log)]
        assert lines[0] == r"refused first\x1b[31m[/]: There is no such file."
        assert lines[NAMED_REFUSALS - 1 :] == [f"refused n{NAMED_REFUSALS - 2}: There is no such file.", "7 more refused"]
        notice = _notice(app)
        assert notice is not None
        assert r"57 refused: first\x1b[31m[/]: There is no such file." in notice._notification.message


@pytest.mark.slow
async def test_a_click_on_a_notice_that_is_gone_is_nothing() -> None:
    async with _with_notices(ScriptedClient()) as (app, pilot):
        app.notify("gone in a moment")
        await until(pilot, lambda: _notice(app) is not None)
        toast = _notice(app)
        assert toast is not None
        places = [(x, y) for y in range(*toast.region.line_span) for x in range(*toast.region.column_span)]
        await toast.remove()
        assert all(app.screen.get_widget_at(*place)[0] is toast for place in places), "it still stands there"
        for place in places:
            await app.on_event(_mouse_down(*place))
        await pilot.pause()
        assert app.breakdown is None


async def test_an_order_that_the_engine_cannot_keep_is_told() -> None:
    def full(command: Command) -> CommandOutcome:
        raise StoreFull("The disk is full.")

    async with _with_notices(ScriptedClient([record(1)], answer=full)) as (app, pilot):
        await pilot.press("p")
        await until(pilot, lambda: _notice(app) is not None or app.breakdown is not None)
        assert app.breakdown is None


@pytest.mark.slow
async def test_what_a_configuration_came_about_by_is_told_at_the_start_and_stays_in_the_log() -> None:
    note = "config.limits.toml: the group default has min_workers = 1 and max_workers = 3, as saved."
    app = MalboxApp(surroundings(ScriptedClient(), notes=(note,)))
    async with app.run_test(size=(120, 40), notifications=True) as pilot:
        await until(pilot, lambda: app.picture.overview is not None and _notice(app) is not None)
        assert [(line.subject, line.detail) for line in app.picture.log] == [("configuration", note)]
        app.picture.seed(await app.feed._client.overview(), [])
        assert len(app.picture.log) == 1, "once, however often everything is read anew"


def _mouse_down(x: int, y: int) -> events.MouseDown:
    return events.MouseDown(None, x, y, 0, 0, 1, shift=False, meta=False, ctrl=False, screen_x=x, screen_y=y)
