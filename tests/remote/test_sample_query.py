"""An upload's query says the same on both sides."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from malbox_tui.model.errors import MalboxError
from malbox_tui.model.intake import IntakeLabel, Way
from malbox_tui.model.sample import SampleName
from malbox_tui.model.submission import Offer, OpenedArchive, Refusal, SubmissionOptions
from malbox_tui.model.task import RequirementClass, RunOptions
from malbox_tui.remote.sample_query import parse_sample_query, sample_query

sums = st.just("") | st.text("0123456789abcdef", min_size=64, max_size=64)
words = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)


@given(
    name=st.binary(min_size=1, max_size=50),
    origin=st.binary(max_size=50),
    priority=st.integers(-(2**31), 2**31 - 1),
    timeout_s=st.none() | st.floats(allow_nan=False, allow_infinity=False),
    enforce=st.none() | st.booleans(),
    flags=st.tuples(st.booleans(), st.booleans()),
    tags=st.lists(words, max_size=3),
    arguments=st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=20), max_size=3),
    memory=st.booleans(),
    profile=st.just("") | words,
    plugins=st.lists(words, max_size=3),
    asked=st.tuples(st.lists(words.map(lambda word: f"{word}=a b=&\xfc"), max_size=3), st.just("") | words, st.booleans()),
    others=st.tuples(st.none() | words, st.none() | words, st.none() | words),
    label=st.builds(IntakeLabel, st.sampled_from(Way), st.just("") | words, st.just("") | words),
    archive=sums,
    refusal=st.none() | st.builds(Refusal, words, words),
    opened=st.none() | st.builds(OpenedArchive, sha256=sums, size_bytes=st.integers(0, 2**53 - 1), words=words),
)
def test_what_is_written_is_read_back(
    name,
    origin,
    priority,
    timeout_s,
    enforce,
    flags,
    tags,
    arguments,
    memory,
    profile,
    plugins,
    asked,
    others,
    label,
    archive,
    refusal,
    opened,
) -> None:
    offer = Offer(SampleName(name, origin, archive), refusal=refusal, opened=None if refusal else opened)
    platform, arch, pin = others
    options = SubmissionOptions(
        priority=priority,
        timeout_s=timeout_s,
        enforce_timeout=enforce,
        again=flags[0],
        hold=flags[1],
        requires=RequirementClass("dynamic", platform, arch, tuple(tags), pin),
        run=RunOptions(tuple(arguments), memory),
        profile=profile,
        intake=label,
        plugins=tuple(plugins),
        plugin_options=tuple(asked[0]),
        owner=asked[1],
        unique=asked[2],
    )
    query = sample_query(offer, options)
    assert query.isascii()
    assert parse_sample_query(query.encode()) == (offer, options)


@pytest.mark.parametrize("stays_static", [False, True])
def test_that_a_task_is_to_stay_static_is_said_by_its_type(stays_static: bool) -> None:
    options = SubmissionOptions(stays_static=stays_static)
    query = sample_query(Offer(SampleName(b"a")), options)
    assert query == ("name=a&task_type=static" if stays_static else "name=a")
    assert parse_sample_query(query.encode())[1] == options


def test_what_is_the_default_is_not_written() -> None:
    assert sample_query(Offer(SampleName(b"a/\n\xff.exe")), SubmissionOptions()) == "name=a%2F%0A%FF.exe"


def test_of_what_is_too_long_the_end_is_told() -> None:
    long = Offer(SampleName(b"x" * 5000 + b".exe", b"/" + b"y" * 9000), refusal=Refusal("odd", "It is \udcff " + "odd" * 5000))
    told, _ = parse_sample_query(sample_query(long, SubmissionOptions()).encode())
    assert told.name.name.endswith(b"x.exe")
    assert told.refusal is not None
    assert told.refusal.reason.startswith("It is ? odd")


@pytest.mark.parametrize(
    "query",
    [
        b"",
        b"name=",
        b"origin=x",
        b"name=a&name=b",
        b"name=a&priority=high",
        b"name=a&priority=1&priority=2",
        b"name=a&colour=red",
        b"name=a&tag=%ff",
        b"n%ffame=a",
        b"name=a&platform=",
        b"name=" + b"a" * 5000,
        b"name=a&priority=99999999999999999999999",
    ],
)
def test_a_malformed_query_is_refused(query: bytes) -> None:
    with pytest.raises(MalboxError):
        parse_sample_query(query)
