"""Who owns a task in every `Store`, and for how long."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from malbox_tui.model.errors import StaleTask, StoreError
from malbox_tui.model.events import TaskPriorityChanged, TaskStarting
from malbox_tui.model.task import TaskState
from malbox_tui.model.task import claimed as claimed_in_the_model
from malbox_tui.ports import Change, Store
from tests.contracts.store.asking import begun, cancel_pending, query, stored
from tests.store.builders import NOON, Told, added, claim_request, claimed, completed, give_back, new_task, run


async def test_a_claimed_task_is_what_the_model_makes_of_it(store: Store, told: Told) -> None:
    task = await added(store, at=NOON)
    owned = await store.claim(claim_request(task.id, at=NOON + 1 / 3))
    assert owned == claimed_in_the_model(task, "worker-1", "token-1", NOON + 1 / 3, NOON + 1 / 3 + 60)
    assert await stored(store, task.id) == owned
    assert told.events[-1].body == TaskStarting(task_id=task.id, worker="worker-1", attempt=1)
    assert told.events[-1].at == NOON + 1 / 3


async def test_the_losing_claimer_gets_nothing(store: Store, told: Told) -> None:
    task = await added(store)
    await claimed(store, task, "first")
    assert await store.claim(claim_request(task.id, "second")) is None
    assert (await stored(store, task.id)).token == "first"
    assert len(told.events) == 2


async def test_of_claims_at_the_same_time_the_first_wins(store: Store, told: Told) -> None:
    task = await added(store)
    answers = await asyncio.gather(*(store.claim(claim_request(task.id, f"token-{n}")) for n in range(4)))
    assert [answer.token if answer else None for answer in answers] == ["token-0", None, None, None]
    assert len(told.events) == 2


async def test_many_claims_at_the_same_time_each_get_their_task(store: Store) -> None:
    tasks = [await added(store, f"content {n}") for n in range(8)]
    answers = await asyncio.gather(*(store.claim(claim_request(task.id, f"token-{task.id}")) for task in tasks))
    assert [(answer.id, answer.token) for answer in answers if answer] == [(task.id, f"token-{task.id}") for task in tasks]


async def test_nothing_but_a_pending_task_can_be_claimed(store: Store) -> None:
    done = await completed(store)
    assert await store.claim(claim_request(done.id, "token-9")) is None
    assert await store.claim(claim_request(99, "token-9")) is None


async def test_a_token_that_owns_a_task_can_not_own_another(store: Store) -> None:
    first, second = await added(store, "a"), await added(store, "b")
    await claimed(store, first, "same")
    with pytest.raises(StoreError):
        await store.claim(claim_request(second.id, "same"))
    assert (await stored(store, second.id)).state is TaskState.PENDING


async def test_a_task_given_back_can_be_claimed_again(store: Store) -> None:
    owned = await claimed(store, await added(store), "first")
    await store.write(give_back(owned, crashed=True))
    again = await store.claim(claim_request(owned.id, "second", at=NOON + 9))
    assert again is not None
    assert (again.attempts, again.crashes, again.token) == (1, 1, "second")


async def test_a_task_is_claimed_as_it_was_changed_while_it_waited(store: Store) -> None:
    task = await added(store)
    after = msgspec.structs.replace(task, priority=9, reason="moved up")
    await store.write(Change(task, after, TaskPriorityChanged(task_id=task.id, priority=9), NOON))
    assert await claimed(store, task) == claimed_in_the_model(after, "worker-1", "token-1", NOON + 1, NOON + 61)


async def test_a_task_whose_claim_failed_with_others_can_be_claimed(store: Store) -> None:
    first, second = await added(store, "a"), await added(store, "b")
    results = await asyncio.gather(
        store.add(new_task("c")),
        store.claim(claim_request(first.id, "same")),
        store.claim(claim_request(second.id, "same")),
        return_exceptions=True,
    )
    assert isinstance(results[2], StoreError)
    assert await claimed(store, second, "another") == claimed_in_the_model(second, "worker-1", "another", NOON + 1, NOON + 61)
    assert await query(store, states=frozenset({TaskState.PENDING})) == [3]


async def test_a_pending_task_canceled_just_before_is_not_claimed(store: Store) -> None:
    task = await added(store)
    canceling = store.write(cancel_pending(task))
    assert await store.claim(claim_request(task.id)) is None
    await canceling
    assert (await stored(store, task.id)).state is TaskState.CANCELED


async def test_a_task_claimed_just_before_is_not_canceled_as_pending(store: Store) -> None:
    task = await added(store)
    claiming = await begun(store.claim(claim_request(task.id)))
    with pytest.raises(StaleTask):
        await store.write(cancel_pending(task))
    assert await stored(store, task.id) == await claiming


async def test_a_renewed_lease_lasts_longer(store: Store) -> None:
    task = await claimed(store, await added(store))
    assert await store.renew(["token-1"], NOON + 500) == frozenset()
    assert (await stored(store, task.id)).lease_until == NOON + 500


async def test_renewing_names_the_tokens_that_own_nothing(store: Store) -> None:
    task = await claimed(store, await added(store))
    await store.write(give_back(task))
    await claimed(store, await added(store, "other"), "token-2")
    assert await store.renew(["token-1", "token-2", "never"], NOON + 500) == {"token-1", "never"}
    assert await store.renew([], NOON + 500) == frozenset()


async def test_a_change_does_not_shorten_a_renewed_lease(store: Store) -> None:
    task = await claimed(store, await added(store))
    await store.renew(["token-1"], NOON + 500)
    await store.write(run(task))
    assert (await stored(store, task.id)).lease_until == NOON + 500


async def test_renewing_never_shortens_a_lease(store: Store) -> None:
    task = await claimed(store, await added(store))
    assert await store.renew(["token-1"], NOON) == frozenset()
    assert (await stored(store, task.id)).lease_until == task.lease_until
