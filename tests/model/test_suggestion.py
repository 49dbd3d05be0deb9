"""Which profile is for what a content is, and why."""

from __future__ import annotations

from malbox_tui.model.profile import Profile
from malbox_tui.model.report import Identification
from malbox_tui.model.suggestion import Suggestion, suggestion_for

PROFILES = (Profile(name="documents", kinds=("ole", "ooxml")), Profile(name="all"))


def test_the_profile_for_its_kind_is_suggested_with_its_reason() -> None:
    found = Identification("ole", tags=("office", "macros"))
    expected = Suggestion("documents", "The profile documents is for kind ole.", ("office", "macros"))
    assert suggestion_for(found, PROFILES, "all") == expected


def test_else_the_default_and_that_there_is_none_is_said() -> None:
    assert suggestion_for(Identification("pe"), PROFILES, "all").reason == "No profile is for kind pe; the default is all."
    assert suggestion_for(None, PROFILES) == Suggestion("", "What it is, is not known; there is no default profile.")
