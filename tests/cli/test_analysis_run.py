"""A run of `analyze` over a scripted client: what it waits for and what it tells, in which order."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from malbox_tui.cli.analysis_run import AnalysisRun
from malbox_tui.cli.output import OutputClosed
from malbox_tui.cli.tally import Tally
from malbox_tui.model.errors import StoreError
from malbox_tui.model.events import EngineStopping
from malbox_tui.model.queries import TaskQuery, TaskRecord
from malbox_tui.model.sample import SampleName
from malbox_tui.model.submission import Duplicate, Offer, Refusal, Refused, SubmissionOptions
from malbox_tui.model.task import TaskState

from .builders import BEGAN_AT, MALICIOUS, ScriptedClient, accepted, record, sha, with_finish

REFUSED = Refused(SampleName(b"fifo"), Refusal("fifo", "It is a named pipe."))


def duplicate(of: int, state: TaskState) -> Duplicate:
    return Duplicate(SampleName(b"copy"), sha(of), 1536, of, state)


class Told:
    """Keeps what was told, as short words."""

    def __init__(self) -> None:
        self.words: list[str] = []

    def task_ended(self, record: TaskRecord) -> None:
        self.words.append(f"{record.task.id} {record.task.state.value}")

    def duplicate(self, receipt: Duplicate, original: TaskRecord | None) -> None:
        self.words.append(f"duplicate of {receipt.task_id} {original.task.state.value if original else 'gone'}")

    def refused(self, receipt: Refused) -> None:
        self.words.append(f"refused {receipt.refusal.code}")

    def moved_on(self) -> None: ...


async def nothing() -> AsyncIterator[Offer]:
    return
    yield


async def carried_out(client: ScriptedClient, *, submits: bool = True) -> tuple[bool, list[str], Tally]:
    told, tally = Told(), Tally()
    run = AnalysisRun(client, tally, told)
    async with asyncio.timeout(10):
        all_final = await run.run(nothing() if submits else None, SubmissionOptions(), BEGAN_AT)
    return all_final, told.words, tally


async def test_it_ends_when_every_accepted_task_is_final_and_tells_them_in_the_order_they_ended() -> None:
    client = ScriptedClient()
    client.receipts = [accepted(1), accepted(2), accepted(3), lambda: end_in_turn(client)]

    def end_in_turn(client: ScriptedClient) -> None:
        client.end(2)
        client.end(3, TaskState.FAILED)
        client.end(1, verdict=MALICIOUS)

    all_final, words, tally = await carried_out(client)
    assert all_final
    assert words == ["2 completed", "3 failed", "1 completed"]
    assert tally.exit_code() == 1


async def test_a_task_that_ends_before_its_receipt_is_told_once_and_not_waited_for() -> None:
    client = ScriptedClient(record(1, TaskState.PENDING))
    client.receipts = [lambda: client.end(1), accepted(1)]
    assert (await carried_out(client))[:2] == (True, ["1 completed"])


async def test_what_earlier_runs_left_over_is_waited_for_and_counts() -> None:
    client = ScriptedClient(record(4, TaskState.PENDING), record(5, TaskState.RUNNING), record(3))
    client.on_query = _once(lambda: (client.end(5, TaskState.TIMED_OUT), client.end(4)))
    all_final, words, tally = await carried_out(client, submits=False)
    assert all_final
    assert words == ["5 timed_out", "4 completed"]
    assert (tally.leftovers, tally.exit_code()) == (2, 1)


async def test_more_leftovers_than_one_answer_holds_are_all_found() -> None:
    client = ScriptedClient(*(record(number, TaskState.PENDING) for number in range(2500)))
    client.receipts = [lambda: [client.end(number) for number in range(2500)]]  # type: ignore[list-item,return-value]
    _, words, tally = await carried_out(client)
    assert len(words) == tally.leftovers == 2500


async def test_tasks_that_recovery_ended_before_anyone_could_listen_are_of_this_run() -> None:
    before = with_finish(record(1), BEGAN_AT - 1)
    settled = with_finish(record(2, TaskState.FAILED), BEGAN_AT + 1)
    _, words, tally = await carried_out(ScriptedClient(before, settled), submits=False)
    assert words == ["2 failed"]
    assert tally.leftovers == 1


async def test_with_nothing_left_over_and_nothing_submitted_it_ends_at_once() -> None:
    all_final, words, tally = await carried_out(ScriptedClient(record(1)), submits=False)
    assert all_final
    assert words == []
    assert tally.is_empty


async def test_a_duplicate_of_a_completed_task_is_told_with_that_task_and_not_waited_for() -> None:
    client = ScriptedClient(record(1))
    client.receipts = [duplicate(1, TaskState.COMPLETED), REFUSED]
    all_final, words, tally = await carried_out(client)
    assert all_final
    assert sorted(words) == ["duplicate of 1 completed", "refused fifo"]
    assert tally.exit_code() == 0


async def test_a_content_that_joins_a_pending_task_is_waited_for() -> None:
    client = ScriptedClient(record(1, TaskState.PENDING))
    client.receipts = [duplicate(1, TaskState.PENDING), lambda: client.end(1, TaskState.FAILED)]
    _, words, tally = await carried_out(client)
    assert words == ["duplicate of 1 failed", "1 failed"]
    assert tally.exit_code() == 1


async def test_after_a_gap_the_tasks_still_waited_for_are_looked_up() -> None:
    client = ScriptedClient()
    client.receipts = [accepted(1), accepted(2), lambda: client.end(1, told=False), lambda: client.gap(), lambda: client.end(2)]
    _, words, _ = await carried_out(client)
    assert sorted(words) == ["1 completed", "2 completed"]


async def test_everything_refused_is_nothing_accepted() -> None:
    client = ScriptedClient()
    client.receipts = [REFUSED, REFUSED]
    _, words, tally = await carried_out(client)
    assert words == ["refused fifo", "refused fifo"]
    assert tally.exit_code() == 2


async def test_when_the_engine_stops_the_run_is_over_and_says_so() -> None:
    client = ScriptedClient()
    client.receipts = [accepted(1), accepted(2), lambda: client.end(1), lambda: client.stop()]
    all_final, _, tally = await carried_out(client)
    assert not all_final
    assert 2 in tally.waiting
    assert tally.exit_code() == 1


async def test_what_ended_while_the_engine_stopped_is_told_from_the_store() -> None:
    client = ScriptedClient()
    client.receipts = [accepted(1), accepted(2), accepted(3), lambda: client.end(1), lambda: client.stop()]
    told, tally = Told(), Tally()
    run = AnalysisRun(client, tally, told)
    await run.run(nothing(), SubmissionOptions(), BEGAN_AT)
    client.end(2, told=False)
    client.stopped = False
    await run.tell_rest(client.query)
    assert sorted(told.words) == ["1 completed", "2 completed"]
    assert tally.waiting == {3}


async def test_an_end_in_the_middle_of_a_submission_leaves_nothing_uncounted() -> None:
    client = ScriptedClient(record(7, TaskState.PENDING))
    client.receipts = [accepted(8), lambda: client.stop(), accepted(9)]
    tally = Tally()
    run = AnalysisRun(client, tally, Told())
    await run.run(nothing(), SubmissionOptions(), BEGAN_AT)
    client.held[9] = record(9, TaskState.PENDING)
    client.stopped = False
    await run.tell_rest(client.query)
    assert not run.took_everything
    assert (tally.waiting, tally.leftovers) == ({7, 8, 9}, 1)


async def test_other_news_is_no_end() -> None:
    client = ScriptedClient()
    client.receipts = [accepted(1), lambda: client.happens(EngineStopping(mode="drain")), lambda: client.end(1)]
    assert (await carried_out(client))[1] == ["1 completed"]


async def test_an_error_of_the_engine_goes_up_as_it_is() -> None:
    client = ScriptedClient()

    def break_down() -> None:
        raise StoreError("The disk is gone.")

    client.receipts = [accepted(1), break_down]
    with pytest.raises(StoreError, match="disk is gone"):
        await carried_out(client)


async def test_results_that_nobody_takes_end_the_run() -> None:
    class Closed(Told):
        def task_ended(self, record: TaskRecord) -> None:
            raise OutputClosed

    client = ScriptedClient()
    client.receipts = [accepted(1), lambda: client.end(1)]
    with pytest.raises(OutputClosed):
        await AnalysisRun(client, Tally(), Closed()).run(nothing(), SubmissionOptions(), BEGAN_AT)


def _once(action: object) -> object:
    done: list[bool] = []

    def on_query(query: TaskQuery) -> None:
        if not done and query.where.states is not None and TaskState.PENDING in query.where.states and query.limit:
            done.append(True)
            asyncio.get_running_loop().call_soon(action)  # type: ignore[arg-type]

    return on_query
