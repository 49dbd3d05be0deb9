"""Drops and their accounts, for the pictures."""

from __future__ import annotations

from dataclasses import replace

from malbox_tui.model.intake import Fate, IntakeHead, IntakeLine, IntakeView, Way
from malbox_tui.model.overview import ProfileView
from malbox_tui.model.report import Identification
from malbox_tui.model.sample import SampleName
from malbox_tui.model.submission import Accepted, Refusal, Refused, SubmissionOptions
from malbox_tui.model.survey import Survey
from malbox_tui.model.task import RequirementClass, TaskState
from malbox_tui.ports import Dropped
from malbox_tui.tui.app import MalboxApp
from malbox_tui.tui.intake_run import IntakeRun
from malbox_tui.tui.screens.preview import Preview
from tests.tui.scripted import NOW, ScriptedClient, ScriptedIdentifier, ScriptedIntake, record, sha256_of, worker

LINK = Refusal("link", "It is a link to ../../etc/shadow; links are not followed.")
EMPTY = Refusal("empty", "It is empty.")
ARCHIVE = sha256_of(77)


def _survey() -> Survey:
    return Survey(
        files=1284,
        size_bytes=318_000_000,
        kinds={
            "Windows program": 861,
            "PDF": 214,
            "Office or Outlook": 112,
            "text": 58,
            "zip archive": 31,
            "script": 5,
            "other": 3,
        },
        archives=31,
        opens_archives=True,
        sums=tuple(sha256_of(number) for number in range(420, 432)),
        twins=19,
        refused=4,
        refusals=(
            Refused(SampleName(b"latest"), LINK),
            Refused(SampleName(b"r\xe9sum\xe9 \x1b[31m.pdf"), EMPTY),
            Refused(SampleName("\u202egpj.exe".encode()), Refusal("fifo", "It is a named pipe (FIFO), not a file.")),
            Refused(SampleName(b"d"), EMPTY),
        ),
        done=True,
    )


PROGRAM = Identification("pe", platform="windows", arch="x64", tags=("x64", "dotnet"))
PACKED = Identification("pe", platform="windows", arch="x86", tags=("packed",))
LETTER = Identification("ooxml", tags=("office", "macros"))
PROFILES = (
    ProfileView(name="programs", about="for pe; all plugins; 300 s", kinds=("pe", "elf")),
    ProfileView(name="documents", about="for ole, ooxml; file-type, strings; 120 s", kinds=("ole", "ooxml")),
)


def _preview(app: MalboxApp, dropped: Dropped, survey: Survey, identifier: ScriptedIdentifier | None = None) -> None:
    intake = ScriptedIntake()
    intake.surveyed = survey
    options = SubmissionOptions(requires=RequirementClass("dynamic", "windows"), profile="office" if identifier is None else "")
    around = replace(app._around, intake=intake, open_identifier=None if identifier is None else identifier.opened)
    app.push_screen(Preview(dropped, options, around, app.moment))


def dropped(app: MalboxApp) -> None:
    """A folder and two files were dropped, the first of which are identified."""
    client = app._around.client
    assert isinstance(client, ScriptedClient)
    client._engine["profiles"] = PROFILES
    identifier = ScriptedIdentifier(*[PROGRAM] * 27, *[PACKED] * 12, *[LETTER] * 6, Identification("pdf"), None)
    paths = (b"/srv/in/mail", b"/srv/in/a b.exe", *(b"/srv/in/%d" % number for number in range(60)))
    _preview(app, Dropped(paths), _survey(), identifier)


