"""Reports of Malbox's shape (schema version 1): a verdict with its evidence, and sections of typed blocks for people.

A report is the JSON result with the reserved name `report`. Empty lists and what was not set are left out of it.
"""

from __future__ import annotations

import base64
import binascii
from typing import Any

from .items import Column, GraphEdge, GraphNode, KvPair, TimelineEvent, TreeNode, all_of
from .values import (
    ArtifactRef,
    Classification,
    Confidence,
    Indicator,
    JsonObject,
    PluginResult,
    Ttp,
    checked_json,
    checked_optional_text,
    checked_text,
    present,
)

SCHEMA_VERSION = 1
REPORT_RESULT = "report"
CALLOUT_LEVELS = ("info", "success", "warn", "error")


class Block:
    """A typed piece of a section; made by the constructor of its type."""

    def __init__(self, type: str, fields: JsonObject) -> None:
        self._json: JsonObject = {"type": type, **fields}

    def to_json(self) -> JsonObject:
        """The shape that sections hold."""
        return self._json

    @staticmethod
    def markdown(text: str) -> Block:
        """Text in Markdown."""
        return Block("markdown", {"text": checked_text("text", text)})

    @staticmethod
    def callout(level: str, text: str) -> Block:
        """A highlighted note; `level` is info, success, warn or error."""
        if level not in CALLOUT_LEVELS:
            raise ValueError(f"invalid callout level {level!r}: it must be one of {', '.join(CALLOUT_LEVELS)}")
        return Block("callout", {"level": level, "text": checked_text("text", text)})

    @staticmethod
    def heading(level: int, text: str) -> Block:
        """A heading; `level` is 1 to 6."""
        if isinstance(level, bool) or not isinstance(level, int):
            raise TypeError(f"a heading level must be an integer, not {type(level).__name__}")
        if not 1 <= level <= 6:
            raise ValueError(f"a heading level must be 1 to 6, not {level}")
        return Block("heading", {"level": level, "text": checked_text("text", text)})

    @staticmethod
    def divider() -> Block:
        """A line."""
        return Block("divider", {})

    @staticmethod
    def kv(pairs: list[KvPair]) -> Block:
        """Keys and values."""
        return Block("kv", {"pairs": [pair.to_json() for pair in all_of(KvPair, "pairs", pairs)]})

    @staticmethod
    def table(
        columns: list[Column],
        rows: list[dict[str, Any]],
        sortable: bool = False,
        searchable: bool = False,
    ) -> Block:
        """A table; each row maps column keys to cells."""
        return Block(
            "table",
            {
                "columns": [column.to_json() for column in all_of(Column, "columns", columns)],
                "rows": checked_json("rows", all_of(dict, "rows", rows)),
                "sortable": bool(sortable),
                "searchable": bool(searchable),
            },
        )

    @staticmethod
    def code(language: str, text: str) -> Block:
        """Source text."""
        return Block("code", {"language": checked_text("language", language), "text": checked_text("text", text)})

    @staticmethod
    def json(data: Any, collapsed: bool = False) -> Block:
        """Any JSON."""
        return Block("json", {"data": checked_json("data", data), "collapsed": bool(collapsed)})

    @staticmethod
    def hex(bytes_b64: str, offset: int = 0) -> Block:
        """A hex dump: the bytes in base64, and where they begin."""
        try:
            base64.b64decode(checked_text("bytes_b64", bytes_b64), validate=True)
        except binascii.Error as exc:
            raise ValueError(f"bytes_b64 is not base64: {exc}") from exc
        if isinstance(offset, bool) or not isinstance(offset, int):
            raise TypeError(f"an offset must be an integer, not {type(offset).__name__}")
        if offset < 0:
            raise ValueError(f"an offset can't be negative: {offset}")
        return Block("hex", {"bytes_b64": bytes_b64, "offset": offset})

    @staticmethod
    def image(artifact: str, caption: str | None = None) -> Block:
        """A picture: the result of that name."""
        return Block(
            "image",
            present({"artifact": checked_text("artifact", artifact), "caption": checked_optional_text("caption", caption)}),
        )

    @staticmethod
    def download(artifact: str, label: str) -> Block:
        """A link to the result of that name."""
        return Block("download", {"artifact": checked_text("artifact", artifact), "label": checked_text("label", label)})

    @staticmethod
    def iocs(items: list[Indicator]) -> Block:
        """Indicators."""
        return Block("iocs", {"items": [item.to_json() for item in all_of(Indicator, "items", items)]})

    @staticmethod
    def ttps(items: list[Ttp]) -> Block:
        """Techniques."""
        return Block("ttps", {"items": [item.to_json() for item in all_of(Ttp, "items", items)]})

    @staticmethod
    def tree(nodes: list[TreeNode]) -> Block:
        """A tree, such as that of processes."""
        return Block("tree", {"nodes": [node.to_json() for node in all_of(TreeNode, "nodes", nodes)]})

    @staticmethod
    def timeline(events: list[TimelineEvent]) -> Block:
        """Events in time."""
        return Block("timeline", {"events": [event.to_json() for event in all_of(TimelineEvent, "events", events)]})

    @staticmethod
    def graph(nodes: list[GraphNode], edges: list[GraphEdge]) -> Block:
        """Nodes and edges."""
        return Block(
            "graph",
            {
                "nodes": [node.to_json() for node in all_of(GraphNode, "nodes", nodes)],
                "edges": [edge.to_json() for edge in all_of(GraphEdge, "edges", edges)],
            },
        )


