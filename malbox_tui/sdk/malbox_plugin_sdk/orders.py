"""What the process was ordered to work on, and which of it was cancelled meanwhile.

Orders are made by the wire's reader, in the order of the frames, so a cancel always finds the order that it is about; handlers only
read what the reader wrote.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from .context import Run, Send
from .wire import Header


@dataclass(frozen=True)
class Order:
    """A task (`number` is that of its only run), or a batch of them (`number` is the batch's own)."""

    number: int
    runs: tuple[Run, ...]
    is_batch: bool

    def cancel(self, number: int) -> bool:
        """A run of it, or all of it, is to end. Whether nothing is left to do then."""
        for run in self.runs:
            if number in (self.number, run.run):
                run.is_canceled = True
        return all(run.is_canceled for run in self.runs)


def order_of(frame: Header, config: dict[str, str], send: Send) -> Order:
    """What the frame orders: a `run` names its sample by its path, a `batch` names a folder, and in it the sample of each member."""
    number = int(frame["run"])
    is_batch = frame["kind"] == "batch"
    folder, members = (Path(frame["inbox"]), frame["members"]) if is_batch else (Path(), [frame])
    runs = (
        Run(
            run=int(member["run"]),
            task_id=int(member["task_id"]),
            sample_path=folder / member["sample"],
            config=config,
            send=send,
            given={thing: folder / name for thing, name in member.get("given", {}).items()},
        )
        for member in members
    )
    return Order(number, tuple(runs), is_batch)
