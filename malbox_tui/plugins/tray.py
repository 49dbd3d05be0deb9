"""Where the results of one plugin on one task arrive: bounded, read where the engine needs them, and streamed to the result store, or
held until it is certain that they are to be kept."""

from __future__ import annotations

import msgspec

from malbox_tui.model.events import PluginResultAvailable
from malbox_tui.model.report import REPORT_RESULT, Identification, Named, ResultRef, Verdict
from malbox_tui.plugins.held import HeldResult, HoldingRoom
from malbox_tui.plugins.replies import (
    MAX_IDENTIFICATION_BYTES,
    MAX_REPORT_BYTES,
    BadResult,
    facts_of_report,
    identification_of,
    shortened,
)
from malbox_tui.plugins.surroundings import Surroundings
from malbox_tui.ports import PluginJob, ResultWriter
from malbox_tui.sdk.malbox_plugin_sdk.wire import CHUNK_BYTES

LOG_RESULT = "log"
IDENTIFICATION_RESULT = "identification"
IDENTIFYING_PLUGIN = "file-type"
"""The plugin whose `identification` says what kind of content a sample is."""

_FORMATS = ("json", "bytes", "file")


class _Arriving(msgspec.Struct):
    name: str
    writer: ResultWriter | HeldResult
    cap_bytes: int
    size_bytes: int = 0
    short: bool = False
    copy: bytearray | None = None


class ResultTray:
    """Takes results as they come, and tells of each that is in the result store.

    With a `room` they are held there until `settle`. Each call raises `BadResult` for what a plugin may not send, and what the store
    raises.
    """

    def __init__(self, around: Surroundings, job: PluginJob, plugin: str, room: HoldingRoom | None = None) -> None:
        self._around = around
        self._job = job
        self._plugin = plugin
        # What isn't of the task's sample lies in a folder of its own.
        self._folder = f"{plugin}.{job.sample_name}" if job.subject else plugin
        self._room = room
        self._arriving: _Arriving | None = None
        self._begun = 0
        self._held: dict[str, HeldResult] = {}
        self._kept: dict[str, ResultRef] = {}
        self.verdict: Verdict | None = None
        self.named = Named()
        self.identification: Identification | None = None

    @property
    def results(self) -> tuple[ResultRef, ...]:
        """What is in the result store, in the order of the first arrival of each name."""
        return tuple(self._kept.values())

    @property
    def unfinished(self) -> str | None:
        """The name of the result that began and did not end."""
        return None if self._arriving is None else shortened(self._arriving.name, 80)

    def begin(self, name: str, format: str) -> None:
        """A result begins."""
        if self._arriving is not None:
            raise BadResult(f"it began a result before the result {self.unfinished} had ended")
        self._begun += 1
        if self._begun > self._around.settings.max_results:
            raise BadResult(f"it pushed more than {self._around.settings.max_results} results")
        if format not in _FORMATS:
            raise BadResult(f"a result has the unknown format {shortened(format, 80)}")
        read = self._reads(name)
        self._arriving = _Arriving(
            name=name,
            writer=self._writer(name, format) if self._room is None else HeldResult(self._room, format),
            cap_bytes=min(read or self._around.settings.max_result_bytes, self._around.settings.max_result_bytes),
            copy=None if read is None else bytearray(),
        )

    def chunk(self, content: bytes) -> None:
        """A piece of the result; only the last one may be shorter than a whole chunk."""
        arriving = self._arriving
        if arriving is None:
            raise BadResult("it sent content of a result that had not begun")
        if arriving.short or not 0 < len(content) <= CHUNK_BYTES:
            raise BadResult("it sent a result in pieces of the wrong size")
        arriving.short = len(content) < CHUNK_BYTES
        arriving.size_bytes += len(content)
        if arriving.size_bytes > arriving.cap_bytes:
            raise BadResult(f"the result {self.unfinished} is larger than {arriving.cap_bytes} bytes")
        arriving.writer.write(content)
        if arriving.copy is not None:
            arriving.copy += content

    def end(self) -> None:
        """The result is whole. It is kept only if the engine could read what it has to read of it."""
        arriving = self._arriving
        if arriving is None:
            raise BadResult("it ended a result that had not begun")
        if arriving.copy is not None:
            self._read(arriving.name, bytes(arriving.copy))
        self._arriving = None
        if isinstance(arriving.writer, HeldResult):
            self._held[arriving.name] = arriving.writer
        else:
            self._keep(arriving.name, arriving.writer)

    def settle(self) -> None:
        """What is held goes to the result store, all of it or, when this raises, as little as its errors allow."""
        writers = {}
        try:
            for name, held in self._held.items():
                writers[name] = self._writer(name, held.format)
                writers[name].write(bytes(held.content))
            for name, writer in writers.items():
                self._keep(name, writer)
        except BaseException:
            for writer in writers.values():
                writer.abort()
            raise

    def keep_log(self, text: bytes) -> None:
        """What the plugin printed, as a result of its own; a plugin's own result of that name is left alone."""
        name = LOG_RESULT if LOG_RESULT not in self._kept else f"{LOG_RESULT}-output"
        writer = self._writer(name, "bytes")
        try:
            writer.write(text)
            self._kept[name] = writer.commit()
        except BaseException:
            writer.abort()
            raise

    def abort(self) -> None:
        """Forget the result that is arriving; those that are whole stay. A second call does nothing."""
        if self._arriving is not None:
            self._arriving.writer.abort()
            self._arriving = None

    def _keep(self, name: str, writer: ResultWriter) -> None:
        self._kept[name] = self._around.declared(self._plugin, writer.commit())
        self._around.on_news(PluginResultAvailable(task_id=self._job.task_id, plugin=self._plugin, result_name=name))

    def _reads(self, name: str) -> int | None:
        """How large a result may be that the engine reads itself; None for one that it doesn't."""
        if name == REPORT_RESULT:
            return MAX_REPORT_BYTES
        if name == IDENTIFICATION_RESULT and self._plugin == IDENTIFYING_PLUGIN:
            return MAX_IDENTIFICATION_BYTES
        return None

    def _read(self, name: str, content: bytes) -> None:
        if name == REPORT_RESULT:
            facts = facts_of_report(content, self._plugin)
            self.verdict, self.named = facts.verdict, facts.named
        else:
            self.identification = identification_of(content)

    def _writer(self, name: str, format: str) -> ResultWriter:
        try:
            return self._around.results.begin(self._job.task_id, self._job.token, self._folder, name, format)
        except ValueError as exc:
            raise BadResult(f"{shortened(name, 80)!r} can't be the name of a result") from exc
