"""The wheel has everything, and works from a fresh environment in another folder."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

from malbox_tui.tui.styles import styles_folder

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "-q", "--disable-pip-version-check", "wheel"]
    subprocess.run([*pip, "--no-deps", "--no-build-isolation", "-w", target, ROOT], check=True, cwd=target)
    (built,) = target.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh environment with the wheel; the dependencies are those of the tests' own environment."""
    folder = tmp_path_factory.mktemp("fresh")
    venv.create(folder / "venv", with_pip=False)
    python = folder / "venv" / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "-q", "--disable-pip-version-check", "--python", python, "install"]
    subprocess.run([*pip, "--no-deps", "--no-index", wheel], check=True, cwd=folder)
    (site,) = (folder / "venv" / "lib").glob("python*/site-packages")
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return folder / "venv" / "bin"


def files_of(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if not name.endswith("/")}


def test_every_file_of_the_package_is_in_it(wheel: Path) -> None:
    ours = {path.relative_to(ROOT) for path in (ROOT / "malbox_tui").rglob("*") if path.is_file()}
    generated = {path for path in ours if any(part == "__pycache__" or part.startswith(".") for part in path.parts)}
    assert {str(path) for path in ours - generated} - files_of(wheel) == set()


@pytest.mark.parametrize("suffix", [".sql", ".toml", ".yar", ".tcss", "py.typed"])
def test_what_is_no_python_is_in_it_too(wheel: Path, suffix: str) -> None:
    assert any(name.endswith(suffix) for name in files_of(wheel))


def test_it_has_the_licence_and_no_tests(wheel: Path) -> None:
    names = files_of(wheel)
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert not any(name.startswith(("tests/", "styles/")) for name in names)


def test_the_command_runs_from_another_folder(installed: Path, tmp_path: Path) -> None:
    shown = subprocess.run([installed / "malbox-tui", "--version"], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert shown.stdout.startswith("malbox-tui ")
    check = [installed / "python", "-m", "malbox_tui", "--data-dir", tmp_path, "config", "check"]
    assert subprocess.run(check, capture_output=True, check=True, cwd=tmp_path).stdout


def test_the_styles_are_found_in_an_installed_package(installed: Path, tmp_path: Path) -> None:
    code = "from malbox_tui.tui.styles import styles_folder; print(styles_folder())"
    shown = subprocess.run([installed / "python", "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    folder = Path(shown.stdout.strip())
    assert folder.is_relative_to(installed.parent)
    assert {path.name for path in folder.glob("*.tcss")} == {path.name for path in (ROOT / "styles").glob("*.tcss")}


def test_an_installed_package_analyses_a_file(installed: Path, tmp_path: Path) -> None:
    sample = tmp_path / "sample.txt"
    sample.write_text("hello\n")
    command = [installed / "malbox-tui", "analyze", sample, "--data-dir", tmp_path / "data"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "completed" in done.stdout


def test_the_styles_are_found_in_a_checkout() -> None:
    assert styles_folder() == ROOT / "styles"
