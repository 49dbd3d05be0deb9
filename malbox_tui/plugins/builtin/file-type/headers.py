"""The headers of executables, read with bounds: which platform and architecture a file is for.

Sources: Microsoft's "PE Format"; the System V ABI and its supplements (ELF); Apple's mach-o/loader.h and mach-o/fat.h.
"""

import struct
from dataclasses import dataclass
from pathlib import Path

PE_MACHINES = {
    0x014C: "x86",
    0x8664: "x64",
    0x01C0: "arm",
    0x01C2: "arm",
    0x01C4: "arm",
    0xAA64: "arm64",
    0x0200: "ia64",
    0x5032: "riscv32",
    0x5064: "riscv64",
    0x6264: "loongarch64",
}
PE_EFI_SUBSYSTEMS = (10, 11, 12, 13)
PE_IS_DLL = 0x2000
ELF_MACHINES = {
    2: "sparc",
    3: "x86",
    4: "m68k",
    8: "mips",
    15: "parisc",
    20: "ppc",
    21: "ppc64",
    22: "s390x",
    40: "arm",
    42: "sh",
    43: "sparc64",
    50: "ia64",
    62: "x64",
    183: "arm64",
    243: "riscv",
    247: "bpf",
    258: "loongarch64",
}
ELF_PLATFORMS = {0: "linux", 2: "netbsd", 3: "linux", 6: "solaris", 9: "freebsd", 12: "openbsd"}
"""EI_OSABI; 0 is System V, which nearly always means Linux."""
ELF_TYPES = {1: "object", 2: "executable", 3: "shared object or position-independent executable", 4: "core dump"}
MACHO_CPUS = {7: "x86", 0x01000007: "x64", 12: "arm", 0x0100000C: "arm64", 18: "ppc", 0x01000012: "ppc64"}
MACHO_MAGICS = {
    b"\xfe\xed\xfa\xce": ">",
    b"\xfe\xed\xfa\xcf": ">",
    b"\xce\xfa\xed\xfe": "<",
    b"\xcf\xfa\xed\xfe": "<",
}
FAT_MAGIC = b"\xca\xfe\xba\xbe"
MOST_FAT_ARCHITECTURES = 30
"""A Java class begins with the same magic; where a fat binary counts architectures it has its version, 45 or more."""


@dataclass(frozen=True)
class Header:
    """What an executable's header says; `damage` is a sentence when it is not what it should be."""

    kind: str
    platform: str | None
    arch: str | None
    summary: str
    damage: str = ""


def read_header(path: Path) -> Header | None:
    """The header of a PE, ELF or Mach-O file; None for anything else."""
    with path.open("rb") as file:
        start = file.read(4096)
        if start[:4] == b"\x7fELF":
            return _elf(start)
        if start[:4] in MACHO_MAGICS:
            return _macho(start)
        if start[:4] == FAT_MAGIC:
            return _fat(start)
        if start[:2] in (b"MZ", b"ZM") and len(start) >= 0x40:
            (offset,) = struct.unpack_from("<I", start, 0x3C)
            file.seek(0, 2)
            if offset + 24 > file.tell():
                return None
            file.seek(offset)
            return _pe(file.read(24 + 0x46))
    return None


def _pe(header: bytes) -> Header | None:
    if header[:4] != b"PE\0\0" or len(header) < 24:
        return None
    machine, _sections, _time, _symbols, _count, optional_bytes, flags = struct.unpack_from("<HHIIIHH", header, 4)
    arch = PE_MACHINES.get(machine)
    subsystem = struct.unpack_from("<H", header, 24 + 0x44)[0] if optional_bytes >= 0x46 and len(header) >= 24 + 0x46 else None
    form = "DLL" if flags & PE_IS_DLL else "program"
    if subsystem == 1 and not flags & PE_IS_DLL:
        form = "driver"
    platform = None if subsystem in PE_EFI_SUBSYSTEMS else "windows"
    damage = "" if arch else f"The PE header names an unknown machine, {machine:#06x}."
    return Header("pe", platform, arch, f"PE {form} for {platform or 'EFI'}, {arch or 'unknown machine'}", damage)


def _elf(header: bytes) -> Header:
    if len(header) < 20 or header[4] not in (1, 2) or header[5] not in (1, 2):
        return Header("elf", "linux", None, "ELF with a damaged header", "The ELF header is cut off or damaged.")
    bits, order = (32 if header[4] == 1 else 64), ("<" if header[5] == 1 else ">")
    type_, machine = struct.unpack_from(f"{order}HH", header, 16)
    arch = ELF_MACHINES.get(machine)
    if arch == "riscv":
        arch = f"riscv{bits}"
    platform = ELF_PLATFORMS.get(header[7])
    summary = f"ELF {ELF_TYPES.get(type_, 'file')}, {bits}-bit, {arch or f'machine {machine}'}"
    return Header("elf", platform, arch, summary, "" if arch else f"The ELF header names an unknown machine, {machine}.")


def _macho(header: bytes) -> Header:
    if len(header) < 8:
        return Header("macho", "macos", None, "Mach-O with a damaged header", "The Mach-O header is cut off.")
    (cpu,) = struct.unpack_from(f"{MACHO_MAGICS[header[:4]]}I", header, 4)
    arch = MACHO_CPUS.get(cpu)
    return Header("macho", "macos", arch, f"Mach-O, {arch or f'CPU {cpu:#x}'}")


def _fat(header: bytes) -> Header | None:
    if len(header) < 8:
        return None
    (count,) = struct.unpack_from(">I", header, 4)
    if not 0 < count <= MOST_FAT_ARCHITECTURES or len(header) < 8 + 20 * count:
        return None
    cpus = [MACHO_CPUS.get(struct.unpack_from(">I", header, 8 + 20 * index)[0]) for index in range(count)]
    known = [cpu for cpu in cpus if cpu]
    return Header("macho", "macos", known[0] if known else None, f"Mach-O for {', '.join(known) or 'unknown CPUs'}")
