"""What `FolderIntake` makes of files and folders."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from malbox_tui.intake import regular_file
from malbox_tui.intake.folder_walk import FolderIntake
from malbox_tui.intake.regular_file import RegularFile
from malbox_tui.model.errors import RefusedContent
from malbox_tui.model.submission import Offer
from malbox_tui.ports import Intake

MAX_BYTES = 1 << 22
HOSTILE_NAMES = (
    b"a new\nline",
    b"\x1b[31mred",
    b"\x1b]0;title\x07",
    b"[bold]name[",
    "\u202egpj.exe".encode(),
    b"r\xe9sum\xe9.exe",
    b"-rf",
    b"n" * 255,
)


def intake() -> Intake:
    return FolderIntake(MAX_BYTES)


async def offered(*paths: Path | bytes, by: Intake | None = None) -> list[tuple[bytes, bytes, bytes | str]]:
    """(name, origin, content or code of the refusal) of each offer."""
    offers = (by or intake()).offers([path if isinstance(path, bytes) else bytes(path) for path in paths])
    return [(offer.name.name, offer.name.origin, await outcome(offer)) async for offer in offers]


async def outcome(offer: Offer) -> bytes | str:
    if offer.content is None:
        assert offer.refusal is not None
        assert offer.refusal.reason.endswith(".")
        return offer.refusal.code
    try:
        return b"".join([chunk async for chunk in offer.content])
    except RefusedContent as refused:
        return refused.code


async def codes(*paths: Path | bytes) -> dict[bytes, bytes | str]:
    return {name: found for name, _, found in await offered(*paths)}


@contextmanager
def open_descriptors_unchanged() -> Iterator[None]:
    before = sorted(Path("/proc/self/fd").iterdir())
    yield
    assert sorted(Path("/proc/self/fd").iterdir()) == before


async def test_a_folder_gives_its_files_in_byte_order_of_names_deep_first(tmp_path: Path) -> None:
    for name in ("b", "a/z", "a/B", "a.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    origins = [origin for _, origin, _ in await offered(tmp_path)]
    assert origins == [bytes(tmp_path / name) for name in ("a/B", "a/z", "a.txt", "b")]


async def test_a_name_is_its_last_part_and_its_origin_the_path_as_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "x").write_bytes(b"1")
    monkeypatch.chdir(tmp_path)
    assert await offered(b"in/", b"./in/x", b".") == [(b"x", b"in/x", b"1"), (b"x", b"./in/x", b"1"), (b"x", b"./in/x", b"1")]


async def test_names_are_kept_as_the_bytes_they_are(tmp_path: Path) -> None:
    for name in HOSTILE_NAMES:
        (tmp_path / os.fsdecode(name)).write_bytes(name)
    assert await codes(tmp_path) == {name: name for name in HOSTILE_NAMES}


async def test_a_large_file_comes_in_chunks(tmp_path: Path) -> None:
    content = os.urandom(3 * (1 << 20) + 17)
    (tmp_path / "large").write_bytes(content)
    (offer,) = [offer async for offer in intake().offers([bytes(tmp_path / "large")])]
    assert offer.content is not None
    chunks = [chunk async for chunk in offer.content]
    assert b"".join(chunks) == content
    assert [len(chunk) for chunk in chunks] == [1 << 20, 1 << 20, 1 << 20, 17]


async def test_what_is_no_regular_file_is_refused_by_name_and_the_rest_goes_on(tmp_path: Path) -> None:
    (tmp_path / "0-link").symlink_to("z-file")
    (tmp_path / "1-broken").symlink_to("nowhere")
    (tmp_path / "2-loop").symlink_to(".")
    os.mkfifo(tmp_path / "3-fifo")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(os.path.relpath(tmp_path / "4-socket"))
    (tmp_path / "5-empty").touch()
    (tmp_path / "z-file").write_bytes(b"content")
    assert await codes(tmp_path) == {
        b"0-link": "link",
        b"1-broken": "link",
        b"2-loop": "link",
        b"3-fifo": "fifo",
        b"4-socket": "socket",
        b"5-empty": "empty",
        b"z-file": b"content",
    }


async def test_a_device_is_refused_without_being_opened() -> None:
    assert await codes(b"/dev/null") == {b"null": "device"}


async def test_a_link_named_on_the_command_line_is_refused_with_its_target(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("folder\x1b[")
    (offer,) = [offer async for offer in intake().offers([bytes(tmp_path / "link") + b"/"])]
    assert offer.refusal is not None
    assert offer.refusal.code == "link"
    assert r"folder\x1b[" in offer.refusal.reason


async def test_a_link_on_the_way_to_a_given_path_is_the_askers_own(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "x").write_bytes(b"1")
    (tmp_path / "link").symlink_to("folder")
    assert await codes(tmp_path / "link" / "x") == {b"x": b"1"}


@pytest.mark.parametrize(
    "path",
    [b"", b"/nowhere/at/all", b"/etc/passwd/x", b"/" + b"n" * 300, b"a\0b", b"/" + b"n/" * 5000],
    ids=lambda path: repr(path[:20]),
)
async def test_a_path_that_leads_to_nothing_is_missing(path: bytes) -> None:
    ((_, _, found),) = await offered(path)
    assert found == "missing"


async def test_a_file_above_the_limit_is_refused_and_one_at_the_limit_is_not(tmp_path: Path) -> None:
    for name, size in (("at", MAX_BYTES), ("above", MAX_BYTES + 1)):
        with (tmp_path / name).open("wb") as file:
            file.truncate(size)
    found = await codes(tmp_path)
    assert found[b"above"] == "too_large"
    assert len(found[b"at"]) == MAX_BYTES


@pytest.mark.parametrize("change", [b"more", b""], ids=["grown", "cut"])
async def test_a_file_that_changes_its_size_while_it_is_read_is_refused(tmp_path: Path, change: bytes) -> None:
    path = tmp_path / "moving"
    path.write_bytes(b"x" * (1 << 20) * 2)
    (offer,) = [offer async for offer in intake().offers([bytes(path)])]
    assert offer.content is not None
    await anext(offer.content)
    with path.open("ab" if change else "wb") as file:
        file.write(change)
    with pytest.raises(RefusedContent) as refused:
        await anext(offer.content)
    assert refused.value.code == "changed_while_read"


async def test_a_file_that_is_written_to_in_place_while_it_is_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "moving"
    path.write_bytes(b"x" * (1 << 20) * 2)
    (offer,) = [offer async for offer in intake().offers([bytes(path)])]
    assert offer.content is not None
    await anext(offer.content)
    os.utime(path, ns=(0, path.stat().st_mtime_ns + 1))
    with pytest.raises(RefusedContent, match="written to"):
        await anext(offer.content)


async def test_a_file_put_in_place_of_an_offered_one_is_not_what_is_read(tmp_path: Path) -> None:
    path = tmp_path / "name"
    path.write_bytes(b"checked")
    (offer,) = [offer async for offer in intake().offers([bytes(path)])]
    (tmp_path / "other").write_bytes(b"another")
    (tmp_path / "other").rename(path)
    assert await outcome(offer) == b"checked"


@pytest.mark.parametrize("put_there", ["a link to a file", "a folder", "a FIFO"])
def test_what_takes_a_names_place_after_the_first_look_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, put_there: str
) -> None:
    (tmp_path / "secret").write_bytes(b"secret")
    path = tmp_path / "name"
    path.write_bytes(b"harmless")
    puts = {
        "a link to a file": lambda: path.symlink_to(tmp_path / "secret"),
        "a folder": path.mkdir,
        "a FIFO": lambda: os.mkfifo(path),
    }
    look_at = regular_file.look_at

    def look_and_lose(name: bytes, folder: int | None) -> os.stat_result:
        found = look_at(name, folder)
        path.unlink()
        puts[put_there]()
        return found

    monkeypatch.setattr(regular_file, "look_at", look_and_lose)
    with open_descriptors_unchanged(), pytest.raises(RefusedContent) as refusal:
        RegularFile.open(bytes(path), None, MAX_BYTES)
    assert refusal.value.code == {"a link to a file": "link", "a folder": "folder", "a FIFO": "fifo"}[put_there]


async def test_a_thousand_levels_and_a_path_longer_than_the_system_takes(tmp_path: Path) -> None:
    levels, name = 1000, "d" * 40
    folder = os.open(tmp_path, os.O_RDONLY)
    for _ in range(levels):
        os.mkdir(name, dir_fd=folder)
        deeper = os.open(name, os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = deeper
    for place, content in ((folder, b"deep"), (os.open(tmp_path / name, os.O_RDONLY), b"shallow")):
        file = os.open("x", os.O_WRONLY | os.O_CREAT, 0o600, dir_fd=place)
        os.write(file, content)
        os.close(file)
        os.close(place)
    (tmp_path / "z").write_bytes(b"last")
    with open_descriptors_unchanged():
        found = await offered(tmp_path)
    subprocess.run(["rm", "-rf", str(tmp_path / name)], check=True)  # deeper than Python can remove
    assert [content for _, _, content in found] == [b"deep", b"shallow", b"last"]
    assert len(found[0][1]) > levels * len(name)


async def test_a_folder_moved_away_from_under_the_walk_is_told_and_not_followed(tmp_path: Path) -> None:
    depth = 40
    deep = tmp_path.joinpath("in", *["d"] * depth)
    deep.mkdir(parents=True)
    (deep / "x").write_bytes(b"1")
    (tmp_path / "in" / "e").write_bytes(b"2")
    found = []
    async for offer in intake().offers([bytes(tmp_path / "in")]):
        found.append((offer.name.name, await outcome(offer)))
        if offer.name.name == b"x":
            (tmp_path / "in" / "d" / "d").rename(tmp_path / "moved")
    assert found[0] == (b"x", b"1")
    assert (b"in", "unreadable_folder") in found


@pytest.mark.slow
async def test_thousands_of_files_leave_no_file_open(tmp_path: Path) -> None:
    for number in range(3000):
        (tmp_path / f"{number:05}").write_bytes(b"x")
    with open_descriptors_unchanged():
        assert len(await offered(tmp_path)) == 3000


async def test_offers_that_nobody_reads_hold_no_file_once_forgotten(tmp_path: Path) -> None:
    for number in range(50):
        (tmp_path / str(number)).write_bytes(b"x")
    with open_descriptors_unchanged():
        assert len([offer.name async for offer in intake().offers([bytes(tmp_path)])]) == 50


async def test_leaving_in_the_middle_leaves_nothing_open(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "x").write_bytes(b"1")
    with open_descriptors_unchanged():
        offers = intake().offers([bytes(tmp_path)])
        offer = await anext(offers)
        await offers.aclose()  # type: ignore[attr-defined]
        await offer.content.aclose()  # type: ignore[union-attr]
        del offer


async def test_the_engines_own_data_folder_is_refused_when_it_is_met(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "sample").write_bytes(b"1")
    (tmp_path / "x").write_bytes(b"2")
    found = await offered(tmp_path, by=FolderIntake(MAX_BYTES, own_root=bytes(tmp_path / "data")))
    assert [(name, content) for name, _, content in found] == [(b"data", "own_data"), (b"x", b"2")]


UNREADABLE = """
import asyncio, sys
from malbox_tui.intake import regular_file
from malbox_tui.intake.folder_walk import FolderIntake
from malbox_tui.intake.regular_file import RegularFile
async def main():
    async for offer in FolderIntake(1 << 20).offers([sys.argv[1].encode()]):
        print(offer.name.name.decode(), offer.refusal.code if offer.refusal else "content")
asyncio.run(main())
"""


@pytest.mark.needs("setpriv")
async def test_what_may_not_be_read_is_refused_by_name_and_the_rest_goes_on(tmp_path: Path) -> None:
    (tmp_path / "a-file").write_bytes(b"1")
    (tmp_path / "a-file").chmod(0)
    (tmp_path / "b-folder" / "inner").mkdir(parents=True)
    (tmp_path / "b-folder").chmod(0)
    (tmp_path / "c-file").write_bytes(b"2")
    command = [sys.executable, "-c", UNREADABLE, str(tmp_path)]
    if os.geteuid() == 0:
        command = ["setpriv", "--bounding-set=-dac_override,-dac_read_search", *command]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    (tmp_path / "b-folder").chmod(0o700)
    assert shown.split("\n")[:-1] == ["a-file unreadable", "b-folder unreadable_folder", "c-file content"]
