"""What this host can do, found out by trying. Each finding has its remedy; nothing is changed, except that the data folder is made."""

from __future__ import annotations

import asyncio
import os
import platform
import resource
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Iterator

from malbox_tui.config.folders import DataFolders
from malbox_tui.config.loading import ConfigSource
from malbox_tui.config.machine_list import listed
from malbox_tui.config.machines import Provider
from malbox_tui.config.profile_rules import check_denied
from malbox_tui.config.settings import Isolation, Settings
from malbox_tui.confine.enforcement import Means
from malbox_tui.confine.hierarchies import find_hierarchies
from malbox_tui.confine.probe import Probe, probe_bubblewrap
from malbox_tui.engine.clock import SystemClock
from malbox_tui.machinery.binding import LibvirtNotInstalled, libvirt_module
from malbox_tui.model.errors import DataFolderInUse, MalboxError
from malbox_tui.plugins.places import all_places
from malbox_tui.plugins.profiles import check_profiles
from malbox_tui.plugins.registry import find_guest_plugins, find_plugins
from malbox_tui.runtime.finding import Finding, Health
from malbox_tui.runtime.machine_diagnosis import diagnose_machines
from malbox_tui.store.folder_lock import FolderLock

__all__ = ["Finding", "Health", "diagnose", "plugin_fault"]

SYSTEM_DEPS = "make system-deps, as root"
LOW_DISK_BYTES = 5 * 1024**3
LOW_OPEN_FILES = 1024

_WAL_RESET_FIXED = (3, 51, 3)
"""SQLite before this may lose a commit when two connections checkpoint and reset the WAL at the same time (sqlite.org/wal.html).
The store has one writer, so it can't happen here; another program on the same file could bring it about."""


def diagnose(folders: DataFolders, source: ConfigSource) -> Iterator[Finding]:
    """Findings, each as soon as it is known. Never raises for what is wrong with the host."""
    yield _python()
    yield _sqlite()
    settings, findings = _configuration(source)
    yield findings
    yield from _data_folder(folders)
    probe = _probe()
    yield _bubblewrap(settings, probe)
    yield from _resource_limits(settings, has_sandbox=probe.works and settings.confinement.isolation is not Isolation.LIMITS)
    yield _plugins(settings, folders, source)
    yield _libvirt(settings)
    yield from diagnose_machines(listed([machine.spec() for machine in settings.machines]))
    yield _open_files()
    yield _terminal()


def plugin_fault(settings: Settings, folders: DataFolders, source: ConfigSource) -> MalboxError | None:
    """The first thing that is wrong with the settings of plugins, or with the plugins themselves; None when all is right."""
    try:
        places = all_places(folders)
        hosts = find_plugins(settings.plugins, *places, config_file=source.shown)
        guests = [plugin.name for plugin in find_guest_plugins(settings.plugins, *places, config_file=source.shown)]
        check_profiles([profile.profile() for profile in settings.profiles], hosts, guests, source.shown)
        check_denied(settings, source.shown)
    except MalboxError as error:
        return error
    return None


def _python() -> Finding:
    detail = f"{platform.python_version()} ({sys.executable})"
    return Finding("Python", Health.OK, detail)


def _sqlite() -> Finding:
    if sqlite3.sqlite_version_info >= _WAL_RESET_FIXED:
        return Finding("SQLite", Health.OK, sqlite3.sqlite_version)
    return Finding(
        "SQLite", Health.OK, f"{sqlite3.sqlite_version}; let nothing but malbox-tui write to the store (WAL-reset fault)"
    )


def _configuration(source: ConfigSource) -> tuple[Settings, Finding]:
    settings, faults = source.examine()
    if faults:
        more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
        finding = Finding(
            "configuration", Health.FAIL, f"{faults[0]}{more}", "`malbox-tui config check` lists everything that is wrong"
        )
    elif source.exists:
        finding = Finding("configuration", Health.OK, source.shown)
    else:
        finding = Finding("configuration", Health.OK, f"the defaults; there is no {source.shown}")
    return settings, finding


def _data_folder(folders: DataFolders) -> Iterator[Finding]:
    try:
        folders.create()
        with tempfile.TemporaryFile(dir=folders.root) as file:
            file.write(b"x")
        free_bytes = shutil.disk_usage(folders.root).free
    except (MalboxError, OSError) as error:
        yield Finding(
            "data folder", Health.FAIL, f"{folders.root}: {error}", "make it writable, or choose another with --data-dir"
        )
        return
    yield Finding("data folder", Health.OK, str(folders.root))
    free = f"{free_bytes / 1024**3:.1f} GiB free under {folders.root}"
    if free_bytes < LOW_DISK_BYTES:
        yield Finding("disk", Health.WARN, free, "make room, or choose another folder with --data-dir")
    else:
        yield Finding("disk", Health.OK, free)
    yield _lock(folders)


