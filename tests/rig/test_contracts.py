"""The contract suites of machines and guests on real ones: two contracts at a time, each on a machine of its own."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from queue import SimpleQueue
from types import ModuleType
from typing import Any

import pytest

from malbox_tui.model.machine import MachineSpec
from tests.contracts import test_guest_channel_contract, test_machine_provider_contract
from tests.rig.fixtures import specs
from tests.rig.fleet import RigFleet
from tests.rig.host import RigHost

REBOOT_S = 30.0
"""How long a guest that starts anew may be silent."""
FLEETING_S = 1.0
"""The same, for one that never answers again."""

Contract = Callable[[RigFleet], Coroutine[Any, Any, None]]


def _contracts(module: ModuleType) -> list[Contract]:
    return [
        inspect.unwrap(test) for name, test in vars(module).items() if name.startswith("test_") and hasattr(test, "__wrapped__")
    ]


CONTRACTS = _contracts(test_guest_channel_contract) + _contracts(test_machine_provider_contract)
FOR_TWO_MACHINES = frozenset(contract for contract in CONTRACTS if "fleet.other" in inspect.getsource(contract))
LOSE_THEIR_GUEST = frozenset(contract for contract in CONTRACTS if "fleet.lose_guest" in inspect.getsource(contract))


@pytest.fixture(scope="module")
def outcomes(
    whole_rig: RigHost, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> dict[Contract, Future[None]]:
    """What became of each contract that is to be tested."""
    wanted = [contract for contract in CONTRACTS if any(item.name == _name(contract) for item in request.session.items)]
    folder = tmp_path_factory.mktemp("contracts")
    idle = SimpleQueue[Sequence[MachineSpec]]()
    for pair in (specs(whole_rig), specs(whole_rig)[::-1]):
        idle.put(pair)

    def keep(contract: Contract) -> None:
        pair = idle.get()
        try:
            silence_s = FLEETING_S if contract in LOSE_THEIR_GUEST else REBOOT_S
            asyncio.run(_kept(contract, RigFleet(whole_rig, pair, folder, silence_s)))
        finally:
            idle.put(pair)

    kept: dict[Contract, Future[None]] = {}
    for at_once in (2, 1):
        with ThreadPoolExecutor(at_once) as lanes:
            kept |= {one: lanes.submit(keep, one) for one in wanted if (one in FOR_TWO_MACHINES) is (at_once == 1)}
    return kept


def _name(contract: Contract) -> str:
    return f"{test_real_machines_keep.__name__}[{contract.__name__}]"


@pytest.mark.parametrize("contract", CONTRACTS, ids=[contract.__name__ for contract in CONTRACTS])
def test_real_machines_keep(rig: RigHost, outcomes: dict[Contract, Future[None]], contract: Contract) -> None:
    outcomes[contract].result()


async def _kept(contract: Contract, fleet: RigFleet) -> None:
    await fleet.provider.open()
    try:
        await contract(fleet)
    finally:
        await fleet.provider.stop(fleet.machine)
        await fleet.provider.close()
