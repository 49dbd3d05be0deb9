"""`malbox-tui profiles`: the profiles of the configuration, and what each says."""

from __future__ import annotations

from typing import Annotated, Any

from malbox_tui.cli.options import FLAG, GlobalOptions
from malbox_tui.cli.output import tell, write_record
from malbox_tui.cli.plain_table import write_table
from malbox_tui.cli.text import sentence
from malbox_tui.model.profile import Profile
from malbox_tui.model.task import RequirementClass

_TITLES = ("profile", "for kinds", "plugins", "required", "options", "time limit", "served as")


def profiles(*, json: Annotated[bool, FLAG] = False, options: GlobalOptions | None = None) -> int:
    """List the profiles of the configuration: which plugins they have and for which kinds of content each is chosen.

    Exit code 0, also when there is none; 2: wrong usage, or something is wrong with the configuration.

    Parameters
    ----------
    json
        Print one JSON object a profile.
    """
    settings = (options or GlobalOptions()).source.load()
    default = settings.analysis.profile
    found = [profile.profile() for profile in settings.profiles]
    if json:
        for profile in found:
            write_record(_record(profile, profile.name == default))
    elif found:
        write_table(_TITLES, [_row(profile, profile.name == default) for profile in found])
    else:
        tell("There is no profile. [[profiles]] in the configuration makes one; `malbox-tui config init` writes an example.")
    return 0


def _row(profile: Profile, is_default: bool) -> list[str]:
    options = (f"{name}.{key}={value}" for name, given in profile.options.items() for key, value in given.items())
    requires = profile.requires(RequirementClass())
    cells = (
        f"{profile.name} (default)" if is_default else profile.name,
        ", ".join(profile.kinds) or "-",
        ", ".join(profile.plugins) or "all",
        ", ".join(profile.required) or "-",
        ", ".join(options) or "-",
        "-" if profile.timeout_s is None else f"{profile.timeout_s:g} s",
        str(requires) if profile.task_type or requires.needs_machine else "-",
    )
    return [sentence(cell) for cell in cells]


def _record(profile: Profile, is_default: bool) -> dict[str, Any]:
    return {
        "record": "profile",
        "name": profile.name,
        "is_default": is_default,
        "kinds": list(profile.kinds),
        "plugins": list(profile.plugins),
        "required": list(profile.required),
        "options": {name: dict(given) for name, given in profile.options.items()},
        "timeout_s": profile.timeout_s,
        "type": profile.task_type,
        "platform": profile.platform,
        "tags": list(profile.tags),
    }
