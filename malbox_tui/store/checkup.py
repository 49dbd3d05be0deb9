"""Looks whether what a store says is there, and whether what is there is in the store: for samples and results, one by one.

It only reads, in short statements, so it works beside a running engine; what the engine is about doing is looked at once more before
anything is told of it. Memory does not grow with the store: rows come in pages, files a folder at a time.
"""

from __future__ import annotations

import hashlib
import os
import re
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Any

import msgspec

from malbox_tui.model.errors import SampleChanged, SampleMissing, StoreError
from malbox_tui.model.report import PluginRun, ResultRef
from malbox_tui.model.sample import escape
from malbox_tui.store import carts
from malbox_tui.store.failures import store_error
from malbox_tui.store.migrations import store_version
from malbox_tui.store.read_only import read_only
from malbox_tui.store.regular import open_regular
from malbox_tui.store.statements import migrations, statement
from malbox_tui.store.stockroom import Places

PAGE = 500
YOUNG_S = 600.0
"""A file that changed within this may be one whose task is being made, or a result on its way: it is not told of."""
_READ_BYTES = 1 << 20

_CART = re.compile(r"([0-9a-f]{64})\.cart")
_TASK_FOLDER = re.compile(r"[1-9][0-9]{0,15}")
_runs = msgspec.json.Decoder(tuple[PluginRun, ...]).decode


class Fault(StrEnum):
    """What can be wrong with a content: the store knows it and it is not there, it is not what was stored, or nobody knows it."""

    LOST = "lost"
    DAMAGED = "damaged"
    ORPHANED = "orphaned"


class Thing(StrEnum):
    """What was looked at."""

    SAMPLE = "sample"
    RESULT = "result"


REMEDIES: Mapping[tuple[Thing, Fault], str] = MappingProxyType(
    {
        (Thing.SAMPLE, Fault.LOST): "hand the file in again, take it from a backup, or `malbox-tui sample purge` it",
        (Thing.SAMPLE, Fault.DAMAGED): "hand the file in again: the damaged content is replaced; or take it from a backup",
        (Thing.SAMPLE, Fault.ORPHANED): "with no engine running, move the file away; it is of no task",
        (Thing.RESULT, Fault.LOST): "take it from a backup, or `malbox-tui retry` the task",
        (Thing.RESULT, Fault.DAMAGED): "take it from a backup, or `malbox-tui retry` the task",
        (Thing.RESULT, Fault.ORPHANED): "with no engine running, move it away; no task refers to it",
    }
)


@dataclass(frozen=True, slots=True)
class Trouble:
    """One thing that is wrong; `what` names it safely, `detail` says how it is wrong."""

    thing: Thing
    fault: Fault
    what: str
    detail: str

    @property
    def remedy(self) -> str:
        """What a person can do about it."""
        return REMEDIES[self.thing, self.fault]


@dataclass(slots=True)
class Checked:
    """How much was looked at."""

    samples: int = 0
    results: int = 0
    files: int = 0
    size_bytes: int = 0


