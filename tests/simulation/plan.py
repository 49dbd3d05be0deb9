"""What happens in one simulated run: the configuration, what the operator does and when, how each epoch ends, and how often what goes
wrong. It is drawn from the seed before the run begins (`drawing`).

Whatever can only be chosen when its time has come (which task, which machine) is drawn as a number from 0 to 1, a place among what
there is then.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from malbox_tui.config.machines import MachineSettings
from malbox_tui.config.settings import Settings
from malbox_tui.model.commands import ShutdownMode
from malbox_tui.model.machine import MachineState
from malbox_tui.model.task import RequirementClass, TaskState
from malbox_tui.simulated.faults import Fault
from malbox_tui.simulated.world import Durations, Span

# --- what the operator does ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Submit:
    """Offers `count` contents; `contents` is how many different ones there are in the whole run, so some come twice."""

    count: int
    contents: int
    priority: int
    requires: RequirementClass
    again: bool
    hold: bool
    timeout_s: float | None
    enforce_timeout: bool | None
    memory_dump: bool
    profile: str = ""


@dataclass(frozen=True, slots=True)
class Cancel:
    """Cancels tasks in `state`, or any (None); `expecting` says the state with it. `twice` asks for each a second time at once."""

    where: float
    state: TaskState | None
    count: int
    expecting: bool
    twice: bool


@dataclass(frozen=True, slots=True)
class Prioritize:
    where: float
    priority: int


@dataclass(frozen=True, slots=True)
class Reprofile:
    """Gives a pending task a profile, or one that there is not; empty: the one for its kind."""

    where: float
    profile: str


@dataclass(frozen=True, slots=True)
class Retry:
    where: float


@dataclass(frozen=True, slots=True)
class Resize:
    """Sensible limits, or some that have to be refused."""

    group: str
    min_workers: int | None
    max_workers: int | None


@dataclass(frozen=True, slots=True)
class Pause: ...


@dataclass(frozen=True, slots=True)
class Resume: ...


@dataclass(frozen=True, slots=True)
class Disable:
    """Takes a machine out that is at `state`, or any (None)."""

    where: float
    state: MachineState | None


@dataclass(frozen=True, slots=True)
class Enable:
    """Brings a machine back that is at `state`, or any (None)."""

    where: float
    state: MachineState | None


@dataclass(frozen=True, slots=True)
class Save:
    """Keeps the limits for the next start."""


@dataclass(frozen=True, slots=True)
class Look:
    """Reads the overview and the queue, as a console does."""


@dataclass(frozen=True, slots=True)
class JumpClock:
    """Moves the wall clock, as a correction or a resume from sleep does."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Inject:
    """Lets a fault strike the next call of its kind."""

    fault: Fault


Action = (
    Submit
    | Cancel
    | Prioritize
    | Reprofile
    | Retry
    | Resize
    | Pause
    | Resume
    | Disable
    | Enable
    | Save
    | Look
    | JumpClock
    | Inject
)
ACTIONS: tuple[type, ...] = (
    Submit,
    Cancel,
    Prioritize,
    Reprofile,
    Retry,
    Resize,
    Pause,
    Resume,
    Disable,
    Enable,
    Save,
    Look,
    JumpClock,
    Inject,
)


# --- how an epoch ends --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Crash:
    """The engine's process is killed after so many steps of the loop."""

    after_steps: int


@dataclass(frozen=True, slots=True)
class Stop:
    """A shutdown at a moment; `harder` are modes asked for after it, with the seconds between."""

    at_s: float
    mode: ShutdownMode
    within_s: float | None = None
    harder: tuple[tuple[float, ShutdownMode], ...] = ()


ENDINGS = ("crash", *(mode.value for mode in ShutdownMode), "hardened")


@dataclass(frozen=True, slots=True)
class Epoch:
    """One life of the engine: what is done `at` which second of it, and how it ends."""

    settings: Settings
    actions: tuple[tuple[float, Action], ...]
    ending: Crash | Stop


@dataclass(frozen=True, slots=True)
class Plan:
    """A whole run. After the last epoch everything is mended, and every task has to end."""

    seed: int
    epochs: tuple[Epoch, ...]
    rates: dict[Fault, float]
    durations: Durations
    hurry: float
    ranked: bool
    plugin_s: Span | None
    """How long each plugin takes; None: as long as it takes in life."""
    contents: int
    machines: tuple[MachineSettings, ...]
    turn_seed: int = 0
    world_seed: int = 0
    missing_machines: frozenset[str] = field(default_factory=frozenset)
    """Machines of the configuration that the hypervisor doesn't have."""
