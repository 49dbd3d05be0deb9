"""The SDK's values: what they hold, what they refuse, and the JSON that a report becomes."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

import malbox_tui.sdk.malbox_plugin_sdk as malbox
from malbox_tui.model.report import Report
from malbox_tui.sdk.malbox_plugin_sdk.context import Context, Run


def content(result: malbox.PluginResult) -> Any:
    assert result.data is not None
    return json.loads(result.data)


def a_whole_report() -> malbox.ReportBuilder:
    return (
        malbox.ReportBuilder("scanner", "1.0.0")
        .display_name("Scanner")
        .summary("One match")
        .labels(["trojan"])
        .verdict(malbox.Classification.Malicious, 87, malbox.Confidence.High)
        .indicator(malbox.Indicator("sha256", "abc", context="sample"))
        .ttp(malbox.Ttp("T1055", "Process Injection"))
        .artifact(malbox.ArtifactRef("details", "other"))
        .section("overview", "Overview", [malbox.Block.heading(2, "Rules"), malbox.Block.divider()])
        .raw({"native": 1})
    )


def test_a_report_has_the_fields_of_schema_version_1() -> None:
    result = a_whole_report().build()
    assert result.name == "report"
    assert content(result) == {
        "schema_version": 1,
        "plugin": {"id": "scanner", "version": "1.0.0", "display_name": "Scanner"},
        "verdict": {"classification": "malicious", "score": 87, "confidence": "high", "labels": ["trojan"]},
        "indicators": [{"kind": "sha256", "value": "abc", "context": "sample"}],
        "ttps": [{"id": "T1055", "name": "Process Injection"}],
        "artifacts": [{"result_name": "details", "kind": "other"}],
        "summary": "One match",
        "sections": [
            {
                "id": "overview",
                "title": "Overview",
                "blocks": [{"type": "heading", "level": 2, "text": "Rules"}, {"type": "divider"}],
            }
        ],
        "raw": {"native": 1},
    }


def test_the_engine_reads_the_report_that_the_sdk_writes() -> None:
    data = a_whole_report().build().data
    assert data is not None
    report = msgspec.json.decode(data, type=Report)
    assert report.plugin.id == "scanner"
    assert report.verdict is not None
    assert report.verdict.labels == ("trojan",)


def test_what_was_not_set_is_left_out() -> None:
    assert content(malbox.ReportBuilder("p", "0").build()) == {"schema_version": 1, "plugin": {"id": "p", "version": "0"}}


def test_labels_without_a_verdict_stand_under_unknown() -> None:
    report = content(malbox.ReportBuilder("p", "0").labels(["packed"]).build())
    assert report["verdict"] == {"classification": "unknown", "labels": ["packed"]}


BLOCKS: dict[str, tuple[malbox.Block, dict[str, Any]]] = {
    "markdown": (malbox.Block.markdown("**x**"), {"type": "markdown", "text": "**x**"}),
    "callout": (malbox.Block.callout("warn", "x"), {"type": "callout", "level": "warn", "text": "x"}),
    "kv": (
        malbox.Block.kv([malbox.KvPair("a", "b"), malbox.KvPair("c", "d", mono=True)]),
        {"type": "kv", "pairs": [{"key": "a", "value": "b"}, {"key": "c", "value": "d", "mono": True}]},
    ),
    "table": (
        malbox.Block.table([malbox.Column("k", "Key", "number")], [{"k": 1}], sortable=False, searchable=True),
        {
            "type": "table",
            "columns": [{"key": "k", "label": "Key", "type": "number"}],
            "rows": [{"k": 1}],
            "sortable": False,
            "searchable": True,
        },
    ),
    "code": (malbox.Block.code("c", "x;"), {"type": "code", "language": "c", "text": "x;"}),
    "json": (malbox.Block.json({"a": [1]}), {"type": "json", "data": {"a": [1]}, "collapsed": False}),
    "hex": (malbox.Block.hex("AAE=", 16), {"type": "hex", "bytes_b64": "AAE=", "offset": 16}),
    "image": (malbox.Block.image("shot", "Desktop"), {"type": "image", "artifact": "shot", "caption": "Desktop"}),
    "download": (malbox.Block.download("dump", "Memory"), {"type": "download", "artifact": "dump", "label": "Memory"}),
    "iocs": (malbox.Block.iocs([malbox.Indicator("url", "u")]), {"type": "iocs", "items": [{"kind": "url", "value": "u"}]}),
    "ttps": (
        malbox.Block.ttps([malbox.Ttp("T1", "n", evidence="e")]),
        {"type": "ttps", "items": [{"id": "T1", "name": "n", "evidence": "e"}]},
    ),
    "tree": (
        malbox.Block.tree([malbox.TreeNode("a", [malbox.TreeNode("b", meta={"pid": 1})])]),
        {"type": "tree", "nodes": [{"label": "a", "children": [{"label": "b", "meta": {"pid": 1}}]}]},
    ),
    "timeline": (
        malbox.Block.timeline([malbox.TimelineEvent("2026-01-01T00:00:00Z", "start", severity="low")]),
        {"type": "timeline", "events": [{"ts": "2026-01-01T00:00:00Z", "label": "start", "severity": "low"}]},
    ),
    "graph": (
        malbox.Block.graph([malbox.GraphNode("1", "a"), malbox.GraphNode("2", "b")], [malbox.GraphEdge("1", "2", "calls")]),
        {
            "type": "graph",
            "nodes": [{"id": "1", "label": "a"}, {"id": "2", "label": "b"}],
            "edges": [{"from": "1", "to": "2", "label": "calls"}],
        },
    ),
}


@pytest.mark.parametrize("name", BLOCKS)
def test_each_block_has_its_shape(name: str) -> None:
    block, shape = BLOCKS[name]
    report = content(malbox.ReportBuilder("p", "0").section("s", "S", [block]).build())
    assert report["sections"][0]["blocks"] == [shape]


def report() -> malbox.ReportBuilder:
    return malbox.ReportBuilder("p", "0")


WRONG: dict[str, Callable[[], object]] = {
    "a classification as text": lambda: report().verdict("malicious"),  # type: ignore[arg-type]
    "a confidence as text": lambda: report().verdict(malbox.Classification.Clean, 1, "high"),  # type: ignore[arg-type]
    "a score above 100": lambda: report().verdict(malbox.Classification.Clean, 101),
    "a score below 0": lambda: report().verdict(malbox.Classification.Clean, -1),
    "half a score": lambda: report().verdict(malbox.Classification.Clean, 0.5),  # type: ignore[arg-type]
    "a heading of level 0": lambda: malbox.Block.heading(0, "x"),
    "a heading of level 7": lambda: malbox.Block.heading(7, "x"),
    "an unknown callout": lambda: malbox.Block.callout("fatal", "x"),
    "a hex dump that is no base64": lambda: malbox.Block.hex("???", 0),
    "a negative offset": lambda: malbox.Block.hex("AAE=", -1),
    "a pair that is none": lambda: malbox.Block.kv([("a", "b")]),  # type: ignore[list-item]
    "a row that is none": lambda: malbox.Block.table([], ["x"]),  # type: ignore[list-item]
    "a number as text": lambda: malbox.KvPair("a", 1),  # type: ignore[arg-type]
    "a lone surrogate": lambda: malbox.Indicator("url", "\ud800"),
    "JSON that is none": lambda: malbox.Block.json(object()),
    "a NaN": lambda: malbox.Block.json(math.nan),
    "bytes that are text": lambda: malbox.PluginResult.bytes("x", "text"),  # type: ignore[arg-type]
    "an id that is text": lambda: malbox.Event.task_created("1"),  # type: ignore[arg-type]
    "a label that is none": lambda: report().labels([1]),  # type: ignore[list-item]
    "a block that is none": lambda: report().section("a", "b", ["text"]),  # type: ignore[list-item]
    "a circle": lambda: malbox.TreeNode("x", meta=_circle()),
}


def _circle() -> list[Any]:
    circle: list[Any] = []
    circle.append(circle)
    return circle


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_value_raises_where_it_is_made(name: str) -> None:
    with pytest.raises((TypeError, ValueError)):
        WRONG[name]()


def test_events_carry_what_their_kind_has() -> None:
    assert (malbox.Event.task_created(42).kind, malbox.Event.task_created(42).id) == ("TaskCreated", 42)
    available = malbox.Event.plugin_result_available("scanner", "matches")
    assert (available.kind, available.id, available.source, available.result_name) == (
        "PluginResultAvailable",
        None,
        "scanner",
        "matches",
    )
    assert malbox.Event.daemon_shutdown().id is None


def test_only_healthy_is_ready() -> None:
    assert malbox.HealthStatus.Healthy().is_ready
    assert not malbox.HealthStatus.Degraded("slow").is_ready
    assert malbox.HealthStatus.Unhealthy("gone").reason == "gone"


def test_a_context_is_valid_during_its_handler_only(tmp_path: Path) -> None:
    sent: list[tuple[dict[str, Any], bytes]] = []
    sample = tmp_path / "sample"
    sample.write_bytes(b"content")
    run = Run(3, 7, sample, {"key": "value"}, lambda header, payload: sent.append((header, bytes(payload))))
    context = Context(run)
    task, sink = context.task(), context.results()
    assert (task.id, task.sample_bytes(), task.config_value("key"), task.config_value("none")) == (7, b"content", "value", None)
    sink.push_file("copy", sample)
    context.progress(0.5, "half")
    assert [header["kind"] for header, _payload in sent] == ["result_begin", "result_chunk", "result_end", "progress"]
    run.end()
    for late in (lambda: task.id, lambda: sink.push_bytes("x", b""), lambda: context.warn("x"), task.sample_bytes):
        with pytest.raises(RuntimeError, match="no longer valid"):
            late()


@pytest.mark.parametrize("fraction", [math.nan, math.inf, -0.1, 1.1])
def test_progress_is_between_nothing_and_everything(fraction: float, tmp_path: Path) -> None:
    context = Context(Run(1, 1, tmp_path, {}, lambda header, payload: None))
    with pytest.raises(ValueError, match="progress must be"):
        context.progress(fraction, "x")


def test_a_plugin_that_no_engine_started_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MALBOX_WIRE_FD", raising=False)
    with pytest.raises(RuntimeError, match="not started by an engine"):
        malbox.run(malbox.Plugin())
