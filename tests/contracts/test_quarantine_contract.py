"""What every `Quarantine` does with contents of strangers."""

from __future__ import annotations

import asyncio
import hashlib
import stat
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Protocol

import pytest

from malbox_tui.model.errors import RefusedContent, SampleChanged, SampleMissing, StoreError
from malbox_tui.ports import Quarantine, StoredContent
from malbox_tui.simulated.samples import SimulatedQuarantine
from malbox_tui.simulated.world import World
from malbox_tui.store.quarantine import GATHERED_BYTES, CartQuarantine
from tests.support.virtual_time import settle_loop

LIMIT = 64 << 20
BLOCK = 64 << 10
CONTENT = b"content" * 30_000
EICAR = rb"X5O!P%@AP[4\PZX54(P^)7CC)7}$" + rb"EICAR-STANDARD-ANTIVIRUS-TEST-FILE!$H+H*"


class Cupboard(Protocol):
    """Where a quarantine keeps its things: `quarantine()` gives an object over the same things each time."""

    def quarantine(self) -> Quarantine: ...

    def kept(self) -> int:
        """How many contents, or parts of contents, there are."""
        ...

    def swap(self, sha256: str, other: str) -> None:
        """Put the content of `other` under the name of `sha256`."""
        ...

    def spoil(self, sha256: str) -> None:
        """Turn a bit of the content."""
        ...


