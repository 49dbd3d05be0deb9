"""What is left out by name, number or place: never silent, and counted."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from malbox_tui.intake.folder_walk import FolderIntake
from malbox_tui.intake.selection import SelectiveIntake
from malbox_tui.model.sample import SampleName
from malbox_tui.model.selection import Selection
from malbox_tui.model.submission import Account, Offer, Refused
from malbox_tui.ports import Intake
from tests.intake.test_folder_walk import open_descriptors_unchanged

MAX_BYTES = 1 << 20


def intake(**fields: object) -> Intake:
    selection = Selection(**fields)  # type: ignore[arg-type]
    return SelectiveIntake(FolderIntake(MAX_BYTES, recursive=selection.recursive), selection)


async def found(by: Intake, *paths: Path) -> tuple[list[bytes], list[tuple[bytes, str, int]]]:
    """Names that are offered; (name, reason, how many) of what is left out."""
    offers = [offer async for offer in by.offers([bytes(path) for path in paths])]
    for offer in offers:
        if offer.content is not None:
            async for _chunk in offer.content:
                pass
    refused = [Refused(offer.name, offer.refusal) for offer in offers if offer.refusal is not None]
    assert Account(tuple(refused)).left_out == sum(one.refusal.things for one in refused if one.is_left_out)
    told = [(one.name.name, one.refusal.reason, one.refusal.things) for one in refused]
    return [offer.name.name for offer in offers if offer.content is not None], told


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    inner = tmp_path / "drop" / "deep" / "er"
    inner.mkdir(parents=True)
    (tmp_path / "drop" / "also").mkdir()
    for name in ("drop/a.exe", "drop/B.EXE", "drop/readme.txt", "drop/deep/c.exe", "drop/deep/er/d.dll"):
        (tmp_path / name).write_text(name)
    return tmp_path / "drop"


@pytest.mark.parametrize(
    ("patterns", "taken", "told"),
    [
        (("*.exe",), [b"B.EXE", b"a.exe", b"c.exe"], [(b"drop", "2 files were left out by name: not *.exe.", 2)]),
        (("?.*",), [b"B.EXE", b"a.exe", b"c.exe", b"d.dll"], [(b"drop", "1 file was left out by name: not ?.*.", 1)]),
        (
            ("*.dll", "[ab].exe"),
            [b"B.EXE", b"a.exe", b"d.dll"],
            [(b"drop", "2 files were left out by name: not *.dll or [ab].exe.", 2)],
        ),
        (("*",), [b"B.EXE", b"a.exe", b"c.exe", b"d.dll", b"readme.txt"], []),
    ],
)
async def test_names_that_match_no_pattern_are_left_out_and_counted(
    folder: Path, patterns: tuple[str, ...], taken: list[bytes], told: list[tuple[bytes, str, int]]
) -> None:
    with open_descriptors_unchanged():
        names, said = await found(intake(patterns=patterns), folder)
    assert (sorted(names), said) == (sorted(taken), told)


async def test_folders_in_a_given_one_are_left_out_and_counted(folder: Path) -> None:
    names, said = await found(intake(recursive=False), folder)
    assert names == [b"B.EXE", b"a.exe", b"readme.txt"]
    assert said == [(b"drop", "2 folders in it were left out: only what lies in it itself was asked for.", 2)]


async def test_a_given_file_is_taken_without_going_into_folders_too(folder: Path) -> None:
    assert await found(intake(recursive=False), folder / "deep" / "er", folder / "a.exe") == ([b"d.dll", b"a.exe"], [])


async def test_so_many_are_taken_and_the_rest_is_counted(folder: Path) -> None:
    with open_descriptors_unchanged():
        names, said = await found(intake(limit=2, patterns=("*.exe", "*.dll")), folder, folder / "a.exe", folder / "readme.txt")
    assert len(names) == 2
    assert said == [
        (b"drop", "1 file was left out by name: not *.exe or *.dll.", 1),
        (b"drop", "2 files were left out: 2 were to be taken at most.", 2),
        (b"a.exe", "1 file was left out: 2 were to be taken at most.", 1),
        (b"readme.txt", "1 file was left out by name: not *.exe or *.dll.", 1),
    ]


async def test_what_can_be_no_sample_is_told_whatever_its_name(folder: Path) -> None:
    (folder / "link").symlink_to("a.exe")
    names, said = await found(intake(patterns=("*.dll",), limit=1), folder)
    assert names == [b"d.dll"]
    assert {name for name, _, _ in said} == {b"link", b"drop"}


HOSTILE = [b"a\nb.exe", b"\xff.exe", b"-rf.exe", b"[bold].exe", b"\x1b[1m.exe", b"n" * 251 + b".exe"]


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
async def test_any_name_is_compared_as_its_bytes(tmp_path: Path, name: bytes) -> None:
    Path(bytes(tmp_path).decode() + "/" + name.decode("utf-8", "surrogateescape")).write_text("x")
    assert (await found(intake(patterns=("*.EXE",)), tmp_path))[0] == [name]
    assert (await found(intake(patterns=("*.dll",)), tmp_path))[0] == []


def test_a_pattern_that_is_made_to_be_slow_is_not() -> None:
    assert not Selection(patterns=("*a" * 40 + "b",)).takes(b"a" * 255)


async def test_what_is_left_out_is_let_go_at_once() -> None:
    closed = []

    class Content:
        def __aiter__(self) -> Content:
            return self

        async def __anext__(self) -> bytes:
            raise StopAsyncIteration

        async def aclose(self) -> None:
            closed.append(True)

    class Inner(FolderIntake):
        async def offers(self, paths: object) -> AsyncIterator[Offer]:
            yield Offer(SampleName(b"a.txt"), content=Content())

    by = SelectiveIntake(Inner(MAX_BYTES), Selection(patterns=("*.exe",)))
    assert [offer.content async for offer in by.offers([b"/in"])] == [None]
    assert closed == [True]
