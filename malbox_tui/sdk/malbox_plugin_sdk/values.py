"""The values that plugins hand over: verdicts, indicators, results, events, health. Each is checked when it is made.

A wrong type raises TypeError, a wrong value ValueError.
"""

from __future__ import annotations

import builtins
import json as _json
import os
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

JsonObject = dict[str, Any]

EVENT_KINDS = (
    "TaskCreated",
    "TaskStarting",
    "TaskCompleted",
    "TaskFailed",
    "TaskCanceled",
    "TaskTimedOut",
    "PluginStarted",
    "PluginStopped",
    "PluginResultAvailable",
    "SampleStarted",
    "SampleStopped",
    "SampleResultProduced",
    "DaemonShutdown",
    "ConfigReloaded",
)
"""Malbox's, and `TaskTimedOut`."""


def checked_text(what: str, value: object) -> str:
    """`value` if it is text that UTF-8 can carry."""
    if not isinstance(value, str):
        raise TypeError(f"{what} must be a string, not {type(value).__name__}")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise ValueError(f"{what} holds lone surrogates, which UTF-8 can't carry") from None
    return value


def checked_optional_text(what: str, value: object) -> str | None:
    """`value` if it is None or text."""
    return None if value is None else checked_text(what, value)


def checked_json(what: str, value: Any) -> Any:
    """`value` as JSON would give it back; infinities and NaN are refused, as other JSON readers don't take them."""
    try:
        return _json.loads(_json.dumps(value, allow_nan=False))
    except (TypeError, ValueError, RecursionError) as exc:
        raise ValueError(f"{what} is not JSON: {exc}") from exc


def present(fields: JsonObject) -> JsonObject:
    """The fields that hold something: None is left out."""
    return {key: value for key, value in fields.items() if value is not None}


class Classification(Enum):
    """What a plugin thinks of a sample."""

    Clean = "clean"
    Suspicious = "suspicious"
    Malicious = "malicious"
    Unknown = "unknown"


class Confidence(Enum):
    """How sure a plugin is of its verdict."""

    Low = "low"
    Medium = "medium"
    High = "high"


@dataclass(frozen=True)
class Indicator:
    """An indicator of compromise. `kind` is open: sha256, ipv4, domain, url, mutex, registry, …; `first_seen` is RFC 3339."""

    kind: str
    value: str
    context: str | None = None
    first_seen: str | None = None

    def __post_init__(self) -> None:
        checked_text("kind", self.kind)
        checked_text("value", self.value)
        checked_optional_text("context", self.context)
        checked_optional_text("first_seen", self.first_seen)

    def to_json(self) -> JsonObject:
        """The shape that reports hold."""
        return present({"kind": self.kind, "value": self.value, "context": self.context, "first_seen": self.first_seen})


@dataclass(frozen=True)
class Ttp:
    """A technique of MITRE ATT&CK, such as T1055 or T1055.012."""

    id: str
    name: str
    evidence: str | None = None

    def __post_init__(self) -> None:
        checked_text("id", self.id)
        checked_text("name", self.name)
        checked_optional_text("evidence", self.evidence)

    def to_json(self) -> JsonObject:
        """The shape that reports hold."""
        return present({"id": self.id, "name": self.name, "evidence": self.evidence})


@dataclass(frozen=True)
class ArtifactRef:
    """Points at another result of the same plugin and task."""

    result_name: str
    kind: str
    description: str | None = None

    def __post_init__(self) -> None:
        checked_text("result_name", self.result_name)
        checked_text("kind", self.kind)
        checked_optional_text("description", self.description)

    def to_json(self) -> JsonObject:
        """The shape that reports hold."""
        return present({"result_name": self.result_name, "kind": self.kind, "description": self.description})


