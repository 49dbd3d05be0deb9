"""Digests with TLSH, which is built where it is installed, and so is played here: it answers as py-tlsh does."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from malbox_tui.plugins.registry import BUILTIN_FOLDER

SDK = Path(__file__).resolve().parents[2] / "malbox_tui" / "sdk"


class PlayedTlsh:
    """As `tlsh.Tlsh` of py-tlsh 5.0."""

    def __init__(self) -> None:
        self._content = b""
        self._is_final = False

    def update(self, chunk: bytes) -> None:
        self._content += chunk

    def final(self) -> None:
        if len(self._content) < 50:
            raise ValueError("less than 50 of input")
        self._is_final = True

    def hexdigest(self) -> str:
        assert self._is_final
        return f"T1{len(self._content):070X}"


@pytest.fixture
def digests(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.syspath_prepend(str(SDK))
    before = set(sys.modules)
    spec = importlib.util.spec_from_file_location("digests_entry", BUILTIN_FOLDER / "digests" / "main.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    for name in set(sys.modules) - before:
        del sys.modules[name]


def played() -> ModuleType:
    module = ModuleType("tlsh")
    module.Tlsh = PlayedTlsh  # type: ignore[attr-defined]
    return module


def test_where_it_is_installed_tlsh_is_one_of_the_digests(digests: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(digests, "tlsh", played())
    (tmp_path / "sample").write_bytes(b"x" * 3_000_000)
    assert digests.digests_of(tmp_path / "sample")["tlsh"] == f"T1{3_000_000:070X}"


def test_of_what_it_has_no_hash_none_is_told(digests: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(digests, "tlsh", played())
    (tmp_path / "sample").write_bytes(b"short")
    assert digests.digests_of(tmp_path / "sample").keys() == {"md5", "sha1", "sha256", "ssdeep"}


def test_without_it_the_others_are_there(digests: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(digests, "tlsh", None)
    (tmp_path / "sample").write_bytes(b"x" * 100)
    assert digests.digests_of(tmp_path / "sample").keys() == {"md5", "sha1", "sha256", "ssdeep"}
