"""When a file of a watched folder is taken, and what becomes of it."""

from pathlib import Path

import pytest

from malbox_tui.config.watching import Afterwards
from malbox_tui.model.submission import Refusal
from malbox_tui.model.watching import WatchState
from tests.intake.watching.rig import SETTLE_S, names, scene


async def test_a_file_is_taken_when_it_has_stood_still(tmp_path: Path) -> None:
    rig = scene(tmp_path)
    rig.watch()
    (rig.folder / "a").write_bytes(b"one")
    assert await rig.after(1) == SETTLE_S
    with (rig.folder / "a").open("ab") as file:
        file.write(b", more")
    assert await rig.after(1.5) == SETTLE_S
    assert await rig.after(1.5) == 0.5
    assert rig.taken == {}
    await rig.after(0.5)
    assert rig.taken == {b"a": b"one, more"}
    assert rig.counts == (1, 0, 0, 0)


async def test_a_file_that_is_open_for_writing_waits_however_long_it_stands_still(tmp_path: Path) -> None:
    rig = scene(tmp_path)
    rig.watch()
    with (rig.folder / "a").open("wb", buffering=0) as file:
        file.write(b"half")
        await rig.after(1)
        due = await rig.after(1000)
        assert rig.taken == {}
        assert due is not None
        assert due < 1
        assert rig.counts == (0, 0, 0, 1)
    await rig.after(due)
    assert rig.taken == {b"a": b"half"}


async def test_a_file_that_is_only_read_is_taken(tmp_path: Path) -> None:
    rig = scene(tmp_path)
    rig.watch()
    (rig.folder / "a").write_bytes(b"read")
    with (rig.folder / "a").open("rb"):
        await rig.settle()
    assert rig.taken == {b"a": b"read"}


async def test_what_was_put_there_while_nothing_ran_is_taken_once(tmp_path: Path) -> None:
    rig = scene(tmp_path)
    (rig.folder / "a").write_bytes(b"before")
    rig.watch()
    await rig.settle()
    rig.watch()
    await rig.settle()
    assert (rig.taken, len(rig.desk.receipts)) == ({b"a": b"before"}, 1)


async def test_a_file_that_was_taken_and_changes_is_taken_again(tmp_path: Path) -> None:
    rig = scene(tmp_path)
    rig.watch()
    (rig.folder / "a").write_bytes(b"one")
    await rig.settle()
    (rig.folder / "a").write_bytes(b"another")
    await rig.settle()
    assert (rig.taken, len(rig.desk.receipts)) == ({b"a": b"another"}, 2)


async def test_the_same_content_again_is_known(tmp_path: Path) -> None:
    rig = scene(tmp_path)
    rig.watch()
    (rig.folder / "a").write_bytes(b"one")
    await rig.settle()
    (rig.folder / "b").write_bytes(b"one")
    await rig.settle()
    assert rig.counts == (1, 1, 0, 0)


async def test_what_is_asked_goes_with_the_files(tmp_path: Path) -> None:
    rig = scene(tmp_path)
    rig.watch(priority=5, again=True)
    (rig.folder / "a").write_bytes(b"one")
    await rig.settle()
    (options,) = rig.desk.options
    assert (options.priority, options.again, options.actor) == (5, True, f"watch:{rig.folder}")


async def test_files_of_other_names_than_those_asked_for_stay_and_are_counted(tmp_path: Path) -> None:
    rig = scene(tmp_path)
    rig.watch(patterns=("*.exe",), afterwards=Afterwards.MOVE)
    for name in ("a.EXE", "readme.txt", "notes"):
        (rig.folder / name).write_text(name)
    await rig.settle()
    assert (rig.taken, rig.counts) == ({b"a.EXE": b"a.EXE"}, (1, 0, 0, 0))
    assert rig.watched.standing.view.left_out == 2
    assert names(rig.folder) == ["done", "notes", "readme.txt"]


@pytest.mark.parametrize("name", [".hidden", "a.part", "b.CRDOWNLOAD", "c.opdownload", "d.filepart"])
async def test_what_is_not_whole_by_its_name_waits(tmp_path: Path, name: str) -> None:
    rig = scene(tmp_path)
    rig.watch()
    (rig.folder / name).write_bytes(b"half")
    await rig.settle()
    assert (rig.taken, rig.counts) == ({}, (0, 0, 0, 1))
    (rig.folder / name).rename(rig.folder / "whole")
    await rig.settle()
    assert (rig.taken, rig.counts) == ({b"whole": b"half"}, (1, 0, 0, 0))


