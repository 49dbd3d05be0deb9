"""The keys at the bottom: on a narrow screen those go that one can best do without, and never help and quit."""

from __future__ import annotations

import asyncio

import pytest

from malbox_tui.tui.app import MalboxApp
from malbox_tui.tui.keys import DASHBOARD, EVERYWHERE, GROUPS, YIELDING
from malbox_tui.tui.widgets.key_bar import KeyBar
from tests.golden.fleet import fleet
from tests.tui.scripted import surroundings


def _shown(bar: KeyBar) -> list[str]:
    return [key.description for key in bar.query("FooterKey") if key.region.right <= bar.region.right]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("width", "gone"),
    [
        (120, set()),
        (80, set()),
        (70, {"machines"}),
        (60, {"machines", "pause"}),
        (48, {"machines", "pause", "retry", "filter"}),
    ],
)
async def test_a_narrow_screen_does_without_the_least_important_keys(width: int, gone: set[str]) -> None:
    all_keys = {key.footer for key in (*DASHBOARD, *EVERYWHERE) if key.footer}
    app = MalboxApp(surroundings(fleet()))
    async with asyncio.timeout(60), app.run_test(size=(width, 24)) as pilot:
        bar = app.screen.query_one(KeyBar)
        while app.picture.overview is None or set(_shown(bar)) != all_keys - gone:
            app.show_time()
            await pilot.pause()


@pytest.mark.slow
async def test_keys_come_back_when_the_terminal_becomes_wider() -> None:
    app = MalboxApp(surroundings(fleet()))
    async with asyncio.timeout(60), app.run_test(size=(60, 24)) as pilot:
        bar = app.screen.query_one(KeyBar)
        while "help" not in _shown(bar):
            await pilot.pause()
        assert "pause" not in _shown(bar)
        await pilot.resize_terminal(120, 24)
        while "pause" not in _shown(bar):
            await pilot.pause()


@pytest.mark.slow
async def test_keys_that_would_stand_as_they_do_are_not_made_again() -> None:
    app = MalboxApp(surroundings(fleet()))
    async with asyncio.timeout(60), app.run_test(size=(120, 24)) as pilot:
        bar = app.screen.query_one(KeyBar)
        while "machines" not in _shown(bar):
            app.show_time()
            await pilot.pause()
        standing = list(bar.query("FooterKey"))
        await pilot.press("l", "l")
        await pilot.pause()
        assert list(bar.query("FooterKey")) == standing
        await pilot.press("m")
        await pilot.pause()
        assert "disable" in _shown(bar)
        await pilot.press("enter")
        gone = app.screen.query_one(KeyBar)
        await app.pop_screen()
        await gone.recompose()


def test_help_and_quit_and_the_way_back_never_yield() -> None:
    bound = {key.action for _, group in GROUPS for key in group if key.footer}
    assert bound - set(YIELDING) == {
        "app.help",
        "app.quit",
        "app.back",
        "screen.back",
        "app.disable_machine",
        "app.enable_machine",
    }
