"""What a result store of files does on a disk, beyond what every result store does."""

from __future__ import annotations

import stat
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from malbox_tui.model.errors import StoreError
from malbox_tui.model.report import ResultRef
from malbox_tui.ports import ResultStore
from malbox_tui.store.results import FileResultStore
from tests.contracts.test_result_store_contract import BAD_NAMES, put


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "results"


@pytest.fixture
async def results(folder: Path) -> AsyncIterator[ResultStore]:
    results = FileResultStore(folder)
    await results.open()
    yield results
    await results.close()


async def test_results_are_the_owners_alone(results: ResultStore, folder: Path) -> None:
    put(results)
    modes = {path.is_dir(): stat.S_IMODE(path.stat().st_mode) for path in (folder, *folder.rglob("*"))}
    assert modes == {True: 0o700, False: 0o600}


@pytest.mark.parametrize(
    "path",
    [
        "../../../etc/passwd",
        "/etc/passwd",
        "7/token-1/../../../secret",
        "7/token-1/yara/../../../secret",
        "7/token-1/yara/..",
        "7/token-1/yara",
        "secret",
        "",
        "7//yara/report",
        "7/token-1/yara/link",
        "7/token-1/yara/missing",
    ],
)
async def test_reading_never_leads_outside(results: ResultStore, folder: Path, path: str) -> None:
    put(results)
    (folder / "secret").write_text("secret")
    (folder / "7/token-1/yara/link").symlink_to("/etc/passwd")
    with pytest.raises(StoreError):
        await results.read(ResultRef("report", "json", 2, "", path), 100)


async def test_no_folder_is_left_of_what_is_refused_or_discarded(results: ResultStore, folder: Path) -> None:
    for bad in BAD_NAMES:
        with pytest.raises(ValueError, match="plain name"):
            results.begin(7, "token-1", bad, "report", "json")
    assert list(folder.iterdir()) == []
    put(results, "token-1")
    put(results, "token-2")
    await results.discard(7, "token-1")
    await results.discard(7, "token-2")
    assert list(folder.iterdir()) == []