async def test_a_file_waits_for_the_partial_download_beside_it(tmp_path: Path) -> None:
    rig = scene(tmp_path)
    rig.watch()
    (rig.folder / "setup.exe").write_bytes(b"")
    (rig.folder / "setup.exe.part").write_bytes(b"half")
    await rig.settle()
    assert rig.counts == (0, 0, 0, 2)
    (rig.folder / "setup.exe.part").rename(rig.folder / "setup.exe")
    await rig.settle()
    assert rig.taken == {b"setup.exe": b"half"}


async def test_a_file_that_was_taken_is_not_forgotten_while_a_partial_download_lies_beside_it(tmp_path: Path) -> None:
    rig = scene(tmp_path)
    (rig.folder / "a").write_bytes(b"one")
    rig.watch()
    await rig.settle()
    (rig.folder / "a.part").write_bytes(b"")
    await rig.after(1)
    (rig.folder / "a.part").unlink()
    await rig.settle()
    assert len(rig.desk.receipts) == 1


async def test_folders_below_are_looked_into_when_that_is_asked(tmp_path: Path) -> None:
    rig = scene(tmp_path)
    (rig.folder / "sub" / "deep").mkdir(parents=True)
    (rig.folder / "sub" / "deep" / "a").write_bytes(b"one")
    rig.watch()
    await rig.settle()
    assert rig.taken == {}
    rig.watch(recursive=True)
    await rig.settle()
    assert rig.taken == {b"sub/deep/a": b"one"}


async def test_taken_files_are_moved_and_refused_ones_elsewhere(tmp_path: Path) -> None:
    rig = scene(tmp_path)
    (rig.folder / "sub").mkdir()
    (rig.folder / "sub" / "a").write_bytes(b"one")
    (rig.folder / "huge").write_bytes(b"x" * ((1 << 20) + 1))
    (rig.folder / "empty").write_bytes(b"")
    rig.watch(afterwards=Afterwards.MOVE, recursive=True)
    await rig.settle()
    await rig.settle()
    assert (rig.folder / "done/sub/a").read_bytes() == b"one"
    assert names(rig.folder / "refused") == ["empty", "huge"]
    assert names(rig.folder) == ["done", "refused", "sub"]
    assert (rig.taken, rig.counts) == ({b"sub/a": b"one"}, (1, 0, 2, 0))
    assert [sentence for sentence, bad in rig.told if bad] == [
        "empty was refused: It is empty.",
        "huge was refused: It has 1048577 bytes; intake.max_sample_bytes allows 1048576.",
    ]


async def test_a_move_puts_nothing_over_what_is_there(tmp_path: Path) -> None:
    rig = scene(tmp_path)
    (rig.folder / "done").mkdir()
    (rig.folder / "done" / "a").write_bytes(b"older")
    (rig.folder / "a").write_bytes(b"newer")
    rig.watch(afterwards=Afterwards.MOVE)
    await rig.settle()
    assert (rig.folder / "done" / "a").read_bytes() == b"older"
    (other,) = set(names(rig.folder / "done")) - {"a"}
    assert other.startswith("a.")
    assert (rig.folder / "done" / other).read_bytes() == b"newer"


async def test_a_file_is_removed_once_it_is_stored_and_a_refused_one_stays(tmp_path: Path) -> None:
    rig = scene(tmp_path)
    (rig.folder / "a").write_bytes(b"one")
    (rig.folder / "b").write_bytes(b"one")
    (rig.folder / "empty").write_bytes(b"")
    rig.watch(afterwards=Afterwards.DELETE)
    await rig.settle()
    await rig.settle()
    assert (names(rig.folder), rig.counts) == (["empty"], (1, 1, 1, 0))


@pytest.mark.parametrize("code", ["store_failed", "unserviceable"])
async def test_what_cannot_be_kept_or_served_now_stays_and_is_tried_again(tmp_path: Path, code: str) -> None:
    rig = scene(tmp_path)
    rig.desk.refuses = Refusal(code, "Not now.")
    (rig.folder / "a").write_bytes(b"one")
    rig.watch(afterwards=Afterwards.MOVE)
    await rig.settle()
    assert (names(rig.folder), rig.counts) == (["a"], (0, 0, 0, 1))
    assert rig.watched.standing.view.problem == "a waits: Not now."
    assert rig.told == [("a waits: Not now.", True)]
    rig.desk.refuses = None
    await rig.after(1)
    assert rig.taken == {}
    await rig.after(30)
    assert (rig.taken, rig.watched.standing.view.problem) == ({b"a": b"one"}, "")


