"""How long a task may go on: counted down from what the engine says is due, in as many words as there is room for."""

from __future__ import annotations

import asyncio

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from malbox_tui.model.due import TimeLimit
from malbox_tui.model.task import OWNED_STATES, ChosenBy, ChosenProfile, TaskState
from malbox_tui.tui.app import MalboxApp
from malbox_tui.tui.countdown import Countdown, countdown, countdown_in, countdown_of, timing_cell
from malbox_tui.tui.moment import Moment
from malbox_tui.tui.task_page import AtWork, task_lines
from tests.tui.scripted import NOW, ScriptedClient, due, overview, record, surroundings, worker

MOMENT = Moment(NOW)


def _timing(left: Countdown, state: TaskState, room: int = 40) -> str:
    return timing_cell(42.0, left, state, MOMENT, room).plain


def test_it_goes_on_by_itself_between_two_answers_of_the_engine() -> None:
    assert [countdown(due(258), NOW, NOW + later) for later in (0, 8, 300)] == [
        Countdown(TimeLimit.ANALYSIS, 300.0, left_s) for left_s in (258, 250, 0)
    ]
    assert countdown(None, NOW, NOW) is None


def test_one_that_stands_does_not_move_until_the_engine_says_so() -> None:
    standing = due(200, stands=True)
    assert [countdown(standing, NOW, NOW + later) for later in (0, 60)] == [Countdown(TimeLimit.ANALYSIS, 300.0, 200, True)] * 2


def test_each_task_of_a_worker_has_its_own() -> None:
    several = worker(1, task_ids=(7, 8), slots=4, dues=(due(258), due(12, TimeLimit.CRITICAL, 1800)))
    unheard = worker(2, task_ids=(9,))
    given = overview([], [several, unheard])
    assert countdown_of(several, 8, given, NOW) == countdown_in(given, 8, NOW) == Countdown(TimeLimit.CRITICAL, 1800.0, 12)
    assert countdown_in(given, 9, NOW) is None, "its attempt has not begun"
    assert countdown_in(given, 10, NOW) is None, "nobody holds it"


@pytest.mark.parametrize("state", sorted(OWNED_STATES))
@pytest.mark.parametrize("limit", sorted(set(TimeLimit) - {TimeLimit.CRITICAL, TimeLimit.ENDING}))
def test_the_limit_of_a_stage_needs_no_name_even_when_the_news_of_the_stage_is_late(state: TaskState, limit: TimeLimit) -> None:
    assert _timing(Countdown(limit, 300.0, 258.0), state) == "0:42 ▓░░░░░░░░░ 4:18"


@pytest.mark.parametrize("state", sorted(OWNED_STATES))
def test_in_every_stage_the_limit_of_the_whole_attempt_is_named_when_it_is_next(state: TaskState) -> None:
    assert _timing(Countdown(TimeLimit.CRITICAL, 1800.0, 12.0), state, 50) == "0:42 ▓▓▓▓▓▓▓▓▓░ critical 0:12"


def test_what_is_left_to_end_is_named() -> None:
    left = Countdown(TimeLimit.ENDING, 5.0, 4.0)
    assert _timing(left, TaskState.RUNNING, 50).endswith("ending 0:04")
    assert _timing(left, TaskState.RUNNING, 9) == "ends 0:04"


@pytest.mark.parametrize(
    ("left", "room", "words"),
    [
        (Countdown(TimeLimit.ANALYSIS, 300.0, 258.0), 33, "0:42 ▓░░░░░░░░░ 4:18"),
        (Countdown(TimeLimit.ANALYSIS, 300.0, 258.0), 32, "0:42 ░░░░░ 4:18"),
        (Countdown(TimeLimit.ANALYSIS, 300.0, 258.0), 14, "0:42 -4:18"),
        (Countdown(TimeLimit.ANALYSIS, 300.0, 258.0), 9, "4:18 left"),
        (Countdown(TimeLimit.ANALYSIS, 300.0, 258.0), 8, "-4:18"),
        (Countdown(TimeLimit.CRITICAL, 1800.0, 12.0), 29, "0:42 ▓▓▓▓░ critical 0:12"),
        (Countdown(TimeLimit.CRITICAL, 1800.0, 12.0), 28, "0:42 critical 0:12"),
        (Countdown(TimeLimit.CRITICAL, 1800.0, 12.0), 17, "critical 0:12"),
        (Countdown(TimeLimit.CRITICAL, 1800.0, 12.0), 11, "crit 0:12"),
        (Countdown(TimeLimit.CRITICAL, 1800.0, 12.0), 8, "-0:12"),
        (Countdown(TimeLimit.ANALYSIS, 300.0, 200.0, stands=True), 40, "‖ 3:20 left, waits for its turn"),
        (Countdown(TimeLimit.ANALYSIS, 300.0, 200.0, stands=True), 30, "‖ 3:20 left"),
        (Countdown(TimeLimit.ANALYSIS, 300.0, 200.0, stands=True), 10, "‖ 3:20"),
        (Countdown(TimeLimit.CRITICAL, 1800.0, 200.0, stands=True), 20, "‖ critical 3:20 left"),
    ],
)
def test_in_little_room_what_is_left_is_said_last_of_all(left: Countdown, room: int, words: str) -> None:
    assert _timing(left, TaskState.RUNNING, room) == words


