"""The contract suites of machines and guests on real ones."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from malbox_tui.model.machine import MachineSpec
from tests.contracts import test_guest_channel_contract, test_machine_provider_contract
from tests.rig.fleet import RigFleet
from tests.rig.host import RigHost

Contract = Callable[[RigFleet], Coroutine[Any, Any, None]]


def _contracts(module: ModuleType) -> list[Contract]:
    """Of a suite, those that real machines can be brought to: none is held down after its revert."""
    wrapped = [
        inspect.unwrap(test) for name, test in vars(module).items() if name.startswith("test_") and hasattr(test, "__wrapped__")
    ]
    return [test for test in wrapped if "hold_guest_down" not in inspect.getsource(test)]


CONTRACTS = _contracts(test_guest_channel_contract) + _contracts(test_machine_provider_contract)


@pytest.mark.parametrize("contract", CONTRACTS, ids=[contract.__name__ for contract in CONTRACTS])
def test_real_machines_keep(rig: RigHost, machines: Sequence[MachineSpec], tmp_path: Path, contract: Contract) -> None:
    asyncio.run(_kept(contract, RigFleet(rig, machines, tmp_path)))


async def _kept(contract: Contract, fleet: RigFleet) -> None:
    await fleet.provider.open()
    try:
        await contract(fleet)
    finally:
        for machine in (fleet.machine, fleet.other):
            await fleet.provider.stop(machine)
        await fleet.provider.close()
