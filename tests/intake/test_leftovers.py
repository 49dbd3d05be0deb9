"""What a process that was killed while it unpacked left behind is removed, and nothing that is somebody's."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from malbox_tui.intake.leftovers import PREFIX, YOUNG_S, OwnFolder, remove_leftovers
from tests.store.builders import CHECKOUT

MAKING = """
import os, signal, sys
from pathlib import Path
from malbox_tui.intake.leftovers import OwnFolder
folder = OwnFolder(Path(sys.argv[1]))
(folder.path / "inbox").mkdir()
(folder.path / "inbox" / "sample").write_bytes(b"x")
print(folder.path, flush=True)
if sys.argv[2] == "die":
    os.kill(os.getpid(), signal.SIGKILL)
sys.stdin.read()
"""


def later(folder: Path) -> float:
    return folder.stat().st_mtime + YOUNG_S + 1


def test_the_folder_of_a_killed_process_is_removed_with_all_that_is_in_it(tmp_path: Path) -> None:
    ran = subprocess.run([sys.executable, "-c", MAKING, str(tmp_path), "die"], cwd=CHECKOUT, capture_output=True, check=False)
    left = Path(ran.stdout.decode().strip())
    (left / "inbox").chmod(0)
    assert remove_leftovers(tmp_path, left.stat().st_mtime + 1) == 0, "it may just be made"
    assert remove_leftovers(tmp_path, later(left)) == 1
    assert list(tmp_path.iterdir()) == []


def test_the_folder_of_a_process_that_lives_is_let_be(tmp_path: Path) -> None:
    command = [sys.executable, "-c", MAKING, str(tmp_path), "live"]
    with subprocess.Popen(command, cwd=CHECKOUT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as living:
        assert living.stdout is not None
        theirs = Path(living.stdout.readline().decode().strip())
        ours = OwnFolder(tmp_path)
        assert remove_leftovers(tmp_path, later(ours.path) + 100) == 0
        assert (theirs / "inbox" / "sample").exists()
        ours.remove()
        living.kill()
    assert remove_leftovers(tmp_path, later(theirs)) == 1


def test_what_only_looks_like_one_is_let_be(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious").write_text("x")
    place = tmp_path / "tmp"
    place.mkdir()
    (place / f"{PREFIX}link").symlink_to(outside)
    (place / f"{PREFIX}file").write_text("x")
    (place / "another").mkdir()
    os.mkfifo(place / f"{PREFIX}pipe")
    before = sorted(place.iterdir())
    assert remove_leftovers(place, later(place) + 100) == 0
    assert sorted(place.iterdir()) == before
    assert (outside / "precious").exists()
    assert remove_leftovers(tmp_path / "nowhere", 0.0) == 0
