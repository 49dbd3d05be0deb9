"""The log of actions: who did what, from where, to which tasks, and what came of it."""

from __future__ import annotations

import asyncio
import logging

import pytest

from malbox_tui.config.settings import Settings
from malbox_tui.engine.adapters import Adapters
from malbox_tui.engine.engine import Engine
from malbox_tui.model.actions import ActionRecord, Submitted
from malbox_tui.model.commands import (
    Action,
    CancelTasks,
    Command,
    PausePool,
    ResizeGroup,
    RetryTasks,
    SaveLimits,
    Shutdown,
    ShutdownMode,
)
from malbox_tui.model.errors import StoreError
from malbox_tui.model.events import ActionTaken
from malbox_tui.model.task import TaskState
from malbox_tui.store.memory import MemoryStore
from tests.support.rig import BreakableStore, EngineRig, with_engine


async def kept(rig: EngineRig) -> list[ActionRecord]:
    """What is in the store, the latest first."""
    return list(await rig.store.actions(None, 1000))


async def commands_kept(rig: EngineRig) -> list[ActionRecord]:
    return [record for record in await kept(rig) if not isinstance(record.action, Submitted)]


def test_a_command_is_kept_with_who_where_when_what_and_what_came_of_it() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("a", "b")
        action = CancelTasks(task_ids=(2, 99))
        outcome = await rig.do(action, origin="laptop")
        (record,) = await commands_kept(rig)
        assert (record.actor, record.origin, record.at, record.action) == ("ana", "laptop", rig.wall.now(), action)
        assert (record.done, record.message, record.done_to) == (True, outcome.message, (2,))

    with_engine(test, min_workers=0, max_workers=0)


def test_a_refused_command_is_kept_with_the_reason() -> None:
    async def test(rig: EngineRig) -> None:
        outcome = await rig.do(ResizeGroup(group="nowhere", max_workers=2))
        assert not outcome.done
        (record,) = await commands_kept(rig)
        assert (record.done, record.message, record.done_to) == (False, outcome.message, ())

    with_engine(test)


def test_a_command_that_breaks_is_kept_too() -> None:
    async def test(rig: EngineRig) -> None:
        def explode(group: str, low: int | None, high: int | None) -> str:
            raise ZeroDivisionError

        rig.engine._pool.resize = explode  # type: ignore[method-assign]
        with pytest.raises(ZeroDivisionError):
            await rig.do(ResizeGroup(max_workers=2))
        await rig.pass_time(1)
        (record,) = await commands_kept(rig)
        assert not record.done
        assert "ZeroDivisionError" in record.message

    with_engine(test)


def test_what_consoles_are_told_is_what_is_kept() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.do(PausePool())
        await rig.pass_time(1)
        (record,) = await commands_kept(rig)
        (told,) = [event for event in rig.events if isinstance(event.body, ActionTaken)]
        assert (told.position.seq, told.at, told.durable) == (record.number, record.at, True)
        assert list(await rig.engine.actions(None, 10)) == [record]
        bookless = Engine(Settings(), Adapters(rig.store, rig.quarantine, rig.results, rig.runner, rig.wall))
        assert list(await bookless.actions(None, 10)) == [], "an engine without a book has nothing to show"

    with_engine(test)


def test_a_command_sent_twice_is_kept_once() -> None:
    async def test(rig: EngineRig) -> None:
        await asyncio.gather(*(rig.do(PausePool(), key="k") for _ in range(3)))
        await rig.do(PausePool(), key="k")
        assert len(await commands_kept(rig)) == 1

    with_engine(test)


def test_a_command_whose_asker_went_away_while_it_was_kept_is_not_done_again() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("a")
        await rig.all_final()
        store, held = rig.store, asyncio.get_running_loop().create_future()
        note = store.note

        def slow(at: float, news: object) -> object:
            answer = note(at, news)  # type: ignore[arg-type]
            return held if isinstance(news, ActionTaken) else answer

        store.note = slow  # type: ignore[method-assign, assignment]
        asking = asyncio.get_running_loop().create_task(rig.do(RetryTasks(task_ids=(1,)), key="k"))
        await rig.pass_time(1)
        asking.cancel()
        store.note = note  # type: ignore[method-assign]
        again = await rig.do(RetryTasks(task_ids=(1,)), key="k")
        assert again.targets[0].new_task_id == 2
        assert len(await rig.tasks()) == 2
        assert len(await commands_kept(rig)) == 1

    with_engine(test)


