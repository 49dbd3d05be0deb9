"""How samples come in at the console: named, dropped, pasted, typed."""

from __future__ import annotations

import pytest
from textual import events
from textual.pilot import Pilot
from textual.widgets import Static

from malbox_tui.model.commands import ShutdownMode
from malbox_tui.model.submission import SubmissionOptions
from malbox_tui.model.task import RequirementClass, RunOptions
from malbox_tui.tui.app import MalboxApp
from malbox_tui.tui.asking import Asked, asked_by, options_of
from malbox_tui.tui.screens.add import AddSamples
from malbox_tui.tui.screens.preview import Preview
from tests.tui.playing import engine, played, until
from tests.tui.scripted import ScriptedClient, ScriptedIntake, record, surroundings


async def test_what_the_command_line_named_is_submitted_at_the_start() -> None:
    async def play(app: MalboxApp, pilot: Pilot[ShutdownMode]) -> None:
        await until(pilot, lambda: bool(engine(app).offered))

    _, client = await played(play, None, b"/in/a.exe")
    assert [name.origin for name in client.offered] == [b"/in/a.exe"]


@pytest.mark.slow
@pytest.mark.parametrize("first", [[], ["slash"], ["a"], ["c"], ["question_mark"], ["enter"]], ids=lambda value: " ".join(value))
async def test_a_drop_is_taken_whatever_has_the_focus(first: list[str]) -> None:
    async def play(app: MalboxApp, pilot: Pilot[ShutdownMode]) -> None:
        await pilot.press(*first)
        app.post_message(events.Paste("/in/a.exe\n/in/b.exe"))
        await until(pilot, lambda: isinstance(app.screen, Preview))
        assert engine(app).offered == [], "nothing is added before it was seen"
        await pilot.press("enter")
        await until(pilot, lambda: len(engine(app).offered) == 2)
        assert not isinstance(app.screen, AddSamples)

    _, client = await played(play)
    assert [name.origin for name in client.offered] == [b"/in/a.exe", b"/in/b.exe"]


@pytest.mark.slow
async def test_a_word_pasted_into_the_filter_is_a_word_also_when_a_file_has_that_name() -> None:
    async def play(app: MalboxApp, pilot: Pilot[ShutdownMode]) -> None:
        await pilot.press("slash")
        app.post_message(events.Paste("a.exe"))
        await pilot.pause()
        await pilot.press("enter")
        assert app.dashboard.needle == "a.exe"

    rows = [record(1)]
    client = ScriptedClient(rows)
    app = MalboxApp(surroundings(client, ScriptedIntake(b"a.exe")))
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: app.picture.overview is not None)
        await play(app, pilot)
    assert client.offered == []


@pytest.mark.slow
async def test_a_path_can_be_typed_and_completed() -> None:
    async def play(app: MalboxApp, pilot: Pilot[ShutdownMode]) -> None:
        await pilot.press("a", *"/in/b", "tab")
        assert isinstance(app.screen, AddSamples)
        await pilot.press("enter")
        await until(pilot, lambda: bool(engine(app).offered))

    _, client = await played(play)
    assert [name.origin for name in client.offered] == [b"/in/b.exe"]


@pytest.mark.slow
async def test_a_path_that_is_not_there_is_said_and_the_dialog_stays() -> None:
    async def play(app: MalboxApp, pilot: Pilot[ShutdownMode]) -> None:
        await pilot.press("a", *"/nope", "enter")
        assert isinstance(app.screen, AddSamples)
        await pilot.press("escape")

    _, client = await played(play)
    assert client.offered == []


@pytest.mark.slow
async def test_what_is_asked_of_a_sample_goes_with_it() -> None:
    async def play(app: MalboxApp, pilot: Pilot[ShutdownMode]) -> None:
        await pilot.press("a", *"/in/b.exe", "down", *"linux", "down", *"-v 'a b'", "tab", *"yes", "tab", *"office", "enter")
        await until(pilot, lambda: bool(engine(app).offered))

    _, client = await played(play)
    (options,) = client.options
    assert options.requires == RequirementClass("dynamic", "linux")
    assert options.run == RunOptions(("-v", "a b"), memory_dump=True)
    assert options.profile == "office"


@pytest.mark.slow
async def test_what_can_not_be_asked_is_said_and_everything_typed_stays() -> None:
    async def play(app: MalboxApp, pilot: Pilot[ShutdownMode]) -> None:
        await pilot.press("a", *"/in/b.exe", "down", "down", *"'open", "enter")
        assert isinstance(app.screen, AddSamples)
        await pilot.press(*"'", "up", *"any", "enter")
        await until(pilot, lambda: bool(engine(app).offered))

    _, client = await played(play)
    assert client.options[0].run.arguments == ("open",)
    assert client.options[0].requires == RequirementClass("dynamic")


