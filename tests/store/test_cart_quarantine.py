"""What a quarantine of carts does to a disk, beyond what every quarantine does."""

from __future__ import annotations

import stat
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from malbox_tui.model.errors import SampleChanged
from malbox_tui.ports import Quarantine
from malbox_tui.store.quarantine import CartQuarantine
from tests.contracts.test_quarantine_contract import EICAR, LIMIT, chunks, noise, sum_of


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "quarantine"


@pytest.fixture
async def quarantine(folder: Path) -> AsyncIterator[Quarantine]:
    quarantine = CartQuarantine(folder)
    await quarantine.open()
    yield quarantine
    await quarantine.close()


def files_in(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


async def test_what_is_kept_is_neutered_and_the_owners_alone(quarantine: Quarantine, folder: Path) -> None:
    await quarantine.store(chunks(EICAR), LIMIT)
    (path,) = files_in(folder)
    sha256 = sum_of(EICAR)
    assert path == folder / sha256[:2] / sha256[2:4] / f"{sha256}.cart"
    assert EICAR not in path.read_bytes()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert {stat.S_IMODE(p.stat().st_mode) for p in (folder, *folder.rglob("*")) if p.is_dir()} == {0o700}


async def test_leftovers_are_removed_at_opening(quarantine: Quarantine, folder: Path) -> None:
    await quarantine.store(chunks(EICAR), LIMIT)
    (folder / "incoming" / "17").write_bytes(b"half")
    await quarantine.open()
    assert [path.suffix for path in files_in(folder)] == [".cart"]


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
