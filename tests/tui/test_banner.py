"""What must not be missed is said whole, at any width, and nothing is said when all is well."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from malbox_tui.model.due import TimeLimit
from malbox_tui.model.errors import StoreError
from malbox_tui.model.worker import WorkerState
from malbox_tui.tui.app import MalboxApp
from malbox_tui.tui.banner import MAX_LINES_EACH, Notice, banner_lines, notices, waits_for
from malbox_tui.tui.moment import Moment
from malbox_tui.tui.text import wrapped
from tests.tui.scripted import NOW, ScriptedClient, due, machine, overview, record, surroundings, worker

MOMENT = Moment(NOW)
FULL = "The store takes nothing: the disk under /var/lib/malbox-tui is full: free some room, and it goes on by itself"


def _said(**changes: object) -> list[tuple[str, str]]:
    workers = changes.pop("workers", ())
    return [(notice.word, notice.words) for notice in notices(overview([], workers, **changes), NOW)]  # type: ignore[arg-type]


def test_nothing_is_said_when_all_is_well() -> None:
    assert _said() == []
    assert banner_lines([], MOMENT, 80) == []


@pytest.mark.parametrize(
    ("changes", "word", "words"),
    [
        ({"troubles": (FULL,)}, "TROUBLE", FULL),
        ({"paused": "paused by ana"}, "PAUSED", "paused by ana; no task is taken, what runs goes on"),
        ({"paused": "disk below 1.0 GiB", "low_disk": "Only 9 MiB are free."}, "LOW DISK", "Only 9 MiB are free."),
        ({"stopping": "give_back"}, "STOPPING", "what runs is stopped, and kept for the next start"),
        ({"stopping": "something new"}, "STOPPING", "something new"),
        ({"isolation": "limits alone: bwrap is not installed"}, "WEAK ISOLATION", "limits alone: bwrap is not installed"),
        ({"machines": (machine("a", provider="simulated"),)}, "SIMULATED", "all machines are played: results are made up"),
        (
            {"machines": (machine("a"), machine("b", provider="simulated"))},
            "SIMULATED",
            "1 of 2 machines is played: results are made up",
        ),
    ],
)
def test_what_must_not_be_missed_is_named(changes: dict[str, object], word: str, words: str) -> None:
    assert _said(**changes) == [(word, words)]


def test_the_worst_stands_first() -> None:
    said = _said(
        troubles=(FULL,),
        paused="paused by ana",
        stopping="drain",
        isolation="limits alone",
        machines=(machine("a", provider="simulated"),),
    )
    assert [word for word, _ in said] == ["TROUBLE", "STOPPING", "PAUSED", "WEAK ISOLATION", "SIMULATED"]


def test_a_pause_that_follows_from_a_trouble_is_not_said_twice() -> None:
    assert [word for word, _ in _said(troubles=(FULL,), paused="the store takes nothing")] == ["TROUBLE"]
    assert _said(troubles=(FULL,), paused="paused by ana; the store takes nothing")[1] == (
        "PAUSED",
        "paused by ana; no task is taken, what runs goes on",
    )


def test_a_drain_says_what_it_waits_for_and_how_long_at_most() -> None:
    dues = (due(60, TimeLimit.PREPARING, 900), due(12, TimeLimit.CRITICAL, 1800), due(200, stands=True), None, due(1))
    several = worker(2, task_ids=tuple(range(8, 13)), slots=8, dues=dues)
    given = overview([], [worker(1, 7, state=WorkerState.LEAVING, dues=(due(258),)), several], stopping="drain")
    said = "#7 (at most 4:18), #8, #9 (at most 0:12), #10 (waits, then at most 3:20), and 2 more"
    assert waits_for(given, NOW) == said
    assert waits_for(given, NOW + 8).startswith("#7 (at most 4:10), #8, #9 (at most 0:04), #10 (waits, then at most 3:20)")
    (notice,) = notices(given, NOW)
    assert notice.words == f"no task is taken, what runs is finished: {said}"


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_short_notices_share_a_line_and_long_ones_go_on_in_the_next(width: int) -> None:
    said = [Notice("TROUBLE", "bad", FULL), Notice("PAUSED", "late", "by ana"), Notice("SIMULATED", "preparing", "played")]
    lines = banner_lines(said, MOMENT, width)
    assert all(line.cell_len <= width for line in lines)
    shown = " ".join(line.plain for line in lines)
    assert " ".join(shown.split()) == f"TROUBLE {FULL} PAUSED by ana SIMULATED played"
    assert lines[-1].plain.endswith(" PAUSED  by ana   SIMULATED  played")


@given(st.text(max_size=300), st.integers(2, 60), st.integers(1, 5))
def test_wrapped_text_fits_and_is_never_cut_silently(text: str, cells: int, most: int) -> None:
    text = "".join(filter(str.isprintable, text))
    lines = wrapped(text, cells, most)
    assert 1 <= len(lines) <= most
    assert all(cell_len(line) <= cells for line in lines)
    kept = "".join("".join(lines).split())
    assert kept == "".join(text.split()) or lines[-1].endswith("…")


def test_a_notice_without_end_stops_with_an_ellipsis() -> None:
    lines = banner_lines([Notice("TROUBLE", "bad", "word " * 500)], MOMENT, 80)
    assert len(lines) == MAX_LINES_EACH
    assert lines[-1].plain.endswith("…")


@pytest.mark.slow
@pytest.mark.parametrize("size", [(60, 18), (80, 24), (120, 40)])
async def test_the_banner_comes_and_goes_with_its_cause(size: tuple[int, int]) -> None:
    client = ScriptedClient([record(1)], [worker(1)])
    app = MalboxApp(surroundings(client))
    async with asyncio.timeout(60), app.run_test(size=size) as pilot:
        while app.picture.overview is None:
            await pilot.pause()
        banner = app.dashboard.banner
        app.show_time()
        await pilot.pause()
        assert banner.region.height == 0
        client._engine["troubles"] = (FULL,)
        await app.feed.refresh()
        app.show_time()
        await pilot.pause()
        assert banner.region.height == len(banner_lines([Notice("TROUBLE", "bad", FULL)], MOMENT, size[0]))
        shown = " ".join(banner.render_line(y).text.strip() for y in range(banner.size.height))
        assert " ".join(shown.split()) == f"TROUBLE {FULL}"
        del client._engine["troubles"]
        await app.feed.refresh()
        app.show_time()
        await pilot.pause()
        assert banner.region.height == 0


async def test_tasks_that_can_not_be_read_are_a_trouble_and_not_the_end() -> None:
    client = ScriptedClient([record(1), record(2)], [worker(1)])
    app = MalboxApp(surroundings(client))
    async with asyncio.timeout(60), app.run_test(size=(80, 24)) as pilot:
        while not app.dashboard.tasks.total:
            await pilot.pause()
            await app.show_changes()
        client.fails = StoreError("the disk was taken out.")
        app.feed.changes.anything = app.feed.changes.tasks = True
        await app.show_changes()
        app.show_time()
        await pilot.pause()
        assert "The tasks can't be read: the disk was taken out." in app.dashboard.banner.render_line(0).text
        assert app.dashboard.tasks.total == 2, "what was seen last stays"
        await pilot.press("enter")
        await pilot.pause()
        assert "the disk was taken out." in str(app.screen.query_one("#task-page").render())
        await pilot.press("escape")
        client.fails = None
        app.feed.changes.anything = app.feed.changes.tasks = True
        await app.show_changes()
        app.show_time()
        await pilot.pause()
        assert app.dashboard.banner.region.height == 0
