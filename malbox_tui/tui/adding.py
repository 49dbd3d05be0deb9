"""Adding samples: named on the command line, typed in the dialog, or dropped and pasted anywhere, which is shown before it is added."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import msgspec
from textual.app import App

from malbox_tui.model.errors import EngineStopped, MalboxError
from malbox_tui.model.intake import IntakeLabel, Way, title_of
from malbox_tui.model.submission import Offer, Refused, SubmissionOptions
from malbox_tui.model.survey import Survey
from malbox_tui.ports import Dropped, Intake
from malbox_tui.tui.access import Access
from malbox_tui.tui.console import Surroundings
from malbox_tui.tui.intake_run import IntakeRun
from malbox_tui.tui.intake_words import outcome_words
from malbox_tui.tui.moment import Moment
from malbox_tui.tui.notices import say, say_text
from malbox_tui.tui.screens.add import Addition, AddSamples
from malbox_tui.tui.screens.dialogs import Prompt
from malbox_tui.tui.screens.preview import Preview
from malbox_tui.tui.text import counted, short_size

READ_ASIDE_CHARACTERS = 16 * 1024
"""A longer text is read in a thread: thousands of paths are looked for, and keys are not to wait for that."""

_BEGINNINGS_OF_A_DROP = ("/", "'", '"', "\\", "~", "file:")
"""How terminals begin the text of a drop: with an absolute path, quoted, escaped or as a URL."""


SamplesAsked = tuple[SubmissionOptions, Intake | None]
"""What is asked of samples, and what finds them as asked (None: what the console has anyway)."""


class Adding:
    """Submits what is named, each submission on its own, and says what came of it."""

    def __init__(
        self,
        app: App[Any],
        around: Surroundings,
        access: Access,
        moment: Callable[[], Moment],
        note: Callable[[Sequence[Refused]], None],
        show_sums: Callable[[Sequence[str]], None],
    ) -> None:
        """`note` writes down what was refused, for longer than a notice lasts; `show_sums` shows the tasks of contents."""
        self._note = note
        self._show_sums = show_sums
        self._access = access
        self._app = app
        self._around = around
        self._moment = moment
        self._numbers = itertools.count(1)
        self.runs: list[IntakeRun] = []
        """Those under way, in the order they began."""
        self.latest: IntakeRun | None = None
        """The one that was begun last, until it is taken back."""

    def begin(self) -> None:
        """What the console begins with: a word on where its configuration comes from, and what the command line named."""
        for note in self._around.notes:
            say(self._app, note)
        self.add(self._around.paths, Way.START)

    def add(self, paths: Sequence[bytes], way: Way, asked: SamplesAsked | None = None, survey: Survey | None = None) -> None:
        """Submit files and folders; none, and nothing happens. Without `asked` it is what the command line asks; `survey` is what was
        seen of them."""
        if paths and not self._is_refused(len(paths)):
            options, intake = (self._around.wishes, None) if asked is None else asked
            label = IntakeLabel(way, title_of(paths))
            total = survey.things if survey is not None and survey.done else None
            run = IntakeRun(label.title, total, self._around.monotonic)
            found = (intake or self._around.intake).offers(tuple(paths))
            submission = self._submit(run, found, msgspec.structs.replace(options, intake=label))
            self._app.run_worker(submission, name=f"submission {next(self._numbers)}")
            if total is None:
                self._app.run_worker(self._count(run, tuple(paths)), name="count")

    async def ask(self) -> None:
        """Ask for a path."""
        await self._app.push_screen(AddSamples(self._around.intake, self._around.wishes, self._around.line), self._add)

    def _add(self, addition: Addition | None) -> None:
        if addition is not None and addition.is_drop:
            self._preview(Dropped(tuple(addition.paths)), addition.options, addition.written)
        elif addition is not None:
            self.add(addition.paths, Way.DIALOG, (addition.options, addition.intake))

    def stop(self) -> None:
        """Read nothing more of what is being added."""
        for run in self.runs:
            run.stop()

    # --- drops -------------------------------------------------------------------------------------------------------------------

    def take_paste(self, text: str) -> bool:
        """Take what was dropped or pasted; False when it is for an input that has the focus."""
        if isinstance(self._app.screen, Prompt) and not text.lstrip().startswith(_BEGINNINGS_OF_A_DROP):
            # A word to search for, even if a file of the working folder has that name.
            return False
        if len(text) > READ_ASIDE_CHARACTERS:
            say(self._app, f"Reading what was dropped ({short_size(len(text))})…")
            self._app.run_worker(self._read_aside(text), name="drop")
            return True
        return self._take(self._around.intake.dropped(text))

    async def _read_aside(self, text: str) -> None:
        dropped = await asyncio.to_thread(self._around.intake.dropped, text)
        if not self._take(dropped):
            say(self._app, dropped.problem, bad=True)

    def _take(self, dropped: Dropped) -> bool:
        screen = self._app.screen
        if dropped.paths:
            if isinstance(screen, AddSamples | Preview):
                screen.take(dropped)
            elif not self._is_refused(len(dropped.paths)):
                self._preview(dropped, self._around.wishes)
            return True
        if isinstance(screen, AddSamples | Prompt | Preview):
            return False
        if dropped.sums:
            self._show_sums(dropped.sums)
        else:
            say(self._app, dropped.problem, bad=True)
        return True

    def _preview(self, dropped: Dropped, options: SubmissionOptions, written: str | None = None) -> None:
        around = self._around

        def answered(answer: tuple[Addition, Survey] | None) -> None:
            if answer is not None:
                addition, survey = answer
                self.add(addition.paths, Way.DROP, (addition.options, addition.intake), survey)

        self._app.push_screen(Preview(dropped, options, around, self._moment, written), answered)

    # --- one intake --------------------------------------------------------------------------------------------------------------

    def _is_refused(self, count: int) -> bool:
        why_not = self._access.refusal("add_samples")
        if why_not is not None:
            say(self._app, f"{counted(count, 'path')} not added. {why_not}", bad=True)
        return why_not is not None

    async def _submit(self, run: IntakeRun, offers: AsyncIterator[Offer], options: SubmissionOptions) -> None:
        self.runs.append(run)
        self.latest = run
        try:
            await self._around.client.submit(run.through(offers), options, run.note)
        except EngineStopped:
            return
        except MalboxError as error:
            say(self._app, str(error), bad=True)
            return
        finally:
            self.runs.remove(run)
            run.ended.set()
        if run.refused:
            self._note(run.refused)
        say_text(self._app, outcome_words(run), bad=bool(run.refusals) and not run.task_ids)

    async def _count(self, run: IntakeRun, paths: tuple[bytes, ...]) -> None:
        """Find out how many there are, beside adding them."""
        async for survey in self._around.intake.survey(paths, counts_only=True):
            if run not in self.runs:
                return
            if survey.done:
                run.total = survey.things
