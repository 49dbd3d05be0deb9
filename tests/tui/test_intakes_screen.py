"""The intakes and their accounts on the screen: whatever its name, each thing has its line."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from textual.pilot import Pilot

from malbox_tui.model.commands import ShutdownMode
from malbox_tui.model.errors import Disconnected
from malbox_tui.model.intake import Fate, IntakeHead, IntakeLine, IntakeView, Way
from malbox_tui.model.sample import SampleName
from malbox_tui.tui.account_lines import account_line, account_title, intake_line, intakes_header
from malbox_tui.tui.app import MalboxApp
from malbox_tui.tui.moment import Moment
from malbox_tui.tui.screens import intakes
from malbox_tui.tui.screens.intakes import AccountScreen, IntakesScreen
from malbox_tui.tui.screens.sample import SampleScreen
from tests.tui.hostile import NAMES
from tests.tui.playing import until
from tests.tui.scripted import NOW, ScriptedAttachment, ScriptedClient, record, sha256_of, surroundings

MOMENT = Moment(NOW)


def view(number: int = 1, title: str = "/srv/in", **counts: int) -> IntakeView:
    head = IntakeHead(key=str(number), began_at=NOW, actor="ana", origin="laptop", way=Way.DROP, title=title)
    return IntakeView(number=number, head=head, latest_at=NOW, **counts)


def line(number: int, fate: Fate, name: bytes = b"a.exe", archive: str = "", reason: str = "") -> IntakeLine:
    has_task = fate in (Fate.ACCEPTED, Fate.DUPLICATE)
    return IntakeLine(
        fate=fate,
        name=SampleName(name, b"/srv/in/" + name, archive),
        at=NOW,
        number=number,
        sha256=sha256_of(1) if has_task else "",
        size_bytes=1000 if has_task else None,
        task_id=1 if has_task else None,
        reason=reason,
    )


def time_of_day(at: float) -> str:
    return "09:00:00"


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("width", [120, 30, 1])
def test_hostile_names_and_titles_are_text_that_fits(name: bytes, width: int) -> None:
    title = name.decode("utf-8", "surrogateescape")
    refused = line(1, Fate.REFUSED, name, reason=f"It is {title}.")
    shown = [intake_line(view(title=title), MOMENT, time_of_day, width), account_line(refused, MOMENT, width)]
    shown.append(intakes_header(MOMENT, width))
    for text in shown:
        assert text.plain.isprintable()
        assert text.cell_len == width
    assert account_title(view(title=title), time_of_day).plain.isprintable()


def test_a_line_says_what_became_of_a_thing() -> None:
    said = [
        account_line(each, MOMENT, 100).plain.rstrip()
        for each in (
            line(1, Fate.ACCEPTED),
            line(2, Fate.DUPLICATE, archive="ab" * 32),
            line(3, Fate.OPENED, b"all.zip", reason="zip archive: 2 taken"),
            line(4, Fate.REFUSED, b"readme.txt", reason="It is a link."),
        )
    ]
    assert said == [
        "+ accepted   #1         1.0 K a.exe",
        "= duplicate  #1         1.0 K a.exe in abababababab",
        "▸ opened                      all.zip – zip archive: 2 taken",
        "! refused                     readme.txt – It is a link.",
    ]
    refused = account_line(line(4, Fate.REFUSED, b"readme.txt", reason="It is a link."), MOMENT, 80)
    assert refused.plain.rstrip() == "! refused    readme.txt – It is a link.", "where there is little room"


@asynccontextmanager
async def shown(
    client: ScriptedClient, attachment: ScriptedAttachment | None = None
) -> AsyncIterator[tuple[MalboxApp, Pilot[ShutdownMode]]]:
    app = MalboxApp(surroundings(client, attachment=attachment))
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: app.dashboard.tasks.total > 0)
        await pilot.press("h")
        await until(pilot, lambda: isinstance(app.screen, IntakesScreen))
        await pilot.pause()
        yield app, pilot


def some(count: int) -> ScriptedClient:
    client = ScriptedClient([record(1)])
    lines = [line(number, Fate.REFUSED if number % 10 == 0 else Fate.ACCEPTED, b"%d" % number) for number in range(1, count + 1)]
    client.accounts = {view(2, accepted=9): lines, view(1): ()}
    return client


def names(screen: AccountScreen) -> list[bytes]:
    return [line.name.name for line in screen.rows.things]


@pytest.mark.slow
@pytest.mark.parametrize("attachment", [None, ScriptedAttachment(read_only=True)], ids=["inside", "read-only"])
async def test_an_intake_opens_its_account_and_a_line_its_content(attachment: ScriptedAttachment | None) -> None:
    async with shown(some(3), attachment) as (app, pilot):
        assert isinstance(app.screen, IntakesScreen)
        assert [each.number for each in app.screen.rows.things] == [2, 1]
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, AccountScreen) and len(app.screen.rows.things) == 3)
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, SampleScreen))
        await pilot.press("escape", "escape", "escape")
        assert app.screen is app.dashboard


@pytest.mark.slow
async def test_views_show_one_fate_each(monkeypatch: pytest.MonkeyPatch) -> None:
    async with shown(some(20)) as (app, pilot):
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, AccountScreen))
        screen = app.screen
        assert isinstance(screen, AccountScreen)
        await pilot.press("v", "v", "v", "v")
        await until(pilot, lambda: names(screen) == [b"10", b"20"])
        await pilot.press("enter")
        assert app.screen is screen, "of what was refused there is no content"


@pytest.mark.slow
async def test_a_long_account_is_read_as_the_cursor_goes_down(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intakes, "PAGE", 50)
    monkeypatch.setattr(intakes, "AHEAD", 10)
    async with shown(some(120)) as (app, pilot):
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, AccountScreen) and len(app.screen.rows.things) == 50)
        screen = app.screen
        assert isinstance(screen, AccountScreen)
        await pilot.press("end")
        await until(pilot, lambda: len(screen.rows.things) == 100)
        await pilot.press("end")
        await until(pilot, lambda: len(screen.rows.things) == 120)
        assert names(screen) == [b"%d" % number for number in range(1, 121)]


@pytest.mark.slow
async def test_an_engine_that_can_not_be_reached_leaves_what_was_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    async def lost(*_: object) -> None:
        raise Disconnected("sbx-01", "the connection was closed")

    client = some(3)
    async with shown(client) as (app, pilot):
        screen = app.screen
        assert isinstance(screen, IntakesScreen)
        monkeypatch.setattr(client, "intakes", lost)
        await screen.reread()
        assert [each.number for each in screen.rows.things] == [2, 1]
        await pilot.press("down")
        current = screen.rows.current
        assert current is not None
        assert current.number == 1
