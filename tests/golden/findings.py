"""A task with reports that are longer and wider than a screen."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from malbox_tui.model.overview import ProfileView
from malbox_tui.model.queries import TaskRecord
from malbox_tui.model.report import Classification, Confidence, Identification, PluginStatus, Verdict
from malbox_tui.model.sample import Note
from malbox_tui.model.task import TaskState
from tests.tui.scripted import NOW, SUSPICIOUS, ScriptedClient, plugin_run, reference, sample, sha256_of, task, worker
from tests.tui.test_pictures import packed, two_colours

YARA_VERDICT = Verdict(Classification.MALICIOUS, 90, Confidence.HIGH, ("Loader_Generic",))


def found() -> ScriptedClient:
    """Strings of a loader, its process tree and what the rules say."""
    runs = (
        plugin_run(512, "yara-x", verdict=YARA_VERDICT),
        plugin_run(512, "strings"),
        plugin_run(512, "sandbox"),
    )
    row = TaskRecord(
        task(512, TaskState.COMPLETED, plugins=runs, verdict=YARA_VERDICT),
        sample(512, b"invoice_2211.exe", identification=Identification("pe", None, "windows", "x64", "PE32+ executable")),
    )
    client = ScriptedClient([row], [worker(1), worker(2)])
    for name, content in (("yara-x", YARA), ("strings", _strings()), ("sandbox", SANDBOX)):
        client.results[f"512/{name}/report"] = json.dumps(content).encode()
    return client


def pictured() -> ScriptedClient:
    """A document with what its first page looks like."""
    run = plugin_run(512, "preview", results=[reference(512, "preview"), reference(512, "preview", "page-1", "bytes")])
    row = TaskRecord(
        task(512, TaskState.COMPLETED, plugins=(run,)), sample(512, b"invoice.pdf", identification=Identification("pdf"))
    )
    client = ScriptedClient([row], [worker(1)])
    image = {"type": "image", "artifact": "page-1", "caption": "its first page"}
    client.results["512/preview/report"] = json.dumps({"sections": [{"title": "Pages", "blocks": [image]}]}).encode()
    client.results["512/preview/page-1"] = packed(two_colours(60, 40))
    return client


def profiled() -> ScriptedClient:
    """A waiting task, and profiles that it may be given."""
    row = TaskRecord(task(512, TaskState.PENDING), sample(512, b"invoice.doc"))
    client = ScriptedClient([row], [worker(1)])
    client._engine["profiles"] = (
        ProfileView(name="documents", about="for ole, ooxml; file-type, strings, yara-x; 120 s"),
        ProfileView(name="in-windows", about="all plugins; windows, tag office"),
        ProfileView(name="quick", about="file-type, yara-x; 20 s"),
    )
    return client


def _strings() -> dict[str, Any]:
    columns = [{"key": key, "label": key} for key in ("offset", "encoding", "text")]
    texts = ("LoadLibraryA", "GetProcAddress", "cmd.exe /c ping 127.0.0.1 -n 3 > nul & del \\users\\public\\a.exe", "%s\\%d.tmp")
    rows = [
        {"offset": f"0x{0x400 + 61 * n:08x}", "encoding": "UTF-16" if n % 5 == 2 else "ASCII", "text": texts[n % 4]}
        for n in range(900)
    ]
    items = [
        {"kind": "url", "value": "http://cdn.evil.example/update/a.bin", "context": "at 0x00004812"},
        {"kind": "domain", "value": "cdn.evil.example", "context": "in the URL"},
        {"kind": "ipv4", "value": "203.0.113.77", "context": "at 0x00005120"},
        {"kind": "registry", "value": "HKCU\\Software\\Microsoft\\Windows\\CurrentVersion\\Run", "context": "at 0x00006014"},
    ]
    return {
        "plugin": {"id": "strings", "version": "0.1.0"},
        "summary": "900 strings, 4 indicators",
        "sections": [
            {"id": "iocs", "title": "Indicators", "blocks": [{"type": "iocs", "items": items}]},
            {"id": "strings", "title": "Strings", "blocks": [{"type": "table", "columns": columns, "rows": rows}]},
        ],
    }


YARA: dict[str, Any] = {
    "plugin": {"id": "yara-x", "version": "0.1.0"},
    "summary": "1 of 687 rules matched",
    "verdict": {"classification": "malicious", "score": 90},
    "ttps": [{"id": "T1055", "name": "Process Injection", "evidence": "VirtualAllocEx, WriteProcessMemory"}],
    "sections": [
        {
            "id": "matches",
            "title": "Matches",
            "blocks": [
                {
                    "type": "callout",
                    "level": "error",
                    "text": "A loader: it writes into other processes and starts a thread there.",
                },
                {"type": "kv", "pairs": [{"key": "rule", "value": "Loader_Generic"}, {"key": "author", "value": "ana"}]},
                {"type": "hex", "bytes_b64": "TVqQAAMAAAAEAAAA//8AALgAAAAAAAAAQAAAAAAAAAAAAAAA", "offset": 0},
            ],
        }
    ],
}

SANDBOX: dict[str, Any] = {
    "plugin": {"id": "sandbox", "version": "2.1.0"},
    "summary": "It started 4 processes and was ended by the time limit.",
    "sections": [
        {
            "id": "processes",
            "title": "Processes",
            "blocks": [
                {
                    "type": "tree",
                    "nodes": [
                        {
                            "label": "invoice_2211.exe (3120)",
                            "children": [
                                {"label": "cmd.exe (3344)", "children": [{"label": "ping.exe (3390)"}]},
                                {"label": "svchost.exe (3412)", "meta": "injected"},
                            ],
                        }
                    ],
                },
                {
                    "type": "timeline",
                    "events": [
                        {"ts": "00:00.2", "label": "invoice_2211.exe starts", "severity": "info"},
                        {"ts": "00:03.9", "label": "cdn.evil.example is resolved", "severity": "warn"},
                    ],
                },
                {
                    "type": "graph",
                    "nodes": [{"id": "a", "label": "invoice_2211.exe"}, {"id": "b", "label": "203.0.113.77:443"}],
                    "edges": [{"from": "a", "to": "b", "label": "connects to"}],
                },
                {"type": "code", "language": "powershell", "text": "Start-Process a.exe\nRemove-Item a.exe"},
            ],
        }
    ],
}


def known() -> ScriptedClient:
    """A content that was looked at several times, and of which people noted something."""
    held = msgspec.structs.replace(
        sample(
            512,
            b"invoice_2211.exe",
            b"setup.exe",
            identification=Identification("pe", None, "windows", "x64", "PE32+ executable"),
        ),
        notes=(
            Note(NOW - 200_000, "ana", "Came with the mails of Monday, to accounting alone."),
            Note(
                NOW - 5_400,
                "ben",
                "Same loader as in March: the key of its strings is the same. The address is another one, see the report.",
            ),
        ),
        tags=("loader", "mail", "to-do"),
    )
    ended = (
        (512, TaskState.COMPLETED, YARA_VERDICT, 40.0),
        (431, TaskState.TIMED_OUT, SUSPICIOUS, 5_600.0),
        (312, TaskState.FAILED, None, 90_000.0),
        (208, TaskState.COMPLETED, None, 200_400.0),
    )
    rows = [TaskRecord(task(513, TaskState.PENDING, ago_s=3.0, sha256=sha256_of(512)), held)]
    for number, state, verdict, ago_s in ended:
        runs = (
            plugin_run(
                number, "yara-x", verdict=verdict, status=PluginStatus.FAILED if verdict is None else PluginStatus.COMPLETED
            ),
        )
        done = task(number, state, ago_s=ago_s, sha256=sha256_of(512), verdict=verdict, plugins=runs)
        rows.append(TaskRecord(done, held))
    return ScriptedClient(rows, [worker(1), worker(2)])
