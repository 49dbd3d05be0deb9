"""The account of one run of `analyze`: what it waits for, how things ended, and the exit code that follows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from malbox_tui.cli.notable import found_something, is_notable
from malbox_tui.cli.text import counted, duration, tallied
from malbox_tui.model.queries import TaskRecord
from malbox_tui.model.report import Classification
from malbox_tui.model.submission import NOT_KEPT, Accepted, Duplicate, Receipt, Refused
from malbox_tui.model.task import TaskState

EXIT_OK = 0
EXIT_NOT_ALL_COMPLETED = 1
EXIT_NOTHING_ACCEPTED = 2


class Tally:
    """Counts as they stand. Ids are kept for each task, receipts only of what did not become a task."""

    def __init__(self) -> None:
        self.waiting: set[int] = set()
        self.ended: dict[int, TaskState] = {}
        """In the order they ended."""
        self.leftovers = 0
        self.accepted = 0
        self.duplicates: list[Duplicate] = []
        self.refused: list[Refused] = []
        self.notable: set[int] = set()
        """Ids of the ended tasks that need a person's eye."""
        self.notable_duplicates: set[int] = set()
        """Ids of the tasks that found something, and of which a content was a duplicate."""
        self._classifications: Counter[str] = Counter()
        self._duplicate_classifications: Counter[str] = Counter()

    @property
    def tasks(self) -> int:
        """How many tasks this run knows of."""
        return len(self.waiting) + len(self.ended)

    @property
    def is_empty(self) -> bool:
        """True while nothing came in and nothing was left over."""
        return not (self.tasks or self.duplicates or self.refused)

    def left_over(self, task_ids: Iterable[int]) -> None:
        """Tasks of earlier runs that are not final: they count as this run's own."""
        fresh = {task_id for task_id in task_ids if task_id not in self.ended and task_id not in self.waiting}
        self.leftovers += len(fresh)
        self.waiting |= fresh

    def still_waiting(self, task_ids: Iterable[int]) -> None:
        """Tasks that are not final and of which no receipt came before the end."""
        self.waiting |= {task_id for task_id in task_ids if task_id not in self.ended}

    def received(self, receipt: Receipt) -> None:
        """One thing that was offered."""
        match receipt:
            case Accepted():
                self.accepted += 1
                self._wait_for(receipt.task_id)
            case Duplicate():
                self.duplicates.append(receipt)
                if not receipt.state.is_final:
                    self._wait_for(receipt.task_id)
            case Refused():
                self.refused.append(receipt)

    def ended_as(self, task_id: int, state: TaskState) -> bool:
        """One task that became final; False if that was known."""
        if task_id in self.ended:
            return False
        self.ended[task_id] = state
        self.waiting.discard(task_id)
        return True

    def judged(self, record: TaskRecord) -> None:
        """What an ended task was found to be."""
        if is_notable(record):
            self.notable.add(record.task.id)
        if record.task.verdict is not None:
            self._classifications[record.task.verdict.classification.value] += 1

    def judged_before(self, original: TaskRecord) -> None:
        """What the content of a duplicate was found to be."""
        verdict = original.task.verdict
        if verdict is not None and found_something(verdict):
            self.notable_duplicates.add(original.task.id)
            self._duplicate_classifications[verdict.classification.value] += 1

    def exit_code(self) -> int:
        """0: all completed, 1: some did not, or could not be kept, 2: nothing was accepted and nothing was left over."""
        if not self.ended and not self.waiting and not self.duplicates:
            return EXIT_NOTHING_ACCEPTED
        all_completed = not self.waiting and all(state is TaskState.COMPLETED for state in self.ended.values())
        all_kept = not any(receipt.refusal.code in NOT_KEPT for receipt in self.refused)
        return EXIT_OK if all_completed and all_kept else EXIT_NOT_ALL_COMPLETED

    def progress(self) -> str:
        """`12 of 40 tasks final, 2 malicious, 1 failed`: those that just completed are not counted out."""
        parts = [
            f"{len(self.ended)} of {counted(self.tasks, 'task')} final",
            _notable(self._classifications),
            self._by_state(but=TaskState.COMPLETED),
        ]
        return ", ".join(part for part in parts if part)

    def totals(self, seconds: float) -> str:
        """The line below the results: tasks by state, what was found, and what did not become a task."""
        parts = [f"{counted(self.tasks, 'task')} in {duration(seconds)}"]
        if self.ended:
            parts[0] += f": {self._by_state()}"
        if self.waiting:
            parts.append(f"{len(self.waiting)} not final")
        if notable := _notable(self._classifications):
            parts.append(notable)
        if self.leftovers:
            parts.append(f"{self.leftovers} of earlier runs")
        if self.duplicates:
            notable = _notable(self._duplicate_classifications)
            parts.append(counted(len(self.duplicates), "duplicate") + (f" ({notable})" if notable else ""))
        codes = Counter(receipt.refusal.code for receipt in self.refused if not receipt.is_left_out)
        if codes:
            parts.append(f"{codes.total()} refused ({tallied(codes) if len(codes) > 1 else next(iter(codes))})")
        if left_out := sum(receipt.refusal.things for receipt in self.refused if receipt.is_left_out):
            parts.append(f"{left_out} left out")
        return " · ".join(parts)

    def _wait_for(self, task_id: int) -> None:
        if task_id not in self.ended:
            self.waiting.add(task_id)

    def _by_state(self, but: TaskState | None = None) -> str:
        counts = Counter(state.value for state in self.ended.values())
        return tallied({state.value: counts[state.value] for state in TaskState if state is not but})


def _notable(counts: Counter[str]) -> str:
    return tallied({name.value: counts[name.value] for name in (Classification.MALICIOUS, Classification.SUSPICIOUS)})
