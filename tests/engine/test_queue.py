"""The order of the queue, against a plain model of it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from malbox_tui.engine.queue import TaskQueue
from malbox_tui.model.task import RequirementClass
from malbox_tui.ports import PendingEntry

STATIC, WINDOWS = RequirementClass(), RequirementClass(task_type="dynamic", platform="windows")


def test_higher_priority_goes_first_and_equals_go_in_order() -> None:
    queue = TaskQueue()
    for task_id, priority in [(1, 1), (2, 5), (3, 1), (4, 5), (5, -3)]:
        queue.push(PendingEntry(task_id, priority, STATIC))
    assert [_pop(queue) for _ in range(6)] == [2, 4, 1, 3, 5, None]


def test_classes_come_in_the_order_of_their_first_tasks() -> None:
    queue = TaskQueue()
    queue.push(PendingEntry(1, 1, STATIC))
    queue.push(PendingEntry(2, 99, WINDOWS))
    assert _classes(queue) == [WINDOWS, STATIC]
    assert queue.pop(STATIC) == PendingEntry(1, 1, STATIC), "the one that can be served doesn't wait for the other"
    assert _classes(queue) == [WINDOWS]


def test_a_task_of_another_class_keeps_its_priority_and_its_place_by_id() -> None:
    queue = TaskQueue()
    for task_id, priority in [(1, 1), (2, 5), (3, 1)]:
        queue.push(PendingEntry(task_id, priority, STATIC))
    queue.push(PendingEntry(4, 1, WINDOWS))
    assert queue.reclassify(3, WINDOWS)
    assert [queue.pop(WINDOWS), queue.pop(WINDOWS)] == [PendingEntry(3, 1, WINDOWS), PendingEntry(4, 1, WINDOWS)]
    assert [_pop(queue), _pop(queue)] == [2, 1]
    assert not queue.reclassify(3, STATIC), "it is not here"
    assert len(queue) == 0


def test_a_task_that_stays_in_its_class_stays_in_line() -> None:
    queue = TaskQueue()
    queue.push(PendingEntry(1, 1, STATIC))
    line = queue.line(STATIC)
    assert not queue.reclassify(1, STATIC)
    assert queue.line(STATIC) is line


def test_a_class_with_no_task_is_not_there() -> None:
    with pytest.raises(KeyError):
        TaskQueue().pop(STATIC)


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("push"), st.integers(1, 20), st.integers(-2, 2), st.sampled_from([STATIC, WINDOWS])),
            st.tuples(st.just("discard"), st.integers(1, 20)),
            st.tuples(st.just("priority"), st.integers(1, 20), st.integers(-2, 2)),
            st.tuples(st.just("end"), st.integers(1, 20)),
            st.tuples(st.just("forget"), st.integers(1, 20)),
            st.tuples(st.just("pop"), st.sampled_from([STATIC, WINDOWS, None])),
        ),
        max_size=200,
    )
)
def test_any_sequence_of_operations_agrees_with_a_sorted_list(operations: list[tuple]) -> None:  # type: ignore[type-arg]
    queue, model = TaskQueue(), dict[int, tuple[int, RequirementClass]]()
    to_come = dict[int, int | None]()
    for operation in operations:
        match operation:
            case ("push", task_id, priority, requires):
                queue.push(PendingEntry(task_id, priority, requires))
                model.pop(task_id, None)
                if (told := to_come.pop(task_id, priority)) is not None:
                    model[task_id] = (told, requires)
            case ("end", task_id):
                queue.end(task_id)
                to_come.pop(task_id, None)
                if model.pop(task_id, None) is None:
                    to_come[task_id] = None
            case ("forget", task_id):
                queue.forget(task_id)
                to_come.pop(task_id, None)
            case ("discard", task_id):
                assert queue.discard(task_id) == (model.pop(task_id, None) is not None)
            case ("priority", task_id, priority):
                assert queue.reprioritize(task_id, priority) == (task_id in model)
                if task_id in model:
                    model[task_id] = (priority, model[task_id][1])
                elif to_come.get(task_id, 0) is not None:
                    to_come[task_id] = priority
            case ("pop", wanted):
                allowed = [i for i, (_, requires) in model.items() if wanted in (None, requires)]
                expected = min(allowed, key=lambda i: (-model[i][0], i), default=None)
                classes = [requires for requires in _classes(queue) if wanted in (None, requires)]
                assert (queue.pop(classes[0]).task_id if classes else None) == expected
                model.pop(expected, None)
        assert len(queue) == len(model)
        in_order = sorted(model, key=lambda i: (-model[i][0], i))
        assert [queue.position(task_id) for task_id in in_order] == list(range(1, len(model) + 1))
    assert queue.position(99) is None


def test_many_loaded_at_once_stand_as_if_pushed_one_by_one() -> None:
    entries = [PendingEntry(task_id, task_id % 3, WINDOWS if task_id % 2 else STATIC) for task_id in range(100)]
    loaded, pushed = TaskQueue(), TaskQueue()
    loaded.load(entries)
    for entry in entries:
        pushed.push(entry)
    assert [_pop(loaded) for _ in range(101)] == [_pop(pushed) for _ in range(101)]


def test_changing_priorities_for_ever_keeps_the_queue_small() -> None:
    queue = TaskQueue()
    for task_id in range(10):
        queue.push(PendingEntry(task_id, 0, STATIC))
    for step in range(10_000):
        queue.reprioritize(step % 10, step)
    assert sum(len(places) for places in queue._lists.values()) == 10


def _classes(queue: TaskQueue) -> list[RequirementClass]:
    firsts = queue.firsts()
    assert [place for place, _ in firsts] == [queue.first(requires) for _, requires in firsts]
    return [requires for _, requires in sorted(firsts, key=lambda first: first[0])]


def _pop(queue: TaskQueue) -> int | None:
    classes = _classes(queue)
    return queue.pop(classes[0]).task_id if classes else None
