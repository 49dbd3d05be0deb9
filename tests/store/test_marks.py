"""Marks that were left in guests are there for the next engine, if their machine is still reverted to the same."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pytest

from malbox_tui.model.errors import StoreError
from malbox_tui.model.machine import MachineSpec
from malbox_tui.ports import GuestMark
from malbox_tui.store import marks
from malbox_tui.store.marks import MarksFile

M1 = MachineSpec(name="m1", provider="libvirt", platform="linux", uri="qemu:///system", snapshot="clean")
MARK = GuestMark("/var/tmp/.a1", "b2")


async def test_the_next_engine_knows_the_last_mark_of_each_machine(tmp_path: Path) -> None:
    book = MarksFile(tmp_path / "marks.json")
    assert await book.kept(M1) is None
    m2 = msgspec.structs.replace(M1, name="m2")
    await asyncio.gather(book.keep(M1, GuestMark("/old", "old")), book.keep(m2, GuestMark("/other", "other")))
    await book.keep(M1, MARK)
    for reader in (book, MarksFile(tmp_path / "marks.json")):
        assert await reader.kept(M1) == MARK
        assert await reader.kept(m2) == GuestMark("/other", "other")
    assert [path.name for path in tmp_path.iterdir()] == ["marks.json"]


@pytest.mark.parametrize("change", [{"uri": "qemu:///session"}, {"domain": "vm-7"}, {"snapshot": "clean-2"}], ids=str)
async def test_a_mark_says_nothing_of_a_machine_that_is_reverted_to_something_else(
    tmp_path: Path, change: dict[str, str]
) -> None:
    book = MarksFile(tmp_path / "marks.json")
    await book.keep(M1, MARK)
    assert await book.kept(msgspec.structs.replace(M1, **change)) is None
    assert await book.kept(msgspec.structs.replace(M1, tags=("office",), max_failures=9)) == MARK


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"m1": {}}', b"\xff", b"[" * 100_000], ids=range(6))
async def test_a_file_that_can_not_be_read_is_as_none_and_written_anew(
    tmp_path: Path, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "marks.json").write_bytes(content)
    book = MarksFile(tmp_path / "marks.json")
    assert await book.kept(M1) is None
    assert "first reverts of machines are not proven" in caplog.text
    await book.keep(M1, MARK)
    assert await MarksFile(tmp_path / "marks.json").kept(M1) == MARK


async def test_what_can_not_be_written_leaves_the_mark_before(tmp_path: Path) -> None:
    book = MarksFile(tmp_path / "marks.json")
    await book.keep(M1, MARK)
    (tmp_path / "marks.json.new").mkdir()
    with pytest.raises(StoreError):
        await book.keep(M1, GuestMark("/new", "new"))
    for reader in (book, MarksFile(tmp_path / "marks.json")):
        assert await reader.kept(M1) == MARK


async def test_no_more_are_kept_than_there_may_be_machines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(marks, "MOST_KEPT", 2)
    book = MarksFile(tmp_path / "marks.json")
    for name in ("m1", "m2", "m1", "m3"):
        await book.keep(msgspec.structs.replace(M1, name=name), MARK)
    assert [await book.kept(msgspec.structs.replace(M1, name=name)) for name in ("m1", "m2", "m3")] == [MARK, None, MARK]
