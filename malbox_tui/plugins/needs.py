"""What a plugin has to have before it looks at a task: content of its kinds, and what others give. One that doesn't is skipped."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from malbox_tui.model.plan import Step
from malbox_tui.model.report import Identification, PluginRun, PluginStatus, ResultRef
from malbox_tui.plugins.parts import Member, Part
from malbox_tui.plugins.surroundings import Surroundings

_HOW = {
    PluginStatus.COMPLETED: "found none",
    PluginStatus.FAILED: "failed",
    PluginStatus.TIMED_OUT: "did not end in time",
    PluginStatus.CANCELED: "was stopped",
    PluginStatus.SKIPPED: "was skipped",
}


async def meet_needs(step: Step, member: Member, part: Part, inbox: Path, around: Surroundings) -> None:
    """Give the part what its plugin needs, or skip it, with the reason.

    Raises `StoreError` when a result can't be handed over.
    """
    if (reason := _of_another_kind(step, member)) is not None:
        part.skip(reason)
        return
    given: dict[str, ResultRef] = {}
    for thing, giver in step.needs.items():
        found = _given(thing, member.parts.get(giver))
        if isinstance(found, str):
            part.skip(f"it needs {thing}, and {giver} {found}")
            return
        given[thing] = found
    part.given = await _laid_out(given, part, inbox, around)


async def _laid_out(given: Mapping[str, ResultRef], part: Part, inbox: Path, around: Surroundings) -> dict[str, str]:
    """By thing, the name in the inbox."""
    names = {thing: f"{part.job.sample_name}.{part.name}.{thing}" for thing in given}
    for thing, result in given.items():
        await around.results.lay_out(result, inbox / names[thing])
    return names


def _given(thing: str, giver: Part | None) -> ResultRef | str:
    """The result, or how it comes that there is none."""
    if giver is None:
        return "does not take part"
    run = giver.run
    found = next((result for result in run.results if result.name == thing), None) if run is not None else None
    return _how(run) if found is None else found


def _of_another_kind(step: Step, member: Member) -> str | None:
    if not step.kinds:
        return None
    kinds = ", ".join(step.kinds)
    found: Identification | None = member.identification
    if found is not None:
        return None if found.kind in step.kinds else f"it is for {kinds}, and this is {found.kind}"
    teller = member.parts.get(step.kind_by) if step.kind_by else None
    why = "no plugin tells kinds" if teller is None else f"{step.kind_by} {_how(teller.run)}"
    return f"it is for {kinds}, and what this is, is not known: {why}"


def _how(run: PluginRun | None) -> str:
    return "left nothing" if run is None else _HOW[run.status]