def test_a_task_that_lays_its_sample_out_waits_for_something_else_than_its_turn() -> None:
    standing = Countdown(TimeLimit.INITIALIZING, 120.0, 119.0, stands=True)
    assert _timing(standing, TaskState.INITIALIZING) == "‖ 1:59 left, waits"


@given(
    st.sampled_from(list(TimeLimit)),
    st.floats(0, 2000),
    st.floats(0, 2000),
    st.booleans(),
    st.sampled_from(sorted(OWNED_STATES)),
    st.integers(8, 80),
)
def test_it_never_takes_more_room_than_it_has(
    limit: TimeLimit, seconds: float, left_s: float, stands: bool, state: TaskState, room: int
) -> None:
    assert len(_timing(Countdown(limit, seconds, left_s, stands), state, room)) <= room


# --- one task ------------------------------------------------------------------------------------------------------------------------


def _page(state: TaskState, left: Countdown | None = None, **changes: object) -> str:
    lines = task_lines(record(7, state, **changes), AtWork(left=left), MOMENT, lambda at: f"{at - NOW:+g}", 200)
    return "\n".join(line.plain.rstrip() for line in lines)


@pytest.mark.parametrize(
    ("limit", "words"),
    [
        (TimeLimit.ANALYSIS, "the analysis timeout of 300 s is reached at +258, in 4:18"),
        (TimeLimit.CRITICAL, "the critical timeout of 300 s for the whole attempt is reached at +258, in 4:18"),
        (TimeLimit.PREPARING, "the timeout of 300 s for preparing its machine is reached at +258, in 4:18"),
    ],
)
def test_a_tasks_page_says_which_limit_is_next_and_when(limit: TimeLimit, words: str) -> None:
    assert f"limit       {words}" in _page(TaskState.RUNNING, Countdown(limit, 300.0, 258.0))


def test_a_tasks_page_says_that_its_clock_stands_and_why() -> None:
    page = _page(TaskState.RUNNING, Countdown(TimeLimit.ANALYSIS, 300.0, 200.0, stands=True))
    assert "‖ 3:20 left of the analysis timeout of 300 s; its clock stands: it waits for its turn in its batch" in page


def test_a_waiting_tasks_page_says_how_long_it_may_run_and_an_ended_ones_says_how_it_ended() -> None:
    assert "limit       the analysis timeout of 300 s, once it runs" in _page(TaskState.PENDING)
    ended = _page(TaskState.TIMED_OUT, reason="It was still preparing after 900 s, which is as long as that may take.")
    assert "limit  " not in ended
    assert "how         It was still preparing after 900 s, which is as long as that may take." in ended


def test_a_tasks_page_says_that_its_machine_is_watched_to_the_end() -> None:
    watched = "watched     to the end: its machine goes on for the whole 300 s, also when the sample ends before"
    assert watched in _page(TaskState.RUNNING, enforce_timeout=True)


def test_the_page_says_which_profile_a_task_has_and_why() -> None:
    chosen = ChosenProfile(name="office\x1b", by=ChosenBy.KIND, kind="ole")
    assert r"profile     office\x1b, for kind ole" in _page(TaskState.PENDING, profile=chosen)
    assert "profile" not in _page(TaskState.PENDING, profile=ChosenProfile())
    assert "watched" not in _page(TaskState.RUNNING)


async def test_the_console_counts_down_without_news_and_learns_that_a_clock_stands() -> None:
    client = ScriptedClient([record(7, TaskState.RUNNING)], [worker(1, 7, dues=(due(258),))])
    seconds = 0.0
    app = MalboxApp(surroundings(client, monotonic=lambda: seconds))
    async with asyncio.timeout(60), app.run_test(size=(80, 24)) as pilot:
        while app.picture.overview is None:
            await pilot.pause()
        strip = app.dashboard.worker_strip

        def shown() -> str:
            app.show_time()
            return strip.render_line(0).text.rstrip()

        assert shown().endswith(" 4:18")
        seconds = 8.0
        assert shown().endswith(" 4:10")
        client.workers = (msgspec.structs.replace(client.workers[0], dues=(due(250, stands=True),)),)
        await app.feed.learn()
        assert shown().endswith("‖ 4:10 left, waits for its turn")
        seconds = 60.0
        assert shown().endswith("‖ 4:10 left, waits for its turn")