@pytest.mark.slow
async def test_a_drop_onto_the_dialog_has_what_is_asked_there() -> None:
    async def play(app: MalboxApp, pilot: Pilot[ShutdownMode]) -> None:
        await pilot.press("a", "down", *"linux")
        app.post_message(events.Paste("/in/a.exe"))
        await until(pilot, lambda: isinstance(app.screen, Preview))
        await pilot.press("enter")
        await until(pilot, lambda: bool(engine(app).offered))

    _, client = await played(play)
    assert client.options[0].requires.platform == "linux"


class Line:
    """Reads one option, and gives an intake of its own."""

    text = "--owner=ana"

    def read(self, text: str) -> tuple[SubmissionOptions, ScriptedIntake]:
        if not text.startswith("--owner="):
            raise ValueError(f"{text} is no option.")
        return SubmissionOptions(owner=text.removeprefix("--owner=")), ScriptedIntake(b"/in/b.exe")


@pytest.mark.slow
async def test_every_option_of_the_command_line_can_be_typed_and_begins_as_the_console_was_started() -> None:
    async def play(app: MalboxApp, pilot: Pilot[ShutdownMode]) -> None:
        await pilot.press("a", *"/in/b.exe", "enter")
        await until(pilot, lambda: bool(engine(app).offered))
        await pilot.press("a", *"/in/b.exe", "down", "down", "down", "down", *"deep", "down", "down", "down", "end", *" m", "enter")
        await until(pilot, lambda: len(engine(app).offered) == 2)

    _, client = await played(play, line=Line())
    assert [options.owner for options in client.options] == ["ana", "ana m"]
    assert client.options[1].profile == "deep"


@pytest.mark.slow
async def test_an_option_that_can_not_be_read_is_said_and_everything_typed_stays() -> None:
    async def play(app: MalboxApp, pilot: Pilot[ShutdownMode]) -> None:
        await pilot.press("a", *"/in/b.exe", "up", "home", *"x", "enter")
        assert isinstance(app.screen, AddSamples)
        said = app.screen.query_one("#completions", Static).render()
        assert "x--owner=ana is no option." in str(said)
        await pilot.press("backspace", "enter")
        await until(pilot, lambda: bool(engine(app).offered))

    _, client = await played(play, line=Line())
    assert client.options[0].owner == "ana"


@pytest.mark.slow
async def test_tasks_are_filtered_by_whom_they_belong_to() -> None:
    async def play(app: MalboxApp, pilot: Pilot[ShutdownMode]) -> None:
        await pilot.press("slash", *"owner:ana", "enter")
        await until(pilot, lambda: app.dashboard.tasks.total == 1)

    rows = [record(1, owner="ana"), record(2)]
    await played(play, ScriptedClient(rows))


PINNED = RequirementClass("dynamic", pin="lin-1")


@pytest.mark.parametrize(
    ("given", "asked"),
    [
        (SubmissionOptions(), Asked()),
        (SubmissionOptions(requires=RequirementClass("dynamic")), Asked("any")),
        (SubmissionOptions(requires=PINNED), Asked("any")),
        (SubmissionOptions(requires=RequirementClass("dynamic", "windows", tags=("office",))), Asked("windows")),
        (
            SubmissionOptions(requires=RequirementClass("dynamic", "linux"), run=RunOptions(("a b", "$x", ""), True)),
            Asked("linux", "'a b' '$x' ''", "yes"),
        ),
        (SubmissionOptions(priority=-7, again=True), Asked(priority="-7", again="yes")),
    ],
)
def test_options_are_written_and_read_as_they_are(given: SubmissionOptions, asked: Asked) -> None:
    assert asked_by(given) == asked
    assert options_of(asked, given) == given


@pytest.mark.parametrize(
    ("given", "asked", "requires"),
    [
        (RequirementClass(), Asked("linux"), RequirementClass("dynamic", "linux")),
        (RequirementClass(), Asked("any"), RequirementClass("dynamic")),
        (RequirementClass("dynamic", "linux"), Asked(), RequirementClass()),
        (PINNED, Asked(), PINNED),
        (RequirementClass("memory", "linux"), Asked("windows"), RequirementClass("memory", "windows")),
    ],
)
def test_a_platform_asks_for_a_machine_and_none_for_none(
    given: RequirementClass, asked: Asked, requires: RequirementClass
) -> None:
    assert options_of(asked, SubmissionOptions(requires=given)).requires == requires


@pytest.mark.parametrize(
    ("asked", "problem"),
    [
        (Asked(arguments="-v"), "Say in which"),
        (Asked(memory="yes"), "Say in which"),
        (Asked("linux", "'"), "a quote is not closed"),
        (Asked("linux", "\\"), "a backslash has nothing behind it"),
        (Asked("linux", memory="maybe"), "maybe is neither"),
        (Asked(again="maybe"), "Again: write yes"),
        (Asked(priority="high"), "whole number"),
        (Asked(priority="1000001"), "whole number"),
        (Asked(priority="9" * 5000), "whole number"),
    ],
)
def test_what_can_not_be_asked_is_a_sentence(asked: Asked, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        options_of(asked, SubmissionOptions())
