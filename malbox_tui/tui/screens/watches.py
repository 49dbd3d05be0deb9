"""The watched folders of the engine, live, and the dialog that adds one. They lie on the engine's host, wherever the console is."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.screen import Screen

from malbox_tui.model.watching import WatchSpec, WatchView
from malbox_tui.tui import keys
from malbox_tui.tui.live import LivePicture
from malbox_tui.tui.moment import Moment
from malbox_tui.tui.screens.form import Answered, Field, Form, Kind
from malbox_tui.tui.text import plain, shown
from malbox_tui.tui.watch_lines import watch_line, watches_header
from malbox_tui.tui.widgets.key_bar import KeyBar
from malbox_tui.tui.widgets.rows import Rows

FIELDS: tuple[Field, ...] = (
    Field("path", "folder", "the absolute path: /srv/incoming"),
    Field("recursive", "below", "yes: the folders in it, too", Kind.YES),
    Field("afterwards", "afterwards", "leave, move (to done/ and refused/) or delete (what is stored)"),
    Field("patterns", "names", "*.exe, *.dll; empty: all", Kind.LIST),
    Field("settle_s", "settling", "seconds for which a file must have stood still", Kind.SECONDS),
    Field("profile", "profile", "its name; empty: the one for the kind of each file", Kind.OPTIONAL),
    Field("priority", "priority", "higher goes first", Kind.WHOLE),
    Field("again", "again", "yes: analyse what was analysed before once more", Kind.YES),
    Field("owner", "owner", "whom the samples belong to"),
    Field("platform", "platform", "linux or windows: run them in a machine of it", Kind.OPTIONAL),
    Field("arch", "arch", "x64, x86 or arm64, of the machine", Kind.OPTIONAL),
    Field("tags", "tags", "those of the machine", Kind.LIST),
    Field("machine", "machine", "this one and no other", Kind.OPTIONAL),
    Field("archive", "archives", "members, or whole"),
)
NEW = WatchSpec(path="")


class WatchForm(Form[WatchSpec]):
    """Asks for a folder of `host`, where the engine runs; `here` is where the console is."""

    def __init__(self, host: str, here: str, send: Callable[[WatchSpec, Answered], None]) -> None:
        title = plain("Watch a folder of ", "bold")
        title.append_text(shown(host, "bold"))
        note = "" if host == here else f"The folder is one of {host}, where the engine runs, and none of {here}."
        super().__init__(title, FIELDS, NEW, NEW, send, note)


class WatchesScreen(Screen[None]):
    """All of them with what came of their files."""

    AUTO_FOCUS = "#watches"
    BINDINGS: ClassVar[list[BindingType]] = keys.bindings(keys.WATCHES_SCREEN)

    def __init__(self, picture: LivePicture, moment: Callable[[], Moment], host: str) -> None:
        super().__init__()
        self._picture = picture
        self._host = host
        self.rows: Rows[WatchView] = Rows(
            lambda view, width: watch_line(view, moment(), width),
            title=lambda width: watches_header(moment(), width),
            id="watches",
        )

    def compose(self) -> ComposeResult:
        """See `Screen`."""
        yield self.rows
        yield KeyBar()

    async def on_mount(self) -> None:
        """Show them."""
        title = plain("Watched folders of ")
        title.append_text(shown(self._host))
        self.rows.border_title = title
        self.rows.nothing = "No folder is watched."
        await self.reread()

    async def reread(self) -> None:
        """Show them as they were told last."""
        overview, current = self._picture.overview, self.rows.current
        self.rows.show(() if overview is None else overview.watches)
        if current is not None:
            self.rows.keep_on(lambda view: view.path == current.path)

    def tick(self) -> None:
        """Nothing moves with time alone."""
