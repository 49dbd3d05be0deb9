"""Which profile a content would have by what it is, and why. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from malbox_tui.model.report import Identification


class ForKinds(Protocol):
    """A profile, as far as it is chosen by what a content is."""

    @property
    def name(self) -> str:
        """What it is called."""
        ...

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of content that it is for."""
        ...


class Suggestion(msgspec.Struct, frozen=True):
    """A profile (empty: none), why, in a sentence, and short words for what the content is like."""

    profile: str
    reason: str
    tags: tuple[str, ...] = ()


def suggestion_for(found: Identification | None, profiles: Sequence[ForKinds], default: str = "") -> Suggestion:
    """What a content that was identified so would best be analysed with; None: nobody knows what it is."""
    tags = () if found is None else found.tags
    by_kind = None if found is None else next((profile for profile in profiles if found.kind in profile.kinds), None)
    if by_kind is not None and found is not None:
        return Suggestion(by_kind.name, f"The profile {by_kind.name} is for kind {found.kind}.", tags)
    what = "What it is, is not known" if found is None else f"No profile is for kind {found.kind}"
    return Suggestion(default, f"{what}; {f'the default is {default}' if default else 'there is no default profile'}.", tags)
