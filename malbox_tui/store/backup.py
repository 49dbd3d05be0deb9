"""A copy of a data folder that can be worked with, made while an engine works on it.

1. The database is copied first, as of one moment, through SQLite's own backup; then what it refers to. A content and a result are there
   before the store knows them and never change, so all of it is there, unless it is removed meanwhile: then the copy forgets it, too.
2. It is made beside its place, in a folder with `PARTIAL` in its name, and gets its name when all of it is synced. One that was
   interrupted is made anew, never gone on with.
3. Each content and each result is read back from the copy and compared with its sum.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec

from malbox_tui.model.errors import StoreError
from malbox_tui.model.report import PluginRun
from malbox_tui.model.sample import escape
from malbox_tui.store.checkup import Checkup, Trouble
from malbox_tui.store.durable import sync_file_system
from malbox_tui.store.failures import store_error
from malbox_tui.store.migrations import store_version
from malbox_tui.store.read_only import read_only
from malbox_tui.store.regular import open_regular
from malbox_tui.store.statements import migrations, statement
from malbox_tui.store.stockroom import Places

PARTIAL = ".partial"
DATABASE_PAGES = 256
"""So many pages are copied in one step; between two, who writes the store goes first."""
_COPY_BYTES = 1 << 20
_PAGE = 500
_runs = msgspec.json.Decoder(tuple[PluginRun, ...]).decode


@dataclass(slots=True)
class BackedUp:
    """What was copied. `vanished` are samples and tasks' results that were removed meanwhile, and are not in the copy."""

    samples: int = 0
    results: int = 0
    size_bytes: int = 0
    vanished: int = 0


def back_up(
    source: Places, target: Places, root: Path, beside: Sequence[tuple[Path, Path]], now: float
) -> tuple[BackedUp, list[Trouble]]:
    """Copy `source` to the new folder `root`, in which `target` lies; `beside` are files and folders that are copied as they are, where
    there are any. Returns what was copied, and what is wrong with it, which was wrong with the source already or was read wrongly.

    Blocking. Raises `StoreError`, `StoreFull`; there is no `root` then.
    """
    partial = root.with_name(f"{root.name}{PARTIAL}")
    if os.path.lexists(root):
        raise StoreError(f"There is a {escape(bytes(root))} already. Choose a folder that is not there yet.")
    try:
        with _alone(partial):
            moved = _moved(target, root, partial)
            done = _Copy(source, moved).run()
            for kept, copy in beside:
                _copy_as_it_is(kept, partial / copy.relative_to(root))
            troubles = list(Checkup(moved, now).run())
            sync_file_system(partial)
            partial.rename(root)
            sync_file_system(root.parent)
    except (OSError, sqlite3.Error) as exc:
        raise store_error(exc, str(root)) from exc
    return done, troubles


@contextmanager
def _alone(partial: Path) -> Iterator[None]:
    """The folder, empty, and nobody else's while this is entered. What is not finished is removed."""
    partial.mkdir(mode=0o700, exist_ok=True)
    descriptor = os.open(partial, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StoreError(f"Another backup to {escape(bytes(partial))} is under way.") from None
        _empty(partial)
        try:
            yield
        except BaseException:
            shutil.rmtree(partial, ignore_errors=True)
            raise
    finally:
        os.close(descriptor)


def _empty(folder: Path) -> None:
    for entry in folder.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()


def _moved(places: Places, before: Path, now: Path) -> Places:
    return Places(*(now / getattr(places, name).relative_to(before) for name in ("store", "quarantine", "results", "scratch")))


class _Copy:
    """One copy of the store and what it refers to."""

    def __init__(self, source: Places, target: Places) -> None:
        self._source = source
        self._target = target
        self._done = BackedUp()

    def run(self) -> BackedUp:
        for folder in (self._target.quarantine, self._target.results):
            folder.mkdir(mode=0o700)
        self._copy_database()
        with closing(sqlite3.connect(self._target.store, isolation_level=None)) as copy:
            copy.execute("PRAGMA journal_mode = DELETE").fetchall()
            copy.execute("PRAGMA foreign_keys = ON").fetchall()
            self._copy_contents(copy)
            self._copy_results(copy)
            copy.execute(statement("close_removals"))
            copy.execute("PRAGMA journal_mode = WAL").fetchall()
        return self._done

    def _copy_database(self) -> None:
        os.close(os.open(self._target.store, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))
        with closing(read_only(self._source.store)) as source, closing(sqlite3.connect(self._target.store)) as copy:
            store_version(source, self._source.store, migrations()[-1].number)
            if store_version(source, self._source.store, migrations()[-1].number) < migrations()[-1].number:
                raise StoreError(f"{self._source.store} is of an older version. Start malbox-tui once to bring it up to date.")
            source.execute("BEGIN")
            source.execute("SELECT count(*) FROM engine").fetchall()  # from here on it is one moment that is read
            source.backup(copy, pages=DATABASE_PAGES)
            source.rollback()

    def _copy_contents(self, copy: sqlite3.Connection) -> None:
        after = ""
        while rows := copy.execute(statement("samples_after"), (after, _PAGE)).fetchall():
            for (sha256,) in rows:
                if self._copied(self._source.content(sha256), self._target.content(sha256)):
                    self._done.samples += 1
                elif not self._is_still("holds", sha256):
                    self._forget(copy, sha256)
            after = rows[-1][0]

    def _copy_results(self, copy: sqlite3.Connection) -> None:
        after = 0
        while rows := copy.execute(statement("results_after"), (after, _PAGE)).fetchall():
            for task_id, plugins in rows:
                paths = [reference.path for run in _runs(plugins) for reference in run.results]
                copied = [
                    self._copied(self._source.results / path, self._target.results / path) for path in paths if _is_plain(path)
                ]
                self._done.results += sum(copied)
                if not all(copied) and not self._is_still("keeps_results", task_id):
                    copy.execute(statement("forget_results"), (task_id,))
                    self._done.vanished += 1
            after = rows[-1][0]

    def _is_still(self, name: str, subject: object) -> bool:
        """Whether the store that is copied still has it."""
        with closing(read_only(self._source.store)) as source:
            return bool(source.execute(statement(name), (subject,)).fetchone()[0])

    def _forget(self, copy: sqlite3.Connection, sha256: str) -> None:
        """As removing it from the store does."""
        copy.execute("BEGIN IMMEDIATE")
        ((last, _),) = copy.execute(statement("counters")).fetchall()
        copy.execute(statement("keep_task_number"), (last,))
        for name in ("remove_tasks", "remove_names", "remove_sample"):
            copy.execute(statement(name), (sha256,)).fetchall()
        copy.execute("COMMIT")
        self._done.vanished += 1

    def _copied(self, source: Path, target: Path) -> bool:
        """False when there is no such file any more."""
        try:
            with open_regular(source) as content:
                _make_folders(target.parent)
                descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
                with os.fdopen(descriptor, "wb") as copy:
                    shutil.copyfileobj(content, copy, _COPY_BYTES)
                    self._done.size_bytes += copy.tell()
        except FileNotFoundError:
            return False
        return True


def _is_plain(path: str) -> bool:
    parts = path.split("/")
    return len(parts) == 4 and all(part not in ("", ".", "..") and "\0" not in part for part in parts)


def _make_folders(folder: Path) -> None:
    if not folder.is_dir():
        _make_folders(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)


def _copy_as_it_is(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target, symlinks=True)
    elif source.is_file():
        shutil.copy2(source, target)
