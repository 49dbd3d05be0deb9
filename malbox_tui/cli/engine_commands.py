"""The commands on an engine, in the order of the README."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from cyclopts import App

from malbox_tui.cli import intakes, looks, machines, past, pool_orders, sample, samples, submit, task_orders, watches

COMMANDS: Mapping[Callable[..., Any], str] = MappingProxyType(
    {
        submit.submit: "submit [OPTIONS] PATH...",
        task_orders.cancel: "cancel [OPTIONS] SELECTOR...",
        task_orders.retry: "retry [OPTIONS] SELECTOR...",
        task_orders.priority: "priority [OPTIONS] N SELECTOR...",
        task_orders.profile: "profile [OPTIONS] NAME SELECTOR...",
        task_orders.change: "change [OPTIONS] SELECTOR...",
        task_orders.identify: "identify [OPTIONS] SELECTOR...",
        sample.sample: "sample [OPTIONS] SHA",
        looks.workers: "workers [OPTIONS]",
        machines.machines: "machines [OPTIONS] [COMMAND]",
        watches.watches: "watches [OPTIONS] [COMMAND]",
        pool_orders.resize: "resize [OPTIONS] [GROUP]",
        pool_orders.pause: "pause [OPTIONS]",
        pool_orders.resume: "resume [OPTIONS]",
        pool_orders.drain: "drain [OPTIONS]",
        looks.stats: "stats [OPTIONS]",
        intakes.intake: "intake [OPTIONS] [N]",
        past.events: "events [OPTIONS]",
        past.actions: "actions [OPTIONS]",
    }
)
"""A command → how it is used."""


def add_to(app: App) -> None:
    """Add them all."""
    for command, usage in COMMANDS.items():
        app.command(command, usage=f"Usage: malbox-tui {usage}")
    machines.add_to(app["machines"])
    watches.add_to(app["watches"])
    samples.add_to(app["sample"])
