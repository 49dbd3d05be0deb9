"""What profiles must not say although each of their values is of the right kind."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence

from malbox_tui.config.faults import Fault
from malbox_tui.config.profiles import ProfileSettings
from malbox_tui.config.settings import Settings
from malbox_tui.model.errors import ConfigError
from malbox_tui.model.kinds import KINDS
from malbox_tui.model.profile import AUTO
from malbox_tui.model.sample import visible
from malbox_tui.model.task import HOST_ONLY_TYPES


def profile_faults(profiles: Sequence[tuple[str, ProfileSettings]], critical_timeout_s: float | None) -> Iterator[Fault]:
    """What the profiles, each with its place in the file, must not say. `critical_timeout_s`: None where that has a fault itself."""
    named: dict[str, str] = {}
    by_kind: dict[str, str] = {}
    for key, profile in profiles:
        for fault in _own_faults(key, profile, critical_timeout_s):
            yield Fault(fault.key, f"profile {profile.name}: {fault.problem}")
        if (first := named.setdefault(profile.name, key)) != key:
            yield Fault(f"{key}.name", f"profile {profile.name}: {first} already has this name. Choose another.")
        for kind in dict.fromkeys(profile.kinds):
            if kind not in KINDS:
                near = difflib.get_close_matches(kind, KINDS, n=1, cutoff=0.5) or sorted(KINDS)
                hint = f"did you mean {near[0]!r}?" if len(near) == 1 else f"there are {', '.join(near)}."
                yield Fault(f"{key}.kinds", f"profile {profile.name}: there is no kind {visible(kind)!r}; {hint}")
            if (other := by_kind.setdefault(kind, profile.name)) != profile.name:
                problem = f"{kind!r} is a kind of the profile {other} too. Take it out of one of them."
                yield Fault(f"{key}.kinds", f"profile {profile.name}: {problem}")


def check_denied(settings: Settings, config_file: str = "configuration") -> None:
    """Raises `ConfigError` when a worker group keeps out a plugin that a profile requires."""
    for group in settings.groups():
        for profile in settings.profiles:
            if denied := sorted(group.plugins_denied.intersection(profile.required)):
                problem = f"{denied[0]!r} is required by the profile {profile.name}; take it out of one of them."
                raise ConfigError(config_file, f"workers ({group.name}): plugin_restrictions.deny", problem)


def _own_faults(key: str, profile: ProfileSettings, critical_timeout_s: float | None) -> Iterator[Fault]:
    if profile.name == AUTO:
        yield Fault(f"{key}.name", f'"{AUTO}" leaves the choice to the kind of the content. Choose another name.')
    for list_name, names in (("required", profile.required), ("options", tuple(profile.options))):
        for name in names:
            if profile.plugins and name not in profile.plugins:
                yield Fault(f"{key}.{list_name}", f"{name!r} is not among its plugins. Add it there, or take it out here.")
    if profile.type in HOST_ONLY_TYPES and (profile.platform or profile.tags):
        asked = "platform" if profile.platform else "tags"
        yield Fault(f"{key}.{asked}", f'a {profile.type} task needs no machine. Make type "dynamic", or leave the key out.')
    if profile.timeout_s is not None and critical_timeout_s is not None and profile.timeout_s >= critical_timeout_s:
        limit = f"{profile.timeout_s:g} is not below analysis.critical_timeout_s, which is {critical_timeout_s:g}"
        yield Fault(f"{key}.timeout_s", f"{limit}. Lower the one or raise the other.")