def test_a_store_that_keeps_no_record_keeps_no_command_from_being_carried_out(caplog: pytest.LogCaptureFixture) -> None:
    async def test(rig: EngineRig) -> None:
        note = rig.store.note

        def failing(at: float, news: object) -> object:
            if isinstance(news, ActionTaken):
                answer = asyncio.get_running_loop().create_future()
                answer.set_exception(StoreError("The disk is gone."))
                return answer
            return note(at, news)  # type: ignore[arg-type]

        rig.store.note = failing  # type: ignore[method-assign, assignment]
        assert (await rig.do(PausePool())).done
        rig.store.note = note  # type: ignore[method-assign]
        assert (await rig.engine.overview()).paused is not None
        assert await kept(rig) == []

    with caplog.at_level(logging.WARNING):
        with_engine(test)
    assert "PausePool by ana was carried out or refused, and is not in the log of actions: The disk is gone." in caplog.text


@pytest.mark.parametrize("mode", ShutdownMode)
def test_a_shutdown_is_kept_before_the_engine_ends(mode: ShutdownMode) -> None:
    action: Action = Shutdown(mode=mode)

    async def test(rig: EngineRig) -> None:
        await rig.do(action)

    rig = with_engine(test, stop=None)
    (record,) = [record for record in rig.store._actions if not isinstance(record.action, Submitted)]
    assert (record.actor, record.action, record.done) == ("ana", action, True)


def test_the_engines_own_front_door_reads_the_book_it_is_given() -> None:
    async def test(rig: EngineRig) -> None:
        for _ in range(3):
            await rig.do(SaveLimits())
        (latest, middle) = await rig.engine.actions(None, 2)
        (first,) = await rig.engine.actions(middle.number, 10)
        assert latest.number > middle.number > first.number

    with_engine(test)


# --- submissions ---


def test_a_submission_is_one_record_with_its_counts() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("a", "b", "a")
        (record,) = await kept(rig)
        assert record.action == Submitted(accepted=2, duplicates=1)
        assert (record.actor, record.origin, record.done, record.done_to) == ("operator", "", True, (1, 2))
        assert record.message == "2 accepted, 1 duplicate, 0 refused."

    with_engine(test, min_workers=0, max_workers=0)


def test_a_submission_of_which_nothing_was_taken_was_not_done() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("a", priority=10**9)
        (record,) = await kept(rig)
        assert (record.done, record.action) == (False, Submitted(accepted=0, refused=1))
        await rig.add()
        assert len(await kept(rig)) == 1, "a submission of nothing is none"

    with_engine(test)


def test_files_that_somebody_sends_one_by_one_are_one_submission() -> None:
    async def test(rig: EngineRig) -> None:
        for content in "abc":
            await rig.add(content, actor="ben", origin="laptop")
            await rig.pass_time(0.5)
        await rig.add("d", actor="eva", origin="laptop")
        assert await kept(rig) == []
        await rig.pass_time(2)
        counts = {record.actor: record.action for record in await kept(rig)}
        assert counts == {"ben": Submitted(accepted=3), "eva": Submitted(accepted=1)}
        await rig.add("e", actor="ben", origin="laptop")
        await rig.pass_time(2)
        assert len(await kept(rig)) == 3, "after a pause another one begins"

    with_engine(test, min_workers=0, max_workers=0)


def test_a_submission_that_goes_on_for_long_is_kept_meanwhile() -> None:
    async def test(rig: EngineRig) -> None:
        for number in range(200):
            await rig.add(str(number), actor="ben")
            await rig.pass_time(0.5)
        assert [record.action for record in await kept(rig)] == [Submitted(accepted=121)]
        await rig.pass_time(2)
        assert [record.action for record in await kept(rig)] == [Submitted(accepted=79), Submitted(accepted=121)]

    with_engine(test, min_workers=0, max_workers=0)


def test_what_was_gathered_is_kept_when_the_engine_ends() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("a", "b", actor="ben")

    store: MemoryStore = BreakableStore()
    with_engine(test, store=store, min_workers=0, max_workers=0)
    assert [record.action for record in store._actions] == [Submitted(accepted=2)]


def test_a_retry_names_the_tasks_that_were_retried() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("a", "b")
        tasks = await rig.all_final()
        assert {task.state for task in tasks.values()} == {TaskState.COMPLETED}
        await rig.engine.do(Command(action=RetryTasks(task_ids=(1, 2, 99)), actor="ana"))
        (record,) = await commands_kept(rig)
        assert record.done_to == (1, 2)

    with_engine(test)
