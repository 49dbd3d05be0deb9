"""What the engine keeps of a report beside its verdict: which indicators and techniques it names, whatever its size."""

from __future__ import annotations

from pathlib import Path

import pytest

from malbox_tui.model.report import Indicator, Technique
from malbox_tui.model.verdict import named_in
from malbox_tui.plugins.replies import WHOLLY_CHECKED_REPORT_BYTES
from tests.confine.rig import rig, write_plugin

pytestmark = pytest.mark.slow

NAMES = """
    report = malbox.ReportBuilder("subject", "1.2.3")
    for value in ("http://a.example/", "http://a.example/", "http://b.example/"):
        report.indicator(malbox.Indicator("url", value))
    report.ttp(malbox.Ttp("T1055", "Process Injection", "twice"))
    ctx.results().push(report.build())
"""

LARGE = f"""
    report = malbox.ReportBuilder("subject", "1.2.3").verdict(malbox.Classification.Malicious)
    report.indicator(malbox.Indicator("url", "x" * {WHOLLY_CHECKED_REPORT_BYTES}))
    ctx.results().push(report.build())
"""


async def test_what_a_report_names_is_kept_with_the_run(tmp_path: Path) -> None:
    write_plugin(tmp_path / "plugins", NAMES)
    async with rig(tmp_path) as subject:
        run = await subject.run()
    indicators = [Indicator("url", f"http://{host}.example/") for host in "ab"]
    assert run.named == named_in(indicators, [Technique("T1055", "Process Injection")])


async def test_of_a_large_report_it_is_known_that_it_was_not_counted(tmp_path: Path) -> None:
    write_plugin(tmp_path / "plugins", LARGE)
    async with rig(tmp_path) as subject:
        run = await subject.run()
    assert run.verdict is not None
    assert (run.named.indicators, run.named.is_whole) == ((), False)
