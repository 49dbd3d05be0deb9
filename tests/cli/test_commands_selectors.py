"""Which tasks `SELECTOR…`, `--state`, `--name` and `--all` choose."""

from __future__ import annotations

import pytest

from malbox_tui.cli.selectors import Chosen, Filters, WrongSelection, chosen, name_bytes, parse_selector
from malbox_tui.model.queries import TaskPage, TaskQuery
from malbox_tui.model.task import FINAL_STATES, TaskState
from malbox_tui.store.memory import MemoryStore
from tests.store.builders import NOON, added, claimed, completed, new_task, run, sha256_of

LIVE = frozenset(TaskState) - FINAL_STATES


@pytest.fixture
async def store() -> MemoryStore:
    """Tasks 1 completed, 2 running, 3 to 6 pending; 6 has the content of 1."""
    store = MemoryStore()
    await store.open(lambda events: None)
    await completed(store, "alpha")
    task = await claimed(store, await added(store, "beta", b"beta.exe"), "token-b")
    await store.write(run(task))
    for content in ("gamma", "delta", "epsilon"):
        await added(store, content, content.encode() + b".dll")
    await store.add(new_task("alpha", b"again.exe", again=True))
    return store


async def ids(store: MemoryStore, *words: str, possible: frozenset[TaskState] = LIVE, **filters: object) -> tuple[int, ...]:
    return (await choice(store, *words, possible=possible, **filters)).task_ids


async def choice(store: MemoryStore, *words: str, possible: frozenset[TaskState] = LIVE, **filters: object) -> Chosen:
    async def read(query: TaskQuery) -> TaskPage:
        return await store.tasks(query, NOON)

    return await chosen(read, [parse_selector(word) for word in words], Filters(**filters), possible)  # type: ignore[arg-type]


async def test_an_id_is_chosen_whatever_its_task_is_at_and_whether_or_not_there_is_one(store: MemoryStore) -> None:
    assert await ids(store, "1", "99") == (1, 99)


async def test_a_range_chooses_what_there_is_in_it_that_something_can_be_done_to(store: MemoryStore) -> None:
    assert await ids(store, "1-4") == (2, 3, 4)
    assert await ids(store, "3-9999999") == (3, 4, 5, 6)
    assert await ids(store, "1-4", possible=FINAL_STATES) == (1,)


async def test_the_beginning_of_a_sum_chooses_the_tasks_of_its_sample(store: MemoryStore) -> None:
    prefix = sha256_of("alpha")[:8]
    assert await ids(store, prefix) == (6,)
    assert await ids(store, f"SHA256:{prefix.upper()}") == (6,)
    assert await ids(store, prefix, possible=FINAL_STATES) == (1,)
    assert await ids(store, sha256_of("beta"), possible=FINAL_STATES) == (2,), "so that it is said why nothing can be done"


async def test_selectors_add_up_and_each_task_is_chosen_once(store: MemoryStore) -> None:
    assert await ids(store, "5", "3-4", "4", sha256_of("gamma")[:10]) == (3, 4, 5)


async def test_filters_keep_some_of_what_is_chosen_or_of_all(store: MemoryStore) -> None:
    assert await ids(store, state=(TaskState.PENDING,)) == (3, 4, 5, 6)
    assert await ids(store, name="delta") == (4,)
    assert await ids(store, name=".exe") == (2, 6)
    assert await ids(store, "1-4", state=(TaskState.PENDING,)) == (3, 4)
    assert await ids(store, "1", "2", state=(TaskState.RUNNING,)) == (2,)
    assert await ids(store, sha256_of("alpha")[:8], name="again") == (6,)
    assert await ids(store, all=True) == (2, 3, 4, 5, 6)
    assert await ids(store, all=True, state=(TaskState.RUNNING,), name="beta") == (2,)


async def test_what_chooses_nothing_says_so(store: MemoryStore) -> None:
    with pytest.raises(WrongSelection, match="Say which tasks"):
        await ids(store)
    with pytest.raises(WrongSelection, match="No task that this could be done to"):
        await ids(store, state=(TaskState.COMPLETED,))
    with pytest.raises(WrongSelection, match="No task that this could be done to"):
        await ids(store, "500-600")
    with pytest.raises(WrongSelection, match="begins with ffff"):
        await ids(store, "ffff")
    with pytest.raises(WrongSelection, match="--all means every task"):
        await ids(store, "3", all=True)


async def test_a_beginning_that_several_samples_have_is_not_guessed_at() -> None:
    store, same = MemoryStore(), ("a7c1" + "0" * 60, "a7c1" + "1" * 60, "a7c2" + "0" * 60)
    await store.open(lambda events: None)
    for sha256 in same:
        new = new_task("x")
        await store.add(type(new)(**{name: getattr(new, name) for name in new.__struct_fields__} | {"sha256": sha256}))
    with pytest.raises(WrongSelection, match=r"a7c1 is the beginning of 2 samples' SHA-256 \(a7c10000…, a7c11111…\)"):
        await ids(store, "a7c1")
    assert await ids(store, "a7c10") == (1,)
    assert await ids(store, "a7c2") == (3,)


async def test_only_what_was_named_by_its_id_needs_no_question(store: MemoryStore) -> None:
    assert (await choice(store, "3", "4")).is_named
    assert not (await choice(store, "3-4")).is_named
    assert not (await choice(store, "3", sha256_of("delta")[:8])).is_named
    assert not (await choice(store, name="a")).is_named


async def test_more_tasks_than_a_page_holds_are_all_chosen() -> None:
    store = MemoryStore()
    await store.open(lambda events: None)
    for number in range(2345):
        answer = store.add(new_task(str(number)))
        await answer
    assert await ids(store, all=True) == tuple(range(1, 2346))
    assert await ids(store, "200-2300") == tuple(range(200, 2301))


@pytest.mark.parametrize(
    ("word", "problem"),
    [
        ("x", "no id"),
        ("", "no id"),
        ("-3", "no id"),
        ("3-", "no id"),
        ("9-3", "ends before it begins"),
        ("abc", "too short"),
        ("sha256:12", "too short"),
        ("sha256:xyz", "is no SHA-256"),
        ("a" * 65, "no id"),
        ("9" * 17, "no task 9999"),
        ("\x1b[31m", r"\\x1b\[31m chooses no task"),
        ("٣", "no id"),
    ],
)
def test_a_word_that_chooses_nothing_is_refused(word: str, problem: str) -> None:
    with pytest.raises(WrongSelection, match=problem):
        parse_selector(word)


def test_a_name_can_be_typed_as_it_is_shown() -> None:
    assert name_bytes(r"r\xe9sum\xe9") == b"r\xe9sum\xe9"
    assert name_bytes(r"C:\Windows") == b"C:\\Windows"
