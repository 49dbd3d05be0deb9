"""`malbox-tui machines discover`: the machines of a hypervisor as sections to be put into the configuration."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import tomli_w
from cyclopts import Parameter

from malbox_tui.cli.options import FLAG, GlobalOptions
from malbox_tui.cli.output import write_line, write_record
from malbox_tui.cli.text import counted, sentence

if TYPE_CHECKING:
    from malbox_tui.runtime.machine_discovery import Proposal


def discover(
    uri: Annotated[str, Parameter(name="URI")],
    /,
    *,
    json: Annotated[bool, FLAG] = False,
    options: GlobalOptions | None = None,
) -> int:
    """Propose a section for each machine that the libvirt at URI has, such as `qemu:///system` or `qemu+ssh://user@host/system`.

    Nothing is changed there, and nothing is written but what is printed. What a machine lacks stands above its section.
    Exit code 0: all is told; 2: the hypervisor can't be asked.

    Parameters
    ----------
    uri
        Where libvirt is.
    json
        Print one JSON object a machine.
    """
    from malbox_tui.runtime.machine_discovery import proposals

    settings = (options or GlobalOptions()).source.read().settings
    found = proposals(uri, [machine.spec() for machine in settings.machines])
    if json:
        for proposal in found:
            write_record(_record(proposal))
        return 0
    configured = sum(proposal.configured_as is not None for proposal in found)
    known = f", {configured} of them configured already" if configured else ""
    write_line(f"# {sentence(uri)}: {counted(len(found), 'machine')}{known}.")
    for proposal in found:
        write_line("")
        for line in _lines(proposal):
            write_line(line)
    return 0


def _lines(proposal: Proposal) -> Iterator[str]:
    if proposal.configured_as is not None:
        yield f"# {sentence(proposal.found.domain)} is configured already, as {sentence(proposal.configured_as)}."
        return
    for remark in proposal.remarks:
        yield f"# {sentence(remark)}"
    yield "[[machines]]"
    yield tomli_w.dumps(proposal.table).rstrip("\n")
    for key, example in (("snapshot", "clean"), ("platform", "linux")):
        if key not in proposal.table:
            yield f'#{key} = "{example}"'


def _record(proposal: Proposal) -> dict[str, Any]:
    found = proposal.found
    return {
        "record": "proposal",
        "machine": dict(proposal.table),
        "configured_as": proposal.configured_as,
        "remarks": [sentence(remark) for remark in proposal.remarks],
        "domain": found.domain,
        "state": found.power.value,
        "memory_mb": found.memory_mb,
        "vcpus": found.vcpus,
        "macs": list(found.macs),
        "snapshots": [snapshot.name for snapshot in found.snapshots],
    }
