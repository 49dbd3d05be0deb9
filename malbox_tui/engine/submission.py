"""From offers to tasks: each content goes to the quarantine, then its task to the store, and each offer gets its receipt.

Contents are stored a few at a time, so that their syncs share the disk's time; tasks are made, and receipts given, in the order of
the offers. A refused offer is a receipt like any other; nothing is silent.
"""

from __future__ import annotations

import asyncio
import math
import re
from collections import deque
from collections.abc import AsyncIterator, Callable

from malbox_tui.config.settings import AnalysisSettings
from malbox_tui.engine.action_log import ActionLog
from malbox_tui.engine.intake_accounts import IntakeAccount, IntakeAccounts
from malbox_tui.engine.lifecycle import Lifecycle
from malbox_tui.engine.profiles import Profiles
from malbox_tui.engine.queue import MAX_PRIORITY
from malbox_tui.engine.removal import Hands
from malbox_tui.engine.waiting import WaitingRoom
from malbox_tui.engine.wishes import WishDesk
from malbox_tui.model.errors import RefusedCommand, RefusedContent, StoreError
from malbox_tui.model.plugin_wishes import NO_WISHES, PluginWishes
from malbox_tui.model.sample import visible
from malbox_tui.model.submission import (
    LOW_DISK,
    STORE_FAILED,
    Accepted,
    Account,
    Duplicate,
    Offer,
    Opened,
    Receipt,
    Refusal,
    Refused,
    SubmissionOptions,
)
from malbox_tui.model.task import ChosenProfile, RunOptions
from malbox_tui.ports import Clock, NewTask, Quarantine, StoredContent

STORES_AT_ONCE = 4
MOST_ARGUMENTS = 100
MOST_ARGUMENT_CHARACTERS = 4096
MOST_OWNER_CHARACTERS = 100


