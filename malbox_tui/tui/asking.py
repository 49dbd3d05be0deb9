"""What is asked of samples as a person writes it in a dialog, and what comes of it."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

import msgspec

from malbox_tui.model.profile import AUTO
from malbox_tui.model.submission import SubmissionOptions
from malbox_tui.model.task import HOST_ONLY_TYPES, RequirementClass, RunOptions

ANY = "any"
"""In place of a platform: whichever machine there is."""
USUAL_PRIORITY = SubmissionOptions().priority
MOST_PRIORITY = 1_000_000
YES, NO = frozenset({"yes", "y"}), frozenset({"no", "n", ""})


@dataclass(frozen=True, slots=True)
class Asked:
    """`platform`: of the machine that samples run in, `ANY`, or empty for none. `arguments`: the sample's, quoted as for a shell.
    `memory`: whether its machine's memory is kept, as `YES` and `NO`. `profile`: the name of one; empty: the one for its kind.
    `priority`: a whole number, empty: 1. `again`: whether content is analysed that has been, as `memory`."""

    platform: str = ""
    arguments: str = ""
    memory: str = ""
    profile: str = ""
    priority: str = ""
    again: str = ""


def asked_by(options: SubmissionOptions) -> Asked:
    """How these options are written."""
    requires = options.requires
    return Asked(
        requires.platform or (ANY if requires.needs_machine else ""),
        shlex.join(options.run.arguments),
        "yes" if options.run.memory_dump else "",
        options.profile,
        "" if options.priority == USUAL_PRIORITY else str(options.priority),
        "yes" if options.again else "",
    )


def options_of(asked: Asked, given: SubmissionOptions) -> SubmissionOptions:
    """`given` with what is asked in place of what they say of that. Raises ValueError, with a sentence."""
    requires = _requires(asked.platform.strip(), given.requires)
    run = RunOptions(_arguments(asked.arguments), _is_wanted("Memory", asked.memory))
    profile = "" if asked.profile.strip() == AUTO else asked.profile.strip()
    if run != RunOptions() and not profile and not requires.needs_machine:
        raise ValueError(f"Arguments and memory are of samples that run in a machine. Say in which: linux, windows or {ANY}.")
    priority, again = _priority(asked.priority.strip()), _is_wanted("Again", asked.again)
    return msgspec.structs.replace(given, requires=requires, run=run, profile=profile, priority=priority, again=again)


def _priority(text: str) -> int:
    try:
        priority = int(text) if text else USUAL_PRIORITY
    except ValueError:
        priority = MOST_PRIORITY + 1
    if abs(priority) > MOST_PRIORITY:
        raise ValueError(f"Priority: write a whole number between {-MOST_PRIORITY} and {MOST_PRIORITY}, or nothing.")
    return priority


def _requires(platform: str, given: RequirementClass) -> RequirementClass:
    requires = msgspec.structs.replace(given, platform=None if platform in ("", ANY) else platform)
    if platform and requires.task_type in HOST_ONLY_TYPES:
        return msgspec.structs.replace(requires, task_type="dynamic")
    if not platform and requires.task_type == "dynamic" and not requires.asks_for_machine:
        return msgspec.structs.replace(requires, task_type="static")
    return requires


def _arguments(text: str) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(text))
    except ValueError:
        raise ValueError("Arguments: a quote is not closed, or a backslash has nothing behind it.") from None


def _is_wanted(what: str, text: str) -> bool:
    word = text.strip().lower()
    if word not in YES | NO:
        raise ValueError(f"{what}: write yes, or nothing; {word} is neither.")
    return word in YES
