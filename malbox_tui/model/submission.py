"""What comes in, and the account of it: accepted, duplicate of, refused because. Nothing is silent."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import msgspec

from malbox_tui.model.intake import IntakeLabel
from malbox_tui.model.sample import SampleName
from malbox_tui.model.task import RequirementClass, RunOptions, TaskState

STORE_FAILED = "store_failed"
LOW_DISK = "low_disk"
NOT_KEPT = frozenset({STORE_FAILED, LOW_DISK})
"""Codes of refusals that are no fault of what was offered: the same can be taken another time."""
LEFT_OUT = "left_out"
"""The code of refusals of what wasn't asked for, by name, number or place."""


class Refusal(msgspec.Struct, frozen=True):
    """Why something was not taken: `code` is stable for scripts, `reason` is a sentence for a person. `things`: how many it is said
    of."""

    code: str
    reason: str
    things: int = 1


class OpenedArchive(msgspec.Struct, frozen=True, kw_only=True):
    """An archive whose members were offered in its place: its content's sum and size (of one in another one: empty and 0, not known),
    and in words what is in it."""

    sha256: str
    size_bytes: int
    words: str


@dataclass(frozen=True, slots=True)
class Offer:
    """One thing that a client found: its name, and either its content in chunks or why it has none.

    `content` may end by raising `RefusedContent`, which refuses this offer and no other. `head` is what it begins with, as far as it
    was looked at. `opened` says that it is an archive whose members were offered before it, and that there is no more to take.
    """

    name: SampleName
    content: AsyncIterator[bytes] | None = None
    refusal: Refusal | None = None
    head: bytes = b""
    opened: OpenedArchive | None = None


class SubmissionOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked of all samples of one submission. `again` analyses content that already has a completed task once more.

    `enforce_timeout`: watch the guest for the whole timeout, also when the sample has ended before; None: as the configuration says.
    `profile`: the name of one; empty: the one for the kind of the content, or else the default, where there are such.
    `stays_static`: where `requires` is of a static task, no profile makes it one that needs a machine.
    `plugins`: only these take part, with what they need; empty: as the profile says. `plugin_options`: each as `PLUGIN.KEY=VALUE`, or
    `KEY=VALUE` where one plugin alone has the option. `owner`: who the samples belong to; empty: nobody.
    `unique` takes no content that is known at all; it is a duplicate of a task that may have ended in any way.
    `hold` takes tasks that no machine and no worker group could serve now, to wait for one that can; else they are refused.
    `actor` is who submits (empty: whoever runs the engine), and `origin` from where, as those of a `Command`. `intake` is what its
    account is to say of it.
    """

    priority: int = 1
    timeout_s: float | None = None
    enforce_timeout: bool | None = None
    again: bool = False
    requires: RequirementClass = RequirementClass()
    stays_static: bool = False
    hold: bool = False
    run: RunOptions = RunOptions()
    profile: str = ""
    plugins: tuple[str, ...] = ()
    plugin_options: tuple[str, ...] = ()
    owner: str = ""
    unique: bool = False
    actor: str = ""
    origin: str = ""
    intake: IntakeLabel = IntakeLabel()


class Accepted(msgspec.Struct, frozen=True, tag="accepted"):
    """The content became a new task."""

    name: SampleName
    sha256: str
    size_bytes: int
    task_id: int


class Duplicate(msgspec.Struct, frozen=True, tag="duplicate"):
    """The content already has a task: one that is completed, or one that this submission joins (`state` tells)."""

    name: SampleName
    sha256: str
    size_bytes: int
    task_id: int
    state: TaskState


class Refused(msgspec.Struct, frozen=True, tag="refused"):
    """The offer was not taken."""

    name: SampleName
    refusal: Refusal

    @property
    def is_left_out(self) -> bool:
        """Whether it stands for things that weren't asked for."""
        return self.refusal.code == LEFT_OUT


class Opened(msgspec.Struct, frozen=True, tag="opened"):
    """The offer is an archive: what is in it was offered, and has receipts of its own."""

    name: SampleName
    archive: OpenedArchive


Receipt = Accepted | Duplicate | Opened | Refused


@dataclass(frozen=True, slots=True)
class Account:
    """One receipt for each offer of a submission, in the order they were offered."""

    receipts: tuple[Receipt, ...] = field(default=())

    @property
    def accepted(self) -> list[Accepted]:
        """The offers that became tasks."""
        return [receipt for receipt in self.receipts if isinstance(receipt, Accepted)]

    @property
    def duplicates(self) -> list[Duplicate]:
        """The offers whose content already has a task."""
        return [receipt for receipt in self.receipts if isinstance(receipt, Duplicate)]

    @property
    def refused(self) -> list[Refused]:
        """The offers that were not taken, and were asked for."""
        return [receipt for receipt in self.receipts if isinstance(receipt, Refused) and not receipt.is_left_out]

    @property
    def left_out(self) -> int:
        """How many things were not asked for."""
        receipts = (receipt for receipt in self.receipts if isinstance(receipt, Refused) and receipt.is_left_out)
        return sum(receipt.refusal.things for receipt in receipts)
