"""How values are written, and that what was written in other ways is still read."""

from __future__ import annotations

import msgspec
import pytest

from malbox_tui.model.task import RequirementClass, Task
from malbox_tui.store.rows import requirement_class, row_of_task, task_of
from tests.store.builders import NOON


@pytest.mark.parametrize(
    "requires",
    [
        RequirementClass(),
        RequirementClass("dynamic", "windows", "x64", ("office",), "win10-1", ("win10-2",)),
        RequirementClass(pin=""),
    ],
)
def test_demands_are_read_as_they_were_written_by_this_version_and_the_ones_before(requires: RequirementClass) -> None:
    row = row_of_task(Task(id=1, sha256="a", requires=requires, created_at=NOON, stage_since=NOON))
    assert task_of(row).requires == requires
    assert requirement_class(msgspec.json.encode(requires).decode()) == requires


def test_values_are_of_the_types_that_sqlite_takes_without_an_adapter() -> None:
    row = row_of_task(Task(id=1, sha256="a", created_at=NOON, stage_since=NOON))
    assert {type(value) for value in row} <= {int, float, str, bytes, bool, type(None)}
