"""What the engine needs of the world, and what the world may ask of the engine. Each port is a contract; each adapter passes
its contract suite (`tests/contracts/`). They stand in this package, so that all that crosses a boundary is read in one place.

Every call may raise `MalboxError`s; which, is said at the call. Cancelling a call leaves what is said there, else nothing.
"""

from malbox_tui.ports.books import ActionBook, IntakeBook, LimitsStore, MachineBook, MarkBook, PauseBook
from malbox_tui.ports.clock import Clock
from malbox_tui.ports.doors import Attachment, Away, Client
from malbox_tui.ports.intake import ArchiveMember, Dropped, Identifier, Intake, Unpacker, WatchKeeper
from malbox_tui.ports.machines import (
    AgentLine,
    GuestChannel,
    GuestEnd,
    GuestExit,
    GuestFile,
    GuestMark,
    GuestPlugin,
    GuestProcess,
    GuestProgram,
    GuestSession,
    GuestView,
    MachineCapture,
    MachineProvider,
    Machinery,
)
from malbox_tui.ports.plugins import (
    BatchMember,
    Findings,
    PluginBench,
    PluginInfo,
    PluginJob,
    PluginRunner,
    PluginsRead,
    StopSignal,
)
from malbox_tui.ports.samples import Quarantine, ResultStore, ResultWriter, StoredContent
from malbox_tui.ports.store import Added, Change, ClaimRequest, NewTask, PendingEntry, Store, StoreIdentity
from malbox_tui.ports.upkeep import Aged, Removal, Stockroom, UpkeepBook

__all__ = [
    "ActionBook",
    "Added",
    "Aged",
    "AgentLine",
    "ArchiveMember",
    "Attachment",
    "Away",
    "BatchMember",
    "Change",
    "ClaimRequest",
    "Client",
    "Clock",
    "Dropped",
    "Findings",
    "GuestChannel",
    "GuestEnd",
    "GuestExit",
    "GuestFile",
    "GuestMark",
    "GuestPlugin",
    "GuestProcess",
    "GuestProgram",
    "GuestSession",
    "GuestView",
    "Identifier",
    "Intake",
    "IntakeBook",
    "LimitsStore",
    "MachineBook",
    "MachineCapture",
    "MachineProvider",
    "Machinery",
    "MarkBook",
    "NewTask",
    "PauseBook",
    "PendingEntry",
    "PluginBench",
    "PluginInfo",
    "PluginJob",
    "PluginRunner",
    "PluginsRead",
    "Quarantine",
    "Removal",
    "ResultStore",
    "ResultWriter",
    "Stockroom",
    "StopSignal",
    "Store",
    "StoreIdentity",
    "StoredContent",
    "Unpacker",
    "UpkeepBook",
    "WatchKeeper",
]
