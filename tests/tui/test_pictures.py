"""Pictures of screens: decoded without trust, once, beside the loop; drawn with half cells, or told of in words."""

from __future__ import annotations

import asyncio
import struct
import threading
import zlib
from io import BytesIO

import msgspec
import pytest
from PIL import Image
from textual.strip import Strip

from malbox_tui.model.errors import Disconnected, StoreError
from malbox_tui.model.report import ResultRef
from malbox_tui.tui import pictures
from malbox_tui.tui.pictures import MAX_BYTES, Gallery, Picture, Unshowable, cells_of, decoded, half_cells, screenshots
from tests.tui.scripted import ScriptedClient, plugin_run, reference

RED, BLUE = (255, 0, 0), (0, 0, 255)


def packed(image: Image.Image, format: str = "PNG") -> bytes:
    into = BytesIO()
    image.save(into, format)
    return into.getvalue()


def two_colours(width: int = 4, height: int = 4) -> Image.Image:
    """The upper half red, the lower one blue."""
    image = Image.new("RGB", (width, height), RED)
    image.paste(BLUE, (0, height // 2, width, height))
    return image


def png_that_says(width: int, height: int, content: bytes = b"") -> bytes:
    """A PNG of a few bytes that claims another size."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(content)) + chunk(b"IEND", b"")


def jpeg_that_says(width: int, height: int) -> bytes:
    """One whose head claims another size."""
    whole = packed(two_colours(), "JPEG")
    place = whole.index(b"\xff\xc0") + 5
    return whole[:place] + struct.pack(">HH", height, width) + whole[place + 4 :]


def shot(number: int = 1, **changes: object) -> ResultRef:
    return msgspec.structs.replace(reference(7, "guest-run", f"screenshot-{number:03}.png", "file"), **changes)


# --- decoding ------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["RGB", "RGBA", "L", "P", "1", "LA", "I;16"])
def test_whatever_colours_a_png_has_it_is_shown(mode: str) -> None:
    image = Image.new("I;16", (8, 6)) if mode == "I;16" else two_colours(8, 6).convert(mode)
    picture = decoded(packed(image))
    assert (picture.width, picture.height, picture.small.mode) == (8, 6, "RGB")


def test_the_pictures_of_older_hypervisors_are_shown_too() -> None:
    assert decoded(packed(two_colours(), "PPM")).small.getpixel((0, 3)) == BLUE


@pytest.mark.parametrize("mode", ["RGB", "L", "CMYK"])
def test_pictures_of_machines_that_others_run_are_shown_too(mode: str) -> None:
    picture = decoded(packed(two_colours(64, 64).convert(mode), "JPEG"))
    assert (picture.width, picture.height, picture.small.mode) == (64, 64, "RGB")
    red, _green, blue = picture.small.getpixel((0, 63))  # type: ignore[misc]
    assert mode == "L" or blue > 200 > 50 > red


def test_a_large_picture_is_kept_small() -> None:
    picture = decoded(packed(Image.new("RGB", (3840, 2160))))
    assert (picture.width, picture.height) == (3840, 2160)
    assert picture.small.size == (640, 360)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "neither PNG, PPM nor JPEG"),
        (b"\x1b]52;c;cHduZWQ=\x07", "neither PNG, PPM nor JPEG"),
        (packed(two_colours(), "GIF"), "neither PNG, PPM nor JPEG"),
        (packed(two_colours(), "BMP"), "neither PNG, PPM nor JPEG"),
        (b"\x89PNG\r\n\x1a\n", "damaged"),
        (b"\x89PNG\r\n\x1a\n" + b"\xff" * 500, "damaged"),
        (packed(two_colours())[:-20], "damaged"),
        (png_that_says(100, 100), "damaged"),
        (png_that_says(0, 0), "damaged"),
        (png_that_says(50_000, 50_000), "50000×50000 pixels are too many"),
        (png_that_says(2**31 - 1, 2**31 - 1), "pixels are too many"),
        (b"P6\n99999999 99999999\n255\n", "pixels are too many"),
        (b"P6\n40000 40000\n255\n", "40000×40000 pixels are too many"),
        (b"P6\nx", "damaged"),
        (b"\xff\xd8\xff", "damaged"),
        (b"\xff\xd8\xff\xc0\x00\x11\x08\xff\xff\xff\xff\x03\x01\x22\x00\x02\x11\x01\x03\x11\x01", "damaged|too many"),
        (jpeg_that_says(60_000, 60_000), "60000×60000 pixels are too many"),
    ],
    ids=range(17),
)
def test_what_is_no_picture_or_too_large_is_said(content: bytes, why: str) -> None:
    with pytest.raises(Unshowable, match=why):
        decoded(content)


@pytest.mark.parametrize("kind", ["PNG", "PPM", "JPEG"])
def test_no_cut_and_no_changed_byte_of_a_picture_breaks_anything(kind: str) -> None:
    whole, refused = packed(two_colours(16, 16), kind), 0
    for place in range(len(whole)):
        for content in (whole[:place], whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :]):
            try:
                decoded(content)
            except Unshowable:
                refused += 1
    assert refused > len(whole) / 4


# --- drawing -------------------------------------------------------------------------------------------------------------------------


def test_each_cell_shows_two_pixels_and_equal_ones_are_one_run() -> None:
    assert [_runs(line) for line in half_cells(decoded(packed(two_colours(4, 4))), 4, 2)] == [
        [("    ", "on #ff0000")],
        [("    ", "on #0000ff")],
    ]
    assert [_runs(line) for line in half_cells(decoded(packed(two_colours(4, 2))), 4, 1)] == [[("▀▀▀▀", "#ff0000 on #0000ff")]]


def _runs(line: Strip) -> list[tuple[str, str]]:
    return [(segment.text, str(segment.style)) for segment in line]


@pytest.mark.parametrize(
    ("pixels", "space", "cells"),
    [
        ((1024, 768), (60, 40), (60, 23)),
        ((1024, 768), (200, 10), (27, 10)),
        ((10, 1000), (60, 20), (1, 20)),
        ((1000, 1), (60, 20), (60, 1)),
        ((2, 2), (40, 20), (40, 20)),
    ],
)
def test_a_picture_fills_its_space_and_keeps_its_proportions(
    pixels: tuple[int, int], space: tuple[int, int], cells: tuple[int, int]
) -> None:
    picture = decoded(packed(Image.new("RGB", pixels)))
    assert cells_of(picture, *space) == cells
    lines = half_cells(picture, *cells)
    assert [sum(segment.cell_length for segment in line) for line in lines] == [cells[0]] * cells[1]


# --- which results are pictures ------------------------------------------------------------------------------------------------------


def test_only_what_the_run_itself_took_is_a_screenshot() -> None:
    own = plugin_run(7, "guest-run", results=[reference(7, "guest-run", "run"), shot(1), shot(2)])
    dropped = plugin_run(7, "guest-run", results=[shot(3)], subject="C:\\screenshot-9.png")
    of_a_plugin = plugin_run(7, "evil", results=[shot(4)])
    assert screenshots((of_a_plugin, dropped, own)) == (shot(1), shot(2))


# --- the gallery ---------------------------------------------------------------------------------------------------------------------


class CountingClient(ScriptedClient):
    def __init__(self, **results: object) -> None:
        super().__init__([], results={shot(int(number[1:])).path: content for number, content in results.items()})  # type: ignore[misc]
        self.reads: list[str] = []

    async def read(self, reference: ResultRef, max_bytes: int) -> bytes:
        self.reads.append(reference.name)
        return await super().read(reference, max_bytes)


async def test_a_picture_is_read_and_decoded_once_also_when_it_is_asked_for_twice_at_the_same_time() -> None:
    client = CountingClient(n1=packed(two_colours()))
    gallery = Gallery(client)
    first, second = await asyncio.gather(gallery.picture(shot()), gallery.picture(shot()))
    assert first is second is await gallery.picture(shot())
    assert client.reads == ["screenshot-001.png"]


async def test_it_is_decoded_beside_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    threads = []

    def noted(content: bytes) -> Picture:
        threads.append(threading.current_thread())
        return decoded(content)

    monkeypatch.setattr(pictures, "decoded", noted)
    await Gallery(CountingClient(n1=packed(two_colours()))).picture(shot())
    assert threads != [threading.current_thread()]


async def test_what_can_not_be_shown_is_remembered_and_what_is_too_large_never_read() -> None:
    client = CountingClient(n1=b"no", n2=packed(two_colours()), n3=StoreError("The result is gone."))
    gallery = Gallery(client)
    for _ in range(2):
        assert str(await gallery.picture(shot(1))) == "The picture can't be shown: it is neither PNG, PPM nor JPEG."
        large = await gallery.picture(shot(2, size_bytes=MAX_BYTES + 1))
        assert str(large) == "The picture can't be shown: it is larger than 8 MiB."
        assert str(await gallery.picture(shot(3))) == "The picture can't be shown: The result is gone."
    assert client.reads == ["screenshot-001.png", "screenshot-003.png"]


async def test_a_lost_connection_is_no_fault_of_the_picture() -> None:
    client = CountingClient(n1=Disconnected("ana@sbx-01", "it is gone"))
    gallery = Gallery(client)
    with pytest.raises(Disconnected):
        await gallery.picture(shot())
    client.results[shot().path] = packed(two_colours())
    assert isinstance(await gallery.picture(shot()), Picture)


async def test_only_so_many_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pictures, "KEPT_PICTURES", 2)
    client = CountingClient(n1=packed(two_colours()), n2=packed(two_colours()), n3=packed(two_colours()))
    gallery = Gallery(client)
    for number in (1, 2, 1, 3, 1, 2):
        await gallery.picture(shot(number))
    assert [name[11:14] for name in client.reads] == ["001", "002", "003", "002"]
