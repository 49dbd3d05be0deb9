"""One hypervisor: a connection for control and events, and one for each kind of call to each machine in use."""

from __future__ import annotations

from malbox_tui.machinery.crew import Crew
from malbox_tui.machinery.line import Kind
from malbox_tui.machinery.link import Link
from malbox_tui.machinery.place import is_test
from malbox_tui.machinery.watch import Watch


class Hypervisor:
    """What is at `uri`. libvirt's mock keeps its state in the connection, so all share one there, where no daemon
    can be lost."""

    def __init__(self, uri: str, crew: Crew) -> None:
        self._uri = uri
        self._crew = crew
        self.watch = Watch()
        self.control = Link(uri, crew, on_lifecycle=self.watch.hear, on_change=self.watch.tell_all_to_ask)
        self._links: dict[tuple[str, Kind], Link] = {}

    def link(self, domain: str, kind: Kind) -> Link:
        """The connection for one kind of call to one machine."""
        if is_test(self._uri):
            return self.control
        if (domain, kind) not in self._links:
            self._links[domain, kind] = Link(self._uri, self._crew, closes_by_itself=True)
        return self._links[domain, kind]

    def close(self) -> None:
        """Let go of all connections, in the background."""
        for link in (self.control, *self._links.values()):
            link.close()
