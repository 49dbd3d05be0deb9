"""While the preview of a drop is open its first files are identified, beside everything else and in bounds."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from textual import events
from textual.pilot import Pilot
from textual.widgets import Input

from malbox_tui.cli.wishes import Wishes
from malbox_tui.cli.wishes_line import WishesLine
from malbox_tui.config.settings import ConfinementSettings, Isolation, Settings
from malbox_tui.model.commands import ShutdownMode
from malbox_tui.model.errors import ConfinementUnavailable
from malbox_tui.model.overview import ProfileView
from malbox_tui.model.report import Identification
from malbox_tui.model.sample import SampleName
from malbox_tui.model.submission import Offer, Refusal
from malbox_tui.ports import Dropped
from malbox_tui.runtime import open_identifier, open_intake
from malbox_tui.tui import identifying
from malbox_tui.tui.app import MalboxApp
from malbox_tui.tui.screens.add import AddSamples
from malbox_tui.tui.screens.preview import Preview
from tests.intake import archives
from tests.plugins.test_builtin import SAMPLES
from tests.tui.playing import until
from tests.tui.scripted import ScriptedClient, ScriptedIdentifier, ScriptedIntake, record, surroundings

pytestmark = pytest.mark.slow

PROGRAM = Identification("pe", platform="windows", arch="x64", tags=("x64",))
PROFILES = (
    ProfileView(name="programs", about="for pe", kinds=("pe",)),
    ProfileView(name="everything", about="all plugins", is_default=True),
)
PATHS = (b"/in/a.exe", b"/in/b.exe", b"/in/c.exe")


@asynccontextmanager
async def console(
    opened: Callable[[], Any], *, dropped: str = "/in/a.exe\n/in/b.exe", intake: ScriptedIntake | None = None, **around: Any
) -> AsyncIterator[tuple[MalboxApp, Pilot[ShutdownMode], Preview]]:
    """A console with a drop in preview."""
    client = ScriptedClient([record(1)], profiles=PROFILES)
    app = MalboxApp(surroundings(client, intake or ScriptedIntake(*PATHS), open_identifier=opened, **around))
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: app.picture.overview is not None)
        app.post_message(events.Paste(dropped))
        await until(pilot, lambda: isinstance(app.screen, Preview))
        assert isinstance(app.screen, Preview)
        yield app, pilot, app.screen


def body(screen: Preview) -> str:
    return " ".join(str(screen._body.render()).split())


def offered(app: MalboxApp) -> ScriptedClient:
    client = app._around.client
    assert isinstance(client, ScriptedClient)
    return client


async def test_what_the_files_are_is_shown_and_one_key_takes_the_profile_over() -> None:
    identifier = ScriptedIdentifier(PROGRAM, PROGRAM)
    async with console(identifier.opened) as (app, pilot, screen):
        await until(pilot, lambda: screen.has_identified)
        assert "identified 2 pe windows x64 tags x64 suggested The profile programs is for kind pe." in body(screen)
        profile = next(row for row in screen.query(Input) if "programs" in row.placeholder)
        assert profile.value == ""
        await pilot.press("ctrl+s")
        assert profile.value == "programs"
        await pilot.press("enter")
        await until(pilot, lambda: len(offered(app).offered) == 2)
        await until(pilot, lambda: not identifier.is_open)
    assert {options.profile for options in offered(app).options} == {"programs"}


async def test_nothing_is_filled_in_by_itself() -> None:
    async with console(ScriptedIdentifier(PROGRAM, PROGRAM).opened) as (app, pilot, screen):
        await until(pilot, lambda: screen.has_identified)
        await pilot.press("enter")
        await until(pilot, lambda: len(offered(app).offered) == 2)
    assert {options.profile for options in offered(app).options} == {""}


@pytest.mark.parametrize(("key", "count"), [("enter", 2), ("escape", 0)])
async def test_an_answer_waits_for_no_identification_and_ends_it(key: str, count: int) -> None:
    identifier = ScriptedIdentifier(PROGRAM)
    identifier.holds = True
    async with console(identifier.opened) as (app, pilot, screen):
        await until(pilot, lambda: bool(identifier.contents))
        assert "they are looked into" in body(screen)
        await pilot.press(key)
        await until(pilot, lambda: not isinstance(app.screen, Preview) and not identifier.is_open)
        await until(pilot, lambda: len(offered(app).offered) == count)
    assert len(identifier.contents) == 1


async def test_a_console_that_ends_meanwhile_leaves_nothing_open() -> None:
    identifier = ScriptedIdentifier(PROGRAM)
    identifier.holds = True
    async with console(identifier.opened) as (_app, pilot, _screen):
        await until(pilot, lambda: bool(identifier.contents))
    assert not identifier.is_open


async def test_more_that_is_dropped_is_identified_too_and_nothing_twice() -> None:
    identifier = ScriptedIdentifier(PROGRAM, Identification("pdf"), PROGRAM)
    async with console(identifier.opened) as (app, pilot, screen):
        await until(pilot, lambda: screen.has_identified)
        app.post_message(events.Paste("/in/c.exe"))
        await until(pilot, lambda: "2 pe windows x64, 1 pdf" in body(screen) and screen.has_identified)
    assert len(identifier.contents) == 3


async def test_where_nothing_can_be_confined_it_is_said_and_the_drop_is_added() -> None:
    identifier = ScriptedIdentifier(fails=ConfinementUnavailable("bubblewrap is not installed."))
    async with console(identifier.opened) as (app, pilot, screen):
        await until(pilot, lambda: screen.has_identified)
        assert "identified not before they are added: bubblewrap is not installed." in body(screen)
        await pilot.press("ctrl+s", "enter")
        await until(pilot, lambda: len(offered(app).offered) == 2)


async def test_a_console_that_can_not_identify_says_nothing_of_it() -> None:
    async with console(None) as (_app, pilot, screen):  # type: ignore[arg-type]
        await pilot.pause()
        assert "identified" not in body(screen)


class Many(ScriptedIntake):
    """However much is asked for, there is more; each second thing is none."""

    def __init__(self, content: bytes) -> None:
        super().__init__(*PATHS)
        self.content = content
        self.asked = 0

    def dropped(self, text: str) -> Dropped:
        return Dropped((b"/in",))

    async def files(self, paths: Sequence[bytes]) -> AsyncIterator[Offer]:
        while True:
            self.asked += 1
            name = SampleName(b"%d" % self.asked, b"/in/%d" % self.asked)
            if self.asked % 2:
                yield Offer(name, refusal=Refusal("link", "It is a link."))
            else:
                yield Offer(name, self._chunks())

    async def _chunks(self) -> AsyncIterator[bytes]:
        while self.content:
            yield self.content


async def test_only_so_many_files_are_looked_into(monkeypatch: pytest.MonkeyPatch) -> None:
    identifier, intake = ScriptedIdentifier(), Many(b"")
    async with console(identifier.opened, intake=intake) as (_app, pilot, screen):
        await until(pilot, lambda: screen.has_identified)
    assert (len(identifier.contents), intake.asked) == (identifying.IDENTIFIED_FILES, 2 * identifying.IDENTIFIED_FILES)
    monkeypatch.setattr(identifying, "PASSED_THINGS", 9)
    intake.asked = 0
    async with console(identifier.opened, intake=intake) as (_app, pilot, screen):
        await until(pilot, lambda: screen.has_identified)
    assert intake.asked == 9


async def test_of_a_file_without_end_only_so_much_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(identifying, "IDENTIFIED_FILES", 2)
    identifier = ScriptedIdentifier()
    async with console(identifier.opened, intake=Many(bytes(1 << 20))) as (_app, pilot, screen):
        await until(pilot, lambda: screen.has_identified)
        assert "2 not known" in body(screen)
    assert identifier.contents == []


# --- in earnest ------------------------------------------------------------------------------------------------------------------


def in_a_folder(folder: Path) -> str:
    """A program, a picture and an archive of one program."""
    (folder / "a.bin").write_bytes(SAMPLES["PE, x64"][0])
    (folder / "b").write_bytes(SAMPLES["PNG"][0])
    (folder / "c.exe").write_bytes(archives.plain_zip({"x": SAMPLES["PE, x64"][0]}))
    return os.fspath(folder)


@pytest.mark.needs("bubblewrap")
async def test_a_real_drop_is_identified_in_confinement_as_its_archives_are_asked_to_be_taken(tmp_path: Path) -> None:
    settings = Settings()
    opened = partial(open_intake, settings, None)
    async with console(
        partial(open_identifier, settings),
        dropped=in_a_folder(tmp_path),
        intake=opened(Wishes().choice()),  # type: ignore[arg-type]
        line=WishesLine(Wishes(), opened),
    ) as (_app, pilot, screen):
        await until(pilot, lambda: screen.has_identified and screen._survey.done)
        said = body(screen)
        assert "1 image, 1 pe windows x64, 1 zip" in said
        assert "archives 1; what is in them is taken" in said
        assert "(1 of 2; programs 1)." in said
        screen.query_one("#options", Input).value = "--archive whole"
        await until(pilot, lambda: "archives 1; not opened, each is taken as one file" in body(screen))
        await until(pilot, lambda: screen.has_identified and "(2 of 3; programs 1)." in body(screen))
        screen.query_one("#options", Input).value = "--archive who"
        await pilot.pause()
        assert "not opened" in body(screen)


async def test_what_is_asked_in_the_dialog_is_asked_of_what_is_dropped_on_it(tmp_path: Path) -> None:
    opened = partial(open_intake, Settings(), None)
    around = surroundings(ScriptedClient(), opened(Wishes().choice()), line=WishesLine(Wishes(), opened))
    app = MalboxApp(around)
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: app.picture.overview is not None)
        await pilot.press("a")
        await until(pilot, lambda: isinstance(app.screen, AddSamples))
        app.screen.query_one("#options", Input).value = "--archive whole"
        app.post_message(events.Paste(in_a_folder(tmp_path)))
        await until(pilot, lambda: isinstance(app.screen, Preview) and app.screen._survey.done)
        assert isinstance(app.screen, Preview)
        assert app.screen.query_one("#options", Input).value == "--archive whole"
        assert "archives 1; not opened, each is taken as one file" in body(app.screen)


@pytest.mark.parametrize("isolation", [Isolation.AUTO, Isolation.REQUIRED])
async def test_without_bubblewrap_it_is_said_why_nothing_is_identified(
    isolation: Isolation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    settings = Settings(confinement=ConfinementSettings(isolation=isolation))
    async with console(partial(open_identifier, settings)) as (_app, pilot, screen):
        await until(pilot, lambda: screen.has_identified)
        assert "identified not before they are added:" in body(screen)
        assert "bubblewrap" in body(screen)
