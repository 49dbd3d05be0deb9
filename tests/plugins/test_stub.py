"""What Malbox's type stub promises to plugins, written down by hand: each name with its signature, and a plugin that uses it."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import malbox_tui.sdk.malbox_plugin_sdk as malbox
from malbox_tui.model.report import PluginStatus
from tests.confine.rig import rig, write_plugin

METHODS: dict[str, dict[str, str]] = {
    "TaskInfo": {"sample_bytes": "(self)", "config_value": "(self, key)"},
    "ResultSink": {
        "push": "(self, result)",
        "push_json": "(self, name, data)",
        "push_bytes": "(self, name, data)",
        "push_file": "(self, name, path)",
        "push_all": "(self, results)",
    },
    "Context": {
        "task": "(self)",
        "results": "(self)",
        "progress": "(self, pct, message)",
        "emit_event": "(self, event)",
        "warn": "(self, message)",
        "mark_collected": "(self, path)",
    },
    "Event": {
        **{f"task_{how}": "(task_id)" for how in ("created", "starting", "completed", "failed", "canceled")},
        **{f"plugin_{how}": "(plugin_id)" for how in ("started", "stopped")},
        **{f"sample_{how}": "(sample_id)" for how in ("started", "stopped", "result_produced")},
        "plugin_result_available": "(source, result_name)",
        "daemon_shutdown": "()",
        "config_reloaded": "()",
    },
    "HealthStatus": {"Healthy": "()", "Degraded": "(reason)", "Unhealthy": "(reason)"},
    "PluginResult": {"json": "(name, data)", "bytes": "(name, data)", "file": "(name, path)"},
    "Indicator": {"__init__": "(self, kind, value, context=None, first_seen=None)"},
    "Ttp": {"__init__": "(self, id, name, evidence=None)"},
    "ArtifactRef": {"__init__": "(self, result_name, kind, description=None)"},
    "KvPair": {"__init__": "(self, key, value, mono=False)"},
    "Column": {"__init__": "(self, key, label, type='string')"},
    "TreeNode": {"__init__": "(self, label, children=None, meta=None)"},
    "TimelineEvent": {"__init__": "(self, ts, label, severity=None, meta=None)"},
    "GraphNode": {"__init__": "(self, id, label, meta=None)"},
    "GraphEdge": {"__init__": "(self, from_node, to_node, label=None)"},
    "Block": {
        "markdown": "(text)",
        "callout": "(level, text)",
        "heading": "(level, text)",
        "divider": "()",
        "kv": "(pairs)",
        "table": "(columns, rows, sortable=False, searchable=False)",
        "code": "(language, text)",
        "json": "(data, collapsed=False)",
        # Malbox's own runtime has the default that its stub leaves out.
        "hex": "(bytes_b64, offset=0)",
        "image": "(artifact, caption=None)",
        "download": "(artifact, label)",
        "iocs": "(items)",
        "ttps": "(items)",
        "tree": "(nodes)",
        "timeline": "(events)",
        "graph": "(nodes, edges)",
    },
    "ReportBuilder": {
        "__init__": "(self, plugin_id, plugin_version)",
        "display_name": "(self, name)",
        "summary": "(self, summary)",
        "verdict": "(self, classification, score=None, confidence=None)",
        "labels": "(self, labels)",
        "indicator": "(self, indicator)",
        "ttp": "(self, ttp)",
        "artifact": "(self, artifact)",
        "section": "(self, id, title, blocks)",
        "raw": "(self, value)",
        "build": "(self)",
    },
    "SectionBuilder": {"__init__": "(self)", "block": "(self, block)", "get_blocks": "(self)"},
    "Plugin": {
        "__init__": "(self)",
        "on_task": "(self, ctx)",
        "on_start": "(self, config)",
        "on_stop": "(self)",
        "health_check": "(self)",
        "on_event": "(self, event)",
    },
}
PROPERTIES = {
    "TaskInfo": ("id", "sample_path", "config"),
    "Event": ("kind", "id", "source", "result_name"),
    "HealthStatus": ("is_ready", "reason"),
    "PluginResult": ("name",),
    "Indicator": ("kind", "value", "context", "first_seen"),
    "Ttp": ("id", "name", "evidence"),
    "ArtifactRef": ("result_name", "kind", "description"),
    "KvPair": ("key", "value", "mono"),
    "Column": ("key", "label", "col_type"),
    "TreeNode": ("label",),
    "TimelineEvent": ("ts", "label", "severity"),
    "GraphNode": ("id", "label"),
    "GraphEdge": ("from_node", "to_node", "label"),
}
FUNCTIONS = {
    "run": "(plugin, name=None, version=None)",
    **dict.fromkeys(("trace", "debug", "info", "warn", "error"), "(message)"),
}
VALUES = {"Classification": ("Clean", "Suspicious", "Malicious", "Unknown"), "Confidence": ("Low", "Medium", "High")}
MADE: dict[str, Callable[[], Any]] = {
    "Event": lambda: malbox.Event.task_created(1),
    "HealthStatus": lambda: malbox.HealthStatus.Healthy(),
    "PluginResult": lambda: malbox.PluginResult.bytes("a", b""),
    "Indicator": lambda: malbox.Indicator("a", "b"),
    "Ttp": lambda: malbox.Ttp("a", "b"),
    "ArtifactRef": lambda: malbox.ArtifactRef("a", "b"),
    "KvPair": lambda: malbox.KvPair("a", "b"),
    "Column": lambda: malbox.Column("a", "b"),
    "TreeNode": lambda: malbox.TreeNode("a"),
    "TimelineEvent": lambda: malbox.TimelineEvent("a", "b"),
    "GraphNode": lambda: malbox.GraphNode("a", "b"),
    "GraphEdge": lambda: malbox.GraphEdge("a", "b"),
}


def bare(function: Any) -> str:
    """A signature without annotations."""
    signature = inspect.signature(function)
    parameters = [parameter.replace(annotation=inspect.Parameter.empty) for parameter in signature.parameters.values()]
    return str(signature.replace(parameters=parameters, return_annotation=inspect.Signature.empty))


@pytest.mark.parametrize(("owner", "name"), [(owner, name) for owner, methods in METHODS.items() for name in methods])
def test_each_method_has_the_signature_of_the_stub(owner: str, name: str) -> None:
    assert bare(getattr(getattr(malbox, owner), name)) == METHODS[owner][name]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_each_function_has_the_signature_of_the_stub(name: str) -> None:
    assert bare(getattr(malbox, name)) == FUNCTIONS[name]


@pytest.mark.parametrize("name", VALUES)
def test_each_value_has_its_name_and_equals_itself_only(name: str) -> None:
    values = [getattr(getattr(malbox, name), value) for value in VALUES[name]]
    assert all(isinstance(value, getattr(malbox, name)) for value in values)
    assert len(set(values)) == len(values)


@pytest.mark.parametrize("owner", MADE)
def test_each_property_can_be_read_and_not_set(owner: str) -> None:
    made = MADE[owner]()
    for name in PROPERTIES[owner]:
        getattr(made, name)
        with pytest.raises(AttributeError):
            setattr(made, name, "other")


def test_the_stub_has_no_other_names() -> None:
    own = {"TaskCanceled"}
    assert set(malbox.__all__) - own == {*METHODS, *FUNCTIONS, *VALUES}


def test_the_sdk_needs_the_standard_library_only() -> None:
    import ast
    import sys

    folder = Path(malbox.__file__).parent
    for file in folder.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Import):
                assert all(alias.name.partition(".")[0] in sys.stdlib_module_names for alias in node.names), file
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                assert (node.module or "").partition(".")[0] in sys.stdlib_module_names, file


ON_TASK = {
    "TaskInfo.id": "assert isinstance(ctx.task().id, int)",
    "TaskInfo.sample_path": "assert ctx.task().sample_path.read_bytes() == b'sample' and ctx.task().sample_path.is_absolute()",
    "TaskInfo.config": "assert ctx.task().config == {'option': 'default'}",
    "TaskInfo.sample_bytes": "assert ctx.task().sample_bytes() == b'sample'",
    "TaskInfo.config_value": "assert ctx.task().config_value('option') == 'default' and ctx.task().config_value('x') is None",
    "ResultSink.push": "ctx.results().push(malbox.PluginResult.json('a', {'b': 1}))",
    "ResultSink.push_json": "ctx.results().push_json('a', b'{}')",
    "ResultSink.push_bytes": "ctx.results().push_bytes('a', b'\\0' * 600000)",
    "ResultSink.push_file": "ctx.results().push_file('a', ctx.task().sample_path)",
    "ResultSink.push_all": "ctx.results().push_all([malbox.PluginResult.bytes('a', b''), malbox.PluginResult.bytes('b', b'')])",
    "Context.progress": "[ctx.progress(n / 10, f'part {n}') for n in range(11)]",
    "Context.emit_event": "ctx.emit_event(malbox.Event.plugin_result_available('subject', 'a'))",
    "Context.warn": "ctx.warn('suspicious')",
    "Context.mark_collected": "ctx.mark_collected('/tmp/x')",
    "PluginResult.file": "ctx.results().push(malbox.PluginResult.file('a', str(ctx.task().sample_path)))",
    "trace": "malbox.trace('t')",
    "debug": "malbox.debug('d')",
    "info": "malbox.info('i')",
    "warn": "malbox.warn('w')",
    "error": "malbox.error('e')",
    "SectionBuilder": (
        "s = malbox.SectionBuilder(); s.block(malbox.Block.divider()).block(malbox.Block.heading(1, 'x'));"
        " ctx.results().push(malbox.ReportBuilder('subject', '1').section('a', 'A', s.get_blocks()).build())"
    ),
    "ReportBuilder": (
        "r = malbox.ReportBuilder('subject', '1'); r.display_name('S'); r.summary('s');"
        " r.verdict(malbox.Classification.Suspicious, score=7, confidence=malbox.Confidence.Low); r.labels(['l']);"
        " r.indicator(malbox.Indicator('ip', '1.2.3.4', context='c')); r.ttp(malbox.Ttp('T1', 'n'));"
        " r.artifact(malbox.ArtifactRef('a', 'b')); r.raw({'x': [1]}); ctx.results().push(r.build())"
    ),
}
BLOCKS = {
    "markdown": "malbox.Block.markdown('# x')",
    "callout": "malbox.Block.callout('info', 'x')",
    "heading": "malbox.Block.heading(6, 'x')",
    "divider": "malbox.Block.divider()",
    "kv": "malbox.Block.kv([malbox.KvPair('a', 'b', mono=True)])",
    "table": "malbox.Block.table([malbox.Column('k', 'K', 'number')], [{'k': 1}, {'k': None}], sortable=True)",
    "code": "malbox.Block.code('c', 'int x;')",
    "json": "malbox.Block.json({'a': [None, 1.5]}, collapsed=True)",
    "hex": "malbox.Block.hex('AAEC', 4096)",
    "image": "malbox.Block.image('shot', caption='c')",
    "download": "malbox.Block.download('dump', 'label')",
    "iocs": "malbox.Block.iocs([malbox.Indicator('url', 'u', first_seen='2026-01-01T00:00:00Z')])",
    "ttps": "malbox.Block.ttps([malbox.Ttp('T1055.001', 'n', evidence='e')])",
    "tree": "malbox.Block.tree([malbox.TreeNode('a', children=[malbox.TreeNode('b')], meta={'pid': 1})])",
    "timeline": "malbox.Block.timeline([malbox.TimelineEvent('+1s', 'l', severity='high', meta={'a': 1})])",
    "graph": "malbox.Block.graph([malbox.GraphNode('1', 'a', meta=[])], [malbox.GraphEdge('1', '1', label='l')])",
}
ON_TASK |= {
    f"Block.{name}": f"ctx.results().push(malbox.ReportBuilder('subject', '1').section('a', 'A', [{block}]).build())"
    for name, block in BLOCKS.items()
}

WHOLE = """
#!/usr/bin/env python3
import asyncio
import malbox_plugin_sdk as malbox

