"""A first look says what an intake would come to, in its words, and reads no more than it may."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from malbox_tui.intake import surveying
from malbox_tui.intake.first_look import first_kind
from malbox_tui.intake.folder_walk import FolderIntake
from malbox_tui.model.survey import NAMED_REFUSALS, Survey
from tests.intake import archives
from tests.intake.test_folder_walk import HOSTILE_NAMES


async def surveyed(*paths: Path, counts_only: bool = False) -> Survey:
    surveys = [survey async for survey in FolderIntake(1 << 20).survey([bytes(path) for path in paths], counts_only=counts_only)]
    assert [survey.done for survey in surveys[:-1]] == [False] * (len(surveys) - 1)
    assert surveys[-1].done
    return surveys[-1]


def sum_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


async def test_files_are_counted_with_size_kind_sums_twins_and_archives(tmp_path: Path) -> None:
    (tmp_path / "a.exe").write_bytes(b"MZ" + bytes(98))
    (tmp_path / "b").write_bytes(b"hello, world\n")
    (tmp_path / "c").write_bytes(b"hello, world\n")
    (tmp_path / "readme.exe").write_bytes(archives.plain_zip({"a": b"x"}))
    found = await surveyed(tmp_path)
    assert (found.files, found.archives, found.twins, found.refused) == (4, 1, 1, 0)
    assert found.kinds == {"Windows program": 1, "text": 2, "zip archive": 1}
    assert found.sums == (sum_of(b"MZ" + bytes(98)), sum_of(b"hello, world\n"))
    assert (found.unread, found.size_bytes) == (0, sum(path.stat().st_size for path in tmp_path.iterdir()))


async def test_what_would_be_refused_is_refused_with_the_same_words(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    (tmp_path / "link").symlink_to("empty")
    (tmp_path / "large").write_bytes(bytes((1 << 20) + 1))
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to(tmp_path)
    gone = tmp_path / "gone"
    paths = [bytes(tmp_path), bytes(gone), b"/dev/zero", b"/proc/self/mem", b"a\0b"]
    found = await surveyed(*(Path(os.fsdecode(path)) for path in paths))
    offered = [offer async for offer in FolderIntake(1 << 20).offers(paths)]
    assert [(one.name, one.refusal) for one in found.refusals] == [(offer.name, offer.refusal) for offer in offered]
    assert (found.files, found.refused) == (0, len(offered))


async def test_every_name_is_counted(tmp_path: Path) -> None:
    for number, name in enumerate(HOSTILE_NAMES):
        Path(os.fsdecode(bytes(tmp_path) + b"/" + name)).write_bytes(b"%d" % number)
    assert (await surveyed(tmp_path)).files == len(HOSTILE_NAMES)


async def test_only_small_contents_are_read_and_only_so_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(surveying, "SUMMED_FILE_BYTES", 10)
    monkeypatch.setattr(surveying, "SUMMED_BYTES", 25)
    for name, size in (("a", 10), ("b", 11), ("c", 9), ("d", 7), ("e", 6)):
        (tmp_path / name).write_bytes(name.encode() * size)
    found = await surveyed(tmp_path)
    assert found.sums == tuple(sum_of(content) for content in (b"a" * 10, b"c" * 9, b"e" * 6))
    assert (found.files, found.unread) == (5, 2)


async def test_a_sparse_file_of_gigabytes_is_looked_at_without_reading_it(tmp_path: Path) -> None:
    with (tmp_path / "huge").open("wb") as file:
        file.truncate(3 << 30)
    found = await surveyed(tmp_path)
    assert [one.refusal.code for one in found.refusals] == ["too_large"]
    looked = [one async for one in FolderIntake(4 << 30).survey([bytes(tmp_path)])][-1]
    assert (looked.files, looked.size_bytes, looked.sums) == (1, 3 << 30, ())


async def test_of_very_many_refusals_some_are_named_and_all_are_counted(tmp_path: Path) -> None:
    for number in range(NAMED_REFUSALS + 20):
        (tmp_path / str(number)).touch()
    found = await surveyed(tmp_path)
    assert (found.refused, len(found.refusals)) == (NAMED_REFUSALS + 20, NAMED_REFUSALS)


async def test_counting_alone_opens_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").write_bytes(b"x")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "b").write_bytes(b"x")
    monkeypatch.setattr("malbox_tui.intake.folder_walk.RegularFile.open", None)
    assert (await surveyed(tmp_path, counts_only=True)).things == 2


async def test_a_look_that_is_given_up_lets_go_of_everything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(surveying, "EVERY_S", 0.0)
    for number in range(20):
        (tmp_path / str(number)).write_bytes(b"x")
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - a listing of numbers
    async for survey in FolderIntake(1 << 20).survey([bytes(tmp_path)]):
        assert not survey.done
        break
    else:
        pytest.fail("it told nothing")
    assert len(os.listdir("/proc/self/fd")) <= before + 1  # noqa: PTH208


@pytest.mark.parametrize(
    ("head", "kind"),
    [
        (b"MZ\x90", "Windows program"),
        (b"\x7fELF\x02", "ELF program"),
        (b"%PDF-1.7", "PDF"),
        (b"PK\x03\x04", "zip archive"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "Office or Outlook"),
        ("naïve\n".encode(), "text"),
        (b"\x00\x01\x02", "other"),
        (b"", "other"),
    ],
)
def test_a_beginning_has_a_word(head: bytes, kind: str) -> None:
    assert first_kind(head) == kind
