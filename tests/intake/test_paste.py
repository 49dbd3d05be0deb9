"""Drops as ten terminals spell them, and paths completed while they are typed."""

from __future__ import annotations

import hashlib
import os
import shlex
import socket
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote_from_bytes

import pytest

from malbox_tui.intake import paste
from malbox_tui.intake.paste import MAX_BYTES, MAX_PATHS, completions, dropped_paths

NAMES = (
    b"plain.exe",
    b"a b.exe",
    b"it's.exe",
    b'say "x".exe',
    b"back\\slash.exe",
    b"[@click=app.quit]x[",
    b"$(id)&;.exe",
    "文件 🦠.exe".encode(),
    b"-rf",
    b"new\nline.exe",
    b"r\xe9sum\xe9\xff.exe",
    b"100%20#.exe",
    b"tab\there.exe",
)
ORDINARY = (b"one.exe", b"two.bin", b"three")


def _shell(path: bytes) -> str:
    return shlex.quote(os.fsdecode(path))


def _backslashed(path: bytes) -> str:
    return "".join(char if char.isalnum() or char in "/._-" or ord(char) > 127 else f"\\{char}" for char in os.fsdecode(path))


def _posix_double(path: bytes) -> str:
    return '"' + "".join(f"\\{char}" if char in '"\\$`' else char for char in os.fsdecode(path)) + '"'


