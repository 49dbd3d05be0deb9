"""Watched folders as somebody with ill will, or a tired disk, may make them."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from malbox_tui.config.watching import Afterwards
from malbox_tui.intake.watching import looking, writers
from malbox_tui.intake.watching.putting_away import NotTheFile, move_away, remove
from malbox_tui.intake.watching.taken import TakenFiles
from malbox_tui.intake.watching.watched_folder import BATCH_FILES
from malbox_tui.model.archive import ArchiveAccount, ArchiveEnd
from malbox_tui.model.errors import EngineStopped
from malbox_tui.model.submission import Opened, Refusal, Refused
from malbox_tui.ports import ArchiveMember
from tests.intake.test_archive_intake import Scripted
from tests.intake.test_folder_walk import HOSTILE_NAMES
from tests.intake.watching.rig import names, scene


def write(folder: Path, name: bytes, content: bytes = b"one") -> None:
    descriptor = os.open(bytes(folder) + b"/" + name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    os.write(descriptor, content)
    os.close(descriptor)


@pytest.mark.parametrize("afterwards", list(Afterwards))
async def test_any_name_is_taken_and_put_away(tmp_path: Path, afterwards: Afterwards) -> None:
    rig = scene(tmp_path)
    every_byte = bytes(byte for byte in range(1, 256) if byte not in b"./")
    hostile = {*HOSTILE_NAMES, every_byte, b"a|b;$(touch x)'\".exe", b"trailing. ", b"-leading"}
    for name in hostile:
        write(rig.folder, name, name)
    rig.watch(afterwards=afterwards)
    await rig.settle()
    await rig.settle()
    assert rig.taken == {name: name for name in hostile}
    left = {os.fsencode(name) for name in names(rig.folder)}
    assert left == {Afterwards.LEAVE: hostile, Afterwards.MOVE: {b"done"}, Afterwards.DELETE: set()}[afterwards]
    if afterwards is Afterwards.MOVE:
        assert {os.fsencode(name) for name in names(rig.folder / "done")} == hostile


async def test_what_is_no_file_is_told_once_and_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rig = scene(tmp_path)
    (tmp_path / "secret").write_bytes(b"secret")
    (rig.folder / "link").symlink_to(tmp_path / "secret")
    os.mkfifo(rig.folder / "pipe")
    (rig.folder / "loop").symlink_to(".")
    with socket.socket(socket.AF_UNIX) as listener:
        monkeypatch.chdir(rig.folder)
        listener.bind("socket")
        rig.watch(recursive=True, afterwards=Afterwards.MOVE)
        await rig.settle()
        rig.watch(recursive=True, afterwards=Afterwards.MOVE)
        await rig.settle()
    assert rig.taken == {}
    assert names(rig.folder) == ["link", "loop", "pipe", "socket"]
    assert [sentence.split(" ")[0] for sentence, _ in rig.told] == ["link", "loop", "pipe", "socket"]


async def test_more_refused_things_than_can_be_read_are_counted(tmp_path: Path) -> None:
    rig = scene(tmp_path)
    for number in range(50):
        (rig.folder / f"link{number:02}").symlink_to("nowhere")
    rig.watch()
    await rig.settle()
    assert len(rig.told) == 9
    assert rig.told[-1] == ("42 more were refused.", True)
    assert rig.counts == (0, 0, 50, 0)


@pytest.mark.parametrize("place", ["done", "done/sub"])
async def test_nothing_is_moved_through_a_link(tmp_path: Path, place: str) -> None:
    rig = scene(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    (rig.folder / place).parent.mkdir(exist_ok=True)
    (rig.folder / place).symlink_to(tmp_path / "elsewhere")
    (rig.folder / "sub").mkdir()
    (rig.folder / "sub" / "a").write_bytes(b"one")
    rig.watch(afterwards=Afterwards.MOVE, recursive=True)
    await rig.settle()
    await rig.settle()
    assert (names(tmp_path / "elsewhere"), names(rig.folder / "sub")) == ([], ["a"])
    assert list(rig.taken.values()) == [b"one"]
    assert "can't be moved, and stay where they are" in rig.watched.standing.view.problem


async def test_where_nothing_can_be_moved_files_are_taken_and_left_and_it_is_said_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise OSError(30, os.strerror(30))

    monkeypatch.setattr("malbox_tui.intake.watching.putting_away._rename", refused)
    rig = scene(tmp_path)
    for name in ("a", "b"):
        (rig.folder / name).write_bytes(name.encode())
    rig.watch(afterwards=Afterwards.MOVE)
    await rig.settle()
    await rig.settle()
    assert (names(rig.folder), rig.counts) == (["a", "b", "done"], (2, 0, 0, 0))
    assert len(rig.desk.receipts) == 2
    problem = "Files that were taken can't be moved, and stay where they are: Read-only file system."
    assert (rig.told, rig.watched.standing.view.problem) == ([(problem, True)], problem)


def test_a_file_that_is_another_one_by_now_is_neither_moved_nor_removed(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"taken")
    signature = looking.Signature.of((tmp_path / "a").stat())
    (tmp_path / "kept").write_bytes(b"another")
    (tmp_path / "kept").replace(tmp_path / "a")
    root = os.open(tmp_path, os.O_RDONLY)
    try:
        for put_away in (lambda: move_away(root, b"a", signature, b"done"), lambda: remove(root, b"a", signature)):
            with pytest.raises(NotTheFile):
                put_away()
    finally:
        os.close(root)
    assert (tmp_path / "a").read_bytes() == b"another"


def test_a_file_that_is_replaced_in_the_moment_of_its_removal_is_put_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from malbox_tui.intake.watching import putting_away

    (tmp_path / "a").write_bytes(b"taken")
    (tmp_path / "other").write_bytes(b"another")
    signature = looking.Signature.of((tmp_path / "a").stat())
    rename = putting_away._rename

    def swapped(source: int, name: bytes, target: int, other: bytes) -> None:
        if (tmp_path / "other").exists():
            (tmp_path / "other").replace(tmp_path / "a")
        rename(source, name, target, other)

    monkeypatch.setattr(putting_away, "_rename", swapped)
    root = os.open(tmp_path, os.O_RDONLY)
    try:
        with pytest.raises(NotTheFile):
            remove(root, b"a", signature)
    finally:
        os.close(root)
    assert (names(tmp_path), (tmp_path / "a").read_bytes()) == (["a"], b"another")


async def test_a_file_system_without_such_renames_moves_over_nothing_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("malbox_tui.intake.watching.putting_away._libc_renameat2", lambda: None)
    rig = scene(tmp_path)
    (rig.folder / "done").mkdir()
    (rig.folder / "done" / "a").write_bytes(b"older")
    (rig.folder / "a").write_bytes(b"newer")
    rig.watch(afterwards=Afterwards.MOVE)
    await rig.settle()
    assert sorted((rig.folder / "done" / name).read_bytes() for name in names(rig.folder / "done")) == [b"newer", b"older"]


async def test_an_archive_is_only_removed_when_all_of_it_is_stored(tmp_path: Path) -> None:
    rig = scene(tmp_path)
    refusal = Refusal("too_large", "It is too large.")
    rig.unpacker = Scripted(
        ArchiveMember((b"big",), refusal=refusal), ArchiveAccount(path=(), end=ArchiveEnd.OPENED, taken=0, refused=1)
    )
    (rig.folder / "a.zip").write_bytes(b"PK\x03\x04" + bytes(64))
    rig.watch(afterwards=Afterwards.DELETE)
    await rig.settle()
    await rig.settle()
    assert names(rig.folder) == ["a.zip"]
    assert [type(receipt) for receipt in rig.desk.receipts] == [Refused, Opened], "once"


async def test_what_has_its_receipt_when_the_engine_ends_is_not_taken_twice(tmp_path: Path) -> None:
    rig = scene(tmp_path)
    for name in ("a", "b"):
        (rig.folder / name).write_bytes(name.encode())
    rig.desk.ends_after = 1
    rig.watch(again=True)
    await rig.after(1)
    with pytest.raises(EngineStopped):
        await rig.after(2)
    rig.desk.ends_after = None
    rig.watch(again=True)
    await rig.settle()
    assert sorted(rig.taken) == [b"a", b"b"]
    assert rig.counts == (1, 0, 0, 0)


async def test_folders_that_lie_too_deep_are_told(tmp_path: Path) -> None:
    rig = scene(tmp_path)
    deep = rig.folder.joinpath(*["d"] * (looking.MOST_DEPTH + 3))
    deep.mkdir(parents=True)
    (deep / "a").write_bytes(b"one")
    rig.watch(recursive=True)
    await rig.settle()
    assert rig.taken == {}
    assert "It lies more than 64 folders deep." in rig.watched.standing.view.problem


async def test_more_files_than_one_batch_are_all_taken(tmp_path: Path) -> None:
    rig = scene(tmp_path)
    count = 2 * BATCH_FILES + 1
    for number in range(count):
        (rig.folder / str(number)).write_bytes(b"%d" % number)
    rig.watch()
    await rig.settle()
    assert (len(rig.taken), len(rig.desk.options), rig.counts) == (count, 3, (count, 0, 0, 0))


def test_a_memory_that_is_cut_off_or_unreadable_is_no_memory(tmp_path: Path) -> None:
    taken = TakenFiles(tmp_path, "/in")
    taken.add([b"a" * 16, b"b" * 16])
    (file,) = tmp_path.iterdir()
    file.write_bytes(file.read_bytes()[:20])
    assert len(TakenFiles(tmp_path, "/in")) == 1
    file.unlink()
    file.mkdir()
    assert len(TakenFiles(tmp_path, "/in")) == 0


def test_a_memory_is_for_its_folder_alone_and_for_its_owner(tmp_path: Path) -> None:
    TakenFiles(tmp_path, "/in").add([b"a" * 16])
    assert b"a" * 16 not in TakenFiles(tmp_path, "/other")
    (file,) = tmp_path.iterdir()
    assert file.stat().st_mode & 0o777 == 0o600


def test_processes_tell_who_writes_where_no_lease_does(tmp_path: Path) -> None:
    written, read = tmp_path / "written", tmp_path / "read"
    for path in (written, read):
        path.write_bytes(b"one")
    identities = {path: (path.stat().st_dev, path.stat().st_ino) for path in (written, read)}
    with written.open("ab"), read.open("rb"):
        assert writers.by_processes(set(identities.values())) == {identities[written]}
    assert writers.by_processes(set(identities.values())) == set()
    assert writers.by_processes({identities[read]}, tmp_path / "no proc") == set()


def test_a_lease_tells_who_writes(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"one")
    with path.open("rb") as reader:
        assert writers.by_lease(reader.fileno()) is False
        with path.open("ab"):
            assert writers.by_lease(reader.fileno()) is True
        assert writers.by_lease(reader.fileno()) is False
    with Path(os.devnull).open("rb") as device:
        assert writers.by_lease(device.fileno()) is None


async def test_where_no_lease_tells_a_writer_is_found_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writers, "by_lease", lambda descriptor: None)
    rig = scene(tmp_path)
    rig.watch()
    (rig.folder / "other").write_bytes(b"two")
    with (rig.folder / "a").open("wb", buffering=0) as file:
        file.write(b"half")
        await rig.settle()
        assert rig.taken == {b"other": b"two"}
    await rig.settle()
    assert rig.taken == {b"other": b"two", b"a": b"half"}


def test_writers_that_come_while_leases_are_held_end_nobody(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"one")
    program = f"while True:\n open({str(path)!r}, 'ab').close()\n"
    with subprocess.Popen([sys.executable, "-c", program]) as writer, path.open("rb") as reader:
        told = {writers.by_lease(reader.fileno()) for _ in range(20_000)}
        writer.kill()
    assert told <= {True, False}
