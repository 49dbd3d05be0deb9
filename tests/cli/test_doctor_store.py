"""`malbox-tui doctor --store`: what is lost, damaged and orphaned, of samples and of results."""

from __future__ import annotations

import os
import sqlite3
import tracemalloc
from pathlib import Path

import pytest

from malbox_tui.config.folders import DataFolders
from malbox_tui.engine.clock import SystemClock
from malbox_tui.runtime import contents
from malbox_tui.store import checkup
from tests.cli.command_line import CommandLine
from tests.support.filled import filled, sha256_of

NAMES = ("one", "two", "three", "four")


@pytest.fixture
def malbox(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> CommandLine:
    line = CommandLine(tmp_path, capsys)
    filled(line.data, *NAMES)
    monkeypatch.setattr(checkup, "YOUNG_S", -60.0)
    return line


def cart_of(malbox: CommandLine, content: str) -> Path:
    (cart,) = malbox.data.joinpath("quarantine").rglob(f"{sha256_of(content)}.cart")
    return cart


def result_of(malbox: CommandLine, task_id: int) -> Path:
    (result,) = (path for path in malbox.data.joinpath("results", str(task_id)).rglob("*") if path.is_file())
    return result


def found(malbox: CommandLine) -> set[tuple[str, str, str]]:
    said = malbox("doctor", "--store", "--json")
    *troubles, checked = said.records
    assert said.code == (1 if troubles else 0)
    assert checked["record"] == "checked"
    assert all(trouble["remedy"] for trouble in troubles)
    return {(trouble["kind"], trouble["state"], trouble["what"]) for trouble in troubles}


def test_a_sound_store_is_read_whole(malbox: CommandLine) -> None:
    said = malbox("doctor", "--store")
    assert (said.code, said.err) == (0, "")
    assert said.out.startswith("4 samples and 4 results read (")
    assert "0 lost, 0 damaged, 0 orphaned." in said.out


def test_lost_damaged_and_orphaned_contents_are_told_apart(malbox: CommandLine) -> None:
    cart_of(malbox, "one").unlink()
    cart_of(malbox, "two").write_bytes(cart_of(malbox, "three").read_bytes())
    stray = malbox.data / "quarantine" / "ab" / "cd" / f"abcd{'0' * 60}.cart"
    stray.parent.mkdir(parents=True)
    stray.write_bytes(cart_of(malbox, "three").read_bytes())
    result_of(malbox, 1).unlink()
    result_of(malbox, 2).write_bytes(b"found twx")
    result_of(malbox, 3).write_bytes(b"short")
    (malbox.data / "results" / "99" / "token" / "plugin").mkdir(parents=True)
    (malbox.data / "results" / "99" / "token" / "plugin" / "report").write_text("of no task")
    odd = result_of(malbox, 4).with_name("odd")
    odd.write_text("of no plugin")
    results = malbox.data / "results"
    assert found(malbox) == {
        ("sample", "lost", sha256_of("one")),
        ("sample", "damaged", sha256_of("two")),
        ("sample", "orphaned", str(stray)),
        ("result", "lost", f"task 1: 1/token-{sha256_of('one')[:8]}/strings/report"),
        ("result", "damaged", f"task 2: 2/token-{sha256_of('two')[:8]}/strings/report"),
        ("result", "damaged", f"task 3: 3/token-{sha256_of('three')[:8]}/strings/report"),
        ("result", "orphaned", str(results / "99")),
        ("result", "orphaned", str(odd)),
    }
    said = malbox("doctor", "--store")
    assert "its SHA-256 is another one" in said.out
    assert "5 bytes, not 11" in said.out
    assert said.out.count("to do: ") == 8


def test_hostile_names_are_shown_escaped_and_links_are_not_followed(malbox: CommandLine, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_bytes(cart_of(malbox, "one").read_bytes())
    cart = cart_of(malbox, "one")
    cart.unlink()
    cart.symlink_to(outside)
    name = b"\x1b[31m\n\xff.cart"
    (malbox.data / "quarantine" / os.fsdecode(name)).write_bytes(b"x")
    os.mkfifo(malbox.data / "results" / "pipe")
    result = result_of(malbox, 2)
    result.unlink()
    os.mkfifo(result)
    told = {what.rpartition("/")[2]: state for _, state, what in found(malbox)}
    assert told[r"\x1b[31m\x0a\xff.cart"] == "orphaned"
    assert told["pipe"] == "orphaned"
    assert told["report"] == "damaged", "a pipe is not waited for"
    assert told[sha256_of("one")] == "damaged", "what is behind a link is not what was stored"
    assert "\x1b" not in malbox("doctor", "--store").out


def test_what_is_being_handed_in_or_removed_is_not_told_of(malbox: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkup, "YOUNG_S", 600.0)
    fresh = malbox.data / "quarantine" / "ab" / "cd" / f"abcd{'0' * 60}.cart"
    fresh.parent.mkdir(parents=True)
    fresh.write_bytes(b"x")
    (malbox.data / "quarantine" / "incoming").mkdir(exist_ok=True)
    (malbox.data / "quarantine" / "incoming" / "1").write_bytes(b"x")
    monkeypatch.setattr(checkup, "YOUNG_S", 600.0)
    with sqlite3.connect(malbox.data / "malbox.sqlite3") as connection:
        connection.execute("DELETE FROM task WHERE id = 2")
        connection.execute("INSERT INTO removal (sha256, task_ids) VALUES ('', '[2]')")
        connection.execute("UPDATE task SET results_removed_at = 1 WHERE id = 3")
    connection.close()
    assert found(malbox) == set()


def test_the_store_itself_is_looked_at_and_none_is_made(malbox: CommandLine, tmp_path: Path) -> None:
    store = malbox.data / "malbox.sqlite3"
    content = bytearray(store.read_bytes())
    for offset in range(8192, len(content) - 64, 4096):
        content[offset : offset + 64] = b"\xff" * 64
    store.write_bytes(content)
    said = malbox("doctor", "--store")
    assert said.code == 2
    assert "malbox.sqlite3" in said.err
    malbox.data = tmp_path / "none"
    assert malbox("doctor", "--store").code == 2
    assert not malbox.data.exists()


def test_memory_does_not_grow_with_what_is_read(malbox: CommandLine) -> None:
    filled(malbox.data, "large" * 4_000_000, at=2e9)
    looking = contents.checkup(DataFolders.under(malbox.data), SystemClock().now())
    tracemalloc.start()
    try:
        assert list(looking.run()) == []
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert looking.checked.size_bytes > 20_000_000
    assert peak < 12_000_000
