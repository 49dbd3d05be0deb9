"""The configurations of a run, drawn from its seed."""

from __future__ import annotations

from random import Random

from malbox_tui.config.machines import Arch, MachinerySettings, MachineSettings, Provider
from malbox_tui.config.profiles import ProfileSettings
from malbox_tui.config.settings import AnalysisSettings, GeneralSettings, Settings
from malbox_tui.config.workers import ExecutionMode, PluginRestrictions, WorkerSettings


def machines_of(chance: Random) -> tuple[MachineSettings, ...]:
    return tuple(
        MachineSettings(
            name=f"vm-{number}",
            provider=Provider.SIMULATED,
            platform=chance.choice(("linux", "windows", "windows")),
            arch=chance.choice((Arch.X64, Arch.X64, Arch.X86)),
            tags=tuple(tag for tag in ("office", "net") if chance.random() < 0.4),
            max_failures=chance.choice((1, 2, 3)),
        )
        for number in range(1, 1 + chance.choice((0, 1, 2, 2, 3, 3, 4)))
    )


def some_of(chance: Random, machines: tuple[MachineSettings, ...]) -> tuple[MachineSettings, ...]:
    return tuple(machine for machine in machines if chance.random() < 0.7)


def profiles_of(machines: tuple[MachineSettings, ...]) -> tuple[ProfileSettings, ...]:
    """One of everything that a profile can say: each kind of content has one, and one wants a machine where there are some."""
    platform = machines[0].platform if machines else None
    return (
        ProfileSettings(name="short", plugins=("digests",), required=("digests",), timeout_s=1.0),
        ProfileSettings(name="programs", kinds=("pe",), platform=platform),
        ProfileSettings(name="others", kinds=("elf",), options={"strings": {"min_length": "8"}}),
    )


def settings_of(chance: Random, machines: tuple[MachineSettings, ...]) -> Settings:
    low, high = limits_of(chance)
    return Settings(
        general=GeneralSettings(min_workers=low, max_workers=high, idle_timeout_ms=chance.choice((500, 1000, 3000, 60_000))),
        workers=tuple(_group(chance, name) for name in ("alpha", "beta")[: chance.choice((0, 1, 1, 2))]),
        machines=machines,
        machinery=MachinerySettings(
            max_starting=chance.choice((1, 2, 8)),
            start_timeout_s=chance.choice((5.0, 15.0)),
            probe_interval_s=chance.choice((5.0, 60.0, 200.0)),
            max_attempts=chance.choice((1, 2, 3)),
        ),
        analysis=_analysis(chance),
    )


def _analysis(chance: Random) -> AnalysisSettings:
    """Limits that are far away, or so near that one of them is reached."""
    timeout_s = chance.choice((2.0, 2.0, 8.0, 20.0))
    return AnalysisSettings(
        timeout_s=timeout_s,
        critical_timeout_s=chance.choice((1800.0, timeout_s + 0.5, timeout_s + 0.5)),
        initializing_timeout_s=chance.choice((120.0, 1.5)),
        preparing_timeout_s=chance.choice((900.0, 900.0, 1.5)),
        collecting_timeout_s=chance.choice((60.0, 20.0, 0.5)),
        stopping_timeout_s=chance.choice((60.0, 60.0, 1.0)),
        enforce_timeout=chance.random() < 0.1,
        cancel_grace_s=chance.choice((0.5, 2.0)),
        flush_grace_s=chance.choice((0.5, 10.0)),
        lease_s=chance.choice((1.5, 6.0, 30.0)),
        max_crashes=chance.choice((1, 2, 3)),
    )


def limits_of(chance: Random) -> tuple[int, int]:
    high = chance.choice((0, 1, 1, 2, 2, 3, 4))
    return chance.randint(0, high), high


def _group(chance: Random, name: str) -> WorkerSettings:
    low, high = limits_of(chance)
    batch_size = chance.choice((1, 1, 2, 2, 3, 8))
    return WorkerSettings(
        name=name,
        execution_mode=ExecutionMode.SINGLE if batch_size == 1 else ExecutionMode.BATCH,
        max_batch_size=batch_size,
        batch_timeout_ms=chance.choice((500, 1000, 4000)),
        compatible_tasks=chance.choice((None, ("static",), ("dynamic",), ("static", "dynamic"))),
        compatible_platforms=chance.choice((None, None, ("windows",), ("linux",))),
        priority=chance.choice((1, 5, 9)),
        min_workers=low,
        max_workers=high,
        idle_timeout_ms=chance.choice((500, 2000)),
        max_concurrent_tasks=chance.choice((1, 2, 3)),
        plugin_restrictions=PluginRestrictions(deny=chance.choice(((), (), ("yara-x",)))),
    )
