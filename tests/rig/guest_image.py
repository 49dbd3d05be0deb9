"""Builds the rig's throwaway Linux guest from Debian packages, which are downloaded and not installed.

A kernel that boots by itself, an initramfs with busybox and the guest agent, and a small disk that carries the snapshot and is mounted
at /data. As any system does, it asks for the name of its boot while it boots: the kernel makes it up when it is first asked. It is
built once for each text of this file, into a folder that `make clean` removes.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import stat
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CACHE = ROOT / ".rig"
DISK_MB = 64

_MODULES = ("virtio_pci", "virtio_console", "virtio_blk", "virtio_net", "virtio_scsi", "button", "evdev")

_INIT = r"""#!/bin/busybox sh
export PATH=/bin:/sbin HOME=/root
mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t devtmpfs dev /dev
mkdir -p /dev/pts; mount -t devpts pts /dev/pts
while read -r m; do insmod "/lib/modules/$m" 2>/dev/null; done < /lib/modules/order
hostname rigguest
ip link set lo up
[ -e /sys/class/net/eth0 ] && { ip link set eth0 up; ip addr add 10.0.2.15/24 dev eth0; ip route add default via 10.0.2.2; }
[ -b /dev/vda ] && mount -t ext4 /dev/vda /data
port=
while [ -z "$port" ]; do
  for n in /sys/class/virtio-ports/*; do
    [ "$(cat $n/name 2>/dev/null)" = org.qemu.guest_agent.0 ] && port=/dev/${n##*/}
  done
  [ -z "$port" ] && sleep 0.1
done
cat /proc/sys/kernel/random/boot_id >/dev/null
while :; do qemu-ga -m virtio-serial -p "$port" -t /run; sleep 1; done
"""

_SHUTDOWN = '#!/bin/busybox sh\nsync\ncase "$*" in *-r*) reboot -f;; *) poweroff -f;; esac\n'


def guest_image() -> Path:
    """A folder with `vmlinuz`, `initrd` and `disk.qcow2`, built now if it has to be."""
    target = CACHE / hashlib.sha256(Path(__file__).read_bytes()).hexdigest()[:16]
    if not target.is_dir():
        CACHE.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE) as folder:
            work = Path(folder)
            _build(work, work / "guest")
            (work / "guest").rename(target)
    return target


def _build(work: Path, out: Path) -> None:
    out.mkdir()
    kernel, agent = _unpacked_packages(work)
    shutil.copyfile(next((kernel / "boot").glob("vmlinuz-*")), out / "vmlinuz")
    _write_initrd(out / "initrd", kernel, agent / "usr/sbin/qemu-ga")
    raw = work / "disk.raw"
    with raw.open("wb") as disk:
        disk.truncate(DISK_MB << 20)
    _output("/sbin/mkfs.ext4", "-q", "-F", "-L", "data", str(raw))
    _output("qemu-img", "convert", "-f", "raw", "-O", "qcow2", str(raw), str(out / "disk.qcow2"))


def _unpacked_packages(work: Path) -> tuple[Path, Path]:
    depends = _output("apt-cache", "depends", "linux-image-cloud-amd64")
    kernel = re.search(r"Depends: (linux-image-\S+)", depends)
    assert kernel is not None, "apt knows no kernel for cloud machines: apt-get update"
    names = (kernel[1], "qemu-guest-agent")
    _output("apt-get", "-o", "APT::Sandbox::User=root", "download", *names, cwd=work)
    for name in names:
        (package,) = work.glob(f"{name}_*.deb")
        _output("dpkg-deb", "-x", str(package), str(work / name))
    return work / names[0], work / names[1]


def _write_initrd(target: Path, kernel: Path, agent: Path) -> None:
    archive = _Cpio(target)
    for folder in ("proc", "sys", "dev", "run", "tmp", "root", "data", "var/log", "var/tmp", "etc", "sbin"):
        archive.parents(f"{folder}/x")
    archive.node("dev/console", 5, 1)
    archive.node("dev/null", 1, 3)
    archive.file("init", _INIT.encode())
    busybox = shutil.which("busybox")
    assert busybox is not None
    archive.file("bin/busybox", Path(busybox).read_bytes())
    for applet in _output(busybox, "--list").split():
        if applet != "busybox":
            archive.link(f"bin/{applet}", "busybox")
    archive.file("sbin/shutdown", _SHUTDOWN.encode())
    archive.file("bin/qemu-ga", agent.read_bytes())
    for library in re.findall(r"(/\S+) \(0x", _output("ldd", str(agent))):
        archive.file(library.lstrip("/"), Path(library).read_bytes())
    modules = _modules_in_order(kernel)
    for module in modules:
        archive.file(f"lib/modules/{module.name}", module.read_bytes())
    archive.file("lib/modules/order", "".join(f"{module.name}\n" for module in modules).encode(), 0o644)
    archive.close()


def _modules_in_order(kernel: Path) -> list[Path]:
    """`_MODULES` after what each needs, which its own `depends=` says."""
    by_name = {path.stem.replace("-", "_"): path for path in kernel.rglob("*.ko")}
    order: list[Path] = []

    def add(name: str) -> None:
        path = by_name.get(name.replace("-", "_"))
        if path is None or path in order:
            return
        depends = re.search(rb"\0depends=([^\0]*)\0", b"\0" + path.read_bytes() + b"\0")
        for needed in depends[1].decode().split(",") if depends and depends[1] else []:
            add(needed)
        order.append(path)

    for name in _MODULES:
        add(name)
    return order


def _output(*command: str, cwd: Path | None = None) -> str:
    done = subprocess.run(command, capture_output=True, text=True, cwd=cwd, check=False)
    assert done.returncode == 0, f"{' '.join(command)}: {done.stderr}"
    return done.stdout


class _Cpio:
    """Writes an archive of the kind "newc", device nodes included, which takes no privilege."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("wb")
        self._inode = 1
        self._folders: set[str] = set()

    def file(self, name: str, content: bytes, mode: int = 0o755) -> None:
        self.parents(name)
        self._entry(name, stat.S_IFREG | mode, content)

    def link(self, name: str, target: str) -> None:
        self.parents(name)
        self._entry(name, stat.S_IFLNK | 0o777, target.encode())

    def node(self, name: str, major: int, minor: int) -> None:
        self.parents(name)
        self._entry(name, stat.S_IFCHR | 0o600, device=(major, minor))

    def parents(self, name: str) -> None:
        for folder in reversed(Path(name).parents):
            if str(folder) not in (".", "/", *self._folders):
                self._folders.add(str(folder))
                self._entry(str(folder), stat.S_IFDIR | 0o755)

    def close(self) -> None:
        self._entry("TRAILER!!!", 0)
        self._file.close()

    def _entry(self, name: str, mode: int, content: bytes = b"", device: tuple[int, int] = (0, 0)) -> None:
        encoded = name.encode() + b"\0"
        fields = (self._inode, mode, 0, 0, 1, 0, len(content), 0, 0, *device, len(encoded), 0)
        self._inode += 1
        for part in (b"070701" + b"".join(b"%08x" % field for field in fields) + encoded, content):
            self._file.write(part + b"\0" * (-len(part) % 4))
