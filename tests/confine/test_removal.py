"""Whatever a plugin left in a folder, the folder is removed; and nothing else is."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from malbox_tui.confine.removal import remove_tree

ROOT = Path(__file__).resolve().parents[2]


def test_any_name_can_be_removed(tmp_path: Path) -> None:
    folder = tmp_path / "scratch"
    folder.mkdir()
    for name in (b"\n", b"\xff\xfe", b"-rf", b"malbox-1", b" ", b"\x1b[2J", b"x" * 255):
        (folder / os.fsdecode(name)).mkdir()
        (folder / os.fsdecode(name) / os.fsdecode(name)).write_text("x")
        (folder / os.fsdecode(name) / "malbox-2").mkdir()
    remove_tree(folder)
    assert not folder.exists()


@pytest.mark.slow
def test_a_tree_deeper_than_paths_may_be_long_is_removed_with_few_open_files(tmp_path: Path) -> None:
    folder = tmp_path / "scratch"
    folder.mkdir()
    here = os.open(folder, os.O_RDONLY)
    for _ in range(5000):
        os.mkdir("deeper", dir_fd=here)
        inner = os.open("deeper", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inner
    os.close(here)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, hard))
    try:
        remove_tree(folder)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert not folder.exists()


def test_links_are_removed_and_what_they_lead_to_stays(tmp_path: Path) -> None:
    outside, folder = tmp_path / "outside", tmp_path / "scratch"
    (outside / "kept").mkdir(parents=True)
    outside.chmod(0o750)
    folder.mkdir()
    (folder / "link").symlink_to(outside)
    (folder / "inner").mkdir()
    (folder / "inner" / "link").symlink_to(outside)
    remove_tree(folder)
    assert (outside / "kept").exists()
    assert outside.stat().st_mode & 0o777 == 0o750


def test_a_file_a_link_and_nothing_can_be_removed(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to(tmp_path)
    for name in ("file", "link", "missing"):
        remove_tree(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


CLOSED = """
import os, sys
from pathlib import Path
from malbox_tui.confine.removal import remove_tree
folder = Path(sys.argv[1]) / "scratch"
(folder / "closed" / "inner").mkdir(parents=True)
(folder / "closed" / "inner" / "file").touch()
(folder / "closed" / "inner").chmod(0)
(folder / "closed").chmod(0)
folder.chmod(0)
remove_tree(folder)
assert not folder.exists()
"""


@pytest.mark.needs("setpriv")
def test_folders_that_are_closed_to_their_owner_are_removed_without_roots_rights(tmp_path: Path) -> None:
    without = [] if os.geteuid() else ["setpriv", "--bounding-set=-dac_override,-dac_read_search", "--inh-caps=-all", "--"]
    subprocess.run([*without, sys.executable, "-c", CLOSED, str(tmp_path)], cwd=ROOT, check=True)