def partly_missing(app: MalboxApp) -> None:
    """Of what was dropped some is not here."""
    missing = (b"/home/ana/Downloads/invoice.doc", b"/home/ana/x")
    problem = (
        "There is no /home/ana/Downloads/invoice.doc on sandbox-1, nor 1 more of what was named. If it is on your own machine, copy it "
        "here first: scp FILE sandbox-1:"
    )
    gone = tuple(Refused(SampleName(path.rpartition(b"/")[2]), Refusal("missing", "There is no such file.")) for path in missing)
    seen = replace(
        _survey(), files=1, size_bytes=48_200, kinds={"PDF": 1}, archives=0, sums=(), twins=0, refused=2, refusals=gone
    )
    _preview(app, Dropped((b"/srv/in/a.pdf",), problem, missing), seen)


def adding(app: MalboxApp) -> None:
    """Fifty thousand files are being added, at a clock that was turned by 20 s."""
    times = iter([0.0])
    run = IntakeRun("/srv/in", 50_000, lambda: next(times, 20.0))
    for number in range(17_423):
        run.note(Accepted(SampleName(b"x"), ARCHIVE, 1, number))
    for _ in range(12):
        run.note(Refused(SampleName(b"x"), LINK))
    app.adding.runs.append(run)


def _view(
    number: int, way: Way, title: str, ago_s: float, actor: str = "ana", counts: tuple[int, int, int, int] = (0, 0, 0, 0)
) -> IntakeView:
    head = IntakeHead(key=str(number), began_at=NOW - ago_s, actor=actor, way=way, title=title)
    accepted, duplicates, opened, refused = counts
    return IntakeView(
        number=number, head=head, latest_at=NOW, accepted=accepted, duplicates=duplicates, opened=opened, refused=refused
    )


def _line(number: int, fate: Fate, name: bytes, *, member: bool = False, reason: str = "") -> IntakeLine:
    has_task = fate in (Fate.ACCEPTED, Fate.DUPLICATE)
    return IntakeLine(
        fate=fate,
        name=SampleName(name, b"/srv/in/" + name, ARCHIVE if member else ""),
        at=NOW,
        number=number,
        sha256=sha256_of(number) if has_task else "",
        size_bytes=number * 31_337 if has_task else None,
        task_id=400 + number if has_task else None,
        reason=reason,
    )


def accounts() -> ScriptedClient:
    """An engine that things came into."""
    client = ScriptedClient([record(430), record(431, TaskState.RUNNING)], [worker(1, 431), worker(2)])
    lines = [
        _line(1, Fate.ACCEPTED, b"invoice_2211.doc"),
        _line(2, Fate.ACCEPTED, "r\u00e9sum\u00e9.pdf".encode()),
        _line(3, Fate.DUPLICATE, b"setup (1).exe"),
        _line(4, Fate.ACCEPTED, b"payload.exe", member=True),
        _line(5, Fate.DUPLICATE, b"readme.txt", member=True),
        _line(6, Fate.REFUSED, b"../../etc/cron.d/x", member=True, reason="It is a link to /etc/cron.d; links are not followed."),
        _line(7, Fate.OPENED, b"samples.zip", reason="zip archive: 2 taken, 1 refused"),
        _line(8, Fate.REFUSED, b"r\xe9sum\xe9 \x1b[31mred\n.exe", reason="It is empty."),
        _line(
            9,
            Fate.REFUSED,
            "\u202egpj.exe".encode(),
            reason="It has 5368709120 bytes; intake.max_sample_bytes allows 1073741824.",
        ),
        _line(10, Fate.ACCEPTED, "样本".encode() * 40),
    ]
    client.accounts = {
        _view(12, Way.DROP, "/srv/in/mail and 2 more", 40, counts=(4, 2, 1, 3)): lines,
        _view(11, Way.WATCH, "/srv/incoming", 340, "watch:/srv/incoming", (1280, 41, 12, 9)): (),
        _view(10, Way.API, "", 900, "feed", (1, 0, 0, 0)): (),
        _view(9, Way.ANALYZE, "samples \\x1b[31m", 4000, counts=(0, 12, 0, 0)): (),
        _view(8, Way.SUBMIT, "/mnt/usb", 9000, "ben", (50_000, 0, 0, 17)): (),
    }
    return client
