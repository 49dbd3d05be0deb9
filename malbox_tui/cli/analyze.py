"""`malbox-tui analyze`: run the engine without a screen until all is final."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from malbox_tui.cli.analysis_run import AnalysisRun
from malbox_tui.cli.audience import JsonReporter, Reporter, TableReporter
from malbox_tui.cli.breakdown import engine_breakdown, first_cause
from malbox_tui.cli.interruption import Interruption, Stage
from malbox_tui.cli.log_file import log_to_file
from malbox_tui.cli.options import FLAG, GlobalOptions
from malbox_tui.cli.output import tell
from malbox_tui.cli.progress import Progress, progress_on_stderr
from malbox_tui.cli.tally import EXIT_NOT_ALL_COMPLETED, EXIT_NOTHING_ACCEPTED, EXIT_OK, Tally
from malbox_tui.cli.text import counted, sentence
from malbox_tui.cli.troubles import troubles_told
from malbox_tui.cli.waits import tell_of_waits
from malbox_tui.cli.wishes import Wishes
from malbox_tui.config.loading import Configuration
from malbox_tui.config.settings import Settings
from malbox_tui.model.archive import ArchiveChoice
from malbox_tui.model.commands import ShutdownMode
from malbox_tui.model.errors import ConfigError, EngineStopped, MalboxError
from malbox_tui.model.intake import IntakeLabel, Way, title_of
from malbox_tui.model.submission import Offer, SubmissionOptions
from malbox_tui.ports import Client, Intake

if TYPE_CHECKING:
    from malbox_tui.config.folders import DataFolders
    from malbox_tui.runtime import EngineThread

FULL_ISOLATION = "bubblewrap"
"""What the overview says of plugins behind bubblewrap."""

STOP_MARGIN_S = 30.0
"""How long beyond the grace periods the engine may take to end before it is left to the next start's recovery."""


def analyze(
    *paths: str,
    json: Annotated[bool, FLAG] = False,
    wishes: Wishes | None = None,
    options: GlobalOptions | None = None,
) -> int:
    """Analyse files and folders, and what earlier runs left over, until all is final.

    Exit code 0: all completed; 1: some failed, timed out, were canceled or could not be kept, or the run was interrupted; 2: wrong
    usage, nothing was accepted, or the pool is paused. Ctrl+C gives running attempts back, SIGTERM lets them finish; the next run goes
    on with the rest.

    Parameters
    ----------
    paths
        Files, and folders with all that is in them. Without any, only what earlier runs left over is finished.
    json
        Print one JSON object a line as things happen, instead of a table at the end.
    """
    chosen = options or GlobalOptions()
    configuration = _usable(chosen)
    chosen.folders.create()
    log_to_file(chosen.folders, chosen.log_level.value)
    for note in configuration.notes:
        tell(sentence(note))
    asked = wishes or Wishes()
    raw = tuple(map(os.fsencode, paths))
    request = AnalysisRequest(raw, asked.submission(IntakeLabel(Way.ANALYZE, title_of(raw))), asked.archives(), json)
    with Interruption() as interruption:
        return Analysis(request, configuration.settings, chosen, interruption).carry_out()


def _usable(options: GlobalOptions) -> Configuration:
    from malbox_tui.runtime import pause_of
    from malbox_tui.runtime.diagnosis import plugin_fault

    configuration = options.source.read()
    if configuration.faults:
        raise configuration.faults[0]
    settings = configuration.settings
    if not any(group.max_workers for group in settings.groups()):
        raise ConfigError(options.source.shown, "general.max_workers", "with 0 no task is ever taken; give at least 1.")
    if (fault := plugin_fault(settings, options.folders, options.source)) is not None:
        raise fault
    if (paused := pause_of(options.folders)) is not None:
        raise MalboxError(f"No task would be taken: {paused}. `{options.command('resume')}` ends that.")
    return configuration


@dataclass(frozen=True, slots=True)
class AnalysisRequest:
    """What was asked for on the command line."""

    paths: tuple[bytes, ...]
    wishes: SubmissionOptions
    archives: ArchiveChoice
    json: bool


