"""What a configuration must not say although each of its values is of the right kind.

A rule looks only at tables without faults of their own, so that no fault is told twice and none is told of a wrong guess. A machine
that is there twice is no fault of the file: see `machine_list`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec

from malbox_tui.config.faults import Fault, entry_prefix
from malbox_tui.config.machine_rules import machine_faults
from malbox_tui.config.machines import MachineSettings
from malbox_tui.config.profile_rules import profile_faults
from malbox_tui.config.profiles import ProfileSettings
from malbox_tui.config.settings import DEFAULT_GROUP, AnalysisSettings, GeneralSettings
from malbox_tui.config.watch_rules import profile_fault, watch_faults
from malbox_tui.config.watching import WatchSettings
from malbox_tui.config.workers import DEFAULT_BATCH_TIMEOUT_MS, ExecutionMode, WorkerSettings

_Table = TypeVar("_Table", bound=msgspec.Struct)


def contradictions(table: Mapping[str, Any], value_faults: Sequence[Fault]) -> Iterator[Fault]:
    """The faults of `table` beyond `value_faults`, which are those of its values."""
    sound = _SoundTables(table, tuple(fault.key for fault in value_faults))
    general = sound.convert(table.get("general", {}), "general", GeneralSettings)
    if general is not None and general.min_workers > general.max_workers:
        yield Fault("general.min_workers", _above(general.min_workers, "general.max_workers", general.max_workers))
    analysis = sound.convert(table.get("analysis", {}), "analysis", AnalysisSettings)
    if analysis is not None and analysis.critical_timeout_s <= analysis.timeout_s:
        limits = f"{analysis.critical_timeout_s:g} is not above analysis.timeout_s, which is {analysis.timeout_s:g}"
        yield Fault("analysis.critical_timeout_s", f"{limits}. It is over a whole attempt: raise it, or lower the other.")
    for key, worker in sound.entries("workers", WorkerSettings):
        for fault in _group_faults(key, worker, general):
            yield Fault(fault.key, f"group {worker.name}: {fault.problem}")
    for key, machine in sound.entries("machines", MachineSettings):
        for fault in machine_faults(key, machine):
            yield Fault(fault.key, f"machine {machine.name}: {fault.problem}")
    watches = tuple(sound.entries("watch", WatchSettings))
    yield from watch_faults(watches)
    for key, watch in watches:
        if watch.profile and not sound.names("profiles", watch.profile):
            yield profile_fault(f"{key}.profile", watch.profile)
    profiles = list(sound.entries("profiles", ProfileSettings))
    yield from profile_faults(profiles, None if analysis is None else analysis.critical_timeout_s)
    if analysis is not None and analysis.profile and not sound.names("profiles", analysis.profile):
        yield profile_fault("analysis.profile", analysis.profile)
    yield from _doubles(table.get("workers"))


@dataclass(frozen=True, slots=True)
class _SoundTables:
    table: Mapping[str, Any]
    faulty_keys: tuple[str, ...]

    def convert(self, value: Any, key: str, struct: type[_Table]) -> _Table | None:
        """The table at `key`, or None when it has a fault."""
        faulty = any(found == key or found.startswith(f"{key}.") for found in self.faulty_keys)
        return None if faulty else msgspec.convert(value, struct)

    def names(self, list_key: str, name: str) -> bool:
        """Whether an entry of the list, with faults or without, has this name."""
        listed = self.table.get(list_key)
        return isinstance(listed, list) and any(isinstance(entry, Mapping) and entry.get("name") == name for entry in listed)

    def entries(self, list_key: str, struct: type[_Table]) -> Iterator[tuple[str, _Table]]:
        """(key path, table) of the entries without a fault."""
        listed = self.table.get(list_key)
        for index, entry in enumerate(listed if isinstance(listed, list) else ()):
            key = f"{list_key}[{index}]"
            converted = self.convert(entry, key, struct)
            if converted is not None:
                yield key, converted


def _group_faults(key: str, worker: WorkerSettings, general: GeneralSettings | None) -> Iterator[Fault]:
    if worker.name == DEFAULT_GROUP:
        yield Fault(f"{key}.name", f'"{DEFAULT_GROUP}" is the group that [general] describes. Choose another name.')
    for name in ("compatible_tasks", "compatible_platforms"):
        if getattr(worker, name) == ():
            yield Fault(f"{key}.{name}", "an empty list, with which no task would fit. Leave the key out to take all.")
    yield from _batch_faults(key, worker)
    if worker.max_workers is not None:
        ceiling: tuple[str, int] | None = (f"{key}.max_workers", worker.max_workers)
    else:
        ceiling = None if general is None else ("general.max_workers", general.max_workers)
    if ceiling is not None and worker.min_workers > ceiling[1]:
        yield Fault(f"{key}.min_workers", _above(worker.min_workers, *ceiling))


def _batch_faults(key: str, worker: WorkerSettings) -> Iterator[Fault]:
    is_batch = worker.execution_mode is ExecutionMode.BATCH
    if worker.batch_processing is not None and worker.batch_processing is not is_batch:
        said = "true" if worker.batch_processing else "false"
        problem = f'{said} contradicts execution_mode, which is "{worker.execution_mode}". Leave it out, or change one of them.'
        yield Fault(f"{key}.batch_processing", problem)
    if is_batch and worker.max_batch_size == 1:
        yield Fault(f"{key}.max_batch_size", "1 is no batch. Set it to 2 or more, or execution_mode to Single.")
    if is_batch and worker.max_concurrent_tasks > 1:
        problem = "a worker in Batch mode runs one batch at a time. Leave the key out, and set max_batch_size and max_workers."
        yield Fault(f"{key}.max_concurrent_tasks", problem)
    needs_batch = {"max_batch_size": 1, "batch_timeout_ms": DEFAULT_BATCH_TIMEOUT_MS}
    for name, default in needs_batch.items():
        if not is_batch and getattr(worker, name) != default:
            yield Fault(f"{key}.{name}", 'it has no effect without execution_mode = "Batch". Set that, or leave the key out.')


def _doubles(groups: Any) -> Iterator[Fault]:
    first_with: dict[str, int] = {}
    for index, entry in enumerate(groups if isinstance(groups, list) else ()):
        name = entry.get("name") if isinstance(entry, Mapping) else None
        if not isinstance(name, str):
            continue
        first = first_with.setdefault(name, index)
        if first != index:
            problem = f"workers[{first}] already has this name. Choose another."
            yield Fault(f"workers[{index}].name", f"{entry_prefix('workers', entry)}{problem}")


def _above(low: int, high_key: str, high: int) -> str:
    return f"{low} is above {high_key}, which is {high}. Lower the one or raise the other."
