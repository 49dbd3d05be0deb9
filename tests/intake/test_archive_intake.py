"""What is offered where archives lie among the files: their members, and what keeps one from being opened."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from pathlib import Path

import pytest

from malbox_tui.confine.limits import LimitsOnly
from malbox_tui.intake.archive_intake import ArchiveIntake
from malbox_tui.intake.folder_walk import FolderIntake
from malbox_tui.intake.selection import SelectiveIntake
from malbox_tui.intake.unpacker import ConfinedUnpacker
from malbox_tui.model.archive import OPEN_ALL, ArchiveAccount, ArchiveChoice, ArchiveEnd
from malbox_tui.model.errors import ConfinementUnavailable, RefusedContent
from malbox_tui.model.selection import Selection
from malbox_tui.model.submission import OpenedArchive, Refusal
from malbox_tui.ports import ArchiveMember, Unpacker
from tests.intake import archives

NOTE = b"a harmless note\n" * 100
Item = ArchiveMember | ArchiveAccount


class Scripted:
    """An unpacker that says what a test wants of every archive."""

    def __init__(self, *items: Item) -> None:
        self._items = items
        self.asked: list[tuple[bytes, tuple[str, ...]]] = []

    async def unpack(
        self, content: AsyncIterator[bytes], name: bytes = b"", passwords: Sequence[str] = ()
    ) -> AsyncGenerator[Item, None]:
        self.asked.append((name, tuple(passwords)))
        async for _chunk in content:
            pass
        for item in self._items:
            yield item


async def _some(content: bytes) -> AsyncIterator[bytes]:
    yield content


Offered = dict[bytes, bytes | Refusal | OpenedArchive]


async def offered(folder: Path, unpacker: Unpacker | None, choice: ArchiveChoice = OPEN_ALL) -> Offered:
    """What is offered of what lies in a folder: by where it is in it, its content, why it is refused, or that it was opened. The last
    of each counts."""

    async def make() -> Unpacker:
        if unpacker is None:
            raise ConfinementUnavailable("no walls here.")
        return unpacker

    offers: Offered = {}
    async for offer in ArchiveIntake(FolderIntake(1 << 26), make, choice).offers([bytes(folder)]):
        place = offer.name.origin.removeprefix(bytes(folder) + b"/")
        if offer.content is None:
            said = offer.refusal or offer.opened
            assert said is not None
            offers[place] = said
            continue
        try:
            offers[place] = b"".join([chunk async for chunk in offer.content])
        except RefusedContent as exc:
            offers[place] = Refusal(exc.code, exc.reason)
    return offers


def sha256_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


async def test_a_member_is_linked_to_its_archive_and_the_archive_itself_to_none(tmp_path: Path) -> None:
    content = archives.plain_zip({"a": NOTE})
    (tmp_path / "a.zip").write_bytes(content)
    unpacker = Scripted(
        ArchiveMember((b"in.zip", b"../\xff\n"), 1, _some(b"z")),
        ArchiveMember((), 1, _some(b"whole")),
        ArchiveAccount(path=(), end=ArchiveEnd.OPENED),
    )

    async def make() -> Unpacker:
        return unpacker

    offers = [offer async for offer in ArchiveIntake(FolderIntake(1 << 26), make, OPEN_ALL).offers([bytes(tmp_path)])]
    assert [(offer.name.name, offer.name.archive) for offer in offers] == [
        (b"\xff\n", sha256_of(content)),
        (b"a.zip", ""),
        (b"a.zip", ""),
    ]


@pytest.mark.slow
async def test_members_are_offered_in_the_place_of_their_archives(tmp_path: Path) -> None:
    folder, spool = tmp_path / "samples", tmp_path / "spool"
    folder.mkdir()
    spool.mkdir()
    inner = archives.plain_zip({"deep.txt": NOTE})
    (folder / "a.txt").write_bytes(NOTE)
    outer = archives.plain_zip({"x/y.txt": NOTE, "inner.zip": inner})
    (folder / "b.exe").write_bytes(outer)
    (folder / "c.docx").write_bytes(archives.plain_zip({"[Content_Types].xml": b"<Types/>"}))
    (folder / "large.bin").write_bytes(bytes(5_000_000))
    offers = await offered(folder, ConfinedUnpacker(LimitsOnly(), spool))
    assert offers == {
        b"a.txt": NOTE,
        b"b.exe!/x/y.txt": NOTE,
        b"b.exe!/inner.zip!/deep.txt": NOTE,
        b"b.exe!/inner.zip": OpenedArchive(sha256="", size_bytes=0, words="zip archive: 1 taken"),
        b"b.exe": OpenedArchive(sha256=sha256_of(outer), size_bytes=len(outer), words="zip archive: 2 taken"),
        b"c.docx": (folder / "c.docx").read_bytes(),
        b"large.bin": bytes(5_000_000),
    }
    assert list(spool.iterdir()) == []


async def test_whole_archives_are_offered_where_that_is_chosen(tmp_path: Path) -> None:
    content = archives.plain_zip({"a": NOTE})
    (tmp_path / "a.zip").write_bytes(content)
    assert await offered(tmp_path, Scripted(), ArchiveChoice(opens=False)) == {b"a.zip": content}


async def test_only_what_could_be_an_archive_is_unpacked_and_the_given_passwords_come_along(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(NOTE)
    (tmp_path / "a.arj").write_bytes(b"\x60\xea" + bytes(60))
    (tmp_path / "b.zip").write_bytes(archives.plain_zip({"a": NOTE}))
    unpacker = Scripted()
    await offered(tmp_path, unpacker, ArchiveChoice(passwords=("secret",)))
    assert unpacker.asked == [(b"b.zip", ("secret",))]


WHY = Refusal("damaged", "It is damaged.")


@pytest.mark.parametrize(
    ("end", "why", "said"),
    [
        (ArchiveEnd.OPENED, None, "archive: 0 taken"),
        (ArchiveEnd.SAMPLE, Refusal("sample", "It is a document."), None),
        (ArchiveEnd.WHOLE, WHY, "It was not opened as an archive, and is taken as one file: It is damaged."),
        (ArchiveEnd.CUT, WHY, "It was not opened to its end, and is taken as one file: It is damaged."),
        (ArchiveEnd.LOCKED, Refusal("password", "It is encrypted."), "It is encrypted."),
        (ArchiveEnd.EMPTY, Refusal("empty", "There is nothing in it."), "There is nothing in it."),
    ],
)
async def test_it_is_said_why_an_archive_was_not_opened(
    end: ArchiveEnd, why: Refusal | None, said: str | None, tmp_path: Path
) -> None:
    (tmp_path / "a.zip").write_bytes(archives.plain_zip({"a": NOTE}))
    offers = await offered(tmp_path, Scripted(ArchiveAccount(path=(), end=end, refusal=why)))
    refusal = offers.get(b"a.zip")
    assert (refusal.words if isinstance(refusal, OpenedArchive) else refusal and refusal.reason) == said


async def test_refused_members_are_offers_with_their_reasons(tmp_path: Path) -> None:
    (tmp_path / "a.zip").write_bytes(archives.plain_zip({"a": NOTE}))
    member = ArchiveMember((b"../x", b"y"), refusal=Refusal("link", "It is a link."))
    offers = await offered(tmp_path, Scripted(member, ArchiveMember((b"z",), 1, _some(b"z"))))
    assert offers == {b"a.zip!/../x!/y": member.refusal, b"a.zip!/z": b"z"}


async def test_without_walls_archives_are_refused_and_the_rest_goes_on(tmp_path: Path) -> None:
    (tmp_path / "a.zip").write_bytes(archives.plain_zip({"a": NOTE}))
    (tmp_path / "b.txt").write_bytes(NOTE)
    offers = await offered(tmp_path, None)
    refusal = offers[b"a.zip"]
    assert isinstance(refusal, Refusal)
    assert "no walls here" in refusal.reason
    assert offers[b"b.txt"] == NOTE


@pytest.mark.parametrize("opens", [True, False])
async def test_who_only_looks_sees_archives_as_files_and_whether_they_would_be_opened(opens: bool, tmp_path: Path) -> None:
    async def never() -> Unpacker:
        raise AssertionError("nothing is to be opened")

    content = archives.plain_zip({"a": NOTE})
    (tmp_path / "a.zip").write_bytes(content)
    intake = SelectiveIntake(ArchiveIntake(FolderIntake(1 << 26), never, ArchiveChoice(opens=opens)), Selection(limit=1))
    survey = [survey async for survey in intake.survey([bytes(tmp_path)])][-1]
    assert (survey.archives, survey.opens_archives) == (1, opens)
    (offer,) = [offer async for offer in intake.files([bytes(tmp_path)])]
    assert offer.content is not None
    assert b"".join([chunk async for chunk in offer.content]) == content
