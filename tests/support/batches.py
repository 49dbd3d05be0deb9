"""Members of a batch that note what they are told."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path

from malbox_tui.model.errors import MalboxError
from malbox_tui.model.report import PluginRun, PluginStatus
from malbox_tui.ports import BatchMember, Findings, PluginJob
from tests.confine.rig import DEADLINE_S, Stop


@dataclass
class Told:
    """One member: its task, its stop, and what it heard."""

    task_id: int
    sample_name: str
    kept_out: dict[str, str] = field(default_factory=dict)
    timeout_s: float = 300.0
    stop: Stop = field(default_factory=Stop)
    work: list[bool] = field(default_factory=list)
    found: list[Findings | MalboxError] = field(default_factory=list)

    @property
    def member(self) -> BatchMember:
        job = PluginJob(self.task_id, f"token-{self.task_id}", self.sample_name, self.kept_out, self.timeout_s)
        return BatchMember(job, self.stop, self.work.append, self.found.append)

    @property
    def findings(self) -> Findings:
        """What was found; it must have been told once, by when nobody worked at it any more."""
        (found,) = self.found
        assert isinstance(found, Findings), found
        assert self.work == [True, False] * (len(self.work) // 2)
        return found

    @property
    def run(self) -> PluginRun:
        """The only run that was not skipped."""
        (run,) = [run for run in self.findings.runs if run.status is not PluginStatus.SKIPPED]
        return run

    async def until_told(self) -> None:
        """Wait for what is found."""
        async with asyncio.timeout(DEADLINE_S):
            while not self.found:
                await asyncio.sleep(0.01)  # noqa: TID251 - a poll with a deadline

    async def until_worked_at(self) -> None:
        """Wait until a plugin has taken it up."""
        async with asyncio.timeout(DEADLINE_S):
            while not self.work:
                await asyncio.sleep(0.01)  # noqa: TID251 - a poll with a deadline


def lay_out(inbox: Path, samples: dict[int, bytes]) -> list[Told]:
    """Put samples into a folder, one for each task; the tasks' members."""
    told = []
    for task_id, content in samples.items():
        name = f"sample-{task_id}"
        (inbox / name).write_bytes(content)
        told.append(Told(task_id, name))
    return told
