"""Watched folders: `[[watch]]`, one table a folder."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import msgspec

from malbox_tui.config.section import LowerCaseName, PlainName, Seconds, SettingsTable
from malbox_tui.model.archive import ArchiveChoice
from malbox_tui.model.intake import IntakeLabel, Way
from malbox_tui.model.sample import visible
from malbox_tui.model.selection import Selection
from malbox_tui.model.submission import SubmissionOptions
from malbox_tui.model.task import RequirementClass

AbsolutePath = Annotated[
    str,
    msgspec.Meta(
        pattern=r"\A/[^\x00-\x1f\x7f-\x9f]{1,1024}\Z",
        description='the absolute path of a folder, such as "/srv/incoming"',
    ),
]


NamePattern = Annotated[
    str,
    msgspec.Meta(
        pattern=r"\A[^/\x00-\x1f\x7f-\x9f]{1,255}\Z", description='a pattern for names without folders, such as "*.exe"'
    ),
]
PluginOption = Annotated[
    str,
    msgspec.Meta(pattern=r"\A[^=\x00]{1,200}=[^\x00]{0,4096}\Z", description='PLUGIN.KEY=VALUE, such as "strings.min_length=8"'),
]
Owner = Annotated[
    str,
    msgspec.Meta(
        pattern=r"\A(|[^\s\x00-\x1f\x7f-\x9f]([^\x00-\x1f\x7f-\x9f]{0,98}\S)?)\Z",
        description="a name of at most 100 characters",
    ),
]


class Afterwards(StrEnum):
    """What becomes of a file that was taken."""

    LEAVE = "leave"
    MOVE = "move"
    DELETE = "delete"


class WatchedArchives(StrEnum):
    """What is taken of an archive."""

    MEMBERS = "members"
    WHOLE = "whole"


class WatchSettings(SettingsTable, frozen=True, kw_only=True):
    """[[watch]]: one folder whose files become tasks, as long as the engine runs. Write the table once for each folder."""

    path: AbsolutePath
    """The folder; it may come later. No folder is watched twice, and none that lies in another watched one."""
    recursive: bool = False
    """Whether files in the folders below are taken too. Links are never followed."""
    patterns: tuple[NamePattern, ...] = ()
    """Only files of such names are taken; capitals or not is all one. The others stay where they are, and are counted."""
    settle_s: Seconds = 2.0
    """How long the size and the time of a file must have stood still before it is taken, in seconds."""
    afterwards: Afterwards = Afterwards.LEAVE
    """What becomes of a file that was taken. leave: nothing; move: it goes to the folder done in the watched one, and a refused one to
    refused; delete: it is removed once all of it is stored, and a refused one stays."""
    priority: Annotated[int, msgspec.Meta(ge=-1_000_000, le=1_000_000)] = 1
    """Tasks of a higher priority are taken first."""
    again: bool = False
    """Whether content that has a completed task is analysed again."""
    unique: bool = False
    """Whether only content comes in that is not known at all, however its tasks ended."""
    owner: Owner = ""
    """Whom the samples belong to. Left out: nobody."""
    profile: PlainName | None = None
    """The profile of the tasks, whatever their content is. Left out: the one for its kind, or the default."""
    plugins: tuple[PlainName, ...] = ()
    """Run these plugins only, and those that they need, instead of what the profile says."""
    options: tuple[PluginOption, ...] = ()
    """Options of plugins for these tasks, each as PLUGIN.KEY=VALUE."""
    timeout_s: Seconds | None = None
    """How long the plugins, and the sample in its machine, may run, in seconds. Left out: as [analysis] has it."""
    type: LowerCaseName | None = None
    """The task type: "static" or "dynamic". Left out: dynamic where a platform, an architecture, tags or a machine are asked for."""
    platform: LowerCaseName | None = None
    """Run them in a machine of this platform."""
    arch: LowerCaseName | None = None
    """Run them in a machine of this architecture."""
    tags: tuple[PlainName, ...] = ()
    """Run them in a machine with these tags."""
    machine: PlainName | None = None
    """Run them in this machine and no other."""
    archive: WatchedArchives = WatchedArchives.MEMBERS
    """What the samples are where an archive comes in: members, what is in it, or whole, the archive itself."""

    def submission(self) -> SubmissionOptions:
        """What is asked of what comes in, in the name of this watched folder."""
        requires = RequirementClass(platform=self.platform, arch=self.arch, tags=tuple(sorted(set(self.tags))), pin=self.machine)
        task_type = self.type or ("dynamic" if requires.asks_for_machine else "static")
        return SubmissionOptions(
            priority=self.priority,
            timeout_s=self.timeout_s,
            again=self.again,
            unique=self.unique,
            owner=self.owner,
            profile=self.profile or "",
            plugins=self.plugins,
            plugin_options=self.options,
            requires=RequirementClass(task_type, requires.platform, requires.arch, requires.tags, requires.pin),
            stays_static=self.type == "static",
            actor=f"watch:{self.path}",
            origin="a watched folder",
            intake=IntakeLabel(Way.WATCH, visible(self.path)),
        )

    def selection(self) -> Selection:
        """Which files are taken."""
        return Selection(recursive=self.recursive, patterns=self.patterns)

    def archives(self) -> ArchiveChoice:
        """What is to be done with archives."""
        return ArchiveChoice(self.archive is WatchedArchives.MEMBERS)
