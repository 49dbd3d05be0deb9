"""What a plugin says that a content is, read with bounds: it may have come from the content."""

from __future__ import annotations

import json

import pytest

from malbox_tui.model.report import Identification
from malbox_tui.plugins.replies import BadResult, identification_of


def read(**values: object) -> Identification:
    return identification_of(json.dumps({"kind": "pe", **values}).encode())


def test_tags_are_cut_in_number_and_length_and_stand_once() -> None:
    found = read(tags=["x64", "", "x64", "a" * 100, *(f"t{number}" for number in range(100))])
    assert found.tags[:2] == ("x64", "a" * 32)
    assert len(found.tags) == 14
    assert read().tags == ()


@pytest.mark.parametrize("tags", ["x64", [1], {"a": 1}, [["x64"]], None])
def test_tags_that_are_none_are_a_bad_result(tags: object) -> None:
    with pytest.raises(BadResult):
        read(tags=tags)
