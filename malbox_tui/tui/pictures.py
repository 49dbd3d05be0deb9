"""Pictures of machines' screens: decoded once, kept small, and drawn with half cells, two pixels in each.

The hypervisor writes the file, but what is on it is the guest's, and a result may have been tampered with: only the kinds that
hypervisors write are read, nothing larger than the limits below is decoded, and whatever is wrong with it is a sentence.
"""

from __future__ import annotations

import asyncio
import io
import struct
import zlib
from collections import OrderedDict
from dataclasses import dataclass
from itertools import groupby

from PIL.Image import Image, Resampling
from PIL.JpegImagePlugin import JpegImageFile
from PIL.PngImagePlugin import PngImageFile
from PIL.PpmImagePlugin import PpmImageFile
from rich.color import Color
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from malbox_tui.model.errors import Disconnected, EngineStopped, MalboxError
from malbox_tui.model.report import GUEST_RUN, PluginRun, ResultRef
from malbox_tui.ports import Client

MAX_BYTES = 8 * 1024 * 1024
MAX_PIXELS = 16_000_000
KEPT_PIXELS = (640, 400)
"""A decoded picture is kept so large at most: more than a screen of half cells can show."""
KEPT_PICTURES = 24

_READERS = ((b"\x89PNG\r\n\x1a\n", PngImageFile), (b"P6", PpmImageFile), (b"\xff\xd8\xff", JpegImageFile))
"""How a file of a kind begins, and what reads it (as QEMU and libvirt write them)."""
_BROKEN = (OSError, ValueError, SyntaxError, EOFError, OverflowError, MemoryError, struct.error, zlib.error)
"""What Pillow raises at what it can't read."""

_UPPER_HALF = "▀"

_SCREENSHOTS = "screenshot"
"""How the names of pictures of a machine's screen begin, among the results of its run."""


class Unshowable(MalboxError):
    """A picture that can't be shown, and why."""

    def __init__(self, why: str) -> None:
        super().__init__(f"The picture can't be shown: {why}.")


@dataclass(frozen=True, slots=True, eq=False)
class Picture:
    """A decoded picture, kept small; `width` and `height` are those it had."""

    width: int
    height: int
    small: Image


def screenshots(runs: tuple[PluginRun, ...]) -> tuple[ResultRef, ...]:
    """The pictures of the machine's screen that a task's run left, in the order in which they were taken.

    Nothing that was collected in a guest or that a plugin made is among them, whatever it is called.
    """
    own = (result for run in runs if run.name == GUEST_RUN and not run.subject for result in run.results)
    return tuple(result for result in own if result.name.startswith(_SCREENSHOTS))


def decoded(content: bytes) -> Picture:
    """The picture in a file. Raises `Unshowable`. To be called in a thread: a large one takes a while."""
    reader = next((reader for begins, reader in _READERS if content.startswith(begins)), None)
    if reader is None:
        raise Unshowable("it is neither PNG, PPM nor JPEG")
    try:
        with reader(io.BytesIO(content)) as image:
            width, height = image.size
            if width * height > MAX_PIXELS:
                raise Unshowable(f"{width}×{height} pixels are too many")
            small = image.convert("RGB")
    except _BROKEN as error:
        raise Unshowable("it is damaged") from error
    small.thumbnail(KEPT_PIXELS, Resampling.BOX)
    return Picture(width, height, small)


def cells_of(picture: Picture, columns: int, lines: int) -> tuple[int, int]:
    """How many columns and lines it takes in a space of so many, with its proportions kept: a cell is twice as high as wide."""
    width, height = picture.small.size
    share = min(columns / width, 2 * lines / height)
    return max(1, min(columns, round(width * share))), max(1, min(lines, round(height * share / 2)))


def half_cells(picture: Picture, columns: int, lines: int) -> list[Strip]:
    """The picture in exactly so many cells."""
    scaled = picture.small.resize((columns, 2 * lines), Resampling.BOX).tobytes()
    pixels = [scaled[place : place + 3] for place in range(0, len(scaled), 3)]
    rows = []
    for top in range(0, len(pixels), 2 * columns):
        pairs = zip(pixels[top : top + columns], pixels[top + columns : top + 2 * columns], strict=True)
        runs = [(upper, lower, len(list(run))) for (upper, lower), run in groupby(pairs)]
        rows.append(Strip([_run(*run) for run in runs], columns))
    return rows


def _run(upper: bytes, lower: bytes, cells: int) -> Segment:
    if upper == lower:
        return Segment(" " * cells, Style(bgcolor=Color.from_rgb(*lower)))
    return Segment(_UPPER_HALF * cells, Style(color=Color.from_rgb(*upper), bgcolor=Color.from_rgb(*lower)))


class Gallery:
    """Pictures by what refers to them: each is read and decoded once, as long as it is kept, and no two at the same time."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._known: OrderedDict[ResultRef, Picture | Unshowable] = OrderedDict()
        self._one_at_a_time = asyncio.Lock()

    async def picture(self, reference: ResultRef) -> Picture | Unshowable:
        """The picture, or why there is none. Raises `Disconnected`, `EngineStopped`: then it may be asked for again."""
        async with self._one_at_a_time:
            if reference not in self._known:
                self._known[reference] = await self._read(reference)
                if len(self._known) > KEPT_PICTURES:
                    self._known.popitem(last=False)
            self._known.move_to_end(reference)
            return self._known[reference]

    async def _read(self, reference: ResultRef) -> Picture | Unshowable:
        try:
            if reference.size_bytes > MAX_BYTES:
                raise Unshowable(f"it is larger than {MAX_BYTES // 1024**2} MiB")
            return await asyncio.to_thread(decoded, await self._client.read(reference, MAX_BYTES))
        except (Disconnected, EngineStopped):
            raise
        except Unshowable as why:
            return why
        except MalboxError as error:
            return Unshowable(str(error).rstrip("."))
