"""The lock of a data folder names its holder and never outlives it."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

import pytest

from malbox_tui.model.errors import DataFolderInUse, StoreError
from malbox_tui.store import folder_lock
from malbox_tui.store.folder_lock import LOCK_NAME, FolderLock
from tests.store.builders import process

HALF_PAST_ELEVEN = 1_764_415_800.25


def test_the_second_to_ask_is_told_who_holds_the_folder_and_since_when(tmp_path: Path) -> None:
    lock = FolderLock(tmp_path)
    lock.acquire(HALF_PAST_ELEVEN)
    with pytest.raises(DataFolderInUse) as caught:
        FolderLock(tmp_path).acquire(HALF_PAST_ELEVEN + 5)
    lock.close()
    assert (caught.value.pid, caught.value.since) == (os.getpid(), "2025-11-29T11:30:00.250Z")
    assert "pytest" in (caught.value.command or "")
    assert str(tmp_path) in str(caught.value)


def test_a_command_line_is_shown_escaped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "orig_argv", ["malbox-tui", "\x1b[2J\n\u202e", "\udcff"])
    lock = FolderLock(tmp_path)
    lock.acquire(0.0)
    with pytest.raises(DataFolderInUse) as caught:
        FolderLock(tmp_path).acquire(0.0)
    lock.close()
    assert caught.value.command == "malbox-tui \\x1b[2J\\x0a\\xe2\\x80\\xae \\xff"


def test_a_closed_lock_can_be_taken(tmp_path: Path) -> None:
    first, second = FolderLock(tmp_path), FolderLock(tmp_path)
    first.acquire(0.0)
    first.acquire(0.0)
    first.close()
    first.close()
    second.acquire(0.0)
    second.close()


def test_a_holder_that_has_not_said_who_it_is_holds_all_the_same(tmp_path: Path) -> None:
    lock = FolderLock(tmp_path)
    lock.acquire(0.0)
    (tmp_path / LOCK_NAME).write_bytes(b'{"pid": "?')
    with pytest.raises(DataFolderInUse) as caught:
        FolderLock(tmp_path).acquire(0.0)
    lock.close()
    assert caught.value.pid is None


def test_who_held_it_before_is_not_taken_for_the_holder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between taking the lock and writing who it is, the holder may be held up."""
    with process("tests.store.locking_process", tmp_path) as former:
        assert former.stdout is not None
        former.stdout.readline()
    lock = FolderLock(tmp_path)
    left = (tmp_path / LOCK_NAME).read_bytes()
    lock.acquire(HALF_PAST_ELEVEN)
    written = (tmp_path / LOCK_NAME).read_bytes()
    (tmp_path / LOCK_NAME).write_bytes(left)
    monkeypatch.setattr(folder_lock.time, "sleep", lambda _seconds: (tmp_path / LOCK_NAME).write_bytes(written))
    with pytest.raises(DataFolderInUse) as caught:
        FolderLock(tmp_path).acquire(HALF_PAST_ELEVEN)
    lock.close()
    assert former.pid != caught.value.pid == os.getpid()
    assert not (tmp_path / LOCK_NAME).read_bytes()


def test_the_lock_file_is_the_owners_alone(tmp_path: Path) -> None:
    lock = FolderLock(tmp_path)
    lock.acquire(0.0)
    lock.close()
    assert stat.S_IMODE((tmp_path / LOCK_NAME).stat().st_mode) == 0o600


def test_a_folder_that_is_not_there_can_not_be_locked(tmp_path: Path) -> None:
    with pytest.raises(StoreError):
        FolderLock(tmp_path / "missing").acquire(0.0)


def test_a_lock_file_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("precious")
    (tmp_path / LOCK_NAME).symlink_to(tmp_path / "precious")
    with pytest.raises(StoreError):
        FolderLock(tmp_path).acquire(0.0)
    assert (tmp_path / "precious").read_text() == "precious"


def test_a_killed_holder_lets_go_and_its_children_never_held(tmp_path: Path) -> None:
    with process("tests.store.locking_process", tmp_path) as holder:
        assert holder.stdout is not None
        child = int(holder.stdout.readline())
        with pytest.raises(DataFolderInUse) as caught:
            FolderLock(tmp_path).acquire(0.0)
        descriptors = [str(entry.readlink()) for entry in Path(f"/proc/{child}/fd").iterdir()]
    assert caught.value.pid == holder.pid
    assert str(tmp_path / LOCK_NAME) not in descriptors
    lock = FolderLock(tmp_path)
    lock.acquire(0.0)
    lock.close()
