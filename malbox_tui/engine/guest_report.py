"""The report of a run in a guest: Malbox's shape, made of what was seen, for people. It judges nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from malbox_tui.engine.guest_files import IndexEntry
from malbox_tui.engine.guest_shelf import plain_text
from malbox_tui.model.report import ArtifactRef, PluginIdentity, Report, ResultRef, Section
from malbox_tui.ports import GuestProcess

MAX_SHOWN_OUTPUT = 8 * 1024
MAX_SHOWN = 200
"""How many processes and files are shown; the results hold all."""

Block = dict[str, Any]


class ProcessFacts(msgspec.Struct, frozen=True):
    """The processes of the guest before and after the sample ran; None: they could not be had. `new`: those that came meanwhile."""

    before: tuple[GuestProcess, ...] | None = None
    after: tuple[GuestProcess, ...] | None = None
    new: tuple[GuestProcess, ...] = ()


@dataclass(slots=True)
class Seen:
    """What was seen of a run: `how` it ended, in a sentence; how the sample was started; what it printed, as text; and the rest."""

    how: str
    started: str = ""
    output: str = ""
    is_output_whole: bool = True
    processes: ProcessFacts | None = None
    files: Sequence[IndexEntry] = ()
    screenshots: int = 0
    notes: Sequence[str] = field(default_factory=list)


def report_of(seen: Seen, plugin: PluginIdentity, results: Sequence[ResultRef]) -> Report:
    """What is known of the run, a section each; what was not seen has none."""
    sections = [Section("end", "How it ended", tuple(_end(seen)))]
    if seen.output:
        sections.append(Section("output", "Output", tuple(_output(seen))))
    if seen.processes is not None:
        sections.append(Section("processes", "Processes", tuple(_processes(seen.processes))))
    if seen.files:
        sections.append(Section("files", "Dropped and changed files", tuple(_files(seen.files))))
    if pictures := [result for result in results if result.name.startswith("screenshot-")]:
        images = tuple({"type": "image", "artifact": picture.name} for picture in pictures[-1:])
        told = {"type": "markdown", "text": f"{len(pictures)} pictures of the screen were kept; this is the last."}
        sections.append(Section("screen", "Screen", (told, *images)))
    kept = {result.name: result for result in results}
    traffic = [_kept_file(kept[name], what) for name, what in _RECORDED.items() if name in kept]
    if traffic:
        sections.append(Section("recorded", "Recorded", ({"type": "kv", "pairs": traffic},)))
    return Report(
        plugin=plugin,
        summary=seen.how,
        artifacts=tuple(ArtifactRef(result.name, _kind(result.name)) for result in results[:MAX_SHOWN]),
        sections=tuple(sections),
    )


NETWORK_RESULT = "network.pcap"
MEMORY_RESULT = "memory.elf"

_RECORDED = {NETWORK_RESULT: "Network traffic", MEMORY_RESULT: "Memory"}

_KINDS = {"screenshot": "screenshot", "dropped": "dropped_file", "network": "pcap", "memory": "memory_dump"}


def _kind(name: str) -> str:
    return next((kind for beginning, kind in _KINDS.items() if name.startswith(beginning)), "file")


def _pair(key: str, value: str) -> Block:
    return {"key": key, "value": value}


def _kept_file(result: ResultRef, what: str) -> Block:
    return _pair(what, f"{result.size_bytes} bytes in {result.name}")


def _end(seen: Seen) -> Iterator[Block]:
    pairs = [_pair("End", seen.how)]
    if seen.started:
        pairs.append(_pair("Started as", seen.started))
    yield {"type": "kv", "pairs": pairs}
    for note in seen.notes[:MAX_SHOWN]:
        yield {"type": "callout", "level": "warn", "text": plain_text(f"{note[:1].upper()}{note[1:]}.", 1000)}


def _output(seen: Seen) -> Iterator[Block]:
    yield {"type": "code", "language": "text", "text": seen.output[:MAX_SHOWN_OUTPUT]}
    if len(seen.output) > MAX_SHOWN_OUTPUT or not seen.is_output_whole:
        yield {"type": "callout", "level": "info", "text": "That is only its beginning."}


def _processes(facts: ProcessFacts) -> Iterator[Block]:
    counts = [
        _pair(when, "not known" if found is None else str(len(found)))
        for when, found in (("Before", facts.before), ("After", facts.after))
    ]
    yield {"type": "kv", "pairs": [*counts, _pair("New", str(len(facts.new)))]}
    if facts.new:
        yield _table(
            ("pid", "parent", "name", "command"),
            [
                {"pid": process.pid, "parent": process.parent, "name": process.name, "command": process.command}
                for process in facts.new[:MAX_SHOWN]
            ],
        )


def _files(index: Sequence[IndexEntry]) -> Iterator[Block]:
    rows = [
        {
            "path": entry.path,
            "change": entry.change,
            "size_bytes": entry.size_bytes,
            "kept": entry.result or f"no: {entry.missing}",
        }
        for entry in index[:MAX_SHOWN]
    ]
    yield _table(("path", "change", "size_bytes", "kept"), rows)
    if len(index) > MAX_SHOWN:
        yield {"type": "callout", "level": "info", "text": f"{len(index) - MAX_SHOWN} more are in the result files."}


def _table(columns: Sequence[str], rows: Sequence[Block]) -> Block:
    labels = [{"key": key, "label": key.replace("_", " ").capitalize(), "type": "string"} for key in columns]
    return {"type": "table", "columns": labels, "rows": list(rows), "sortable": True, "searchable": True}
