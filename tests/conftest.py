"""What all tests share: the order (slow ones last) and what a skip means.

A test that needs what only a system package brings is marked `needs("bubblewrap")` and skipped by name where that is missing.
With MALBOX_TUI_FORBID_SKIPS=1 every skip is a failure, so that a complete host can't hide one.
"""

from __future__ import annotations

import ctypes.util
import importlib.util
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Generator
from typing import Any

import pytest
from hypothesis import settings

from tests.rig.fixtures import machines, rig, whole_rig  # noqa: F401 - fixtures

# They change every picture of the console, and Textual reads them when it is imported.
os.environ.pop("NO_COLOR", None)
os.environ.pop("TEXTUAL_THEME", None)

# How long an example takes is the host's affair.
settings.register_profile("any host", deadline=None)
settings.load_profile("any host")

FORBID_SKIPS = os.environ.get("MALBOX_TUI_FORBID_SKIPS", "") not in ("", "0")

PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"

RIG_PROGRAMS = ("libvirtd", "qemu-system-x86_64", "qemu-img", "mkfs.ext4", "busybox", "tini")
"""What real machines are made with."""


def _has_static_libc() -> bool:
    """Whether the compiler finds it: of what is there it tells the path, and else the mere name."""
    if shutil.which("gcc") is None:
        return False
    return b"/" in subprocess.run(["gcc", "-print-file-name=libc.a"], capture_output=True, check=True).stdout


SYSTEM_FEATURES: dict[str, Callable[[], bool]] = {
    "bubblewrap": lambda: shutil.which("bwrap") is not None,
    "busybox": lambda: shutil.which("busybox") is not None,
    "libarchive": lambda: ctypes.util.find_library("archive") is not None,
    "libvirt": lambda: importlib.util.find_spec("libvirt") is not None,
    "qemu": lambda: all(shutil.which(program, path=PATH) for program in RIG_PROGRAMS),
    "sshd": lambda: shutil.which("sshd", path=PATH) is not None,
    "static-libc": _has_static_libc,
    "setpriv": lambda: shutil.which("setpriv") is not None,
    "unar": lambda: shutil.which("unar") is not None,
}
"""What `needs` may name → whether this host has it."""


def pytest_configure(config: pytest.Config) -> None:
    # Started by nohup or the like, a hangup would be ignored here and in every process that a test starts.
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    config.addinivalue_line("markers", "slow: runs after all others.")
    config.addinivalue_line("markers", "rig: runs on real machines, after the slow ones.")
    config.addinivalue_line("markers", "needs(feature): needs what `make system-deps` installs; skipped by name without it.")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "whole_rig" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.rig)
            item.add_marker(pytest.mark.needs("qemu", "libvirt"))
    items.sort(key=lambda item: (item.get_closest_marker("rig") is not None, item.get_closest_marker("slow") is not None))


def pytest_runtest_setup(item: pytest.Item) -> None:
    for marker in item.iter_markers("needs"):
        for feature in marker.args:
            if not SYSTEM_FEATURES[feature]():
                pytest.skip(f"{feature} is not here; `make system-deps` brings it")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
    return _judged((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Generator[None, Any, Any]:
    return _judged((yield))


def _judged(report: Any) -> Any:
    if FORBID_SKIPS and report.outcome == "skipped" and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        report.outcome = "failed"
        report.longrepr = f"skips are forbidden here (MALBOX_TUI_FORBID_SKIPS): {reason}"
    return report
