"""What an operator should know of a machine as it is built."""

from __future__ import annotations

from malbox_tui.machinery.domain_xml import DomainShape


def warnings_of(shape: DomainShape) -> tuple[str, ...]:
    """A sentence for each thing that makes a machine less isolated, or less able, than it looks."""
    found = []
    for card in shape.cards:
        if card.kind == "user":
            found.append(
                f"Its network card {card.mac} is of type 'user': samples reach what listens on this host's loopback. "
                "Use an isolated network instead."
            )
        if card.is_offloaded and shape.kind in ("kvm", "qemu"):
            found.append(
                f"The traffic of its network card {card.mac} may pass by the recording (vhost). "
                "Write <driver name='qemu'/> into the <interface> and take the snapshot again."
            )
    if shape.has_shared_folders:
        found.append("It has a <filesystem>: samples reach that folder of the host. Remove it and take the snapshot again.")
    if shape.on_poweroff not in ("destroy", "restart"):
        found.append(
            f"Its <on_poweroff> is '{shape.on_poweroff}': a sample that switches it off is not noticed. Write 'destroy' there."
        )
    return tuple(found)
