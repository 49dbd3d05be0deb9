"""`malbox-tui sample get` and `sample purge`: a sample out of the quarantine, and a sample out of the world."""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path
from typing import Annotated, BinaryIO

from cyclopts import App, Parameter

from malbox_tui.cli.command_records import outcome_record
from malbox_tui.cli.engine_door import check_store, own_origin, some_engine, usable_settings
from malbox_tui.cli.options import FLAG, GlobalOptions, enum_value, some_path
from malbox_tui.cli.output import OutputClosed, abandon_stdout, tell, write_line, write_record
from malbox_tui.cli.question import agreed, can_be_asked
from malbox_tui.cli.sample import tasks_of
from malbox_tui.cli.text import counted, sentence
from malbox_tui.model.commands import CommandOutcome, PurgeSample
from malbox_tui.model.errors import MalboxError
from malbox_tui.model.queries import TaskRecord
from malbox_tui.model.sample import escape
from malbox_tui.model.upkeep import ZIP_PASSWORD, SampleForm
from malbox_tui.reports.new_file import NotWritten

EXIT_OK = 0
EXIT_REFUSED = 1
EXIT_USAGE = 2
STDOUT = Path("-")

Sha = Annotated[str, Parameter(name="SHA")]
Json = Annotated[bool, FLAG]
Output = Annotated[
    Path | None, Parameter(name=("--output", "-o"), metavar="FILE", converter=some_path, allow_leading_hyphen=True)
]


def add_to(group: App) -> None:
    """Add the commands to `sample`."""
    group.command(get, usage="Usage: malbox-tui sample get [OPTIONS] SHA")
    group.command(purge, usage="Usage: malbox-tui sample purge [OPTIONS] SHA")


def get(
    sha256: Sha,
    /,
    *,
    form: Annotated[SampleForm, Parameter(name="--as", metavar="FORM", name_transform=enum_value)] = SampleForm.ZIP,
    output: Output = None,
    force: Annotated[bool, FLAG] = False,
    options: GlobalOptions | None = None,
) -> int:
    """Take a sample out of the quarantine, from a running engine or from the store. That it was taken is in the log of actions.

    Exit code 0: written; 2: there is no such sample, it is damaged, or the file can't be written.

    Parameters
    ----------
    sha256
        The beginning of its SHA-256: at least four digits.
    form
        zip: AES-encrypted, its password is `infected`; raw: live, as it came; cart: neutered, as it is kept.
    output
        The file, readable by you alone; `-`: stdout. Without it, a file named by the SHA-256, in the current folder.
    force
        Replace the file if there is one.
    """
    chosen = options or GlobalOptions()
    check_store(chosen.folders)
    rows = asyncio.run(tasks_of(chosen, sha256))
    whole = rows[-1].sample.sha256
    target = output or Path(f"{whole}.{form.ending}")
    if target == STDOUT:
        if sys.stdout.isatty():
            raise MalboxError("A sample is not written to a terminal; name a file with --output.")
        return asyncio.run(_to_stdout(chosen, whole, form))
    _check_target(target, force)
    asyncio.run(_to_file(chosen, whole, form, target, force))
    password = f"; its password is {ZIP_PASSWORD}" if form is SampleForm.ZIP else ""
    live = " It is live: handle it so." if form is SampleForm.RAW else ""
    tell(f"Written as {form.value}: {escape(bytes(target))}{password}.{live}")
    return EXIT_OK


def purge(
    sha256: Sha,
    /,
    *,
    yes: Annotated[bool, FLAG] = False,
    json: Json = False,
    options: GlobalOptions | None = None,
) -> int:
    """Remove a sample for good: its content, its tasks, their results, its names, notes and tags. Asks first. It is logged who did it.

    Exit code 0: removed; 1: refused, since a task of it waits or runs; 2: wrong usage, no such sample, or it was not meant.

    Parameters
    ----------
    sha256
        The beginning of its SHA-256: at least four digits.
    yes
        Don't ask.
    json
        Print one JSON object.
    """
    chosen = options or GlobalOptions()
    check_store(chosen.folders)
    rows = asyncio.run(tasks_of(chosen, sha256))
    whole = rows[-1].sample.sha256
    if not yes and not _is_meant(rows):
        tell("Nothing was done.")
        return EXIT_USAGE
    outcome = asyncio.run(_purge(chosen, whole))
    if json:
        write_record({**outcome_record("purge", outcome), "sha256": whole, "task_ids": [t.task_id for t in outcome.targets]})
    else:
        write_line(sentence(outcome.message))
    return EXIT_OK if outcome.done else EXIT_REFUSED


def _is_meant(rows: list[TaskRecord]) -> bool:
    sample = rows[-1].sample
    names = ", ".join(escape(name.name) for name in sample.names[:3])
    what = f"sample {sample.sha256[:12]} ({names or 'without a name'}), {counted(len(rows), 'task')} and all results"
    if not can_be_asked():
        raise MalboxError(f"This removes {what} for good, and there is no terminal to ask on: say --yes if that is meant.")
    return agreed(f"Remove {what} for good?")


async def _purge(options: GlobalOptions, sha256: str) -> CommandOutcome:
    async with some_engine(options, usable_settings(options)) as door:
        return await door.do(PurgeSample(sha256=sha256))


async def _chunks(options: GlobalOptions, sha256: str, form: SampleForm) -> AsyncGenerator[bytes, None]:
    from malbox_tui.runtime import login_name

    async with (
        some_engine(options, usable_settings(options)) as door,
        aclosing(door.client.content(sha256, form, login_name(), own_origin())) as chunks,
    ):
        async for chunk in chunks:
            yield chunk


async def _to_stdout(options: GlobalOptions, sha256: str, form: SampleForm) -> int:
    async with aclosing(_chunks(options, sha256, form)) as chunks:
        async for chunk in chunks:
            try:
                sys.stdout.buffer.write(chunk)
                sys.stdout.buffer.flush()
            except OSError as exc:
                abandon_stdout()
                raise OutputClosed("" if isinstance(exc, BrokenPipeError) else f"{exc.strerror or exc}") from exc
    return EXIT_OK


def _check_target(target: Path, force: bool) -> None:
    """What can be told before anything is asked for and logged."""
    if not target.parent.is_dir():
        raise NotWritten(target, "there is no such folder")
    if target.is_dir():
        raise NotWritten(target, "it is a folder")
    if not force and os.path.lexists(target):
        raise NotWritten(target, "there is something of that name; --force replaces it")


async def _to_file(options: GlobalOptions, sha256: str, form: SampleForm, target: Path, force: bool) -> None:
    """Write it beside the target first: it appears under its name when it is whole, and replaces nothing unless that is asked for."""
    partial: Path | None = None
    try:
        descriptor, name = tempfile.mkstemp(prefix=f".{sha256[:12]}.", dir=target.parent)
        partial = Path(name)
        with os.fdopen(descriptor, "wb") as file:
            await _copied(_chunks(options, sha256, form), file)
        if force:
            partial.replace(target)
            partial = None
        else:
            os.link(partial, target)
    except FileExistsError as exc:
        raise NotWritten(target, "there is something of that name; --force replaces it") from exc
    except OSError as exc:
        raise NotWritten(target, exc.strerror or str(exc)) from exc
    finally:
        if partial is not None:
            partial.unlink(missing_ok=True)


async def _copied(content: AsyncGenerator[bytes, None], file: BinaryIO) -> None:
    async with aclosing(content) as chunks:
        async for chunk in chunks:
            file.write(chunk)