STYLES: dict[str, Callable[[list[bytes]], str]] = {
    "kitty": lambda paths: "\n".join(map(os.fsdecode, paths)),
    "gnome-terminal": lambda paths: "".join(f"{_shell(path)} " for path in paths),
    "gnome-terminal with URLs": lambda paths: "".join(f"'file://{quote_from_bytes(path)}' " for path in paths),
    "konsole": lambda paths: " ".join(map(_shell, paths)) + " ",
    "iterm2 and ghostty": lambda paths: " ".join(map(_backslashed, paths)),
    "ghostty on gtk": lambda paths: "".join(f"{_backslashed(path)}\n" for path in paths),
    "wezterm, spaces only": lambda paths: " ".join(os.fsdecode(path).replace(" ", "\\ ") for path in paths) + " ",
    "wezterm, posix": lambda paths: " ".join(map(_posix_double, paths)) + " ",
    "alacritty": lambda paths: "".join(f"{os.fsdecode(path)} " for path in paths),
    "windows terminal": lambda paths: " ".join(f"'{os.fsdecode(path)}'" for path in paths),
    "a list of URLs": lambda paths: "".join(f"file://{quote_from_bytes(path)}\r\n" for path in paths),
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in (*NAMES, *ORDINARY):
        (tmp_path / os.fsdecode(name)).write_bytes(b"x")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("style", STYLES)
def test_one_file_is_found_however_it_is_spelt(style: str, name: bytes, folder: Path) -> None:
    path = bytes(folder / os.fsdecode(name))
    assert dropped_paths(STYLES[style]([path])).paths == (path,)


@pytest.mark.parametrize("style", STYLES)
def test_several_files_are_found_in_their_order(style: str, folder: Path) -> None:
    paths = [bytes(folder / os.fsdecode(name)) for name in ORDINARY]
    assert dropped_paths(STYLES[style](paths)).paths == tuple(paths)


@pytest.mark.parametrize("style", set(STYLES) - {"windows terminal", "kitty", "wezterm, spaces only", "ghostty on gtk"})
def test_several_files_of_nasty_names_are_found_where_the_terminal_quotes(style: str, folder: Path) -> None:
    nasty = (b"a b.exe", b"it's.exe", b'say "x".exe', "文件 🦠.exe".encode(), b"r\xe9sum\xe9\xff.exe", b"100%20#.exe")
    paths = [bytes(folder / os.fsdecode(name)) for name in nasty]
    assert dropped_paths(STYLES[style](paths)).paths == tuple(paths)


@pytest.mark.parametrize(
    "text", ["a b.exe", "./a b.exe", "~/a b.exe", "'~'/x", "$'a b.exe'", "file:{folder}/a%20b.exe", "a\\ b.exe"]
)
def test_relative_paths_homes_and_other_spellings_are_understood(text: str, folder: Path) -> None:
    (folder / "~").mkdir()
    (folder / "~" / "x").write_bytes(b"x")
    (path,) = dropped_paths(text.replace("{folder}", str(folder))).paths
    assert Path(os.fsdecode(path)).exists()


def test_a_path_that_is_named_twice_is_one(folder: Path) -> None:
    assert dropped_paths("one.exe two.bin one.exe").paths == (b"one.exe", b"two.bin")


def test_a_link_that_leads_nowhere_is_there(folder: Path) -> None:
    (folder / "dangling").symlink_to("nothing")
    assert dropped_paths("dangling").paths == (b"dangling",)


def test_a_url_of_another_host_names_nothing_here(folder: Path) -> None:
    assert dropped_paths(f"file://elsewhere{folder}/one.exe").paths == ()
    assert dropped_paths(f"file://{socket.gethostname()}{folder}/one.exe").paths == (bytes(folder / "one.exe"),)


def test_what_is_not_here_is_named_with_the_host_and_how_to_bring_it(folder: Path) -> None:
    found = dropped_paths("'/home/me/in/a b.exe' ", host="sandbox-1")
    assert found.paths == ()
    assert found.problem.startswith("There is no /home/me/in/a b.exe on sandbox-1.")
    assert "scp FILE sandbox-1:" in found.problem


def test_of_many_the_one_that_is_missing_is_named(folder: Path) -> None:
    assert dropped_paths("'one.exe' 'two.bin' 'gone.exe'").problem.startswith("There is no gone.exe on ")


def test_of_paths_from_the_root_those_that_are_here_are_taken_and_the_others_named(folder: Path) -> None:
    found = dropped_paths(f"{folder}/one.exe\n/nowhere/a b\n{folder}/two.bin\n~/gone-too", host="sandbox-1")
    assert found.paths == (bytes(folder / "one.exe"), bytes(folder / "two.bin"))
    assert found.missing[0] == b"/nowhere/a b"
    assert found.missing[1].endswith(b"/gone-too")
    assert found.problem.startswith("There is no /nowhere/a b on sandbox-1, nor 1 more of what was named.")
    quoted = dropped_paths(f"'{folder}/one.exe' '/nowhere/it'\\''s.exe' ")
    assert (quoted.paths, quoted.missing) == ((bytes(folder / "one.exe"),), (b"/nowhere/it's.exe",))


SUMS = (hashlib.sha256(b"a").hexdigest(), hashlib.sha256(b"b").hexdigest())


@pytest.mark.parametrize(
    "text",
    [
        "\n".join(SUMS),
        ", ".join(SUMS).upper(),
        f"{SUMS[0]}  a b.exe\r\n{SUMS[1]} *\x1b[31m.exe\r\n",
        f"sha256:{SUMS[0]} SHA256={SUMS[1]} {SUMS[0]}",
    ],
)
def test_a_list_of_sums_is_one(text: str, folder: Path) -> None:
    found = dropped_paths(text)
    assert (found.paths, found.problem, found.sums) == ((), "", SUMS)


@pytest.mark.parametrize("text", [f"{SUMS[0]}\nreadme", SUMS[0][:-1], f"{SUMS[0]}0", f"x{SUMS[0]}"])
def test_what_is_no_list_of_sums_is_none(text: str, folder: Path) -> None:
    assert (dropped_paths(text).sums, dropped_paths(text).paths) == ((), ())


def test_a_file_that_is_called_as_a_sum_is_a_file(folder: Path) -> None:
    (folder / SUMS[0]).write_bytes(b"x")
    assert dropped_paths(SUMS[0]).paths == (SUMS[0].encode(),)


def test_five_thousand_paths_are_a_drop(folder: Path) -> None:
    deep = folder / ("d" * 150)
    deep.mkdir()
    names = [f"{number:05}.exe" for number in range(5000)]
    for name in names:
        (deep / name).touch()
    for text in ("\n".join(f"{deep}/{name}" for name in names), " ".join(f"'{deep}/{name}'" for name in names)):
        assert len(text) > 800_000
        assert len(dropped_paths(text).paths) == 5000


@pytest.mark.parametrize("text", ["\x1b]0;x\x07", "\u202eexe", "\udcff", "\0", "/" + "x" * 5000, "'open", "a\\"])
def test_what_is_said_of_a_hostile_text_is_safe_and_short(text: str, folder: Path) -> None:
    problem = dropped_paths(text).problem
    assert problem.isprintable()
    assert 0 < len(problem) < 300


def test_a_text_that_came_from_no_terminal_is_answered_too(folder: Path) -> None:
    assert dropped_paths("\ud800").problem.startswith("There is no \\xed\\xa0\\x80 on ")


@pytest.mark.parametrize("text", ["", " ", "\r\n"])
def test_nothing_is_said_to_be_nothing(text: str) -> None:
    assert dropped_paths(text).problem == "What was dropped is empty."


def test_too_much_is_refused_as_a_whole(folder: Path) -> None:
    many = dropped_paths("\n".join(["one.exe"] * (MAX_PATHS + 1)))
    assert (many.paths, many.problem[:21]) == ((), "More than 20,000 path")
    large = dropped_paths("x" * (MAX_BYTES + 1))
    assert (large.paths, large.problem[:17]) == ((), "More than 4 MiB w")
    assert len(dropped_paths("\n".join(["one.exe"] * MAX_PATHS)).paths) == 1


def test_nothing_is_opened(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(folder / "fifo")

    def refuse(*arguments: object, **options: object) -> None:
        raise AssertionError("opened")

    monkeypatch.setattr(os, "open", refuse)
    monkeypatch.setattr("builtins.open", refuse)
    assert dropped_paths("fifo").paths == (b"fifo",)


# --- completions -------------------------------------------------------------------------------------------------------------------


def test_completions_come_in_order_and_folders_end_with_a_slash(folder: Path) -> None:
    (folder / "one.d").mkdir()
    assert completions("one", 10) == ["one.d/", "one.exe"]
    assert completions(f"{folder}/o", 1) == [f"{folder}/one.d/"]
    assert completions("~/tw", 10) == ["~/two.bin"]
    assert completions("~", 10) == ["~/"]


def test_hidden_names_are_given_only_when_they_are_asked_for(folder: Path) -> None:
    (folder / ".hidden").write_bytes(b"x")
    assert ".hidden" not in completions("", 100)
    assert completions(".h", 100) == [".hidden"]


def test_a_completed_name_is_the_same_path_again(folder: Path) -> None:
    found = completions(f"{folder}/", 100)
    assert {dropped_paths(text).paths for text in found} == {(os.fsencode(text),) for text in found}
    assert len(found) == len(NAMES) + len(ORDINARY)


@pytest.mark.parametrize("text", ["missing/x", "one.exe/x", "\0", "\ud800", "a\0/b", "~nobody-of-this-name"])
def test_what_can_not_be_listed_gives_none(text: str, folder: Path) -> None:
    assert completions(text, 10) == []


def test_a_folder_of_too_many_names_does_not_stop_the_typing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paste, "LISTED_NAMES", 5)
    assert len(completions("", 100)) <= 5
