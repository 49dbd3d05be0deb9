"""The order of the queue, against a plain model of it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from malbox_tui.engine.queue import TaskQueue
from malbox_tui.model.task import RequirementClass
from malbox_tui.ports import PendingEntry

STATIC, WINDOWS = RequirementClass(), RequirementClass(task_type="dynamic", platform="windows")


def _any(_requires: RequirementClass) -> bool:
    return True


def test_higher_priority_goes_first_and_equals_go_in_order() -> None:
    queue = TaskQueue()
    for task_id, priority in [(1, 1), (2, 5), (3, 1), (4, 5), (5, -3)]:
        queue.push(PendingEntry(task_id, priority, STATIC))
    assert [_pop(queue) for _ in range(6)] == [2, 4, 1, 3, 5, None]


def test_a_task_nobody_accepts_never_stands_before_one_somebody_does() -> None:
    queue = TaskQueue()
    queue.push(PendingEntry(1, 99, WINDOWS))
    queue.push(PendingEntry(2, 1, STATIC))
    assert queue.count(lambda requires: requires == STATIC) == 1
    entry = queue.pop(lambda requires: requires == STATIC)
    assert entry == PendingEntry(2, 1, STATIC)
    assert queue.pop(lambda requires: requires == STATIC) is None
    assert len(queue) == 1


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("push"), st.integers(1, 20), st.integers(-2, 2), st.sampled_from([STATIC, WINDOWS])),
            st.tuples(st.just("discard"), st.integers(1, 20)),
            st.tuples(st.just("priority"), st.integers(1, 20), st.integers(-2, 2)),
            st.tuples(st.just("pop"), st.sampled_from([STATIC, WINDOWS, None])),
        ),
        max_size=200,
    )
)
def test_any_sequence_of_operations_agrees_with_a_sorted_list(operations: list[tuple]) -> None:  # type: ignore[type-arg]
    queue, model = TaskQueue(), dict[int, tuple[int, RequirementClass]]()
    for operation in operations:
        match operation:
            case ("push", task_id, priority, requires):
                queue.push(PendingEntry(task_id, priority, requires))
                model[task_id] = (priority, requires)
            case ("discard", task_id):
                assert queue.discard(task_id) == (model.pop(task_id, None) is not None)
            case ("priority", task_id, priority):
                assert queue.reprioritize(task_id, priority) == (task_id in model)
                if task_id in model:
                    model[task_id] = (priority, model[task_id][1])
            case ("pop", wanted):
                allowed = [i for i, (_, requires) in model.items() if wanted in (None, requires)]
                expected = min(allowed, key=lambda i: (-model[i][0], i), default=None)
                entry = queue.pop(lambda requires, wanted=wanted: wanted in (None, requires))
                assert (entry.task_id if entry else None) == expected
                model.pop(expected, None)
        assert len(queue) == len(model)


def test_changing_priorities_for_ever_keeps_the_heap_small() -> None:
    queue = TaskQueue()
    for task_id in range(10):
        queue.push(PendingEntry(task_id, 0, STATIC))
    for step in range(10_000):
        queue.reprioritize(step % 10, step)
    assert sum(len(heap) for heap in queue._heaps.values()) < 100


def _pop(queue: TaskQueue) -> int | None:
    entry = queue.pop(_any)
    return entry.task_id if entry else None
