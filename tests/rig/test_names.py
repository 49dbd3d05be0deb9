"""A sample that gives what it drops hostile names: all of it is listed, and kept under safe names."""

from __future__ import annotations

import os
import re
from pathlib import Path

from tests.rig.end_to_end import analyzed, installed, kept_json, results, told
from tests.rig.host import RigHost

NAMES = (
    b"bytes \xff\xfe.bin",
    b"two\nlines.txt",
    b"\n",
    b" ",
    b"-rf",
    b"--help",
    b"$(touch x)",
    b"`touch x`",
    b"; touch x;",
    b"'\"\\",
    b"%s%n",
    b"n" * 255,
    "\u202egpj.exe".encode(),
    b"\x1b]52;c;cHduZWQ=\x07\x1b[31m",
    b"a\n.0123456789abcdef 1 1 ",
    b"..\\..\\up.EXE",
)
SAFE_NAME = re.compile(r"dropped-\d{4}(\.[a-z0-9]{1,8})?")


def test_whatever_a_dropped_file_is_called_it_is_listed_and_kept_under_a_safe_name(rig: RigHost, tmp_path: Path) -> None:
    malbox = installed(rig, tmp_path, ("lin-1",))
    sample = tmp_path / "sample.sh"
    sample.write_bytes(b"#!/bin/sh\ncd /data\n" + b"".join(map(_dropping, NAMES)))
    ended, task = analyzed(malbox, sample)
    assert ended.returncode == 0, told(task)
    index = kept_json(malbox, "files")
    assert {file["path"] for file in index} == {_shown(b"/data/" + name) for name in NAMES}, "and no x"
    kept = results(malbox)
    for file in index:
        assert SAFE_NAME.fullmatch(file["result"])
        (path,) = kept[file["result"]]
        assert _shown(b"/data/" + path.read_bytes()) == file["path"]
    assert not list(tmp_path.rglob("x"))
    assert not Path("x").exists()
    for options in ((), ("--json",)):
        said = malbox("task", str(task["id"]), *options)
        assert said.returncode == 0, said.stderr
        assert b"\x1b" not in said.stdout
        assert "\u202e".encode() not in said.stdout


def _dropping(name: bytes) -> bytes:
    """Lines of a script that leave a file of this name, with its name in it."""
    escaped = b"".join(b"\\%03o" % byte for byte in name)
    return b"name=$(printf '%bx')\nprintf '%b' >\"./${name%%x}\"\n" % (escaped, escaped)


def _shown(path: bytes) -> str:
    return os.fsdecode(path).encode("utf-8", "backslashreplace").decode()
