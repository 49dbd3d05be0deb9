"""What a person says of a watched folder on the command line, and the folder that comes of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from malbox_tui.cli.options import FLAG, enum_value, whole_number
from malbox_tui.config.watch_tables import table_faults
from malbox_tui.config.watching import Afterwards, WatchedArchives
from malbox_tui.model.errors import MalboxError
from malbox_tui.model.watching import WatchSpec

Word = Annotated[str | None, Parameter(metavar="NAME", show_default=False)]


@Parameter(name="*", group="The folder")
@dataclass(frozen=True, slots=True)
class WatchWords:
    """The keys of `[[watch]]`, as options."""

    recursive: Annotated[bool, FLAG] = False
    """Take files in the folders below, too."""
    pattern: Annotated[
        tuple[str, ...], Parameter(metavar="GLOB", negative=(), show_default=False, allow_leading_hyphen=True)
    ] = ()
    """Take files of such names only, such as `*.exe`; capitals or not is all one. May be given more than once."""
    settle: Annotated[float, Parameter(metavar="SECONDS")] = 2.0
    """How long the size and the time of a file must have stood still."""
    afterwards: Annotated[Afterwards, Parameter(name_transform=enum_value)] = Afterwards.LEAVE
    """What becomes of a file that was taken: `leave`, `move` (to done/ and refused/ in the folder) or `delete` (what is stored)."""
    priority: Annotated[int, Parameter(metavar="N", converter=whole_number)] = 1
    """Tasks of a higher priority are taken first."""
    again: Annotated[bool, FLAG] = False
    """Analyse content again that has a completed task."""
    unique: Annotated[bool, FLAG] = False
    """Take no content that is known at all, however its tasks ended."""
    owner: Annotated[str, Parameter(metavar="NAME", show_default=False)] = ""
    """Whom the samples belong to."""
    profile: Word = None
    """Give the tasks this profile, whatever their content is."""
    plugin: Annotated[tuple[str, ...], Parameter(metavar="NAME", negative=(), show_default=False)] = ()
    """Run this plugin, and those that it needs, instead of what the profile says; may be given more than once."""
    option: Annotated[tuple[str, ...], Parameter(metavar="K=V", negative=(), show_default=False)] = ()
    """Give a plugin this option, as `PLUGIN.KEY=VALUE`; may be given more than once."""
    timeout: Annotated[float | None, Parameter(metavar="SECONDS", show_default=False)] = None
    """How many seconds the plugins, and the sample in its machine, may take together."""
    type: Annotated[str | None, Parameter(metavar="TYPE", show_default=False)] = None
    """The task type: `static` or `dynamic`."""
    platform: Word = None
    """Run them in a machine of this platform."""
    arch: Word = None
    """Run them in a machine of this architecture."""
    tag: Annotated[tuple[str, ...], Parameter(metavar="TAG", negative=(), show_default=False)] = ()
    """Run them in a machine with this tag; may be given more than once."""
    machine: Word = None
    """Run them in this machine and no other."""
    archive: Annotated[WatchedArchives, Parameter(name_transform=enum_value)] = WatchedArchives.MEMBERS
    """What the samples are where an archive comes in: `members`, what is in it, or `whole`, the archive itself."""

    def watch(self, path: str) -> WatchSpec:
        """The folder that is to be watched. Raises `MalboxError` when none can be so."""
        found = WatchSpec(
            path=absolute(path),
            recursive=self.recursive,
            patterns=self.pattern,
            settle_s=self.settle,
            afterwards=self.afterwards.value,
            priority=self.priority,
            again=self.again,
            unique=self.unique,
            owner=self.owner,
            profile=self.profile,
            plugins=self.plugin,
            options=self.option,
            timeout_s=self.timeout,
            type=self.type,
            platform=self.platform,
            arch=self.arch,
            tags=self.tag,
            machine=self.machine,
            archive=self.archive.value,
        )
        for fault in table_faults(found):
            raise MalboxError(f"{fault.key}: {fault.problem}")
        return found


def absolute(path: str) -> str:
    """The path from the root of this host, links on the way left as they are."""
    return str(Path(path).absolute())
