"""Hostile names through drops, their preview and their accounts: nothing of them acts, nothing breaks, none is left out."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from textual import events

from malbox_tui.intake.folder_walk import FolderIntake
from malbox_tui.model.intake import Fate, IntakeHead, IntakeLine, IntakeView
from malbox_tui.model.sample import SampleName
from malbox_tui.tui.screens.intakes import AccountScreen, IntakesScreen
from malbox_tui.tui.screens.preview import Preview
from tests.tui.hostile import ALL, NAMES, engine
from tests.tui.scripted import NOW
from tests.tui.test_hostile_text import SIZE, TALL, assert_inert, console, folder_of_names, until

pytestmark = pytest.mark.slow


async def test_a_drop_of_hostile_names_is_seen_and_added_whole(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    folder = folder_of_names(tmp_path / "in")
    for number, name in enumerate(ALL[:20]):
        cleaned = name.encode("utf-8", "surrogateescape").replace(b"/", b"_").replace(b"\0", b"")[:100]
        (tmp_path / "in" / f"e{number}{os.fsdecode(cleaned)}").touch()
    count = sum(path.is_file() for path in folder.iterdir())
    client = engine()
    async with console(client, FolderIntake(1 << 20), SIZE) as pilot:
        for path in (folder, *sorted(folder.iterdir())[:8]):
            pilot.app.post_message(events.Paste(f"'{os.fsencode(path).decode('utf-8', 'surrogateescape')}'"))
        await until(pilot, lambda: isinstance(pilot.app.screen, Preview) and pilot.app.screen._survey.done)
        await pilot.pause()
        said = assert_inert(pilot)
        assert "can't be taken" in said
        await pilot.press("enter")
        await until(pilot, lambda: len(client.offered) >= count)
        await pilot.pause()
        assert_inert(pilot)


async def test_accounts_of_hostile_names_are_text() -> None:
    client = engine()
    lines = [
        IntakeLine(
            fate=list(Fate)[number % 4],
            name=SampleName(name, name, "ab" * 32),
            at=NOW,
            number=number + 1,
            reason=name.decode("utf-8", "surrogateescape"),
        )
        for number, name in enumerate(NAMES)
    ]
    for number, text in enumerate(ALL, 1):
        head = IntakeHead(key=str(number), began_at=NOW, actor=text, origin=text, title=text)
        client.accounts[IntakeView(number=number, head=head, latest_at=NOW, accepted=1)] = lines
    async with console(client, size=TALL) as pilot:
        await pilot.press("h")
        await until(pilot, lambda: isinstance(pilot.app.screen, IntakesScreen) and bool(pilot.app.screen.rows.things))
        await pilot.pause()
        assert_inert(pilot)
        for _ in range(len(ALL)):
            await pilot.press("enter")
            await until(pilot, lambda: isinstance(pilot.app.screen, AccountScreen) and bool(pilot.app.screen.rows.things))
            await pilot.pause()
            assert_inert(pilot)
            await pilot.press("escape", "down")
