"""Profiles: named sets of plugins, with what tasks that have one are asked beside. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from malbox_tui.model.plan import Plan
from malbox_tui.model.task import ChosenBy, ChosenProfile, RequirementClass, Task

AUTO = "auto"
"""What a person writes in place of a name, so that no profile can have it: the one for the kind of the content, or the default."""
_NOTHING_ASKED = RequirementClass().task_type


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """One profile. `plugins`: those that take part, beside what they need; empty: all. `options`: by plugin, over those that it has
    anyway. `required`: the plugins without which its tasks are worth nothing; empty: as without a profile. `kinds`: of content that it
    is chosen for. `timeout_s`, `task_type`, `platform` (None: no say) and `tags` are for tasks that don't ask for such themselves."""

    name: str
    plugins: tuple[str, ...] = ()
    required: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    timeout_s: float | None = None
    task_type: str | None = None
    platform: str | None = None
    tags: tuple[str, ...] = ()
    options: Mapping[str, Mapping[str, str]] = {}

    def requires(self, own: RequirementClass, *, stays_static: bool = False) -> RequirementClass:
        """What its task needs to be served that asks for `own` itself. One that asks for a machine in any way keeps its type, and so
        does a static one that `stays_static`."""
        task_type = own.task_type
        if task_type == _NOTHING_ASKED and not own.asks_for_machine and not stays_static:
            task_type = self.task_type or ("dynamic" if self.platform or self.tags else task_type)
        if not msgspec.structs.replace(own, task_type=task_type, platform=self.platform, tags=self.tags).needs_machine:
            return msgspec.structs.replace(own, task_type=task_type)
        tags = tuple(sorted({*own.tags, *self.tags}))
        return msgspec.structs.replace(own, task_type=task_type, platform=own.platform or self.platform, tags=tags)

    def __str__(self) -> str:
        """What it is, for a person: `for ole, ooxml; file-type, strings; 120 s; windows`."""
        requires = self.requires(RequirementClass())
        parts = (
            f"for {', '.join(self.kinds)}" if self.kinds else "",
            ", ".join(self.plugins) or "all plugins",
            "" if self.timeout_s is None else f"{self.timeout_s:g} s",
            str(requires) if self.task_type or requires.needs_machine else "",
        )
        return "; ".join(part for part in parts if part)

    def kept_out(self, plan: Plan, names: Iterable[str]) -> dict[str, str]:
        """Those of the plugins `names` that it keeps out, each with the reason."""
        return dict.fromkeys(plan.left_out(self.plugins, names), f"The profile {self.name} is without it.")


class Usual(msgspec.Struct, frozen=True):
    """What holds for tasks of which nothing else is asked: how long their plugins may run, and whether a guest is watched for all of
    that time."""

    timeout_s: float
    enforce_timeout: bool


def with_profile(task: Task, profile: Profile | None, by: ChosenBy, kind: str, usual: Usual) -> Task:
    """`task` with this profile (None: with none) in place of what it had. Machines that failed it stay known."""
    had = task.profile or _asked_before_profiles(task)
    chosen = msgspec.structs.replace(had, name="" if profile is None else profile.name, by=by, kind=kind)
    requires = chosen.requires if profile is None else profile.requires(chosen.requires, stays_static=chosen.stays_static)
    enforces = usual.enforce_timeout if chosen.enforce_timeout is None else chosen.enforce_timeout
    return msgspec.structs.replace(
        task,
        type=requires.task_type,
        requires=msgspec.structs.replace(requires, avoid=task.requires.avoid),
        timeout_s=timeout_of(chosen, profile, usual.timeout_s),
        enforce_timeout=enforces and requires.needs_machine,
        profile=chosen,
    )


def _asked_before_profiles(task: Task) -> ChosenProfile:
    """What was asked of a task that was made when there were no profiles, as far as that is still known."""
    return ChosenProfile(
        timeout_s=task.timeout_s,
        enforce_timeout=task.enforce_timeout if task.requires.needs_machine else None,
        requires=msgspec.structs.replace(task.requires, avoid=()),
    )


def timeout_of(chosen: ChosenProfile, profile: Profile | None, timeout_s: float) -> float:
    """How long its plugins may run: as asked of the task itself, else as the profile says, else `timeout_s`."""
    of_profile = None if profile is None else profile.timeout_s
    return next(seconds for seconds in (chosen.timeout_s, of_profile, timeout_s) if seconds is not None)
