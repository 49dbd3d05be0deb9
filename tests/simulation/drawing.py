"""Draws the plan of a run from its seed.

Times lie on a coarse grid, so that things happen at the same moment far more often than in life.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

from msgspec import structs

from malbox_tui.config.settings import Settings
from malbox_tui.model.commands import ShutdownMode
from malbox_tui.model.machine import MachineState
from malbox_tui.model.task import OWNED_STATES, RequirementClass, TaskState
from malbox_tui.simulated.faults import Fault
from malbox_tui.simulated.world import Durations, Span
from tests.simulation.drawn_faults import INJECTED, rates
from tests.simulation.drawn_settings import limits_of, machines_of, profiles_of, settings_of, some_of
from tests.simulation.plan import (
    Action,
    Cancel,
    Crash,
    Disable,
    Enable,
    Epoch,
    Inject,
    JumpClock,
    Look,
    Pause,
    Plan,
    Prioritize,
    Reprofile,
    Resize,
    Resume,
    Retry,
    Save,
    Stop,
    Submit,
)

GRID_S = 0.5

OUT_OF_ORDER = (MachineState.QUARANTINED, MachineState.MISSING, MachineState.MISSING)


def plan_of(seed: int) -> Plan:
    """The plan of a seed; the same in every process."""
    chance = Random(seed)
    machines = machines_of(chance)
    settings = settings_of(chance, machines)
    contents = chance.choice((4, 12, 40))
    epochs = []
    for _ in range(chance.choice((1, 1, 2, 2, 3, 4))):
        epochs.append(_epoch(chance, settings, contents))
        if chance.random() < 0.25:
            settings = settings_of(chance, some_of(chance, machines))
    durations, plugin_s = _durations(chance)
    return Plan(
        seed=seed,
        epochs=tuple(epochs),
        rates=rates(chance),
        durations=durations,
        plugin_s=plugin_s,
        hurry=chance.choice((0.0, 0.0, 0.005, 0.03)),
        ranked=chance.random() < 0.4,
        contents=contents,
        machines=machines,
        turn_seed=chance.getrandbits(32),
        world_seed=chance.getrandbits(32),
        missing_machines=frozenset(machine.name for machine in machines if chance.random() < 0.03),
    )


def _with_profiles(epoch: Epoch) -> Epoch:
    """The same, in every third epoch, with profiles that samples are given, by hand or by kind, and that are changed while tasks wait.
    They are drawn by themselves."""
    chance = Random(repr((epoch.settings.analysis, len(epoch.actions), epoch.actions[:2])))
    if chance.random() > 0.35:
        return epoch
    profiles = profiles_of(epoch.settings.machines)
    names = ("", "", *(profile.name for profile in profiles))
    timeout_s = epoch.settings.analysis.critical_timeout_s
    settings = structs.replace(epoch.settings, profiles=tuple(p for p in profiles if (p.timeout_s or 0) < timeout_s))
    actions = [(at, replace(act, profile=chance.choice(names)) if isinstance(act, Submit) else act) for at, act in epoch.actions]
    last_s = actions[-1][0]
    actions += [(_moment(chance, last_s), Reprofile(chance.random(), chance.choice((*names, "gone")))) for _ in range(8)]
    actions.sort(key=lambda timed: timed[0])
    return replace(epoch, settings=settings, actions=tuple(actions))


def _epoch(chance: Random, settings: Settings, contents: int) -> Epoch:
    length_s = _moment(chance, chance.choice((60.0, 60.0, 400.0, 400.0)))
    actions: list[tuple[float, Action]] = [(_moment(chance, 3.0), _submit(chance, settings, contents)) for _ in range(2)]
    actions += [(_moment(chance, length_s), _action(chance, settings, contents)) for _ in range(chance.randint(6, 28))]
    actions += [(_moment(chance, length_s), Inject(chance.choice(INJECTED))) for _ in range(chance.randint(4, 16))]
    actions += _scene(chance, settings, contents, length_s)
    if any(group.batch_size > 1 for group in settings.groups()):
        static = replace(_submit(chance, settings, contents, RequirementClass()), again=True)
        actions += [(_moment(chance, length_s), static) for _ in range(3)]
    actions.sort(key=lambda timed: timed[0])
    return _with_profiles(Epoch(settings, tuple(actions), _ending(chance, length_s)))


def _scene(chance: Random, settings: Settings, contents: int, length_s: float) -> list[tuple[float, Action]]:
    """A few things in a row that chance alone puts together too rarely; nothing, now and then."""
    at_s, where = _moment(chance, length_s), chance.random()
    dynamic = _submit(chance, settings, contents, RequirementClass("dynamic"))
    # Four, since the first call to a machine is one to switch it off, whose failure says nothing.
    missing = tuple((0.0, Inject(Fault.MACHINE_MISSING)) for _ in range(4))
    scenes: tuple[tuple[tuple[float, Action], ...], ...] = (
        ((0.0, dynamic), (0.5, Cancel(where, TaskState.PREPARING_RESOURCES, 1, expecting=False, twice=False))),
        ((0.0, dynamic), (1.5, Cancel(where, TaskState.PREPARING_RESOURCES, 1, expecting=False, twice=False))),
        ((0.0, Inject(Fault.GUEST_REFUSES)), (0.0, dynamic)),
        ((0.0, Inject(Fault.OUTPUT_TORN)), (0.0, dynamic)),
        ((0.0, Inject(Fault.OUTPUT_TORN)), (0.0, dynamic)),
        ((0.0, dynamic), (2.5, Cancel(where, TaskState.RUNNING, 3, expecting=False, twice=True))),
        (
            (0.0, dynamic),
            *((wait_s, Cancel(where, TaskState.RUNNING, 2, expecting=False, twice=False)) for wait_s in (0.5, 1.0, 1.5)),
        ),
        (
            (0.0, Inject(Fault.CHECK_FAILS)),
            (0.0, Inject(Fault.CHECK_FAILS)),
            *((wait_s, Disable(where, MachineState.QUARANTINED)) for wait_s in (2.0, 6.0, 12.0)),
        ),
        (*missing, *((wait_s, Disable(where, MachineState.MISSING)) for wait_s in (1.0, 3.0, 6.0, 12.0))),
        (),
    )
    group = chance.choice(settings.groups()).name
    # Each demotion begins an idle time anew, which ends when the next promotion comes.
    seesaw = tuple((GRID_S * turn, Resize(group, 2 * (turn % 2), 3)) for turn in range(8))
    # Tasks that come, or may be taken again, in the very turn in which a worker has idled for long enough.
    static = _submit(chance, settings, contents, RequirementClass())
    drip = tuple((GRID_S * turn, replace(static, count=1, again=True)) for turn in range(8))
    stutter = tuple(
        (GRID_S * turn, action)
        for turn in range(0, 12, 3)
        for action in (replace(static, count=2, again=True), Pause(), replace(static, count=3, again=True))
    )
    stutter += tuple((GRID_S * (turn + 1), Resume()) for turn in range(11))
    mostly_static = (seesaw, drip, stutter)
    scene = chance.choice((*scenes, *scenes, *scenes, *mostly_static) if settings.machines else (*mostly_static, ()))
    return [(at_s + wait_s, action) for wait_s, action in scene]


def _moment(chance: Random, until_s: float) -> float:
    return GRID_S * chance.randint(0, int(until_s / GRID_S))


def _ending(chance: Random, length_s: float) -> Crash | Stop:
    if chance.random() < 0.45:
        return Crash(int(10 ** chance.uniform(1.0, 3.5)))
    mode = chance.choice(tuple(ShutdownMode))
    harder: tuple[tuple[float, ShutdownMode], ...] = ()
    if chance.random() < 0.5:
        harder = tuple((_moment(chance, 4.0), chance.choice(tuple(ShutdownMode))) for _ in range(2))
    within_s = chance.choice((None, 0.5, 5.0)) if mode is ShutdownMode.DRAIN else None
    return Stop(length_s, mode, within_s, harder)


_WEIGHTS: tuple[tuple[type, int], ...] = (
    (Submit, 12),
    (Cancel, 20),
    (Prioritize, 6),
    (Retry, 4),
    (Resize, 10),
    (Pause, 3),
    (Resume, 5),
    (Disable, 20),
    (Enable, 8),
    (Save, 2),
    (Look, 4),
    (JumpClock, 3),
    (Inject, 12),
)


def _action(chance: Random, settings: Settings, contents: int) -> Action:
    (kind,) = chance.choices([kind for kind, _ in _WEIGHTS], [weight for _, weight in _WEIGHTS])
    if kind is Submit:
        return _submit(chance, settings, contents)
    if kind is Cancel:
        running = (TaskState.RUNNING, TaskState.PREPARING_RESOURCES)
        states = (None, *TaskState, *sorted(OWNED_STATES), TaskState.PENDING, *running, *running)
        return Cancel(
            chance.random(), chance.choice(states), chance.choice((1, 1, 1, 3)), chance.random() < 0.5, chance.random() < 0.2
        )
    if kind is Prioritize:
        return Prioritize(chance.random(), chance.choice((-1, 0, 5, 10, 2_000_000)))
    if kind is Resize:
        return _resize(chance, settings)
    if kind is JumpClock:
        return JumpClock(chance.choice((25 * 3600.0, -25 * 3600.0, -1.0, 60.0)))
    if kind is Inject:
        return Inject(chance.choice(INJECTED))
    if kind is Disable:
        ready = (MachineState.READY, MachineState.READY)
        return Disable(
            chance.random(), chance.choice((None, None, *ready, *MachineState, *OUT_OF_ORDER, *OUT_OF_ORDER, *OUT_OF_ORDER))
        )
    if kind is Enable:
        return Enable(chance.random(), chance.choice((None, MachineState.DISABLED, MachineState.DISABLED, MachineState.MISSING)))
    if kind is Retry:
        return Retry(chance.random())
    return kind()  # type: ignore[no-any-return]


def _submit(chance: Random, settings: Settings, contents: int, requires: RequirementClass | None = None) -> Submit:
    requires = requires or _requires(chance, settings)
    return Submit(
        count=chance.choice((1, 1, 2, 5, 10)),
        contents=contents,
        priority=chance.choice((1, 1, 1, 5, 9)),
        requires=requires,
        again=chance.random() < 0.7,
        hold=chance.random() < 0.5,
        timeout_s=chance.choice((None, None, None, None, 1.0)),
        enforce_timeout=chance.choice((None, None, None, True, False)),
        memory_dump=requires.needs_machine and chance.random() < 0.5,
    )


def _requires(chance: Random, settings: Settings) -> RequirementClass:
    if not settings.machines or chance.random() < 0.25:
        return RequirementClass(chance.choice(("static", "static", "static", "archive", "dynamic")))
    machine = chance.choice(settings.machines)
    if chance.random() < 0.04:
        return RequirementClass("dynamic", platform="plan9")
    return RequirementClass(
        "dynamic",
        platform=machine.platform if chance.random() < 0.8 else None,
        arch=chance.choice((None, None, machine.arch.value, "x86")),
        tags=chance.choice(((), (), (), machine.tags)),
        pin=machine.name if chance.random() < 0.15 else None,
    )


def _resize(chance: Random, settings: Settings) -> Resize:
    group = chance.choice(("default", *(group.name for group in settings.workers)))
    if chance.random() < 0.2:
        return Resize(group, *chance.choice(((5, 2), (-1, None), (None, -1), (None, 1025), (2000, 2000))))
    if chance.random() < 0.03:
        return Resize("gpu", 0, 1)
    low, high = limits_of(chance)
    return Resize(group, chance.choice((None, low)), chance.choice((None, high)))


def _durations(chance: Random) -> tuple[Durations, Span | None]:
    """Nothing takes any time, or all things take times on the grid, or as in life but faster; and how long plugins take then."""
    kind = chance.choice(("none", "grid", "grid", "life"))
    if kind == "life":
        return Durations(execute=(0.5, 4.0), boot=(0.5, 3.0), revert=(0.2, 1.0), slow=(3.0, 12.0)), None
    unit = 0.0 if kind == "none" else GRID_S

    def exactly(times: int) -> Span:
        return (unit * times, unit * times)

    durations = Durations(
        check=exactly(0),
        revert=exactly(2),
        boot=exactly(2),
        stop=exactly(1),
        put=exactly(1),
        execute=exactly(2) if unit else (0.5, 0.5),
        hang_up=exactly(0),
        inbox=exactly(0),
        disk=exactly(0),
        slow=(4.0, 4.0),
    )
    return durations, chance.choice((exactly(1), exactly(4), None, None))