class HealthStatus:
    """Whether a plugin can work; made by `Healthy`, `Degraded` or `Unhealthy`."""

    def __init__(self, state: str, reason: str) -> None:
        self._state = state
        self._reason = checked_text("reason", reason)

    @property
    def is_ready(self) -> bool:
        """True for `Healthy` only."""
        return self._state == "healthy"

    @property
    def reason(self) -> str:
        """Why not; empty for `Healthy`."""
        return self._reason

    @property
    def state(self) -> str:
        """healthy, degraded (works, but less well) or unhealthy."""
        return self._state

    @staticmethod
    def Healthy() -> HealthStatus:  # noqa: N802 - the name is Malbox's
        """All is well."""
        return HealthStatus("healthy", "")

    @staticmethod
    def Degraded(reason: str) -> HealthStatus:  # noqa: N802 - the name is Malbox's
        """It works, but something is missing."""
        return HealthStatus("degraded", reason)

    @staticmethod
    def Unhealthy(reason: str) -> HealthStatus:  # noqa: N802 - the name is Malbox's
        """It can't work."""
        return HealthStatus("unhealthy", reason)

    def __repr__(self) -> str:
        return f"HealthStatus({self._state}{f': {self._reason}' if self._reason else ''})"


class PluginResult:
    """One result: JSON, bytes, or a file that is read when the result is pushed. `name` is a plain file name."""

    def __init__(self, name: str, format: str, data: builtins.bytes | None, path: Path | None) -> None:
        self._name = checked_text("name", name)
        self.format = format
        self.data = data
        self.path = path

    @property
    def name(self) -> str:
        """What the result is called; `report` is reserved for the report."""
        return self._name

    @staticmethod
    def json(name: str, data: Any) -> PluginResult:
        """Any value that the `json` module can write."""
        return PluginResult(name, "json", _json.dumps(data).encode(), None)

    @staticmethod
    def bytes(name: str, data: builtins.bytes) -> PluginResult:
        """Bytes as they are."""
        if not isinstance(data, builtins.bytes | bytearray | memoryview):
            raise TypeError(f"data must be bytes, not {type(data).__name__}")
        return PluginResult(name, "bytes", builtins.bytes(data), None)

    @staticmethod
    def file(name: str, path: str | Path) -> PluginResult:
        """The content of a file."""
        return PluginResult(name, "file", None, Path(os.fspath(path)))

    def __repr__(self) -> str:
        return f"PluginResult(name={self._name!r})"


@dataclass(frozen=True)
class Event:
    """Something that happened in the engine or in another plugin; made by the constructor of its kind."""

    kind: str
    id: int | None = None
    source: str | None = None
    result_name: str | None = None

    @staticmethod
    def _of(kind: str, id: Any) -> Event:
        if not isinstance(id, int) or isinstance(id, bool):
            raise TypeError(f"an id must be an integer, not {type(id).__name__}")
        return Event(kind, id)

    @staticmethod
    def task_created(task_id: int) -> Event:
        """A submission became a task."""
        return Event._of("TaskCreated", task_id)

    @staticmethod
    def task_starting(task_id: int) -> Event:
        """A worker took the task."""
        return Event._of("TaskStarting", task_id)

    @staticmethod
    def task_completed(task_id: int) -> Event:
        """The task ended as it should."""
        return Event._of("TaskCompleted", task_id)

    @staticmethod
    def task_failed(task_id: int) -> Event:
        """The task failed."""
        return Event._of("TaskFailed", task_id)

    @staticmethod
    def task_canceled(task_id: int) -> Event:
        """A person ended the task."""
        return Event._of("TaskCanceled", task_id)

    @staticmethod
    def plugin_started(plugin_id: int) -> Event:
        """A plugin began its work."""
        return Event._of("PluginStarted", plugin_id)

    @staticmethod
    def plugin_stopped(plugin_id: int) -> Event:
        """A plugin ended its work."""
        return Event._of("PluginStopped", plugin_id)

    @staticmethod
    def plugin_result_available(source: str, result_name: str) -> Event:
        """The plugin `source` has pushed a result."""
        return Event(
            "PluginResultAvailable",
            source=checked_text("source", source),
            result_name=checked_text("result_name", result_name),
        )

    @staticmethod
    def sample_started(sample_id: int) -> Event:
        """A sample began to run in a guest."""
        return Event._of("SampleStarted", sample_id)

    @staticmethod
    def sample_stopped(sample_id: int) -> Event:
        """A sample ended in a guest."""
        return Event._of("SampleStopped", sample_id)

    @staticmethod
    def sample_result_produced(sample_id: int) -> Event:
        """A sample's run gave a result."""
        return Event._of("SampleResultProduced", sample_id)

    @staticmethod
    def daemon_shutdown() -> Event:
        """The engine stops."""
        return Event("DaemonShutdown")

    @staticmethod
    def config_reloaded() -> Event:
        """The engine has read its configuration again."""
        return Event("ConfigReloaded")
