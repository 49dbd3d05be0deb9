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
YES, NO = frozenset({"yes", "y"}), frozenset({"no", "n", ""})


@dataclass(frozen=True, slots=True)
class Asked:
    """`platform`: of the machine that samples run in, `ANY`, or empty for none. `arguments`: the sample's, quoted as for a shell.
    `memory`: whether its machine's memory is kept, as `YES` and `NO`. `profile`: the name of one; empty: the one for its kind."""

    platform: str = ""
    arguments: str = ""
    memory: str = ""
    profile: str = ""


def asked_by(options: SubmissionOptions) -> Asked:
    """How these options are written."""
    requires = options.requires
    return Asked(
        requires.platform or (ANY if requires.needs_machine else ""),
        shlex.join(options.run.arguments),
        "yes" if options.run.memory_dump else "",
        options.profile,
    )


def options_of(asked: Asked, given: SubmissionOptions) -> SubmissionOptions:
    """`given` with what is asked in place of what they say of that. Raises ValueError, with a sentence."""
    requires = _requires(asked.platform.strip(), given.requires)
    run = RunOptions(_arguments(asked.arguments), _is_wanted(asked.memory.strip().lower()))
    profile = "" if asked.profile.strip() == AUTO else asked.profile.strip()
    if run != RunOptions() and not profile and not requires.needs_machine:
        raise ValueError(f"Arguments and memory are of samples that run in a machine. Say in which: linux, windows or {ANY}.")
    return msgspec.structs.replace(given, requires=requires, run=run, profile=profile)


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


def _is_wanted(word: str) -> bool:
    if word not in YES | NO:
        raise ValueError(f"Memory: write yes, or nothing; {word} is neither.")
    return word in YES