class Analysis:
    """One run of the command: an engine, one submission, the results."""

    def __init__(self, request: AnalysisRequest, settings: Settings, options: GlobalOptions, interruption: Interruption) -> None:
        self._request = request
        self._settings = settings
        self._options = options
        self._folders: DataFolders = options.folders
        self._interruption = interruption
        self._began = time.monotonic()
        self._tally = Tally()
        self._took_everything = True

    def carry_out(self) -> int:
        """Run to the end and return the exit code. The engine has ended when this returns or raises."""
        from malbox_tui.runtime import SystemClock, start_engine

        began_at = SystemClock().now()
        progress = progress_on_stderr(time.monotonic, self._request.json and sys.stdout.isatty())
        try:
            source = self._options.source
            engine = start_engine(self._settings, self._folders, source.saved_limits(), source.saved_machines())
        except BaseException:
            progress.close()
            raise
        with troubles_told(progress.note, time.monotonic):
            try:
                limit_s = self._settings.general.drain_timeout_s
                self._interruption.on(Stage.DRAINING, lambda: engine.stop(ShutdownMode.DRAIN, limit_s))
                self._interruption.on(Stage.GIVING_BACK, lambda: engine.stop(ShutdownMode.GIVE_BACK))
                return self._with_engine(engine, progress, began_at)
            finally:
                engine.stop(ShutdownMode.GIVE_BACK)
                self._wait_for_end(engine)

    def _with_engine(self, engine: EngineThread, progress: Progress, began_at: float) -> int:
        from malbox_tui.runtime import PatientLoop

        reporter: Reporter = (
            JsonReporter(self._tally, progress, self._folders.results)
            if self._request.json
            else TableReporter(self._tally, progress)
        )
        with asyncio.Runner(loop_factory=PatientLoop) as runner:
            run = AnalysisRun(engine.client, self._tally, reporter)
            try:
                all_final = runner.run(self._until_final(engine, run, progress, began_at))
            finally:
                progress.close()
            engine.stop(ShutdownMode.DRAIN if all_final else ShutdownMode.GIVE_BACK)
            self._wait_for_end(engine)
            runner.run(self._conclude(run, reporter))
        return self._verdict(engine, run.took_everything and self._took_everything)

    async def _until_final(self, engine: EngineThread, run: AnalysisRun, progress: Progress, began_at: float) -> bool:
        """True when everything is final; False when a signal or the engine's end came first."""
        from malbox_tui.runtime import open_intake

        self._interruption.on(Stage.GIVING_BACK, _canceller())
        intake = open_intake(self._settings, self._folders, self._request.archives)
        offers = self._until_interrupted(intake) if self._request.paths else None
        try:
            with suppress(EngineStopped):
                await _warn_of_weak_walls(engine.client, progress)
            async with asyncio.TaskGroup() as beside:
                telling = beside.create_task(tell_of_waits(engine.client, progress.note))
                all_final = await run.run(offers, self._request.wishes, began_at)
                telling.cancel()
            return all_final
        except BaseExceptionGroup as group:
            raise first_cause(group) from None
        except asyncio.CancelledError:
            if not self._interruption.came:
                raise
            _forget_cancellation()
            return False

    async def _until_interrupted(self, intake: Intake) -> AsyncIterator[Offer]:
        """What is found under the paths; nothing more once an end was asked for."""
        async for offer in intake.offers(self._request.paths):
            if self._interruption.came:
                self._took_everything = False
                return
            yield offer

    async def _conclude(self, run: AnalysisRun, reporter: Reporter) -> None:
        """Write the rest of the results from the store."""
        from malbox_tui.runtime import SystemClock, open_reader

        async with open_reader(self._folders) as reader:
            clock = SystemClock()
            await run.tell_rest(lambda query: reader.tasks(query, clock.now()))
            await reporter.conclude(lambda query: reader.tasks(query, clock.now()), time.monotonic() - self._began)

    def _verdict(self, engine: EngineThread, took_everything: bool) -> int:
        left = len(self._tally.waiting)
        if engine.error is not None or self._interruption.came or left:
            if engine.error is not None:
                self._tell_of_breakdown(engine.error)
            else:
                what = "Interrupted" if self._interruption.came else "The engine was stopped"
                tell(f"{what}: {_left_in_words(left, self._options.command('analyze'))}")
            if self._request.paths and not took_everything:
                tell("Not all of what was given was taken in; for the rest, give the same paths again.")
            return EXIT_NOT_ALL_COMPLETED
        if not self._tally.is_empty:
            code = self._tally.exit_code()
            if code == EXIT_NOTHING_ACCEPTED:
                tell(f"malbox-tui: Nothing was accepted{_why_not(self._tally)}")
            return code
        if self._request.paths:
            tell("malbox-tui: There is no file in what was given; nothing was accepted.")
            return EXIT_NOTHING_ACCEPTED
        tell("Nothing is left to finish. `malbox-tui analyze PATH` analyses files and folders.")
        return EXIT_OK

    def _tell_of_breakdown(self, error: BaseException) -> None:
        tell(f"malbox-tui: {engine_breakdown(error, self._folders)}")
        tell(f"What is not final is kept; `{self._options.command('analyze')}` goes on with it.")

    def _wait_for_end(self, engine: EngineThread) -> None:
        bound = STOP_MARGIN_S + 2 * self._settings.analysis.longest_grace_s
        if not engine.join(bound):
            tell(f"malbox-tui: The engine did not end within {bound:g} s; the next start recovers what it was at.")
            with suppress(OSError, ValueError):
                sys.stdout.flush()
            os._exit(EXIT_NOT_ALL_COMPLETED)


async def _warn_of_weak_walls(client: Client, progress: Progress) -> None:
    isolation = (await client.overview()).isolation
    if isolation != FULL_ISOLATION:
        progress.note(
            f"Plugins are isolated less than they could be: {sentence(isolation)}. `malbox-tui doctor` says what to do."
        )


def _why_not(tally: Tally) -> str:
    """The reason itself when it is one for all: a narrow table may have had to cut it."""
    reasons = {receipt.refusal.reason for receipt in tally.refused}
    return f": {sentence(reasons.pop())}" if len(reasons) == 1 else "; the results say why."


def _left_in_words(left: int, command: str) -> str:
    if not left:
        return "no task is left."
    return f"{counted(left, 'task is', 'tasks are')} left; `{command}` finishes {'it' if left == 1 else 'them'}."


def _canceller() -> Callable[[], None]:
    """Cancels the asyncio task that calls this; safe in a signal handler."""
    loop, this = asyncio.get_running_loop(), asyncio.current_task()
    assert this is not None

    def cancel() -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(this.cancel)

    return cancel


def _forget_cancellation() -> None:
    this = asyncio.current_task()
    assert this is not None
    this.uncancel()