class SectionBuilder:
    """Collects the blocks of a section."""

    def __init__(self) -> None:
        self._blocks: list[Block] = []

    def block(self, block: Block) -> SectionBuilder:
        """Add one."""
        self._blocks.extend(all_of(Block, "block", (block,)))
        return self

    def get_blocks(self) -> list[Block]:
        """All of them, in order."""
        return list(self._blocks)


class ReportBuilder:
    """Makes a report step by step; each step returns the builder itself."""

    def __init__(self, plugin_id: str, plugin_version: str) -> None:
        self._plugin = {"id": checked_text("plugin_id", plugin_id), "version": checked_text("plugin_version", plugin_version)}
        self._summary: str | None = None
        self._verdict: JsonObject | None = None
        self._labels: list[str] = []
        self._indicators: list[JsonObject] = []
        self._ttps: list[JsonObject] = []
        self._artifacts: list[JsonObject] = []
        self._sections: list[JsonObject] = []
        self._raw: Any = None

    def display_name(self, name: str) -> ReportBuilder:
        """What people read instead of the plugin's name."""
        self._plugin["display_name"] = checked_text("name", name)
        return self

    def summary(self, summary: str) -> ReportBuilder:
        """The report in a sentence."""
        self._summary = checked_text("summary", summary)
        return self

    def verdict(
        self,
        classification: Classification,
        score: int | None = None,
        confidence: Confidence | None = None,
    ) -> ReportBuilder:
        """The judgement; `score` is 0 (harmless) to 100."""
        if not isinstance(classification, Classification):
            raise TypeError(f"classification must be a Classification, not {type(classification).__name__}")
        if confidence is not None and not isinstance(confidence, Confidence):
            raise TypeError(f"confidence must be a Confidence, not {type(confidence).__name__}")
        if score is not None:
            if isinstance(score, bool) or not isinstance(score, int):
                raise TypeError(f"score must be an integer, not {type(score).__name__}")
            if not 0 <= score <= 100:
                raise ValueError(f"score must be 0 to 100, not {score}")
        self._verdict = present(
            {
                "classification": classification.value,
                "score": score,
                "confidence": None if confidence is None else confidence.value,
            }
        )
        return self

    def labels(self, labels: list[str]) -> ReportBuilder:
        """Family names, rule names and the like; without a verdict they stand under `unknown`. A later call replaces them."""
        self._labels = [checked_text("a label", label) for label in all_of(str, "labels", labels)]
        return self

    def indicator(self, indicator: Indicator) -> ReportBuilder:
        """Add an indicator."""
        self._indicators += [item.to_json() for item in all_of(Indicator, "indicator", (indicator,))]
        return self

    def ttp(self, ttp: Ttp) -> ReportBuilder:
        """Add a technique."""
        self._ttps += [item.to_json() for item in all_of(Ttp, "ttp", (ttp,))]
        return self

    def artifact(self, artifact: ArtifactRef) -> ReportBuilder:
        """Point at another result."""
        self._artifacts += [item.to_json() for item in all_of(ArtifactRef, "artifact", (artifact,))]
        return self

    def section(self, id: str, title: str, blocks: list[Block]) -> ReportBuilder:
        """Add a section."""
        section: JsonObject = {"id": checked_text("id", id), "title": checked_text("title", title)}
        if made := [block.to_json() for block in all_of(Block, "blocks", blocks)]:
            section["blocks"] = made
        self._sections.append(section)
        return self

    def raw(self, value: Any) -> ReportBuilder:
        """The plugin's own JSON, for programs."""
        self._raw = checked_json("raw", value)
        return self

    def build(self) -> PluginResult:
        """The report as a result, ready to push."""
        verdict = self._verdict
        if self._labels:
            verdict = {**(verdict or {"classification": Classification.Unknown.value}), "labels": self._labels}
        report = {
            "schema_version": SCHEMA_VERSION,
            "plugin": self._plugin,
            "verdict": verdict,
            "indicators": self._indicators or None,
            "ttps": self._ttps or None,
            "artifacts": self._artifacts or None,
            "summary": self._summary,
            "sections": self._sections or None,
            "raw": self._raw,
        }
        return PluginResult.json(REPORT_RESULT, present(report))
