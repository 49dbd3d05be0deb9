"""What confinement this host can give, found out by trying; and the walls to use by the configuration."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

import msgspec

from malbox_tui.config.settings import Isolation
from malbox_tui.confine import bubblewrap
from malbox_tui.confine.endings import ConfinedProcessError
from malbox_tui.confine.limits import LimitsOnly
from malbox_tui.confine.process import ConfinedProcess
from malbox_tui.confine.work import Walls, Work
from malbox_tui.model.errors import ConfinementUnavailable

REMEDY = "make system-deps, as root"

_PROBE_FOLDER = Path(__file__).resolve().parent / "probes"


@dataclass(frozen=True, slots=True)
class Probe:
    """Whether bubblewrap works here. If not, `reason` says why not and `remedy` what may help."""

    works: bool
    reason: str = ""
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Confinement:
    """The walls to use, and how strong they are, in words."""

    walls: Walls
    isolation: str
    probe: Probe


class _Seen(msgspec.Struct, tag_field="kind", tag="seen"):
    host_files: list[str]


_SEEN = msgspec.json.Decoder(_Seen)


async def probe_bubblewrap() -> Probe:
    """Start a process behind bubblewrap and let it look around. Raises `ConfinementUnavailable` when the host has no room to try."""
    try:
        walls = bubblewrap.find()
    except LookupError as exc:
        return Probe(False, str(exc.args[0]), REMEDY)
    try:
        return await _try_in_a_folder(walls)
    except OSError as exc:
        raise ConfinementUnavailable(
            f"Whether plugins can be isolated could not be tried: {exc}. Make room there, or set TMPDIR to a folder that has some."
        ) from exc


async def _try_in_a_folder(walls: Walls) -> Probe:
    with tempfile.TemporaryDirectory(prefix="malbox-probe-") as folder:
        inbox = Path(folder) / "inbox"
        inbox.mkdir()
        canary = Path(folder) / "canary"
        canary.touch()
        work = Work(
            name="probe",
            code=_PROBE_FOLDER,
            entry="look.py",
            inbox=inbox,
            scratch=Path(folder) / "scratch",
            variables={"MALBOX_CANARY": str(canary)},
        )
        try:
            return await _look(work, walls)
        except ConfinedProcessError as exc:
            return Probe(False, f"bubblewrap does not work here: {exc}", _remedy_for(str(exc)))


async def choose(isolation: Isolation) -> Confinement:
    """The walls for a setting. Raises `ConfinementUnavailable` when bubblewrap is required and doesn't work, or can't be tried."""
    if isolation is Isolation.LIMITS:
        return Confinement(LimitsOnly(), "limits only, as configured", Probe(False, 'not tried: isolation = "limits"'))
    probe = await probe_bubblewrap()
    if probe.works:
        return Confinement(bubblewrap.find(), "bubblewrap", probe)
    if isolation is Isolation.REQUIRED:
        raise ConfinementUnavailable(
            f'Plugins must be isolated (isolation = "required"), but {probe.reason}. Try: {probe.remedy}; '
            'or set isolation = "auto" to run with resource limits alone.'
        )
    return Confinement(LimitsOnly(), f"limits only: {probe.reason}", probe)


async def _look(work: Work, walls: Walls) -> Probe:
    process = await ConfinedProcess.start(work, walls)
    try:
        seen, _payload = await process.receive(_SEEN)
    finally:
        await process.kill()
    if seen.host_files:
        return Probe(False, f"bubblewrap hides nothing here: {', '.join(seen.host_files)[:200]} could be read", REMEDY)
    return Probe(True)


def _remedy_for(problem: str) -> str:
    lowered = problem.lower()
    if "namespace" in lowered or "uid map" in lowered:
        return "sysctl kernel.unprivileged_userns_clone=1 kernel.apparmor_restrict_unprivileged_userns=0 (as root)"
    if "permission denied" in lowered:
        return "make the interpreter, its environment and this package readable for other users (chmod -R a+rX)"
    return REMEDY
