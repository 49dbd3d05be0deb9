"""A guest that is played over a real folder, with the tools of each userland that Linux guests have."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.guest.agent_line import PlayedGuest


@pytest.fixture
def guest(tmp_path: Path) -> Iterator[PlayedGuest]:
    """A guest with this host's tools."""
    guest = PlayedGuest(tmp_path)
    yield guest
    guest.end_all()


@pytest.fixture(
    params=[
        "host",
        pytest.param("busybox", marks=pytest.mark.needs("busybox")),
        pytest.param("bare", marks=pytest.mark.needs("busybox")),
    ]
)
def any_guest(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[PlayedGuest]:
    """A guest with the tools of this host, with busybox's, and with those less `setsid`."""
    programs = (
        None if request.param == "host" else _busybox(tmp_path / "programs", without=("setsid",) * (request.param == "bare"))
    )
    guest = PlayedGuest(tmp_path, programs)
    yield guest
    guest.end_all()


def _busybox(folder: Path, without: tuple[str, ...]) -> Path:
    busybox = shutil.which("busybox")
    assert busybox is not None
    folder.mkdir()
    for name in subprocess.run([busybox, "--list"], capture_output=True, text=True, check=True).stdout.split():
        if name not in without:
            (folder / name).symlink_to(busybox)
    return folder
