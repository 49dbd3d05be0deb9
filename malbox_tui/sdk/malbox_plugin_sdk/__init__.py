"""The SDK for host plugins in Python: the names, signatures and behaviour of Malbox's `malbox_plugin_sdk`."""

from .context import Context, ResultSink, TaskInfo
from .interrupt import TaskCanceled
from .items import Column, GraphEdge, GraphNode, KvPair, TimelineEvent, TreeNode
from .log import debug, error, info, trace, warn
from .process import Plugin, run
from .report import Block, ReportBuilder, SectionBuilder
from .values import (
    ArtifactRef,
    Classification,
    Confidence,
    Event,
    HealthStatus,
    Indicator,
    PluginResult,
    Ttp,
)

__all__ = [
    "ArtifactRef",
    "Block",
    "Classification",
    "Column",
    "Confidence",
    "Context",
    "Event",
    "GraphEdge",
    "GraphNode",
    "HealthStatus",
    "Indicator",
    "KvPair",
    "Plugin",
    "PluginResult",
    "ReportBuilder",
    "ResultSink",
    "SectionBuilder",
    "TaskCanceled",
    "TaskInfo",
    "TimelineEvent",
    "TreeNode",
    "Ttp",
    "debug",
    "error",
    "info",
    "run",
    "trace",
    "warn",
]