class SubmissionDesk:
    """Takes submissions, any number at a time."""

    def __init__(
        self,
        *,
        lifecycle: Lifecycle,
        quarantine: Quarantine,
        waiting: WaitingRoom,
        log: ActionLog,
        accounts: IntakeAccounts,
        wall: Clock,
        max_sample_bytes: int,
        settings: AnalysisSettings,
        profiles: Profiles,
        hands: Hands,
        low_disk: Callable[[], str],
        wishes: WishDesk,
    ) -> None:
        self._low_disk = low_disk
        self._hands = hands
        self._lifecycle = lifecycle
        self._waiting = waiting
        self._log = log
        self._accounts = accounts
        self._quarantine = quarantine
        self._wall = wall
        self._max_sample_bytes = max_sample_bytes
        self._settings = settings
        self._profiles = profiles
        self._wishes = wishes

    def reload(self, max_sample_bytes: int, settings: AnalysisSettings) -> None:
        """From now on samples may be so large, and tasks that are made get these times."""
        self._max_sample_bytes = max_sample_bytes
        self._settings = settings

    async def submit(
        self, offers: AsyncIterator[Offer], options: SubmissionOptions, on_receipt: Callable[[Receipt], None] | None
    ) -> Account:
        """Take all offers. Cancelled: what has a receipt is taken, the rest isn't.

        What makes no sense is refused, and what nothing could ever serve, unless it is to be held.
        """
        chosen: ChosenProfile | None = None
        wishes = NO_WISHES
        try:
            options, chosen = self._profiles.asked(options)
            wishes = await self._wishes.asked(options)
        except RefusedCommand as error:
            unserviceable: Refusal | None = Refusal("nonsense", str(error))
        else:
            unserviceable = self._refusal(options)
        account = self._accounts.account(options)
        receipts: list[Receipt] = []
        in_hand: list[str] = []
        under_way: deque[tuple[Offer, asyncio.Task[StoredContent | Refusal]]] = deque()

        async def take_first() -> None:
            offer, storing = under_way.popleft()
            receipt = await self._receipt(offer, await storing, options, (chosen, wishes), account, in_hand)
            receipts.append(receipt)
            entry.count(receipt)
            if on_receipt is not None:
                on_receipt(receipt)

        try:
            with self._log.submission(options) as entry:
                async with asyncio.TaskGroup() as storing:
                    async for offer in offers:
                        under_way.append((offer, storing.create_task(self._keep(offer, unserviceable, in_hand))))
                        while len(under_way) >= STORES_AT_ONCE or (under_way and under_way[0][1].done()):
                            await take_first()
                    while under_way:
                        await take_first()
            await account.settle()
        finally:
            for sha256 in in_hand:
                self._hands.let_go(sha256)
        return Account(tuple(receipts))

    def _refusal(self, options: SubmissionOptions) -> Refusal | None:
        if abs(options.priority) > MAX_PRIORITY:
            problem = f"Priority {options.priority}: it must be between {-MAX_PRIORITY} and {MAX_PRIORITY}."
            return Refusal("nonsense", problem)
        if options.unique and options.again:
            return Refusal("nonsense", "What is known can't be both left out (unique) and analysed again.")
        if (unfit := _unfit_owner(options.owner)) is not None:
            return Refusal("nonsense", unfit)
        if options.timeout_s is not None and not 0 < options.timeout_s < math.inf:
            return Refusal("nonsense", f"An analysis timeout of {options.timeout_s:g} s: it must be above 0, and end.")
        if options.timeout_s is not None and options.timeout_s >= self._settings.critical_timeout_s:
            limit = (
                f"it must be below the critical timeout of {self._settings.critical_timeout_s:g} s, which is over a whole attempt"
            )
            return Refusal("nonsense", f"An analysis timeout of {options.timeout_s:g} s: {limit}.")
        if options.enforce_timeout and not options.requires.needs_machine:
            problem = f"A {options.requires.task_type} task needs no machine, so there is none to watch for its whole timeout."
            return Refusal("nonsense", problem)
        if (asked := _asks_of_guest(options.run)) and not options.requires.needs_machine:
            problem = f"A {options.requires.task_type} task needs no machine, so {asked}."
            return Refusal("nonsense", problem)
        if (too_much := _too_much(options.run)) is not None:
            return Refusal("nonsense", too_much)
        if (nonsense := self._waiting.nonsense(options.requires)) is not None:
            return Refusal("nonsense", nonsense)
        if not options.hold and (impossible := self._waiting.impossible(options.requires)) is not None:
            return Refusal("unserviceable", impossible)
        return None

    def _enforces(self, options: SubmissionOptions) -> bool:
        return self._settings.enforce_timeout if options.enforce_timeout is None else options.enforce_timeout

    async def _keep(self, offer: Offer, unserviceable: Refusal | None, in_hand: list[str]) -> StoredContent | Refusal:
        if offer.content is None:
            if offer.opened is not None and _is_sum(offer.opened.sha256):
                return StoredContent(offer.opened.sha256, offer.opened.size_bytes)
            return offer.refusal or Refusal("no_content", "It has no content.")
        if unserviceable is not None:
            return unserviceable
        if problem := self._low_disk():
            return Refusal(LOW_DISK, problem)
        try:
            kept = await self._quarantine.store(offer.content, self._max_sample_bytes)
        except RefusedContent as refused:
            return Refusal(refused.code, refused.reason)
        except StoreError as error:
            return Refusal(STORE_FAILED, str(error))
        self._hands.take(kept.sha256)
        in_hand.append(kept.sha256)
        return kept

    async def _receipt(
        self,
        offer: Offer,
        kept: StoredContent | Refusal,
        options: SubmissionOptions,
        decided: tuple[ChosenProfile | None, PluginWishes],
        account: IntakeAccount,
        in_hand: list[str],
    ) -> Receipt:
        if isinstance(kept, Refusal):
            await account.refused(offer, kept)
            return Refused(offer.name, kept)
        if offer.opened is not None:
            await account.opened(offer, offer.opened)
            return Opened(offer.name, offer.opened)
        in_hand.remove(kept.sha256)
        chosen, wishes = decided
        new = NewTask(
            sha256=kept.sha256,
            size_bytes=kept.size_bytes,
            name=offer.name,
            at=self._wall.now(),
            priority=options.priority,
            timeout_s=self._settings.timeout_s if options.timeout_s is None else options.timeout_s,
            enforce_timeout=options.requires.needs_machine and self._enforces(options),
            requires=options.requires,
            again=options.again,
            run=options.run,
            profile=chosen,
            intake=account.head,
            wishes=wishes,
            owner=options.owner,
            unique=options.unique,
        )
        try:
            added = await self._lifecycle.create(new, lambda: self._hands.let_go(kept.sha256))
        except StoreError as error:
            refusal = Refusal(STORE_FAILED, str(error))
            await account.refused(offer, refusal)
            return Refused(offer.name, refusal)
        if added.created:
            return Accepted(offer.name, kept.sha256, kept.size_bytes, added.task.id)
        return Duplicate(offer.name, kept.sha256, kept.size_bytes, added.task.id, added.task.state)


def _is_sum(text: str) -> bool:
    """Of an archive in another one, no sum is known."""
    return not text or re.fullmatch("[0-9a-f]{64}", text) is not None


def _asks_of_guest(run: RunOptions) -> str:
    """What can't be done without a machine, in words; empty: nothing is asked."""
    if run.arguments:
        return "there is nothing to give arguments to"
    return "there is no memory to dump" if run.memory_dump else ""


def _unfit_owner(owner: str) -> str | None:
    if len(owner) > MOST_OWNER_CHARACTERS:
        return f"An owner of {len(owner)} characters: {MOST_OWNER_CHARACTERS} are the most."
    if not owner.isprintable() or owner != owner.strip():
        return f"The owner '{visible(owner)}' has characters that can't be printed, or blanks around it."
    return None


def _too_much(run: RunOptions) -> str | None:
    if len(run.arguments) > MOST_ARGUMENTS:
        return f"{len(run.arguments)} arguments for a sample: {MOST_ARGUMENTS} are the most."
    if any(len(argument) > MOST_ARGUMENT_CHARACTERS for argument in run.arguments):
        return f"An argument for a sample has more than {MOST_ARGUMENT_CHARACTERS} characters."
    if any("\0" in argument for argument in run.arguments):
        return "An argument for a sample holds a NUL, which no program can be given."
    return None
