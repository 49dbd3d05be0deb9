"""Every error the product raises on purpose. The message is for the person at the screen: what, which, what to do now."""

from __future__ import annotations


class MalboxError(Exception):
    """Base of all errors below; its text can be shown as it is."""


class IllegalTransition(MalboxError):
    """A task was asked to make a move that the transition table doesn't have; nothing was changed."""

    def __init__(self, state: str, trigger: str) -> None:
        self.state = state
        self.trigger = trigger
        super().__init__(f"A task that is {state} can't take the step '{trigger}'.")


class IllegalMachineMove(MalboxError):
    """A machine was asked to make a move that its table doesn't have; nothing was changed."""

    def __init__(self, state: str, trigger: str) -> None:
        self.state = state
        self.trigger = trigger
        super().__init__(f"A machine that is {state} can't take the step '{trigger}'.")


class UnknownTask(MalboxError):
    """No task has this id."""

    def __init__(self, task_id: int) -> None:
        self.task_id = task_id
        super().__init__(f"There is no task {task_id}. `malbox-tui tasks` lists those there are.")


class StaleTask(MalboxError):
    """The task was no longer in the state the change expected; nothing was changed."""

    def __init__(self, task_id: int, expected: str) -> None:
        self.task_id = task_id
        self.expected = expected
        super().__init__(f"Task {task_id} is no longer {expected}; look at it again.")


class LeaseLost(StaleTask):
    """The attempt no longer owns its task: another one took it over. Its outcome was not recorded."""

    def __init__(self, task_id: int, expected: str) -> None:
        super().__init__(task_id, expected)
        self.args = (f"Another attempt has taken task {task_id} over; this one's outcome was not recorded.",)


class StoreError(MalboxError):
    """The store could not read or write. Nothing of the failed call was kept."""


class StoreFull(StoreError):
    """The disk under the store is full."""


class StoreTooNew(StoreError):
    """The store was written by a newer version of the product."""

    def __init__(self, path: str, found: int, known: int) -> None:
        self.path = path
        self.found = found
        self.known = known
        super().__init__(
            f"{path} has store version {found}, this program knows up to {known}. "
            "Upgrade malbox-tui, or choose another folder with --data-dir."
        )


class DataFolderInUse(MalboxError):
    """Another process holds the data folder."""

    def __init__(self, folder: str, pid: int | None, since: str | None, command: str | None) -> None:
        self.folder = folder
        self.pid = pid
        self.since = since
        self.command = command
        holder = f"process {pid}" if pid is not None else "another process"
        details = ", ".join(part for part in (f"`{command}`" if command else "", f"since {since}" if since else "") if part)
        stop = f"stop it (kill {pid})" if pid is not None else "stop it"
        super().__init__(
            f"The data folder {folder} is in use by {holder}{f' ({details})' if details else ''}. "
            f"Wait until it ends, {stop}, or choose another folder with --data-dir."
        )


class SocketUnavailable(MalboxError):
    """The control socket can't be made; the message says why, and what to do."""


class SampleMissing(MalboxError):
    """The quarantine holds no content with this sum."""

    def __init__(self, sha256: str) -> None:
        self.sha256 = sha256
        super().__init__(f"The quarantine holds no sample {sha256}. Submit the file again.")


class SampleChanged(MalboxError):
    """The stored content can't be read back as what was stored."""

    def __init__(self, sha256: str, detail: str) -> None:
        self.sha256 = sha256
        self.detail = detail
        super().__init__(f"The stored content of sample {sha256} is damaged ({detail}). Submit the file again.")


class RefusedContent(MalboxError):
    """A content that is not taken as a sample: `reason` is a sentence for a person, `code` is stable for scripts."""

    def __init__(self, code: str, reason: str) -> None:
        self.code = code
        self.reason = reason
        super().__init__(reason)


class ConfigError(MalboxError):
    """A configuration file that can't be used: the message names the file, the key and the remedy."""

    def __init__(self, path: str, key: str | None, problem: str) -> None:
        self.path = path
        self.key = key
        self.problem = problem
        super().__init__(f"{path}: {f'{key}: ' if key else ''}{problem}")


class ManifestError(MalboxError):
    """A plugin's manifest that can't be used: the message names the file, the key and the remedy."""

    def __init__(self, path: str, key: str | None, problem: str) -> None:
        self.path = path
        self.key = key
        self.problem = problem
        super().__init__(f"{path}: {f'{key}: ' if key else ''}{problem}")


class ConfinementUnavailable(MalboxError):
    """Confinement was required by the configuration and this host can't give it."""


class PluginUnavailable(MalboxError):
    """A plugin could not be started, or is not ready; `plugin` names it."""

    def __init__(self, plugin: str, problem: str) -> None:
        self.plugin = plugin
        self.problem = problem
        super().__init__(f"The plugin {plugin} can't run: {problem}")


class MachineError(MalboxError):
    """A machine could not do what it was to do; `machine` names it, `problem` says what went wrong."""

    def __init__(self, machine: str, problem: str) -> None:
        self.machine = machine
        self.problem = problem
        super().__init__(f"Machine {machine}: {problem}")


class MachineMissing(MachineError):
    """The hypervisor doesn't know the machine, or not the snapshot it is reverted to."""


class MachineMisconfigured(MachineError):
    """The machine can't be used as it is configured; trying again changes nothing. `problem` says what to do."""


class MachineUnable(MachineError):
    """The hypervisor can't do this for this machine, and that is no fault of the machine."""


class GuestUnreachable(MachineError):
    """The guest did not answer in time, or answers no more."""


class GuestLineLost(GuestUnreachable):
    """The way to the guest was lost under a request, which it may have got or not; the next one may go another way."""


class GuestRefused(MachineError):
    """The guest answers, and says that it can't do this."""


class RefusedCommand(MalboxError):
    """A command that can't be carried out as given; nothing was changed."""


class SampleInUse(RefusedCommand):
    """A sample that can't be removed, since tasks of it wait or run: `task_ids`."""

    SHOWN = 8

    def __init__(self, sha256: str, task_ids: tuple[int, ...]) -> None:
        self.sha256 = sha256
        self.task_ids = task_ids
        named = ", ".join(map(str, task_ids[: self.SHOWN])) + (", …" if len(task_ids) > self.SHOWN else "")
        which = f"task {named} waits or runs" if len(task_ids) == 1 else f"tasks {named} wait or run"
        super().__init__(f"Sample {sha256[:12]} can't be removed: {which}. Cancel that first, or wait until it has ended.")


class EngineStopped(MalboxError):
    """The engine no longer takes commands."""

    def __init__(self) -> None:
        super().__init__("The engine has stopped. Start malbox-tui again; waiting tasks are kept.")


class Disconnected(MalboxError):
    """An engine that runs elsewhere can't be asked. `since` (a time of day; empty: it never could) and `problem` are in words."""

    def __init__(self, where: str, problem: str, since: str = "", remedy: str = "") -> None:
        self.where = where
        self.problem = problem
        self.since = since
        asked = f"Not connected to {where} since {since}" if since else f"The engine at {where} can't be asked"
        super().__init__(f"{asked}: {problem}. {remedy or 'Try again when the connection is back.'}")


class EngineMismatch(MalboxError):
    """The engine that runs elsewhere and this program don't understand each other."""