class Checkup:
    """One look at all of `places`; `now` is the time of it."""

    def __init__(self, places: Places, now: float) -> None:
        self._places = places
        self._now = now
        self.checked = Checked()

    def run(self) -> Iterator[Trouble]:
        """What is wrong, as it is found. Blocking. Raises `StoreError` when the store itself can't be read, `StoreTooNew`."""
        try:
            with closing(read_only(self._places.store)) as connection:
                version = store_version(connection, self._places.store, migrations()[-1].number)
                if version < migrations()[-1].number:
                    raise StoreError(
                        f"{self._places.store} is of an older version. Start malbox-tui once to bring it up to date."
                    )
                self._check_store(connection)
                yield from self._samples(connection)
                yield from self._results(connection)
                yield from self._orphaned_samples(connection)
                yield from self._orphaned_results(connection)
        except (sqlite3.Error, OSError) as exc:
            raise store_error(exc, str(self._places.store)) from exc

    def _check_store(self, connection: sqlite3.Connection) -> None:
        """Raises `StoreError` when SQLite finds its own file damaged."""
        found = [str(row[0]) for row in connection.execute("PRAGMA quick_check(3)").fetchall()]
        if found != ["ok"]:
            raise StoreError(f"{self._places.store} is damaged ({'; '.join(found)}). Restore it from a backup.")

    # --- what the store knows ---

    def _samples(self, connection: sqlite3.Connection) -> Iterator[Trouble]:
        for (sha256,) in _pages(connection, "samples_after", ""):
            trouble = self._sample(sha256)
            self.checked.samples += 1
            if trouble is not None and self._is_still(connection, "holds", sha256):
                yield trouble

    def _sample(self, sha256: str) -> Trouble | None:
        path = self._places.content(sha256)
        try:
            self.checked.size_bytes += carts.verify(path, sha256)
        except SampleMissing:
            return Trouble(Thing.SAMPLE, Fault.LOST, sha256, f"there is no {self._shown(path)}")
        except SampleChanged as exc:
            return Trouble(Thing.SAMPLE, Fault.DAMAGED, sha256, exc.detail)
        except OSError as exc:
            return Trouble(Thing.SAMPLE, Fault.DAMAGED, sha256, f"it can't be read: {exc.strerror or exc}")
        return None

    def _results(self, connection: sqlite3.Connection) -> Iterator[Trouble]:
        for task_id, plugins in _pages(connection, "results_after", 0):
            for reference in _references(plugins):
                trouble = self._result(task_id, reference)
                self.checked.results += 1
                if trouble is not None and self._is_still(connection, "keeps_results", task_id):
                    yield trouble

    def _result(self, task_id: int, reference: ResultRef) -> Trouble | None:
        what = f"task {task_id}: {escape(reference.path.encode('utf-8', 'surrogateescape'))}"
        parts = reference.path.split("/")
        if len(parts) != 4 or parts[0] != str(task_id) or any(part in ("", ".", "..") or "\0" in part for part in parts):
            return Trouble(Thing.RESULT, Fault.LOST, what, "its path leads nowhere")
        try:
            size_bytes, sha256 = _summed(self._places.results.joinpath(*parts))
        except FileNotFoundError:
            return Trouble(Thing.RESULT, Fault.LOST, what, "there is no such file")
        except OSError as exc:
            return Trouble(Thing.RESULT, Fault.DAMAGED, what, f"it can't be read: {exc.strerror or exc}")
        self.checked.size_bytes += size_bytes
        if (size_bytes, sha256) == (reference.size_bytes, reference.sha256):
            return None
        how = (
            "its SHA-256 is another one"
            if size_bytes == reference.size_bytes
            else f"{size_bytes} bytes, not {reference.size_bytes}"
        )
        return Trouble(Thing.RESULT, Fault.DAMAGED, what, how)

    def _is_still(self, connection: sqlite3.Connection, name: str, subject: object) -> bool:
        """Whether the store still says so: it may have been removed meanwhile."""
        return bool(connection.execute(statement(name), (subject,)).fetchone()[0])

    # --- what lies there ---

    def _orphaned_samples(self, connection: sqlite3.Connection) -> Iterator[Trouble]:
        for path in _files(self._places.quarantine):
            self.checked.files += 1
            if path.parent == self._places.quarantine / "incoming" or self._is_young(path):
                continue
            found = _CART.fullmatch(path.name)
            if found is None or path != self._places.content(found[1]):
                yield Trouble(Thing.SAMPLE, Fault.ORPHANED, self._shown(path), "no content would lie there")
            elif not self._is_still(connection, "holds_or_removes", found[1]):
                yield Trouble(Thing.SAMPLE, Fault.ORPHANED, self._shown(path), "no sample of the store has it")

    def _orphaned_results(self, connection: sqlite3.Connection) -> Iterator[Trouble]:
        with os.scandir(self._places.results) as entries:
            for entry in entries:
                folder = Path(entry.path)
                if _TASK_FOLDER.fullmatch(entry.name) is None or not entry.is_dir(follow_symlinks=False):
                    yield Trouble(Thing.RESULT, Fault.ORPHANED, self._shown(folder), "no result would lie there")
                else:
                    yield from self._orphaned_of(connection, int(entry.name), folder)

    def _orphaned_of(self, connection: sqlite3.Connection, task_id: int, folder: Path) -> Iterator[Trouble]:
        row = connection.execute(statement("task_results"), (task_id,)).fetchone()
        if row is None:
            if not self._is_still(connection, "removes_task", task_id):
                yield Trouble(Thing.RESULT, Fault.ORPHANED, self._shown(folder), f"there is no task {task_id}")
            return
        is_owned, is_removed, plugins = row
        if is_owned or is_removed:
            return  # an attempt writes there, or they are being removed
        known = {reference.path for reference in _references(plugins)}
        for path in _files(folder):
            self.checked.files += 1
            if str(path.relative_to(self._places.results)) not in known and not self._is_young(path):
                yield Trouble(Thing.RESULT, Fault.ORPHANED, self._shown(path), f"task {task_id} has no such result")

    def _is_young(self, path: Path) -> bool:
        try:
            return path.lstat().st_ctime > self._now - YOUNG_S
        except FileNotFoundError:
            return True

    def _shown(self, path: Path) -> str:
        return escape(bytes(path))


def _pages(connection: sqlite3.Connection, name: str, start: Any) -> Iterator[tuple[Any, ...]]:
    """All rows of a statement that gives those whose first column is beyond a value, in its order."""
    after = start
    while rows := connection.execute(statement(name), (after, PAGE)).fetchall():
        yield from rows
        after = rows[-1][0]


def _references(plugins: str) -> Iterator[ResultRef]:
    for run in _runs(plugins):
        yield from run.results


def _files(root: Path) -> Iterator[Path]:
    """Everything under `root` that is no folder; a link is not followed."""
    for folder, folders, names in os.walk(root):
        yield from (Path(folder, name) for name in names)
        yield from (path for name in folders if (path := Path(folder, name)).is_symlink())


def _summed(path: Path) -> tuple[int, str]:
    """Size and sum of a regular file. Raises OSError for anything else."""
    with open_regular(path) as file:
        digest, size_bytes = hashlib.sha256(), 0
        while chunk := file.read(_READ_BYTES):
            digest.update(chunk)
            size_bytes += len(chunk)
    return size_bytes, digest.hexdigest()
