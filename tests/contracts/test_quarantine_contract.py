"""What every `Quarantine` does with contents of strangers."""

from __future__ import annotations

import asyncio
import hashlib
import stat
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from malbox_tui.model.errors import RefusedContent, SampleChanged, SampleMissing, StoreError
from malbox_tui.ports import Quarantine, StoredContent
from malbox_tui.store.quarantine import GATHERED_BYTES, CartQuarantine

LIMIT = 64 << 20
BLOCK = 64 << 10
EICAR = rb"X5O!P%@AP[4\PZX54(P^)7CC)7}$" + rb"EICAR-STANDARD-ANTIVIRUS-TEST-FILE!$H+H*"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "quarantine"


@pytest.fixture
async def quarantine(folder: Path) -> AsyncIterator[Quarantine]:
    quarantine = CartQuarantine(folder)
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


def files_in(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


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


async def test_what_is_kept_is_neutered_and_the_owners_alone(quarantine: Quarantine, folder: Path) -> None:
    await quarantine.store(chunks(EICAR), LIMIT)
    (path,) = files_in(folder)
    sha256 = sum_of(EICAR)
    assert path == folder / sha256[:2] / sha256[2:4] / f"{sha256}.cart"
    assert EICAR not in path.read_bytes()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert {stat.S_IMODE(p.stat().st_mode) for p in (folder, *folder.rglob("*")) if p.is_dir()} == {0o700}


async def test_the_same_content_again_costs_no_space(quarantine: Quarantine, folder: Path) -> None:
    first = await quarantine.store(chunks(EICAR), LIMIT)
    second = await quarantine.store(chunks(EICAR[:10], EICAR[10:]), LIMIT)
    assert first == second
    assert len(files_in(folder)) == 1


async def test_the_same_content_at_the_same_time_is_kept_once(quarantine: Quarantine, folder: Path, tmp_path: Path) -> None:
    content = noise(GATHERED_BYTES * 2)
    results = await asyncio.gather(*(quarantine.store(chunks(content), LIMIT) for _ in range(8)))
    assert set(results) == {StoredContent(sum_of(content), len(content))}
    assert len(files_in(folder)) == 1
    await quarantine.extract(sum_of(content), tmp_path / "out")


async def test_many_contents_at_the_same_time_are_all_kept(quarantine: Quarantine, folder: Path) -> None:
    contents = [b"content %d" % number for number in range(50)]
    results = await asyncio.gather(*(quarantine.store(chunks(content), LIMIT) for content in contents))
    assert [result.sha256 for result in results] == [sum_of(content) for content in contents]
    assert len(files_in(folder)) == 50


async def test_stored_contents_are_there_after_reopening(quarantine: Quarantine, folder: Path, tmp_path: Path) -> None:
    stored = await quarantine.store(chunks(EICAR), LIMIT)
    await quarantine.close()
    other = CartQuarantine(folder)
    await other.open()
    assert await other.extract(stored.sha256, tmp_path / "out") == len(EICAR)
    await other.close()


async def test_leftovers_are_removed_at_opening(quarantine: Quarantine, folder: Path) -> None:
    await quarantine.store(chunks(EICAR), LIMIT)
    (folder / "incoming" / "17").write_bytes(b"half")
    await quarantine.open()
    assert [path.suffix for path in files_in(folder)] == [".cart"]


# --- refused and failed ---


async def test_an_empty_content_is_refused(quarantine: Quarantine, folder: Path) -> None:
    for content in (chunks(), chunks(b"", b"")):
        with pytest.raises(RefusedContent) as caught:
            await quarantine.store(content, LIMIT)
        assert caught.value.code == "empty"
    assert files_in(folder) == []


@pytest.mark.parametrize("limit", [1, 1000, GATHERED_BYTES, GATHERED_BYTES * 2])
async def test_a_content_above_the_limit_is_refused_and_one_at_it_is_not(
    quarantine: Quarantine, folder: Path, limit: int
) -> None:
    content = noise(limit + 1)
    with pytest.raises(RefusedContent) as caught:
        await quarantine.store(chunks(content[:1], content[1:]), limit)
    assert caught.value.code == "too_large"
    assert files_in(folder) == []
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


@pytest.mark.parametrize("before", [b"", b"some", noise(GATHERED_BYTES * 3)])
@pytest.mark.parametrize("error", [RefusedContent("vanished", "It was taken away."), ZeroDivisionError()])
async def test_an_error_of_the_content_is_passed_on_and_nothing_is_kept(
    quarantine: Quarantine, folder: Path, before: bytes, error: Exception
) -> None:
    async def failing() -> AsyncIterator[bytes]:
        yield before
        raise error

    with pytest.raises(type(error)):
        await quarantine.store(failing(), LIMIT)
    assert files_in(folder) == []


@pytest.mark.parametrize("before", [b"some", noise(GATHERED_BYTES * 3)])
async def test_a_cancelled_store_keeps_nothing(quarantine: Quarantine, folder: Path, before: bytes) -> None:
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
    assert files_in(folder) == []


@pytest.mark.parametrize("steps", range(1, 12))
async def test_a_store_cancelled_at_any_step_keeps_all_or_nothing(quarantine: Quarantine, folder: Path, steps: int) -> None:
    storing = asyncio.get_running_loop().create_task(quarantine.store(chunks(EICAR), LIMIT))
    for _ in range(steps):
        passed = asyncio.Event()
        asyncio.get_running_loop().call_soon(passed.set)
        await passed.wait()
    storing.cancel()
    await asyncio.wait({storing})
    assert len(files_in(folder)) == (0 if storing.cancelled() else 1)


async def test_a_cancelled_store_takes_nothing_from_another_of_the_same_content(quarantine: Quarantine, tmp_path: Path) -> None:
    storing = [asyncio.get_running_loop().create_task(quarantine.store(chunks(EICAR), LIMIT)) for _ in range(6)]
    asyncio.get_running_loop().call_soon(storing[0].cancel)
    asyncio.get_running_loop().call_soon(storing[3].cancel)
    await asyncio.wait(storing)
    assert not any(handle.cancelled() for handle in (storing[1], storing[2], storing[4], storing[5]))
    assert await quarantine.extract(sum_of(EICAR), tmp_path / "out") == len(EICAR)


async def test_closing_waits_for_what_is_under_way(quarantine: Quarantine, folder: Path) -> None:
    storing = asyncio.get_running_loop().create_task(quarantine.store(chunks(noise(GATHERED_BYTES * 4)), LIMIT))
    started = asyncio.Event()
    asyncio.get_running_loop().call_soon(started.set)
    await started.wait()
    await quarantine.close()
    assert storing.done()
    assert len(files_in(folder)) == 1
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


CONTENT = noise(200_000)


def damage(packed: bytes) -> dict[str, bytes]:
    middle = len(packed) // 2
    return {
        "emptied": b"",
        "cut": packed[:middle],
        "cut by one": packed[:-1],
        "one bit turned": packed[:middle] + bytes([packed[middle] ^ 1]) + packed[middle + 1 :],
        "first byte": b"X" + packed[1:],
        "key": packed[:14] + b"\x00" * 16 + packed[30:],
        "header length": packed[:30] + b"\xff" * 8 + packed[38:],
        "last bytes": packed[:-8] + b"\xff" * 8,
        "zeros": bytes(len(packed)),
        "appended": packed + b"tail",
    }


@pytest.mark.parametrize("kind", damage(b"0" * 100))
async def test_a_damaged_content_is_noticed_and_no_file_is_left(
    quarantine: Quarantine, folder: Path, tmp_path: Path, kind: str
) -> None:
    await quarantine.store(chunks(CONTENT), LIMIT)
    (path,) = files_in(folder)
    path.write_bytes(damage(path.read_bytes())[kind])
    with pytest.raises(SampleChanged):
        await quarantine.extract(sum_of(CONTENT), tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("kind", damage(b"0" * 100))
async def test_a_damaged_content_is_stored_anew(quarantine: Quarantine, folder: Path, tmp_path: Path, kind: str) -> None:
    await quarantine.store(chunks(CONTENT), LIMIT)
    (path,) = files_in(folder)
    path.write_bytes(damage(path.read_bytes())[kind])
    await quarantine.store(chunks(CONTENT), LIMIT)
    assert await quarantine.extract(sum_of(CONTENT), tmp_path / "out") == len(CONTENT)


async def test_another_content_under_the_name_is_noticed(quarantine: Quarantine, folder: Path, tmp_path: Path) -> None:
    await quarantine.store(chunks(CONTENT), LIMIT)
    (path,) = files_in(folder)
    await quarantine.store(chunks(EICAR), LIMIT)
    (other,) = set(files_in(folder)) - {path}
    path.write_bytes(other.read_bytes())
    with pytest.raises(SampleChanged):
        await quarantine.extract(sum_of(CONTENT), tmp_path / "out")
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
