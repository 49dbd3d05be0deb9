"""`malbox-tui backup DIR`: a copy that is a data folder, whatever goes on meanwhile."""

from __future__ import annotations

import fcntl
import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from malbox_tui.store import backup
from tests.cli.command_line import CommandLine
from tests.store.builders import CHECKOUT
from tests.store.conftest import SmallDisk, small_disk  # noqa: F401 - a fixture
from tests.support.filled import carts_in, filled, results_in, sha256_of

NAMES = tuple(f"sample {number}" for number in range(12))


@pytest.fixture
def malbox(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    line = CommandLine(tmp_path, capsys)
    filled(line.data, *NAMES)
    return line


def restored(malbox: CommandLine, copied: Path) -> CommandLine:
    malbox.data = copied
    return malbox


def test_the_copy_is_a_data_folder_with_all_of_it(malbox: CommandLine, tmp_path: Path) -> None:
    (malbox.data / "config.toml").write_text("[general]\nmax_workers = 7\n")
    (malbox.data / "plugins" / "mine").mkdir()
    (malbox.data / "plugins" / "mine" / "plugin.toml").write_text("")
    malbox("sample", sha256_of(NAMES[0]), "--note", "kept")
    before = malbox("tasks", "--json").out
    said = malbox("backup", tmp_path / "copy")
    assert said.code == 0
    assert "12 samples and 12 results" in said.out
    assert "0 troubles in it" in said.out
    copied = restored(malbox, tmp_path / "copy")
    assert copied("tasks", "--json").out.replace("/copy/", "/data/") == before
    assert copied("doctor", "--store").code == 0
    assert (carts_in(copied.data), results_in(copied.data)) == ({*map(sha256_of, NAMES)}, set(range(1, 13)))
    assert "max_workers = 7" in copied("config", "show").out
    assert (copied.data / "plugins" / "mine" / "plugin.toml").exists()
    assert copied("retry", 1).code == 0, "it is worked with"
    assert [
        path
        for path in copied.data.rglob("*")
        if path.is_file() and path.stat().st_mode & 0o077 and "plugins" not in path.parts and path.name != "config.toml"
    ] == []
    assert not (tmp_path / "copy.partial").exists()


def test_nothing_that_is_there_is_written_over(malbox: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "mine").write_text("precious")
    for target in (tmp_path / "there", malbox.data / "inside"):
        assert malbox("backup", target).code == 2
    assert (tmp_path / "there" / "mine").read_text() == "precious"
    assert not (malbox.data / "inside").exists()


def test_what_is_lost_and_damaged_is_told_and_the_rest_is_copied(malbox: CommandLine, tmp_path: Path) -> None:
    lost, damaged = (next(malbox.data.joinpath("quarantine").rglob(f"{sha256_of(name)}.cart")) for name in NAMES[:2])
    lost.unlink()
    damaged.write_bytes(damaged.read_bytes()[:100])
    said = malbox("backup", tmp_path / "copy", "--json")
    assert said.code == 1
    *troubles, done = said.records
    assert [(trouble["state"], trouble["what"]) for trouble in sorted(troubles, key=lambda trouble: trouble["state"])] == [
        ("damaged", sha256_of(NAMES[1])),
        ("lost", sha256_of(NAMES[0])),
    ]
    assert (done["samples"], done["troubles"]) == (11, 2)


def test_what_is_removed_meanwhile_is_not_in_the_copy_and_what_comes_meanwhile_is_not_either(
    malbox: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy_database = backup._Copy._copy_database

    def and_then(self: backup._Copy) -> None:
        copy_database(self)
        assert malbox("sample", "purge", sha256_of(NAMES[3]), "--yes").code == 0
        malbox.submit("another")
        with sqlite3.connect(malbox.data / "malbox.sqlite3") as connection:
            connection.execute("UPDATE task SET results_removed_at = 5 WHERE id = 6")
        connection.close()
        for path in malbox.data.joinpath("results", "6").rglob("*"):
            if path.is_file():
                path.unlink()

    monkeypatch.setattr(backup._Copy, "_copy_database", and_then)
    said = malbox("backup", tmp_path / "copy", "--json")
    assert (said.code, said.records[0]["vanished"], said.records[0]["samples"]) == (0, 2, 11)
    copied = restored(malbox, tmp_path / "copy")
    assert sorted(copied.states()) == [1, 2, 3, 5, 6, 7, 8, 9, 10, 11, 12]
    assert copied("doctor", "--store").code == 0


def test_a_backup_that_was_killed_leaves_no_copy_and_the_next_one_is_made(malbox: CommandLine, tmp_path: Path) -> None:
    script = "import sys; from malbox_tui.store import backup; import os, signal\n"
    script += "backup.Checkup.run = lambda self: os.kill(os.getpid(), signal.SIGKILL)\n"
    script += "from malbox_tui.cli.app import main; main(sys.argv[1:])\n"
    words = ["--data-dir", str(malbox.data), "backup", str(tmp_path / "copy")]
    killed = subprocess.run([sys.executable, "-c", script, *words], cwd=CHECKOUT, check=False)
    assert killed.returncode == -signal.SIGKILL
    assert not (tmp_path / "copy").exists()
    assert carts_in(tmp_path / "copy.partial"), "it was killed in the middle"
    assert malbox("backup", tmp_path / "copy").code == 0
    assert not (tmp_path / "copy.partial").exists()
    assert len(carts_in(tmp_path / "copy")) == 12


def test_two_backups_to_one_place_don_t_mix(malbox: CommandLine, tmp_path: Path) -> None:
    partial = tmp_path / "copy.partial"
    partial.mkdir()
    (partial / "theirs").write_text("x")
    descriptor = os.open(partial, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        said = malbox("backup", tmp_path / "copy")
    finally:
        os.close(descriptor)
    assert said.code == 2
    assert "is under way" in said.err
    assert (partial / "theirs").exists()


def test_a_disk_that_is_full_gets_no_half_copy(malbox: CommandLine, small_disk: SmallDisk) -> None:  # noqa: F811
    filled(malbox.data, os.urandom(3 << 20).hex(), at=2e9)
    said = malbox("backup", small_disk.folder / "copy")
    assert said.code == 2
    assert "is full" in said.err
    assert list(small_disk.folder.iterdir()) == []
