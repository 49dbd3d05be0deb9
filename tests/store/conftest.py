"""A disk that can be filled."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest


class SmallDisk:
    """A file system of its own, of `size_bytes`; `fill` takes all the room there is, `make_room` gives it back."""

    def __init__(self, folder: Path, size_bytes: int) -> None:
        self.folder = folder
        self._size_bytes = size_bytes
        self._ballast = folder / "ballast"

    def fill(self, but_bytes: int = 0) -> None:
        with self._ballast.open("ab", buffering=0) as ballast:
            try:
                while True:
                    ballast.write(bytes(4096))
            except OSError:
                pass
            ballast.truncate(max(0, self._ballast.stat().st_size - but_bytes))

    def make_room(self) -> None:
        self._ballast.unlink()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[SmallDisk]:
    size_bytes = 4 << 20
    folder = tmp_path / "small-disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size_bytes}", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("a full disk needs the right to mount a tmpfs: run the tests as root")
    try:
        yield SmallDisk(folder, size_bytes)
    finally:
        subprocess.run(["umount", str(folder)], check=True)
