"""Whatever is asked of them, at once or one after the other, both stores hold the same values and tell the same events."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from malbox_tui.model.errors import IllegalTransition, MalboxError
from malbox_tui.model.queries import TaskQuery, TaskSort
from malbox_tui.model.report import Identification
from malbox_tui.model.task import Task
from malbox_tui.ports import Store
from malbox_tui.store.memory import MemoryStore
from tests.store.builders import NOON, Told, claim_request, give_back, new_task, run, settle, sha256_of, sqlite_store, stop

CONTENTS = st.sampled_from(["a", "b", "c"])
NAMES = st.one_of(st.none(), st.binary(max_size=4))
TIMES = st.floats(NOON, NOON + 100, allow_nan=False)
IDS = st.integers(1, 5)
STEPS = st.one_of(
    st.tuples(st.just("add"), CONTENTS, NAMES, TIMES, st.booleans(), st.one_of(st.none(), IDS)),
    st.tuples(st.just("claim"), IDS, st.sampled_from(["t1", "t2", "t3", "t4"]), TIMES),
    st.tuples(st.just("move"), IDS, st.sampled_from([run, stop, settle, give_back]), TIMES, st.booleans()),
    st.tuples(st.just("renew"), st.lists(st.sampled_from(["t1", "t2", "t3"]), max_size=3), TIMES),
    st.tuples(st.just("identify"), CONTENTS),
)
BATCHES = st.lists(st.lists(STEPS, min_size=1, max_size=8), max_size=8)


class Player:
    """Asks a store for steps and remembers, as an attempt would, the values of the tasks that it has seen."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._seen: dict[int, Task] = {}

    def ask(self, step: tuple[Any, ...]) -> Awaitable[Any]:
        """The answer to wait for; what is asked is handed over in the order of the calls."""
        return getattr(self, f"_{step[0]}")(*step[1:])  # type: ignore[no-any-return]

    async def _add(self, content: str, name: bytes | None, at: float, again: bool, retry_of: int | None) -> Any:
        result = await self._store.add(new_task(content, name, at=at, again=again, retry_of=retry_of))
        self._seen.setdefault(result.task.id, result.task)
        return result.created, result.task.id

    async def _claim(self, task_id: int, token: str, at: float) -> Any:
        if task_id not in self._seen:
            return None
        task = await self._store.claim(claim_request(task_id, token, at=at))
        if task is not None:
            self._seen[task_id] = task
        return task

    async def _move(self, task_id: int, make: Callable[..., Any], at: float, forgetful: bool) -> Any:
        task = self._seen.get(task_id)
        if task is None:
            return None
        try:
            change = make(task, at)
        except IllegalTransition:
            return None
        if not forgetful:
            self._seen[task_id] = change.after
        return await self._store.write(change)

    async def _renew(self, tokens: list[str], until: float) -> Any:
        return await self._store.renew(tokens, until + 30)

    async def _identify(self, content: str) -> None:
        await self._store.identify(sha256_of(content), Identification("pe", content))


async def played(store: Store, batches: list[list[tuple[Any, ...]]]) -> tuple[Any, ...]:
    told = Told()
    await store.open(told)
    player = Player(store)
    answers = []
    for batch in batches:
        results = await asyncio.gather(*(player.ask(step) for step in batch), return_exceptions=True)
        answers.append([type(result) if isinstance(result, MalboxError) else result for result in results])
        for result in results:
            if isinstance(result, BaseException) and not isinstance(result, MalboxError):
                raise result
    page = await store.tasks(TaskQuery(sort=TaskSort.OLDEST, limit=1000), NOON)
    pending = sorted(msgspec.to_builtins(entry, str_keys=True)["task_id"] for entry in await store.pending())
    owned = list(await store.owned())
    events = [(event.position.seq, event.at, event.body) for event in await store.events(0, 10_000)]
    assert events == [(event.position.seq, event.at, event.body) for event in told.events]
    assert [seq for seq, _, _ in events] == list(range(1, len(events) + 1))
    await store.close()
    return answers, page, pending, owned, events


@pytest.mark.slow
@settings(max_examples=100, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(BATCHES)
def test_both_stores_do_the_same(batches: list[list[tuple[Any, ...]]]) -> None:
    async def both() -> None:
        with tempfile.TemporaryDirectory() as folder:
            on_disk = await played(sqlite_store(Path(folder) / "store.sqlite"), batches)
        assert await played(MemoryStore(), batches) == on_disk

    asyncio.run(both())
