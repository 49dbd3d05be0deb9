"""Says what contents are before they are handed in: by the plugin whose work that is, confined, in a process of its own.

No byte of a content is parsed here: it is written into the inbox of a sandbox, and what the plugin says of it is read.
"""

from __future__ import annotations

import asyncio
import itertools
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import msgspec

from malbox_tui.config.settings import Isolation, Settings
from malbox_tui.confine.probe import probe_bubblewrap
from malbox_tui.model.errors import ConfinementUnavailable, MalboxError, RefusedContent
from malbox_tui.model.report import Identification
from malbox_tui.plugins.registry import BUILTIN_FOLDER
from malbox_tui.plugins.runner import HostPluginRunner
from malbox_tui.plugins.tray import IDENTIFYING_PLUGIN
from malbox_tui.ports import Identifier, PluginBench
from malbox_tui.store.results import FileResultStore


@asynccontextmanager
async def open_identifier(settings: Settings) -> AsyncIterator[Identifier]:
    """One that works until this is left, in a temporary folder of its own, beside any engine. Its process starts with the first
    content. Walls that are wished for, and are not there, it does not do without, as nobody asks for it by name.

    Raises `ConfinementUnavailable`, `PluginUnavailable`, `ManifestError`, `ConfigError`.
    """
    await _check_walls(settings.confinement.isolation)
    with tempfile.TemporaryDirectory(prefix="malbox-identify-", ignore_cleanup_errors=True) as folder:
        plugins = msgspec.structs.replace(
            settings.plugins, disabled=(), required=(), config=_of_identifying(settings.plugins.config), interpreters={}
        )
        alone = msgspec.structs.replace(settings, plugins=plugins, profiles=(), workers=())
        runner = HostPluginRunner(
            alone,
            FileResultStore(Path(folder, "results")),
            Path(folder, "scratch"),
            _unheard,
            BUILTIN_FOLDER / IDENTIFYING_PLUGIN,
        )
        await runner.open()
        try:
            bench = await runner.acquire()
            yield ConfinedIdentifier(bench, settings.intake.max_sample_bytes)
        finally:
            await runner.close()


class ConfinedIdentifier:
    """Implements `Identifier` on a bench; one content at a time."""

    def __init__(self, bench: PluginBench, max_bytes: int) -> None:
        self._bench = bench
        self._max_bytes = max_bytes
        self._turn = asyncio.Lock()
        self._numbers = itertools.count(1)

    async def identify(self, content: AsyncIterator[bytes]) -> Identification | None:
        """As `Identifier.identify`."""
        async with self._turn:
            name = f"content-{next(self._numbers)}"
            path = self._bench.inbox / name
            try:
                if not await self._laid_out(path, content):
                    return None
                return await self._bench.identify(name)
            except MalboxError:
                return None
            finally:
                with suppress(OSError):
                    await asyncio.to_thread(path.unlink, missing_ok=True)

    async def _laid_out(self, path: Path, content: AsyncIterator[bytes]) -> bool:
        """Whether all of it is there: an empty one, and one that is too large, is nobody's to say anything of."""
        size = 0
        try:
            with await asyncio.to_thread(path.open, "xb") as file:
                async for chunk in content:
                    size += len(chunk)
                    if size > self._max_bytes:
                        return False
                    await asyncio.to_thread(file.write, chunk)
        except (OSError, RefusedContent):
            return False
        await asyncio.to_thread(path.chmod, 0o444)
        return size > 0


async def _check_walls(isolation: Isolation) -> None:
    """Raises `ConfinementUnavailable`."""
    if isolation is Isolation.AUTO and not (probe := await probe_bubblewrap()).works:
        raise ConfinementUnavailable(f"It is not done without walls, and {probe.reason}. Try: {probe.remedy}.")


def _of_identifying(config: dict[str, dict[str, str]]) -> dict[str, dict[str, str]]:
    return {IDENTIFYING_PLUGIN: config[IDENTIFYING_PLUGIN]} if IDENTIFYING_PLUGIN in config else {}


def _unheard(_news: object) -> None:
    """Nobody is told what goes on in it."""
