"""`malbox-tui submit PATH…`: samples into a running engine, or, when none runs, into quarantine and store for its next start."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from typing import Annotated

import msgspec

from malbox_tui.cli.analysis_run import AnalysisRun
from malbox_tui.cli.audience import JsonReporter, TableReporter
from malbox_tui.cli.command_records import accepted_record
from malbox_tui.cli.engine_door import Door, NoEngine, own_origin, running_engine, some_engine, usable_settings
from malbox_tui.cli.options import FLAG, GlobalOptions
from malbox_tui.cli.output import OutputClosed, tell, write_line, write_record
from malbox_tui.cli.paths import is_missing, nothing_there
from malbox_tui.cli.progress import progress_on_stderr
from malbox_tui.cli.records import duplicate_record, opened_record, refused_record
from malbox_tui.cli.tally import EXIT_NOT_ALL_COMPLETED, EXIT_NOTHING_ACCEPTED, EXIT_OK, Tally
from malbox_tui.cli.text import counted, sentence
from malbox_tui.cli.wishes import Wishes
from malbox_tui.config.settings import Settings
from malbox_tui.model.errors import MalboxError
from malbox_tui.model.intake import IntakeLabel, Way, title_of
from malbox_tui.model.sample import escape
from malbox_tui.model.submission import Accepted, Account, Duplicate, Opened, Receipt

NOT_KEPT = "store_failed"
"""The code of a refusal that is no fault of what was offered."""


def submit(
    *paths: str,
    wait: Annotated[bool, FLAG] = False,
    json: Annotated[bool, FLAG] = False,
    wishes: Wishes | None = None,
    options: GlobalOptions | None = None,
) -> int:
    """Hand files and folders in, to a running engine or, when none runs, for its next start.

    Exit code 0: all that could be a sample was taken, or known before; 1: some could not be kept; 2: wrong usage, or nothing was
    accepted. With --wait as `analyze`: 0 when all completed, 1 when some did not, or the engine ended before.

    Parameters
    ----------
    paths
        Files, and folders with all that is in them.
    wait
        Wait until all of it is final, and print the results. Only with a running engine.
    json
        Print one JSON object a line, as things happen.
    """
    from malbox_tui.runtime import run_patiently

    if not paths:
        raise MalboxError("Say what to submit: files, or folders.")
    if all(map(is_missing, paths)):
        raise MalboxError(nothing_there(paths))
    chosen = options or GlobalOptions()
    settings = usable_settings(chosen)
    raw = tuple(map(os.fsencode, paths))
    work = _submit_and_wait if wait else _submit
    try:
        return run_patiently(work(raw, wishes or Wishes(), json, chosen, settings))
    except KeyboardInterrupt:
        tell(f"Interrupted: what was handed in until then stays; `{chosen.command('tasks')}` shows it.")
        return EXIT_NOT_ALL_COMPLETED


async def _submit(paths: tuple[bytes, ...], wishes: Wishes, as_json: bool, options: GlobalOptions, settings: Settings) -> int:
    from malbox_tui.runtime import login_name, open_intake

    own = msgspec.structs.replace(wishes.submission(_label(paths)), actor=login_name(), origin=own_origin())
    printed = _Printed(_write_record if as_json else _write_line)
    async with some_engine(options, settings) as door:
        offers = open_intake(settings, options.folders, wishes.archives()).offers(paths)
        account = await door.client.submit(offers, own, printed)
    tell(_in_words(account, door, options))
    if printed.failure is not None:
        raise printed.failure
    return _exit_code(account)


async def _submit_and_wait(
    paths: tuple[bytes, ...], wishes: Wishes, as_json: bool, options: GlobalOptions, settings: Settings
) -> int:
    from malbox_tui.runtime import open_intake

    began, tally = time.monotonic(), Tally()
    async with running_engine(options) as client:
        if client is None:
            raise NoEngine(options)
        progress = progress_on_stderr(time.monotonic, as_json and sys.stdout.isatty())
        try:
            results = options.folders.results
            reporter = JsonReporter(tally, progress, results) if as_json else TableReporter(tally, progress)
            run = AnalysisRun(client, tally, reporter)
            offers = open_intake(settings, options.folders, wishes.archives()).offers(paths)
            all_final = await run.run(offers, wishes.submission(_label(paths)), None)
        finally:
            progress.close()
        if not all_final:
            tell(f"malbox-tui: The engine ended; {counted(len(tally.waiting), 'task is', 'tasks are')} kept for its next start.")
            return EXIT_NOT_ALL_COMPLETED
        await reporter.conclude(client.query, time.monotonic() - began)
    if tally.is_empty:
        tell("malbox-tui: There is no file in what was given; nothing was accepted.")
        return EXIT_NOTHING_ACCEPTED
    return tally.exit_code()


def _label(paths: Sequence[bytes]) -> IntakeLabel:
    return IntakeLabel(Way.SUBMIT, title_of(paths))


class _Printed:
    """Receipts, printed as they come. That nobody takes them keeps nothing from being handed in; it is told at the end."""

    def __init__(self, write: Callable[[Receipt], None]) -> None:
        self._write = write
        self.failure: OutputClosed | None = None

    def __call__(self, receipt: Receipt) -> None:
        if self.failure is None:
            try:
                self._write(receipt)
            except OutputClosed as failure:
                self.failure = failure


def _write_record(receipt: Receipt) -> None:
    match receipt:
        case Accepted():
            write_record(accepted_record(receipt))
        case Duplicate():
            write_record(duplicate_record(receipt, None))
        case Opened():
            write_record(opened_record(receipt))
        case _:
            write_record(refused_record(receipt))


def _write_line(receipt: Receipt) -> None:
    name = escape(receipt.name.name)
    match receipt:
        case Accepted():
            write_line(f"task {receipt.task_id}  {name}")
        case Duplicate():
            write_line(f"task {receipt.task_id}  {name} (known: {receipt.state.value.replace('_', ' ')})")
        case Opened():
            write_line(f"opened  {name} ({sentence(receipt.archive.words)})")
        case _:
            write_line(f"refused  {name}: {sentence(receipt.refusal.reason)}")


def _in_words(account: Account, door: Door, options: GlobalOptions) -> str:
    if not account.receipts:
        return "malbox-tui: There is no file in what was given; nothing was accepted."
    count, known, refused = (len(some) for some in (account.accepted, account.duplicates, account.refused))
    parts = [f"{counted(count, 'task')} added", f"{known} known" if known else "", f"{refused} refused" if refused else ""]
    said = ", ".join(part for part in parts if part)
    if door.is_running or not count:
        return f"{said}."
    return f"{said}. No engine is served here: `{options.command('serve')}` or `{options.command('analyze')}` begins with them."


def _exit_code(account: Account) -> int:
    if not account.accepted and not account.duplicates:
        return EXIT_NOTHING_ACCEPTED
    lost = any(receipt.refusal.code == NOT_KEPT for receipt in account.refused)
    return EXIT_NOT_ALL_COMPLETED if lost else EXIT_OK