class DiskCupboard:
    """A folder of `CartQuarantine`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def quarantine(self) -> Quarantine:
        return CartQuarantine(self.folder)

    def kept(self) -> int:
        return len([path for path in self.folder.rglob("*") if path.is_file()])

    def swap(self, sha256: str, other: str) -> None:
        self._path(sha256).write_bytes(self._path(other).read_bytes())

    def spoil(self, sha256: str) -> None:
        packed = self._path(sha256).read_bytes()
        middle = len(packed) // 2
        self._path(sha256).write_bytes(packed[:middle] + bytes([packed[middle] ^ 1]) + packed[middle + 1 :])

    def _path(self, sha256: str) -> Path:
        return self.folder / sha256[:2] / sha256[2:4] / f"{sha256}.cart"


class SimulatedCupboard:
    """The samples of a simulated world, in which everything takes some steps of the loop and no time."""

    def __init__(self) -> None:
        self.world = World(1, lambda _seconds: settle_loop(20))

    def quarantine(self) -> Quarantine:
        return SimulatedQuarantine(self.world)

    def kept(self) -> int:
        return len(self.world.samples)

    def swap(self, sha256: str, other: str) -> None:
        self.world.samples[sha256] = self.world.samples[other]

    def spoil(self, sha256: str) -> None:
        self.world.samples[sha256] = b"spoilt"


@pytest.fixture(params=["carts", "simulated"])
def cupboard(request: pytest.FixtureRequest, tmp_path: Path) -> Cupboard:
    return SimulatedCupboard() if request.param == "simulated" else DiskCupboard(tmp_path / "quarantine")


@pytest.fixture
async def quarantine(cupboard: Cupboard) -> AsyncIterator[Quarantine]:
    quarantine = cupboard.quarantine()
    await quarantine.open()
    yield quarantine
    await quarantine.close()


async def chunks(*pieces: bytes) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece


def sum_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def noise(size_bytes: int) -> bytes:
    return hashlib.shake_256(b"noise").digest(size_bytes)


@pytest.mark.parametrize(
    "content",
    [
        b"\x00",
        EICAR,
        b"TRAC" + b"\x00" * 24,
        b"CART" * 10,
        noise(BLOCK - 1),
        noise(BLOCK),
        noise(BLOCK + 1),
        noise(GATHERED_BYTES),
        noise(GATHERED_BYTES + 1),
        noise(GATHERED_BYTES * 8),
        b"\x00" * (BLOCK * 64),
    ],
    ids=lambda content: f"{content[:4]!r} {len(content)}",
)
@pytest.mark.parametrize("chunk_bytes", [BLOCK, 1 << 20])
async def test_a_content_comes_back_as_it_was(quarantine: Quarantine, tmp_path: Path, content: bytes, chunk_bytes: int) -> None:
    pieces = [content[start : start + chunk_bytes] for start in range(0, len(content), chunk_bytes)]
    stored = await quarantine.store(chunks(*pieces), LIMIT)
    assert stored == StoredContent(sum_of(content), len(content))
    assert await quarantine.extract(stored.sha256, tmp_path / "out") == len(content)
    assert (tmp_path / "out").read_bytes() == content


async def test_empty_chunks_are_no_end(quarantine: Quarantine) -> None:
    content = noise(GATHERED_BYTES * 2)
    stored = await quarantine.store(chunks(b"", content[:5], b"", content[5:], b""), LIMIT)
    assert stored.sha256 == sum_of(content)


async def test_an_extracted_file_can_only_be_read(quarantine: Quarantine, tmp_path: Path) -> None:
    stored = await quarantine.store(chunks(EICAR), LIMIT)
    await quarantine.extract(stored.sha256, tmp_path / "out")
    assert stat.S_IMODE((tmp_path / "out").stat().st_mode) == 0o444


async def test_the_same_content_again_costs_no_space(quarantine: Quarantine, cupboard: Cupboard) -> None:
    first = await quarantine.store(chunks(EICAR), LIMIT)
    second = await quarantine.store(chunks(EICAR[:10], EICAR[10:]), LIMIT)
    assert first == second
    assert cupboard.kept() == 1


async def test_the_same_content_at_the_same_time_is_kept_once(quarantine: Quarantine, cupboard: Cupboard, tmp_path: Path) -> None:
    content = noise(GATHERED_BYTES * 2)
    results = await asyncio.gather(*(quarantine.store(chunks(content), LIMIT) for _ in range(8)))
    assert set(results) == {StoredContent(sum_of(content), len(content))}
    assert cupboard.kept() == 1
    await quarantine.extract(sum_of(content), tmp_path / "out")


async def test_many_contents_at_the_same_time_are_all_kept(quarantine: Quarantine, cupboard: Cupboard) -> None:
    contents = [b"content %d" % number for number in range(50)]
    results = await asyncio.gather(*(quarantine.store(chunks(content), LIMIT) for content in contents))
    assert [result.sha256 for result in results] == [sum_of(content) for content in contents]
    assert cupboard.kept() == 50


async def test_stored_contents_are_there_after_reopening(quarantine: Quarantine, cupboard: Cupboard, tmp_path: Path) -> None:
    stored = await quarantine.store(chunks(EICAR), LIMIT)
    await quarantine.close()
    other = cupboard.quarantine()
    await other.open()
    assert await other.extract(stored.sha256, tmp_path / "out") == len(EICAR)
    await other.close()


# --- refused and failed ---


async def test_an_empty_content_is_refused(quarantine: Quarantine, cupboard: Cupboard) -> None:
    for content in (chunks(), chunks(b"", b"")):
        with pytest.raises(RefusedContent) as caught:
            await quarantine.store(content, LIMIT)
        assert caught.value.code == "empty"
    assert cupboard.kept() == 0


@pytest.mark.parametrize("limit", [1, 1000, GATHERED_BYTES, GATHERED_BYTES * 2])
async def test_a_content_above_the_limit_is_refused_and_one_at_it_is_not(
    quarantine: Quarantine, cupboard: Cupboard, limit: int
) -> None:
    content = noise(limit + 1)
    with pytest.raises(RefusedContent) as caught:
        await quarantine.store(chunks(content[:1], content[1:]), limit)
    assert caught.value.code == "too_large"
    assert cupboard.kept() == 0
    await quarantine.store(chunks(content[:1], content[1:limit]), limit)


async def test_an_endless_content_is_refused_without_being_read_on(quarantine: Quarantine) -> None:
    read = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal read
        while True:
            read += BLOCK
            yield bytes(BLOCK)

    with pytest.raises(RefusedContent):
        await quarantine.store(endless(), 4 << 20)
    assert read <= (4 << 20) + BLOCK


@pytest.mark.parametrize("before", [b"", b"some", noise(GATHERED_BYTES * 3)], ids=len)
@pytest.mark.parametrize("error", [RefusedContent("vanished", "It was taken away."), ZeroDivisionError()])
async def test_an_error_of_the_content_is_passed_on_and_nothing_is_kept(
    quarantine: Quarantine, cupboard: Cupboard, before: bytes, error: Exception
) -> None:
    async def failing() -> AsyncIterator[bytes]:
        yield before
        raise error

    with pytest.raises(type(error)):
        await quarantine.store(failing(), LIMIT)
    assert cupboard.kept() == 0


@pytest.mark.parametrize("before", [b"some", noise(GATHERED_BYTES * 3)], ids=len)
async def test_a_cancelled_store_keeps_nothing(quarantine: Quarantine, cupboard: Cupboard, before: bytes) -> None:
    reached = asyncio.Event()

    async def stuck() -> AsyncIterator[bytes]:
        yield before
        reached.set()
        await asyncio.Event().wait()

    storing = asyncio.get_running_loop().create_task(quarantine.store(stuck(), LIMIT))
    await reached.wait()
    storing.cancel()
    await asyncio.wait({storing})
    assert storing.cancelled()
    assert cupboard.kept() == 0


@pytest.mark.parametrize("steps", range(1, 12))
async def test_a_store_cancelled_at_any_step_keeps_all_or_nothing(quarantine: Quarantine, cupboard: Cupboard, steps: int) -> None:
    storing = asyncio.get_running_loop().create_task(quarantine.store(chunks(EICAR), LIMIT))
    for _ in range(steps):
        passed = asyncio.Event()
        asyncio.get_running_loop().call_soon(passed.set)
        await passed.wait()
    storing.cancel()
    await asyncio.wait({storing})
    assert cupboard.kept() == (0 if storing.cancelled() else 1)


async def test_a_cancelled_store_takes_nothing_from_another_of_the_same_content(quarantine: Quarantine, tmp_path: Path) -> None:
    storing = [asyncio.get_running_loop().create_task(quarantine.store(chunks(EICAR), LIMIT)) for _ in range(6)]
    asyncio.get_running_loop().call_soon(storing[0].cancel)
    asyncio.get_running_loop().call_soon(storing[3].cancel)
    await asyncio.wait(storing)
    assert not any(handle.cancelled() for handle in (storing[1], storing[2], storing[4], storing[5]))
    assert await quarantine.extract(sum_of(EICAR), tmp_path / "out") == len(EICAR)


async def test_closing_waits_for_what_is_under_way(quarantine: Quarantine, cupboard: Cupboard) -> None:
    storing = asyncio.get_running_loop().create_task(quarantine.store(chunks(noise(GATHERED_BYTES * 4)), LIMIT))
    started = asyncio.Event()
    asyncio.get_running_loop().call_soon(started.set)
    await started.wait()
    await quarantine.close()
    assert storing.done()
    assert cupboard.kept() == 1
    await quarantine.close()
    with pytest.raises(StoreError):
        await quarantine.store(chunks(EICAR), LIMIT)


# --- missing and changed ---


async def test_a_content_that_is_not_there_is_missing(quarantine: Quarantine, tmp_path: Path) -> None:
    with pytest.raises(SampleMissing):
        await quarantine.extract(sum_of(b"never"), tmp_path / "out")
    assert not (tmp_path / "out").exists()


async def test_a_target_that_exists_is_left_as_it_is(quarantine: Quarantine, tmp_path: Path) -> None:
    await quarantine.store(chunks(EICAR), LIMIT)
    (tmp_path / "out").write_bytes(b"precious")
    with pytest.raises(StoreError):
        await quarantine.extract(sum_of(EICAR), tmp_path / "out")
    assert (tmp_path / "out").read_bytes() == b"precious"


async def test_a_target_that_is_a_link_is_not_followed(quarantine: Quarantine, tmp_path: Path) -> None:
    await quarantine.store(chunks(EICAR), LIMIT)
    (tmp_path / "out").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StoreError):
        await quarantine.extract(sum_of(EICAR), tmp_path / "out")
    assert not (tmp_path / "elsewhere").exists()


async def test_a_spoilt_content_is_noticed_and_no_file_is_left(
    quarantine: Quarantine, cupboard: Cupboard, tmp_path: Path
) -> None:
    stored = await quarantine.store(chunks(CONTENT), LIMIT)
    cupboard.spoil(stored.sha256)
    with pytest.raises(SampleChanged):
        await quarantine.extract(stored.sha256, tmp_path / "out")
    assert not (tmp_path / "out").exists()


async def test_a_spoilt_content_is_stored_anew(quarantine: Quarantine, cupboard: Cupboard, tmp_path: Path) -> None:
    stored = await quarantine.store(chunks(CONTENT), LIMIT)
    cupboard.spoil(stored.sha256)
    await quarantine.store(chunks(CONTENT), LIMIT)
    assert await quarantine.extract(stored.sha256, tmp_path / "out") == len(CONTENT)


async def test_another_content_under_the_name_is_noticed(quarantine: Quarantine, cupboard: Cupboard, tmp_path: Path) -> None:
    stored = await quarantine.store(chunks(CONTENT), LIMIT)
    other = await quarantine.store(chunks(EICAR), LIMIT)
    cupboard.swap(stored.sha256, other.sha256)
    with pytest.raises(SampleChanged):
        await quarantine.extract(stored.sha256, tmp_path / "out")
    assert not (tmp_path / "out").exists()


async def test_a_cancelled_extract_leaves_no_file(quarantine: Quarantine, tmp_path: Path) -> None:
    content = noise(8 << 20)
    await quarantine.store(chunks(content), LIMIT)
    extracting = asyncio.get_running_loop().create_task(quarantine.extract(sum_of(content), tmp_path / "out"))
    started = asyncio.Event()
    asyncio.get_running_loop().call_soon(started.set)
    await started.wait()
    extracting.cancel()
    await asyncio.wait({extracting})
    assert extracting.cancelled()
    assert not (tmp_path / "out").exists()


async def wanted() -> bool:
    return True


async def unwanted() -> bool:
    return False


async def test_a_content_that_nobody_wants_is_removed(quarantine: Quarantine, tmp_path: Path) -> None:
    kept = await quarantine.store(chunks(CONTENT), LIMIT)
    assert await quarantine.remove(kept.sha256, wanted) == 0
    assert await quarantine.extract(kept.sha256, tmp_path / "still") == len(CONTENT)
    assert await quarantine.remove(kept.sha256, unwanted) > 0
    with pytest.raises(SampleMissing):
        await quarantine.extract(kept.sha256, tmp_path / "gone")
    assert await quarantine.remove(kept.sha256, unwanted) == 0
    assert (await quarantine.store(chunks(CONTENT), LIMIT)).sha256 == kept.sha256, "it can come again"


async def test_no_store_of_a_content_ends_while_it_is_asked_whether_it_is_wanted(quarantine: Quarantine, tmp_path: Path) -> None:
    kept = await quarantine.store(chunks(CONTENT), LIMIT)
    asked, answer = asyncio.Event(), asyncio.get_running_loop().create_future()

    async def ask() -> bool:
        asked.set()
        return bool(await answer)

    async with asyncio.TaskGroup() as group:
        removing = group.create_task(quarantine.remove(kept.sha256, ask))
        await asked.wait()
        storing = group.create_task(quarantine.store(chunks(CONTENT), LIMIT))
        await settle_loop(20)
        answer.set_result(False)
    assert removing.result() > 0
    assert storing.result() == kept
    assert await quarantine.extract(kept.sha256, tmp_path / "there") == len(CONTENT), "what was stored last is there"