class Subject(malbox.Plugin):
    def __init__(self):
        super().__init__()
        self.told = []
    {a}def on_start(self, config):
        {w}assert config == {{"option": "default"}}
        self.told.append("start")
    {a}def on_task(self, ctx):
        {w}try:
            exec(ctx.task().sample_bytes() and SOURCE, {{"ctx": ctx, "malbox": malbox}})
        finally:
            self.told.append("task")
    {a}def on_event(self, event):
        {w}self.told.append(event.kind)
    {a}def health_check(self):
        {w}return malbox.HealthStatus.Healthy()
    {a}def on_stop(self):
        {w}malbox.info(" ".join(self.told))

SOURCE = {source!r}
malbox.run(Subject(), name="subject", version="1")
"""


@pytest.mark.slow
@pytest.mark.parametrize("how", ["sync", "async"])
async def test_a_plugin_of_our_own_for_each_name_of_the_stub(how: str, tmp_path: Path) -> None:
    """One process after the other, each a plugin of its own that does one thing."""
    a, w = ("async ", "await asyncio.sleep(0); ") if how == "async" else ("", "")
    for number, source in enumerate(ON_TASK.values()):
        code = WHOLE.format(a=a, w=w.replace("; ", "\n        "), source=source.replace("'subject'", f"'p{number:02}'"))
        write_plugin(tmp_path / "plugins", code, f"p{number:02}", extra='log_filter = "trace"\n[config]\noption = "default"\n')
    async with rig(tmp_path) as subject:
        runs = (await subject.findings()).runs
        for run, name in zip(sorted(runs, key=lambda run: run.name), ON_TASK, strict=True):
            assert (name, run.status, run.reason) == (name, PluginStatus.COMPLETED, "")
            if name in FUNCTIONS:
                assert await subject.content(run, "log") == f"{name.upper():5} {name[0]}\n".encode()
            if name.startswith("Block."):
                (block,) = json.loads(await subject.content(run, "report"))["sections"][0]["blocks"]
                assert block["type"] == name.removeprefix("Block.")
