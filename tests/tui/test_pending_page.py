"""The page of a task that waits: what its sample is, which profile is for it, and what it asks for."""

from __future__ import annotations

import msgspec

from malbox_tui.model.plugin_wishes import PluginWishes
from malbox_tui.model.report import Identification
from malbox_tui.model.suggestion import Suggestion
from malbox_tui.model.task import TaskState
from malbox_tui.tui.app import MalboxApp
from malbox_tui.tui.screens.task import TaskScreen
from tests.tui.playing import until
from tests.tui.scripted import ScriptedClient, ScriptedIntake, record, surroundings

FOUND = Identification("pe", platform="windows", arch="x64", tags=("x64", "dotnet", "packed"))


async def test_it_tells_what_was_found_before_the_run_and_what_is_asked() -> None:
    wishes = PluginWishes(("strings",), {"strings": {"min_length": "8"}})
    row = record(1, TaskState.PENDING, owner="ana", wishes=wishes)
    sample = msgspec.structs.replace(row.sample, identification=FOUND)
    suggestion = Suggestion("programs", "The profile programs is for kind pe.", FOUND.tags)
    row = msgspec.structs.replace(row, sample=sample, suggestion=suggestion)
    app = MalboxApp(surroundings(ScriptedClient([row]), ScriptedIntake()))
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: app.picture.overview is not None and bool(app.dashboard.tasks.total))
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, TaskScreen) and app.screen.record is not None)
        await pilot.pause()
        page = str(app.screen.query_one("#task-page").render())
    for words in (
        "pe, windows, x64, dotnet, packed",
        "The profile programs is for kind pe.",
        "ana",
        "strings only, and what they need",
        "strings.min_length=8",
    ):
        assert words in page
