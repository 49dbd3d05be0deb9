"""What the first files of a drop are, in words: classes, tags, the profile that suits, and what can't be said."""

from __future__ import annotations

from malbox_tui.intake.confined.unpacking.signatures import Form
from malbox_tui.model.kinds import KINDS, OPENED_KINDS
from malbox_tui.model.overview import ProfileView
from malbox_tui.model.report import Identification
from malbox_tui.tui.identified import SHOWN_CHARACTERS, Identified, Suggested, identified_rows, suggested

PROGRAM = Identification("pe", platform="windows", arch="x64", tags=("x64", "dotnet"))
LETTER = Identification("ooxml", tags=("office",))
ZIP = Identification("zip")
PROFILES = (
    ProfileView(name="programs", about="", kinds=("pe", "elf")),
    ProfileView(name="documents", about="", kinds=("ooxml",)),
    ProfileView(name="all", about="", is_default=True),
)


def rows(*found: Identification | None, files: int = 1, done: bool = True, opens: bool = True) -> dict[str, str]:
    identified = Identified(found, PROFILES, done=done)
    return dict(identified_rows(identified, files, opens_archives=opens))


def test_classes_and_tags_are_counted_the_most_first() -> None:
    said = rows(LETTER, PROGRAM, PROGRAM, None, files=4)
    assert said["identified"] == "2 pe windows x64, 1 ooxml, 1 not known"
    assert said["tags"] == "dotnet, x64, office"


def test_it_is_said_how_far_it_has_come_and_how_many_were_looked_into() -> None:
    assert rows(done=False) == {"identified": "they are looked into…"}
    assert rows(PROGRAM, files=9, done=False)["identified"] == "1 pe windows x64 so far"
    assert rows(PROGRAM, PROGRAM, files=9)["first 2"] == "2 pe windows x64"
    assert rows(files=0) == {"identified": "nothing"}


def test_many_classes_and_tags_are_cut_and_counted() -> None:
    said = rows(*(Identification(f"k{number}", tags=(f"t{number}",)) for number in range(9)), files=9)
    assert said["identified"] == "1 k0, 1 k1, 1 k2, 1 k3, 5 of other kinds"
    assert said["tags"] == "t0, t1, t2, t3, t4, t5, t6, t7 …"


def test_the_profile_of_most_is_suggested_with_its_reason_and_the_others_are_named() -> None:
    assert rows(PROGRAM)["suggested"] == "The profile programs is for kind pe."
    said = rows(LETTER, PROGRAM, PROGRAM, Identification("pdf"), None, files=5)["suggested"]
    assert said == "The profile programs is for kind pe (2 of 4; all 1, documents 1)."


def test_in_little_room_each_has_a_line_as_long_as_it_can_be_shortened() -> None:
    found = (PROGRAM, PROGRAM, LETTER, Identification("elf", "x", "linux", "arm64", tags=("packed",)))
    said = identified_rows(Identified(found, PROFILES, done=True), 9, opens_archives=True, cells=43)
    assert dict(said) == {
        "first 4": "2 pe windows x64, 2 of other kinds",
        "tags": "dotnet, x64, office, packed",
        "suggested": "The profile programs is for kind pe.",
    }


def test_where_no_profile_suits_that_is_said_and_none_is_taken_over() -> None:
    none = Identified((PROGRAM,), PROFILES[1:2], done=True)
    assert suggested(none, opens_archives=True) == Suggested(
        "", "No profile is for kind pe; there is no default profile.", (("", 1),)
    )
    assert dict(identified_rows(none, 1, opens_archives=True))["suggested"].endswith("no default profile.")


def test_without_profiles_or_anything_known_nothing_is_suggested() -> None:
    assert suggested(Identified((PROGRAM,), done=True), opens_archives=True) is None
    assert "suggested" not in rows(None)


def test_an_archive_that_is_opened_has_no_profile_and_one_that_stays_closed_has() -> None:
    assert "suggested" not in rows(ZIP)
    assert rows(ZIP, opens=False)["suggested"].startswith("No profile is for kind zip; the default is all.")


def test_what_can_not_be_identified_is_said_with_the_reason() -> None:
    said = dict(identified_rows(Identified(problem="There is no bubblewrap."), 3, opens_archives=True))
    assert said == {"identified": "not before they are added: There is no bubblewrap."}


def test_words_of_a_plugin_are_text_of_bounded_length() -> None:
    hostile = Identification("\x1b[31m\u202e" + "k" * 5000, platform="a\nb", tags=("[b]\x00",))
    for said in rows(hostile).values():
        assert said.isprintable()
        assert len(said) < 6 * SHOWN_CHARACTERS + 100


def test_the_kinds_that_are_opened_are_those_that_are_unpacked() -> None:
    assert OPENED_KINDS <= KINDS
    assert {*OPENED_KINDS} == {form.value for form in Form} - {"eml", "msg"} | {"email"}
