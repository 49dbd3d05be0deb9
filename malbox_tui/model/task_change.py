"""What a waiting task becomes when a person changes what it asks for. Pure."""

from __future__ import annotations

import msgspec

from malbox_tui.model.commands import ChangeTasks
from malbox_tui.model.profile import Profile
from malbox_tui.model.task import HOST_ONLY_TYPES, RequirementClass, Task


def changed_task(task: Task, change: ChangeTasks, profile: Profile | None) -> Task:
    """`task`, whose profile is `profile`, after `change`. What is changed by hand goes before the profile, and is what the task asks
    for itself from now on. Machines that failed it stay known."""
    own = task.requires if task.profile is None else task.profile.requires
    own = changed_class(msgspec.structs.replace(own, avoid=()), change)
    requires = own if profile is None else changed_class(profile.requires(own), change)
    timeout_s = task.timeout_s if change.timeout_s is None else change.timeout_s
    chosen = task.profile
    if chosen is not None:
        asked_s = chosen.timeout_s if change.timeout_s is None else change.timeout_s
        chosen = msgspec.structs.replace(chosen, requires=own, timeout_s=asked_s)
    return msgspec.structs.replace(
        task,
        type=requires.task_type,
        requires=msgspec.structs.replace(requires, avoid=task.requires.avoid),
        timeout_s=timeout_s,
        profile=chosen,
    )


def changed_class(own: RequirementClass, change: ChangeTasks) -> RequirementClass:
    """The requirement class after a change. A host-only type asks for no machine any more, and who asks for one, is dynamic."""
    tags = own.tags if change.tags is None else tuple(sorted(set(change.tags)))
    if (
        change.task_type is not None
        and change.task_type in HOST_ONLY_TYPES
        and not (change.platform or change.arch or change.tags)
    ):
        return RequirementClass(task_type=change.task_type)
    requires = RequirementClass(
        task_type=change.task_type or own.task_type,
        platform=own.platform if change.platform is None else change.platform or None,
        arch=own.arch if change.arch is None else change.arch or None,
        tags=tags,
        pin=own.pin,
    )
    if change.task_type is None and requires.task_type in HOST_ONLY_TYPES and requires.asks_for_machine:
        return msgspec.structs.replace(requires, task_type="dynamic")
    return requires
