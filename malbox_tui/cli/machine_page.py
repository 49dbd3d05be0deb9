"""Machines as rows of a table, and one in full, as lines of text: pure, and safe to print."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from malbox_tui.cli.text import duration, sentence, timestamp
from malbox_tui.config.machine_tables import table_of
from malbox_tui.model.machine import MachineFacts, MachineMoment, MachineView
from malbox_tui.model.sample import visible

TITLES = ("name", "system", "tags", "state", "for", "task", "failures", "reason")
_LABEL_WIDTH = 13
_IN_THE_HEAD = frozenset({"name", "provider", "platform", "arch", "tags"})


def machine_row(machine: MachineView, clock: float) -> tuple[str, ...]:
    """A machine under `TITLES`, at the time `clock` of its engine."""
    state = f"{machine.state.value} (leaving)" if machine.leaving else machine.state.value
    return (
        visible(machine.name),
        _system(machine),
        _tags(machine) or "-",
        state,
        duration(clock - machine.since),
        "-" if machine.task_id is None else f"#{machine.task_id}",
        str(machine.failures or "-"),
        sentence(machine.reason),
    )


def machine_lines(machine: MachineView, clock: float) -> Iterator[str]:
    """All about a machine, at the time `clock` of its engine; its history with the latest first."""
    yield f"Machine {visible(machine.name)}: {machine.state.value}{' (leaving)' if machine.leaving else ''}"
    fields = [
        ("for", duration(clock - machine.since)),
        ("reason", sentence(machine.reason)),
        ("task", "" if machine.task_id is None else f"#{machine.task_id}"),
        ("failures", str(machine.failures or "")),
        ("system", _system(machine)),
        ("tags", _tags(machine)),
        ("provider", visible(machine.provider)),
        *_of_configuration(machine),
        *_of_hypervisor(machine.facts or MachineFacts()),
        ("screenshot", timestamp(machine.screenshot_at) or ""),
    ]
    for label, text in fields:
        if text:
            yield f"  {label:<{_LABEL_WIDTH}} {text}"
    for warning in machine.facts.warnings if machine.facts is not None else ():
        yield f"  ! {sentence(warning)}"
    if machine.history:
        yield ""
        yield "History"
    for moment in reversed(machine.history):
        yield f"  {_moment(moment)}"


def _system(machine: MachineView) -> str:
    return f"{visible(machine.platform)}/{visible(machine.arch)}"


def _tags(machine: MachineView) -> str:
    return ", ".join(visible(tag) for tag in machine.tags)


def _of_configuration(machine: MachineView) -> list[tuple[str, str]]:
    table = {} if machine.spec is None else table_of(machine.spec)
    return [(name, _shown(value)) for name, value in table.items() if name not in _IN_THE_HEAD]


def _of_hypervisor(facts: MachineFacts) -> list[tuple[str, str]]:
    return [
        ("memory", "" if facts.memory_mb is None else f"{facts.memory_mb} MiB"),
        ("processors", "" if facts.vcpus is None else str(facts.vcpus)),
    ]


def _shown(value: Any) -> str:
    return ", ".join(map(sentence, value)) if isinstance(value, list) else sentence(str(value))


def _moment(moment: MachineMoment) -> str:
    task = "" if moment.task_id is None else f", task #{moment.task_id}"
    reason = f": {sentence(moment.reason)}" if moment.reason else ""
    return f"{timestamp(moment.at)}  {moment.state.value}{task}{reason}"
