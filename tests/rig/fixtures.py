"""The rig: real machines, for tests anywhere. It is started once, and each test finds its machines off."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from malbox_tui.model.machine import MachineSpec
from tests.rig.guest_image import guest_image
from tests.rig.host import GUESTS, SNAPSHOT, RigHost, rig_host


@pytest.fixture(scope="session")
def whole_rig() -> Iterator[RigHost]:
    """Of the whole run."""
    if os.getuid() != 0:
        pytest.skip("the rig needs root: its daemon is run as another user")
    with rig_host(guest_image()) as host:
        yield host


@pytest.fixture
def rig(whole_rig: RigHost) -> Iterator[RigHost]:
    """With machines that are off, and a daemon that works; the same afterwards."""
    yield whole_rig
    whole_rig.switch_off()


@pytest.fixture
def machines(rig: RigHost) -> tuple[MachineSpec, ...]:
    """All machines of the rig."""
    return specs(rig)


def specs(rig: RigHost) -> tuple[MachineSpec, ...]:
    """All its machines, as they are configured."""
    return tuple(
        MachineSpec(
            name=name,
            provider="libvirt",
            platform="linux",
            uri=rig.uri,
            snapshot=SNAPSHOT,
            channel="qga",
            disk_folder="/data",
            watch=("/tmp", "/data"),
        )
        for name in GUESTS
    )
