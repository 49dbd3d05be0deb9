"""A configuration that is read again while an engine runs."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from malbox_tui.cli.rereading import read_again
from malbox_tui.config.loading import ConfigSource, Configuration
from malbox_tui.config.settings import Settings


@pytest.fixture
def source(tmp_path: Path) -> ConfigSource:
    return ConfigSource(tmp_path / "config.toml", named=False)


async def test_what_it_says_now_is_read(source: ConfigSource) -> None:
    source.path.write_text("[general]\nmax_workers = 7\n")
    assert (await read_again(source, had_file=False)).settings.general.max_workers == 7


async def test_one_that_never_was_there_is_the_defaults(source: ConfigSource) -> None:
    assert (await read_again(source, had_file=False)).settings == Settings()


async def test_one_that_is_gone_is_a_fault(source: ConfigSource) -> None:
    (fault,) = (await read_again(source, had_file=True)).faults
    assert "the file is gone" in str(fault)


async def test_one_that_became_a_pipe_is_a_fault(source: ConfigSource) -> None:
    os.mkfifo(source.path)
    (fault,) = (await read_again(source, had_file=True)).faults
    assert "it is a pipe" in str(fault)


async def test_one_on_a_disk_that_hangs_is_a_fault(source: ConfigSource, monkeypatch: pytest.MonkeyPatch) -> None:
    released = threading.Event()

    def hang(_: ConfigSource) -> Configuration:
        released.wait()
        return Configuration(Settings())

    monkeypatch.setattr(ConfigSource, "read", hang)
    try:
        (fault,) = (await read_again(source, had_file=False, limit_s=0.01)).faults
        assert "could not be read within 0.01 s" in str(fault)
    finally:
        released.set()


async def test_what_breaks_reading_breaks_who_asked(source: ConfigSource, monkeypatch: pytest.MonkeyPatch) -> None:
    def break_down(_: ConfigSource) -> None:
        raise LookupError("no such key")

    monkeypatch.setattr(ConfigSource, "read", break_down)
    with pytest.raises(LookupError, match="no such key"):
        await read_again(source, had_file=False)
