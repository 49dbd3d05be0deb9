"""Whether this host's KVM runs guests. That there is a /dev/kvm says little: where a host is a virtual machine itself, KVM may take
every call and never bring a guest up. So QEMU is asked to run nine bytes of a guest, on the host's own processor model.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

_DEVICE = Path("/dev/kvm")
_CPU_FACTS = Path("/proc/cpuinfo")
_LIMIT_S = 10.0

_FIRMWARE_BYTES = 64 * 1024
_RESET = 0xFFF0
"""Where an x86 processor begins, in the last 64 KiB of its firmware."""
_HELLO = bytes.fromhex("baf400 b010 ee f4 ebfd")
"""mov dx, 0xf4; mov al, 0x10; out dx, al; hlt; jmp back to the hlt. QEMU's isa-debug-exit ends with 2 * 0x10 + 1 then."""
_SAID_HELLO = 33

_REMEDY = "guests are emulated without it: write <domain type='qemu'>, or use a host with hardware virtualization"


@dataclass(frozen=True, slots=True)
class KvmProbe:
    """`works` None: it can't be told. `detail` says why it is so, `remedy` what to do about it."""

    works: bool | None
    detail: str
    remedy: str = ""


def probe_kvm(device: Path = _DEVICE, cpu_facts: Path = _CPU_FACTS) -> KvmProbe:
    """Find out; it takes a tenth of a second, and ten at most."""
    if not device.exists():
        return KvmProbe(
            False, f"there is no {device}", f"switch virtualization on in the firmware and load its module; {_REMEDY}"
        )
    if not os.access(device, os.R_OK | os.W_OK):
        detail = f"there is a {device} that this user may not open, so it was not tried; the user that libvirt runs QEMU as may"
        return KvmProbe(None, detail, "add yourself to the group kvm to have it tried (`usermod -aG kvm USER`)")
    if platform.machine() != "x86_64":
        return KvmProbe(
            None, f"there is a {device}; whether it works is not tried on {platform.machine()}", "start a guest with it"
        )
    if not re.search(r"^flags\s*:.*\b(vmx|svm)\b", _text(cpu_facts), re.MULTILINE):
        return KvmProbe(False, f"there is a {device}, and the processor has no hardware virtualization (vmx, svm)", _REMEDY)
    return _tried(device)


def runs_a_guest(accelerator: str, cpu: str) -> str | None:
    """Why QEMU does not run a guest so, in words; None when it does. Raises FileNotFoundError without QEMU."""
    program = shutil.which("qemu-system-x86_64")
    if program is None:
        raise FileNotFoundError("qemu-system-x86_64")
    with tempfile.TemporaryDirectory(prefix="malbox-kvm-") as folder:
        firmware = Path(folder) / "firmware"
        content = bytearray(_FIRMWARE_BYTES)
        content[_RESET : _RESET + len(_HELLO)] = _HELLO
        firmware.write_bytes(content)
        command = [program, "-accel", accelerator, "-cpu", cpu, "-machine", "pc", "-m", "16", "-bios", str(firmware)]
        command += [
            "-nodefaults",
            "-no-user-config",
            "-display",
            "none",
            "-no-reboot",
            "-device",
            "isa-debug-exit,iobase=0xf4,iosize=1",
        ]
        try:
            ended = subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL, timeout=_LIMIT_S, check=False)
        except subprocess.TimeoutExpired:
            return f"a guest does nothing within {_LIMIT_S:g} s"
    if ended.returncode == _SAID_HELLO:
        return None
    words = ended.stderr.decode(errors="replace").strip().splitlines() or [f"QEMU ended with {ended.returncode}"]
    return words[0][:200]


def _tried(device: Path) -> KvmProbe:
    try:
        problem = runs_a_guest("kvm", "host")
    except FileNotFoundError as error:
        detail = f"there is a {device}; without {error} whether it works can't be tried"
        return KvmProbe(None, detail, "make system-deps, as root, brings QEMU")
    if problem is not None:
        return KvmProbe(False, f"there is a {device}, and QEMU runs no guest with it: {problem}", _REMEDY)
    return KvmProbe(True, f"{device} runs guests")


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""
