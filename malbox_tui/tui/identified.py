"""What the first files of a drop were found to be, in words, and the profile that is suggested for them. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from malbox_tui.model.kinds import OPENED_KINDS
from malbox_tui.model.overview import ProfileView
from malbox_tui.model.report import Identification
from malbox_tui.model.suggestion import suggestion_for
from malbox_tui.tui.text import first_fitting, sentence

SHOWN_CLASSES = 4
SHOWN_TAGS = 8
"""Of more the most frequent ones are shown."""
SHOWN_CHARACTERS = 40
"""A word of a plugin is not shown longer."""


@dataclass(frozen=True, slots=True)
class Identified:
    """How far it has come: what each of the first files is (None: not known), which profiles there are to suggest, and whether no more
    are looked into. `problem` is why none can be; empty: they can."""

    found: tuple[Identification | None, ...] = ()
    profiles: tuple[ProfileView, ...] = ()
    problem: str = ""
    done: bool = False


@dataclass(frozen=True, slots=True)
class Suggested:
    """The profile that suits most of them (empty: none does), and why, in a sentence. `suits`: how many each suits, the most first."""

    profile: str
    reason: str
    suits: tuple[tuple[str, int], ...]

    @property
    def phrases(self) -> tuple[str, ...]:
        """The reason, with how many it holds for and what the others would have, and without that."""
        own = f"{dict(self.suits)[self.profile]} of {sum(count for _, count in self.suits)}"
        others = ", ".join(f"{profile or 'none'} {count}" for profile, count in self.suits if profile != self.profile)
        reason = self.reason.removesuffix(".")
        return (f"{reason} ({own}; {others}).", f"{reason} ({own}).", self.reason) if others else (self.reason,)


def suggested(identified: Identified, *, opens_archives: bool) -> Suggested | None:
    """None: there are no profiles, or nothing is known that could have one. Archives that are opened have none."""
    default = next((profile.name for profile in identified.profiles if profile.is_default), "")
    kinds = [one for one in identified.found if one is not None and not (opens_archives and one.kind in OPENED_KINDS)]
    if not kinds or not identified.profiles:
        return None
    suggestions = [
        suggestion_for(msgspec.structs.replace(one, kind=_short(one.kind)), identified.profiles, default) for one in kinds
    ]
    suits = _most_first(one.profile for one in suggestions)
    best = next((profile for profile, _ in suits if profile), "")
    reasons = _most_first(one.reason for one in suggestions if one.profile == best)
    return Suggested(best, reasons[0][0], suits)


def identified_rows(
    identified: Identified, files: int, *, opens_archives: bool, cells: int | None = None
) -> list[tuple[str, str]]:
    """What there is to say of them, each with its label. `files`: how many would come in; `cells`: into so many each is to fit, as far
    as it can be shortened (None: it need not)."""
    if identified.problem:
        return [("identified", f"not before they are added: {sentence(identified.problem).plain}")]
    looked_into = len(identified.found)
    label = f"first {looked_into}" if identified.done and looked_into < files else "identified"
    rows = [(label, [_classes(identified, shown) for shown in range(SHOWN_CLASSES, 0, -1)])]
    tags = [tag for tag, _ in _most_first(_short(tag) for one in identified.found if one is not None for tag in one.tags)]
    if tags:
        rows.append(
            ("tags", [", ".join(tags[:shown]) + (" …" if len(tags) > shown else "") for shown in range(SHOWN_TAGS, 0, -1)])
        )
    if (best := suggested(identified, opens_archives=opens_archives)) is not None:
        rows.append(("suggested", list(best.phrases)))
    safe = [(label, [sentence(phrase).plain for phrase in phrases]) for label, phrases in rows]
    return [(label, phrases[0] if cells is None else first_fitting(phrases, cells)) for label, phrases in safe]


def _classes(identified: Identified, shown: int) -> str:
    known = [one for one in identified.found if one is not None]
    classes = _most_first(" ".join(_short(word) for word in (one.kind, one.platform, one.arch) if word) for one in known)
    said = [f"{count} {name}" for name, count in classes[:shown]]
    more, unknown = sum(count for _, count in classes[shown:]), len(identified.found) - len(known)
    said += [f"{more} of other kinds"] if more else []
    said += [f"{unknown} not known"] if unknown else []
    if not identified.done:
        return f"{', '.join(said)} so far" if said else "they are looked into…"
    return ", ".join(said) or "nothing"


def _most_first(words: Iterable[str]) -> tuple[tuple[str, int], ...]:
    return tuple(sorted(Counter(words).items(), key=lambda entry: (-entry[1], entry[0])))


def _short(word: str) -> str:
    return word if len(word) <= SHOWN_CHARACTERS else f"{word[:SHOWN_CHARACTERS]}…"
