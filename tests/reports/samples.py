"""A task whose report has every kind of block, made with the SDK; each text in it is `evil` or, by default, harmless."""

from __future__ import annotations

import base64
from typing import Any

from malbox_tui.model.queries import TaskRecord
from malbox_tui.model.report import Classification, Confidence, Identification, PluginRun, PluginStatus, ResultRef, Verdict
from malbox_tui.model.sample import Sample, SampleName
from malbox_tui.model.task import EndedBy, Task, TaskState
from malbox_tui.sdk import malbox_plugin_sdk as malbox

SHA256 = "0123456789abcdef" * 4
REPORT = ResultRef("report", "json", 100, SHA256, "7/token/subject/report")

EVIL = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</pre></td></table><h1>x",
    "&lt;b&gt;",
    "\x1b[31mred\x1b]0;title\x07",
    "nul\0byte",
    "right\u202eexe.txt\u2066",
    "zero\u200bwidth\ufeff",
    "[link=http://evil.example]x[/link] [/] [bold]",
    "[x](javascript:alert(1)) ![p](http://evil.example/p.png)",
    "<http://evil.example/> http://evil.example/ www.evil.example",
    "# heading\n\n---\n\n> quote\n\n* item\n\n    code",
    "```\n</code>\n````\n",
    "| a | b |\n| --- | --- |\n| 1 | 2 |",
    "line\r\nother\x85next\u2028last",
    "`code` **bold** _it_ ~~no~~ <b>b</b>",
    "\\\\unc\\path \\x1b",
    "{% raw %} ${x} $(id)",
)


def report_of(text: str) -> bytes:
    """A report with this text wherever a plugin can put one."""
    block = malbox.Block
    node = malbox.TreeNode(text, [malbox.TreeNode(text, meta={text: text})], meta=text)
    blocks = [
        block.markdown(text),
        *(block.callout(level, text) for level in ("info", "success", "warn", "error")),
        *(block.heading(level, text) for level in range(1, 7)),
        block.divider(),
        block.kv([malbox.KvPair(text, text, mono=True)]),
        block.table([malbox.Column(text, text, text), malbox.Column("n", "number", "number")], [{text: text, "n": 1.5}, {}]),
        block.code(text, text),
        block.json({text: [text, 1, None, True]}),
        block.hex(base64.b64encode(text.encode()).decode(), offset=4096),
        block.image(text, text),
        block.download(text, text),
        block.iocs([malbox.Indicator(text, text, text, text)]),
        block.ttps([malbox.Ttp(text, text, text)]),
        block.tree([node, node]),
        block.timeline([malbox.TimelineEvent(text, text, text, meta=text)]),
        block.graph([malbox.GraphNode("a", text, meta=text), malbox.GraphNode("b", text)], [malbox.GraphEdge("a", "b", text)]),
    ]
    builder = malbox.ReportBuilder("subject", "1.0.0").display_name(text).summary(text).labels([text])
    builder.verdict(malbox.Classification.Malicious, 90, malbox.Confidence.High)
    builder.indicator(malbox.Indicator(text, text, text, text)).ttp(malbox.Ttp(text, text, text))
    builder.artifact(malbox.ArtifactRef(text, text, text)).section(text, text, blocks).raw({text: text})
    return builder.build().data or b""


def record_of(text: str, **changes: Any) -> TaskRecord:
    """A task with this text wherever a sample or a plugin can put one."""
    run = PluginRun(
        "subject",
        "1.0.0",
        PluginStatus.COMPLETED,
        0.1,
        (REPORT, ResultRef("other", "bytes", 9, SHA256, "7/token/subject/other")),
        Verdict(Classification.MALICIOUS, 90, Confidence.HIGH, (text,)),
        reason=text,
        subject=text,
    )
    task = Task(
        id=7,
        sha256=SHA256,
        state=TaskState.COMPLETED,
        created_at=0.0,
        stage_since=0.0,
        finished_at=10.0,
        ended_by=EndedBy.FINISHED,
        reason=text,
        machine=text,
        verdict=Verdict(Classification.MALICIOUS, 90, Confidence.HIGH, (text,)),
        plugins=(run,),
    )
    sample = Sample(
        sha256=SHA256,
        size_bytes=5,
        first_seen_at=0.0,
        names=(SampleName(text.encode()), SampleName(b"\xff" + text.encode())),
        identification=Identification(text, text, text, text, text),
    )
    return TaskRecord(task, sample)
