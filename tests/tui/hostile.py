"""What a stranger may have put into names, reports and messages, and an engine that holds it everywhere.

Each payload carries a word of its own, so that a test can tell that it was there to be shown.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

import msgspec

from malbox_tui.model import events as news
from malbox_tui.model.commands import Command, CommandOutcome
from malbox_tui.model.machine import BUSY_STATES, MachineFacts, MachineMoment, MachineSpec, MachineState
from malbox_tui.model.report import Classification, Identification, PluginStatus, Verdict
from malbox_tui.model.sample import SampleName, escape
from malbox_tui.model.task import EndedBy, RequirementClass, TaskState
from malbox_tui.model.worker import StopReason, WorkerKind
from tests.tui.scripted import NOW, ScriptedClient, group, machine, plugin_run, record, reference, sample, task, worker

TERMINAL: tuple[str, ...] = (
    "\x1b]52;c;cHduZWQ=\x07osc52",
    "\x1b]0;retitled\x07osc0",
    "\x1b]8;;http://evil.example\x1b\\osc8\x1b]8;;\x1b\\",
    "\x1b[6ncsi6n",
    "\x1b[8;2;2tcsi8t",
    "\x1b[2Jcsi2j\x1b[1;1H",
    "\x1b[31mred\x1b[0m",
    "\x1b[?1049lalt\x1bcreset",
    "\x1bP1$tdcs\x1b\\",
    "\x9b31mc1csi\x9d0;c1osc\x9c",
    "\x07bel\x08\x08bs\x00nul\x7fdel",
    "cr\rlf\nvt\x0bff\x0ctab\t",
)
"""What acts on a terminal."""

EYES: tuple[str, ...] = (
    "\u202egpj.rtl",
    "\u2066iso\u2069",
    "zero\u200bwidth\u200d\ufeff",
    "sep\u2028\u2029\u0085",
    "sur\udcff\udc80",
    "\ufe0f\u3164\u2800blank",
    "文件🦠e\u0301wide",
)
"""What deceives whoever looks, or upsets the columns."""

MARKUP: tuple[str, ...] = (
    "[/]mk1",
    "[/foo]mk2",
    "[@click=app.quit]mk3[/]",
    "[link=http://evil.example]mk4[/link]",
    "[red",
    "]mk5",
    "[bold]mk6[/bold]",
    "\\[mk7\\",
    "$mk8 [$accent]x[/]",
    "[@click=app.quit]x[",
)
"""What looks like Textual's or Rich's markup."""

ALL = TERMINAL + EYES + MARKUP
PAGES = (" ".join(TERMINAL), " ".join(EYES), " ".join(MARKUP), "[/]", "[link=http://evil.example]x[/link]")
"""All of them in five texts, for what takes its time."""

NAMES = (*(text.encode("utf-8", "surrogateescape") for text in ALL), b"-rf", b"n" * 255, b"\xff\xfe\x00\x01", b" ", b"\\x1b")


def report(text: str) -> bytes:
    """A report that says one thing in every field of every kind of block, and in the wrong type where that is possible."""
    blocks: list[object] = [
        {"type": "markdown", "text": text},
        {"type": "callout", "level": text, "text": text},
        {"type": "heading", "level": 1, "text": text},
        {"type": "divider"},
        {"type": "kv", "pairs": [{"key": text, "value": text}, {"key": [text], "value": {text: text}}]},
        {"type": "table", "columns": [{"key": text, "label": text}], "rows": [{text: text}, {text: [text]}]},
        {"type": "code", "language": text, "text": text},
        {"type": "json", "data": {text: [text, {text: text}]}},
        {"type": "hex", "bytes_b64": "GzYbWw==", "offset": 16},
        {"type": "hex", "bytes_b64": text},
        {"type": "image", "artifact": text, "caption": text},
        {"type": "download", "artifact": text, "label": text},
        {"type": "iocs", "items": [{"kind": text, "value": text, "context": text}]},
        {"type": "ttps", "items": [{"id": text, "name": text, "evidence": text}]},
        {"type": "tree", "nodes": [{"label": text, "children": [{"label": text}, text]}]},
        {"type": "timeline", "events": [{"ts": text, "label": text, "severity": text}]},
        {"type": "graph", "nodes": [{"id": "a", "label": text}], "edges": [{"from": "a", "to": text, "label": text}]},
        {"type": text, text: text},
        text,
        [text],
    ]
    return json.dumps(
        {
            "plugin": {"id": text, "version": text, "display_name": text},
            "summary": text,
            "verdict": {"classification": "malicious", "labels": [text]},
            "indicators": [{"kind": text, "value": text, "context": text}, text],
            "ttps": [{"id": text, "name": text, "evidence": text}],
            "artifacts": [{"result_name": text, "kind": text, "description": text}],
            "sections": [{"id": text, "title": text, "blocks": blocks}, {"id": 1, "title": [text], "blocks": text}],
            "raw": text,
        }
    ).encode()


def engine(texts: Sequence[str] = ALL) -> ScriptedClient:
    """An engine whose every word is hostile: a task for each text, ended, waiting and at work, and news of all kinds."""
    records, results, told, workers, machines, reasons = [], {}, [], [], [], {}
    for number, text in enumerate(texts, 1):
        name = text.encode("utf-8", "surrogateescape")
        state = tuple(TaskState)[number % len(TaskState)]
        run = plugin_run(
            number,
            text,
            PluginStatus.FAILED,
            version=text,
            reason=text,
            subject=text if number % 2 else "",
            results=[
                reference(number, "evil"),
                reference(number, "evil", "log", "bytes"),
                msgspec.structs.replace(reference(number, "evil", text, text), path=text),
            ],
        )
        results[f"{number}/evil/report"] = report(text)
        results[f"{number}/evil/log"] = name + b"\n" + b"\xff\xfe " + name
        verdict = Verdict(Classification.MALICIOUS, 100, None, (text, text))
        held = sample(
            number,
            identification=Identification(text, text, text, text, text),
            names=(SampleName(name, b"/in/" + name), SampleName(b"second " + name, name)),
        )
        requires = RequirementClass(text, text, text, (text,), text, (text, text))
        held_task = task(
            number, state, reason=text, verdict=verdict, plugins=(run,), type=text, requires=requires, worker=text, machine=text
        )
        reasons[number] = f"waiting for a machine: {text}"
        machine_state = tuple(MachineState)[number % len(MachineState)]
        holds = number if machine_state in BUSY_STATES else None
        machines.append(
            machine(
                text,
                machine_state,
                provider=text,
                platform=text,
                arch=text,
                tags=(text, text),
                reason=text,
                failures=1,
                task_id=holds,
                history=tuple(MachineMoment(at=NOW - ago, state=machine_state, reason=text) for ago in (9.0, 3.0)),
                spec=MachineSpec(
                    name=text,
                    provider=text,
                    platform=text,
                    uri=text,
                    domain=text,
                    snapshot=text,
                    address=text,
                    watch=(text, text),
                ),
                facts=MachineFacts(warnings=(text,)),
                screenshot=msgspec.structs.replace(reference(number, "evil"), path=text),
                screenshot_at=NOW,
            )
        )
        records.append(msgspec.structs.replace(record(number), task=held_task, sample=held))
        if state.is_owned:
            workers.append(worker(number % 200, number, id=text, group=text, slots=1 + number % 2))
            workers.append(worker(number % 200, id=text, group=text, note=f"could take {text}"))
        told += _news(number, text, escape(name))
    return ScriptedClient(
        records,
        workers,
        told=told,
        results=results,
        answer=lambda command: _refusal(command, texts),
        reasons=reasons,
        groups=tuple(group(text, takes=text) for text in dict.fromkeys(texts)),
        machines=machines,
        troubles=texts[:3],
        paused=texts[0],
        isolation=texts[-1],
    )


def _refusal(command: Command, texts: Sequence[str]) -> CommandOutcome:
    return CommandOutcome(done=False, message=f"{type(command.action).__name__}: " + " ".join(texts[:12]))


def _news(number: int, text: str, name: str) -> list[news.EventBody]:
    verdict = Verdict(Classification.MALICIOUS, 100, None, (text,))
    return [
        news.TaskCreated(task_id=number, sha256="0" * 64, type=text, priority=1, name=name),
        news.TaskStarting(task_id=number, worker=text, attempt=1, machine=text),
        news.TaskStageChanged(task_id=number, state=TaskState.RUNNING),
        news.PluginsPlanned(task_id=number, steps=(news.PlannedStep(text, text), news.PlannedStep(f"{text}2", text, False))),
        news.PluginStarted(task_id=number, plugin=text),
        news.PluginProgress(task_id=number, plugin=text, fraction=0.5, message=text),
        news.ScreenshotTaken(
            task_id=number, machine=text, result=msgspec.structs.replace(reference(number, "evil"), path=text, name=text)
        ),
        news.WorkerStarted(worker=text, group=text, kind=WorkerKind.DEMAND),
        news.WorkerStopped(worker=text, group=text, reason=StopReason.ERROR, detail=text),
        news.GroupResized(group=text, min_workers=1, max_workers=2),
        news.PoolPaused(reason=text),
        news.MachineChanged(machine=text, state=MachineState.QUARANTINED, reason=text),
        news.MachineChanged(machine=text, state=MachineState.READY),
        news.StoreFailing(problem=text),
        news.TaskGivenBack(task_id=number, reason=text, crashes=1),
        news.TaskFailed(task_id=10_000 + number, ended_by=EndedBy.PLUGIN_ERROR, reason=text),
        news.TaskCompleted(task_id=20_000 + number, ended_by=EndedBy.FINISHED, reason=text, verdict=verdict),
        news.EngineStopping(mode=text),
    ]
