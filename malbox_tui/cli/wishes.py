"""What is asked of the samples on the command line: the options that `analyze` and the console share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

import msgspec
from cyclopts import Parameter
from cyclopts.validators import Number

from malbox_tui.cli.options import FLAG, enum_value, whole_number
from malbox_tui.model.archive import ArchiveChoice
from malbox_tui.model.errors import MalboxError
from malbox_tui.model.intake import IntakeLabel
from malbox_tui.model.profile import AUTO
from malbox_tui.model.sample import visible
from malbox_tui.model.selection import IntakeChoice, Selection
from malbox_tui.model.submission import SubmissionOptions
from malbox_tui.model.task import RequirementClass, RunOptions


class ArchiveUse(StrEnum):
    """What is taken of an archive."""

    MEMBERS = "members"
    WHOLE = "whole"


@Parameter(name="*", group="Options of the tasks")
@dataclass(frozen=True, slots=True)
class Wishes:
    """How the samples are to be analysed."""

    again: Annotated[bool, FLAG] = False
    """Analyse content again that has a completed task."""
    unique: Annotated[bool, FLAG] = False
    """Take no content that is known at all, however its tasks ended."""
    priority: Annotated[int, Parameter(metavar="N", converter=whole_number, validator=Number(gte=-1_000_000, lte=1_000_000))] = 1
    """Tasks of a higher priority are taken first."""
    timeout: Annotated[float | None, Parameter(metavar="SECONDS", validator=Number(gt=0, lte=7 * 86400))] = None
    """How many seconds the plugins, and the sample in its machine, may take together, instead of what the configuration says. Above 0
    and below `critical_timeout_s`."""
    enforce_timeout: Annotated[bool | None, Parameter(negative="--no-enforce-timeout", show_default=False)] = None
    """Watch the machine for the whole timeout, also when the sample ends before. Only for samples that run in a machine."""
    profile: Annotated[str, Parameter(metavar="NAME", show_default=False)] = ""
    """Give the tasks this profile, whatever their content is, instead of the one for its kind. `malbox-tui profiles` lists them."""
    plugins: Annotated[tuple[str, ...], Parameter(metavar="NAME,…", negative=(), show_default=False)] = ()
    """Run these plugins only, and those that they need, instead of what the profile says. `malbox-tui plugin list` lists them."""
    option: Annotated[tuple[str, ...], Parameter(metavar="K=V", negative=(), show_default=False)] = ()
    """Give a plugin this option for these tasks, as `PLUGIN.KEY=VALUE`, or `KEY=VALUE` where one plugin alone has it. May be given more
    than once."""
    owner: Annotated[str, Parameter(metavar="NAME", show_default=False)] = ""
    """Whom the samples belong to. `malbox-tui tasks --owner NAME` lists them."""
    type: Annotated[str | None, Parameter(metavar="TYPE", show_default=False)] = None
    """The task type: `static` (plugins on this host only) or `dynamic` (in a machine), whatever a profile says. Without it:
    dynamic where a machine is asked for, by you or by the profile."""
    platform: Annotated[str | None, Parameter(metavar="NAME")] = None
    """Run it in a machine of this platform, such as `linux` or `windows`."""
    arch: Annotated[str | None, Parameter(metavar="NAME")] = None
    """Run it in a machine of this architecture, such as `x64`; an x86 task may use an x64 machine."""
    tag: Annotated[tuple[str, ...], Parameter(metavar="TAG", negative=(), show_default=False)] = ()
    """Run it in a machine with this tag; may be given more than once."""
    tags: Annotated[tuple[str, ...], Parameter(metavar="TAG,…", negative=(), show_default=False)] = ()
    """Run it in a machine with all of these tags."""
    machine: Annotated[str | None, Parameter(metavar="NAME")] = None
    """Run it in this machine and no other."""
    argument: Annotated[
        tuple[str, ...], Parameter(metavar="TEXT", negative=(), show_default=False, allow_leading_hyphen=True)
    ] = ()
    """Give the sample this argument when it is started in its machine, as it is: no shell reads it. May be given more than once, in
    order."""
    memory: Annotated[bool, FLAG] = False
    """Keep the memory of the machine, as it is when the sample has ended or its time is over."""
    hold: Annotated[bool, FLAG] = False
    """Keep tasks that nothing in the configuration could serve, instead of refusing them."""

    archive: Annotated[ArchiveUse, Parameter(name_transform=enum_value)] = ArchiveUse.MEMBERS
    """What the samples are where an archive is given: `members`, what is in it, or `whole`, the archive itself."""
    password: Annotated[
        tuple[str, ...], Parameter(metavar="TEXT", negative=(), show_default=False, allow_leading_hyphen=True)
    ] = ()
    """Try this password on archives, before those that are usual. May be given more than once."""

    recursive: Annotated[bool, Parameter(name="--recursive", negative="--no-recursive")] = True
    """Go into the folders in a folder that is given."""
    pattern: Annotated[
        tuple[str, ...], Parameter(metavar="GLOB", negative=(), show_default=False, allow_leading_hyphen=True)
    ] = ()
    """Take samples of such names only, in archives too, such as `*.exe`; capitals or not is all one. May be given more than once."""
    max: Annotated[int | None, Parameter(metavar="N", converter=whole_number, validator=Number(gte=1))] = None
    """Take so many samples at most."""

    def choice(self) -> IntakeChoice:
        """What is asked of the way in. Raises `MalboxError` for what makes no sense."""
        if self.password and self.archive is ArchiveUse.WHOLE:
            raise MalboxError("Passwords are for archives that are opened, and --archive whole opens none.")
        for pattern in self.pattern:
            if not pattern or "/" in pattern:
                raise MalboxError(f"The pattern '{visible(pattern)}' fits no name: patterns are for names without folders.")
        selection = Selection(recursive=self.recursive, patterns=self.pattern, limit=self.max)
        return IntakeChoice(ArchiveChoice(self.archive is ArchiveUse.MEMBERS, self.password), selection)

    def submission(self, intake: IntakeLabel = IntakeLabel()) -> SubmissionOptions:  # noqa: B008 - immutable
        """As a submission has them; `intake` is what its account says of it. Raises `MalboxError` for what can be read in no way."""
        tags = tuple(sorted({*self.tag, *_listed("tags", self.tags)}))
        requires = RequirementClass(platform=self.platform, arch=self.arch, tags=tags, pin=self.machine)
        task_type = self.type or ("dynamic" if requires.asks_for_machine else "static")
        options = SubmissionOptions(
            priority=self.priority,
            timeout_s=self.timeout,
            enforce_timeout=self.enforce_timeout,
            again=self.again,
            hold=self.hold,
            stays_static=self.type == "static",
            intake=intake,
            profile="" if self.profile == AUTO else self.profile,
            plugins=_listed("plugins", self.plugins),
            plugin_options=self.option,
            owner=self.owner,
            unique=self.unique,
            run=RunOptions(self.argument, self.memory),
            requires=RequirementClass(task_type, requires.platform, requires.arch, requires.tags, requires.pin),
        )
        try:
            msgspec.json.encode(options)
        except UnicodeEncodeError:
            raise MalboxError("An option holds bytes that are no UTF-8 text.") from None
        return options


def _listed(option: str, given: Sequence[str]) -> tuple[str, ...]:
    """What comma-separated lists name, in order, each once. Raises `MalboxError` for a name that is left empty."""
    names = [name.strip() for listed in given for name in listed.split(",")]
    if not all(names):
        raise MalboxError(f"--{option} is a list of names with commas between them; one of them is empty.")
    return tuple(dict.fromkeys(names))
