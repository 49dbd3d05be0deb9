"""What the options of the command line ask of a submission."""

from __future__ import annotations

import pytest

from malbox_tui.cli.wishes import Wishes
from malbox_tui.model.task import RunOptions


@pytest.mark.parametrize("asked", [None, True, False])
def test_without_a_word_the_configuration_says_whether_a_machine_is_watched_to_the_end(asked: bool | None) -> None:
    assert Wishes(enforce_timeout=asked).submission().enforce_timeout is asked


def test_a_time_limit_is_passed_on_as_it_is_given() -> None:
    assert Wishes(timeout=12.5).submission().timeout_s == 12.5
    assert Wishes().submission().timeout_s is None


def test_arguments_of_the_sample_keep_their_order_and_nothing_reads_them() -> None:
    wishes = Wishes(argument=("--all", "", "a b", "$HOME; rm"), memory=True)
    assert wishes.submission().run == RunOptions(("--all", "", "a b", "$HOME; rm"), memory_dump=True)
    assert Wishes().submission().run == RunOptions()
