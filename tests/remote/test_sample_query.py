"""An upload's query says the same on both sides."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from malbox_tui.model.errors import MalboxError
from malbox_tui.model.sample import SampleName
from malbox_tui.model.submission import SubmissionOptions
from malbox_tui.model.task import RequirementClass, RunOptions
from malbox_tui.remote.sample_query import parse_sample_query, sample_query

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
)
def test_what_is_written_is_read_back(
    name, origin, priority, timeout_s, enforce, flags, tags, arguments, memory, profile, plugins, asked, others
) -> None:
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
        plugins=tuple(plugins),
        plugin_options=tuple(asked[0]),
        owner=asked[1],
        unique=asked[2],
    )
    query = sample_query(SampleName(name, origin), options)
    assert query.isascii()
    assert parse_sample_query(query.encode()) == (SampleName(name, origin), options)


def test_what_is_the_default_is_not_written() -> None:
    assert sample_query(SampleName(b"a/\n\xff.exe"), SubmissionOptions()) == "name=a%2F%0A%FF.exe"


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
