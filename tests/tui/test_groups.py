"""Several worker groups on the console: what the header and the strip say of them, and which of them keys act on."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import msgspec
import pytest
from textual.pilot import Pilot

from malbox_tui.model.commands import (
    Command,
    CommandOutcome,
    PausePool,
    ResizeGroup,
    ResumePool,
    SaveLimits,
    SetPriority,
    ShutdownMode,
)
from malbox_tui.model.errors import MalboxError, StoreFull
from malbox_tui.model.overview import GroupView
from malbox_tui.model.task import TaskState
from malbox_tui.model.worker import WorkerKind, WorkerState, WorkerView
from malbox_tui.tui.app import MalboxApp
from malbox_tui.tui.groups import GroupChoice, group_line
from malbox_tui.tui.header import header_line
from malbox_tui.tui.live import LiveTask, Span
from malbox_tui.tui.moment import Moment
from malbox_tui.tui.worker_line import entries, held_line, worker_line
from tests.tui.scripted import NOW, ScriptedClient, due, group, overview, record, surroundings, worker

MOMENT = Moment(NOW)
GROUPS = (
    group("default"),
    group("windows", min_workers=1, max_workers=2, takes="dynamic tasks on windows", priority=9, saved=False),
    group("archives", min_workers=0, max_workers=3, takes="archive tasks"),
)
WORKERS = (worker(1, 7), worker(2), worker(3, 8, group="windows"), worker(4, 9, group="windows"), worker(5, group="archives"))
OVERVIEW = overview([record(7)], WORKERS, groups=GROUPS)


def _chosen(name: str) -> GroupView:
    return next(given for given in OVERVIEW.groups if given.name == name)


def _header(width: int, chosen: str = "default") -> str:
    return header_line(OVERVIEW, _chosen(chosen), MOMENT, width, "sbx").plain


# --- header --------------------------------------------------------------------------------------------------------------------------


def test_a_wide_header_shows_each_group_the_chosen_one_marked() -> None:
    assert "▸default 1/2 of 2–4 · windows 2/2 of 1–2* · archives 0/1 of 0–3 · queue" in _header(160)
    assert "default 1/2 of 2–4 · ▸windows 2/2 of 1–2* · archives" in _header(160, "windows")


def test_a_narrower_one_shortens_the_others_then_sums_them_and_never_the_chosen_one() -> None:
    assert "▸windows 2/2 of 1–2* · archives 0/1 · queue" in _header(100, "windows")
    assert "default 1/2 · ▸windows" in _header(100, "windows")
    assert "▸default 1/2 of 2–4 · +2 groups 2/3* · queue" in _header(84)
    for width in range(60, 200):
        for name in ("default", "windows", "archives"):
            line = _header(width, name)
            assert f"▸{name} " in line
            assert "queue" in line
            assert len(line) <= width


def test_a_single_group_needs_no_mark_but_says_that_its_limits_are_not_kept() -> None:
    alone = overview([], WORKERS[:1], groups=(group(saved=False),))
    assert " default 1/1 of 2–4* " in header_line(alone, alone.groups[0], MOMENT, 80, "sbx").plain


def test_a_long_name_is_cut_so_that_the_numbers_stay() -> None:
    long = overview([], [], groups=(group("nightly-and-everything-else"), group("b")))
    assert "nightly-and-eve… 0/0 of 2–4" in header_line(long, long.groups[0], MOMENT, 80, "sbx").plain


# --- workers -------------------------------------------------------------------------------------------------------------------------


def test_workers_stand_below_their_group_where_there_are_several() -> None:
    shown = [(entry.group.name if entry.group else "", entry.worker.id if entry.worker else "") for entry in entries(OVERVIEW)]
    assert shown == [
        ("default", ""),
        ("default", WORKERS[0].id),
        ("default", WORKERS[1].id),
        ("windows", ""),
        ("windows", WORKERS[2].id),
        ("windows", WORKERS[3].id),
        ("archives", ""),
        ("archives", WORKERS[4].id),
    ]
    alone = overview([], WORKERS[:2])
    assert [entry.worker for entry in entries(alone)] == list(WORKERS[:2]), "a single group needs no line"


def test_a_group_without_workers_is_there_and_a_worker_without_a_group_too() -> None:
    shown = entries(overview([], [worker(1, group="gone")], groups=GROUPS[:2]))
    assert [entry.worker is None for entry in shown] == [True, True, False]


@pytest.mark.parametrize(
    ("width", "words"),
    [
        (80, "▸ windows 2/2 of 1–2* · takes dynamic tasks on windows · priority 9 · idle 1:00"),
        (67, "▸ windows 2/2 of 1–2* · takes dynamic tasks on windows · priority 9"),
        (54, "▸ windows 2/2 of 1–2* · takes dynamic tasks on windows"),
        (48, "▸ windows 2/2 of 1–2* · dynamic tasks on windows"),
        (44, "▸ windows 2/2 of 1–2* · dynamic on windows"),
    ],
)
def test_a_groups_line_says_what_it_takes_in_as_many_words_as_there_is_room_for(width: int, words: str) -> None:
    line = group_line(_chosen("windows"), True, MOMENT, width)
    assert line.plain.rstrip() == words
    assert line.cell_len == width


def test_a_worker_with_several_slots_has_a_line_for_each_of_its_tasks() -> None:
    view = worker(1, task_ids=(7, 8), slots=3, state=WorkerState.BUSY, dues=(None, due(258)))
    shown = entries(overview([], [view]))
    assert [entry.task_id for entry in shown] == [None, 7, 8]
    assert worker_line(view, None, GROUPS[0], OVERVIEW, MOMENT, 60).plain.rstrip().endswith("base   2 of 3 tasks")
    task = LiveTask(8, "b.exe", TaskState.RUNNING, [Span(TaskState.RUNNING, NOW - 42)], machine="win10-1")
    line = held_line(view, 8, task, OVERVIEW, MOMENT, 80)
    assert line.plain.startswith("   ● running   #8 win10-1 b.exe ")
    assert line.plain.rstrip().endswith("0:42 ▓░░░░░░░░░ 4:18")
    assert line.cell_len == 80


def test_a_batch_has_a_line_for_each_of_its_tasks_and_says_how_many_it_could_have() -> None:
    bulk = group("bulk", batch_size=8)
    view = worker(1, task_ids=(7, 8), slots=2, state=WorkerState.BUSY, group="bulk", dues=(due(258), due(200, stands=True)))
    given = overview([], [view], groups=(GROUPS[0], bulk))
    assert [entry.task_id for entry in entries(given)] == [None, None, None, 7, 8]
    assert worker_line(view, None, bulk, given, MOMENT, 60).plain.rstrip().endswith("base   2 of 8 tasks in a batch")
    assert worker_line(view, None, bulk, given, MOMENT, 30).plain.rstrip().endswith("2 of 8 tasks")
    works, waits = (LiveTask(number, "b.exe", TaskState.RUNNING, [Span(TaskState.RUNNING, NOW - 42)]) for number in (7, 8))
    assert held_line(view, 7, works, given, MOMENT, 80).plain.rstrip().endswith("0:42 ▓░░░░░░░░░ 4:18")
    assert held_line(view, 8, waits, given, MOMENT, 80).plain.rstrip().endswith("‖ 3:20 left, waits for its turn")
    leaving = msgspec.structs.replace(view, state=WorkerState.LEAVING)
    assert worker_line(leaving, None, bulk, given, MOMENT, 60).plain.rstrip().endswith("2 of 8 tasks ◌ leaves")


@pytest.mark.parametrize(
    ("width", "words"),
    [
        (80, "  bulk 0/0 of 2–4 · takes static tasks · batches of 8 · priority 5 · idle 1:00"),
        (60, "  bulk 0/0 of 2–4 · takes static tasks · batches of 8"),
        (48, "  bulk 0/0 of 2–4 · static tasks · batches of 8"),
        (42, "  bulk 0/0 of 2–4 · static · batches of 8"),
        (32, "  bulk 0/0 of 2–4 · static tasks"),
    ],
)
def test_a_group_that_runs_batches_says_so(width: int, words: str) -> None:
    bulk = group("bulk", takes="static tasks", batch_size=8)
    assert group_line(bulk, False, MOMENT, width).plain.rstrip() == words


@pytest.mark.parametrize(
    ("changes", "stopping", "words"),
    [
        ({}, "drain", "◌ leaves: the engine stops"),
        ({"active": 5}, None, "◌ leaves: max 4"),
        ({}, None, "◌ leaves"),
    ],
)
def test_a_leaving_worker_says_why(changes: dict[str, int], stopping: str | None, words: str) -> None:
    of = msgspec.structs.replace(GROUPS[0], **changes)
    ending = msgspec.structs.replace(OVERVIEW, stopping=stopping)
    for view in (_leaving(), _leaving(7), _leaving(7, slots=4)):
        assert words in worker_line(view, None, of, ending, MOMENT, 100).plain


def _leaving(*task_ids: int, **changes: int) -> WorkerView:
    return worker(1, task_ids=task_ids, state=WorkerState.LEAVING, **changes)


@pytest.mark.parametrize(
    ("width", "words"), [(70, "idle 0:12 · could take any task"), (44, "idle 0:12 · any task"), (28, "idle 0:12")]
)
def test_an_idle_worker_says_what_it_could_take_where_there_is_room(width: int, words: str) -> None:
    line = worker_line(worker(1, note="could take any task"), None, GROUPS[0], OVERVIEW, MOMENT, width)
    assert line.plain.rstrip().endswith(words)


def test_the_time_at_which_a_demand_worker_leaves_goes_before_what_it_could_take() -> None:
    view = worker(3, kind=WorkerKind.DEMAND, note="could take any task")
    assert "leaves in 0:48" in worker_line(view, None, GROUPS[0], OVERVIEW, MOMENT, 44).plain


# --- keys ----------------------------------------------------------------------------------------------------------------------------


def test_the_choice_is_by_name_and_falls_back_to_the_first() -> None:
    choice = GroupChoice()
    assert choice.of(OVERVIEW) is OVERVIEW.groups[0]
    assert choice.go_on(OVERVIEW) is OVERVIEW.groups[1]
    turned = msgspec.structs.replace(OVERVIEW, groups=tuple(reversed(OVERVIEW.groups)))
    chosen = choice.of(turned)
    assert chosen is not None
    assert chosen.name == "windows"
    without = msgspec.structs.replace(OVERVIEW, groups=OVERVIEW.groups[:1])
    assert choice.of(without) is OVERVIEW.groups[0]
    assert choice.of(msgspec.structs.replace(OVERVIEW, groups=())) is None
    assert choice.go_on(msgspec.structs.replace(OVERVIEW, groups=())) is None


@pytest.mark.parametrize(
    ("pressed", "action"),
    [
        (["right_square_bracket"], ResizeGroup(group="default", max_workers=5)),
        (["w", "right_square_bracket"], ResizeGroup(group="windows", max_workers=3)),
        (["w", "w", "right_curly_bracket"], ResizeGroup(group="archives", min_workers=1)),
        (["w", "w", "w", "left_square_bracket"], ResizeGroup(group="default", max_workers=3)),
        (["w", "s"], SaveLimits()),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
async def test_keys_resize_the_chosen_group_and_save_the_limits_of_all(pressed: list[str], action: object) -> None:
    client = await _pressed(*pressed)
    assert [command.action for command in client.commands] == [action]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("pressed", "actions"),
    [
        (
            ["right_square_bracket", "right_square_bracket", "left_square_bracket"],
            [ResizeGroup(max_workers=5), ResizeGroup(max_workers=6), ResizeGroup(max_workers=5)],
        ),
        (
            ["right_curly_bracket", "right_square_bracket", "right_curly_bracket"],
            [ResizeGroup(min_workers=3), ResizeGroup(max_workers=5), ResizeGroup(min_workers=4)],
        ),
        (
            ["right_square_bracket", "w", "right_square_bracket"],
            [ResizeGroup(max_workers=5), ResizeGroup(group="windows", max_workers=3)],
        ),
        (["plus", "plus"], [SetPriority(task_ids=(1,), priority=2), SetPriority(task_ids=(1,), priority=3)]),
        (["p", "p"], [PausePool(), ResumePool()]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value[0], str) else "",
)
async def test_keys_in_a_burst_count_from_what_was_asked_for_last(pressed: list[str], actions: list[object]) -> None:
    async def play(app: MalboxApp, pilot: Pilot[ShutdownMode]) -> None:
        client.answers.clear()
        await pilot.press(*pressed)
        await pilot.pause()

    client = ScriptedClient([record(1, TaskState.PENDING)], WORKERS, groups=GROUPS)
    await _with(client, play)
    assert [command.action for command in client.commands] == actions


@pytest.mark.slow
@pytest.mark.parametrize(
    "answer", [CommandOutcome(done=False, message="There is no room for more."), StoreFull("The disk is full.")]
)
async def test_what_was_refused_is_not_counted_from(answer: CommandOutcome | MalboxError) -> None:
    async def play(app: MalboxApp, pilot: Pilot[ShutdownMode]) -> None:
        await pilot.press("right_square_bracket", "right_square_bracket")
        await pilot.pause()
        await pilot.press("right_square_bracket")
        await pilot.pause()
        client._engine["groups"] = (msgspec.structs.replace(GROUPS[0], max_workers=9), *GROUPS[1:])
        await app.showing.show_everything()
        await pilot.press("right_square_bracket")
        await pilot.pause()

    client = ScriptedClient([record(1)], WORKERS, groups=GROUPS, answer=lambda command: answer)
    await _with(client, play)
    assert [command.action.max_workers for command in client.commands][2:] == [5, 10]  # type: ignore[union-attr]


@pytest.mark.slow
async def test_a_confirmed_wish_is_counted_from_until_it_is_shown_and_then_what_is_shown() -> None:
    async def play(app: MalboxApp, pilot: Pilot[ShutdownMode]) -> None:
        await pilot.press("right_square_bracket")
        await pilot.pause()
        assert app.picture.overview is not None
        assert app.picture.overview.groups[0].max_workers == 5
        await pilot.press("right_square_bracket")
        await pilot.pause()

    def obeyed(command: Command) -> CommandOutcome:
        assert isinstance(command.action, ResizeGroup)
        client._engine["groups"] = (msgspec.structs.replace(GROUPS[0], max_workers=command.action.max_workers), *GROUPS[1:])
        return CommandOutcome(done=True, message="done")

    client = ScriptedClient([record(1)], WORKERS, groups=GROUPS, answer=obeyed)
    await _with(client, play)
    assert [command.action for command in client.commands] == [ResizeGroup(max_workers=5), ResizeGroup(max_workers=6)]


async def test_a_single_group_offers_no_other() -> None:
    async def play(app: MalboxApp, pilot: Pilot[ShutdownMode]) -> None:
        assert not app.dashboard.check_action("next_group", ())
        await pilot.press("w", "right_square_bracket")

    client = ScriptedClient([record(1)], [worker(1)])
    await _with(client, play)
    assert [command.action for command in client.commands] == [ResizeGroup(group="default", max_workers=5)]


@pytest.mark.slow
async def test_the_chosen_group_comes_into_sight() -> None:
    async def play(app: MalboxApp, pilot: Pilot[ShutdownMode]) -> None:
        await pilot.press("w", "w")
        await pilot.pause()
        strip = app.dashboard.worker_strip
        shown = [strip.render_line(y).text for y in range(strip.size.height)]
        assert any("▸ archives" in line for line in shown)

    await _with(_client(), play, size=(80, 24))


def _client() -> ScriptedClient:
    return ScriptedClient([record(1)], WORKERS, groups=GROUPS)


async def _pressed(*keys: str) -> ScriptedClient:
    async def play(app: MalboxApp, pilot: Pilot[ShutdownMode]) -> None:
        await pilot.press(*keys)
        await pilot.pause()

    client = _client()
    await _with(client, play)
    return client


async def _with(
    client: ScriptedClient, play: Callable[[MalboxApp, Pilot[ShutdownMode]], Awaitable[None]], size: tuple[int, int] = (120, 40)
) -> None:
    app = MalboxApp(surroundings(client))
    async with asyncio.timeout(60), app.run_test(size=size) as pilot:
        while app.picture.overview is None or not app.dashboard.tasks.total:
            await pilot.pause()
            await app.show_changes()
        await play(app, pilot)