async def test_a_file_that_changes_while_it_is_read_is_taken_when_it_has_settled_again(tmp_path: Path) -> None:
    rig = scene(tmp_path)
    (rig.folder / "a").write_bytes(b"one")
    rig.watch(afterwards=Afterwards.MOVE)
    rig.desk.on_offer = lambda: (rig.folder / "a").write_bytes(b"another")
    await rig.settle()
    assert (rig.taken, rig.counts[:3]) == ({}, (0, 0, 0))
    rig.desk.on_offer = lambda: None
    await rig.settle()
    assert (rig.taken, rig.counts) == ({b"a": b"another"}, (1, 0, 0, 0))


async def test_a_file_that_has_another_name_by_the_time_it_is_read_is_not_moved_in_its_place(tmp_path: Path) -> None:
    rig = scene(tmp_path)
    (rig.folder / "a").write_bytes(b"one")
    rig.watch(afterwards=Afterwards.MOVE)

    def swapped() -> None:
        if not (rig.folder / "b").exists():
            (rig.folder / "a").rename(rig.folder / "b")
            (rig.folder / "a").write_bytes(b"somebody else's")

    rig.desk.on_offer = swapped
    await rig.after(1)
    await rig.after(SETTLE_S)
    assert (rig.folder / "a").read_bytes() == b"somebody else's"
    await rig.settle()
    assert names(rig.folder / "done") == ["a", "b"]


async def test_a_folder_that_vanishes_is_told_and_picked_up_again(tmp_path: Path) -> None:
    rig = scene(tmp_path)
    (rig.folder / "a").write_bytes(b"one")
    rig.watch()
    await rig.settle()
    rig.folder.rename(tmp_path / "gone")
    await rig.after(1)
    await rig.after(1)
    assert rig.watched.standing.view.state is WatchState.AWAY
    assert rig.watched.standing.view.problem == "It can't be looked into: No such file or directory."
    (tmp_path / "gone").rename(rig.folder)
    (rig.folder / "b").write_bytes(b"two")
    await rig.settle()
    assert (rig.watched.standing.view.state, rig.watched.standing.view.problem) == (WatchState.WATCHING, "")
    assert [sentence for sentence, _ in rig.told] == ["It can't be looked into: No such file or directory.", "It is there again."]
    assert (rig.taken, len(rig.desk.receipts)) == ({b"a": b"one", b"b": b"two"}, 2)


async def test_an_empty_folder_in_its_place_makes_it_forget_nothing(tmp_path: Path) -> None:
    rig = scene(tmp_path)
    (rig.folder / "a").write_bytes(b"one")
    rig.watch()
    await rig.settle()
    rig.folder.rename(tmp_path / "unmounted")
    rig.folder.mkdir()
    await rig.after(1)
    rig.folder.rmdir()
    (tmp_path / "unmounted").rename(rig.folder)
    await rig.settle()
    assert len(rig.desk.receipts) == 1


async def test_what_has_gone_is_forgotten(tmp_path: Path) -> None:
    rig = scene(tmp_path)
    for name in ("a", "b"):
        (rig.folder / name).write_bytes(name.encode())
    rig.watch()
    await rig.settle()
    (memory,) = (rig.data / "watched").iterdir()
    assert memory.stat().st_size == 2 * 16
    (rig.folder / "a").unlink()
    await rig.after(1)
    assert memory.stat().st_size == 16


async def test_the_data_folder_is_never_taken_from(tmp_path: Path) -> None:
    rig = scene(tmp_path)
    (rig.data / "quarantine").mkdir()
    (rig.data / "quarantine" / "a").write_bytes(b"kept")
    rig.folder = rig.data / "quarantine"
    rig.watch()
    await rig.settle()
    assert "data folder of malbox-tui itself" in rig.watched.standing.view.problem
    rig.folder = tmp_path
    rig.watch(recursive=True)
    await rig.settle()
    assert rig.taken == {}
