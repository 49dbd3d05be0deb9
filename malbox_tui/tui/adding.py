"""Adding samples: named on the command line, typed in the dialog, or dropped and pasted anywhere."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

from textual.app import App

from malbox_tui.model.errors import EngineStopped, MalboxError
from malbox_tui.model.sample import escape
from malbox_tui.model.submission import Accepted, Account, Offer, Refused, SubmissionOptions
from malbox_tui.ports import Intake
from malbox_tui.tui.access import Access
from malbox_tui.tui.console import Surroundings
from malbox_tui.tui.notices import say, say_text
from malbox_tui.tui.screens.add import Addition, AddSamples
from malbox_tui.tui.screens.dialogs import Prompt
from malbox_tui.tui.text import counted, plain, sentence

_BEGINNINGS_OF_A_DROP = ("/", "'", '"', "\\", "~", "file:")
"""How terminals begin the text of a drop: with an absolute path, quoted, escaped or as a URL."""


class Adding:
    """Submits what is named, each submission on its own, and says what came of it."""

    def __init__(self, app: App[Any], around: Surroundings, access: Access, note: Callable[[Sequence[Refused]], None]) -> None:
        """`note` writes down what was refused, for longer than a notice lasts."""
        self._note = note
        self._access = access
        self._app = app
        self._around = around
        self._numbers = itertools.count(1)

    def begin(self) -> None:
        """What the console begins with: a word on where its configuration comes from, and what the command line named."""
        for note in self._around.notes:
            say(self._app, note)
        self.add(self._around.paths)

    def add(self, paths: Sequence[bytes], options: SubmissionOptions | None = None, intake: Intake | None = None) -> None:
        """Submit files and folders; none, and nothing happens. Without options the command line's are theirs, and so is the intake."""
        if paths and (why_not := self._access.refusal("add_samples")) is not None:
            say(self._app, f"{counted(len(paths), 'path')} not added. {why_not}", bad=True)
        elif paths:
            offers = (intake or self._around.intake).offers(tuple(paths))
            submission = self._submit(offers, options or self._around.wishes)
            self._app.run_worker(submission, name=f"submission {next(self._numbers)}")

    async def ask(self) -> None:
        """Ask for a path."""
        await self._app.push_screen(AddSamples(self._around.intake, self._around.wishes, self._around.line), self._add)

    def _add(self, addition: Addition | None) -> None:
        if addition is not None:
            self.add(addition.paths, addition.options, addition.intake)

    def take_paste(self, text: str) -> bool:
        """Submit what was dropped or pasted; False when it is for an input that has the focus."""
        screen = self._app.screen
        if isinstance(screen, Prompt) and not text.lstrip().startswith(_BEGINNINGS_OF_A_DROP):
            # A word to search for, even if a file of the working folder has that name.
            return False
        dropped = self._around.intake.dropped(text)
        if dropped.paths:
            if isinstance(screen, AddSamples):
                screen.take(dropped.paths)
            else:
                self.add(dropped.paths)
            return True
        if isinstance(screen, AddSamples | Prompt):
            return False
        say(self._app, dropped.problem, bad=True)
        return True

    async def _submit(self, offers: AsyncIterator[Offer], options: SubmissionOptions) -> None:
        try:
            account = await self._around.client.submit(offers, options)
        except EngineStopped:
            return
        except MalboxError as error:
            say(self._app, str(error), bad=True)
            return
        self._tell(account)

    def _tell(self, account: Account) -> None:
        parts = [f"{len(account.accepted)} added"]
        parts += [f"{len(account.duplicates)} known already"] if account.duplicates else []
        text = plain(", ".join(parts))
        if left_out := account.left_out:
            text.append(f", {left_out} left out")
        if account.refused:
            first = account.refused[0]
            text.append(f", {len(account.refused)} refused: ")
            text.append_text(sentence(f"{escape(first.name.name)}: {first.refusal.reason}"))
            self._note(account.refused)
        any_accepted = any(isinstance(receipt, Accepted) for receipt in account.receipts)
        say_text(self._app, text, bad=bool(account.refused) and not any_accepted)