def _lock(folders: DataFolders) -> Finding:
    lock = FolderLock(folders.root)
    try:
        lock.acquire(SystemClock().now())
    except DataFolderInUse as held:
        holder = f"process {held.pid}" if held.pid is not None else "another process"
        return Finding("lock", Health.OK, f"held by {holder} ({held.command or 'unknown command'}), an engine is running")
    except (MalboxError, OSError) as error:
        return Finding("lock", Health.FAIL, str(error), "make the data folder writable, or choose another with --data-dir")
    lock.close()
    return Finding("lock", Health.OK, "free, no engine is running on the data folder")


def _probe() -> Probe:
    try:
        return asyncio.run(probe_bubblewrap())
    except (MalboxError, OSError) as error:
        return Probe(False, str(error), SYSTEM_DEPS)


def _bubblewrap(settings: Settings, probe: Probe) -> Finding:
    isolation = settings.confinement.isolation
    if probe.works and isolation is Isolation.LIMITS:
        return Finding(
            "isolation",
            Health.WARN,
            "bubblewrap works, but the configuration asks for resource limits alone",
            'set confinement.isolation = "auto"',
        )
    if probe.works:
        return Finding("isolation", Health.OK, f"bubblewrap works ({shutil.which('bwrap')})")
    health = Health.FAIL if isolation is Isolation.REQUIRED else Health.WARN
    return Finding("isolation", health, f"resource limits alone: {probe.reason}", probe.remedy or SYSTEM_DEPS)


def _resource_limits(settings: Settings, *, has_sandbox: bool) -> Iterator[Finding]:
    hierarchies = find_hierarchies()
    means = Means(has_sandbox, frozenset(controller for hierarchy in hierarchies for controller in hierarchy.controllers))
    version = f"control groups (version {hierarchies[0].version})" if hierarchies else "no control groups can be made"
    yield Finding("limits", Health.OK, f"{version}; {means.in_words()}")
    for shortfall in means.shortfalls(settings.groups()):
        health = Health.WARN if shortfall.waived else Health.FAIL
        yield Finding("limits", health, f"{shortfall} is not enforced: {shortfall.why}", shortfall.remedy)


def _plugins(settings: Settings, folders: DataFolders, source: ConfigSource) -> Finding:
    try:
        places = all_places(folders)
        plugins = find_plugins(settings.plugins, *places, config_file=source.shown)
        in_guests = find_guest_plugins(settings.plugins, *places, config_file=source.shown)
    except MalboxError as error:
        return Finding("plugins", Health.FAIL, str(error), "correct that, or name the plugin in plugins.disabled")
    names = ", ".join(
        [f"{plugin.name} {plugin.version}" for plugin in plugins]
        + [f"{plugin.name} {plugin.version} (in guests)" for plugin in in_guests]
    )
    if not plugins:
        return Finding("plugins", Health.WARN, "none takes part", "take names out of plugins.disabled")
    return Finding("plugins", Health.OK, names)


def _libvirt(settings: Settings) -> Finding:
    try:
        libvirt = libvirt_module()
    except LibvirtNotInstalled as error:
        is_needed = any(machine.provider is Provider.LIBVIRT for machine in settings.machines)
        health = Health.FAIL if is_needed else Health.WARN
        detail, _, remedy = str(error).partition(". ")
        return Finding(
            "libvirt", health, f"{detail}; no machines", f"{remedy.rstrip('.')} (in a checkout: {SYSTEM_DEPS}, then make run)"
        )
    number = libvirt.getVersion()
    version = f"{number // 1_000_000}.{number // 1000 % 1000}.{number % 1000}"
    return Finding("libvirt", Health.OK, f"its Python module can be used, {version}")


def _open_files() -> Finding:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    detail = f"{_limit(soft)} allowed, {_limit(hard)} on request"
    if soft != resource.RLIM_INFINITY and soft < LOW_OPEN_FILES:
        return Finding("open files", Health.WARN, detail, f"ulimit -n {LOW_OPEN_FILES} or more")
    return Finding("open files", Health.OK, detail)


def _limit(value: int) -> str:
    return "any number of" if value == resource.RLIM_INFINITY else str(value)


def _terminal() -> Finding:
    term = os.environ.get("TERM", "")
    encoding = (sys.stdout.encoding or "unknown").upper()
    detail = f"TERM={term or '(not set)'}, {encoding}{'' if sys.stdout.isatty() else ', stdout is no terminal'}"
    if encoding.replace("-", "") != "UTF8":
        return Finding("terminal", Health.WARN, detail, "set a UTF-8 locale: export LANG=C.UTF-8")
    if sys.stdout.isatty() and term in ("", "dumb"):
        return Finding("terminal", Health.WARN, detail, "set TERM to what the terminal is, such as xterm-256color")
    return Finding("terminal", Health.OK, detail)
