"""What keys do: each through the app, down to the command that the engine gets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, nullcontext

import pytest
from textual import events
from textual.command import CommandList
from textual.css.query import NoMatches
from textual.message import Message
from textual.pilot import Pilot
from textual.widgets import Input
from textual.widgets._toast import Toast
from textual.worker import Worker

from malbox_tui.model.commands import (
    CancelTasks,
    Command,
    CommandOutcome,
    PausePool,
    ResizeGroup,
    ResumePool,
    RetryTasks,
    SetPriority,
    ShutdownMode,
)
from malbox_tui.model.errors import StoreFull
from malbox_tui.model.queries import TaskFilter, TaskSort
from malbox_tui.model.sample import SampleName
from malbox_tui.model.submission import Offer, Refusal
from malbox_tui.model.task import TaskState
from malbox_tui.tui import keys
from malbox_tui.tui.app import MalboxApp
from malbox_tui.tui.live import NAMED_REFUSALS
from malbox_tui.tui.screens.add import AddSamples
from malbox_tui.tui.screens.dialogs import Dialog, Help, Question
from malbox_tui.tui.screens.palette import Palette
from malbox_tui.tui.screens.task import TaskScreen
from tests.tui.scripted import ScriptedClient, ScriptedIntake, record, surroundings, worker

Play = Callable[[MalboxApp, Pilot[ShutdownMode]], Awaitable[None]]


async def _play(play: Play, client: ScriptedClient | None = None, *paths: bytes) -> tuple[MalboxApp, ScriptedClient]:
    rows = [record(1), record(2, TaskState.RUNNING), record(3, TaskState.PENDING)]
    client = client or ScriptedClient(rows, [worker(1, 2), worker(2)])
    app = MalboxApp(surroundings(client, ScriptedIntake(b"/in/a.exe", b"/in/b.exe"), paths=paths))
    async with app.run_test(size=(120, 40)) as pilot:
        while app.picture.overview is None or not app.dashboard.tasks.total:
            await pilot.pause()
            await app.show_changes()
        await play(app, pilot)
    return app, client


def engine(app: MalboxApp) -> ScriptedClient:
    client = app._around.client
    assert isinstance(client, ScriptedClient)
    return client


async def _until(pilot: Pilot[ShutdownMode], condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not condition():
            await pilot.pause()


@pytest.mark.parametrize(
    ("pressed", "action"),
    [
        (["p"], PausePool()),
        (["right_square_bracket"], ResizeGroup(max_workers=5)),
        (["left_square_bracket"], ResizeGroup(max_workers=3)),
        (["right_curly_bracket"], ResizeGroup(min_workers=3)),
        (["left_curly_bracket"], ResizeGroup(min_workers=1)),
        (["plus"], SetPriority(task_ids=(3,), priority=2)),
        (["minus"], SetPriority(task_ids=(3,), priority=0)),
        (["down", "down", "r"], RetryTasks(task_ids=(1,))),
        (["c", "down", "enter"], CancelTasks(task_ids=(3,), expected=TaskState.PENDING)),
        (["down", "c", "down", "enter"], CancelTasks(task_ids=(2,), expected=None)),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else type(value).__name__,
)
async def test_a_key_becomes_a_command(pressed: list[str], action: object) -> None:
    async def play(app: MalboxApp, pilot: Pilot[ShutdownMode]) -> None:
        await pilot.press(*pressed)
        await pilot.pause()

    _, client = await _play(play)
    assert [command.action for command in client.commands] == [action]
    assert client.commands[0].actor == "operator"
    assert client.commands[0].key


async def test_a_paused_pool_is_resumed_by_the_same_key() -> None:
    async def play(app: MalboxApp, pilot: Pilot[ShutdownMode]) -> None:
        await pilot.press("p")
        await pilot.pause()

    _, client = await _play(play, ScriptedClient([record(1)], paused="paused by ana"))
    assert [command.action for command in client.commands] == [ResumePool()]


@pytest.mark.slow
@pytest.mark.parametrize("pressed", [["c", "enter"], ["c", "escape"]])
async def test_the_harmless_answer_has_the_focus(pressed: list[str]) -> None:
    async def play(app: MalboxApp, pilot: Pilot[ShutdownMode]) -> None:
        await pilot.press(pressed[0])
        assert isinstance(app.screen, Question)
        await pilot.press(*pressed[1:])
        await pilot.pause()
        assert not isinstance(app.screen, Question)

    _, client = await _play(play)
    assert client.commands == []


@pytest.mark.slow
async def test_a_cancel_hits_the_task_that_was_asked_about_also_when_rows_moved_meanwhile() -> None:
    async def play(app: MalboxApp, pilot: Pilot[ShutdownMode]) -> None:
        await pilot.press("down", "down", "up", "c")
        client.put(record(4, TaskState.PENDING), record(5, TaskState.PENDING))
        await app.dashboard.tasks.fetch()
        await pilot.press("down", "enter")
        await pilot.pause()

    client = ScriptedClient([record(1), record(2, TaskState.PENDING), record(3, TaskState.PENDING)])
    await _play(play, client)
    assert [command.action for command in client.commands] == [CancelTasks(task_ids=(2,), expected=TaskState.PENDING)]


@pytest.mark.slow
async def test_an_ended_task_is_not_canceled() -> None:
    async def play(app: MalboxApp, pilot: Pilot[ShutdownMode]) -> None:
        await pilot.press("end", "c")
        assert not isinstance(app.screen, Question)

    _, client = await _play(play)
    assert client.commands == []


async def test_what_the_command_line_named_is_submitted_at_the_start() -> None:
    async def play(app: MalboxApp, pilot: Pilot[ShutdownMode]) -> None:
        await _until(pilot, lambda: bool(engine(app).offered))

    _, client = await _play(play, None, b"/in/a.exe")
    assert [name.origin for name in client.offered] == [b"/in/a.exe"]


@pytest.mark.slow
@pytest.mark.parametrize("first", [[], ["slash"], ["a"], ["c"], ["question_mark"], ["enter"]], ids=lambda value: " ".join(value))
async def test_a_drop_is_taken_whatever_has_the_focus(first: list[str]) -> None:
    async def play(app: MalboxApp, pilot: Pilot[ShutdownMode]) -> None:
        await pilot.press(*first)
        app.post_message(events.Paste("/in/a.exe\n/in/b.exe"))
        await _until(pilot, lambda: len(engine(app).offered) == 2)
        assert not isinstance(app.screen, AddSamples)

    _, client = await _play(play)
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
        await _until(pilot, lambda: app.picture.overview is not None)
        await play(app, pilot)
    assert client.offered == []


@pytest.mark.slow
async def test_a_path_can_be_typed_and_completed() -> None:
    async def play(app: MalboxApp, pilot: Pilot[ShutdownMode]) -> None:
        await pilot.press("a", *"/in/b", "tab")
        assert isinstance(app.screen, AddSamples)
        await pilot.press("enter")
        await _until(pilot, lambda: bool(engine(app).offered))

    _, client = await _play(play)
    assert [name.origin for name in client.offered] == [b"/in/b.exe"]


@pytest.mark.slow
async def test_a_path_that_is_not_there_is_said_and_the_dialog_stays() -> None:
    async def play(app: MalboxApp, pilot: Pilot[ShutdownMode]) -> None:
        await pilot.press("a", *"/nope", "enter")
        assert isinstance(app.screen, AddSamples)
        await pilot.press("escape")

    _, client = await _play(play)
    assert client.offered == []


@pytest.mark.slow
async def test_enter_opens_a_task_and_escape_goes_back() -> None:
    async def play(app: MalboxApp, pilot: Pilot[ShutdownMode]) -> None:
        await pilot.press("down", "enter")
        assert isinstance(app.screen, TaskScreen)
        assert app.screen.task_id == 2
        await pilot.press("escape")
        assert app.screen is app.dashboard

    await _play(play)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("pressed", "mode"),
    [
        (["q", "down", "enter"], ShutdownMode.DRAIN),
        (["q", "down", "down", "enter"], ShutdownMode.GIVE_BACK),
        (["q", "down", "down", "down", "enter"], ShutdownMode.CANCEL),
        (["ctrl+q", "down", "enter"], ShutdownMode.DRAIN),
    ],
)
async def test_leaving_with_tasks_at_work_asks_what_becomes_of_them(pressed: list[str], mode: ShutdownMode) -> None:
    async def play(app: MalboxApp, pilot: Pilot[ShutdownMode]) -> None:
        await pilot.press(*pressed)
        await pilot.pause()

    app, _ = await _play(play)
    assert app.return_value is mode


async def test_leaving_an_idle_console_asks_nothing() -> None:
    async def play(app: MalboxApp, pilot: Pilot[ShutdownMode]) -> None:
        await pilot.press("q")
        await pilot.pause()

    app, _ = await _play(play, ScriptedClient([record(1)]))
    assert app.return_value is ShutdownMode.GIVE_BACK


@pytest.mark.slow
async def test_leaving_looks_anew_whether_anything_runs() -> None:
    async def play(app: MalboxApp, pilot: Pilot[ShutdownMode]) -> None:
        client.put(record(2), record(3))
        await pilot.press("q")
        await pilot.pause()

    client = ScriptedClient([record(1), record(2, TaskState.RUNNING)], [worker(1, 2)])
    app, _ = await _play(play, client)
    assert app.return_value is ShutdownMode.GIVE_BACK


async def test_a_key_pressed_before_the_first_window_is_there_waits_for_it() -> None:
    app = MalboxApp(surroundings(ScriptedClient([record(7)])))
    async with app.run_test(size=(120, 40)) as pilot:
        app.dashboard.tasks.show(TaskFilter(task_ids=(7,)), TaskSort.NEWEST)
        await pilot.press("enter")
        assert isinstance(app.screen, TaskScreen)
        assert app.screen.task_id == 7


async def test_the_first_window_is_there_as_soon_as_the_engine_is_known() -> None:
    app = MalboxApp(surroundings(ScriptedClient([record(7)])))
    async with app.run_test(size=(120, 40)) as pilot:
        await _until(pilot, lambda: app.picture.overview is not None)
        await pilot.pause()
        assert app.dashboard.tasks.total == 1


@pytest.mark.slow
async def test_enter_after_a_filter_opens_what_the_filter_shows() -> None:
    async def play(app: MalboxApp, pilot: Pilot[ShutdownMode]) -> None:
        await pilot.press("slash", *"needle", "enter", "enter")
        assert isinstance(app.screen, TaskScreen)
        assert app.screen.task_id == 2

    await _play(play, ScriptedClient([record(1), record(2, TaskState.COMPLETED, b"a needle.exe"), record(3)]))


@pytest.mark.slow
async def test_a_lost_event_makes_the_console_read_everything_anew() -> None:
    async def play(app: MalboxApp, pilot: Pilot[ShutdownMode]) -> None:
        client.put(record(4, TaskState.RUNNING))
        client.loses_events()
        await _until(pilot, lambda: 4 in app.picture.tasks)
        assert app.picture.gaps == 1

    client = ScriptedClient([record(1)])
    await _play(play, client)


@pytest.mark.slow
async def test_help_names_every_key_and_every_key_has_an_action() -> None:
    async def play(app: MalboxApp, pilot: Pilot[ShutdownMode]) -> None:
        await pilot.press("question_mark")
        assert isinstance(app.screen, Help)
        await pilot.press("escape")
        for _, group in keys.GROUPS:
            for key in group:
                namespace, _, name = key.action.partition("(")[0].rpartition(".")
                screen = TaskScreen if group is keys.TASK_SCREEN else app.dashboard
                owner = {"app": app, "screen": screen, "": app.dashboard.tasks}[namespace]
                assert hasattr(owner, f"action_{name}"), key.id

    await _play(play)
    ids = [key.id for _, group in keys.GROUPS for key in group]
    assert len(ids) == len(set(ids))


async def test_no_key_does_two_things_on_one_screen() -> None:
    on_machines = tuple(key for key in keys.DASHBOARD if key.id not in ("task.open",)) + keys.MACHINES
    for group in (keys.DASHBOARD + keys.TABLE, on_machines + keys.TABLE, keys.TASK_SCREEN, keys.MACHINE_SCREEN):
        group = group + keys.EVERYWHERE
        pressed = [one for key in group for one in key.keys.split(",")]
        assert len(pressed) == len(set(pressed))


async def test_what_is_refused_is_named_with_its_reason_in_the_notice_and_in_the_log() -> None:
    class Refusing(ScriptedIntake):
        async def offers(self, paths: Sequence[bytes]) -> AsyncIterator[Offer]:
            for path in paths:
                yield Offer(SampleName(path), refusal=Refusal("missing", "There is no such file."))

    names = [b"first\x1b[31m[/]", *(b"n%d" % number for number in range(NAMED_REFUSALS + 6))]
    app = MalboxApp(surroundings(ScriptedClient(), Refusing(), paths=names))
    async with app.run_test(size=(160, 60), notifications=True) as pilot:
        await _until(pilot, lambda: _notice(app) is not None)
        lines = [f"{line.subject} {line.detail}".strip() for line in reversed(app.picture.log)]
        assert lines[0] == r"refused first\x1b[31m[/]: There is no such file."
        assert lines[NAMED_REFUSALS - 1 :] == [f"refused n{NAMED_REFUSALS - 2}: There is no such file.", "7 more refused"]
        notice = _notice(app)
        assert notice is not None
        assert r"57 refused: first\x1b[31m[/]: There is no such file." in notice._notification.message


# --- more than once ------------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("opened", "answer"),
    [
        (["slash"], "enter"),
        (["slash"], "escape"),
        (["c"], "enter"),
        (["c"], "escape"),
        (["q"], "enter"),
        (["a"], "escape"),
        (["question_mark"], "escape"),
        (["ctrl+p"], "escape"),
    ],
    ids=str,
)
async def test_an_answer_given_twice_takes_no_other_screen_away(opened: list[str], answer: str) -> None:
    async def play(app: MalboxApp, pilot: Pilot[ShutdownMode]) -> None:
        await pilot.press(*opened)
        await _until(pilot, lambda: app.screen is not app.dashboard and app.screen.focused is not None)
        at_once(app, answer, 3)
        await _until(pilot, lambda: app.screen is app.dashboard)
        await pilot.pause()
        assert app.screen is app.dashboard

    _, client = await _play(play)
    assert not client.commands


@pytest.mark.slow
async def test_a_command_chosen_twice_in_the_palette_is_carried_out_once() -> None:
    async def play(app: MalboxApp, pilot: Pilot[ShutdownMode]) -> None:
        await pilot.press("ctrl+p", *"Pause")
        await _until(pilot, lambda: app.screen.query_one(CommandList).option_count > 0)
        at_once(app, "enter", 4)
        await _until(pilot, lambda: bool(engine(app).commands))
        await pilot.pause()
        assert app.screen is app.dashboard

    _, client = await _play(play)
    assert [command.action for command in client.commands] == [PausePool()]


@pytest.mark.slow
@pytest.mark.parametrize("key", ["pagedown", "pageup", "home", "end", "down", "up", "enter"])
async def test_no_key_breaks_a_palette_whose_list_has_no_room(key: str) -> None:
    app = MalboxApp(surroundings(ScriptedClient([record(1)])))
    async with app.run_test(size=(20, 3)) as pilot:
        await _until(pilot, lambda: app.picture.overview is not None)
        await pilot.press("ctrl+p", *"Lower")
        await _until(pilot, lambda: app.screen.query_one(CommandList).option_count > 0)
        await pilot.press("down", key)
        assert app.breakdown is None


@pytest.mark.slow
async def test_a_search_of_the_palette_that_outlives_it_breaks_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    searches: list[Worker[object]] = []
    begin = Palette.run_worker

    def begin_and_note(palette: Palette, *arguments: object, **options: object) -> Worker[object]:
        searches.append(begin(palette, *arguments, **options))
        return searches[-1]

    monkeypatch.setattr(Palette, "run_worker", begin_and_note)

    async def play(app: MalboxApp, pilot: Pilot[ShutdownMode]) -> None:
        await pilot.press("ctrl+p")
        await _until(pilot, lambda: app.screen is not app.dashboard and app.screen.focused is not None)
        await app.screen.query_one(CommandList).remove()
        before = len(searches)
        app.screen.query_one(Input).value = "x"
        await _until(pilot, lambda: len(searches) > before)
        await _until(pilot, lambda: searches[-1].is_finished)
        await pilot.pause()
        assert app.breakdown is None

    await _play(play)


class Busy(Dialog[None]):
    class Found(Message):
        """What it searched for."""

    def on_busy_found(self) -> None:
        self.query_one("#gone")


@pytest.mark.parametrize("taken_away", [True, False])
async def test_what_a_screen_looks_for_after_it_was_taken_away_breaks_nothing(taken_away: bool) -> None:
    async def play(app: MalboxApp, pilot: Pilot[ShutdownMode]) -> None:
        busy = Busy()
        await app.push_screen(busy)
        busy.post_message(Busy.Found())
        if taken_away:
            await app.pop_screen()
        await pilot.pause()
        assert app.breakdown is None

    with nullcontext() if taken_away else pytest.raises(NoMatches):
        await _play(play)


@asynccontextmanager
async def _with_notices(
    client: ScriptedClient, size: tuple[int, int] = (120, 40)
) -> AsyncIterator[tuple[MalboxApp, Pilot[ShutdownMode]]]:
    app = MalboxApp(surroundings(client))
    async with app.run_test(size=size, notifications=True) as pilot:
        await _until(pilot, lambda: app.picture.overview is not None)
        yield app, pilot


def _notice(app: MalboxApp) -> Toast | None:
    return next((toast for toast in app.screen.query(Toast) if toast.region.area > 0), None)


@pytest.mark.slow
async def test_a_click_on_a_notice_that_is_gone_is_nothing() -> None:
    async with _with_notices(ScriptedClient()) as (app, pilot):
        app.notify("gone in a moment")
        await _until(pilot, lambda: _notice(app) is not None)
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
        await _until(pilot, lambda: _notice(app) is not None or app.breakdown is not None)
        assert app.breakdown is None


@pytest.mark.slow
async def test_what_a_configuration_came_about_by_is_told_at_the_start_and_stays_in_the_log() -> None:
    note = "config.limits.toml: the group default has min_workers = 1 and max_workers = 3, as saved."
    app = MalboxApp(surroundings(ScriptedClient(), notes=(note,)))
    async with app.run_test(size=(120, 40), notifications=True) as pilot:
        await _until(pilot, lambda: app.picture.overview is not None and _notice(app) is not None)
        assert [(line.subject, line.detail) for line in app.picture.log] == [("configuration", note)]
        app.picture.seed(await app.feed._client.overview(), [])
        assert len(app.picture.log) == 1, "once, however often everything is read anew"


@pytest.mark.slow
@pytest.mark.parametrize("size", [(20, 5), (30, 8), (40, 10), (60, 16)])
async def test_the_chosen_answer_is_in_sight_on_any_terminal(size: tuple[int, int]) -> None:
    client = ScriptedClient([record(2, TaskState.RUNNING)], [worker(1, 2)])
    app = MalboxApp(surroundings(client))
    async with app.run_test(size=size) as pilot:
        await _until(pilot, lambda: app.picture.overview is not None)
        await pilot.press("q")
        await _until(pilot, lambda: isinstance(app.screen, Question) and app.screen.focused is not None)
        for _ in range(4):
            await _until(pilot, lambda: _is_in_sight(app))
            await pilot.press("down")


def _is_in_sight(app: MalboxApp) -> bool:
    chosen = app.screen.focused
    return chosen is not None and any(found[0] is chosen for found in app.screen.get_widgets_at(*chosen.region.offset))


def at_once(app: MalboxApp, key: str, times: int) -> None:
    """A key so often before the first of them is acted upon."""
    for _ in range(times):
        app.post_message(events.Key(key, None))


def _mouse_down(x: int, y: int) -> events.MouseDown:
    return events.MouseDown(None, x, y, 0, 0, 1, shift=False, meta=False, ctrl=False, screen_x=x, screen_y=y)
