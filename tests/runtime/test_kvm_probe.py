"""KVM is said to work only where a guest was seen to run with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from malbox_tui.runtime import kvm_probe
from malbox_tui.runtime.kvm_probe import KvmProbe, probe_kvm, runs_a_guest

ABLE = "flags\t\t: fpu vme sse2 vmx\n"


def probe(folder: Path, flags: str = ABLE) -> KvmProbe:
    (folder / "kvm").touch()
    (folder / "cpuinfo").write_text(flags)
    return probe_kvm(folder / "kvm", folder / "cpuinfo")


@pytest.fixture(autouse=True)
def of_a_pc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kvm_probe.platform, "machine", lambda: "x86_64")


def test_without_the_device_guests_are_emulated(tmp_path: Path) -> None:
    found = probe_kvm(tmp_path / "kvm", tmp_path / "cpuinfo")
    assert found.works is False
    assert "guests are emulated without it" in found.remedy


def test_a_device_on_a_processor_without_virtualization_is_not_believed(tmp_path: Path) -> None:
    found = probe(tmp_path, "flags\t\t: fpu vme sse2\n")
    assert (found.works, "no hardware virtualization" in found.detail) == (False, True)


def test_a_device_that_qemu_runs_nothing_with_does_not_work_and_the_reason_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kvm_probe, "runs_a_guest", lambda accelerator, cpu: "failed to set MSR 0x10a to 0x69")
    found = probe(tmp_path)
    assert (found.works, "failed to set MSR" in found.detail) == (False, True)


def test_a_device_that_a_guest_ran_with_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(kvm_probe, "runs_a_guest", lambda accelerator, cpu: asked.append((accelerator, cpu)))
    assert probe(tmp_path).works is True
    assert asked == [("kvm", "host")]


def test_without_qemu_nobody_knows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    found = probe(tmp_path)
    assert found.works is None
    assert found.remedy


@pytest.mark.needs("qemu")
def test_a_guest_of_nine_bytes_runs_emulated() -> None:
    assert runs_a_guest("tcg", "qemu64") is None


@pytest.mark.needs("qemu")
def test_what_qemu_says_against_it_is_told_in_one_line() -> None:
    problem = runs_a_guest("tcg", "no-such-processor")
    assert problem is not None
    assert "no-such-processor" in problem
    assert "\n" not in problem
