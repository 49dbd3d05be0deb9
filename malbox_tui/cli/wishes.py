"""What is asked of the samples on the command line: the options that `analyze` and the console share."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from malbox_tui.cli.options import FLAG, enum_value, whole_number
from malbox_tui.model.archive import ArchiveChoice
from malbox_tui.model.intake import IntakeLabel
from malbox_tui.model.profile import AUTO
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
    priority: Annotated[int, Parameter(metavar="N", converter=whole_number, validator=Number(gte=-1_000_000, lte=1_000_000))] = 1
    """Tasks of a higher priority are taken first."""
    timeout: Annotated[float | None, Parameter(metavar="SECONDS", validator=Number(gt=0, lte=7 * 86400))] = None
    """How many seconds the plugins, and the sample in its machine, may take together, instead of what the configuration says. Above 0
    and below `critical_timeout_s`."""
    enforce_timeout: Annotated[bool | None, Parameter(negative="--no-enforce-timeout", show_default=False)] = None
    """Watch the machine for the whole timeout, also when the sample ends before. Only for samples that run in a machine."""
    profile: Annotated[str, Parameter(metavar="NAME", show_default=False)] = ""
    """Give the tasks this profile, whatever their content is, instead of the one for its kind. `malbox-tui profiles` lists them."""
    type: Annotated[str | None, Parameter(metavar="TYPE", show_default=False)] = None
    """The task type: `static` (plugins on this host only) or `dynamic` (in a machine), whatever a profile says. Without it:
    dynamic where a machine is asked for, by you or by the profile."""
    platform: Annotated[str | None, Parameter(metavar="NAME")] = None
    """Run it in a machine of this platform, such as `linux` or `windows`."""
    arch: Annotated[str | None, Parameter(metavar="NAME")] = None
    """Run it in a machine of this architecture, such as `x64`; an x86 task may use an x64 machine."""
    tag: Annotated[tuple[str, ...], Parameter(metavar="TAG", negative=(), show_default=False)] = ()
    """Run it in a machine with this tag; may be given more than once."""
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

    def archives(self) -> ArchiveChoice:
        """What is to be done with archives."""
        return ArchiveChoice(self.archive is ArchiveUse.MEMBERS, self.password)

    def submission(self, intake: IntakeLabel = IntakeLabel()) -> SubmissionOptions:  # noqa: B008 - immutable
        """As a submission has them; `intake` is what its account says of it."""
        requires = RequirementClass(platform=self.platform, arch=self.arch, tags=tuple(sorted(set(self.tag))), pin=self.machine)
        task_type = self.type or ("dynamic" if requires.asks_for_machine else "static")
        return SubmissionOptions(
            priority=self.priority,
            timeout_s=self.timeout,
            enforce_timeout=self.enforce_timeout,
            again=self.again,
            hold=self.hold,
            stays_static=self.type == "static",
            intake=intake,
            profile="" if self.profile == AUTO else self.profile,
            run=RunOptions(self.argument, self.memory),
            requires=RequirementClass(task_type, requires.platform, requires.arch, requires.tags, requires.pin),
        )
