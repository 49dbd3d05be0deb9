"""What contents are, before they are handed in: said by a confined plugin, whatever they are, and nothing of them stays."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from malbox_tui.config.settings import IntakeSettings, PluginSettings, Settings
from malbox_tui.model.errors import RefusedContent
from malbox_tui.runtime import open_identifier
from tests.plugins.test_builtin import SAMPLES

pytestmark = [pytest.mark.needs("bubblewrap"), pytest.mark.slow]


async def chunks(*given: bytes, then: Exception | None = None) -> AsyncIterator[bytes]:
    for chunk in given:
        yield chunk
    if then is not None:
        raise then


async def test_contents_are_identified_beside_any_engine_and_leave_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    settings = Settings(plugins=PluginSettings(disabled=("digests", "file-type")))
    async with open_identifier(settings) as identifier:
        for name in ("PE, x64", "shell", "PNG"):
            content, (kind, platform, arch) = SAMPLES[name]
            found = await identifier.identify(chunks(content[:10], content[10:]))
            assert found is not None
            assert (found.kind, found.platform, found.arch) == (kind, platform, arch)
            assert not list(tmp_path.rglob("content-*"))
    assert list(tmp_path.iterdir()) == []


async def test_what_can_not_be_read_is_nothing_and_the_next_one_is_identified(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    async with open_identifier(Settings(intake=IntakeSettings(max_sample_bytes=1000))) as identifier:
        assert await identifier.identify(chunks()) is None
        assert await identifier.identify(chunks(b"x" * 600, b"x" * 600)) is None
        assert await identifier.identify(chunks(b"x", then=RefusedContent("changed_while_read", "It grew."))) is None
        assert not list(tmp_path.rglob("content-*"))
        found = await identifier.identify(chunks(b"%PDF-1.4\n" + SAMPLES["PDF"][0]))
        assert found is not None
        assert found.kind == "pdf"
