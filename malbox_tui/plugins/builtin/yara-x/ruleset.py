"""Rule files, compiled together. A broken one is named with its line, and the others still work."""

from pathlib import Path

import yara_x

OWN_RULES = Path(__file__).resolve().parent / "rules"
SUFFIXES = (".yar", ".yara")
MAX_RULE_FILE_BYTES = 64 * 1024 * 1024


class RuleSet:
    """Collects rule files; `problems` holds a sentence for each one that can't be used, in part or whole."""

    def __init__(self) -> None:
        self._compiler = yara_x.Compiler(relaxed_re_syntax=True)
        self.files = 0
        self.problems: list[str] = []

    def add_folder(self, path: str) -> None:
        """The operator's rules: a folder with rule files at any depth, or one file."""
        self._compiler.add_include_dir(path if Path(path).is_dir() else str(Path(path).parent))
        self.add(Path(path), "rules")

    def add(self, root: Path, shown_root: str) -> None:
        """All rule files of a folder, or one file, each in a namespace of its own: the same names may be in several."""
        files = [root] if root.is_file() else sorted(path for path in root.rglob("*") if path.suffix.lower() in SUFFIXES)
        if not files:
            self.problems.append(f"{shown_root}: there is no rule file (.yar or .yara)")
        for path in files:
            self._add_file(path, f"{shown_root}/{path.relative_to(root)}" if path != root else shown_root)

    def build(self) -> yara_x.Rules:
        """The compiled rules."""
        return self._compiler.build()

    def _add_file(self, path: Path, shown: str) -> None:
        try:
            if not path.is_file():
                self.problems.append(f"{shown}: not a file")
                return
            if path.stat().st_size > MAX_RULE_FILE_BYTES:
                self.problems.append(f"{shown}: larger than {MAX_RULE_FILE_BYTES} bytes")
                return
            source = path.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as exc:
            self.problems.append(f"{shown}: can't be read: {exc}")
            return
        known = len(self._compiler.errors())
        self._compiler.new_namespace(shown)
        try:
            self._compiler.add_source(source, origin=shown)
        except yara_x.CompileError:
            self.problems += [f"{shown}, line {error['line']}: {error['title']}" for error in self._compiler.errors()[known:]]
        self.files += 1
